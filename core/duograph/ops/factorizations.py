"""LU decomposition and symmetric eigenvalues on the host; their gradients are ops.

`duograph.scipy.linalg` calls the ops; no public function of `ops` does. The host computes them by
NumPy; 16-bit floats and complex numbers are refused.
"""

from __future__ import annotations

import numpy as np

from ..dtype import float32, float64, int64
from ..errors import ArgumentValueError, MissingRuleError, ShapeError
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from ..types import TensorType
from .comparison import equal
from .creation import cast_to, fill, iota
from .decompositions import permutation_of_pivots
from .diagonals import tril, triu
from .linalg import matmul_of
from .logic import select_by
from .matrices import inverse
from .shape_primitives import broadcast_to, reshape_to, transpose_by

__all__: list[str] = []

_REAL = (float32, float64)


def _transposed(x: Tensor) -> Tensor:
    return transpose_by(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _matrix(name: str, t: TensorType, square: bool) -> None:
    if len(t.shape) < 2 or (square and t.shape[-1] != t.shape[-2]):
        wanted = "square matrices (..., n, n)" if square else "matrices (..., m, n)"
        raise ShapeError(f"{name}: got a tensor of shape {t.shape}; wanted {wanted}")


def _finite(name: str, x: Array) -> None:
    if not np.isfinite(x).all():  # some LAPACKs never return then
        raise ArgumentValueError(f"{name}: got infinities or NaN; wanted finite elements")


def _identity(x: Tensor) -> Tensor:
    """Return a bool tensor of the shape of `x` that is True on the diagonals of its matrices."""
    return equal(iota(x.shape, x.ndim - 2, int64), iota(x.shape, x.ndim - 1, int64))


@op(name="eigh", dtypes=_REAL, host_fallback=True)
def eigh_by(input: Tensor):
    """Primitive op: ascending eigenvalues, and eigenvectors in columns, of symmetric matrices.

    The matrices used are the symmetric parts, (x + x^T) / 2, of the operand.
    """


@eigh_by.infer
def _(x):
    _matrix("eigh", x, square=True)
    return TensorType.of(x.shape[:-1], x.dtype), x


@eigh_by.reference
def _(x):
    _finite("eigh", x)
    if not x.size:
        return np.zeros(x.shape[:-1], x.dtype), np.zeros(x.shape, x.dtype)
    values, vectors = np.linalg.eigh((x + np.swapaxes(x, -1, -2)) / 2)
    return values, vectors


@eigh_by.bprop
def _(x, out, dout):
    values, vectors = out
    dvalues, dvectors = dout
    n = x.shape[-1]
    column = broadcast_to(reshape_to(values, (*values.shape, 1)), x.shape)
    row = broadcast_to(reshape_to(values, (*values.shape[:-1], 1, n)), x.shape)
    same = _identity(x)
    gaps = select_by(same, fill((), 1.0, x.dtype), row - column)
    inner = matmul_of(_transposed(vectors), dvectors) / gaps
    columns = broadcast_to(reshape_to(dvalues, (*dvalues.shape, 1)), x.shape)
    inner = select_by(same, columns, inner)
    made = matmul_of(matmul_of(vectors, inner), _transposed(vectors))
    return ((made + _transposed(made)) * 0.5,)


@op(name="lu", dtypes=_REAL, host_fallback=True)
def lu_by(input: Tensor):
    """Primitive op: LU decomposition with row exchanges, in LAPACK's form.

    Returns L (below the diagonal; its diagonal is 1) and U in one matrix, and pivots: pivot k,
    counted from 1, is the row that was exchanged with row k.
    """


@lu_by.infer
def _(x):
    _matrix("lu", x, square=False)
    return x, TensorType.of((*x.shape[:-2], min(x.shape[-2:])), int64)


@lu_by.reference
def _(x):
    _finite("lu", x)
    out = x.copy()
    m, n = x.shape[-2:]
    pivots = np.zeros((*x.shape[:-2], min(m, n)), np.int64)
    for i in np.ndindex(x.shape[:-2]):
        _eliminate(out[i], pivots[i])
    return out, pivots


def _eliminate(a: Array, pivots: Array) -> None:
    """Replace the matrix `a` by its LU factors, and fill `pivots` with the pivot rows, in place.

    The rows are counted from 1.
    """
    for k in range(pivots.size):
        best = k + int(np.abs(a[k:, k]).argmax())
        pivots[k] = best + 1
        a[[k, best]] = a[[best, k]]
        if a[k, k] != 0:
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


@lu_by.bprop
def _(x, out, dout):
    if x.shape[-1] != x.shape[-2]:
        raise MissingRuleError("lu of matrices that are not square")
    both, pivots = out
    dfactors = dout[0]
    low = tril(both, -1) + cast_to(_identity(x), x.dtype)
    high = triu(both)
    below = tril(matmul_of(_transposed(low), tril(dfactors, -1)), -1)
    above = triu(matmul_of(triu(dfactors), _transposed(high)))
    inner = matmul_of(_transposed(inverse(low)), below + above)
    made = matmul_of(inner, _transposed(inverse(high)))
    return (matmul_of(permutation(pivots, x.shape[-2], x), made),)


def permutation(pivots: Tensor, count: int, like: Tensor) -> Tensor:
    """Return the matrices P with P L U = A, for pivots (row exchanges) that `lu_by` returned.

    `count` is the number of rows. The result has the dtype of `like`.
    """
    order = permutation_of_pivots(pivots, count)
    shape = (*order.shape[:-1], count, count)
    rows = broadcast_to(reshape_to(order, (*order.shape[:-1], 1, count)), shape)
    return cast_to(equal(iota(shape, len(shape) - 2, int64), rows), like.dtype)
