"""Evaluates item access on tensors, containers and objects, and methods of containers.

Evaluated code works on copies of the containers from outside the function. A change is made on the
copy, and a graph node repeats it on the original when the graph runs. A change is refused if a
graph condition decides which object it changes. Expressions, assignments and calls use this module.
It must never change an object from outside the function.
"""

from __future__ import annotations

import functools
import operator

import numpy as np

from ...errors import UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.values import GraphObject, GraphScalar, NeedsValue, number_of
from ...nn.cell import Cell
from ...tensor import Tensor
from ...types import INT
from ..libraries import in_classes, is_user_function, is_users_class
from ..state.evaluation import Evaluation
from ..state.journal import MISSING
from ..types import Args, Kwargs, Value
from ..values.kinds import MUTATORS
from ..values.nested import depends_on_graph
from .branches import select
from .dispatch import call
from .host import append_effect, run_on_host, with_item
from .identity import IDENTITY_FIRST, ORDERING, compare_all, refuse_own_comparisons
from .keys import as_key, look_up
from .native import evaluable, native
from .outside import (
    ask,
    check_made_here,
    defer,
    is_live,
    is_outside,
    special_method,
)  # fmt: skip

# Methods that return a new object: a copy, a view or an iterator.
_MAKERS = {
    "copy", "fromkeys", "keys", "values", "items", "__iter__", "__reversed__", "union",
    "intersection", "difference", "symmetric_difference", "__add__", "__mul__", "__rmul__",
    "__or__", "__ror__", "__and__", "__rand__", "__sub__", "__rsub__", "__xor__", "__rxor__",
}  # fmt: skip


# Methods of dicts and sets whose first argument is a key.
_LOOKUPS = {
    "get", "pop", "setdefault", "add", "discard", "remove", "__getitem__", "__setitem__",
    "__delitem__", "__contains__",
}  # fmt: skip


# Methods that take all items of their arguments.
_TAKE_ITEMS = {
    "extend", "update", "union", "intersection", "difference", "symmetric_difference",
    "intersection_update", "difference_update", "symmetric_difference_update", "issubset",
    "issuperset", "isdisjoint", "__ior__", "__iadd__",
}  # fmt: skip


# Mutators whose effect does not depend on the present content.
BLIND = {"append", "extend", "add", "update", "clear", "__setitem__"}


# Mutators that change nothing if they raise an error.
_ALL_OR_NOTHING = {
    "append", "insert", "pop", "popitem", "remove", "setdefault", "add", "discard", "__setitem__",
    "__delitem__",
}  # fmt: skip


def get_item(ev: Evaluation, owner: Value, index: Value) -> Value:
    """Trace the expression `owner[index]` on a tensor, container or object and return its value."""
    if isinstance(owner, GraphObject) or _has_object(index):
        return run_on_host(ev, operator.getitem, (owner, index), {}, "getitem")
    if isinstance(owner, Tensor):
        return native(ev, operator.getitem, (owner, _tensor_index(ev, index)), {})
    if isinstance(owner, Cell):
        ev.captures.members(owner)
    ev.copies.observe(owner)
    by_position = isinstance(owner, (list, tuple, str)) and not _is_outside_list(ev, owner)
    if by_position and isinstance(index, (Tensor, GraphScalar)):
        return _select_item(ev, owner, index)
    if type(owner) is dict and isinstance(index, GraphTensor) and index in owner:
        return owner[index]  # a Tensor is a key by its identity, which is known
    if isinstance(index, slice) and depends_on_graph(index):
        raise NeedsValue(
            "slice: got bounds that are known only when the compiled function runs; wanted "
            "constants"
        )
    method = special_method(ev, owner, "__getitem__")
    if method is not None:
        return call(ev, method, (owner, index), {})
    if isinstance(owner, type) and is_users_class(owner):
        ev.captures.class_attribute(owner, "__class_getitem__")
        found = in_classes(owner, "__class_getitem__", MISSING)
        if is_user_function(getattr(found, "__func__", found)):
            return call(ev, getattr(owner, "__class_getitem__"), (index,), {})  # noqa: B009
    if isinstance(owner, dict) and not depends_on_graph(index):
        index = look_up(ev, owner, index)
    else:
        index = plain_index(ev, index)
    if is_outside(ev, owner):
        return _get_outside_item(ev, owner, index)
    if depends_on_graph(index):
        return run_on_host(ev, operator.getitem, (owner, index), {}, "getitem")
    found = owner[index]
    viewed = isinstance(owner, np.ndarray) and isinstance(found, np.ndarray)
    if viewed or (isinstance(index, slice) and type(found) is list):
        ev.owned.add(found, (owner,))
    return found


