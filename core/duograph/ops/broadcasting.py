"""Broadcasting shared by the op families: the elementwise result type, and undoing a broadcast in a
gradient.
"""

from __future__ import annotations

from typing import Any

from ..dtype import DType
from ..errors import ShapeError
from ..types import TensorType, broadcast_shapes

__all__ = ["elementwise_type", "unbroadcast"]


def elementwise_type(
    name: str, *types: TensorType | None, dtype: DType | None = None
) -> TensorType:
    """The type of an elementwise result: broadcast shape, dtype of the first operand unless given.

    Raises:
        ShapeError: the shapes do not broadcast.
    """
    given = [t for t in types if t is not None]
    first = given[0]
    if len(given) == 1:
        return first if dtype is None or dtype is first.dtype else first.with_(dtype=dtype)
    shape = broadcast_shapes(*(t.shape for t in given))
    if shape is None:
        shapes = " and ".join(str(t.shape) for t in given)
        raise ShapeError(
            f"{name}: got operands of shapes {shapes}; wanted shapes that broadcast: equal from "
            f"the last axis on, or 1"
        )
    return TensorType.of(shape, dtype or given[-1].dtype)


def unbroadcast(grad: Any, like: Any) -> Any:
    """Sum a gradient over the axes along which `like` was broadcast; its shape is that of `like`."""
    shape = like.shape
    have = grad.shape
    if have == shape:
        return grad
    from .movement import reshape
    from .reduction import reduce_sum

    lead = len(have) - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and have[lead + i] != 1
    )
    if axes:
        grad = reduce_sum(grad, axes, False)
    return grad if grad.shape == shape else reshape(grad, shape)
