"""Evaluates calls in compiled code, with one handler per class of called object.

The handlers register in `dispatch.CALLABLES`. The user's functions are evaluated from source. The
framework's functions run at compile time, and their ops append graph nodes. Functions of other
libraries go to `library_calls`, which decides when they run; no handler here may run one itself.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import types

import numpy as np

from ... import context
from ...errors import UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.values import GraphObject, GraphScalar
from ...nn.cell import Cell
from ...op import Op
from ...ops.state import HookBackward
from ...parameter import Parameter
from ...tensor import Tensor
from ...types import BOOL, FLOAT, INT
from ..diagnostics import unsupported
from ..libraries import (
    changes_process,
    in_classes,
    interpreted,
    is_framework,
    is_host,
    is_user_function,
)
from ..source import source_of
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from ..values.functions import Choice, Function
from ..values.kinds import COPIED, WINDOWS
from .attributes import HOST_METHODS, get_attribute, host_method_refused
from .branches import select
from .cells import (
    call_cell,
    capture_asked,
    capture_attributes,
    check_changes_no_cell,
    make_cell,
    no_hooks,
)
from .containers import check_array_changeable, container_method, get_item
from .dispatch import call, calls, replaces
from .exceptions import make_exception
from .functions import enter, evaluated_function, record_definition
from .host import host_number, run_on_host
from .host_mutation import ARRAY_MUTATORS
from .library_calls import call_foreign, refused_at_strict
from .native import callable_name, native
from .objects import make_object
from .outside import (
    ask,
    is_live,
    special_method,
    uses_up,
)  # fmt: skip
from .spans import set_error_span


@calls(Function)
def _call_evaluated(ev: Evaluation, f: Function, args: Args, kwargs: Kwargs) -> Value:
    return enter(ev, f, args, kwargs)


@calls(Choice)
def _call_choice(ev: Evaluation, f: Choice, args: Args, kwargs: Kwargs) -> Value:
    return select(
        ev,
        f.cond,
        lambda: call(ev, f.then, args, kwargs),
        lambda: call(ev, f.orelse, args, kwargs),
        "the result of the call",
        ("other choice", "choice"),
    )


@calls(functools.partial)
def _call_partial(ev: Evaluation, f: functools.partial[Value], args: Args, kwargs: Kwargs) -> Value:
    first: Value = f.args
    named: Value = f.keywords
    if is_live(ev, f):
        return run_on_host(ev, _apply, (f, *args), kwargs, "call", objects=True)
    own = special_method(ev, f, "__call__")
    if own is not None:
        return call_function(ev, own, (f, *args), kwargs)
    if id(f) not in ev.owned.objects:
        first = ev.copies.imported(first, "arguments of a partial")
        named = ev.copies.imported(named, "keywords of a partial")
        ev.copies.observe(named)
        for name in ("func", "args", "keywords"):
            ev.captures.add("attribute", f, name, getattr(f, name), f"{name} of a partial")
    return call(ev, f.func, (*first, *args), {**named, **kwargs})


@calls(operator.attrgetter)
def _call_attrgetter(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    (owner,) = args
    found = []
    for path in f.__reduce__()[1]:
        value = owner
        for name in path.split("."):
            value = get_attribute(ev, value, name)
        found.append(value)
    return found[0] if len(found) == 1 else tuple(found)


@calls(operator.itemgetter)
def _call_itemgetter(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    (owner,) = args
    found = [get_item(ev, owner, index) for index in f.__reduce__()[1]]
    return found[0] if len(found) == 1 else tuple(found)


@calls(operator.methodcaller)
def _call_methodcaller(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    make, given = f.__reduce__()
    named = make.keywords if isinstance(make, functools.partial) else {}
    name, *rest = (*make.args, *given) if isinstance(make, functools.partial) else given
    return call(ev, get_attribute(ev, args[0], name), tuple(rest), named)


@calls(functools._lru_cache_wrapper)
def _call_cached(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Append a node that calls an `lru_cache` function at run time, and return its result.

    The call is made at run time because its effects depend on what earlier calls left in the cache.
    An `lru_cache` function that the traced code itself has created is called at compile time
    instead. At syntax level STRICT every other `lru_cache` function is refused.
    """
    if id(f) in ev.owned.objects:
        return native(ev, f, args, kwargs)
    if ev.strict:
        raise refused_at_strict(f, "its cache changes with each call")
    uses_up(ev, f)
    return run_on_host(ev, f, args, kwargs, callable_name(f), objects=True)


