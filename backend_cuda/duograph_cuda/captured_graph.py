"""Runs a whole compiled program as a CUDA graph, at jit level O2.

`Cuda.link` returns a `Captured` object. Its first call runs the program's steps (kernel calls) one
by one and records their requests for memory. The second call captures the same steps as a CUDA
graph, with all intermediate values in one arena (a block of memory); later calls launch that graph.
A program that is called only once therefore takes no longer than its steps one by one.

A graph has fixed addresses for three kinds of values:

- *Operands*, such as a network's weights, are read at the addresses of the caller's buffers and are
  not copied. If a later call passes an operand at another address, the program allocates a buffer
  for it, to which each call copies the operand, and the graphs are captured again.
- *Updated parameters* (states) are in a buffer of the program: the graph overwrites the old value,
  and the caller gets a handle to that memory, which it passes to the next call. The buffer is the
  one that the caller gave up at the second call. If something else still holds the handle at a
  call, or the caller passes another handle, the value that is held is first copied to separate
  memory. A step may write the new value in place if no later step reads the old value; otherwise
  the graph ends with a copy.
- *Other results* have separate buffers in each graph, and the caller gets handles to them. If these
  handles are still in use at the next call, a second graph with other buffers is launched,
  alternating with the first. If they are in use even longer, their values are first copied to
  separate memory.

A call must not overwrite anything before it has all the memory that it needs, so that a call which
fails for lack of memory has changed nothing.
"""

from __future__ import annotations

import collections
import os
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, SupportsInt

from duograph.backend.program import Alias, Copy, Program, Step
from duograph.errors import DeviceError, DeviceMemoryError

from ._native import Memory
from .device import CudaDevice
from .graph_memory import Places, Trace, lent

__all__ = ["Captured", "off", "refusal"]

# Graphs of a program, which differ in the buffers of their results.
MOST_GRAPHS = 2


def off() -> str | None:
    """Return the setting by which the user has switched CUDA graphs off, or None if they are on."""
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


class Graph:
    """An executable CUDA graph, and the buffers of its results that do not update a parameter.

    Attributes:
        handle: address of the executable graph, which is destroyed with this object.
        results: position of an output -> its buffer.
        given: weak references to the handles of these buffers that the last launch has returned.
    """

    def __init__(self, device: CudaDevice, handle: SupportsInt, results: dict[int, Memory]) -> None:
        self.device = device
        self.handle = int(handle)
        self.results = results
        self.given: list[weakref.ref[Memory]] = []

    def held(self) -> list[Memory]:
        """Return those handles of the last launch's results that the caller still holds."""
        return [memory for ref in self.given if (memory := ref()) is not None]

    def __del__(self) -> None:
        if self.device.problem is None:
            self.device.checked("captured graph", "cuGraphExecDestroy", self.handle)


