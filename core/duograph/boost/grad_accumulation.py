"""Gradient accumulation: the optimiser runs once for several batches.

User code calls the Cell inside a training step, or maps the two overloaded functions over its own
accumulators. The functions write Parameters and must not change their dtype.
"""

from __future__ import annotations

from typing import Any

from .. import ops
from ..dtype import int32
from ..nn.cell import Cell
from ..nn.optim.optimizer import Gradients, Optimizer
from ..ops.higher_order import HyperMap, MultitypeFuncGraph, partial
from ..parameter import Parameter, ParameterTuple
from ..tensor import Tensor

__all__ = ["GradientAccumulation", "gradient_accumulation_op", "gradient_clear_op"]


def _accumulate(steps: Any, accumulated: Parameter, gradient: Tensor) -> Parameter:
    """Add a gradient, divided by the number of steps, to its accumulator; return the latter."""
    return ops.assign_add(accumulated, ops.cast(gradient / steps, accumulated.dtype))


def _clear(accumulated: Parameter) -> Parameter:
    """Set an accumulator to zero; return the accumulator."""
    return ops.assign(accumulated, ops.zeros_like(accumulated))


gradient_accumulation_op = MultitypeFuncGraph("gradient_accumulation_op")
gradient_accumulation_op.register("Number", "Tensor", "Tensor")(_accumulate)
gradient_accumulation_op.register("Tensor", "Tensor", "Tensor")(_accumulate)
gradient_clear_op = MultitypeFuncGraph("gradient_clear_op")
gradient_clear_op.register("Tensor")(_clear)


class GradientAccumulation(Cell):
    """Runs an optimiser on the mean of the gradients of several steps
    (`mindspore.boost.GradientAccumulation`).

    Args:
        max_accumulation_step: number of calls after which the optimiser runs.
        optimizer: Optimizer.

    Inputs: the loss, and the gradients in the order of `optimizer.parameters`. Outputs: the loss.

    Examples:
        >>> import duograph as ms
        >>> from duograph.boost import GradientAccumulation
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> accumulate = GradientAccumulation(2, ms.nn.SGD([w], 0.1))
        >>> for _ in range(2):
        ...     _ = accumulate(ms.Tensor(0.0), (ms.Tensor([1.0]),))
        ...     print(w.asnumpy())
        [1.]
        [0.9]
    """

    def __init__(self, max_accumulation_step: int, optimizer: Optimizer) -> None:
        super().__init__()
        self._max_accumulation_step = max_accumulation_step
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.hyper_map = HyperMap()
        self._grad_accumulation = ParameterTuple(self.weights).clone("grad_accumulation", "zeros")
        self._accumulation_step = Parameter(Tensor(0, int32), name="accumulation_step")

    def construct(self, loss: Tensor, grads: Gradients) -> Tensor:
        add = partial(gradient_accumulation_op, self._max_accumulation_step)
        self.hyper_map(add, self._grad_accumulation, grads)
        self._accumulation_step += 1
        if self._accumulation_step >= self._max_accumulation_step:
            self.optimizer(self._grad_accumulation)
            self.hyper_map(partial(gradient_clear_op), self._grad_accumulation)
            self._accumulation_step.set_data(Tensor(0, int32))
        return loss
