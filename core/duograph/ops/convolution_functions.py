"""MindSpore's public convolutions, transposed convolutions, unfold and fold.

The functions normalise the user's arguments and call the primitives of `convolution`. A transposed
convolution is the gradient of a convolution with respect to its input.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..call_cache import cached_call
from ..dtype import REAL
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..tensor import Tensor
from ..types import size_of
from .axes import tuple_of
from .convolution import Pairs, conv, conv_input_grad, conv_with_bias
from .methods import tensor_method
from .shape_primitives import reshape_to
from .windows import (
    convolution_arguments,
    hashable,
    overlap_add,
    pad_pairs,
    window_sizes,
    windows,
)

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "unfold", "fold", "col2im",
]  # fmt: skip


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
    """Implement conv1d, conv2d and conv3d, with `n` spatial axes; the batch axis is optional.

    `name` is the user's function in errors.
    """
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
                f"{name}: got bias of shape {bias.shape}; wanted {(weight.shape[0],)}, one number "
                "per output channel"
            )
        out = conv_with_bias(x, weight, bias, strides, pads, dilations, groups)
    return reshape_to(out, out.shape[1:]) if single else out


_DOC = """Compute a {n}-D convolution without flipping the kernel (`mindspore.ops.conv{n}d`).

    Args:
        input: Tensor (N, C, {axes}), or (C, {axes}) for a single example.
        weight: Tensor (O, C / groups, {kernel}); k stands for the kernel's size along an axis.
        bias: Tensor (O,) of a number for each output channel, or None.
        stride: step from window to window: int, or one int for each spatial axis.
        pad_mode: ``"valid"`` adds no zeros; ``"same"`` adds zeros so that the output's size is the
            input's divided by the stride, rounded up; ``"pad"`` adds those of `padding`.
        padding: number of zeros added at both ends of the spatial axes for ``"pad"``: int, one int
            for each axis, or two for each (low and high end).
        dilation: distance of neighbouring elements of a window: int, or one int for each axis.
        groups: number of groups of channels; an output channel depends on the input channels of
            its own group only.

    Returns:
        Tensor (N, O, {axes}), without N if `input` has none.

    Raises:
        ValueError: the shapes do not match, `pad_mode` is unknown, or there is padding without
            ``"pad"``.

    Examples:
        >>> import duograph as ms
        >>> x, w = ms.ops.ones((1, 2, {five})), ms.ops.ones((3, 2, {three}))
        >>> ms.ops.conv{n}d(x, w, pad_mode="same").shape == (1, 3, {five})
        True
    """


@cached_call
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


@cached_call
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


@cached_call
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
    """Implement conv_transpose1d, 2d and 3d, with `n` spatial axes; the batch axis is optional.

    `name` is the user's function in errors.
    """
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
                f"{name}: got output_padding {e}; wanted less than the stride {s} or the dilation "
                f"{d}"
            )
    grown = [(low, high) for (low, high), e in zip(pads, extra, strict=True)]
    shape = (x.shape[0], weight.shape[1] * groups, *sizes)
    out = conv_input_grad(x, weight, shape, strides, tuple(grown), dilations, groups)
    if bias is not None:
        out = out + reshape_to(bias, (bias.shape[0], *[1] * n))
    return reshape_to(out, out.shape[1:]) if single else out


_TRANSPOSED = """Compute a {n}-D transposed convolution: the input gradient of `conv{n}d`.

    Args:
        input: Tensor (N, C, {axes}), or (C, {axes}) for a single example.
        weight: Tensor (C, O / groups, {kernel}); k stands for the kernel's size along an axis.
        bias: Tensor (O,) of a number for each output channel, or None.
        stride: distance in the result of the windows of neighbouring input elements: int, or one
            int for each spatial axis.
        padding: number of elements removed at both ends of the result's spatial axes: int, one int
            for each axis, or two for each (low and high end).
        output_padding: number of elements added at the high end of the result's spatial axes, less
            than the stride or the dilation: int, or one int for each axis.
        groups: number of groups of channels; an output channel depends on the input channels of
            its own group only.
        dilation: distance of neighbouring elements of a window: int, or one int for each axis.

    Returns:
        Tensor (N, O, {axes}), without N if `input` has none. The size of a spatial axis is
        (size - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1, where `size` is
        that of the input.

    Raises:
        ValueError: the shapes do not match, or `output_padding` is too large.

    Examples:
        >>> import duograph as ms
        >>> x, w = ms.ops.ones((1, 2, {five})), ms.ops.ones((2, 3, {three}))
        >>> ms.ops.conv_transpose{n}d(x, w, padding=1).shape == (1, 3, {five})
        True
    """


@cached_call
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


@cached_call
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


@cached_call
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
            n=_n, axes=", ".join("DHW"[3 - _n :]), kernel=", ".join(["k"] * _n),
            five=", ".join(["5"] * _n) + ("," if _n == 0 else ""), three=", ".join(["3"] * _n),
        )  # fmt: skip


# ---- unfold and fold ----------------------------------------------------------------------------


@op(
    method="unfold",
    dtypes=REAL,
    primitive="Unfold(kernel_size, stride=1, padding=0, dilation=1)(x)",
)
def unfold(
    input: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
):
    """Return sliding windows of an image as columns, also called im2col (`mindspore.ops.unfold`).

    Args:
        input: Tensor (N, C, H, W).
        kernel_size, dilation, stride: int, or 2 of them, for height and width.
        padding: int, 2 ints, or 4 ints (top, bottom, left, right).

    Returns:
        Tensor (N, C * kernel elements, windows).

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


@op(
    method="fold", dtypes=REAL,
    primitive="Fold(output_size, kernel_size, stride=1, padding=0, dilation=1)(x)",
)  # fmt: skip
def fold(
    input: Tensor,
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
):
    """Sum columns of sliding windows back into an image, also called col2im (`mindspore.ops.fold`).

    Args:
        input: Tensor (N, C * kernel elements, windows).
        output_size: (H, W) of the result; a Tensor or ints.
        kernel_size, dilation, padding, stride: the arguments of `unfold`.

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


@tensor_method("col2im")
def col2im(
    input_x: Tensor, output_size: Tensor | Sequence[int], kernel_size: int | Sequence[int],
    dilation: int | Sequence[int], padding_value: int | Sequence[int],
    stride: int | Sequence[int],
) -> Tensor:  # fmt: skip
    """Sum columns of sliding windows to an image (`mindspore.ops.col2im`).

    Args:
        input_x: Tensor (N, C, elements of a window, windows).
        output_size: (height, width) of the image: ints or an integer Tensor.
        kernel_size, dilation, padding_value, stride: size, dilation, padding and distance of the
            windows.

    Returns:
        Tensor (N, C, height, width).

    Raises:
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((1, 1, 4, 1))
        >>> print(ms.ops.col2im(x, (2, 2), (2, 2), (1, 1), (0, 0), (1, 1)))
        [[[[1. 1.]
           [1. 1.]]]]
    """
    if input_x.ndim != 4:
        raise ShapeError(f"col2im: got shape {input_x.shape}; wanted (N, C, k, L)")
    sizes = tuple(output_size.tolist()) if isinstance(output_size, Tensor) else output_size
    n, c, k, count = input_x.shape
    flat = reshape_to(input_x, (n, c * k, count))
    found: Tensor = fold.public(flat, sizes, kernel_size, dilation, padding_value, stride)
    return found
