"""Linear algebra: solving, inverses, determinants, Cholesky factors, powers, singular values.

The decompositions unroll over the rows, so preparing a call takes time in proportion to the size of
the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autodiff.custom import custom_gradient
from ..dtype import FLOATING, bool_, float32, int64
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..tensor import Tensor
from ..types import TensorType
from .axes import axis_of
from .creation import cast_to
from .methods import tensor_method
from .primitive import Primitive
from .table import P

__all__ = [
    "inverse", "inv_ex", "solve", "det", "slogdet", "logdet", "cholesky", "cholesky_inverse",
    "matrix_power", "cross", "svd", "singular_values", "pinv", "MatrixInverse", "MatrixDeterminant",
    "LogMatrixDeterminant", "Cholesky",
]  # fmt: skip


def _square(name: str, x: Any) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{name}: got a tensor of shape {x.shape}; wanted square matrices (..., n, n)"
        )


def _turned(x: Any) -> Any:
    return P.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _column(x: Any, k: int) -> Any:
    """x[..., k]."""
    begin = (*[0] * (x.ndim - 1), k)
    end = (*x.shape[:-1], k + 1)
    return P.reshape(P.strided_slice(x, begin, end, (1,) * x.ndim), x.shape[:-1])


def _eye(n: int, dtype: Any) -> Any:
    return cast_to(P.equal(P.iota((n, n), 0, int64), P.iota((n, n), 1, int64)), dtype)


def _eliminated(a: Any, steps: int) -> tuple[Any, Any, Any]:
    """Gauss-Jordan elimination with partial pivoting of the first `steps` columns of (..., n, m).

    Rows stay where they are. Returns the reduced matrix, the pivot row of each column and the
    pivots.
    """
    *batch, n, _ = a.shape
    used = P.fill((*batch, n), False, bool_)
    zero = P.fill((), 0.0, a.dtype)
    rows, pivots = [], []
    for k in range(steps):
        column = _column(a, k)
        size = P.select(used, P.fill((), -1.0, a.dtype), P.abs(column))
        row = P.argmax(size, len(batch))
        hot = P.equal(P.iota((*batch, n), len(batch), int64), P.reshape(row, (*batch, 1)))
        line = P.reduce_sum(P.select(P.reshape(hot, (*batch, n, 1)), a, zero), (len(batch),), True)
        pivot = P.reshape(_column(line, k), (*batch, 1))
        factor = P.select(hot, zero, column) / pivot
        a = a - P.reshape(factor, (*batch, n, 1)) * line
        used = P.logical_or(used, hot)
        rows.append(P.reshape(row, (*batch, 1)))
        pivots.append(pivot)
    return a, P.concat(rows, len(batch)), P.concat(pivots, len(batch))


# ---- solving ------------------------------------------------------------------------------------


@op(name="solve", dtypes=FLOATING, promote="common")
def solve_by(a: Tensor, b: Tensor):
    """Primitive: x of a x = b for a (..., n, n) and b (..., n, k) of the same leading axes."""


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
        except np.linalg.LinAlgError:  # singular: not a number
            continue
    return out.astype(b.dtype)


@solve_by.decompose
def _(a, b):
    n = a.shape[-1]
    if n == 0 or a.size == 0:
        return P.identity(b)
    wide = cast_to(a, float32) if a.dtype.itemsize == 2 else a
    right = b if b.dtype is wide.dtype else cast_to(b, wide.dtype)
    lead = a.ndim - 2
    reduced, rows, pivots = _eliminated(P.concat((wide, right), a.ndim - 1), n)
    begin = (*[0] * (a.ndim - 1), n)
    found = P.strided_slice(reduced, begin, reduced.shape, (1,) * a.ndim)
    index = P.broadcast_to(P.reshape(rows, (*rows.shape, 1)), found.shape)
    ordered = P.gather_elements(found, index, lead) / P.reshape(pivots, (*pivots.shape, 1))
    return ordered if ordered.dtype is b.dtype else cast_to(ordered, b.dtype)


@solve_by.bprop
def _(a, b, out, dout):
    db = solve_by(_turned(a), dout)
    return P.neg(P.matmul(db, out, False, True)), db


def solve(A: Tensor, B: Tensor) -> Tensor:
    """x of A x = B (`mindspore.scipy.linalg` style).

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
        return P.reshape(solve_by(A, P.reshape(B, (B.shape[0], 1))), B.shape)
    return solve_by(A, B)


