"""Explains errors caused by arguments of the wrong kind, after a call has failed.

`ops/__init__.py` wraps the public functions with `refusing`. A check on every call would cost more
than many ops, so arguments are compared with the annotations only after a call has failed. A
successful call must not pay for it.
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
# annotation -> accepted classes, and their description in an error
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "Tensor": ((Tensor,), "a Tensor"),
    "int": (_INTEGER, "an int"),
    "float": ((*_INTEGER, float, np.floating), "a number"),
    "bool": ((bool, np.bool_), "True or False"),
    "str": ((str,), "a string"),
}


def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a public function: after a failed call, name its first argument of a wrong type."""

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

    call.__module__ = __package__  # pickle looks functions up in duograph.ops
    return call


def _unfit(
    function: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]
) -> str | None:
    """Describe the first argument that does not match its annotation; None if all do."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:  # wrong number of arguments: Python's own error says so
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
            words += " or None" if optional else ""
            return f"{function.__name__}: got {shown} for {name!r}; wanted {words}"
    return None
