"""Replacements of Python's built-in functions for calls on graph values in compiled code.

The replacements register in `dispatch.REPLACEMENTS`, where `dispatch.call` finds them. Functions
that depend on the caller's frame, such as `locals`, must always be refused, because a graph has no
frames.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import pdb
import sys
import traceback
import types
from collections.abc import Callable

import numpy as np

from ...dims import Dim, is_symbolic
from ...dtype import as_dtype, promote, scalar_dtype
from ...errors import ArgumentError, ArgumentValueError, UnsupportedSyntaxError
from ...initial_values import check_data_options
from ...ir.builder import GraphTensor
from ...ir.control import to_tensor
from ...ir.values import EXAMPLES, GraphObject, GraphScalar, HostValue, NeedsValue, number_of
from ...nn.cell import Cell
from ...ops import print_ as _ops_print
from ...ops.joining import stack_by
from ...ops.rounding import round_half_even
from ...option_checks import check_options
from ...sizes import real
from ...tensor import Tensor
from ...tensor import tensor as _tensor_function
from ...types import BOOL, FLOAT, INT
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.functions import Choice
from ..values.nested import depends_on_graph
from ..values.ranges import GraphRange
from .attributes import delete_attribute, get_attribute, set_attribute
from .class_questions import CLASSES
from .dispatch import call, replaces
from .host import append_effect, check_known, host_number, run_on_host
from .iteration import iterate, iterate_sized, pairs_of
from .keys import as_key
from .laziness import check_position, lazily
from .native import native
from .outside import (
    ask,
    defer,
    is_live,
    is_outside,
    reachable,
    settle,
    special_method,
    uses_up,
)  # fmt: skip
from .printing import print_values
from .tensor_methods import given_method, record_methods
from .truth import truth
from .variables import read_missing

_CONVERSIONS: dict[Value, tuple[str, ...]] = {
    INT: ("__int__", "__index__", "__trunc__"), FLOAT: ("__float__", "__index__"), BOOL: ()
}  # fmt: skip


# ---- numbers ------------------------------------------------------------------------------------


def _number(kind: Value) -> Callable[..., Value]:
    """Return the replacement, for compiled code, of Python's `int`, `float` or `bool`.

    `kind` is the type of the number in graphs.
    """
    python = CLASSES[kind]

    def convert(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
        if len(args) == 1 and not kwargs:
            (x,) = args
            if type(x) is Dim and kind is not BOOL:
                return x if kind is INT else real(x)
            if isinstance(x, GraphObject):
                return run_on_host(ev, python, (x,), {}, python.__name__, (kind,))
            if isinstance(x, GraphScalar):
                return number_of(x, kind)
            if isinstance(x, Tensor):
                given = given_method(ev, x, f"__{python.__name__}__")
                if given is not None:
                    return convert(ev, call(ev, given, (x,), {}))
                if not isinstance(x, GraphTensor):
                    if ev.is_constant(x):
                        return python(x)
                    x = ev.builder.present_value(x)
                if x.size != 1:
                    raise ArgumentValueError(
                        f"{python.__name__}: got a tensor of shape {x.shape}; the truth or value "
                        "of several elements is ambiguous, wanted one element (use .any(), .all() "
                        "or an index)"
                    )
                return host_number(ev, x, kind)
            if kind is BOOL and not isinstance(x, (int, float, str)):
                return truth(ev, x)
            for name in _CONVERSIONS[kind]:
                method = special_method(ev, x, name)
                if method is not None:
                    return convert(ev, call(ev, method, (x,), {}))
        if not settle(ev, args):
            return run_on_host(ev, python, args, kwargs, python.__name__, (kind,))
        return python(*args, **kwargs)

    return convert


replaces(int)(_number(INT))


replaces(float)(_number(FLOAT))


replaces(bool)(_number(BOOL))


@replaces(range)
def _range(ev: Evaluation, *args: Value) -> Value:
    values = []
    for a in args:
        method = special_method(ev, a, "__index__")
        if method is not None:
            a = call(ev, method, (a,), {})
        if isinstance(a, Tensor) and not isinstance(a, GraphTensor) and id(a) in ev.owned.tensors:
            a = int(a)
        if isinstance(a, Tensor):
            a = number_of(
                a if isinstance(a, GraphTensor) else ev.builder.present_value(a),
                INT,
            )
        values.append(a)
    if any(isinstance(a, GraphScalar) for a in values):
        return GraphRange(*values)
    if any(isinstance(a, GraphObject) for a in values):
        return GraphRange(*[run_on_host(ev, int, (a,), {}, "int", (INT,)) for a in values])
    return range(*values)


@replaces(round)
def _round(ev: Evaluation, x: Value, ndigits: Value = None) -> Value:
    if isinstance(x, Tensor):
        return round_half_even(x) if ndigits is None else round_half_even(x, decimals=ndigits)
    method = special_method(ev, x, "__round__")
    if method is not None:
        return call(ev, method, (x,) if ndigits is None else (x, ndigits), {})
    if not settle(ev, x):
        return run_on_host(ev, round, (x, ndigits), {}, "round")
    return native(ev, round, (x,) if ndigits is None else (x, ndigits), {})


# ---- classes and attributes ---------------------------------------------------------------------


@replaces(getattr)
def _getattr(ev: Evaluation, owner: Value, name: Value, *default: Value) -> Value:
    if not isinstance(name, str):
        raise TypeError("getattr(): attribute name must be string")
    if not default:
        return get_attribute(ev, owner, name)
    if _looks_up_later(ev, owner):
        return defer(ev, getattr, (owner, name, *default), {})
    try:
        with ev.journal.catching():
            return get_attribute(ev, owner, name)
    except AttributeError:
        if not (isinstance(owner, (Tensor, HostValue, types.ModuleType)) or is_symbolic(owner)):
            read_missing(ev, "attribute", owner, name, f"{type(owner).__name__}.{name}")
        return default[0]


def _looks_up_later(ev: Evaluation, owner: Value) -> bool:
    """Return whether an object's attributes must be read by Python when the graph runs.

    That is so if the object comes from outside the function and may change while the graph runs, or
    if its class defines `__getattribute__`.
    """
    return is_live(ev, owner) or special_method(ev, owner, "__getattribute__") is not None


@replaces(hasattr)
def _hasattr(ev: Evaluation, owner: Value, name: str) -> Value:
    if isinstance(owner, GraphObject):
        return run_on_host(ev, hasattr, (owner, name), {}, "hasattr", (BOOL,))
    if _looks_up_later(ev, owner):
        return defer(ev, hasattr, (owner, name), {})
    marker = object()
    return _getattr(ev, owner, name, marker) is not marker


@replaces(setattr)
def _setattr(ev: Evaluation, owner: Value, name: str, value: Value) -> None:
    set_attribute(ev, owner, name, value)


@replaces(delattr)
def _delattr(ev: Evaluation, owner: Value, name: str) -> None:
    delete_attribute(ev, owner, name)


@replaces(len)
def _len(ev: Evaluation, x: Value) -> Value:
    if isinstance(x, GraphObject):
        return run_on_host(ev, len, (x,), {}, "len", (INT,))
    if isinstance(x, Cell):
        ev.captures.members(x)
    ev.copies.observe(x)
    if isinstance(x, Tensor):
        record_methods(ev, len, (x,))
        if not isinstance(x, GraphTensor) and id(x) not in ev.owned.tensors:
            ev.captures.form_of(x, "the type of a Tensor")
        return x.__len__()
    method = special_method(ev, x, "__len__")
    if method is not None:
        return call(ev, method, (x,), {})
    if is_live(ev, x):
        return run_on_host(ev, len, (x,), {}, "len", (INT,))
    return ask(ev, len, x) if is_outside(ev, x) else len(x)


# ---- containers ---------------------------------------------------------------------------------


def _container(python: Value) -> Callable[..., Value]:
    """Return the function that compiled code calls in place of the built-in class `python`.

    `python` is a container class, such as `list`, `tuple`, `set` or `dict`.
    """

    def make(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
        if args and isinstance(args[0], GraphObject):
            return run_on_host(ev, python, args, kwargs, python.__name__)
        if args and python is not dict:
            items = (iterate_sized if python in (list, tuple) else iterate)(ev, args[0])
            hashed = python in (set, frozenset)
            made = python([as_key(ev, v) for v in items] if hashed else items)
        elif args:
            made = {**pairs_of(ev, args[0]), **kwargs}
        else:
            made = python(*args, **kwargs)
        if python is not tuple:
            ev.owned.add(made)
        return made

    return make


for _python in (list, tuple, set, frozenset, dict):
    replaces(_python)(_container(_python))


@replaces(reversed)
def _reversed(ev: Evaluation, items: Value) -> Value:
    if isinstance(items, Tensor):
        return iter([items[i] for i in reversed(range(items.shape[0]))])
    method = special_method(ev, items, "__reversed__")
    if method is not None:
        return call(ev, method, (items,), {})
    if is_outside(ev, items):
        items = tuple(iterate(ev, items))
    ev.copies.observe(items)
    return ev.owned.add(reversed(items))


@replaces(zip)
def _zip(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
    return ev.owned.add(zip(*(_rows(iterate, ev, a) for a in args), **kwargs))


@replaces(enumerate)
def _enumerate(ev: Evaluation, items: Value, start: int = 0) -> Value:
    return ev.owned.add(enumerate(_rows(iterate, ev, items), start))


@replaces(iter)
def _iter(ev: Evaluation, items: Value, *sentinel: Value) -> Value:
    if sentinel or isinstance(items, GraphObject):
        return run_on_host(ev, iter, (items, *sentinel), {}, "iter")
    if is_live(ev, items):
        return items if hasattr(type(items), "__next__") else _iter_on_host(ev, items)
    return ev.owned.add(iter(_rows(iterate, ev, items)))


def _iter_on_host(ev: Evaluation, items: Value) -> Value:
    return run_on_host(ev, iter, (items,), {}, "iter")


@replaces(next)
def _next(ev: Evaluation, items: Value, *default: Value) -> Value:
    method = special_method(ev, items, "__next__")
    if method is not None:
        uses_up(ev, items)
        try:
            with ev.journal.catching():
                return call(ev, method, (items,), {})
        except StopIteration:
            if default:
                return default[0]
            raise
    if isinstance(items, GraphObject):
        return run_on_host(ev, next, (items, *default), {}, "next")
    if is_outside(ev, items):
        return defer(ev, next, (items, *default), {})
    check_position(ev, items)
    with ev.journal.catching():
        return next(items, *default)


@replaces(map)
def _map(ev: Evaluation, function: Value, *args: Value) -> Value:
    if not args:
        raise TypeError("map() must have at least two arguments.")
    rows = [_rows(iterate, ev, a) for a in args]
    returned = tuple if all(isinstance(a, tuple) for a in args) else list
    return lazily(ev, map(lambda *row: call(ev, function, row, {}), *rows), returned)


@replaces(filter)
def _filter(ev: Evaluation, function: Value, items: Value) -> Value:
    def is_kept(x: Value) -> bool:
        kept = truth(ev, x if function is None else call(ev, function, (x,), {}))
        if not isinstance(kept, bool):
            raise NeedsValue(
                "filter: got a condition on a Tensor; the length of the result would be unknown"
            )
        return kept

    return lazily(ev, filter(is_kept, _rows(iterate, ev, items)))


def _rows(iterate: Value, ev: Evaluation, items: Value) -> Value:
    """Return an iterator over a value in compiled code; over a tensor, it iterates along axis 0.

    Args:
        iterate: the function that returns an iterator over a value that is not a tensor.
        ev: the evaluation.
        items: the value.

    Raises:
        NeedsValue: the value is a range whose length is known only at run time.
    """
    if isinstance(items, GraphRange):
        raise NeedsValue("got a range whose length is known only when the compiled function runs")
    if isinstance(items, Tensor):
        len(items)
        return ev.owned.add(items[i] for i in range(items.shape[0]))
    return iterate(ev, items)


# ---- strings and printing -----------------------------------------------------------------------


_TEXT_METHODS: dict[Value, tuple[str, ...]] = {
    str: ("__str__", "__repr__"), repr: ("__repr__",), ascii: ("__repr__",),
    format: ("__format__", "__str__", "__repr__"),
}  # fmt: skip


def _text(python: Callable[..., Value]) -> Callable[..., Value]:
    """Return the function that compiled code calls in place of the built-in function `python`.

    `python` is `str`, `repr`, `format` or `ascii`. A text that depends on a graph value is made by
    Python when the graph runs; at syntax level STRICT the call is refused.
    """

    def make(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
        if depends_on_graph(args) or depends_on_graph(kwargs):
            if ev.strict:
                raise UnsupportedSyntaxError(
                    f"{python.__name__}: got a Tensor inside jit at STRICT: its text is known "
                    "only when the function runs",
                    construct=python.__name__,
                    remedy="Use print(x), or ms.set_context(jit_syntax_level=ms.LAX)",
                )
            return run_on_host(ev, python, args, kwargs, python.__name__)
        if args and not kwargs:
            for name in _TEXT_METHODS[python]:
                method = special_method(ev, args[0], name)
                if method is not None and (name == "__format__" or args[1:] in ((), ("",))):
                    return call(ev, method, args if name == "__format__" else args[:1], {})
        if not settle(ev, (args, kwargs)):
            return run_on_host(ev, python, args, kwargs, python.__name__)
        if any(isinstance(x, (np.ndarray, np.generic)) for x in reachable(args).values()):
            options = np.get_printoptions()
            ev.captures.add("answer", np.get_printoptions, (), options, "NumPy's print options")
        return native(ev, python, args, kwargs)

    return make


for _function in (str, repr, format, ascii):
    replaces(_function)(_text(_function))


@replaces(print)
def _print(ev: Evaluation, /, *args: Value, **kwargs: Value) -> None:
    for a in args:
        ev.copies.observe(a)
    append_effect(ev, lambda values, named: print_values(*values, **named), (args, kwargs), "print")


@replaces(_ops_print)
def _print_op(ev: Evaluation, *args: Value) -> None:
    _print(ev, *args)


# ---- tensors ------------------------------------------------------------------------------------


_TENSOR_SIGNATURE = inspect.signature(Tensor)


@replaces(Tensor, _tensor_function)
def _tensor(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
    """Trace a call of `Tensor(...)` or `tensor(...)` in compiled code; return the new tensor."""
    data = args[0] if args else kwargs.get("input_data")
    own = special_method(ev, data, "__array__")
    if own is not None and args:
        return _tensor(ev, call(ev, own, (data,), {}), *args[1:], **kwargs)
    if isinstance(data, np.ndarray) and is_live(ev, data):
        raise NeedsValue("Tensor: got a NumPy array that the compiled function changes")
    if isinstance(data, np.ndarray) and id(data) in ev.inputs.large_arrays:
        data = ev.inputs.array(data)
    if not depends_on_graph(data) and (not isinstance(data, Tensor) or ev.is_constant(data)):
        return native(ev, Tensor, args, kwargs)
    if isinstance(data, GraphObject):
        return run_on_host(ev, Tensor, args, kwargs, "Tensor")
    options = _TENSOR_SIGNATURE.bind(*args, **kwargs).arguments
    made: Tensor = _converted(ev, data, options.get("dtype"))
    check_data_options(made.shape, options.get("shape"), options.get("init"))
    if options.get("const_arg"):
        check_options("Tensor", const_arg=options["const_arg"])
    if options.get("device") is not None:
        made = made.move_to(options["device"])
    return made.copy() if made is data else made


def _converted(ev: Evaluation, data: Value, dtype: Value) -> Value:
    """Convert a graph number, a tensor or nested lists of them to one graph tensor.

    If `dtype` is None, a tensor keeps its dtype, a number gets the default dtype of its kind, and
    lists get the dtype to which their items are promoted.

    Raises:
        NeedsValue: `data` has a Python object that is known only when the graph runs.
        ArgumentError: `data` has something else.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        return data if wanted is None else data.astype(wanted)
    if isinstance(data, GraphScalar):
        own = wanted or scalar_dtype(EXAMPLES[data._type])
        return ev.builder.append(to_tensor, (ev.builder.host(data),), {"dtype": own})
    if isinstance(data, (list, tuple)):
        parts = [_converted(ev, x, wanted) if depends_on_graph(x) else Tensor(x) for x in data]
        if wanted is None:
            wanted = functools.reduce(promote, [p.dtype for p in parts])
        return stack_by([p.astype(wanted) for p in parts], 0)
    if isinstance(data, GraphObject):
        raise NeedsValue(
            "Tensor: got a Python object that is known only when the compiled function runs"
        )
    raise ArgumentError(f"Tensor: got {type(data).__name__} inside jit; wanted numbers or Tensors")


