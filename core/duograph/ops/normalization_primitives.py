"""Primitive classes of normalisation: BatchNorm and LayerNorm.

Users construct them. They convert MindSpore's constructor arguments and data formats to calls of
`batch_normalization.py` and `normalization.py`, which have the ops.
"""

from __future__ import annotations

from ..tensor import Tensor
from . import batch_normalization, normalization
from .axes import axis_of
from .creation import fill
from .data_formats import first_to_last, last_to_first, wanted_format
from .primitive import Primitive

__all__ = [
    "BatchNorm",
    "LayerNorm",
]


class BatchNorm(Primitive):
    """Batch normalisation of each channel.

    `BatchNorm(is_training=False, epsilon=1e-05, momentum=0.1, data_format="NCHW")(x, scale, bias,
    mean, variance)` returns (result, mean, variance, mean, variance). With `is_training`, these are
    the statistics of the batch, and the running statistics `mean` and `variance` are updated in
    place with the weight `momentum` of the batch; else they are the arguments.

    Examples:
        >>> import duograph as ms
        >>> one, zero = ms.ops.ones((2,)), ms.ops.zeros((2,))
        >>> ms.ops.BatchNorm()(ms.ops.ones((3, 2)), one, zero, zero, one)[0].shape
        (3, 2)
    """

    op = batch_normalization.batch_norm_train

    def __init__(
        self,
        is_training: bool = False,
        epsilon: float = 1e-5,
        momentum: float = 0.1,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        self.is_training = is_training
        self.epsilon = epsilon
        self.momentum = momentum
        self.data_format = wanted_format("BatchNorm", data_format, ("NCHW", "NHWC"))

    def __call__(
        self, input_x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, ...]:
        """Normalise each channel of `input_x`; return (result, mean, variance, mean, variance).

            result = (input_x - mean) / sqrt(variance + epsilon) * scale + bias

        Without `is_training`, mean and variance are the arguments, which are returned unchanged.
        With it, they are the mean and the biased variance of the batch; each of the two arguments,
        if it is a Tensor, is then updated in place to (1 - momentum) * argument + momentum *
        statistic, where the statistic of the second is the batch's unbiased variance. `scale`,
        `bias` and all statistics have one element per channel. `is_training`, `momentum` and
        `epsilon` are arguments of the constructor.
        """
        last = self.data_format == "NHWC" and input_x.ndim > 2
        x = last_to_first(input_x) if last else input_x
        if self.is_training:
            out, m, v = batch_normalization.batch_norm_train(x, scale, bias, float(self.epsilon))
            if isinstance(mean, Tensor) and isinstance(variance, Tensor):
                batch_normalization.move_statistics(x, mean, variance, m, v, 1.0 - self.momentum)
        else:
            out, m, v = (
                batch_normalization.batch_norm_infer(
                    x, scale, bias, mean, variance, float(self.epsilon)
                ),
                mean,
                variance,
            )
        return first_to_last(out) if last else out, m, v, m, v


class LayerNorm(Primitive):
    """Layer normalisation of each sample.

    `LayerNorm(begin_norm_axis=1, begin_params_axis=1, epsilon=1e-07)(x, gamma, beta)` returns
    (result, mean, variance). The axes from `begin_norm_axis` on are normalised together.

    Examples:
        >>> import duograph as ms
        >>> one = ms.ops.ones((2,))
        >>> print(ms.ops.LayerNorm()(ms.Tensor([[1.0, 3.0]]), one, one)[1])
        [[2.]]
    """

    op = normalization.layer_norm_core

    def __init__(
        self, begin_norm_axis: int = 1, begin_params_axis: int = 1, epsilon: float = 1e-7
    ) -> None:
        super().__init__()
        self.begin_norm_axis = begin_norm_axis
        self.begin_params_axis = begin_params_axis
        self.epsilon = epsilon

    def __call__(self, input_x: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, ...]:
        """Normalise each sample, scale by `gamma`, add `beta`; return (result, mean, variance).

        The mean and the variance are those over the axes from `begin_norm_axis` (an argument of the
        constructor) on; these axes have size 1 in both.
        """
        x = input_x
        axis = axis_of("LayerNorm", self.begin_norm_axis, x.ndim)
        params = axis_of("LayerNorm", self.begin_params_axis, x.ndim)
        shape = x.shape[axis:]
        direct = params == axis and gamma.shape == shape
        if direct:
            out, mean, rstd = normalization.layer_norm_core(
                x, gamma, beta, axis, float(self.epsilon)
            )
        else:
            one, zero = fill(shape, 1.0, x.dtype), fill(shape, 0.0, x.dtype)
            out, mean, rstd = normalization.layer_norm_core(x, one, zero, axis, float(self.epsilon))
            out = out * gamma + beta
        return out, mean, 1.0 / (rstd * rstd) - self.epsilon
