"""Linear algebra of square matrices: solve, inverse, determinants, Cholesky factors, powers.

Users call these functions. For backends without a kernel, the ops are decomposed by unrolling over
the rows, so the time to prepare a call grows with the size of the matrix. No function here may
compute on the host, so that all of them can be compiled.
"""

from __future__ import annotations

import numpy as np

from ..call_cache import cached_call
from ..dtype import FLOATING, DType, bool_, float32, int64
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..tensor import Tensor
from ..types import TensorType
from . import elementwise
from .axes import axis_of
from .comparison import equal, less
from .creation import cast_to, fill, iota
from .elementwise import neg
from .exponential import exp, log
from .gather_scatter import gather, gather_elements_by
from .linalg import matmul_of
from .logic import bitwise_and, logical_and, logical_not, logical_or, select_by
from .methods import tensor_method
from .movement import concat_by, identity, slice_by
from .powers import sqrt
from .primitive import Primitive
from .reduction import argmax_along, reduce_any
from .shape_primitives import broadcast_to, reduce_sum, reshape_to, transpose_by

__all__ = [
    "inverse", "inv_ex", "solve", "det", "slogdet", "logdet", "cholesky", "cholesky_inverse",
    "matrix_power", "cross", "MatrixInverse",
]  # fmt: skip


def _square(name: str, x: Tensor) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{name}: got a tensor of shape {x.shape}; wanted square matrices (..., n, n)"
        )


