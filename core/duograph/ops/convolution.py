"""Convolution: the primitive, its two gradients, and MindSpore's public functions.

Transposed convolutions are the gradient with respect to the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..dtype import REAL
from ..errors import ArgumentValueError, ShapeError
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from ..types import TensorType, size_of
from .axes import tuple_of
from .linalg import matmul_of
from .movement import flip_by
from .shape_primitives import reduce_sum, reshape_to, transpose_by
from .windows import (
    convolution_arguments,
    dilated,
    hashable,
    overlap_add,
    pad_pairs,
    padded,
    window_sizes,
    windows,
)

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "unfold", "fold",
]  # fmt: skip

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
    """Primitive: cross-correlation of (N, C, spatial...) with (O, C / groups, kernel...)."""


def _check(name: str, x_shape: Sequence[int], w_shape: Sequence[int], groups: int) -> None:
    n = len(w_shape) - 2
    if not 1 <= n <= 3 or len(x_shape) != n + 2:
        raise ShapeError(
            f"{name}: got input of shape {tuple(x_shape)} and weight of shape {tuple(w_shape)}; wanted "
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
    """Yield the index of each kernel element and the slices of the padded input that it multiplies."""
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
    """Return im2col of the input: (N, groups, C / groups * kernel, out)."""
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
    """Primitive: gradient of `conv` with respect to an input of `input_shape`; also the transposed
    convolution.
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
    # a convolution of the dilated cotangent with the flipped kernel, with input and output
    # channels exchanged
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
    """Primitive: gradient of `conv` with respect to a weight of `weight_shape`."""


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
        dw[(slice(None), slice(None), slice(None), *k)] = (d @ np.swapaxes(part, 2, 3)).sum(0)
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
    """`conv` plus a bias for each output channel."""
    out = conv(input, weight, stride, padding, dilation, groups)
    return out + reshape_to(bias, (bias.shape[0], *[1] * (input.ndim - 2)))


# ---- public functions ---------------------------------------------------------------------------


def convolve(
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int | Sequence[int],
    pad_mode: str,
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    groups: int,
    n: int,
) -> Tensor:
    """Implement conv1d, conv2d and conv3d; the batch axis is optional."""
    if weight.ndim != n + 2 or input.ndim not in (n + 1, n + 2):
        raise ShapeError(
            f"{name}: got input of shape {input.shape} and weight of shape {weight.shape}; wanted "
            f"{n + 2} axes each: (N, C, spatial...) and (O, C / groups, kernel...)"
        )
    single = input.ndim == n + 1
    x = reshape_to(input, (1, *input.shape)) if single else input
    strides, pads, dilations = convolution_arguments(
        name,
        hashable(stride),
        pad_mode,
        hashable(padding),
        hashable(dilation),
        x.shape[2:],
        weight.shape[2:],
    )
    if bias is None:
        out = conv(x, weight, strides, pads, dilations, groups)
    else:
        if bias.shape != (weight.shape[0],):
            raise ShapeError(
                f"{name}: got bias of shape {bias.shape}; wanted {(weight.shape[0],)}, one number per output channel"
            )
        out = conv_with_bias(x, weight, bias, strides, pads, dilations, groups)
    return reshape_to(out, out.shape[1:]) if single else out


