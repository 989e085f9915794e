"""Primitive classes of the steps of Adam and its relatives: `Adam`, `ApplyAdaMax` and others.

Users construct them in their own optimisers. A call updates the Parameters among its arguments in
place and returns all of them, or only the first. `AdamNoUpdateParam` leaves the Parameter itself as
it is and returns its change. Settings may be Tensors.
"""

from __future__ import annotations

from ..tensor import Tensor
from .creation import cast_to
from .elementwise import abs as absolute
from .elementwise import maximum
from .optimizer_formulas import (
    Locking,
    Nesterov,
    Number,
    adam_delta,
    check_shapes,
    moments,
    root,
    wide,
    write,
)
from .powers import sqrt
from .primitive import Primitive

__all__ = [
    "Adam",
    "AdamNoUpdateParam",
    "AdamWeightDecay",
    "ApplyAdaMax",
    "ApplyAdamWithAmsgrad",
    "ApplyAdamWithAmsgradV2",
]


class Adam(Nesterov):
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
        check_shapes("Adam", var, m, v, gradient)
        delta, *moments = adam_delta(
            wide(m), wide(v), wide(gradient), beta1_power, beta2_power, lr, beta1, beta2,
            epsilon, self.use_nesterov,
        )  # fmt: skip
        return write((var, m, v), (wide(var) + delta, *moments))


class AdamNoUpdateParam(Nesterov):
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
        check_shapes("AdamNoUpdateParam", m, v, gradient)
        delta, *moments = adam_delta(
            wide(m), wide(v), wide(gradient), beta1_power, beta2_power, lr, beta1, beta2,
            epsilon, self.use_nesterov,
        )  # fmt: skip
        write((m, v), tuple(moments))
        return cast_to(delta, gradient.dtype)


class AdamWeightDecay(Locking):
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
        check_shapes("AdamWeightDecay", var, m, v, gradient)
        m1, v1 = moments(wide(m), wide(v), wide(gradient), beta1, beta2)
        step = m1 / (sqrt(v1) + epsilon) + wide(var) * decay
        return write((var, m, v), (wide(var) - lr * step, m1, v1))


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
        check_shapes("ApplyAdaMax", var, m, v, grad)
        g = wide(grad)
        m1 = wide(m) * beta1 + g * (1.0 - beta1)
        v1 = maximum(wide(v) * beta2, absolute(g))
        step = lr / (1.0 - beta1_power) * m1 / (v1 + epsilon)
        return write((var, m, v), (wide(var) - step, m1, v1))


class ApplyAdamWithAmsgradV2(Locking):
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
        check_shapes(type(self).__name__, var, m, v, vhat, grad)
        m1, v1 = moments(wide(m), wide(v), wide(grad), beta1, beta2)
        top = maximum(wide(vhat), v1)
        rate = lr * root(1.0 - beta2_power) / (1.0 - beta1_power)
        new = wide(var) - rate * m1 / (sqrt(top) + epsilon)
        return write((var, m, v, vhat), (new, m1, v1, top))


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
