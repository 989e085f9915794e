"""The optimisers SGD and Momentum.

`nn` exports them. The update of a Parameter is one fused op.
"""

from __future__ import annotations

from ... import ops
from ...errors import ArgumentValueError
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._types import Decay, Params, Rate
from .optimizer import Optimizer

__all__ = ["SGD", "Momentum"]


class SGD(Optimizer):
    """Stochastic gradient descent (`mindspore.nn.SGD`).

    The velocity v starts as the first gradient; then `v = momentum * v + (1 - dampening) * g` and
    `p = p - lr * v`, or `p = p - lr * (g + momentum * v)` with `nesterov`.

    Args:
        params, learning_rate, weight_decay, loss_scale: see `Optimizer`; the rate is 0.1 by
            default.
        momentum: factor of the velocity, a non-negative number.
        dampening: reduction of the gradient's weight in the velocity, 0 to 1.
        nesterov: whether to use Nesterov momentum; it needs momentum above 0 and no dampening.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> optimizer = ms.nn.SGD(net.trainable_params(), learning_rate=0.1, momentum=0.9)
        >>> len(optimizer.parameters)
        2
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: Decay = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self._momentum = _check.in_range("SGD", "momentum", momentum, 0)
        self.dampening = _check.in_range("SGD", "dampening", dampening, 0, 1)
        self.nesterov = _check.boolean("SGD", "nesterov", nesterov)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentValueError(
                f"SGD: got nesterov=True with momentum={momentum} and dampening={dampening}; "
                f"wanted momentum above 0 and dampening 0"
            )
        self.momentum = Parameter(Tensor(float(momentum)), name="momentum")
        self.accum = self._state("accum")
        self.stat = self._state("stat", "ones")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        new, accum, stat = ops.sgd_step(
            param, self.accum[i], self.stat[i], grad, lr, self._momentum, self.dampening,
            self.nesterov, decay, scale,
        )  # fmt: skip
        self.write(param, new)
        self.accum[i].set_data(accum)
        self.stat[i].set_data(stat)


class Momentum(Optimizer):
    """Gradient descent with momentum: `v = momentum * v + g; p = p - lr * v`
    (`mindspore.nn.Momentum`).

    Args:
        params, learning_rate, weight_decay, loss_scale: see `Optimizer`.
        momentum: factor of the velocity v, a non-negative number.
        use_nesterov: whether the update is `p = p - lr * (g + momentum * v)` instead.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> optimizer = ms.nn.Momentum(net.trainable_params(), 0.1, 0.9)
        >>> [p.name for p in optimizer.moments]
        ['moments.weight', 'moments.bias']
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate,
        momentum: float,
        weight_decay: Decay = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check.in_range("Momentum", "momentum", momentum, 0)
        self.use_nesterov = _check.boolean("Momentum", "use_nesterov", use_nesterov)
        self.momentum = Parameter(Tensor(float(momentum)), name="momentum")
        self.moments = self._state("moments")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        new, accum = ops.momentum_step(
            param, self.moments[i], grad, lr, self.momentum, self.use_nesterov, decay, scale
        )
        self.write(param, new)
        self.moments[i].set_data(accum)