def plain_index(ev: Evaluation, index: Value) -> Value:
    """Return an index, or a slice, in which the `__index__` of users' objects is evaluated."""
    if isinstance(index, slice):
        return slice(*(plain_index(ev, i) for i in (index.start, index.stop, index.step)))
    method = special_method(ev, index, "__index__")
    return index if method is None else call(ev, method, (index,), {})


def _is_outside_list(ev: Evaluation, value: Value) -> bool:
    """Return whether a value is from outside the function and of a subclass of `list`."""
    return isinstance(value, list) and is_outside(ev, value)


def _get_outside_item(ev: Evaluation, owner: Value, index: Value) -> Value:
    """Return `owner[index]` for an outside object that is neither a Tensor nor copied.

    Lists, dicts and sets from outside have copies, on which evaluated code works.
    """
    if isinstance(owner, tuple):
        return owner[index]
    if isinstance(owner, dict) and not is_live(ev, owner) and _lacks(owner, index):
        missing = special_method(ev, owner, "__missing__")
        if missing is not None:
            ask(ev, operator.contains, owner, index)
            return call(ev, missing, (owner, index), {})
        if hasattr(type(owner), "__missing__"):  # makes the item
            return defer(ev, operator.getitem, (owner, index), {})
    if isinstance(owner, np.ndarray) and not depends_on_graph(index):
        found = owner[index]
        if isinstance(found, np.ndarray) and np.shares_memory(found, owner):
            return ev.copies.imported(found, "a view of an array")
    if depends_on_graph(index):
        return run_on_host(ev, operator.getitem, (owner, index), {}, "getitem")
    return ask(ev, operator.getitem, owner, index)


def _lacks(owner: dict[Value, Value], key: Value) -> bool:
    """Return whether `key` is missing in a dict; False for an unhashable key."""
    try:
        return not dict.__contains__(owner, key)
    except TypeError:
        return False


def _has_object(index: Value) -> bool:
    """Return whether an index, or a part of it, is a Python object that exists only at run time."""
    if isinstance(index, tuple):
        return any(map(_has_object, index))
    if isinstance(index, slice):
        return any(map(_has_object, (index.start, index.stop, index.step)))
    return isinstance(index, GraphObject)


def _tensor_index(ev: Evaluation, index: Value) -> Value:
    """Return a tensor index with its symbolic numbers converted to graph tensors.

    A symbolic number is a Python number that is known only when the graph runs.

    Raises:
        NeedsValue: a bound of a slice is symbolic, so that the shape of the result is unknown.
    """
    if isinstance(index, GraphScalar):
        return ev.builder.operand(index, None)
    if isinstance(index, tuple):
        return tuple(_tensor_index(ev, i) for i in index)
    if isinstance(index, slice) and depends_on_graph(index):
        raise NeedsValue(
            "slice: got bounds that are known only when the compiled function runs; the shape of "
            "the result would be unknown, wanted constants"
        )
    return index


