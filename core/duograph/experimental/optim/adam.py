"""Adam and AdamW with parameter groups. Each update is one op, such as `adamw_step`.

`experimental.optim` and `mint.optim` export them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ... import ops
from ...common.initializer import initializer
from ...dtype import float32
from ...errors import ArgumentError
from ...nn import _check
from ...parameter import Parameter
from ...tensor import Tensor
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .optimizer import ParamGroup

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015; `mindspore.mint.optim.Adam`,
    `mindspore.experimental.optim.Adam`).

    ``p = p - lr * m / (1 - beta1 ** t) / (sqrt(v / (1 - beta2 ** t)) + eps)``.

    Args:
        params: iterable of Parameters, or of dictionaries, one for each group, with ``params`` and
            any of the settings below.
        lr: learning rate: number or 0-d Tensor.
        betas: decay of the two moments, both in [0, 1).
        eps: non-negative number that is added to the denominator.
        weight_decay: its product with the Parameter is added to the gradient.
        amsgrad: whether to divide by the largest second moment so far (Reddi et al., 2018).
        maximize: whether to move along the gradient instead of against it.

    Inputs: the gradients, in the order of `parameters`. Outputs: True.

    Raises:
        TypeError: `params` or `lr` of the wrong kind.
        ValueError: a setting out of range.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> optimizer = ms.mint.optim.Adam([p], lr=0.5)
        >>> _ = optimizer((ms.Tensor([3.0, -3.0]),))
        >>> print(p.asnumpy())
        [0.5 2.5]
    """

    _decoupled = False

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)
        self.exp_avg = self.add_state("exp_avg")
        self.exp_avg_sq = self.add_state("exp_avg_sq")
        self.max_exp_avg_sq = self.add_state("max_exp_avg_sq", only_if="amsgrad")
        self.state_step = Parameter(
            initializer("zeros", (1,), float32), name="state_step", requires_grad=False
        )

    def check_group(self, owner: str, group: ParamGroup) -> None:
        betas = group["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ArgumentError(f"{owner}: got betas={betas!r}; wanted two numbers")
        for number, beta in enumerate(betas):
            _check.in_range(owner, f"betas[{number}]", beta, 0, 1, open_high=True)
        for name in ("eps", "weight_decay"):
            _check.in_range(owner, name, group[name], 0)
        for name in ("amsgrad", "maximize"):
            _check.boolean(owner, name, group[name])

    def begin_step(self) -> None:
        self.state_step.set_data(self.state_step + 1.0)

    def _correction(self, beta: float) -> Tensor:
        """Return ``1 - beta ** t`` for the present step t, computed without cancellation."""
        step = self.state_step.reshape(())
        return -ops.expm1(step * math.log(beta)) if beta else ops.ones_like(step)

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        beta1, beta2 = (float(b) for b in group["betas"])
        corrections = self._correction(beta1), self._correction(beta2)
        lr = self.rate(group)
        decay = float(group["weight_decay"])
        options = (
            beta1, beta2, float(group["eps"]), decay if self._decoupled else 0.0,
            0.0 if self._decoupled else decay, -1.0 if group["maximize"] else 1.0,
        )  # fmt: skip
        m, v = self.exp_avg[i], self.exp_avg_sq[i]
        top = self.state_of("max_exp_avg_sq", param)
        if top is None:
            new, m1, v1 = ops.adamw_step(param, m, v, grad, lr, *corrections, *options)
        else:
            new, m1, v1, most = ops.adamw_amsgrad_step(
                param, m, v, top, grad, lr, *corrections, *options
            )
            top.set_data(most)
        param.set_data(new)
        m.set_data(m1)
        v.set_data(v1)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019; `mindspore.mint.optim.AdamW`,
    `mindspore.experimental.optim.AdamW`).

    Every step first multiplies the Parameter by ``1 - lr * weight_decay``; the arguments are those
    of `Adam`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> optimizer = ms.mint.optim.AdamW([p], lr=0.5, weight_decay=0.0)
        >>> _ = optimizer((ms.Tensor([3.0, -3.0]),))
        >>> print(p.asnumpy())
        [0.5 2.5]
    """

    _decoupled = True

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
