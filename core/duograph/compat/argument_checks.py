"""MindSpore's private module `_checkparam`: checks of arguments that published packages call.

Programs import it as `mindspore._checkparam`; nothing in duograph imports it. Most functions return
the value that they have checked. `arg_name` and `prim_name` name the argument and the op in error
messages. The relation `rel` is a constant of this module, such as `GE`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ..errors import ArgumentError, ArgumentValueError

T = TypeVar("T")

EQ, NE, LT, LE, GT, GE = 1, 2, 3, 4, 5, 6
INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = 7, 8, 9, 10
IN, NOT_IN = 11, 12

_RELATIONS: dict[int, tuple[str, Callable[..., bool]]] = {
    EQ: ("=", operator.eq),
    NE: ("!=", operator.ne),
    LT: ("<", operator.lt),
    LE: ("<=", operator.le),
    GT: (">", operator.gt),
    GE: (">=", operator.ge),
}
_RANGES: dict[int, tuple[str, Callable[..., bool], Callable[..., bool]]] = {
    INC_NEITHER: ("({}, {})", operator.gt, operator.lt),
    INC_LEFT: ("[{}, {})", operator.ge, operator.lt),
    INC_RIGHT: ("({}, {}]", operator.gt, operator.le),
    INC_BOTH: ("[{}, {}]", operator.ge, operator.le),
}


def _subject(arg_name: str | None, prim_name: str | None) -> str:
    name = arg_name or "value"
    return f"{prim_name}: {name}" if prim_name else name


def _is(value: object, kind: type) -> bool:
    """Return whether a value is an instance of `kind`; a bool is one only if `kind` is bool."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def check_is_number(
    arg_value: T, arg_type: type, arg_name: str | None = None, prim_name: str | None = None
) -> T:
    """Return the argument if it is an instance of `arg_type`, such as int.

    A bool is refused unless `arg_type` is bool. `arg_name` and `prim_name` name the argument and
    the op in the error message.

    Raises:
        TypeError: the argument has another type.
    """
    if not _is(arg_value, arg_type):
        raise ArgumentError(
            f"{_subject(arg_name, prim_name)}: got {type(arg_value).__name__}; "
            f"wanted {arg_type.__name__}"
        )
    return arg_value


def _compared(
    value: T, other: object, rel: int, kind: type, arg_name: str | None, prim_name: str | None
) -> T:
    check_is_number(value, kind, arg_name, prim_name)
    symbol, compare = _RELATIONS[rel]
    if not compare(value, other):
        raise ArgumentValueError(
            f"{_subject(arg_name, prim_name)}: got {value}; wanted {kind.__name__} {symbol} {other}"
        )
    return value


def check_int(
    arg_value: int, value: int, rel: int, arg_name: str | None = None, prim_name: str | None = None
) -> int:
    """Return the argument if it is an int in the relation `rel`, such as `GE`, to `value`.

    Raises:
        TypeError: the argument is no int.
        ValueError: the relation does not hold.
    """
    return int(_compared(arg_value, value, rel, int, arg_name, prim_name))


