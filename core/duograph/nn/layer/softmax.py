"""Layers that normalise exponentials along an axis: softmax, log-softmax and softmin.

Users construct them, or find them by name with `get_activation`. Each calls the public op of its
formula.
"""

from __future__ import annotations

from ... import ops
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from .._types import Axis
from ..cell import Cell

__all__ = ["Softmax", "Softmin", "Softmax2d", "LogSoftmax"]


class Softmax(Cell):
    """`exp(x) / sum(exp(x))` along an axis (`mindspore.nn.Softmax`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Softmax()(ms.Tensor([0.0, 0.0])))
        [0.5 0.5]
    """

    softmax = Operator("Softmax", lambda c: {"axis": c.axis})

    def __init__(self, axis: Axis = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return ops.softmax(x, self.axis)


class Softmin(Cell):
    """Softmax of `-x` (`mindspore.nn.Softmin`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Softmin()(ms.Tensor([-1.0, 2.0])))
        [0.95257413 0.04742587]
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return ops.softmax(-x, self.axis)


class Softmax2d(Cell):
    """Softmax over the channels of (N, C, H, W) or (C, H, W) (`mindspore.nn.Softmax2d`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Softmax2d()(ms.ops.zeros((2, 1, 1), ms.float32)).reshape(2))
        [0.5 0.5]
    """

    softmax = Operator("Softmax", lambda c: {"axis": -3})
    shape = Operator("Shape")

    def construct(self, x: Tensor) -> Tensor:
        _check.rank("Softmax2d", x, 3, 4)
        return ops.softmax(x, -3)


class LogSoftmax(Cell):
    """Logarithm of the softmax along an axis (`mindspore.nn.LogSoftmax`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.LogSoftmax()(ms.Tensor([-1.0, 2.0])))
        [-3.0485873  -0.04858733]
    """

    log_softmax = Operator("LogSoftmax", lambda c: {"axis": c.axis})

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return ops.log_softmax(x, self.axis)
