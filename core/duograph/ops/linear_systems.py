"""Solving linear systems from factors, least squares, and norms and conditions of matrices.

Users call the functions. All are made of other ops, most of them of `solve` and `qr`, from which
they also get their gradients.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import DTypeLike, float32, int64
from ..errors import ArgumentValueError, DTypeError, ShapeError
from ..tensor import Tensor
from .comparison import equal
from .creation import cast, cast_to, fill, iota
from .decompositions import permutation_of_pivots, qr
from .diagonals import tril, triu
from .gather_scatter import gather_elements_by
from .linalg import matmul_of, outer
from .matrices import (
    cholesky_inverse,
    cross,
    det,
    inverse,
    matrix_power,
    slogdet,
    solve_by,
)
from .matrix_svd import singular_values, svd
from .methods import tensor_method
from .movement import concat_by, slice_axis
from .norms import norm
from .primitive import Primitive, primitive
from .shape_primitives import broadcast_to, reshape_to, transpose_by

__all__ = [
    "Lstsq", "MatrixSolveLs", "MatrixTriangularSolve", "NuclearNorm", "Svd", "TridiagonalMatMul",
    "cholesky_solve", "cond", "log_matrix_determinant", "lstsq", "lu_solve", "lu_unpack",
    "matrix_determinant", "matrix_norm", "matrix_solve",
]  # fmt: skip

log_matrix_determinant = slogdet.public
matrix_determinant = det.public


def _transposed(x: Tensor) -> Tensor:
    return transpose_by(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _eye(n: int, like: Tensor) -> Tensor:
    return cast_to(equal(iota((n, n), 0, int64), iota((n, n), 1, int64)), like.dtype)


def _system(name: str, a: Tensor, b: Tensor) -> None:
    """Raise an error unless `a` (..., n, n) and `b` (..., n, k) form a linear system.

    Both must be floating. `name` is the user's function in errors.
    """
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(
            f"{name}: got right sides of shape {b.shape} and matrices of {a.shape}; wanted "
            "(..., n, k) and (..., n, n)"
        )
    for x in (a, b):
        if not x.dtype.is_floating:
            raise DTypeError(f"{name}: got {x.dtype.name}; wanted a floating dtype")


@primitive("CholeskySolve(upper=False)(x1, x2)")
@tensor_method("cholesky_solve")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """Solve A x = b, where A is given by its Cholesky factor (`mindspore.ops.cholesky_solve`).

    Args:
        input: Tensor (..., n, k), floating: the right sides b.
        input2: Tensor (..., n, n): the factor of A.
        upper: whether the factor is upper triangular.

    Returns:
        Tensor (..., n, k).

    Raises:
        ValueError: shapes that do not fit.
        TypeError: integers.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cholesky_solve(ms.Tensor([[8.0]]), ms.Tensor([[2.0]])))
        [[2.]]
    """
    _system("cholesky_solve", input2, input)
    low = _transposed(triu(input2)) if upper else tril(input2)
    return solve_by(_transposed(low), solve_by(low, input))


def _factors(name: str, data: Tensor) -> tuple[Tensor, Tensor]:
    """Split a packed LU matrix (..., m, n) into L (..., m, k) and U (..., k, n), k = min(m, n).

    L has a unit diagonal, which the packed matrix does not store. `name` is the user's function in
    errors.
    """
    if data.ndim < 2:
        raise ShapeError(f"{name}: got LU_data of shape {data.shape}; wanted (..., m, n)")
    m, n = data.shape[-2:]
    k = min(m, n)
    left = slice_axis(data, data.ndim - 1, 0, k)
    diagonal = equal(iota((m, k), 0, int64), iota((m, k), 1, int64))
    low = tril(left, -1) + cast_to(diagonal, data.dtype)
    return low, triu(slice_axis(data, data.ndim - 2, 0, k))


@primitive("LuSolve()(x, lu_data, lu_pivots)")
@tensor_method("lu_solve")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Solve A x = b from the LU decomposition of A (`mindspore.ops.lu_solve`).

    Args:
        b: Tensor (..., n, k), floating.
        LU_data: Tensor (..., n, n): L below the diagonal, U on and above it.
        LU_pivots: integer Tensor (..., n): for each row, the row with which LAPACK exchanged it,
            counted from 1.

    Returns:
        Tensor (..., n, k).

    Raises:
        ValueError: shapes that do not fit, or pivots out of range.
        TypeError: integers.

    Examples:
        >>> import duograph as ms
        >>> lu = ms.Tensor([[2.0, 0.0], [0.0, 4.0]])
        >>> print(ms.ops.lu_solve(ms.Tensor([[2.0], [4.0]]), lu, ms.Tensor([1, 2])))
        [[1.]
         [1.]]
    """
    _system("lu_solve", LU_data, b)
    n = b.shape[-2]
    order = permutation_of_pivots(LU_pivots, n)
    index = broadcast_to(reshape_to(order, (*order.shape, 1)), b.shape)
    low, high = _factors("lu_solve", LU_data)
    return solve_by(high, solve_by(low, gather_elements_by(b, index, b.ndim - 2)))


