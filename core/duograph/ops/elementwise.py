"""Elementwise arithmetic: addition, multiplication, division, absolute values, minimum, maximum.

Users and all other ops call them. Kernels and decompositions must agree with NumPy, whose functions
are the reference rules.
"""

from __future__ import annotations

import numpy as np

from ..dtype import BOOL, INEXACT, NUMERIC, REAL, bool_
from ..op import op
from ..tensor import Tensor
from .arguments import Number
from .creation import cast
from .logic import logical_or, select
from .methods import tensor_method
from .pointwise import conjugate, real_dtype
from .shape_primitives import unbroadcast

__all__ = [
    "abs", "absolute", "add", "fmax", "fmin",
    "maximum", "minimum", "mul", "multiply", "neg", "negative", "positive", "reciprocal", "sgn",
    "sign",
    "square", "sub", "true_divide",
]  # fmt: skip


@op(operators=["__add__"], reflected=["__radd__"], primitive="Add", promote="common", folds="biu")
def add(input: Tensor, other: Tensor):
    """Add elements; for bool, return whether either is True (`mindspore.ops.add`).

    Args:
        input: Tensor of any shape and dtype, or a number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.add(ms.Tensor([1.0, 2.0]), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  3.00000000e+00])
    """


add.reference(np.add)


@add.scalar
def _(s, x, y):
    return x + y


@add.bprop
def _(x, y, out, dout):
    return unbroadcast(dout, x), unbroadcast(dout, y)


@op(operators=["__sub__"], reflected=["__rsub__"], primitive="Sub", promote="common", folds="biu")
def sub(input: Tensor, other: Tensor):
    """Subtract elements; for bool, return whether they differ (`mindspore.ops.sub`).

    Args:
        input: Tensor of any shape and dtype, or a number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.sub(ms.Tensor([1.0, 2.0]), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.00000000e+00])
    """


@sub.reference
def _(x, y):
    return np.logical_xor(x, y) if x.dtype.kind == "b" else np.subtract(x, y)


@sub.scalar
def _(s, x, y):
    return x ^ y if x.dtype is bool_ else x - y


@sub.bprop
def _(x, y, out, dout):
    return unbroadcast(dout, x), unbroadcast(-dout, y)


@op(
    method=["mul", "multiply"], operators=["__mul__"], reflected=["__rmul__"], primitive="Mul",
    promote="common", folds="biu",
)  # fmt: skip
def mul(input: Tensor, other: Tensor):
    """Multiply elements; for bool, return whether both are True (`mindspore.ops.mul`).

    Args:
        input: Tensor of any shape and dtype, or a number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.mul(ms.Tensor([1.0, 2.0]), 3)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  6.00000000e+00])
    """


mul.reference(np.multiply)


@mul.scalar
def _(s, x, y):
    return x * y


@mul.bprop
def _(x, y, out, dout):
    return unbroadcast(mul(dout, conjugate(y)), x), unbroadcast(mul(dout, conjugate(x)), y)


@op(
    name="div",
    method="true_divide",
    operators=["__truediv__"],
    reflected=["__rtruediv__"],
    dtypes=INEXACT,
    promote="float",
    primitive="Div",
)
def true_divide(input: Tensor, other: Tensor):
    """Divide elements; integers and bool are converted to float32 (`mindspore.ops.true_divide`).

    Args:
        input: Tensor of any shape, or a number; floating or complex; integers and bool are
            converted to float32.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.true_divide(ms.Tensor([1, 2]), 4)
        Tensor(shape=[2], dtype=Float32, value= [ 2.50000000e-01,  5.00000000e-01])
    """


true_divide.reference(np.true_divide)


@true_divide.scalar
def _(s, x, y):
    return x / y


@true_divide.bprop
def _(x, y, out, dout):
    dx = true_divide(dout, conjugate(y))
    return unbroadcast(dx, x), unbroadcast(-mul(dx, conjugate(out)), y)


def _scaled(x: Tensor, other: Tensor | Number, alpha: Number) -> Tensor | Number:
    """Return alpha * other, the second operand of a sum or difference whose first operand is `x`.

    An integer or bool tensor `other` is first cast to the dtype of `x` if that is floating.
    """
    if isinstance(other, Tensor) and x.dtype.is_floating and other.dtype.kind in "biu":
        other = cast(other, x.dtype)
    return mul(other, alpha)