@op(name="inverse", dtypes=FLOATING)
def inverse_by(input: Tensor):
    """Inverse of matrices (..., n, n)."""
    n = input.shape[-1]
    return solve_by(input, P.broadcast_to(_eye(n, input.dtype), input.shape))


@inverse_by.bprop
def _(x, out, dout):
    t = _turned(out)
    return (P.neg(P.matmul(P.matmul(t, dout), t)),)


@tensor_method("inverse", "inv")
def inverse(input: Tensor) -> Tensor:
    """Inverse of matrices (`mindspore.ops.inverse`).

    Args:
        input: Tensor (..., n, n); integers are taken as float32.

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
    _square("inverse", input)
    return inverse_by(cast_to(input, float32) if input.dtype.kind in "biu" else input)


inv_ex = inverse


def pinv(x: Tensor, *, rtol: float | None = None) -> Tensor:
    """Pseudo-inverse of matrices, by their singular values.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.pinv(ms.Tensor([[2.0], [0.0]])).round(decimals=3))
        [[0.5 0. ]]
    """
    s, u, v = svd(x)
    limit = (
        max(x.shape[-2:]) * float(np.finfo(x.dtype.np).eps) if rtol is None else rtol
    ) * P.reduce_max(s, (s.ndim - 1,), True)
    one = P.fill((), 1.0, s.dtype)
    large = P.less(limit, s)
    scaled = P.select(large, 1.0 / P.select(large, s, one), P.fill((), 0.0, s.dtype))
    return P.matmul(v * P.reshape(scaled, (*s.shape[:-1], 1, s.shape[-1])), u, False, True)


# ---- determinants -------------------------------------------------------------------------------


@op(name="slogdet", dtypes=FLOATING)
def slogdet_by(input: Tensor):
    """Primitive: sign, and logarithm of the size, of the determinant of matrices (..., n, n)."""


@slogdet_by.infer
def _(x):
    _square("slogdet", x)
    t = TensorType.of(x.shape[:-2], x.dtype)
    return t, t


@slogdet_by.reference
def _(x):
    wide = np.float64 if x.dtype == np.float64 else np.float32
    sign, size = np.linalg.slogdet(x.astype(wide))
    return np.asarray(sign).astype(x.dtype), np.asarray(size).astype(x.dtype)


def _signs(rows: Any, pivots: Any) -> Any:
    """Sign of the permutation of pivot rows times those of the pivots."""
    *batch, n = rows.shape
    lead = len(batch)
    before = P.less(P.reshape(rows, (*batch, 1, n)), P.reshape(rows, (*batch, n, 1)))
    upper = P.less(P.iota((n, n), 0, int64), P.iota((n, n), 1, int64))
    swaps = P.reduce_sum(cast_to(P.logical_and(before, upper), int64), (lead, lead + 1), False)
    minus = P.reduce_sum(
        cast_to(P.less(pivots, P.fill((), 0.0, pivots.dtype)), int64), (lead,), False
    )
    odd = P.bitwise_and(swaps + minus, P.fill((), 1, int64))
    sign = P.select(
        P.equal(odd, P.fill((), 1, int64)),
        P.fill((), -1.0, pivots.dtype),
        P.fill((), 1.0, pivots.dtype),
    )
    singular = P.reduce_any(P.equal(pivots, P.fill((), 0.0, pivots.dtype)), (lead,), False)
    return P.select(singular, P.fill((), 0.0, pivots.dtype), sign)


@slogdet_by.decompose
def _(input):
    n = input.shape[-1]
    batch = input.shape[:-2]
    if n == 0 or input.size == 0:
        return P.fill(batch, 1.0, input.dtype), P.fill(batch, 0.0, input.dtype)
    wide = cast_to(input, float32) if input.dtype.itemsize == 2 else input
    _, rows, pivots = _eliminated(wide, n)
    # behind a pivot of 0 stand NaN: the matrix is singular
    clean = P.select(P.equal(pivots, pivots), pivots, P.fill((), 0.0, pivots.dtype))
    size = P.reduce_sum(P.log(P.abs(clean)), (len(batch),), False)
    sign = _signs(rows, clean)
    if wide.dtype is input.dtype:
        return sign, size
    return cast_to(sign, input.dtype), cast_to(size, input.dtype)


@slogdet_by.bprop
def _(x, out, dout):
    share = P.reshape(dout[1], (*dout[1].shape, 1, 1))
    return (share * _turned(inverse_by(x)),)


@op(name="det", dtypes=FLOATING)
def det_by(input: Tensor):
    """Primitive: determinant of matrices (..., n, n)."""


@det_by.infer
def _(x):
    _square("det", x)
    return TensorType.of(x.shape[:-2], x.dtype)


@det_by.reference
def _(x):
    wide = np.float64 if x.dtype == np.float64 else np.float32
    return np.asarray(np.linalg.det(x.astype(wide))).astype(x.dtype)


@det_by.decompose
def _(input):
    sign, size = slogdet_by(input)
    return sign * P.exp(size)


@det_by.bprop
def _(x, out, dout):
    share = P.reshape(dout * out, (*out.shape, 1, 1))
    return (share * _turned(inverse_by(x)),)


@tensor_method("det")
def det(input: Tensor) -> Tensor:
    """Determinant of matrices (`mindspore.ops.det`).

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
    _square("det", input)
    return det_by(input)


