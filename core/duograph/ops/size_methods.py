"""Tensor methods that take sizes or axes one by one, as one sequence, or by name.

Users call them; `methods.install` puts them on Tensor. The functions of `shaping`, `repeating` and
`creation_functions` do the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..call_cache import cached_call
from ..dtype import DTypeLike, as_dtype
from ..errors import ArgumentError
from ..tensor import Tensor
from .arguments import Scalar
from .creation_functions import (
    _on,
    _repeated,
    converted_number,
    new_full_by,
    number_and_dtype,
    sizes_of,
)
from .methods import tensor_method
from .movement import identity, reshape, stop_gradient
from .repeating import tile
from .shape_primitives import broadcast_to
from .shaping import flatten, one_tuple, permute

__all__: list[str] = []


def by_position(name: str, what: str, args: Sequence[Any], given: Any) -> tuple[Any, ...]:
    """Return the positional arguments of a method for the sizes `given` by the keyword `what`.

    Raises:
        ArgumentError: `args`, the positional arguments, have sizes too.
    """
    if args:
        raise ArgumentError(
            f"{name}: got {what}={given!r} beside {args}; wanted them once, by position or by name"
        )
    return (given,)


@tensor_method("reshape")
def _tensor_reshape(self: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """Reshape to sizes of which one may be -1, given one by one, as one sequence or as `shape`.

    See `ops.reshape`.
    """
    if shape is not None:
        sizes = by_position("reshape", "shape", sizes, shape)
    if len(sizes) == 1 and sizes[0].__class__ is not int:
        return reshape(self, sizes[0])
    return reshape(self, sizes)


@tensor_method("view")
def _tensor_view(
    self: Tensor, *sizes: Any, shape: Any = None, dtype: DTypeLike | None = None
) -> Tensor:
    """Reshape; or, given a dtype, reinterpret the bytes as elements of that dtype.

    The sizes are given as for `Tensor.reshape`.

    The gradient of a view as integers is zero by definition; a view as another dtype has no
    gradient.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1.0, 2.0]).view(ms.int32)
        Tensor(shape=[2], dtype=Int32, value= [1065353216, 1073741824])
    """
    if shape is not None:
        sizes = by_position("view", "shape", sizes, shape)
    if dtype is None and len(sizes) == 1 and not isinstance(sizes[0], (int, tuple, list, Tensor)):
        dtype = sizes[0]
    if dtype is None:
        return _tensor_reshape(self, *sizes)
    wanted = as_dtype(dtype)
    if wanted is self.dtype:
        return identity(self)
    source = stop_gradient(self) if wanted.kind in "biu" else self
    return Tensor(source.asnumpy().view(wanted.np))


@tensor_method("flatten")
@cached_call
def _tensor_flatten(
    self: Tensor,
    *args: Any,
    order: str | None = None,
    start_dim: int | None = None,
    end_dim: int | None = None,
) -> Tensor:
    """Merge the axes from `start_dim` to `end_dim`, by default all; see `ops.flatten`.

    The call forms are ``flatten(start_dim=0, end_dim=-1)`` and
    ``flatten(order="C", start_dim=0, end_dim=-1)``, by position or by name.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.ones((2, 3, 4)).flatten("C", start_dim=1).shape
        (2, 12)
    """
    given: dict[str, Any] = {"order": order, "start_dim": start_dim, "end_dim": end_dim}
    names = list(given) if args and isinstance(args[0], str) else ["start_dim", "end_dim"]
    if len(args) > len(names):
        raise ArgumentError(f"flatten: got {args}; wanted at most {', '.join(names)}")
    for name, value in zip(names, args):
        if value is None:
            raise ArgumentError(f"flatten: got None for {name!r}; wanted an int or a string")
        if given[name] is not None:
            raise ArgumentError(f"flatten: got {value!r} and {given[name]!r} for {name!r}")
        given[name] = value
    defaults: dict[str, Any] = {"order": "C", "start_dim": 0, "end_dim": -1}
    return flatten(self, **{n: defaults[n] if v is None else v for n, v in given.items()})


@tensor_method("permute")
@cached_call
def _tensor_permute(
    self: Tensor,
    *order: int | Sequence[int],
    dims: int | Sequence[int] | None = None,
    axis: int | Sequence[int] | None = None,
) -> Tensor:
    """Permute the axes, given one by one, as one sequence, as `dims` or as `axis`.

    Without an order, the axes are reversed. See `ops.permute`.
    """
    for what, given in (("dims", dims), ("axis", axis)):
        if given is not None:
            order = by_position("permute", what, order, given)
    if not order:
        return permute(self, tuple(range(len(self.shape)))[::-1])
    return permute(self, one_tuple("permute", "axis", order))


@tensor_method("tile")
def _tensor_tile(
    self: Tensor,
    *counts: int | Sequence[int],
    dims: int | Sequence[int] | None = None,
    reps: int | Sequence[int] | None = None,
) -> Tensor:
    """Repeat the whole tensor along each axis; see `ops.tile`.

    The counts are positional ints, one sequence, `dims` or, its older name, `reps`.
    """
    for what, given in (("dims", dims), ("reps", reps)):
        if given is not None:
            counts = by_position("tile", what, counts, given)
    return tile.public(self, one_tuple("tile", "dims", counts))


@tensor_method("broadcast_to", "expand")
def _tensor_broadcast_to(
    self: Tensor, *sizes: int | Sequence[int], shape: int | Sequence[int] | None = None
) -> Tensor:
    """Broadcast to a shape by NumPy's rules; a size of -1 keeps that of the axis.

    The sizes are given one by one, as one sequence or as `shape`. See `ops.broadcast_to`.
    """
    if shape is not None:
        sizes = by_position("broadcast_to", "shape", sizes, shape)
    return broadcast_to.public(self, one_tuple("broadcast_to", "shape", sizes))


def _filled(
    self: Tensor, name: str, shape: object, value: Scalar, dtype: DTypeLike | None
) -> Tensor:
    found = self.dtype if dtype is None else as_dtype(dtype)
    return new_full_by(self, sizes_of(name, shape), converted_number(value, found), found)


def _size_and_dtype(
    name: str,
    args: Sequence[Any],
    size: int | Sequence[int] | None,
    dtype: DTypeLike | None,
) -> tuple[tuple[int, ...], DTypeLike | None]:
    """Return sizes and dtype of the calls f(2, 3), f((2, 3)), f((2, 3), dtype) and f(size=...)."""
    if size is not None:
        args = by_position(name, "size", args, size)
    elif dtype is None and len(args) == 2 and isinstance(args[0], (tuple, list, Tensor)):
        args, dtype = args[:1], args[1]
    elif not args:
        raise ArgumentError(f"{name}: got no size; wanted an int or a tuple of ints")
    return one_tuple(name, "size", args), dtype


@tensor_method("new_zeros")
def _tensor_new_zeros(
    self: Tensor,
    *sizes: Any,
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return a tensor of zeros of shape `size`, in this tensor's dtype unless `dtype` is given.

    The sizes may also be given one by one; `dtype` may follow a sequence of sizes.
    """
    shape, dtype = _size_and_dtype("new_zeros", sizes, size, dtype)
    return _filled(self, "new_zeros", shape, 0, dtype)


