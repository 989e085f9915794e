"""What elementwise op definitions share: infer rules, and conjugation for complex gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtype import BOOL, NUMERIC, DType, bool_, complex64, float32, float64
from ..errors import ShapeError
from ..op import op
from ..tensor import Tensor
from ..types import TensorType, broadcast_shapes

__all__ = [
    "conj",
    "elementwise_type",
    "bool_type",
    "broadcast_type",
    "conjugate",
    "real_type",
    "same_type",
]


def elementwise_type(
    name: str, *types: TensorType | None, dtype: DType | None = None
) -> TensorType:
    """The type of an elementwise result: broadcast shape, dtype of the first operand unless given.

    Raises:
        ShapeError: the shapes do not broadcast.
    """
    given = [t for t in types if t is not None]
    first = given[0]
    if len(given) == 1:
        return first if dtype is None or dtype is first.dtype else first.with_(dtype=dtype)
    shape = broadcast_shapes(*(t.shape for t in given))
    if shape is None:
        shapes = " and ".join(str(t.shape) for t in given)
        raise ShapeError(
            f"{name}: got operands of shapes {shapes}; wanted shapes that broadcast: equal from "
            f"the last axis on, or 1"
        )
    return TensorType.of(shape, dtype or given[-1].dtype)


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


@op(method="conj", primitive="Conj", dtypes=BOOL + NUMERIC)
def conj(input: Tensor):
    """Complex conjugates; a real tensor as it is (`mindspore.ops.conj`).

    Args:
        input: Tensor of any shape; any.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.conj(ms.Tensor([1 + 2j, 3 - 4j]))
        Tensor(shape=[2], dtype=Complex128, value= [1-2j, 3+4j])
    """


conj.infer(same_type)


@conj.reference
def _(x):
    return np.conj(x) if x.dtype.kind == "c" else x


@conj.scalar
def _(s, x):
    return s.conj(x) if x.dtype.is_complex else x


@conj.bprop
def _(x, out, dout):
    return (conj(dout),)


def conjugate(x: Any) -> Any:
    """The conjugate of a complex tensor, any other as it is: what a gradient multiplies with."""
    if not x.dtype.is_complex:
        return x
    return conj(x)