_DOC = """{n}-D convolution (cross-correlation) (`mindspore.ops.conv{n}d`).

    Args:
        input: Tensor (N, C, {axes}), or without N.
        weight: Tensor (O, C / groups, {kernel}).
        bias: Tensor (O,) or None.
        stride, dilation: int, or {n} of them.
        pad_mode: ``"valid"``, ``"same"`` (output size is input size over stride, rounded up) or ``"pad"``.
        padding: with ``"pad"``: int, {n} ints, or {n2} ints (low and high of each axis).
        groups: channels are split in so many groups, each with weights of its own.

    Returns:
        Tensor (N, O, {axes}).

    Raises:
        ValueError: the shapes do not match, an unknown pad_mode, or padding without ``"pad"``.

    Examples:
        >>> import duograph as ms
        >>> x, w = ms.ops.ones((1, 2, {five})), ms.ops.ones((3, 2, {three}))
        >>> ms.ops.conv{n}d(x, w, pad_mode="same").shape == (1, 3, {five})
        True
    """


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    pad_mode: str = "valid",
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    return convolve("conv1d", input, weight, bias, stride, pad_mode, padding, dilation, groups, 1)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    pad_mode: str = "valid",
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    return convolve("conv2d", input, weight, bias, stride, pad_mode, padding, dilation, groups, 2)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    pad_mode: str = "valid",
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    return convolve("conv3d", input, weight, bias, stride, pad_mode, padding, dilation, groups, 3)


def transposed(
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    output_padding: int | Sequence[int],
    groups: int,
    dilation: int | Sequence[int],
    n: int,
) -> Tensor:
    """Implement the transposed convolutions."""
    if weight.ndim != n + 2 or input.ndim not in (n + 1, n + 2):
        raise ShapeError(
            f"{name}: got input of shape {input.shape} and weight of shape {weight.shape}; wanted "
            f"{n + 2} axes each: (N, C, spatial...) and (C, O / groups, kernel...)"
        )
    strides = tuple_of(name, "stride", stride, n)
    dilations = tuple_of(name, "dilation", dilation, n)
    extra = tuple_of(name, "output_padding", output_padding, n)
    pads = pad_pairs(name, padding, n)
    single = input.ndim == n + 1
    x = reshape_to(input, (1, *input.shape)) if single else input
    sizes = [
        (size - 1) * s - low - high + d * (k - 1) + e + 1
        for size, s, (low, high), d, k, e in zip(
            x.shape[2:], strides, pads, dilations, weight.shape[2:], extra, strict=True
        )
    ]
    for e, s, d in zip(extra, strides, dilations, strict=True):
        if not 0 <= e < max(s, d):
            raise ArgumentValueError(
                f"{name}: got output_padding {e}; wanted less than the stride {s} or the dilation {d}"
            )
    grown = [(low, high) for (low, high), e in zip(pads, extra, strict=True)]
    shape = (x.shape[0], weight.shape[1] * groups, *sizes)
    out = conv_input_grad(x, weight, shape, strides, tuple(grown), dilations, groups)
    if bias is not None:
        out = out + reshape_to(bias, (bias.shape[0], *[1] * n))
    return reshape_to(out, out.shape[1:]) if single else out


