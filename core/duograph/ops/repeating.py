"""Functions that repeat elements: tile, repeat, broadcast, grids and combinations.

Users and other op families call them. The functions check sizes, since the ops that they call
expect valid ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..call_cache import cached_call
from ..dtype import bool_
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..op import op
from ..op_signature import Axis
from ..tensor import Tensor
from ..types import broadcast_shapes
from . import shape_primitives
from .arguments import ints_of
from .comparison import not_equal
from .elementwise import sub
from .gather_scatter import gather
from .joining import _cut_axis, _several, concat, stack
from .methods import tensor_method
from .movement import identity, slice_axis
from .primitive import primitive
from .shape_primitives import broadcast_to, reduce_sum, reshape_to
from .shaping import atleast_1d, one_tuple

__all__ = [
    "tile", "repeat_elements", "repeat_interleave", "broadcast_to", "expand", "expand_as",
    "broadcast_tensors", "meshgrid", "cartesian_prod", "combinations", "diff",
]  # fmt: skip


@op(primitive="Tile")
def tile(input: Tensor, shape: Sequence[int], counts: Sequence[int]):
    """Repeat the whole tensor along each axis (`mindspore.ops.tile`).

    Args:
        input: Tensor of any shape.
        dims: number of copies along each axis; the shorter of `dims` and the shape is extended by
            leading ones.

    Raises:
        ValueError: a negative number.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.tile(ms.Tensor([1, 2]), (2, 2))
        Tensor(shape=[2, 4], dtype=Int64, value=
        [[1, 2, 1, 2],
         [1, 2, 1, 2]])
    """
    split_shape: list[int] = []
    wide: list[int] = []
    for n, c in zip(shape, counts, strict=True):
        split_shape += [1, n] if c != 1 else [n]
        wide += [c, n] if c != 1 else [n]
    out = shape_primitives.broadcast_to(reshape_to(input, split_shape), wide)
    return reshape_to(out, [n * c for n, c in zip(shape, counts, strict=True)])


@tile.normaliser
def _(input: Tensor, dims: int | Sequence[int]):
    counts = ints_of("tile", "dims", dims)
    if min(counts, default=1) < 0:
        raise ArgumentValueError(f"tile: got dims={counts}; wanted none negative")
    shape = input.shape
    counts = (1,) * (len(shape) - len(counts)) + counts
    shape = (1,) * (len(counts) - len(shape)) + shape
    if all(c == 1 for c in counts):
        return reshape_to(input, shape)
    return (input, shape, counts)


@tensor_method("repeat")
def _tensor_repeat(
    self: Tensor,
    *repeats: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    **other: int | Sequence[int],
) -> Tensor:
    """Repeat the whole tensor along each axis, like `tile`; with `axis`, repeat each slice.

    The counts are positional ints, one sequence, or the keyword argument `repeats`. See
    `ops.repeat_interleave` for the form with `axis`.
    """
    if other:
        if set(other) != {"repeats"} or repeats:
            raise ArgumentError(f"repeat: got the unknown argument {next(iter(other))!r}")
        repeats = (other["repeats"],)
    if axis is not None:
        return repeat_interleave.public(self, repeats[0] if len(repeats) == 1 else repeats, axis)
    counts = one_tuple("repeat", "repeats", repeats)
    if len(counts) < len(self.shape):
        raise ArgumentValueError(
            f"repeat: got {counts} for shape {self.shape}; wanted at least one number an axis"
        )
    return tile.public(self, counts)


@cached_call
def repeat_elements(x: Tensor, rep: int, axis: int = 0) -> Tensor:
    """Repeat every slice of an axis `rep` times in a row (`mindspore.ops.repeat_elements`).

    Raises:
        ValueError: `rep` is negative, or the axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.repeat_elements(ms.Tensor([1, 2]), 2)
        Tensor(shape=[4], dtype=Int64, value= [1, 1, 2, 2])
    """
    return repeat_interleave.public(x, rep, axis)


@tensor_method("repeat_interleave")
def _tensor_repeat_interleave(
    self: Tensor,
    repeats: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    dim: int | Sequence[int] | None = None,
    output_size: object = None,
) -> Tensor:
    """Repeat each slice of an axis several times in a row; see `ops.repeat_interleave`.

    `dim` is another name of `axis`.

    Raises:
        ValueError: the axis of the result has another size than `output_size`.
    """
    along = axis if dim is None else dim
    found: Tensor = repeat_interleave.public(self, repeats, along)
    size = found.shape[0 if along is None else along]  # type: ignore[index]
    if output_size is not None and output_size != size:
        raise ShapeError(
            f"repeat_interleave: got output_size={output_size}; the axis of the result has {size}"
        )
    return found


@op()
def repeat_interleave(input: Tensor, repeats: int, axis: Axis):
    """Repeat every slice of an axis several times in a row (`mindspore.ops.repeat_interleave`).

    Args:
        input: Tensor of any shape.
        repeats: int, or a tuple, list or Tensor with one int for each slice.
        axis: int, or None for the flattened tensor.

    Raises:
        ValueError: a negative number, or neither one number nor one for each slice.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.repeat_interleave(ms.Tensor([1, 2]), [1, 3])
        Tensor(shape=[4], dtype=Int64, value= [1, 2, 2, 2])
    """
    shape = list(input.shape)
    n = shape[axis]
    wide = shape[: axis + 1] + [repeats] + shape[axis + 1 :]
    out = shape_primitives.broadcast_to(
        reshape_to(input, shape[: axis + 1] + [1] + shape[axis + 1 :]), wide
    )
    return reshape_to(out, shape[:axis] + [n * repeats] + shape[axis + 1 :])


@repeat_interleave.normaliser
def _(input: Tensor, repeats: int | Sequence[int], axis: int | Sequence[int] | None = None):
    if axis is None:
        input, axis = reshape_to(input, (input.size,)), 0
    at = _cut_axis("repeat_interleave", input, axis)
    counts = ints_of("repeat_interleave", "repeats", repeats)
    n = input.shape[at]
    if min(counts, default=0) < 0 or len(counts) not in (1, n):
        raise ArgumentValueError(
            f"repeat_interleave: got repeats={counts} for axis {at} of size {n}; wanted one "
            "number, "
            f"or one a slice, none negative"
        )
    if len(counts) == 1:
        return (input, counts[0], at)
    return gather(input, np.repeat(np.arange(n), counts), at)


# ---- broadcast -----------------------------------------------------------------------------------


@broadcast_to.normaliser
def _(input: Tensor, shape: int | Sequence[int]):
    wanted = ints_of("broadcast_to", "shape", shape)
    have = input.shape
    if wanted == have:
        return identity(input)
    lead = len(wanted) - len(have)
    if any([n < 0 for n in wanted]):
        if lead < 0 or any(n < -1 or (n == -1 and i < lead) for i, n in enumerate(wanted)):
            raise ShapeError(
                f"broadcast_to: got shape {have} and the wanted shape {wanted}; wanted no "
                "negative size "
                f"but -1, and that only for an axis that is there"
            )
        wanted = tuple(have[i - lead] if n == -1 else n for i, n in enumerate(wanted))
    return (input, wanted)


@primitive("Expand", op="broadcast_to")
@cached_call
def expand(input_x: Tensor, size: int | Sequence[int]) -> Tensor:
    """Another name of `broadcast_to` (`mindspore.ops.expand`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.expand(ms.Tensor([[1], [2]]), (2, 3)).shape
        (2, 3)
    """
    return broadcast_to.public(input_x, size)


@tensor_method("expand_as")
def _tensor_expand_as(
    self: Tensor, other: Tensor | None = None, *, x: Tensor | None = None
) -> Tensor:
    """Broadcast the tensor to the shape of another one, `other` or `x`; see `ops.expand_as`."""
    like = other if x is None else x
    if like is None:
        raise ArgumentError("expand_as: got no tensor; wanted one")
    return expand_as(self, like)


@cached_call
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Broadcast `input` to the shape of `other` (`mindspore.ops.expand_as`).

    Raises:
        ValueError: `input` does not broadcast to that shape.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.expand_as(ms.Tensor([1, 2]), ms.ops.ones((3, 2))).shape
        (3, 2)
    """
    return broadcast_to.public(input, other.shape)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Broadcast tensors to their common shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> [x.shape for x in ms.ops.broadcast_tensors(ms.Tensor([1, 2]), ms.Tensor([[1], [2]]))]
        [(2, 2), (2, 2)]
    """
    parts = _several("broadcast_tensors", tensors)
    shape = broadcast_shapes(*(x.shape for x in parts))
    if shape is None:
        raise ShapeError(
            f"broadcast_tensors: got shapes {[x.shape for x in parts]}; wanted ones that broadcast"
        )
    return tuple(broadcast_to.public(x, shape) for x in parts)


def meshgrid(*inputs: Tensor | Sequence[Tensor], indexing: str = "xy") -> tuple[Tensor, ...]:
    """Return the coordinate tensors of a grid, one for each input (`mindspore.ops.meshgrid`).

    Args:
        inputs: 0-d or 1-d Tensors, one by one or as one tuple.
        indexing: ``"xy"``: the first two axes of the results are swapped, as in a picture;
            ``"ij"``: the axes are in the order of the inputs.

    Raises:
        ValueError: another `indexing`, or a tensor of more than one axis.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.meshgrid(ms.Tensor([1, 2]), ms.Tensor([3, 4, 5]))[0]
        Tensor(shape=[3, 2], dtype=Int64, value=
        [[1, 2],
         [1, 2],
         [1, 2]])
    """
    if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
        inputs = tuple(inputs[0])
    if indexing not in ("xy", "ij"):
        raise ArgumentValueError(f"meshgrid: got indexing={indexing!r}; wanted 'xy' or 'ij'")
    parts = atleast_1d(_several("meshgrid", inputs))
    if any(len(x.shape) != 1 for x in parts):
        raise ShapeError(
            f"meshgrid: got shapes {[x.shape for x in parts]}; wanted at most one axis"
        )
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[0], order[1] = 1, 0
    shape = [0] * len(parts)
    for x, at in zip(parts, order, strict=True):
        shape[at] = x.size
    out = []
    for x, at in zip(parts, order, strict=True):
        lead = [1] * len(parts)
        lead[at] = x.size
        out.append(broadcast_to.public(reshape_to(x, lead), shape))
    return tuple(out)


def cartesian_prod(*inputs: Tensor) -> Tensor:
    """Return all combinations of one element of each input, as rows
    (`mindspore.ops.cartesian_prod`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.cartesian_prod(ms.Tensor([1, 2]), ms.Tensor([3, 4]))
        Tensor(shape=[4, 2], dtype=Int64, value=
        [[1, 3],
         [1, 4],
         [2, 3],
         [2, 4]])
    """
    if len(inputs) == 1 and isinstance(inputs[0], Tensor):
        return inputs[0]
    grids = meshgrid(*inputs, indexing="ij")
    return stack([reshape_to(g, (g.size,)) for g in grids], -1)


@cached_call
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all choices of `r` elements of a 1-d tensor, as rows (`mindspore.ops.combinations`).

    Raises:
        ValueError: a tensor of another number of axes, or a negative `r`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.combinations(ms.Tensor([1, 2, 3]))
        Tensor(shape=[3, 2], dtype=Int64, value=
        [[1, 2],
         [1, 3],
         [2, 3]])
    """
    if len(input.shape) != 1 or r < 0:
        raise ArgumentValueError(
            f"combinations: got shape {input.shape}, r={r}; wanted 1-d and r >= 0"
        )
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input.shape[0]), r)), np.int64).reshape(-1, r)
    return gather(input, rows, 0)


