"""Calls of other libraries' functions in compiled code: at compile time, or when the graph runs.

The handlers of `calls` pass all functions here that are neither the user's nor the framework's. A
call is made at compile time if all arguments are known and the function is known to have no effect
but its result; otherwise it becomes a host call. A library function with side effects must never
run at compile time.
"""

from __future__ import annotations

import contextlib
import functools
import types
import weakref

import numpy as np

from ...errors import UnsupportedSyntaxError
from ..libraries import is_impure
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from ..values.kinds import COPIED
from ..values.nested import depends_on_graph
from .containers import check_array_changeable, check_changeable
from .host import run_on_host
from .host_mutation import changes_first_argument
from .identity import IDENTITY_FIRST, ORDERING, compare_all, refuse_own_comparisons
from .native import callable_name, evaluable, native
from .outside import (
    check_made_here,
    check_no_weak_reference,
    defer,
    is_live,
    is_outside,
    is_pure_method,
    is_query,
    owned_result,
    settle,
    uses_up,
)

__all__ = ["call_foreign", "refused_at_strict"]


def call_foreign(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Call a library function, at compile time or when the graph runs; return its result.

    The call is made at compile time unless the library function is impure, may change an object
    that exists outside the compiled function, or cannot process graph values among its arguments.
    In these cases the call becomes a graph node that runs Python.
    """
    if is_impure(f):
        if ev.strict:
            raise refused_at_strict(f, "it does something, or answers differently each time")
        uses_up(ev, getattr(f, "__self__", None), *args)
        return run_on_host(ev, f, args, kwargs, callable_name(f))
    check_no_weak_reference(f, (args, kwargs))
    if isinstance(f, weakref.ref):  # a capture of the reference's object would keep it alive
        return run_on_host(ev, f, args, kwargs, "weakref")
    receiver = f.__self__ if isinstance(f, _BOUND) else None
    if receiver is not None and not is_query(f):
        if is_outside(ev, receiver):
            return defer(ev, f, args, kwargs)
        check_made_here(ev, receiver, callable_name(f))
    elif is_live(ev, receiver):
        return defer(ev, f, args, kwargs)
    if f is contextlib.nullcontext or f is contextlib.suppress:
        return ev.owned.add(native(ev, f, args, kwargs))
    of_library = receiver is None or isinstance(receiver, (types.ModuleType, type))
    if of_library and not is_pure(f) and id(f) not in ev.owned.objects:
        return defer(ev, f, args, kwargs)
    method = isinstance(f, types.FunctionType) and "." in f.__qualname__ and args
    if method and is_outside(ev, args[0]) and not is_pure_method(f, args[0]):
        return defer(ev, f, args, kwargs)
    if callable_name(f).rpartition(".")[2] in IDENTITY_FIRST:
        compare_all(ev, (receiver, args))
    given = (receiver, args, kwargs)
    graph = depends_on_graph(args) or depends_on_graph(kwargs)
    changed = kwargs.get("out")
    if changed is not None and is_outside(ev, changed):
        return defer(ev, f, args, kwargs)
    if graph and isinstance(receiver, (str, bytes)):
        return run_on_host(ev, f, args, kwargs, callable_name(f))
    if not _only_stores(f) and not settle(ev, given):
        if receiver is None and not ev.strict:
            return run_on_host(ev, f, args, kwargs, callable_name(f))
        return defer(ev, f, args, kwargs)
    name = callable_name(f).rpartition(".")[2]
    if name in IDENTITY_FIRST or name in ORDERING:
        refuse_own_comparisons(ev, name, (receiver, args))
    if not is_pure(f) and any(is_outside(ev, x) for x in (*args, *kwargs.values())):
        return defer(ev, f, args, kwargs)
    if changes_first_argument(f) and args:
        _check_changed(ev, args[0], callable_name(f))
    if not graph:
        if getattr(f, "__module__", None) in _CALLING or "key" in kwargs:
            args = tuple([evaluable(ev, x) for x in args])
            kwargs = {k: evaluable(ev, v) for k, v in kwargs.items()}
        return owned_result(ev, native(ev, f, args, kwargs), given)
    module = getattr(f, "__module__", None)
    if module is None or module in PURE_MODULES:
        try:
            return owned_result(ev, native(ev, f, args, kwargs), given)
        except TypeError:
            if ev.strict:
                raise
    if ev.strict:
        raise refused_at_strict(f, "it works on data that are known only when the function runs")
    return run_on_host(ev, f, args, kwargs, callable_name(f))


# Modules of the standard library whose functions depend on their arguments alone and change
# nothing. `host_mutation` lists the exceptions.
PURE_MODULES = {
    "operator", "_operator", "functools", "_functools", "itertools", "builtins", "copy",
    "collections", "_collections", "math", "cmath",
}  # fmt: skip
_PURE_LIBRARIES = PURE_MODULES | {
    "numpy", "json", "statistics", "string", "re", "textwrap", "dataclasses", "fractions",
    "decimal", "numbers", "bisect", "_bisect", "types", "enum", "inspect", "keyword", "struct",
    "_struct", "datetime", "zlib", "hashlib", "base64", "binascii", "difflib", "posixpath",
    "ntpath", "scipy",
}  # fmt: skip
# Methods of the library's container classes in Python that only ask.
_QUERIES = {
    "most_common", "elements", "total", "copy", "get", "items", "keys", "values", "index", "count",
    "__len__", "__contains__", "__getitem__", "__eq__", "__ne__", "__repr__", "__iter__", "__str__",
}  # fmt: skip
_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
# Class methods of `datetime` that read the clock.
_CLOCKS = {"now", "today", "utcnow"}
# Modules of library functions that call functions among their arguments.
_CALLING = {
    "itertools", "functools", "_functools", "numpy", "heapq", "_heapq", "re", "bisect", "_bisect",
    "statistics", "collections",
}  # fmt: skip
# Constructors that keep a reference to their arguments and do not look at them.
_STORES = {
    functools.partial, types.SimpleNamespace, types.MethodType, weakref.ref,
    contextlib.nullcontext, contextlib.suppress,
}  # fmt: skip


def is_pure(f: Value) -> bool:
    """Return whether a library function is known to have no effect but its result.

    Equal arguments then have equal results, so the call may be made while compiling.
    """
    owner = getattr(f, "__self__", None)
    if isinstance(owner, type):
        return owner.__module__ in _PURE_LIBRARIES and f.__name__ not in _CLOCKS
    if isinstance(f, _BOUND) and not isinstance(owner, types.ModuleType):
        return is_query(f)
    module = getattr(f, "__module__", None)
    if not isinstance(module, str):
        return isinstance(f, (np.ufunc, type))
    if isinstance(f, types.FunctionType) and "." in f.__qualname__:  # a method
        return f.__name__ in _QUERIES
    return module.split(".")[0] in _PURE_LIBRARIES and not changes_first_argument(f)


def _only_stores(f: Value) -> bool:
    """Return whether `f` is a class whose constructor only stores its arguments, without use.

    An example is `functools.partial`. The arguments of such a call may be graph values.
    """
    return isinstance(f, type) and f in _STORES


def _check_changed(ev: Evaluation, target: Value, name: str) -> None:
    """Save an argument in the undo log before a function changes it; raise if it is from outside.

    This runs before a library function that changes its first argument, such as `heapq.heappush`,
    is called at compile time.

    Raises:
        UnsupportedSyntaxError: the argument comes from outside the function.
    """
    if isinstance(target, np.ndarray):
        check_array_changeable(ev, target, name)
    elif id(target) in ev.copies.originals:
        kind = type(target).__name__
        raise UnsupportedSyntaxError(
            f"{name}: got a change inside jit of a {kind} from outside",
            construct=name,
            remedy=f"Use methods of the {kind}, or move it out of the compiled function",
        )
    elif type(target) in COPIED:
        check_changeable(ev, target)


def refused_at_strict(f: Value, why: str) -> UnsupportedSyntaxError:
    """Return the error for a call of a Python function that the STRICT level refuses."""
    name = ".".join(filter(None, (getattr(f, "__module__", None), callable_name(f))))
    return UnsupportedSyntaxError(
        f"Illegal type in the graph: {name} is a Python function that a compiled function cannot "
        f"call at STRICT: {why}",
        construct=callable_name(f),
        remedy="Use ops of duograph, move the call out of the compiled function, or use "
        "ms.set_context(jit_syntax_level=ms.LAX)",
    )
