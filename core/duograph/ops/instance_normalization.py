"""Normalisation of each channel of each sample (Ulyanov et al., 2016): function and primitive.

Users call both. Results depend on the statistics of the samples. Running statistics are updated,
but used for the result only by `instance_norm(use_input_stats=False)`.
"""

from __future__ import annotations

from ..errors import ArgumentValueError, ShapeError
from ..tensor import Tensor
from .batch_normalization import batch_norm
from .creation import cast_to
from .linalg import widened
from .movement import stop_gradient
from .normalization import group_norm
from .optimizer import moving_statistics
from .primitive import Primitive
from .state import assign

__all__ = ["InstanceNorm", "instance_norm"]


def moved_statistics(
    x: Tensor, mean: Tensor, variance: Tensor, keep: float
) -> tuple[Tensor, Tensor]:
    """Return running (mean, variance) updated with those of each channel of each sample, (N, C).

    The variance of a sample is unbiased: it divides by the number of elements minus one.

    Args:
        x: Tensor (N, C, ...).
        mean, variance: the old values (C,).
        keep: weight of the old values in the result; the sample has the weight 1 - keep.
    """
    samples, channels = x.shape[:2]
    count = max(x.size // max(samples * channels, 1), 1)
    rows = widened(stop_gradient(x)).reshape(samples, channels, count)
    new_mean = rows.mean(2, True)
    centred = rows - new_mean
    new_variance = (centred * centred).mean(2)
    moved = moving_statistics(mean, variance, new_mean.reshape(samples, channels), new_variance,
                              keep, count)  # fmt: skip
    return moved[0], moved[1]


def move_statistics(
    x: Tensor, mean: Tensor, variance: Tensor, keep: float
) -> tuple[Tensor, Tensor]:
    """Update running statistics in place with the statistics of `x`.

    `mean` and `variance` (C,) are set to the means over the samples of what `moved_statistics`
    returns, (N, C), which is also the result.
    """
    moved = moved_statistics(x, mean, variance, keep)
    for target, value in zip((mean, variance), moved, strict=True):
        assign(target, cast_to(value.mean(0), target.dtype))
    return moved


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample to mean 0 and variance 1 (Ulyanov et al., 2016).

    MindSpore has it as a primitive only.

    Args:
        input: Tensor (N, C, ...), floating.
        running_mean, running_var: Tensors (C,), or None. Used if `use_input_stats` is False, else
            updated in place with the mean over the samples.
        weight, bias: Tensors (C,), or None.
        momentum: weight of the samples in the running statistics.
        eps: added to the variance.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        ValueError: an input of fewer than two axes, sizes that do not fit, one of the running
            statistics without the other, or none with ``use_input_stats=False``.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.instance_norm(ms.ops.ones((2, 4, 3))).shape
        (2, 4, 3)
    """
    if (running_mean is None) != (running_var is None):
        raise ArgumentValueError(
            "instance_norm: got one of running_mean and running_var; wanted both or none"
        )
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if input.ndim < 2:
        raise ShapeError(f"instance_norm: got input of shape {input.shape}; wanted (N, C, ...)")
    if running_mean is not None and running_var is not None:
        move_statistics(input, running_mean, running_var, 1.0 - momentum)
    return group_norm(input, weight, bias, input.shape[1], float(eps))


class InstanceNorm(Primitive):
    """Normalisation of each channel of each sample, with running statistics.

    `InstanceNorm(epsilon=1e-5, momentum=0.1)(input_x, gamma, beta, mean, variance)` returns
    (result, moved mean, moved variance). The moved statistics (N * C,) are ``momentum * old + (1 -
    momentum) * new`` for each channel of each sample. `mean` and `variance`, (C,), are set to the
    means of these over the samples. The result does not depend on `mean` and `variance`.

    Raises:
        TypeError: `epsilon` or `momentum` is not a number.
        ValueError: one of them outside [0, 1], or sizes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> one, zero = ms.ops.ones(2), ms.ops.zeros(2)
        >>> out, mean, _ = ms.ops.InstanceNorm()(ms.ops.ones((1, 2, 3, 3)), one, zero, zero, one)
        >>> print(out.shape, mean)
        (1, 2, 3, 3) [0.9 0.9]
    """

    def __init__(self, epsilon: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        for name, value in (("epsilon", epsilon), ("momentum", momentum)):
            if not 0 <= value <= 1:
                raise ArgumentValueError(
                    f"InstanceNorm: got {name}={value!r}; wanted a number in [0, 1]"
                )
        self.epsilon, self.momentum = float(epsilon), float(momentum)

    def __call__(
        self, input_x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, ...]:
        """Normalise each channel of each sample by its own mean and variance, scale and shift.

        Returns (result, moved mean, moved variance), and updates `mean` and `variance` in place.
        """
        out = instance_norm(input_x, None, None, gamma, beta, True, self.momentum, self.epsilon)
        moved = move_statistics(input_x, mean, variance, self.momentum)
        return out, moved[0].reshape(-1), moved[1].reshape(-1)
