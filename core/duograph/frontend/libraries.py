"""Classification of code by its author: the framework, the user, or another library.

Functions of the framework run at compile time, and their ops append graph nodes. Functions of the
user are traced from their source. Functions of other libraries are not traced: Python runs them, at
compile time or when the graph runs. The author is known from the name of a function's module; the
code itself must not be called here.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import reprlib
import sys
import types
import typing

from ..tensor import Tensor
from .types import Value

__all__ = [
    "changes_process", "has_own_hash", "in_classes", "interpreted", "is_defined_in_class",
    "is_framework", "is_host", "is_impure", "is_user_function", "is_users_class", "keeps_symbols",
    "user_method",
]  # fmt: skip

# Libraries whose functions accept host data only.
_HOST = {
    "numpy",
    "scipy",
    "pandas",
    "PIL",
    "cv2",
    "sklearn",
    "matplotlib",
    "torch",
    "jax",
    "tensorflow",
    "tqdm",
    "requests",
    "yaml",
    "h5py",
    "skimage",
    "transformers",
    "pytest",
    "_pytest",
    "hypothesis",
    "ml_dtypes",
    "cffi",
    "pyopencl",
    "safetensors",
} | set(sys.stdlib_module_names)
_NOT_HOST = {"__main__", "this"}
# Modules whose functions have side effects, or results that differ between equal calls.
_IMPURE = (
    "time",
    "random",
    "numpy.random",
    "secrets",
    "uuid",
    "os",
    "sys",
    "io",
    "logging",
    "warnings",
    "subprocess",
    "datetime",
    "tempfile",
    "shutil",
    "socket",
    "threading",
    "queue",
    "gc",
    "tqdm",
    "requests",
    "pathlib",
    "pickle",
    "_io",
    "posix",
    "_random",
    "_thread",
    "_warnings",
    "mtrand",
    "builtins.open",
)
# Functions, by module, that read or set the options of a library.
_READS_STATE = {
    "numpy": ("get_printoptions", "set_printoptions", "printoptions", "geterr", "seterr",
              "errstate", "geterrcall", "seterrcall", "getbufsize", "setbufsize"),
    "decimal": ("getcontext", "setcontext", "localcontext"),
}  # fmt: skip
# Modules of the framework that call the user's functions: they are evaluated from source too.
_INTERPRETED = {"duograph.ops.higher_order", "duograph.ops.loops", "duograph.autodiff.vmap"}
# Modules of the framework whose objects keep their state in Python. They are evaluated from source,
# as the user's are, so that every read of that state is compared before the next call.
_STATEFUL = (
    "duograph.nn.metrics",
    "duograph.train.callback",
    "duograph.amp.loss_scale_manager",
    "duograph.experimental.optim.lr_scheduler",
)
# Modules of the framework whose functions read or write files, or hand out other data each time.
_UNMODELLED = (
    "duograph.dataset",
    "duograph.hal",
    "duograph.mindrecord",
    "duograph.runtime",
    "duograph.train.dataset_helper",
    "duograph.train.model",
    "duograph.train.serialization",
    "duograph.train.summary",
    "duograph.utils",
)
# Functions that draw random numbers; all others of that module read or set the random state.
_DRAWING = {"next_state", "host_uniform", "host_normal", "philox"}


def _top(module: object) -> str:
    return module.split(".")[0] if isinstance(module, str) else ""


@functools.cache
def _in_one_of(module: object, packages: tuple[str, ...]) -> bool:
    name = f"{module}."
    return any(name.startswith(f"{p}.") for p in packages)


def is_framework(module: object) -> bool:
    """Return whether a module is duograph code that Python runs while compiling.

    The ops that such code calls append graph nodes. False for modules of the user and of other
    libraries, for duograph's conformance suite, and for duograph modules that keep state in Python
    objects (evaluated from source, as the user's code is) or read files and data sets.
    """
    if _top(module) != "duograph":
        return False
    return not _in_one_of(module, ("duograph.conformance", *_STATEFUL, *_UNMODELLED))


def changes_process(function: types.FunctionType) -> bool:
    """Return whether a duograph function uses files, data sets, random state or settings.

    No graph can represent such a call. The result is False for functions that draw random numbers,
    because graph nodes exist for these.
    """
    module, name = function.__module__, function.__qualname__
    if module == "duograph.random_state":
        return name not in _DRAWING
    if module == "duograph.log":
        return True
    if module == "duograph.context":
        return name.startswith(("set_", "reset_"))
    return _in_one_of(module, _UNMODELLED)


def is_host(module: object) -> bool:
    """Return whether a module belongs to a known library, such as NumPy, that works on host data.

    Host data are values that Python itself computes. Graph values cannot be passed to functions of
    such a library.
    """
    top = _top(module)
    return top in _HOST and top not in _NOT_HOST


def is_impure(function: Value) -> bool:
    """Return whether a function has side effects or may return different results each time.

    The module of the function decides. An impure function must run when the graph runs, not at
    compile time.
    """
    module = getattr(function, "__module__", None)
    if module is None:
        owner = getattr(function, "__self__", None)
        module = getattr(type(owner), "__module__", None) if owner is not None else None
    if not isinstance(module, str):
        return False
    if getattr(function, "__name__", "") in _READS_STATE.get(_top(module), ()):
        return True
    if module == "os.path" or module in ("posixpath", "ntpath"):
        return False
    return any(module == p or module.startswith(p + ".") for p in _IMPURE)


def interpreted(module: object) -> bool:
    """Return whether a duograph module calls users' functions, so that it is traced from source."""
    return module in _INTERPRETED


# Functions of Python that treat a symbolic size as an int: they compute, compare or pass it on.
_SYMBOLIC = (
    abs, all, any, bool, divmod, enumerate, filter, float, functools.reduce, getattr, hasattr, int,
    isinstance, iter, len, list, map, math.prod, max, min, next, range, reversed, round, setattr,
    slice, sorted, sum, tuple, type, zip, print, typing.cast,
)  # fmt: skip


_FUNCTIONS = (
    type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType,
    types.MethodDescriptorType, types.WrapperDescriptorType,
)  # fmt: skip


# Classes that find values by their hash.
_HASHING = (dict, set, frozenset, enum.Enum)


def keeps_symbols(function: Value) -> bool:
    """Return whether a callable may receive symbolic sizes (`dims.Dim`) instead of numbers.

    True for code of the user and of the framework, and for the functions in `_SYMBOLIC`. Other code
    could hash a size, like `set`, or test its class.
    """
    if not isinstance(function, _FUNCTIONS):  # its handler calls a function, or it is a ufunc
        top = _top(type(function).__module__)
        return top in sys.stdlib_module_names or not is_host(top)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, (list, tuple)):
        return function.__name__ != "__hash__"
    if issubclass(function if isinstance(function, type) else type(owner), _HASHING):
        return False
    module = getattr(function, "__module__", None) or type(owner).__module__
    top = _top(module)
    foreign = is_host(module) or top in sys.stdlib_module_names
    return not foreign or any(function is f for f in _SYMBOLIC)


