"""Matrices made from, or read at, one diagonal or a band of several, such as `matrix_diag`.

Users call the functions. A band of diagonals is stored as a matrix with a row for each diagonal,
the highest one first, padded to the length of the longest. All computation is done by the ops of
`diagonals` and other families.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..call_cache import cached_call
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..op_signature import Number
from ..tensor import Tensor
from .creation import fill
from .diagonals import (
    as_number,
    check_matrix,
    diagonal_by,
    diagonal_length,
    diagonal_scatter,
    int_of,
    set_diagonal_by,
)
from .movement import concat_by, pad_by, slice_axis
from .primitive import primitive
from .shape_primitives import reshape_to

__all__ = ["matrix_diag", "matrix_diag_part", "matrix_set_diag"]


@op(primitive='MatrixDiagV3(align="RIGHT_LEFT")')
def matrix_diag(x: Tensor, offset: int, rows: int, columns: int, padding: Number):
    """Return matrices whose diagonal `k` is the last axis of `x` (`mindspore.ops.matrix_diag`).

    Args:
        x: Tensor of at least one axis.
        k: number of the diagonal: 0 is the main diagonal, positive numbers are above it. If it is a
            pair (lowest, highest), the rows of `x` are several diagonals, as `matrix_diag_part`
            returns them.
        align: such as ``"RIGHT_LEFT"``: the side of a padded row at which the elements are, for
            diagonals above and for those below the main one.
        num_rows, num_cols: sizes of the matrices; -1 means as small as possible; if both are -1,
            the matrices are square.
        padding_value: value of all other elements.

    Raises:
        ValueError: sizes for which the diagonal is of another length.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.matrix_diag(ms.Tensor([1, 2]), 1)
        Tensor(shape=[3, 3], dtype=Int64, value=
        [[0, 1, 0],
         [0, 0, 2],
         [0, 0, 0]])
    """
    base = fill((*x.shape[:-1], rows, columns), padding, x.dtype)
    return set_diagonal_by(base, x, offset)


@matrix_diag.normaliser
def _(
    x: Tensor,
    k: int | Sequence[int] | Tensor = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Tensor | Number = 0,
    align: str = "RIGHT_LEFT",
):
    _one_of_aligns("matrix_diag", align)
    several = _several("matrix_diag", k)
    if several is not None:
        return _banded(x, several, num_rows, num_cols, padding_value, align)
    at, pad = int_of("matrix_diag", "k", k), as_number(padding_value)
    n = x.shape[-1] if x.shape else 0
    rows = int_of("matrix_diag", "num_rows", num_rows)
    columns = int_of("matrix_diag", "num_cols", num_cols)
    if rows == -1 and columns == -1:
        rows = columns = n + abs(at)
    rows = n + max(-at, 0) if rows == -1 else rows
    columns = n + max(at, 0) if columns == -1 else columns
    if not x.shape or diagonal_length((rows, columns), at) != n:
        raise ShapeError(
            f"matrix_diag: got shape {x.shape} for diagonal {at} of ({rows}, {columns}) matrices"
        )
    return (x, at, rows, columns, pad)


_ALIGNS = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


def _several(name: str, k: object) -> tuple[int, int] | None:
    """Return (lowest, highest) if `k` is a pair of diagonal numbers, or None if it is one number.

    `name` is the user's function in errors.
    """
    if isinstance(k, Tensor):
        k = k.tolist()
    if not isinstance(k, (tuple, list)) or len(k) != 2:
        return None
    low, high = (int_of(name, "k", v) for v in k)
    if low > high:
        raise ArgumentValueError(f"{name}: got k={(low, high)}; wanted the lower one first")
    return low, high


def _begin(align: str, at: int, spare: int) -> int:
    """Return the column where the elements of diagonal number `at` begin in a padded row.

    `align`, such as ``"RIGHT_LEFT"``, names two sides of a row: that of the elements of diagonals
    above the main one, and that for diagonals below. The row has `spare` padding elements.
    """
    above, below = align.split("_")
    return 0 if "LEFT" in (above if at >= 0 else "", below if at <= 0 else "") else spare


def _banded(
    x: Tensor,
    k: tuple[int, int],
    num_rows: object,
    num_cols: object,
    padding: Tensor | Number,
    align: str,
) -> Tensor:
    """Return matrices whose diagonals k[0] .. k[1] are the rows of `x`, the highest first.

    `num_rows` and `num_cols` are the sizes of the matrices, or -1 for the smallest; `padding` is
    the value of all other elements; `align` is the side of a padded row at which its elements are.
    """
    low, high = k
    if x.ndim < 2 or x.shape[-2] != high - low + 1:
        raise ShapeError(
            f"matrix_diag: got shape {x.shape} for diagonals {low} to {high}; wanted "
            f"{high - low + 1} rows"
        )
    n = x.shape[-1]
    rows, columns = n - min(high, 0), n + max(low, 0)
    given_rows = int_of("matrix_diag", "num_rows", num_rows)
    given_columns = int_of("matrix_diag", "num_cols", num_cols)
    if given_rows == given_columns == -1:
        rows = columns = max(rows, columns)
    rows = rows if given_rows == -1 else given_rows
    columns = columns if given_columns == -1 else given_columns
    value = as_number(padding)
    out = fill((*x.shape[:-2], rows, columns), value, x.dtype)
    return _with_band(out, x, k, align, "matrix_diag")


def _with_band(base: Tensor, x: Tensor, k: tuple[int, int], align: str, name: str) -> Tensor:
    """Return the matrices `base` with the diagonals k[0] .. k[1] replaced by the rows of `x`.

    `x` has a row for each diagonal, the highest first, aligned in the row as `align` says; `name`
    is the user's function in errors.
    """
    longest = max(diagonal_length(base.shape, at) for at in range(k[0], k[1] + 1))
    wanted = (*base.shape[:-2], k[1] - k[0] + 1, longest)
    if x.shape != wanted:
        raise ShapeError(f"{name}: got diagonals of shape {x.shape} for k={k}; wanted {wanted}")
    for i, at in enumerate(range(k[1], k[0] - 1, -1)):
        size = diagonal_length(base.shape, at)
        begin = _begin(align, at, longest - size)
        row = slice_axis(slice_axis(x, x.ndim - 2, i, i + 1), x.ndim - 1, begin, begin + size)
        base = set_diagonal_by(base, reshape_to(row, (*x.shape[:-2], size)), at)
    return base


def _band(x: Tensor, k: tuple[int, int], padding: Tensor | Number, align: str) -> Tensor:
    """Return the diagonals k[0] .. k[1] of matrices as rows padded to one length, highest first.

    `padding` is the value of the padding elements, and `align` the side of a row at which the other
    elements are.
    """
    longest = max(diagonal_length(x.shape, at) for at in range(k[0], k[1] + 1))
    lead = x.shape[:-2]
    rows = []
    for at in range(k[1], k[0] - 1, -1):
        part = diagonal_by(x, at)
        spare = longest - part.shape[-1]
        begin = _begin(align, at, spare)
        before = (*[0] * len(lead), begin)
        after = (*[0] * len(lead), spare - begin)
        part = pad_by(part, before, after, as_number(padding))
        rows.append(reshape_to(part, (*lead, 1, longest)))
    return concat_by(rows, len(lead))


def _one_of_aligns(name: str, align: object) -> None:
    """Raise ArgumentValueError unless `align` is a known alignment, such as ``"RIGHT_LEFT"``.

    `name` is the user's function in the error.
    """
    if align not in _ALIGNS:
        raise ArgumentValueError(
            f"{name}: got align={align!r}; wanted one of {', '.join(map(repr, _ALIGNS))}"
        )


@primitive('MatrixDiagPartV3(align="RIGHT_LEFT")')
@cached_call
def matrix_diag_part(
    x: Tensor,
    k: int | Sequence[int] | Tensor = 0,
    padding_value: Tensor | Number = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return diagonal `k` of matrices (`mindspore.ops.matrix_diag_part`).

    If `k` is a pair (lowest, highest), the result has several diagonals as rows of a matrix, the
    highest first. Rows are filled with `padding_value`; `align` names the side at which the
    elements are, for diagonals above and for those below the main one.

    Raises:
        ValueError: fewer than two axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.matrix_diag_part(ms.Tensor([[1, 2], [3, 4]]), 0)
        Tensor(shape=[2], dtype=Int64, value= [1, 4])
    """
    _one_of_aligns("matrix_diag_part", align)
    check_matrix("matrix_diag_part", x)
    several = _several("matrix_diag_part", k)
    if several is not None:
        return _band(x, several, padding_value, align)
    return diagonal_by(x, int_of("matrix_diag_part", "k", k))


@primitive('MatrixSetDiagV3(align="RIGHT_LEFT")')
@cached_call
def matrix_set_diag(
    x: Tensor,
    diagonal: Tensor,
    k: int | Sequence[int] | Tensor = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return matrices with diagonal `k` replaced (`mindspore.ops.matrix_set_diag`).

    If `k` is a pair (lowest, highest), the rows of `diagonal` replace several diagonals; they have
    the form that `matrix_diag_part` returns.

    Raises:
        ValueError: fewer than two axes, or a diagonal of another length.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.matrix_set_diag(ms.ops.zeros((2, 2)), ms.Tensor([1.0, 2.0]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  0.00000000e+00],
         [ 0.00000000e+00,  2.00000000e+00]])
    """
    _one_of_aligns("matrix_set_diag", align)
    check_matrix("matrix_set_diag", x)
    several = _several("matrix_set_diag", k)
    if several is not None:
        return _with_band(x, diagonal, several, align, "matrix_set_diag")
    return diagonal_scatter(x, diagonal, int_of("matrix_set_diag", "k", k), -2, -1)
