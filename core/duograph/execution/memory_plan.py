"""Plans the memory of a lowered graph: offsets in one arena, and which values use the same memory.

`execution.native_program` calls `plan_memory` once per program. A value lives from the instruction
that writes it to the last one that reads it. Three things save memory:

- a kernel call that may overwrite an operand does so if no later instruction reads the operand;
- values with disjoint lifetimes may have the same offset in the arena;
- a result that is the new value of a parameter may overwrite the parameter's buffer (a *donation*)
  if no later step reads the old value, and neither the step that writes the result nor a later one
  can fail. A call that raises therefore leaves all parameters as they were.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backend.program import Alias, Choice, Copy, HostStep, Instruction, Loop, Step
from ..dims import hint_of, symbols_in
from ..size_code import Behind
from .inspection import InspectedPlan, report_plan

if TYPE_CHECKING:
    from ..dims import Size

__all__ = ["MemoryPlan", "plan_memory"]

ALIGNMENT = 64  # bytes, of offsets in the arena


class MemoryPlan(NamedTuple):
    """The memory layout of a lowered graph: arena offsets, common memory, donated buffers.

    A *slot* is the number of a run-time value. The *arena* is the block of memory for the program's
    intermediate values.

    Attributes:
        places: for each slot its offset in the arena in bytes; -1 for slots outside the arena. If
            sizes are symbolic, offsets and `arena` are expressions (`size_code.Behind`).
        shares: slot -> slot of the program result in whose buffer its value is stored, because the
            result later overwrites the value there.
        arena: bytes of the arena.
        values: number of values in the arena.
        total: bytes of these values if none had the same memory as another.
        results: bytes of the results that do not overwrite a parameter's buffer.
        donations: position of an output -> slot of the parameter whose buffer it overwrites.
    """

    places: tuple[int, ...]
    shares: Mapping[int, int]
    arena: int
    values: int
    total: int
    results: int
    donations: Mapping[int, int]

    def __str__(self) -> str:
        if symbols_in((self.total, self.results)):
            return f"memory: an arena for {self.values} values, planned for all sizes"
        text = (
            f"memory: arena of {_bytes(self.arena)} for {self.values} values of "
            f"{_bytes(self.total)}, "
            f"results {_bytes(self.results)}"
        )
        if self.donations:
            text += f", {len(self.donations)} results in the memory of parameters"
        return f"{text}; peak {_bytes(self.peak)}"

    @property
    def peak(self) -> int:
        """Bytes that one run of the lowered graph allocates if all donated buffers are reused."""
        return self.arena + self.results


def _bytes(n: int) -> str:
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} bytes"


class _Lifetimes:
    """The lifetimes of a program's values: when each slot is first written and last read.

    The time of an instruction is its number in program order, from 1.

    Attributes:
        first, last: for each slot, times of the first write and last use; -1 for unused slots.
        steps: (time, step) of all kernel calls.
        pinned: slots that are written more than once or have an alias; they are never overwritten.
        sources: slot that is an alias -> the slots to whose memory it may refer.
        now: time of the present instruction.
        last_failure: time of the last instruction that may raise an error.
    """

    def __init__(self, n_slots: int) -> None:
        self.first: list[int] = [-1] * n_slots
        self.last: list[int] = [-1] * n_slots
        self.steps: list[tuple[int, Step]] = []
        self.pinned: set[int] = set()
        self.sources: dict[int, list[int]] = {}
        self.now = 0
        self.last_failure = -1

    def read(self, slot: int) -> None:
        if slot >= 0:
            self.last[slot] = max(self.last[slot], self.now)

    def write(self, slot: int) -> None:
        if self.first[slot] < 0:
            self.first[slot] = self.now
        self.last[slot] = max(self.last[slot], self.now)

    def walk(self, instructions: Sequence[Instruction]) -> None:
        for each in instructions:
            self.now += 1
            if isinstance(each, Step):
                self.step(each)
            elif isinstance(each, HostStep):
                self.host(each)
            elif isinstance(each, Copy):
                self.read(each.source)
                self.write(each.target)
            elif isinstance(each, Alias):
                self.read(each.source)
                self.write(each.target)
                self.sources.setdefault(each.target, []).append(each.source)
                self.pinned |= {each.source, each.target}
            elif isinstance(each, Choice):
                self.read(each.index)
                for branch in each.branches:
                    self.walk(branch)
            else:
                self.loop(each)

    def step(self, each: Step) -> None:
        for slot in each.operands:
            self.read(slot)
        for slot in each.results:
            self.write(slot)
        self.steps.append((self.now, each))
        if not each.call.infallible:
            self.last_failure = self.now

    def host(self, each: HostStep) -> None:
        """Record the slots that an instruction on Python values reads and writes.

        Values popped from a stack need no memory of their own, because they stay in the stack's
        memory.
        """
        for slot in each.operands:
            self.read(slot)
        for slot in each.results:
            self.write(slot)
        self.last_failure = self.now
        self.pinned.update((*each.operands, *each.results))
        if each.name == "stack_pop":
            for slot in each.results[2:]:
                self.sources.setdefault(slot, [])

    def loop(self, each: Loop) -> None:
        """Record the slots that a loop and its body read and write.

        A value from outside the loop that an iteration reads is kept until the loop ends.
        """
        begin = self.now
        ring = [slot for carry in each.carries for slot in carry]
        self.pinned.update(ring)
        self.pinned.add(each.predicate)
        self.read(each.predicate)
        for carry, following, spare in each.carries:
            self.sources.setdefault(carry, []).extend((following, spare))
        for slot in ring:
            self.write(slot)
        self.walk(each.body)
        self.now += 1
        self.last_failure = self.now  # a loop may end early, by an interrupt
        for slot in (*ring, each.predicate):
            self.read(slot)
        for slot, last in enumerate(self.last):
            if last > begin and self.first[slot] <= begin:
                self.last[slot] = self.now

    def settle(self) -> None:
        """Extend each value's lifetime to the last read of any of its aliases.

        An alias is a slot that refers to the memory of another slot.
        """
        changed = True
        while changed:
            changed = False
            for target, sources in self.sources.items():
                for source in sources:
                    if self.last[source] < self.last[target]:
                        self.last[source] = self.last[target]
                        changed = True


def plan_memory(
    instructions: Sequence[Instruction],
    given: Sequence[int],
    sizes: Sequence[int],
    outputs: Sequence[int],
    updates: Mapping[int, int] | None = None,
) -> MemoryPlan:
    """Decide where each value of a lowered graph is stored; return the memory plan.

    A result gets a buffer of its own, or that of the parameter whose new value it is. Any other
    computed value gets an offset in the arena, or the buffer of a result that overwrites it.

    Args:
        instructions: the instructions in order.
        given: slots of parameters and constants, which already have memory.
        sizes: bytes of every slot.
        outputs: slots of the results.
        updates: position of an output -> slot of the parameter whose new value it is.
    """
    lives = _Lifetimes(len(sizes))
    known = set(given)
    for slot in known:
        lives.write(slot)
    lives.walk(instructions)
    lives.now += 1
    for slot in outputs:
        lives.read(slot)
    lives.settle()
    results = dict.fromkeys(slot for slot in outputs if slot not in known)
    donations = _donations(lives, sizes, outputs, updates or {}, results)
    taken = {outputs[position] for position in donations}
    home = _shared(lives, sizes, known, results, taken)
    members: dict[int, list[int]] = {}
    for slot, owner in enumerate(home):
        if lives.first[slot] >= 0 and slot not in known and slot not in lives.sources:
            members.setdefault(owner, []).append(slot)
    places: list[Any] = [-1] * len(sizes)
    spans = []
    total = values = 0
    shares: dict[int, int] = {}
    for owner, slots in members.items():
        ends = [slot for slot in slots if slot in results]
        if ends:
            shares.update((slot, ends[0]) for slot in slots if slot not in results)
            continue
        spans.append((lives.first[owner], max(lives.last[s] for s in slots), sizes[owner], owner))
        values += len(slots)
        total += sum(sizes[slot] for slot in slots)
    find: Callable[..., tuple[dict[int, Any], Any]] = _offsets
    if symbols_in(size for _, _, size, _ in spans):
        find = _offsets_for_sizes
    offsets, arena = find(spans)
    for owner, offset in offsets.items():
        for slot in members[owner]:
            places[slot] = offset
    fresh: Any = sum(sizes[slot] for slot in results if slot not in taken)
    report_plan(
        InspectedPlan(
            instructions, lives.first, lives.last, sizes, places, shares, arena, total, fresh,
            donations, outputs,
        )
    )  # fmt: skip
    return MemoryPlan(tuple(places), shares, arena, values, total, fresh, donations)


def _donations(
    lives: _Lifetimes,
    sizes: Sequence[int],
    outputs: Sequence[int],
    updates: Mapping[int, int],
    results: Mapping[int, None],
) -> dict[int, int]:
    """Return the parameters' buffers that outputs can overwrite.

    The result maps the position of an output to the slot of the parameter. `updates` says of which
    parameter an output is the new value; `results` are the output slots that an instruction writes.
    """
    writers = {slot: (now, step) for now, step in lives.steps for slot in step.results}
    found = {}
    for position, parameter in updates.items():
        slot = outputs[position]
        if slot not in results or slot not in writers or slot in lives.pinned:
            continue
        now, step = writers[slot]
        if (
            sizes[slot] != sizes[parameter]
            or lives.last[parameter] > now
            or parameter in lives.pinned
        ):
            continue
        if lives.last[parameter] == now and not _over(step, parameter, slot):
            continue
        if lives.last_failure >= now:
            continue
        found[position] = parameter
    return found


def _over(step: Step, operand: int, result: int) -> bool:
    """Return whether a kernel can write result slot `result` over operand slot `operand`."""
    if step.operands.count(operand) != 1:
        return False
    pair = step.operands.index(operand), step.results.index(result)
    return pair in step.call.overwrites


def _shared(
    lives: _Lifetimes,
    sizes: Sequence[int],
    given: set[int],
    results: Mapping[int, None],
    taken: set[int],
) -> list[int]:
    """Return, for each slot, the slot whose memory it uses, which may be the slot itself.

    If a kernel may overwrite its operand a with its result b, b uses the memory of a; if another
    kernel then overwrites b with c, c uses the memory of a as well. Slots in `given` (parameters
    and constants) are never overwritten; results in `taken` overwrite a parameter's buffer instead.
    """
    home = list(range(len(sizes)))
    kept: set[int] = set()  # chains that end in a result
    for now, step in lives.steps:
        over = step.call.overwrites
        used: set[int] = set()
        for k, r in over:
            slot, result = step.operands[k], step.results[r]
            if result in taken or result in lives.pinned or home[result] != result or slot in used:
                continue
            if slot < 0 or slot in given or slot in lives.pinned or step.operands.count(slot) != 1:
                continue
            if lives.last[slot] != now or sizes[slot] != sizes[result] or slot in results:
                continue
            if home[slot] in kept:
                continue
            home[result] = home[slot]
            used.add(slot)
            if result in results:
                kept.add(home[slot])
    return home


def _offsets(spans: Sequence[tuple[int, int, int, int]]) -> tuple[dict[int, int], int]:
    """Assign arena offsets to values by best fit, in order of time.

    Args:
        spans: (time of first use, time of last use, bytes, slot) of every value.

    Returns:
        slot -> offset in bytes, and the size of the arena in bytes.
    """
    offsets: dict[int, int] = {}
    free: list[tuple[int, int]] = []  # (offset, bytes), by offset
    dying: list[tuple[int, int, int]] = []  # (last, offset, bytes), by time
    top = 0
    for first, last, nbytes, name in sorted(spans):
        while dying and dying[0][0] < first:
            _, offset, size = dying.pop(0)
            _release(free, offset, size)
        size = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        best = min(
            (k for k in range(len(free)) if free[k][1] >= size),
            key=lambda k: free[k][1],
            default=-1,
        )
        if best >= 0:
            offset, room = free.pop(best)
            if room > size:
                free.insert(best, (offset + size, room - size))
        elif free and sum(free[-1]) == top:  # extend the gap at the end of the arena
            offset, _ = free.pop()
            top = offset + size
        else:
            offset, top = top, top + size
        offsets[name] = offset
        bisect.insort(dying, (last, offset, size))
    return offsets, top


def _offsets_for_sizes(
    spans: Sequence[tuple[int, int, Size, int]],
) -> tuple[dict[int, Behind | int], Behind | int]:
    """Assign arena offsets to values whose sizes are symbolic, as expressions for all sizes.

    The offsets for the example sizes of the symbols decide which of two values that live at the
    same time lies below the other. Each offset is then the end of the values that lie directly
    below. For the example sizes, the arena is not larger than that of `_offsets`.

    Arguments and result are those of `_offsets`.
    """
    example, _ = _offsets([(a, b, hint_of(size), name) for a, b, size, name in spans])
    placed: list[tuple[int, int, Size, int]] = []
    found: dict[int, Behind | None] = {}  # None is the offset 0
    beneath: dict[int, set[int]] = {}  # all values below one, also indirectly
    for span in sorted(spans, key=lambda span: (example[span[3]], span[0])):
        first, last, _, name = span
        below: set[int] = set()
        direct = []
        for other in reversed(placed):
            if other[0] <= last and first <= other[1] and other[3] not in below:
                direct.append((found[other[3]], max(other[2], 1)))
                below |= {other[3]} | beneath[other[3]]
        beneath[name] = below
        found[name] = Behind(tuple(direct), ALIGNMENT) if direct else None
        placed.append(span)
    offsets = {name: offset or 0 for name, offset in found.items()}
    if not spans:
        return offsets, 0
    ends = tuple([(found[name], max(size, 1)) for _, _, size, name in spans])
    return offsets, Behind(ends, ALIGNMENT)


def _release(free: list[tuple[int, int]], offset: int, size: int) -> None:
    """Add a byte range to the arena's sorted free list, merged with adjacent free ranges."""
    k = bisect.bisect(free, (offset, 0))
    if k < len(free) and offset + size == free[k][0]:
        size += free.pop(k)[1]
    if k and sum(free[k - 1]) == offset:
        k -= 1
        offset, before = free.pop(k)
        size += before
    free.insert(k, (offset, size))
