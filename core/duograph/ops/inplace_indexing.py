"""In-place writes by index: Tensor methods ending in ``_``, and functions that update a Parameter.

Users call them. A write must never change a buffer: it binds the Tensor to a new one, so that
values saved for a gradient remain valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError
from ..tensor import Tensor
from . import shaping
from .axis_scattering import index_fill, index_write, masked_scatter
from .creation import cast
from .creation_functions import as_index
from .diagonals import fill_diagonal
from .gather_scatter import scatter_add_by, scatter_set_by
from .indexing import with_item
from .inplace import write
from .methods import tensor_method
from .movement import reshape
from .primitive import primitive
from .scattering import reduction_of, scatter_along, scatter_nd_mode, scatter_rows
from .shape_primitives import reshape_to

__all__ = [
    "index_add", "inplace_index_add", "scatter_update", "scatter_add", "scatter_sub", "scatter_mul",
    "scatter_div", "scatter_max", "scatter_min", "scatter_nd_update", "scatter_nd_add",
    "scatter_nd_sub", "scatter_nd_mul", "scatter_nd_div", "scatter_nd_max", "scatter_nd_min",
]  # fmt: skip


def _along(given: int | None, dim: int | None) -> int:
    axis = given if dim is None else dim
    if axis is None:
        raise ArgumentError("index: got no axis; wanted one")
    return axis


# ---- along an axis ------------------------------------------------------------------------------


def index_add(
    x: Tensor,
    indices: object,
    y: Tensor,
    axis: int,
    use_lock: bool = True,
    check_index_bound: bool = True,
) -> Tensor:
    """Add slices to those at given indices of an axis, in place (`mindspore.ops.index_add`).

    Args:
        x: Parameter or Tensor that receives the result.
        indices: 1-d integer Tensor.
        y: Tensor of the shape of `x` with as many slices along `axis` as there are indices.
        axis: the axis that is indexed.

    Returns:
        `x` itself, or, if it is a Parameter, its new value as a Tensor.

    Raises:
        IndexError: an index out of range.
        ValueError: the shapes do not match, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Parameter(ms.ops.zeros((2, 2)), name="x")
        >>> ms.ops.index_add(x, ms.Tensor([1]), ms.Tensor([[3.0, 4.0]]), 0).asnumpy()
        array([[0., 0.],
               [3., 4.]], dtype=float32)
    """
    write(x, index_write("index_add", x, axis, indices, y, add=True), "index_add")
    return x._after_write()


@primitive("InplaceIndexAdd(axis)")
def inplace_index_add(var: Tensor, indices: object, updates: Tensor, axis: int) -> Tensor:
    """Another name of `index_add` (`mindspore.ops.inplace_index_add`).

    Examples:
        >>> import duograph as ms
        >>> x = ms.Parameter(ms.ops.zeros(3), name="x")
        >>> ms.ops.inplace_index_add(x, ms.Tensor([2]), ms.Tensor([4.0]), 0).asnumpy()
        array([0., 0., 4.], dtype=float32)
    """
    return index_add(var, indices, updates, axis)


@tensor_method("index_add")
def _tensor_index_add(
    self: Tensor, *args: object, alpha: int | float | Tensor = 1, **kwargs: object
) -> Tensor:
    """Return a copy with `source` added to the slices at given indices of an axis.

    The call forms are ``x.index_add(dim, index, source, alpha=1)`` and
    ``x.index_add(indices, y, axis)``. `alpha` multiplies the source.
    """
    axis, index, source = _index_add_arguments("index_add", args, kwargs)
    return index_write("index_add", self, axis, index, _scaled(source, alpha), add=True)


@tensor_method("index_add_")
def _tensor_index_add_(
    self: Tensor, *args: object, alpha: int | float | Tensor = 1, **kwargs: object
) -> Tensor:
    """Add `source` to the slices at given indices of an axis, in place; return the tensor.

    The call forms are those of `Tensor.index_add`. `alpha` multiplies the source.
    """
    axis, index, source = _index_add_arguments("index_add_", args, kwargs)
    made = index_write("index_add_", self, axis, index, _scaled(source, alpha), add=True)
    return write(self, made, "index_add_")


def _scaled(source: Tensor, alpha: int | float | Tensor) -> Tensor:
    return source if alpha == 1 else source * alpha


def _index_add_arguments(
    name: str, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[Any, Any, Any]:
    """Return (axis, index, source) from either call form of `index_add`.

    The forms are (dim, index, source) and (indices, y, axis), by position or by name.
    """
    kwargs.pop("use_lock", None)
    kwargs.pop("check_index_bound", None)
    names = {"dim": 0, "axis": 0, "index": 1, "indices": 1, "source": 2, "y": 2, "tensor": 2}
    found: list[object] = [None, None, None]
    for key, value in kwargs.items():
        if key not in names:
            raise ArgumentError(f"{name}: got the unknown argument {key!r}")
        found[names[key]] = value
    order = [1, 2, 0] if args and isinstance(args[0], Tensor) else [0, 1, 2]
    free = [k for k in order if found[k] is None]
    if len(args) > len(free):
        raise ArgumentError(
            f"{name}: got {len(args)} positional arguments; wanted at most {len(free)}"
        )
    for k, value in zip(free, args):
        found[k] = value
    if None in [f if f is None else 0 for f in found]:
        raise ArgumentError(f"{name}: wanted dim, index and source")
    return found[0], found[1], found[2]


@tensor_method("index_fill_")
def _tensor_index_fill_(
    self: Tensor,
    axis: int | None = None,
    index: object = None,
    value: object = None,
    *,
    dim: int | None = None,
) -> Tensor:
    """Set the slices at given indices of an axis to `value`, in place; return the tensor.

    `dim` is another name of `axis`.
    """
    return write(self, index_fill(self, _along(axis, dim), index, value), "index_fill_")


@tensor_method("index_copy_")
def _tensor_index_copy_(self: Tensor, dim: int, index: object, tensor: Tensor) -> Tensor:
    """Replace the slices at given indices of axis `dim` by those of `tensor`, in place.

    Returns the tensor that was changed.
    """
    return write(self, index_write("index_copy_", self, dim, index, tensor), "index_copy_")


@tensor_method("scatter_")
def _tensor_scatter_(
    self: Tensor,
    axis: int | None = None,
    index: object = None,
    src: object = None,
    *,
    dim: int | None = None,
    value: object = None,
    reduce: str | None = None,
) -> Tensor:
    """Write elements of `src` at indices along an axis, in place; return the tensor.

    `dim` is another name of `axis`, and `value` another name of `src`, for a number. With
    ``reduce="add"`` or ``reduce="multiply"``, the elements are added to, or multiplied with, those
    of the tensor. See `ops.scatter`.
    """
    mode = reduction_of("scatter_", reduce)
    source = value if src is None else src
    made = scatter_along("scatter_", self, _along(axis, dim), index, source, mode)
    return write(self, made, "scatter_")


@tensor_method("scatter_add_")
def _tensor_scatter_add_(self: Tensor, dim: int, index: object, src: object) -> Tensor:
    """Add elements of `src` at indices along axis `dim`, in place; return the tensor."""
    return write(self, scatter_along("scatter_add_", self, dim, index, src, "add"), "scatter_add_")


@tensor_method("masked_scatter_")
def _tensor_masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Replace the elements where `mask` is True by those of `source`, in order and in place.

    Returns the tensor. See `ops.masked_scatter`.
    """
    return write(self, masked_scatter(self, mask, source), "masked_scatter_")


