"""Sparse tensors: COOTensor, CSRTensor and RowTensor, and conversions from and to dense tensors.

Users construct them; `sparse_functions` computes with them. They hold ordinary Tensors, so that
gradients flow to `values`. Conversions whose size depends on values run eagerly only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..call_errors import explaining
from ..dtype import DType, DTypeLike, int32, int64
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..tensor import Tensor
from ..types import size_of
from .comparison import less_equal
from .creation import cast, cast_to, fill, iota
from .elementwise import abs as absolute
from .elementwise import neg
from .gather_scatter import gather
from .gathering import gather_nd
from .joining import cat
from .linalg import matmul
from .methods import tensor_method
from .movement import concat_by
from .scan import cumsum
from .scattering import scatter_nd
from .segments import unsorted_segment_sum
from .shape_primitives import broadcast_to, reduce_sum, reshape_to, transpose_by

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["COOTensor", "CSRTensor", "RowTensor", "SparseTensor"]


def _known(x: Tensor) -> bool:
    """Return whether the values of the tensor can be read; those of a graph being built cannot."""
    return not hasattr(x, "_builder")


def _shape_of(name: str, shape: object) -> tuple[int, ...]:
    if isinstance(shape, Tensor):
        shape = shape.tolist()
    if not isinstance(shape, (tuple, list)) or any(
        isinstance(n, bool) or not isinstance(n, (int, np.integer)) for n in shape
    ):
        raise ArgumentError(f"{name}: got shape={shape!r}; wanted a tuple of ints")
    if not shape or any(n <= 0 for n in shape):
        raise ArgumentValueError(f"{name}: got shape={tuple(shape)}; wanted positive sizes")
    return tuple(int(n) for n in shape)


def _indices_of(name: str, what: str, value: object, ndim: int) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentError(f"{name}: got {type(value).__name__} for {what}; wanted a Tensor")
    if value.dtype.kind not in "iu":
        raise DTypeError(f"{name}: got {what} of {value.dtype.name}; wanted integers")
    if value.ndim != ndim:
        raise ShapeError(f"{name}: got {what} of shape {value.shape}; wanted {ndim} axes")
    return value


def _part(name: str, x: Tensor) -> str:
    text = repr(x).replace("value= ", "value=").replace(",\n", "\n")
    head, _, values = text.partition("value=")
    return f"{name}={head}value={values.replace(',', '')}"


Own = TypeVar("Own", bound="_Sparse")


class _Sparse:
    """Base class of the sparse formats COO and CSR: properties of tensors, and arithmetic."""

    values: Tensor
    shape: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def size(self) -> int:
        """The number of stored values."""
        return self.values.size

    @property
    def itemsize(self) -> int:
        """The number of bytes of a value."""
        return self.values.dtype.itemsize

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def with_values(self: Own, values: Tensor) -> Own:
        """Return a sparse tensor with the same indices and shape, and other values."""
        raise NotImplementedError

    def at_indices(self, dense: Tensor) -> Tensor:
        """Return the elements of `dense` at the indices of this tensor's stored values, (n,)."""
        raise NotImplementedError

    def abs(self: Own) -> Own:
        """Return the sparse tensor with the absolute values."""
        return self.with_values(absolute(self.values))

    def astype(self: Own, dtype: DTypeLike) -> Own:
        """Return the sparse tensor with values cast to another dtype."""
        return self.with_values(cast(self.values, dtype))

    def __neg__(self: Own) -> Own:
        return self.with_values(neg(self.values))

    def _factor(self, other: object) -> Tensor:
        if isinstance(other, (int, float)):
            return cast(Tensor(np.array(other)), self.dtype)
        if not isinstance(other, Tensor):
            raise ArgumentError(
                f"{type(self).__name__}: got {type(other).__name__}; wanted a Tensor or a number"
            )
        if other.ndim == 0:
            return other
        return self.at_indices(broadcast_to(other, self.shape))

    def __mul__(self: Own, other: object) -> Own:
        return self.with_values(self.values * self._factor(other))

    def __rmul__(self: Own, other: object) -> Own:
        return self * other

    def __truediv__(self: Own, other: object) -> Own:
        return self.with_values(self.values / self._factor(other))


