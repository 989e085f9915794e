"""Batch normalisation of the channels (axis 1), its statistics and its gradients.

Users call `batch_norm`, normalisation layers the ops. All ops are composite, and a backend may have
one kernel for each. Statistics of 16-bit floats must be float32, because sums of many elements lose
too many digits in 16 bits.
"""

from __future__ import annotations

from ..call_cache import cached_call
from ..dtype import FLOATING
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..tensor import Tensor
from ..types import TensorType
from .creation import fill
from .linalg import widened
from .movement import stop_gradient
from .normalization import (
    along_channels,
    check_channels,
    check_gradient,
    in_dtype,
    is_zero,
    statistics_dtype,
)
from .optimizer import moving_statistics
from .powers import rsqrt
from .reduction import reduce_mean
from .shape_primitives import broadcast_to, reduce_sum
from .state import assign

__all__ = ["batch_norm"]


@op(dtypes=FLOATING)
def batch_moments(input: Tensor):
    """Composite op: mean and biased variance of each channel (axis 1)."""
    axes = (0, *range(2, input.ndim))
    x = widened(input)
    mean = reduce_mean(x, axes, False)
    centred = x - along_channels(mean, x.ndim)
    return mean, reduce_mean(centred * centred, axes, False)


@batch_moments.infer
def _(x):
    check_channels("batch_moments", x)
    kept = TensorType.of((x.shape[1],), statistics_dtype(x.dtype))
    return kept, kept


@op(dtypes=FLOATING)
def batch_products(dout: Tensor, input: Tensor, mean: Tensor):
    """Composite op: the sums of `dout` and of dout * (input - mean) over each channel.

    The gradients of batch normalisation need them.
    """
    axes = (0, *range(2, input.ndim))
    dy = widened(dout)
    centred = widened(input) - along_channels(mean, input.ndim)
    return reduce_sum(dy, axes, False), reduce_sum(dy * centred, axes, False)


@batch_products.infer
def _(dout, x, mean):
    check_channels("batch_products", x)
    kept = TensorType.of((x.shape[1],), statistics_dtype(x.dtype))
    if dout.plain is not x.plain or mean.plain is not kept:
        raise ShapeError(
            f"batch_products: got a gradient of {dout} and means of {mean} for an input of {x}; "
            f"wanted {x} and {kept}"
        )
    return kept, kept


@op(dtypes=FLOATING)
def batch_norm_train(input: Tensor, gamma: Tensor, beta: Tensor, eps: float):
    """Composite op: batch normalisation of the channels (axis 1) by batch statistics.

    Returns (normalised * gamma + beta, mean, biased variance). Source: Ioffe and Szegedy, 2015.
    """
    mean, variance = batch_moments(input)
    x = widened(input)
    scale = rsqrt(variance + eps) * in_dtype(gamma, x.dtype)
    centred = x - along_channels(mean, x.ndim)
    out = centred * along_channels(scale, x.ndim) + along_channels(in_dtype(beta, x.dtype), x.ndim)
    return in_dtype(out, input.dtype), mean, variance


@batch_norm_train.infer
def _(x, gamma, beta, eps):
    check_channels("batch_norm", x, gamma=gamma, beta=beta)
    kept = TensorType.of((x.shape[1],), statistics_dtype(x.dtype))
    return x, kept, kept


@batch_norm_train.bprop
def _(x, gamma, beta, out, dout, eps):
    _, mean, variance = out
    dy, dmean, dvariance = dout
    dx, dgamma, dbeta = batch_norm_grad(x, gamma, mean, variance, dy, eps)
    n = x.size // x.shape[1] if x.shape[1] else 1
    if not is_zero(dmean):
        dx = dx + in_dtype(
            broadcast_to(along_channels(dmean * (1.0 / n), x.ndim), x.shape), x.dtype
        )
    if not is_zero(dvariance):
        centred = widened(x) - along_channels(mean, x.ndim)
        dx = dx + in_dtype(centred * along_channels(dvariance * (2.0 / n), x.ndim), x.dtype)
    return dx, dgamma, in_dtype(dbeta, beta.dtype)


