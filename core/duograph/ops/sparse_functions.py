"""Functions of sparse tensors: `csr_*`, `coo_*`, `row_tensor_*` and sparse matmuls.

Users call them. They compute with the values of the sparse tensors by ordinary ops; functions whose
result structure depends on values run eagerly only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..dtype import DTypeLike, int64
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..tensor import Tensor
from . import (
    activation,
    comparison,
    elementwise,
    exponential,
    hyperbolic,
    powers,
    rectifiers,
    rounding,
    trigonometry,
)
from .creation import cast, fill
from .gather_scatter import gather
from .joining import cat
from .linalg import matmul
from .primitive import Primitive, primitive
from .scattering import scatter_nd
from .segments import unsorted_segment_max, unsorted_segment_sum
from .shape_primitives import reshape_to, transpose_by
from .sparse_tensors import COOTensor, CSRTensor, RowTensor, _row_ends, rows_of, to_coo, to_csr

S = TypeVar("S", COOTensor, CSRTensor)

# name after "csr_" and "coo_" -> the function that is applied to the values
_ON_VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": elementwise.abs,
    "acos": trigonometry.acos,
    "acosh": hyperbolic.acosh,
    "asin": trigonometry.asin,
    "asinh": hyperbolic.asinh,
    "atan": trigonometry.atan,
    "atanh": hyperbolic.atanh,
    "ceil": rounding.ceil,
    "cos": trigonometry.cos,
    "cosh": hyperbolic.cosh,
    "exp": exponential.exp,
    "expm1": exponential.expm1,
    "floor": rounding.floor,
    "inv": elementwise.reciprocal,
    "isfinite": comparison.isfinite,
    "isinf": comparison.isinf,
    "isnan": comparison.isnan,
    "log": exponential.log,
    "log1p": exponential.log1p,
    "neg": elementwise.neg,
    "relu": rectifiers.relu,
    "relu6": rectifiers.relu6,
    "round": rounding.round,
    "sigmoid": activation.sigmoid,
    "sin": trigonometry.sin,
    "sinh": hyperbolic.sinh,
    "softsign": activation.softsign,
    "sqrt": powers.sqrt,
    "square": elementwise.square,
    "tan": trigonometry.tan,
    "tanh": hyperbolic.tanh,
}

__all__ = [
    "SparseSlice", "SparseTensorDenseAdd", "SparseTensorDenseMatmul", "SparseToDense",
    "coalesce", "coo2csr", "coo_add", "coo_concat", "coo_tensor_get_dense_shape",
    "coo_tensor_get_indices", "coo_tensor_get_values", "csr2coo", "csr_add", "csr_div",
    "csr_gather", "csr_mm", "csr_mul", "csr_mv", "csr_reduce_sum", "csr_softmax",
    "csr_tensor_get_dense_shape", "csr_tensor_get_indices", "csr_tensor_get_indptr",
    "csr_tensor_get_values", "csr_to_coo", "csr_to_dense", "dense_to_sparse_coo",
    "dense_to_sparse_csr", "make_coo_tensor", "make_csr_tensor", "make_row_tensor",
    "make_row_tensor_inner", "make_sparse_tensor", "row_tensor_add", "row_tensor_get_dense_shape",
    "row_tensor_get_indices", "row_tensor_get_values",
]  # fmt: skip


def _needs(name: str, x: object, kind: type) -> Any:
    if not isinstance(x, kind):
        raise ArgumentError(f"{name}: got {type(x).__name__}; wanted a {kind.__name__}")
    return x


def _on_values(name: str, kind: type, function: Callable[[Tensor], Tensor]) -> Callable[[S], S]:
    def call(x: S) -> S:
        found: S = _needs(name, x, kind).with_values(function(x.values))
        return found

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"Return a {kind.__name__} with `{name[4:]}` of each stored value "
        f"(`mindspore.ops.{name}`).\n\n"
        "Elements that are not stored remain 0, even if the function of 0 is another number.\n"
    )
    return call


__all__ += [f"{kind}_{name}" for kind in ("coo", "csr") for name in _ON_VALUES]
for _name, _function in _ON_VALUES.items():
    globals()[f"coo_{_name}"] = _on_values(f"coo_{_name}", COOTensor, _function)
    globals()[f"csr_{_name}"] = _on_values(f"csr_{_name}", CSRTensor, _function)


# ---- COOTensor -----------------------------------------------------------------------------------


def make_coo_tensor(indices: Tensor, values: Tensor, dense_shape: Sequence[int]) -> COOTensor:
    """Return the COOTensor of coordinates, values and the shape of the dense tensor."""
    return COOTensor(indices, values, dense_shape)


make_sparse_tensor = make_coo_tensor


def coo_tensor_get_indices(x: COOTensor) -> Tensor:
    """Return the coordinates of the values, (n, axes)."""
    return x.indices


def coo_tensor_get_values(x: COOTensor) -> Tensor:
    """Return the stored values, (n,)."""
    return x.values


def coo_tensor_get_dense_shape(x: COOTensor) -> tuple[int, ...]:
    """Return the shape of the dense tensor."""
    return x.shape


def dense_to_sparse_coo(tensor: Tensor) -> COOTensor:
    """Return the elements of a dense tensor that are not 0 (`mindspore.ops.dense_to_sparse_coo`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.dense_to_sparse_coo(ms.Tensor([[0.0, 1.0], [2.0, 0.0]])).indices.tolist()
        [[0, 1], [1, 0]]
    """
    return to_coo(tensor)


def coo_add(x1: COOTensor, x2: COOTensor, thresh: Tensor) -> COOTensor:
    """Add two sparse tensors, and drop sums below `thresh` in magnitude (`mindspore.ops.coo_add`).

    Raises:
        ValueError: the shapes differ.
        TypeError: an operand is not a COOTensor.
    """
    found: COOTensor = _needs("coo_add", x1, COOTensor).add(x2, thresh)
    return found


def coo_concat(sp_input: Sequence[COOTensor], concat_dim: int = 0) -> COOTensor:
    """Join sparse tensors along an axis (`mindspore.ops.coo_concat`).

    Args:
        sp_input: COOTensors of the same shape, except for the size of that axis.
        concat_dim: the axis.

    Raises:
        ValueError: shapes that do not fit, an axis out of range, or no tensor.
    """
    if not sp_input:
        raise ArgumentValueError("coo_concat: got no tensor; wanted at least one")
    first = sp_input[0]
    n = len(first.shape)
    if not -n <= concat_dim < n:
        raise ArgumentValueError(f"coo_concat: got concat_dim={concat_dim} for {n} axes")
    axis = concat_dim % n
    start, parts = 0, []
    for x in sp_input:
        rest = [size for i, size in enumerate(x.shape) if i != axis]
        if len(x.shape) != n or rest != [s for i, s in enumerate(first.shape) if i != axis]:
            raise ShapeError(f"coo_concat: got shapes {first.shape} and {x.shape}")
        shift = Tensor(np.array([start if i == axis else 0 for i in range(n)]))
        parts.append(cast(x.indices + shift, first.indices.dtype))
        start += x.shape[axis]
    shape = tuple(start if i == axis else size for i, size in enumerate(first.shape))
    joined = COOTensor(cat(parts), cat([x.values for x in sp_input]), shape)
    return joined.coalesce()


@primitive("Coalesce()(x_indices, x_values, x_shape)")
def coalesce(x_indices: Tensor, x_values: Tensor, x_shape: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Order the values of a sparse tensor by coordinates; add those of equal coordinates
    (`mindspore.ops.coalesce`).

    Args:
        x_indices: Tensor (axes, n): the coordinates, a column for each value.
        x_values: Tensor (n,).
        x_shape: Tensor (axes,).

    Returns:
        (indices, values, shape) in the same form.

    Examples:
        >>> import duograph as ms
        >>> i, v = ms.Tensor([[0, 0, 1], [1, 1, 2]]), ms.Tensor([1.0, 5.0, 4.0])
        >>> print(ms.ops.coalesce(i, v, ms.Tensor([3, 3]))[1])
        [6. 4.]
    """
    shape = tuple(x_shape.tolist())
    found = COOTensor(transpose_by(x_indices, (1, 0)), x_values, shape).coalesce()
    return transpose_by(found.indices, (1, 0)), found.values, x_shape


# ---- CSRTensor -----------------------------------------------------------------------------------


def make_csr_tensor(
    indptr: Tensor, indices: Tensor, values: Tensor, dense_shape: Sequence[int]
) -> CSRTensor:
    """Return the CSRTensor of row offsets, columns, values and the shape of the dense matrix."""
    return CSRTensor(indptr, indices, values, dense_shape)


def csr_tensor_get_indptr(x: CSRTensor) -> Tensor:
    """Return CSR's row offsets, (rows + 1,).

    Row i has the values from number offsets[i] to offsets[i + 1] - 1.
    """
    return x.indptr


def csr_tensor_get_indices(x: CSRTensor) -> Tensor:
    """Return the column of each value, (n,)."""
    return x.indices


def csr_tensor_get_values(x: CSRTensor) -> Tensor:
    """Return the stored values, (n,)."""
    return x.values


def csr_tensor_get_dense_shape(x: CSRTensor) -> tuple[int, ...]:
    """Return the shape of the dense matrix."""
    return x.shape


def dense_to_sparse_csr(tensor: Tensor) -> CSRTensor:
    """Return the elements of a dense matrix that are not 0 (`mindspore.ops.dense_to_sparse_csr`).

    Raises:
        ValueError: another number of axes than 2.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.dense_to_sparse_csr(ms.Tensor([[0.0, 1.0], [2.0, 0.0]])).indptr.tolist()
        [0, 1, 2]
    """
    return to_csr(tensor)


def csr_to_coo(tensor: CSRTensor) -> COOTensor:
    """Convert a CSRTensor to a COOTensor (`mindspore.ops.csr_to_coo`)."""
    found: COOTensor = _needs("csr_to_coo", tensor, CSRTensor).to_coo()
    return found


def csr_to_dense(csr_tensor: CSRTensor) -> Tensor:
    """Convert a CSRTensor to a dense matrix (`mindspore.ops.csr_to_dense`)."""
    found: Tensor = _needs("csr_to_dense", csr_tensor, CSRTensor).to_dense()
    return found


def csr2coo(indptr: Tensor, nnz: int) -> Tensor:
    """Return the row number of each of `nnz` stored values, from CSR's row offsets `indptr`.

    See `mindspore.ops.csr2coo`.
    """
    return rows_of(indptr, nnz)


def coo2csr(row_indices: Tensor, height: int) -> Tensor:
    """Return CSR's row offsets, (height + 1,), from the ascending row numbers of the stored values.

    See `mindspore.ops.coo2csr`.
    """
    return _row_ends(row_indices, height, row_indices.dtype)


def csr_mv(csr_tensor: CSRTensor, dense: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense column (`mindspore.ops.csr_mv`).

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.dense_to_sparse_csr(ms.Tensor([[0.0, 1.0], [2.0, 0.0]]))
        >>> print(ms.ops.csr_mv(x, ms.Tensor([[3.0], [4.0]])))
        [[4.]
         [6.]]
    """
    found: Tensor = _needs("csr_mv", csr_tensor, CSRTensor).mv(dense)
    return found


def csr_mm(
    a: CSRTensor,
    b: CSRTensor | Tensor,
    trans_a: bool = False,
    trans_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> CSRTensor | Tensor:
    """Return the product of a sparse matrix and a sparse or dense one (`mindspore.ops.csr_mm`).

    Args:
        a: CSRTensor.
        b: CSRTensor or Tensor.
        trans_a, trans_b: whether to transpose the operand.
        adjoint_a, adjoint_b: whether to transpose and conjugate the operand.

    Returns:
        CSRTensor if `b` is one, else a Tensor.

    Raises:
        ValueError: shapes that do not fit, or `trans` and `adjoint` both set for an operand.
    """
    if (trans_a and adjoint_a) or (trans_b and adjoint_b):
        raise ArgumentValueError("csr_mm: got trans and adjoint of one operand; wanted one of them")
    _needs("csr_mm", a, CSRTensor)
    if not any((trans_a, trans_b, adjoint_a, adjoint_b)):
        return a.mm(b)

    def dense(x: CSRTensor | Tensor, turned: bool, conjugate: bool) -> Tensor:
        full = x.to_dense() if isinstance(x, CSRTensor) else x
        full = transpose_by(full, (1, 0)) if turned or conjugate else full
        return full.conj() if conjugate and full.dtype.is_complex else full

    out = matmul(dense(a, trans_a, adjoint_a), dense(b, trans_b, adjoint_b))
    return to_csr(out) if isinstance(b, CSRTensor) else out


def csr_mul(x: CSRTensor, y: Tensor) -> CSRTensor:
    """Multiply each stored value of `x` by the element of `y` there (`mindspore.ops.csr_mul`).

    `y` is broadcast to the shape of `x`. Returns a matrix with the indices of `x`.
    """
    found: CSRTensor = _needs("csr_mul", x, CSRTensor) * y
    return found


def csr_div(x: CSRTensor, y: Tensor) -> CSRTensor:
    """Divide each stored value of `x` by the element of `y` there (`mindspore.ops.csr_div`).

    `y` is broadcast to the shape of `x`. Returns a matrix with the indices of `x`.
    """
    found: CSRTensor = _needs("csr_div", x, CSRTensor) / y
    return found


def csr_add(a: CSRTensor, b: CSRTensor, alpha: Tensor, beta: Tensor) -> CSRTensor:
    """Return ``alpha * a + beta * b`` of two sparse matrices (`mindspore.ops.csr_add`)."""
    found: CSRTensor = _needs("csr_add", a, CSRTensor).add(b, alpha, beta)
    return found


def csr_reduce_sum(csr_tensor: CSRTensor, axis: int) -> Tensor:
    """Return the sums of the rows, (rows, 1); `axis` is 1 or -1.

    See `mindspore.ops.csr_reduce_sum`.
    """
    found: Tensor = _needs("csr_reduce_sum", csr_tensor, CSRTensor).sum(axis)
    return found


def csr_gather(
    indptr: Tensor, indices: Tensor, dense: Tensor, sparse_shape: Sequence[int]
) -> Tensor:
    """Return the elements of a dense matrix at the positions of the values of a sparse one.

    `indptr` and `indices` are the row offsets and the columns of the sparse matrix; see
    `mindspore.ops.csr_gather`.
    """
    none = fill(indices.shape, 0, dense.dtype)
    return CSRTensor(indptr, indices, none, sparse_shape).at_indices(dense)


def csr_softmax(logits: CSRTensor, dtype: DTypeLike) -> CSRTensor:
    """Return the softmax of the values of each row (`mindspore.ops.csr_softmax`).

    Args:
        logits: CSRTensor, floating.
        dtype: dtype of the result.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.dense_to_sparse_csr(ms.Tensor([[3.0, 3.0], [0.0, 9.0]]))
        >>> print(ms.ops.csr_softmax(x, ms.float32).values)
        [0.5 0.5 1. ]
    """
    _needs("csr_softmax", logits, CSRTensor)
    rows, height = logits.rows(), logits.shape[0]
    high = gather(unsorted_segment_max(logits.values, rows, height), rows, 0)
    size = exponential.exp(logits.values - high)
    total = gather(unsorted_segment_sum(size, rows, height), rows, 0)
    return logits.with_values(cast(size / total, dtype))


# ---- RowTensor -----------------------------------------------------------------------------------


def make_row_tensor(indices: Tensor, values: Tensor, dense_shape: Sequence[int]) -> RowTensor:
    """Return the RowTensor of row numbers, rows and the shape of the whole tensor."""
    return RowTensor(indices, values, dense_shape)


make_row_tensor_inner = make_row_tensor


def row_tensor_get_indices(x: RowTensor) -> Tensor:
    """Return the numbers of the rows that are stored."""
    return x.indices


def row_tensor_get_values(x: RowTensor) -> Tensor:
    """Return the rows that are stored."""
    return x.values


def row_tensor_get_dense_shape(x: RowTensor) -> tuple[int, ...]:
    """Return the shape of the whole tensor."""
    return x.dense_shape


def row_tensor_add(x: RowTensor, y: Tensor) -> Tensor:
    """Return the dense sum of a RowTensor and a Tensor."""
    n = x.indices.shape[0]
    return scatter_nd(reshape_to(x.indices, (n, 1)), x.values, x.dense_shape) + y


# ---- primitive classes ---------------------------------------------------------------------------


def _sizes(shape: Tensor | Sequence[int]) -> tuple[int, ...]:
    return tuple(shape.tolist()) if isinstance(shape, Tensor) else tuple(shape)


class SparseTensorDenseMatmul(Primitive):
    """Product of a sparse matrix, given by its parts, and a dense one.

    `SparseTensorDenseMatmul(adjoint_st=False, adjoint_dt=False)(indices, values, shape, dense)`

    Examples:
        >>> import duograph as ms
        >>> i, v = ms.Tensor([[0, 1], [1, 0]]), ms.Tensor([1.0, 2.0])
        >>> print(ms.ops.SparseTensorDenseMatmul()(i, v, (2, 2), ms.Tensor([[3.0], [4.0]])))
        [[4.]
         [6.]]
    """

    def __init__(self, adjoint_st: bool = False, adjoint_dt: bool = False) -> None:
        super().__init__()
        self.adjoint_st, self.adjoint_dt = adjoint_st, adjoint_dt

    def __call__(
        self, indices: Tensor, values: Tensor, sparse_shape: Tensor | Sequence[int], dense: Tensor
    ) -> Tensor:
        """Return the dense product of a sparse matrix and `dense`.

        The constructor's `adjoint_st` transposes the sparse matrix, `adjoint_dt` the dense one.
        """
        x = COOTensor(indices, values, _sizes(sparse_shape))
        if x.ndim != 2:
            raise ShapeError(f"SparseTensorDenseMatmul: got shape {x.shape}; wanted two axes")
        right = transpose_by(dense, (1, 0)) if self.adjoint_dt else dense
        height, width = reversed(x.shape) if self.adjoint_st else x.shape
        if right.ndim != 2 or right.shape[0] != width:
            raise ShapeError(
                f"SparseTensorDenseMatmul: got shapes {(height, width)} and {right.shape}"
            )
        both = transpose_by(indices, (1, 0))
        rows, columns = (both[1], both[0]) if self.adjoint_st else (both[0], both[1])
        n = values.shape[0]
        if not n:
            return fill((height, right.shape[1]), 0, right.dtype)
        terms = reshape_to(values, (n, 1)) * gather(right, columns, 0)
        return unsorted_segment_sum(terms, rows, height)


class SparseToDense(Primitive):
    """Conversion of a sparse tensor to a dense one: `SparseToDense()(indices, values, shape)`."""

    def __call__(
        self, indices: Tensor, values: Tensor, sparse_shape: Tensor | Sequence[int]
    ) -> Tensor:
        """Return the dense tensor: `values` at `indices`, and zeros elsewhere."""
        return COOTensor(indices, values, _sizes(sparse_shape)).to_dense()


class SparseTensorDenseAdd(Primitive):
    """Sum of a sparse and a dense tensor.

    `SparseTensorDenseAdd()(indices, values, shape, dense)`.
    """

    def __call__(
        self, x1_indices: Tensor, x1_values: Tensor, x1_shape: Tensor, x2: Tensor
    ) -> Tensor:
        """Return the dense sum of a sparse tensor (indices, values, shape) and `x2`."""
        return COOTensor(x1_indices, x1_values, _sizes(x1_shape)).to_dense() + x2


class SparseSlice(Primitive):
    """Part of a sparse tensor: `SparseSlice()(indices, values, shape, start, size)`.

    Examples:
        >>> import duograph as ms
        >>> i, v = ms.Tensor([[0, 1], [2, 3]]), ms.Tensor([1.0, 2.0])
        >>> begin, size, shape = ms.Tensor([1, 1]), ms.Tensor([3, 3]), ms.Tensor([4, 4])
        >>> print(ms.ops.SparseSlice()(i, v, shape, begin, size)[0])
        [[1 2]]
    """

    def __call__(
        self, indices: Tensor, values: Tensor, shape: Tensor, start: Tensor, size: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return (indices, values, shape) of the part of a sparse tensor that begins at `start`.

        The part has `size` positions along each axis, or as many as the tensor has. The indices are
        read on the host, since the number of values in the part depends on them.
        """
        begin, full = np.array(_sizes(start)), np.array(_sizes(shape))
        extent = np.minimum(np.array(_sizes(size)), full - begin)
        coordinates = indices.asnumpy()
        inside = ((coordinates >= begin) & (coordinates < begin + extent)).all(1)
        kept = np.flatnonzero(inside)
        found = Tensor((coordinates[kept] - begin).astype(coordinates.dtype))
        return found, gather(values, kept, 0), cast(Tensor(extent), int64)
