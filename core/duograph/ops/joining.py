"""Functions that join and split tensors: concat, stack, split, chunk, unstack and their variants.

Users call them, as functions and as Tensor methods. The functions normalise axes and sizes, because
the primitives of `movement.py` accept only normalised ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..call_cache import cached_call
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..op import op
from ..op_signature import NewAxis
from ..runtime_state import runtime_state
from ..tensor import Tensor
from .arguments import int_of, ints_of
from .axes import axis_of
from .methods import tensor_method
from .movement import concat_by, identity, pad_by, slice_axis
from .shape_primitives import reshape_to
from .shaping import atleast_1d, atleast_2d, atleast_3d

__all__ = [
    "concat", "cat", "concatenate", "stack", "hstack", "vstack", "row_stack", "dstack",
    "column_stack", "block_diag", "split", "tensor_split", "hsplit", "vsplit", "dsplit", "chunk",
    "unstack", "unbind", "narrow",
]  # fmt: skip


# Empty parts are Tensors too, so a count given by mistake would fill the memory with them.
MOST_PARTS = 65536


# ---- join ---------------------------------------------------------------------------------------


def _several(name: str, tensors: object) -> list[Tensor]:
    """Return the tensors to be joined as a list; arrays and lists are converted to tensors.

    A single Tensor is split into its slices along axis 0. `name` is the user's function in errors.

    Raises:
        TypeError: not a tuple, list or Tensor.
        ValueError: no tensors.
    """
    if isinstance(tensors, Tensor) and tensors.shape:
        return list(tensors)
    if not isinstance(tensors, (tuple, list)):
        raise ArgumentError(
            f"{name}: got {type(tensors).__name__}; wanted a tuple or list of Tensors"
        )
    if not tensors:
        raise ArgumentValueError(f"{name}: got no tensors; wanted at least one")
    if any(x is None or isinstance(x, (int, float)) for x in tensors):
        raise ArgumentError(f"{name}: got {tuple(tensors)!r}; wanted a tuple or list of Tensors")
    return [x if isinstance(x, Tensor) else Tensor(x) for x in tensors]


def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Concatenate tensors along an existing axis (`mindspore.ops.concat`).

    Args:
        tensors: tuple or list of Tensors, of equal sizes on every other axis; the dtypes are
            promoted to a common one.
        axis: the axis along which to concatenate.

    Raises:
        ValueError: no tensors, 0-d tensors, sizes that do not fit, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.concat((ms.Tensor([[1, 2]]), ms.Tensor([[3, 4]])), 0)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [3, 4]])
    """
    if (
        axis.__class__ is int
        and not runtime_state.staging
        and (tensors.__class__ is tuple or tensors.__class__ is list)
    ):
        try:  # the table holds only normalised axes
            call = _joined.get((*[x._type for x in tensors], axis))
        except AttributeError:
            call = None
        if call is not None:
            return call(*tensors)
    parts = _several("concat", tensors)
    ndim = len(parts[0].shape)
    if not ndim:
        raise ShapeError("concat: got 0-d tensors; wanted at least one axis (stack makes one)")
    return concat_by(parts, axis_of("concat", axis, ndim))


_joined = concat_by.table


