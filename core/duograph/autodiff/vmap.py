"""vmap: applies a function of single items to every item of a batch.

The public function `vmap` calls the function once per item. It must not batch ops, because the
function may be any Python code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import ArgumentError, ArgumentValueError
from ..ops.joining import stack
from ..tensor import Tensor
from .pytrees import rebuilt

__all__ = ["vmap"]

Axes: TypeAlias = "int | Sequence[Axes] | None"  # of an argument; nested as the argument is


def vmap(fn: Callable[..., object], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """Map a function over an axis of its arguments (`mindspore.vmap`).

    The function is called once per item and the results are stacked. So it may be any Python code.
    Side effects happen once per item, gradients flow through it, and the cost is that of a loop.

    Args:
        fn: function or Cell of Tensors returning a Tensor or a tuple of them.
        in_axes: axis to map over: an int for all arguments, or a tuple with an int or None (not
        mapped) for each.
        out_axes: where the mapped axis goes in the results, likewise; None returns the result for
        the first item, without a mapped axis.

    Raises:
        ValueError: the mapped axes have different lengths, nothing is mapped, an axis does not
        exist, or a tuple of axes has another length than what it is for.

    Examples:
        >>> import duograph as ms
        >>> dot = lambda x, y: (x * y).sum()
        >>> x, y = ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), ms.Tensor([[1.0, 1.0], [2.0, 2.0]])
        >>> print(ms.vmap(dot)(x, y))
        [ 3. 14.]
    """
    if not callable(fn):
        raise ArgumentError(f"vmap: got {type(fn).__name__}; wanted a function or a Cell")

    def run(*args: object) -> object:
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ArgumentValueError(
                f"vmap: got {len(args)} arguments and in_axes={in_axes!r}; wanted one axis each"
            )
        sizes: list[tuple[int, int]] = []  # length of a mapped axis, and its argument
        for i, (x, axis) in enumerate(zip(args, axes, strict=True)):
            for t, a in _leaves(x, axis):
                if not -t.ndim <= a < t.ndim:
                    raise ArgumentValueError(
                        f"vmap: got in_axes {a} for argument {i} of shape {t.shape}; wanted "
                        + (f"{-t.ndim} to {t.ndim - 1}" if t.ndim else "None: it has no axis")
                    )
                sizes.append((t.shape[a], i))
        if not sizes:
            raise ArgumentValueError("vmap: got no argument to map over; wanted an axis in in_axes")
        lengths = {n for n, _ in sizes}
        if len(lengths) > 1:
            each = " and ".join(f"{n} for argument {i}" for n, i in sizes)
            raise ArgumentValueError(
                f"vmap: got mapped axes of lengths {each}; wanted one length, or None in in_axes "
                "for an argument that is the same in all calls"
            )
        (count,) = lengths
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


def _axes_of(axis: Axes, n: int, option: str) -> Sequence[Axes]:
    """Return one entry of the option `in_axes` or `out_axes` for each of `n` items of a sequence.

    An int or None is returned `n` times.

    Raises:
        ArgumentValueError: the option has a tuple of another length.
    """
    if not isinstance(axis, (tuple, list)):
        return (axis,) * n
    if len(axis) != n:
        what = "an argument" if option == "in_axes" else "a result"
        raise ArgumentValueError(
            f"vmap: got {option} {tuple(axis)} for {what} of {n} items; wanted one axis for each, "
            "or an int for all"
        )
    return axis


def _leaves(value: object, axis: Axes) -> list[tuple[Tensor, int]]:
    """Return (tensor, batch axis) for each batched tensor in an argument of vmap.

    `axis` is the argument's entry in `in_axes`.
    """
    if axis is None:
        return []
    if isinstance(value, (tuple, list)):
        pairs = zip(value, _axes_of(axis, len(value), "in_axes"), strict=True)
        return [pair for v, a in pairs for pair in _leaves(v, a)]
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)):
        raise ArgumentError(f"vmap: got {axis!r} in in_axes; wanted an int or None")
    if isinstance(value, Tensor):
        return [(value, int(axis))]
    raise ArgumentError(
        f"vmap: got {type(value).__name__} for a mapped argument; wanted a Tensor, or None as its "
        "axis"
    )


def _item(value: Any, axis: Axes, k: int) -> object:
    """Return an argument of vmap with only item `k` of the batch in each batched tensor.

    `axis` is the argument's entry in `in_axes`.
    """
    if axis is None:
        return value
    if isinstance(value, (tuple, list)):
        pairs = zip(value, _axes_of(axis, len(value), "in_axes"), strict=True)
        return rebuilt(value, [_item(v, a, k) for v, a in pairs])
    index = (slice(None),) * (axis % value.ndim) + (k,)
    return value[index]


def _stacked(results: list[Any], axis: Axes) -> object:
    """Stack the results for all items of a batch along the axes that `out_axes` requests.

    `axis` is the result's entry in `out_axes`. If it is None, the result for the first item is
    returned.
    """
    first = results[0]
    if isinstance(first, (tuple, list)):
        axes = enumerate(_axes_of(axis, len(first), "out_axes"))
        items = [_stacked([r[i] for r in results], a) for i, a in axes]
        return rebuilt(first, items) if hasattr(first, "_fields") else tuple(items)
    if isinstance(axis, (tuple, list)):
        raise ArgumentValueError(
            f"vmap: got out_axes {tuple(axis)} for a result that is one Tensor; wanted an int"
        )
    if axis is None:
        return first
    return stack([r if isinstance(r, Tensor) else Tensor(r) for r in results], axis)  # type: ignore[arg-type]
