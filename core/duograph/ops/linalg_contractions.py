"""Tensor contractions: dot, inner, tensor_dot, batch_dot, and the Kronecker product.

Users call them, and `einstein.py` uses `transposed`. The functions reshape their operands to
matrices and call the primitive `matmul`, since no backend has kernels for contractions.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..call_cache import cached_call
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..tensor import Tensor
from .arguments import ints_of
from .axes import axis_of
from .linalg import matmul_of
from .methods import tensor_method
from .shape_primitives import reshape_to, transpose_by

__all__ = ["dot", "inner", "tensor_dot", "batch_dot", "kron"]


@tensor_method("dot")
@cached_call
def dot(input: Tensor, other: Tensor) -> Tensor:
    """Sum products over one axis of each operand, like `numpy.dot` (`mindspore.ops.dot`).

    The axes are the last of `input` and the second last of `other`.

    Args:
        input: Tensor of any shape.
        other: Tensor of any shape; if it has one axis, that one is used.

    Returns:
        Tensor of shape input.shape[:-1] + (other.shape without its second last axis); for a 0-d
        operand, the product.

    Raises:
        ValueError: the sizes of the two axes differ.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.dot(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])))
        11.0
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    axis = 0 if other.ndim == 1 else other.ndim - 2
    return tensor_dot(input, other, ((input.ndim - 1,), (axis,)))


@tensor_method("inner")
@cached_call
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the sum of products over the last axes (`mindspore.ops.inner`).

    Raises:
        ValueError: the last axes differ in size.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.inner(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])))
        11.0
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    return tensor_dot(input, other, ((input.ndim - 1,), (other.ndim - 1,)))


@cached_call
def tensor_dot(x1: Tensor, x2: Tensor, axes: int | Sequence[int | Sequence[int]]) -> Tensor:
    """Return the sum of products over pairs of axes (`mindspore.ops.tensor_dot`).

    Args:
        x1, x2: Tensors.
        axes: an int n pairs the last n axes of `x1` with the first n of `x2`; or a pair of tuples
            (or ints): the axes of `x1` and those of `x2`.

    Returns:
        Tensor with the remaining axes of `x1`, then those of `x2`.

    Raises:
        ValueError: axes out of range, or paired axes of different size.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.tensor_dot(ms.ops.ones((2, 3)), ms.ops.ones((3, 4)), 1).shape)
        (2, 4)
    """
    first, second = _dot_axes(axes, x1, x2)
    for i, j in zip(first, second, strict=True):
        if x1.shape[i] != x2.shape[j]:
            raise ShapeError(
                f"tensor_dot: got shapes {x1.shape} and {x2.shape} with axes {axes!r}; axis "
                f"{i} has "
                f"size {x1.shape[i]} and axis {j} size {x2.shape[j]}, wanted the same"
            )
    left = [i for i in range(x1.ndim) if i not in first]
    right = [j for j in range(x2.ndim) if j not in second]
    k = _product(x1.shape, first)
    a = reshape_to(transposed(x1, (*left, *first)), (_product(x1.shape, left), k))
    b = reshape_to(transposed(x2, (*second, *right)), (k, _product(x2.shape, right)))
    shape = (*[x1.shape[i] for i in left], *[x2.shape[j] for j in right])
    return reshape_to(matmul_of(a, b), shape)


def _dot_axes(axes: object, x: Tensor, y: Tensor) -> tuple[list[int], list[int]]:
    if isinstance(axes, int) and not isinstance(axes, bool):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ArgumentValueError(
                f"tensor_dot: got axes={axes} for shapes {x.shape} and {y.shape}; wanted 0 to "
                f"{min(x.ndim, y.ndim)}"
            )
        return list(range(x.ndim - axes, x.ndim)), list(range(axes))
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise ArgumentError(f"tensor_dot: got axes={axes!r}; wanted an int or a pair of axes")
    a, b = ([v] if isinstance(v, int) else list(v) for v in axes)
    if len(a) != len(b):
        raise ArgumentValueError(f"tensor_dot: got axes={axes!r}; wanted as many for each tensor")
    return [axis_of("tensor_dot", i, x.ndim) for i in a], [
        axis_of("tensor_dot", j, y.ndim) for j in b
    ]


def _product(shape: Sequence[int], axes: Sequence[int]) -> int:
    n = 1
    for i in axes:
        n *= shape[i]
    return n


def transposed(x: Tensor, perm: Sequence[int]) -> Tensor:
    """Permute the axes of `x`; return `x` itself if `perm` keeps their order."""
    return x if tuple(perm) == tuple(range(x.ndim)) else transpose_by(x, tuple(perm))


@cached_call
def batch_dot(x1: Tensor, x2: Tensor, axes: int | Sequence[int] | None = None) -> Tensor:
    """Sum products over one axis of each operand, separately for each index of axis 0
    (`mindspore.ops.batch_dot`).

    Args:
        x1, x2: Tensors of at least two axes and the same axis 0.
        axes: int or pair of ints; default the last of `x1` and the second last of `x2` (its last if
            it has two).

    Returns:
        Tensor (batch, other axes of x1..., other axes of x2...); for two matrices (batch, 1).

    Raises:
        ValueError: the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.batch_dot(ms.ops.ones((2, 2, 3)), ms.ops.ones((2, 3, 2)), (-1, -2)).shape)
        (2, 2, 2)
    """
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[0] != x2.shape[0]:
        raise ShapeError(
            f"batch_dot: got shapes {x1.shape} and {x2.shape}; wanted at least two axes and "
            f"the same axis 0"
        )
    if axes is None:
        axes = (x1.ndim - 1, 1 if x2.ndim == 2 else x2.ndim - 2)
    pair = ints_of("batch_dot", "axes", axes)
    if len(pair) not in (1, 2):
        raise ArgumentValueError(f"batch_dot: got axes={axes!r}; wanted one of each tensor")
    i, j = axis_of("batch_dot", pair[0], x1.ndim), axis_of("batch_dot", pair[-1], x2.ndim)
    if i == 0 or j == 0 or x1.shape[i] != x2.shape[j]:
        raise ShapeError(
            f"batch_dot: got shapes {x1.shape} and {x2.shape} with axes {pair}; wanted axes of "
            f"one size, not 0"
        )
    left = [a for a in range(1, x1.ndim) if a != i]
    right = [b for b in range(1, x2.ndim) if b != j]
    n, k = x1.shape[0], x1.shape[i]
    a = reshape_to(transposed(x1, (0, *left, i)), (n, _product(x1.shape, left), k))
    b = reshape_to(transposed(x2, (0, j, *right)), (n, k, _product(x2.shape, right)))
    shape = (n, *[x1.shape[q] for q in left], *[x2.shape[q] for q in right])
    return reshape_to(matmul_of(a, b), shape if len(shape) > 1 else (n, 1))


@tensor_method("kron")
@cached_call
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product (`mindspore.ops.kron`).

    Args:
        input, other: Tensors of any shape.

    Returns:
        Tensor whose axes have the products of the sizes.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.kron(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])))
        [3. 4. 6. 8.]
    """
    n = max(input.ndim, other.ndim)
    a = (1,) * (n - input.ndim) + input.shape
    b = (1,) * (n - other.ndim) + other.shape
    x = reshape_to(input, tuple(d for s in a for d in (s, 1)))
    y = reshape_to(other, tuple(d for s in b for d in (1, s)))
    return reshape_to(x * y, tuple(s * t for s, t in zip(a, b, strict=True)))