@primitive("LuUnpack(unpack_data=True, unpack_pivots=True)(LU_data, LU_pivots)")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, ...]:
    """Return P, L and U of an LU decomposition, P L U = A (`mindspore.ops.lu_unpack`).

    Args:
        LU_data: Tensor (..., m, n): L below the diagonal, U on and above it.
        LU_pivots: integer Tensor (..., min(m, n)): for each row, the row with which LAPACK
            exchanged it, counted from 1.
        unpack_data, unpack_pivots: whether to return L and U, and whether to return P; None stands
            for those left out.

    Returns:
        (P, L, U) of shapes (..., m, m), (..., m, k) and (..., k, n), k = min(m, n).

    Raises:
        ValueError: shapes that do not fit, or pivots out of range.

    Examples:
        >>> import duograph as ms
        >>> p, l, u = ms.ops.lu_unpack(ms.Tensor([[2.0, 1.0], [0.5, 3.0]]), ms.Tensor([2, 2]))
        >>> print(p @ l @ u)
        [[1.  3.5]
         [2.  1. ]]
    """
    low = high = placed = None
    if unpack_data:
        low, high = _factors("lu_unpack", LU_data)
    if unpack_pivots:
        m = LU_data.shape[-2]
        order = permutation_of_pivots(LU_pivots, m)
        rows = iota((*order.shape[:-1], m, m), order.ndim - 1, int64)
        placed = cast_to(equal(rows, reshape_to(order, (*order.shape[:-1], 1, m))), LU_data.dtype)
    return placed, low, high  # type: ignore[return-value]


@primitive("MatrixSolve(adjoint=False)(matrix, rhs)")
def matrix_solve(matrix: Tensor, rhs: Tensor, adjoint: bool = False) -> Tensor:
    """Solve matrix x = rhs, or with the transposed matrix (`mindspore.ops.matrix_solve`).

    Args:
        matrix: Tensor (..., n, n), floating.
        rhs: Tensor (..., n, k).
        adjoint: whether to transpose the matrix.

    Returns:
        Tensor (..., n, k).

    Raises:
        ValueError: shapes that do not fit.
        TypeError: integers.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.matrix_solve(ms.Tensor([[2.0]]), ms.Tensor([[8.0]])))
        [[4.]]
    """
    _system("matrix_solve", matrix, rhs)
    return solve_by(_transposed(matrix) if adjoint else matrix, rhs)


