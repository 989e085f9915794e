"""Convolutions, pooling, padding and resizing of `duograph.mint.nn.functional`.

`functional/__init__.py` exports them, and the layers call them. Every function normalises its
arguments and calls `duograph.ops`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from .... import ops as _ops
from ....errors import ArgumentValueError, ShapeError
from ....ops.axes import tuple_of
from ....tensor import Tensor
from ..._arguments import Number

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "conv1d", "conv2d", "conv3d", "flatten",
    "grid_sample", "max_pool2d", "max_unpool2d", "one_hot", "pad", "upsample",
]  # fmt: skip

Sizes: TypeAlias = int | Sequence[int]
Padding: TypeAlias = int | Sequence[int] | str


def _pad_mode(name: str, padding: Padding, stride: Sizes) -> tuple[str, Sizes]:
    """Convert a convolution's `padding` to (pad_mode, padding) for the convolutions of `ops`."""
    if not isinstance(padding, str):
        return "pad", padding
    if padding not in ("same", "valid"):
        raise ArgumentValueError(f"{name}: got padding={padding!r}; wanted ints, 'same' or 'valid'")
    strides = (stride,) if isinstance(stride, int) else tuple(stride)
    if padding == "same" and any(s != 1 for s in strides):
        raise ArgumentValueError(f"{name}: got padding='same' and stride={stride}; wanted stride 1")
    return padding, 0


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the 1-D convolution (cross-correlation) of sequences
    (`mindspore.mint.nn.functional.conv1d`).

    Args:
        input: Tensor (N, C, L) or (C, L).
        weight: Tensor (O, C / groups, k).
        bias: Tensor (O,) or None.
        stride, dilation: int or 1 int.
        padding: zeros added at both ends, ``"valid"`` for none, or ``"same"`` to keep the length.
        groups: number of groups of channels, each with weights of its own.

    Returns:
        Tensor (N, O, L).

    Raises:
        ValueError: shapes that do not match, or ``"same"`` with another stride than 1.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.functional.conv1d(mint.ones((1, 2, 5)), mint.ones((3, 2, 3))).shape
        (1, 3, 3)
    """
    mode, pads = _pad_mode("conv1d", padding, stride)
    return _ops.conv1d(input, weight, bias, stride, mode, pads, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the 2-D convolution (cross-correlation) of images
    (`mindspore.mint.nn.functional.conv2d`).

    Args:
        input: Tensor (N, C, H, W) or (C, H, W).
        weight: Tensor (O, C / groups, k, k).
        bias: Tensor (O,) or None.
        stride, dilation: int or 2 ints.
        padding: zeros added on all sides: int or 2 ints; ``"valid"`` for none, or ``"same"`` to
            keep the size.
        groups: number of groups of channels, each with weights of its own.

    Returns:
        Tensor (N, O, H, W).

    Raises:
        ValueError: shapes that do not match, or ``"same"`` with another stride than 1.

    Examples:
        >>> from duograph import mint
        >>> x, weight = mint.ones((1, 2, 5, 5)), mint.ones((3, 2, 3, 3))
        >>> mint.nn.functional.conv2d(x, weight, padding="same").shape
        (1, 3, 5, 5)
    """
    mode, pads = _pad_mode("conv2d", padding, stride)
    return _ops.conv2d(input, weight, bias, stride, mode, pads, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the 3-D convolution (cross-correlation) of volumes
    (`mindspore.mint.nn.functional.conv3d`).

    Args:
        input: Tensor (N, C, D, H, W) or (C, D, H, W).
        weight: Tensor (O, C / groups, k, k, k).
        bias: Tensor (O,) or None.
        stride, dilation: int or 3 ints.
        padding: zeros added on all sides: int or 3 ints; ``"valid"`` for none, or ``"same"`` to
            keep the size.
        groups: number of groups of channels, each with weights of its own.

    Returns:
        Tensor (N, O, D, H, W).

    Raises:
        ValueError: shapes that do not match, or ``"same"`` with another stride than 1.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.functional.conv3d(mint.ones((1, 1, 3, 3, 3)), mint.ones((2, 1, 2, 2, 2))).shape
        (1, 2, 2, 2, 2)
    """
    mode, pads = _pad_mode("conv3d", padding, stride)
    return _ops.conv3d(input, weight, bias, stride, mode, pads, dilation, groups)


def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the largest element of sliding windows (`mindspore.mint.nn.functional.max_pool2d`).

    Args:
        input: Tensor (N, C, H, W) or (C, H, W).
        kernel_size: int or 2 ints.
        stride: int or 2 ints; default `kernel_size`.
        padding: int or 2 ints, at most half of the kernel; padded cells never win.
        dilation: int or 2 ints.
        ceil_mode: whether to keep windows that extend past the end.
        return_indices: whether to return also the int64 index of each element in the flattened H
            and W.

    Returns:
        Tensor (N, C, H, W), or a pair with the indices.

    Raises:
        ValueError: another number of axes, or a window larger than the input.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.max_pool2d(Tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2))
        [[[4.]]]
    """
    return _ops.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of sliding windows of sequences
    (`mindspore.mint.nn.functional.avg_pool1d`).

    Args:
        input: Tensor (N, C, L) or (C, L).
        kernel_size: int or 1 int.
        stride: int or 1 int; default `kernel_size`.
        padding: int or 1 int, at most half of the kernel.
        ceil_mode: whether to keep windows that extend past the end.
        count_include_pad: whether padded cells count in the divisor.

    Raises:
        ValueError: another number of axes, or a window larger than the input.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.avg_pool1d(Tensor([[[1.0, 3.0, 5.0]]]), 2, 1))
        [[[2. 4.]]]
    """
    step = kernel_size if stride is None else stride
    return _ops.avg_pool1d(input, kernel_size, step, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of sliding windows of images (`mindspore.mint.nn.functional.avg_pool2d`).

    Args:
        input: Tensor (N, C, H, W) or (C, H, W).
        kernel_size: int or 2 ints.
        stride: int or 2 ints; default `kernel_size`.
        padding: int or 2 ints, at most half of the kernel.
        ceil_mode: whether to keep windows that extend past the end.
        count_include_pad: whether padded cells count in the divisor.
        divisor_override: a divisor instead of the number of cells.

    Raises:
        ValueError: another number of axes, a window larger than the input, or a divisor of 0.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.avg_pool2d(Tensor([[[1.0, 2.0], [3.0, 6.0]]]), 2))
        [[[3.]]]
    """
    step = kernel_size if stride is None else stride
    return _ops.avg_pool2d(
        input, kernel_size, step, padding, ceil_mode, count_include_pad,
        _divisor("avg_pool2d", divisor_override),
    )  # fmt: skip


