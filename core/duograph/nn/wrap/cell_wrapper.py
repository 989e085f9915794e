"""Cells that wrap a network with a loss, an evaluation or a training step.

`Model` and user code call them. Gradients come from `autodiff.transforms`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ... import ops
from ...autodiff.transforms import GradOperation, value_and_grad
from ...call_names import WRAPPER
from ...dtype import float16, float32
from ...errors import ArgumentError
from ...parameter import Parameter, ParameterTuple
from ...tensor import Tensor
from ..cell import Cell
from ..layer.basic import Identity
from ..optim.optimizer import Optimizer
from ..optim.sharding import Sharding
from .data_parallel import DistributedGradReducer, data_parallel_reducer

__all__ = [
    "WithLossCell", "WithEvalCell", "WithGradCell", "ForwardValueAndGrad", "TrainOneStepCell",
    "ParameterUpdate",
]  # fmt: skip


Loss: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"  # usually a LossBase


class WithLossCell(Cell):
    """Cell of a network and its loss function: from (data, label) to the loss
    (`mindspore.nn.WithLossCell`).

    Raises:
        TypeError: `backbone` is not a Cell.

    Examples:
        >>> import duograph as ms
        >>> from duograph import nn
        >>> net = nn.WithLossCell(nn.Identity(), nn.MSELoss())
        >>> print(net(ms.Tensor([1.0]), ms.Tensor([3.0])))
        4.0
    """

    call_role = WRAPPER

    def __init__(self, backbone: Cell, loss_fn: Loss) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(backbone, Cell):
            raise ArgumentError(f"WithLossCell: got {type(backbone).__name__}; wanted a Cell")
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data: Tensor, label: Tensor) -> Tensor:
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Cell:
        """Return the wrapped network without its loss function."""
        return self._backbone


class WithEvalCell(Cell):
    """Cell that evaluates a network: from (data, label) to (loss, output, label)
    (`mindspore.nn.WithEvalCell`).

    With `add_cast_fp32`, the output and a float16 label are cast to float32 first.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.WithEvalCell(ms.nn.Identity(), ms.nn.MSELoss())
        >>> loss, output, label = net(ms.Tensor([1.0]), ms.Tensor([3.0]))
        >>> print(loss)
        4.0
    """

    call_role = WRAPPER

    def __init__(self, network: Cell, loss_fn: Loss, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        outputs = self._network(data)
        if self.add_cast_fp32 and isinstance(outputs, Tensor):
            outputs = ops.cast(outputs, float32)
            if isinstance(label, Tensor) and label.dtype is float16:
                label = ops.cast(label, float32)
        return self._loss_fn(outputs, label), outputs, label


class ForwardValueAndGrad(Cell):
    """Value and gradients of a network as a Cell (`mindspore.nn.ForwardValueAndGrad`).

    Args:
        network: Cell or function.
        weights: ParameterTuple; needed with `get_by_list`.
        get_all: whether to return the gradients of all inputs.
        get_by_list: whether to return the gradients of `weights`.
        sens_param: whether the last input is the cotangent of the value.

    Examples:
        >>> import duograph as ms
        >>> f = ms.nn.ForwardValueAndGrad(lambda x: x * x, get_all=True)
        >>> value, grads = f(ms.Tensor(3.0))
        >>> print(value, grads[0])
        9.0 6.0
    """

    call_role = WRAPPER

    def __init__(
        self,
        network: Callable[..., object],
        weights: ParameterTuple | Sequence[Parameter] | Parameter | None = None,
        get_all: bool = False,
        get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise ArgumentError(
                f"ForwardValueAndGrad: got {type(network).__name__}; wanted a Cell or a function"
            )
        if get_by_list and not isinstance(weights, (ParameterTuple, tuple, list, Parameter)):
            raise ArgumentError(
                f"ForwardValueAndGrad: got weights of {type(weights).__name__} with "
                "get_by_list=True; "
                f"wanted a ParameterTuple"
            )
        self.network = network
        self.weights = weights
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def construct(self, *inputs: object) -> object:
        n = len(inputs) - (1 if self.sens_param else 0)
        tensors = tuple(i for i in range(n) if isinstance(inputs[i], Tensor))
        position = tensors if self.get_all else None if self.get_by_list else tensors[0]
        weights = self.weights if self.get_by_list else None
        return value_and_grad(self.network, position, weights, sens_param=self.sens_param)(*inputs)


class WithGradCell(Cell):
    """Cell from (data, label) to the gradients of the trainable Parameters
    (`mindspore.nn.WithGradCell`).

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> x, y = ms.ops.ones((3, 2), ms.float32), ms.ops.ones((3, 1), ms.float32)
        >>> len(ms.nn.WithGradCell(net, ms.nn.MSELoss())(x, y))
        2
    """

    call_role = WRAPPER

    def __init__(
        self, network: Cell, loss_fn: Loss | None = None, sens: Tensor | float | None = None
    ) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss_fn = loss_fn
        self.weights = ParameterTuple(network.trainable_params())
        self.sens = sens
        self._with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)

    def construct(self, *inputs: object) -> object:
        operation = GradOperation(get_by_list=True, sens_param=self.sens is not None)
        extra = () if self.sens is None else (self.sens,)
        return operation(self._with_loss, self.weights)(*inputs, *extra)


class TrainOneStepCell(Cell):
    """One training step: forward, backward, update; returns the loss
    (`mindspore.nn.TrainOneStepCell`).

    Args:
        network: Cell from data to a loss.
        optimizer: Optimizer; gradients are computed for its Parameters.
        sens: number by which all gradients are multiplied.
        return_grad: whether to return (loss, gradients by name) instead of the loss.

    Attributes:
        network, optimizer, weights, grad, sens, grad_reducer: for subclasses that override
            `construct`.

    Raises:
        TypeError: `sens` is not a number.

    Examples:
        >>> import duograph as ms
        >>> from duograph import nn
        >>> net = nn.Dense(2, 1)
        >>> step = nn.TrainOneStepCell(
        ...     nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)
        ... )
        >>> x, y = ms.ops.ones((4, 2), ms.float32), ms.ops.ones((4, 1), ms.float32)
        >>> bool(step(x, y) >= step(x, y))
        True
    """

    call_role = WRAPPER

    def __init__(
        self,
        network: Cell,
        optimizer: Optimizer,
        sens: float | None = None,
        return_grad: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = self.optimizer.parameters
        if sens is not None and (isinstance(sens, bool) or not isinstance(sens, (int, float))):
            raise ArgumentError(f"TrainOneStepCell: got sens={sens!r}; wanted a number or None")
        self.sens = 1.0 if sens is None else sens
        self.sense_flag = sens is not None
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = GradOperation(get_by_list=True)
        reducer = data_parallel_reducer(self.weights, self.network)
        self.reducer_flag = reducer is not None
        self.grad_reducer: Cell = Identity() if reducer is None else reducer
        self.return_grad = return_grad

    def construct(self, *inputs: object) -> object:
        reducer, sharding = self.grad_reducer, self._optimizer_sharding()
        if not isinstance(reducer, DistributedGradReducer):
            loss, grads = self._value_and_grad(inputs)
            grads = reducer(grads)
        else:
            with reducer.early(self.weights, sharding) as early:
                loss, grads = self._value_and_grad(inputs)
            if early is not None:
                grads = early.finish(grads)
            else:
                grads = reducer(grads) if sharding is None else reducer.parts(grads, sharding)
        self.optimizer(grads)
        if self.return_grad:
            return loss, {p.name: g for p, g in zip(self.weights, grads, strict=True)}
        return loss

    def _value_and_grad(self, inputs: tuple[object, ...]) -> Any:
        if self.sens == 1.0:
            return value_and_grad(self.network, None, self.weights)(*inputs)
        return value_and_grad(self.network, None, self.weights, sens_param=True)(
            *inputs, float(self.sens)
        )

    def _optimizer_sharding(self) -> Sharding | None:
        """Return how ranks divide the optimiser's update, or None if they do not.

        None is also returned if `return_grad` needs the whole gradients.
        """
        optimizer = self.optimizer
        shares = isinstance(optimizer, Optimizer) and not self.return_grad
        return optimizer.sharding if shares else None


class ParameterUpdate(Cell):
    """Sets one Parameter to its input (`mindspore.nn.ParameterUpdate`).

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> print(ms.nn.ParameterUpdate(p)(ms.Tensor([5.0])))
        [5.]
    """

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise ArgumentError(f"ParameterUpdate: got {type(param).__name__}; wanted a Parameter")
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        self._param.set_data(x)
        return self._param.value()
