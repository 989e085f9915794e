"""Implements `pad` of `duograph.numpy`, with all modes of NumPy.

Users call `pad`. Axes are padded one after the other, as in NumPy; none of the modes may read the
value of a Tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as _np
from numpy.typing import ArrayLike

from .. import ops as _ops
from ..errors import ArgumentError, ArgumentValueError
from ..tensor import Tensor
from .creation import linspace
from .joining import apply_along_axis
from .operands import TensorLike, along, tensor_of, with_dtype
from .reductions import amax, amin, mean

__all__ = ["pad"]

Pair: TypeAlias = "tuple[Any, Any]"


def pad(
    arr: TensorLike,
    pad_width: ArrayLike,
    mode: str | Callable[..., object] = "constant",
    stat_length: ArrayLike | None = None,
    constant_values: ArrayLike = 0,
    end_values: ArrayLike = 0,
    reflect_type: str = "even",
    **kwargs: object,
) -> Tensor:
    """Pad each axis at both ends.

    Args:
        arr: array-like.
        pad_width: number of elements: an int, a pair, or a pair for each axis.
        mode: how the new elements are chosen.

            - ``"constant"``: `constant_values`; ``"empty"``: zeros.
            - ``"edge"``: the element at the edge.
            - ``"linear_ramp"``: a ramp from the edge to `end_values`.
            - ``"maximum"``, ``"minimum"``, ``"mean"``, ``"median"``: of the `stat_length` elements
              next to the edge.
            - ``"reflect"``, ``"symmetric"``: the mirror image, without and with the edge.
            - ``"wrap"``: the elements from the other end.
            - a function, called with each padded 1-D slice, the pair of widths, the axis and
              `kwargs` as a dict; it returns the new slice.
        stat_length: number of elements: an int, a pair, or a pair for each axis; None is all.
        constant_values: a number, a pair, or a pair for each axis.
        end_values: a number, a pair, or a pair for each axis.
        reflect_type: ``"even"``, or ``"odd"`` for twice the edge minus the mirror image.
        kwargs: arguments of the function.

    Returns:
        Tensor.

    Raises:
        TypeError: keyword arguments that `mode` has no use for.
        ValueError: another mode or `reflect_type`, or numbers that do not fit.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.pad([1, 2, 3], (1, 2), "reflect"))
        [2 1 2 3 2 1]
    """
    x = tensor_of(arr)
    widths = [(int(a), int(b)) for a, b in _pairs("pad_width", pad_width, x.ndim)]
    if any(n < 0 for both in widths for n in both):
        raise ArgumentValueError(f"pad: got pad_width={pad_width!r}; wanted no negative number")
    if callable(mode):
        return _padded_by(mode, x, widths, kwargs)
    if kwargs:
        raise ArgumentError(f"pad: got {', '.join(kwargs)} with mode={mode!r}; wanted a function")
    if reflect_type not in ("even", "odd"):
        raise ArgumentValueError(f"pad: got reflect_type={reflect_type!r}; wanted 'even' or 'odd'")
    ends = {"constant": constant_values, "empty": 0, "linear_ramp": end_values}
    if mode in ends:
        values = _pairs("constant_values or end_values", ends[mode], x.ndim)
        grow = _ramp if mode == "linear_ramp" else _constant
        for axis, (width, value) in enumerate(zip(widths, values, strict=True)):
            x = _joined(x, axis, *(grow(x, axis, width[k], value[k], k) for k in (0, 1)))
        return x
    if mode in _STATISTICS:
        lengths = _pairs("stat_length", stat_length, x.ndim)
        for axis, (width, length) in enumerate(zip(widths, lengths, strict=True)):
            x = _joined(
                x, axis, *(_statistic(x, axis, width[k], mode, length[k], k) for k in (0, 1))
            )
        return x
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        known = ("constant", "edge", "empty", "linear_ramp", "reflect", "symmetric", "wrap")
        raise ArgumentValueError(
            f"pad: got mode={mode!r}; wanted one of {', '.join((*known, *_STATISTICS))}"
        )
    for axis, width in enumerate(widths):
        x = _gathered(x, axis, width, mode, reflect_type)
    return x


def _pairs(name: str, value: ArrayLike | None, rank: int) -> list[Pair]:
    """Convert a per-axis argument of `pad`, such as `pad_width`, to a pair for each of `rank` axes.

    `value` is a number, a pair, or a pair for each axis; None results in pairs of None. `name` is
    the argument's name in errors.
    """
    if value is None:
        return [(None, None)] * rank
    given = value.tolist() if isinstance(value, Tensor) else value
    try:
        found: list[Pair] = _np.broadcast_to(_np.asarray(given), (rank, 2)).tolist()
    except ValueError:
        raise ArgumentValueError(
            f"pad: got {name}={value!r} for {rank} axes; wanted a number, a pair, or a pair for "
            f"each axis"
        ) from None
    return found


def _edge(x: Tensor, axis: int, end: int) -> Tensor:
    """Return the first or the last slice along an axis, as an axis of size 1.

    It is the first if `end` is 0, else the last.
    """
    return along(x, axis, slice(0, 1) if end == 0 else slice(x.shape[axis] - 1, None))


def _joined(x: Tensor, axis: int, before: Tensor | None, after: Tensor | None) -> Tensor:
    parts = [p for p in (before, x, after) if p is not None]
    return _ops.concat(parts, axis) if len(parts) > 1 else x


def _sized(x: Tensor, axis: int, count: int) -> tuple[int, ...]:
    return (*x.shape[:axis], count, *x.shape[axis + 1 :])


def _constant(x: Tensor, axis: int, count: int, value: float, end: int) -> Tensor | None:
    del end
    if not count:
        return None
    return _ops.broadcast_to(Tensor(value, x.dtype), _sized(x, axis, count))


def _ramp(x: Tensor, axis: int, count: int, value: float, end: int) -> Tensor | None:
    if not count:
        return None
    edge = _edge(x, axis, end)
    steps = linspace(0.0, 1.0, count, endpoint=False)  # 0 at the far end
    if end:
        steps = _ops.flip(steps, (0,))
    steps = steps.reshape((1,) * axis + (count,) + (1,) * (x.ndim - axis - 1))
    ramp = value + (edge - value) * steps
    return with_dtype(_ops.round(ramp) if x.dtype.is_integer else ramp, x.dtype)


def _median(x: Tensor, axis: int, keepdims: bool) -> Tensor:
    rows, half = _ops.sort(x, axis)[0], x.shape[axis] // 2
    if x.shape[axis] % 2:
        return along(rows, axis, slice(half, half + 1))
    return mean(along(rows, axis, slice(half - 1, half + 1)), axis, keepdims)


_STATISTICS: dict[str, Callable[..., Tensor]] = {
    "maximum": amax,
    "minimum": amin,
    "mean": mean,
    "median": _median,
}


def _statistic(
    x: Tensor, axis: int, count: int, mode: str, length: int | None, end: int
) -> Tensor | None:
    if not count:
        return None
    size = x.shape[axis]
    near = size if length is None else min(int(length), size)
    if near < 1:
        raise ArgumentValueError(f"pad: got stat_length={length}; wanted at least 1")
    part = along(x, axis, slice(0, near) if end == 0 else slice(size - near, None))
    value = _STATISTICS[mode](part, axis, True)
    if x.dtype.is_integer and mode in ("mean", "median"):
        value = _ops.round(value)
    return _ops.broadcast_to(with_dtype(value, x.dtype), _sized(x, axis, count))


def _gathered(x: Tensor, axis: int, width: tuple[int, int], mode: str, kind: str) -> Tensor:
    """Pad an axis with copies of its own elements, in NumPy's pad mode `mode`.

    If `kind` is "odd", the modes "reflect" and "symmetric" pad with twice the edge element minus
    the reflected element.
    """
    if width == (0, 0):
        return x
    positions = _np.arange(x.shape[axis])
    if not positions.size:
        raise ArgumentValueError(f"pad: got an empty axis with mode={mode!r}; wanted elements")
    if kind == "odd" and mode in ("reflect", "symmetric") and positions.size > 1:
        return _odd_reflection(x, axis, width, int(mode == "reflect"))
    rows = _np.pad(positions, width, mode)  # type: ignore[call-overload]
    out: Tensor = _ops.gather(x, Tensor(rows), axis)
    return out


def _odd_reflection(x: Tensor, axis: int, width: tuple[int, int], skip: int) -> Tensor:
    """Pad an axis with twice the edge element minus the mirror image.

    Each iteration reflects at most the present length of the axis, so wide padding takes several.
    `skip` is 1 if the edge element is not part of the mirror image, else 0.
    """
    left, right = width
    while left or right:
        there = x.shape[axis] - skip
        take = min(left, there)
        if take:
            image = _ops.flip(along(x, axis, slice(skip, take + skip)), (axis,))
            x = _ops.concat([2 * _edge(x, axis, 0) - image, x], axis)
            left -= take
        size = x.shape[axis]
        take = min(right, there)
        if take:
            image = _ops.flip(along(x, axis, slice(size - take - skip, size - skip)), (axis,))
            x = _ops.concat([x, 2 * _edge(x, axis, 1) - image], axis)
            right -= take
    return x


def _padded_by(
    function: Callable[..., object],
    x: Tensor,
    widths: list[tuple[int, int]],
    kwargs: dict[str, object],
) -> Tensor:
    """Pad all axes with zeros, then replace each 1-D slice by the result of the user's function.

    Returns the padded tensor. As in NumPy, the function is called with (slice, widths, axis,
    kwargs).
    """
    for axis, width in enumerate(widths):
        x = _joined(x, axis, *(_constant(x, axis, width[k], 0, k) for k in (0, 1)))
    for axis, width in enumerate(widths):
        x = apply_along_axis(function, axis, x, width, axis, kwargs)
    return x