@explaining
class COOTensor(_Sparse):
    """A sparse tensor of values and their coordinates (`mindspore.COOTensor`).

    Args:
        indices: integer Tensor (n, axes): coordinates of the values.
        values: Tensor (n,).
        shape: shape of the dense tensor.
        coo_tensor: a COOTensor to copy instead.

    Raises:
        TypeError: an argument of another type.
        ValueError: shapes that do not fit, or coordinates out of range.

    Examples:
        >>> import duograph as ms
        >>> x = ms.COOTensor(ms.Tensor([[0, 1], [1, 2]]), ms.Tensor([1.0, 2.0]), (2, 3))
        >>> print(x.to_dense())
        [[0. 1. 0.]
         [0. 0. 2.]]
    """

    def __init__(
        self,
        indices: Tensor | None = None,
        values: Tensor | None = None,
        shape: Sequence[int] | None = None,
        coo_tensor: COOTensor | None = None,
    ) -> None:
        if coo_tensor is not None:
            if indices is not None or values is not None or shape is not None:
                raise ArgumentError("COOTensor: got coo_tensor and other arguments; wanted one")
            indices, values, shape = coo_tensor.to_tuple()
        self.indices = _indices_of("COOTensor", "indices", indices, 2)
        if not isinstance(values, Tensor):
            raise ArgumentError(f"COOTensor: got {type(values).__name__} for values")
        self.values = values
        self.shape = _shape_of("COOTensor", shape)
        if values.ndim != 1 or self.indices.shape != (values.shape[0], len(self.shape)):
            raise ShapeError(
                f"COOTensor: got indices of shape {self.indices.shape} and values of "
                f"{values.shape}; wanted (n, {len(self.shape)}) and (n,)"
            )
        if _known(self.indices) and values.size:
            coordinates = self.indices.asnumpy()
            if (coordinates < 0).any() or (coordinates >= np.array(self.shape)).any():
                raise ArgumentValueError(
                    f"COOTensor: got indices from {coordinates.min(0).tolist()} to "
                    f"{coordinates.max(0).tolist()}; wanted 0 to below {self.shape}"
                )

    def __repr__(self) -> str:
        return (
            f"COOTensor(shape={list(self.shape)}, dtype={self.dtype}, "
            f"{_part('indices', self.indices)}, {_part('values', self.values)})"
        )

    def to_tuple(self) -> tuple[Tensor, Tensor, tuple[int, ...]]:
        """Return (indices, values, shape)."""
        return self.indices, self.values, self.shape

    def with_values(self, values: Tensor) -> COOTensor:
        """Return a tensor of the same structure with other values."""
        made = COOTensor.__new__(COOTensor)
        made.indices, made.values, made.shape = self.indices, values, self.shape
        return made

    def at_indices(self, dense: Tensor) -> Tensor:
        """Return the elements of a dense tensor at the indices of the stored values."""
        return gather_nd(dense, self.indices)

    def to_dense(self) -> Tensor:
        """Return the dense Tensor; values at the same index are added."""
        return scatter_nd(self.indices, self.values, self.shape)

    def to_csr(self) -> CSRTensor:
        """Convert a matrix to CSR format; values with the same indices are added.

        Raises:
            ValueError: another number of axes than 2.
        """
        if self.ndim != 2:
            raise ShapeError(f"COOTensor.to_csr: got shape {self.shape}; wanted two axes")
        ordered = self.coalesce()
        rows, columns = _columns(ordered.indices)
        kind = self.indices.dtype if self.indices.dtype in (int32, int64) else int32
        return CSRTensor(
            _row_ends(rows, self.shape[0], kind), cast_to(columns, kind), ordered.values, self.shape
        )

    def coalesce(self) -> COOTensor:
        """Return the tensor with its values ordered by index; values of equal indices are added."""
        flat = _flat(self.indices.asnumpy().astype(np.int64), self.shape)
        offsets, owner = np.unique(flat, return_inverse=True)
        if not len(offsets):
            return self.with_values(self.values)
        values = unsorted_segment_sum(self.values, Tensor(owner.reshape(-1)), len(offsets))
        coordinates = np.stack(np.unravel_index(offsets, self.shape), -1)
        return COOTensor(cast(Tensor(coordinates), self.indices.dtype), values, self.shape)

    def add(self, other: COOTensor, thresh: Tensor | float) -> COOTensor:
        """Return the sum of two sparse tensors, without values below `thresh` in magnitude.

        Raises:
            TypeError: `other` is not a COOTensor.
            ValueError: the shapes differ.
        """
        total = self + other
        limit = thresh.item() if isinstance(thresh, Tensor) else thresh
        kept = np.flatnonzero(np.abs(total.values.asnumpy()) >= limit)
        if len(kept) == total.size:
            return total
        return COOTensor(gather(total.indices, kept, 0), gather(total.values, kept, 0), self.shape)

    def __add__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return self.to_dense() + other
        if not isinstance(other, COOTensor):
            raise ArgumentError(f"COOTensor: got {type(other).__name__} to add; wanted a COOTensor")
        if other.shape != self.shape:
            raise ShapeError(f"COOTensor: got shapes {self.shape} and {other.shape} to add")
        indices = cat((self.indices, cast(other.indices, self.indices.dtype)))
        return COOTensor(indices, cat((self.values, other.values)), self.shape).coalesce()

    def __radd__(self, other: Tensor) -> Tensor:
        return self.to_dense() + other

    def __sub__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return self.to_dense() - other
        if not isinstance(other, COOTensor):
            raise ArgumentError(f"COOTensor: got {type(other).__name__}; wanted a COOTensor")
        return self + -other