def cat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Another name of `concat` (`mindspore.ops.cat`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.cat((ms.Tensor([1]), ms.Tensor([2])))
        Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """
    return concat(tensors, axis)


concatenate = concat


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join tensors of the same shape along a new axis (`mindspore.ops.stack`).

    Args:
        tensors: tuple or list of Tensors of equal shapes.
        axis: where the new axis is in the result.

    Raises:
        ValueError: no tensors, unequal shapes, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.stack((ms.Tensor([1, 2]), ms.Tensor([3, 4])), 1)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 3],
         [2, 4]])
    """
    if (
        axis.__class__ is int
        and not runtime_state.staging
        and (tensors.__class__ is tuple or tensors.__class__ is list)
    ):
        try:
            call = _stacked.get((*[x._type for x in tensors], axis))
        except AttributeError:
            call = None
        if call is not None:
            return call(*tensors)
    parts = _several("stack", tensors)
    shape = parts[0].shape
    for i, x in enumerate(parts):
        if x.shape != shape:
            raise ShapeError(
                f"stack: got shapes {shape} (number 0) and {x.shape} (number {i}); "
                f"wanted Tensors of one shape"
            )
    at = axis_of("stack", axis, len(shape) + 1)
    return stack_by(parts, at)


@op(name="stack", promote="common")
def stack_by(tensors: Sequence[Tensor], axis: NewAxis):
    """Composite op: join equal-shaped tensors along a new axis, number `axis` of the result."""
    shape = tensors[0].shape
    wide = shape[:axis] + (1,) + shape[axis:]
    return concat_by([reshape_to(x, wide) for x in tensors], axis)


_stacked = stack_by.table


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate along axis 1, or axis 0 for 1-d tensors (`mindspore.ops.hstack`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.hstack((ms.Tensor([1, 2]), ms.Tensor([3])))
        Tensor(shape=[3], dtype=Int64, value= [1, 2, 3])
    """
    parts = atleast_1d(_several("hstack", tensors))
    return concat(parts, 1 if len(parts[0].shape) > 1 else 0)


def vstack(inputs: Sequence[Tensor]) -> Tensor:
    """Concatenate along axis 0, with 1-d tensors as rows (`mindspore.ops.vstack`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.vstack((ms.Tensor([1, 2]), ms.Tensor([3, 4])))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [3, 4]])
    """
    return concat(atleast_2d(_several("vstack", inputs)), 0)


row_stack = vstack


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate along axis 2, adding missing axes (`mindspore.ops.dstack`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.dstack((ms.Tensor([1, 2]), ms.Tensor([3, 4])))
        Tensor(shape=[1, 2, 2], dtype=Int64, value=
        [[[1, 3],
          [2, 4]]])
    """
    return concat(atleast_3d(_several("dstack", tensors)), 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate along axis 1, with 1-d tensors as columns (`mindspore.ops.column_stack`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.column_stack((ms.Tensor([1, 2]), ms.Tensor([3, 4])))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 3],
         [2, 4]])
    """
    parts = _several("column_stack", tensors)
    return concat([x if len(x.shape) > 1 else reshape_to(x, (x.size, 1)) for x in parts], 1)


def block_diag(*inputs: Tensor) -> Tensor:
    """Arrange matrices along the diagonal of a matrix of zeros (`mindspore.ops.block_diag`).

    Raises:
        ValueError: a tensor of more than two axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.block_diag(ms.Tensor([[1, 2]]), ms.Tensor([[3]]))
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[1, 2, 0],
         [0, 0, 3]])
    """
    parts = atleast_2d(_several("block_diag", inputs))
    if any(len(x.shape) != 2 for x in parts):
        raise ShapeError(
            f"block_diag: got shapes {[x.shape for x in parts]}; wanted at most two axes"
        )
    width = sum(x.shape[1] for x in parts)
    rows, left = [], 0
    for x in parts:
        right = width - left - x.shape[1]
        rows.append(pad_by(x, (0, left), (0, right), 0))
        left += x.shape[1]
    return concat(rows, 0)


# ---- split --------------------------------------------------------------------------------------


def _parts(input: Tensor, axis: int, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    out, begin = [], 0
    for n in sizes:
        out.append(slice_axis(input, axis, begin, begin + n))
        begin += n
    return tuple([identity(input)] if len(out) == 1 else out)


@tensor_method("split")
def _tensor_split_method(
    self: Tensor,
    split_size: int | Sequence[int] | None = None,
    axis: int = 0,
    *,
    dim: int | None = None,
    split_size_or_sections: int | Sequence[int] | None = None,
    output_num: int | None = None,
) -> tuple[Tensor, ...]:
    """Split along an axis; see `ops.split`.

    `dim` and `split_size_or_sections` are other names of `axis` and `split_size`. `output_num`, a
    name of MindSpore's first releases, is the number of equal parts.
    """
    if output_num is not None:
        at = _cut_axis("split", self, axis)
        if self.shape[at] % output_num:
            raise ArgumentValueError(
                f"split: got output_num={output_num} for axis {at} of size {self.shape[at]}; "
                "wanted equal parts"
            )
        return split(self, self.shape[at] // output_num, at)
    size = split_size if split_size is not None else split_size_or_sections
    return split(self, size, axis if dim is None else dim)


@cached_call
def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int] | None, axis: int = 0
) -> tuple[Tensor, ...]:
    """Split a tensor into parts along an axis (`mindspore.ops.split`).

    Args:
        tensor: Tensor of at least one axis.
        split_size_or_sections: int: the size of each part, of which the last may be smaller;
            tuple or list: the sizes.
        axis: the axis to split.

    Returns:
        tuple of Tensors.

    Raises:
        ValueError: a size that is not positive, or sizes whose sum is not that of the axis.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.split(ms.Tensor([1, 2, 3]), 2)
        (Tensor(shape=[2], dtype=Int64, value= [1, 2]), Tensor(shape=[1], dtype=Int64, value= [3]))
    """
    at = _cut_axis("split", tensor, axis)
    n = tensor.shape[at]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = ints_of("split", "split_size_or_sections", split_size_or_sections)
        if sum(sizes) != n or min(sizes, default=0) < 0:
            raise ArgumentValueError(
                f"split: got sizes {sizes} for axis {at} of size {n}; "
                f"wanted sizes from 0 on that sum to {n}"
            )
        return _parts(tensor, at, sizes)
    size = int_of("split", "split_size_or_sections", split_size_or_sections)
    if size <= 0:
        raise ArgumentValueError(f"split: got the size {size}; wanted a positive one")
    return _parts(tensor, at, [min(size, n - b) for b in range(0, n, size)] or [0])


def _cut_axis(name: str, input: Tensor, axis: object) -> int:
    if not input.shape:
        raise ShapeError(f"{name}: got a 0-d tensor; wanted at least one axis")
    return axis_of(name, axis, len(input.shape))


@tensor_method("tensor_split")
@cached_call
def tensor_split(
    input: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0
) -> tuple[Tensor, ...]:
    """Split into parts of nearly equal size, or at indices (`mindspore.ops.tensor_split`).

    Args:
        input: Tensor of at least one axis.
        indices_or_sections: int: the number of parts; if it does not divide the size of the axis,
            the first parts are larger by one; tuple: the indices at which parts end.
        axis: the axis to split.

    Raises:
        ValueError: fewer than one part.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.tensor_split(ms.Tensor([1, 2, 3]), 2)
        (Tensor(shape=[2], dtype=Int64, value= [1, 2]), Tensor(shape=[1], dtype=Int64, value= [3]))
    """
    at = _cut_axis("tensor_split", input, axis)
    n = input.shape[at]
    if isinstance(indices_or_sections, (tuple, list)):
        cuts = ints_of("tensor_split", "indices_or_sections", indices_or_sections)
        bounds = [slice(None, c).indices(n)[1] for c in cuts]
        starts = [0, *bounds]
        ends = [*bounds, n]
        return tuple(slice_axis(input, at, b, max(b, e)) for b, e in zip(starts, ends, strict=True))
    count = int_of("tensor_split", "indices_or_sections", indices_or_sections)
    if count <= 0:
        raise ArgumentValueError(f"tensor_split: got {count} parts; wanted at least one")
    if count > max(n, MOST_PARTS):
        raise ArgumentValueError(
            f"tensor_split: got {count} parts of an axis of size {n}; wanted at most "
            f"{max(n, MOST_PARTS)}"
        )
    return _parts(input, at, [n // count + (i < n % count) for i in range(count)])


def _split_along(
    name: str, input: Tensor, parts: int | Sequence[int], axis: int, least: int
) -> tuple[Tensor, ...]:
    if len(input.shape) < least:
        raise ShapeError(f"{name}: got shape {input.shape}; wanted at least {least} axes")
    return tensor_split(input, parts, axis)


@tensor_method("hsplit")
@cached_call
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along axis 1, or axis 0 of a 1-d tensor, like `tensor_split` (`mindspore.ops.hsplit`).

    Examples:
        >>> import duograph as ms
        >>> [x.shape for x in ms.ops.hsplit(ms.ops.ones((2, 4)), 2)]
        [(2, 2), (2, 2)]
    """
    axis = 1 if len(input.shape) > 1 else 0
    return _split_along("hsplit", input, indices_or_sections, axis, 1)


