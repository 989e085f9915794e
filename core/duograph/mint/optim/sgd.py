"""SGD of `mint.optim`: that of `experimental.optim` with the signature of `mindspore.mint`.

Users import it from `mint.optim`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...experimental.optim import sgd
from ...tensor import Tensor

__all__ = ["SGD"]


class SGD(sgd.SGD):
    """Stochastic gradient descent with momentum (`mindspore.mint.optim.SGD`).

    Arguments, inputs and errors are those of `experimental.optim.SGD`.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> optimizer = ms.mint.optim.SGD([p], lr=0.5)
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
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize)
