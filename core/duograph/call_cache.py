"""Caches eager calls of functions that are made of ops, by the types of their arguments.

The modules of `ops` mark such functions with `cached_call`. From the third call with the same types
and attributes on, a prepared call runs: a function, made for these types, that skips the checks and
conversions of the original. Only functions whose result depends on nothing but operands, attributes
and the device may be marked: no random numbers, no in-place writes, no settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from .advice import tensor_hint
from .call_names import call_name_of, leave
from .errors import ArgumentError, DuographError
from .runtime_state import runtime_state

__all__ = [
    "cached_call",
    "clear_cached_calls",
    "copy_identity",
    "exchange",
    "exchange_cached_calls",
    "refuse_operand",
]

F = TypeVar("F", bound=Callable[..., object])

# Calls kept per function; a function with ever new types starts over rather than growing.
_LIMIT = 1024
# Prepared calls by key.
Table: TypeAlias = "dict[Hashable, Callable[..., object]]"
# For each function: prepared calls, those of the other form (`exchange_cached_calls`), and the keys
# of calls that were made once.
_caches: list[tuple[Table, Table, set[Hashable]]] = []


def clear_cached_calls() -> None:
    """Clear the caches of all functions decorated with `cached_call`.

    It is called when the rules of an op, or the device, have changed.
    """
    for table, other, seen in _caches:
        table.clear()
        other.clear()
        seen.clear()


def exchange_cached_calls() -> None:
    """Toggle whether the prepared calls of all marked functions report to a profiler.

    Marked functions are those decorated with `cached_call`. Each has two tables of prepared calls,
    with and without reports; this function exchanges them, and the next call exchanges them back.
    """
    for table, other, _ in _caches:
        exchange(table, other)


def exchange(table: Table, other: Table) -> None:
    """Exchange the contents of two dictionaries in place.

    Assigning new dictionaries would not do, because functions hold references to `table`.
    """
    if table or other:
        held = dict(table)
        table.clear()
        table.update(other)
        other.clear()
        other.update(held)


def cached_call(function: F) -> F:
    """Decorator for a function of Tensors and hashable attributes: caches its prepared calls.

    The key of a call has the types of Tensors, and value and class of all other arguments; a list
    counts as a tuple. Calls with a float that is zero or NaN are not cached: 0.0 and -0.0 are
    equal, and NaN is not equal to itself. The decorated function has the undecorated one as its
    attribute `uncached`.
    """
    table: Table = {}
    seen: set[Hashable] = set()
    _caches.append((table, {}, seen))

    def guarded(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            refuse_operand(function.__name__.lstrip("_"), function, args, kwargs, error)
            raise

    def slow_call(
        key: tuple[Hashable, ...], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        result = guarded(*args, **kwargs)
        if not all([_has_exact_key(x) for x in (*args, *kwargs.values())]):
            return result
        if key not in seen:
            if len(seen) >= _LIMIT:
                seen.clear()
                table.clear()
            seen.add(key)
        elif key == _key(args, kwargs):
            prepared = runtime_state.prepare_call(function, args, kwargs, result)
            if prepared is None:
                prepared = function
            elif any(x.__class__ in (tuple, list) for x in (*args, *kwargs.values())):
                prepared = _with_exact_items(prepared, guarded)
            table[key] = prepared
        else:  # the call moved an operand to a device
            table[key] = function
        return result

    def call(*args: object, **kwargs: object) -> object:
        if runtime_state.staging:
            return guarded(*args, **kwargs)
        if kwargs:
            values = (*args, *kwargs.values())
            key = (*kwargs, *[getattr(x, "_type", x) for x in values], *map(type, values))
        else:
            key = (*[getattr(x, "_type", x) for x in args], *map(type, args))
        try:
            prepared = table.get(key)
        except TypeError:  # an argument without a hash
            key = tuple([tuple(x) if x.__class__ is list else x for x in key])
            try:
                prepared = table.get(key)
            except TypeError:
                return guarded(*args, **kwargs)
        if prepared is None:
            return slow_call(key, args, kwargs)
        try:
            return prepared(*args, **kwargs)
        except DuographError as error:
            leave(error, call_name_of(function))
            raise

    copy_identity(function, call)
    call.uncached = function  # type: ignore[attr-defined]
    return cast("F", call)


def _with_exact_items(
    prepared: Callable[..., object], function: Callable[..., object]
) -> Callable[..., object]:
    """Return a function that calls `prepared` if its sequences have only exact items.

    Otherwise, it calls `function`. The key of (1, 1), with which `prepared` was stored, equals that
    of (True, 1.0), and `function` may refuse these or return another dtype.
    """

    def call(*args: object, **kwargs: object) -> object:
        for x in (*args, *kwargs.values()) if kwargs else args:
            if (x.__class__ is tuple or x.__class__ is list) and not _exact_items(x):
                return function(*args, **kwargs)
        return prepared(*args, **kwargs)

    return call


def _exact_items(items: Any) -> bool:
    """Return whether a sequence has only ints, strings, None, and tuples of these as items."""
    for x in items:
        kind = x.__class__
        if kind is int or kind is str or x is None or (kind is tuple and _exact_items(x)):
            continue
        return False
    return True


def refuse_operand(
    owner: str,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    error: Exception,
) -> None:
    """Raise ArgumentError if a parameter for a Tensor, or a tuple of Tensors, got anything else.

    Returns None if every such parameter got what its annotation says.

    Functions and layers read dtype and shape of their operands before an op checks these. An object
    without these attributes raises an AttributeError there, which this function explains.

    Args:
        owner: the name for the message.
        function: the function that was called.
        args, kwargs: arguments of the call.
        error: the exception that the call raised; it becomes the cause of the new one.
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:  # another number of arguments
        return
    for name, value in bound.items():
        kind = str(function.__annotations__.get(name))
        values = {name: value} if kind == "Tensor" else {}
        if kind.startswith("tuple[Tensor") and isinstance(value, (tuple, list)):
            values = {f"{name}[{i}]": v for i, v in enumerate(value)}
        for label, v in values.items():
            if not hasattr(v, "dtype"):
                found = type(v).__name__
                raise ArgumentError(
                    f"{owner}: got {found} for {label}; wanted a Tensor{tensor_hint(v)}"
                ) from error


