"""Splits a program into steps computed once for many calls and steps of every call.

The module also packs operands that several kernels read, which means copying them to a layout that
the kernels read faster. Above level O0, `execution.lower` calls `partition` and
`share_packed_operands` for each graph. The values of Parameters and captured tensors that a
compiled function does not write rarely change between calls; steps that depend only on them
therefore run once (`execution.cached_values`). Nothing here runs a step or reads a value.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

from ..backend.plugin_checks import as_packing
from ..backend.prepared import Packing
from ..backend.program import Choice, Instruction, Loop, Step, slots_read

__all__ = ["Partition", "partition", "share_packed_operands"]

# A result is cached if it is not larger than its operands together, or not larger than this.
SMALL_BYTES = 1 << 16
# The least share of all instructions, or bytes that they move, from which a partition pays off.
MIN_SHARE = 1 / 16
MIN_BYTES_MOVED = 1 << 20
# The least number of steps reading an operand for which a call packs it once for all of them.
MIN_SHARED_READERS = 3


class Partition(NamedTuple):
    """A program's instructions split into those computed once and those of every call.

    Attributes:
        reads: slots of the unwritten state that `once` reads.
        once: steps that depend only on unwritten state and constants.
        rest: the instructions of each call.
        kept: slots that `once` writes and `rest` reads.
        kernels: how many steps of `once` compute graph nodes; the others pack operands (copy them
            to a layout that kernels read faster).
    """

    reads: tuple[int, ...]
    once: tuple[Step, ...]
    rest: tuple[Instruction, ...]
    kept: tuple[int, ...]
    kernels: int

    def __str__(self) -> str:
        packed = len(self.once) - self.kernels
        parts = []
        if self.kernels:
            parts.append(f"{self.kernels} kernel{'s' * (self.kernels > 1)} run once")
        if packed:
            parts.append(f"{packed} operand{'s' * (packed > 1)} packed once")
        return " and ".join(parts) + " while Parameters are unchanged"


def partition(
    instructions: Sequence[Instruction],
    state: Collection[int],
    constants: Collection[int],
    sizes: list[int],
    outputs: Collection[int],
) -> Partition | None:
    """Split off the steps of a program that depend only on unwritten state, or return None.

    The result is None if too little is gained.

    Args:
        instructions: the instructions in order.
        state: slots of parameters that the graph does not write and whose values rarely change.
        constants: slots of constants.
        sizes: bytes of every slot; slots of packed operands are appended.
        outputs: slots of results, which every call must compute again.
    """
    invariant = {*state, *constants}
    once: list[Step] = []
    rest: list[Instruction] = []
    moved = 0
    for each in instructions:
        if isinstance(each, Step) and each.pure and not each.call.sized:
            operands = [s for s in each.operands if s != -1]
            read, made = sum(sizes[s] for s in operands), sum(sizes[s] for s in each.results)
            if (
                invariant.issuperset(operands)
                and made <= max(read, SMALL_BYTES)
                and not set(each.results) & set(outputs)
            ):
                invariant.update(each.results)
                once.append(each)
                moved += read + made
                continue
        rest.append(each)
    kernels = len(once)
    packer = _OperandPacker(invariant - set(constants), sizes)
    rest = packer.block(rest)
    moved += sum(sizes[s] for step in packer.steps for s in step.operands)
    once += packer.steps
    written = {s for step in once for s in step.results}
    kept = [s for s in dict.fromkeys(slots_read(rest)) if s in written]
    reads = sorted({s for step in once for s in step.operands} & set(state))
    pays = len(once) >= MIN_SHARE * len(instructions) or moved >= MIN_BYTES_MOVED
    if not kept or not reads or not pays:
        return None
    return Partition(tuple(reads), tuple(once), tuple(rest), tuple(kept), kernels)


class _OperandPacker:
    """Replaces kernel calls by variants that read an operand packed in advance.

    To pack an operand is to copy it to a layout that the kernel reads faster.

    Attributes:
        invariant: slots that have the same value in many calls.
        sizes: bytes of every slot; slots of packed operands are appended.
        steps: the steps that pack operands, which run once.
        packed: (slot, layout) -> slot of the packed operand.
    """

    def __init__(self, invariant: Collection[int], sizes: list[int]) -> None:
        self.invariant = invariant
        self.sizes = sizes
        self.steps: list[Step] = []
        self.packed: dict[tuple[int, Hashable], int] = {}  # (slot, layout) -> slot of the packed

    def block(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        return [self.instruction(each) for each in instructions]

    def instruction(self, each: Instruction) -> Instruction:
        """Return an instruction whose steps, in loops and choices too, read packed operands."""
        if isinstance(each, Step):
            return self.step(each)
        if isinstance(each, Loop):
            return dataclasses.replace(each, body=tuple(self.block(each.body)))
        if isinstance(each, Choice):
            branches = tuple(tuple(self.block(b)) for b in each.branches)
            return dataclasses.replace(each, branches=branches)
        return each

    def step(self, each: Step) -> Step:
        """Return a variant of a kernel call that reads one of its operands packed in advance.

        Packed means copied to a layout that the kernel reads faster. The operand is the first one
        that is the same in many calls and that the kernel can read packed. If there is none, the
        call itself is returned.
        """
        for k, offer in each.call.packings.items():
            slot = each.operands[k]
            packing = as_packing(offer()) if slot in self.invariant else None
            if packing is None:
                continue
            key = slot, packing.layout
            packed = self.packed.get(key)
            if packed is None:
                packed = self.packed[key] = len(self.sizes)
                self.sizes.append(packing.nbytes)
                self.steps.append(_pack_step(packing, slot, packed))
            return _with_packed(each, packing, k, packed)
        return each


def _pack_step(packing: Packing, slot: int, packed: int) -> Step:
    return Step(packing.pack, (slot,), (packed,), True, "pack", pure=True)


def _with_packed(step: Step, packing: Packing, k: int, packed: int) -> Step:
    """Return a kernel call changed to read operand `k` from slot `packed`.

    The slot holds the operand copied to the layout `packing`, which the kernel reads faster.
    """
    operands = (*step.operands[:k], packed, *step.operands[k + 1 :])
    return dataclasses.replace(step, call=packing.call, operands=operands)


def share_packed_operands(
    instructions: Sequence[Instruction], sizes: list[int]
) -> list[Instruction]:
    """Return instructions in which kernel calls that read the same operand read one packed copy.

    Otherwise each of the calls would pack the operand, that is, copy it to a layout that the kernel
    reads faster. An example is the weight by which a recurrent layer multiplies at every time step.

    Args:
        instructions: the instructions in order; each slot that a kernel call reads is written once,
            before.
        sizes: bytes of every slot; slots of packed operands are appended.
    """
    steps = {
        at: each
        for at, each in enumerate(instructions)
        if isinstance(each, Step) and each.call.packings
    }
    readers = collections.Counter(s.operands[k] for s in steps.values() for k in s.call.packings)
    found: dict[tuple[int, Hashable], list[tuple[int, int, Packing]]] = {}
    for at, step in steps.items():
        for k, offer in step.call.packings.items():
            slot = step.operands[k]
            packing = as_packing(offer()) if readers[slot] >= MIN_SHARED_READERS else None
            if packing is not None:
                found.setdefault((slot, packing.layout), []).append((at, k, packing))
    replaced: dict[int, Step] = {}
    before: dict[int, list[Step]] = collections.defaultdict(list)
    for (slot, _), all_users in found.items():
        # a step that could take two operands packed takes one
        users = [user for user in all_users if user[0] not in replaced]
        if len(users) < MIN_SHARED_READERS:
            continue
        packed = len(sizes)
        first, _, packing = users[0]
        sizes.append(packing.nbytes)
        before[first].append(_pack_step(packing, slot, packed))
        for at, k, packing in users:
            replaced[at] = _with_packed(steps[at], packing, k, packed)
    return [
        new
        for at, each in enumerate(instructions)
        for new in (*before.get(at, ()), replaced.get(at, each))
    ]
