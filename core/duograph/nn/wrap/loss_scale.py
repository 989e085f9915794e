"""Training steps with loss scaling, as Cells, which skip the update when a gradient overflows.

`Model` and user code call them. The module also has the Cells that adjust the scale after each
step.
"""

from __future__ import annotations

from typing import TypeVar

from ... import ops
from ...autodiff.transforms import value_and_grad
from ...dtype import bfloat16, float16, float32
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from ..cell import Cell
from ..optim.optimizer import Optimizer
from .cell_wrapper import TrainOneStepCell

__all__ = [
    "DynamicLossScaleUpdateCell",
    "FixedLossScaleUpdateCell",
    "TrainOneStepWithLossScaleCell",
]


T = TypeVar("T")


class DynamicLossScaleUpdateCell(Cell):
    """Update rule: divides the scale after an overflow, multiplies it after steps without one
    (`mindspore.nn.DynamicLossScaleUpdateCell`).

    Args:
        loss_scale_value: initial scale, above 0.
        scale_factor: divisor and factor of the scale, above 0.
        scale_window: number of steps without overflow after which the scale grows.

    Inputs: the scale (a Parameter) and whether there was an overflow. Outputs: the overflow flag.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> scale = ms.Parameter(ms.Tensor(8.0), name="scale")
        >>> _ = ms.nn.DynamicLossScaleUpdateCell(8.0, 2, 100)(scale, ms.Tensor(True))
        >>> print(scale.asnumpy())
        4.0
    """

    def __init__(self, loss_scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__()
        owner = "DynamicLossScaleUpdateCell"
        self.loss_scale_value = _check.in_range(
            owner, "loss_scale_value", loss_scale_value, 0, open_low=True
        )
        self.scale_factor = _check.in_range(owner, "scale_factor", scale_factor, 0, open_low=True)
        self.scale_window = _check.positive_int(owner, "scale_window", scale_window)
        self.minimum_loss_scale = 1.0
        self.cur_iter = Parameter(
            Tensor(1, "int32"), name="current_iterator_step", requires_grad=False
        )
        self.last_overflow_iter = Parameter(
            Tensor(0, "int32"), name="last_overflow_iterator_step", requires_grad=False
        )

    def get_loss_scale(self) -> float:
        """Return the initial value of the dynamic loss scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Parameter, overflow: Tensor) -> Tensor:
        scale = float(loss_scale.asnumpy())
        step, last = int(self.cur_iter.asnumpy()), int(self.last_overflow_iter.asnumpy())
        if bool(overflow):
            scale = max(scale / self.scale_factor, self.minimum_loss_scale)
            self.last_overflow_iter.set_data(Tensor(step, "int32"))
        elif step - last >= self.scale_window:
            scale *= self.scale_factor
            self.last_overflow_iter.set_data(Tensor(step, "int32"))
        loss_scale.set_data(Tensor(scale, loss_scale.dtype).reshape(loss_scale.shape))
        self.cur_iter.set_data(Tensor(step + 1, "int32"))
        return overflow


class FixedLossScaleUpdateCell(Cell):
    """Update rule that leaves the loss scale unchanged (`mindspore.nn.FixedLossScaleUpdateCell`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.FixedLossScaleUpdateCell(8.0).get_loss_scale()
        8.0
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = _check.in_range(
            "FixedLossScaleUpdateCell", "loss_scale_value", loss_scale_value, 0, open_low=True
        )

    def get_loss_scale(self) -> float:
        """Return the constant loss scale."""
        return self.loss_scale_value

    def construct(self, _: object, overflow: Tensor) -> Tensor:
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One training step on a scaled loss (`mindspore.nn.TrainOneStepWithLossScaleCell`).

    The gradients are those of loss * scale, divided by the scale. If one of them is not finite, the
    step skips the update.

    Args:
        network: Cell from data to a loss.
        optimizer: Optimizer.
        scale_sense: the scale, a Tensor () or (1,), or a Cell that updates the scale.

    Outputs: the loss, whether an overflow was found, and the scale.

    Raises:
        TypeError: `scale_sense` is neither.
        ValueError: a Tensor of another shape.

    Examples:
        >>> import duograph as ms
        >>> from duograph import nn
        >>> net = nn.Dense(2, 1)
        >>> step = nn.TrainOneStepWithLossScaleCell(
        ...     nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1),
        ...     nn.DynamicLossScaleUpdateCell(1024, 2, 100),
        ... )
        >>> x, y = ms.ops.ones((4, 2), ms.float32), ms.ops.ones((4, 1), ms.float32)
        >>> loss, overflow, scale = step(x, y)
        >>> print(overflow, scale.asnumpy())
        False 1024.0
    """

    hyper_map = Operator("HyperMap")
    reduce_sum = Operator("ReduceSum", lambda c: {"keep_dims": False})
    reduce_all = Operator("ReduceAll", lambda c: {"keep_dims": False})
    less_equal = Operator("LessEqual")
    equal = Operator("Equal")
    logic_not = Operator("LogicalNot")

    def __init__(self, network: Cell, optimizer: Optimizer, scale_sense: Tensor | Cell) -> None:
        super().__init__(network, optimizer, sens=None)
        self.is_distributed = False
        self.loss_scaling_manager: Cell | None = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            first = Tensor(float(scale_sense.get_loss_scale()), "float32")  # type: ignore[attr-defined]
        elif isinstance(scale_sense, Tensor):
            if scale_sense.shape not in ((), (1,)):
                raise ShapeError(
                    f"TrainOneStepWithLossScaleCell: got scale_sense of shape {scale_sense.shape}; "
                    f"wanted () or (1,)"
                )
            first = scale_sense
        else:
            raise ArgumentError(
                f"TrainOneStepWithLossScaleCell: got scale_sense of {type(scale_sense).__name__}; "
                f"wanted a Tensor or a scale-updating Cell"
            )
        object.__setattr__(self, "is_tensor_scale", not isinstance(scale_sense, Cell))
        self.scale_sense = Parameter(first, name="scale_sense", requires_grad=False)

    def construct(self, *inputs: object) -> object:
        scale = self.scale_sense.value().reshape(())
        loss, grads = value_and_grad(
            lambda *xs: self._scaled(scale, *xs), None, self.weights, has_aux=True
        )(*inputs)
        loss = loss[1]
        grads = self.grad_reducer(tuple(divided(g, scale) for g in grads))
        overflow = self.get_overflow_status(None, grads)
        overflow = self.process_loss_scale(overflow)
        if not bool(overflow):
            self.optimizer(grads)
        return loss, overflow, self.scale_sense.value()

    def _scaled(self, scale: Tensor, *inputs: object) -> tuple[Tensor, Tensor]:
        """Run the network; return (loss times `scale`, loss)."""
        loss = self.network(*inputs)
        return loss * scale.astype(loss.dtype), loss

    def set_sense_scale(self, sens: Tensor) -> None:
        """Set the loss scale of this training step to the value of a one-element Tensor.

        Raises:
            TypeError: `sens` is not a Tensor.
        """
        if not isinstance(sens, Tensor):
            raise ArgumentError(f"set_sense_scale: got {type(sens).__name__}; wanted a Tensor")
        if sens.size != 1:
            raise ArgumentValueError(f"set_sense_scale: got shape {sens.shape}; wanted one element")
        self.scale_sense.set_data(sens.reshape(self.scale_sense.shape))

    def start_overflow_check(self, pre_cond: object, compute_input: T) -> tuple[Tensor, T]:
        """Return (status, `compute_input`), where the status is a Tensor that is always False.

        The overflow is found in the gradients, by `get_overflow_status`.
        """
        return Tensor(False), compute_input

    def get_overflow_status(self, status: object, compute_output: object) -> Tensor:
        """Return whether any gradient has an element that is not finite."""
        found: Tensor | None = None
        for g in _flat(compute_output):
            bad = ops.logical_not(ops.isfinite(g).all())
            found = bad if found is None else ops.logical_or(found, bad)
        return Tensor(False) if found is None else found

    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Update the loss scale with the update Cell, if one is set; return the overflow flag."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow


def divided(gradient: Tensor, scale: Tensor) -> Tensor:
    """Return a gradient divided by the loss scale; a 16-bit gradient is divided in float32.

    In float16, a scale of 65536 is infinite, and would make all gradients 0; the reciprocal of a
    smaller one has few digits.
    """
    wide = float32 if gradient.dtype in (float16, bfloat16) else gradient.dtype
    return (gradient.astype(wide) / scale.astype(wide)).astype(gradient.dtype)


def _flat(value: object) -> list[Tensor]:
    """Return the Tensors of nested tuples and lists as a flat list."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _flat(v)]
    return []
