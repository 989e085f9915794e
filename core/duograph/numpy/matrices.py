"""Functions of `duograph.numpy` for diagonals and triangles of matrices.

Users call them as `duograph.numpy.NAME`. Each calls the op of `duograph.ops` that computes it, or
makes a constant; none may compute an element itself.
"""

from __future__ import annotations

import numpy as _np

from .. import ops as _ops
from ..dtype import DTypeLike, as_dtype, float32
from ..errors import ArgumentValueError
from ..tensor import Tensor
from .operands import TensorLike, tensor_of

__all__ = [
    "diag", "diagflat", "diagonal", "eye", "identity", "tri", "tril", "triu", "vander",
]  # fmt: skip


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float32) -> Tensor:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: number of rows.
        M: number of columns; None is `N`.
        k: which diagonal; 0 is the main one, positive numbers are above it.
        dtype: element type.

    Returns:
        Tensor of shape (N, M).

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.eye(2, 3, 1))
        [[0. 1. 0.]
         [0. 0. 1.]]
    """
    return Tensor(_np.eye(N, M, k), as_dtype(dtype))


def identity(n: int, dtype: DTypeLike = float32) -> Tensor:
    """Return the identity matrix.

    Args:
        n: number of rows and columns.
        dtype: element type.

    Returns:
        Tensor of shape (n, n).

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.identity(2))
        [[1. 0.]
         [0. 1.]]
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float32) -> Tensor:
    """Return a matrix with ones on and below a diagonal and zeros above it.

    Args:
        N: number of rows.
        M: number of columns; None is `N`.
        k: which diagonal; 0 is the main one, positive numbers are above it.
        dtype: element type.

    Returns:
        Tensor of shape (N, M).

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.tri(2, 3))
        [[1. 0. 0.]
         [1. 1. 0.]]
    """
    return Tensor(_np.tri(N, M, k), as_dtype(dtype))


def triu(m: TensorLike, k: int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal.

    Args:
        m: array-like of shape (..., M, N).
        k: which diagonal; 0 is the main one, positive numbers are above it.

    Returns:
        Tensor of the shape of `m`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.triu([[1, 2], [3, 4]]))
        [[1 2]
         [0 4]]
    """
    return _ops.triu(tensor_of(m), k)


def tril(m: TensorLike, k: int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    Args:
        m: array-like of shape (..., M, N).
        k: which diagonal; 0 is the main one, positive numbers are above it.

    Returns:
        Tensor of the shape of `m`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.tril([[1, 2], [3, 4]]))
        [[1 0]
         [3 4]]
    """
    return _ops.tril(tensor_of(m), k)


def diag(v: TensorLike, k: int = 0) -> Tensor:
    """Return a matrix with a vector on its diagonal or, of a matrix, a diagonal.

    Args:
        v: array-like of one or two axes.
        k: which diagonal; 0 is the main one, positive numbers are above it.

    Returns:
        Tensor of two axes or one.

    Raises:
        ValueError: `v` has another number of axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.diag([[1, 2], [3, 4]]))
        [1 4]
    """
    x = tensor_of(v)
    if x.ndim not in (1, 2):
        raise ArgumentValueError(f"diag: got {x.ndim} axes; wanted one or two")
    return _ops.diagflat(x, k) if x.ndim == 1 else _ops.diagonal(x, k)


def diagflat(v: TensorLike, k: int = 0) -> Tensor:
    """Return a matrix with the elements of an array-like on its diagonal.

    Args:
        v: array-like, which is flattened.
        k: which diagonal; 0 is the main one, positive numbers are above it.

    Returns:
        Tensor of two axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.diagflat([[1, 2]], 1))
        [[0 1 0]
         [0 0 2]
         [0 0 0]]
    """
    return _ops.diagflat(tensor_of(v), k)


def diagonal(a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the diagonal of the matrices that two axes span.

    Args:
        a: array-like of at least two axes.
        offset: which diagonal; 0 is the main one, positive numbers are above it.
        axis1: the axis of the rows.
        axis2: the axis of the columns.

    Returns:
        Tensor without these two axes and with the diagonal as its last axis.

    Raises:
        ValueError: `a` has fewer than two axes, or the axes are not two.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.diagonal([[1, 2], [3, 4]]))
        [1 4]
    """
    return _ops.diagonal(tensor_of(a), offset, axis1, axis2)


def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return a Vandermonde matrix: the powers of each element as a row.

    Args:
        x: array-like of one axis.
        N: number of columns; None is the size of `x`.
        increasing: whether the powers rise from left to right.

    Returns:
        Tensor of shape (len(x), N).

    Raises:
        ValueError: `x` has another number of axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.vander([1, 2, 3]))
        [[1 1 1]
         [4 2 1]
         [9 3 1]]
    """
    made = _ops.vander(tensor_of(x), N)
    return _ops.flip(made, (1,)) if increasing else made