class Captured:
    """Callable that runs a compiled program as a CUDA graph, which it captures at its second call.

    A *state* is a parameter that the program updates.

    Args:
        program: a program that `refusal` accepts.
        device: the device that runs it.
        name: name of the program, for messages.

    Attributes:
        trace: the memory requests of the first call; None before the first call.
        refused: whether every call runs the steps one by one, because capturing is impossible.
        operands: position of a parameter -> the address at which the graphs read it; for a
            parameter in `buffers`, the address of that buffer.
        buffers: position of a parameter -> the program's own buffer for it, for states and for
            operands that callers pass at changing addresses.
        donations: position of an output -> position of the parameter that it updates.
        given: position of a state -> weak reference to the handle that the last call returned for
            it.
        graphs: the graphs, the least recently launched one first.
        requests: position of an output -> number of its memory request in `trace`.
        most: maximum number of graphs.
        watches: whether a kernel of the program may report an index out of range.
        in_place: positions of outputs that a step writes over the parameter's old value.
    """

    def __init__(self, program: Program, device: CudaDevice, name: str) -> None:
        self.program = program
        self.device = device
        self.name = name
        self.single = program.single
        self.donations = program.updates
        self.trace: Trace | None = None
        self.refused = False
        self.operands: list[int] = []
        self.buffers: dict[int, Memory] = {}
        self.given: dict[int, weakref.ref[Memory]] = {}
        self.graphs: collections.deque[Graph] = collections.deque()
        self.requests: dict[int, int] = {}
        self.arena: Memory | None = None
        self.offsets: dict[int, int] = {}
        self.watches = False
        # (operand, address): operands with fixed addresses, and states in the order of `donations`
        self._fixed_at: list[tuple[int, int]] = []
        self._states_at: list[tuple[int, int]] = []
        self._copied_to: list[tuple[int, Memory]] = []
        # (output, parameter, buffer) of the states; and placeholders of the results
        self._updated: list[tuple[int, int, Memory]] = []
        self._nothing: list[Memory] = []
        self.most = MOST_GRAPHS
        self.in_place = _written_in_place(program)
        last: dict[int, int] = {}
        for at, step in enumerate(program.instructions):
            for slot in _read(step):
                last[slot] = at
        kept = {*program.params, *program.constants, *program.outputs}
        self.done = [
            [s for s in dict.fromkeys(_read(step)) if last[s] == at and s not in kept]
            for at, step in enumerate(program.instructions)
        ]

    def __call__(
        self, handles: Sequence[Memory], taken: Sequence[bool] = ()
    ) -> Memory | tuple[Memory, ...]:
        """Run the program on the buffer handles of its parameters; return handles of the results.

        `taken` says for each of `donations`, in order, whether the caller alone holds the
        parameter's handle and gives it up.
        """
        with self.device.alone:
            if self._as_before(handles, taken):
                made = self._launch(handles)
            elif self.trace is None and not self.refused:
                made = self._first(handles)
            else:
                owned = {p for p, t in zip(self.donations.values(), taken) if t}
                ready = not self.refused and self._ready(handles, owned)
                made = self._launch(handles) if ready else self._run(list(handles))
        return made[0] if self.single else tuple(made)

    def _as_before(self, handles: Sequence[Memory], taken: Sequence[bool]) -> bool:
        """Return whether the first of `graphs` can be launched without any preparation.

        It can if every operand has the address that the graph reads, if the caller gives up all
        states (`taken`) and these are in the program's buffers, and if the caller holds no result
        of the graph. `handles` are those of the parameters.
        """
        if not self.graphs or len(taken) != len(self._states_at):
            return False
        for p, address in self._fixed_at:
            if handles[p].pointer != address:
                return False
        for (p, address), mine in zip(self._states_at, taken):
            if not mine or handles[p].pointer != address:
                return False
        return not any([ref() is not None for ref in self.graphs[0].given])

    # ---- the first call -------------------------------------------------------------------------

    def _first(self, handles: Sequence[Memory]) -> list[Memory]:
        """Run the steps one by one and return results; record the memory requests in `trace`.

        If a step keeps memory or copies between host and device, set `refused` instead.
        """
        device = self.device
        copies = [device.counts[name] for name in ("copies_in", "copies_out")]
        trace = Trace(device.pool)
        made: list[Memory] = lent(device.pool, trace, lambda: self._run(list(handles)))
        self.requests = {o: trace.numbers[m.pointer] for o, m in enumerate(made) if m.nbytes}
        kept = trace.alive() != set(self.requests.values())
        if kept or copies != [device.counts[name] for name in ("copies_in", "copies_out")]:
            self.refused = True  # a step keeps memory, or copies between host and device
        else:
            self.trace = trace
            self.operands = [h.pointer for h in handles]
        return made

    # ---- later calls ----------------------------------------------------------------------------

    def _ready(self, handles: Sequence[Memory], taken: set[int]) -> bool:
        """Prepare buffers and a graph for a call; return False if the steps must run one by one.

        Afterwards the first of `graphs` is the one to launch. Values in its buffers that callers
        still hold have been copied to separate memory. `taken` are the positions of the parameters
        whose handles the caller gives up.

        Raises:
            DeviceMemoryError: there is no memory to move such a value to.
        """
        try:
            self._place_operands(handles, taken)
            self._choose_graph()
        except (DeviceError, DeviceMemoryError) as error:
            if self.device.problem is not None:
                raise
            text = f"{self.name}: {error}; this compiled function runs step by step from now on"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
            self._refuse()
            return False
        known = self._states()
        for p, state in known.items():
            if state is not handles[p] or p not in taken:
                self._move(state)
                del self.given[p]
        for memory in self.graphs[0].held():
            self._move(memory)
        return True

    def _refuse(self) -> None:
        """Drop all graphs and run the steps one by one from now on; handles in use remain valid."""
        self.refused = True
        self.graphs.clear()
        self.given.clear()
        self.buffers.clear()
        self.arena = self.trace = None

    def _states(self) -> dict[int, Memory]:
        """Return the last call's handles of updated parameters (states) that are still in use.

        They are in a dict by the position of the parameter. A handle is in use if some object still
        refers to it.
        """
        return {p: state for p, ref in self.given.items() if (state := ref()) is not None}

    def _move(self, memory: Memory) -> None:
        """Copy the value behind a handle to new memory, and make the handle refer to that memory.

        The program can then overwrite its buffer, where the value was before.
        """
        fresh = self.device.allocate(memory.nbytes, self.name)
        _copy(self.device, self.name, fresh, memory)
        memory.move(fresh)

    def _place_operands(self, handles: Sequence[Memory], taken: set[int]) -> None:
        """Allocate buffers of the program for states, and for operands passed at a new address.

        A state is a parameter that the program updates. If the caller gives its handle up (its
        position is in `taken`), the program keeps the caller's buffer for it; all other buffers are
        newly allocated. "New" means different from the address in the captured graphs. If a
        parameter gets a buffer, all graphs are dropped, since they contain its old address.
        """
        states = {p for o, p in self.donations.items() if o in self.requests}
        for p, handle in enumerate(handles):
            if p in self.buffers or not handle.nbytes:
                continue
            if p in states and p in taken:  # donated: the caller's buffer is used from now on
                buffer = handle.share()
                self.given[p] = weakref.ref(handle)
            elif p in states or handle.pointer != self.operands[p]:
                buffer = self.device.allocate(handle.nbytes, self.name)
            else:
                continue
            self.graphs.clear()
            self.buffers[p] = buffer
            self.operands[p] = buffer.pointer
        if not self.graphs:
            self._note_places(handles)

    def _note_places(self, handles: Sequence[Memory]) -> None:
        """Store the lists of addresses and buffers that each later call needs.

        A later call compares the addresses of its parameters with those that the graphs contain,
        and copies the values of some parameters to the program's own buffers. `handles` are the
        parameters of the present call.
        """
        updates = self.donations.items()
        self._fixed_at = [
            (p, self.operands[p])
            for p, handle in enumerate(handles)
            if p not in self.buffers and handle.nbytes
        ]
        # a state without a buffer has no bytes; its address is 0
        self._states_at = [(p, self.operands[p]) for p in self.donations.values()]
        self._updated = [(o, p, self.buffers[p]) for o, p in updates if o in self.requests]
        self._copied_to = list(self.buffers.items())
        self._nothing = [Memory(0, 0)] * len(self.program.outputs)

    def _choose_graph(self) -> None:
        """Move the graph to launch to the front of `graphs`.

        A graph can be launched if no handle to its results is in use. If there is no such graph, a
        new graph is captured while fewer than `most` exist; otherwise the least recently launched
        graph stays in front. If capturing fails and a graph exists, that graph remains the only
        one.

        Raises:
            DeviceError, DeviceMemoryError: the first graph cannot be captured, or the device is
                lost.
        """
        for graph in list(self.graphs):
            if not graph.held():
                self.graphs.remove(graph)
                self.graphs.appendleft(graph)
                return
        if len(self.graphs) < self.most:
            try:
                self.graphs.appendleft(self._captured())
            except (DeviceError, DeviceMemoryError):
                if not self.graphs or self.device.problem is not None:
                    raise
                self.most = 1  # keep the one graph that was captured

    def _launch(self, handles: Sequence[Memory]) -> list[Memory]:
        """Copy operands to buffers and launch the first of `graphs`; return result handles."""
        device, graph = self.device, self.graphs[0]
        for p, buffer in self._copied_to:
            if handles[p].pointer != buffer.pointer:
                _copy(device, self.name, buffer, handles[p])
        device.gate.launch_graph(graph.handle)
        if self.watches and device.record is not None:
            device.record.unread = True
        self.graphs.rotate(-1)
        made = self._nothing[:]
        for o, p, buffer in self._updated:
            state = handles[p]
            if state.pointer != buffer.pointer:
                state = Memory(buffer.pointer, buffer.nbytes, buffer)
                self.given[p] = weakref.ref(state)
            made[o] = state
        graph.given = []
        for o, own in graph.results.items():
            made[o] = result = Memory(own.pointer, own.nbytes, own)
            graph.given.append(weakref.ref(result))
        return made

    # ---- capturing ------------------------------------------------------------------------------

    def _captured(self) -> Graph:
        """Capture the program's kernel launches as a new graph with its own result buffers.

        Raises:
            DeviceError, DeviceMemoryError: the driver refuses the capture, or there is not enough
                memory.
        """
        device, trace = self.device, self.trace
        assert trace is not None
        results = {
            o: device.allocate(trace.sizes[number], self.name)
            for o, number in self.requests.items()
            if o not in self.donations
        }
        elsewhere = {self.requests[o]: memory for o, memory in results.items()}
        states = {o: self.buffers[p] for o, p in self.donations.items() if o in self.requests}
        elsewhere.update({self.requests[o]: states[o] for o in self.in_place if o in states})
        if self.arena is None:
            self.offsets, nbytes = trace.arrange(set(elsewhere))
            self.arena = device.arena(nbytes, self.name)
        places = Places(trace, self.arena, self.offsets, elsewhere)
        operands = [
            Memory(pointer, self.program.sizes[slot])
            for pointer, slot in zip(self.operands, self.program.params)
        ]

        def run() -> None:
            made = self._run(operands)
            for o, buffer in states.items():
                if o not in self.in_place:
                    _copy(device, self.name, buffer, made[o])
                elif made[o].pointer != buffer.pointer:
                    raise DeviceError("a step has not written its result where it was told to")

        return Graph(device, self._graph_of(lambda: lent(device.pool, places, run)), results)

    def _graph_of(self, run: Callable[[], object]) -> Any:
        """Capture the launches that `run()` makes; return the executable CUDA graph of them."""
        device = self.device
        module = device.driver.module
        launches = device.gate.launches, device.counts["launches"]
        record = device.record
        unread = record is not None and record.unread
        if record is not None:
            record.unread = False
        mode = module.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        device.checked(self.name, "cuStreamBeginCapture", device.stream, mode)
        try:
            run()
        except BaseException:
            module.cuStreamEndCapture(device.stream)  # ends the capture; its own error is ignored
            raise
        finally:
            device.gate.launches, device.counts["launches"] = launches
            if record is not None:
                self.watches = self.watches or record.unread
                record.unread = unread
        graph = device.checked(self.name, "cuStreamEndCapture", device.stream)
        try:
            return device.checked(self.name, "cuGraphInstantiate", graph, 0)
        finally:
            device.checked(self.name, "cuGraphDestroy", graph)

    # ---- running steps --------------------------------------------------------------------------

    def _run(self, given: list[Memory]) -> list[Memory]:
        """Run the program's instructions one by one; return the handles of the results.

        `given` are the handles of the parameters. No two results have the same memory.
        """
        program = self.program
        slots: dict[int, Memory] = dict(program.constants)
        slots.update(zip(program.params, given))
        for step, done in zip(program.instructions, self.done):
            if isinstance(step, Step):
                got = step.call.run(*[None if k < 0 else slots[k] for k in step.operands])
                slots.update(zip(step.results, (got,) if step.single else got))
            elif isinstance(step, Copy):
                slots[step.target] = self._copied(slots[step.source])
            elif isinstance(step, Alias):
                slots[step.target] = slots[step.source]
            for slot in done:
                del slots[slot]
        # by identity: a result that is written in place has an operand's address, too
        known = {id(m) for k, m in slots.items() if k not in program.outputs}
        known |= {id(m) for m in given}
        made = []
        for slot in program.outputs:
            memory = slots[slot]
            if id(memory) in known:
                memory = self._copied(memory)
            known.add(id(memory))
            made.append(memory)
        return made

    def _copied(self, source: Memory) -> Memory:
        target = self.device.allocate(source.nbytes, self.name)
        _copy(self.device, self.name, target, source)
        return target


