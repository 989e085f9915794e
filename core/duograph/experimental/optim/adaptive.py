"""Optimisers that scale the gradient of each element by its history, such as RMSprop and NAdam.

`experimental.optim` exports them. Every update is made of public ops, so that a compiled training
step fuses it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ... import ops
from ...common.initializer import initializer
from ...dtype import float32
from ...nn import _check
from ...parameter import Parameter
from ...tensor import Tensor
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .optimizer import ParamGroup

__all__ = ["Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop"]


class CheckedOptimizer(Optimizer):
    """Base class of optimisers that check the settings of each group by `check_settings`."""

    def check_group(self, owner: str, group: ParamGroup) -> None:
        check_settings(owner, group)


class StepCounting(CheckedOptimizer):
    """Base of optimisers whose updates depend on the number of the step, `step_t`."""

    _first = 1.0  # number of the first step

    def __init__(self, params: Iterable[object], defaults: ParamGroup) -> None:
        super().__init__(params, defaults)
        self.step_t = Parameter(
            initializer("zeros", (), float32), name="step_t", requires_grad=False
        )

    def begin_step(self) -> None:
        self.step_t.set_data(self.step_t + 1.0)

    @property
    def _step(self) -> Tensor:
        """Number of the present step, a 0-d float32 Tensor; the first step has number `_first`."""
        return self.step_t + (self._first - 1.0)


def check_settings(owner: str, group: ParamGroup) -> None:
    """Raise an error if a setting of `group`, such as `eps` or `betas`, is out of range.

    Settings that the group lacks are not checked. `owner` is the optimiser, for the message.
    """
    for name in ("eps", "rho", "alpha", "lr_decay", "momentum", "momentum_decay",
                 "weight_decay", "initial_accumulator_value"):  # fmt: skip
        if name in group:
            high = 1.0 if name == "rho" else math.inf
            _check.in_range(owner, name, group[name], 0, high, open_low=name == "eps")
    for number, beta in enumerate(group.get("betas", ())):
        _check.in_range(owner, f"betas[{number}]", beta, 0, 1, open_high=True)
    for name in ("maximize", "centered"):
        if name in group:
            _check.boolean(owner, name, group[name])


def write(param: Parameter, value: Tensor) -> None:
    """Assign `value`, cast to the Parameter's dtype, to `param`."""
    param.set_data(value.astype(param.dtype))


class Adadelta(CheckedOptimizer):
    """Adadelta (Zeiler, 2012; `mindspore.experimental.optim.Adadelta`).

    ``a = rho * a + (1 - rho) * g ** 2``, ``d = sqrt(u + eps) / sqrt(a + eps) * g``,
    ``u = rho * u + (1 - rho) * d ** 2``, then ``p = p - lr * d``.

    Args:
        params: iterable of Parameters, or of dictionaries, one for each group, with ``params`` and
            any of the settings below.
        lr: learning rate: number or 0-d Tensor.
        rho: decay of the averages a and u, in [0, 1].
        eps: number that is added below the square roots, above 0.
        weight_decay: its product with the Parameter is added to the gradient.
        maximize: whether to move along the gradient instead of against it.

    Inputs: the gradients, in the order of `parameters`. Outputs: True.

    Raises:
        TypeError: `params` or `lr` of the wrong kind.
        ValueError: a setting out of range.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.experimental.optim.Adadelta([p])((ms.Tensor([1.0, -1.0]),))
        True
        >>> print(p.asnumpy().round(4))
        [0.9968 2.0032]
    """

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
                    "maximize": maximize}  # fmt: skip
        super().__init__(params, settings)
        self.accum = self.add_state("accum")
        self.accum_update = self.add_state("accum_update")

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        rho, eps = group["rho"], group["eps"]
        g = self.gradient(param, grad, group)
        square = self.accum[i] * rho + ops.square(g) * (1.0 - rho)
        step = ops.sqrt(self.accum_update[i] + eps) / ops.sqrt(square + eps) * g
        write(self.accum[i], square)
        write(self.accum_update[i], self.accum_update[i] * rho + ops.square(step) * (1.0 - rho))
        write(param, param - self.rate(group) * step)


