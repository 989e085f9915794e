"""Triangles, bands and diagonals of matrices, such as `tril` and `diag`.

Users and gradient rules call them. The axes before the last two are batch axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..call_cache import cached_call
from ..dtype import DTypeLike, as_dtype, int32
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..op_signature import Number
from ..tensor import Tensor
from .arguments import int_of
from .axes import axis_of
from .comparison import equal, less, less_equal
from .creation import cast_to, fill, iota, zeros_of
from .division import remainder
from .logic import logical_and, select_by
from .methods import tensor_method
from .movement import pad_by
from .primitive import primitive
from .shape_primitives import dense_strides, reduce_sum, reshape_to, strided_copy
from .shaping import moveaxis

__all__ = [
    "tril",
    "triu",
    "matrix_band_part",
    "diag",
    "diagonal",
    "diag_embed",
    "diagflat",
    "diagonal_scatter",
    "trace",
    "fill_diagonal",
]


def _distance(x: Tensor) -> Tensor:
    """Return the int32 matrix ``column - row``: the number of the diagonal each element is on."""
    shape = x.shape[-2:]
    return iota(shape, 1, int32) - iota(shape, 0, int32)


def _last_kept(name: str, x: Tensor, diagonal: object) -> int:
    """Return `diagonal`, the number of the last diagonal to keep, as an int.

    It is clamped to the range from -rows to columns of the matrices `x`, which keeps it in the
    range of int32. `name` is the function that errors name.
    """
    rows, columns = x.shape[-2:]
    return max(-rows, min(columns, int_of(name, "diagonal", diagonal)))


def check_matrix(name: str, x: Tensor) -> None:
    """Raise ShapeError if a tensor has fewer than two axes.

    `name` is the user's function in the message.
    """
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: got shape {x.shape}; wanted at least two axes")


@op(name="tril", method="tril", primitive="Tril(diagonal=0)")
def tril(input: Tensor, diagonal: int = 0):
    """Return the lower triangle of matrices, zeros above it (`mindspore.ops.tril`).

    Args:
        input: Tensor of at least two axes.
        diagonal: the last diagonal that is kept: 0 the main one, positive ones above it.

    Raises:
        ValueError: fewer than two axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.tril(ms.Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 0],
         [3, 4]])
    """
    check_matrix("tril", input)
    keep = less_equal(_distance(input), _last_kept("tril", input, diagonal))
    return select_by(keep, input, zeros_of(input._type.plain))


@op(name="triu", method="triu", primitive="Triu(diagonal=0)")
def triu(input: Tensor, diagonal: int = 0):
    """Return the upper triangle of matrices, zeros below it (`mindspore.ops.triu`).

    Args:
        input: Tensor of at least two axes.
        diagonal: the first diagonal that is kept: 0 the main one, positive ones above it.

    Raises:
        ValueError: fewer than two axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.triu(ms.Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [0, 4]])
    """
    check_matrix("triu", input)
    keep = less_equal(_last_kept("triu", input, diagonal), _distance(input))
    return select_by(keep, input, zeros_of(input._type.plain))


@op(name="matrix_band_part", primitive="MatrixBandPart")
def matrix_band_part(x: Tensor, lower: int, upper: int):
    """Keep the main diagonal of matrices and some below and above it; the rest becomes zero
    (`mindspore.ops.matrix_band_part`).

    Args:
        x: Tensor of at least two axes.
        lower, upper: how many diagonals below and above are kept; negative: all.

    Raises:
        ValueError: fewer than two axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.matrix_band_part(ms.Tensor([[1, 2, 3], [4, 5, 6]]), 0, 1)
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[1, 2, 0],
         [0, 5, 6]])
    """
    check_matrix("matrix_band_part", x)
    low, high = (
        int_of("matrix_band_part", "lower", lower),
        int_of("matrix_band_part", "upper", upper),
    )
    rows, columns = x.shape[-2:]
    at = _distance(x)
    keep = logical_and(
        less_equal(-(rows if low < 0 else low), at),
        less_equal(at, columns if high < 0 else high),
    )
    return select_by(keep, x, zeros_of(x._type.plain))


# ---- read a diagonal
# -----------------------------------------------------------------------------------


@op(name="diagonal")
def diagonal_by(input: Tensor, offset: int):
    """Composite op: copy diagonal number `offset` of the last two axes to a new last axis.

    The main diagonal is number 0; diagonals above it are positive.
    """
    shape = input.shape
    steps = dense_strides(shape)
    rows, columns = shape[-2:]
    first_row, first_column = max(-offset, 0), max(offset, 0)
    n = max(min(rows - first_row, columns - first_column), 0)
    start = first_row * steps[-2] + first_column * steps[-1] if n else 0
    return strided_copy(input, (*shape[:-2], n), (*steps[:-2], steps[-2] + steps[-1]), start)


@tensor_method("diagonal")
def _tensor_diagonal(
    self: Tensor,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    *,
    dim1: int | None = None,
    dim2: int | None = None,
) -> Tensor:
    """Return a diagonal of the matrices in two axes; see `ops.diagonal`.

    `dim1` and `dim2` are other names of `axis1` and `axis2`.
    """
    return diagonal(self, offset, axis1 if dim1 is None else dim1, axis2 if dim2 is None else dim2)


@cached_call
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a diagonal of the matrices in two axes, as the last axis (`mindspore.ops.diagonal`).

    Args:
        input: Tensor of at least two axes.
        offset: 0 the main diagonal, positive ones above it.
        dim1, dim2: the two axes, which the result does not have.

    Raises:
        ValueError: fewer than two axes, an axis out of range, or the same one twice.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.diagonal(ms.Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2], dtype=Int64, value= [1, 4])
    """
    rows, columns = _two_axes("diagonal", len(input.shape), dim1, dim2)
    last = len(input.shape) - 1
    moved = moveaxis(input, (rows, columns), (last - 1, last))
    return diagonal_by(moved, int_of("diagonal", "offset", offset))