@tensor_method("slogdet")
def slogdet(input: Tensor) -> tuple[Tensor, Tensor]:
    """Sign, and logarithm of the size, of determinants (`mindspore.ops.slogdet`).

    Raises:
        ValueError: not square.

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.slogdet(ms.Tensor([[1.0, 0.0], [0.0, -1.0]])))
        -1.0 0.0
    """
    _square("slogdet", input)
    return slogdet_by(input)


@tensor_method("logdet")
def logdet(input: Tensor) -> Tensor:
    """Logarithm of determinants, NaN where they are negative (`mindspore.ops.logdet`).

    Raises:
        ValueError: not square.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.logdet(ms.Tensor([[1.0, 0.0], [0.0, 1.0]])))
        0.0
    """
    sign, size = slogdet(input)
    zero = P.fill((), 0.0, size.dtype)
    return P.select(P.less(sign, zero), P.fill((), float("nan"), size.dtype), size)


# ---- Cholesky -----------------------------------------------------------------------------------


@op(name="cholesky", dtypes=FLOATING)
def cholesky_by(input: Tensor):
    """Primitive: lower triangular L with L L^T = input, of which the lower triangle is read; NaN
    without one.
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
        except np.linalg.LinAlgError:  # not positive definite
            continue
    return out.astype(x.dtype)


@cholesky_by.decompose
def _(input):
    *batch, n, _ = input.shape
    if input.size == 0:
        return P.identity(input)
    wide = cast_to(input, float32) if input.dtype.itemsize == 2 else input
    zero = P.fill((), 0.0, wide.dtype)
    row = P.iota((n,), 0, int64)
    columns = []
    bad = None
    for k in range(n):
        column = P.select(P.less(row, P.fill((), k, int64)), zero, _column(wide, k))
        pivot = P.reshape(_column(column, k), (*batch, 1))
        here = P.logical_not(P.less(zero, pivot))
        bad = here if bad is None else P.logical_or(bad, here)
        column = column / P.sqrt(pivot)
        columns.append(P.reshape(column, (*batch, n, 1)))
        if k + 1 < n:
            wide = wide - columns[-1] * P.reshape(column, (*batch, 1, n))
    found = P.concat(columns, len(batch) + 1) if n > 1 else columns[0]
    found = P.select(P.reshape(bad, (*batch, 1, 1)), P.fill((), float("nan"), found.dtype), found)
    return found if found.dtype is input.dtype else cast_to(found, input.dtype)


@cholesky_by.bprop
def _(x, out, dout):
    # Murray, 2016: S = L^-T phi(L^T dL) L^-1, phi halves the diagonal of the lower triangle
    n = x.shape[-1]
    below = P.logical_not(P.less(P.iota((n, n), 0, int64), P.iota((n, n), 1, int64)))
    weight = cast_to(below, x.dtype) - _eye(n, x.dtype) * 0.5
    inner = P.matmul(out, dout, True, False) * weight
    inv = inverse_by(out)
    s = P.matmul(P.matmul(inv, inner, True, False), inv)
    # the forward reads the lower triangle alone: gradients of the mirrored elements go there too
    both = s + _turned(s)
    return (both * weight,)


@tensor_method("cholesky")
def cholesky(input_x: Tensor, upper: bool = False) -> Tensor:
    """Cholesky factor of positive definite matrices (`mindspore.ops.cholesky`).

    Args:
        input_x: Tensor (..., n, n), floating; the lower triangle is read.
        upper: give the transposed factor.

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
    return _turned(found) if upper else found


