"""Evaluates which object is which: `is`, and the hash of a Tensor.

Python finds a Tensor in a dict or set by its identity, and in a list by identity before equality. A
tensor argument may be any Tensor from outside the function. Therefore only the running graph knows
some answers, and code that needs such an answer at compile time is refused. `operators`,
`containers`, `calls` and `evaluator` call this module. It must never compare the data of tensors.
"""

from __future__ import annotations

import collections
import itertools
import operator
import types

import numpy as np

from ...dims import pin
from ...errors import UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.values import GraphObject, GraphScalar, HostValue, NeedsValue
from ...nn.cell import Cell
from ...tensor import Tensor
from ...types import BOOL
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.functions import Choice
from .aliasing import possibilities
from .host import check_known, run_on_host
from .outside import reachable, special_method
from .truth import truth

# Functions and methods that compare items of sequences by their identity before their equality.
IDENTITY_FIRST = {
    "index", "count", "remove", "__contains__", "__eq__", "__ne__", "indexOf", "countOf",
}  # fmt: skip


def identical(ev: Evaluation, x: Value, y: Value) -> Value:
    """Trace the identity test `x is y`; return a Python bool, or a bool of the graph."""
    for a, b in ((x, y), (y, x)):
        if isinstance(a, GraphObject):
            return truth(ev, run_on_host(ev, operator.is_, (a, b), {}, "is_"))
        if isinstance(a, GraphScalar) and (b is True or b is False):
            return a == b if a._type.name == "bool" else False
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return _identical_tensors(ev, x, y)
    if x is not y and isinstance(x, int) and isinstance(y, int):
        return pin(x) is pin(y)
    for a in (x, y):
        if isinstance(a, np.ndarray) and not ev.owned.owns_data(a) and x is not None is not y:
            ev.captures.arrays[id(a)] = a
        check_known(ev, a)
    check_one(ev, x, y)
    originals = ev.copies.originals
    return originals.get(id(x), x) is originals.get(id(y), y)


def check_one(ev: Evaluation, x: Value, y: Value) -> None:
    """Raise if only the running graph can tell whether two containers or functions are one object.

    Raises:
        UnsupportedSyntaxError: one of them is one of several, chosen by a condition on a Tensor or
            by a loop.
    """
    if x is y:
        return
    containers = type(x) is type(y) and isinstance(x, (list, dict, tuple))
    functions = all(isinstance(v, Choice) or callable(v) for v in (x, y))
    if (containers and (id(x) in ev.owned.chosen or id(y) in ev.owned.chosen)) or (
        functions and (isinstance(x, Choice) or isinstance(y, Choice))
    ):
        what = "function" if functions else type(x).__name__
        raise UnsupportedSyntaxError(
            f"is: got a {what} that is one of several, chosen by a condition on a Tensor or by a "
            "loop inside jit, to be compared by identity",
            construct="Compare",
            remedy="Compare numbers that tell them apart",
        )


def _identical_tensors(ev: Evaluation, x: Tensor, y: Tensor) -> Value:
    """Return whether two tensors are one object, as a Python bool or a bool of the graph.

    Raises:
        UnsupportedSyntaxError: a condition on a tensor, or a loop, decides whether they are one
            object.
    """
    held = ev.inputs.locations
    xs, ys = [*possibilities(ev, x).values()], [*possibilities(ev, y).values()]
    if x is not y and len(xs) == len(ys) == 1 and (id(x) in held or id(y) in held):
        return truth(ev, run_on_host(ev, operator.is_, (x, y), {}, "is_", (BOOL,), objects=True))
    for a, b in () if x is y else itertools.product(xs, ys):
        if a is b or id(a) in held or id(b) in held:
            raise UnsupportedSyntaxError(
                "is: got a Tensor that is one of several, chosen by a condition on a Tensor or by "
                "a loop inside jit, to be compared by identity",
                construct="Compare",
                remedy="Compare numbers that tell the Tensors apart",
            )
        _note_comparison(ev, a, b)
    return x is y


def _note_comparison(ev: Evaluation, x: Tensor, y: Tensor) -> None:
    """Record that the function compares a tensor argument with another tensor by identity.

    The compiled program is then reused only for calls in which the same pairs of tensors are one
    object as in the call for which the program was compiled.
    """
    arguments = [made for made, _, _ in ev.inputs.arguments]
    if x is not y and any(made is x or made is y for made in arguments):
        ev.inputs.compared = True
        for a in (x, y):
            if not isinstance(a, GraphTensor) and id(a) not in ev.owned.tensors:
                ev.inputs.slot(a)