SparseTensor = COOTensor


def _flat(indices: Array, shape: Sequence[int]) -> Array:
    return np.ravel_multi_index(tuple(indices.T), tuple(shape)) if len(indices) else indices[:, 0]


def _columns(indices: Tensor) -> tuple[Tensor, Tensor]:
    """Split the coordinates (n, 2) of a sparse matrix into row and column numbers, (n,) each."""
    both = transpose_by(indices, (1, 0))
    return both[0], both[1]


def _row_ends(rows: Tensor, height: int, dtype: DType) -> Tensor:
    """Convert ascending row numbers to CSR's row offsets, (height + 1,).

    Row i has the values from number offsets[i] to offsets[i + 1] - 1. `height` is the number of
    rows.
    """
    counts = unsorted_segment_sum(fill(rows.shape, 1, int64), rows, height)
    return cast_to(concat_by((fill((1,), 0, int64), cumsum(counts, 0)), 0), dtype)


def rows_of(indptr: Tensor, count: int) -> Tensor:
    """Convert CSR's row offsets `indptr` to the row number of each of `count` values."""
    n = indptr.shape[0]
    number = reshape_to(iota((count,), 0, int64), (count, 1))
    begun = less_equal(reshape_to(cast_to(indptr, int64), (1, n)), number)
    return cast_to(reduce_sum(cast_to(begun, int64), (1,), False) - 1, indptr.dtype)


