"""Products and norms of vectors and matrices with the signatures of `duograph.mint`.

`mint/__init__.py` and `mint/linalg.py` export these functions. Every function normalises its
arguments and calls `duograph.ops`.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from .. import ops as _ops
from ..dtype import DTypeLike
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..tensor import Tensor
from ._arguments import Number

__all__ = [
    "addr_", "baddbmm", "bmm", "cdist", "conv_tbc", "diag", "dot", "einsum", "matrix_norm", "mm",
    "mv", "norm", "triangular_solve", "vector_norm",
]  # fmt: skip


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices (`mindspore.mint.mm`).

    Args:
        input: Tensor (n, k).
        mat2: Tensor (k, m).

    Returns:
        Tensor (n, m).

    Raises:
        ValueError: not two matrices whose inner axes agree.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.mm(Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])))
        [[11.]]
    """
    return _ops.mm(input, mat2)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two batches of matrices (`mindspore.mint.bmm`).

    Args:
        input: Tensor (b, n, k).
        mat2: Tensor (b, k, m).

    Returns:
        Tensor (b, n, m).

    Raises:
        ValueError: not two batches of matrices that agree.

    Examples:
        >>> from duograph import mint
        >>> print(mint.bmm(mint.ones((1, 1, 2)), mint.ones((1, 2, 1))))
        [[[2.]]]
    """
    if input.ndim != 3 or mat2.ndim != 3 or input.shape[0] != mat2.shape[0]:
        raise ShapeError(
            f"bmm: got shapes {input.shape} and {mat2.shape}; wanted (b, n, k) and (b, k, m)"
        )
    return _ops.bmm(input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix and a vector (`mindspore.mint.mv`).

    Args:
        input: Tensor (n, k).
        vec: Tensor (k,).

    Returns:
        Tensor (n,).

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.mv(Tensor([[1.0, 2.0]]), Tensor([3.0, 4.0])))
        [11.]
    """
    return _ops.mv(input, vec)


def dot(input: Tensor, other: Tensor) -> Tensor:
    """Return the sum of the products of two vectors (`mindspore.mint.dot`).

    Args:
        input, other: Tensors (n,).

    Returns:
        0-d Tensor.

    Raises:
        ValueError: not two vectors of the same length.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.dot(Tensor([1.0, 2.0]), Tensor([3.0, 4.0])))
        11.0
    """
    if input.ndim != 1 or input.shape != other.shape:
        raise ShapeError(
            f"dot: got shapes {input.shape} and {other.shape}; wanted two vectors of one length"
        )
    return _ops.dot(input, other)


def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return ``beta * input + alpha * bmm(batch1, batch2)`` (`mindspore.mint.baddbmm`).

    Args:
        input: Tensor that broadcasts to (b, n, m).
        batch1: Tensor (b, n, k).
        batch2: Tensor (b, k, m).
        beta, alpha: factors.

    Returns:
        Tensor (b, n, m).

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> from duograph import mint
        >>> print(mint.baddbmm(mint.ones(1), mint.ones((1, 1, 2)), mint.ones((1, 2, 1)), beta=3))
        [[[5.]]]
    """
    return _ops.baddbmm(input, batch1, batch2, beta, alpha)


def addr_(input: Tensor, vec1: Tensor, vec2: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Set `input` to ``beta * input + alpha * outer(vec1, vec2)`` and return it
    (`mindspore.mint.addr_`).

    Args:
        input: Tensor (n, m), changed in place.
        vec1: Tensor (n,).
        vec2: Tensor (m,).
        beta, alpha: factors.

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> from duograph import Tensor, mint
        >>> x = Tensor([[1.0, 1.0]])
        >>> _ = mint.addr_(x, Tensor([2.0]), Tensor([3.0, 4.0]))
        >>> print(x)
        [[7. 9.]]
    """
    if input.shape != (*vec1.shape, *vec2.shape) or vec1.ndim != 1:
        raise ShapeError(
            f"addr_: got shapes {input.shape}, {vec1.shape} and {vec2.shape}; wanted (n, m), (n,) "
            "and (m,)"
        )
    return input.copy_(_ops.addr(input, vec1, vec2, beta, alpha))


