"""The words with which a function of `ops` refuses an argument of the wrong kind.

The functions say in their annotations what they take and do not check it themselves: a check on
every call would cost more than many an op. When a call has failed, the arguments are held against
the annotations, and the first that does not fit is named.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError, DuographError
from ..tensor import Tensor

__all__ = ["refusing"]

_INTEGER = (int, np.integer)
# annotation -> what fits it, and its words
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "Tensor": ((Tensor,), "a Tensor"),
    "int": (_INTEGER, "an int"),
    "float": ((*_INTEGER, float, np.floating), "a number"),
    "bool": ((bool, np.bool_), "True or False"),
    "str": ((str,), "a string"),
}


def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with an ArgumentError in place of what the first unfit argument made it stumble
    over.
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        try:
            return function(*args, **kwargs)
        except DuographError:
            raise
        except Exception as error:
            text = _unfit(function, args, kwargs)
            if text is None:
                raise
            raise ArgumentError(text) from error

    call.__module__ = __package__  # where pickle finds it
    return call


def _unfit(
    function: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]
) -> str | None:
    """What is wrong with the first argument that does not fit its annotation."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:  # too many, too few: Python has said so
        return None
    for name, value in given.items():
        annotation = str(function.__annotations__.get(name, "")).replace(" ", "")
        optional = annotation.endswith("|None")
        kind = KINDS.get(annotation.removesuffix("|None"))
        if kind is None or (optional and value is None):
            continue
        classes, words = kind
        if not isinstance(value, classes):
            shown = type(value).__name__ if classes == (Tensor,) else repr(value)
            return f"{function.__name__}: got {shown} for {name!r}; wanted {words}{' or None' if optional else ''}"
    return None
