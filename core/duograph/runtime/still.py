"""What a compiled function computes once: values that follow from state alone, and operands packed
for their kernels.

State that the function does not write (Parameters, captured tensors) is mostly the same from one
call to the next. A step that reads nothing else, and nothing that was computed from anything else,
gives the same value each time. `divide` finds these steps in a lowered graph, and the products that
would pack such an operand at every call; `Still` runs them once and keeps what they give for as
long as that is right.

When that is. Handles are immutable but for two ways: a compiled update may write the new value over
the old one, in the very same handle, and an array that shares the memory (`asnumpy`, DLPack,
`from_numpy`) can be written. So:

- Before anything is read, each handle is *watched* (`tensor.watched`). A tensor that gets another
  buffer, or the same one with a new value, says so, and so does a tensor whose memory is given out
  as an array. Either ends what was computed from the handle, at once, and frees it.
- A handle is taken only if nothing but its tensor holds it, and nothing else the host memory under
  it (`Backend.exclusive`): an array made earlier and still alive is such a holder.
- At a call, each tensor must have the very handle that was watched.

Nothing here holds a handle of the state, or a compiled update could no longer write over it. Values
are computed at the second call in a row that finds the same handles, so that training and
evaluating in turns does not pay for it.
"""

from __future__ import annotations

import collections
import dataclasses
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from sys import getrefcount
from typing import Any

from .._locks import new_lock
from ..backend import registry
from ..backend.program import Choice, Instruction, Loop, Packing, Step
from ..errors import DuographError
from ..runtime_state import runtime_state
from ..tensor import Tensor, watched
from ..types import Device

__all__ = ["Division", "Still", "divide", "read_by", "share_packed"]

# A value is kept if it is no larger than what it is made of, or than this.
SMALL = 1 << 16
# What makes it worth while: this share of the steps, or operands of so many bytes.
SHARE = 1 / 16
WORTH = 1 << 20
# So many products of one call share what is packed for them.
FEWEST = 3
# Calls until it is tried again where somebody holds a handle, at most.
PATIENCE = 1024

_lock = new_lock()  # of `watched`


