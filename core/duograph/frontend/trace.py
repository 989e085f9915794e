"""One evaluation of a function's source: what it reads from outside, what it writes, and how a
branch is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..ir.builder import GraphTensor
from ..ir.values import NeedsValue
from ..parameter import Parameter
from ..runtime_state import thread_state
from ..tensor import Tensor
from ..types import OBJECT
from .aliases import check_alone
from .builder import StagedBuilder
from .captures import Captures
from .values import Flow

__all__ = ["Trace", "Slot", "Local", "MISSING", "Restart"]


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()  # no such item
# Arrays of at most this many bytes are captured by value; the contents of larger ones are read at
# every call.
ARRAY_LIMIT = 4096


class Local(dict[str, Any]):
    """Names of a call or a loop, and how many branches were open when it began."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth


class Restart(Exception):
    """The evaluation starts over: something that was read as a constant turned out to be written."""


class Slot:
    """The value of an eager tensor in the function: as it came in, and as it is now."""

    def __init__(self, tensor: Tensor, incoming: Any, current: Any, fresh: bool) -> None:
        self.tensor = tensor
        self.incoming = incoming
        self.current = current
        self.fresh = fresh


class Trace:
    """State of one evaluation.

    Attributes:
        root: builder of the function's own graph.
        strict: whether what only Python can run is refused.
        inputs: what the parameters of the root graph are read from, in order: (kind, object).
        captures: what was read from outside and taken as constant.
        journals: per open branch, the locations written in it and what they held before.
    """

    def __init__(self, strict: bool, written: set[Any]) -> None:
        self.strict = strict
        self.inputs: list[tuple[str, Any]] = []
        self.slots: dict[int, Slot] = {}
        self.fresh: dict[int, Tensor] = {}
        self.live_arrays: dict[int, np.ndarray[Any, Any]] = {}
        self.captures = Captures()
        self.journals: list[dict[Any, tuple[Any, Any]]] = [{}]
        self.root = StagedBuilder(self, None)
        # locations outside that the function writes, found by an earlier evaluation: (id of owner,
        # name)
        self.written = written
        self.read: dict[Any, Any] = {}
        self.overlay: dict[Any, Any] = {}  # what was written to them so far
        self.scalars: dict[Any, Any] = {}  # numbers among them, as inputs
        self.born: dict[int, int] = {}  # of those: how many branches were open
        self.own: dict[int, Any] = {}  # objects made while compiling, which nobody else has seen
        self.shadows: dict[
            int, tuple[Any, Any]
        ] = {}  # containers from outside, and their copies here
        self.shadow_of: dict[int, Any] = {}
        self.unseen: dict[
            int, str
        ] = {}  # copies whose items nobody has looked at, with their names
        self.exact_owners: dict[int, Any] = {}  # containers from outside that the function changes
        self.frames: list[Any] = []  # of the user's functions that are being evaluated
        self.calls: dict[Any, list[Any]] = {}  # per function: its calls that are being evaluated
        self.tries: list[
            int
        ] = []  # open `try` blocks with handlers: how many branches were open there
        # lists and dicts of which a tensor picks one: a change would have to reach all their names
        self.frozen: dict[int, Any] = {}
        self.keep: list[Any] = []  # objects whose id is a key somewhere
        # tensors that a condition or a loop chose, with those of which they may be one (see
        # aliases)
        self.one_of: dict[int, tuple[Any, list[Any]]] = {}
        # what a tensor that a branch wrote in place became, and that tensor
        self.origins: dict[int, tuple[Any, Any]] = {}
        # per tensor that a place outside was given: it, and the object that stands for it when the
        # graph runs
        self.objects: dict[int, tuple[Any, Any]] = {}
        # tensors read at each call from a place that the function writes, by that place and the
        # other way round
        self.held: dict[Any, Any] = {}
        self.place_of: dict[int, tuple[Any, Any]] = {}
        # tensors among the arguments: (graph tensor, its first id, where it stands among them)
        self.arguments: list[tuple[Any, int, int]] = []
        self.host_writes = False
        self.notes: list[str] = []
        self.conditions = 0  # open branches and loops on values of the graph

    @property
    def builder(self) -> StagedBuilder:
        found: Any = thread_state.builder
        return found

    def record(self, *args: Any) -> Any:
        """See `gradients.record`."""
        from .gradients import record

        return record(self, *args)

    def compute_later(
        self,
        function: Callable[..., Any],
        values: tuple[Any, ...],
        types: tuple[Any, ...],
        name: str,
    ) -> Any:
        """Tensors that code of ours makes on the host when the graph runs."""
        from .host import run_on_host

        return run_on_host(self, function, values, {}, name, types)

    def check_later(self, check: Callable[..., None], values: tuple[Any, ...], name: str) -> None:
        """A check of values, in code of ours, that may raise when the graph runs."""
        from .host import note_effect

        note_effect(self, check, values, name, commit=True)

    def print_later(self, values: tuple[Any, ...]) -> None:
        """`ops.print_` in code of ours that runs while compiling."""
        from .host import note_effect
        from .printing import print_values

        note_effect(self, print_values, values, "print")

    def call_cell(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A Cell that code of ours calls while compiling."""
        from .calls import call_cell

        return call_cell(self, cell, args, kwargs)

    def has_effects(self) -> bool:
        """Whether anything happens when the graph runs besides computing its results."""
        return (
            self.host_writes
            or any(n.effects for n in self.root.nodes)
            or any(s.current is not s.incoming for s in self.slots.values())
        )

    # ---- locations ----------------------------------------------------------------------------

    def note_own(self, value: Any, sources: Iterable[Any] = ()) -> Any:
        """An object was made while compiling: nobody outside has it, or it is a view of one of
        `sources`.
        """
        depth = self.builder.depth
        if isinstance(value, np.ndarray):
            base = _base(value)
            if id(base) in self.own:
                depth = self.born[id(base)]
            elif any(_base(x) is base for x in sources):
                return value
            self.own[id(base)] = base
            self.born[id(base)] = depth
        self.own[id(value)] = value
        self.born[id(value)] = depth
        return value

    def inside(self, location: Any, before: Any, depth: int) -> bool:
        """Whether a location was made in the graph of this depth, or in one inside it."""
        kind, owner, _ = location
        if isinstance(owner, Local):
            return owner.depth >= depth
        if kind == "tensor":
            return bool(before._builder.depth >= depth)
        return self.born.get(id(owner), 0) >= depth

    def touch(self, kind: str, owner: Any, name: Any = None) -> None:
        """A location is about to be written: remember what it holds, once per open branch."""
        journal = self.journals[-1]
        key = (kind, id(owner), name)
        if key not in journal:
            journal[key] = ((kind, owner, name), read_location(kind, owner, name))

    def put(self, location: Any, value: Any) -> None:
        """Write a location, remembering what it held."""
        kind, owner, name = location
        self.touch(kind, owner, name)
        write_location(location, value)

    def set_item(self, owner: dict[Any, Any], name: Any, value: Any) -> None:
        """Bind a name."""
        self.touch("item", owner, name)
        owner[name] = value

    def apart(
        self, run: Callable[[], Any]
    ) -> tuple[StagedBuilder, Any, dict[Any, tuple[Any, Any]]]:
        """Run a branch in a graph of its own, then take back what it wrote.

        Returns:
            its builder, its result, and per location that it wrote (location, value at the end).
        """
        child = StagedBuilder(self, self.builder)
        self.conditions += 1
        try:
            result, changes = self.undone(child, run)
        finally:
            self.conditions -= 1
        return child, result, changes

    def undone(
        self, child: StagedBuilder, run: Callable[[], Any]
    ) -> tuple[Any, dict[Any, tuple[Any, Any]]]:
        """Run with `child` as the builder, then take back what was written to what was there
        before.

        Returns:
            the result, and per location (location, value at the end).
        """
        self.journals.append({})
        result: Any = None
        changes: dict[Any, tuple[Any, Any]] = {}
        try:
            with child.current():
                result = run()
                for key, (location, before) in self.journals[-1].items():
                    if not self.inside(location, before, child.depth):
                        changes[key] = (location, read_location(*location))
                result = self.settled(changes, result, child.depth)
                for key, (location, value) in changes.items():
                    changes[key] = (location, self._left(changes, location, value, child.depth))
        finally:
            for location, before in reversed(list(self.journals.pop().values())):
                if not self.inside(location, before, child.depth):
                    write_location(location, before)
        return result, changes

    def settled(
        self, changes: dict[Any, tuple[Any, Any]], value: Any, depth: int, deep: bool = False
    ) -> Any:
        """What a value is where a branch with these changes ends: a tensor that it wrote in place
        is what it became.

        Lists and dicts that were there before stay themselves, unless `deep`: what they hold is a
        change of its own.
        """
        if isinstance(value, GraphTensor):
            found = changes.get(("tensor", id(value), None))
            return value if found is None else self._became(found[1], value)
        if isinstance(value, Tensor):
            slot = self.slots.get(id(value))
            if slot is None:
                return value
            found = changes.get(("slot", id(slot), None))
            if found is None and slot.fresh and slot.current is not slot.incoming:
                return self.builder.bring(slot.current)  # made and written in the branch
            return value if found is None else self._became(found[1], value)
        if isinstance(value, Flow):
            settled = self.settled(changes, value.value, depth, deep)
            return Flow(value.ret, value.brk, value.cont, settled, value.dead)
        kind = type(value)
        if kind in (list, dict):
            if not deep and self.born.get(id(value), 0) < depth:
                return value
            found = changes.get((kind.__name__, id(value), None))
            held = value if found is None else found[1]
            return self._items(changes, held, value, depth, deep)
        if kind is tuple or hasattr(value, "_fields"):
            return self._items(changes, value, value, depth, deep)
        return value

    def _became(self, now: Any, tensor: Any) -> Any:
        """What a tensor from before a branch became in it."""
        self.origins[id(now)] = (now, tensor)
        return now

    def _items(self, changes: Any, held: Any, value: Any, depth: int, deep: bool) -> Any:
        """A container with its items settled; `value` itself when they are what it holds."""
        if isinstance(held, dict):
            made = {k: self.settled(changes, v, depth, deep) for k, v in held.items()}
            alike = list(made) == list(value) and all(made[k] is value[k] for k in made)
            return value if alike else self.note_own(made)
        items = [self.settled(changes, v, depth, deep) for v in held]
        if len(items) == len(value) and all(a is b for a, b in zip(items, value)):
            return value
        if isinstance(value, list):
            return self.note_own(items)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)

    def _left(self, changes: Any, location: Any, value: Any, depth: int) -> Any:
        """What a location holds at the end of a branch."""
        if location[0] in ("list", "dict"):
            return self._items(changes, value, value, depth, False)
        return self.settled(changes, value, depth)

    # ---- tensors from outside -----------------------------------------------------------------

    def slot(self, tensor: Tensor) -> Slot:
        found = self.slots.get(id(tensor))
        if found is None:
            fresh = id(tensor) in self.fresh
            if fresh:
                with self.root.current():
                    incoming = self.root.constant(tensor)
            else:
                incoming = self.root.parameter(tensor._type.plain)
                self.inputs.append(("state", tensor))
            incoming = self.root.tensor(incoming._id)
            found = self.slots[id(tensor)] = Slot(tensor, incoming, incoming, fresh)
            self.born[id(found)] = self.born.get(id(tensor), 0) if fresh else 0
        return found

    def state_value(self, tensor: Tensor) -> Any:
        """The present value of an eager tensor."""
        return self.slot(tensor).current

    def write_slot(self, tensor: Tensor, value: Any) -> None:
        check_alone(self, tensor)
        slot = self.slot(tensor)
        self.touch("slot", slot)
        slot.current = value._builder.tensor(value._id)
        if id(tensor) in self.objects:
            from .host import written

            written(self, tensor)

    def array_value(self, array: np.ndarray[Any, Any]) -> Any:
        """A large array from outside, as an input."""
        key = ("array", id(array))
        found = self.scalars.get(key)
        if found is None:
            from ..dtype import as_dtype
            from ..types import TensorType

            found = self.root.parameter(TensorType.of(array.shape, as_dtype(array.dtype)))
            self.inputs.append(("array", array))
            self.scalars[key] = found
        return self.root.tensor(found._id)

    def look_at(self, tensor: Tensor) -> None:
        """The data of an eager tensor is wanted while compiling.

        Raises:
            NeedsValue: it is known only when the function runs.
        """
        slot = self.slots.get(id(tensor))
        if id(tensor) in self.fresh and (slot is None or slot.current is slot.incoming):
            return
        if isinstance(tensor, Parameter) or (
            slot is not None and slot.current is not slot.incoming
        ):
            raise NeedsValue(
                "got the data of a Parameter (or of a Tensor that the function writes), which is "
                "known only when the compiled function runs"
            )
        self.captures.contents(tensor)

    def forget_inputs(self, n_types: int) -> None:
        """Inputs of the root graph whose parameters are taken back."""
        kept = [i for i, p in enumerate(self.root.params) if p < n_types]
        self.inputs = [self.inputs[i] for i in kept]
        self.slots = {k: s for k, s in self.slots.items() if s.incoming._id < n_types}
        self.scalars = {k: s for k, s in self.scalars.items() if s._id < n_types}

    # ---- host values --------------------------------------------------------------------------

    def tensor_input(self, kind: str, owner: Any, name: Any, value: Tensor) -> Any:
        """A Tensor that is read from a place outside at each call, because the function puts others
        there.
        """
        key = (kind, id(owner), name)
        found = self.scalars.get(key)
        if found is None:
            found = self.root.parameter(value._type.plain)
            self.inputs.append((kind, (owner, name)))
            self.scalars[key] = found
            held = self.held[key] = self.root.tensor(found._id)
            self.place_of[id(held)] = (held, (kind, owner, name))
        return self.held[key]

    def object_input(self, kind: str, owner: Any, name: Any) -> Any:
        """The Tensor object that a place outside holds at the start of a call, as an input."""
        key = ("held", kind, id(owner), name)
        found = self.scalars.get(key)
        if found is None:
            found = self.scalars[key] = self.root.parameter(OBJECT)
            self.inputs.append(("held", (kind, owner, name)))
        return self.root.tensor(found._id)

    def argument_object(self, index: int) -> Any:
        """The Tensor object that stands at a place among the arguments, as an input."""
        key = ("argument", index, None)
        found = self.scalars.get(key)
        if found is None:
            found = self.scalars[key] = self.root.parameter(OBJECT)
            self.inputs.append(("argument", index))
        return self.root.tensor(found._id)

    def number_input(self, kind: str, owner: Any, name: Any, value: Any) -> Any:
        """A number that is read from outside at each call, because the function writes it."""
        from ..ir.values import kind_of

        key = (kind, id(owner), name)
        found = self.scalars.get(key)
        if found is None:
            type_ = kind_of(value)
            assert type_ is not None
            found = self.root.parameter(type_)
            self.inputs.append((kind, (owner, name)))
            self.scalars[key] = found
        return self.root.tensor(found._id)


def _base(value: Any) -> Any:
    """The array whose memory an array shows."""
    while isinstance(value, np.ndarray) and value.base is not None:
        value = value.base
    return value


def read_location(kind: str, owner: Any, name: Any) -> Any:
    if kind == "item":
        return owner.get(name, MISSING)
    if kind == "list":
        return list(owner)
    if kind == "dict":
        return dict(owner)
    if kind == "set":
        return set(owner)
    if kind == "attribute":
        return getattr(owner, "__dict__", {}).get(name, MISSING)
    if kind == "tensor":
        return owner._builder.tensor(owner._id)
    assert kind == "slot", kind
    return owner.current


def write_location(location: Any, value: Any) -> None:
    kind, owner, name = location
    if kind == "item":
        if value is MISSING:
            owner.pop(name, None)
        else:
            owner[name] = value
    elif kind == "list":
        owner[:] = value
    elif kind in ("dict", "set"):
        owner.clear()
        owner.update(value)
    elif kind == "attribute":
        if value is MISSING:
            owner.__dict__.pop(name, None)
        else:
            owner.__dict__[name] = value
    elif kind == "tensor":
        assert isinstance(owner, GraphTensor), owner
        if not isinstance(value, GraphTensor):
            raise ArgumentError(f"got {value!r} for a tensor")
        owner._builder, owner._id, owner._type = value._builder, value._id, value._type
    else:
        owner.current = value
