"""vmap: a function of single items applied to a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, ArgumentValueError
from ..ops.joining import stack
from ..tensor import Tensor

__all__ = ["vmap"]


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Map a function over an axis of its arguments (`mindspore.vmap`).

    The function runs once per item and the results are stacked, so it may be any Python code, side
    effects happen once per item, and gradients flow through; it costs as much as the loop.

    Args:
        fn: function or Cell of Tensors returning a Tensor or a tuple of them.
        in_axes: axis to map over: an int for all arguments, or a tuple with an int or None (not
        mapped) for each.
        out_axes: where the mapped axis goes in the results, likewise.

    Raises:
        ValueError: the mapped axes have different lengths, nothing is mapped, or an axis does not
        exist.

    Examples:
        >>> import duograph as ms
        >>> dot = lambda x, y: (x * y).sum()
        >>> print(ms.vmap(dot)(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), ms.Tensor([[1.0, 1.0], [2.0, 2.0]])))
        [ 3. 14.]
    """
    if not callable(fn):
        raise ArgumentError(f"vmap: got {type(fn).__name__}; wanted a function or a Cell")

    def run(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ArgumentValueError(
                f"vmap: got {len(args)} arguments and in_axes={in_axes!r}; wanted one axis each"
            )
        sizes = {}
        for i, (x, axis) in enumerate(zip(args, axes, strict=True)):
            for t, a in _leaves(x, axis):
                if not -t.ndim <= a < t.ndim:
                    raise ArgumentValueError(
                        f"vmap: argument {i} has shape {t.shape} and no axis {a}"
                    )
                sizes[i] = t.shape[a]
        if not sizes:
            raise ArgumentValueError("vmap: got no argument to map over; wanted an axis in in_axes")
        if len(set(sizes.values())) > 1:
            raise ArgumentValueError(f"vmap: got mapped axes of lengths {sizes}; wanted one length")
        (count,) = set(sizes.values())
        if count == 0:
            raise ArgumentValueError(
                "vmap: got a mapped axis of length 0; wanted at least one item"
            )
        results = [
            fn(*[_item(x, axis, k) for x, axis in zip(args, axes, strict=True)])
            for k in range(count)
        ]
        return _stacked(results, out_axes)

    return run


def _leaves(value: Any, axis: Any) -> list[tuple[Tensor, int]]:
    if axis is None:
        return []
    if isinstance(value, (tuple, list)):
        inner = axis if isinstance(axis, (tuple, list)) else (axis,) * len(value)
        return [pair for v, a in zip(value, inner, strict=True) for pair in _leaves(v, a)]
    if isinstance(value, Tensor):
        return [(value, int(axis))]
    raise ArgumentError(
        f"vmap: got {type(value).__name__} for a mapped argument; wanted a Tensor, or None as its axis"
    )


def _item(value: Any, axis: Any, k: int) -> Any:
    if axis is None:
        return value
    if isinstance(value, (tuple, list)):
        inner = axis if isinstance(axis, (tuple, list)) else (axis,) * len(value)
        return type(value)(_item(v, a, k) for v, a in zip(value, inner, strict=True))
    index = (slice(None),) * (axis % value.ndim) + (k,)
    return value[index]


def _stacked(results: list[Any], axis: Any) -> Any:
    first = results[0]
    if isinstance(first, (tuple, list)):
        inner = axis if isinstance(axis, (tuple, list)) else (axis,) * len(first)
        return tuple(_stacked([r[i] for r in results], a) for i, a in enumerate(inner))
    if axis is None:
        return first
    return stack([r if isinstance(r, Tensor) else Tensor(r) for r in results], axis)