def _two_axes(name: str, ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    if ndim < 2:
        raise ShapeError(f"{name}: got {ndim} axes; wanted at least two")
    a, b = axis_of(name, dim1, ndim), axis_of(name, dim2, ndim)
    if a == b:
        raise ArgumentValueError(f"{name}: got dim1={dim1} and dim2={dim2}; wanted two axes")
    return a, b


@tensor_method("trace")
def _tensor_trace(
    self: Tensor,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the sums of a diagonal of the matrices in two axes, as NumPy does.

    `dtype` is the dtype of the sums, by default that of the elements.
    """
    if (offset, axis1, axis2, dtype) == (0, 0, 1, None):
        return trace(self)
    chosen = diagonal(self, offset, axis1, axis2)
    summed = chosen if dtype is None else cast_to(chosen, as_dtype(dtype))
    return reduce_sum(summed, (summed.ndim - 1,), False)


@op(name="trace", primitive="Trace")
def trace(input: Tensor):
    """Return the sum of the main diagonal of a matrix (`mindspore.ops.trace`).

    Raises:
        ValueError: not two axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.trace(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]))
        Tensor(shape=[], dtype=Float32, value= 5)
    """
    if len(input.shape) != 2:
        raise ShapeError(f"trace: got shape {input.shape}; wanted a matrix")
    return reduce_sum(diagonal_by(input, 0), (0,), False)


# ---- write a diagonal
# ----------------------------------------------------------------------------------


@op(name="diag_embed")
def diag_embed_by(input: Tensor, offset: int):
    """Composite op: square matrices with the last axis of `input` as a diagonal, zeros elsewhere.

    `offset` is the number of the diagonal, positive above the main one.
    """
    size = input.shape[-1] + abs(offset)
    lead = input.shape[:-1]
    # Row i has input[i] on a diagonal above the main one, and input[i + offset] on one below.
    low, high = (0, offset) if offset >= 0 else (-offset, 0)
    rows = pad_by(input, (*[0] * len(lead), low), (*[0] * len(lead), high), 0)
    at = iota((size, size), 1, int32) - iota((size, size), 0, int32)
    column = reshape_to(rows, (*lead, size, 1))
    zero = zeros_of(input._type.plain.with_(shape=()))
    return select_by(equal(at, offset), column, zero)


@cached_call
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices of zeros with the last axis as a diagonal (`mindspore.ops.diag_embed`).

    Args:
        input: Tensor of at least one axis.
        offset: 0 the main diagonal, positive ones above it.
        dim1, dim2: where the two axes of the matrices are in the result.

    Raises:
        ValueError: a 0-d tensor, an axis out of range, or the same one twice.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.diag_embed(ms.Tensor([1, 2]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 0],
         [0, 2]])
    """
    ndim = len(input.shape) + 1
    a, b = _two_axes("diag_embed", ndim, dim1, dim2)
    made = diag_embed_by(input, int_of("diag_embed", "offset", offset))
    if (a, b) == (ndim - 2, ndim - 1):
        return made
    return moveaxis(made, (ndim - 2, ndim - 1), (a, b))


tensor_method("diag_embed")(diag_embed)


@primitive("Diag")
@cached_call
def diag(input: Tensor) -> Tensor:
    """Put the elements on the diagonal of a tensor of zeros; n axes become 2n
    (`mindspore.ops.diag`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.diag(ms.Tensor([1, 2]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 0],
         [0, 2]])
    """
    shape = input.shape
    if not shape:
        raise ShapeError("diag: got a 0-d tensor; wanted at least one axis")
    flat = diag_embed_by(reshape_to(input, (input.size,)), 0)
    return reshape_to(flat, shape + shape)