def _select_item(ev: Evaluation, items: Value, index: Value) -> Value:
    """Return the item of a tuple, list or string at an index that the graph computes.

    Appends a range check and a chain of `switch` nodes over the items.
    """
    if isinstance(index, Tensor) and not isinstance(index, GraphTensor):
        if id(index) in ev.owned.tensors:
            return items[int(index)]
        index = ev.builder.present_value(index)
    n = len(items)
    i = number_of(index, INT)

    def check(k: int) -> None:
        if not -n <= k < n:
            raise IndexError(
                f"{type(items).__name__} index out of range: got {k}, the length is {n}"
            )

    append_effect(ev, check, (i,), "check_index")
    if n == 0:
        return None

    def pick(k: int) -> Value:
        if k == n - 1:
            return items[k]
        here = (i == k) | (i == k - n)
        return select(
            ev, here, lambda: items[k], lambda: pick(k + 1), "the item", ("other item", "item")
        )

    return pick(0)


def set_item(ev: Evaluation, owner: Value, index: Value, value: Value) -> None:
    """Trace the assignment `owner[index] = value` on a tensor, container or object."""
    if isinstance(owner, GraphObject):
        run_on_host(ev, operator.setitem, (owner, index, value), {}, "setitem", ())
    elif isinstance(owner, Tensor):
        if isinstance(value, GraphScalar):
            value = ev.builder.operand(value, None)
        if isinstance(value, GraphObject):
            made = run_on_host(
                ev, with_item, (owner, index, value), {}, "setitem", (owner._type.plain,)
            )
            ev.builder.write_state(owner, made)
            return
        native(ev, operator.setitem, (owner, _tensor_index(ev, index), value), {})
    elif type(owner) in (list, dict):
        if isinstance(index, (Tensor, GraphScalar)) and isinstance(owner, list):
            _set_selected_item(ev, owner, index, value)
            return
        if isinstance(owner, list):
            is_slice = isinstance(index, slice)
            index, value = plain_index(ev, index), listed(ev, value, None) if is_slice else value
        container_method(ev, owner, "__setitem__", (index, value), {})
    elif special_method(ev, owner, "__setitem__") is not None:
        call(ev, type(owner).__setitem__, (owner, index, value), {})
    elif isinstance(owner, np.ndarray):
        check_array_changeable(ev, owner, "setitem")
        if depends_on_graph(value) or depends_on_graph(index):
            raise UnsupportedSyntaxError(
                "setitem: got a value known only when the function runs for an item of a NumPy "
                "array inside jit",
                construct="setitem",
                remedy="Use a Tensor instead of the array",
            )
        owner[index] = value
    elif is_outside(ev, owner):
        defer(ev, operator.setitem, (owner, index, value), {})
    else:
        _change_made_here(ev, operator.setitem, owner, index, value)


def _change_made_here(ev: Evaluation, function: Value, owner: Value, *args: Value) -> None:
    """Call `function(owner, *args)` immediately, to change an object that evaluated code made.

    Raises:
        UnsupportedSyntaxError: the object is a Cell from outside the function, or was made before
            the current branch or loop.
    """
    if isinstance(owner, Cell) and id(owner) not in ev.owned.objects:
        raise UnsupportedSyntaxError(
            f"{function.__name__}: got a change of a {type(owner).__name__} from outside inside "
            "jit, which would happen while compiling",
            construct=function.__name__,
            remedy="Move it out of the compiled function",
        )
    check_made_here(ev, owner, function.__name__)
    function(owner, *args)


def _set_selected_item(ev: Evaluation, items: list[Value], index: Value, value: Value) -> None:
    """Assign to a list item at an index that the graph computes, with one `switch` per item."""
    i = number_of(index, INT)
    n = len(items)
    for k in range(n):
        here = (i == k) | (i == k - n)
        old = items[k]
        new = select(
            ev,
            here,
            lambda: value,
            functools.partial(_constantly, old),
            f"item {k}",
            ("other item", "item"),
        )
        container_method(ev, items, "__setitem__", (k, new), {})


def _constantly(value: Value) -> Value:
    return value