def check_float(
    arg_value: float,
    value: float,
    rel: int,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> float:
    """Return the argument if it is a float in the relation `rel`, such as `GE`, to `value`.

    The errors are those of `check_int`.
    """
    return float(_compared(arg_value, value, rel, float, arg_name, prim_name))


def check_number_range(
    arg_value: T,
    lower_limit: object,
    upper_limit: object,
    rel: int,
    value_type: type,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> T:
    """Return the argument if it is a number of type `value_type` between the limits.

    `rel`, a constant of this module such as `INC_LEFT` or `INC_BOTH`, says which limits belong to
    the range.

    Raises:
        TypeError: the argument has another type.
        ValueError: the argument is outside the range.
    """
    check_is_number(arg_value, value_type, arg_name, prim_name)
    text, above, below = _RANGES[rel]
    if not (above(arg_value, lower_limit) and below(arg_value, upper_limit)):
        raise ArgumentValueError(
            f"{_subject(arg_name, prim_name)}: got {arg_value}; wanted {value_type.__name__} in "
            f"{text.format(lower_limit, upper_limit)}"
        )
    return arg_value


def check_int_range(
    arg_value: int,
    lower_limit: int,
    upper_limit: int,
    rel: int,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> int:
    """Return the argument if it is an int between the limits; see `check_number_range`."""
    return int(
        check_number_range(arg_value, lower_limit, upper_limit, rel, int, arg_name, prim_name)
    )


def check_float_range(
    arg_value: float,
    lower_limit: float,
    upper_limit: float,
    rel: int,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> float:
    """Return the argument if it is a float between the limits; see `check_number_range`."""
    return float(
        check_number_range(arg_value, lower_limit, upper_limit, rel, float, arg_name, prim_name)
    )


def _signed(kind: type, rel: int, text: str) -> Callable[..., object]:
    """Create a function that checks the sign of an int or float and returns the number.

    Args:
        kind: int or float.
        rel: the relation that the number must have to 0, a constant of this module such as `GT`.
        text: the sign in words, for the name of the function: "positive" makes
            `check_positive_int`.
    """

    def check(arg_value: T, arg_name: str | None = None, prim_name: str | None = None) -> T:
        return _compared(arg_value, kind(0), rel, kind, arg_name, prim_name)

    check.__name__ = check.__qualname__ = f"check_{text}_{kind.__name__}"
    check.__doc__ = (
        f"Return the argument if it is a {text.replace('_', '-')} {kind.__name__}; else raise an "
        "error as `check_int` does."
    )
    return check


check_positive_int = _signed(int, GT, "positive")
check_negative_int = _signed(int, LT, "negative")
check_non_positive_int = _signed(int, LE, "non_positive")
check_non_negative_int = _signed(int, GE, "non_negative")
check_positive_float = _signed(float, GT, "positive")
check_negative_float = _signed(float, LT, "negative")
check_non_positive_float = _signed(float, LE, "non_positive")
check_non_negative_float = _signed(float, GE, "non_negative")


def check_equal_int(
    arg_value: int, value: int, arg_name: str | None = None, prim_name: str | None = None
) -> int:
    """Return the argument if it is an int that equals `value`; errors are those of `check_int`."""
    return check_int(arg_value, value, EQ, arg_name, prim_name)


def check_is_int(arg_value: T, arg_name: str | None = None, prim_name: str | None = None) -> T:
    """Return the argument if it is an int; raise TypeError otherwise."""
    return check_is_number(arg_value, int, arg_name, prim_name)


def check_is_float(arg_value: T, arg_name: str | None = None, prim_name: str | None = None) -> T:
    """Return the argument if it is a float; raise TypeError otherwise."""
    return check_is_number(arg_value, float, arg_name, prim_name)


def check_bool(arg_value: bool, arg_name: str | None = None, prim_name: str | None = None) -> bool:
    """Return the argument if it is a bool; raise TypeError otherwise."""
    return bool(check_is_number(arg_value, bool, arg_name, prim_name))


def check_string(
    arg_value: str,
    valid_values: Sequence[str],
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> str:
    """Return the argument if it is one of the strings `valid_values`.

    Raises:
        ValueError: the argument is another string, or no string.
    """
    if not isinstance(arg_value, str) or arg_value not in valid_values:
        raise ArgumentValueError(
            f"{_subject(arg_name, prim_name)}: got {arg_value!r}; "
            f"wanted one of {', '.join(map(repr, valid_values))}"
        )
    return arg_value


def check_value_type(
    arg_name: str,
    arg_value: T,
    valid_types: type | Sequence[type],
    prim_name: str | None = None,
) -> T:
    """Return the value if it has one of the types; a bool counts only if `bool` is among them.

    Raises:
        TypeError: the value has another type.
    """
    types = (valid_types,) if isinstance(valid_types, type) else tuple(valid_types)
    wrong_bool = isinstance(arg_value, bool) and bool not in types
    if wrong_bool or not isinstance(arg_value, types):
        raise ArgumentError(
            f"{_subject(arg_name, prim_name)}: got {type(arg_value).__name__}; "
            f"wanted {' or '.join(t.__name__ for t in types)}"
        )
    return arg_value


def check_type_name(
    arg_name: str, arg_type: T, valid_types: Sequence[object], prim_name: str | None
) -> T:
    """Return `arg_type`, a type or dtype, if it is one of `valid_types`.

    Raises:
        TypeError: `arg_type` is not among `valid_types`.
    """
    if arg_type not in list(valid_types):
        raise ArgumentError(
            f"{_subject(arg_name, prim_name)}: got {arg_type}; "
            f"wanted one of {', '.join(map(str, valid_types))}"
        )
    return arg_type


def check_subclass(
    arg_name: str,
    type_: object,
    template_types: object,
    prim_name: str | None = None,
    addition_error_info: str | None = None,
) -> None:
    """Check that the dtype `type_` is one of `template_types`, a dtype or several of them.

    Raises:
        TypeError: `type_` is not among them; `addition_error_info`, unless None, is appended to
            the message.
    """
    valid = template_types if isinstance(template_types, Iterable) else (template_types,)
    try:
        check_type_name(arg_name, type_, tuple(valid), prim_name)
    except ArgumentError as error:
        if addition_error_info is None:
            raise
        raise ArgumentError(f"{error}; {addition_error_info}") from None


def check_types_same_and_valid(
    args: Mapping[str, object], valid_values: Sequence[object], prim_name: str | None = None
) -> None:
    """Check that the dtypes in `args` (name -> dtype) are all the same, and one of `valid_values`.

    Raises:
        TypeError: a dtype is not valid, or differs from the first.
    """
    for name, dtype in args.items():
        check_subclass(name, dtype, valid_values, prim_name)
    first = next(iter(args.items()), ("", None))
    for name, dtype in args.items():
        if dtype != first[1]:
            raise ArgumentError(
                f"{_subject(name, prim_name)}: got {dtype}; wanted {first[1]}, as {first[0]}"
            )


def check_isinstance(arg_name: str, arg_value: T, classes: type | tuple[type, ...]) -> T:
    """Return the value if it is an instance of one of the classes.

    Raises:
        ValueError: the value is no instance of them; MindSpore raises this class, not TypeError.
    """
    if not isinstance(arg_value, classes):
        raise ArgumentValueError(f"{arg_name}: got {arg_value!r}; wanted an instance of {classes}")
    return arg_value