_TRANSPOSED = """{n}-D transposed convolution: the gradient of `conv{n}d` with respect to its input.

    Args:
        input: Tensor (N, C, {axes}), or without N.
        weight: Tensor (C, O / groups, {kernel}).
        bias: Tensor (O,) or None.
        stride, dilation: int, or {n} of them.
        padding: taken off both ends of the result: int, {n} ints, or {n2} ints.
        output_padding: added to the result's high end; less than the stride.
        groups: as in the convolution.

    Returns:
        Tensor (N, O, {axes}) of size (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1.

    Raises:
        ValueError: the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> x, w = ms.ops.ones((1, 2, {five})), ms.ops.ones((2, 3, {three}))
        >>> ms.ops.conv_transpose{n}d(x, w, padding=1).shape == (1, 3, {five})
        True
    """


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    return transposed(
        "conv_transpose1d",
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        1,
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    return transposed(
        "conv_transpose2d",
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        2,
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    return transposed(
        "conv_transpose3d",
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        3,
    )


for _n, _functions in enumerate(
    ((conv1d, conv_transpose1d), (conv2d, conv_transpose2d), (conv3d, conv_transpose3d)), 1
):
    for _function, _doc in zip(_functions, (_DOC, _TRANSPOSED), strict=True):
        _function.__doc__ = _doc.format(
            n=_n, n2=2 * _n, axes=", ".join("DHW"[3 - _n :]), kernel=", ".join(["k"] * _n),
            five=", ".join(["5"] * _n) + ("," if _n == 0 else ""), three=", ".join(["3"] * _n),
        )  # fmt: skip


# ---- unfold and fold ----------------------------------------------------------------------------


@op(dtypes=REAL, primitive="Unfold(kernel_size, stride=1, padding=0, dilation=1)(x)")
def unfold(
    input: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
):
    """Sliding windows as columns, im2col (`mindspore.ops.unfold`).

    Args:
        input: Tensor (N, C, H, W).
        kernel_size, dilation, stride: int, or 2 of them.
        padding: int, 2 ints, or 4 (low and high of each axis).

    Returns:
        Tensor (N, C * kernel, windows).

    Raises:
        ValueError: not four axes, or a window larger than the input.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.unfold(ms.ops.ones((1, 2, 4, 4)), 3).shape
        (1, 18, 4)
    """
    out = window_sizes("unfold", input.shape[2:], kernel, stride, padding, dilation)
    n, c = input.shape[:2]
    cols = windows(input, kernel, stride, padding, dilation, out)
    return reshape_to(cols, (n, c * size_of(kernel), size_of(out)))


@unfold.normaliser
def _(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
):
    if input.ndim != 4:
        raise ShapeError(f"unfold: got input of shape {input.shape}; wanted (N, C, H, W)")
    return (
        input,
        tuple_of("unfold", "kernel_size", kernel_size, 2),
        tuple_of("unfold", "stride", stride, 2),
        pad_pairs("unfold", padding, 2),
        tuple_of("unfold", "dilation", dilation, 2),
    )


@unfold.bprop
def _(x, out, dout, kernel, stride, padding, dilation):
    return (fold(dout, x.shape[2:], kernel, stride, padding, dilation),)


@op(dtypes=REAL, primitive="Fold(output_size, kernel_size, stride=1, padding=0, dilation=1)(x)")
def fold(
    input: Tensor,
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
):
    """Columns summed back into an image, col2im (`mindspore.ops.fold`).

    Args:
        input: Tensor (N, C * kernel, windows).
        output_size: (H, W) of the result; a Tensor or ints.
        kernel_size, dilation, padding, stride: as of `unfold`.

    Returns:
        Tensor (N, C, H, W).

    Raises:
        ValueError: the sizes do not match.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fold(ms.ops.ones((1, 18, 4)), (4, 4), 3).shape
        (1, 2, 4, 4)
    """
    out = window_sizes("fold", sizes, kernel, stride, padding, dilation)
    n = input.shape[0]
    c = input.shape[1] // size_of(kernel)
    parts = reshape_to(input, (n, c, *kernel, *out))
    return overlap_add(parts, sizes, kernel, stride, padding, dilation, out)


@fold.normaliser
def _(
    input: Tensor,
    output_size: int | Sequence[int] | Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
):
    if isinstance(output_size, Tensor):
        output_size = output_size.tolist()
    sizes = tuple_of("fold", "output_size", output_size, 2)
    kernel = tuple_of("fold", "kernel_size", kernel_size, 2)
    strides = tuple_of("fold", "stride", stride, 2)
    pads = pad_pairs("fold", padding, 2)
    dilations = tuple_of("fold", "dilation", dilation, 2)
    if input.ndim != 3 or input.shape[1] % size_of(kernel):
        raise ShapeError(
            f"fold: got input of shape {input.shape}; wanted (N, C * {size_of(kernel)}, windows)"
        )
    count = size_of(window_sizes("fold", sizes, kernel, strides, pads, dilations))
    if input.shape[2] != count:
        raise ShapeError(f"fold: got {input.shape[2]} windows; wanted {count} for size {sizes}")
    return (input, sizes, kernel, strides, pads, dilations)


@fold.bprop
def _(x, out, dout, sizes, kernel, stride, padding, dilation):
    return (unfold(dout, kernel, stride, padding, dilation),)
