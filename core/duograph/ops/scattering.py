"""Functions that write by index, into a copy: scatter in its forms, tensor_scatter, index_add,
segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..dtype import bool_
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..op import Op, op
from ..tensor import Tensor
from ..types import size_of
from .arguments import ints_of
from .axes import axis_of
from .comparison import equal
from .creation import cast, fill
from .creation_functions import as_index, beside, full_like
from .elementwise import maximum, minimum, mul, neg, true_divide
from .gather_scatter import (
    from_zero,
    gather,
    gathered_shape,
    scatter_add_by,
    scatter_elements_add_by,
    scatter_elements_set_by,
    scatter_set_by,
)
from .gathering import check_nd, explain, explain_nd, nd_index
from .logic import select_by
from .methods import tensor_method
from .movement import concat_by, identity, slice_axis, update_by
from .primitive import primitive
from .repeating import broadcast_to
from .rounding import floor_divide
from .shape_primitives import reshape_to
from .sorting import sort_by
from .value_sizes import nonzero_by

__all__ = [
    "scatter", "tensor_scatter_elements", "scatter_nd", "tensor_scatter_update",
    "tensor_scatter_add", "tensor_scatter_sub", "tensor_scatter_mul", "tensor_scatter_div",
    "tensor_scatter_max", "tensor_scatter_min", "index_fill", "masked_scatter", "select_scatter",
    "slice_scatter", "inplace_update", "inplace_add", "inplace_sub",
]  # fmt: skip

# An index and the values that are written to it, as users pass them.
Index: TypeAlias = Tensor | Sequence[int] | int
Source: TypeAlias = Tensor | int | float


# ---- element by element along an axis
# ------------------------------------------------------------------


def scatter_along(
    name: str, input: Tensor, axis: object, index: object, src: Any, add: bool = False
) -> Tensor:
    """out[index[i][j]][j] = (or +=) src[i][j] for axis 0, and so for any; `src` may be larger, or a
    number.
    """
    indices = as_index(index, input)
    src = beside(input, src) if isinstance(src, Tensor) else src
    shape = input.shape
    if not shape:
        flat = scatter_along(
            name,
            reshape_to(input, (1,)),
            axis,
            reshape_to(indices, (indices.size,)),
            reshape_to(src, (src.size,)) if isinstance(src, Tensor) else src,
            add,
        )
        return reshape_to(flat, ())
    at = axis_of(name, axis, len(shape))
    if not isinstance(src, Tensor):
        src = full_like(indices, src, input.dtype)
    if len(src.shape) != len(indices.shape) or any(
        m > n for m, n in zip(indices.shape, src.shape, strict=True)
    ):
        raise ShapeError(
            f"{name}: got src of shape {src.shape} for an index of shape {indices.shape}; wanted as many "
            f"axes, none shorter"
        )
    for k, n in enumerate(indices.shape):
        src = slice_axis(src, k, 0, n)
    write = scatter_elements_add_by if add else scatter_elements_set_by
    try:
        return write(input, indices, cast(src, input.dtype), at)
    except IndexError:
        explain(name, shape[at], indices, at)
        raise


def scatter(input: Tensor, axis: int, index: Index, src: Source) -> Tensor:
    """A copy with out[index[i][j]][j] = src[i][j] for axis 0, and so for any
    (`mindspore.ops.scatter`).

    Args:
        input: Tensor.
        axis: int.
        index: integer Tensor with as many axes, none but `axis` longer; negative ones count from
            the end.
        src: Tensor with as many axes, none shorter than the index's, or a number. On duplicates the
            last stays.

    Raises:
        IndexError: an index out of range.
        ValueError: shapes that do not fit, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.scatter(ms.ops.zeros((2, 3)), 1, ms.Tensor([[0], [2]]), ms.Tensor([[5.0], [6.0]]))
        Tensor(shape=[2, 3], dtype=Float32, value=
        [[ 5.00000000e+00,  0.00000000e+00,  0.00000000e+00],
         [ 0.00000000e+00,  0.00000000e+00,  6.00000000e+00]])
    """
    return scatter_along("scatter", input, axis, index, src)


@tensor_method("scatter")
def _tensor_scatter(
    self: Tensor,
    axis: object = None,
    index: object = None,
    src: object = None,
    *,
    dim: object = None,
    value: object = None,
    reduce: str | None = None,
) -> Tensor:
    """Element by element along an axis, into a copy. See `ops.scatter`; ``reduce="add"`` adds."""
    if reduce not in (None, "none", "add"):
        raise ArgumentValueError(f"scatter: got reduce={reduce!r}; wanted None, 'none' or 'add'")
    source = value if src is None else src
    return scatter_along(
        "scatter", self, dim if axis is None else axis, index, source, reduce == "add"
    )


@primitive('TensorScatterElements(axis=0, reduction="none")')
def tensor_scatter_elements(
    input_x: Tensor,
    indices: Index,
    updates: Source,
    axis: int = 0,
    reduction: str = "none",
) -> Tensor:
    """As `scatter`; ``reduction="add"`` adds (`mindspore.ops.tensor_scatter_elements`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.tensor_scatter_elements(
        ...     ms.ops.ones((1, 3)), ms.Tensor([[0, 0]]), ms.Tensor([[5.0, 6.0]]), 1, "add")
        Tensor(shape=[1, 3], dtype=Float32, value=
        [[ 1.20000000e+01,  1.00000000e+00,  1.00000000e+00]])
    """
    if reduction not in ("none", "add"):
        raise ArgumentValueError(
            f"tensor_scatter_elements: got reduction={reduction!r}; wanted 'none' or 'add'"
        )
    return scatter_along(
        "tensor_scatter_elements", input_x, axis, indices, updates, reduction == "add"
    )


# ---- rows and slices by index
# ----------------------------------------------------------------------


def combine(mode: str) -> Op:
    """The binary op of a scatter mode."""
    return {"mul": mul, "max": maximum, "min": minimum}[mode]


@op(name="scatter_reduce")
def scatter_reduce_by(input: Tensor, indices: Tensor, updates: Tensor, mode: str):
    """Composite: rows of axis 0 combined with the updates of their index, all of them; mode is mul,
    max or min.

    The updates are sorted by index and combined by a segmented scan in log2(n) steps (Hillis and
    Steele 1986).
    """
    m = indices.size
    flat = reshape_to(indices, (m,))
    rest = input.shape[1:]
    rows = reshape_to(updates, (m, *rest))
    if m == 0:
        return identity(input)
    if m > 1:
        order = sort_by(from_zero(flat, input.shape[0]), 0, False)[1]
        flat, rows = gather(flat, order, 0), gather(rows, order, 0)
        flat = from_zero(flat, input.shape[0])
    function = combine(mode)
    step = 1
    while step < m:
        before = slice_axis(rows, 0, 0, m - step)
        later = slice_axis(rows, 0, step, m)
        same = equal(slice_axis(flat, 0, 0, m - step), slice_axis(flat, 0, step, m))
        same = reshape_to(same, (m - step, *[1] * len(rest)))
        joined = select_by(same, function(before, later), later)
        rows = concat_by((slice_axis(rows, 0, 0, step), joined), 0)
        step *= 2
    # the last of a run of equal indices holds the whole of it, and is the one that stays
    return scatter_set_by(input, flat, function(gather(input, flat, 0), rows), 0)


def scatter_rows(
    name: str,
    input: Tensor,
    indices: Index,
    updates: Source,
    mode: str,
) -> Tensor:
    """A copy with rows of axis 0 replaced by, or combined with, updates; mode: update add sub mul
    div max min.
    """
    at = as_index(indices, input)
    wanted = at.shape + input.shape[1:]
    rows = cast(beside(input, updates), input.dtype)
    if rows.shape != wanted:
        if rows.size != 1 and rows.shape != ():
            raise ShapeError(f"{name}: got updates of shape {rows.shape}; wanted {wanted}")
        rows = broadcast_to.public(rows, wanted)
    if mode == "update":
        return scatter_set_by(input, at, rows, 0)
    if mode == "add":
        return scatter_add_by(input, at, rows, 0)
    if mode == "sub":
        return scatter_add_by(input, at, neg(rows), 0)
    if mode == "div":
        by = scatter_reduce_by(full_like(input, 1, input.dtype), at, rows, "mul")
        return true_divide(input, by) if input.dtype.kind in "fc" else floor_divide(input, by)
    return scatter_reduce_by(input, at, rows, mode)


@op(name="scatter_nd_write")
def scatter_nd_write(input: Tensor, indices: Tensor, updates: Tensor, mode: str):
    """Composite: slices named by the rows of `indices` replaced by, or combined with, updates."""
    count = check_nd("tensor_scatter", input.shape, indices)
    rest = input.shape[count:]
    n = size_of(input.shape[:count])
    rows = reshape_to(input, (n, *rest))
    return reshape_to(
        scatter_rows("tensor_scatter", rows, nd_index(input.shape, indices), updates, mode),
        input.shape,
    )


def scatter_nd_mode(
    name: str,
    input: Tensor,
    indices: Index,
    updates: Source,
    mode: str,
) -> Tensor:
    """`scatter_nd_write` with checked operands."""
    at = as_index(indices, input)
    count = check_nd(name, input.shape, at)
    new = beside(input, updates)
    wanted = at.shape[:-1] + input.shape[count:]
    if new.shape != wanted:
        raise ShapeError(
            f"{name}: got updates of shape {new.shape} for indices of shape {at.shape} and shape {input.shape}; "
            f"wanted {wanted}"
        )
    try:
        return scatter_nd_write(input, at, cast(new, input.dtype), mode)
    except IndexError:
        explain_nd(name, input.shape, at)
        raise


_WORDS = {
    "update": "replaced by updates; of duplicates the last stays",
    "add": "increased by updates; duplicates add up",
    "sub": "decreased by updates; duplicates add up",
    "mul": "multiplied by updates, duplicates one after the other",
    "div": "divided by updates, duplicates one after the other",
    "max": "raised to updates, where these are larger",
    "min": "lowered to updates, where these are smaller",
}


def _functional(mode: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    name = f"tensor_scatter_{mode}"

    def function(input_x: Tensor, indices: Index, updates: Source) -> Tensor:
        return scatter_nd_mode(name, input_x, indices, updates, mode)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""A copy with the slices that rows of indices name {_WORDS[mode]} (`mindspore.ops.{name}`).

    Args:
        input_x: Tensor.
        indices: integer Tensor; its last axis holds an index for each of that many leading axes.
        updates: Tensor of shape indices.shape[:-1] + input_x.shape[indices.shape[-1]:].

    Raises:
        IndexError: an index out of range.
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> x, i = ms.Tensor([6.0, 6.0]), ms.Tensor([[0], [0]])
        >>> ms.ops.{name}(x, i, ms.Tensor([2.0, 3.0])).asnumpy()
        {_EXAMPLES[mode]}
    """
    return function


_EXAMPLES = {
    "update": "array([3., 6.], dtype=float32)", "add": "array([11.,  6.], dtype=float32)",
    "sub": "array([1., 6.], dtype=float32)", "mul": "array([36.,  6.], dtype=float32)",
    "div": "array([1., 6.], dtype=float32)", "max": "array([6., 6.], dtype=float32)",
    "min": "array([2., 6.], dtype=float32)",
}  # fmt: skip

tensor_scatter_update = _functional("update")
tensor_scatter_add = _functional("add")
tensor_scatter_sub = _functional("sub")
tensor_scatter_mul = _functional("mul")
tensor_scatter_div = _functional("div")
tensor_scatter_max = _functional("max")
tensor_scatter_min = _functional("min")


def _method(mode: str) -> Callable[..., Tensor]:
    name = f"scatter_{mode}"

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if mode == "add" and (len(args) + len(kwargs) == 3 or "dim" in kwargs):
            return _add_along(self, *args, **kwargs)
        return scatter_nd_mode(name, self, *_two(name, *args, **kwargs), mode)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        f"A copy with the slices that rows of indices name {_WORDS[mode]}. See `ops.tensor_{name}`."
    )
    return tensor_method(name)(method)