@tensor_method("diag")
def _tensor_diag(self: Tensor, diagonal: int = 0) -> Tensor:
    """Return a tensor of zeros with this tensor's elements on a diagonal; see `ops.diag`.

    `diagonal` is the number of the diagonal, which must be 0 unless this tensor is 1-d.
    """
    if diagonal == 0:
        return diag(self)
    if len(self.shape) != 1:
        raise ArgumentValueError(
            f"diag: got diagonal={diagonal} for shape {self.shape}; wanted 0, or one axis "
            f"(ops.diagonal reads a diagonal)"
        )
    return diag_embed_by(self, int_of("diag", "diagonal", diagonal))


@tensor_method("diagflat")
@cached_call
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Put all elements, in row-major order, on a diagonal of zeros (`mindspore.ops.diagflat`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.diagflat(ms.Tensor([1, 2]), 1)
        Tensor(shape=[3, 3], dtype=Int64, value=
        [[0, 1, 0],
         [0, 0, 2],
         [0, 0, 0]])
    """
    return diag_embed_by(reshape_to(input, (input.size,)), int_of("diagflat", "offset", offset))


@op(name="set_diagonal", promote="common")
def set_diagonal_by(input: Tensor, values: Tensor, offset: int):
    """Composite op: `input` with diagonal `offset` of its last two axes replaced by `values`."""
    rows = input.shape[-2]
    n = values.shape[-1]
    lead = [0] * (values.ndim - 1)
    low = max(-offset, 0)
    high = rows - n - low
    padded = pad_by(values, (*lead, low), (*lead, high), 0)
    column = reshape_to(padded, (*values.shape[:-1], rows, 1))
    return select_by(equal(_distance(input), offset), column, input)


@tensor_method("diagonal_scatter")
@cached_call
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Return `input` with a diagonal replaced by `src` (`mindspore.ops.diagonal_scatter`).

    Args:
        input: Tensor of at least two axes.
        src: Tensor of the shape of ``ops.diagonal(input, offset, dim1, dim2)``.
        offset, dim1, dim2: as for `ops.diagonal`.

    Raises:
        ValueError: another shape of `src`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.diagonal_scatter(ms.ops.zeros((2, 2)), ms.Tensor([1.0, 2.0]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  0.00000000e+00],
         [ 0.00000000e+00,  2.00000000e+00]])
    """
    ndim = len(input.shape)
    a, b = _two_axes("diagonal_scatter", ndim, dim1, dim2)
    moved = moveaxis(input, (a, b), (ndim - 2, ndim - 1))
    wanted = (*moved.shape[:-2], diagonal_length(moved.shape, offset))
    if src.shape != wanted:
        raise ShapeError(f"diagonal_scatter: got src of shape {src.shape}; wanted {wanted}")
    made = set_diagonal_by(moved, src, int_of("diagonal_scatter", "offset", offset))
    return moveaxis(made, (ndim - 2, ndim - 1), (a, b))


def diagonal_length(shape: Sequence[int], offset: int) -> int:
    """Return the length of diagonal `offset` of the last two axes of a shape."""
    return max(min(shape[-2] - max(-offset, 0), shape[-1] - max(offset, 0)), 0)


def as_number(value: object) -> object:
    """Return the number in a Tensor of one element; return any other value unchanged."""
    return value.item() if isinstance(value, Tensor) else value


@op(primitive="FillDiagonal(fill_value, wrap=False)")
def fill_diagonal(input: Tensor, value: Number, wrap: bool):
    """Return a copy with one value on the main diagonal, where all indices are equal.

    Args:
        input: Tensor of two axes, or of more of equal size.
        fill_value: number.
        wrap: whether the diagonal of a tall matrix starts again below its end.

    Raises:
        ValueError: fewer than two axes, or more of unequal size.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fill_diagonal(ms.ops.zeros((2, 2)), 3.0)
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 3.00000000e+00,  0.00000000e+00],
         [ 0.00000000e+00,  3.00000000e+00]])
    """
    shape = input.shape
    step = sum(dense_strides(shape)) if len(shape) > 2 else shape[1] + 1
    last = input.size if wrap or len(shape) > 2 else min(input.size, shape[1] * shape[1])
    flat = reshape_to(iota((input.size,), 0, int32), shape)
    on = logical_and(equal(remainder(flat, step), 0), less(flat, last))
    return select_by(on, fill((), value, input.dtype), input)


@fill_diagonal.normaliser
def _(input: Tensor, fill_value: Number, wrap: bool = False):
    shape = input.shape
    check_matrix("fill_diagonal", input)
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"fill_diagonal: got shape {shape}; wanted two axes, or equal ones")
    return (input, as_number(fill_value), bool(wrap))


@tensor_method("fill_diagonal")
def _tensor_fill_diagonal(self: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Return a copy whose diagonal is filled with one value. See `ops.fill_diagonal`."""
    return fill_diagonal.public(self, fill_value, wrap)
