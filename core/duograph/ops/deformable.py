"""Deformable convolution: each kernel element reads at a shifted position, with a weight.

Users call `deformable_conv2d`, which is made of other ops. A kernel element is called a tap.
Source: Zhu et al., Deformable ConvNets v2, CVPR 2019.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import int32
from ..errors import ArgumentValueError, ShapeError
from ..tensor import Tensor
from .convolution_functions import conv2d
from .creation import iota
from .gather_scatter import gather_elements_by
from .rounding import floor
from .shape_primitives import broadcast_to

__all__ = ["deformable_conv2d"]


def deformable_conv2d(
    x: Tensor,
    weight: Tensor,
    offsets: Tensor,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    bias: Tensor | None = None,
    dilations: Sequence[int] = (1, 1, 1, 1),
    groups: int = 1,
    deformable_groups: int = 1,
    modulated: bool = True,
) -> Tensor:
    """Convolve images with a kernel whose elements (taps) read at shifted positions.

    See `mindspore.ops.deformable_conv2d`.

    Args:
        x: (N, C, H, W).
        weight: (C_out, C / groups, kh, kw).
        offsets: (N, 3 * deformable_groups * kh * kw, H_out, W_out): the shifts along the width,
            then those along the height, then the weights of the taps; in each, the taps of a group
            of channels are neighbours.
        kernel_size: (kh, kw).
        strides, dilations: four ints for (N, C, H, W); the first two are 1.
        padding: (top, bottom, left, right).
        bias: (C_out,), or None.
        groups: groups of the convolution.
        deformable_groups: groups of channels with shifts of their own.
        modulated: must be True: the weights of the taps are used.

    Returns:
        (N, C_out, H_out, W_out). Positions outside the image count as 0.

    Raises:
        ValueError: shapes or options that do not match.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((1, 1, 3, 3))
        >>> offsets = ms.ops.concat((ms.ops.zeros((1, 8, 2, 2)), ms.ops.ones((1, 4, 2, 2))), 1)
        >>> weight = ms.ops.ones((1, 1, 2, 2))
        >>> y = ms.ops.deformable_conv2d(
        ...     x, weight, offsets, (2, 2), (1, 1, 1, 1), (0, 0, 0, 0))
        >>> print(y)
        [[[[4. 4.]
           [4. 4.]]]]
    """
    name = "deformable_conv2d"
    if not modulated:
        raise ArgumentValueError(f"{name}: got modulated={modulated!r}; wanted True")
    batch, channels, height, width = x.shape
    (kh, kw), (top, bottom, left, right) = kernel_size, padding
    step, gap = tuple(strides[2:]), tuple(dilations[2:])
    sizes = tuple(
        (n + a + b - g * (k - 1) - 1) // s + 1
        for n, a, b, k, s, g in (
            (height, top, bottom, kh, step[0], gap[0]),
            (width, left, right, kw, step[1], gap[1]),
        )
    )
    wanted = (batch, 3 * deformable_groups * kh * kw, *sizes)
    if offsets.shape != wanted or channels % deformable_groups:
        raise ShapeError(
            f"{name}: got x {x.shape}, offsets {offsets.shape} and {deformable_groups} groups; "
            f"wanted offsets {wanted} and channels in equal groups"
        )
    across, down, tap = offsets.reshape(batch, 3, deformable_groups, kh, kw, *sizes).unbind(1)
    grid = (1, 1, kh, kw, *sizes)
    rows = iota(grid, 4, int32) * step[0] + iota(grid, 2, int32) * gap[0] - top
    columns = iota(grid, 5, int32) * step[1] + iota(grid, 3, int32) * gap[1] - left
    taps = _sampled(
        x.reshape(batch, deformable_groups, channels // deformable_groups, height * width),
        rows.astype(x.dtype) + down, columns.astype(x.dtype) + across, (height, width),
    )  # fmt: skip
    taps = taps * tap.reshape(batch, deformable_groups, 1, -1)
    # a picture in which each window of the convolution stands apart
    taps = taps.reshape(batch, channels, kh, kw, *sizes).permute(0, 1, 4, 2, 5, 3)
    taps = taps.reshape(batch, channels, sizes[0] * kh, sizes[1] * kw)
    return conv2d(taps, weight, bias, stride=(kh, kw), groups=groups)


def _sampled(x: Tensor, rows: Tensor, columns: Tensor, size: tuple[int, int]) -> Tensor:
    """Interpolate maps bilinearly at real positions; positions outside the maps count as 0.

    `x` has shape (N, G, C, H * W), the result (N, G, C, n). `rows` and `columns` have the axes N
    and G first, and n positions after them; `size` is (H, W).
    """
    height, width = size
    batch, groups, channels, _ = x.shape
    low_row, low_column = floor(rows), floor(columns)
    total: Tensor | None = None
    for down in (0, 1):
        for right in (0, 1):
            row, column = low_row + down, low_column + right
            share = (1 - (rows - row).abs()) * (1 - (columns - column).abs())
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            share = share * inside.astype(x.dtype)
            at = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
            index = at.astype(int32).reshape(batch, groups, 1, -1)
            index = broadcast_to(index, (batch, groups, channels, index.shape[-1]))
            part = gather_elements_by(x, index, 3) * share.reshape(batch, groups, 1, -1)
            total = part if total is None else total + part
    assert total is not None
    return total
