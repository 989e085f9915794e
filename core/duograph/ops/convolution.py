"""The convolution primitive, its two gradients, and convolution with a bias.

The public functions in `convolution_functions`, the channels-last ops and graph passes call them.
Stride, padding and dilation must be tuples with an entry per spatial axis, which callers make;
shapes and groups are checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..dtype import REAL
from ..errors import ShapeError
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from ..types import TensorType, size_of
from .linalg import matmul_of
from .movement import flip_by
from .shape_primitives import reduce_sum, reshape_to, transpose_by
from .windows import (
    dilated,
    padded,
    window_sizes,
    windows,
)

__all__: list[str] = []  # the primitives are for other modules

Pairs = Sequence[tuple[int, int]]


@op(dtypes=REAL, promote="common")
def conv(
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
    groups: int,
):
    """Primitive op: cross-correlation of (N, C, spatial...) with (O, C / groups, kernel...).

    `padding` has a pair (cells before, cells after) for each spatial axis. The result is (N, O,
    spatial...).
    """


def _check(name: str, x_shape: Sequence[int], w_shape: Sequence[int], groups: int) -> None:
    n = len(w_shape) - 2
    if not 1 <= n <= 3 or len(x_shape) != n + 2:
        raise ShapeError(
            f"{name}: got input of shape {tuple(x_shape)} and weight of shape {tuple(w_shape)}; "
            "wanted "
            f"(N, C, spatial...) and (O, C / groups, kernel...) with 1 to 3 spatial axes"
        )
    if groups < 1 or x_shape[1] != w_shape[1] * groups or w_shape[0] % groups:
        raise ShapeError(
            f"{name}: got input of shape {tuple(x_shape)}, weight of shape {tuple(w_shape)} and "
            f"groups={groups}; input.shape[1] must equal weight.shape[1] * groups, and groups must "
            f"divide weight.shape[0]"
        )


@conv.infer
def _(x, w, stride, padding, dilation, groups):
    _check("conv", x.shape, w.shape, groups)
    out = window_sizes("conv", x.shape[2:], w.shape[2:], stride, padding, dilation)
    return TensorType.of((x.shape[0], w.shape[0], *out), x.dtype)


def _taps(
    kernel: Sequence[int], out: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield (index, slices) for each element of a convolution kernel.

    `index` is the position of the element in the kernel. `slices`, one per spatial axis, select the
    elements of the padded input that it multiplies: one for each of the `out` output positions.
    """
    for k in np.ndindex(*kernel):
        yield (
            k,
            tuple(
                slice(i * d, i * d + (o - 1) * s + 1, s)
                for i, d, o, s in zip(k, dilation, out, stride, strict=True)
            ),
        )


def _wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def _np_padded(x: Array, padding: Pairs) -> Array:
    return np.pad(x, ((0, 0), (0, 0), *padding))