def _two(
    name: str,
    indices: Index | None = None,
    updates: Source | None = None,
) -> tuple[Index, Source]:
    if indices is None or updates is None:
        raise ArgumentError(f"{name}: wanted indices and updates")
    return indices, updates


def _add_along(self: Tensor, dim: int, index: Index, src: Source) -> Tensor:
    return scatter_along("scatter_add", self, dim, index, src, True)


for _mode in ("add", "sub", "mul", "div", "max", "min"):
    globals()[f"_tensor_method_scatter_{_mode}"] = _method(_mode)


@op(primitive="ScatterNd")
def scatter_nd(indices: Tensor, updates: Tensor, shape: Sequence[int]):
    """Zeros with updates added to the slices that rows of indices name
    (`mindspore.ops.scatter_nd`).

    Args:
        indices: integer Tensor; its last axis holds an index for each of that many leading axes.
        updates: Tensor of shape indices.shape[:-1] + shape[indices.shape[-1]:].
        shape: that of the result.

    Raises:
        IndexError: an index out of range.
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.scatter_nd(ms.Tensor([[1], [1]]), ms.Tensor([2.0, 3.0]), (3,))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  5.00000000e+00,  0.00000000e+00])
    """
    return scatter_nd_write(fill(shape, 0, updates.dtype), indices, updates, "add")


