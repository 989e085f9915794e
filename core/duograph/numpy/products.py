"""Products and norms of `duograph.numpy`: matmul, dot, cross, kron, norm, trace and relatives.

Users call them as `duograph.numpy.NAME`. Each converts its operands and calls an op of
`duograph.ops`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops as _ops
from ..dtype import DTypeLike
from ..errors import ArgumentValueError
from ..tensor import Tensor
from .operands import Ints, TensorLike, as_floating, axis_of, pair, tensor_of, with_dtype
from .reductions import sum as _sum

__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matrix_power", "multi_dot", "norm", "outer",
    "tensordot", "trace",
]  # fmt: skip


def matmul(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return the matrix product.

    Args:
        x1: array-like of shape (..., N, K) or (K,).
        x2: array-like of shape (..., K, M) or (K,); leading axes broadcast.
        dtype: element type of the result; None leaves it as computed.

    Returns:
        Tensor of shape (..., N, M), without the axes that a vector lacks.

    Raises:
        ValueError: the shapes do not fit.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.matmul([[1.0, 2.0]], [[3.0], [4.0]]))
        [[11.]]
    """
    return with_dtype(_ops.matmul(*pair("matmul", x1, x2)), dtype)


def dot(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the sum of products over the last axis of `a` and the second to last of `b`.

    Args:
        a: array-like.
        b: array-like; for a vector, the sum is over its only axis.

    Returns:
        Tensor with the other axes of `a`, then those of `b`; the product if an operand is a number.

    Raises:
        ValueError: the axes have different sizes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.dot([1.0, 2.0], [3.0, 4.0]))
        11.0
    """
    x, y = pair("dot", a, b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return _ops.tensor_dot(x, y, ([x.ndim - 1], [y.ndim - 2 if y.ndim > 1 else 0]))


def inner(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the sum of products over the last axes of both operands.

    Args:
        a: array-like.
        b: array-like.

    Returns:
        Tensor with the other axes of `a`, then those of `b`; the product if an operand is a number.

    Raises:
        ValueError: the axes have different sizes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.inner([1.0, 2.0], [[3.0, 4.0], [5.0, 6.0]]))
        [11. 17.]
    """
    x, y = pair("inner", a, b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return _ops.tensor_dot(x, y, ([x.ndim - 1], [y.ndim - 1]))


def outer(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the products of each element of `a` with each of `b`.

    Args:
        a: array-like, which is flattened.
        b: array-like, which is flattened.

    Returns:
        Tensor of two axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.outer([1, 2], [3, 4]))
        [[3 4]
         [6 8]]
    """
    x, y = pair("outer", a, b)
    return _ops.outer(x.reshape(-1), y.reshape(-1))


def tensordot(a: TensorLike, b: TensorLike, axes: int | Sequence[Ints] = 2) -> Tensor:
    """Return the sum of products over pairs of axes.

    Args:
        a: array-like.
        b: array-like.
        axes: number of last axes of `a` that are paired with first axes of `b`, or a pair of lists
            of axes.

    Returns:
        Tensor with the other axes of `a`, then those of `b`.

    Raises:
        ValueError: the axes have different sizes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.tensordot([[1.0, 2.0]], [[3.0], [4.0]], 1))
        [[11.]]
    """
    return _ops.tensor_dot(*pair("tensordot", a, b), axes)


def kron(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the Kronecker product.

    Args:
        a: array-like.
        b: array-like.

    Returns:
        Tensor in which each element of `a` is replaced by its product with `b`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.kron([1, 10], [5, 6]))
        [ 5  6 50 60]
    """
    return _ops.kron(*pair("kron", a, b))


def cross(
    a: TensorLike,
    b: TensorLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Tensor:
    """Return the cross product of vectors of two or three components.

    Args:
        a: array-like.
        b: array-like; the other axes broadcast with those of `a`.
        axisa: the axis of the vectors in `a`.
        axisb: the axis of the vectors in `b`.
        axisc: the axis of the vectors in the result.
        axis: the axis in all three, in place of the other arguments.

    Returns:
        Tensor; for vectors of two components, it has the third component alone.

    Raises:
        ValueError: the vectors have another number of components.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.cross([1, 2, 3], [4, 5, 6]))
        [-3  6 -3]
    """
    if axis is not None:
        axisa, axisb, axisc = axis, axis, axis
    x, y = pair("cross", a, b)
    x = _ops.moveaxis(x, axis_of("cross", axisa, x.ndim), -1)
    y = _ops.moveaxis(y, axis_of("cross", axisb, y.ndim), -1)
    sizes = (x.shape[-1], y.shape[-1])
    if not {*sizes} <= {2, 3}:
        raise ArgumentValueError(f"cross: got vectors of {sizes} components; wanted 2 or 3")
    x0, x1, y0, y1 = x[..., 0], x[..., 1], y[..., 0], y[..., 1]
    third = x0 * y1 - x1 * y0
    if sizes == (2, 2):
        return third
    zero = _ops.zeros_like(third)
    x2 = x[..., 2] if sizes[0] == 3 else zero
    y2 = y[..., 2] if sizes[1] == 3 else zero
    made = _ops.stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, third], -1)
    return _ops.moveaxis(made, -1, axis_of("cross", axisc, made.ndim))


