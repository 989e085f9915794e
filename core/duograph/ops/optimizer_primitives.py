"""Primitive classes of optimiser steps: `ApplyMomentum`, `Adam`, `ApplyFtrl` and others.

Users construct them in their own optimisers. A call updates the Parameters among its arguments in
place and returns all of them, or only the first. The formulas are those of `optimizer`, but here
settings may be Tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..dtype import float32, float64
from ..errors import ArgumentError, ShapeError
from ..tensor import Tensor
from .creation import cast_to
from .elementwise import abs as absolute
from .elementwise import maximum, sign, square
from .exponential import exp
from .logic import select_by
from .powers import sqrt
from .primitive import Primitive
from .state import assign

__all__ = [
    "SGD", "Adam", "AdamNoUpdateParam", "AdamWeightDecay", "ApplyAdaMax", "ApplyAdadelta",
    "ApplyAdagrad", "ApplyAdagradDA", "ApplyAdagradV2", "ApplyAdamWithAmsgrad",
    "ApplyAdamWithAmsgradV2", "ApplyAddSign", "ApplyCenteredRMSProp", "ApplyFtrl",
    "ApplyGradientDescent", "ApplyKerasMomentum", "ApplyMomentum", "ApplyPowerSign",
    "ApplyProximalAdagrad", "ApplyProximalGradientDescent", "ApplyRMSProp",
]  # fmt: skip

Number = Tensor | float
_Value = TypeVar("_Value")


def _wide(x: _Value) -> _Value:
    if not isinstance(x, Tensor) or x.dtype in (float32, float64):
        return x
    return cast_to(x, float32)


def _stepped(formula: Callable[..., _Value], targets: tuple[Tensor, ...], *rest: object) -> _Value:
    """Return ``formula(*targets, *rest)``, with 16-bit floats in `targets` cast to float32."""
    return formula(*[_wide(x) for x in targets], *rest)


def _write(targets: tuple[Tensor, ...], values: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Assign ``values[i]`` to the Parameter ``targets[i]``, cast to its dtype; return `targets`."""
    return tuple(assign(t, cast_to(v, t.dtype)) for t, v in zip(targets, values, strict=True))


def _check(name: str, var: object, *others: object) -> None:
    for x in (var, *others):
        if not isinstance(x, Tensor):
            raise ArgumentError(f"{name}: got {type(x).__name__}; wanted Parameters and Tensors")
        if x.shape != var.shape:  # type: ignore[attr-defined]
            raise ShapeError(
                f"{name}: got shapes {var.shape} and {x.shape}; "  # type: ignore[attr-defined]
                "wanted the same"
            )


# ---- formulas: new values of the Parameters ------------------------------------------------------


def _moments(
    m: Tensor, v: Tensor, g: Tensor, beta1: Number, beta2: Number
) -> tuple[Tensor, Tensor]:
    return m * beta1 + g * (1.0 - beta1), v * beta2 + square(g) * (1.0 - beta2)


def _root(x: Number) -> Number:
    return sqrt(x) if isinstance(x, Tensor) else x**0.5


