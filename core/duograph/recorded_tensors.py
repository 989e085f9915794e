"""Tensors that a gradient tape records: which ones are, and who may read their values.

`Tensor` asks before it gives its values to Python, and wherever code makes a new tensor or
Parameter of another. A value that is read is a constant, through which no gradient flows: user code
may do that, framework code must not. Nothing here may record, or read a value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from .dtype import DType
from .errors import GradientError
from .runtime_state import runtime_state

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["MAKERS", "check_reader", "install_recorded_values", "is_recorded", "recorded_value"]

# The modules whose functions make tensors of what they read. A gradient would be lost unnoticed.
MAKERS = ("duograph.ops", "duograph.op_signature", "duograph.numpy", "duograph.nn.layer")
_recorded_value: Callable[[object, DType | None], Tensor] | None = None


def install_recorded_values(make: Callable[[object, DType | None], Tensor]) -> None:
    """Set the function that makes a tensor from data with recorded tensors inside.

    What `make(data, dtype)` returns must be recorded too, so that gradients flow to the tensors in
    the data.
    """
    global _recorded_value
    _recorded_value = make


def recorded_value(data: object, dtype: DType | None) -> Tensor:
    """Return a tensor made from data with recorded tensors inside; gradients flow to these."""
    assert _recorded_value is not None
    return _recorded_value(data, dtype)


def is_recorded(t: Tensor) -> bool:
    """Return whether a gradient tape of a derivative that is running now records a tensor.

    The result is always False for tensors of integers and bools.
    """
    type_ = t._type
    return bool(
        type_.level
        and runtime_state.derivatives
        and type_.dtype.kind in "fc"
        and t._edge.seq >= runtime_state.horizon
    )


def check_reader(t: Tensor) -> None:
    """Raise GradientError if framework code reads the values of a tensor that a tape records.

    A method of Tensor calls this function. The reader is the nearest caller outside the module of
    that method. User code may read the values: they are then constants, through which no gradient
    flows.
    """
    if not is_recorded(t):
        return
    frame = sys._getframe(1)
    methods = frame.f_globals
    while frame.f_globals is methods:
        assert frame.f_back is not None
        frame = frame.f_back
    if frame.f_globals.get("__name__", "").startswith(MAKERS):
        raise GradientError(
            f"got a Tensor of shape {t.shape} that is being differentiated where only its value is "
            f"used, through which no gradient flows; wanted a number, x.item() or "
            f"ops.stop_gradient(x)"
        )
