"""The update formulas of optimisers (Adam, SGD, ...), one op each, and of moving statistics.

`nn/optim` and `batch_normalization.py` call them. An op returns the new values of its operands and
writes nothing in place. Each is a composite op, for which a backend may have one kernel. Learning
rates and powers are 0-d operands, so that a new value never triggers a compilation; settings that
stay the same in all steps are attributes. Arithmetic must be done in at least float32, and each
result has the dtype of the operand that it replaces.
"""

from __future__ import annotations

from ..dtype import float32, float64
from ..op import op
from ..tensor import Tensor
from .creation import cast_to
from .elementwise import abs as absolute
from .elementwise import maximum, sign, square
from .powers import sqrt

__all__ = [
    "sgd_step",
    "momentum_step",
    "adam_step",
    "amsgrad_step",
    "adamw_step",
    "adamw_amsgrad_step",
    "adam_weight_decay_step",
    "rmsprop_step",
    "centered_rmsprop_step",
    "adagrad_step",
    "adadelta_step",
    "ftrl_step",
    "adamax_step",
    "moving_statistics",
]


def _wide(x: Tensor) -> Tensor:
    """Cast a tensor to float32, unless it is float32 or float64 already."""
    return x if x.dtype in (float32, float64) else cast_to(x, float32)


def _like(x: Tensor, target: Tensor) -> Tensor:
    """Cast `x` to the dtype of `target`."""
    return x if x.dtype is target.dtype else cast_to(x, target.dtype)


def _gradient(param: Tensor, grad: Tensor, weight_decay: float, scale: float) -> Tensor:
    """Return the gradient with weight decay, ``grad * scale + weight_decay * param``.

    It is float32, or float64 if the operands are float64.
    """
    g = _wide(grad)
    if scale != 1.0:
        g = g * scale
    return g + _wide(param) * weight_decay if weight_decay else g


