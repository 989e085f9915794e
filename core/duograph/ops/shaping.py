"""Functions that change shape or axis order: reshape, permute, squeeze, flatten, transpose.

Users and other op families call them. They copy no data where the result can use the same buffer.
They must check the shapes of users, since the primitives expect valid ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..call_cache import cached_call
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..tensor import Tensor
from ..types import size_of
from .arguments import ints_of
from .axes import axes_of, axis_of
from .methods import tensor_method, tensor_property
from .movement import identity, pad_by, reshape, slice_axis
from .pointwise import conj
from .primitive import primitive
from .shape_primitives import reshape_to, transpose_by

__all__ = [
    "transpose", "permute", "swapaxes", "swapdims", "moveaxis", "movedim", "t", "expand_dims",
    "unsqueeze", "squeeze", "flatten", "ravel", "view_as", "atleast_1d", "atleast_2d", "atleast_3d",
    "adjoint",
]  # fmt: skip


def one_tuple(name: str, what: str, args: Sequence[object]) -> tuple[int, ...]:
    """Return ints that were passed one by one or as one sequence: ``f(2, 3)`` or ``f((2, 3))``.

    `args` are the positional arguments of the user's function `name`; `what` names them in errors.
    """
    if len(args) == 1:
        return ints_of(name, what, args[0])
    return ints_of(name, what, tuple(args))


# ---- reshape -------------------------------------------------------------------------------------


@tensor_method("copy")
def _tensor_copy(self: Tensor) -> Tensor:
    """Return a copy of the tensor in a new buffer; gradients flow through it."""
    return transpose_by(self, tuple(range(len(self._type.shape))))


@tensor_method("reshape_as", "view_as")
@cached_call
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshape `input` to the shape of `other` (`mindspore.ops.view_as`).

    Raises:
        ValueError: the sizes differ.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.view_as(ms.Tensor([1, 2, 3, 4]), ms.Tensor([[0, 0], [0, 0]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [3, 4]])
    """
    return reshape(input, other.shape)


@tensor_method("resize")
def _tensor_resize(self: Tensor, *new_shape: int | Sequence[int]) -> Tensor:
    """Return the elements in row-major order in another shape, truncated or padded with zeros.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1, 2, 3]).resize(2, 2)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [3, 0]])
    """
    shape = one_tuple("resize", "new_shape", new_shape)
    if any([n < 0 for n in shape]):
        raise ArgumentValueError(f"resize: got new_shape={shape}; wanted sizes, none negative")
    flat = reshape_to(self, (self.size,))
    size = size_of(shape)
    if size < self.size:
        flat = slice_axis(flat, 0, 0, size)
    elif size > self.size:
        flat = pad_by(flat, (0,), (size - self.size,), 0)
    return reshape_to(flat, shape)


@tensor_method("expand_dims", "unsqueeze")
def _tensor_expand_dims(self: Tensor, axis: Any = None, *, dim: Any = None) -> Tensor:
    """Insert an axis of size 1 at `axis`; see `ops.expand_dims`.

    `dim` is another name of `axis`.
    """
    return expand_dims(self, dim if axis is None else axis)


@primitive("ExpandDims")
@cached_call
def expand_dims(input_x: Tensor, axis: int) -> Tensor:
    """Insert an axis of size 1 as number `axis` of the result (`mindspore.ops.expand_dims`).

    Args:
        input_x: Tensor of any shape.
        axis: int in [-ndim - 1, ndim].

    Raises:
        ValueError: `axis` is out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.expand_dims(ms.Tensor([1, 2]), -1).shape
        (2, 1)
    """
    shape = input_x.shape
    at = axis_of("expand_dims", axis, len(shape) + 1)
    return reshape_to(input_x, shape[:at] + (1,) + shape[at:])


