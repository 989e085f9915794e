"""Comparisons and elementwise predicates, such as `equal` and `isnan`, with bool results.

Users and other ops call them; they have no gradient.
"""

from __future__ import annotations

import numpy as np

from ..dtype import BOOL, NUMERIC, REAL, bool_, float32
from ..errors import ArgumentValueError
from ..ir.values import HostValue
from ..op import op
from ..tensor import Tensor
from .creation import cast
from .logic import logical_and, logical_not, logical_or
from .methods import tensor_method

__all__ = [
    "approximate_equal", "eq", "equal", "ge", "greater", "greater_equal", "gt", "isclose",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "le", "less", "less_equal",
    "lt", "ne", "not_equal", "signbit",
]  # fmt: skip


@op(
    method=["equal", "eq"], primitive="Equal", dtypes=BOOL + NUMERIC, promote="common",
    differentiable=False, folds="biuf",
    result=bool_,
)  # fmt: skip
def equal(input: Tensor, other: Tensor):
    """Return whether elements are equal (`mindspore.ops.equal`).

    Args:
        input: Tensor of any shape and dtype, or a number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.equal(ms.Tensor([1, 2, 3]), ms.Tensor([3, 2, 1]))
        Tensor(shape=[3], dtype=Bool, value= [False,  True, False])
    """


equal.reference(np.equal)


@equal.scalar
def _(s, x, y):
    return x == y


@op(
    method=["not_equal", "ne"], primitive="NotEqual", dtypes=BOOL + NUMERIC, promote="common",
    differentiable=False, folds="biuf",
    result=bool_,
)  # fmt: skip
def not_equal(input: Tensor, other: Tensor):
    """Return whether elements differ; NaN differs from everything (`mindspore.ops.not_equal`).

    Args:
        input: Tensor of any shape and dtype, or a number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.not_equal(ms.Tensor([1, 2, 3]), ms.Tensor([3, 2, 1]))
        Tensor(shape=[3], dtype=Bool, value= [ True, False,  True])
    """


not_equal.reference(np.not_equal)


@not_equal.scalar
def _(s, x, y):
    return x != y


@not_equal.decompose
def _(x, y):
    return logical_not(equal(x, y))


@op(
    method=["less", "lt"], operators=["__lt__"], primitive="Less", dtypes=BOOL + REAL,
    promote="common", differentiable=False, folds="biuf",
    result=bool_,
)  # fmt: skip
def less(input: Tensor, other: Tensor):
    """Return whether elements of `input` are smaller (`mindspore.ops.less`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.less(ms.Tensor([1, 2, 3]), ms.Tensor([3, 2, 1]))
        Tensor(shape=[3], dtype=Bool, value= [ True, False, False])
    """


less.reference(np.less)


@less.scalar
def _(s, x, y):
    return x < y


@op(
    method=["less_equal", "le"], operators=["__le__"], primitive="LessEqual", dtypes=BOOL + REAL,
    promote="common", differentiable=False, folds="biuf",
    result=bool_,
)  # fmt: skip
def less_equal(input: Tensor, other: Tensor):
    """Return whether elements of `input` are smaller or equal (`mindspore.ops.less_equal`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.less_equal(ms.Tensor([1, 2, 3]), ms.Tensor([3, 2, 1]))
        Tensor(shape=[3], dtype=Bool, value= [ True,  True, False])
    """


less_equal.reference(np.less_equal)


@less_equal.scalar
def _(s, x, y):
    return x <= y


@less_equal.decompose
def _(x, y):
    return logical_or(less(x, y), equal(x, y))


@op(
    method=["greater", "gt"], operators=["__gt__"], primitive="Greater", dtypes=BOOL + REAL,
    promote="common", differentiable=False, folds="biuf",
    result=bool_,
)  # fmt: skip
def greater(input: Tensor, other: Tensor):
    """Return whether elements of `input` are greater (`mindspore.ops.greater`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.greater(ms.Tensor([1, 2, 3]), ms.Tensor([3, 2, 1]))
        Tensor(shape=[3], dtype=Bool, value= [False, False,  True])
    """


greater.reference(np.greater)


@greater.scalar
def _(s, x, y):
    return x > y


@greater.decompose
def _(x, y):
    return less(y, x)