@explaining
class CSRTensor(_Sparse):
    """A sparse matrix of values in the order of rows (`mindspore.CSRTensor`).

    Args:
        indptr: integer Tensor (rows + 1,): number of the first value of each row, and that of all
            values.
        indices: integer Tensor (n,): column of each value.
        values: Tensor (n,).
        shape: shape of the dense matrix.
        csr_tensor: a CSRTensor to copy instead.

    Raises:
        TypeError: an argument of another type.
        ValueError: shapes that do not fit, or offsets or columns out of range.

    Examples:
        >>> import duograph as ms
        >>> x = ms.CSRTensor(ms.Tensor([0, 1, 2]), ms.Tensor([1, 2]), ms.Tensor([1.0, 2.0]), (2, 3))
        >>> print(x.to_dense())
        [[0. 1. 0.]
         [0. 0. 2.]]
    """

    def __init__(
        self,
        indptr: Tensor | None = None,
        indices: Tensor | None = None,
        values: Tensor | None = None,
        shape: Sequence[int] | None = None,
        csr_tensor: CSRTensor | None = None,
    ) -> None:
        if csr_tensor is not None:
            if any(x is not None for x in (indptr, indices, values, shape)):
                raise ArgumentError("CSRTensor: got csr_tensor and other arguments; wanted one")
            indptr, indices, values, shape = csr_tensor.to_tuple()
        self.indptr = _indices_of("CSRTensor", "indptr", indptr, 1)
        self.indices = _indices_of("CSRTensor", "indices", indices, 1)
        if not isinstance(values, Tensor):
            raise ArgumentError(f"CSRTensor: got {type(values).__name__} for values")
        self.values = values
        self.shape = _shape_of("CSRTensor", shape)
        if (
            len(self.shape) != 2
            or self.indptr.shape != (self.shape[0] + 1,)
            or self.indices.shape != values.shape
        ):
            raise ShapeError(
                f"CSRTensor: got indptr {self.indptr.shape}, indices {self.indices.shape}, values "
                f"{values.shape} and shape {self.shape}; wanted (rows + 1,), (n,), (n,) and two "
                "sizes"
            )
        self._check_range()

    def _check_range(self) -> None:
        if not _known(self.indptr) or not _known(self.indices):
            return
        ends, columns = self.indptr.asnumpy(), self.indices.asnumpy()
        if ends[0] != 0 or ends[-1] != len(columns) or (np.diff(ends) < 0).any():
            raise ArgumentValueError(
                f"CSRTensor: got indptr {ends.tolist()}; wanted numbers that rise from 0 to "
                f"{len(columns)}"
            )
        if len(columns) and not 0 <= columns.min() <= columns.max() < self.shape[1]:
            raise ArgumentValueError(
                f"CSRTensor: got columns from {columns.min()} to {columns.max()}; wanted 0 to "
                f"{self.shape[1] - 1}"
            )

    def __repr__(self) -> str:
        return (
            f"CSRTensor(shape={list(self.shape)}, dtype={self.dtype}, "
            f"{_part('indptr', self.indptr)}, {_part('indices', self.indices)}, "
            f"{_part('values', self.values)})"
        )

    def to_tuple(self) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
        """Return (indptr, indices, values, shape)."""
        return self.indptr, self.indices, self.values, self.shape

    def with_values(self, values: Tensor) -> CSRTensor:
        """Return a matrix of the same structure with other values."""
        made = CSRTensor.__new__(CSRTensor)
        made.indptr, made.indices, made.shape = self.indptr, self.indices, self.shape
        made.values = values
        return made

    def rows(self) -> Tensor:
        """Return the row number of each stored value."""
        return rows_of(self.indptr, self.values.shape[0])

    def coordinates(self) -> Tensor:
        """Return the coordinates (n, 2) of the values."""
        n = self.values.shape[0]
        columns = cast(self.indices, self.indptr.dtype)
        return concat_by((reshape_to(self.rows(), (n, 1)), reshape_to(columns, (n, 1))), 1)

    def at_indices(self, dense: Tensor) -> Tensor:
        """Return the elements of a dense matrix at the indices of the stored values."""
        return gather_nd(dense, self.coordinates())

    def to_coo(self) -> COOTensor:
        """Return the matrix as a COOTensor."""
        return COOTensor(self.coordinates(), self.values, self.shape)

    def to_dense(self) -> Tensor:
        """Return the matrix as a dense Tensor."""
        return scatter_nd(self.coordinates(), self.values, self.shape)

    def mv(self, dense_vector: Tensor) -> Tensor:
        """Return the product with a dense column (columns, 1).

        Raises:
            ValueError: the operand has another shape.
        """
        if dense_vector.shape != (self.shape[1], 1):
            raise ShapeError(
                f"CSRTensor.mv: got shape {dense_vector.shape}; wanted ({self.shape[1]}, 1)"
            )
        return self._times(dense_vector)

    def _times(self, dense: Tensor) -> Tensor:
        n, k = self.values.shape[0], dense.shape[1]
        if not n:
            return fill((self.shape[0], k), 0, dense.dtype)
        terms = reshape_to(self.values, (n, 1)) * gather(dense, self.indices, 0)
        return unsorted_segment_sum(terms, self.rows(), self.shape[0])

    def mm(self, matrix: Tensor | CSRTensor) -> Tensor | CSRTensor:
        """Return the product with a dense matrix, as a Tensor, or with a CSRTensor, as a CSRTensor.

        Raises:
            ValueError: shapes that do not fit.
        """
        if len(matrix.shape) != 2 or matrix.shape[0] != self.shape[1]:
            raise ShapeError(f"CSRTensor.mm: got shapes {self.shape} and {matrix.shape}")
        if isinstance(matrix, CSRTensor):
            return to_csr(matmul(self.to_dense(), matrix.to_dense()))
        return self._times(matrix)

    def sum(self, axis: int) -> Tensor:
        """Return the sums of the rows, of shape (rows, 1).

        Raises:
            ValueError: another axis than 1 or -1.
        """
        if axis not in (1, -1):
            raise ArgumentValueError(f"CSRTensor.sum: got axis={axis!r}; wanted 1 or -1")
        total = unsorted_segment_sum(self.values, self.rows(), self.shape[0])
        return reshape_to(total, (self.shape[0], 1))

    def add(self, b: CSRTensor, alpha: Tensor | float, beta: Tensor | float) -> CSRTensor:
        """Return alpha * self + beta * b.

        Raises:
            TypeError: `b` is not a CSRTensor.
            ValueError: the shapes differ.
        """
        if not isinstance(b, CSRTensor):
            raise ArgumentError(f"CSRTensor.add: got {type(b).__name__}; wanted a CSRTensor")
        total = (self * alpha).to_coo() + (b * beta).to_coo()
        found: CSRTensor = total.to_csr()
        return found

    def __add__(self, other: CSRTensor) -> CSRTensor:
        return self.add(other, 1.0, 1.0)

    def __sub__(self, other: CSRTensor) -> CSRTensor:
        return self.add(other, 1.0, -1.0)


