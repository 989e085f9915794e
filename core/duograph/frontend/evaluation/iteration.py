"""Iterates over values at compile time.

The modules that evaluate loops, unpacking and built-in functions call `iterate`. It must never
iterate over a value whose length is known only when the graph runs.
"""

from __future__ import annotations

import itertools

from ...errors import JoinError
from ...ir.values import HostValue
from ...nn.cell import Cell
from ..diagnostics import unsupported
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.nested import with_subgraphs
from .attributes import get_attribute
from .containers import get_item
from .dispatch import call
from .host import END_OF_ITERATION
from .keys import as_key
from .laziness import check_position, taken
from .outside import ask, is_outside, refuse_stream, special_method, uses_up
from .tensor_methods import record_methods


def iterate(ev: Evaluation, items: Value) -> Value:
    """Return a Python iterator over a value whose items are known at compile time.

    A user's `__iter__`, `__next__` or `__getitem__` is traced into the graph. The items of a
    container that traced code did not create are recorded as constants, which are compared before
    each later call.

    Raises:
        NeedsValue: the items are known only when the graph runs.
    """
    if isinstance(items, Cell):
        ev.captures.members(items)
    record_methods(ev, iter, (items,))
    check_position(ev, items)
    ev.copies.observe(items)
    kind = type(items)
    if kind is set:
        items = ev.copies.in_order(items)
    found = special_method(ev, items, "__iter__")
    if found is not None:
        items = call(ev, found, (items,), {})
        if hasattr(type(items), "__next__") and hasattr(type(items).__next__, "__code__"):
            return _staged_iterator(ev, items)
    if not hasattr(kind, "__iter__") and special_method(ev, items, "__getitem__") is not None:
        return ev.owned.add(_indexed(ev, items))
    if is_outside(ev, items) and kind is not tuple:
        refuse_stream(ev, items, "iteration")
        items = ask(ev, tuple, items)
    made = iter(items)
    return taken(ev, made) if made is items and id(items) in ev.owned.objects else made


def iterate_sized(ev: Evaluation, items: Value) -> Value:
    """Return a Python iterator as `iterate` does, and ask for a size as `list` and others do.

    This calls the user's `__len__`, or else `__length_hint__`, after `__iter__`. Python does so to
    reserve memory: the answer changes nothing, but the method may have effects or raise an error.
    """
    found = iterate(ev, items)
    for name in ("__len__", "__length_hint__"):
        method = special_method(ev, items, name)
        if method is not None:
            try:
                with ev.journal.catching():
                    size = call(ev, method, (items,), {})
            except JoinError:
                raise
            except TypeError:  # Python goes on without an answer
                continue
            if _check_size(name, size):
                break
    return found


def _check_size(name: str, size: Value) -> bool:
    """Return whether Python takes an answer of `__len__` or `__length_hint__` for a size.

    Raises:
        ValueError, TypeError: those of Python.
    """
    if isinstance(size, int):
        if size < 0:
            raise ValueError(f"{name}() should return >= 0")
        return True
    if name == "__length_hint__" and size is not NotImplemented and type(size) in (str, float):
        raise TypeError(f"{name} must be an integer, not {type(size).__name__}")
    return isinstance(size, HostValue)


def _indexed(ev: Evaluation, items: Value) -> Value:
    """Yield items[0], items[1], ... of an object without `__iter__`, up to an IndexError."""
    for i in itertools.count():
        try:
            with ev.journal.catching():
                item = get_item(ev, items, i)
        except IndexError:
            return
        yield item


def _staged_iterator(ev: Evaluation, items: Value) -> Value:
    """Yield the items of a user's iterator at compile time, tracing its `__next__` for each."""
    while True:
        start = len(ev.builder.nodes)
        step = special_method(ev, items, "__next__") or type(items).__next__
        uses_up(ev, items)
        try:
            with ev.journal.catching():
                item = call(ev, step, (items,), {})
        except StopIteration:
            return
        for n in with_subgraphs(ev.builder.nodes[start:]):
            if n.op.name == "host_call" and n.attributes["run"].name == END_OF_ITERATION:
                raise unsupported("For", "The end of an iterator cannot depend on a Tensor")
        yield item


def pairs_of(ev: Evaluation, mapping: Value) -> dict[Value, Value]:
    """Return a mapping, or an iterable of pairs, as a new dict.

    Methods that the user wrote, such as `keys`, are traced into the graph.
    """
    if not hasattr(type(mapping), "keys"):
        pairs = [tuple(iterate(ev, pair)) for pair in iterate(ev, mapping)]
        return dict([(as_key(ev, pair[0]), *pair[1:]) if pair else pair for pair in pairs])
    if type(mapping) is dict:
        ev.copies.observe(mapping)
        return dict(mapping)
    keys = special_method(ev, mapping, "keys")
    if keys is not None or special_method(ev, mapping, "__getitem__") is not None:
        names = iterate(ev, call(ev, get_attribute(ev, mapping, "keys"), (), {}))
        return {k: get_item(ev, mapping, k) for k in names}
    if is_outside(ev, mapping):
        refuse_stream(ev, mapping, "**")
        found: dict[Value, Value] = ask(ev, dict, mapping)
        return dict(found)
    return dict(mapping)


def is_iterable(ev: Evaluation, value: Value) -> bool:
    """Return whether a value's class defines `__iter__` or `__getitem__`; record the answer."""
    special_method(ev, value, "__iter__")
    special_method(ev, value, "__getitem__")
    return hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")