@tensor_method("add")
def _tensor_add(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return ``self + alpha * other``, element by element."""
    return add(self, other if alpha == 1 else _scaled(self, other, alpha))


@tensor_method("sub", "subtract")
def _tensor_sub(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return ``self - alpha * other``, element by element."""
    return sub(self, other if alpha == 1 else _scaled(self, other, alpha))


@op(method=["neg", "negative"], operators=["__neg__"], primitive="Neg", dtypes=NUMERIC, folds="biu")
def neg(input: Tensor):
    """Return the elements with the opposite sign; unsigned integers wrap (`mindspore.ops.neg`).

    Args:
        input: Tensor of any shape; integer, floating or complex.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.neg(ms.Tensor([1.0, -2.0]))
        Tensor(shape=[2], dtype=Float32, value= [-1.00000000e+00,  2.00000000e+00])
    """


neg.reference(np.negative)


@neg.scalar
def _(s, x):
    return -x


@neg.bprop
def _(x, out, dout):
    return (neg(dout),)


@neg.decompose
def _(x):
    return mul(x, -1 if x.dtype.kind != "u" else 2 ** (8 * x.dtype.itemsize) - 1)


@op(method=["sign", "sgn"], primitive="Sign", dtypes=NUMERIC, differentiable=False, folds="biu")
def sign(input: Tensor):
    """Return the signs: -1, 0, 1 or NaN; for complex numbers x / |x| (`mindspore.ops.sign`).

    Args:
        input: Tensor of any shape; integer, floating or complex.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.sign(ms.Tensor([-2.0, 0.0, 3.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.00000000e+00,  0.00000000e+00,  1.00000000e+00])
    """


@sign.reference
def _(x):
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)
    return np.sign(x)


@sign.scalar
def _(s, x):
    if x.dtype.is_complex:
        size = s.abs(x)
        return s.where(size == 0, 0, x / s.complex(size, s.const(0, size.dtype)))
    return s.sign(x)


@sign.decompose
def _(x):
    return select(x > 0, 1, select(x < 0, -1, x)) if x.dtype.kind != "u" else select(x > 0, 1, x)


@op(
    method=["abs", "absolute"],
    operators=["__abs__"],
    dtypes=BOOL + NUMERIC,
    folds="biu",
    result=real_dtype,
    primitive=["Abs", "ComplexAbs"],
)
def abs(input: Tensor):
    """Return the absolute values; for complex numbers the magnitude, which is real
    (`mindspore.ops.abs`).

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of the shape of `input`; real if `input` is complex.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.abs(ms.Tensor([1.0, -2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """


abs.reference(np.abs)


@abs.scalar
def _(s, x):
    return s.abs(x) if x.dtype is not bool_ else x


@abs.bprop
def _(x, out, dout):
    if x.dtype.is_complex:
        unit = select(out == 0, 0, true_divide(x, cast(select(out == 0, 1, out), x.dtype)))
        return (mul(cast(dout, x.dtype), unit),)
    return (mul(dout, sign(x)),)


@abs.decompose
def _(x):
    if x.dtype is bool_ or x.dtype.kind == "u":
        return logical_or(x, x) if x.dtype is bool_ else mul(x, 1)
    return select(x < 0, neg(x), select(x == 0, 0, x))


@op(method="square", primitive="Square", dtypes=NUMERIC, folds="biu")
def square(input: Tensor):
    """Return the squares of the elements (`mindspore.ops.square`).

    Args:
        input: Tensor of any shape; integer, floating or complex.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.square(ms.Tensor([1.0, -3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  9.00000000e+00])
    """


square.reference(np.square)


@square.scalar
def _(s, x):
    return x * x


@square.bprop
def _(x, out, dout):
    return (mul(dout, mul(conjugate(x), 2)),)


@square.decompose
def _(x):
    return mul(x, x)


@op(
    method=["reciprocal", "inv"],
    dtypes=INEXACT,
    promote="float",
    primitive=["Reciprocal", "Inv"],
)
def reciprocal(input: Tensor):
    """Return 1 divided by the elements (`mindspore.ops.reciprocal`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.reciprocal(ms.Tensor([0.5, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  2.50000000e-01])
    """