@tensor_method("vsplit")
@cached_call
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split a tensor of two axes or more along axis 0, like `tensor_split`
    (`mindspore.ops.vsplit`).

    Examples:
        >>> import duograph as ms
        >>> [x.shape for x in ms.ops.vsplit(ms.ops.ones((4, 2)), 2)]
        [(2, 2), (2, 2)]
    """
    return _split_along("vsplit", input, indices_or_sections, 0, 2)


@tensor_method("dsplit")
@cached_call
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along axis 2, like `tensor_split` (`mindspore.ops.dsplit`).

    Examples:
        >>> import duograph as ms
        >>> [x.shape for x in ms.ops.dsplit(ms.ops.ones((1, 1, 4)), 2)]
        [(1, 1, 2), (1, 1, 2)]
    """
    return _split_along("dsplit", input, indices_or_sections, 2, 3)


@tensor_method("chunk")
def _tensor_chunk(
    self: Tensor, chunks: int, axis: int = 0, *, dim: int | None = None
) -> tuple[Tensor, ...]:
    """Split into at most `chunks` parts of equal size along an axis; see `ops.chunk`.

    The last part is smaller if the size of the axis is not divisible. `dim` is another name of
    `axis`.
    """
    return chunk(self, chunks, axis if dim is None else dim)