@tensor_method("sum_to_size")
def _tensor_sum_to_size(self: Tensor, *size: int | Sequence[int]) -> Tensor:
    """Sum over axes so that the result has shape `size`, which must broadcast to the tensor's."""
    shape = one_tuple("sum_to_size", "size", size)
    have = self.shape
    lead = len(have) - len(shape)
    if lead < 0 or any(n != 1 and n != m for n, m in zip(shape, have[lead:], strict=True)):
        raise ShapeError(
            f"sum_to_size: got size {shape} for shape {have}; wanted one that broadcasts to it"
        )
    axes = tuple(i for i, m in enumerate(have) if i < lead or (shape[i - lead] == 1 and m != 1))
    return reshape_to(reduce_sum(self, axes, False) if axes else self, shape)


@tensor_method("diff")
@cached_call
def diff(
    x: Tensor,
    n: int = 1,
    axis: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the n-th differences of neighbours along an axis (`mindspore.ops.diff`).

    Args:
        x: Tensor of at least one axis.
        n: number of times that differences are taken.
        axis: the axis.
        prepend, append: Tensors that are first joined to `x`, before and after it, along the axis.

    Raises:
        ValueError: a 0-d tensor, a negative `n`, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.diff(ms.Tensor([1, 4, 9, 16]))
        Tensor(shape=[3], dtype=Int64, value= [3, 5, 7])
    """
    at = _cut_axis("diff", x, axis)
    if n < 0:
        raise ArgumentValueError(f"diff: got n={n}; wanted none negative")
    parts = [p for p in (prepend, x, append) if p is not None]
    out = concat(parts, at) if len(parts) > 1 else x
    for _ in range(n):
        m = out.shape[at]
        if not m:
            break
        after, before = slice_axis(out, at, 1, m), slice_axis(out, at, 0, m - 1)
        out = not_equal(after, before) if out.dtype is bool_ else sub(after, before)
    return out