def _transposed(x: Tensor) -> Tensor:
    return transpose_by(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _column(x: Tensor, k: int) -> Tensor:
    """Return column `k` of each matrix: ``x[..., k]``."""
    begin = (*[0] * (x.ndim - 1), k)
    end = (*x.shape[:-1], k + 1)
    return reshape_to(slice_by(x, begin, end, (1,) * x.ndim), x.shape[:-1])


def _eye(n: int, dtype: DType) -> Tensor:
    return cast_to(equal(iota((n, n), 0, int64), iota((n, n), 1, int64)), dtype)


def _eliminated(a: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Run Gauss-Jordan elimination with partial pivoting on the first `steps` columns of `a`.

    `a` has shape (..., n, m). Rows are not exchanged. Returns (matrix after elimination, index of
    the pivot row of each column, pivot of each column); the last two have shape (..., steps).
    """
    *batch, n, _ = a.shape
    used = fill((*batch, n), False, bool_)
    zero = fill((), 0.0, a.dtype)
    rows, pivots = [], []
    for k in range(steps):
        column = _column(a, k)
        size = select_by(used, fill((), -1.0, a.dtype), elementwise.abs(column))
        row = argmax_along(size, len(batch))
        hot = equal(iota((*batch, n), len(batch), int64), reshape_to(row, (*batch, 1)))
        line = reduce_sum(select_by(reshape_to(hot, (*batch, n, 1)), a, zero), (len(batch),), True)
        pivot = reshape_to(_column(line, k), (*batch, 1))
        factor = select_by(hot, zero, column) / pivot
        a = a - reshape_to(factor, (*batch, n, 1)) * line
        used = logical_or(used, hot)
        rows.append(reshape_to(row, (*batch, 1)))
        pivots.append(pivot)
    return a, concat_by(rows, len(batch)), concat_by(pivots, len(batch))


# ---- solving ------------------------------------------------------------------------------------


@op(name="solve", dtypes=FLOATING, promote="common")
def solve_by(a: Tensor, b: Tensor):
    """Primitive op: solve a x = b for x, with a (..., n, n) and b (..., n, k)."""


@solve_by.infer
def _(a, b):
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(
            f"solve: got shapes {a.shape} and {b.shape}; wanted (..., n, n) and (..., n, k)"
        )
    return b


@solve_by.reference
def _(a, b):
    wide = np.float64 if a.dtype == np.float64 else np.float32
    out = np.full(b.shape, np.nan, wide)
    for i in np.ndindex(a.shape[:-2]):
        try:
            out[i] = np.linalg.solve(a[i].astype(wide), b[i].astype(wide))
        except np.linalg.LinAlgError:  # singular: the result remains NaN
            continue
    return out.astype(b.dtype)


@solve_by.decompose
def _(a, b):
    n = a.shape[-1]
    if n == 0 or a.size == 0:
        return identity(b)
    wide = cast_to(a, float32) if a.dtype.itemsize == 2 else a
    right = b if b.dtype is wide.dtype else cast_to(b, wide.dtype)
    lead = a.ndim - 2
    reduced, rows, pivots = _eliminated(concat_by((wide, right), a.ndim - 1), n)
    begin = (*[0] * (a.ndim - 1), n)
    found = slice_by(reduced, begin, reduced.shape, (1,) * a.ndim)
    index = broadcast_to(reshape_to(rows, (*rows.shape, 1)), found.shape)
    ordered = gather_elements_by(found, index, lead) / reshape_to(pivots, (*pivots.shape, 1))
    return ordered if ordered.dtype is b.dtype else cast_to(ordered, b.dtype)


@solve_by.bprop
def _(a, b, out, dout):
    db = solve_by(_transposed(a), dout)
    return neg(matmul_of(db, out, False, True)), db


@cached_call
def solve(A: Tensor, B: Tensor) -> Tensor:
    """Solve A x = B for x (like `mindspore.scipy.linalg.solve`).

    Args:
        A: Tensor (..., n, n), floating.
        B: Tensor (..., n, k), or (n,) for one matrix.

    Returns:
        Tensor of the shape of B; NaN where A is singular.

    Raises:
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.solve(ms.Tensor([[2.0, 0.0], [0.0, 4.0]]), ms.Tensor([[2.0], [4.0]])))
        [[1.]
         [1.]]
    """
    if B.ndim == 1 and A.ndim == 2:
        return reshape_to(solve_by(A, reshape_to(B, (B.shape[0], 1))), B.shape)
    return solve_by(A, B)


@op(method="inverse", dtypes=FLOATING)
def inverse(input: Tensor):
    """Return the inverse of matrices (`mindspore.ops.inverse`).

    Args:
        input: Tensor (..., n, n); integers are converted to float32.

    Returns:
        Tensor of the shape of `input`; NaN or inf where a matrix is singular.

    Raises:
        ValueError: not square.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.inverse(ms.Tensor([[2.0, 0.0], [0.0, 4.0]])))
        [[0.5  0.  ]
         [0.   0.25]]
    """
    n = input.shape[-1]
    return solve_by(input, broadcast_to(_eye(n, input.dtype), input.shape))


@inverse.normaliser
def _(input: Tensor):
    _square("inverse", input)
    return (cast_to(input, float32) if input.dtype.kind in "biu" else input,)


@inverse.bprop
def _(x, out, dout):
    t = _transposed(out)
    return (neg(matmul_of(matmul_of(t, dout), t)),)


inv_ex = inverse.public


# ---- determinants -------------------------------------------------------------------------------


@op(method="slogdet", dtypes=FLOATING, primitive="LogMatrixDeterminant")
def slogdet(input: Tensor):
    """Return the sign of determinants and the logarithm of their absolute value.

    See `mindspore.ops.slogdet`.

    Raises:
        ValueError: not square.

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.slogdet(ms.Tensor([[1.0, 0.0], [0.0, -1.0]])))
        -1.0 0.0
    """


@slogdet.normaliser
def _(input: Tensor) -> tuple[Tensor, ...]:
    _square("slogdet", input)
    return (input,)


@slogdet.infer
def _(x):
    _square("slogdet", x)
    t = TensorType.of(x.shape[:-2], x.dtype)
    return t, t


@slogdet.reference
def _(x):
    wide = np.float64 if x.dtype == np.float64 else np.float32
    sign, size = np.linalg.slogdet(x.astype(wide))
    return np.asarray(sign).astype(x.dtype), np.asarray(size).astype(x.dtype)


def _signs(rows: Tensor, pivots: Tensor) -> Tensor:
    """Return the sign (-1 or 1) of each determinant, from the results of `_eliminated`.

    It is the parity of the permutation `rows` times the signs of `pivots`.
    """
    *batch, n = rows.shape
    lead = len(batch)
    before = less(reshape_to(rows, (*batch, 1, n)), reshape_to(rows, (*batch, n, 1)))
    upper = less(iota((n, n), 0, int64), iota((n, n), 1, int64))
    swaps = reduce_sum(cast_to(logical_and(before, upper), int64), (lead, lead + 1), False)
    minus = reduce_sum(cast_to(less(pivots, fill((), 0.0, pivots.dtype)), int64), (lead,), False)
    odd = bitwise_and(swaps + minus, fill((), 1, int64))
    return select_by(
        equal(odd, fill((), 1, int64)),
        fill((), -1.0, pivots.dtype),
        fill((), 1.0, pivots.dtype),
    )


@slogdet.decompose
def _(input):
    n = input.shape[-1]
    batch = input.shape[:-2]
    if n == 0 or input.size == 0:
        return fill(batch, 1.0, input.dtype), fill(batch, 0.0, input.dtype)
    wide = cast_to(input, float32) if input.dtype.itemsize == 2 else input
    _, rows, pivots = _eliminated(wide, n)
    # a pivot of 0 makes the later ones NaN, and so does NaN in a matrix, which is not singular
    singular = reduce_any(equal(pivots, fill((), 0.0, pivots.dtype)), (len(batch),), False)
    total = reduce_sum(log(elementwise.abs(pivots)), (len(batch),), False)
    size = select_by(singular, fill((), float("-inf"), total.dtype), total)
    sign = select_by(singular, fill((), 0.0, pivots.dtype), _signs(rows, pivots))
    if wide.dtype is input.dtype:
        return sign, size
    return cast_to(sign, input.dtype), cast_to(size, input.dtype)


@slogdet.bprop
def _(x, out, dout):
    share = reshape_to(dout[1], (*dout[1].shape, 1, 1))
    return (share * _transposed(inverse(x)),)


@op(method="det", dtypes=FLOATING, primitive="MatrixDeterminant")
def det(input: Tensor):
    """Return the determinant of matrices (`mindspore.ops.det`).

    Args:
        input: Tensor (..., n, n), floating.

    Returns:
        Tensor (...). The gradient of a singular matrix is NaN.

    Raises:
        ValueError: not square.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.det(ms.Tensor([[2.0, 0.0], [0.0, 4.0]])))
        8.0
    """


@det.normaliser
def _(input: Tensor):
    _square("det", input)
    return (input,)


@det.infer
def _(x):
    _square("det", x)
    return TensorType.of(x.shape[:-2], x.dtype)


@det.reference
def _(x):
    wide = np.float64 if x.dtype == np.float64 else np.float32
    return np.asarray(np.linalg.det(x.astype(wide))).astype(x.dtype)


@det.decompose
def _(input):
    sign, size = slogdet(input)
    return sign * exp(size)


@det.bprop
def _(x, out, dout):
    share = reshape_to(dout * out, (*out.shape, 1, 1))
    return (share * _transposed(inverse(x)),)


@tensor_method("logdet")
@cached_call
def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of determinants, NaN where they are negative (`mindspore.ops.logdet`).

    Raises:
        ValueError: not square.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.logdet(ms.Tensor([[1.0, 0.0], [0.0, 1.0]])))
        0.0
    """
    sign, size = slogdet.public(input)
    zero = fill((), 0.0, size.dtype)
    return select_by(less(sign, zero), fill((), float("nan"), size.dtype), size)


