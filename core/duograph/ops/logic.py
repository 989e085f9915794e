"""Logical and bitwise ops, shifts, and selection by a mask.

Users call them, and rules of other ops use `select_by`. Only the selections have gradients.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..call_cache import cached_call
from ..dtype import BOOL, INTEGER, NUMERIC, bool_
from ..errors import DTypeError
from ..host_arrays import Array
from ..op import NO_GRAD, op
from ..tensor import Tensor
from ..types import elementwise_type
from .arguments import refuse_complex
from .creation import cast
from .methods import tensor_method
from .primitive import primitive
from .shape_primitives import unbroadcast

__all__ = [
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "invert",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "masked_fill",
    "select",
    "shift_left",
    "shift_right",
    "where",
]

_Operand: TypeAlias = Tensor | int | float | complex | bool


def _bits(x: Tensor | Array) -> int:
    return 8 * int(x.dtype.itemsize)


@op(
    method="logical_not", operators=["__invert__"], primitive="LogicalNot", dtypes=BOOL + NUMERIC,
    differentiable=False, folds="biu",
    result=bool_,
)  # fmt: skip
def logical_not(input: Tensor):
    """Return the logical not: True where an element is zero or False (`mindspore.ops.logical_not`).

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of bool, of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logical_not(ms.Tensor([True, False]))
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """


logical_not.reference(np.logical_not)


@logical_not.scalar
def _(s, x):
    return x == 0 if x.dtype is not bool_ else ~x


@op(
    method="logical_and", primitive="LogicalAnd", dtypes=BOOL + NUMERIC, promote="common",
    differentiable=False, folds="biu",
    result=bool_,
)  # fmt: skip
def logical_and(input: Tensor, other: Tensor):
    """Return the logical and: True where both elements are not zero (`mindspore.ops.logical_and`).

    Args:
        input: Tensor of any shape and dtype, or a number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logical_and(ms.Tensor([True, True, False]), ms.Tensor([True, False, False]))
        Tensor(shape=[3], dtype=Bool, value= [ True, False, False])
    """


logical_and.reference(np.logical_and)


@logical_and.scalar
def _(s, x, y):
    return s.truth(x) & s.truth(y)


@logical_and.decompose
def _(x, y):
    return bitwise_and(cast(x, bool_), cast(y, bool_))


@op(
    method="logical_or", primitive="LogicalOr", dtypes=BOOL + NUMERIC, promote="common",
    differentiable=False, folds="biu",
    result=bool_,
)  # fmt: skip
def logical_or(input: Tensor, other: Tensor):
    """Return the logical or: True where at least one element is not zero
    (`mindspore.ops.logical_or`).

    Args:
        input: Tensor of any shape and dtype, or a number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logical_or(ms.Tensor([True, True, False]), ms.Tensor([True, False, False]))
        Tensor(shape=[3], dtype=Bool, value= [ True,  True, False])
    """


logical_or.reference(np.logical_or)


@logical_or.scalar
def _(s, x, y):
    return s.truth(x) | s.truth(y)


@logical_or.decompose
def _(x, y):
    return bitwise_or(cast(x, bool_), cast(y, bool_))


@op(
    method="logical_xor", primitive="LogicalXor", dtypes=BOOL + NUMERIC, promote="common",
    differentiable=False, folds="biu",
    result=bool_,
)  # fmt: skip
def logical_xor(input: Tensor, other: Tensor):
    """Return the logical xor: True where exactly one element is not zero
    (`mindspore.ops.logical_xor`).

    Args:
        input: Tensor of any shape and dtype, or a number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logical_xor(ms.Tensor([True, True, False]), ms.Tensor([True, False, False]))
        Tensor(shape=[3], dtype=Bool, value= [False,  True, False])
    """


logical_xor.reference(np.logical_xor)


@logical_xor.scalar
def _(s, x, y):
    return s.truth(x) ^ s.truth(y)


@logical_xor.decompose
def _(x, y):
    return bitwise_xor(cast(x, bool_), cast(y, bool_))


@op(
    method="bitwise_and", operators=["__and__"], reflected=["__rand__"], primitive="BitwiseAnd",
    dtypes=BOOL + INTEGER, promote="common", differentiable=False, folds="biu",
)  # fmt: skip
def bitwise_and(input: Tensor, other: Tensor):
    """Return the bitwise and of two integers; logical and for bool (`mindspore.ops.bitwise_and`).

    Args:
        input: Tensor of any shape, or a number; bool or integer.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.bitwise_and(ms.Tensor([12, 10]), ms.Tensor([10, 3]))
        Tensor(shape=[2], dtype=Int64, value= [8, 2])
    """


bitwise_and.reference(np.bitwise_and)


@bitwise_and.scalar
def _(s, x, y):
    return x & y


@op(
    method="bitwise_or", operators=["__or__"], reflected=["__ror__"], primitive="BitwiseOr",
    dtypes=BOOL + INTEGER, promote="common", differentiable=False, folds="biu",
)  # fmt: skip
def bitwise_or(input: Tensor, other: Tensor):
    """Return the bitwise or of two integers; logical or for bool (`mindspore.ops.bitwise_or`).

    Args:
        input: Tensor of any shape, or a number; bool or integer.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.bitwise_or(ms.Tensor([12, 10]), ms.Tensor([10, 3]))
        Tensor(shape=[2], dtype=Int64, value= [14, 11])
    """


bitwise_or.reference(np.bitwise_or)


@bitwise_or.scalar
def _(s, x, y):
    return x | y


@op(
    method="bitwise_xor", operators=["__xor__"], reflected=["__rxor__"], primitive="BitwiseXor",
    dtypes=BOOL + INTEGER, promote="common", differentiable=False, folds="biu",
)  # fmt: skip
def bitwise_xor(input: Tensor, other: Tensor):
    """Return the bitwise exclusive or of two integers; logical exclusive or for bool
    (`mindspore.ops.bitwise_xor`).

    Args:
        input: Tensor of any shape, or a number; bool or integer.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.bitwise_xor(ms.Tensor([12, 10]), ms.Tensor([10, 3]))
        Tensor(shape=[2], dtype=Int64, value= [6, 9])
    """


bitwise_xor.reference(np.bitwise_xor)


@bitwise_xor.scalar
def _(s, x, y):
    return x ^ y


@op(
    method=["bitwise_not", "invert"], primitive="Invert", dtypes=BOOL + INTEGER,
    differentiable=False, folds="biu",
)  # fmt: skip
def bitwise_not(input: Tensor):
    """Return the bitwise complement of integers; logical not for bool
    (`mindspore.ops.bitwise_not`).

    Args:
        input: Tensor of any shape; bool or integer.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.bitwise_not(ms.Tensor([0, 5]))
        Tensor(shape=[2], dtype=Int64, value= [-1, -6])
    """


bitwise_not.reference(np.bitwise_not)


@bitwise_not.scalar
def _(s, x):
    return ~x


@bitwise_not.decompose
def _(x):
    if x.dtype is bool_:
        return logical_not(x)
    return bitwise_xor(x, -1 if x.dtype.kind == "i" else 2 ** _bits(x) - 1)


@op(
    method="bitwise_left_shift", operators=["__lshift__"], reflected=["__rlshift__"],
    primitive="LeftShift", dtypes=INTEGER, promote="common", differentiable=False,
)  # fmt: skip
def shift_left(input: Tensor, other: Tensor):
    """Shift bits left; a shift by the number of bits or more, or by a negative number, yields 0
    (`mindspore.ops.bitwise_left_shift`).

    Args:
        input: Tensor of any shape, or a number; integer.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.shift_left(ms.Tensor([1, 2]), ms.Tensor([3, 1]))
        Tensor(shape=[2], dtype=Int64, value= [8, 4])
    """


@shift_left.reference
def _(x, y):
    inside = (y >= 0) & (y < _bits(x))
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0).astype(x.dtype)


@shift_left.scalar
def _(s, x, y):
    return s.shift_left(x, y)


@op(
    method="bitwise_right_shift", operators=["__rshift__"], reflected=["__rrshift__"],
    primitive="RightShift", dtypes=INTEGER, promote="common", differentiable=False,
)  # fmt: skip
def shift_right(input: Tensor, other: Tensor):
    """Shift bits right arithmetically, which keeps the sign (`mindspore.ops.bitwise_right_shift`).

    Args:
        input: Tensor of any shape, or a number; integer.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.shift_right(ms.Tensor([8, -8]), ms.Tensor([2, 1]))
        Tensor(shape=[2], dtype=Int64, value= [ 2, -4])
    """


@shift_right.reference
def _(x, y):
    inside = (y >= 0) & (y < _bits(x))
    last = np.right_shift(x, np.asarray(_bits(x) - 1, x.dtype)) if x.dtype.kind == "i" else 0
    return np.where(inside, np.right_shift(x, np.where(inside, y, 0)), last).astype(x.dtype)


@shift_right.scalar
def _(s, x, y):
    return s.shift_right(x, y)


bitwise_left_shift, bitwise_right_shift = shift_left, shift_right


@cached_call
def invert(x: Tensor) -> Tensor:
    """Return the bitwise complement of integers (`mindspore.ops.invert`).

    Args:
        x: Tensor of any shape; integer.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not of an integer dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.invert(ms.Tensor([25, 4], ms.int16))
        Tensor(shape=[2], dtype=Int16, value= [-26,  -5])
    """
    return bitwise_not(x)


@op(name="select", promote="common", promote_from=1, primitive="Select", folds="biufc")
def select_by(condition: Tensor, input: Tensor, other: Tensor):
    """Primitive op: elements of `input` where the bool `condition` is True, else of `other`.

    The shapes broadcast.
    """


@select_by.infer
def _(condition, x, y):
    if condition.dtype is not bool_:
        raise DTypeError(f"select: condition has dtype {condition.dtype.name}; wanted bool")
    return elementwise_type("select", condition, x, y)


select_by.reference(np.where)


@select_by.scalar
def _(s, condition, x, y):
    return s.where(condition, x, y)


@select_by.bprop
def _(condition, x, y, out, dout):
    return (
        NO_GRAD,
        unbroadcast(select_by(condition, dout, 0), x),
        unbroadcast(select_by(condition, 0, dout), y),
    )


@cached_call
def select(condition: Tensor, input: _Operand, other: _Operand) -> Tensor:
    """Select elements of `input` where `condition` holds, else of `other` (`mindspore.ops.select`).

    Both operands are computed; the gradient flows to the selected one.

    Args:
        condition: Tensor of bool; elements of another dtype count as True unless zero.
        input, other: Tensors or numbers; all shapes broadcast, the dtypes are promoted to a common
            one.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.select(ms.Tensor([True, False]), ms.Tensor([1.0, 2.0]), 0.5)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  5.00000000e-01])
    """
    if isinstance(condition, Tensor) and condition.dtype is not bool_:
        condition = cast(condition, bool_)
    return select_by(condition, input, other)


@cached_call
def where(condition: Tensor, input: _Operand, other: _Operand) -> Tensor:
    """Select elements of `input` where `condition` holds, else of `other` (`mindspore.ops.where`).

    Arguments, results and errors are those of `select`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.where(ms.Tensor([True, False]), 1.0, 0.0)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  0.00000000e+00])
    """
    return select(condition, input, other)


@tensor_method("where")
def _tensor_where(self: Tensor, condition: Tensor, y: _Operand) -> Tensor:
    """Return elements of this tensor where `condition` is True, else of `y`."""
    return select(condition, self, y)


@primitive("MaskedFill()(input_x, mask, value)")
@tensor_method("masked_fill")
@cached_call
def masked_fill(input_x: Tensor, mask: Tensor, value: _Operand) -> Tensor:
    """Return a copy of `input_x` with `value` where `mask` is True (`mindspore.ops.masked_fill`).

    Args:
        input_x: Tensor of any shape and dtype.
        mask: Tensor of bool; broadcasts with `input_x`.
        value: a number, or a 0-d Tensor.

    Returns:
        Tensor of the broadcast shape and the dtype of `input_x`.

    Raises:
        TypeError: `mask` is not bool.
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.masked_fill(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([False, True, False]), 0.5)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  5.00000000e-01,  3.00000000e+00])
    """
    if isinstance(mask, Tensor) and mask.dtype is not bool_:
        raise DTypeError(f"masked_fill: mask has dtype {mask.dtype.name}; wanted bool")
    kept = input_x.dtype
    refuse_complex("masked_fill", value, kept)
    if isinstance(value, Tensor):
        value = cast(value, kept)
    return cast(select_by(mask, value, input_x), kept)