@tensor_method("new_ones")
def _tensor_new_ones(
    self: Tensor,
    *sizes: Any,
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return a tensor of ones of shape `size`, in this tensor's dtype unless `dtype` is given.

    The sizes may also be given one by one; `dtype` may follow a sequence of sizes.
    """
    shape, dtype = _size_and_dtype("new_ones", sizes, size, dtype)
    return _filled(self, "new_ones", shape, 1, dtype)


@tensor_method("new_full")
def _tensor_new_full(
    self: Tensor,
    size: int | Sequence[int] | Tensor,
    fill_value: Tensor | Scalar,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return a tensor of shape `size` filled with `fill_value`.

    The dtype is that of this tensor unless `dtype` is given.
    """
    repeated = _repeated(fill_value, lambda: sizes_of("new_full", size), dtype or self.dtype)
    if repeated is not None:
        return repeated
    return _filled(self, "new_full", size, number_and_dtype("new_full", fill_value)[0], dtype)


@tensor_method("new_empty")
def _tensor_new_empty(
    self: Tensor,
    *sizes: Any,
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return a tensor of shape `size` whose values are unspecified (here, zeros).

    The sizes may also be given one by one. The dtype is that of this tensor, and the device is the
    default device, unless they are given.
    """
    shape, dtype = _size_and_dtype("new_empty", sizes, size, dtype)
    return _on(_filled(self, "new_empty", shape, 0, dtype), device)
