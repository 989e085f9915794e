"""What elementwise op definitions share: infer rules, and conjugation for complex gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtype import bool_, complex64, float32, float64
from ..types import TensorType
from .broadcasting import elementwise_type

__all__ = ["bool_type", "broadcast_type", "conjugate", "real_type", "same_type"]


def same_type(x: TensorType, **attributes: Any) -> TensorType:
    """Infer rule: the operand's type."""
    return x


def real_type(x: TensorType) -> TensorType:
    """Infer rule: the operand's shape; its dtype, or that of its parts when it is complex."""
    if not x.dtype.is_complex:
        return x
    return x.with_(dtype=float32 if x.dtype is complex64 else float64)


def broadcast_type(name: str) -> Callable[..., TensorType]:
    """Infer rule of the op `name`: broadcast shape, dtype of the (promoted) operands."""

    def infer(*types: TensorType, **attributes: Any) -> TensorType:
        return elementwise_type(name, *types)

    return infer


def bool_type(name: str) -> Callable[..., TensorType]:
    """Infer rule of the op `name`: broadcast shape, bool."""

    def infer(*types: TensorType, **attributes: Any) -> TensorType:
        return elementwise_type(name, *types, dtype=bool_)

    return infer


def conjugate(x: Any) -> Any:
    """The conjugate of a complex tensor, any other as it is: what a gradient multiplies with."""
    if not x.dtype.is_complex:
        return x
    from .complex_numbers import conj  # made of this module's rules

    return conj(x)