def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the distances of all pairs of rows (`mindspore.mint.cdist`).

    Args:
        x1: Tensor (..., n, k).
        x2: Tensor (..., m, k).
        p: order of the norm, non-negative.
        compute_mode: whether a product of matrices may be used; the distances are always
            computed from the differences, which is the exact way.

    Returns:
        Tensor (..., n, m).

    Raises:
        ValueError: a negative `p`, an unknown mode, or shapes that do not agree.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.cdist(Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]])))
        [[5.]]
    """
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
             "donot_use_mm_for_euclid_dist")  # fmt: skip
    if compute_mode not in modes:
        raise ArgumentValueError(
            f"cdist: got compute_mode={compute_mode!r}; wanted one of {', '.join(modes)}"
        )
    return _ops.cdist(x1, x2, p)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the diagonal of a matrix, or the matrix with a given diagonal (`mindspore.mint.diag`).

    Args:
        input: Tensor of one or two axes.
        diagonal: which diagonal: above the main one if positive, below it if negative.

    Raises:
        ValueError: another number of axes.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.diag(Tensor([1, 2])))
        [[1 0]
         [0 2]]
    """
    if input.ndim == 1:
        return _ops.diag_embed(input, diagonal)
    if input.ndim != 2:
        raise ShapeError(f"diag: got a tensor of shape {input.shape}; wanted one or two axes")
    return _ops.diagonal(input, diagonal)


def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the norm of vectors along axes (`mindspore.mint.linalg.vector_norm`).

    Args:
        x: floating or complex Tensor.
        ord: order of the norm; also 0, inf and -inf.
        dim: axis or axes; None for all.
        keepdim: whether to keep the axes with length 1.
        dtype: dtype in which to compute.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.linalg.vector_norm(Tensor([3.0, 4.0])))
        5.0
    """
    return _ops.vector_norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(
    A: Tensor,
    ord: str | float = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the norm of matrices in two axes (`mindspore.mint.linalg.matrix_norm`).

    Args:
        A: floating or complex Tensor.
        ord: ``"fro"``, ``"nuc"``, 1, -1, 2, -2, inf or -inf.
        dim: the two axes.
        keepdim: whether to keep the axes with length 1.
        dtype: dtype in which to compute.

    Raises:
        ValueError: another `ord`, or not two axes.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.linalg.matrix_norm(Tensor([[3.0, 0.0], [0.0, 4.0]])))
        5.0
    """
    if len(dim) != 2:
        raise ArgumentValueError(f"matrix_norm: got dim={dim!r}; wanted two axes")
    return _ops.norm(A, ord, tuple(dim), keepdim, dtype=dtype)


