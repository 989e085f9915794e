"""The primitive ops that building a graph itself needs: fill, array constant and cast.

The graph builder inserts them for Python numbers, NumPy arrays and promoted operands. Op families
in `ops` and the derivative engine use them as well. Nothing here may depend on other ops, because
the graph builder, with which other ops are traced, imports this module.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import DType, as_dtype
from ..errors import ArgumentError, ArgumentValueError, GradientError
from ..op import NO_GRAD, op
from ..op_signature import Number
from ..tensor import Tensor
from ..types import TensorType

__all__ = ["cast_to", "check_number", "constant", "fill", "zeros_of"]


def check_number(name: str, value: object, dtype: DType) -> None:
    """Raise an error unless a value is a number that can be an element of `dtype`.

    Args:
        name: name of the op, for messages.
        value: the value.
        dtype: the dtype.

    Raises:
        ArgumentError: the value is not a number.
        ArgumentValueError: the value is an int outside the range of an integer dtype.
    """
    if not isinstance(value, (int, float, complex)):
        raise ArgumentError(f"{name}: got value={value!r}; wanted a number")
    if isinstance(value, complex) and not dtype.is_complex:
        raise ArgumentError(f"{name}: got value={value!r} for {dtype.name}; wanted a real number")
    if dtype.is_integer and isinstance(value, int):
        limits = np.iinfo(dtype.np)
        if not limits.min <= value <= limits.max:
            raise ArgumentValueError(
                f"{name}: got value={value}; wanted one in [{limits.min}, {limits.max}], the range "
                f"of {dtype.name}"
            )


@op(name="fill", composite=False, differentiable=False)
def fill(shape: Sequence[int], value: Number, dtype: DType):
    """Return a tensor of `shape` and `dtype` with every element `value` (primitive op)."""


@fill.infer
def _(shape, value, dtype):
    check_number("fill", value, dtype)
    return TensorType.of(tuple(shape), dtype)


@fill.reference
def _(shape, value, dtype):
    return np.full(shape, value, dtype.np)


@op(name="constant", composite=False, differentiable=False, storage=True)
def constant(value: object):
    """Return a NumPy array known when the graph is built (primitive op of graphs).

    `value` is that array as a `FrozenArray`.
    """


@constant.infer
def _(value):
    return TensorType.of(value.array.shape, as_dtype(value.array.dtype))


@constant.reference
def _(value):
    return np.array(value.array)


@op(name="cast", composite=False, storage=True)
def cast_to(input: Tensor, dtype: DType):
    """Convert every element of a tensor to `dtype` (primitive op).

    A float becomes the bool ``x != 0``; float to integer truncates toward zero; complex to real
    keeps the real part. The gradient of a cast from floats to integers or bool is zero by
    definition.
    """


@cast_to.infer
def _(x, dtype):
    return TensorType.of(x.shape, dtype)


@cast_to.reference
def _(x, dtype):
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c" and dtype.kind in "biufs":
            x = (x != 0) if dtype.kind == "b" else x.real
        return x.astype(dtype.np)


@cast_to.scalar
def _(s, x, dtype):
    return s.cast(x, dtype)


@cast_to.bprop
def _(x, out, dout, dtype):
    if dtype.kind in "biu" and x.dtype.kind in "fc":
        return (NO_GRAD,)
    if "s" in (dtype.kind, x.dtype.kind):
        stored = dtype if dtype.kind == "s" else x.dtype
        raise GradientError(
            f"cast: there is no gradient through {stored.name}, which stores values; "
            "ops.stop_gradient(x) before the cast says that none is wanted"
        )
    return (cast_to(dout, x.dtype),)


def zeros_of(type_: TensorType) -> Tensor:
    """Return a tensor of zeros with the shape and dtype of a tensor type."""
    zero: bool | int = False if type_.dtype.kind == "b" else 0
    return fill(type_.shape, zero, type_.dtype)