def trace(
    a: TensorLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the sum along a diagonal.

    Args:
        a: array-like of at least two axes.
        offset: which diagonal; 0 is the main one, positive numbers are above it.
        axis1: the axis of the rows.
        axis2: the axis of the columns.
        dtype: element type in which the sum is computed; None is int64 for bools and integers.

    Returns:
        Tensor without these two axes.

    Raises:
        ValueError: `a` has fewer than two axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.trace([[1, 2], [3, 4]]))
        5
    """
    return _sum(_ops.diagonal(tensor_of(a), offset, axis1, axis2), -1, dtype)


def norm(
    x: TensorLike,
    ord: float | str | None = None,
    axis: Ints | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return a norm of vectors or matrices.

    Args:
        x: array-like.
        ord: order of the norm: a number, ``"fro"`` or ``"nuc"``; None is the 2-norm.
        axis: the axis of vectors or the two axes of matrices; None takes all axes.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor of floats.

    Raises:
        ValueError: there is no such norm.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.norm([3.0, 4.0]))
        5.0
    """
    t = as_floating(tensor_of(x))
    if axis is None and ord is None:
        out = _ops.norm(t.reshape(-1))
        return out.reshape((1,) * t.ndim) if keepdims else out
    if axis is None and t.ndim not in (1, 2):
        raise ArgumentValueError(
            f"norm: got ord={ord!r} for shape {t.shape}; wanted one or two axes"
        )
    return _ops.norm(t, ord, axis, keepdims)


def matrix_power(a: TensorLike, n: int) -> Tensor:
    """Return a square matrix to an integer power.

    Args:
        a: array-like of shape (..., M, M).
        n: the power; a negative one inverts the matrix.

    Returns:
        Tensor of the shape of `a`.

    Raises:
        ValueError: the matrices are not square.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.matrix_power([[1.0, 1.0], [0.0, 1.0]], 3))
        [[1. 3.]
         [0. 1.]]
    """
    return _ops.matrix_power(tensor_of(a), n)


def multi_dot(arrays: Sequence[TensorLike]) -> Tensor:
    """Return the matrix product of several operands, in the order with the fewest multiplications.

    Args:
        arrays: array-likes of two axes; the first and last may have one.

    Returns:
        Tensor; vectors at the ends have no axis in it.

    Raises:
        ValueError: there are fewer than two operands, or the shapes do not fit.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.multi_dot([mnp.ones((2, 3)), mnp.ones((3, 2)), mnp.ones(2)]))
        [6. 6.]
    """
    tensors = [tensor_of(a) for a in arrays]
    if len(tensors) < 2:
        raise ArgumentValueError(f"multi_dot: got {len(tensors)} operands; wanted at least two")
    first, last = tensors[0], tensors[-1]
    matrices = [
        first.reshape(1, -1) if first.ndim == 1 else first,
        *tensors[1:-1],
        last.reshape(-1, 1) if last.ndim == 1 else last,
    ]
    for t in matrices:
        if t.ndim != 2:
            raise ArgumentValueError(f"multi_dot: got shape {t.shape}; wanted two axes")
    cuts = _best_cuts([matrices[0].shape[0], *[t.shape[1] for t in matrices]])
    out = _product(matrices, cuts, 0, len(matrices) - 1)
    shape = out.shape[first.ndim == 1 :] if last.ndim > 1 else out.shape[first.ndim == 1 : 1]
    return out.reshape(shape)


def _best_cuts(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return, for each product of the matrices i to j, after which matrix to split it.

    The keys of the result are (i, j); the value k means (matrices i to k) @ (matrices k + 1 to j).
    Matrix `k` has shape (sizes[k], sizes[k + 1]). The splits minimise the multiplications (Cormen
    et al., Matrix-chain multiplication); the time is cubic in the number of matrices.
    """
    count = len(sizes) - 1
    costs = {(k, k): 0 for k in range(count)}
    cuts = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs[i, j], cuts[i, j] = min(
                (costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return cuts


def _product(matrices: list[Tensor], cuts: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return matrices[i]
    k = cuts[i, j]
    return matmul(_product(matrices, cuts, i, k), _product(matrices, cuts, k + 1, j))