@cached_call
def chunk(input: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Split into at most `chunks` parts of equal size along an axis (`mindspore.ops.chunk`).

    The last part may be smaller.

    Raises:
        ValueError: `chunks` is not positive, or the axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.chunk(ms.Tensor([1, 2, 3]), 2)
        (Tensor(shape=[2], dtype=Int64, value= [1, 2]), Tensor(shape=[1], dtype=Int64, value= [3]))
    """
    at = _cut_axis("chunk", input, axis)
    count = int_of("chunk", "chunks", chunks)
    if count <= 0:
        raise ArgumentValueError(f"chunk: got chunks={count}; wanted a positive int")
    n = input.shape[at]
    if n == 0:
        return _parts(input, at, [0] * count)
    return split(input, -(-n // count), at)


@cached_call
def unstack(input_x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """Split into the slices along an axis, and drop the axis (`mindspore.ops.unstack`).

    Returns:
        tuple of Tensors, as many as the axis is long.

    Raises:
        ValueError: a 0-d tensor, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.unstack(ms.Tensor([[1], [3]]))
        (Tensor(shape=[1], dtype=Int64, value= [1]), Tensor(shape=[1], dtype=Int64, value= [3]))
    """
    at = _cut_axis("unstack", input_x, axis)
    shape = input_x.shape[:at] + input_x.shape[at + 1 :]
    return tuple(
        reshape_to(slice_axis(input_x, at, i, i + 1), shape) for i in range(input_x.shape[at])
    )


@tensor_method("unbind")
@cached_call
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Another name of `unstack` (`mindspore.ops.unbind`).

    Examples:
        >>> import duograph as ms
        >>> len(ms.ops.unbind(ms.ops.ones((3, 2))))
        3
    """
    return unstack(input, dim)


@cached_call
def narrow(input: Tensor, axis: int, start: int, length: int) -> Tensor:
    """Select `length` consecutive slices of an axis, beginning at `start` (`mindspore.ops.narrow`).

    Raises:
        ValueError: the slices are not all inside the axis.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.narrow(ms.Tensor([1, 2, 3, 4]), 0, 1, 2)
        Tensor(shape=[2], dtype=Int64, value= [2, 3])
    """
    at = _cut_axis("narrow", input, axis)
    n = input.shape[at]
    begin = int_of("narrow", "start", start)
    count = int_of("narrow", "length", length)
    begin = begin + n if begin < 0 else begin
    if not (0 <= begin <= n and 0 <= count <= n - begin):
        raise ArgumentValueError(
            f"narrow: got start={start}, length={length} for axis {at} of size {n}"
        )
    return identity(input) if count == n else slice_axis(input, at, begin, begin + count)


@tensor_method("narrow")
def _tensor_narrow(
    self: Tensor, dim: Any = None, start: Any = None, length: Any = None, *, axis: Any = None
) -> Tensor:
    """Select `length` consecutive slices of an axis, beginning at `start`; see `ops.narrow`.

    `axis` is another name of `dim`.
    """
    return narrow(self, axis if dim is None else dim, start, length)
