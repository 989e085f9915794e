"""Primitive classes of optimiser steps: `ApplyMomentum`, `ApplyFtrl`, `SGD` and others.

Users construct them in their own optimisers. A call updates the Parameters among its arguments in
place and returns all of them, or only the first. The formulas are those of `optimizer`, but here
settings may be Tensors. `adam_primitives` has Adam and its relatives.
"""

from __future__ import annotations

from ..dtype import float32
from ..tensor import Tensor
from .creation import cast_to
from .elementwise import abs as absolute
from .elementwise import maximum, sign, square
from .exponential import exp
from .logic import select_by
from .optimizer_formulas import (
    Locking,
    Nesterov,
    Number,
    adadelta,
    check_shapes,
    ftrl,
    proximal,
    rmsprop,
    stepped,
    wide,
    write,
)
from .powers import sqrt
from .primitive import Primitive

__all__ = [
    "ApplyAdadelta",
    "ApplyAdagrad",
    "ApplyAdagradDA",
    "ApplyAdagradV2",
    "ApplyAddSign",
    "ApplyCenteredRMSProp",
    "ApplyFtrl",
    "ApplyGradientDescent",
    "ApplyKerasMomentum",
    "ApplyMomentum",
    "ApplyPowerSign",
    "ApplyProximalAdagrad",
    "ApplyProximalGradientDescent",
    "ApplyRMSProp",
    "SGD",
]


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
        check_shapes("ApplyAdadelta", *targets, grad)
        return write(targets, stepped(adadelta, targets, lr, rho, epsilon, wide(grad)))


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
        check_shapes(type(self).__name__, var, accum, grad)
        g, a = wide(grad), wide(accum)
        if self.update_slots:
            a = a + square(g)
        return write((var, accum), (wide(var) - lr * g / (sqrt(a) + self.epsilon), a))


class ApplyAdagradV2(ApplyAdagrad):
    """Adagrad with `epsilon` added to the root of accum.

    `ApplyAdagradV2(epsilon, update_slots=True)(var, accum, lr, grad)`.
    """

    def __init__(self, epsilon: float, update_slots: bool = True) -> None:
        super().__init__(update_slots)
        self.epsilon = epsilon


class ApplyAdagradDA(Locking):
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
        check_shapes("ApplyAdagradDA", *targets, grad)
        g = wide(grad)
        total = wide(gradient_accumulator) + g
        squares = wide(gradient_squared_accumulator) + square(g)
        step = cast_to(global_step, float32) if isinstance(global_step, Tensor) else global_step
        shrunk = sign(total) * maximum(absolute(total) - l1 * step, 0.0)
        new = -(lr * shrunk) / (l2 * step * lr + sqrt(squares))
        return write(targets, (new, total, squares))[0]


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
        check_shapes("ApplyAddSign", var, m, grad)
        g = wide(grad)
        m1 = wide(m) * beta + g * (1.0 - beta)
        step = (alpha + sign_decay * sign(g) * sign(m1)) * g
        return write((var, m), (wide(var) - lr * step, m1))


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
        check_shapes("ApplyPowerSign", var, m, grad)
        g = wide(grad)
        m1 = wide(m) * beta + g * (1.0 - beta)
        step = exp(logbase * sign_decay * sign(g) * sign(m1)) * g
        return write((var, m), (wide(var) - lr * step, m1))


class ApplyRMSProp(Locking):
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
        check_shapes("ApplyRMSProp", *targets, grad)
        new = stepped(rmsprop, targets, learning_rate, wide(grad), decay, momentum, epsilon)
        return write(targets, new)[0]


class ApplyCenteredRMSProp(Locking):
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
        check_shapes("ApplyCenteredRMSProp", var, mean_gradient, mean_square, moment, grad)
        g = wide(grad)
        mean = wide(mean_gradient) * decay + g * (1.0 - decay)
        new, ms, mom = rmsprop(
            wide(var), wide(mean_square), wide(moment), learning_rate, g, decay, momentum,
            epsilon, mean,
        )  # fmt: skip
        return write((var, mean_gradient, mean_square, moment), (new, mean, ms, mom))[0]


class ApplyFtrl(Locking):
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
        check_shapes("ApplyFtrl", *targets, grad)
        return write(targets, stepped(ftrl, targets, wide(grad), lr, l1, l2, lr_power))[0]


class ApplyGradientDescent(Primitive):
    """Gradient descent, var - alpha * delta: `ApplyGradientDescent()(var, alpha, delta)`."""

    def __call__(self, var: Tensor, alpha: Number, delta: Tensor) -> Tensor:
        """Subtract ``alpha * delta`` from the Parameter `var` in place; return `var`."""
        check_shapes("ApplyGradientDescent", var, delta)
        return write((var,), (wide(var) - alpha * wide(delta),))[0]


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
        check_shapes("ApplyProximalGradientDescent", var, delta)
        return write((var,), (proximal(wide(var), alpha, wide(delta), l1, l2),))[0]


class ApplyProximalAdagrad(Locking):
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
        check_shapes("ApplyProximalAdagrad", var, accum, grad)
        g = wide(grad)
        a = wide(accum) + square(g)
        return write((var, accum), (proximal(wide(var), lr / sqrt(a), g, l1, l2), a))


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
        check_shapes("ApplyMomentum", variable, accumulation, gradient)
        g = wide(gradient) * self.gradient_scale
        a = wide(accumulation) * momentum + g
        step = g + a * momentum if self.use_nesterov else a
        new = wide(variable) - learning_rate * step
        return write((variable, accumulation), (new, a))[0]


class ApplyKerasMomentum(Nesterov):
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
        check_shapes("ApplyKerasMomentum", var, accum, grad)
        step = lr * wide(grad)
        a = wide(accum) * momentum - step
        move = a * momentum - step if self.use_nesterov else a
        return write((var, accum), (wide(var) + move, a))


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
        check_shapes("SGD", parameters, gradient, accum, stat)
        p, s = wide(parameters), wide(stat)
        g = wide(gradient) + p * self.weight_decay
        a = select_by(s > 0, g, wide(accum) * momentum + g * (1.0 - self.dampening))
        step = g + a * momentum if self.nesterov else a
        return write((parameters, accum, stat), (p - learning_rate * step, a, s * 0.0))[0]