@calls(GraphObject)
def _call_graph_object(ev: Evaluation, f: GraphObject, args: Args, kwargs: Kwargs) -> Value:
    values = (*args, *kwargs.values())
    keeps = not any(type(v) in COPIED for v in values)  # containers may be created while compiling
    return run_on_host(ev, _apply, (f, *args), kwargs, "call", objects=keeps)


@calls(GraphScalar, Tensor)
def _call_number(ev: Evaluation, f: GraphScalar | Tensor, args: Args, kwargs: Kwargs) -> Value:
    name = "Tensor" if isinstance(f, Tensor) else f._type.name
    raise TypeError(f"{name!r} object is not callable")


@calls(object)
def _call_object(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of an op, or of any object whose class has `__call__`; return its result."""
    kind = type(f)
    special_method(ev, f, "__call__")
    if is_framework(kind.__module__):
        ev.captures.class_attribute(kind, "__call__")
    method = getattr(kind, "__call__", None)  # noqa: B004  (the function itself is wanted)
    if isinstance(in_classes(kind, "__call__"), staticmethod):
        return call(ev, method, args, kwargs)
    if isinstance(f, Op) or is_framework(kind.__module__):
        if isinstance(f, HookBackward):
            raise no_hooks("HookBackward")
        if interpreted(kind.__module__) and isinstance(method, types.FunctionType):
            return call_function(ev, method, (f, *args), kwargs)
        if not isinstance(f, Op):
            _capture_options(ev, f)
        return _framework_result(ev, native(ev, f, args, kwargs))
    if isinstance(method, types.FunctionType):
        return call_function(ev, method, (f, *args), kwargs)
    if method is None or not callable(f):
        raise TypeError(f"{kind.__name__!r} object is not callable")
    return call_foreign(ev, f, args, kwargs)


def _capture_options(ev: Evaluation, f: Value) -> None:
    """Record a framework callable's attributes as constants, to compare before each later call.

    The callable is an object such as a primitive. Nothing is recorded if traced code created it.
    """
    held = getattr(f, "__dict__", None)
    if not held or id(f) in ev.owned.objects:
        return
    ev.keep.append(f)
    counts = getattr(type(f), "counts", ())
    for name, value in held.items():
        if name not in counts:
            ev.captures.add("item", held, name, value, f"{type(f).__name__}.{name}")


def _framework_result(ev: Evaluation, found: Value) -> Value:
    """Return `found`, the result of framework code that ran at compile time.

    If `found` is an iterator, or a view such as dict keys, it is recorded as created by the traced
    code, which may therefore use it at compile time. An iterator from outside the compiled function
    may not be used then, because other code could advance it.
    """
    if hasattr(type(found), "__next__") or isinstance(found, WINDOWS):
        ev.owned.add(found)
    return found


def _apply(f: Value, /, *args: Value, **kwargs: Value) -> Value:
    """Return `f(*args, **kwargs)`; a graph node that runs Python calls this function at run time.

    It is used where the node takes the callable `f` as an input, for example because `f` is an
    object known only at run time.
    """
    return f(*args, **kwargs)


# A program may put another function in its place, which calls this one.
_CALL_OF_CELLS = Cell.__call__


@calls(types.FunctionType)
def call_function(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of a Python function and return its result.

    A function of the user is evaluated from source. A function of the framework or of another
    library runs immediately, or as a host call: a graph node that calls it at run time.
    """
    module = f.__module__
    if f is _CALL_OF_CELLS and args:
        return call_cell(ev, args[0], args[1:], kwargs, through_super=True)
    if changes_process(f):
        raise UnsupportedSyntaxError(
            f"{callable_name(f)}: got a call inside jit of a function that reads or changes files, "
            "data sets, random seeds or settings",
            construct=callable_name(f),
            remedy="Call it outside the compiled function, or use LAX, which runs line by line",
        )
    if module == context.__name__:  # answers with a setting
        return _ask_setting(ev, f, args, kwargs)
    if is_framework(module) and not interpreted(module):
        if args and isinstance(args[0], Cell) and "." in f.__qualname__:
            check_changes_no_cell(ev, args[0], f.__name__, args[1:], kwargs)
        return _framework_result(ev, native(ev, f, args, kwargs))
    if is_host(module):
        return call_foreign(ev, f, args, kwargs)
    flags = f.__code__.co_flags
    if flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return _generator(ev, f, args, kwargs)
    return enter(ev, evaluated_function(ev, f), args, kwargs)


def _ask_setting(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Return the result of a function such as `get_context`; another setting compiles again."""
    given = inspect.signature(f).bind(*args, **kwargs)
    given.apply_defaults()
    outer, ev.captures.all_exact = ev.captures.all_exact, True
    try:
        return ask(ev, f, *given.args)
    finally:
        ev.captures.all_exact = outer


def _generator(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Call a generator function at compile time, if its body has no side effects.

    Returns the generator, which runs the body when it is consumed. The body counts as free of side
    effects if it has no free variables and names only the functions of `_PURE_BUILTINS`, and if all
    arguments are ints, floats, strings or ranges.

    Raises:
        UnsupportedSyntaxError: the body may have side effects, whose order would depend on when the
            generator is consumed; or an argument is of another class, such as a Tensor; or `f` is
            the compiled function itself, a coroutine function or an asynchronous generator.
    """
    code = f.__code__
    closed = not code.co_freevars and _PURE_BUILTINS.issuperset(code.co_names)
    plain = all(isinstance(x, (int, float, str, range)) for x in (*args, *kwargs.values()))
    if ev.calls.frames and closed and plain and code.co_flags & inspect.CO_GENERATOR:
        record_definition(ev, f)
        return ev.owned.add(f(*args, **kwargs))
    source = source_of(f)
    node = source.node
    if isinstance(node, ast.FunctionDef):
        remedy = "Return a list, or call it outside the compiled function"
        node = next(n for n in ast.walk(node) if isinstance(n, (ast.Yield, ast.YieldFrom)))
    else:
        remedy = "Wanted a plain function: await outside the compiled function"
    error = unsupported(node, remedy)
    set_error_span(ev, error, source, node)
    raise error


# Built-in functions without effects that call nothing of the user's on numbers and strings.
_PURE_BUILTINS = {
    "abs", "bool", "divmod", "enumerate", "float", "int", "len", "list", "max", "min", "range",
    "reversed", "round", "sorted", "str", "sum", "tuple", "zip",
}  # fmt: skip


@calls(types.MethodType)
def call_method(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of a bound method and return its result.

    If the receiver is a Cell, its attributes are recorded as constants of the program, which are
    compared with the present attributes before each later call.
    """
    owner, function = f.__self__, f.__func__
    if isinstance(owner, Tensor):
        if function.__name__ in HOST_METHODS and not is_user_function(function):
            return _tensor_to_host(ev, owner, function.__name__, args, kwargs)
        if function.__name__ == "register_hook":
            raise no_hooks("register_hook")
    if isinstance(owner, Cell):
        name = function.__name__
        if name.startswith("register_") and "hook" in name and is_framework(function.__module__):
            raise no_hooks(function.__name__)
        capture_attributes(ev, owner)
        if is_framework(function.__module__):
            capture_asked(ev, owner, function.__name__)
        if function.__name__ in ("trainable_params", "untrainable_params"):
            for p in owner.get_parameters():
                ev.captures.add(
                    "attribute",
                    p,
                    "requires_grad",
                    p.requires_grad,
                    f"{p.name}.requires_grad",
                    True,
                )
    if isinstance(function, types.FunctionType):
        return call_function(ev, function, (owner, *args), kwargs)
    return call(ev, function, (owner, *args), kwargs)


def _tensor_to_host(ev: Evaluation, x: Value, name: str, args: Args, kwargs: Kwargs) -> Value:
    """Trace a tensor method that returns host data, such as `x.asnumpy()` or `x.item()`.

    Returns the result. `item()` of a tensor with one element returns a symbolic number, known only
    at run time. At syntax level STRICT these methods are refused for all tensors, except those that
    were created at compile time and are unused by the graph.
    """
    if not isinstance(x, GraphTensor):
        if ev.is_constant(x):
            return getattr(x, name)(*args, **kwargs)
        value = ev.builder.present_value(x)
    else:
        value = x
    if ev.strict:
        raise host_method_refused(name)
    if (
        name == "item"
        and not args
        and not kwargs
        and value.size == 1
        and value.dtype.kind in "biuf"
    ):
        kind = {"b": BOOL, "f": FLOAT}.get(value.dtype.kind, INT)
        return host_number(ev, value, kind)
    return run_on_host(
        ev, lambda v, a, k: getattr(v, name)(*a, **k), (value, args, kwargs), {}, name
    )


@calls(type)
def _call_class(ev: Evaluation, cls: type, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of a class and return the object, recorded as made by evaluated code.

    An `__init__` or `__new__` that the user wrote is evaluated.
    """
    own = special_method(ev, cls, "__call__")
    if own is not None:  # of the metaclass
        return call_function(ev, own, (cls, *args), kwargs)
    return _construct(ev, cls, args, kwargs)


@replaces(type.__call__)
def _call_of_type(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
    """Trace `type.__call__(cls, ...)`, which a metaclass's `__call__` calls to make an object."""
    if not args or not isinstance(args[0], type):
        return call_foreign(ev, type.__call__, args, kwargs)
    return _construct(ev, args[0], args[1:], kwargs)


def _construct(ev: Evaluation, cls: Value, args: Args, kwargs: Kwargs) -> Value:
    """Make an object as `type.__call__` does; an `__init__` or `__new__` of the user is evaluated.

    Returns the object, recorded as made by evaluated code.
    """
    if issubclass(cls, Parameter):
        raise UnsupportedSyntaxError(
            "Parameter: got a Parameter made inside jit",
            construct="Parameter",
            remedy="Make it in __init__, outside the compiled function",
        )
    if issubclass(cls, Cell):
        return make_cell(ev, cls, args, kwargs)
    if issubclass(cls, BaseException):
        return make_exception(ev, cls, args, kwargs)
    if is_framework(cls.__module__) or is_host(cls.__module__) or cls.__module__ == "builtins":
        if is_framework(cls.__module__):
            return native(ev, cls, args, kwargs)
        return call_foreign(ev, cls, args, kwargs)
    return make_object(ev, cls, args, kwargs)


@calls(types.MethodDescriptorType, types.WrapperDescriptorType)
def _call_unbound(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call such as `list.append(items, x)` like the bound call `items.append(x)`."""
    if args and isinstance(args[0], f.__objclass__) and not isinstance(args[0], (Tensor, type)):
        return call(ev, f.__get__(args[0]), args[1:], kwargs)
    return call_foreign(ev, f, args, kwargs)


@calls(types.BuiltinFunctionType, types.MethodWrapperType)
def _call_builtin(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of a built-in function or of a method of a built-in class; return its result."""
    owner = getattr(f, "__self__", None)
    if type(owner) in COPIED:
        return container_method(ev, owner, f.__name__, args, kwargs)
    if isinstance(owner, np.ndarray) and f.__name__ in ARRAY_MUTATORS:
        check_array_changeable(ev, owner, f.__name__)
    return call_foreign(ev, f, args, kwargs)
