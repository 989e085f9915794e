"""Functions of Python numbers, tuples, lists and dicts, such as `scalar_add` and `tuple_getitem`.

Programs written for MindSpore's functional layer call them. They are plain Python, not ops: eager
mode runs it, and a compiled function traces it.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from ..errors import ArgumentError, ArgumentValueError
from ..tensor import Tensor
from .creation_ranges import arange

__all__ = [
    "broadcast_gradient_args", "deepcopy", "dict_getitem", "dict_setitem", "in_dict", "is_",
    "is_nonzero", "is_not", "isconstant", "list_equal", "list_getitem", "list_len",
    "list_setitem", "make_dict", "make_list", "make_slice", "make_tuple", "not_in_dict",
    "reduced_shape", "scalar_add", "scalar_div", "scalar_eq", "scalar_floordiv", "scalar_ge",
    "scalar_gt", "scalar_le", "scalar_log", "scalar_lt", "scalar_max", "scalar_min", "scalar_mod",
    "scalar_mul", "scalar_ne", "scalar_pow", "scalar_sub", "scalar_uadd", "scalar_usub",
    "shape_mul", "string_concat", "string_eq", "tensor_range", "tuple_div", "tuple_equal",
    "tuple_getitem", "tuple_len", "tuple_reversed", "tuple_setitem", "typeof",
]  # fmt: skip

Number: TypeAlias = int | float
Item = TypeVar("Item")
Key = TypeVar("Key")


def _of_two(
    name: str, symbol: str, function: Callable[[Number, Number], Number]
) -> Callable[..., Number]:
    def call(x: Number, y: Number) -> Number:
        for value in (x, y):
            if isinstance(value, (Tensor, str, tuple, list, dict)) or value is None:
                raise ArgumentError(f"{name}: got {type(value).__name__}; wanted Python numbers")
        return function(x, y)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return `{symbol}` for two Python numbers (`mindspore.ops.{name}`)."
    return call


scalar_add = _of_two("scalar_add", "x + y", operator.add)
scalar_sub = _of_two("scalar_sub", "x - y", operator.sub)
scalar_mul = _of_two("scalar_mul", "x * y", operator.mul)
scalar_div = _of_two("scalar_div", "x / y", operator.truediv)
scalar_floordiv = _of_two("scalar_floordiv", "x // y", operator.floordiv)
scalar_mod = _of_two("scalar_mod", "x % y", operator.mod)
scalar_pow = _of_two("scalar_pow", "x ** y", operator.pow)
scalar_eq = _of_two("scalar_eq", "x == y", operator.eq)
scalar_ne = _of_two("scalar_ne", "x != y", operator.ne)
scalar_lt = _of_two("scalar_lt", "x < y", operator.lt)
scalar_le = _of_two("scalar_le", "x <= y", operator.le)
scalar_gt = _of_two("scalar_gt", "x > y", operator.gt)
scalar_ge = _of_two("scalar_ge", "x >= y", operator.ge)
scalar_max = _of_two("scalar_max", "max(x, y)", max)
scalar_min = _of_two("scalar_min", "min(x, y)", min)


def scalar_log(x: Number) -> float:
    """Return the natural logarithm of a positive Python number (`mindspore.ops.scalar_log`).

    Raises:
        ValueError: a number that is not positive.
    """
    if not x > 0:
        raise ArgumentValueError(f"scalar_log: got {x!r}; wanted a positive number")
    return math.log(x)


def scalar_uadd(x: Number) -> Number:
    """Return `+x` for a Python number (`mindspore.ops.scalar_uadd`)."""
    return +x


def scalar_usub(x: Number) -> Number:
    """Return `-x` for a Python number (`mindspore.ops.scalar_usub`)."""
    return -x


# ---- tuples, lists, dicts, strings ---------------------------------------------------------------


def make_tuple(*items: object) -> tuple[object, ...]:
    """Return the arguments as a tuple."""
    return items


def make_list(*items: object) -> list[object]:
    """Return the arguments as a list."""
    return list(items)


def make_dict(keys: Sequence[object], values: Sequence[object]) -> dict[object, object]:
    """Return the dict that maps each key to the value at the same position.

    Raises:
        ValueError: the numbers of keys and values differ.
    """
    if len(keys) != len(values):
        raise ArgumentValueError(f"make_dict: got {len(keys)} keys and {len(values)} values")
    return dict(zip(keys, values))


def make_slice(start: object, stop: object, step: object) -> slice:
    """Return ``slice(start, stop, step)``."""
    return slice(start, stop, step)


def tuple_getitem(x: tuple[Item, ...], index: int) -> Item:
    """Return ``x[index]``."""
    return x[index]


def list_getitem(x: list[Item], index: int) -> Item:
    """Return ``x[index]``."""
    return x[index]


def tuple_setitem(x: tuple[object, ...], index: int, value: object) -> tuple[object, ...]:
    """Return a copy of the tuple with `value` at `index`.

    Raises:
        ValueError: an index out of range.
    """
    if not -len(x) <= index < len(x):
        raise ArgumentValueError(f"tuple_setitem: got index {index} for {len(x)} items")
    at = index % len(x)
    return (*x[:at], value, *x[at + 1 :])


def list_setitem(x: list[Item], index: int, value: object) -> list[object]:
    """Return a copy of the list with `value` at `index`.

    Raises:
        ValueError: an index out of range.
    """
    return list(tuple_setitem(tuple(x), index, value))


def dict_getitem(x: dict[Key, Item], key: Key) -> Item:
    """Return ``x[key]``."""
    return x[key]


def dict_setitem(x: dict[Key, Item], key: Key, value: Item) -> dict[Key, Item]:
    """Return a copy of the dict in which `key` has the given value."""
    return {**x, key: value}


def tuple_len(x: tuple[object, ...]) -> int:
    """Return the number of items."""
    return len(x)


def list_len(x: list[Item]) -> int:
    """Return the number of items."""
    return len(x)


def tuple_equal(x: tuple[object, ...], y: tuple[object, ...]) -> bool:
    """Return whether two tuples are equal."""
    return x == y


def list_equal(x: list[Item], y: list[Item]) -> bool:
    """Return whether two lists are equal."""
    return x == y


def tuple_reversed(x: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the items in reverse order."""
    return tuple(x[::-1])


