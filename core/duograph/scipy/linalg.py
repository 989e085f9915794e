"""Decompositions and linear systems with SciPy's signatures (`mindspore.scipy.linalg`).

User code imports it. The functions convert their arguments and call ops; integers are converted to
float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as _np

from .. import ops as _ops
from ..call_errors import explaining
from ..dtype import float64, int32, int64
from ..errors import ArgumentValueError, ShapeError
from ..numpy.operands import TensorLike, promoted, tensor_of
from ..ops.factorizations import eigh_by, lu_by, permutation
from ..option_checks import check_options
from ..tensor import Tensor

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "eigh", "inv", "lstsq", "lu", "lu_factor",
    "solve_triangular",
]  # fmt: skip


def _floating(x: TensorLike) -> Tensor:
    t = tensor_of(x)
    return t.astype(float64) if t.dtype.kind in "biu" else t


def _square(name: str, x: TensorLike) -> Tensor:
    t = _floating(x)
    if t.ndim != 2 or t.shape[0] != t.shape[1]:
        raise ShapeError(f"{name}: got shape {t.shape}; wanted a square matrix")
    return t


def _transposed(x: Tensor) -> Tensor:
    return _ops.swapaxes(x, -1, -2)


def _solved(
    name: str, solve: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: TensorLike
) -> Tensor:
    """Return the solution of a linear system; `b` may be a vector or have several columns.

    `solve` is the op, which is called with matrices (b, a); `name` is the calling function, for
    errors.
    """
    right = _floating(b)
    vector = right.ndim == a.ndim - 1
    if right.ndim not in (a.ndim - 1, a.ndim) or right.shape[a.ndim - 2] != a.shape[-2]:
        raise ShapeError(f"{name}: got b of shape {right.shape} for {a.shape}; wanted as many rows")
    right, a = promoted([right, a])
    out: Tensor = solve(_ops.expand_dims(right, -1) if vector else right, a)
    return _ops.squeeze(out, -1) if vector else out


def block_diag(*arrs: TensorLike) -> Tensor:
    """Return a block-diagonal matrix: the given matrices on its diagonal, and zeros elsewhere.

    Args:
        arrs: array-likes of at most two axes; a vector counts as one row.

    Returns:
        Tensor of two axes.

    Raises:
        ValueError: an operand has more than two axes.

    Examples:
        >>> from duograph.scipy.linalg import block_diag
        >>> print(block_diag([[1, 2]], 3))
        [[1 2 0]
         [0 0 3]]
    """
    return _ops.block_diag(*promoted([tensor_of(a) for a in arrs]))


def inv(a: TensorLike, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Return the inverse of a matrix; a singular matrix yields elements that are not finite.

    Args:
        a: array-like of shape (n, n).
        overwrite_a: has no meaning here.
        check_finite: has no meaning here.

    Returns:
        Tensor of shape (n, n).

    Raises:
        ValueError: `a` is no square matrix.

    Examples:
        >>> from duograph.scipy.linalg import inv
        >>> print(inv([[2.0, 0.0], [0.0, 4.0]]))
        [[0.5  0.  ]
         [0.   0.25]]
    """
    check_options("scipy.linalg.inv", overwrite_a=overwrite_a, check_finite=check_finite)
    return _ops.inverse(_square("inv", a))


# ---- Cholesky -----------------------------------------------------------------------------------


