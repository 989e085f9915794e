"""Reshaping, joining and splitting of tensors, with the signatures of `duograph.mint`.

`mint/__init__.py` exports these functions. Every function normalises its arguments and calls
`duograph.ops`.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from .. import ops as _ops
from ..errors import ArgumentValueError, ShapeError
from ..ops.axes import axis_of
from ..tensor import Tensor

__all__ = [
    "broadcast_to", "cat", "chunk", "clone", "concat", "diff", "flatten", "narrow", "permute",
    "repeat_interleave", "reshape", "select", "split", "squeeze", "stack", "t", "transpose",
    "unsqueeze",
]  # fmt: skip


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenate tensors along an axis (`mindspore.mint.cat`).

    Args:
        tensors: tuple or list of Tensors whose other axes agree; their dtypes are promoted.
        dim: axis.

    Raises:
        TypeError: not a tuple or list of Tensors.
        ValueError: no tensor, or shapes that do not agree.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.cat((Tensor([[1, 2]]), Tensor([[3, 4]])), dim=1))
        [[1 2 3 4]]
    """
    return _ops.cat(tensors, dim)


def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenate tensors along an axis; another name of `cat` (`mindspore.mint.concat`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.concat((Tensor([1]), Tensor([2, 3]))))
        [1 2 3]
    """
    return cat(tensors, dim)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Stack tensors of the same shape along a new axis (`mindspore.mint.stack`).

    Args:
        tensors: tuple or list of Tensors of the same shape.
        dim: position of the new axis.

    Raises:
        ValueError: no tensor, or different shapes.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.stack((Tensor([1, 2]), Tensor([3, 4])), dim=1))
        [[1 3]
         [2 4]]
    """
    return _ops.stack(tensors, dim)


def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Split a tensor along an axis (`mindspore.mint.split`).

    Args:
        tensor: Tensor.
        split_size_or_sections: the size of every part, of which the last may be smaller; or the
            sizes of all parts.
        dim: axis.

    Returns:
        Tuple of Tensors.

    Raises:
        ValueError: sizes that do not add up to the axis, or a size below 1.

    Examples:
        >>> from duograph import Tensor, mint
        >>> first, second = mint.split(Tensor([1, 2, 3]), 2)
        >>> print(first, second)
        [1 2] [3]
    """
    return tuple(_ops.split(tensor, split_size_or_sections, dim))


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along an axis into at most `chunks` parts (`mindspore.mint.chunk`).

    Args:
        input: Tensor of at least one axis.
        chunks: number of parts; fewer are made if the axis is short.
        dim: axis.

    Returns:
        Tuple of Tensors.

    Raises:
        ValueError: fewer than one part, or an axis out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> [part.shape for part in mint.chunk(Tensor([1, 2, 3, 4, 5]), 2)]
        [(3,), (2,)]
    """
    return tuple(_ops.chunk(input, chunks, dim))