class Adagrad(StepCounting):
    """Adagrad (Duchi et al., 2011; `mindspore.experimental.optim.Adagrad`).

    ``a = a + g ** 2``, then ``p = p - lr / (1 + t * lr_decay) * g / (sqrt(a) + eps)``, with t = 0
    in the first step.

    Args:
        params, lr, weight_decay, maximize: as for `Adadelta`.
        lr_decay: decay of the rate, non-negative.
        initial_accumulator_value: initial value of a, non-negative.
        eps: number that is added to the denominator, above 0.

    Raises:
        TypeError, ValueError: as for `Adadelta`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.experimental.optim.Adagrad([p], lr=0.5)((ms.Tensor([3.0, -3.0]),))
        True
        >>> print(p.asnumpy().round(4))
        [0.5 2.5]
    """

    _first = 0.0

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)
        self.accum = self.add_state("accum", float(initial_accumulator_value))

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        g = self.gradient(param, grad, group)
        square = self.accum[i] + ops.square(g)
        lr = self.rate(group) / (1.0 + self._step * group["lr_decay"])
        write(self.accum[i], square)
        write(param, param - lr * g / (ops.sqrt(square) + group["eps"]))


class Adamax(StepCounting):
    """Adamax, Adam with the maximum norm (Kingma and Ba, 2015;
    `mindspore.experimental.optim.Adamax`).

    ``m = beta1 * m + (1 - beta1) * g``, ``u = max(beta2 * u, abs(g) + eps)``, then
    ``p = p - lr / (1 - beta1 ** t) * m / u``.

    Args:
        params, lr, weight_decay, maximize: as for `Adadelta`.
        betas: decay of the moment and of the norm, both in [0, 1).
        eps: number that is added to the absolute gradient, above 0.

    Raises:
        TypeError, ValueError: as for `Adadelta`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.experimental.optim.Adamax([p], lr=0.5)((ms.Tensor([3.0, -3.0]),))
        True
        >>> print(p.asnumpy().round(4))
        [0.5 2.5]
    """

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                    "maximize": maximize}  # fmt: skip
        super().__init__(params, settings)
        self.exp_avg = self.add_state("exp_avg")
        self.exp_inf = self.add_state("exp_inf")

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        beta1, beta2 = group["betas"]
        g = self.gradient(param, grad, group)
        moment = self.exp_avg[i] * beta1 + g * (1.0 - beta1)
        norm = ops.maximum(self.exp_inf[i] * beta2, ops.abs(g) + group["eps"])
        write(self.exp_avg[i], moment)
        write(self.exp_inf[i], norm)
        write(param, param - self.rate(group) / (1.0 - beta1**self._step) * moment / norm)


class NAdam(StepCounting):
    """Adam with Nesterov momentum (Dozat, 2016; `mindspore.experimental.optim.NAdam`).

    With ``mu(t) = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay))`` and P(t) its product up to t,
    the step is ``lr * ((1 - mu(t)) / (1 - P(t)) * g + mu(t + 1) / (1 - P(t + 1)) * m)``, divided
    by ``sqrt(v / (1 - beta2 ** t)) + eps``; m and v are the moments of Adam.

    Args:
        params, lr, weight_decay: as for `Adadelta`.
        betas: decay of the two moments, both in [0, 1).
        eps: number that is added to the denominator, above 0.
        momentum_decay: rate at which mu approaches `beta1`, non-negative.

    Raises:
        TypeError, ValueError: as for `Adadelta`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.experimental.optim.NAdam([p], lr=0.5)((ms.Tensor([3.0, -3.0]),))
        True
        >>> print(p.asnumpy().round(4))
        [0.4718 2.5282]
    """

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                    "momentum_decay": momentum_decay}  # fmt: skip
        super().__init__(params, settings)
        self.exp_avg = self.add_state("exp_avg")
        self.exp_avg_sq = self.add_state("exp_avg_sq")
        self.mu_product = self.add_state("mu_product", "ones", scalar=True)

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        beta1, beta2 = group["betas"]
        step, decay = self._step, group["momentum_decay"]
        g = self.gradient(param, grad, group)
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * decay))
        following = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1.0) * decay))
        product = self.mu_product[i] * mu
        moment = self.exp_avg[i] * beta1 + g * (1.0 - beta1)
        square = self.exp_avg_sq[i] * beta2 + ops.square(g) * (1.0 - beta2)
        direct = (1.0 - mu) / (1.0 - product) * g
        ahead = following / (1.0 - product * following) * moment
        norm = ops.sqrt(square / (1.0 - beta2**step)) + group["eps"]
        write(self.mu_product[i], product)
        write(self.exp_avg[i], moment)
        write(self.exp_avg_sq[i], square)
        write(param, param - self.rate(group) * (direct + ahead) / norm)


