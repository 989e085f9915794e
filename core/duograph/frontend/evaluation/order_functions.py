"""Replacements of `max`, `min`, `all`, `any`, `sum`, `sorted`, `reduce` for compiled code.

They register in `dispatch.REPLACEMENTS`, like those in `builtin_functions`. Comparisons and
additions go through `operators.apply`, so that operators of users' classes are evaluated; nothing
here may call such an operator directly.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

from ...ir.values import GraphObject, NeedsValue
from ..libraries import user_method
from ..state.evaluation import Evaluation
from ..types import Flag, Value
from ..values.nested import depends_on_graph
from .branches import select
from .dispatch import call, replaces
from .host import run_on_host
from .identity import refuse_own_comparisons
from .iteration import iterate, iterate_sized
from .laziness import ahead
from .native import native
from .operators import apply
from .outside import settle
from .truth import as_python_bool, either, negated, truth


def _extreme(python: Callable[..., Value], name: str) -> Callable[..., Value]:
    """Return the function that compiled code calls for Python's `max` or `min`.

    `python` is the function `max` or `min` itself, `name` its name.
    """

    def find(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
        key = kwargs.get("key")
        if set(kwargs) - {"key", "default"} or not args or ("default" in kwargs and args[1:]):
            return native(ev, python, args, kwargs)
        items = list(iterate(ev, args[0])) if len(args) == 1 else list(args)
        if key is None and all(isinstance(x, (int, float, str)) for x in items):
            return native(ev, python, (items,), kwargs)
        if not items:
            return native(ev, python, args[:0] or ([],), kwargs)
        ranks = items if key is None else [call(ev, key, (x,), {}) for x in items]
        order = operator.gt if python is max else operator.lt
        best, rank = items[0], ranks[0]
        for x, r in zip(items[1:], ranks[1:], strict=True):
            first = apply(ev, order, r, rank)
            best, rank = (
                _chosen(ev, first, x, best, name), _chosen(ev, first, r, rank, name)
            )  # fmt: skip
        return best

    return find


def _chosen(ev: Evaluation, first: Flag, x: Value, y: Value, name: str) -> Value:
    """Return `x if first else y`, as a `switch` if the graph computes the condition `first`."""
    cond = truth(ev, first)
    if isinstance(cond, bool):
        return x if cond else y
    return select(ev, cond, lambda: x, lambda: y, f"the result of {name}")


replaces(max)(_extreme(max, "max"))


replaces(min)(_extreme(min, "min"))


@replaces(all)
def _all(ev: Evaluation, items: Value) -> Value:
    return as_python_bool(ev, negated(_any_of(ev, items, negate=True)))


@replaces(any)
def _any(ev: Evaluation, items: Value) -> Value:
    return as_python_bool(ev, _any_of(ev, items, negate=False))


def _any_of(ev: Evaluation, items: Value, negate: bool) -> Value:
    """Return whether any item is true or, with `negate`, whether any is false.

    The result is a Python bool if it is known at compile time, else a bool of the graph.

    Args:
        ev: the evaluation.
        items: the items, an iterable.
        negate: whether to look for an item that is false.
    """
    found: Value = False
    rest = iterate(ev, items)
    while True:
        x = next(rest, _EMPTY)
        if x is _EMPTY:
            return found
        flag = truth(ev, x)
        if found is False and not isinstance(flag, bool):
            rest = ahead(ev, rest, "all" if negate else "any")  # Python may stop here
        found = either(found, negated(flag) if negate else flag)
        if found is True:
            return found


@replaces(sum)
def _sum(ev: Evaluation, items: Value, start: Value = 0) -> Value:
    if isinstance(items, GraphObject):
        return run_on_host(ev, sum, (items, start), {}, "sum")
    if isinstance(start, (str, bytes, bytearray)):
        return native(ev, sum, ((), start), {})  # an error
    total = start
    for x in iterate(ev, items):
        total = apply(ev, operator.add, total, x)
    return total


@replaces(functools.reduce)
def _reduce(ev: Evaluation, function: Value, items: Value, *initial: Value) -> Value:
    rest = iter(list(iterate(ev, items)))
    total = initial[0] if initial else next(rest, _EMPTY)
    if total is _EMPTY:
        raise TypeError("reduce() of empty iterable with no initial value")
    for x in rest:
        total = call(ev, function, (total, x), {})
    return total


_EMPTY = object()


@replaces(sorted)
def _sorted(ev: Evaluation, items: Value, /, **kwargs: Value) -> Value:
    listed = list(iterate_sized(ev, items))
    key = kwargs.pop("key", None)
    ranks = listed if key is None else [call(ev, key, (x,), {}) for x in listed]
    if any(user_method(r, name) is not None for r in ranks for name in ("__lt__", "__gt__")):
        ranked = [_Rank(ev, r, i) for i, r in enumerate(ranks)]
        return ev.owned.add([listed[r.position] for r in sorted(ranked, **kwargs)])
    if depends_on_graph(ranks) or depends_on_graph(kwargs) or not settle(ev, ranks):
        pairs = (listed, ranks, kwargs)
        return run_on_host(ev, _sorted_by, pairs, {}, "sorted")
    refuse_own_comparisons(ev, "sorted", ranks)
    order = native(ev, sorted, (range(len(ranks)),), {**kwargs, "key": ranks.__getitem__})
    return ev.owned.add([listed[i] for i in order])


class _Rank:
    """A sort key of a user's class, whose comparison is evaluated, with the item's position."""

    def __init__(self, ev: Evaluation, value: Value, position: int) -> None:
        self.ev = ev
        self.value = value
        self.position = position

    def __lt__(self, other: _Rank) -> bool:
        first = truth(self.ev, apply(self.ev, operator.lt, self.value, other.value))
        if not isinstance(first, bool):
            raise NeedsValue("sorted: got a comparison that is known only when the function runs")
        return first


def _sorted_by(items: list[Value], ranks: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """Return `items` sorted by `ranks`, which has one sort key per item.

    Args:
        items: the items.
        ranks: the sort keys.
        kwargs: further keyword arguments of `sorted`.
    """
    order = sorted(range(len(ranks)), key=ranks.__getitem__, **kwargs)
    return [items[i] for i in order]