class MatrixTriangularSolve(Primitive):
    """Solution of linear systems with one triangle of a matrix.

    `MatrixTriangularSolve(lower=True, adjoint=False)(matrix, rhs)`

    Examples:
        >>> import duograph as ms
        >>> a = ms.Tensor([[2.0, 9.0], [1.0, 4.0]])
        >>> print(ms.ops.MatrixTriangularSolve()(a, ms.Tensor([[2.0], [9.0]])))
        [[1.]
         [2.]]
    """

    def __init__(self, lower: bool = True, adjoint: bool = False) -> None:
        super().__init__()
        self.lower, self.adjoint = lower, adjoint

    def __call__(self, matrix: Tensor, rhs: Tensor) -> Tensor:
        """Return x with T x = rhs, where T is a triangle of `matrix`.

        T is the lower triangle if the constructor's `lower` is True, else the upper one. If its
        `adjoint` is True, x solves the system with the transpose of T instead.
        """
        part = tril(matrix) if self.lower else triu(matrix)
        return matrix_solve(part, rhs, self.adjoint)


# ---- least squares -------------------------------------------------------------------------------


def _least_squares(name: str, a: Tensor, b: Tensor, regularizer: float) -> Tensor:
    """Return x (..., n, k) that minimises |a x - b|^2 + regularizer |x|^2.

    `a` has shape (..., m, n), `b` (..., m, k). With fewer equations than unknowns and no
    regularizer, the solution of least norm is returned. `name` is the user's function in errors.
    """
    if a.ndim < 2 or b.ndim != a.ndim or a.shape[:-1] != b.shape[:-1]:
        raise ShapeError(
            f"{name}: got shapes {a.shape} and {b.shape}; wanted (..., m, n) and (..., m, k)"
        )
    if not a.dtype.is_floating or a.dtype is not b.dtype:
        raise DTypeError(
            f"{name}: got {a.dtype.name} and {b.dtype.name}; wanted one floating dtype"
        )
    if a.dtype.itemsize == 2:
        return cast_to(
            _least_squares(name, cast_to(a, float32), cast_to(b, float32), regularizer), a.dtype
        )
    m, n = a.shape[-2:]
    if regularizer:
        t = _transposed(a)
        normal = matmul_of(t, a) + _eye(n, a) * regularizer
        return solve_by(normal, matmul_of(t, b))
    if m >= n:
        q, r = qr(a)
        return solve_by(r, matmul_of(_transposed(q), b))
    q, r = qr(_transposed(a))
    return matmul_of(q, solve_by(_transposed(r), b))


@tensor_method("lstsq")
def lstsq(input: Tensor, A: Tensor) -> Tensor:
    """Return the least-squares solution x of input x = A (`mindspore.ops.lstsq`).

    Args:
        input: Tensor (m, n) of full rank, floating.
        A: Tensor (m, k) or (m,): the right sides.

    Returns:
        Tensor (n, k), k = 1 for one right side. For m >= n it has the smallest residual, else it is
        the smallest solution.

    Raises:
        ValueError: other shapes.
        TypeError: integers, or two dtypes.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.lstsq(ms.Tensor([[1.0], [1.0]]), ms.Tensor([[1.0], [3.0]]))
        >>> print(x.round(decimals=4))
        [[2.]]
    """
    return Lstsq()(input, A)


class Lstsq(Primitive):
    """Least squares: `Lstsq(fast=True, l2_regularizer=0.0)(x, a)`; see `ops.lstsq`.

    The regularizer is used only with `fast`, and leads to the normal equations; without it the
    method is QR, which is more accurate.

    Examples:
        >>> import duograph as ms
        >>> x, a = ms.Tensor([[1.0], [1.0]]), ms.Tensor([[1.0], [3.0]])
        >>> print(ms.ops.Lstsq(l2_regularizer=2.0)(x, a))
        [[1.]]
    """

    def __init__(self, fast: bool = True, l2_regularizer: float = 0.0) -> None:
        super().__init__()
        if not l2_regularizer >= 0:
            raise ArgumentValueError(f"Lstsq: got l2_regularizer={l2_regularizer}; wanted >= 0")
        self.fast, self.l2_regularizer = fast, float(l2_regularizer)

    def __call__(self, x: Tensor, a: Tensor) -> Tensor:
        """Return the least-squares solution (n, k) of ``x @ solution = a``."""
        if x.ndim != 2 or a.ndim not in (1, 2):
            raise ShapeError(f"lstsq: got shapes {x.shape} and {a.shape}; wanted matrices")
        right = reshape_to(a, (a.shape[0], 1)) if a.ndim == 1 else a
        return _least_squares("lstsq", x, right, self.l2_regularizer if self.fast else 0.0)