def tuple_div(x: Sequence[int], y: Sequence[int]) -> tuple[int, ...]:
    """Return the quotients x[i] // y[i] of two tuples of ints.

    Raises:
        ValueError: the lengths differ, or a division leaves a remainder.
    """
    if len(x) != len(y) or any(b == 0 or a % b for a, b in zip(x, y)):
        raise ArgumentValueError(f"tuple_div: got {x} and {y}; wanted multiples of the second")
    return tuple(a // b for a, b in zip(x, y))


def in_dict(x: object, y: dict[Key, Item]) -> bool:
    """Return whether `x` is a key of the dict."""
    return x in y


def not_in_dict(x: object, y: dict[Key, Item]) -> bool:
    """Return whether `x` is not a key of the dict."""
    return x not in y


def string_eq(x: str, y: str) -> bool:
    """Return whether two strings are equal."""
    return x == y


def string_concat(x: str, y: str) -> str:
    """Return the concatenation of two strings."""
    return x + y


def is_(x: object, y: object) -> bool:
    """Return ``x is y``."""
    return x is y


def is_not(x: object, y: object) -> bool:
    """Return ``x is not y``."""
    return x is not y


# ---- shapes and values ---------------------------------------------------------------------------


def shape_mul(shape: Sequence[int]) -> int:
    """Return the product of the sizes of a shape (`mindspore.ops.shape_mul`)."""
    return math.prod(shape)


def reduced_shape(shape: Sequence[int], axis: Sequence[int] | int) -> tuple[int, ...]:
    """Return the shape with size 1 for each of the axes; an empty `axis` means all axes.

    Raises:
        ValueError: an axis out of range.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -len(shape) <= a < len(shape) for a in axes):
        raise ArgumentValueError(f"reduced_shape: got axis {axis} for the shape {tuple(shape)}")
    gone = {a % len(shape) for a in axes} if axes else set(range(len(shape)))
    return tuple(1 if i in gone else n for i, n in enumerate(shape))


def broadcast_gradient_args(
    x: Sequence[int], y: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return, for two operands that broadcast, the axes over which each gradient is summed.

    `x` and `y` are the shapes of the operands.

    Raises:
        ValueError: the shapes do not broadcast.
    """
    n = max(len(x), len(y))
    a, b = (1,) * (n - len(x)) + tuple(x), (1,) * (n - len(y)) + tuple(y)
    if any(i != j and 1 not in (i, j) for i, j in zip(a, b)):
        raise ArgumentValueError(f"broadcast_gradient_args: {tuple(x)} and {tuple(y)} do not fit")
    if tuple(x) == tuple(y):
        return (), ()
    return (
        tuple(i for i in range(n) if a[i] == 1),
        tuple(i for i in range(n) if b[i] == 1),
    )


def deepcopy(input_x: object) -> Any:
    """Return a copy that shares nothing with `input_x` (`mindspore.ops.deepcopy`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.deepcopy(ms.Tensor([1]))
        Tensor(shape=[1], dtype=Int64, value= [1])
    """
    return input_x.copy() if isinstance(input_x, Tensor) else copy.deepcopy(input_x)


def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is neither 0 nor False (`mindspore.ops.is_nonzero`).

    Raises:
        ValueError: another number of elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.is_nonzero(ms.Tensor([[3.5]]))
        True
    """
    if input.size != 1:
        raise ArgumentValueError(f"is_nonzero: got shape {input.shape}; wanted one element")
    return bool(input.item())


def isconstant(x: object) -> bool:
    """Return whether a value is known while the program is compiled (`mindspore.ops.isconstant`).

    The result is False for a Tensor that the graph computes. In eager mode every value is known.
    """
    return not isinstance(x, Tensor) or not hasattr(x, "_builder")


def typeof(x: object) -> object:
    """Return the dtype of a Tensor, or the class of another value (`mindspore.ops.typeof`)."""
    return x.dtype if isinstance(x, Tensor) else x.__class__


def tensor_range(start: int | float, end: int | float, step: int | float) -> Tensor:
    """Return the numbers from `start` to `end`, which is excluded (`mindspore.ops.tensor_range`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.tensor_range(0, 5, 2))
        [0 2 4]
    """
    return arange(start, end, step)
