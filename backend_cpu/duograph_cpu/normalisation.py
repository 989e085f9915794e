"""Builders of softmax, layer_norm, batch_norm and their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import lib
from .kernels import call, kernel, plan, product, split

if TYPE_CHECKING:
    from duograph.backend.protocol import Call
    from duograph.types import TensorType

    from ._native import CFunction
    from .kernels import Builder, Types


def _along(name: str, function: CFunction) -> Builder:
    @kernel(name)
    def along(types: Types, results: Types, *, axis: int) -> Call | None:
        x = types[0]
        if x.dtype.kind != "f":
            return None
        outer, n, inner = split(x.shape, axis % len(x.shape)) if x.shape else (1, 1, 1)
        constants = plan("dg_axis", type=x.dtype.index, outer=outer, n=n, inner=inner)
        return call(name, function, constants, types, results)

    return along


_along("softmax", lib.dg_softmax)
_along("log_softmax", lib.dg_log_softmax)
_along("softmax_grad", lib.dg_softmax_grad)
_along("log_softmax_grad", lib.dg_log_softmax_grad)


def _normalise(
    name: str,
    function: CFunction,
    types: Types,
    results: Types,
    x: TensorType,
    weight: TensorType,
    stat: TensorType,
    outer: int,
    n: int,
    inner: int,
    eps: float = 0.0,
) -> Call | None:
    if any(t is None or t.dtype.kind != "f" for t in types) or n == 0:
        return None
    constants = plan(
        "dg_normalisation",
        type=x.dtype.index, weight_type=weight.dtype.index, stat_type=stat.dtype.index,
        outer=outer, n=n, inner=inner, eps=eps,
    )  # fmt: skip
    return call(name, function, constants, types, results)


@kernel("layer_norm_core")
def layer_norm_core(types: Types, results: Types, *, axis: int, eps: float) -> Call | None:
    """Axes axis.. to the end, with mean and rstd for the gradient."""
    x, gamma, _ = types
    outer, n = product(x.shape[:axis]), product(x.shape[axis:])
    return _normalise(
        "layer_norm", lib.dg_layer_norm, types, results, x, gamma, results[1], outer, n, 1, eps
    )


@kernel("layer_norm_grad")
def layer_norm_grad(types: Types, results: Types, *, axis: int) -> Call | None:
    """Gradients of x, gamma and beta."""
    x, gamma, mean, _, _ = types
    outer, n = product(x.shape[:axis]), product(x.shape[axis:])
    return _normalise(
        "layer_norm_grad", lib.dg_layer_norm_grad, types, results, x, gamma, mean, outer, n, 1
    )


@kernel("batch_norm_train")
def batch_norm_train(types: Types, results: Types, *, eps: float) -> Call | None:
    """Channel axis 1, with the mean and the biased variance of the batch."""
    x, gamma, _ = types
    return _normalise(
        "batch_norm",
        lib.dg_batch_norm,
        types,
        results,
        x,
        gamma,
        results[1],
        *split(x.shape, 1),
        eps,
    )


@kernel("batch_norm_grad")
def batch_norm_grad(types: Types, results: Types, *, eps: float) -> Call | None:
    """Gradients of x, gamma and beta."""
    x, gamma, mean, _, _ = types
    return _normalise(
        "batch_norm_grad",
        lib.dg_batch_norm_grad,
        types,
        results,
        x,
        gamma,
        mean,
        *split(x.shape, 1),
        eps,
    )
