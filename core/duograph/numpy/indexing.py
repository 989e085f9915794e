"""Functions of `duograph.numpy` that choose elements by conditions or indices.

Users call them as `duograph.numpy.NAME`. Indices outside an axis are clipped or wrapped before an
op sees them, as the argument `mode` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast, overload

from .. import ops as _ops
from ..dtype import float32, int32, int64
from ..errors import ArgumentValueError
from ..host_arrays import shape_tuple
from ..tensor import Tensor
from .operands import Ints, TensorLike, as_indices, axis_of, pair, promoted, tensor_of
from .shapes import broadcast_all

__all__ = [
    "argwhere", "choose", "piecewise", "ravel_multi_index", "searchsorted", "select", "take",
    "take_along_axis", "unravel_index", "where",
]  # fmt: skip


if TYPE_CHECKING:

    @overload
    def where(condition: TensorLike) -> tuple[Tensor, ...]: ...

    @overload
    def where(condition: TensorLike, x: TensorLike, y: TensorLike) -> Tensor: ...


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Return `x` where a condition holds, else `y`; without both, the indices of true elements.

    Args:
        condition: array-like of bools.
        x: array-like that broadcasts with the condition.
        y: array-like that broadcasts with both.

    Returns:
        Tensor; without `x` and `y` a tuple of int64 Tensors, one for each axis.

    Raises:
        ValueError: only one of `x` and `y` is given.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.where([True, False], [1, 2], 7))
        [1 7]
    """
    chosen = tensor_of(condition)
    if x is None or y is None:
        if x is not y:
            raise ArgumentValueError("where: got one of x and y; wanted both or none")
        return tuple(_ops.nonzero(chosen, as_tuple=True))
    return _ops.where(chosen.astype("bool_"), *pair("where", x, y))


def argwhere(a: TensorLike) -> Tensor:
    """Return the indices of the elements that are not 0.

    Args:
        a: array-like.

    Returns:
        int64 Tensor with a row for each element found and a column for each axis.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.argwhere([[1, 0], [0, 2]]))
        [[0 0]
         [1 1]]
    """
    return _ops.argwhere(tensor_of(a))


def _within(name: str, indices: TensorLike, size: int, mode: str) -> Tensor:
    """Return indices clipped or wrapped to an axis of `size` elements, as `mode` says.

    With "raise" they are unchanged, and the op that uses them checks them.
    """
    index = as_indices(indices)
    if mode == "clip":
        return _ops.clamp(index, 0, size - 1)
    if mode == "wrap":
        return _ops.floor_mod(index, size)
    if mode == "raise":
        return index
    raise ArgumentValueError(f"{name}: got mode={mode!r}; wanted 'clip', 'wrap' or 'raise'")