class MatrixSolveLs(Primitive):
    """Least squares of batches: `MatrixSolveLs(fast=True)(matrix, rhs, l2_regularizer)`.

    Examples:
        >>> import duograph as ms
        >>> a, b = ms.Tensor([[1.0], [1.0]]), ms.Tensor([[1.0], [3.0]])
        >>> x = ms.ops.MatrixSolveLs()(a, b, ms.Tensor(0.0, ms.float64))
        >>> print(x.round(decimals=4))
        [[2.]]
    """

    def __init__(self, fast: bool = True) -> None:
        super().__init__()
        self.fast = fast

    def __call__(self, matrix: Tensor, rhs: Tensor, l2_regularizer: Tensor | float) -> Tensor:
        """Return the least-squares solution (..., n, k) of ``matrix @ solution = rhs``.

        `l2_regularizer` is the weight of the squared norm of the solution in the sum to be
        minimised. It is ignored unless the constructor's `fast` is True.
        """
        if isinstance(l2_regularizer, Tensor):
            l2_regularizer = l2_regularizer.item()
        weight = float(l2_regularizer) if self.fast else 0.0
        return _least_squares("MatrixSolveLs", matrix, rhs, weight)


# ---- norms and conditions ------------------------------------------------------------------------


def matrix_norm(
    A: Tensor,
    ord: int | float | str = "fro",
    axis: Sequence[int] = (-2, -1),
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the norm of matrices (`mindspore.ops.matrix_norm`).

    Args:
        A: Tensor of at least two axes, floating.
        ord: ``"fro"``, ``"nuc"``, 1, -1, 2, -2, inf or -inf.
        axis: the two axes of the matrices.
        keepdims: whether to keep these axes, with size 1.
        dtype: dtype of the computation and of the result.

    Returns:
        Tensor without the two axes.

    Raises:
        ValueError: another number of axes, or another `ord`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.matrix_norm(ms.Tensor([[3.0, 0.0], [0.0, 4.0]])))
        5.0
    """
    if len(tuple(axis)) != 2:
        raise ArgumentValueError(f"matrix_norm: got axis={axis!r}; wanted two axes")
    x = A if dtype is None else cast(A, dtype)
    return norm(x, ord, tuple(axis), keepdims)


def cond(A: Tensor, p: int | float | str | None = None) -> Tensor:
    """Return the condition number: the norm of a matrix times that of its inverse
    (`mindspore.ops.cond`).

    Args:
        A: Tensor (..., n, n), or (..., m, n) for p None, 2 and -2; floating.
        p: the norm: None and 2 mean the largest singular value over the smallest, -2 the inverse of
            that; or ``"fro"``, ``"nuc"``, 1, -1, inf, -inf.

    Returns:
        Tensor (...).

    Raises:
        ValueError: fewer than two axes, not square, or another `p`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cond(ms.Tensor([[2.0, 0.0], [0.0, 4.0]])))
        2.0
    """
    x = A if A.dtype.is_floating else cast_to(A, float32)
    if p is None or (p in (2, -2) and not isinstance(p, str)):
        values = singular_values(x)
        last = values.ndim - 1
        n = values.shape[last]
        high = reshape_to(slice_axis(values, last, 0, 1), values.shape[:-1])
        low = reshape_to(slice_axis(values, last, n - 1, n), values.shape[:-1])
        return low / high if p == -2 else high / low
    return matrix_norm(x, p) * matrix_norm(inverse.public(x), p)


class NuclearNorm(Primitive):
    """Sum of singular values: `NuclearNorm(dim=None, keepdim=False)(x)`."""

    def __init__(self, dim: Sequence[int] | None = None, keepdim: bool = False) -> None:
        super().__init__()
        self.dim, self.keepdim = None if dim is None else tuple(dim), keepdim

    def __call__(self, x: Tensor) -> Tensor:
        """Return the nuclear norm (sum of singular values) of the matrices in two axes of `x`."""
        if self.dim is None and x.ndim != 2:
            raise ShapeError(f"NuclearNorm: got shape {x.shape}; wanted two axes, or dim")
        return matrix_norm(x, "nuc", self.dim or (0, 1), self.keepdim)


class TridiagonalMatMul(Primitive):
    """Product with tridiagonal matrices: `TridiagonalMatMul()(superdiag, maindiag, subdiag, rhs)`.

    The diagonals have shape (..., 1, n); the last element of `superdiag` and the first of `subdiag`
    are not used.

    Examples:
        >>> import duograph as ms
        >>> one = ms.Tensor([[1.0, 1.0]])
        >>> print(ms.ops.TridiagonalMatMul()(one, one, one, ms.Tensor([[1.0], [2.0]])))
        [[3.]
         [3.]]
    """

    def __call__(self, superdiag: Tensor, maindiag: Tensor, subdiag: Tensor, rhs: Tensor) -> Tensor:
        """Return the product of tridiagonal matrices and `rhs` (..., n, k), of the shape of `rhs`.

        Each diagonal has shape (..., 1, n).
        """
        if rhs.ndim < 2 or any(
            d.shape != (*rhs.shape[:-2], 1, rhs.shape[-2]) for d in (superdiag, maindiag, subdiag)
        ):
            raise ShapeError(
                f"TridiagonalMatMul: got diagonals of shapes {superdiag.shape}, {maindiag.shape}, "
                f"{subdiag.shape} for {rhs.shape}; wanted (..., 1, n) and (..., n, k)"
            )
        axis, n = rhs.ndim - 2, rhs.shape[-2]
        edge = fill((*rhs.shape[:-2], 1, rhs.shape[-1]), 0, rhs.dtype)
        after = concat_by((slice_axis(rhs, axis, 1, n), edge), axis)
        before = concat_by((edge, slice_axis(rhs, axis, 0, n - 1)), axis)
        up, middle, down = (_transposed(d) for d in (superdiag, maindiag, subdiag))
        return up * after + middle * rhs + down * before


class Svd(Primitive):
    """Singular value decomposition: `Svd(full_matrices=False, compute_uv=True)(x)`.

    The result is (s, u, v); without `compute_uv`, u and v are zeros of shape (1,).
    """

    def __init__(self, full_matrices: bool = False, compute_uv: bool = True) -> None:
        super().__init__()
        self.full_matrices, self.compute_uv = full_matrices, compute_uv

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return (singular values, U, V); without `compute_uv`, U and V are zeros of shape (1,)."""
        if self.compute_uv:
            s, u, v = svd(x, self.full_matrices)
            return s, u, v
        none = fill((1,), 0, x.dtype)
        return svd(x, compute_uv=False), none, none


tensor_method("svd")(svd)
tensor_method("log_matrix_determinant")(log_matrix_determinant)
tensor_method("matrix_determinant")(matrix_determinant)


@primitive("CholeskyInverse(upper=False)(x)")
def _cholesky_inverse(input_x: Tensor, upper: bool) -> Tensor:
    return cholesky_inverse(input_x, upper)


@primitive("MatrixPower(n)(x)")
def _matrix_power(input: Tensor, n: int) -> Tensor:
    return matrix_power(input, n)


@primitive("Cross(dim=-65530)(x1, x2)")
def _cross(input: Tensor, other: Tensor, dim: int) -> Tensor:
    return cross(input, other, None if dim == -65530 else dim)


@primitive("Ger()(x1, x2)")
def _ger(input: Tensor, vec2: Tensor) -> Tensor:
    return outer(input, vec2)