@tensor_method("fill_diagonal_")
def _tensor_fill_diagonal_(self: Tensor, fill_value: object, wrap: bool = False) -> Tensor:
    """Set the main diagonal to one value, in place; returns the tensor.

    With `wrap`, the diagonal of a tall matrix starts again below its end.
    """
    return write(self, fill_diagonal.public(self, fill_value, wrap), "fill_diagonal_")


@tensor_method("index_put")
def _tensor_index_put(
    self: Tensor, indices: Sequence[object], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Return a copy after ``x[indices] = values`` or, with `accumulate`, ``x[indices] += values``.

    `indices` has an index tensor for each of the leading axes.
    """
    return with_item(self, tuple(indices), values, bool(accumulate))


@tensor_method("index_put_")
def _tensor_index_put_(
    self: Tensor, indices: Sequence[object], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Assign ``x[indices] = values``, or add with `accumulate`, in place; return the tensor."""
    return write(self, _tensor_index_put(self, indices, values, accumulate), "index_put_")


@tensor_method("put_")
def _tensor_put_(self: Tensor, index: object, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write values at indices of the flattened tensor, in place; returns the tensor.

    With `accumulate`, the values are added.
    """
    at = as_index(index)
    flat = reshape_to(self, (self.size,))
    new = reshape_to(cast(source, self.dtype), (at.size,))
    change = scatter_add_by if accumulate else scatter_set_by
    return write(
        self, reshape_to(change(flat, reshape_to(at, (at.size,)), new, 0), self.shape), "put_"
    )


@tensor_method("unsqueeze_")
def _tensor_unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Insert an axis of size 1 as axis `dim`, in place; returns the tensor."""
    self._rebind(shaping.expand_dims(self, dim))
    return self


@tensor_method("squeeze_")
def _tensor_squeeze_(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Remove those axes in `dim` that have size 1, in place; returns the tensor.

    If `dim` is None, all axes of size 1 are removed.
    """
    self._rebind(shaping.squeeze(self, dim))
    return self


@tensor_method("reshape_")
def _tensor_reshape_(self: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """Change the shape, in place; returns the tensor."""
    self._rebind(reshape(self, shaping.one_tuple("reshape_", "shape", shape)))
    return self


@tensor_method("transpose_")
def _tensor_transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes, in place; returns the tensor."""
    self._rebind(shaping.swapaxes(self, dim0, dim1))
    return self


# ---- functions that update a Parameter ----------------------------------------------------------

_WORDS = {
    "update": "Replace {} by `updates`",
    "add": "Add `updates` to {}",
    "sub": "Subtract `updates` from {}",
    "mul": "Multiply {} by `updates`",
    "div": "Divide {} by `updates`",
    "max": "Raise {} to `updates`, where these are larger",
    "min": "Lower {} to `updates`, where these are smaller",
}
_RESULTS = {
    "update": "[3. 6.]", "add": "[11.  6.]", "sub": "[1. 6.]", "mul": "[36.  6.]", "div": "[1. 6.]",
    "max": "[6. 6.]", "min": "[2. 6.]",
}  # fmt: skip


def _updater(mode: str, slices: bool) -> Callable[..., Tensor]:
    name = f"scatter_nd_{mode}" if slices else f"scatter_{mode}"
    change = scatter_nd_mode if slices else scatter_rows

    def function(
        input_x: Tensor, indices: object, updates: object, use_locking: bool = False
    ) -> Tensor:
        write(input_x, change(name, input_x, as_index(indices), updates, mode), name)
        return input_x._after_write()

    what = _WORDS[mode].format("the slices at `indices`" if slices else "the rows at `indices`")
    axes = (
        "integer Tensor; its last axis has one index for each leading axis of `input_x` that\n"
        "            is indexed."
        if slices
        else "integer Tensor of positions in axis 0."
    )
    several = (
        "if several have the same index, the last one is kept."
        if mode == "update"
        else "if several have the same index, all of them are applied."
    )
    shape = (
        "indices.shape[:-1] + input_x.shape[indices.shape[-1]:]"
        if slices
        else "indices.shape + input_x.shape[1:]"
    )
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{what}, in place
    (`mindspore.ops.{name}`).

    Args:
        input_x: Parameter or Tensor that is changed.
        indices: {axes}
        updates: Tensor of shape {shape};
            {several}
        use_locking: without effect.

    Returns:
        For a Parameter, its new value as a Tensor; for another Tensor, `input_x` itself.

    Raises:
        IndexError: an index is out of range.
        ValueError: the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Parameter(ms.Tensor([6.0, 6.0]), name="x")
        >>> at = ms.Tensor({"[[0], [0]]" if slices else "[0, 0]"})
        >>> print(ms.ops.{name}(x, at, ms.Tensor([2.0, 3.0])))
        {_RESULTS[mode]}
    """
    return function


scatter_update = _updater("update", False)
scatter_add = _updater("add", False)
scatter_sub = _updater("sub", False)
scatter_mul = _updater("mul", False)
scatter_div = _updater("div", False)
scatter_max = _updater("max", False)
scatter_min = _updater("min", False)
scatter_nd_update = _updater("update", True)
scatter_nd_add = _updater("add", True)
scatter_nd_sub = _updater("sub", True)
scatter_nd_mul = _updater("mul", True)
scatter_nd_div = _updater("div", True)
scatter_nd_max = _updater("max", True)
scatter_nd_min = _updater("min", True)
