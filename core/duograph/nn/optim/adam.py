"""Adam and its variants.

`nn` exports them. The update of a Parameter is one fused op, such as `ops.adam_step`.
"""

from __future__ import annotations

from ... import ops
from ...errors import ArgumentError
from ...option_checks import check_options
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._types import Decay, Params, Rate
from .optimizer import DecoupledDecay, Optimizer

__all__ = ["Adam", "AdamWeightDecay", "AdaMax", "LazyAdam", "AdamOffload"]


def _betas(owner: str, beta1: float, beta2: float, eps: float) -> None:
    _check.in_range(owner, "beta1", beta1, 0, 1, open_low=True, open_high=True)
    _check.in_range(owner, "beta2", beta2, 0, 1, open_low=True, open_high=True)
    _check.in_range(owner, "eps", eps, 0, open_low=True)


class _BiasCorrected(Optimizer):
    """Base class of optimisers with bias correction.

    It stores beta1 ** step and beta2 ** step as Parameters and updates them in each step.
    """

    beta1: float
    beta2: float

    def _init_powers(self, beta1: float, beta2: float) -> None:
        self.beta1, self.beta2 = beta1, beta2
        self.beta1_power = Parameter(Tensor(1.0), name="beta1_power")
        self.beta2_power = Parameter(Tensor(1.0), name="beta2_power")

    def begin_step(self) -> None:
        self.beta1_power.set_data(self.beta1_power * self.beta1)
        self.beta2_power.set_data(self.beta2_power * self.beta2)


class Adam(_BiasCorrected):
    """Adam (Kingma and Ba, 2015; `mindspore.nn.Adam`).

    `rate = lr * sqrt(1 - beta2 ** t) / (1 - beta1 ** t); p = p - rate * m / (sqrt(v) + eps)`.

    Args:
        params, learning_rate, weight_decay, loss_scale: see `Optimizer`; the rate is 0.001 by
            default.
        beta1, beta2: decay of the moments, inside (0, 1).
        eps: number that is added to the denominator, above 0.
        use_locking: accepted without effect; updates never race.
        use_nesterov: whether to use Nesterov momentum.
        use_amsgrad: whether to divide by the largest second moment so far (Reddi et al., 2018).
        use_lazy, use_offload: accepted without effect; gradients are dense and stay on the device.

    Raises:
        ValueError: an argument out of range, or `use_nesterov` together with `use_amsgrad`.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> optimizer = ms.nn.Adam(net.trainable_params(), 0.01)
        >>> grads = tuple(ms.ops.ones_like(p) for p in optimizer.parameters)
        >>> optimizer(grads)
        True
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Decay = 0.0,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _betas("Adam", beta1, beta2, eps)
        for name, value in (
            ("use_locking", use_locking),
            ("use_nesterov", use_nesterov),
            ("use_amsgrad", use_amsgrad),
        ):
            _check.boolean("Adam", name, value)
        check_options("nn.Adam", **kwargs)
        if use_nesterov and use_amsgrad:
            raise ArgumentError(
                "Adam: got use_nesterov and use_amsgrad; wanted at most one of them"
            )
        self._init_powers(beta1, beta2)
        self.eps, self.use_nesterov, self.use_amsgrad = eps, use_nesterov, use_amsgrad
        self.moment1 = self._state("moment1")
        self.moment2 = self._state("moment2")
        if use_amsgrad:
            self.vhat = self._state("vhat")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        m, v = self.moment1[i], self.moment2[i]
        if self.use_amsgrad:
            new, m1, v1, top = ops.amsgrad_step(
                param, m, v, self.vhat[i], grad, lr, self.beta1_power, self.beta2_power,
                self.beta1, self.beta2, self.eps, decay, scale,
            )  # fmt: skip
            self.vhat[i].set_data(top)
        else:
            new, m1, v1 = ops.adam_step(
                param, m, v, grad, lr, self.beta1_power, self.beta2_power, self.beta1, self.beta2,
                self.eps, self.use_nesterov, decay, scale,
            )  # fmt: skip
        self.write(param, new)
        m.set_data(m1)
        v.set_data(v1)


class LazyAdam(Adam):
    """The same as `Adam`, since gradients are dense here (`mindspore.nn.LazyAdam`).

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.LazyAdam([p])((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Decay = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(
            params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay,
            loss_scale,
        )  # fmt: skip


class AdamOffload(LazyAdam):
    """The same as `Adam`; nothing moves to the host here (`mindspore.nn.AdamOffload`).

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.AdamOffload([p])((ms.Tensor([1.0, 1.0]),))
        True
    """


class AdamWeightDecay(DecoupledDecay):
    """Adam without bias correction, with decoupled weight decay (`mindspore.nn.AdamWeightDecay`).

    `p = p - lr * (m / (sqrt(v) + eps) + weight_decay * p)`.

    Args:
        params, learning_rate, weight_decay: see `Optimizer`.
        beta1, beta2: decay of the moments, inside (0, 1).
        eps: number that is added to the denominator, above 0; 1e-6 by default.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> optimizer = ms.nn.AdamWeightDecay(net.trainable_params(), 1e-3, weight_decay=0.01)
        >>> [p.name for p in optimizer.moments1]
        ['adam_m.weight', 'adam_m.bias']
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        _betas("AdamWeightDecay", beta1, beta2, eps)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moments1 = self._state("adam_m")
        self.moments2 = self._state("adam_v")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        m, v = self.moments1[i], self.moments2[i]
        rate = self.decay_of(i, decay)
        constant = 0.0 if isinstance(rate, Tensor) else rate
        new, m1, v1 = ops.adam_weight_decay_step(
            param, m, v, grad, lr, self.beta1, self.beta2, self.eps, constant, scale
        )
        if isinstance(rate, Tensor):
            new = new - param * (lr * rate)
        self.write(param, new)
        m.set_data(m1)
        v.set_data(v1)


class AdaMax(_BiasCorrected):
    """AdaMax (Kingma and Ba, 2015; `mindspore.nn.AdaMax`): Adam with the infinity norm.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.AdaMax([p])((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: Decay = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _betas("AdaMax", beta1, beta2, eps)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.beta1_power = Parameter(Tensor(1.0), name="beta1_power")
        self.moment1 = self._state("moment1")
        self.moment2 = self._state("moment2")

    def begin_step(self) -> None:
        self.beta1_power.set_data(self.beta1_power * self.beta1)

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        m, v = self.moment1[i], self.moment2[i]
        new, m1, v1 = ops.adamax_step(
            param, m, v, grad, lr, self.beta1_power, self.beta1, self.beta2, self.eps, decay, scale
        )
        self.write(param, new)
        m.set_data(m1)
        v.set_data(v1)
