"""Explains errors of Python and NumPy that arguments of the wrong kind or size cause.

`ops.refusals` uses it for functions of `ops`. `explain_methods` wraps the methods of all subclasses
of a base class; the decorator `explaining` wraps a function or a class without such a base. A call
that succeeds only pays for one more Python frame. Errors of users' own functions stay as they are.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable
from types import FunctionType
from typing import TypeAlias, TypeVar, cast

import numpy as np

from .advice import arity_error
from .call_names import leave
from .errors import (
    ArgumentError,
    ArgumentValueError,
    DeviceMemoryError,
    DuographError,
    IndexRangeError,
    OptionKindError,
)
from .tensor import Tensor

__all__ = [
    "KINDS", "check_kinds", "explain_methods", "explained", "explaining", "is_ours_to_explain",
    "kinds_of", "refuse_arity",
]  # fmt: skip

T = TypeVar("T", bound=Callable[..., object])
# position, name and annotation of an argument that is checked, and whether it may be None
Options: TypeAlias = tuple[tuple[int, str, str, bool], ...]

_INTEGER = (int, np.integer)
# annotation -> accepted classes, and their description in an error
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "Tensor": ((Tensor,), "a Tensor"),
    "int": (_INTEGER, "an int"),
    "float": ((*_INTEGER, float, np.floating), "a number"),
    "bool": ((bool, np.bool_), "True or False"),
    "str": ((str, os.PathLike), "a string"),
}
# An option of these annotations would be taken by its truth, or as part of a number, where it is of
# another kind. The classes that are refused; every class but those of `KINDS` for None.
_REFUSED: dict[str, tuple[type, ...] | None] = {
    "bool": None,
    "int": (float, np.floating, str, bytes),
    "str": None,
}

_EXPLAINED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError)


def kinds_of(function: Callable[..., object], bound: int = 0) -> Options:
    """Return the parameters of a function that `check_kinds` checks.

    These are the parameters that are annotated as bool, int or str, also with ``| None``. Each is a
    tuple (position, name, annotation, whether None is allowed). A keyword-only parameter gets a
    position beyond all others.

    Args:
        function: the function.
        bound: how many leading parameters `check_kinds` does not receive, and positions do not
            count: 1 for a method.
    """
    found = []
    for name, annotation in function.__annotations__.items():
        kind = str(annotation).removesuffix(" | None")
        if kind in _REFUSED and name != "return":
            found.append((name, kind, kind != annotation))
    if not found:
        return ()
    code = inspect.unwrap(function).__code__
    named = code.co_varnames[bound : code.co_argcount]
    positions = {name: i for i, name in enumerate(named)}
    return tuple((positions.get(name, 1 << 30), name, *rest) for name, *rest in found)


def check_kinds(
    owner: str,
    options: Options,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> None:
    """Raise ArgumentError if an argument for a bool, an int or a string is of another kind.

    Tensors and the symbolic numbers of graphs are left to the function.

    Args:
        owner: name of the function, for the message.
        options: the parameters to check, from `kinds_of`.
        args, kwargs: arguments of the call.
    """
    n = len(args)
    for position, name, kind, optional in options:
        if position < n:
            value = args[position]
        elif name in kwargs:
            value = kwargs[name]
        else:
            continue
        classes, words = KINDS[kind]
        if isinstance(value, classes) or (optional and value is None) or hasattr(value, "_type"):
            continue
        refused = _REFUSED[kind]
        if refused is None or isinstance(value, refused):
            words += " or None" if optional else ""
            error = OptionKindError if kind == "str" else ArgumentError
            raise error(f"{owner}: got {name}={value!r}; wanted {words}")


def explaining(target: T) -> T:
    """Decorate a public function or class, so that errors of wrong arguments explain the call.

    In a class, the constructor and the public methods are wrapped.
    """
    if isinstance(target, type):
        public = [name for name in vars(target) if not name.startswith("_")]
        explain_methods(target, "__init__", "__call__", *public)
        return target
    function = cast("FunctionType", target)
    options = kinds_of(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        if options:
            check_kinds(function.__name__, options, args, kwargs)
        try:
            return function(*args, **kwargs)
        except DuographError as error:
            leave(error, function.__name__, function, args, kwargs)
            raise
        except Exception as error:
            refuse_arity(function.__name__, function, args, kwargs, error)
            if not is_ours_to_explain(error):
                raise
            name = function.__name__
            raise explained(function.__module__, name, args, kwargs, error) from error

    return cast("T", call)


def explain_methods(cls: type, *names: str) -> None:
    """Wrap the named methods of a class, so that they explain errors of wrong arguments.

    Base classes call it for each subclass. Classes outside duograph are not changed.
    """
    if cls.__module__.partition(".")[0] != "duograph":
        return
    for name in names:
        method = cls.__dict__.get(name)
        if isinstance(method, FunctionType):
            setattr(cls, name, _explaining(method, name))


def _explaining(method: Callable[..., object], name: str) -> Callable[..., object]:
    options = kinds_of(method, 1) if name == "__init__" else ()

    @functools.wraps(method)
    def call(self: object, /, *args: object, **kwargs: object) -> object:
        try:
            if options:
                check_kinds(type(self).__name__, options, args, kwargs)
            return method(self, *args, **kwargs)
        except DuographError as error:
            shown = _method_name(type(self), name)
            if name == "__init__":
                refuse_data(type(self), args, kwargs, error)
                shown = shown if _is_public(type(self)) else ""
            leave(error, shown, method, (self, *args), kwargs)
            raise
        except Exception as error:
            owner = type(self)
            shown = _method_name(owner, name)
            refuse_arity(shown, method, args, kwargs, error, bound=1)
            if not is_ours_to_explain(error):
                raise
            raise explained(owner.__module__, shown, args, kwargs, error) from error

    return call


def _method_name(owner: type, method: str) -> str:
    """Return how messages name a method of a class; constructor and call are the class itself."""
    return owner.__name__ + ("" if method in ("__init__", "__call__") else f".{method}")


def refuse_data(
    cls: type, args: tuple[object, ...], kwargs: dict[str, object], error: Exception | None = None
) -> None:
    """Raise ArgumentError if a layer's class was called with data, as in ``nn.ReLU(x)``.

    The user meant ``nn.ReLU()(x)``. Evidence of it is a Tensor among the constructor's arguments
    for a parameter that, by its annotation, takes only numbers, bools, strings or sequences. If
    there is none, or if `cls` has no `construct` method, the function returns without an error.

    Args:
        cls: the class.
        args, kwargs: the arguments of its constructor.
        error: the exception that the constructor raised; it becomes the cause of the new one. None
            if the constructor has not been called. A Tensor among arguments that its signature
            cannot take is evidence too in this case, and only in this case.
    """
    values = (*args, *kwargs.values())
    if not hasattr(cls, "construct") or not any(isinstance(x, Tensor) for x in values):
        return
    init = inspect.unwrap(cls.__init__)  # type: ignore[misc]
    parameters = list(inspect.signature(init).parameters.values())[1:]
    try:
        given = inspect.Signature(parameters).bind(*args, **kwargs).arguments
    except TypeError as refused:
        found = arity_error(cls.__name__, init, args, kwargs, str(refused), 1)
        if found is not None and error is None:
            raise _with_an_object(cls.__name__, found) from None
        return
    taking = {p.name: str(p.annotation) for p in parameters}
    wrong = [
        name
        for name, value in given.items()
        if isinstance(value, Tensor) and _OPTION.fullmatch(taking[name])
    ]
    if not wrong:
        return
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = any(p.default is p.empty for p in parameters if p.kind in positional)
    inputs = ", ".join(list(inspect.signature(cls.construct).parameters)[1:])
    raise ArgumentError(
        f"{cls.__name__}: got a Tensor where its option {wrong[0]} goes; wanted an object of the "
        f"class first, and a call of the object with the data: {cls.__name__}"
        f"({'...' if needed else ''})({inputs})"
    ) from error


# Annotations of options that are no Tensors.
_OPTION = re.compile(r"((int|float|bool|str|None|tuple|list|Sequence)\b|[][ |,.])+")


def _with_an_object(owner: str, error: ArgumentError) -> ArgumentError:
    """Extend the message of an error for a wrong call of a layer's class; return the error.

    The added text says how an object of the class, whose name is `owner`, is called with data.
    """
    made = f"{owner}()" if f"wanted {owner}()" in str(error) else f"{owner}(...)"
    error.args = (f"{error}. An object of {owner} takes the data: {made}(x)",)
    return error


def _is_public(cls: type) -> bool:
    """Return whether a package that contains the class's module has the class as an attribute."""
    names = cls.__module__.split(".")
    packages = [sys.modules.get(".".join(names[:i])) for i in range(1, len(names) + 1)]
    return any(vars(p).get(cls.__name__) is cls for p in packages if hasattr(p, "__path__"))