def _adam_delta(
    m: Tensor,
    v: Tensor,
    g: Tensor,
    b1p: Number,
    b2p: Number,
    lr: Number,
    b1: Number,
    b2: Number,
    eps: Number,
    nesterov: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (delta, m, v) of one step of Adam: the change of the Parameter, and the new moments.

        m     = b1 * m + (1 - b1) * g
        v     = b2 * v + (1 - b2) * g**2
        rate  = lr * sqrt(1 - b2p) / (1 - b1p)
        delta = -rate * (b1 * m + (1 - b1) * g if nesterov else m) / (sqrt(v) + eps)

    `g` is the gradient. In step t, counted from 1, `b1p` and `b2p` are b1**t and b2**t. The
    arguments are not changed.
    """
    m, v = _moments(m, v, g, b1, b2)
    rate = lr * _root(1.0 - b2p) / (1.0 - b1p)
    top = m * b1 + g * (1.0 - b1) if nesterov else m
    return -(rate * top / (sqrt(v) + eps)), m, v


def _ftrl(
    var: Tensor, accum: Tensor, linear: Tensor, g: Tensor, lr: Number, l1: Number, l2: Number,
    power: Number, shrinkage: Number = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    shrunk_gradient = g + 2.0 * shrinkage * var
    new = accum + square(g)
    high, low = new ** (-power), accum ** (-power)
    linear = linear + shrunk_gradient - (high - low) / lr * var
    shrunk = sign(linear) * maximum(absolute(linear) - l1, 0.0)
    return -shrunk / (high / lr + 2.0 * l2), new, linear


def _proximal(var: Tensor, rate: Number, g: Tensor, l1: Number, l2: Number) -> Tensor:
    moved = var - rate * g
    return sign(moved) * maximum(absolute(moved) - rate * l1, 0.0) / (1.0 + rate * l2)


def _adadelta(
    var: Tensor, accum: Tensor, update: Tensor, lr: Number, rho: Number, eps: Number, g: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    accum = accum * rho + square(g) * (1.0 - rho)
    step = sqrt(update + eps) / sqrt(accum + eps) * g
    return var - lr * step, accum, update * rho + square(step) * (1.0 - rho)


def _rmsprop(
    var: Tensor, ms: Tensor, mom: Tensor, lr: Number, g: Tensor, rho: Number, momentum: Number,
    eps: Number, mean: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    ms = ms * rho + square(g) * (1.0 - rho)
    below = ms + eps if mean is None else ms - square(mean) + eps
    mom = mom * momentum + lr * g / sqrt(below)
    return var - mom, ms, mom


# ---- classes with settings of their own ----------------------------------------------------------


class _Locking(Primitive):
    """Base class of the optimiser primitives whose constructor takes `use_locking`.

    The argument has no effect, since two updates never run at the same time.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking


class _Nesterov(_Locking):
    def __init__(self, use_locking: bool = False, use_nesterov: bool = False) -> None:
        super().__init__(use_locking)
        self.use_nesterov = use_nesterov


class Adam(_Nesterov):
    """Adam: `Adam(use_locking=False, use_nesterov=False)(var, m, v, beta1_power, ..., gradient)`.

    Examples:
        >>> import duograph as ms
        >>> w, m, v = (ms.Parameter(ms.ops.ones(1), name=n) for n in "wmv")
        >>> new = ms.ops.Adam()(w, m, v, 0.9, 0.999, 0.1, 0.9, 0.999, 1e-8, ms.ops.ones(1))
        >>> print(w.asnumpy().round(4))
        [0.9684]
    """

    def __call__(
        self, var: Tensor, m: Tensor, v: Tensor, beta1_power: Number, beta2_power: Number,
        lr: Number, beta1: Number, beta2: Number, epsilon: Number, gradient: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update var, m and v in place by one step of Adam; return these Parameters.

            m    = beta1 * m + (1 - beta1) * gradient
            v    = beta2 * v + (1 - beta2) * gradient**2
            rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
            var  = var - rate * m / (sqrt(v) + epsilon)

        With the constructor's `use_nesterov`, the last line has
        `beta1 * m + (1 - beta1) * gradient` in place of `m`. In step t, counted from 1,
        `beta1_power` and `beta2_power` are beta1**t and beta2**t.
        """
        _check("Adam", var, m, v, gradient)
        delta, *moments = _adam_delta(
            _wide(m), _wide(v), _wide(gradient), beta1_power, beta2_power, lr, beta1, beta2,
            epsilon, self.use_nesterov,
        )  # fmt: skip
        return _write((var, m, v), (_wide(var) + delta, *moments))


class AdamNoUpdateParam(_Nesterov):
    """Adam that returns the change of the Parameter instead of applying it.

    `AdamNoUpdateParam(use_locking=False, use_nesterov=False)` is called with (m, v, beta1_power,
    beta2_power, lr, beta1, beta2, epsilon, gradient).
    """

    def __call__(
        self, m: Tensor, v: Tensor, beta1_power: Number, beta2_power: Number, lr: Number,
        beta1: Number, beta2: Number, epsilon: Number, gradient: Tensor,
    ) -> Tensor:  # fmt: skip
        """Update m and v in place by one step of Adam; return the change of the Parameter.

            m    = beta1 * m + (1 - beta1) * gradient
            v    = beta2 * v + (1 - beta2) * gradient**2
            rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
            return -rate * m / (sqrt(v) + epsilon)

        The caller adds the result, which has the dtype of `gradient`, to its Parameter. With the
        constructor's `use_nesterov`, the last line has `beta1 * m + (1 - beta1) * gradient` in
        place of `m`. In step t, counted from 1, `beta1_power` and `beta2_power` are beta1**t and
        beta2**t.
        """
        _check("AdamNoUpdateParam", m, v, gradient)
        delta, *moments = _adam_delta(
            _wide(m), _wide(v), _wide(gradient), beta1_power, beta2_power, lr, beta1, beta2,
            epsilon, self.use_nesterov,
        )  # fmt: skip
        _write((m, v), tuple(moments))
        return cast_to(delta, gradient.dtype)


class AdamWeightDecay(_Locking):
    """Adam with decoupled weight decay and without bias correction.

    `AdamWeightDecay()(var, m, v, lr, beta1, beta2, epsilon, decay, gradient)`.
    """

    def __call__(
        self, var: Tensor, m: Tensor, v: Tensor, lr: Number, beta1: Number, beta2: Number,
        epsilon: Number, decay: Number, gradient: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update var, m and v in place by an Adam step without bias correction; return all three.

            m   = beta1 * m + (1 - beta1) * gradient
            v   = beta2 * v + (1 - beta2) * gradient**2
            var = var - lr * (m / (sqrt(v) + epsilon) + decay * var)

        `m` and `v` are the moving averages of the gradient and of its square.
        """
        _check("AdamWeightDecay", var, m, v, gradient)
        m1, v1 = _moments(_wide(m), _wide(v), _wide(gradient), beta1, beta2)
        step = m1 / (sqrt(v1) + epsilon) + _wide(var) * decay
        return _write((var, m, v), (_wide(var) - lr * step, m1, v1))


class ApplyAdaMax(Primitive):
    """AdaMax: `ApplyAdaMax()(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad)`."""

    def __call__(
        self, var: Tensor, m: Tensor, v: Tensor, beta1_power: Number, lr: Number, beta1: Number,
        beta2: Number, epsilon: Number, grad: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update var, m and v in place by one step of AdaMax; return these Parameters.

            m   = beta1 * m + (1 - beta1) * grad
            v   = maximum(beta2 * v, abs(grad))
            var = var - lr / (1 - beta1_power) * m / (v + epsilon)

        In step t, counted from 1, `beta1_power` is beta1**t.
        """
        _check("ApplyAdaMax", var, m, v, grad)
        g = _wide(grad)
        m1 = _wide(m) * beta1 + g * (1.0 - beta1)
        v1 = maximum(_wide(v) * beta2, absolute(g))
        step = lr / (1.0 - beta1_power) * m1 / (v1 + epsilon)
        return _write((var, m, v), (_wide(var) - step, m1, v1))


class ApplyAdadelta(Primitive):
    """Adadelta: `ApplyAdadelta()(var, accum, accum_update, lr, rho, epsilon, grad)`."""

    def __call__(
        self, var: Tensor, accum: Tensor, accum_update: Tensor, lr: Number, rho: Number,
        epsilon: Number, grad: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update var, accum and accum_update in place by one step of Adadelta; return all three.

            accum        = rho * accum + (1 - rho) * grad**2
            step         = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad
            accum_update = rho * accum_update + (1 - rho) * step**2
            var          = var - lr * step

        `rho` is the weight of the old moving averages.
        """
        targets = (var, accum, accum_update)
        _check("ApplyAdadelta", *targets, grad)
        return _write(targets, _stepped(_adadelta, targets, lr, rho, epsilon, _wide(grad)))


class ApplyAdagrad(Primitive):
    """Adagrad: `ApplyAdagrad(update_slots=True)(var, accum, lr, grad)`.

    Examples:
        >>> import duograph as ms
        >>> w, a = (ms.Parameter(ms.ops.ones(1), name=n) for n in "wa")
        >>> new = ms.ops.ApplyAdagrad()(w, a, 0.1, ms.ops.ones(1))
        >>> print(w.asnumpy().round(4), a.asnumpy())
        [0.9293] [2.]
    """

    epsilon = 0.0

    def __init__(self, update_slots: bool = True) -> None:
        super().__init__()
        self.update_slots = update_slots

    def __call__(self, var: Tensor, accum: Tensor, lr: Number, grad: Tensor) -> tuple[Tensor, ...]:
        """Update var and accum in place by one step of Adagrad; return both Parameters.

            accum = accum + grad**2
            var   = var - lr * grad / (sqrt(accum) + epsilon)

        The first line applies only if the constructor's `update_slots` is True. `epsilon` is an
        attribute of the instance, 0 in ApplyAdagrad.
        """
        _check(type(self).__name__, var, accum, grad)
        g, a = _wide(grad), _wide(accum)
        if self.update_slots:
            a = a + square(g)
        return _write((var, accum), (_wide(var) - lr * g / (sqrt(a) + self.epsilon), a))


class ApplyAdagradV2(ApplyAdagrad):
    """Adagrad with `epsilon` added to the root of accum.

    `ApplyAdagradV2(epsilon, update_slots=True)(var, accum, lr, grad)`.
    """

    def __init__(self, epsilon: float, update_slots: bool = True) -> None:
        super().__init__(update_slots)
        self.epsilon = epsilon


class ApplyAdagradDA(_Locking):
    """Adagrad by dual averaging (Duchi et al., 2011).

    It is called with (var, gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2,
    global_step).
    """

    def __call__(
        self, var: Tensor, gradient_accumulator: Tensor, gradient_squared_accumulator: Tensor,
        grad: Tensor, lr: Number, l1: Number, l2: Number, global_step: Number,
    ) -> Tensor:  # fmt: skip
        """Update var and both accumulators in place by a dual-averaging Adagrad step; return var.

            s   = gradient_accumulator = gradient_accumulator + grad
            q   = gradient_squared_accumulator = gradient_squared_accumulator + grad**2
            t   = global_step
            var = -lr * sign(s) * maximum(abs(s) - l1 * t, 0) / (l2 * t * lr + sqrt(q))

        `global_step` is the number of this step, counted from 1.
        """
        targets = (var, gradient_accumulator, gradient_squared_accumulator)
        _check("ApplyAdagradDA", *targets, grad)
        g = _wide(grad)
        total = _wide(gradient_accumulator) + g
        squares = _wide(gradient_squared_accumulator) + square(g)
        step = cast_to(global_step, float32) if isinstance(global_step, Tensor) else global_step
        shrunk = sign(total) * maximum(absolute(total) - l1 * step, 0.0)
        new = -(lr * shrunk) / (l2 * step * lr + sqrt(squares))
        return _write(targets, (new, total, squares))[0]


class ApplyAdamWithAmsgradV2(_Locking):
    """AMSGrad with all settings in the call.

    It is called with (var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad).
    """

    def __call__(
        self, var: Tensor, m: Tensor, v: Tensor, vhat: Tensor, beta1_power: Number,
        beta2_power: Number, lr: Number, beta1: Number, beta2: Number, epsilon: Number,
        grad: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update var, m, v and vhat in place by one step of AMSGrad; return these four Parameters.

            m    = beta1 * m + (1 - beta1) * grad
            v    = beta2 * v + (1 - beta2) * grad**2
            vhat = maximum(vhat, v)
            rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
            var  = var - rate * m / (sqrt(vhat) + epsilon)

        In step t, counted from 1, `beta1_power` and `beta2_power` are beta1**t and beta2**t.
        """
        _check(type(self).__name__, var, m, v, vhat, grad)
        m1, v1 = _moments(_wide(m), _wide(v), _wide(grad), beta1, beta2)
        top = maximum(_wide(vhat), v1)
        rate = lr * _root(1.0 - beta2_power) / (1.0 - beta1_power)
        new = _wide(var) - rate * m1 / (sqrt(top) + epsilon)
        return _write((var, m, v, vhat), (new, m1, v1, top))


class ApplyAdamWithAmsgrad(Primitive):
    """AMSGrad with beta1, beta2 and epsilon given to the constructor.

    It is called with (var, m, v, vhat, beta1_power, beta2_power, lr, grad).
    """

    def __init__(
        self,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_locking: bool = False,
    ) -> None:
        super().__init__()
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.use_locking = use_locking

    def __call__(
        self, var: Tensor, m: Tensor, v: Tensor, vhat: Tensor, beta1_power: Number,
        beta2_power: Number, lr: Number, grad: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update var, m, v and vhat in place by one step of AMSGrad; return these four Parameters.

            m    = beta1 * m + (1 - beta1) * grad
            v    = beta2 * v + (1 - beta2) * grad**2
            vhat = maximum(vhat, v)
            rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
            var  = var - rate * m / (sqrt(vhat) + epsilon)

        beta1, beta2 and epsilon are the constructor's. In step t, counted from 1, `beta1_power` and
        `beta2_power` are beta1**t and beta2**t.
        """
        return ApplyAdamWithAmsgradV2()(
            var, m, v, vhat, beta1_power, beta2_power, lr, self.beta1, self.beta2, self.epsilon,
            grad,
        )  # fmt: skip


class ApplyAddSign(Primitive):
    """AddSign (Bello et al., 2017): `ApplyAddSign()(var, m, lr, alpha, sign_decay, beta, grad)`.

    The step is larger where the gradient and its moving average `m` have the same sign.
    """

    def __call__(
        self, var: Tensor, m: Tensor, lr: Number, alpha: Number, sign_decay: Number,
        beta: Number, grad: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update var and m in place by one step of AddSign; return both Parameters.

            m   = beta * m + (1 - beta) * grad
            var = var - lr * (alpha + sign_decay * sign(grad) * sign(m)) * grad

        `m` is the moving average of the gradient.
        """
        _check("ApplyAddSign", var, m, grad)
        g = _wide(grad)
        m1 = _wide(m) * beta + g * (1.0 - beta)
        step = (alpha + sign_decay * sign(g) * sign(m1)) * g
        return _write((var, m), (_wide(var) - lr * step, m1))


class ApplyPowerSign(Primitive):
    """PowerSign (Bello et al., 2017), called with (var, m, lr, logbase, sign_decay, beta, grad).

    The step is larger where the gradient and its moving average `m` have the same sign.
    """

    def __call__(
        self, var: Tensor, m: Tensor, lr: Number, logbase: Number, sign_decay: Number,
        beta: Number, grad: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update var and m in place by one step of PowerSign; return both Parameters.

            m   = beta * m + (1 - beta) * grad
            var = var - lr * exp(logbase * sign_decay * sign(grad) * sign(m)) * grad

        `m` is the moving average of the gradient.
        """
        _check("ApplyPowerSign", var, m, grad)
        g = _wide(grad)
        m1 = _wide(m) * beta + g * (1.0 - beta)
        step = exp(logbase * sign_decay * sign(g) * sign(m1)) * g
        return _write((var, m), (_wide(var) - lr * step, m1))


class ApplyRMSProp(_Locking):
    """RMSProp, whose step is divided by the root of the gradient's mean square.

    It is called with (var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon).
    """

    def __call__(
        self, var: Tensor, mean_square: Tensor, moment: Tensor, learning_rate: Number,
        grad: Tensor, decay: float, momentum: float, epsilon: float,
    ) -> Tensor:  # fmt: skip
        """Update var, mean_square and moment in place by one step of RMSProp; return var.

            mean_square = decay * mean_square + (1 - decay) * grad**2
            moment      = momentum * moment + learning_rate * grad / sqrt(mean_square + epsilon)
            var         = var - moment

        `moment` is the step that is subtracted from `var`.
        """
        targets = (var, mean_square, moment)
        _check("ApplyRMSProp", *targets, grad)
        new = _stepped(_rmsprop, targets, learning_rate, _wide(grad), decay, momentum, epsilon)
        return _write(targets, new)[0]


class ApplyCenteredRMSProp(_Locking):
    """RMSProp that divides by the root of the gradients' variance, not of their mean square.

    It is called with (var, mean_gradient, mean_square, moment, grad, learning_rate, decay,
    momentum, epsilon).
    """

    def __call__(
        self, var: Tensor, mean_gradient: Tensor, mean_square: Tensor, moment: Tensor,
        grad: Tensor, learning_rate: Number, decay: float, momentum: float, epsilon: float,
    ) -> Tensor:  # fmt: skip
        """Update var and its three statistics in place by one step of centred RMSProp; return var.

            mean_gradient = decay * mean_gradient + (1 - decay) * grad
            mean_square   = decay * mean_square + (1 - decay) * grad**2
            variance      = mean_square - mean_gradient**2
            moment        = momentum * moment + learning_rate * grad / sqrt(variance + epsilon)
            var           = var - moment

        `moment` is the step that is subtracted from `var`.
        """
        _check("ApplyCenteredRMSProp", var, mean_gradient, mean_square, moment, grad)
        g = _wide(grad)
        mean = _wide(mean_gradient) * decay + g * (1.0 - decay)
        new, ms, mom = _rmsprop(
            _wide(var), _wide(mean_square), _wide(moment), learning_rate, g, decay, momentum,
            epsilon, mean,
        )  # fmt: skip
        return _write((var, mean_gradient, mean_square, moment), (new, mean, ms, mom))[0]


class ApplyFtrl(_Locking):
    """FTRL, "follow the regularised leader" (McMahan et al., 2013).

    `ApplyFtrl()(var, accum, linear, grad, lr, l1, l2, lr_power)`.
    """

    def __call__(
        self, var: Tensor, accum: Tensor, linear: Tensor, grad: Tensor, lr: Number, l1: Number,
        l2: Number, lr_power: Number,
    ) -> Tensor:  # fmt: skip
        """Update var, accum and linear in place by one step of FTRL; return var.

            old    = accum ** -lr_power
            accum  = accum + grad**2
            new    = accum ** -lr_power
            linear = linear + grad - (new - old) / lr * var
            var    = -sign(linear) * maximum(abs(linear) - l1, 0) / (new / lr + 2 * l2)

        FTRL is "follow the regularised leader" (McMahan et al., 2013).
        """
        targets = (var, accum, linear)
        _check("ApplyFtrl", *targets, grad)
        return _write(targets, _stepped(_ftrl, targets, _wide(grad), lr, l1, l2, lr_power))[0]


class ApplyGradientDescent(Primitive):
    """Gradient descent, var - alpha * delta: `ApplyGradientDescent()(var, alpha, delta)`."""

    def __call__(self, var: Tensor, alpha: Number, delta: Tensor) -> Tensor:
        """Subtract ``alpha * delta`` from the Parameter `var` in place; return `var`."""
        _check("ApplyGradientDescent", var, delta)
        return _write((var,), (_wide(var) - alpha * _wide(delta),))[0]


class ApplyProximalGradientDescent(Primitive):
    """Proximal gradient descent with l1 and l2 penalties.

    `ApplyProximalGradientDescent()(var, alpha, l1, l2, delta)`, where `alpha` is the step size and
    `delta` the gradient, writes the new value into `var` and returns it.
    """

    def __call__(self, var: Tensor, alpha: Number, l1: Number, l2: Number, delta: Tensor) -> Tensor:
        """Update var in place by one proximal step with l1 and l2 penalties; return var.

            z   = var - alpha * delta
            var = sign(z) * maximum(abs(z) - alpha * l1, 0) / (1 + alpha * l2)

        `delta` is the gradient and `alpha` the step size.
        """
        _check("ApplyProximalGradientDescent", var, delta)
        return _write((var,), (_proximal(_wide(var), alpha, _wide(delta), l1, l2),))[0]


class ApplyProximalAdagrad(_Locking):
    """Adagrad with proximal l1 and l2 penalties.

    A call, `ApplyProximalAdagrad()(var, accum, lr, l1, l2, grad)`, updates `var` and `accum`, the
    sum of the squared gradients, in place and returns both.
    """

    def __call__(
        self, var: Tensor, accum: Tensor, lr: Number, l1: Number, l2: Number, grad: Tensor
    ) -> tuple[Tensor, ...]:
        """Update var and accum in place by one step of proximal Adagrad; return both Parameters.

            accum = accum + grad**2
            rate  = lr / sqrt(accum)
            z     = var - rate * grad
            var   = sign(z) * maximum(abs(z) - rate * l1, 0) / (1 + rate * l2)

        `accum` is the sum of the squared gradients.
        """
        _check("ApplyProximalAdagrad", var, accum, grad)
        g = _wide(grad)
        a = _wide(accum) + square(g)
        return _write((var, accum), (_proximal(_wide(var), lr / sqrt(a), g, l1, l2), a))


class ApplyMomentum(Primitive):
    """Gradient descent with momentum.

    It is called with (variable, accumulation, learning_rate, gradient, momentum).

    Args:
        use_nesterov: whether to use Nesterov momentum, which looks ahead by one step.
        use_locking: without effect, since two updates never run at the same time.
        gradient_scale: factor of the gradient.

    Examples:
        >>> import duograph as ms
        >>> w, a = (ms.Parameter(ms.ops.ones(1), name=n) for n in "wa")
        >>> print(ms.ops.ApplyMomentum()(w, a, 0.1, ms.ops.ones(1), 0.9).asnumpy().round(4))
        [0.81]
    """

    def __init__(
        self,
        use_nesterov: bool = False,
        use_locking: bool = False,
        gradient_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.use_nesterov, self.use_locking = use_nesterov, use_locking
        self.gradient_scale = gradient_scale

    def __call__(
        self, variable: Tensor, accumulation: Tensor, learning_rate: Number, gradient: Tensor,
        momentum: Number,
    ) -> Tensor:  # fmt: skip
        """Update `variable` and `accumulation` in place by one momentum step; return `variable`.

            g            = gradient_scale * gradient
            accumulation = momentum * accumulation + g
            variable     = variable - learning_rate * accumulation

        With `use_nesterov`, the last line has `g + momentum * accumulation` in place of
        `accumulation`. `gradient_scale` and `use_nesterov` are arguments of the constructor.
        """
        _check("ApplyMomentum", variable, accumulation, gradient)
        g = _wide(gradient) * self.gradient_scale
        a = _wide(accumulation) * momentum + g
        step = g + a * momentum if self.use_nesterov else a
        new = _wide(variable) - learning_rate * step
        return _write((variable, accumulation), (new, a))[0]


class ApplyKerasMomentum(_Nesterov):
    """Momentum as Keras defines it: `ApplyKerasMomentum()(var, accum, lr, grad, momentum)`.

    `accum` holds the previous change of `var`, which is already multiplied by the learning rate.
    """

    def __call__(
        self, var: Tensor, accum: Tensor, lr: Number, grad: Tensor, momentum: Number
    ) -> tuple[Tensor, ...]:
        """Update var and accum in place by one momentum step of Keras; return both Parameters.

            accum = momentum * accum - lr * grad
            var   = var + accum

        With the constructor's `use_nesterov`, the last line has `momentum * accum - lr * grad` in
        place of `accum`.
        """
        _check("ApplyKerasMomentum", var, accum, grad)
        step = lr * _wide(grad)
        a = _wide(accum) * momentum - step
        move = a * momentum - step if self.use_nesterov else a
        return _write((var, accum), (_wide(var) + move, a))


class SGD(Primitive):
    """Stochastic gradient descent with momentum.

    `SGD(dampening=0.0, weight_decay=0.0, nesterov=False)` is called with (parameters, gradient,
    learning_rate, accum, momentum, stat).
    """

    def __init__(
        self, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False
    ) -> None:
        super().__init__()
        self.dampening, self.weight_decay, self.nesterov = dampening, weight_decay, nesterov

    def __call__(
        self, parameters: Tensor, gradient: Tensor, learning_rate: Number, accum: Tensor,
        momentum: Number, stat: Tensor,
    ) -> Tensor:  # fmt: skip
        """Update `parameters`, `accum` and `stat` in place by one step of SGD; return `parameters`.

            g          = gradient + weight_decay * parameters
            accum      = g if stat > 0 else momentum * accum + (1 - dampening) * g
            parameters = parameters - learning_rate * (g + momentum * accum if nesterov else accum)
            stat       = 0

        `stat` is a tensor of the shape of `parameters`, positive before the first step and 0
        afterwards. dampening, weight_decay and nesterov are arguments of the constructor.
        """
        _check("SGD", parameters, gradient, accum, stat)
        p, s = _wide(parameters), _wide(stat)
        g = _wide(gradient) + p * self.weight_decay
        a = select_by(s > 0, g, _wide(accum) * momentum + g * (1.0 - self.dampening))
        step = g + a * momentum if self.nesterov else a
        return _write((parameters, accum, stat), (p - learning_rate * step, a, s * 0.0))[0]