# ---- functions that only Python can run ----------------------------------------------------------


# Functions that need the frame of their caller, or stop the program.
_REFUSED = {
    "breakpoint", "locals", "vars", "exec", "eval", "globals", "dir", "__import__", "compile",
}  # fmt: skip


def _python_only(name: str) -> Callable[..., Value]:
    """Return the replacement of a built-in function that the compiler cannot translate.

    At syntax level STRICT the replacement refuses the call; otherwise it appends a graph node that
    calls the function in Python at run time. The functions of `_REFUSED`, such as `locals` and
    `breakpoint`, are refused at every level. `name` is the function's name.
    """
    python = getattr(builtins, name)

    def refuse(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
        if ev.strict or name in _REFUSED:
            raise UnsupportedSyntaxError(
                f"{name}: the built-in function {name!r} is not supported inside jit",
                construct=name,
                remedy="Call it outside the compiled function, or use "
                "ms.set_context(jit_syntax_level=ms.LAX)",
            )
        return run_on_host(ev, python, args, kwargs, name)

    return refuse


@replaces(id)
def _id(ev: Evaluation, x: Value) -> Value:
    outside = ev.copies.originals.get(id(x), x)
    argument = hasattr(outside, "value")
    if argument or (outside is x and isinstance(x, (GraphTensor, HostValue))):
        if ev.strict:
            return _python_only("id")(ev, x)
        arguments = [made for made, _, _ in ev.inputs.arguments]
        if isinstance(x, GraphTensor) and not (
            id(x) in ev.inputs.locations or any(x is a for a in arguments)
        ):
            raise UnsupportedSyntaxError(
                "id: got a Tensor that the compiled function makes; it is no object while the "
                "graph runs",
                construct="id",
                remedy="Call it outside the compiled function",
            )
        return run_on_host(ev, id, (x,), {}, "id", (INT,), objects=True)
    check_known(ev, x)
    if id(x) in ev.owned.chosen or isinstance(x, Choice):
        what = "function" if isinstance(x, Choice) else type(x).__name__
        raise UnsupportedSyntaxError(
            f"id: got a {what} that is one of several, chosen by a condition on a Tensor or by a "
            "loop inside jit",
            construct="id",
            remedy="Call it outside the compiled function",
        )
    if isinstance(x, np.ndarray) and not ev.owned.owns_data(x):
        ev.captures.arrays[id(x)] = x
    return id(outside)


for _name in ("open", "input", *_REFUSED):
    replaces(getattr(builtins, _name))(_python_only(_name))


# Functions of the standard library that look at the frames of their callers.
_LOOK_AT_FRAMES = (
    sys._getframe, inspect.currentframe, inspect.stack, inspect.trace, pdb.set_trace,
    traceback.extract_stack, traceback.format_stack, traceback.print_stack,
)  # fmt: skip


def _needs_frame(function: Value) -> Callable[..., Value]:
    """Return a replacement, for compiled code, that raises UnsupportedSyntaxError at each call.

    It replaces `function`, such as `sys._getframe`, which looks at the stack frame of its caller.
    """

    def refuse(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
        raise UnsupportedSyntaxError(
            f"{function.__name__}: got a call inside jit, where the function has no frame",
            construct=function.__name__,
            remedy="Call it outside the compiled function",
        )

    return refuse


for _looking in _LOOK_AT_FRAMES:
    replaces(_looking)(_needs_frame(_looking))