def norm(
    input: Tensor,
    p: str | float | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the norm of all elements, or of vectors along axes (`mindspore.mint.norm`).

    Args:
        input: floating or complex Tensor.
        p: order of the vector norm; ``"fro"`` is that of order 2, ``"nuc"`` the sum of the
            singular values of matrices.
        dim: axis or axes; None for all.
        keepdim: whether to keep the axes with length 1.
        dtype: dtype in which to compute.

    Raises:
        ValueError: an axis out of range, or another `p`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.norm(Tensor([[3.0, 0.0], [0.0, 4.0]]), p=1, dim=1))
        [3. 4.]
    """
    if p == "nuc":
        axes = (-2, -1) if dim is None else dim
        if isinstance(axes, int) or len(axes) != 2 or (dim is None and input.ndim != 2):
            raise ArgumentValueError("norm: got p='nuc'; wanted a matrix, or two axes in dim")
        return matrix_norm(input, "nuc", axes, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise ArgumentValueError(f"norm: got p={p!r}; wanted a number, 'fro' or 'nuc'")
    order = 2 if p is None or isinstance(p, str) else p
    return vector_norm(input, order, dim, keepdim, dtype=dtype)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Return the 1-D convolution of sequences in the order (time, batch, channels)
    (`mindspore.mint.conv_tbc`).

    Args:
        input: Tensor (time, batch, in_channels).
        weight: Tensor (kernel, in_channels, out_channels).
        bias: Tensor (out_channels,).
        pad: zeros added at both ends of the time axis.

    Returns:
        Tensor (time + 2 * pad - kernel + 1, batch, out_channels).

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> from duograph import mint
        >>> mint.conv_tbc(mint.ones((5, 2, 3)), mint.ones((2, 3, 4)), mint.zeros(4)).shape
        (4, 2, 4)
    """
    if input.ndim != 3 or weight.ndim != 3:
        raise ShapeError(
            f"conv_tbc: got shapes {input.shape} and {weight.shape}; wanted (time, batch, "
            "in_channels) and (kernel, in_channels, out_channels)"
        )
    x, kernel = _ops.permute(input, (1, 2, 0)), _ops.permute(weight, (2, 1, 0))
    out = _ops.conv1d(x, kernel, bias, 1, "pad", pad)
    return _ops.permute(out, (2, 0, 1))


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """Solve ``A @ x = b`` for a triangular A (`mindspore.mint.triangular_solve`).

    Args:
        b: Tensor (..., n, k).
        A: Tensor (..., n, n); only one triangle is read.
        upper: whether A is an upper triangle, else a lower one.
        transpose: whether to solve with the transpose of A.
        unitriangular: whether to take the diagonal of A as ones.

    Returns:
        (x, A).

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.triangular_solve(Tensor([[4.0]]), Tensor([[2.0]]))[0])
        [[2.]]
    """
    part = (_ops.triu if upper else _ops.tril)(A)
    if unitriangular:
        diagonal = _ops.eye(A.shape[-1], A.shape[-1], A.dtype)
        part = (_ops.triu(A, 1) if upper else _ops.tril(A, -1)) + diagonal
    matrix = _ops.swapaxes(part, -1, -2) if transpose else part
    return _ops.solve(matrix, b), A


def einsum(equation: object, *operands: object) -> Tensor:
    """Return a sum of products over axes with names (`mindspore.mint.einsum`).

    Args:
        equation: such as ``"bij,bjk->bik"``: a letter for each axis, ``...`` for leading axes that
            broadcast. Or the first Tensor, if the axes are given as lists.
        operands: Tensors. In the other form each Tensor is followed by the list of its axes, which
            are ints from 0 to 51 or ``...``; a last list gives the axes of the result.

    Raises:
        TypeError: an operand that is not a Tensor.
        ValueError: the equation is malformed, or sizes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
        >>> print(mint.einsum("i,i->", x, y), mint.einsum(x, [0], y, [0]))
        11.0 11.0
    """
    if not isinstance(equation, Tensor):
        return _ops.einsum(equation, *operands)
    given = (equation, *operands)
    tensors, lists = given[0 : len(given) // 2 * 2 : 2], given[1::2]
    text = ",".join(_letters(axes) for axes in lists)
    return _ops.einsum(f"{text}->{_letters(given[-1])}" if len(given) % 2 else text, *tensors)


def _letters(axes: object) -> str:
    """Convert the axes of an `einsum` operand, numbers or Ellipsis, to letters and "..."."""
    if not isinstance(axes, (tuple, list)):
        raise ArgumentError(f"einsum: got {type(axes).__name__} for axes; wanted a list")
    found = ""
    for axis in axes:
        if axis is not Ellipsis and (not isinstance(axis, int) or not 0 <= axis < 52):
            raise ArgumentValueError(f"einsum: got the axis {axis!r}; wanted ... or 0 to 51")
        found += "..." if axis is Ellipsis else string.ascii_letters[axis]
    return found