def _divisor(name: str, given: int | None) -> int:
    """Return the argument `divisor_override` as `ops` takes it: an int, and 0 for None.

    If `given` is 0, ArgumentValueError is raised.
    """
    if given == 0:
        raise ArgumentValueError(f"{name}: got divisor_override=0; wanted another number or None")
    return 0 if given is None else given


def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of sliding windows of volumes (`mindspore.mint.nn.functional.avg_pool3d`).

    Args:
        input: Tensor (N, C, D, H, W) or (C, D, H, W).
        kernel_size: int or 3 ints.
        stride: int or 3 ints; default `kernel_size`.
        padding: int or 3 ints, at most half of the kernel.
        ceil_mode: whether to keep windows that extend past the end.
        count_include_pad: whether padded cells count in the divisor.
        divisor_override: a divisor instead of the number of cells.

    Raises:
        ValueError: another number of axes, a window larger than the input, or a divisor of 0.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.functional.avg_pool3d(mint.ones((1, 2, 4, 4, 4)), 2).shape
        (1, 2, 2, 2, 2)
    """
    step = kernel_size if stride is None else stride
    return _ops.avg_pool3d(
        input, kernel_size, step, padding, ceil_mode, count_include_pad,
        _divisor("avg_pool3d", divisor_override),
    )  # fmt: skip


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put the elements that `max_pool2d` found back where they were, and zeros elsewhere
    (`mindspore.mint.nn.functional.max_unpool2d`).

    Args:
        input: Tensor (N, C, H, W) or (C, H, W), a result of `max_pool2d`.
        indices: int64 Tensor of the same shape, the indices from the same call.
        kernel_size, stride, padding: those of the pooling.
        output_size: shape of the result or its last two sizes; by default computed from the
            others, which is ambiguous if the pooling left cells out.

    Raises:
        ValueError: another number of axes, other shapes, or an `output_size` that the pooling
            does not lead to.

    Examples:
        >>> from duograph import Tensor, mint
        >>> F = mint.nn.functional
        >>> x, where = F.max_pool2d(Tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2, return_indices=True)
        >>> print(F.max_unpool2d(x, where, 2))
        [[[0. 0.]
          [0. 4.]]]
    """
    if input.ndim not in (3, 4) or input.shape != indices.shape:
        raise ShapeError(
            f"max_unpool2d: got shapes {input.shape} and {indices.shape}; wanted one shape "
            "(N, C, H, W) or (C, H, W)"
        )
    kernel = tuple_of("max_unpool2d", "kernel_size", kernel_size, 2)
    step = kernel if stride is None else tuple_of("max_unpool2d", "stride", stride, 2)
    pads = tuple_of("max_unpool2d", "padding", padding, 2)
    sizes = [
        (n - 1) * s - 2 * p + k
        for n, s, p, k in zip(input.shape[-2:], step, pads, kernel, strict=True)
    ]
    if output_size is not None:
        wanted = list(output_size)[-2:]
        if any(abs(w - n) >= s for w, n, s in zip(wanted, sizes, step, strict=True)):
            raise ArgumentValueError(
                f"max_unpool2d: got output_size={tuple(output_size)}; wanted sizes less than the "
                f"stride {step} away from {tuple(sizes)}"
            )
        sizes = wanted
    lead = input.shape[:-2]
    zeros = _ops.zeros((*lead, math.prod(sizes)), input.dtype)
    flat = (*lead, math.prod(input.shape[-2:]))
    found = _ops.tensor_scatter_elements(
        zeros, _ops.reshape(indices, flat), _ops.reshape(input, flat), -1
    )
    return _ops.reshape(found, (*lead, *sizes))


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: Number | None = None
) -> Tensor:
    """Pad the last axes at both ends (`mindspore.mint.nn.functional.pad`).

    Args:
        input: Tensor.
        pad: (elements before, elements after) of the last axis, then of the one before it, and so
            on; negative numbers cut.
        mode: ``"constant"``, ``"reflect"`` (without the edge itself), ``"replicate"`` (the edge),
            or ``"circular"`` (from the other side).
        value: the constant; default 0.

    Raises:
        ValueError: another mode, or more numbers than axes.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.pad(Tensor([[1, 2]]), (1, 0)))
        [[0 1 2]]
    """
    return _ops.pad(input, pad, mode, value)