def copy_identity(function: Callable[..., object], wrapper: Callable[..., object]) -> None:
    """Give a wrapper the name, documentation and signature of a function.

    It does what `functools.update_wrapper` does, in a fifth of the time: a thousand functions are
    wrapped when the package is imported.
    """
    wrapper.__dict__.update(function.__dict__)
    wrapper.__module__ = function.__module__
    wrapper.__name__ = function.__name__
    wrapper.__qualname__ = function.__qualname__
    wrapper.__doc__ = function.__doc__
    wrapper.__annotations__ = function.__annotations__
    wrapper.__wrapped__ = function  # type: ignore[attr-defined]


def _key(args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[Hashable, ...]:
    """Return the key under which a cached function finds the prepared call for its arguments.

    It has the names of keyword arguments, the types of Tensors, the values of other arguments, and
    the classes of all arguments.
    """
    values = (*args, *kwargs.values())
    key = (*kwargs, *[getattr(x, "_type", x) for x in values], *map(type, values))
    return tuple([tuple(x) if x.__class__ is list else x for x in key])


def _has_exact_key(value: object) -> bool:
    """Return whether an argument may be part of a cache key.

    Every equal argument of the same class must lead to the same result. So a float, or a part of a
    complex number, may be neither zero (0.0 equals -0.0) nor NaN, which equals nothing. The key
    does not have the classes of items (1 equals 1.0 and True). So a sequence may hold only ints,
    strings, None and tuples of these.
    """
    if isinstance(value, (tuple, list)):
        return value.__class__ in (tuple, list) and _exact_items(value)
    if isinstance(value, (complex, np.complexfloating)):
        return _has_exact_key(value.real) and _has_exact_key(value.imag)
    return not isinstance(value, (float, np.inexact)) or bool(value != 0 and value == value)
