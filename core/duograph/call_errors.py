"""Explains errors of Python and NumPy that arguments of the wrong kind or size cause.

`ops.refusals` does so for functions. `explain_methods` does it for the constructors of layers,
metrics, data sets, transforms, initialisers and primitives. A call that succeeds pays one frame.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .errors import (
    ArgumentError,
    ArgumentValueError,
    DeviceMemoryError,
    DuographError,
    IndexRangeError,
)
from .tensor import Tensor

__all__ = ["explain_methods", "explained", "is_ours_to_explain"]

_EXPLAINED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError)


def explain_methods(cls: type, *names: str) -> None:
    """Wrap methods that a class of duograph defines: explain what was wrong after a failed call.

    Base classes call it for each subclass; classes of users remain as they are.
    """
    if cls.__module__.partition(".")[0] != "duograph":
        return
    for name in names:
        method = cls.__dict__.get(name)
        if isinstance(method, FunctionType):
            setattr(cls, name, _explaining(method, name))


def _explaining(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: object, /, *args: object, **kwargs: object) -> Any:
        try:
            return method(self, *args, **kwargs)
        except DuographError:
            raise
        except Exception as error:
            if not is_ours_to_explain(error):
                raise
            owner = type(self)
            shown = owner.__name__ if name == "__init__" else f"{owner.__name__}.{name}"
            raise explained(owner.__module__, shown, args, kwargs, error) from error

    return call


def is_ours_to_explain(error: Exception) -> bool:
    """Return whether code of duograph and NumPy alone raised an exception of Python or NumPy.

    Errors of functions that the user passed go to the user as they are, and so does Python's error
    for a wrong number of arguments, which no frame below the wrapper raised.
    """
    if type(error).__module__.partition(".")[0] not in ("builtins", "numpy"):
        return False
    if "; wanted " in str(error):
        return False  # it says what was got and wanted
    frame = error.__traceback__.tb_next if error.__traceback__ is not None else None
    if frame is None or not isinstance(error, _EXPLAINED):
        return False
    while frame is not None:
        name = str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in ("duograph", "numpy") and name not in sys.stdlib_module_names:
            return False
        frame = frame.tb_next
    return True


def explained(
    module: str, short: str, args: tuple[object, ...], kwargs: dict[str, object], error: Exception
) -> DuographError:
    """Return the error of duograph for a call that failed with an error of Python or NumPy.

    Args:
        module: from which the function is imported.
        short: the function's name in the module.
        args, kwargs: of the call.
        error: what it raised.
    """
    if isinstance(error, MemoryError):
        return DeviceMemoryError(
            f"{short}: the host has no memory for the result: {error or 'it is too large'}; "
            f"wanted a smaller size"
        )
    shown = [_shown(a) for a in args] + [f"{k}={_shown(a)}" for k, a in kwargs.items()]
    text = f"{short}: got {', '.join(shown)}: {error}; help({module}.{short}) says what it takes"
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