@conv.reference
def _(x, w, stride, padding, dilation, groups):
    out = window_sizes("conv", x.shape[2:], w.shape[2:], stride, padding, dilation)
    dtype = x.dtype
    x, w = _wide(_np_padded(x, padding)), _wide(w)
    n, o = x.shape[0], w.shape[0]
    y = np.zeros((n, groups, o // groups, size_of(out)), x.dtype)
    w = w.reshape(groups, o // groups, *w.shape[1:])
    for k, where in _taps(w.shape[3:], out, stride, dilation):
        part = x[(slice(None), slice(None), *where)].reshape(n, groups, w.shape[2], size_of(out))
        y += w[(slice(None), slice(None), slice(None), *k)] @ part
    return y.reshape(n, o, *out).astype(dtype)


@conv.bprop
def _(x, w, out, dout, stride, padding, dilation, groups):
    return (
        conv_input_grad(dout, w, x.shape, stride, padding, dilation, groups),
        conv_weight_grad(x, dout, w.shape, stride, padding, dilation, groups),
    )


def _columns(
    x: Tensor,
    kernel: Sequence[int],
    out: Sequence[int],
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Unroll a convolution's input to columns (im2col), one per output position.

    The result has shape (N, groups, C / groups * kernel elements, output positions).
    """
    cols = windows(x, kernel, stride, padding, dilation, out)
    n, c = x.shape[:2]
    return reshape_to(cols, (n, groups, c // groups * size_of(kernel), size_of(out)))


@conv.decompose
def _(input, weight, stride, padding, dilation, groups):
    kernel = weight.shape[2:]
    out = window_sizes("conv", input.shape[2:], kernel, stride, padding, dilation)
    cols = _columns(input, kernel, out, stride, padding, dilation, groups)
    o = weight.shape[0]
    w = reshape_to(weight, (groups, o // groups, size_of(weight.shape[1:])))
    return reshape_to(matmul_of(w, cols), (input.shape[0], o, *out))


@op(dtypes=REAL, promote="common")
def conv_input_grad(
    dout: Tensor,
    weight: Tensor,
    input_shape: Sequence[int],
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
    groups: int,
):
    """Primitive op: gradient of `conv` with respect to an input of shape `input_shape`.

    It is also the transposed convolution.
    """


@conv_input_grad.infer
def _(dout, w, input_shape, stride, padding, dilation, groups):
    _check("conv_input_grad", input_shape, w.shape, groups)
    out = window_sizes("conv_input_grad", input_shape[2:], w.shape[2:], stride, padding, dilation)
    if dout.shape != (input_shape[0], w.shape[0], *out):
        raise ShapeError(
            f"conv_input_grad: got dout of shape {dout.shape}; wanted "
            f"{(input_shape[0], w.shape[0], *out)}, that of the convolution's result"
        )
    return TensorType.of(tuple(input_shape), dout.dtype)


@conv_input_grad.reference
def _(dout, w, input_shape, stride, padding, dilation, groups):
    dtype = dout.dtype
    dout, w = _wide(dout), _wide(w)
    n, o = dout.shape[:2]
    sizes = [size + low + high for size, (low, high) in zip(input_shape[2:], padding)]
    dx = np.zeros((n, input_shape[1], *sizes), dout.dtype)
    out = dout.shape[2:]
    d = dout.reshape(n, groups, o // groups, size_of(out))
    w = w.reshape(groups, o // groups, *w.shape[1:])
    for k, where in _taps(w.shape[3:], out, stride, dilation):
        part = np.swapaxes(w[(slice(None), slice(None), slice(None), *k)], 1, 2) @ d
        dx[(slice(None), slice(None), *where)] += part.reshape(n, input_shape[1], *out)
    inside = [slice(low, low + size) for size, (low, _) in zip(input_shape[2:], padding)]
    return dx[(slice(None), slice(None), *inside)].astype(dtype)


@conv_input_grad.bprop
def _(dout, w, out, dx, input_shape, stride, padding, dilation, groups):
    return (
        conv(dx, w, stride, padding, dilation, groups),
        conv_weight_grad(dx, dout, w.shape, stride, padding, dilation, groups),
    )


@conv_input_grad.decompose
def _(dout, weight, input_shape, stride, padding, dilation, groups):
    # This convolves the dilated cotangent with the flipped kernel, whose input and output channels
    # are exchanged.
    o, i, *kernel = weight.shape
    far = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    wide = dilated(dout, stride)
    pads = []
    for size, have, reach, (low, _) in zip(
        input_shape[2:], wide.shape[2:], far, padding, strict=True
    ):
        pads.append((reach - low, size + low - have))
    wide = padded(wide, pads, 0)
    w = reshape_to(weight, (groups, o // groups, i, *kernel))
    w = transpose_by(w, (0, 2, 1, *range(3, 3 + len(kernel))))
    w = flip_by(reshape_to(w, (groups * i, o // groups, *kernel)), tuple(range(2, 2 + len(kernel))))
    none = ((0, 0),) * len(kernel)
    return conv(wide, w, (1,) * len(kernel), none, dilation, groups)


@op(dtypes=REAL, promote="common")
def conv_weight_grad(
    input: Tensor,
    dout: Tensor,
    weight_shape: Sequence[int],
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
    groups: int,
):
    """Primitive op: gradient of `conv` with respect to a weight of shape `weight_shape`."""


@conv_weight_grad.infer
def _(x, dout, weight_shape, stride, padding, dilation, groups):
    _check("conv_weight_grad", x.shape, weight_shape, groups)
    out = window_sizes("conv_weight_grad", x.shape[2:], weight_shape[2:], stride, padding, dilation)
    if dout.shape != (x.shape[0], weight_shape[0], *out):
        raise ShapeError(
            f"conv_weight_grad: got dout of shape {dout.shape}; wanted "
            f"{(x.shape[0], weight_shape[0], *out)}, that of the convolution's result"
        )
    return TensorType.of(tuple(weight_shape), x.dtype)


@conv_weight_grad.reference
def _(x, dout, weight_shape, stride, padding, dilation, groups):
    dtype = x.dtype
    x, dout = _wide(_np_padded(x, padding)), _wide(dout)
    n, o = dout.shape[:2]
    out = dout.shape[2:]
    d = dout.reshape(n, groups, o // groups, size_of(out))
    dw = np.zeros((groups, o // groups, *weight_shape[1:]), x.dtype)
    for k, where in _taps(weight_shape[2:], out, stride, dilation):
        part = x[(slice(None), slice(None), *where)].reshape(
            n, groups, weight_shape[1], size_of(out)
        )
        at: tuple[slice | int, ...] = (slice(None), slice(None), slice(None), *k)
        dw[at] = (d @ np.swapaxes(part, 2, 3)).sum(0)
    return dw.reshape(weight_shape).astype(dtype)


@conv_weight_grad.bprop
def _(x, dout, out, dw, weight_shape, stride, padding, dilation, groups):
    return (
        conv_input_grad(dout, dw, x.shape, stride, padding, dilation, groups),
        conv(x, dw, stride, padding, dilation, groups),
    )


@conv_weight_grad.decompose
def _(input, dout, weight_shape, stride, padding, dilation, groups):
    out = dout.shape[2:]
    cols = _columns(input, weight_shape[2:], out, stride, padding, dilation, groups)
    n, o = dout.shape[:2]
    d = reshape_to(dout, (n, groups, o // groups, size_of(out)))
    each = matmul_of(d, cols, False, True)
    return reshape_to(reduce_sum(each, (0,), False), tuple(weight_shape))


@op(name="conv_bias", promote="common")
def conv_with_bias(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
    groups: int,
):
    """Composite op: `conv` plus a bias (O,), which has one number for each output channel."""
    out = conv(input, weight, stride, padding, dilation, groups)
    return out + reshape_to(bias, (bias.shape[0], *[1] * (input.ndim - 2)))