@op(
    method=["greater_equal", "ge"], operators=["__ge__"], primitive="GreaterEqual",
    dtypes=BOOL + REAL, promote="common", differentiable=False, folds="biuf",
    result=bool_,
)  # fmt: skip
def greater_equal(input: Tensor, other: Tensor):
    """Return whether elements of `input` are greater or equal (`mindspore.ops.greater_equal`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.greater_equal(ms.Tensor([1, 2, 3]), ms.Tensor([3, 2, 1]))
        Tensor(shape=[3], dtype=Bool, value= [False,  True,  True])
    """


greater_equal.reference(np.greater_equal)


@greater_equal.scalar
def _(s, x, y):
    return x >= y


@greater_equal.decompose
def _(x, y):
    return logical_or(less(y, x), equal(x, y))


@op(method="isnan", primitive="IsNan", dtypes=BOOL + NUMERIC, differentiable=False, result=bool_)
def isnan(input: Tensor):
    """Return whether elements are NaN (`mindspore.ops.isnan`).

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of bool, of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.isnan(ms.Tensor([1.0, float("nan"), float("inf")]))
        Tensor(shape=[3], dtype=Bool, value= [False,  True, False])
    """


isnan.reference(np.isnan)


@isnan.scalar
def _(s, x):
    return s.isnan(x)


@isnan.decompose
def _(x):
    return logical_not(equal(x, x))


@op(method="isinf", primitive="IsInf", dtypes=BOOL + NUMERIC, differentiable=False, result=bool_)
def isinf(input: Tensor):
    """Return whether elements are infinities (`mindspore.ops.isinf`).

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of bool, of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.isinf(ms.Tensor([1.0, float("nan"), float("inf")]))
        Tensor(shape=[3], dtype=Bool, value= [False, False,  True])
    """


isinf.reference(np.isinf)


@isinf.scalar
def _(s, x):
    return s.isinf(x)


@isinf.decompose
def _(x):
    if not x.dtype.is_floating:
        return not_equal(x, x)
    return logical_or(equal(x, float("inf")), equal(x, float("-inf")))


@op(
    method="isfinite",
    primitive="IsFinite",
    dtypes=BOOL + NUMERIC,
    differentiable=False,
    result=bool_,
)
def isfinite(input: Tensor):
    """Return whether elements are neither NaN nor infinities (`mindspore.ops.isfinite`).

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of bool, of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.isfinite(ms.Tensor([1.0, float("nan"), float("inf")]))
        Tensor(shape=[3], dtype=Bool, value= [ True, False, False])
    """


isfinite.reference(np.isfinite)


@isfinite.scalar
def _(s, x):
    return s.isfinite(x)


@isfinite.decompose
def _(x):
    if not x.dtype.is_floating:
        return equal(x, x)
    return logical_and(less(x, float("inf")), less(float("-inf"), x))


@op(method="isposinf", dtypes=BOOL + REAL, differentiable=False, result=bool_)
def isposinf(input: Tensor):
    """Return whether elements are plus infinity (`mindspore.ops.isposinf`).

    Args:
        input: Tensor of any shape; any dtype but complex.

    Returns:
        Tensor of bool, of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.isposinf(ms.Tensor([1.0, float("-inf"), float("inf")]))
        Tensor(shape=[3], dtype=Bool, value= [False, False,  True])
    """


@isposinf.reference
def _(x):
    return np.isposinf(x) if x.dtype.kind != "b" else np.zeros(x.shape, bool)


@isposinf.scalar
def _(s, x):
    return s.isinf(x) & (x > 0) if x.dtype.is_floating else s.isinf(x)


@isposinf.decompose
def _(x):
    return logical_and(isinf(x), greater(x, 0))


@op(method="isneginf", dtypes=BOOL + REAL, differentiable=False, result=bool_)
def isneginf(input: Tensor):
    """Return whether elements are minus infinity (`mindspore.ops.isneginf`).

    Args:
        input: Tensor of any shape; any dtype but complex.

    Returns:
        Tensor of bool, of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.isneginf(ms.Tensor([1.0, float("-inf"), float("inf")]))
        Tensor(shape=[3], dtype=Bool, value= [False,  True, False])
    """


@isneginf.reference
def _(x):
    return np.isneginf(x) if x.dtype.kind != "b" else np.zeros(x.shape, bool)


