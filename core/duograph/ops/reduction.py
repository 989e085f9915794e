"""Reductions over axes: primitive and composite ops.

Every op family may use them; users call the functions of `reduction_functions.py` and
`extremes.py`. The ops expect a tuple of non-negative axes and must not receive user input
unchecked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import BOOL, NUMERIC, REAL, bool_, float32, int32, int64
from ..errors import ArgumentValueError
from ..host_arrays import Array
from ..op import op
from ..op_signature import Axes, Axis
from ..sizes import power_of_two, real
from ..tensor import Tensor
from ..types import TensorType, size_of
from . import elementwise
from .comparison import equal, less
from .creation import cast_to, fill, iota
from .division import floor_divide
from .elementwise import mul, neg
from .gather_scatter import gather_elements_by
from .logic import bitwise_xor, logical_not, logical_or, select_by
from .movement import concat_by, slice_by
from .pointwise import conjugate
from .scan import scan_prod
from .shape_primitives import broadcast_reduced, reduce_sum, reduced_shape, reshape_to, transpose_by

__all__ = ["reduce_prod", "reduce_all", "reduce_any"]


def _count(shape: Sequence[int], axis: Axes) -> int:
    return size_of([shape[i] for i in axis])


# ---- primitives ----------------------------------------------------------------------------------


def _not_empty(name: str, x: TensorType, axis: Axes) -> None:
    for i in axis:
        if x.shape[i] == 0:
            raise ArgumentValueError(
                f"{name}: got a tensor of shape {x.shape} to reduce over axis {i}, which is empty; "
                f"wanted at least one element"
            )


def _even_share(x: Tensor, out: Tensor, dout: Tensor, axis: Axes, keepdims: bool) -> tuple[Tensor]:
    """Return the gradient of max or min over axes, from the result `out` and its cotangent `dout`.

    The cotangent is divided evenly among the elements that equal the result. The returned tuple has
    one item, the gradient of `x`.
    """
    kept = reduced_shape(x.shape, axis, True)
    if not keepdims:
        out, dout = reshape_to(out, kept), reshape_to(dout, kept)
    mask = cast_to(equal(x, out), x.dtype)
    found = mask * (dout / reduce_sum(mask, axis, True))
    return (
        found if found.dtype is x.dtype else cast_to(found, x.dtype),
    )  # integer operands: the quotient is floating


@op(dtypes=BOOL + REAL, folds="biu", reduction="max")
def reduce_max(input: Tensor, axis: Axes, keepdims: bool):
    """Primitive op: largest element over `axis`, a tuple of non-negative ints.

    The result is NaN if an element is NaN.
    """


@reduce_max.infer
def _(x, axis, keepdims):
    _not_empty("reduce_max", x, axis)
    return TensorType.of(reduced_shape(x.shape, axis, keepdims), x.dtype)


@reduce_max.reference
def _(x, axis, keepdims):
    return np.max(x, axis=tuple(axis), keepdims=keepdims)


@reduce_max.bprop
def _(x, out, dout, axis, keepdims):
    return _even_share(x, out, dout, axis, keepdims)


@op(dtypes=BOOL + REAL, folds="biu", reduction="min")
def reduce_min(input: Tensor, axis: Axes, keepdims: bool):
    """Primitive op: smallest element over `axis`, a tuple of non-negative ints.

    The result is NaN if an element is NaN.
    """


@reduce_min.infer
def _(x, axis, keepdims):
    _not_empty("reduce_min", x, axis)
    return TensorType.of(reduced_shape(x.shape, axis, keepdims), x.dtype)


@reduce_min.reference
def _(x, axis, keepdims):
    return np.min(x, axis=tuple(axis), keepdims=keepdims)


def mirrored(x: Tensor) -> Tensor:
    """Map elements so that their order is reversed, such as to -x; the map is its own inverse."""
    if x.dtype is bool_:
        return logical_not(x)
    if x.dtype.is_integer:
        ones = -1 if x.dtype.kind == "i" else 2 ** (8 * x.dtype.itemsize) - 1
        return bitwise_xor(x, fill((), ones, x.dtype))
    return mul(x, -1)


@reduce_min.decompose
def _(input, axis, keepdims):
    return mirrored(reduce_max(mirrored(input), axis, keepdims))


@reduce_min.bprop
def _(x, out, dout, axis, keepdims):
    return _even_share(x, out, dout, axis, keepdims)


@op(dtypes=NUMERIC, folds="biu", reduction="*")
def reduce_prod(input: Tensor, axis: Axes, keepdims: bool):
    """Primitive op: product over `axis`, a tuple of non-negative ints."""


@reduce_prod.infer
def _(x, axis, keepdims):
    return TensorType.of(reduced_shape(x.shape, axis, keepdims), x.dtype)


@reduce_prod.reference
def _(x, axis, keepdims):
    wide = np.float32 if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x.dtype
    return np.prod(x, axis=tuple(axis), keepdims=keepdims, dtype=wide).astype(x.dtype)


def _axes_last(x: Tensor, axis: Axes) -> Tensor:
    """Move the given axes of a tensor to the end and merge them into one axis."""
    rest = [i for i in range(x.ndim) if i not in axis]
    moved = transpose_by(x, (*rest, *axis)) if list(axis) != list(range(len(rest), x.ndim)) else x
    return reshape_to(moved, (*[x.shape[i] for i in rest], _count(x.shape, axis)))


@reduce_prod.decompose
def _(input, axis, keepdims):
    x = _axes_last(input, axis)
    n = x.shape[-1]
    if n == 0:
        return fill(reduced_shape(input.shape, axis, keepdims), 1, input.dtype)
    while n > 1:  # multiply the first half by the second; an odd last element is appended unchanged
        half = n // 2
        lower = slice_by(x, *_last_axis(x.shape, 0, half))
        upper = slice_by(x, *_last_axis(x.shape, half, 2 * half))
        product = lower * upper
        if n % 2:
            product = concat_by((product, slice_by(x, *_last_axis(x.shape, n - 1, n))), x.ndim - 1)
        x, n = product, half + n % 2
    return reshape_to(x, reduced_shape(input.shape, axis, keepdims))


def _last_axis(shape: Sequence[int], begin: int, end: int) -> tuple[tuple[int, ...], ...]:
    lead = len(shape) - 1
    return (*[0] * lead, begin), (*shape[:-1], end), (1,) * len(shape)


@reduce_prod.bprop
def _(x, out, dout, axis, keepdims):
    flat = _axes_last(x, axis)
    last = flat.ndim - 1
    others = scan_prod(flat, last, True, False) * scan_prod(flat, last, True, True)
    rest = [i for i in range(x.ndim) if i not in axis]
    order = (*rest, *axis)
    others = reshape_to(others, tuple(x.shape[i] for i in order))
    if order != tuple(range(x.ndim)):
        others = transpose_by(others, tuple(order.index(i) for i in range(x.ndim)))
    return (conjugate(others) * broadcast_reduced(dout, x.shape, axis, keepdims),)


@op(differentiable=False, folds="biu", reduction="and")
def reduce_all(input: Tensor, axis: Axes, keepdims: bool):
    """Primitive op: logical and of the elements over `axis` (nonzero is true); True if empty."""


@op(differentiable=False, folds="biu", reduction="or")
def reduce_any(input: Tensor, axis: Axes, keepdims: bool):
    """Primitive op: logical or of the elements over `axis` (nonzero is true); False if empty."""


def _bool_reduced(x, axis, keepdims):
    return TensorType.of(reduced_shape(x.shape, axis, keepdims), bool_)


reduce_all.infer(_bool_reduced)
reduce_any.infer(_bool_reduced)


@reduce_all.reference
def _(x, axis, keepdims):
    return np.all(x.astype(bool), axis=tuple(axis), keepdims=keepdims)


@reduce_any.reference
def _(x, axis, keepdims):
    return np.any(x.astype(bool), axis=tuple(axis), keepdims=keepdims)


@reduce_any.decompose
def _(input, axis, keepdims):
    truth = input if input.dtype is bool_ else cast_to(input, bool_)
    return cast_to(reduce_sum(cast_to(truth, int32), axis, keepdims), bool_)


@reduce_all.decompose
def _(input, axis, keepdims):
    truth = input if input.dtype is bool_ else cast_to(input, bool_)
    return logical_not(reduce_any(logical_not(truth), axis, keepdims))


# the primitives `argmax` and `argmin`; the public functions of `extremes` have these names
@op(name="argmax", dtypes=BOOL + REAL, differentiable=False)
def argmax_along(input: Tensor, axis: Axis):
    """Primitive op: int64 index of the first maximum along `axis`, which the result does not have.

    NaN counts as the maximum.
    """


@op(name="argmin", dtypes=BOOL + REAL, differentiable=False)
def argmin_along(input: Tensor, axis: Axis):
    """Primitive op: int64 index of the first minimum along `axis`, which the result does not have.

    NaN counts as the minimum.
    """


@argmax_along.infer
def _(x, axis):
    _not_empty("argmax", x, (axis,))
    return TensorType.of(reduced_shape(x.shape, (axis,), False), int64)


@argmin_along.infer
def _(x, axis):
    _not_empty("argmin", x, (axis,))
    return TensorType.of(reduced_shape(x.shape, (axis,), False), int64)


@argmax_along.reference
def _(x, axis):
    return np.argmax(_no_bfloat(x), axis=axis)


@argmin_along.reference
def _(x, axis):
    return np.argmin(_no_bfloat(x), axis=axis)


def _no_bfloat(x: Array) -> Array:
    """Convert a bfloat16 array to float32, because NumPy's argmax of bfloat16 ignores NaN."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


