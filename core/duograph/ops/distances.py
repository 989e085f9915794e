"""Distances and products of vectors, pdist, dist and vecdot, and the bilinear map bidense.

Users call the functions, which are made of ops.
"""

from __future__ import annotations

import numpy as np

from ..dtype import float32
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..tensor import Tensor
from ..types import broadcast_shapes
from .axes import axis_of
from .creation import cast_to
from .einstein import einsum
from .elementwise import abs, mul
from .gather_scatter import gather
from .norms import cdist, vector_norm
from .pointwise import conj
from .primitive import Primitive, primitive
from .shape_primitives import broadcast_to, reduce_sum

__all__ = ["Cdist", "EuclideanNorm", "bidense", "dist", "pdist", "vecdot"]


@primitive("Pdist(p=2.0)(x)")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the distances of all pairs of rows (`mindspore.ops.pdist`).

    Args:
        input: Tensor (..., n, d), floating.
        p: degree of the norm, non-negative; may be infinite.

    Returns:
        Tensor (..., n (n - 1) / 2): the distances of rows 0 and 1, 0 and 2, ..., n - 2 and n - 1.

    Raises:
        ValueError: fewer than two axes, or p below 0.
        TypeError: elements that are not floating.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.pdist(ms.Tensor([[1.0, 1.0], [4.0, 5.0], [1.0, 2.0]])))
        [5.        1.        4.2426405]
    """
    if not input.dtype.is_floating:
        raise DTypeError(f"pdist: got {input.dtype.name}; wanted a floating dtype")
    if input.ndim < 2:
        raise ShapeError(f"pdist: got shape {input.shape}; wanted at least two axes")
    if not p >= 0:
        raise ArgumentValueError(f"pdist: got p={p}; wanted 0 or more")
    rows, columns = np.triu_indices(input.shape[-2], 1)
    axis = input.ndim - 2
    apart = gather(input, rows, axis) - gather(input, columns, axis)
    return vector_norm.public(apart, float(p), axis=-1)


class Cdist(Primitive):
    """Distances of the rows of two matrices: `Cdist(p=2.0)(x1, x2)`; see `ops.cdist`."""

    def __init__(self, p: float = 2.0) -> None:
        super().__init__()
        self.p = float(p)

    def __call__(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distances (..., n, m) between the rows of `x1` (..., n, d) and of `x2`."""
        return cdist(x1, x2, self.p)


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the p-norm of the difference of two tensors (`mindspore.ops.dist`).

    Args:
        input, other: floating Tensors whose shapes broadcast.
        p: degree of the norm, non-negative.

    Returns:
        0-d Tensor.

    Raises:
        ValueError: p below 0, or shapes that do not broadcast.
        TypeError: an operand is not a Tensor.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.dist(ms.Tensor([1.0, 2.0]), ms.Tensor([4.0, 6.0])))
        5.0
    """
    for x in (input, other):
        if not isinstance(x, Tensor):
            raise ArgumentError(f"dist: got {type(x).__name__}; wanted a Tensor")
    if not p >= 0:
        raise ArgumentValueError(f"dist: got p={p}; wanted 0 or more")
    apart = input - other
    return vector_norm.public(apart, float(p))


def vecdot(x: Tensor, y: Tensor, *, axis: int = -1) -> Tensor:
    """Return the dot products along an axis; the first operand is conjugated
    (`mindspore.ops.vecdot`).

    Args:
        x, y: Tensors whose shapes broadcast.
        axis: the axis to sum over.

    Returns:
        Tensor of the broadcast shape without the axis.

    Raises:
        ValueError: shapes that do not broadcast, or an axis out of range.
        TypeError: an operand is not a Tensor.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.vecdot(ms.Tensor([[1, 3], [5, 7]]), ms.Tensor([[4, 5], [6, 7]])))
        [19 79]
    """
    for t in (x, y):
        if not isinstance(t, Tensor):
            raise ArgumentError(f"vecdot: got {type(t).__name__}; wanted a Tensor")
    shape = broadcast_shapes(x.shape, y.shape)
    if shape is None or not shape:
        raise ShapeError(
            f"vecdot: got shapes {x.shape} and {y.shape}; wanted ones that broadcast, with an axis"
        )
    at = axis_of("vecdot", axis, len(shape))
    product = mul(conj(x) if x.dtype.is_complex else x, y)
    return reduce_sum(broadcast_to(product, shape), (at,), False)


class EuclideanNorm(Primitive):
    """Root of the sum of squares over axes: `EuclideanNorm(keep_dims=False)(x, axes)`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.EuclideanNorm()(ms.Tensor([[3.0, 4.0]]), (0, 1)))
        5.0
    """

    def __init__(self, keep_dims: bool = False) -> None:
        super().__init__()
        self.keep_dims = keep_dims

    def __call__(self, x: Tensor, axes: Tensor | tuple[int, ...]) -> Tensor:
        """Return the root of the sum of squares over `axes`, in the dtype of `x`."""
        if isinstance(axes, Tensor):
            axes = tuple(axes.tolist()) if axes.ndim else (int(axes.item()),)
        wide = x if x.dtype.kind in "fc" else cast_to(x, float32)
        out = vector_norm.public(abs(wide), 2.0, axis=tuple(axes), keepdims=self.keep_dims)
        return out if out.dtype is x.dtype else cast_to(out, x.dtype)


def bidense(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Apply a bilinear layer: x1^T W x2 + b for each output feature (`mindspore.ops.bidense`).

    Args:
        input1, input2: Tensors (..., in1) and (..., in2) with equal leading axes.
        weight: Tensor (out, in1, in2).
        bias: Tensor (out,).

    Returns:
        Tensor (..., out).

    Raises:
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[1.0, 2.0]])
        >>> print(ms.ops.bidense(x, x, ms.Tensor([[[1.0, 0.0], [0.0, 1.0]]])))
        [[5.]]
    """
    if (
        weight.ndim != 3
        or input1.shape[:-1] != input2.shape[:-1]
        or (input1.shape[-1:], input2.shape[-1:]) != (weight.shape[1:2], weight.shape[2:])
    ):
        raise ShapeError(
            f"bidense: got shapes {input1.shape}, {input2.shape} and a weight of {weight.shape}; "
            "wanted (..., in1), (..., in2) and (out, in1, in2)"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(f"bidense: got a bias of shape {bias.shape}; wanted {weight.shape[:1]}")
    out = einsum("...i,oij,...j->...o", input1, weight, input2)
    return out if bias is None else out + bias