@op(dtypes=FLOATING)
def batch_norm_grad(
    input: Tensor, gamma: Tensor, mean: Tensor, var: Tensor, dout: Tensor, eps: float
):
    """Composite op: gradients of `batch_norm_train` with respect to input, gamma and beta.

    `mean` and `var` are the statistics that `batch_norm_train` returned, and `dout` is the
    cotangent of its first result.
    """
    n = input.size // input.shape[1] if input.shape[1] else 1
    dbeta, product = batch_products(dout, input, mean)
    dy = widened(dout)
    centred = widened(input) - along_channels(mean, input.ndim)
    rstd = rsqrt(var + eps)
    dgamma = product * rstd
    inner = (
        dy
        - along_channels(dbeta * (1.0 / n), input.ndim)
        - centred * along_channels(rstd * dgamma * (1.0 / n), input.ndim)
    )
    dx = inner * along_channels(in_dtype(gamma, dy.dtype) * rstd, input.ndim)
    return in_dtype(dx, input.dtype), in_dtype(dgamma, gamma.dtype), in_dtype(dbeta, gamma.dtype)


@batch_norm_grad.infer
def _(x, gamma, mean, var, dout, eps):
    check_channels("batch_norm_grad", x, gamma=gamma)
    kept = TensorType.of((x.shape[1],), statistics_dtype(x.dtype))
    check_gradient("batch_norm_grad", x, dout, gamma, kept.shape, (mean, var), kept)
    return x, gamma, gamma


@op(dtypes=FLOATING)
def batch_norm_infer(
    input: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, eps: float
):
    """Composite op: batch normalisation of the channels (axis 1) by a given mean and variance."""
    check_channels(
        "batch_norm", input._type, gamma=gamma._type, beta=beta._type, mean=mean._type,
        variance=variance._type,
    )  # fmt: skip
    x = widened(input)
    scale = rsqrt(in_dtype(variance, x.dtype) + eps) * in_dtype(gamma, x.dtype)
    shift = in_dtype(beta, x.dtype) - in_dtype(mean, x.dtype) * scale
    return in_dtype(x * along_channels(scale, x.ndim) + along_channels(shift, x.ndim), input.dtype)


@cached_call
def batch_norm(
    input_x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel to mean 0 and variance 1 (`mindspore.ops.batch_norm`).

    The result is multiplied by `weight`, and `bias` is added.

    Args:
        input_x: Tensor (N, C, ...), floating.
        running_mean, running_var: Tensors (C,). Without `training` they are used, else they are
            updated in place with the batch's statistics (the unbiased variance), unless None.
        weight, bias: Tensors (C,), or None for 1 and 0.
        training: whether to use the statistics of the batch.
        momentum: weight of the batch in the running statistics.
        eps: added to the variance.

    Returns:
        Tensor of the shape of `input_x`.

    Raises:
        ValueError: sizes that do not fit; no running statistics without `training`.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[1.0], [3.0]])
        >>> print(ms.ops.batch_norm(x, None, None, training=True).round(decimals=3))
        [[-1.]
         [ 1.]]
    """
    if input_x.ndim < 2:
        raise ShapeError(f"batch_norm: got input of shape {input_x.shape}; wanted (N, C, ...)")
    channels = (input_x.shape[1],)
    kept = statistics_dtype(input_x.dtype)
    gamma = fill(channels, 1.0, kept) if weight is None else weight
    beta = fill(channels, 0.0, kept) if bias is None else bias
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentValueError(
                "batch_norm: got no running_mean or running_var; wanted both, or training=True"
            )
        return batch_norm_infer(input_x, gamma, beta, running_mean, running_var, float(eps))
    out, mean, variance = batch_norm_train(input_x, gamma, beta, float(eps))
    if running_mean is not None and running_var is not None:
        move_statistics(input_x, running_mean, running_var, mean, variance, 1.0 - momentum)
    return out


def move_statistics(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    mean: Tensor,
    variance: Tensor,
    keep: float,
) -> None:
    """Update `running_mean` and `running_var` in place with the statistics of a batch `x`.

    The batch's statistics are `mean` and the biased `variance`, which is converted to the unbiased
    one. `keep` is the weight of the old values.
    """
    found = moving_statistics(
        running_mean, running_var, stop_gradient(mean), stop_gradient(variance), keep,
        x.size // x.shape[1] if x.shape[1] else 1,
    )  # fmt: skip
    assign(running_mean, found[0])
    assign(running_var, found[1])