def cholesky(
    a: TensorLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Tensor:
    """Return the Cholesky factor of a matrix: L with L L^T = a, or U with U^T U = a.

    Args:
        a: array-like of shape (n, n), symmetric and positive definite; only one triangle is read.
        lower: whether to read the lower triangle and return L; otherwise the upper triangle is read
            and U returned.
        overwrite_a: has no meaning here.
        check_finite: has no meaning here.

    Returns:
        Tensor of shape (n, n), NaN if `a` is not positive definite.

    Raises:
        ValueError: `a` is no square matrix.

    Examples:
        >>> from duograph.scipy.linalg import cholesky
        >>> print(cholesky([[1.0, 2.0], [2.0, 5.0]], lower=True))
        [[1. 0.]
         [2. 1.]]
    """
    check_options("scipy.linalg.cholesky", overwrite_a=overwrite_a, check_finite=check_finite)
    x = _square("cholesky", a)
    low = _ops.cholesky(x if lower else _transposed(x))
    return low if lower else _transposed(low)


def cho_factor(
    a: TensorLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """Return the Cholesky factor of a matrix for `cho_solve`.

    Args:
        a: array-like of shape (n, n), symmetric and positive definite; only one triangle is read.
        lower: whether the lower triangle is read and holds the factor.
        overwrite_a: has no meaning here.
        check_finite: has no meaning here.

    Returns:
        Tensor of shape (n, n), with the factor in one triangle and `a` in the other; and `lower`.

    Raises:
        ValueError: `a` is no square matrix.

    Examples:
        >>> from duograph.scipy.linalg import cho_factor, cho_solve
        >>> print(cho_solve(cho_factor([[4.0, 0.0], [0.0, 9.0]]), [4.0, 18.0]))
        [1. 2.]
    """
    check_options("scipy.linalg.cho_factor", overwrite_a=overwrite_a, check_finite=check_finite)
    x = _square("cho_factor", a)
    factor = cholesky(x, lower)
    rest = _ops.triu(x, 1) if lower else _ops.tril(x, -1)
    return factor + rest, lower


@explaining
def cho_solve(
    c_and_lower: tuple[TensorLike, bool],
    b: TensorLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """Solve a x = b from the Cholesky factor of a.

    Args:
        c_and_lower: what `cho_factor` returned.
        b: array-like of shape (n,) or (n, k).
        overwrite_b: has no meaning here.
        check_finite: has no meaning here.

    Returns:
        Tensor of the shape of `b`.

    Raises:
        ValueError: the shapes do not fit.

    Examples:
        >>> from duograph.scipy.linalg import cho_solve
        >>> print(cho_solve(([[2.0]], True), [8.0]))
        [2.]
    """
    check_options("scipy.linalg.cho_solve", overwrite_b=overwrite_b, check_finite=check_finite)
    factor, lower = c_and_lower
    return _solved(
        "cho_solve",
        lambda right, c: _ops.cholesky_solve(right, c, not lower),
        _square("cho_solve", factor),
        b,
    )


# ---- eigenvalues --------------------------------------------------------------------------------


@explaining
def eigh(
    a: TensorLike,
    b: TensorLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: tuple[int, int] | None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Return the eigenvalues, and eigenvectors, of a symmetric matrix; computed on the host.

    Args:
        a: array-like of shape (n, n), real; only one triangle is read.
        b: must be None; the generalised problem is not offered.
        lower: whether the lower triangle is read.
        eigvals_only: whether eigenvalues alone are wanted.
        overwrite_a: has no meaning here.
        overwrite_b: has no meaning here.
        turbo: has no meaning here.
        eigvals: first and last index of the eigenvalues that are wanted; None is all.
        type: 1, 2 or 3, the form of the generalised problem.
        check_finite: has no meaning here.

    Returns:
        Tensor of the eigenvalues in rising order; without `eigvals_only` also the matrix whose
        columns are the eigenvectors.

    Raises:
        ValueError: `a` is no square matrix or not finite, `b` is given, or `eigvals` is no range.

    Examples:
        >>> from duograph.scipy.linalg import eigh
        >>> print(eigh([[2.0, 0.0], [0.0, 1.0]], eigvals_only=True))
        [1. 2.]
    """
    check_options(
        "scipy.linalg.eigh",
        overwrite_a=overwrite_a,
        overwrite_b=overwrite_b,
        turbo=turbo,
        check_finite=check_finite,
    )
    if b is not None or type not in (1, 2, 3):
        raise ArgumentValueError(
            "eigh: got b or another type; wanted None and 1, 2 or 3: solve the standard problem of "
            "the inverse of a Cholesky factor of b, applied from both sides"
        )
    x = _square("eigh", a)
    strict = _ops.tril(x, -1) if lower else _ops.triu(x, 1)
    symmetric = strict + _transposed(strict) + _ops.diagflat(_ops.diagonal(x))
    values, vectors = eigh_by(symmetric)
    if eigvals is not None:
        low, high = eigvals
        if not 0 <= low <= high < x.shape[0]:
            raise ArgumentValueError(
                f"eigh: got eigvals={eigvals}; wanted two indices from 0 to {x.shape[0] - 1}"
            )
        values, vectors = values[low : high + 1], vectors[:, low : high + 1]
    return values if eigvals_only else (values, vectors)


# ---- LU and triangles ---------------------------------------------------------------------------


def lu_factor(
    a: TensorLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the LU decomposition of a matrix in compact form; computed on the host.

    Args:
        a: array-like of shape (n, n).
        overwrite_a: has no meaning here.
        check_finite: has no meaning here.

    Returns:
        Tensor of shape (n, n) with U on and above the diagonal and L below it, and an int32 Tensor
        with the number of the row, from 0, that each row was exchanged with.

    Raises:
        ValueError: `a` is no square matrix or not finite.

    Examples:
        >>> from duograph.scipy.linalg import lu_factor
        >>> both, exchanges = lu_factor([[1.0, 2.0], [2.0, 2.0]])
        >>> print(both, exchanges)
        [[2.  2. ]
         [0.5 1. ]] [1 1]
    """
    check_options("scipy.linalg.lu_factor", overwrite_a=overwrite_a, check_finite=check_finite)
    both, pivots = lu_by(_square("lu_factor", a))
    return both, (pivots - 1).astype(int32)


def lu(
    a: TensorLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Tensor, ...]:
    """Return the LU decomposition of a matrix, a = P L U; computed on the host.

    Args:
        a: array-like of shape (m, n).
        permute_l: whether P L is returned in place of P and L.
        overwrite_a: has no meaning here.
        check_finite: has no meaning here.

    Returns:
        Tensors P (m, m), L (m, k) with a unit diagonal, and U (k, n), k = min(m, n).

    Raises:
        ValueError: `a` is no matrix or not finite.

    Examples:
        >>> from duograph.scipy.linalg import lu
        >>> p, l, u = lu([[1.0, 2.0], [2.0, 2.0]])
        >>> print(p @ l @ u)
        [[1. 2.]
         [2. 2.]]
    """
    check_options("scipy.linalg.lu", overwrite_a=overwrite_a, check_finite=check_finite)
    x = _floating(a)
    if x.ndim != 2:
        raise ShapeError(f"lu: got shape {x.shape}; wanted a matrix")
    m, n = x.shape
    k = min(m, n)
    both, pivots = lu_by(x)
    low = _ops.tril(both[:, :k], -1) + _ops.eye(m, k, x.dtype)
    high = _ops.triu(both[:k])
    exchange = permutation(pivots, m, x)
    return (_ops.matmul(exchange, low), high) if permute_l else (exchange, low, high)


_FORMS = {0: False, "N": False, 1: True, "T": True, 2: True, "C": True}


@explaining
def solve_triangular(
    a: TensorLike,
    b: TensorLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: object = None,
    check_finite: bool = True,
) -> Tensor:
    """Solve a x = b for a triangular matrix.

    Args:
        a: array-like of shape (..., n, n); only one triangle is read.
        b: array-like of shape (..., n) or (..., n, k).
        trans: 0 or ``"N"`` solves with a, 1 or ``"T"`` with its transpose, 2 or ``"C"`` with its
            conjugate transpose.
        lower: whether the lower triangle is read.
        unit_diagonal: whether the diagonal is taken to be 1.
        overwrite_b: has no meaning here.
        debug: has no meaning here.
        check_finite: has no meaning here.

    Returns:
        Tensor of the shape of `b`.

    Raises:
        ValueError: the shapes do not fit, or another `trans`.

    Examples:
        >>> from duograph.scipy.linalg import solve_triangular
        >>> print(solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True))
        [1. 2.]
    """
    check_options(
        "scipy.linalg.solve_triangular",
        overwrite_b=overwrite_b,
        debug=debug,
        check_finite=check_finite,
    )
    if trans not in _FORMS:
        raise ArgumentValueError(
            f"solve_triangular: got trans={trans!r}; wanted one of {', '.join(map(str, _FORMS))}"
        )
    x = _floating(a)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"solve_triangular: got shape {x.shape}; wanted square matrices")
    if unit_diagonal:
        ones = _ops.eye(x.shape[-1], x.shape[-1], x.dtype)
        x = (_ops.tril(x, -1) if lower else _ops.triu(x, 1)) + ones
    else:
        x = _ops.tril(x) if lower else _ops.triu(x)
    if _FORMS[trans]:
        x = _transposed(x)
    return _solved("solve_triangular", lambda right, m: _ops.solve(m, right), x, b)


# ---- least squares ------------------------------------------------------------------------------

_DRIVERS = {None: "gelsy", "gels": "gels", "gelsy": "gelsy", "gelss": "gelss", "gelsd": "gelsd"}


@explaining
def lstsq(
    A: TensorLike, B: TensorLike, rcond: float | None = None, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the solution of a system with the smallest sum of squares, for A of full rank.

    Args:
        A: array-like of shape (m, n).
        B: array-like of shape (m,) or (m, k).
        rcond: singular values below this fraction of the largest one do not count for the rank;
            None is the precision of the dtype times the larger of m and n.
        driver: which of the other results are computed: ``"gels"`` the residuals, ``"gelsy"``
            (None) the rank, ``"gelss"`` and ``"gelsd"`` all.

    Returns:
        Tensors: solution (n,) or (n, k), sums of squares, rank, and singular values. Those that are
        not computed are empty.

    Raises:
        ValueError: the shapes do not fit, or another driver.

    Examples:
        >>> from duograph.scipy.linalg import lstsq
        >>> solution, *_ = lstsq([[1.0], [1.0]], [1.0, 3.0])
        >>> print(solution.round(decimals=4))
        [2.]
    """
    if driver not in _DRIVERS:
        raise ArgumentValueError(
            f"lstsq: got driver={driver!r}; wanted one of {', '.join(map(str, _DRIVERS))}"
        )
    a, b = promoted([_floating(A), _floating(B)])
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ShapeError(f"lstsq: got shapes {a.shape} and {b.shape}; wanted (m, n) and (m, ...)")
    name = _DRIVERS[driver]
    right = _ops.expand_dims(b, -1) if b.ndim == 1 else b
    found = _ops.lstsq(a, right)
    solution = _ops.squeeze(found, -1) if b.ndim == 1 else found
    none = _ops.zeros((0,), dtype=a.dtype)
    residuals, rank, values = none, _ops.zeros((0,), dtype=int64), none
    if name != "gelsy" and a.shape[0] > a.shape[1]:
        residuals = _ops.sum(_ops.square(a @ solution - b), 0)
    if name != "gels":
        singular = _ops.singular_values(a)
        limit = max(a.shape) * float(_np.finfo(a.dtype.np).eps) if rcond is None else rcond
        rank = _ops.sum(singular > limit * singular[0])
        values = singular if name != "gelsy" else none
    return solution, residuals, rank, values
