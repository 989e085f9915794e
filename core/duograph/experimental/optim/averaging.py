"""ASGD, which averages the Parameters, and Rprop, which uses the signs of the gradients only.

`experimental.optim` exports them. Every update is made of public ops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ... import ops
from ...nn import _check
from ...parameter import Parameter
from ...tensor import Tensor
from .adaptive import StepCounting, check_settings, write

if TYPE_CHECKING:
    from .optimizer import ParamGroup

__all__ = ["ASGD", "Rprop"]


class ASGD(StepCounting):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992;
    `mindspore.experimental.optim.ASGD`).

    ``p = p * (1 - lambd * eta) - eta * g`` with ``eta = lr / (1 + lambd * lr * t) ** alpha``; from
    step `t0` on, the attribute `ax` is the average of p.

    Args:
        params, lr, weight_decay, maximize: as for `Adadelta`.
        lambd: number, the decay in the formulas.
        alpha: number, the exponent in the formula of eta.
        t0: step at which the average begins.

    Raises:
        TypeError: `params`, `lr`, or a setting of the wrong kind.
        ValueError: a setting out of range.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.experimental.optim.ASGD([p], lr=0.5, lambd=0.0)((ms.Tensor([1.0, -1.0]),))
        True
        >>> print(p.asnumpy())
        [0.5 2.5]
    """

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)
        self.mu = self.add_state("mu", "ones", scalar=True)
        self.eta = self.add_state("eta", scalar=True)
        self.ax = self.add_state("ax")

    def check_group(self, owner: str, group: ParamGroup) -> None:
        check_settings(owner, group)
        for name in ("lambd", "t0"):
            _check.real(owner, name, group[name])

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        lambd, step, lr = group["lambd"], self._step, self.rate(group)
        g = self.gradient(param, grad, group)
        eta = ops.where(step <= 1.0, lr, self.eta[i])
        new = param * (1.0 - lambd * eta) - eta * g
        average = self.ax[i] + (new - self.ax[i]) * self.mu[i]
        write(param, new)
        write(self.ax[i], average)
        write(self.eta[i], lr / (1.0 + lambd * lr * step) ** group["alpha"])
        write(self.mu[i], 1.0 / ops.maximum(step - group["t0"], 1.0))


class Rprop(StepCounting):
    """Resilient propagation (Riedmiller and Braun, 1993; `mindspore.experimental.optim.Rprop`).

    Every element has a step size. While the sign of the gradient stays the same, the size is
    multiplied by ``etas[1]``. When the sign changes, it is multiplied by ``etas[0]`` and the
    element does not move.

    Args:
        params, lr, maximize: as for `Adadelta`; lr is the first step size.
        etas: two factors of step sizes, the first between 0 and 1, the second above 1.
        step_sizes: least and largest step size.

    Raises:
        TypeError, ValueError: as for `Adadelta`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.experimental.optim.Rprop([p], lr=0.5)((ms.Tensor([0.1, -7.0]),))
        True
        >>> print(p.asnumpy())
        [0.5 2.5]
    """

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, settings)
        self.prev = self.add_state("prev")
        self.step_size = self.add_state("step_size")

    def check_group(self, owner: str, group: ParamGroup) -> None:
        check_settings(owner, group)
        _check.in_range(owner, "etas[0]", group["etas"][0], 0, 1, open_low=True, open_high=True)
        _check.in_range(owner, "etas[1]", group["etas"][1], 1, open_low=True)

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        (shrink, grow), (least, largest) = group["etas"], group["step_sizes"]
        g = self.gradient(param, grad, group)
        agreement = g * self.prev[i]
        factor = ops.where(agreement > 0, grow, ops.where(agreement < 0, shrink, 1.0))
        size = ops.where(self._step <= 1.0, self.rate(group), self.step_size[i])
        size = ops.clamp(size * factor, least, largest)
        used = ops.where(agreement < 0, 0.0, g)
        write(self.step_size[i], size)
        write(self.prev[i], used)
        write(param, param - ops.sign(used) * size)