def _copy(device: CudaDevice, name: str, target: Memory, source: Memory) -> None:
    """Queue a copy of a device buffer's bytes to another buffer on the CUDA stream."""
    if target.nbytes:
        places = (target.pointer, source.pointer)
        device.checked(name, "cuMemcpyDtoDAsync", *places, target.nbytes, device.stream)


def _read(step: Any) -> tuple[int, ...]:
    """Return the slots (numbers of run-time values) that an instruction of a program reads."""
    return tuple(k for k in step.operands if k >= 0) if isinstance(step, Step) else (step.source,)


def _written_in_place(program: Program) -> set[int]:
    """Return positions of outputs that a step may write over the parameters that they update.

    Doing so is safe if no later instruction reads the parameter. If the step itself reads the
    parameter, its call must also allow that result in the operand's memory
    (`PreparedCall.overwrites`).
    """
    last: dict[int, int] = {}
    aliased, writers = set(), {}
    for at, each in enumerate(program.instructions):
        last.update(dict.fromkeys(_read(each), at))
        if isinstance(each, Step):
            writers.update({slot: (at, each) for slot in each.results})
        elif isinstance(each, Alias):
            aliased |= {each.source, each.target}
    found = set()
    for o, p in program.updates.items():
        slot, parameter = program.outputs[o], program.params[p]
        if slot not in writers or {slot, parameter} & aliased or parameter in program.outputs:
            continue
        at, step = writers[slot]
        if program.outputs.count(slot) > 1 or program.sizes[slot] != program.sizes[parameter]:
            continue
        reads = step.operands.count(parameter)
        over = reads == 1 and (
            (step.operands.index(parameter), step.results.index(slot)) in step.call.overwrites
        )
        if last.get(parameter, -1) < at or (last[parameter] == at and over):
            found.add(o)
    return found