# ---- Cholesky -----------------------------------------------------------------------------------


@op(name="cholesky", dtypes=FLOATING, primitive="Cholesky")
def cholesky_by(input: Tensor):
    """Primitive op: Cholesky factor, lower triangular L with L L^T = input; NaN if none exists.

    Only the lower triangle of `input` is read.
    """


@cholesky_by.infer
def _(x):
    _square("cholesky", x)
    return x


@cholesky_by.reference
def _(x):
    wide = np.float64 if x.dtype == np.float64 else np.float32
    out = np.full(x.shape, np.nan, wide)
    for i in np.ndindex(x.shape[:-2]):
        low = np.tril(x[i].astype(wide))
        try:
            out[i] = np.linalg.cholesky(low + np.tril(low, -1).T)
        except np.linalg.LinAlgError:  # not positive definite: the result remains NaN
            continue
    return out.astype(x.dtype)


@cholesky_by.decompose
def _(input):
    *batch, n, _ = input.shape
    if input.size == 0:
        return identity(input)
    wide = cast_to(input, float32) if input.dtype.itemsize == 2 else input
    zero = fill((), 0.0, wide.dtype)
    row = iota((n,), 0, int64)
    columns = []
    bad = None
    for k in range(n):
        column = select_by(less(row, fill((), k, int64)), zero, _column(wide, k))
        pivot = reshape_to(_column(column, k), (*batch, 1))
        here = logical_not(less(zero, pivot))
        bad = here if bad is None else logical_or(bad, here)
        column = column / sqrt(pivot)
        columns.append(reshape_to(column, (*batch, n, 1)))
        if k + 1 < n:
            wide = wide - columns[-1] * reshape_to(column, (*batch, 1, n))
    found = concat_by(columns, len(batch) + 1) if n > 1 else columns[0]
    found = select_by(reshape_to(bad, (*batch, 1, 1)), fill((), float("nan"), found.dtype), found)
    return found if found.dtype is input.dtype else cast_to(found, input.dtype)


