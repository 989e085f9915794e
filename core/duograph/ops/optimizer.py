"""The update formulas of optimisers (Adam, SGD, ...), one op each, and of moving statistics.

`nn/optim` and `normalization.py` call them. Each is a composite op, for which a backend may have
one kernel. Learning rates and powers are 0-d operands, so that a new value never triggers a
compilation; settings that stay the same in all steps are attributes. Arithmetic must be done in at
least float32, and each result has the dtype of the operand that it replaces.
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

    `accum` is the running sum of gradients. `stat` is 1 before the first step and 0 afterwards; the
    first step does not damp the gradient. The gradient is multiplied by `scale`, and `weight_decay`
    * param is added to it.

    Returns: new param, accum, stat.
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
    """Composite op: one step of momentum.

    accum = momentum * accum + grad; param -= lr * accum. The gradient is multiplied by `scale`, and
    `weight_decay` * param is added to it.

    Returns: new param, accum.
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

    `m` and `v` are the moving averages of the gradient and of its square. `beta1_power` and
    `beta2_power` are the betas to the power of the number of steps, with this one. The gradient is
    multiplied by `scale`, and `weight_decay` * param is added to it.

    Returns: new param, m, v.
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

    It is `adam_step` with `vhat`, the largest second moment so far, in place of `v`. The gradient
    is multiplied by `scale`, and `weight_decay` * param is added to it.

    Returns: new param, m, v, vhat.
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
    """Return `param` after one step of Adam with bias-corrected moments.

    Args:
        m1: first moment.
        top: second moment, or for AMSGrad its maximum so far.
        lr: learning rate.
        corrections: divisors of the two moments, 1 - beta^step.
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

    The corrections are ``1 - beta ** t`` for step t, counted from 1. Unlike in `adam_step`, `eps`
    is added to the root of the corrected second moment. The decay `weight_decay` is added to the
    gradient (multiplied by `scale`); the decay `decoupled` shrinks the parameter itself.

    Returns: new param, m, v.
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

    It is `adamw_step`, but divides by the root of `vhat`, the elementwise maximum of all second
    moments `v` so far, instead of the root of `v`.

    Returns: new param, m, v, vhat.
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
    """Composite op: one step of Adam without bias correction, with the decay added to the update.

    `weight_decay` * param is added to the step; the gradient is multiplied by `scale`.

    Returns: new param, m, v.
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
    """Composite op: one step of RMSProp.

    `mean_square` is the moving average, with `decay`, of the squared gradient. `moment` is the step
    that is subtracted from param: momentum * moment + lr * grad / sqrt(mean_square + eps). The
    gradient is multiplied by `scale`, and `weight_decay` * param is added to it.

    Returns: new param, mean_square, moment.
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

    `mean_grad` and `mean_square` are moving averages, with `decay`, of the gradient and its square.
    `moment` is the step that is subtracted from param; `momentum` times the previous step is part
    of it. The gradient is multiplied by `scale`, and `weight_decay` * param is added to it.

    Returns: new param, mean_grad, mean_square, moment.
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

    `accum` is the sum of the squared gradients, which is updated only with `update_slots`. The
    gradient is multiplied by `scale`, and `weight_decay` * param is added to it.

    Returns: new param, accum.
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

    `accum` is the moving average, with `rho`, of the squared gradients, and `accum_update` that of
    the squared steps (before they are multiplied by `lr`).
    The gradient is multiplied by `scale`, and `weight_decay` * param is added to it.

    Returns: new param, accum, accum_update.
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

    `accum` is the sum of the squared gradients, and `linear` the sum of the gradients, corrected
    for the changes of the learning rate lr * accum ** lr_power. `l1` and `l2` are the factors of
    the penalties. The gradient is multiplied by `scale`, and `weight_decay` * param is added to it.

    Returns: new param, accum, linear.
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

    `m` is the moving average of the gradient, `v` the decaying maximum of its absolute value, and
    `beta1_power` beta1 to the power of the number of steps, with this one. The gradient is
    multiplied by `scale`, and `weight_decay` * param is added to it.

    Returns: new param, m, v.
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
    """Composite op: moving averages of batch statistics; `keep` is the weight of the old values.

    `variance` is the biased variance of `count` elements, which is converted to the unbiased one.

    Returns: new moving_mean, moving_variance.
    """
    share = (1.0 - keep) * (count / (count - 1) if count > 1 else 1.0)
    new_mean = _wide(moving_mean) * keep + _wide(mean) * (1.0 - keep)
    new_variance = _wide(moving_variance) * keep + _wide(variance) * share
    return _like(new_mean, moving_mean), _like(new_variance, moving_variance)
