"""Matrix decompositions and functions on the host: qr, eig, expm, logm, Householder products.

Users and `linear_systems` call them. The host computes the primitive ops by NumPy, and so by
LAPACK, which has no 16-bit floats. The gradients are made of ordinary ops.
"""

from __future__ import annotations

import math

import numpy as np

from ..dtype import (
    COMPLEX,
    INTEGER,
    DType,
    complex64,
    complex128,
    float32,
    float64,
    int64,
)
from ..errors import ArgumentValueError, MissingRuleError, ShapeError
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from ..types import TensorType
from .complex_numbers import complex as complex_of
from .complex_numbers import imag, real
from .creation import cast_to, iota
from .diagonals import tril
from .elementwise import neg, true_divide
from .linalg import matmul_of
from .logic import select
from .matrices import inverse
from .methods import tensor_method
from .movement import concat_by, slice_by
from .pointwise import conj
from .primitive import Primitive, primitive
from .shape_primitives import broadcast_to, reduce_sum, reshape_to, transpose_by

__all__ = ["Eig", "eig", "eigvals", "geqrf", "matrix_exp", "orgqr", "ormqr", "qr"]

_REAL = (float32, float64)
_ANY = (*_REAL, *COMPLEX)


def _transposed(x: Tensor) -> Tensor:
    return transpose_by(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _adjoint(x: Tensor) -> Tensor:
    return _transposed(conj(x) if x.dtype.is_complex else x)


def _matrix(name: str, t: TensorType, square: bool = False) -> None:
    if len(t.shape) < 2 or (square and t.shape[-1] != t.shape[-2]):
        wanted = "square matrices (..., n, n)" if square else "matrices (..., m, n)"
        raise ShapeError(f"{name}: got a tensor of shape {t.shape}; wanted {wanted}")


def _finite(name: str, *arrays: Array) -> None:
    for x in arrays:
        if not np.isfinite(x).all():  # some LAPACKs never return then
            raise ArgumentValueError(f"{name}: got infinities or NaN; wanted finite elements")


def _part(x: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> Tensor:
    """Return ``x[..., rows[0]:rows[1], columns[0]:columns[1]]``."""
    lead = x.shape[:-2]
    zeros = (0,) * len(lead)
    return slice_by(x, (*zeros, rows[0], columns[0]), (*lead, rows[1], columns[1]), (1,) * x.ndim)


# ---- QR ------------------------------------------------------------------------------------------


@op(name="qr", dtypes=_ANY, host_fallback=True)
def qr_by(input: Tensor, full: bool):
    """Primitive op: Q and R of the QR decomposition of matrices (..., m, n).

    Q has m columns if `full` is True, else min(m, n); R has as many rows.
    """


@qr_by.infer
def _(x, full):
    _matrix("qr", x)
    *lead, m, n = x.shape
    k = m if full else min(m, n)
    return TensorType.of((*lead, m, k), x.dtype), TensorType.of((*lead, k, n), x.dtype)


@qr_by.reference
def _(x, full):
    m, n = x.shape[-2:]
    k = m if full else min(m, n)
    if not x.size:
        q = np.zeros((*x.shape[:-1], k), x.dtype)
        q[..., : min(m, k), : min(m, k)] = np.eye(min(m, k))
        return q, np.zeros((*x.shape[:-2], k, n), x.dtype)
    _finite("qr", x)
    q, r = np.linalg.qr(x, mode="complete" if full else "reduced")
    return q, r


@qr_by.bprop
def _(x, out, dout, full):
    m, n = x.shape[-2:]
    if m < n or (full and m > n):
        raise MissingRuleError("qr of a wide matrix" if m < n else "qr with mode='complete'")
    q, r = out
    dq, dr = dout
    inner = matmul_of(r, _adjoint(dr)) - matmul_of(_adjoint(dq), q)
    lower = tril(inner, -1)
    diagonal = tril(inner) - lower
    if x.dtype.is_complex:
        diagonal = cast_to(real(diagonal), x.dtype)
    symmetric = lower + _adjoint(lower) + diagonal
    wide = dq + matmul_of(q, symmetric)
    return (matmul_of(wide, _adjoint(_inverse(r))),)


def _inverse(x: Tensor) -> Tensor:
    """Return the inverse of real or complex square matrices (..., n, n).

    For a complex matrix, it inverts the real matrix [[re, -im], [im, re]].
    """
    if not x.dtype.is_complex:
        return inverse(x)
    a, b = real(x), imag(x)
    axis, n = x.ndim - 1, x.shape[-1]
    rows = [concat_by((a, neg(b)), axis), concat_by((b, a), axis)]
    found = inverse(concat_by(rows, axis - 1))
    return complex_of(_part(found, (0, n), (0, n)), _part(found, (n, 2 * n), (0, n)))


def qr(input: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Compute the QR decomposition: orthonormal columns Q and upper triangular R
    (`mindspore.ops.qr`).

    Args:
        input: Tensor (..., m, n), float32, float64 or complex.
        mode: ``"reduced"``: Q has min(m, n) columns; ``"complete"``: m.

    Returns:
        (Q, R) with Q R = input. There is a gradient for m >= n and, unless m = n, ``"reduced"``.

    Raises:
        ValueError: fewer than two axes, elements that are not finite, or another mode.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> q, r = ms.ops.qr(ms.Tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> print((q @ r).round(decimals=4))
        [[3. 1.]
         [4. 2.]]
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentValueError(f"qr: got mode={mode!r}; wanted 'reduced' or 'complete'")
    found = qr_by(input, mode == "complete")
    return found[0], found[1]


@tensor_method("qr")
def _tensor_qr(
    self: Tensor, some: bool | str = True, *, mode: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the QR decomposition: reduced if `some` is true, else complete; see `ops.qr`.

    `mode`, or a string as the first argument, is the mode of `ops.qr`.
    """
    if isinstance(some, str):
        mode = some
    if mode is None:
        mode = "reduced" if some else "complete"
    return qr(self, mode)


@primitive("Qr(full_matrices=False)(x)", op="qr")
def _qr_primitive(input: Tensor, full_matrices: bool) -> tuple[Tensor, Tensor]:
    return qr(input, "complete" if full_matrices else "reduced")


@op(primitive="Geqrf", method="geqrf", dtypes=_ANY, host_fallback=True)
def geqrf(input: Tensor):
    """Return the Householder vectors and factors of a QR decomposition, in LAPACK's form
    (`mindspore.ops.geqrf`).

    Args:
        input: Tensor (..., m, n), float32, float64 or complex.

    Returns:
        (y, tau): y has R in its upper triangle and the Householder vectors below it; tau
        (..., min(m, n)) has their scale factors. There is no gradient.

    Raises:
        ValueError: fewer than two axes, or elements that are not finite.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> y, tau = ms.ops.geqrf(ms.Tensor([[3.0], [4.0]]))
        >>> print(y.round(decimals=4), tau.round(decimals=4))
        [[-5. ]
         [ 0.5]] [1.6]
    """


@geqrf.infer
def _(x):
    _matrix("geqrf", x)
    return x, TensorType.of((*x.shape[:-2], min(x.shape[-2:])), x.dtype)


@geqrf.reference
def _(x):
    if not x.size:
        return x, np.zeros((*x.shape[:-2], min(x.shape[-2:])), x.dtype)
    _finite("geqrf", x)
    h, tau = np.linalg.qr(x, mode="raw")
    return np.swapaxes(h, -1, -2).astype(x.dtype), tau.astype(x.dtype)


@op(primitive="Orgqr()(x, tau)", method="orgqr", dtypes=_ANY, promote="common", host_fallback=True)
def orgqr(input: Tensor, input2: Tensor):
    """Return the first columns of the product of Householder reflections (`mindspore.ops.orgqr`).

    Args:
        input: Tensor (..., m, n) with the vectors below its diagonal, as `geqrf` returns it.
        input2: Tensor (..., k), the scale factors tau of `geqrf`; k <= n <= m.

    Returns:
        Tensor (..., m, n) of orthonormal columns. It has no gradient.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.orgqr(*ms.ops.geqrf(ms.Tensor([[3.0], [4.0]]))).round(decimals=4))
        [[-0.6]
         [-0.8]]
    """


@orgqr.infer
def _(x, tau):
    _matrix("orgqr", x)
    m, n = x.shape[-2:]
    if n > m or tau.shape[:-1] != x.shape[:-2] or len(tau.shape) < 1 or tau.shape[-1] > n:
        raise ShapeError(
            f"orgqr: got shapes {x.shape} and {tau.shape}; wanted (..., m, n) and (..., k), "
            "k <= n <= m"
        )
    return x


@orgqr.reference
def _(x, tau):
    n = x.shape[-1]
    out = np.zeros(x.shape, x.dtype)
    out[..., :n, :n] = np.eye(n)
    for i in range(tau.shape[-1] - 1, -1, -1):
        v = x[..., :, i].copy()
        v[..., :i] = 0
        v[..., i] = 1
        scale = tau[..., i, None, None]
        out = out - scale * v[..., :, None] * (v.conj()[..., None, :] @ out)
    return out.astype(x.dtype)


@primitive("Ormqr(left=True, transpose=False)(x, tau, other)")
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Multiply a matrix by the full Q of a QR decomposition (`mindspore.ops.ormqr`).

    Args:
        input, tau: Tensors (..., m, k) and (..., k), the results of `geqrf`.
        other: Tensor (..., m, n) or, if `left` is False, (..., n, m).
        left: whether Q is the left factor, else the right one.
        transpose: whether to multiply by the adjoint of Q instead.

    Returns:
        Tensor of the shape of `other`. Only `other` has a gradient.

    Raises:
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> a = ms.Tensor([[3.0], [4.0]])
        >>> print(ms.ops.ormqr(*ms.ops.geqrf(a), a, transpose=True).abs().round(decimals=4))
        [[5.]
         [0.]]
    """
    *lead, m, k = input.shape
    if k < m:
        spare = broadcast_to(cast_to(iota((1,), 0, int64), input.dtype), (*lead, m, m - k))
        input = concat_by((input, spare), input.ndim - 1)
    q = orgqr(input, tau)
    if transpose:
        q = _adjoint(q)
    return matmul_of(q, other) if left else matmul_of(other, q)


@tensor_method("ormqr")
def _tensor_ormqr(
    self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Multiply `input3` by the Q of which this tensor and `input2` are `geqrf`'s results.

    See `ops.ormqr`.
    """
    return ormqr(self, input2, input3, left, transpose)


# ---- eigenvalues ---------------------------------------------------------------------------------


def _complex_dtype(dtype: DType) -> DType:
    return complex128 if dtype in (float64, complex128) else complex64


@op(name="eig", dtypes=_ANY, host_fallback=True)
def eig_by(input: Tensor):
    """Primitive op: eigenvalues, and eigenvectors of unit length in columns, in LAPACK's order.

    Both results are complex.
    """


@eig_by.infer
def _(x):
    _matrix("eig", x, True)
    wide = _complex_dtype(x.dtype)
    return TensorType.of(x.shape[:-1], wide), TensorType.of(x.shape, wide)


@eig_by.reference
def _(x):
    wide = np.complex128 if x.dtype in (np.float64, np.complex128) else np.complex64
    if not x.size:
        return np.zeros(x.shape[:-1], wide), np.zeros(x.shape, wide)
    _finite("eig", x)
    values, vectors = np.linalg.eig(x)
    return values.astype(wide), vectors.astype(wide)


@eig_by.bprop
def _(x, out, dout):
    # van der Aa, ter Morsche and Mattheij, 2007; the vectors have unit length
    values, v = out
    dvalues, dv = dout
    n = x.shape[-1]
    vh = _adjoint(v)
    inner = matmul_of(vh, dv)
    eye = iota((n, n), 0, int64) == iota((n, n), 1, int64)
    share = reduce_sum(select(eye, cast_to(real(inner), v.dtype), 0), (x.ndim - 2,), True)
    inner = inner - matmul_of(vh, v) * share
    lead = values.shape[:-1]
    gap = reshape_to(values, (*lead, 1, n)) - reshape_to(values, (*lead, n, 1))
    inner = select(eye, 0, true_divide(inner, conj(select(eye, 1, gap))))
    diagonal = select(eye, reshape_to(dvalues, (*lead, 1, n)), 0)
    found = matmul_of(matmul_of(_adjoint(_inverse(v)), inner + diagonal), vh)
    return (found if x.dtype.is_complex else real(found),)


def eig(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and eigenvectors of square matrices (`mindspore.ops.eig`).

    Args:
        A: Tensor (..., n, n), float32, float64 or complex.

    Returns:
        Complex eigenvalues (..., n), in no particular order, and vectors (..., n, n) in columns
        of unit length. The gradient requires distinct eigenvalues, and a function of the vectors
        that does not depend on their phase.

    Raises:
        ValueError: not square, or elements that are not finite.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> values, vectors = ms.ops.eig(ms.Tensor([[2.0, 0.0], [0.0, 3.0]]))
        >>> print(values)
        [2.+0.j 3.+0.j]
    """
    found = eig_by(A)
    return found[0], found[1]


@tensor_method("eigvals")
def eigvals(A: Tensor) -> Tensor:
    """Return the eigenvalues of square matrices (`mindspore.ops.eigvals`).

    Args:
        A: Tensor (..., n, n), float32, float64 or complex.

    Returns:
        Complex Tensor (..., n), in no particular order.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.eigvals(ms.Tensor([[2.0, 0.0], [0.0, 3.0]])))
        [2.+0.j 3.+0.j]
    """
    return eig(A)[0]


class Eig(Primitive):
    """Eigenvalues of square matrices: `Eig(compute_v=False)(x)`.

    The result is (eigenvalues, eigenvectors); without `compute_v` the second is a 0-d zero.
    """

    def __init__(self, compute_v: bool = False) -> None:
        super().__init__()
        self.compute_v = compute_v

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (eigenvalues, eigenvectors); without `compute_v`, the second is a 0-d zero."""
        values, vectors = eig(x)
        if self.compute_v:
            return values, vectors
        return values, cast_to(reshape_to(iota((1,), 0, int64), ()), values.dtype)


# ---- functions of matrices -----------------------------------------------------------------------


_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0,
    960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip


def _expm(x: Array) -> Array:
    """Return the exponential of one matrix, by scaling and squaring (Higham, 2005).

    A Pade approximant of degree 13 computes the exponential of the scaled matrix.
    """
    size = np.abs(x).sum(0).max(initial=0.0)
    if not np.isfinite(size):
        return np.full_like(x, np.nan)
    halvings = max(0, math.ceil(math.log2(size / 5.37))) if size > 5.37 else 0
    x = x / 2.0**halvings
    b = _PADE
    eye = np.eye(len(x), dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2
    u = x @ (odd + b[1] * eye)
    v = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * eye
    out = np.linalg.solve(v - u, v + u)
    for _ in range(halvings):
        out = out @ out
    return out


def _logm(x: Array) -> Array:
    """Return the principal logarithm of one square matrix.

    Square roots are taken (Denman and Beavers, 1976) until the matrix is near the identity, where a
    series converges. The logarithm is 2 ** (number of roots) times the series.
    """
    eye = np.eye(len(x), dtype=x.dtype)
    roots = 0
    while np.abs(x - eye).sum(0).max(initial=0.0) > 0.25 and roots < 60:
        y, z = x, eye
        for _ in range(50):
            last = y
            y, z = (y + np.linalg.inv(z)) / 2, (z + np.linalg.inv(y)) / 2
            if np.abs(y - last).max() <= 1e-15 * np.abs(y).max():
                break
        x = y
        roots += 1
    w = np.linalg.solve(x + eye, x - eye)
    square, power, total = w @ w, w, w
    for k in range(3, 41, 2):
        power = power @ square
        total = total + power / k
    return total * (2.0 * 2.0**roots)


@op(name="matrix_function", dtypes=_ANY, host_fallback=True)
def matrix_function(input: Tensor, kind: str):
    """Primitive op: the exponential ("exp") or principal logarithm ("log") of matrices."""


@matrix_function.infer
def _(x, kind):
    _matrix(f"matrix_{kind}", x, True)
    if kind not in ("exp", "log"):
        raise ArgumentValueError(f"matrix_function: got kind={kind!r}; wanted 'exp' or 'log'")
    return x


@matrix_function.reference
def _(x, kind):
    wide: type[np.generic] = np.complex128 if x.dtype.kind == "c" else np.float64
    out = np.full(x.shape, np.nan, wide)
    with np.errstate(all="ignore"):
        for i in np.ndindex(x.shape[:-2]):
            try:
                out[i] = (_expm if kind == "exp" else _logm)(x[i].astype(wide))
            except np.linalg.LinAlgError:  # no logarithm: the result remains NaN
                continue
    return out.astype(x.dtype)


@matrix_function.bprop
def _(x, out, dout, kind):
    # f([[A, G], [0, A]]) = [[f(A), L(A, G)], [0, f(A)]] (Mathias, 1996)
    n = x.shape[-1]
    a = _adjoint(x)
    zero = a * 0
    rows = [concat_by((a, dout), x.ndim - 1), concat_by((zero, a), x.ndim - 1)]
    found = matrix_function(concat_by(rows, x.ndim - 2), kind)
    return (_part(found, (0, n), (n, 2 * n)),)


@primitive("MatrixExp()(x)", op="matrix_function")
def matrix_exp(input: Tensor) -> Tensor:
    """Return the exponential of square matrices (`mindspore.ops.matrix_exp`).

    Args:
        input: Tensor (..., n, n), float32, float64 or complex.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        ValueError: not square.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.matrix_exp(ms.Tensor([[0.0, 1.0], [0.0, 0.0]])))
        [[1. 1.]
         [0. 1.]]
    """
    found: Tensor = matrix_function(input, "exp")
    return found


@primitive("MatrixLogarithm()(x)", op="matrix_function")
def _logarithm(input: Tensor) -> Tensor:
    found: Tensor = matrix_function(input, "log")
    return found


# ---- pivots --------------------------------------------------------------------------------------


@op(name="permutation_of_pivots", dtypes=INTEGER, differentiable=False, host_fallback=True)
def permutation_of_pivots(input: Tensor, count: int):
    """Primitive op: the permutation of `count` rows that LAPACK's pivots describe.

    Pivot k, counted from 1, is the row that was exchanged with row k. The result has the original
    row numbers, counted from 0, in their new order.
    """


@permutation_of_pivots.infer
def _(x, count):
    if not x.shape or x.shape[-1] > count:
        raise ShapeError(f"lu: got pivots of shape {x.shape} for {count} rows")
    return TensorType.of((*x.shape[:-1], count), int64)


@permutation_of_pivots.reference
def _(x, count):
    if x.size and not (1 <= x.min() and x.max() <= count):
        raise ArgumentValueError(f"lu: got pivots from {x.min()} to {x.max()}; wanted 1 to {count}")
    out = np.tile(np.arange(count), (*x.shape[:-1], 1))
    for i in np.ndindex(x.shape[:-1]):
        for k, p in enumerate(x[i].tolist()):
            out[(*i, k)], out[(*i, p - 1)] = out[(*i, p - 1)], out[(*i, k)]
    return out
