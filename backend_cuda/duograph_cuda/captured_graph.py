"""Runs a whole compiled program as one CUDA graph, for jit level O2.

`Cuda.link` makes a `Captured` call. Its first call runs the steps one by one on buffers that belong
to the program and records their allocations. Then the same steps run again on the same buffers
while the stream captures, and the capture becomes a graph. Later calls copy their operands into the
program's buffers, launch the graph, and copy the results out, since results outlive the call and
the next launch overwrites the graph's memory.

Updated parameters stay in the program's buffers: the graph overwrites the old value, and the caller
gets a handle to that memory, which it passes to the next call. If something else still holds the
handle then, or the caller passes another one, the value first moves to memory of its own.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

from duograph.backend.program import Alias, Copy, Program, Step
from duograph.errors import DeviceError, DeviceMemoryError

from ._native import Memory
from .device import CudaDevice

__all__ = ["Captured", "off", "refusal"]


def off() -> str | None:
    """Return why the user switched CUDA graph capture off, or None if it is on."""
    if os.environ.get("DUOGRAPH_CUDA_GRAPHS", "1") == "0":
        return "DUOGRAPH_CUDA_GRAPHS=0 keeps programs from becoming CUDA graphs"
    return None


def refusal(program: Program) -> str | None:
    """Return why a compiled program cannot be captured as a CUDA graph, or None if it can."""
    if program.level != "O2":
        return "programs become CUDA graphs at level O2"
    if program.hosts:
        return "a CUDA graph computes no numbers of Python"
    if not all(isinstance(step, (Step, Copy, Alias)) for step in program.instructions):
        return "a CUDA graph has no loops or branches that depend on data"
    return None


class Blocks:
    """The device memory of a program that becomes a CUDA graph: each run gets the same blocks.

    The n-th allocation of every run gets the same block. A freed block serves a later request of
    the same size, since work on a stream runs in order.
    """

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        self.start(False)

    def start(self, replaying: bool) -> None:
        """Begin a run of the program: one that records its memory blocks, or a later one.

        A later run gets the recorded blocks again.
        """
        self.at, self.replaying = 0, replaying
        if not replaying:
            self.kept: dict[int, Memory] = {}
            self.free: dict[int, list[int]] = {}
            self.order: list[int] = []

    def _allocate(self, nbytes: int, what: str) -> Memory:
        """Return a new block, which does not come from the program's memory."""
        self.device.pool.lend(None)
        try:
            return self.device.allocate(nbytes, what)
        finally:
            self.device.pool.lend(self)

    def allocate(self, nbytes: int, what: str) -> Memory:
        """Return the memory block of the run's next allocation; the recording run allocates it."""
        if not self.replaying:
            free = self.free.get(nbytes)
            block = self.kept[free.pop()] if free else self._allocate(nbytes, what)
            self.kept[block.pointer] = block
            self.order.append(block.pointer)
        self.at += 1
        pointer = self.order[self.at - 1]
        return Memory(pointer, nbytes, None if self.replaying else _Use(self, pointer))

    def release(self, pointer: int) -> None:
        """Make a block of the program's memory available again, during the recording run."""
        if not self.replaying and pointer in self.kept:
            self.free.setdefault(self.kept[pointer].nbytes, []).append(pointer)


class _Use:
    """Releases a block of a program's memory when its handle dies."""

    def __init__(self, blocks: Blocks, pointer: int) -> None:
        self.blocks = blocks
        self.pointer = pointer

    def __del__(self) -> None:
        self.blocks.release(self.pointer)


