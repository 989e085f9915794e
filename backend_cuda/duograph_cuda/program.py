"""Level O2: a whole program captured as a CUDA graph, which one call launches.

The first call runs the steps one by one on buffers that belong to the program, and keeps what each of them allocated;
then the same steps run again while the stream captures, on the same buffers, and the capture becomes a graph. Later
calls copy their operands into the program's buffers, launch the graph, and copy the results out, since these outlive
the call and the graph's own memory is written again by the next one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from duograph.backend.program import Alias, Copy, Program, Step

from .device import CudaDevice, Memory

__all__ = ["Captured", "off", "refusal"]


def off() -> str | None:
    """None when programs are to be captured, else why not."""
    if os.environ.get("DUOGRAPH_CUDA_GRAPHS", "0") == "1":
        return None
    return "programs become CUDA graphs where DUOGRAPH_CUDA_GRAPHS=1 asks for it"


def refusal(program: Program) -> str | None:
    """Why a program cannot be captured, or None."""
    if program.hosts:
        return "a CUDA graph computes no numbers of Python"
    if not all(isinstance(step, (Step, Copy, Alias)) for step in program.instructions):
        return "a CUDA graph has no loops or branches whose way depends on data"
    return None


class Blocks:
    """The memory of one program: the same blocks in the same order, whenever its steps run.

    A block that was freed serves a later request of the same size: work runs in order.
    """

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        self.kept: list[Memory] = []
        self.free: dict[int, list[int]] = {}
        self.order: list[int] = []
        self.at = 0
        self.replaying = False

    def start(self, replaying: bool) -> None:
        """Begin a run of the steps."""
        self.at, self.replaying = 0, replaying
        if not replaying:
            self.kept, self.free, self.order = [], {}, []

    def allocate(self, nbytes: int, what: str) -> Memory:
        """The next block."""
        if self.replaying:
            pointer = self.order[self.at]
        else:
            found = self.free.get(nbytes)
            if found:
                pointer = found.pop()
            else:
                block = self.device.allocate(nbytes, what)
                self.kept.append(block)
                pointer = block.pointer
            self.order.append(pointer)
        self.at += 1
        return _Borrowed(pointer, nbytes, self)  # type: ignore[arg-type]

    def release(self, pointer: int, nbytes: int) -> None:
        """A block is free again; `_Borrowed` says so."""
        if not self.replaying:
            self.free.setdefault(nbytes, []).append(pointer)


class _Borrowed(Memory):
    """A handle to a block of a program."""

    __slots__ = ()

    def __del__(self) -> None:
        if self.pointer:
            self.device.release(self.pointer, self.nbytes)  # type: ignore[call-arg]


class Captured:
    """The call of a program.

    Args:
        program: without loops, branches and host numbers (`refusal`).
        device: where it runs.
        name: for messages.
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
        """Memory that is given away (`taken`) is not needed, since results are copied out."""
        device = self.device
        if self.refused:
            return self._given(self._run(list(handles)))
        with device.lock:
            if not self.inputs:
                self.inputs = [device.allocate(h.nbytes, self.name) for h in handles]
            for own, given in zip(self.inputs, handles):
                self._copy(own, given)
            if self.graph is None:
                self._first()
            else:
                device.checked(self.name, "cuGraphLaunch", self.graph, device.stream)
                device.counts["launches"] += 1
                if device.record is not None:
                    device.record.unread = True
            made = [device.allocate(r.nbytes, self.name) for r in self.results]
            for own, result in zip(made, self.results):
                self._copy(own, result)
        return self._given(made)

    def _given(self, results: list[Memory]) -> Any:
        return results[0] if self.single else tuple(results)

    def _first(self) -> None:
        device = self.device
        read_before = device.counts["copies_out"]
        self.blocks.start(False)
        device.lend(self.blocks)
        try:
            self.results = self._run(self.inputs)
        finally:
            device.lend(None)
        if device.counts["copies_out"] != read_before:
            self.refused = True  # a step reads values on the host, which no graph can
            return
        self.blocks.start(True)
        mode = device.driver.module.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        device.checked(self.name, "cuStreamBeginCapture", device.stream, mode)
        device.lend(self.blocks)
        try:
            captured = self._run(self.inputs)
        finally:
            device.lend(None)
            graph = device.checked(self.name, "cuStreamEndCapture", device.stream)
        assert [m.pointer for m in captured] == [m.pointer for m in self.results]
        try:
            self.graph = device.checked(self.name, "cuGraphInstantiate", graph, 0)
        finally:
            device.checked(self.name, "cuGraphDestroy", graph)

    def _run(self, given: list[Memory]) -> list[Memory]:
        """The steps, one by one; the results."""
        program = self.program
        slots: dict[int, Any] = dict(program.constants)
        slots.update(zip(program.params, given))
        for step, done in zip(program.instructions, self.done):
            if isinstance(step, Step):
                got = step.call(*[None if k < 0 else slots[k] for k in step.operands])
                slots.update(zip(step.results, (got,) if step.single else got))
            elif isinstance(step, Copy):
                source = slots[step.source]
                target = self.device.allocate(program.sizes[step.target], self.name)
                self._copy(target, source)
                slots[step.target] = target
            elif isinstance(step, Alias):
                slots[step.target] = slots[step.source]
            for slot in done:
                del slots[slot]
        return [slots[k] for k in program.outputs]

    def _copy(self, target: Memory, source: Memory) -> None:
        if target.nbytes:
            self.device.checked(
                self.name, "cuMemcpyDtoDAsync", target.pointer, source.pointer, target.nbytes,
                self.device.stream,
            )  # fmt: skip

    def __del__(self) -> None:
        if self.graph is not None and self.device.problem is None:
            self.device.checked(self.name, "cuGraphExecDestroy", self.graph)


def _read(step: Any) -> tuple[int, ...]:
    """The slots that an instruction reads."""
    return tuple(k for k in step.operands if k >= 0) if isinstance(step, Step) else (step.source,)
