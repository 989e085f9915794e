"""The form of lowered programs that reports each kernel to observers (`backend.observers`).

While they lower for observers, `execution.lowering` wraps the steps that run one by one, and
`execution.native_program` wraps a program as a whole. The reports must not change what a program
computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..backend.checked_calls import naming
from ..backend.observers import CompiledForm, DeviceTimer, State, Work, state, watched
from ..backend.plugin_checks import shown_value
from ..backend.prepared import Handle, HandleFunction, LinkedProgram
from ..backend.program import HostStep, Instruction, Step, steps_in
from ..backend.protocol import Backend
from ..errors import BackendError
from ..ir.graph import Graph
from ..types import Device, TensorType
from .control import CONTROL_OPS
from .optional_methods import answer

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["timed_program", "watched_graph", "watched_steps"]

# From handles and donations to results, as `LinkedProgram.run`.
Run = HandleFunction


def watched_steps(steps: Sequence[Step], backend: Backend, device: Device) -> list[Step]:
    """Return the steps in the form that reports each call to the observers.

    A step that calls a Python function (a host call) reports as well. Steps of control flow are
    returned unchanged: only the kernels inside them report.
    """
    timer, form = _timer(backend, device), _compiled_form(backend)
    return [_watched_step(step, device, timer, form) for step in steps]


def _watched_step(
    step: Step, device: Device, timer: DeviceTimer | None, form: CompiledForm
) -> Step:
    """Return a step in the form that reports each of its calls to observers."""
    if step.name in CONTROL_OPS and step.name != "host_call":
        return step
    work = _work(step, device)
    timer = timer if work.kind == "kernel" else None
    run = watched(step.call.run, work, timer, len(step.operands), form)
    return step.with_run(run)


def _work(step: Step, device: Device) -> Work:
    """Return the description of a kernel call, or of a call of a Python function, for observers.

    Observers receive it together with the run time of the call.
    """
    kind = "python" if step.name == "host_call" else "kernel"
    name = step.name or "copy"
    if kind == "python":
        name = str(step.attributes["run"])
    nbytes = sum(t.nbytes for t in step.types if isinstance(t, TensorType))
    return Work(
        kind, name, repr(device), nbytes, step.op, step.types, len(step.results), step.attributes,
        step.spans,
    )  # fmt: skip


def timed_program(
    linked: LinkedProgram, instructions: Sequence[Instruction], device: Device
) -> Run | None:
    """Return a function that runs a linked program and reports its kernels to observers.

    The result is None if the program cannot measure the times of its kernels
    (`LinkedProgram.timed`). `instructions` are those of the program, in order.
    """
    timed, run = linked.timed, linked.run
    if timed is None:
        return None
    works = [_host_work(s) if isinstance(s, HostStep) else _work(s, device)
             for s in steps_in(instructions)]  # fmt: skip
    kernels = np.array([w.kind != "host" for w in works], bool)
    all_kernels = bool(kernels.all())

    def report(times: Array) -> None:
        take = state.take_program
        if take is not None:
            take(works, times if all_kernels else times[kernels[times[:, 0]]])

    def observed(
        handles: Sequence[Handle], donated: Sequence[bool] = ()
    ) -> Handle | tuple[Handle, ...]:
        if state.take_program is None:
            return run(handles, donated)
        return timed(handles, donated, report)

    return observed


def _host_work(step: HostStep) -> Work:
    """Return a placeholder for an instruction on Python numbers, which observers never receive.

    It keeps the position of the instruction in the program, because times are reported by position.
    """
    return Work("host", step.name)


def watched_graph(run: Run, graph: Graph, device: Device) -> Run:
    """Return a function that runs a graph compiled as a whole and reports it as one event."""
    types = (*graph.types[: graph.n_params], *[graph.types[i] for i in graph.outputs])
    nbytes = sum(t.nbytes for t in types if isinstance(t, TensorType))
    spans = {(s.file, s.line): s for node in graph.nodes if (s := node.span) is not None}
    work = Work(
        "kernel", "graph", repr(device), nbytes, None, types, len(graph.outputs), {"body": graph},
        tuple(spans.values()),
    )  # fmt: skip
    return watched(run, work, None)


def _compiled_form(backend: Backend) -> CompiledForm:
    """Return a function that calls the backend's `watched_call` and checks its result.

    Where that method raises or returns no function, a warning says so once, and the result is the
    form in Python.
    """

    def form(
        state: State, run: HandleFunction, work: Work, otherwise: HandleFunction
    ) -> HandleFunction:
        def ask() -> HandleFunction:
            found: object = backend.watched_call(state, run, work, otherwise)
            if callable(found):
                return found
            raise BackendError(f"returned {shown_value(found)}; wanted a function")

        found = answer(backend, "watched_call", ask)
        return otherwise if isinstance(found, str) else found

    return form


def _timer(backend: Backend, device: Device) -> DeviceTimer | None:
    """Return the device clock that times asynchronous kernels, or None if the device has none."""

    def ask() -> DeviceTimer | None:
        found: object = backend.timer(device.index)
        if found is None:
            return None
        if isinstance(found, DeviceTimer):
            return _CheckedTimer(found, backend)
        raise BackendError(f"returned {shown_value(found)}; wanted a DeviceTimer or None")

    found = answer(backend, "timer", ask)
    return None if isinstance(found, str) else found


class _CheckedTimer(DeviceTimer):
    """The clock of a backend's device, whose failures do not end the calls that it measures.

    Attributes:
        timer: the backend's clock.
        backend: the backend, for messages.
    """

    def __init__(self, timer: DeviceTimer, backend: Backend) -> None:
        self.timer, self.backend = timer, backend

    def mark(self) -> object:
        """Append a mark to the device's queue; if that fails, warn once and return None."""

        def ask() -> tuple[object]:
            return (self.timer.mark(),)

        found = answer(self.backend, "timer().mark", ask)
        return None if isinstance(found, str) else found[0]

    def elapsed(self, begin: object, end: object) -> int:
        """Return the nanoseconds between two marks.

        Raises:
            BackendError: the backend's clock failed, or returned something else.
        """
        with naming(self.backend, "timer().elapsed"):
            found: object = self.timer.elapsed(begin, end)
        if isinstance(found, (int, np.integer)) and not isinstance(found, bool):
            return int(found)
        raise BackendError(
            f"{self.backend.name}: timer().elapsed() returned {shown_value(found)}; wanted "
            "nanoseconds as an int"
        )