@cached_call
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert an axis of size 1 as number `dim` of the result (`mindspore.ops.unsqueeze`).

    Raises:
        ValueError: `dim` is out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.unsqueeze(ms.Tensor([1, 2]), 0).shape
        (1, 2)
    """
    return expand_dims(input, dim)


@tensor_method("squeeze")
def _tensor_squeeze(
    self: Tensor, *axis: Any, dim: int | Sequence[int] | None = None, **other: int | Sequence[int]
) -> Tensor:
    """Remove all axes of size 1, or only the given ones. See `ops.squeeze`.

    The axes are positional arguments, or one keyword argument `axis` or `dim`.
    """
    if other:
        axis = (other.pop("axis"),) if set(other) == {"axis"} else axis
    if other:
        raise ArgumentError(f"squeeze: got the unknown argument {next(iter(other))!r}")
    if not axis:
        return squeeze(self, dim)
    return squeeze(self, axis[0] if len(axis) == 1 else axis)


@cached_call
def squeeze(input: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Remove the axes of size 1 (`mindspore.ops.squeeze`).

    Args:
        input: Tensor of any shape.
        axis: int or tuple of ints: the axes to remove if their size is 1; None or () means all.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.squeeze(ms.ops.ones((1, 2, 1))).shape
        (2,)
        >>> ms.ops.squeeze(ms.ops.ones((1, 2, 1)), 0).shape
        (2, 1)
    """
    shape = input.shape
    axes = axes_of("squeeze", axis, len(shape))
    kept = tuple(n for i, n in enumerate(shape) if n != 1 or i not in axes)
    return reshape_to(input, kept)