@explaining
class RowTensor:
    """Some rows of a large tensor (`mindspore.RowTensor`).

    Args:
        indices: integer Tensor (n,): numbers of the rows.
        values: Tensor (n, ...): the rows.
        shape: shape of the large tensor.
        row_tensor: a RowTensor to copy instead.

    Raises:
        TypeError: an argument of another type.
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> x = ms.RowTensor(ms.Tensor([0]), ms.Tensor([[1.0, 2.0]]), (3, 2))
        >>> x.dense_shape
        (3, 2)
    """

    indices: Tensor
    values: Tensor
    dense_shape: tuple[int, ...]

    def __init__(
        self,
        indices: Tensor | None = None,
        values: Tensor | None = None,
        shape: Sequence[int] | None = None,
        row_tensor: RowTensor | None = None,
    ) -> None:
        if row_tensor is not None:
            indices, values, shape = row_tensor.indices, row_tensor.values, row_tensor.dense_shape
        self.indices = _indices_of("RowTensor", "indices", indices, 1)
        if not isinstance(values, Tensor):
            raise ArgumentError(f"RowTensor: got {type(values).__name__} for values")
        self.values = values
        self.dense_shape = _shape_of("RowTensor", shape)
        wanted = (self.indices.shape[0], *self.dense_shape[1:])
        if values.shape != wanted:
            raise ShapeError(f"RowTensor: got values of shape {values.shape}; wanted {wanted}")

    def __repr__(self) -> str:
        return (
            f"RowTensor(shape={list(self.dense_shape)}, dtype={self.values.dtype}, "
            f"{_part('indices', self.indices)}, {_part('values', self.values)})"
        )


# ---- of dense tensors ----------------------------------------------------------------------------


@tensor_method("to_coo")
def to_coo(tensor: Tensor) -> COOTensor:
    """Return the elements of a dense tensor that are not 0, as a COOTensor.

    See `mindspore.Tensor.to_coo`.

    Raises:
        ValueError: a 0-d tensor.
    """
    if tensor.ndim == 0:
        raise ShapeError("to_coo: got a 0-d tensor; wanted at least one axis")
    coordinates = np.argwhere(tensor.asnumpy())
    indices = Tensor(coordinates.astype(np.int64))
    values = (
        gather_nd(tensor, indices) if size_of(coordinates.shape) else fill((0,), 0, tensor.dtype)
    )
    return COOTensor(indices, values, tensor.shape)


@tensor_method("to_csr")
def to_csr(tensor: Tensor) -> CSRTensor:
    """Return the elements of a dense matrix that are not 0, as a CSRTensor.

    See `mindspore.Tensor.to_csr`.

    Raises:
        ValueError: another number of axes than 2.
    """
    if tensor.ndim != 2:
        raise ShapeError(f"to_csr: got shape {tensor.shape}; wanted two axes")
    found = to_coo(tensor)
    made = COOTensor(cast_to(found.indices, int32), found.values, found.shape)
    return made.to_csr()