def take(a: TensorLike, indices: TensorLike, axis: int | None = None, mode: str = "clip") -> Tensor:
    """Return the elements, or slices along an axis, at given indices.

    Args:
        a: array-like.
        indices: array-like of ints.
        axis: the axis; None takes from the flattened elements.
        mode: what happens to indices outside: ``"clip"`` takes the nearest, ``"wrap"`` counts on
            from the other end, ``"raise"`` raises and counts negative ones from the end.

    Returns:
        Tensor in which the axes of `indices` replace the axis.

    Raises:
        ValueError: the axis is out of range, or another mode.
        IndexError: an index is out of range and `mode` is ``"raise"``.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.take([4, 3, 5], [0, 2, 9]))
        [4 5 5]
    """
    x = tensor_of(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    own_axis = axis_of("take", axis, x.ndim)
    return _ops.gather(x, _within("take", indices, x.shape[own_axis], mode), own_axis)


def take_along_axis(arr: TensorLike, indices: TensorLike, axis: int | None) -> Tensor:
    """Return elements along an axis; every 1-D slice has its own indices.

    Args:
        arr: array-like.
        indices: array-like of ints with as many axes; the others broadcast with those of `arr`.
        axis: the axis; None takes from the flattened elements.

    Returns:
        Tensor.

    Raises:
        ValueError: the numbers of axes differ.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.take_along_axis([[1, 2], [3, 4]], [[1], [0]], 1))
        [[2]
         [3]]
    """
    x, index = tensor_of(arr), as_indices(indices)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if x.ndim != index.ndim:
        raise ArgumentValueError(
            f"take_along_axis: got {x.ndim} and {index.ndim} axes; wanted as many in both"
        )
    own_axis = axis_of("take_along_axis", axis, x.ndim)
    shapes = [
        max(n, m) if k != own_axis else 1
        for k, (n, m) in enumerate(zip(x.shape, index.shape, strict=True))
    ]
    shapes[own_axis] = index.shape[own_axis]
    index = _ops.broadcast_to(index, tuple(shapes))
    shapes[own_axis] = x.shape[own_axis]
    return _ops.gather_elements(_ops.broadcast_to(x, tuple(shapes)), own_axis, index)


def choose(a: TensorLike, choices: Sequence[TensorLike] | Tensor, mode: str = "clip") -> Tensor:
    """Return, for each element, the element of the choice with that number.

    Args:
        a: array-like of ints.
        choices: array-likes that broadcast with `a`.
        mode: what happens to numbers without a choice: ``"clip"``, ``"wrap"`` or ``"raise"``.

    Returns:
        Tensor.

    Raises:
        ValueError: there is no choice, or another mode.
        IndexError: there is no such choice and `mode` is ``"raise"``.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.choose([1, 0], [[1, 2], [3, 4]]))
        [3 2]
    """
    options = promoted([tensor_of(c) for c in choices])
    if not options:
        raise ArgumentValueError("choose: got no choice; wanted at least one")
    index, *options = broadcast_all([_within("choose", a, len(options), mode), *options])
    table = _ops.stack(options, 0)
    return _ops.gather_elements(table, 0, _ops.expand_dims(index, 0))[0]


def select(
    condlist: Sequence[TensorLike] | Tensor,
    choicelist: Sequence[TensorLike] | Tensor,
    default: TensorLike = 0,
) -> Tensor:
    """Return, for each element, the element of the choice whose condition is the first that holds.

    Args:
        condlist: array-likes of bools.
        choicelist: as many array-likes.
        default: the element where no condition holds.

    Returns:
        Tensor.

    Raises:
        ValueError: the lists are empty, or their lengths differ.

    Examples:
        >>> import duograph.numpy as mnp
        >>> x = mnp.arange(4)
        >>> print(mnp.select([x < 1, x > 2], [x, x * 10], 7))
        [ 0  7  7 30]
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices) or not choices:
        raise ArgumentValueError(
            f"select: got {len(conditions)} conditions and {len(choices)} choices; "
            f"wanted as many, at least one"
        )
    out: TensorLike = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = where(condition, choice, out)
    made: Tensor = cast("Tensor", out)
    return made


def piecewise(
    x: TensorLike,
    condlist: Sequence[TensorLike] | Tensor,
    funclist: Sequence[Callable[..., TensorLike] | float],
    *args: object,
    **kw: object,
) -> Tensor:
    """Return, for each element, the value of the function whose condition is the last that holds.

    Every function is called with all of `x`.

    Args:
        x: array-like.
        condlist: array-likes of bools, of the shape of `x`.
        funclist: functions of a Tensor, or numbers. If there is one more than conditions, the last
            is used where no condition holds.
        args: more arguments of the functions.
        kw: keyword arguments of the functions.

    Returns:
        Tensor; 0 where nothing is given.

    Raises:
        ValueError: the lengths do not fit.

    Examples:
        >>> import duograph.numpy as mnp
        >>> x = mnp.array([-2.0, 3.0])
        >>> print(mnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 10]))
        [ 2. 30.]
    """
    t = tensor_of(x)
    conditions = [tensor_of(c) for c in condlist]
    if conditions and all(c.ndim == 0 for c in conditions) and t.ndim:
        conditions = [_ops.stack(conditions)]
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ArgumentValueError(
            f"piecewise: got {len(functions)} functions for {len(conditions)} conditions; "
            f"wanted as many, or one more"
        )
    values = [f(t, *args, **kw) if callable(f) else f for f in functions]
    out: TensorLike = values[-1] if len(values) > len(conditions) else 0
    for condition, value in zip(conditions, values, strict=False):
        out = where(condition, value, out)
    return _ops.broadcast_to(tensor_of(out), t.shape)


def searchsorted(
    a: TensorLike, v: TensorLike, side: str = "left", sorter: TensorLike | None = None
) -> Tensor:
    """Return the indices at which elements would have to be inserted into a sorted vector.

    Args:
        a: array-like of one axis, in rising order.
        v: array-like of elements.
        side: ``"left"`` for the first index that keeps the order, ``"right"`` for the last.
        sorter: array-like of the indices that sort `a`, if it is not sorted.

    Returns:
        int32 Tensor of the shape of `v`.

    Raises:
        ValueError: another `side`, or `a` is no vector.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.searchsorted([1, 2, 3], [0, 2, 9]))
        [0 1 3]
    """
    if side not in ("left", "right"):
        raise ArgumentValueError(f"searchsorted: got side={side!r}; wanted 'left' or 'right'")
    line, x = pair("searchsorted", a, v)
    if line.ndim != 1:
        raise ArgumentValueError(f"searchsorted: got shape {line.shape} for a; wanted a vector")
    if sorter is not None:
        line = _ops.gather(line, as_indices(sorter), 0)
    return _ops.searchsorted(line, x, side=side).astype(int32)


# ---- positions ----------------------------------------------------------------------------------


def _steps(name: str, dims: tuple[int, ...], order: str) -> list[int]:
    """Return, for each axis of a shape, the distance between neighbours in the flattened array.

    `order` is "C" or "F".
    """
    if order not in ("C", "F"):
        raise ArgumentValueError(f"{name}: got order={order!r}; wanted 'C' or 'F'")
    places = range(len(dims))
    inner = [dims[k + 1 :] if order == "C" else dims[:k] for k in places]
    return [math.prod(sizes) for sizes in inner]


def unravel_index(indices: TensorLike, shape: Ints, order: str = "C") -> tuple[Tensor, ...]:
    """Convert positions in the flattened elements to indices along each axis.

    Args:
        indices: array-like of positions; those outside are clipped, negative ones count from the
            end.
        shape: shape of the tensor.
        order: ``"C"`` if the last axis runs fastest, ``"F"`` if the first does.

    Returns:
        Tuple of int32 Tensors, one for each axis.

    Raises:
        ValueError: another `order`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> rows, columns = mnp.unravel_index([0, 5], (2, 3))
        >>> print(rows, columns)
        [0 1] [0 2]
    """
    dims = shape_tuple(shape)
    count = math.prod(dims)
    index = as_indices(indices)
    index = _ops.where(_ops.less(index, 0), index + count, index)
    index = _ops.clamp(index, 0, count - 1)
    return tuple(
        _ops.floor_mod(_ops.floor_div(index, step), size).astype(int32)
        for step, size in zip(_steps("unravel_index", dims, order), dims, strict=True)
    )


def ravel_multi_index(
    multi_index: Sequence[TensorLike] | Tensor, dims: Ints, mode: str = "clip", order: str = "C"
) -> Tensor:
    """Convert indices along each axis to positions in the flattened elements.

    Args:
        multi_index: array-likes of ints, one for each axis.
        dims: shape of the tensor.
        mode: what happens to indices outside: ``"clip"`` or ``"wrap"``.
        order: ``"C"`` if the last axis runs fastest, ``"F"`` if the first does.

    Returns:
        float32 Tensor, or int64 if the tensor has more elements than float32 can count.

    Raises:
        ValueError: another `mode` or `order`, or another number of axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.ravel_multi_index([[0, 1], [0, 2]], (2, 3)))
        [0. 5.]
    """
    sizes = shape_tuple(dims)
    parts = list(multi_index)
    if mode not in ("clip", "wrap") or len(parts) != len(sizes):
        raise ArgumentValueError(
            f"ravel_multi_index: got mode={mode!r} and {len(parts)} indices for {len(sizes)} axes; "
            f"wanted 'clip' or 'wrap', and one for each axis"
        )
    out = tensor_of(0).astype(int64)
    for part, size, step in zip(
        parts, sizes, _steps("ravel_multi_index", sizes, order), strict=True
    ):
        out = out + _within("ravel_multi_index", part, size, mode) * step
    return out.astype(float32) if math.prod(sizes) <= 2**24 else out
