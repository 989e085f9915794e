"""Special functions of `duograph.mint`: error function, exponentials and logarithms.

Users call its functions as `duograph.mint.special.NAME`. They are functions of `duograph.ops`, and
of `duograph.mint.nn.functional`.
"""

from __future__ import annotations

from .. import ops as _ops
from ..ops import erfc, exp2, expm1, log1p, sinc
from ..tensor import Tensor
from .nn.functional import log_softmax

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]


def round(input: Tensor) -> Tensor:
    """Return each element rounded to the nearest integer, halves to even
    (`mindspore.mint.special.round`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.special.round(Tensor([0.5, 1.5, 2.4])))
        [0. 2. 2.]
    """
    return _ops.round(input)