def delete_item(ev: Evaluation, owner: Value, index: Value) -> None:
    """Trace the statement `del owner[index]` on a list, dict or other object."""
    if isinstance(owner, GraphObject):
        run_on_host(ev, operator.delitem, (owner, index), {}, "delitem", ())
    elif type(owner) in (list, dict):
        index = plain_index(ev, index) if isinstance(owner, list) else index
        container_method(ev, owner, "__delitem__", (index,), {})
    elif special_method(ev, owner, "__delitem__") is not None:
        call(ev, type(owner).__delitem__, (owner, index), {})
    elif is_outside(ev, owner):
        defer(ev, operator.delitem, (owner, index), {})
    else:
        _change_made_here(ev, operator.delitem, owner, index)


def check_changeable(ev: Evaluation, owner: Value) -> None:
    """Save a list, dict or set in the undo log before a change; raise if changing it is forbidden.

    Raises:
        UnsupportedSyntaxError: a graph condition chose between the container and another one; or an
            object from outside the function already holds it; or it is the `__dict__` of such an
            object.
    """
    if id(owner) in ev.owned.ambiguous:
        raise UnsupportedSyntaxError(
            f"{type(owner).__name__}: got a change of a {type(owner).__name__} that Python code "
            "keeps, or of one of two, chosen by a condition on a Tensor; copy it before"
        )
    if id(owner) in ev.owned.kept:
        raise UnsupportedSyntaxError(
            f"{type(owner).__name__}: got a change inside jit of a container that an object from "
            "outside already holds",
            construct="Call",
            remedy="Change it first, then store it",
        )
    if id(owner) in ev.copies.read_only:
        raise UnsupportedSyntaxError(
            "setattr: got a change of the `__dict__` of an object from outside inside jit",
            construct="setattr",
            remedy="Assign the attributes themselves",
        )
    kind = "dict" if isinstance(owner, dict) else "set" if isinstance(owner, set) else "list"
    ev.journal.touch(kind, owner)


def check_array_changeable(ev: Evaluation, owner: Value, what: str) -> None:
    """Raise if a NumPy array may not be changed at compile time.

    `what` names the operation in the message.

    Raises:
        UnsupportedSyntaxError: at syntax level STRICT; or the array came from outside the function;
            or the change depends on a graph condition.
    """
    if ev.strict:
        raise UnsupportedSyntaxError(
            f"{what}: got a write to a NumPy array inside jit at STRICT; wanted a Tensor"
        )
    if id(owner) not in ev.owned.objects or ev.owned.depths[id(owner)] != ev.builder.depth:
        raise UnsupportedSyntaxError(
            f"{what}: got a write inside jit to a NumPy array that comes from outside, or under a "
            "condition on a Tensor; wanted a Tensor"
        )


# Methods of an iterable of which `list` calls some.
_ASKED = ("__iter__", "__getitem__", "__len__", "__length_hint__")


def listed(ev: Evaluation, value: Value, owner: type | None) -> Value:
    """Return an iterable as a list or set, or a mapping as a dict, if evaluated code makes items.

    Any other value is returned unchanged. `owner` is the class of the container whose method takes
    the items; None if a slice takes them, for which Python asks no object for its length.
    """
    if owner is dict and special_method(ev, value, "keys") is not None:
        return call(ev, dict, (value,), {})
    made_here = hasattr(type(value), "__next__") and id(value) in ev.owned.objects
    if made_here or any([special_method(ev, value, name) for name in _ASKED]):
        if owner is None:
            value = call(ev, iter, (value,), {})
        return call(ev, set if owner in (set, frozenset) else list, (value,), {})
    return value


def _check_keys(ev: Evaluation, owner: Value, args: Args) -> None:
    """Check the items that a method of a dict or set takes as keys from iterables (`as_key`).

    Raises:
        NeedsValue: an item's own `__hash__` or `__eq__` would run.
    """
    if isinstance(owner, list):
        return
    for x in args:
        if isinstance(owner, dict) and isinstance(x, (list, tuple)):  # pairs of key and value
            keys = [pair[0] for pair in x if isinstance(pair, (list, tuple)) and pair]
        else:
            keys = list(x) if isinstance(x, (list, tuple, dict, set, frozenset)) else []
        for key in keys:
            as_key(ev, key)


