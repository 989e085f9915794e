"""Protects objects made at compile time from Python code that runs with the graph.

Such an object is a constant of the graph. A change by one call would be visible to all later calls,
or would be lost if the call got a copy. Calls that are known to change their argument are refused
(at syntax level LAX the function then runs uncompiled). Any other call receives a copy of an array,
and its arguments are compared with the originals afterwards. `host` calls this module, which must
not change any object.
"""

from __future__ import annotations

import bisect
import datetime
import decimal
import fractions
import functools
import heapq
import operator
import pathlib
import random
import re
import types
from collections.abc import Callable

import numpy as np

from ...errors import UnsupportedSyntaxError
from ...ir.values import HostValue
from ...tensor import Tensor
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value

# Methods of NumPy arrays that change the array.
ARRAY_MUTATORS = {"fill", "sort", "partition", "put", "itemset", "resize", "setfield", "setflags"}


_OPERATORS = (
    "add", "and", "concat", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift",
    "sub", "truediv", "xor",
)  # fmt: skip


@functools.cache
def _known_owners() -> tuple[type, ...]:
    """Return the classes for which it is known which methods change their receiver.

    A method of any other class may change its receiver.
    """
    return (
        type(None), str, bytes, int, float, complex, tuple, frozenset, range, type,
        types.ModuleType, types.FunctionType, np.ndarray, np.generic, np.dtype, re.Pattern,
        re.Match, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo,
        fractions.Fraction, decimal.Decimal, pathlib.PurePath, list, dict, set, Tensor, HostValue,
    )  # fmt: skip


@functools.cache
def _changing_first() -> frozenset[Value]:
    """Return the library functions that are known to change their first argument in place."""
    named = {
        heapq.heappush, heapq.heappop, heapq.heapify, heapq.heapreplace, heapq.heappushpop,
        bisect.insort, bisect.insort_left, bisect.insort_right, random.shuffle, np.random.shuffle,
        np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis,
    }  # fmt: skip
    return frozenset(named | {getattr(operator, f"i{name}") for name in _OPERATORS})


# Methods that keep or print their arguments and do not change them.
_KEEPERS = {
    "add", "append", "appendleft", "extend", "extendleft", "insert", "put", "put_nowait",
    "setdefault", "setitem", "update", "write", "writelines", "writerow", "writerows", "debug",
    "info", "warning", "error", "critical", "log", "exception", "warn", "set", "send", "__call__",
    "__setitem__", "__contains__", "contains", "count", "index", "get",
}  # fmt: skip


class Snapshot:
    """An array made at compile time, of which each run of a host call receives a new copy.

    Attributes:
        array: a copy of the array at the time when the host call was traced.
        is_view: whether the original does not own its memory; the copies are then views as well.
    """

    __slots__ = ("array", "is_view")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array.copy()
        self.is_view = array.base is not None

    def made(self) -> np.ndarray:
        """Return a new copy of the array."""
        found = self.array.copy()
        return found.view() if self.is_view else found


def refuse_mutation(
    ev: Evaluation,
    function: Callable[..., Value],
    args: Args,
    kwargs: Kwargs,
    name: str,
    unknown: bool = False,
) -> None:
    """Raise if a run-time host call would change a container or array made at compile time.

    Args:
        ev: the evaluation.
        function, args, kwargs: the call.
        name: name of the call, for messages.
        unknown: whether it is unknown what the call does. Lists, dicts and sets among its arguments
            are then refused, unless the function has a name in `_KEEPERS`, such as `append`, of
            which it is known that the function changes no argument.

    Raises:
        UnsupportedSyntaxError: the call would or, with `unknown`, could change such an object.
    """
    targets = [v for v in (kwargs.get("out"),) if v is not None]
    if args and (changes_first_argument(function) or getattr(function, "__name__", "") == "at"):
        targets.append(args[0])
    if args and getattr(function, "__name__", "") == "shuffle":
        targets.append(args[-1])
    owner = getattr(function, "__self__", None)
    if getattr(function, "__name__", "") in ARRAY_MUTATORS or not isinstance(
        owner, _known_owners()
    ):
        targets.append(owner)
    if unknown and getattr(function, "__name__", "") not in _KEEPERS:
        targets += [v for v in (*args, *kwargs.values()) if type(v) in (list, dict, set)]
    for v in targets:
        for target in v if isinstance(v, tuple) else (v,):
            if isinstance(target, (list, dict, set)) or ev.owned.owns_data(target):
                kind = type(target).__name__
                kind = f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
                raise UnsupportedSyntaxError(
                    f"{name}: got a change of {kind} made while compiling, with values known only "
                    "when the function runs",
                    construct="Call",
                    remedy="Use a function that returns a new one, or make it of Tensors",
                )


def changes_first_argument(function: Value) -> bool:
    """Return whether a library function is known to change its first argument in place."""
    try:
        return function in _changing_first()
    except TypeError:  # not hashable
        return False


def with_snapshots(ev: Evaluation, nested: Value) -> Value:
    """Replace the arrays made at compile time in a host call's arguments by `Snapshot`s."""
    if isinstance(nested, np.ndarray) and ev.owned.owns_data(nested):
        return Snapshot(nested)
    if type(nested) in (tuple, list):
        items = [with_snapshots(ev, v) for v in nested]
        return tuple(items) if type(nested) is tuple else items
    if type(nested) is dict:
        return {k: with_snapshots(ev, v) for k, v in nested.items()}
    return nested


def was_changed(nested: Value, given: Value) -> bool:
    """Return whether a host call changed a list, dict or array that it received.

    Args:
        nested: the arguments before the call, with a `Snapshot` for each array.
        given: the arguments that the call received.
    """
    if isinstance(nested, Snapshot):
        was = nested.array
        if was.dtype == object:
            return False
        return (
            was.shape != given.shape or was.dtype != given.dtype or was.tobytes() != given.tobytes()
        )
    if type(nested) in (tuple, list):
        return len(nested) != len(given) or any(map(was_changed, nested, given))
    if type(nested) is dict:
        return list(nested) != list(given) or any(
            was_changed(v, given[k]) for k, v in nested.items()
        )
    return False
