"""Linear algebra of `duograph.mint`: norms, the inverse and the QR decomposition.

Users call its functions as `duograph.mint.linalg.NAME`. Every function normalises its arguments
and calls `duograph.ops`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops as _ops
from ..dtype import DTypeLike
from ..ops import inverse as inv
from ..tensor import Tensor
from .matrices import matrix_norm, vector_norm

__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]


def norm(
    A: Tensor,
    ord: str | float | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the norm of vectors or matrices (`mindspore.mint.linalg.norm`).

    Args:
        A: floating or complex Tensor.
        ord: order of the norm: a number for vectors; ``"fro"``, ``"nuc"``, 1, -1, 2, -2, inf or
            -inf for matrices. None for the norm of order 2 of all elements.
        dim: one axis for vectors, two for matrices; None for all.
        keepdim: whether to keep the axes with length 1.
        dtype: dtype in which to compute.

    Raises:
        ValueError: an axis out of range, or an `ord` that does not belong to the axes.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.linalg.norm(Tensor([[3.0, 0.0], [0.0, 4.0]]), 1))
        4.0
    """
    return _ops.norm(A, ord, dim, keepdim, dtype=dtype)


def qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return orthonormal columns Q and an upper triangular R with ``Q @ R = A``
    (`mindspore.mint.linalg.qr`).

    Args:
        A: Tensor (..., m, n), float32, float64 or complex.
        mode: ``"reduced"``: Q has min(m, n) columns; ``"complete"``: m; ``"r"``: R of the reduced
            form, and an empty Q.

    Returns:
        (Q, R).

    Raises:
        TypeError: another dtype.
        ValueError: fewer than two axes, or another mode.

    Examples:
        >>> from duograph import Tensor, mint
        >>> q, r = mint.linalg.qr(Tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> print(mint.round(q @ r, decimals=4))
        [[3. 1.]
         [4. 2.]]
    """
    if mode == "r":
        return _ops.zeros((0,), A.dtype), _ops.qr(A)[1]
    q, r = _ops.qr(A, mode)
    return q, r