def is_defined_in_class(function: Value) -> bool:
    """Return whether a function was defined in a class, so that it takes a receiver first."""
    parts = getattr(function, "__qualname__", "").split(".")
    return len(parts) > 1 and parts[-2] != "<locals>"


# Files of functions that have no source of their own, such as the methods of dataclasses.
_GENERATED_IN = ("<string>", dataclasses.__file__, reprlib.__file__)


def is_users_class(kind: type) -> bool:
    """Return whether a class is of the user, not of Python, the framework or a known library."""
    return not is_framework(kind.__module__) and not is_host(kind.__module__)


def user_method(value: Value, name: str) -> types.FunctionType | None:
    """Return the method `name` of the class of `value` if the user wrote it, else None."""
    kind = type(value)
    if isinstance(value, Tensor) or is_framework(kind.__module__) or is_host(kind.__module__):
        return None
    found = in_classes(kind, name)
    return found if is_user_function(found) else None


def in_classes(kind: type, name: str, default: Value = None) -> Value:
    """Return what the classes in the MRO of `kind` define under a name, or `default`.

    Unlike `getattr`, this asks no descriptor and no metaclass, which could run the user's code.
    """
    return next((vars(c)[name] for c in kind.__mro__ if name in vars(c)), default)


def has_own_hash(key: Value) -> bool:
    """Return whether the user's `__hash__` or `__eq__` decides how a dict or set finds a key.

    The result is True for a tuple if it is True for any of its items.
    """
    if type(key) in (str, int, float, bool):
        return False
    if user_method(key, "__hash__") is not None or user_method(key, "__eq__") is not None:
        return True
    return isinstance(key, tuple) and any(map(has_own_hash, key))


def is_user_function(f: Value) -> bool:
    """Return whether a value is a Python function of the user with source that can be evaluated."""
    if not isinstance(f, types.FunctionType) or f.__code__.co_filename in _GENERATED_IN:
        return False
    return not is_framework(f.__module__) and not is_host(f.__module__)