class RAdam(StepCounting):
    """Adam with rectified variance (Liu et al., 2020; `mindspore.experimental.optim.RAdam`).

    While the average of the squares is too short, with a length ``rho(t)`` of 5 or less, the step
    is ``lr * m / (1 - beta1 ** t)``; later it is Adam's times
    ``sqrt((rho - 4) * (rho - 2) * r / ((r - 4) * (r - 2) * rho))``, where r is the length in the
    limit, ``2 / (1 - beta2) - 1``.

    Args:
        params, lr, betas, eps, weight_decay: as for `NAdam`.

    Raises:
        TypeError, ValueError: as for `Adadelta`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.experimental.optim.RAdam([p], lr=0.5)((ms.Tensor([1.0, -1.0]),))
        True
        >>> print(p.asnumpy().round(4))
        [0.5 2.5]
    """

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )
        self.exp_avg = self.add_state("exp_avg")
        self.exp_avg_sq = self.add_state("exp_avg_sq")

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        beta1, beta2 = group["betas"]
        g = self.gradient(param, grad, group)
        moment = self.exp_avg[i] * beta1 + g * (1.0 - beta1)
        square = self.exp_avg_sq[i] * beta2 + ops.square(g) * (1.0 - beta2)
        write(self.exp_avg[i], moment)
        write(self.exp_avg_sq[i], square)
        power = beta2**self._step
        limit = 2.0 / (1.0 - beta2) - 1.0
        length = limit - 2.0 * self._step * power / (1.0 - power)
        long = length > 5.0
        safe = ops.where(long, length, 5.0)
        factor = (safe - 4.0) * (safe - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * safe)
        scaled = ops.sqrt(factor * (1.0 - power)) / (ops.sqrt(square) + group["eps"])
        step = self.rate(group) / (1.0 - beta1**self._step) * moment
        write(param, param - step * ops.where(long, scaled, 1.0))


class RMSprop(CheckedOptimizer):
    """RMSprop (Hinton, 2012; `mindspore.experimental.optim.RMSprop`).

    ``a = alpha * a + (1 - alpha) * g ** 2``, then ``p = p - lr * g / (sqrt(a) + eps)``; `centered`
    subtracts the square of the mean gradient from a, and `momentum` accumulates the steps.

    Args:
        params, lr, weight_decay, maximize: as for `Adadelta`.
        alpha: decay of the average, non-negative.
        eps: number that is added to the denominator, above 0.
        momentum: factor of the earlier steps, non-negative.
        centered: whether to use the variance of the gradient.

    Raises:
        TypeError, ValueError: as for `Adadelta`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.experimental.optim.RMSprop([p], lr=0.05)((ms.Tensor([1.0, -1.0]),))
        True
        >>> print(p.asnumpy().round(4))
        [0.5 2.5]
    """

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)
        self.mean_grad = self.add_state("mean_grad", only_if="centered")
        self.mean_square = self.add_state("mean_square")
        self.moment = self.add_state("moment", only_if="momentum")

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        alpha = group["alpha"]
        g = self.gradient(param, grad, group)
        square = self.mean_square[i] * alpha + ops.square(g) * (1.0 - alpha)
        write(self.mean_square[i], square)
        mean = self.state_of("mean_grad", param)
        if mean is not None:
            new = mean * alpha + g * (1.0 - alpha)
            write(mean, new)
            square = square - ops.square(new)
        step = g / (ops.sqrt(square) + group["eps"])
        moment = self.state_of("moment", param)
        if moment is not None:
            step = moment * group["momentum"] + step
            write(moment, step)
        write(param, param - self.rate(group) * step)
