"""AdaFactor, an optimiser whose state for a matrix has one number per row and column.

`nn` exports it. It keeps mean squares of rows and columns instead of those of elements, so that its
state is small for large weights.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import ops
from ...common.initializer import initializer
from ...dtype import DType, float16, float32
from ...errors import ArgumentError, ArgumentValueError
from ...parameter import Parameter, ParameterTuple
from ...tensor import Tensor
from .. import _check
from .._types import Params, Rate
from .optimizer import Optimizer

__all__ = ["AdaFactor"]

Shape = tuple[int, ...]


class AdaFactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018; `mindspore.nn.AdaFactor`).

    With ``b = 1 - step ** -decay_rate``, the mean square of the gradient g is ``v = b * v + (1 - b)
    * (g ** 2 + eps[0])``; of a Parameter with two axes or more only the means of v over its last
    and its second last axis are kept, r and c, and v is ``r * c / mean(r)``. Then ``u = g /
    sqrt(v); u = lr * u / max(1, rms(u) / clip_threshold); m = beta1 * m + (1 - beta1) * u; p = p *
    (1 - lr * weight_decay) - m``.

    Args:
        params: see `Optimizer`. A group's ``lr`` needs ``relative_step=False``.
        learning_rate: see `Optimizer`; None with `relative_step`.
        eps: two non-negative numbers: the first is added to the squared gradient, the second is the
            least `rms` of a Parameter for `scale_parameter`.
        clip_threshold: largest root mean square of an update, above 0.
        decay_rate: exponent in the formula of b, inside (0, 1).
        beta1: decay of the mean update m, 0 or more and below 1; None or 0 for no m.
        weight_decay: a number, 0 or more and below 1; without groups it concerns every Parameter.
        scale_parameter: whether to multiply the rate by ``max(eps[1], rms(p))``. This has no effect
            if `learning_rate` is a Tensor, a list or a schedule.
        relative_step: whether the rate, before `scale_parameter`, is ``min(0.01, 1 / sqrt(step))``.
        warmup_init: whether the rate of `relative_step` is ``min(1e-6 * step, 1 / sqrt(step))``
            instead.
        compression: whether to store v of Parameters with fewer than two axes in float16.
        loss_scale: gradients are divided by it.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument out of range; a `learning_rate` and `relative_step` together, or
            neither; `warmup_init` without `relative_step`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> _ = ms.nn.AdaFactor([p], beta1=None)((ms.Tensor([1.0, -1.0]),))
        >>> print(p.asnumpy())
        [0.9841886 2.0158114]
    """

    needs_whole = "it takes means over the rows and columns of whole gradients"

    def __init__(
        self,
        params: Params,
        learning_rate: Rate | None = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = 0.8,
        beta1: float | None = 0.9,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
        compression: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        owner = "AdaFactor"
        for name, value in (
            ("scale_parameter", scale_parameter), ("relative_step", relative_step),
            ("warmup_init", warmup_init), ("compression", compression),
        ):  # fmt: skip
            _check.boolean(owner, name, value)
        _check_rates(owner, learning_rate is not None, relative_step, warmup_init)
        _check.in_range(owner, "weight_decay", weight_decay, 0, 1, open_high=True)
        rate = 0.0 if learning_rate is None else learning_rate
        super().__init__(rate, params, weight_decay, loss_scale)
        if relative_step and self.is_group_lr:
            raise ArgumentValueError(f"{owner}: got lr in a group; wanted relative_step=False")
        if self.dynamic_weight_decay:
            raise ArgumentError(f"{owner}: got a Cell as weight_decay; wanted a number")
        if not isinstance(eps, (list, tuple)):
            raise ArgumentError(f"{owner}: got eps={eps!r}; wanted two numbers")
        if len(eps) != 2:
            raise ArgumentValueError(f"{owner}: got eps={eps!r}; wanted two numbers")
        self.eps = tuple(_check.in_range(owner, "eps", e, 0) for e in eps)
        self.clip_threshold = _check.in_range(
            owner, "clip_threshold", clip_threshold, 0, open_low=True
        )
        self.decay_rate = _check.in_range(
            owner, "decay_rate", decay_rate, 0, 1, open_low=True, open_high=True
        )
        self.beta1 = _check.in_range(owner, "beta1", beta1 or 0.0, 0, 1, open_high=True)
        self.relative_step, self.warmup_init = relative_step, warmup_init
        self.scale_parameter = scale_parameter and (
            learning_rate is None or isinstance(learning_rate, (int, float))
        )
        self.compression = compression
        self._create_state()

    def _create_state(self) -> None:
        """Create the optimiser's state: first moments, mean squares, and the number of the step.

        The names and shapes are those of MindSpore's AdaFactor. There are first moments only if
        `beta1` is set.
        """
        if self.beta1:
            self.exp_avg = self._state("exp_avg")
        vector = float16 if self.compression else None
        self.exp_avg_sq_row = self._means("row_", lambda s: s[:-1] if len(s) > 1 else (1,))
        self.exp_avg_sq_col = self._means("col_", lambda s: s[:-2] + s[-1:] if s[1:] else (1,))
        self.exp_avg_sq = self._means("", lambda s: (1,) if len(s) > 1 else s, vector)
        self.step = Parameter(initializer(0, (1,), float32), name="afactor_step")

    def _means(
        self, infix: str, shape: Callable[[Shape], Shape], vector: DType | None = None
    ) -> ParameterTuple:
        """Create a mean square Parameter for each Parameter of the optimiser; return them all.

        Args:
            infix: part of the names before the Parameter's own name.
            shape: function from a Parameter's shape to that of its mean square.
            vector: dtype for Parameters with fewer than two axes; None means the Parameter's own.
        """
        return ParameterTuple([
            Parameter(
                initializer(0, shape(p.shape), (vector if p.ndim < 2 else None) or p.dtype),
                name=f"exp_avg_sq_{infix}{p.name}",
            )
            for p in self.parameters
        ])  # fmt: skip

    def begin_step(self) -> None:
        self.step.set_data(self.step + 1.0)

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        step = self.step.reshape(())
        if self.relative_step:
            first = 1e-6 * step if self.warmup_init else ops.full_like(step, 1e-2)
            lr = ops.minimum(first, 1.0 / ops.sqrt(step))
        wide = param.astype(float32) if param.dtype is float16 else param
        g = grad.astype(wide.dtype)
        if scale != 1.0:
            g = g * scale
        if self.scale_parameter:
            rms = _rms(wide)
            lr = lr * ops.maximum(rms, ops.full_like(rms, self.eps[1]))
        moved = g * ops.rsqrt(self._mean_square(i, ops.square(g) + self.eps[0], step))
        excess = _rms(moved) / self.clip_threshold
        moved = moved / ops.maximum(excess, ops.full_like(excess, 1.0)) * lr
        if self.beta1:
            moment = self.exp_avg[i]
            moved = moment.astype(wide.dtype) * self.beta1 + moved * (1.0 - self.beta1)
            moment.set_data(moved.astype(moment.dtype))
        weight_decay = decay if isinstance(self._decay, tuple) else self._decay
        if weight_decay:
            wide = wide - wide * (lr * weight_decay)
        param.set_data((wide - moved).astype(param.dtype))

    def _mean_square(self, i: int, square: Tensor, step: Tensor) -> Tensor:
        """Update the mean square gradient of Parameter number `i`; return an estimate per element.

        `square` is the squared gradient, `step` the number of the step.
        """
        kept = 1.0 - ops.pow(step, -self.decay_rate)

        def moved_on(mean: Parameter, new: Tensor) -> Tensor:
            found = mean.astype(square.dtype) * kept + new * (1.0 - kept)
            mean.set_data(found.astype(mean.dtype))
            return found

        if square.ndim < 2:
            return moved_on(self.exp_avg_sq[i], square)
        row = moved_on(self.exp_avg_sq_row[i], square.mean(-1))
        column = moved_on(self.exp_avg_sq_col[i], square.mean(-2))
        return (row / row.mean(-1, True)).expand_dims(-1) * column.expand_dims(-2)


def _rms(x: Tensor) -> Tensor:
    """Return the root of the mean square of all elements."""
    return ops.sqrt(ops.square(x).mean())


def _check_rates(owner: str, has_rate: bool, relative_step: bool, warmup_init: bool) -> None:
    if has_rate and relative_step:
        raise ArgumentValueError(
            f"{owner}: got a learning_rate and relative_step=True; wanted one of them"
        )
    if not has_rate and not relative_step:
        raise ArgumentValueError(
            f"{owner}: got learning_rate=None and relative_step=False; wanted one of them"
        )
    if warmup_init and not relative_step:
        raise ArgumentValueError(
            f"{owner}: got warmup_init=True and relative_step=False; wanted relative_step=True"
        )
