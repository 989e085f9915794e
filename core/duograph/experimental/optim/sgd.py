"""Stochastic gradient descent with parameter groups. Its update is the op `sgd_step`.

`experimental.optim` and `mint.optim` export it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ... import ops
from ...errors import ArgumentValueError
from ...nn import _check
from ...parameter import Parameter
from ...tensor import Tensor
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .optimizer import ParamGroup

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (`mindspore.experimental.optim.SGD`).

    ``v = momentum * v + (1 - dampening) * g`` (in the first step ``v = g``), then
    ``p = p - lr * v``, or with `nesterov` ``p = p - lr * (g + momentum * v)``.

    Args:
        params: iterable of Parameters, or of dictionaries, one for each group, with ``params`` and
            any of the settings below.
        lr: learning rate: number or 0-d Tensor.
        momentum: factor of the velocity v, a non-negative number.
        dampening: fraction of the gradient that is not added to the velocity.
        weight_decay: its product with the Parameter is added to the gradient.
        nesterov: whether to use Nesterov momentum; it needs momentum above 0 and dampening 0.
        maximize: whether to move along the gradient instead of against it.

    Inputs: the gradients, in the order of `parameters`. Outputs: True.

    Raises:
        TypeError: `params` or `lr` of the wrong kind.
        ValueError: a setting out of range.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> optimizer = ms.experimental.optim.SGD([p], lr=0.5)
        >>> optimizer((ms.Tensor([1.0, 1.0]),))
        True
        >>> print(p.asnumpy())
        [0.5 1.5]
    """

    def __init__(
        self,
        params: Iterable[object],
        lr: float | Tensor,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)
        self.momentum_buf = self.add_state("momentum_buf")
        self.first_step = self.add_state("first_step", "ones")

    def check_group(self, owner: str, group: ParamGroup) -> None:
        for name in ("momentum", "weight_decay"):
            _check.in_range(owner, name, group[name], 0)
        _check.real(owner, "dampening", group["dampening"])
        for name in ("nesterov", "maximize"):
            _check.boolean(owner, name, group[name])
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ArgumentValueError(
                f"{owner}: got nesterov with momentum={group['momentum']} and dampening="
                f"{group['dampening']}; wanted momentum above 0 and dampening 0"
            )

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        if not group["momentum"]:
            sign = -1.0 if group["maximize"] else 1.0
            decay = group["weight_decay"]
            step = grad * sign + param * decay if decay else grad * sign
            param.set_data((param - group["lr"] * step).astype(param.dtype))
            return
        new, buffer, first = ops.sgd_step(
            param, self.momentum_buf[i], self.first_step[i], grad, self.rate(group),
            float(group["momentum"]), float(group["dampening"]), group["nesterov"],
            float(group["weight_decay"]), -1.0 if group["maximize"] else 1.0,
        )  # fmt: skip
        param.set_data(new)
        self.momentum_buf[i].set_data(buffer)
        self.first_step[i].set_data(first)
