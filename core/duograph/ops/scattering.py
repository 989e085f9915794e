"""Functions that return a copy of a tensor with elements or slices written by index (scatter).

Users call the functions; `segments` and the in-place forms use the helpers. No function may change
its input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..op import Op, op
from ..tensor import Tensor
from ..types import size_of
from .axes import axis_of
from .comparison import equal
from .creation import cast, fill, iota
from .creation_functions import as_index, beside, full_like
from .division import floor_divide
from .elementwise import maximum, minimum, mul, neg, true_divide
from .gather_scatter import (
    from_zero,
    gather,
    scatter_add_by,
    scatter_elements_add_by,
    scatter_elements_set_by,
    scatter_set_by,
)
from .gathering import check_nd, explain, explain_nd, linear_index, nd_index
from .logic import select_by
from .methods import tensor_method
from .movement import concat_by, identity, slice_axis
from .primitive import primitive
from .repeating import broadcast_to
from .shape_primitives import position_dtype, reshape_to
from .sorting import sort_by

__all__ = [
    "scatter", "tensor_scatter_elements", "scatter_nd", "tensor_scatter_update",
    "tensor_scatter_add", "tensor_scatter_sub", "tensor_scatter_mul", "tensor_scatter_div",
    "tensor_scatter_max", "tensor_scatter_min",
]  # fmt: skip

# An index and the values that are written to it, as users pass them.
Index: TypeAlias = Tensor | Sequence[int] | int
Source: TypeAlias = Tensor | int | float


# ---- element by element along an axis ------------------------------------------------------------


def scatter_along(
    name: str, input: Tensor, axis: object, index: object, src: Any, mode: str = "set"
) -> Tensor:
    """Return a copy of `input` with elements of `src` written along an axis.

    For axis 0, out[index[i][j]][j] = src[i][j]. With `mode` "add" or "multiply", they are combined
    with the elements at these positions instead. `src` may be larger than the index, or a number.
    `name` is the user's function in errors.
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
            mode,
        )
        return reshape_to(flat, ())
    at = axis_of(name, axis, len(shape))
    if not isinstance(src, Tensor):
        src = full_like(indices, src, input.dtype)
    if len(src.shape) != len(indices.shape) or any(
        m > n for m, n in zip(indices.shape, src.shape, strict=True)
    ):
        raise ShapeError(
            f"{name}: got src of shape {src.shape} for an index of shape {indices.shape}; wanted "
            "as many "
            f"axes, none shorter"
        )
    for k, n in enumerate(indices.shape):
        src = slice_axis(src, k, 0, n)
    write = _ALONG[mode]
    try:
        return write(input, indices, cast(src, input.dtype), at)
    except IndexError:
        explain(name, shape[at], indices, at)
        raise


