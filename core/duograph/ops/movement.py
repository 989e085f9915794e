"""Primitive ops that move elements: slices, slice updates, flips, concatenation, padding, identity.

All but identity and concat decompose into `strided_copy` (reading) or a scatter over flat positions
(writing), so a backend with only the minimal set of kernels supports them. The public functions in
`shaping.py`, `joining.py` and `padding.py` call the ops, with normalised axes, begins and ends. The
ops must not accept negative ones, so that equal calls have equal attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir.basic_ops import check_number
from ..op import op
from ..op_signature import Axes, Axis, Number
from ..runtime_state import runtime_state
from ..sizes import range_length
from ..tensor import Tensor
from ..types import TensorType, size_of
from .arguments import ints_of
from .creation import fill, zeros_of
from .gather_scatter import scatter_set_by
from .primitive import primitive
from .shape_primitives import dense_strides, flat_positions, reshape_to, strided_copy

__all__ = ["reshape", "identity", "stop_gradient"]


@primitive("Reshape", op="reshape")
def reshape(input: Tensor, shape: Sequence[int] | int) -> Tensor:
    """Change the shape, keeping the elements in row-major order (`mindspore.ops.reshape`).

    Args:
        input: Tensor of any shape and dtype.
        shape: ints; one of them may be -1, which stands for the size that fits.

    Returns:
        Tensor of that shape, which uses the same buffer.

    Raises:
        ValueError: the sizes differ, or more than one -1.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.reshape(ms.Tensor([1, 2, 3, 4]), (2, -1))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [3, 4]])
    """
    if shape.__class__ is tuple and not runtime_state.staging:
        call = _reshaped.get((input._type, shape))  # the table holds only resolved shapes
        if call is not None:
            return call(input)
    return reshape_to(input, resolve_shape(input.shape, ints_of("reshape", "shape", shape)))


_reshaped = reshape_to.table


def resolve_shape(have: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    """Return the shape `wanted` with its -1 replaced by the size that fits.

    `have` is the shape of the tensor that is reshaped.

    Raises:
        ShapeError: there is more than one -1, or no size fits.
    """
    rest, open_ = 1, 0
    for n in wanted:
        if n >= 0:
            rest *= n
        elif n == -1:
            open_ += 1
        else:
            open_ = 2
    if not open_:
        return tuple(wanted)
    total = size_of(tuple(have))
    if open_ > 1 or not rest or total % rest:
        got = (
            f"reshape: got the new shape {tuple(wanted)} for shape {tuple(have)} of {total} "
            "elements"
        )
        if open_ > 1:
            raise ShapeError(f"{got}; wanted sizes from 0 on, and at most one -1")
        if not rest:
            raise ShapeError(f"{got}; wanted no size of 0 beside -1, which would have no size")
        raise ShapeError(
            f"{got}; wanted the product of the sizes beside -1 ({rest}) to divide {total}"
        )
    return tuple([total // rest if n == -1 else n for n in wanted])


@op(name="identity", primitive="Identity", composite=False, alias=True)
def identity(x: Tensor):
    """Return a tensor of the same value, and any other value itself (`mindspore.ops.identity`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.identity(ms.Tensor([1, 2]))
        Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """


@identity.infer
def _(x):
    return x


identity.reference(np.array)


@identity.normaliser
def _(x: Tensor):
    """Make `identity` return values other than tensors unchanged, such as numbers and None."""
    return (x,) if hasattr(x, "_type") else x


@identity.bprop
def _(x, out, dout):
    return (dout,)


@op(
    name="stop_gradient",
    primitive="StopGradient",
    composite=False,
    alias=True,
    differentiable=False,
)
def stop_gradient(value: Tensor):
    """Return the same value and stop its gradient (`mindspore.ops.stop_gradient`).

    Examples:
        >>> import duograph as ms
        >>> ms.grad(lambda x: x * ms.ops.stop_gradient(x))(ms.Tensor(3.0))
        Tensor(shape=[], dtype=Float32, value= 3)
    """


@stop_gradient.infer
def _(x):
    return x


stop_gradient.reference(np.array)


@stop_gradient.normaliser
def _(value: Tensor):
    """Make `stop_gradient` return values other than tensors unchanged, such as numbers and None."""
    return (value,) if hasattr(value, "dtype") else value


def slice_shape(
    begin: Sequence[int], end: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    """Return the shape of a slice with one normalised (begin, end, stride) per axis."""
    return tuple(range_length(b, e, s) for b, e, s in zip(begin, end, strides, strict=True))


@op(name="strided_slice", composite=False, folds="biufc", per_axis=("begin", "end", "strides"))
def slice_by(input: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]):
    """Primitive op: strided slice, with one normalised (begin, end, stride) per axis.

    Begins and ends count from the first element. With a negative stride, an end of -1 means that
    the first element is included.
    """


@slice_by.infer
def _slice_type(x, begin, end, strides):
    if not len(begin) == len(end) == len(strides) == x.ndim:
        raise ShapeError(
            f"strided_slice: got {len(begin)} begins, {len(end)} ends and {len(strides)} "
            f"strides for "
            f"shape {x.shape}; wanted one of each per axis"
        )
    shape = slice_shape(begin, end, strides)
    for axis, (b, s, m, n) in enumerate(zip(begin, strides, shape, x.shape, strict=True)):
        last = b + (m - 1) * s
        if (m and not (0 <= b < n and 0 <= last < n)) or max(abs(b), abs(s)) >= 2**62:
            raise ShapeError(
                f"strided_slice: got positions {b} to {last} on axis {axis} of size {n}; "
                f"wanted 0 to {n - 1}"
            )
    return TensorType.of(shape, x.dtype)


@slice_by.reference
def _(x, begin, end, strides):
    return x[_slices(begin, end, strides)]


def _slices(begin, end, strides):
    return tuple(
        slice(b, e if e >= 0 else None, s) if len(range(b, e, s)) else slice(0)
        for b, e, s in zip(begin, end, strides, strict=True)
    )


@slice_by.decompose
def _(x, begin, end, strides):
    shape = slice_shape(begin, end, strides)
    steps = dense_strides(x.shape)
    offset = sum(b * d for b, d in zip(begin, steps, strict=True)) if size_of(shape) else 0
    return strided_copy(x, shape, [s * d for s, d in zip(strides, steps, strict=True)], offset)


@slice_by.bprop
def _(x, out, dout, begin, end, strides):
    if all(s == 1 for s in strides) and out.size:
        high = [n - b - m for n, b, m in zip(x.shape, begin, out.shape, strict=True)]
        return (pad_by(dout, begin, high, 0),)
    return (update_by(zeros_of(x._type.plain), dout, begin, end, strides),)


def slice_axis(input: Tensor, axis: int, begin: int, end: int) -> Tensor:
    """Return the slice `begin` to `end` - 1 of one axis of `input`, with all of the other axes."""
    shape = input.shape
    if begin == 0 and end == shape[axis]:
        return input
    n = len(shape)
    low = (0,) * axis + (begin,) + (0,) * (n - axis - 1)
    return slice_by(input, low, shape[:axis] + (end,) + shape[axis + 1 :], (1,) * n)


@op(name="slice_update", composite=False)
def update_by(
    input: Tensor, value: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]
):
    """Primitive op: a copy of `input` with a slice replaced by `value`, of the slice's shape.

    `begin`, `end` and `strides` are those of `slice_by`.
    """


@update_by.infer
def _(x, v, begin, end, strides):
    found = _slice_type(x, begin, end, strides)
    if v.shape != found.shape or v.dtype is not x.dtype:
        raise ShapeError(
            f"slice_update: got a value of {v} for a slice of {found}; wanted the same"
        )
    return x


@update_by.reference
def _(x, v, begin, end, strides):
    out = np.array(x)
    out[_slices(begin, end, strides)] = v
    return out


@update_by.decompose
def _(x, v, begin, end, strides):
    if not v.size:
        return identity(x)
    steps = dense_strides(x.shape)
    offset = sum(b * d for b, d in zip(begin, steps, strict=True))
    at = flat_positions(
        v.shape, [s * d for s, d in zip(strides, steps, strict=True)], offset, x.size
    )
    flat = scatter_set_by(
        reshape_to(x, (x.size,)), reshape_to(at, (v.size,)), reshape_to(v, (v.size,)), 0
    )
    return reshape_to(flat, x.shape)


@update_by.bprop
def _(x, v, out, dout, begin, end, strides):
    dx = update_by(dout, zeros_of(v._type.plain), begin, end, strides)
    return dx, slice_by(dout, begin, end, strides)


@op(name="flip", composite=False, folds="biufc")
def flip_by(input: Tensor, axes: Axes):
    """Primitive op: `input` with the order of its elements reversed along `axes`."""


@flip_by.infer
def _(x, axes):
    return x


@flip_by.reference
def _(x, axes):
    return np.flip(x, axes)


@flip_by.decompose
def _(x, axes):
    if not x.size:
        return identity(x)
    steps = list(dense_strides(x.shape))
    offset = sum((x.shape[a] - 1) * steps[a] for a in axes)
    for a in axes:
        steps[a] = -steps[a]
    return strided_copy(x, x.shape, steps, offset)


@flip_by.bprop
def _(x, out, dout, axes):
    return (flip_by(dout, axes),)


@op(name="concat", composite=False, promote="common", folds="biufc")
def concat_by(tensors: Sequence[Tensor], axis: Axis):
    """Primitive op: `tensors` concatenated along `axis`."""


@concat_by.infer
def _(tensors, axis):
    first = tensors[0]
    if not first.ndim:
        raise ShapeError("concat: got 0-d operands; wanted at least one axis")
    total = 0
    for i, t in enumerate(tensors):
        if t.ndim != first.ndim or any(
            n != m for k, (n, m) in enumerate(zip(t.shape, first.shape)) if k != axis
        ):
            same = t.ndim == first.ndim
            raise ShapeError(
                f"concat: got shapes {first.shape} (number 0) and {t.shape} (number {i}) along "
                f"axis {axis}; wanted "
                + ("equal sizes on every other axis" if same else "as many axes in every Tensor")
            )
        total += t.shape[axis]
    shape = list(first.shape)
    shape[axis] = total
    return TensorType.of(tuple(shape), first.dtype)


@concat_by.reference
def _(tensors, axis):
    return np.concatenate(tensors, axis)


@concat_by.bprop
def _(tensors, out, dout, axis):
    grads = []
    begin = 0
    for t in tensors:
        end = begin + t.shape[axis]
        grads.append(slice_axis(dout, axis, begin, end))
        begin = end
    return tuple(grads)


@op(name="pad_constant", composite=False, per_axis=("low", "high"))
def pad_by(input: Tensor, low: Sequence[int], high: Sequence[int], value: Number):
    """Primitive op: `input` with elements `value` added before and after each axis.

    `low` and `high` have the numbers of elements added, which are not negative.
    """


@pad_by.infer
def _(x, low, high, value):
    if not len(low) == len(high) == x.ndim or min((*low, *high), default=0) < 0:
        raise ShapeError(
            f"pad_constant: got low={tuple(low)}, high={tuple(high)} for shape {x.shape}; "
            f"wanted one "
            f"number, not negative, of each per axis"
        )
    check_number("pad_constant", value, x.dtype)
    return TensorType.of(
        tuple(n + a + b for n, a, b in zip(x.shape, low, high, strict=True)), x.dtype
    )


@pad_by.reference
def _(x, low, high, value):
    fit = np.asarray(value).astype(x.dtype)
    return np.pad(x, list(zip(low, high, strict=True)), constant_values=fit) if x.ndim else x


@pad_by.decompose
def _(x, low, high, value):
    shape = [n + a + b for n, a, b in zip(x.shape, low, high, strict=True)]
    end = [a + n for n, a in zip(x.shape, low, strict=True)]
    return update_by(fill(shape, value, x.dtype), x, low, end, [1] * len(shape))


@pad_by.bprop
def _(x, out, dout, low, high, value):
    end = [a + n for n, a in zip(x.shape, low, strict=True)]
    return (slice_by(dout, low, end, [1] * len(low)),)
