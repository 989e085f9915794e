"""Explains errors caused by arguments of the wrong kind or size, after a call has failed.

`ops/__init__.py`, `ops/methods.py` and the package `numpy` wrap public functions with `refusing`. A
check on every call would cost more than many ops, so arguments are compared with the annotations
only after a call has failed. A successful call must not pay for it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..call_cache import cached_call, copy_identity
from ..errors import (
    ArgumentError,
    ArgumentValueError,
    DeviceMemoryError,
    DuographError,
    IndexRangeError,
)
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


def refusing(
    function: Callable[..., Any], module: str = __package__, public_name: str = ""
) -> Callable[..., Any]:
    """Wrap a public function of a module: explain what was wrong after a failed call.

    The first argument of a wrong type is named. Any other error of Python or NumPy below the
    function becomes an error of duograph that shows the arguments. Prepared calls of a cached
    function need no wrapper.
    """
    uncached = getattr(function, "uncached", None)
    if uncached is not None:
        made = cached_call(refusing(uncached, module, public_name))
        made.__doc__ = function.__doc__
        return made

    def call(*args: object, **kwargs: object) -> Any:
        try:
            return function(*args, **kwargs)
        except DuographError:
            raise
        except Exception as error:
            text = _unfit(function, args, kwargs)
            if text is not None:
                raise ArgumentError(text) from error
            if not _is_ours_to_explain(error):
                raise
            name = public_name or f"{module}.{function.__name__}"
            raise _explained(name, args, kwargs, error) from error

    if isinstance(function, FunctionType):
        copy_identity(function, call)
    else:
        functools.update_wrapper(call, function)
    call.__module__ = module  # pickle looks functions up there
    return call


def _is_ours_to_explain(error: Exception) -> bool:
    """Return whether code of duograph and NumPy alone raised an exception of Python or NumPy.

    Errors of functions that the user passed go to the user as they are, and so does Python's error
    for a wrong number of arguments, which no frame below the wrapper raised.
    """
    if type(error).__module__.partition(".")[0] not in ("builtins", "numpy"):
        return False
    frame = error.__traceback__.tb_next if error.__traceback__ is not None else None
    if frame is None or not isinstance(error, _EXPLAINED):
        return False
    while frame is not None:
        name = str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in ("duograph", "numpy") and name not in sys.stdlib_module_names:
            return False
        frame = frame.tb_next
    return True


_EXPLAINED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError)


def _explained(
    name: str, args: tuple[object, ...], kwargs: dict[str, object], error: Exception
) -> DuographError:
    """Return the error of duograph for a call that failed with an error of Python or NumPy."""
    short = name.rpartition(".")[2]
    if isinstance(error, MemoryError):
        return DeviceMemoryError(
            f"{short}: the host has no memory for the result: {error or 'it is too large'}; "
            f"wanted a smaller size"
        )
    shown = [_shown(a) for a in args] + [f"{k}={_shown(a)}" for k, a in kwargs.items()]
    text = f"{short}: got {', '.join(shown)}: {error}; help({name}) says what it takes"
    if isinstance(error, IndexError):
        return IndexRangeError(text)
    return (
        ArgumentValueError if isinstance(error, (ValueError, OverflowError)) else ArgumentError
    )(text)


def _shown(value: object) -> str:
    """Return an argument for an error message: the type of a tensor, or a short repr."""
    if isinstance(value, Tensor):
        return repr(value._type.plain)
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


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