@isneginf.scalar
def _(s, x):
    return s.isinf(x) & (x < 0) if x.dtype.is_floating else s.isinf(x)


@isneginf.decompose
def _(x):
    return logical_and(isinf(x), less(x, 0))


@op(method="signbit", dtypes=BOOL + REAL, differentiable=False, result=bool_)
def signbit(input: Tensor):
    """Return whether the sign bit is set, that of -0.0 included (`mindspore.ops.signbit`).

    Args:
        input: Tensor of any shape; any dtype but complex.

    Returns:
        Tensor of bool, of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.signbit(ms.Tensor([-1.0, -0.0, 2.0]))
        Tensor(shape=[3], dtype=Bool, value= [ True,  True, False])
    """


@signbit.reference
def _(x):
    return np.signbit(x.astype(np.float32)) if x.dtype.kind == "b" else np.signbit(x)


@signbit.scalar
def _(s, x):
    if x.dtype.is_floating:
        return s.copysign(s.const(1, x.dtype), x) < 0
    return x < 0 if x.dtype.kind == "i" else s.const(False, bool_)


@signbit.decompose
def _(x):
    if not x.dtype.is_floating:
        return less(x, 0)
    return logical_or(less(x, 0), logical_and(equal(x, 0), less(1 / x, 0)))


@op(
    method="isclose", dtypes=BOOL + REAL, promote="common", differentiable=False, result=bool_
)  # fmt: skip
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
):
    """Return whether elements are close: ``|input - other| <= atol + rtol * |other|``
    (`mindspore.ops.isclose`).

    Args:
        input, other: Tensors of any shape, not complex.
        rtol, atol: relative and absolute tolerance, not negative.
        equal_nan: whether NaN is close to NaN.

    Returns:
        Tensor of bool, of the broadcast shape.

    Raises:
        ValueError: a tolerance is negative, or the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.isclose(ms.Tensor([1.0, 2.0]), ms.Tensor([1.000001, 2.1]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    if rtol < 0 or atol < 0:
        raise ArgumentValueError(
            f"isclose: got rtol={rtol} and atol={atol}; wanted no negative one"
        )
    x = input if input.dtype.is_floating else cast(input, float32)
    y = other if other.dtype.is_floating else cast(other, float32)
    near = abs(x - y) <= atol + rtol * abs(y)
    close = logical_or(equal(x, y), logical_and(near, isfinite(y)))
    return logical_or(close, logical_and(isnan(x), isnan(y))) if equal_nan else close


@op(
    name="approximate_equal",
    method="approximate_equal",
    dtypes=REAL,
    promote="common",
    differentiable=False,
    result=bool_,
    primitive="ApproximateEqual(tolerance=1e-05)(x, y)",
)
def approximate_equal(x: Tensor, y: Tensor, tolerance: float = 1e-05):
    """Return whether elements differ by less than `tolerance` (`mindspore.ops.approximate_equal`).

    Args:
        x, y: Tensors of any shape.
        tolerance: upper bound of the difference.

    Returns:
        Tensor of bool, of the broadcast shape.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.approximate_equal(ms.Tensor([1.0, 2.0]), ms.Tensor([1.000001, 2.1]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    return abs(x - y) < tolerance


@tensor_method("isreal")
def isreal(input: Tensor) -> Tensor:
    """Return whether elements have no imaginary part (`mindspore.ops.isreal`).

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of bool.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.isreal(ms.Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Bool, value= [ True,  True])
    """
    return (
        equal(input, input.real()) if input.dtype.is_complex else logical_or(equal(input, 0), True)
    )


# `HostValue`: a number that is known only when the graph runs. An object of which that is true is
# refused by `equal`.
_COMPARABLE = (Tensor, bool, int, float, complex, np.ndarray, np.generic, list, tuple, HostValue)


@tensor_method("__eq__")
def _tensor_eq(self: Tensor, other: object) -> Tensor | bool:
    """Implement ``x == other`` elementwise; False if `other` is not a number, tensor or array."""
    return equal(self, other) if isinstance(other, _COMPARABLE) else False


@tensor_method("__ne__")
def _tensor_ne(self: Tensor, other: object) -> Tensor | bool:
    return not_equal(self, other) if isinstance(other, _COMPARABLE) else True


eq, ne, lt, le, gt, ge = equal, not_equal, less, less_equal, greater, greater_equal