def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resample the spatial axes of (N, C, ...), as `interpolate` does
    (`mindspore.mint.nn.functional.upsample`).

    Args:
        input: Tensor (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: sizes of the result's spatial axes; None if `scale_factor` is given.
        scale_factor: factors of the sizes; None if `size` is given.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"`` or ``"trilinear"``.
        align_corners: whether the centres of the corner cells of input and result coincide; not for
            ``"nearest"``.

    Raises:
        ValueError: neither or both of size and scale_factor, or another mode.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.functional.upsample(mint.ones((1, 1, 2, 2)), scale_factor=2).shape
        (1, 1, 4, 4)
    """
    return _ops.interpolate(input, size, scale_factor, mode, align_corners)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample an image at given positions (`mindspore.mint.nn.functional.grid_sample`).

    Args:
        input: Tensor (N, C, H, W) or (N, C, D, H, W).
        grid: Tensor (N, H', W', 2) or (N, D', H', W', 3) of positions in [-1, 1], x first.
        mode: ``"bilinear"`` or ``"nearest"``.
        padding_mode: what lies outside: ``"zeros"``, ``"border"`` or ``"reflection"``.
        align_corners: whether -1 and 1 are the centres of the corner cells, else their outer
            edges; None means False.

    Raises:
        ValueError: shapes that do not fit, or another mode.

    Examples:
        >>> from duograph import mint
        >>> F = mint.nn.functional
        >>> print(F.grid_sample(mint.ones((1, 1, 2, 2)), mint.zeros((1, 1, 1, 2))))
        [[[[1.]]]]
    """
    return _ops.grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return 1 at the index along a new last axis, and 0 elsewhere
    (`mindspore.mint.nn.functional.one_hot`).

    Args:
        tensor: integer Tensor of any shape.
        num_classes: length of the new axis; -1 for the largest index plus 1, which compiled code
            cannot know.

    Returns:
        int64 Tensor of one axis more.

    Raises:
        TypeError: the tensor is not integer.
        ValueError: `num_classes` below -1.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.one_hot(Tensor([0, 2])))
        [[1 0 0]
         [0 0 1]]
    """
    if num_classes < -1:
        raise ArgumentValueError(f"one_hot: got num_classes={num_classes}; wanted -1 or more")
    depth = int(_ops.amax(tensor).item()) + 1 if num_classes == -1 else num_classes
    return _ops.one_hot(tensor, depth)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the axes from `start_dim` to `end_dim` into one
    (`mindspore.mint.nn.functional.flatten`).

    Examples:
        >>> from duograph import mint
        >>> mint.nn.functional.flatten(mint.ones((2, 3, 4)), 1).shape
        (2, 12)
    """
    return _ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise each channel to mean 0 and variance 1
    (`mindspore.mint.nn.functional.batch_norm`).

    Args:
        input: floating Tensor (N, C, ...).
        running_mean, running_var: Tensors (C,), used when not training; in training they are
            updated in place with the statistics of the batch. With None, nothing is updated.
        weight, bias: Tensors (C,), or None for 1 and 0.
        training: whether to use the statistics of the batch.
        momentum: weight of the batch in the running statistics.
        eps: number that is added to the variance.

    Raises:
        ValueError: sizes that do not fit, or no running statistics when not training.

    Examples:
        >>> from duograph import Tensor, mint
        >>> x = Tensor([[1.0], [3.0]])
        >>> print(mint.nn.functional.batch_norm(x, None, None, training=True, eps=0.0))
        [[-1.]
         [ 1.]]
    """
    return _ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