@scatter_nd.normaliser
def _(indices: Index, updates: Source, shape: Sequence[int]):
    new = updates if isinstance(updates, Tensor) else Tensor(updates)
    at = as_index(indices, new)
    size = tuple(shape.tolist() if isinstance(shape, Tensor) else shape)
    count = check_nd("scatter_nd", size, at)
    wanted = at.shape[:-1] + size[count:]
    if new.shape != wanted:
        raise ShapeError(f"scatter_nd: got updates of shape {new.shape}; wanted {wanted}")
    return (at, new, size)


# ---- along an axis
# ---------------------------------------------------------------------------------------


def index_write(
    name: str,
    input: Tensor,
    axis: int,
    index: Index,
    source: Source,
    add: bool = False,
) -> Tensor:
    """A copy with the slices of an axis that a 1-d index names replaced by, or increased by, those
    of `source`.
    """
    shape = input.shape
    if not shape:
        raise ShapeError(f"{name}: got a 0-d tensor; wanted at least one axis")
    at = axis_of(name, axis, len(shape))
    indices = as_index(index, input)
    if len(indices.shape) > 1:
        raise ShapeError(f"{name}: got an index of shape {indices.shape}; wanted one axis")
    indices = reshape_to(indices, (indices.size,))
    wanted = gathered_shape(shape, indices.shape, at)
    new = beside(input, source)
    if new.shape != wanted:
        if new.shape != ():
            raise ShapeError(f"{name}: got a source of shape {new.shape}; wanted {wanted}")
        new = broadcast_to.public(new, wanted)
    write = scatter_add_by if add else scatter_set_by
    return write(input, indices, cast(new, input.dtype), at)


