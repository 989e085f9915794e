"""Functions of sizes that may be symbolic (`dims.Dim`), for the rules of ops and the front end.

Each function does for a symbolic size what Python does for an int. It avoids questions about the
size's value where it can, because the answer to each becomes a guard of the compiled program.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

from .dims import Dim, Real, symbols_in

if TYPE_CHECKING:
    from .dims import Size

__all__ = [
    "holds_symbols", "pinned", "power_of_two", "range_length", "real", "size_like", "slice_bounds",
]  # fmt: skip


def real(value: Any) -> Any:
    """Return `float(value)`; for a symbolic number, a symbolic float."""
    return Real(value.scope, "float", (value,)) if type(value) is Dim else float(value)


def power_of_two(value: Size) -> bool:
    """Return whether a size is known to be a power of two; False for symbolic ones."""
    return type(value) is not Dim and value > 0 and value & (value - 1) == 0


def pinned(value: Any) -> Any:
    """Return a value with each symbolic number in it, also inside containers, replaced by its hint.

    A hint is the number's value in the call that is being compiled. A guard records that the
    compiled program is valid for this value only.
    """
    kind = type(value)
    if kind is Dim or kind is Real:
        return value.scope.pin(value)
    if kind is list:
        return [pinned(v) for v in value] if any(map(holds_symbols, value)) else value
    if isinstance(value, tuple) and any(map(holds_symbols, value)):
        return tuple.__new__(kind, [pinned(v) for v in value])
    if kind is dict and any(map(holds_symbols, value.values())):
        return {k: pinned(v) for k, v in value.items()}
    if kind is slice:
        return slice(pinned(value.start), pinned(value.stop), pinned(value.step))
    return value


def holds_symbols(value: object) -> bool:
    """Return whether a value is a symbolic number, or a container in which one occurs."""
    kind = type(value)
    if kind is Dim or kind is Real:
        return True
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(map(holds_symbols, value))
    if isinstance(value, dict):
        return any(map(holds_symbols, value.values()))
    return kind is slice and any(
        map(holds_symbols, (value.start, value.stop, value.step))  # type: ignore[attr-defined]
    )


def size_like(value: SupportsIndex) -> Any:
    """Return a size as an int; a symbolic size is returned unchanged.

    Raises:
        TypeError: the value is no integer.
    """
    return value if type(value) is Dim else operator.index(value)


def range_length(first: Size, last: Size, step: Size) -> Any:
    """Return the length of ``range(first, last, step)``; it is symbolic if one of the numbers is.

    Raises:
        ValueError: `step` is 0.
    """
    if not symbols_in((first, last, step)):
        return len(range(int(first), int(last), int(step)))
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    if step < 0:
        first, last, step = last, first, -step
    return 0 if last <= first else (last - first + step - 1) // step


def slice_bounds(
    start: Size | None, stop: Size | None, step: Size | None, size: Size
) -> tuple[Any, Any, Any]:
    """Return ``slice(start, stop, step).indices(size)``, symbolic if one of the numbers is.

    `step` must not be 0.
    """
    if not symbols_in((start, stop, step, size)):
        return slice(start, stop, step).indices(size)
    step = 1 if step is None else step
    backward = step < 0
    low, high = (-1, size - 1) if backward else (0, size)

    def bound(value: Size | None, default: Size) -> Size:
        if value is None:
            return default
        if value < 0:
            value = value + size
            return low if value < low else value
        return high if value > high else value

    first, last = (high, low) if backward else (low, high)
    return bound(start, first), bound(stop, last), step