@dataclasses.dataclass(frozen=True)
class Division:
    """The instructions of a graph in two parts.

    Attributes:
        reads: slots of state that `once` reads.
        once: steps that need only state.
        rest: what each call runs.
        kept: slots that `once` writes and `rest` reads.
        kernels: how many steps of `once` are steps of the graph; the others pack operands.
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
        return " and ".join(parts) + ", while Parameters stay"


def divide(
    instructions: Sequence[Instruction],
    state: Collection[int],
    constants: Collection[int],
    sizes: list[int],
    outputs: Collection[int],
) -> Division | None:
    """The division of a lowered graph, or None when it is not worth while.

    Args:
        instructions: in order.
        state: slots of parameters that hold state which the graph does not write.
        constants: slots of constants.
        sizes: bytes of every slot; slots of packed operands are added.
        outputs: slots of results, which are made anew by each call.
    """
    still = {*state, *constants}
    once: list[Step] = []
    rest: list[Instruction] = []
    moved = 0
    for each in instructions:
        if isinstance(each, Step) and each.pure:
            given = [s for s in each.operands if s != -1]
            read, made = sum(sizes[s] for s in given), sum(sizes[s] for s in each.results)
            if (
                still.issuperset(given)
                and made <= max(read, SMALL)
                and not set(each.results) & set(outputs)
            ):
                still.update(each.results)
                once.append(each)
                moved += read + made
                continue
        rest.append(each)
    kernels = len(once)
    packs = _Packs(still - set(constants), sizes)
    rest = packs.block(rest)
    moved += sum(sizes[s] for step in packs.steps for s in step.operands)
    once += packs.steps
    written = {s for step in once for s in step.results}
    kept = [s for s in dict.fromkeys(read_by(rest)) if s in written]
    reads = sorted({s for step in once for s in step.operands} & set(state))
    if not kept or not reads or (len(once) < SHARE * len(instructions) and moved < WORTH):
        return None
    return Division(tuple(reads), tuple(once), tuple(rest), tuple(kept), kernels)


class _Packs:
    """Replaces steps that can take an operand packed; what packs it is in `steps`."""

    def __init__(self, still: Collection[int], sizes: list[int]) -> None:
        self.still = still
        self.sizes = sizes
        self.steps: list[Step] = []
        self.made: dict[Any, int] = {}

    def block(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        return [self.instruction(each) for each in instructions]

    def instruction(self, each: Instruction) -> Instruction:
        if isinstance(each, Step):
            return self.step(each)
        if isinstance(each, Loop):
            return dataclasses.replace(each, body=tuple(self.block(each.body)))
        if isinstance(each, Choice):
            return dataclasses.replace(
                each, branches=tuple(tuple(self.block(b)) for b in each.branches)
            )
        return each

    def step(self, each: Step) -> Step:
        packs: Mapping[int, Callable[[], Packing | None]] = getattr(each.call, "packs", {})
        for k, offer in packs.items():
            slot = each.operands[k]
            packing = offer() if slot in self.still else None
            if packing is None:
                continue
            key = slot, packing.layout  # steps that share an operand share what is packed
            packed = self.made.get(key)
            if packed is None:
                packed = self.made[key] = len(self.sizes)
                self.sizes.append(packing.nbytes)
                self.steps.append(Step(packing.pack, (slot,), (packed,), True, "pack", pure=True))
            operands = (*each.operands[:k], packed, *each.operands[k + 1 :])
            return dataclasses.replace(each, call=packing.call, operands=operands)
        return each


def share_packed(instructions: Sequence[Instruction], sizes: list[int]) -> list[Instruction]:
    """Instructions in which what several products of a call would each pack is packed once, before
    the first.

    Such as the weights that a recurrent layer multiplies with at every step of time.

    Args:
        instructions: in order; slots that steps read are written once, before.
        sizes: bytes of every slot; slots of packed operands are added.
    """
    steps = {
        at: s
        for at, s in enumerate(instructions)
        if isinstance(s, Step) and getattr(s.call, "packs", None)
    }
    often = collections.Counter(s.operands[k] for s in steps.values() for k in s.call.packs)  # type: ignore[attr-defined]
    found: dict[tuple[int, Any], list[tuple[int, int, Packing]]] = {}
    for at, step in steps.items():
        for k, offer in step.call.packs.items():  # type: ignore[attr-defined]
            slot = step.operands[k]
            packing = offer() if often[slot] >= FEWEST else None
            if packing is not None:
                found.setdefault((slot, packing.layout), []).append((at, k, packing))
    made: dict[int, Step] = {}
    before: dict[int, list[Step]] = collections.defaultdict(list)
    for (slot, _), all_users in found.items():
        users = [
            user for user in all_users if user[0] not in made
        ]  # of two operands, one is packed
        if len(users) < FEWEST:
            continue
        packed = len(sizes)
        first, _, packing = users[0]
        sizes.append(packing.nbytes)
        before[first].append(Step(packing.pack, (slot,), (packed,), True, "pack", True))
        for at, k, packing in users:
            operands = steps[at].operands
            operands = (*operands[:k], packed, *operands[k + 1 :])
            made[at] = dataclasses.replace(steps[at], call=packing.call, operands=operands)
    return [
        new
        for at, each in enumerate(instructions)
        for new in (*before.get(at, ()), made.get(at, each))
    ]


def read_by(instructions: Sequence[Instruction]) -> list[int]:
    """Slots that instructions read, and some that they write."""
    found: list[int] = []
    for each in instructions:
        if isinstance(each, Loop):
            found += [
                each.predicate,
                *(s for carry in each.carries for s in carry),
                *read_by(each.body),
            ]
        elif isinstance(each, Choice):
            found += [each.index, *(s for branch in each.branches for s in read_by(branch))]
        elif hasattr(each, "source"):
            found.append(each.source)
        else:
            found += each.operands
    return found


def _holders(t: Any) -> int:
    """What `getrefcount` says of the handle of a tensor, with what holds it while it is asked for."""
    return getrefcount(t._buf)


_ALONE = _holders(Tensor._make(None, object()))  # type: ignore[arg-type]


def _reference(handle: Any) -> Callable[[], Any]:
    """A weak reference; to what has none, one that finds nothing: then nothing is ever kept."""
    try:
        return weakref.ref(handle)
    except TypeError:
        return lambda: None


class _Watch:
    """The handles that a `Still` watches, and what was computed from them."""

    __slots__ = ("refs", "ids", "values", "token", "wait", "patience")

    def __init__(self, handles: Sequence[Any]) -> None:
        self.refs = [_reference(h) for h in handles]
        self.ids = [id(h) for h in handles]
        self.values: tuple[Any, ...] | None = None
        self.token: Any = None  # `rebound` when the handles were compared
        self.wait = self.patience = 0  # calls until it is tried again


class Still:
    """What one program computes once; see the top of this module for when it is right.

    Args:
        tensors: the state that it is computed from.
        device: where they are.
        compute: from their handles to the values.
        held: gives lists of handles whose holders only read them.
        notes: gets a line where that fails.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        device: Device,
        compute: Callable[..., tuple[Any, ...]],
        held: Callable[[], list[list[Any]]],
        notes: list[str],
    ) -> None:
        self._tensors = tensors
        self._device = device
        self._compute = compute
        self._held = held
        self._notes = notes
        self._computing = new_lock()
        self._own = weakref.ref(self)
        # one object, so that what a thread computes goes nowhere when another one has dropped it
        self._watch: _Watch | None = None

    def values(self) -> tuple[Any, ...] | None:
        """What was computed, if it is right for the state as it is; None where a call is to compute
        everything.

        The caller may not hold handles of the state meanwhile.
        """
        now, watch = runtime_state.bindings_version, self._watch
        if watch is None:
            self._begin()
            return None
        if watch.token is not now:
            for ref, t in zip(watch.refs, self._tensors, strict=True):
                if ref() is not t._buf:
                    self._begin()
                    return None
            watch.token = now
        if watch.values is not None:
            return watch.values
        if watch.wait:
            watch.wait -= 1
            return None
        if not self._computing.acquire(blocking=False):
            return None  # another thread is at it
        try:
            return self._prepare(watch)
        finally:
            self._computing.release()

    def settled(self) -> bool:
        """Whether the next call will find what the last one did, if the state is the same."""
        watch = self._watch
        return watch is not None and (watch.values is not None or watch.patience >= PATIENCE)

    def drop(self) -> None:
        """Forget and free everything, at once."""
        watch, self._watch = self._watch, None
        if watch is None:
            return
        with _lock:
            for i in watch.ids:
                left = tuple([ref for ref in watched.get(i, ()) if ref is not self._own])
                if left:
                    watched[i] = left
                else:
                    watched.pop(i, None)
        runtime_state.bindings_version = object()  # who looked at the state looks again

    def __del__(self) -> None:
        self.drop()

    def _begin(self) -> None:
        """Watch the handles that the state has now."""
        self.drop()
        watch = _Watch([t._buf for t in self._tensors])
        with _lock:
            for i in watch.ids:
                watched[i] = (*watched.get(i, ()), self._own)
        self._watch = watch

    def _prepare(self, watch: _Watch) -> tuple[Any, ...] | None:
        if not self._alone():
            watch.wait = watch.patience = min(2 * watch.patience + 1, PATIENCE)
            return None
        handles = [t._buf for t in self._tensors]
        if any(ref() is not h for ref, h in zip(watch.refs, handles, strict=True)):
            return None
        try:
            watch.values = self._compute(*handles)
        except (
            DuographError
        ) as error:  # the program that computes everything says what is wrong, if anything is
            self._notes.append(f"nothing is computed once: {error}")
            watch.wait = watch.patience = PATIENCE
        return watch.values

    def _alone(self) -> bool:
        """Whether nobody who could write holds the handles of the tensors, or the memory under
        them.
        """
        exclusive, index = registry.backend(self._device.name).exclusive, self._device.index
        lists = self._held()  # kept here, so that what is counted stays held
        known = collections.Counter([id(h) for handles in lists for h in handles])
        return all(
            _holders(t) == _ALONE + known[id(t._buf)] and exclusive(t._buf, index)
            for t in self._tensors
        )