def _multiply_along(input: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    """Return a copy of `input` with elements multiplied by the updates whose index along `axis`
    they have.
    """
    dtype = position_dtype(input.size)
    places = [iota(indices.shape, k, dtype) for k in range(len(indices.shape))]
    places[axis] = indices
    rows = reshape_to(input, (input.size,))
    flat = linear_index(places, input.shape)
    return reshape_to(scatter_reduce_by(rows, flat, updates, "mul"), input.shape)


_ALONG: dict[str, Callable[[Tensor, Tensor, Tensor, int], Tensor]] = {
    "set": scatter_elements_set_by,
    "add": scatter_elements_add_by,
    "multiply": _multiply_along,
}


def reduction_of(name: str, reduce: object) -> str:
    """Return the mode of `scatter_along` for the argument `reduce` of a method called `name`."""
    if reduce in (None, "none"):
        return "set"
    if reduce not in ("add", "multiply"):
        raise ArgumentValueError(
            f"{name}: got reduce={reduce!r}; wanted None, 'none', 'add' or 'multiply'"
        )
    return str(reduce)


def scatter(input: Tensor, axis: int, index: Index, src: Source) -> Tensor:
    """Return a copy of `input` in which, for axis 0, out[index[i][j]][j] = src[i][j]
    (`mindspore.ops.scatter`).

    Args:
        input: Tensor.
        axis: the axis that is indexed.
        index: integer Tensor with as many axes as `input`, of which only `axis` may be longer than
            in `input`; negative indices count from the end.
        src: Tensor with as many axes, none of them shorter than in `index`, or a number. For
            duplicate indices, the last one is kept.

    Raises:
        IndexError: an index out of range.
        ValueError: shapes that do not fit, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> index, source = ms.Tensor([[0], [2]]), ms.Tensor([[5.0], [6.0]])
        >>> ms.ops.scatter(ms.ops.zeros((2, 3)), 1, index, source)
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
    reduce: str | None = None,
    *,
    dim: object = None,
    value: object = None,
) -> Tensor:
    """Return a copy with elements of `src` written at indices along an axis; see `ops.scatter`.

    `dim` is another name of `axis`, and `value`, a number, of `src`. With ``reduce="add"`` or
    ``reduce="multiply"`` the elements are added to, or multiplied with, those of the tensor; all
    elements of an index that occurs several times count.
    """
    mode = reduction_of("scatter", reduce)
    source = value if src is None else src
    return scatter_along("scatter", self, dim if axis is None else axis, index, source, mode)


@primitive('TensorScatterElements(axis=0, reduction="none")')
def tensor_scatter_elements(
    input_x: Tensor, indices: Index, updates: Source, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """Return a copy with elements written as by `scatter`, or added if ``reduction="add"``.

    See `mindspore.ops.tensor_scatter_elements`.

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
    mode = "add" if reduction == "add" else "set"
    return scatter_along("tensor_scatter_elements", input_x, axis, indices, updates, mode)


# ---- rows and slices by index --------------------------------------------------------------------


def combine(mode: str) -> Op:
    """Return the elementwise op that a scatter mode applies: "mul", "max" or "min"."""
    return {"mul": mul, "max": maximum, "min": minimum}[mode]


@op(name="scatter_reduce")
def scatter_reduce_by(input: Tensor, indices: Tensor, updates: Tensor, mode: str):
    """Composite op: return `input` with each row combined with all updates whose index is that row.

    Rows are slices of axis 0. `mode`, the operation, is "mul", "max" or "min". The updates are
    sorted by index and combined by a segmented scan in log2(n) steps (Hillis and Steele, 1986).
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
    # the given indices are what the gather and the scatter check, so they stay as they are
    run = from_zero(flat, input.shape[0])
    function = combine(mode)
    step = 1
    while step < m:
        before = slice_axis(rows, 0, 0, m - step)
        later = slice_axis(rows, 0, step, m)
        same = equal(slice_axis(run, 0, 0, m - step), slice_axis(run, 0, step, m))
        same = reshape_to(same, (m - step, *[1] * len(rest)))
        joined = select_by(same, function(before, later), later)
        rows = concat_by((slice_axis(rows, 0, 0, step), joined), 0)
        step *= 2
    # the last row of a run of equal indices has combined the run, and it is written last
    return scatter_set_by(input, flat, function(gather(input, flat, 0), rows), 0)


def scatter_rows(name: str, input: Tensor, indices: object, updates: object, mode: str) -> Tensor:
    """Return a copy of `input` with rows of axis 0 replaced by, or combined with, updates.

    `mode` is "update", "add", "sub", "mul", "div", "max" or "min"; `name` is the user's function in
    errors.
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
    """Composite op: replace slices of `input` at coordinates by updates, or combine them.

    Each row in the last axis of `indices` has the coordinates of a slice. `mode` is "update",
    "add", "sub", "mul", "div", "max" or "min".
    """
    count = check_nd("tensor_scatter", input.shape, indices)
    rest = input.shape[count:]
    n = size_of(input.shape[:count])
    rows = reshape_to(input, (n, *rest))
    return reshape_to(
        scatter_rows("tensor_scatter", rows, nd_index(input.shape, indices), updates, mode),
        input.shape,
    )


def scatter_nd_mode(
    name: str, input: Tensor, indices: object, updates: object, mode: str
) -> Tensor:
    """Check operands, and return `input` with slices replaced by, or combined with, updates.

    Each row in the last axis of `indices` has the coordinates of a slice. `mode` is "update",
    "add", "sub", "mul", "div", "max" or "min". An IndexRangeError for an index out of range names
    it. `name` is the user's function in errors.
    """
    at = as_index(indices, input)
    count = check_nd(name, input.shape, at)
    new = beside(input, updates)
    wanted = at.shape[:-1] + input.shape[count:]
    if new.shape != wanted:
        raise ShapeError(
            f"{name}: got updates of shape {new.shape} for an input of shape {input.shape} and "
            f"indices of shape {at.shape}; wanted updates of shape {wanted}"
        )
    try:
        return scatter_nd_write(input, at, cast(new, input.dtype), mode)
    except IndexError:
        explain_nd(name, input.shape, at)
        raise


# For each mode: how the slices at `indices` change, and what several updates of a slice do.
_WORDS = {
    "update": ("replaced by `updates`", "Of several updates of a slice, the last one is kept."),
    "add": ("increased by `updates`", "All updates of a slice are added to it."),
    "sub": ("decreased by `updates`", "All updates of a slice are subtracted from it."),
    "mul": ("multiplied by `updates`", "A slice is multiplied by all of its updates."),
    "div": ("divided by `updates`", "A slice is divided by the product of its updates."),
    "max": (
        "raised to `updates`",
        "Each element of a slice becomes the largest of itself and its updates.",
    ),
    "min": (
        "lowered to `updates`",
        "Each element of a slice becomes the smallest of itself and its updates.",
    ),
}


def _functional(mode: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    name = f"tensor_scatter_{mode}"

    def function(input_x: Tensor, indices: Index, updates: Source) -> Tensor:
        return scatter_nd_mode(name, input_x, indices, updates, mode)

    function.__name__ = function.__qualname__ = name
    change, several = _WORDS[mode]
    function.__doc__ = f"""Return a copy of `input_x` with the slices at `indices` {change}
    (`mindspore.ops.{name}`).

    {several}

    Args:
        input_x: Tensor.
        indices: integer Tensor; its last axis has one index for each leading axis of `input_x` that
            is indexed.
        updates: Tensor of shape indices.shape[:-1] + input_x.shape[indices.shape[-1]:].

    Raises:
        IndexError: an index is out of range.
        ValueError: the shapes do not match.

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


_ALONG_WORDS = """If it is called with `dim`, `index` and `src` instead, it adds the elements of
`src` at indices along the axis `dim`, as `scatter` with ``reduce="add"``."""


def _method(mode: str) -> Callable[..., Tensor]:
    name = f"scatter_{mode}"

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if mode == "add" and (len(args) + len(kwargs) == 3 or "dim" in kwargs):
            return _add_along(self, *args, **kwargs)
        return scatter_nd_mode(name, self, *_two(name, *args, **kwargs), mode)

    method.__name__ = method.__qualname__ = name
    change, several = _WORDS[mode]
    along = "\n\n" + _ALONG_WORDS if mode == "add" else ""
    method.__doc__ = (
        f"Return a copy with the slices at `indices` {change}; see `ops.tensor_{name}`.\n\n"
        f"{several}{along}"
    )
    return tensor_method(name)(method)


def _two(
    name: str, indices: Index | None = None, updates: Source | None = None
) -> tuple[Index, Source]:
    if indices is None or updates is None:
        raise ArgumentError(f"{name}: wanted indices and updates")
    return indices, updates


def _add_along(self: Tensor, dim: int, index: Index, src: Source) -> Tensor:
    return scatter_along("scatter_add", self, dim, index, src, "add")


for _mode in ("add", "sub", "mul", "div", "max", "min"):
    globals()[f"_tensor_method_scatter_{_mode}"] = _method(_mode)


@op(primitive="ScatterNd")
def scatter_nd(indices: Tensor, updates: Tensor, shape: Sequence[int]):
    """Return zeros with updates added to the slices at rows of indices
    (`mindspore.ops.scatter_nd`).

    Args:
        indices: integer Tensor; its last axis has one index for each leading axis of the result
            that is indexed.
        updates: Tensor of shape indices.shape[:-1] + shape[indices.shape[-1]:].
        shape: shape of the result.

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