def refuse_arity(
    owner: str,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    error: Exception,
    bound: int = 0,
) -> None:
    """Raise ArgumentError if a call failed because the signature cannot take the arguments.

    `error` is what the call raised; `bound` is 1 for a method, whose receiver is not in `args`. A
    common case is a layer's class that is called with data, instead of an object of the class.
    Returns if the call failed for another reason.
    """
    trace = error.__traceback__
    if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
        found = arity_error(owner, function, args, kwargs, str(error), bound)
        if found is None:
            return
        if owner[:1].isupper() and any(isinstance(x, Tensor) for x in args):
            found = _with_an_object(owner, found)
        raise found from None


def is_ours_to_explain(error: Exception) -> bool:
    """Return whether a wrapper should replace an exception by one of duograph (see `explained`).

    That holds if the exception is a TypeError, ValueError, LookupError, AttributeError,
    ArithmeticError or MemoryError of Python or NumPy, and if all frames of its traceback below the
    wrapper are code of duograph, NumPy or Python's standard library. It does not hold for an
    exception of a function that the user passed, for Python's error about a wrong number of
    arguments (which has no frame below the wrapper), for an exception whose cause is an error of
    duograph, or for one that says "; wanted " itself, unless it is a plain TypeError or ValueError.
    """
    if type(error).__module__.partition(".")[0] not in ("builtins", "numpy"):
        return False
    if "; wanted " in str(error) and type(error) not in (TypeError, ValueError):
        return False  # it says what was got and wanted; its class is one of MindSpore's
    if isinstance(error.__cause__, DuographError):
        return False  # of a worker process, whose traceback is in the cause
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
    """Return the exception of duograph that explains a failed call.

    It is an IndexRangeError for an IndexError, a DeviceMemoryError for a MemoryError, an
    ArgumentValueError for a ValueError or OverflowError, and otherwise an ArgumentError.

    Args:
        module: name of the module that defines the function.
        short: the function's name in the module.
        args, kwargs: arguments of the call.
        error: the exception of Python or NumPy that the call raised.
    """
    if "; wanted " in str(error):  # it says what was got and wanted, but not in which call
        kind = ArgumentError if isinstance(error, TypeError) else ArgumentValueError
        return kind(str(error) if str(error).startswith(short) else f"{short}: {error}")
    if isinstance(error, MemoryError):
        return DeviceMemoryError(
            f"{short}: the host has no memory for the result: {error or 'it is too large'}; "
            f"wanted a smaller size"
        )
    shown = [_shown(a) for a in args] + [f"{k}={_shown(a)}" for k, a in kwargs.items()]
    path = _public_path(module, short)
    text = f"{short}: got {', '.join(shown)}: {error}; help({path}) says what it takes"
    if isinstance(error, IndexError):
        return IndexRangeError(text)
    return (
        ArgumentValueError if isinstance(error, (ValueError, OverflowError)) else ArgumentError
    )(text)


def _public_path(module: str, short: str) -> str:
    """Return the path by which users find a function: "ms.export"."""
    name = short.partition(".")[0]
    target = getattr(sys.modules.get(module), name, None)
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        package = sys.modules.get(".".join(parts[:i]))
        found = vars(package).get(name) if package is not None else None
        if found is not None and (found is target or target is None):
            return ".".join(["ms", *parts[1:i], short])
    return f"{module}.{short}"


def _shown(value: object) -> str:
    """Return an argument for an error message: the type of a tensor, or a short repr."""
    if isinstance(value, Tensor):
        return repr(value._type.plain)
    text = repr(value)
    if " object at 0x" in text:
        return type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