@cholesky_by.bprop
def _(x, out, dout):
    # Murray, 2016: S = L^-T phi(L^T dL) L^-1, phi halves the diagonal of the lower triangle
    n = x.shape[-1]
    below = logical_not(less(iota((n, n), 0, int64), iota((n, n), 1, int64)))
    weight = cast_to(below, x.dtype) - _eye(n, x.dtype) * 0.5
    inner = matmul_of(out, dout, True, False) * weight
    inv = inverse(out)
    s = matmul_of(matmul_of(inv, inner, True, False), inv)
    # only the lower triangle is read, so it also receives the gradient of the mirrored elements
    both = s + _transposed(s)
    return (both * weight,)


@tensor_method("cholesky")
@cached_call
def cholesky(input_x: Tensor, upper: bool = False) -> Tensor:
    """Return the Cholesky factor of positive definite matrices (`mindspore.ops.cholesky`).

    Args:
        input_x: Tensor (..., n, n), floating; the lower triangle is read.
        upper: whether to return the transposed factor.

    Returns:
        Tensor of the shape of `input_x`; NaN where a matrix is not positive definite.

    Raises:
        ValueError: not square.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cholesky(ms.Tensor([[4.0, 2.0], [2.0, 2.0]])))
        [[2. 0.]
         [1. 1.]]
    """
    _square("cholesky", input_x)
    found = cholesky_by(input_x)
    return _transposed(found) if upper else found


@tensor_method("cholesky_inverse")
@cached_call
def cholesky_inverse(input_x: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of a matrix from its Cholesky factor (`mindspore.ops.cholesky_inverse`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cholesky_inverse(ms.Tensor([[2.0]])))
        [[0.25]]
    """
    _square("cholesky_inverse", input_x)
    inv = inverse(input_x)
    return matmul_of(inv, inv, not upper, upper)


# ---- others -------------------------------------------------------------------------------------


@tensor_method("matrix_power")
@cached_call
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Raise square matrices to a power, by repeated squaring; negative powers are powers of the
    inverse (`mindspore.ops.matrix_power`).

    Raises:
        ValueError: not square.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.matrix_power(ms.Tensor([[2.0]]), 3))
        [[8.]]
    """
    _square("matrix_power", input)
    if n == 0:
        return broadcast_to(_eye(input.shape[-1], input.dtype), input.shape)
    base = inverse.public(input) if n < 0 else input
    n = abs(n)
    out = None
    while n:
        if n & 1:
            out = base if out is None else matmul_of(out, base)
        n >>= 1
        if n:
            base = matmul_of(base, base)
    assert out is not None
    return out


@tensor_method("cross")
@cached_call
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross product of vectors of three elements along an axis (`mindspore.ops.cross`).

    Args:
        input, other: Tensors of the same shape.
        dim: the axis, of size 3; default the first axis of that size.

    Raises:
        ValueError: other shapes, or no axis of size 3.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cross(ms.Tensor([1.0, 0.0, 0.0]), ms.Tensor([0.0, 1.0, 0.0])))
        [0. 0. 1.]
    """
    if input.shape != other.shape:
        raise ShapeError(f"cross: got shapes {input.shape} and {other.shape}; wanted the same")
    axis = None if dim is None else axis_of("cross", dim, input.ndim)
    if axis is None:
        axis = next((i for i, n in enumerate(input.shape) if n == 3), -1)
    if axis < 0 or input.shape[axis] != 3:
        raise ArgumentValueError(
            f"cross: got shape {input.shape} and dim={dim}; wanted an axis of size 3"
        )

    def permuted(x: Tensor, order: tuple[int, ...]) -> Tensor:
        return gather(x, np.array(order), axis)

    a, b = (1, 2, 0), (2, 0, 1)
    return permuted(input, a) * permuted(other, b) - permuted(input, b) * permuted(other, a)


# ---- primitive classes --------------------------------------------------------------------------


class MatrixInverse(Primitive):
    """Inverse of square matrices: `MatrixInverse(adjoint=False)(x)`."""

    op = inverse

    def __init__(self, adjoint: bool = False) -> None:
        super().__init__()
        self.adjoint = adjoint

    def __call__(self, x: Tensor) -> Tensor:
        """Return the inverse of each matrix, transposed if `adjoint` is set."""
        out = inverse.public(x)
        return _transposed(out) if self.adjoint else out