@op(composite=True)
def sgd_step(
    param: Tensor,
    accum: Tensor,
    stat: Tensor,
    grad: Tensor,
    lr: Tensor,
    momentum: float = 0.0,
    dampening: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of stochastic gradient descent with momentum.

    Returns the new values of param, accum and stat; nothing is written in place.

        g     = scale * grad + weight_decay * param
        accum = momentum * accum + (1 - dampening * (1 - stat)) * g
        param = param - lr * (g + momentum * accum if nesterov else accum)
        stat  = 0

    `accum` is the momentum buffer, 0 before the first step. `stat` is 1 before the first step and 0
    afterwards, so that the first gradient is not damped.
    """
    p, a, s = _wide(param), _wide(accum), _wide(stat)
    g = _gradient(param, grad, weight_decay, scale)
    a = a * momentum + g * (1.0 - dampening + s * dampening)
    step = g + a * momentum if nesterov else a
    return _like(p - lr * step, param), _like(a, accum), _like(s * 0.0, stat)


@op(composite=True)
def momentum_step(
    param: Tensor,
    accum: Tensor,
    grad: Tensor,
    lr: Tensor,
    momentum: Tensor,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of gradient descent with momentum.

    Returns the new values of param and accum; nothing is written in place.

        g     = scale * grad + weight_decay * param
        accum = momentum * accum + g
        param = param - lr * (g + momentum * accum if nesterov else accum)

    `accum` is the momentum buffer, 0 before the first step.
    """
    p, g = _wide(param), _gradient(param, grad, weight_decay, scale)
    a = _wide(accum) * momentum + g
    step = g + a * momentum if nesterov else a
    return _like(p - lr * step, param), _like(a, accum)


def _moments(m: Tensor, v: Tensor, g: Tensor, beta1: float, beta2: float) -> tuple[Tensor, Tensor]:
    return _wide(m) * beta1 + g * (1.0 - beta1), _wide(v) * beta2 + square(g) * (1.0 - beta2)


@op(composite=True)
def adam_step(
    param: Tensor,
    m: Tensor,
    v: Tensor,
    grad: Tensor,
    lr: Tensor,
    beta1_power: Tensor,
    beta2_power: Tensor,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of Adam (Kingma and Ba, 2015).

    Returns the new values of param, m and v; nothing is written in place.

        g     = scale * grad + weight_decay * param
        m     = beta1 * m + (1 - beta1) * g
        v     = beta2 * v + (1 - beta2) * g**2
        rate  = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
        param = param - rate * (beta1 * m + (1 - beta1) * g if nesterov else m) / (sqrt(v) + eps)

    In step t, counted from 1, the operands `beta1_power` and `beta2_power` are beta1**t and
    beta2**t.
    """
    g = _gradient(param, grad, weight_decay, scale)
    m1, v1 = _moments(m, v, g, beta1, beta2)
    rate = lr * sqrt(1.0 - beta2_power) / (1.0 - beta1_power)
    top = m1 * beta1 + g * (1.0 - beta1) if nesterov else m1
    p = _wide(param) - rate * top / (sqrt(v1) + eps)
    return _like(p, param), _like(m1, m), _like(v1, v)


@op(composite=True)
def amsgrad_step(
    param: Tensor,
    m: Tensor,
    v: Tensor,
    vhat: Tensor,
    grad: Tensor,
    lr: Tensor,
    beta1_power: Tensor,
    beta2_power: Tensor,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of AMSGrad (Reddi et al., 2018).

    Returns the new values of param, m, v and vhat; nothing is written in place.

        g     = scale * grad + weight_decay * param
        m     = beta1 * m + (1 - beta1) * g
        v     = beta2 * v + (1 - beta2) * g**2
        vhat  = maximum(vhat, v)
        rate  = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
        param = param - rate * m / (sqrt(vhat) + eps)

    In step t, counted from 1, the operands `beta1_power` and `beta2_power` are beta1**t and
    beta2**t.
    """
    g = _gradient(param, grad, weight_decay, scale)
    m1, v1 = _moments(m, v, g, beta1, beta2)
    top = maximum(_wide(vhat), v1)
    rate = lr * sqrt(1.0 - beta2_power) / (1.0 - beta1_power)
    p = _wide(param) - rate * m1 / (sqrt(top) + eps)
    return _like(p, param), _like(m1, m), _like(v1, v), _like(top, vhat)


def _corrected(
    param: Tensor,
    m1: Tensor,
    top: Tensor,
    lr: Tensor,
    corrections: tuple[Tensor, Tensor],
    eps: float,
    decoupled: float,
) -> Tensor:
    """Return the new value of `param` after one step of Adam with bias correction.

        param = param * (1 - lr * decoupled)
        param = param - lr * (m1 / c1) / (sqrt(top / c2) + eps)

    Args:
        param: the old value, which is not changed.
        m1: new first moment, the moving average of the gradient.
        top: new second moment, or for AMSGrad the maximum of all second moments so far.
        lr: learning rate.
        corrections: the pair (c1, c2) of divisors, 1 - beta1**t and 1 - beta2**t in step t.
        eps: added to the root of the corrected second moment.
        decoupled: factor of the weight decay that is applied to `param` itself (AdamW).
    """
    p = _wide(param)
    if decoupled:
        p = p - p * (lr * decoupled)
    root = sqrt(top) / sqrt(corrections[1]) + eps
    return p - lr / corrections[0] * m1 / root


@op(composite=True)
def adamw_step(
    param: Tensor,
    m: Tensor,
    v: Tensor,
    grad: Tensor,
    lr: Tensor,
    correction1: Tensor,
    correction2: Tensor,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    decoupled: float = 0.0,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    Returns the new values of param, m and v; nothing is written in place.

        g     = scale * grad + weight_decay * param
        m     = beta1 * m + (1 - beta1) * g
        v     = beta2 * v + (1 - beta2) * g**2
        param = param * (1 - lr * decoupled)
        param = param - lr * (m / correction1) / (sqrt(v / correction2) + eps)

    In step t, counted from 1, the operands `correction1` and `correction2` are `1 - beta1**t` and
    `1 - beta2**t`.
    """
    g = _gradient(param, grad, weight_decay, scale)
    m1, v1 = _moments(m, v, g, beta1, beta2)
    p = _corrected(param, m1, v1, lr, (correction1, correction2), eps, decoupled)
    return _like(p, param), _like(m1, m), _like(v1, v)


@op(composite=True)
def adamw_amsgrad_step(
    param: Tensor,
    m: Tensor,
    v: Tensor,
    vhat: Tensor,
    grad: Tensor,
    lr: Tensor,
    correction1: Tensor,
    correction2: Tensor,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    decoupled: float = 0.0,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of AMSGrad (Reddi et al., 2018) with decoupled weight decay.

    Returns the new values of param, m, v and vhat; nothing is written in place.

        g     = scale * grad + weight_decay * param
        m     = beta1 * m + (1 - beta1) * g
        v     = beta2 * v + (1 - beta2) * g**2
        vhat  = maximum(vhat, v)
        param = param * (1 - lr * decoupled)
        param = param - lr * (m / correction1) / (sqrt(vhat / correction2) + eps)

    In step t, counted from 1, the operands `correction1` and `correction2` are `1 - beta1**t` and
    `1 - beta2**t`.
    """
    g = _gradient(param, grad, weight_decay, scale)
    m1, v1 = _moments(m, v, g, beta1, beta2)
    top = maximum(_wide(vhat), v1)
    p = _corrected(param, m1, top, lr, (correction1, correction2), eps, decoupled)
    return _like(p, param), _like(m1, m), _like(v1, v), _like(top, vhat)


@op(composite=True)
def adam_weight_decay_step(
    param: Tensor,
    m: Tensor,
    v: Tensor,
    grad: Tensor,
    lr: Tensor,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of Adam with decoupled weight decay but without bias correction.

    Returns the new values of param, m and v; nothing is written in place.

        g     = scale * grad
        m     = beta1 * m + (1 - beta1) * g
        v     = beta2 * v + (1 - beta2) * g**2
        param = param - lr * (m / (sqrt(v) + eps) + weight_decay * param)

    `m` and `v` are the moving averages of the gradient and of its square.
    """
    g = _gradient(param, grad, 0.0, scale)
    m1, v1 = _moments(m, v, g, beta1, beta2)
    p = _wide(param)
    step = m1 / (sqrt(v1) + eps)
    if weight_decay:
        step = step + p * weight_decay
    return _like(p - lr * step, param), _like(m1, m), _like(v1, v)


@op(composite=True)
def rmsprop_step(
    param: Tensor,
    mean_square: Tensor,
    moment: Tensor,
    grad: Tensor,
    lr: Tensor,
    decay: float = 0.9,
    momentum: float = 0.0,
    eps: float = 1e-10,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of RMSProp (Tieleman and Hinton, 2012).

    Returns the new values of param, mean_square and moment; nothing is written in place.

        g           = scale * grad + weight_decay * param
        mean_square = decay * mean_square + (1 - decay) * g**2
        moment      = momentum * moment + lr * g / sqrt(mean_square + eps)
        param       = param - moment
    """
    g = _gradient(param, grad, weight_decay, scale)
    ms = _wide(mean_square) * decay + square(g) * (1.0 - decay)
    mom = _wide(moment) * momentum + lr * g / sqrt(ms + eps)
    return _like(_wide(param) - mom, param), _like(ms, mean_square), _like(mom, moment)


@op(composite=True)
def centered_rmsprop_step(
    param: Tensor,
    mean_grad: Tensor,
    mean_square: Tensor,
    moment: Tensor,
    grad: Tensor,
    lr: Tensor,
    decay: float = 0.9,
    momentum: float = 0.0,
    eps: float = 1e-10,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of RMSProp that divides by the root of the gradient's variance.

    Returns the new values of param, mean_grad, mean_square and moment; nothing is written in place.

        g           = scale * grad + weight_decay * param
        mean_grad   = decay * mean_grad + (1 - decay) * g
        mean_square = decay * mean_square + (1 - decay) * g**2
        moment      = momentum * moment + lr * g / sqrt(mean_square - mean_grad**2 + eps)
        param       = param - moment
    """
    g = _gradient(param, grad, weight_decay, scale)
    mg = _wide(mean_grad) * decay + g * (1.0 - decay)
    ms = _wide(mean_square) * decay + square(g) * (1.0 - decay)
    mom = _wide(moment) * momentum + lr * g / sqrt(ms - square(mg) + eps)
    return (
        _like(_wide(param) - mom, param), _like(mg, mean_grad), _like(ms, mean_square),
        _like(mom, moment),
    )  # fmt: skip


@op(composite=True)
def adagrad_step(
    param: Tensor,
    accum: Tensor,
    grad: Tensor,
    lr: Tensor,
    update_slots: bool = True,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of Adagrad (Duchi et al., 2011).

    Returns the new values of param and accum; nothing is written in place.

        g     = scale * grad + weight_decay * param
        accum = accum + g**2 if update_slots else accum
        param = param - lr * g / sqrt(accum)
    """
    g = _gradient(param, grad, weight_decay, scale)
    a = _wide(accum) + square(g) if update_slots else _wide(accum)
    return _like(_wide(param) - lr * g / sqrt(a), param), _like(a, accum)


@op(composite=True)
def adadelta_step(
    param: Tensor,
    accum: Tensor,
    accum_update: Tensor,
    grad: Tensor,
    lr: Tensor,
    rho: float = 0.9,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of Adadelta (Zeiler, 2012).

    Returns the new values of param, accum and accum_update; nothing is written in place.

        g            = scale * grad + weight_decay * param
        accum        = rho * accum + (1 - rho) * g**2
        step         = sqrt(accum_update + eps) / sqrt(accum + eps) * g
        accum_update = rho * accum_update + (1 - rho) * step**2
        param        = param - lr * step
    """
    g = _gradient(param, grad, weight_decay, scale)
    a = _wide(accum) * rho + square(g) * (1.0 - rho)
    before = _wide(accum_update)
    step = sqrt(before + eps) / sqrt(a + eps) * g
    after = before * rho + square(step) * (1.0 - rho)
    return _like(_wide(param) - lr * step, param), _like(a, accum), _like(after, accum_update)


@op(composite=True)
def ftrl_step(
    param: Tensor,
    accum: Tensor,
    linear: Tensor,
    grad: Tensor,
    lr: Tensor,
    l1: float = 0.0,
    l2: float = 0.0,
    lr_power: float = -0.5,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of "follow the regularised leader" (FTRL; McMahan et al., 2013).

    Returns the new values of param, accum and linear; nothing is written in place.

        g      = scale * grad + weight_decay * param
        old    = accum ** -lr_power
        accum  = accum + g**2
        new    = accum ** -lr_power
        linear = linear + g - (new - old) / lr * param
        param  = -sign(linear) * maximum(abs(linear) - l1, 0) / (new / lr + 2 * l2)
    """
    p, a, z = _wide(param), _wide(accum), _wide(linear)
    g = _gradient(param, grad, weight_decay, scale)
    a1 = a + square(g)
    if lr_power == -0.5:
        new, old = sqrt(a1), sqrt(a)
    else:
        new, old = a1 ** (-lr_power), a ** (-lr_power)
    z1 = z + g - (new - old) / lr * p
    # where |z1| <= l1 the parameter is 0
    shrunk = sign(z1) * maximum(absolute(z1) - l1, 0.0)
    p1 = -shrunk / (new / lr + 2.0 * l2)
    return _like(p1, param), _like(a1, accum), _like(z1, linear)


@op(composite=True)
def adamax_step(
    param: Tensor,
    m: Tensor,
    v: Tensor,
    grad: Tensor,
    lr: Tensor,
    beta1_power: Tensor,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    scale: float = 1.0,
):
    """Composite op: one step of AdaMax (Kingma and Ba, 2015).

    Returns the new values of param, m and v; nothing is written in place.

        g     = scale * grad + weight_decay * param
        m     = beta1 * m + (1 - beta1) * g
        v     = maximum(beta2 * v, abs(g))
        param = param - lr / (1 - beta1_power) * m / (v + eps)

    In step t, counted from 1, the operand `beta1_power` is beta1**t.
    """
    g = _gradient(param, grad, weight_decay, scale)
    m1 = _wide(m) * beta1 + g * (1.0 - beta1)
    v1 = maximum(_wide(v) * beta2, absolute(g))
    p = _wide(param) - lr / (1.0 - beta1_power) * m1 / (v1 + eps)
    return _like(p, param), _like(m1, m), _like(v1, v)


@op(composite=True)
def moving_statistics(
    moving_mean: Tensor,
    moving_variance: Tensor,
    mean: Tensor,
    variance: Tensor,
    keep: float = 0.9,
    count: int = 1,
):
    """Composite op: one step of the moving averages of a batch's mean and variance.

    Returns the new values of moving_mean and moving_variance; nothing is written in place.

        moving_mean     = keep * moving_mean + (1 - keep) * mean
        moving_variance = keep * moving_variance + (1 - keep) * variance * count / (count - 1)

    `variance` is the biased variance of `count` elements; the factor makes it unbiased. If `count`
    is 1, the factor is 1.
    """
    share = (1.0 - keep) * (count / (count - 1) if count > 1 else 1.0)
    new_mean = _wide(moving_mean) * keep + _wide(mean) * (1.0 - keep)
    new_variance = _wide(moving_variance) * keep + _wide(variance) * share
    return _like(new_mean, moving_mean), _like(new_variance, moving_variance)