@cached_call
def flatten(input: Tensor, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Merge the axes from `start_dim` to `end_dim` into one (`mindspore.ops.flatten`).

    Args:
        input: Tensor of any shape; a 0-d one gives shape (1,).
        order: ``"C"`` row-major, ``"F"`` with the axes reversed first.
        start_dim, end_dim: the first and the last axis that are merged.

    Raises:
        ValueError: an axis out of range, start after end, or another order.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.flatten(ms.ops.ones((2, 3, 4))).shape
        (2, 12)
    """
    if order not in ("C", "F"):
        raise ArgumentValueError(f"flatten: got order={order!r}; wanted 'C' or 'F'")
    shape = input.shape
    if not shape:
        return reshape_to(input, (1,))
    if order == "F":
        input = _reversed(input)
        shape = input.shape
    if len(shape) == 1 and start_dim in (1, -1):
        return input
    first = axis_of("flatten", start_dim, len(shape))
    last = axis_of("flatten", end_dim, len(shape))
    if first > last:
        raise ArgumentValueError(
            f"flatten: got start_dim={start_dim} after end_dim={end_dim} for shape {shape}"
        )
    merged = size_of(shape[first : last + 1])
    return reshape_to(input, shape[:first] + (merged,) + shape[last + 1 :])


@tensor_method("ravel")
@cached_call
def ravel(input: Tensor) -> Tensor:
    """Flatten to one axis, in row-major order (`mindspore.ops.ravel`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.ravel(ms.Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[4], dtype=Int64, value= [1, 2, 3, 4])
    """
    return reshape_to(input, (input.size,))


def _atleast(
    name: str, inputs: object, grow: Callable[[tuple[int, ...]], tuple[int, ...]]
) -> Tensor | tuple[Tensor, ...]:
    if isinstance(inputs, (tuple, list)):
        return tuple(reshape(_as_tensor(x), grow(_as_tensor(x).shape)) for x in inputs)
    if not isinstance(inputs, Tensor):
        raise ArgumentError(f"{name}: got {type(inputs).__name__}; wanted a Tensor or several")
    return reshape(inputs, grow(inputs.shape))


def _as_tensor(x: object) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)


def atleast_1d(inputs: Tensor | Sequence[Tensor]) -> Any:
    """Add axes of size 1 so that each tensor has at least one axis (`mindspore.ops.atleast_1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.atleast_1d(ms.Tensor(1)).shape
        (1,)
    """
    return _atleast("atleast_1d", inputs, lambda s: s or (1,))


def atleast_2d(inputs: Tensor | Sequence[Tensor]) -> Any:
    """Add axes of size 1 so that each tensor has at least two axes (`mindspore.ops.atleast_2d`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.atleast_2d(ms.Tensor([1, 2])).shape
        (1, 2)
    """
    return _atleast("atleast_2d", inputs, lambda s: (1,) * (2 - len(s)) + s)


def atleast_3d(inputs: Tensor | Sequence[Tensor]) -> Any:
    """Add axes of size 1 so that each tensor has at least three axes (`mindspore.ops.atleast_3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.atleast_3d(ms.Tensor([1, 2])).shape
        (1, 2, 1)
    """

    def grow(s: tuple[int, ...]) -> tuple[int, ...]:
        return {0: (1, 1, 1), 1: (1, *s, 1), 2: (*s, 1)}.get(len(s), s)

    return _atleast("atleast_3d", inputs, grow)


# ---- permute -------------------------------------------------------------------------------------


@primitive("Transpose", "TransposeView", op="transpose")
@cached_call
def transpose(
    input: Tensor,
    dims: int | Sequence[int] | None = None,
    input_perm: int | Sequence[int] | None = None,
) -> Tensor:
    """Permute the axes (`mindspore.ops.transpose`).

    Args:
        input: Tensor of any shape.
        dims: tuple of ints: axis i of the result is axis dims[i] of `input`; None reverses the
            order of all axes.
        input_perm: the older name of `dims`.

    Raises:
        ValueError: `dims` is not a permutation of the axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.transpose(ms.ops.ones((2, 3, 4)), (0, 2, 1)).shape
        (2, 4, 3)
    """
    if dims is None:
        dims = input_perm
    if dims is None:
        return _reversed(input)
    return _permuted("transpose", input, ints_of("transpose", "dims", dims))


def _permuted(name: str, input: Tensor, perm: tuple[int, ...]) -> Tensor:
    ndim = len(input.shape)
    found = _normal_perm(ndim, perm)
    if found is None:
        raise ArgumentValueError(
            f"{name}: got axes {perm} for shape {input.shape}; wanted each of its {ndim} axes once"
        )
    return identity(input) if found == _IN_ORDER[ndim] else transpose_by(input, found)


class _Orders(dict[int, tuple[int, ...]]):
    def __missing__(self, ndim: int) -> tuple[int, ...]:
        self[ndim] = tuple(range(ndim))
        return self[ndim]


_IN_ORDER = _Orders()


@functools.lru_cache(1024)
def _normal_perm(ndim: int, perm: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return an axis permutation with negative axes made non-negative.

    Returns None if `perm` is not a permutation of `ndim` axes.
    """
    found = tuple([p + ndim if p < 0 else p for p in perm])
    return found if sorted(found) == list(range(ndim)) else None


def _reversed(input: Tensor) -> Tensor:
    ndim = len(input.shape)
    return transpose_by(input, _IN_ORDER[ndim][::-1]) if ndim > 1 else input


@tensor_method("transpose")
def _tensor_transpose(
    self: Tensor, *axes: Any, dim0: int | None = None, dim1: int | None = None, **other: object
) -> Tensor:
    """Permute the axes: reverse all (no argument), swap two (two ints), or reorder all.

    The new order of all axes is given one by one or as a tuple. Two ints swap those two axes, also
    of a 2-D tensor: ``x.transpose(0, 1)`` is ``x.T`` there. The keyword arguments are `axes` (a
    tuple of all axes), or `dim0` and `dim1` (the two axes to swap).
    """
    if other:
        if set(other) != {"axes"} or axes:
            raise ArgumentError(f"transpose: got the unknown argument {next(iter(other))!r}")
        axes = (other["axes"],)
    if dim0 is not None or dim1 is not None:
        axes = (*axes, *[d for d in (dim0, dim1) if d is not None])
    if not axes:
        return _reversed(self)
    if len(axes) == 1:
        if axes[0] is None:
            return _reversed(self)
        return _permuted("transpose", self, ints_of("transpose", "axes", axes[0]))
    if len(axes) == 2:
        return swapaxes(self, axes[0], axes[1])
    return _permuted("transpose", self, ints_of("transpose", "axes", axes))


@cached_call
def permute(input: Tensor, axis: int | Sequence[int]) -> Tensor:
    """Permute the axes (`mindspore.ops.permute`).

    Args:
        input: Tensor of any shape.
        axis: tuple of ints: axis i of the result is axis axis[i] of `input`.

    Raises:
        ValueError: `axis` is not a permutation of the axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.permute(ms.ops.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    return _permuted("permute", input, ints_of("permute", "axis", axis))


def _plain_axis(axis: object) -> Any:
    """Return an axis; True and False are 1 and 0, as in MindSpore's functions written in Python."""
    if isinstance(axis, (tuple, list)):
        return [_plain_axis(a) for a in axis]
    return int(axis) if isinstance(axis, bool) else axis


@tensor_method("swapaxes")
@cached_call
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Swap two axes (`mindspore.ops.swapaxes`).

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.swapaxes(ms.ops.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    ndim = len(input.shape)
    a = axis_of("swapaxes", _plain_axis(axis0), ndim)
    b = axis_of("swapaxes", _plain_axis(axis1), ndim)
    return input if a == b else transpose_by(input, _swapped(ndim, a, b))


@functools.lru_cache(1024)
def _swapped(ndim: int, a: int, b: int) -> tuple[int, ...]:
    perm = list(range(ndim))
    perm[a], perm[b] = b, a
    return tuple(perm)


@tensor_method("swapdims")
@cached_call
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two axes (`mindspore.ops.swapdims`).

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.swapdims(ms.ops.ones((2, 3)), 0, 1).shape
        (3, 2)
    """
    return swapaxes(input, dim0, dim1)


@tensor_method("moveaxis", "movedim")
@cached_call
def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move axes to new positions; the others keep their order (`mindspore.ops.moveaxis`).

    Args:
        x: Tensor of any shape.
        source, destination: int, or tuples of as many ints.

    Raises:
        ValueError: an axis out of range or twice, or another number of sources than destinations.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.moveaxis(ms.ops.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    ndim = len(x.shape)
    first, last = _plain_axis(source), _plain_axis(destination)
    origins = [axis_of("moveaxis", a, ndim) for a in ints_of("moveaxis", "source", first)]
    goals = [axis_of("moveaxis", a, ndim) for a in ints_of("moveaxis", "destination", last)]
    if (
        len(origins) != len(goals)
        or len(set(origins)) != len(origins)
        or len(set(goals)) != len(goals)
    ):
        raise ArgumentValueError(
            f"moveaxis: got source={source} and destination={destination}; wanted as many of both, "
            f"each once"
        )
    perm = [i for i in range(ndim) if i not in origins]
    for goal, origin in sorted(zip(goals, origins, strict=True)):
        perm.insert(goal, origin)
    return _permuted("moveaxis", x, tuple(perm))


@cached_call
def movedim(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Another name of `moveaxis` (`mindspore.ops.movedim`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.movedim(ms.ops.ones((2, 3, 4)), 0, 1).shape
        (3, 2, 4)
    """
    return moveaxis(x, source, destination)


@tensor_method("t")
@cached_call
def t(input: Tensor) -> Tensor:
    """Transpose a matrix; a tensor of fewer axes is returned unchanged (`mindspore.ops.t`).

    Raises:
        ValueError: more than two axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.t(ms.ops.ones((2, 3))).shape
        (3, 2)
    """
    if len(input.shape) > 2:
        raise ShapeError(f"t: got shape {input.shape}; wanted at most two axes")
    return _reversed(input)


@tensor_property("T")
def _tensor_T(self: Tensor) -> Tensor:
    """Return the tensor with all axes in reverse order."""
    return _reversed(self)


@tensor_property("mT")
def _tensor_mT(self: Tensor) -> Tensor:
    """Return the tensor with its last two axes swapped."""
    if len(self.shape) < 2:
        raise ShapeError(f"mT: got shape {self.shape}; wanted at least two axes")
    return swapaxes(self, -1, -2)


@tensor_property("mH")
def _tensor_mH(self: Tensor) -> Tensor:
    """Return the conjugate transpose of the last two axes."""
    return adjoint(self)


@tensor_property("H")
def _tensor_H(self: Tensor) -> Tensor:
    """Return the conjugate transpose of a matrix."""
    if len(self.shape) not in (0, 2):
        raise ShapeError(f"H: got shape {self.shape}; wanted a matrix")
    return adjoint(self) if self.shape else self


@tensor_method("adjoint")
@cached_call
def adjoint(x: Tensor) -> Tensor:
    """Swap the last two axes and conjugate complex elements (`mindspore.ops.adjoint`).

    Raises:
        ValueError: fewer than two axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.adjoint(ms.ops.ones((2, 3))).shape
        (3, 2)
    """
    swapped = _tensor_mT(x)
    return conj(swapped) if x.dtype.is_complex else swapped
