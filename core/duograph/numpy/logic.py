"""Comparisons, logic and tests of elements of `duograph.numpy`.

Users call them as `duograph.numpy.NAME`. Most are made by the functions of `elementwise`, such as
`binary`. Results are bool Tensors; only `isscalar` returns a Python bool.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import ops as _ops
from ..tensor import Tensor
from .function_rows import binary, unary, unary_of_a
from .operands import TensorLike, as_floating, pair, tensor_of

# fmt: off
__all__ = [
    "array_equal", "array_equiv", "equal", "greater", "greater_equal", "in1d", "isclose",
    "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isscalar", "less", "less_equal",
    "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal",
]
# fmt: on


def _of_floats(op: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: op(as_floating(x))


equal = binary(
    "equal",
    _ops.equal,
    "Return, for each pair of elements, whether they are equal.",
    "[1, 2], 2",
    "[False  True]",
)
not_equal = binary(
    "not_equal",
    _ops.not_equal,
    "Return, for each pair of elements, whether they differ.",
    "[1, 2], 2",
    "[ True False]",
)
less = binary(
    "less",
    _ops.less,
    "Return whether each element of `x1` is less than that of `x2`.",
    "[1, 2], 2",
    "[ True False]",
)
less_equal = binary(
    "less_equal",
    _ops.less_equal,
    "Return whether each element of `x1` is at most that of `x2`.",
    "[1, 2], 2",
    "[ True  True]",
)
greater = binary(
    "greater",
    _ops.greater,
    "Return whether each element of `x1` is greater than that of `x2`.",
    "[1, 2], 1",
    "[False  True]",
)
greater_equal = binary(
    "greater_equal",
    _ops.greater_equal,
    "Return whether each element of `x1` is at least that of `x2`.",
    "[1, 2], 2",
    "[False  True]",
)
logical_and = binary(
    "logical_and",
    _ops.logical_and,
    "Return, for each pair of elements, whether both are true.",
    "[True, False], True",
    "[ True False]",
)
logical_or = binary(
    "logical_or",
    _ops.logical_or,
    "Return, for each pair of elements, whether at least one is true.",
    "[True, False], False",
    "[ True False]",
)
logical_xor = binary(
    "logical_xor",
    _ops.logical_xor,
    "Return, for each pair of elements, whether exactly one is true.",
    "[True, False], True",
    "[False  True]",
)
logical_not = unary_of_a(
    "logical_not",
    _ops.logical_not,
    "Return whether each element is false (0).",
    "[True, False]",
    "[False  True]",
)
isnan = unary(
    "isnan",
    _of_floats(_ops.isnan),
    "Return whether each element is NaN.",
    '[1.0, float("nan")]',
    "[False  True]",
)
isinf = unary(
    "isinf",
    _of_floats(_ops.isinf),
    "Return whether each element is infinite.",
    '[1.0, float("-inf")]',
    "[False  True]",
)
isfinite = unary(
    "isfinite",
    _of_floats(_ops.isfinite),
    "Return whether each element is neither NaN nor infinite.",
    '[1.0, float("inf")]',
    "[ True False]",
)


def isposinf(x: TensorLike) -> Tensor:
    """Return whether each element is positive infinity.

    Args:
        x: Tensor, number, (nested) sequence or NumPy array.

    Returns:
        bool Tensor of the shape of `x`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.isposinf([1.0, mnp.inf, -mnp.inf]))
        [False  True False]
    """
    return _ops.isposinf(as_floating(tensor_of(x)))


def isneginf(x: TensorLike) -> Tensor:
    """Return whether each element is negative infinity.

    Args:
        x: Tensor, number, (nested) sequence or NumPy array.

    Returns:
        bool Tensor of the shape of `x`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.isneginf([1.0, mnp.inf, -mnp.inf]))
        [False False  True]
    """
    return _ops.isneginf(as_floating(tensor_of(x)))


def isclose(
    a: TensorLike,
    b: TensorLike,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Return whether ``|a - b| <= atol + rtol * |b|``.

    Args:
        a: array-like.
        b: array-like that broadcasts with `a`.
        rtol: tolerance relative to `b`.
        atol: absolute tolerance.
        equal_nan: whether two NaNs are close.

    Returns:
        bool Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.isclose([1.0, 2.0], [1.0, 2.1]))
        [ True False]
    """
    x, y = pair("isclose", a, b)
    return _ops.isclose(as_floating(x), as_floating(y), rtol, atol, equal_nan)


def _all_equal(x: Tensor, y: Tensor, equal_nan: bool = False) -> Tensor:
    same = _ops.equal(x, y)
    if equal_nan:
        same = _ops.logical_or(same, _ops.logical_and(isnan(x), isnan(y)))
    return _ops.all(same)


def array_equal(a1: TensorLike, a2: TensorLike, equal_nan: bool = False) -> Tensor:
    """Return whether two array-likes have the same shape and elements.

    Args:
        a1: array-like.
        a2: array-like.
        equal_nan: whether two NaNs are equal.

    Returns:
        bool Tensor without axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.array_equal([1, 2], [1, 2]))
        True
    """
    x, y = pair("array_equal", a1, a2)
    return _all_equal(x, y, equal_nan) if x.shape == y.shape else tensor_of(False)


def array_equiv(a1: TensorLike, a2: TensorLike) -> Tensor:
    """Return whether two array-likes broadcast to the same shape and have equal elements.

    Args:
        a1: array-like.
        a2: array-like.

    Returns:
        bool Tensor without axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.array_equiv([1, 2], [[1, 2], [1, 2]]))
        True
    """
    x, y = pair("array_equiv", a1, a2)
    sizes = zip(x.shape[::-1], y.shape[::-1], strict=False)
    if any(n != m and 1 not in (n, m) for n, m in sizes):
        return tensor_of(False)
    return _all_equal(x, y)


def isin(element: TensorLike, test_elements: TensorLike, invert: bool = False) -> Tensor:
    """Return whether each element is among others.

    Args:
        element: array-like.
        test_elements: array-like of the values to look for.
        invert: whether to return the opposite.

    Returns:
        bool Tensor of the shape of `element`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.isin([[1, 2], [3, 4]], [2, 4]))
        [[False  True]
         [False  True]]
    """
    x, y = pair("isin", element, test_elements)
    flat = y.reshape(-1)
    found = _ops.any(_ops.equal(_ops.expand_dims(x, -1), flat), -1)
    return _ops.logical_not(found) if invert else found


def in1d(ar1: TensorLike, ar2: TensorLike, invert: bool = False) -> Tensor:
    """Return whether each element of a flattened array-like is among others.

    Args:
        ar1: array-like, which is flattened.
        ar2: array-like of the values to look for.
        invert: whether to return the opposite.

    Returns:
        bool Tensor of one axis.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.in1d([1, 2, 3], [2, 4]))
        [False  True False]
    """
    return isin(tensor_of(ar1).reshape(-1), ar2, invert)


def isscalar(element: object) -> bool:
    """Return whether an object is a number, bool or string; a Tensor without axes is none.

    Args:
        element: any object.

    Returns:
        bool.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.isscalar(3.1), mnp.isscalar(mnp.array(3.1))
        (True, False)
    """
    return isinstance(element, (int, float, complex, bool, str, bytes))