def reshape(input: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """Return a tensor of the same elements in another shape (`mindspore.mint.reshape`).

    Args:
        input: Tensor.
        shape: ints, or one tuple or list of them; one of them may be -1.

    Raises:
        ValueError: another number of elements.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.reshape(Tensor([1, 2, 3, 4]), (2, -1)).shape
        (2, 2)
    """
    return input.reshape(*shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the axes from `start_dim` to `end_dim` into one (`mindspore.mint.flatten`).

    Args:
        input: Tensor; one without axes becomes a tensor of one axis.
        start_dim, end_dim: the first and the last of the joined axes.

    Raises:
        ValueError: an axis out of range, or `start_dim` after `end_dim`.

    Examples:
        >>> from duograph import mint
        >>> mint.flatten(mint.ones((2, 3, 4)), 1).shape
        (2, 12)
    """
    return _ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def squeeze(input: Tensor, dim: int | Sequence[int]) -> Tensor:
    """Remove axes of length 1 (`mindspore.mint.squeeze`).

    Args:
        input: Tensor.
        dim: axis or axes; those of another length are kept.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> from duograph import mint
        >>> mint.squeeze(mint.ones((1, 3, 1)), 0).shape
        (3, 1)
    """
    n = builtins.max(input.ndim, 1)
    wanted = [axis_of("squeeze", d, n) for d in ((dim,) if isinstance(dim, int) else dim)]
    kept = [size for i, size in enumerate(input.shape) if size != 1 or i not in wanted]
    return _ops.reshape(input, tuple(kept))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert an axis of length 1 (`mindspore.mint.unsqueeze`).

    Args:
        input: Tensor.
        dim: position of the new axis.

    Raises:
        ValueError: a position out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.unsqueeze(Tensor([1, 2]), -1).shape
        (2, 1)
    """
    return _ops.unsqueeze(input, dim)


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes (`mindspore.mint.transpose`).

    Args:
        input: Tensor.
        dim0, dim1: the axes.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> from duograph import mint
        >>> mint.transpose(mint.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    return _ops.swapaxes(input, dim0, dim1)


def permute(input: Tensor, dims: Sequence[int]) -> Tensor:
    """Put the axes in another order (`mindspore.mint.permute`).

    Args:
        input: Tensor.
        dims: the axes of `input` in their new order.

    Raises:
        ValueError: not every axis exactly once.

    Examples:
        >>> from duograph import mint
        >>> mint.permute(mint.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    return _ops.permute(input, tuple(dims))


def t(input: Tensor) -> Tensor:
    """Return the transpose of a matrix, or a tensor of fewer axes unchanged (`mindspore.mint.t`).

    Raises:
        ValueError: more than two axes.

    Examples:
        >>> from duograph import mint
        >>> mint.t(mint.ones((2, 3))).shape
        (3, 2)
    """
    if input.ndim > 2:
        raise ShapeError(f"t: got a tensor of shape {input.shape}; wanted at most two axes")
    return _ops.swapaxes(input, 0, 1) if input.ndim == 2 else input


def broadcast_to(input: Tensor, shape: Sequence[int]) -> Tensor:
    """Repeat axes of length 1 up to a shape (`mindspore.mint.broadcast_to`).

    Args:
        input: Tensor.
        shape: the wanted shape; -1 leaves an axis as it is.

    Raises:
        ValueError: the shape of `input` does not broadcast to it.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.broadcast_to(Tensor([1, 2]), (2, 2)))
        [[1 2]
         [1 2]]
    """
    return _ops.broadcast_to(input, shape)


def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return `length` elements of an axis, from `start` on (`mindspore.mint.narrow`).

    Args:
        input: Tensor.
        dim: axis.
        start: first index; counted from the end if negative.
        length: number of elements.

    Raises:
        ValueError: the part does not lie inside the axis.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.narrow(Tensor([1, 2, 3, 4]), 0, 1, 2))
        [2 3]
    """
    first = start.item() if isinstance(start, Tensor) else start
    if first < 0:
        first += input.shape[axis_of("narrow", dim, input.ndim)]
    return _ops.narrow(input, dim, first, length)


def select(input: Tensor, dim: int, index: int | Tensor) -> Tensor:
    """Return the part of a tensor at one index of an axis (`mindspore.mint.select`).

    Args:
        input: Tensor of at least one axis.
        dim: axis; the result does not have it.
        index: int or 0-d Tensor; counted from the end if negative.

    Raises:
        IndexError: an int out of range.
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.select(Tensor([[1, 2], [3, 4]]), 1, 0))
        [1 3]
    """
    return input.select(dim, index)


def repeat_interleave(
    input: Tensor,
    repeats: int | Sequence[int] | Tensor,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Repeat each element along an axis (`mindspore.mint.repeat_interleave`).

    Args:
        input: Tensor.
        repeats: number of repetitions: an int, or one int for each element of the axis.
        dim: axis; None flattens first.
        output_size: the length of the result along the axis, if known; it is checked.

    Raises:
        ValueError: another number of repeats than elements, or another `output_size`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.repeat_interleave(Tensor([1, 2]), 2))
        [1 1 2 2]
    """
    out = _ops.repeat_interleave(input, repeats, dim)
    if output_size is not None and out.shape[0 if dim is None else dim] != output_size:
        raise ArgumentValueError(
            f"repeat_interleave: got output_size={output_size}; the result has "
            f"{out.shape[0 if dim is None else dim]} elements along the axis"
        )
    return out


def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along an axis (`mindspore.mint.diff`).

    Args:
        input: Tensor of at least one axis.
        n: number of times that differences are taken.
        dim: axis.
        prepend, append: Tensors that are joined to `input` along the axis before differences are
            taken.

    Raises:
        ValueError: a negative `n`, or an axis out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.diff(Tensor([1, 3, 7])))
        [2 4]
    """
    return _ops.diff(input, n, dim, prepend, append)


def clone(input: Tensor) -> Tensor:
    """Return a copy of a tensor; gradients flow through it (`mindspore.mint.clone`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.clone(Tensor([1, 2])))
        [1 2]
    """
    return input.copy()
