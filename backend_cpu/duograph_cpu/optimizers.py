"""Builders of optimiser steps: composites that are claimed whole for float32."""

from ._native import lib
from .kernels import call, kernel, plan


def _step(name, function, types, results, scalars, **constants):
    """A call, when all operands are float32, the last `scalars` of them 0-d and the others alike."""
    n = types[0].size
    whole, rates = types[:-scalars], types[-scalars:]
    if any(t is None or t.dtype.name != "float32" for t in types):
        return None
    if any(t.shape != types[0].shape for t in whole) or any(t.size != 1 for t in rates):
        return None
    over = [(k, k) for k in range(len(results))]  # the new parameter and moments, over the old ones
    return call(
        name,
        function,
        plan("dg_step", n=n, **constants),
        types,
        results,
        overwrites=over,
        infallible=True,
    )


@kernel("adam_step")
def adam_step(types, results, *, beta1, beta2, eps, nesterov, weight_decay, scale):
    """Adam, with bias correction."""
    return _step(
        "adam_step",
        lib.dg_adam,
        types,
        results,
        3,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        nesterov=nesterov,
        weight_decay=weight_decay,
        scale=scale,
    )


@kernel("adam_weight_decay_step")
def adam_weight_decay_step(types, results, *, beta1, beta2, eps, weight_decay, scale):
    """Adam without bias correction, the decay added to the update."""
    return _step(
        "adam_weight_decay_step",
        lib.dg_adam_weight_decay,
        types,
        results,
        1,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        weight_decay=weight_decay,
        scale=scale,
    )


@kernel("momentum_step")
def momentum_step(types, results, *, nesterov, weight_decay, scale):
    """Momentum, plain or Nesterov's."""
    return _step(
        "momentum_step",
        lib.dg_momentum,
        types,
        results,
        2,
        nesterov=nesterov,
        weight_decay=weight_decay,
        scale=scale,
    )