def known_identical(ev: Evaluation, x: Value, y: Value) -> bool:
    """Return whether two values are one object, for code that needs the answer at compile time.

    Raises:
        UnsupportedSyntaxError: they are Tensors, and only the running graph can tell.
    """
    if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
        return x is y
    held = ev.inputs.locations
    if x is not y and (id(x) in held or id(y) in held):
        raise _unknown_identity("a Tensor of a location that the function writes")
    return bool(_identical_tensors(ev, x, y))


def compare_all(ev: Evaluation, values: Value) -> None:
    """Check that library code may compare the Tensors in nested values by identity at compile time.

    Raises:
        UnsupportedSyntaxError: only the running graph can tell which of them are one Tensor.
    """
    tensors = [x for x in reachable(values).values() if isinstance(x, Tensor)]
    for x in tensors:
        if isinstance(x, GraphTensor):
            for y in tensors:
                known_identical(ev, x, y)


# Operators and methods that order sequences; all others compare items by `__eq__` alone.
ORDERING = {"lt", "le", "gt", "ge", "sorted", "__lt__", "__le__", "__gt__", "__ge__"}
_ORDER_METHODS = ("__eq__", "__lt__", "__gt__", "__le__", "__ge__")


def refuse_own_comparisons(ev: Evaluation, name: str, values: Value) -> None:
    """Refuse to compare nested values at compile time if that would call a method of the user.

    Such a method may have effects, or read what changes between calls. `name` is the comparison,
    such as "eq" or "__lt__".

    Raises:
        NeedsValue: the class of a value in a container defines this comparison in user code.
    """
    methods = _ORDER_METHODS if name in ORDERING else ("__eq__",)
    compared: dict[int, Value] = {}
    _collect_compared(values, compared)
    for value in compared.values():
        if any([special_method(ev, value, method) is not None for method in methods]):
            raise NeedsValue(
                f"{name}: got a container with a {type(value).__name__}, whose own methods compare "
                "it; wanted items of Python's classes"
            )


def _collect_compared(value: Value, known: dict[int, Value]) -> None:
    """Add, by id, an object and all that Python compares when it compares the object.

    These are the items of containers, and the attributes of objects with an `__eq__` of their own,
    such as dataclasses. Objects without one are compared by identity.
    """
    kind: Value = type(value)
    if isinstance(value, (int, float, str, bool, type(None))) or id(value) in known:
        return
    known[id(value)] = value
    if isinstance(value, _WITH_ITEMS):
        items: Value = value
    elif isinstance(value, (dict, types.MappingProxyType)):
        items = (*value, *value.values())
    elif isinstance(value, types.BuiltinFunctionType):
        items = (value.__self__,)
    elif kind.__eq__ is object.__eq__ or isinstance(value, (type, Tensor, Cell, HostValue)):
        return
    else:
        items = (*getattr(value, "__dict__", {}).values(),)
    for item in items:
        _collect_compared(item, known)


_WITH_ITEMS: tuple[Value, ...] = (
    list, tuple, set, frozenset, collections.deque, type({}.keys()), type({}.values()),
    type({}.items()),
)  # fmt: skip


def check_hash(ev: Evaluation, tensor: GraphTensor) -> None:
    """Raise if a graph tensor that is to be hashed may be a Tensor from outside the function.

    Raises:
        UnsupportedSyntaxError: it may be such a Tensor. A dict or set from outside may already hold
            the Tensor under its own hash, which the graph tensor does not have.
    """
    if any(made is tensor for made, _, _ in ev.inputs.arguments):
        raise _unknown_identity("an argument")
    if id(tensor) in ev.inputs.locations or len(possibilities(ev, tensor)) > 1:
        raise _unknown_identity("a Tensor that is one of several")


def _unknown_identity(what: str) -> UnsupportedSyntaxError:
    return UnsupportedSyntaxError(
        f"Tensor: got {what} to be found among others by its identity inside jit, as the key of a "
        "dict, the item of a set, list or tuple, or by its hash",
        construct="key",
        remedy="Look it up outside the compiled function, or use names or numbers as keys",
    )