def container_method(ev: Evaluation, owner: Value, name: str, args: Args, kwargs: Kwargs) -> Value:
    """Call a method of a list, dict or set at compile time and return its result.

    The undo log of the current branch saves the content before a change. If the container is the
    copy of a container from outside the function, a graph node repeats the change on the original.
    """
    method = getattr(owner, name)
    if name in _TAKE_ITEMS:
        args = tuple([listed(ev, x, type(owner)) for x in args])
        _check_keys(ev, owner, args)
    if name in IDENTITY_FIRST and type(owner) is list:
        compare_all(ev, (owner, args))
        refuse_own_comparisons(ev, name, (owner, args))
    elif name in ORDERING or name in ("__eq__", "__ne__"):
        refuse_own_comparisons(ev, name, (owner, args))
    if args and name in _LOOKUPS and type(owner) is not list:
        args = (look_up(ev, owner, args[0]), *args[1:])
    if name not in MUTATORS:
        ev.copies.observe(owner)
        found = method(*args, **kwargs)
        sliced = name == "__getitem__" and isinstance(args[0], slice)
        made = (sliced or name in _MAKERS) and found is not NotImplemented
        return ev.owned.add(found) if made else found
    check_changeable(ev, owner)
    if name == "sort" and not args and id(owner) not in ev.copies.originals:
        found = call(ev, sorted, (tuple(owner),), kwargs)
        if isinstance(found, GraphObject):
            raise NeedsValue("sort: got an order that is known only when the function runs")
        owner[:] = found
        return None
    if name == "sort" and any(
        [special_method(ev, v, m) for v in owner for m in ("__lt__", "__gt__")]
    ):
        raise NeedsValue(
            "sort: got an object from outside whose own methods decide the order; wanted items of "
            "Python's classes, or sorted()"
        )
    if name == "sort" and kwargs.get("key"):
        raise UnsupportedSyntaxError(
            "sort: got a list from outside and a key inside jit; use sorted()", construct="sort"
        )
    outside: Value = ev.copies.originals.get(id(owner))
    if outside is not None and not hasattr(outside, "value") and name not in BLIND:
        ev.copies.observe(owner)
    given = args, kwargs
    if name == "extend" and isinstance(args[0], Tensor):
        rows = args[0]
        args = ([rows[i] for i in range(rows.shape[0])],)
    try:
        found = method(*args, **{k: evaluable(ev, v) for k, v in kwargs.items()})
    except (LookupError, TypeError, ValueError):
        if outside is not None and name not in _ALL_OR_NOTHING:
            raise _changed_in_part(owner, name) from None
        raise
    if outside is not None:
        _repeat_when_run(ev, outside, name, *given)
    return found


def _changed_in_part(owner: Value, name: str) -> UnsupportedSyntaxError:
    """Return the error for a method that raised after it may have changed part of a container."""
    return UnsupportedSyntaxError(
        f"{name}: got an error inside jit that may leave a {type(owner).__name__} from outside "
        "changed in part",
        construct=name,
        remedy=f"Change the {type(owner).__name__} outside the compiled function",
    )


def _repeat_when_run(ev: Evaluation, outside: Value, name: str, args: Args, kwargs: Kwargs) -> None:
    """Append a node that calls a method of an outside container, such as `append`, at run time.

    Args:
        ev: the evaluation.
        outside: the container; for an argument of the compiled call, the `ArgumentContainer` whose
            method `value` returns the graph value of the container.
        name: name of the method.
        args, kwargs: the arguments of the method.
    """
    if hasattr(outside, "value"):  # a list or dict argument of the call
        append_effect(
            ev,
            lambda o, a, k: getattr(o, name)(*a, **k),
            (outside.value(), args, kwargs),
            f"container.{name}",
            objects=True,
        )
        return
    ev.outside.changed_containers[id(outside)] = outside
    ev.outside.has_writes = True
    append_effect(
        ev,
        lambda a, k: getattr(outside, name)(*a, **k),
        (args, kwargs),
        f"{type(outside).__name__}.{name}",
        objects=True,
    )