class Captured:
    """Callable that runs a compiled program as a CUDA graph, captured at its first call.

    Args:
        program: a program that `refusal` accepts.
        device: the device that runs it.
        name: name of the program, for messages.

    Attributes:
        inputs, results: buffers of parameters and results.
        graph: the executable graph; None before the first call, and if capture failed (`refused`).
        donations: output -> the parameter that it updates.
        states: the part of `donations` that stays in the program's buffers.
        given: parameter -> the handle to it that the last call returned.
        done: for each step the slots that no later step reads.
    """

    def __init__(self, program: Program, device: CudaDevice, name: str) -> None:
        self.program = program
        self.device = device
        self.name = name
        self.blocks = Blocks(device)
        self.inputs: list[Memory] = []
        self.results: list[Memory] = []
        self.graph: Any = None
        self.refused = False
        self.single = program.single
        self.donations = program.updates
        self.states: dict[int, int] = {}
        self.given: dict[int, weakref.ref[Memory]] = {}
        last: dict[int, int] = {}
        for at, step in enumerate(program.instructions):
            for slot in _read(step):
                last[slot] = at
        kept = {*program.params, *program.constants, *program.outputs}
        self.done = [
            [s for s in dict.fromkeys(_read(step)) if last[s] == at and s not in kept]
            for at, step in enumerate(program.instructions)
        ]

    def __call__(self, handles: Sequence[Memory], taken: Sequence[bool] = ()) -> Any:
        """Run the program on the buffer handles of its parameters; return handles of the results.

        The first call captures the CUDA graph. `taken` says for each of `donations` whether the
        caller alone holds the handle.
        """
        device = self.device
        with device.alone():
            if self.graph is None and not self.refused:
                self._first(handles)
            if not self.refused:
                made = self._launch(
                    handles, {p for p, t in zip(self.donations.values(), taken) if t}
                )
        if self.refused:
            made = self._run(list(handles))
        return made[0] if self.single else tuple(made)

    def _launch(self, handles: Sequence[Memory], taken: set[int]) -> list[Memory]:
        """Copy parameters to the CUDA graph's buffers, launch it, and copy the results out."""
        device, copied = self.device, [o for o in range(len(self.results)) if o not in self.states]
        made: dict[int, Memory] = {
            o: device.allocate(self.results[o].nbytes, self.name) for o in copied
        }
        # only a device failure can follow this; nothing has been overwritten yet
        self._fill(handles, taken)
        device.checked(self.name, "cuGraphLaunch", self.graph, device.stream)
        device.counts["launches"] += 1
        if device.record is not None:
            device.record.unread = True
        for o in copied:
            _copy(device, self.name, made[o], self.results[o])
        for o, p in self.states.items():
            own = self.inputs[p]
            made[o] = state = Memory(own.pointer, own.nbytes, own)
            self.given[p] = weakref.ref(state)
        return [made[o] for o in range(len(self.results))]

    def _fill(self, handles: Sequence[Memory], taken: set[int]) -> None:
        """Copy parameters to the CUDA graph's buffers, except those that are there already."""
        known = {p: state for p, ref in self.given.items() if (state := ref()) is not None}
        for p, state in known.items():  # allocations, which may raise, come first
            if state is not handles[p] or p not in taken:
                fresh = self.device.allocate(state.nbytes, self.name)
                _copy(self.device, self.name, fresh, state)
                state.move(fresh)
                del self.given[p]
        for p, (own, handle) in enumerate(zip(self.inputs, handles)):
            if known.get(p) is not handle:
                _copy(self.device, self.name, own, handle)

    def _first(self, handles: Sequence[Memory]) -> None:
        """Capture the program as a CUDA graph; if that fails, warn and always run without one."""
        device = self.device
        try:
            self.inputs = [device.allocate(h.nbytes, self.name) for h in handles]
            self._fill(handles, set())
            self.graph = self._captured()
        except (DeviceError, DeviceMemoryError) as error:
            if device.problem is not None:
                raise
            text = f"{self.name}: {error}; this compiled function runs step by step from now on"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        finally:
            if self.graph is None:
                self.refused, self.inputs, self.results = True, [], []
                self.blocks.start(False)

    def _captured(self) -> Any:
        """Capture the program's kernel launches; return the executable CUDA graph.

        Returns None if an instruction copies between host and device.
        """
        device = self.device
        module = device.driver.module
        copies = [device.counts[name] for name in ("copies_in", "copies_out")]
        self.blocks.start(False)
        self.results = self._lent()
        if copies != [device.counts[name] for name in ("copies_in", "copies_out")]:
            return None
        # a result that aliases an operand would be overwritten before it is copied out
        operands = {m.pointer for m in self.inputs}
        if not any(r.nbytes and r.pointer in operands for r in self.results):
            self.states = {o: p for o, p in self.donations.items() if self.results[o].nbytes}
        self.blocks.start(True)
        mode = module.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        device.checked(self.name, "cuStreamBeginCapture", device.stream, mode)
        try:
            captured = self._lent()
        except BaseException:
            module.cuStreamEndCapture(device.stream)  # it fails too, and ends the capture
            raise
        graph = device.checked(self.name, "cuStreamEndCapture", device.stream)
        assert [m.pointer for m in captured] == [m.pointer for m in self.results]
        try:
            return device.checked(self.name, "cuGraphInstantiate", graph, 0)
        finally:
            device.checked(self.name, "cuGraphDestroy", graph)

    def _lent(self) -> list[Memory]:
        """Run the program with all allocations in its own memory blocks.

        Returns its result handles.
        """
        self.device.pool.lend(self.blocks)
        try:
            made = self._run(self.inputs)
            for o, p in self.states.items():
                _copy(self.device, self.name, self.inputs[p], made[o])
            return made
        finally:
            self.device.pool.lend(None)

    def _run(self, given: list[Memory]) -> list[Memory]:
        """Run the program's instructions one by one, without a CUDA graph."""
        program = self.program
        slots: dict[int, Any] = dict(program.constants)
        slots.update(zip(program.params, given))
        for step, done in zip(program.instructions, self.done):
            if isinstance(step, Step):
                got = step.call.run(*[None if k < 0 else slots[k] for k in step.operands])
                slots.update(zip(step.results, (got,) if step.single else got))
            elif isinstance(step, Copy):
                source = slots[step.source]
                target = self.device.allocate(program.sizes[step.target], self.name)
                _copy(self.device, self.name, target, source)
                slots[step.target] = target
            elif isinstance(step, Alias):
                slots[step.target] = slots[step.source]
            for slot in done:
                del slots[slot]
        return [slots[k] for k in program.outputs]

    def __del__(self) -> None:
        if self.graph is not None and self.device.problem is None:
            self.device.checked(self.name, "cuGraphExecDestroy", self.graph)


def _copy(device: CudaDevice, name: str, target: Memory, source: Memory) -> None:
    """Queue a copy of a device buffer's bytes to another buffer on the CUDA stream."""
    if target.nbytes:
        places = (target.pointer, source.pointer)
        device.checked(name, "cuMemcpyDtoDAsync", *places, target.nbytes, device.stream)


def _read(step: Any) -> tuple[int, ...]:
    """Return the value slots (numbers) that an instruction of a program reads."""
    return tuple(k for k in step.operands if k >= 0) if isinstance(step, Step) else (step.source,)