@tensor_method("index_fill")
def _tensor_index_fill(
    self: Tensor, axis: Any = None, index: Any = None, value: Any = None, *, dim: Any = None
) -> Tensor:
    """A copy with the slices of an axis that indices name filled with a value. See
    `ops.index_fill`.
    """
    return index_fill(self, dim if axis is None else axis, index, value)


def index_fill(x: Tensor, axis: int, index: Index, value: Source) -> Tensor:
    """A copy with the slices of an axis that indices name filled with a value
    (`mindspore.ops.index_fill`).

    Args:
        x: Tensor of at least one axis.
        axis: int.
        index: 0-d or 1-d integer Tensor.
        value: number or 0-d Tensor.

    Raises:
        IndexError: an index out of range.
        ValueError: an index of more axes, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.index_fill(ms.ops.zeros((2, 2)), 1, ms.Tensor([0]), 5.0)
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 5.00000000e+00,  0.00000000e+00],
         [ 5.00000000e+00,  0.00000000e+00]])
    """
    if isinstance(value, Tensor) and value.size == 1:
        value = reshape_to(value, ())
    return index_write("index_fill", x, axis, index, value)


def _rows_of(name: str, x: Tensor, v: Tensor, indices: Index, mode: str) -> Tensor:
    new = beside(x, v)
    found = as_index(
        indices if isinstance(indices, Tensor) else list(ints_of(name, "indices", indices)), x
    )
    if new.shape != found.shape + x.shape[1:] and new.shape == x.shape[1:] and found.size == 1:
        new = reshape_to(new, (1, *new.shape))
    return scatter_rows(name, x, found, new, mode)


def inplace_update(x: Tensor, v: Tensor, indices: Index) -> Tensor:
    """A copy with the rows that indices name replaced (`mindspore.ops.inplace_update`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.inplace_update(ms.ops.zeros((2, 2)), ms.Tensor([[1.0, 2.0]]), (1,))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 0.00000000e+00,  0.00000000e+00],
         [ 1.00000000e+00,  2.00000000e+00]])
    """
    return _rows_of("inplace_update", x, v, indices, "update")


def inplace_add(x: Tensor, v: Tensor, indices: Index) -> Tensor:
    """A copy with rows added to those that indices name (`mindspore.ops.inplace_add`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.inplace_add(ms.ops.ones((2, 2)), ms.Tensor([[1.0, 2.0]]), (1,))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00],
         [ 2.00000000e+00,  3.00000000e+00]])
    """
    return _rows_of("inplace_add", x, v, indices, "add")