@argmax_along.decompose
def _(input, axis):
    x = cast_to(input, int32) if input.dtype is bool_ else input
    best = reduce_max(x, (axis,), True)
    hit = equal(x, best)
    if x.dtype.is_floating:
        unordered = logical_not(equal(x, x))
        hit = logical_or(hit, unordered)
    n = x.shape[axis]
    count = iota(x.shape, axis, int64)
    first = select_by(hit, count, fill((), n, int64))
    return reduce_min(first, (axis,), False)


@argmin_along.decompose
def _(input, axis):
    x = cast_to(input, int32) if input.dtype is bool_ else input
    return argmax_along(mirrored(x), axis)


# ---- composites ----------------------------------------------------------------------------------


@op(dtypes=NUMERIC)
def reduce_mean(input: Tensor, axis: Axes, keepdims: bool):
    """Composite op: mean over `axis`, a tuple of non-negative ints.

    The mean of integers is an integer, rounded towards zero.
    """
    n = _count(input.shape, axis)
    dtype = input.dtype
    if dtype.is_integer:
        total = reduce_sum(cast_to(input, int64), axis, keepdims)
        whole = floor_divide(elementwise.abs(total), n or 1)
        return cast_to(select_by(less(total, 0), neg(whole), whole), dtype)
    narrow = dtype.is_floating and dtype.itemsize == 2
    total = reduce_sum(cast_to(input, float32) if narrow else input, axis, keepdims)
    # both are exact for a power of two, and multiplying is faster
    found = total * (1.0 / n) if power_of_two(n) else total / real(n)
    return cast_to(found, dtype) if narrow else found


@op(dtypes=BOOL + REAL)
def max_with_index(input: Tensor, axis: Axis, keepdims: bool):
    """Composite op: largest element along one axis, and its index; returns (values, indices).

    Of equal elements, only the first one is taken, and only that one gets the gradient.
    """
    return _picked(input, argmax_along(input, axis), axis, keepdims)


@op(dtypes=BOOL + REAL)
def min_with_index(input: Tensor, axis: Axis, keepdims: bool):
    """Composite op: smallest element along one axis, and its index; returns (values, indices).

    Of equal elements, only the first one is taken, and only that one gets the gradient.
    """
    return _picked(input, argmin_along(input, axis), axis, keepdims)


def _picked(x: Tensor, index: Tensor, axis: int, keepdims: bool) -> tuple[Tensor, Tensor]:
    kept = reshape_to(index, reduced_shape(x.shape, (axis,), True))
    values = gather_elements_by(x, kept, axis)
    return (values, kept) if keepdims else (reshape_to(values, index.shape), index)
