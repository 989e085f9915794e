"""Explanation of errors that are caused by arguments of the wrong kind or size.

`ops/__init__.py`, `ops/methods.py` and the package `numpy` wrap public functions with `refusing`. A
check of all arguments would cost more than many ops, so arguments are compared with the annotations
only after a call has failed; a successful call must not pay for it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..advice import tensor_hint
from ..call_cache import cached_call, copy_identity
from ..call_errors import (
    KINDS,
    check_kinds,
    explained,
    is_ours_to_explain,
    kinds_of,
    refuse_arity,
)  # fmt: skip
from ..call_names import leave
from ..errors import ArgumentError, DuographError
from ..tensor import Tensor

__all__ = ["refusing"]


def refusing(
    function: Callable[..., object], module: str = __package__, public_name: str = ""
) -> Callable[..., Any]:
    """Return a public function wrapped so that errors of wrong calls say what was wanted.

    Before a call, only arguments that must be a bool, an int or a string are checked, since the
    function might accept another kind and do something else. After a failed call, the error names
    the first argument of a wrong type. Any other error of Python or NumPy below the function
    becomes an error of duograph that shows the arguments. Prepared calls of a cached function
    bypass the wrapper.

    Args:
        module: name of the module that users import the function from.
        public_name: full name of the function in messages; "" means ``MODULE.NAME``.
    """
    uncached = getattr(function, "uncached", None)
    if uncached is not None:
        made = cached_call(refusing(uncached, module, public_name))
        made.__doc__ = function.__doc__
        return made

    options = kinds_of(function)
    owner = public_name.rpartition(".")[2] or function.__name__.lstrip("_")

    def call(*args: object, **kwargs: object) -> object:
        if options:
            check_kinds(owner, options, args, kwargs)
        try:
            return function(*args, **kwargs)
        except DuographError as error:
            leave(error, owner, function, args, kwargs)
            raise
        except Exception as error:
            refuse_arity(owner, function, args, kwargs, error)
            text = _unfit(owner, function, args, kwargs)
            if text is not None:
                raise ArgumentError(text) from error
            if not is_ours_to_explain(error):
                raise
            name = public_name or f"{module}.{function.__name__}"
            raise explained(*name.rpartition(".")[::2], args, kwargs, error) from error

    if isinstance(function, FunctionType):
        copy_identity(function, call)
    else:
        functools.update_wrapper(call, function)
    call.__module__ = module  # pickle looks functions up there
    call.call_name = owner  # type: ignore[attr-defined]
    return call


def _unfit(
    owner: str,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> str | None:
    """Describe the first argument whose type does not match the annotation; None if all match.

    `owner` is the function's name in the message, and `args` and `kwargs` are those of the failed
    call.
    """
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
            hint = tensor_hint(value) if classes == (Tensor,) else ""
            return f"{owner}: got {shown} for {name!r}; wanted {words}{hint}"
    return None