def inplace_sub(x: Tensor, v: Tensor, indices: Index) -> Tensor:
    """A copy with rows subtracted from those that indices name (`mindspore.ops.inplace_sub`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.inplace_sub(ms.ops.ones((2, 2)), ms.Tensor([[1.0, 2.0]]), (1,))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00],
         [ 0.00000000e+00, -1.00000000e+00]])
    """
    return _rows_of("inplace_sub", x, v, indices, "sub")


@tensor_method("inplace_update")
def _tensor_inplace_update(self: Tensor, v: Tensor, indices: Index) -> Tensor:
    """A copy with the rows that indices name replaced. See `ops.inplace_update`."""
    return inplace_update(self, v, indices)


@primitive("MaskedScatter")
@tensor_method("masked_scatter")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the elements where a mask holds replaced by those of `source`, in order.

    Args:
        x: Tensor.
        mask: Tensor of bool that broadcasts to the shape of `x`.
        source: Tensor with at least as many elements as the mask has True.

    Raises:
        TypeError: `mask` is not bool.
        ValueError: the mask does not broadcast, or `source` is too small.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.masked_scatter(ms.Tensor([1, 2, 3]), ms.Tensor([True, False, True]), ms.Tensor([8, 9]))
        Tensor(shape=[3], dtype=Int64, value= [8, 2, 9])
    """
    if mask.dtype is not bool_:
        raise DTypeError(f"masked_scatter: mask has dtype {mask.dtype.name}; wanted bool")
    source = beside(x, source)
    where = broadcast_to.public(beside(x, mask), x.shape)
    at = nonzero_by(reshape_to(where, (where.size,)))
    count = at.shape[0]
    if source.size < count:
        raise ShapeError(f"masked_scatter: got {source.size} elements for a mask with {count} True")
    new = slice_axis(reshape_to(cast(source, x.dtype), (source.size,)), 0, 0, count)
    flat = scatter_set_by(reshape_to(x, (x.size,)), reshape_to(at, (count,)), new, 0)
    return reshape_to(flat, x.shape)


@tensor_method("select_scatter")
def select_scatter(input: Tensor, src: Tensor, axis: int, index: int) -> Tensor:
    """A copy with one slice of an axis replaced (`mindspore.ops.select_scatter`).

    Args:
        input: Tensor of at least one axis.
        src: Tensor of the shape of ``input`` without the axis.
        axis, index: ints.

    Raises:
        ValueError: shapes that do not fit, or an axis or index out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.select_scatter(ms.ops.zeros((2, 2)), ms.Tensor([1.0, 2.0]), 0, 1)
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 0.00000000e+00,  0.00000000e+00],
         [ 1.00000000e+00,  2.00000000e+00]])
    """
    at = axis_of("select_scatter", axis, len(input.shape))
    n = input.shape[at] if input.shape else 0
    if not -n <= index < n:
        raise ArgumentValueError(f"select_scatter: got index {index} for an axis of size {n}")
    row = index + n if index < 0 else index
    wanted = input.shape[:at] + input.shape[at + 1 :]
    if src.shape != wanted:
        raise ShapeError(f"select_scatter: got src of shape {src.shape}; wanted {wanted}")
    new = reshape_to(src, (*wanted[:at], 1, *wanted[at:]))
    return slice_scatter(input, new, at, row, row + 1)


@tensor_method("slice_scatter")
def slice_scatter(
    input: Tensor,
    src: Tensor,
    axis: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A copy with a slice of an axis replaced (`mindspore.ops.slice_scatter`).

    Args:
        input: Tensor of at least one axis.
        src: Tensor of the shape of that slice, or one that broadcasts to it.
        axis: int.
        start, end, step: as of a Python slice; `step` is positive.

    Raises:
        ValueError: shapes that do not fit, or a `step` that is not positive.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.slice_scatter(ms.ops.zeros((3,)), ms.Tensor([1.0, 2.0]), 0, 0, 3, 2)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  0.00000000e+00,  2.00000000e+00])
    """
    if step < 1:
        raise ArgumentValueError(f"slice_scatter: got step={step}; wanted a positive int")
    if not input.shape:
        raise ShapeError("slice_scatter: got a 0-d tensor; wanted at least one axis")
    at = axis_of("slice_scatter", axis, len(input.shape))
    first, last, by = slice(start, end, step).indices(input.shape[at])
    begin, stop, strides = [0] * len(input.shape), list(input.shape), [1] * len(input.shape)
    begin[at], stop[at], strides[at] = first, last, by
    wanted = gathered_shape(input.shape, (len(range(first, last, by)),), at)
    new = broadcast_to.public(cast(beside(input, src), input.dtype), wanted)
    return update_by(input, new, begin, stop, strides)
