"""Functions that create evenly spaced numbers: arange, range, linspace, logspace.

Users call them with numbers or 0-d tensors. The number of results must be known when a graph is
built, since it is a size.
"""

from __future__ import annotations

import builtins

import numpy as np

from ..call_cache import cached_call
from ..dtype import DTypeLike, as_dtype, float32, int32, int64
from ..errors import ArgumentValueError
from ..op import op
from ..sizes import range_length
from ..tensor import Tensor
from . import powers
from .arguments import Number, refuse_complex
from .comparison import less
from .creation import cast, iota
from .creation_functions import number_and_dtype, sizes_of
from .logic import select_by
from .shape_primitives import reshape_to

__all__ = ["arange", "range", "make_range", "linspace", "logspace"]


@cached_call
def arange(
    start: Tensor | Number = 0,
    end: Tensor | Number | None = None,
    step: Tensor | Number = 1,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the numbers from `start` up to, but not including, `end` (`mindspore.ops.arange`).

    Args:
        start, end, step: numbers or 0-d Tensors; a single argument is the end.
        dtype: default int64 when all are integers, else float32.

    Raises:
        ValueError: `step` is 0 or leads away from `end`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.arange(1, 7, 2)
        Tensor(shape=[3], dtype=Int64, value= [1, 3, 5])
    """
    if end is None:
        start, end = 0, start
    first, last, by = (number_and_dtype("arange", v)[0] for v in (start, end, step))
    whole = not any(isinstance(v, float) for v in (first, last, by))
    found = (int64 if whole else float32) if dtype is None else as_dtype(dtype)
    if by == 0:
        raise ArgumentValueError("arange: got step=0; wanted a number above or below 0")
    if (last - first) * by < 0:
        raise ArgumentValueError(
            f"arange: got the step {by} from {first} to {last}; wanted one towards the end"
        )
    if whole:
        count = range_length(first, last, by)
        kind = found if found in (int32, int64) else int64
        out = iota((count,), 0, kind)
        if by != 1:
            out = out * by
        if first != 0:
            out = out + first
        return cast(out, found)
    return Tensor(np.arange(float(first), last, by).astype(found.np))


def range(
    start: Tensor | Number,
    end: Tensor | Number | None = None,
    step: Tensor | Number = 1,
    maxlen: int = 1000000,
) -> Tensor:
    """Return the numbers from `start` up to, but not including, `end`; the dtype is that of the
    arguments (`mindspore.ops.range`).

    Raises:
        ValueError: `step` is 0, or more than `maxlen` numbers.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.range(0, 6, 2)
        Tensor(shape=[3], dtype=Int64, value= [0, 2, 4])
    """
    kinds = [v.dtype for v in (start, end, step) if isinstance(v, Tensor)]
    made = arange(start, end, step, dtype=kinds[0] if kinds else None)
    if made.size > maxlen:
        raise ArgumentValueError(f"range: got {made.size} numbers; wanted at most maxlen={maxlen}")
    return made


def make_range(*args: int) -> tuple[int, ...]:
    """Return ``tuple(range(...))``, Python's range (`mindspore.ops.make_range`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.make_range(1, 7, 2)
        (1, 3, 5)
    """
    return tuple(builtins.range(*[number_and_dtype("make_range", a)[0] for a in args]))


@op(primitive="LinSpace")
def linspace(start: Tensor, end: Tensor, steps: int):
    """Return `steps` evenly spaced numbers from `start` to `end`, both included
    (`mindspore.ops.linspace`).

    Args:
        start, end: numbers, or Tensors of the same shape; the result has this shape and, after it,
            the axis of the numbers.
        steps: number of results along the last axis.

    Returns:
        Tensor, float32 unless `start` is a Tensor of another floating dtype.

    Raises:
        ValueError: `steps` is negative.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.linspace(0, 1, 5).asnumpy()
        array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    part = iota((steps,), 0, start.dtype) * (1.0 / max(steps - 1, 1))
    first = reshape_to(start, (*start.shape, 1))
    last = reshape_to(end, (*end.shape, 1))
    half = less(iota((steps,), 0, int32), (steps + 1) // 2)
    # computed from the nearer end, so that both ends are exact
    return select_by(half, first + (last - first) * part, last - (last - first) * (1.0 - part))


@linspace.normaliser
def _(start: Tensor | Number, end: Tensor | Number, steps: int):
    (count,) = sizes_of("linspace", steps)
    for end_value in (start, end):
        refuse_complex("linspace", end_value, float32)
    given = [v.dtype for v in (start, end) if isinstance(v, Tensor)]
    if not given:
        return Tensor(np.linspace(start, end, count).astype(np.float32))
    found = given[0] if given[0].is_floating else float32
    first, last = (cast(v if isinstance(v, Tensor) else Tensor(v), found) for v in (start, end))
    return (first, last, count)


def logspace(
    start: Tensor | Number,
    end: Tensor | Number,
    steps: int,
    base: int = 10,
    *,
    dtype: DTypeLike = float32,
) -> Tensor:
    """Return `base` to the power of each of `linspace(start, end, steps)`
    (`mindspore.ops.logspace`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logspace(0, 2, 3)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  1.00000000e+01,  1.00000000e+02])
    """
    if not isinstance(start, Tensor) and not isinstance(end, Tensor):
        (count,) = sizes_of("logspace", steps)
        return Tensor(
            np.power(float(base), np.linspace(start, end, count)).astype(as_dtype(dtype).np)
        )
    return cast(powers.pow(float(base), linspace.public(start, end, steps)), dtype)