@tensor_method("cholesky_inverse")
def cholesky_inverse(input_x: Tensor, upper: bool = False) -> Tensor:
    """Inverse of the matrix whose Cholesky factor is given (`mindspore.ops.cholesky_inverse`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cholesky_inverse(ms.Tensor([[2.0]])))
        [[0.25]]
    """
    _square("cholesky_inverse", input_x)
    inv = inverse_by(input_x)
    return P.matmul(inv, inv, not upper, upper)


# ---- others -------------------------------------------------------------------------------------


@tensor_method("matrix_power")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Power of square matrices, by repeated squaring; negative ones of the inverse
    (`mindspore.ops.matrix_power`).

    Raises:
        ValueError: not square.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.matrix_power(ms.Tensor([[2.0]]), 3))
        [[8.]]
    """
    _square("matrix_power", input)
    if n == 0:
        return P.broadcast_to(_eye(input.shape[-1], input.dtype), input.shape)
    base = inverse(input) if n < 0 else input
    n = abs(n)
    out = None
    while n:
        if n & 1:
            out = base if out is None else P.matmul(out, base)
        n >>= 1
        if n:
            base = P.matmul(base, base)
    assert out is not None
    return out


@tensor_method("cross")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Cross product of vectors of three elements along an axis (`mindspore.ops.cross`).

    Args:
        input, other: Tensors of one shape.
        dim: the axis, of size 3; default the first such.

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

    def turned(x: Any, order: tuple[int, ...]) -> Any:
        return P.gather(x, np.array(order), axis)

    a, b = (1, 2, 0), (2, 0, 1)
    return turned(input, a) * turned(other, b) - turned(input, b) * turned(other, a)


def _svd_on_host(name: str, x: Tensor, **options: bool) -> Any:
    if x.ndim < 2:
        raise ShapeError(f"{name}: got shape {x.shape}; wanted matrices (..., M, N)")
    svd: Any = np.linalg.svd  # what it returns depends on the options
    try:
        return svd(x.asnumpy(), **options)
    except np.linalg.LinAlgError as error:
        raise ArgumentValueError(
            f"{name}: {error}; wanted finite values in the tensor of shape {x.shape}"
        ) from None


def singular_values(x: Tensor) -> Tensor:
    """Singular values of matrices, the largest first; computed on the host.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.singular_values(ms.Tensor([[3.0, 0.0], [0.0, 4.0]])))
        [4. 3.]
    """

    def forward(t: Tensor) -> Tensor:
        return Tensor(_svd_on_host("singular_values", t, compute_uv=False))

    def bprop(t: Tensor, out: Any, dout: Any) -> Any:
        u, _, vh = np.linalg.svd(t.asnumpy(), full_matrices=False)
        return (
            P.matmul(
                Tensor(u) * P.reshape(dout, (*dout.shape[:-1], 1, dout.shape[-1])), Tensor(vh)
            ),
        )

    return custom_gradient(forward, bprop, (x,), "singular_values")


def svd(input: Tensor, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Singular value decomposition (`mindspore.ops.svd`), on the host; gradients flow to the values
    alone.

    Returns:
        (s, u, v) with input = u diag(s) v^T, or s.

    Examples:
        >>> import duograph as ms
        >>> s, u, v = ms.ops.svd(ms.Tensor([[3.0, 0.0], [0.0, 4.0]]))
        >>> print(s)
        [4. 3.]
    """
    if not compute_uv:
        return singular_values(input)
    u, _, vh = _svd_on_host("svd", input, full_matrices=full_matrices)
    return singular_values(input), Tensor(u), Tensor(np.ascontiguousarray(np.swapaxes(vh, -1, -2)))


# ---- primitive classes --------------------------------------------------------------------------


class MatrixInverse(Primitive):
    """`MatrixInverse(adjoint=False)(x)`."""

    op = inverse_by

    def __init__(self, adjoint: bool = False) -> None:
        super().__init__()
        self.adjoint = adjoint

    def __call__(self, x: Any) -> Any:
        """The inverse, transposed when `adjoint`."""
        out = inverse(x)
        return _turned(out) if self.adjoint else out


class MatrixDeterminant(Primitive):
    """`MatrixDeterminant()(x)`."""

    op = det_by


class LogMatrixDeterminant(Primitive):
    """`LogMatrixDeterminant()(x)` -> (sign, logarithm of the size)."""

    op = slogdet_by


class Cholesky(Primitive):
    """`Cholesky()(x)`."""

    op = cholesky_by
