"""Optimisers that adapt the learning rate to each element or layer.

These are RMSProp, Adagrad, Adadelta, FTRL, Lamb, LARS, Rprop and ASGD; `nn` exports them. Most
updates are one fused op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import ops
from ...errors import ArgumentError
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._types import Decay, Params, Rate
from ..cell import Cell
from .optimizer import DecoupledDecay, Optimizer

__all__ = ["RMSProp", "Adagrad", "Adadelta", "FTRL", "Lamb", "LARS", "Rprop", "ASGD",
           "ProximalAdagrad"]  # fmt: skip


class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton, 2012; `mindspore.nn.RMSProp`).

    For a gradient g: `s = decay * s + (1 - decay) * g ** 2; m = momentum * m + lr * g / sqrt(s +
    epsilon); p = p - m`; `centered` subtracts the squared mean gradient from s. At first s is 1 and
    m is 0.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> optimizer = ms.nn.RMSProp(net.trainable_params(), learning_rate=0.1)
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate = 0.1,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay = _check.in_range("RMSProp", "decay", decay, 0)
        self.momentum = _check.in_range("RMSProp", "momentum", momentum, 0)
        self.epsilon = _check.in_range("RMSProp", "epsilon", epsilon, 0, open_low=True)
        _check.boolean("RMSProp", "use_locking", use_locking)
        self.centered = _check.boolean("RMSProp", "centered", centered)
        if centered:
            self.mg = self._state("mean_grad")
        self.ms = self._state("mean_square", "ones")
        self.moment = self._state("moment")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        square, moment = self.ms[i], self.moment[i]
        rest = (self.decay, self.momentum, self.epsilon, decay, scale)
        if self.centered:
            new, mean, s, m = ops.centered_rmsprop_step(
                param, self.mg[i], square, moment, grad, lr, *rest
            )
            self.mg[i].set_data(mean)
        else:
            new, s, m = ops.rmsprop_step(param, square, moment, grad, lr, *rest)
        self.write(param, new)
        square.set_data(s)
        moment.set_data(m)


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011; `mindspore.nn.Adagrad`): `a = a + g ** 2; p = p - lr * g /
    sqrt(a)`.

    Args:
        params, learning_rate, loss_scale, weight_decay: see `Optimizer`.
        accum: initial value of `a`.
        update_slots: whether to update `a`.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.Adagrad([p])((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        params: Params,
        accum: float = 0.1,
        learning_rate: Rate = 0.001,
        update_slots: bool = True,
        loss_scale: float = 1.0,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check.in_range("Adagrad", "accum", accum, 0)
        self.update_slots = _check.boolean("Adagrad", "update_slots", update_slots)
        self.accum = self._state("accum", float(accum))

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        new, accum = ops.adagrad_step(
            param, self.accum[i], grad, lr, self.update_slots, decay, scale
        )
        self.write(param, new)
        self.accum[i].set_data(accum)


class ProximalAdagrad(Optimizer):
    """Adagrad with l1 and l2 regularisation (Duchi and Singer, 2009;
    `mindspore.nn.ProximalAdagrad`).

    With ``a = a + g ** 2``, ``r = lr / sqrt(a)`` and ``q = p - r * g``:
    ``p = sign(q) * max(abs(q) - r * l1, 0) / (1 + r * l2)``.

    Args:
        params, learning_rate, loss_scale, weight_decay: see `Optimizer`.
        accum: initial value of `a`.
        l1, l2: strengths of the regularisation, non-negative.
        use_locking: accepted without effect; updates never run at the same time.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.ProximalAdagrad([p], l1=0.1)((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        params: Params,
        accum: float = 0.1,
        learning_rate: Rate = 0.001,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        owner = "ProximalAdagrad"
        _check.in_range(owner, "accum", accum, 0)
        _check.boolean(owner, "use_locking", use_locking)
        self.l1, self.l2 = _check.in_range(owner, "l1", l1, 0), _check.in_range(owner, "l2", l2, 0)
        self.accum = self._state("accum", float(accum))

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        g = grad * scale + param * decay if decay else grad * scale
        accum = self.accum[i] + ops.square(g)
        rate = lr / ops.sqrt(accum)
        moved = param - rate * g
        size = ops.relu(ops.abs(moved) - rate * self.l1) / (1.0 + rate * self.l2)
        self.write(param, (ops.sign(moved) * size).astype(param.dtype))
        self.accum[i].set_data(accum.astype(self.accum[i].dtype))


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012; `mindspore.nn.Adadelta`).

    Raises:
        ValueError: `rho` outside [0, 1], `epsilon` below 0.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.Adadelta([p])((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        loss_scale: float = 1.0,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho = _check.in_range("Adadelta", "rho", rho, 0, 1)
        self.epsilon = _check.in_range("Adadelta", "epsilon", epsilon, 0)
        self.accum = self._state("accum")
        self.accum_update = self._state("accum_update")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        new, accum, accum_update = ops.adadelta_step(
            param, self.accum[i], self.accum_update[i], grad, lr, self.rho, self.epsilon, decay,
            scale,
        )  # fmt: skip
        self.write(param, new)
        self.accum[i].set_data(accum)
        self.accum_update[i].set_data(accum_update)


class FTRL(Optimizer):
    """Follow the regularised leader (McMahan et al., 2013; `mindspore.nn.FTRL`).

    Args:
        params, learning_rate, loss_scale, weight_decay: see `Optimizer`; the rate is a constant
            above 0, and the decay concerns Parameters of any name.
        initial_accum: initial value of the accumulator.
        lr_power: exponent by which the rate depends on the accumulator, 0 or less.
        l1, l2: strengths of the regularisation.

    Raises:
        TypeError: a schedule as the rate.
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.FTRL([p])((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        params: Params,
        initial_accum: float = 0.1,
        learning_rate: Rate = 0.001,
        lr_power: float = -0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ArgumentError("FTRL: got a changing learning_rate; wanted one number")
        if not self.is_group:
            self.decay_flags = (True,) * len(self.parameters)
        _check.in_range("FTRL", "initial_accum", initial_accum, 0)
        self.lr_power = _check.in_range("FTRL", "lr_power", lr_power, None, 0)
        self.l1 = _check.in_range("FTRL", "l1", l1, 0)
        self.l2 = _check.in_range("FTRL", "l2", l2, 0)
        _check.boolean("FTRL", "use_locking", use_locking)
        self.moments = self._state("moments", float(initial_accum))
        self.linear = self._state("linear")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        new, accum, linear = ops.ftrl_step(
            param, self.moments[i], self.linear[i], grad, lr, self.l1, self.l2, self.lr_power,
            decay, scale,
        )  # fmt: skip
        self.write(param, new)
        self.moments[i].set_data(accum)
        self.linear[i].set_data(linear)


def _norm(x: Tensor) -> Tensor:
    return ops.sqrt(ops.square(x).sum())


class Lamb(DecoupledDecay):
    """Lamb (You et al., 2020; `mindspore.nn.Lamb`).

    Adam whose step is scaled, for each Parameter, to the norm of the weights.

    Args:
        params, learning_rate, weight_decay: see `Optimizer`.
        beta1, beta2: decay of the moments, inside (0, 1).
        eps: number that is added to the denominator, above 0.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.Lamb([p], 0.1)((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        _check.in_range("Lamb", "beta1", beta1, 0, 1, open_low=True, open_high=True)
        _check.in_range("Lamb", "beta2", beta2, 0, 1, open_low=True, open_high=True)
        _check.in_range("Lamb", "eps", eps, 0, open_low=True)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moments1 = self._state("lamb_m")
        self.moments2 = self._state("lamb_v")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        m, v = self.moments1[i], self.moments2[i]
        g = grad * scale if scale != 1.0 else grad
        m1 = m * self.beta1 + g * (1.0 - self.beta1)
        v1 = v * self.beta2 + ops.square(g) * (1.0 - self.beta2)
        step = self.global_step.astype("float32").reshape(())
        m_hat = m1 / (1.0 - self.beta1**step)
        v_hat = v1 / (1.0 - self.beta2**step)
        direction = m_hat / (ops.sqrt(v_hat) + self.eps)
        rate = self.decay_of(i, decay)
        if isinstance(rate, Tensor) or rate:
            direction = direction + param * rate
        w_norm, g_norm = self._norms(i, param, direction)
        one = ops.ones_like(w_norm)
        safe = ops.where(g_norm > 0, g_norm, one)
        ratio = ops.where(w_norm > 0, ops.where(g_norm > 0, w_norm / safe, one), one)
        self.write(param, (param - lr * ratio * direction).astype(param.dtype))
        m.set_data(m1)
        v.set_data(v1)

    def _norms(self, i: int, param: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        """Return the norms of the whole Parameter number `i` and of its whole step `direction`.

        `param` and `direction` are this rank's parts if ranks divide the update.
        """
        if self.sharding is None or not self.sharding.sharded[i]:
            return _norm(param), _norm(direction)
        squares = [ops.square(x).sum() for x in (param, direction)]
        whole, moved = self.sharding.sums(squares)
        return ops.sqrt(whole), ops.sqrt(moved)


class LARS(Optimizer):
    """Layer-wise adaptive rates around another optimiser (You et al., 2017; `mindspore.nn.LARS`).

    The gradient of every Parameter that `lars_filter` accepts becomes
    `(g + wd * p) * coefficient * |p| / (|g| + wd * |p| + epsilon)`; the optimiser then steps
    without weight decay.

    Args:
        optimizer: the optimiser that updates the Parameters.
        epsilon: number that is added to the denominator.
        coefficient: trust coefficient of the formula.
        use_clip: whether to limit each rate to that of the optimiser.
        lars_filter: predicate of a Parameter; by default it rejects those with ``LayerNorm`` or
            ``bias`` in their names.

    Raises:
        TypeError: `optimizer` is not an Optimizer.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.LARS(ms.nn.Momentum([p], 0.1, 0.9))((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        optimizer: Optimizer,
        epsilon: float = 1e-5,
        coefficient: float = 0.001,
        use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = lambda x: (
            "LayerNorm" not in x.name and "bias" not in x.name
        ),
    ) -> None:
        Cell.__init__(self, auto_prefix=False)
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"LARS: got {type(optimizer).__name__}; wanted an Optimizer")
        self.opt = optimizer
        self.parameters = optimizer.parameters
        self.learning_rate = optimizer.learning_rate
        self.global_step = optimizer.global_step
        self.epsilon = _check.in_range("LARS", "epsilon", epsilon, 0, open_low=True)
        self.coefficient = _check.in_range("LARS", "coefficient", coefficient, 0)
        self.use_clip = _check.boolean("LARS", "use_clip", use_clip)
        self.lars_flag = tuple(bool(lars_filter(p)) for p in self.parameters)
        n = len(self.parameters)
        decay = optimizer._decay
        self._decays = self._decay = decay if isinstance(decay, tuple) else (decay,) * n
        self._own_flags = optimizer.decay_flags
        self.is_group = optimizer.is_group
        self.is_group_lr = optimizer.is_group_lr
        # LARS applies the weight decay itself
        optimizer._decay = (0.0,) * n if optimizer.is_group else 0.0
        optimizer.decay_flags = (False,) * n
        optimizer.exec_weight_decay = False
        optimizer.dynamic_weight_decay = False

    def construct(self, gradients: Sequence[Any]) -> bool:
        lr = self.opt.get_lr()
        scaled = []
        for i, (p, g) in enumerate(zip(self.parameters, gradients, strict=True)):
            decay = self._decays[i]
            decay = decay(self.global_step) if isinstance(decay, Cell) else decay
            decay = decay if self._own_flags[i] else 0.0
            if not self.lars_flag[i]:
                scaled.append(g + p * decay if not isinstance(decay, float) or decay else g)
                continue
            w_norm, g_norm = _norm(p), _norm(g)
            ratio = self.coefficient * w_norm / (g_norm + w_norm * decay + self.epsilon)
            ratio = ops.where(ops.logical_and(w_norm > 0, g_norm > 0), ratio, ops.ones_like(ratio))
            if self.use_clip:
                rate = lr[i] if isinstance(lr, tuple) else lr
                ratio = ops.clamp(ratio / rate, 0.0, 1.0)
            scaled.append((g + p * decay) * ratio)
        return self.opt(tuple(scaled))


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993; `mindspore.nn.Rprop`).

    Args:
        params, learning_rate, weight_decay: see `Optimizer`; the rate is the initial step size.
        etas: factors of the step size where the sign of the gradient changed, and where it did not.
        step_sizes: smallest and largest step size.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.Rprop([p])((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate = 0.1,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.etaminus = _check.in_range(
            "Rprop", "etas[0]", etas[0], 0, 1, open_low=True, open_high=True
        )
        self.etaplus = _check.in_range("Rprop", "etas[1]", etas[1], 1, open_low=True)
        self.step_size_min = _check.in_range(
            "Rprop", "step_sizes[0]", step_sizes[0], 0, open_low=True
        )
        self.step_size_max = _check.in_range("Rprop", "step_sizes[1]", step_sizes[1], step_sizes[0])
        self.prev = self._state("prev")
        self.step_size = self._state("step_size")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        g = grad + param * decay if decay else grad
        prev, size = self.prev[i], self.step_size[i]
        first = self.global_step.reshape(()) == 1
        step = ops.where(first, ops.ones_like(param) * lr, size)
        agreement = ops.sign(g * prev)
        step = ops.where(
            agreement > 0,
            step * self.etaplus,
            ops.where(agreement < 0, step * self.etaminus, step),
        )
        step = ops.clamp(step, self.step_size_min, self.step_size_max)
        g = ops.where(agreement < 0, ops.zeros_like(g), g)
        self.write(param, (param - ops.sign(g) * step).astype(param.dtype))
        prev.set_data(g)
        size.set_data(step)


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992; `mindspore.nn.ASGD`).

    Args:
        params, learning_rate, weight_decay: see `Optimizer`.
        lambd: decay term.
        alpha: exponent of the rate's decay.
        t0: step at which averaging starts; the averages are in `ax`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.nn.ASGD([p])((ms.Tensor([1.0, 1.0]),))
        True
    """

    def __init__(
        self,
        params: Params,
        learning_rate: Rate = 0.1,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.lambd = _check.real("ASGD", "lambd", lambd)
        self.alpha = _check.real("ASGD", "alpha", alpha)
        self.t0 = _check.real("ASGD", "t0", t0)
        self.mu = self._state("mu", "ones", separator="_")
        self.eta = self._state("eta", separator="_")
        self.ax = self._state("ax_")

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        g = grad + param * decay if decay else grad
        mu, eta, ax = self.mu[i], self.eta[i], self.ax[i]
        step = self.global_step.astype("float32").reshape(())
        rate = ops.where(step == 1, ops.ones_like(param) * lr, eta)
        new = param * (1.0 - self.lambd * rate) - g * rate
        ax.set_data(ops.where(mu == 1, new, ax + (new - ax) * mu))
        eta.set_data(
            ops.ones_like(param) * (lr / ops.pow(1.0 + self.lambd * lr * step, self.alpha))
        )
        late = ops.maximum(step - self.t0, 1.0)
        mu.set_data(ops.ones_like(param) / late)
        self.write(param, new.astype(param.dtype))
