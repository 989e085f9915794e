"""Sampling of images at positions: grid_sample, and affine_grid, which computes positions.

Users and layers call them. Both are made of other ops and get their gradients from these.
Positions are tensors whose values may be unknown when a graph is built, so no code here may read
them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..dtype import FLOATING, int64
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..tensor import Tensor
from . import elementwise
from .arguments import ints_of
from .comparison import less, not_equal
from .creation import cast_to, fill
from .elementwise import maximum, minimum
from .gather_scatter import gather_elements_by
from .linalg import matmul_of, widened
from .logic import logical_and, logical_not, select_by
from .movement import slice_by, stop_gradient
from .rounding import floor, round_half_even
from .shape_primitives import broadcast_to, reshape_to

__all__ = ["grid_sample", "affine_grid"]

_Size: TypeAlias = Sequence[int] | Tensor
# Index into the flattened image, weight (None for 1), and whether the cell is inside the image.
_Corner: TypeAlias = tuple[Tensor, Tensor | None, Tensor]


def _reflected(x: Tensor, low2: int, high2: int) -> Tensor:
    """Reflect positions at the bounds `low2` / 2 and `high2` / 2 until they lie between these.

    The bounds are passed doubled, because they may be half-integers. If the bounds are equal, the
    results are 0.
    """
    if low2 == high2:
        return x * 0.0
    low, span = low2 / 2, (high2 - low2) / 2
    x = elementwise.abs(x - low)
    flips = floor(x / span)
    extra = x - flips * span
    odd = not_equal(flips - floor(flips * 0.5) * 2.0, fill((), 0.0, x.dtype))
    return select_by(odd, span - extra, extra) + low


@op(dtypes=FLOATING)
def grid_sample(input: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool):
    """Sample an image at given positions (`mindspore.ops.grid_sample`).

    Args:
        input: Tensor (N, C, H, W) or (N, C, D, H, W), floating.
        grid: Tensor (N, H', W', 2) or (N, D', H', W', 3): x, y (, z) in [-1, 1].
        mode: ``"bilinear"`` or ``"nearest"``.
        padding_mode: for positions outside the image: ``"zeros"``, ``"border"`` (its nearest cell)
            or ``"reflection"`` at the border.
        align_corners: -1 and 1 mean the centres of the corner cells, else their outer edges.

    Returns:
        Tensor (N, C, H', W') or (N, C, D', H', W').

    Raises:
        ValueError: shapes that do not fit; another mode.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[[[1.0, 3.0]]]])
        >>> print(ms.ops.grid_sample(x, ms.Tensor([[[[0.0, 0.0]]]])))
        [[[[2.]]]]
    """
    x, g = widened(input), widened(grid)
    g = g if g.dtype is x.dtype else cast_to(g, x.dtype)
    n, c, *sizes = x.shape
    out = g.shape[1:-1]
    count = math.prod(out)
    flat = reshape_to(x, (n, c, math.prod(sizes)))
    points = reshape_to(g, (n, count, len(sizes)))
    coordinates = [
        _coordinate(points, axis, size, padding_mode, align_corners)
        for axis, size in enumerate(sizes)
    ]
    total = None
    for index, weight, inside in _corners(sizes, coordinates, mode):
        wide = broadcast_to(reshape_to(index, (n, 1, count)), (n, c, count))
        value = gather_elements_by(flat, wide, 2)
        if weight is not None:
            value = value * reshape_to(weight, (n, 1, count))
        value = select_by(reshape_to(inside, (n, 1, count)), value, fill((), 0.0, value.dtype))
        total = value if total is None else total + value
    found = reshape_to(total, (n, c, *out))
    return found if found.dtype is input.dtype else cast_to(found, input.dtype)


def _coordinate(
    points: Tensor, axis: int, size: int, padding_mode: str, align_corners: bool
) -> Tensor:
    """Convert sampling positions from [-1, 1] to units of cells along one axis of the image.

    `points` has shape (N, count, spatial axes), with the coordinate of the image's last axis first.
    `size` is the number of cells of the axis. The positions -1 and 1 are the centres of the
    outermost cells if `align_corners` is True, else the outer edges of the image. With
    `padding_mode` "reflection" or "border", the result (N, count) is reflected or clamped into the
    image; with "zeros", it is not.
    """
    n, count, k = points.shape
    at = k - 1 - axis
    p = reshape_to(slice_by(points, (0, 0, at), (n, count, at + 1), (1, 1, 1)), (n, count))
    p = (p + 1.0) * ((size - 1) / 2) if align_corners else ((p + 1.0) * size - 1.0) * 0.5
    if padding_mode == "reflection":
        low2, high2 = (0, 2 * (size - 1)) if align_corners else (-1, 2 * size - 1)
        p = _reflected(p, low2, high2)
    if padding_mode != "zeros":
        p = minimum(maximum(p, fill((), 0.0, p.dtype)), fill((), float(size - 1), p.dtype))
    return p


def _corners(sizes: Sequence[int], coordinates: Sequence[Tensor], mode: str) -> list[_Corner]:
    """Return the image cells that each sampling point interpolates between.

    Each item of the list is (index of the cell in the flattened image, weight or None for 1,
    whether the cell is inside the image), all tensors over the points. `coordinates` are the
    points' positions along each spatial axis. Mode "nearest" has one item, "bilinear" 2 ** (number
    of axes).
    """
    corners: list[tuple[Any, Any, Any]] = [(None, None, None)]
    step = 1
    for size, p in zip(reversed(sizes), reversed(coordinates), strict=True):
        if mode == "nearest":
            options = [(round_half_even(p), None)]
        else:
            low = stop_gradient(floor(p))
            part = p - low
            options = [(low, 1.0 - part), (low + 1.0, part)]
        grown = []
        for whole, weight in options:
            whole = stop_gradient(whole)
            inside = logical_and(
                logical_not(less(whole, fill((), 0.0, p.dtype))),
                less(whole, fill((), float(size), p.dtype)),
            )
            i = cast_to(whole, int64)
            i = minimum(maximum(i, fill((), 0, int64)), fill((), size - 1, int64)) * step
            for index, w, ok in corners:
                grown.append((
                    i if index is None else index + i,
                    weight if w is None else w if weight is None else w * weight,
                    inside if ok is None else logical_and(ok, inside),
                ))  # fmt: skip
        corners = grown
        step *= size
    return corners


@grid_sample.normaliser
def _(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: object = False,
):
    if (
        input.ndim not in (4, 5)
        or grid.ndim != input.ndim
        or grid.shape[-1] != input.ndim - 2
        or (grid.shape[0] != input.shape[0])
    ):
        raise ShapeError(
            f"grid_sample: got input of shape {input.shape} and grid of shape {grid.shape}; wanted "
            f"(N, C, H, W) and (N, H', W', 2), or one axis more"
        )
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentValueError(
            f"grid_sample: got mode={mode!r} and padding_mode={padding_mode!r}; wanted "
            f"'bilinear' or "
            f"'nearest', and 'zeros', 'border' or 'reflection'"
        )
    return (input, grid, mode, padding_mode, bool(align_corners))


def affine_grid(theta: Tensor, size: _Size, align_corners: bool = False) -> Tensor:
    """Compute sampling positions by an affine map, for `grid_sample` (`mindspore.ops.affine_grid`).

    Args:
        theta: Tensor (N, 2, 3) or (N, 3, 4): matrices that map positions of the result to
            positions of the image.
        size: (N, C, H, W) or (N, C, D, H, W) of the result.
        align_corners: as in `grid_sample`.

    Returns:
        Tensor (N, H, W, 2) or (N, D, H, W, 3).

    Raises:
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.affine_grid(ms.Tensor([[[1.0, 0, 0], [0, 1.0, 0]]]), (1, 1, 2, 2)).shape
        (1, 2, 2, 2)
    """
    size = ints_of("affine_grid", "size", size)
    k = len(size) - 2
    if k not in (2, 3) or theta.shape != (size[0], k, k + 1):
        raise ShapeError(
            f"affine_grid: got theta of shape {theta.shape} and size={size}; wanted (N, {k}, "
            f"{k + 1}) for "
            f"two or three spatial axes"
        )
    lines = []
    for n in size[2:]:
        if align_corners:
            lines.append(np.linspace(-1, 1, n) if n > 1 else np.zeros(1))
        else:
            lines.append((np.arange(n) * 2 + 1) / n - 1)
    mesh = np.meshgrid(*lines, indexing="ij")
    base = (
        np.stack([*reversed(mesh), np.ones(size[2:])], -1).reshape(-1, k + 1).astype(theta.dtype.np)
    )
    points = matmul_of(Tensor(base), theta, False, True)
    return reshape_to(points, (size[0], *size[2:], k))
