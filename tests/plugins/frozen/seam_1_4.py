"""A frozen plugin that uses all of version 1.4 of the plugin seam. Never change it.

It has everything that a backend could have then: kernels, compiled regions, linked programs of
typed steps, whole graphs, graph passes, costs, memory statistics, tuning, a kernel added by the
hook, decompositions of its own, copies without the host, an observer, a clock of the device and
programs that tell the times of their kernels. `test_frozen_plugins` runs it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from duograph.backend.added_kernels import KernelSpec
from duograph.backend.costs import DEFAULT_COSTS, Costs
from duograph.backend.hookspecs import hookimpl
from duograph.backend.observers import DeviceTimer, Event, Observer
from duograph.backend.prepared import LinkedProgram, PreparedCall
from duograph.backend.program import Alias, Copy, Program, Step
from duograph.backend.protocol import Backend, BackendSpec, DeviceInfo
from duograph.ir.graph import Graph
from duograph.op import OPS, Op
from duograph.types import TensorType

# How often each hook was called.
CALLS: dict[str, int] = {}


def _count(name: str) -> None:
    CALLS[name] = CALLS.get(name, 0) + 1


def _shaped(handle: Any, type_: TensorType) -> Any:
    return handle.view(type_.dtype.np).reshape(type_.shape)


def _flat(array: Any, type_: TensorType) -> Any:
    return np.array(array, type_.dtype.np).reshape(-1).view(np.uint8)


def _reference(op: Op, types: Sequence[TensorType], attributes: Mapping[str, Any]) -> Any:
    """Return a function of NumPy arrays that computes an op, with a tuple of results."""
    single = len(op.infer_types(tuple(types), attributes)) == 1

    def run(*arrays: Any) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            found = op.reference_rule(*op.arguments(arrays), **attributes)
        return (found,) if single else tuple(found)

    return run


def _step(step: Step, handles: Sequence[Any]) -> Sequence[Any]:
    """Compute a typed step by the rule of its op, or else by its prepared call; return handles."""
    types, op = step.types[: len(handles)], step.op
    if op.name == "region" or op.reference_rule is None or any(t is None for t in types):
        found = step.call(*handles)
        return (found,) if step.single else found
    arrays = [_shaped(h, t) for h, t in zip(handles, types)]
    found = _reference(op, types, step.attributes)(*arrays)
    return [_flat(v, t) for v, t in zip(found, step.types[len(handles) :])]


def _squares(graph: Graph) -> Graph:
    """Replace each product of a value with itself by its square."""
    _count("pass")
    nodes = [
        dataclasses.replace(n, op=OPS["square"], operands=n.operands[:1])
        if n.op.name == "mul" and n.operands[0] == n.operands[1]
        else n
        for n in graph.nodes
    ]
    return dataclasses.replace(graph, nodes=nodes)


def _tan(x: Any) -> Any:
    """Compute a tangent by other ops."""
    return OPS["sin"](x) / OPS["cos"](x)


def _atan(backend: Backend, op: Op, types: Any, attributes: Any, device_id: int) -> Any:
    """Prepare the kernel that the plugin adds."""
    (type_,) = types
    return lambda handle: _flat(np.arctan(_shaped(handle, type_)), type_)


class Watcher(Observer):
    """Counts the kernels of the device."""

    def finished(self, event: Event) -> None:
        if event.work.kind == "kernel" and event.work.device.startswith("Frozen14"):
            _count("observed")


class Clock(DeviceTimer):
    """The clock of a device that runs each kernel at once."""

    def mark(self) -> int:
        _count("mark")
        return time.perf_counter_ns()

    def elapsed(self, begin: int, end: int) -> int:
        return end - begin


class Frozen(Backend):
    """A device whose handles are flat arrays of bytes."""

    name = "Frozen14"
    host_fallback = "off"
    decompositions: Mapping[str, Callable[..., Any]] = {"tan": _tan}
    passes: Sequence[Callable[[Graph], Graph]] = (_squares,)
    conformance_unsupported: Mapping[str, str] = {}
    conformance_expected_failures: Mapping[str, str] = {}

    def available(self) -> str | None:
        return None

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo(0, "frozen", "NumPy", memory_bytes=1 << 30)]

    def copy_in(self, array: np.ndarray[Any, Any], device_id: int) -> Any:
        return np.array(array).reshape(-1).view(np.uint8)

    def copy_out(
        self, handle: Any, shape: tuple[int, ...], dtype: np.dtype[Any], device_id: int
    ) -> np.ndarray[Any, Any]:
        return np.array(handle).view(dtype).reshape(shape)

    def copy_between(
        self, handle: Any, shape: Any, dtype: Any, source_id: int, target_id: int
    ) -> Any:
        _count("copy_between")
        return np.array(handle)

    def copy_out_async(
        self, handle: Any, shape: tuple[int, ...], dtype: np.dtype[Any], device_id: int
    ) -> Callable[[], np.ndarray[Any, Any]]:
        _count("copy_out_async")
        return lambda: self.copy_out(handle, shape, dtype, device_id)

    def exclusive(self, handle: Any, device_id: int) -> bool:
        return True

    def nbytes(self, handle: Any, device_id: int) -> int | None:
        return int(handle.nbytes)

    def synchronize(self, device_id: int) -> None:
        _count("synchronize")

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, Any],
        device_id: int,
    ) -> PreparedCall | None:
        if op.is_composite or any(t is None for t in types):
            return None
        results = op.infer_types(types, attributes)
        compute = _reference(op, types, attributes)

        def run(*handles: Any) -> Any:
            found = compute(*[_shaped(h, t) for h, t in zip(handles, types)])
            made = tuple([_flat(v, t) for v, t in zip(found, results)])
            return made[0] if len(made) == 1 else made

        same = [(k, 0) for k, t in enumerate(types) if t.nbytes == results[0].nbytes]
        return PreparedCall(run, overwrites=tuple(same[:1]) if op.elementwise else ())

    def compiles(self, device_id: int) -> str | None:
        return None

    def compile(self, regions: Sequence[Graph], device_id: int) -> Sequence[PreparedCall | str]:
        _count("compile")
        return [self._region(region) for region in regions]

    def _region(self, region: Graph) -> PreparedCall | str:
        steps = []
        for node in region.nodes:
            types = [region.types[i] for i in node.operands if i is not None]
            if (
                node.op.is_composite
                or node.op.reference_rule is None
                or len(types) < len(node.operands)
                or not all(isinstance(t, TensorType) for t in types)
            ):
                return f"{node.op.name} is no kernel"
            steps.append((_reference(node.op, types, node.attributes), node))

        def run(*handles: Any) -> Any:
            values = {i: _shaped(h, region.types[i]) for i, h in enumerate(handles)}
            for compute, node in steps:
                found = compute(*[values[i] for i in node.operands])
                for i, v in zip(node.results, found):
                    values[i] = np.asarray(v, region.types[i].dtype.np)
            made = tuple([_flat(values[i], region.types[i]) for i in region.outputs])
            return made[0] if region.single else made

        return PreparedCall(run)

    def costs(self, device_id: int) -> Costs:
        return DEFAULT_COSTS._replace()

    def compiler(self, device_id: int) -> str | None:
        return f"NumPy {np.__version__}"

    def tune(self, device_id: int) -> Iterator[str]:
        yield "nothing to choose"

    def links(self, device_id: int) -> str | None:
        return None

    def link(self, program: Program, device_id: int) -> LinkedProgram | str:
        _count("link")
        if program.level != "O1" or program.hosts:
            return "it has loops, branches or numbers"
        if not all(isinstance(each, (Step, Copy, Alias)) for each in program.instructions):
            return "it has another instruction"

        if not all(isinstance(s.spans, tuple) for s in program.instructions if isinstance(s, Step)):
            return "its steps have no spans"

        def run(handles: tuple[Any, ...], donated: Sequence[bool] = ()) -> Any:
            return timed(handles, donated, None)

        def timed(handles: Sequence[Any], donated: Sequence[bool], told: Any) -> Any:
            slots = {**program.constants, **dict(zip(program.params, handles))}
            times: list[tuple[int, int, int]] = []
            for each in program.instructions:
                if isinstance(each, Step):
                    given = [None if i == -1 else slots[i] for i in each.operands]
                    begin = time.perf_counter_ns()
                    slots.update(zip(each.results, _step(each, given)))
                    times.append((len(times), begin, time.perf_counter_ns()))
                elif isinstance(each, Copy):
                    slots[each.target] = slots[each.source].copy()
                elif isinstance(each, Alias):
                    slots[each.target] = slots[each.source]
            if told is not None:
                _count("timed")
                told(np.array(times, np.int64).reshape(-1, 3))
            made = tuple([slots[i] for i in program.outputs])
            return made[0] if program.single else made

        return LinkedProgram(run, timed=timed)

    def compile_graph(self, graph: Graph, device_id: int) -> LinkedProgram | str | None:
        _count("compile_graph")
        run = self._region(graph)
        if isinstance(run, str):
            return run
        return LinkedProgram(lambda handles, donated=(): run.run(*handles))

    def timer(self, device_id: int) -> Clock:
        return Clock()

    def memory_stats(self, device_id: int) -> dict[str, int]:
        return {"in_use": 0, "cached": 0, "peak": 0, "limit": 1 << 30}

    def empty_cache(self, device_id: int) -> None:
        _count("empty_cache")


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the registration record of the backend."""
    return BackendSpec(
        "Frozen14", Frozen, priority=None, seam_version=(1, 4), aliases=("frozen-1.4",)
    )


@hookimpl
def duograph_kernels() -> KernelSpec:
    """Return the kernel that takes precedence over that of the backend."""
    return KernelSpec("Frozen14", "atan", _atan, priority=10)


@hookimpl
def duograph_observers() -> Watcher:
    """Return the observer of all work."""
    return Watcher()