@reciprocal.reference
def _(x):
    return np.true_divide(np.ones_like(x), x)


@reciprocal.scalar
def _(s, x):
    return 1 / x


@reciprocal.bprop
def _(x, out, dout):
    return (neg(mul(dout, square(conjugate(out)))),)


@reciprocal.decompose
def _(x):
    return true_divide(1, x)


@op(method="maximum", primitive="Maximum", dtypes=BOOL + REAL, promote="common", folds="biu")
def maximum(input: Tensor, other: Tensor):
    """Return the greater of two elements; NaN if either is NaN (`mindspore.ops.maximum`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.maximum(ms.Tensor([1.0, 5.0]), ms.Tensor([3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  5.00000000e+00])
    """


maximum.reference(np.maximum)


@maximum.scalar
def _(s, x, y):
    return s.maximum(x, y)


@maximum.bprop
def _(x, y, out, dout):
    return _shares(x, y, x > y, dout)


def _shares(x: Tensor, y: Tensor, first: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of the two operands of an elementwise maximum or minimum.

    `first` is True where the result is the element of `x`. Where the operands are equal, each gets
    half of `dout`.
    """
    half = select(x == y, dout * 0.5, 0)
    return (
        unbroadcast(select(first, dout, half), x),
        unbroadcast(select(logical_or(first, x == y), half, dout), y),
    )


@op(method="minimum", primitive="Minimum", dtypes=BOOL + REAL, promote="common", folds="biu")
def minimum(input: Tensor, other: Tensor):
    """Return the smaller of two elements; NaN if either is NaN (`mindspore.ops.minimum`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.minimum(ms.Tensor([1.0, 5.0]), ms.Tensor([3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  4.00000000e+00])
    """


minimum.reference(np.minimum)


@minimum.scalar
def _(s, x, y):
    return s.minimum(x, y)


@minimum.bprop
def _(x, y, out, dout):
    return _shares(x, y, x < y, dout)


@minimum.decompose
def _(x, y):
    return select(logical_or(x < y, x != x), x, y)


@op(method="fmax", primitive="Fmax", dtypes=BOOL + REAL, promote="common")
def fmax(input: Tensor, other: Tensor):
    """Return the greater of two elements; the other one where one is NaN (`mindspore.ops.fmax`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fmax(ms.Tensor([1.0, float("nan")]), ms.Tensor([3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  4.00000000e+00])
    """


fmax.reference(np.fmax)


@fmax.scalar
def _(s, x, y):
    first = x >= y
    return s.where(first | (y != y) if x.dtype.is_floating else first, x, y)


@fmax.bprop
def _(x, y, out, dout):
    first = logical_or(x >= y, y != y)
    return unbroadcast(select(first, dout, 0), x), unbroadcast(select(first, 0, dout), y)


@fmax.decompose
def _(x, y):
    return select(logical_or(x >= y, y != y), x, y)


@op(method="fmin", primitive="Fmin", dtypes=BOOL + REAL, promote="common")
def fmin(input: Tensor, other: Tensor):
    """Return the smaller of two elements; the other one where one is NaN (`mindspore.ops.fmin`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fmin(ms.Tensor([1.0, float("nan")]), ms.Tensor([3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  4.00000000e+00])
    """


fmin.reference(np.fmin)


@fmin.scalar
def _(s, x, y):
    first = x <= y
    return s.where(first | (y != y) if x.dtype.is_floating else first, x, y)


@fmin.bprop
def _(x, y, out, dout):
    first = logical_or(x <= y, y != y)
    return unbroadcast(select(first, dout, 0), x), unbroadcast(select(first, 0, dout), y)


@fmin.decompose
def _(x, y):
    return select(logical_or(x <= y, y != y), x, y)


def positive(input: Tensor) -> Tensor:
    """Return the tensor itself (`mindspore.ops.positive`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.positive(ms.Tensor([1.0, -2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00, -2.00000000e+00])
    """
    return input


@tensor_method("__pos__", "positive")
def _tensor_positive(self: Tensor) -> Tensor:
    """Implement ``+x``, which returns the tensor itself."""
    return self


absolute, negative, sgn = abs, neg, sign
multiply = mul
