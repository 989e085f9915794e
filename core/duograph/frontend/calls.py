"""Calls: the user's functions are entered, ours run as they stand, other libraries' run now or when
the graph runs.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import RefusedError, StrictAttributeError, UnsupportedSyntaxError
from ..ir.builder import GraphTensor
from ..ir.values import GraphObject, GraphScalar, HostValue, NeedsValue
from ..nn import _tree
from ..nn.cell import Cell
from ..op import Op
from ..ops.state import HookBackward
from ..parameter import Parameter
from ..runtime_state import thread_state
from ..tensor import Tensor
from .branches import describe, select
from .captures import defaults_of, has_hooks
from .containers import ARRAY_MUTATORS, changing_array, container_method, with_item
from .diagnostics import join_error, unsupported
from .external import seen
from .frames import Frame, Function
from .host import depends_on_graph, note_effect, run_on_host
from .libraries import interpreted, is_framework, is_host, is_impure
from .source import source_of
from .spans import begin_at, note_place
from .trace import Trace
from .values import Choice, Flow

__all__ = [
    "call",
    "call_now",
    "native",
    "function_of",
    "raise_now",
    "enter_context",
    "Dead",
    "CALL_DEPTH",
]

# Calls of the user's functions inside each other.
CALL_DEPTH = 1000
# Replacements for functions that mean something else while a graph is built; builtin_functions
# fills it.
REPLACED: dict[Any, Callable[..., Any]] = {}


class Dead(Exception):
    """The code that is being evaluated is never reached: a call before it raises."""


def call_now(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call from Python code that runs while compiling."""
    builder: Any = thread_state.builder
    if builder is None or not builder.staged:
        raise RuntimeError(f"{function!r} belongs to a compiled function that has ended")
    return call(builder.trace, function, args, kwargs)


def call(t: Trace, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call anything on values of the evaluation."""
    kind = type(f)
    if kind is Function:
        return enter(t, f, args, kwargs)
    replaced = REPLACED.get(f) if _hashable(f) else None
    if replaced is not None:
        return replaced(t, *args, **kwargs)
    if kind is types.FunctionType:
        return _call_function(t, f, args, kwargs)
    if kind is types.MethodType:
        return _call_method(t, f, args, kwargs)
    if isinstance(f, type):
        return _construct(t, f, args, kwargs)
    if kind is Choice:
        return select(
            t,
            f.cond,
            lambda: call(t, f.then, args, kwargs),
            lambda: call(t, f.orelse, args, kwargs),
            "the result of the call",
            ("other choice", "choice"),
        )
    if isinstance(f, GraphObject):
        return run_on_host(t, _apply, (f, args, kwargs), {}, "call")
    if isinstance(f, (GraphScalar, Tensor)):
        raise TypeError(
            f"{'Tensor' if isinstance(f, Tensor) else f._type.name!r} object is not callable"
        )
    if isinstance(f, functools.partial):
        return call(t, f.func, (*f.args, *args), {**f.keywords, **kwargs})
    if isinstance(f, Cell):
        return call_cell(t, f, args, kwargs)
    staged = getattr(f, "_staged_call", None)  # a compiled function: its source is evaluated here
    if staged is not None:
        return staged(t, args, kwargs)
    if isinstance(f, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return _call_builtin(t, f, args, kwargs)
    method = getattr(kind, "__call__", None)  # noqa: B004  (the function itself is wanted)
    if isinstance(f, Op) or is_framework(kind.__module__):
        if isinstance(f, HookBackward):
            raise _no_hook("HookBackward")
        if interpreted(kind.__module__) and isinstance(method, types.FunctionType):
            return _call_function(t, method, (f, *args), kwargs)
        return native(t, f, args, kwargs)
    if isinstance(method, types.FunctionType):
        return _call_function(t, method, (f, *args), kwargs)
    if method is None or not callable(f):
        raise TypeError(f"{kind.__name__!r} object is not callable")
    return _foreign(t, f, args, kwargs)


def _apply(f: Any, args: Any, kwargs: Any) -> Any:
    return f(*args, **kwargs)


def _hashable(f: Any) -> bool:
    return type(f).__hash__ is not None and not isinstance(f, (HostValue, Tensor))


# ---- functions ----------------------------------------------------------------------------------


def _call_function(t: Trace, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    module = f.__module__
    if is_framework(module) and not interpreted(module):
        return native(t, f, args, kwargs)
    if is_host(module):
        return _foreign(t, f, args, kwargs)
    if getattr(f, "is_constexpr", False):
        return native(t, f, args, kwargs)
    flags = f.__code__.co_flags
    if flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return _generator(t, f, args, kwargs)
    return enter(t, python_function(t, f), args, kwargs)


def _generator(t: Trace, f: Any, args: Any, kwargs: Any) -> Any:
    if t.frames and not depends_on_graph(args) and not depends_on_graph(kwargs):
        return native(t, f, args, kwargs)
    source = source_of(f)
    node = source.node
    if isinstance(node, ast.FunctionDef):
        remedy = "Return a list, or call it outside the compiled function"
        node = next(n for n in ast.walk(node) if isinstance(n, (ast.Yield, ast.YieldFrom)))
    else:
        remedy = "Wanted a plain function: await outside the compiled function"
    error = unsupported(node, None, remedy)
    begin_at(t, error, source, node)
    raise error


def python_function(t: Trace, f: Any) -> Function:
    """A function of the user's as the evaluation sees it.

    Raises:
        UnsupportedSyntaxError: its source cannot be found.
    """
    closure = f.__closure__ or ()
    if f.__defaults__ or f.__kwdefaults__:
        t.captures.add("defaults", f, None, defaults_of(f), f"defaults of {f.__name__}")
    from .external import taken

    given = f.__defaults__ or ()
    code = f.__code__
    names = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    defaults = tuple(taken(t, v, name) for v, name in zip(given, names, strict=True))
    return Function(
        source_of(f),
        defaults,
        dict(f.__kwdefaults__ or {}),
        f.__globals__,
        closure=dict(zip(f.__code__.co_freevars, closure, strict=True)),
        original=f,
    )


def function_of(t: Trace, frame: Frame, node: Any) -> Function:
    """A `def` or `lambda` in evaluated code."""
    from .expressions import evaluate

    source = frame.source.inner(node)
    a = node.args
    defaults = tuple(evaluate(t, frame, d) for d in a.defaults)
    named = {
        x.arg: evaluate(t, frame, d)
        for x, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)
        if d is not None
    }
    return Function(source, defaults, named, frame.globals, parent=frame)


def enter(t: Trace, f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Evaluate a call of a function from its source.

    Raises:
        RecursionError: CALL_DEPTH calls inside each other.
        TypeError: wrong arguments.
    """
    from .recursion import Recursive, guard, leave, named_call, with_numbers

    if len(t.frames) >= CALL_DEPTH:
        raise RecursionError(
            f"Exceed function call depth limit {CALL_DEPTH}: {f.__name__} calls itself without end, or too deep"
        )
    again = guard(t, f, args, kwargs)
    if again is not None:
        return again()
    record = t.calls[f.source.node][-1]
    mark = t.builder.mark()
    try:
        return _entered(t, f, args, kwargs)
    except Recursive as found:
        if found.record is not record:
            raise
        t.builder.rewind(mark)
        if found.numbers:
            args, kwargs = with_numbers(t, args), with_numbers(t, kwargs)
        t.calls[f.source.node].remove(record)
        try:
            return named_call(t, f, args, kwargs, lambda a, k: _entered(t, f, a, k))
        finally:
            t.calls[f.source.node].append(record)
    finally:
        leave(t, f)


def _entered(t: Trace, f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Evaluate the body of a function."""
    from .statements import run_block

    frame = Frame(f, t.builder.depth)
    _bind(f, frame, args, kwargs)
    t.frames.append(frame)
    span = t.builder.span
    try:
        flow = run_block(t, frame, f.source.body)
        found = _returned(flow)
    except Exception as error:
        note_place(t, error, frame, f.source.node)
        raise
    finally:
        t.frames.pop()
    t.builder.span = span
    return found


def _returned(flow: Flow) -> Any:
    """What a call is worth when its body has been evaluated."""
    if flow.dead:
        raise Dead
    if flow.ret is False:
        return None
    if flow.ret is True or flow.value is None:
        return flow.value
    raise join_error(
        "the result",
        flow.value if isinstance(flow.value, Tensor) else describe(flow.value),
        "None",
        where=("where it returns", "where it ends without `return`"),
    )


def _bind(f: Function, frame: Frame, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Arguments to names, by Python's rules and with its messages."""
    a = f.source.node.args
    positional = [x.arg for x in (*a.posonlyargs, *a.args)]
    names = frame.vars
    given = dict(zip(positional, args))
    names.update(given)
    if len(args) > len(positional) and a.vararg is None:
        least = len(positional) - len(f.defaults)
        wanted = f"from {least} to {len(positional)}" if f.defaults else str(len(positional))
        raise TypeError(
            f"{f.__name__}() takes {wanted} positional argument{'s' if wanted != '1' else ''} but "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given"
        )
    if a.vararg is not None:
        names[a.vararg.arg] = tuple(args[len(positional) :])
    only_positional = {x.arg for x in a.posonlyargs}
    named_only = [x.arg for x in a.kwonlyargs]
    extra: dict[str, Any] = {}
    for k, v in kwargs.items():
        if k in named_only or (k in positional and k not in only_positional):
            if k in names:
                raise TypeError(f"{f.__name__}() got multiple values for argument {k!r}")
            names[k] = v
        elif a.kwarg is not None:
            extra[k] = v
        elif k in only_positional:
            misplaced = [x for x in positional if x in only_positional and x in kwargs]
            raise TypeError(
                f"{f.__name__}() got some positional-only arguments passed as keyword arguments: "
                f"'{', '.join(misplaced)}'"
            )
        else:
            raise TypeError(f"{f.__name__}() got an unexpected keyword argument {k!r}")
    if a.kwarg is not None:
        names[a.kwarg.arg] = extra
    first = len(positional) - len(f.defaults)
    missing = []
    for i, k in enumerate(positional):
        if k not in names:
            if i >= first:
                names[k] = f.defaults[i - first]
            else:
                missing.append(k)
    if missing:
        raise TypeError(
            f"{f.__name__}() missing {len(missing)} required positional argument"
            f"{'s' if len(missing) > 1 else ''}: {' and '.join(map(repr, missing))} "
            f"(needs {first}, given {len(args)})"
        )
    for k in named_only:
        if k not in names:
            if k not in f.kw_defaults:
                raise TypeError(f"{f.__name__}() missing 1 required keyword-only argument: {k!r}")
            names[k] = f.kw_defaults[k]
    if positional and positional[0] in names:
        frame.first = names[positional[0]]


# ---- methods, classes, Cells --------------------------------------------------------------------


def _call_method(t: Trace, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    owner, function = f.__self__, f.__func__
    if isinstance(owner, Tensor):
        from .attributes import HOST_METHODS

        if function.__name__ in HOST_METHODS:
            return _tensor_to_host(t, owner, function.__name__, args, kwargs)
        if function.__name__ == "register_hook":
            raise _no_hook("register_hook")
    if isinstance(owner, Cell):
        if function.__name__.startswith("register_") and is_framework(function.__module__):
            raise _no_hook(function.__name__)
        watch(t, owner)
        if function.__name__ in ("trainable_params", "untrainable_params"):
            for p in owner.get_parameters():
                t.captures.add(
                    "attribute",
                    p,
                    "requires_grad",
                    p.requires_grad,
                    f"{p.name}.requires_grad",
                    True,
                )
    if isinstance(function, types.FunctionType):
        return _call_function(t, function, (owner, *args), kwargs)
    replaced = getattr(function, "_staged_call", None)
    if replaced is not None:
        return replaced(t, (owner, *args), kwargs)
    return call(t, function, (owner, *args), kwargs)


def _tensor_to_host(t: Trace, x: Any, name: str, args: Any, kwargs: Any) -> Any:
    """`x.asnumpy()` and its like, when the graph runs; the number of one element stays a number."""
    from ..ir.values import number_of
    from ..types import BOOL, FLOAT, INT

    if not isinstance(x, GraphTensor):
        if id(x) in t.fresh and id(x) not in t.slots:
            return getattr(x, name)(*args, **kwargs)
        value = t.builder.bring(t.state_value(x))
    else:
        value = x
    if t.strict:
        raise StrictAttributeError(
            f"In JIT strict mode a Tensor has no {name!r}: its data are known only when the function runs",
            construct=name,
            remedy="Compute with the Tensor, move the call out, or use jit_syntax_level=LAX",
        )
    if (
        name == "item"
        and not args
        and not kwargs
        and value.size == 1
        and value.dtype.kind in "biuf"
    ):
        kind = {"b": BOOL, "f": FLOAT}.get(value.dtype.kind, INT)
        return number_of(value, kind)
    return run_on_host(
        t, lambda v, a, k: getattr(v, name)(*a, **k), (value, args, kwargs), {}, name
    )


def _no_hook(construct: str) -> RefusedError:
    return RefusedError(
        f"{construct}: hooks inside jit are not supported: a compiled function has no place where one could run",
        construct=construct,
        remedy="Use it outside the compiled function, or run the function line by line",
    )


def _construct(t: Trace, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if issubclass(cls, Parameter):
        raise RefusedError(
            "Parameter: got a Parameter made inside jit",
            construct="Parameter",
            remedy="Make it in __init__, outside the compiled function",
        )
    if issubclass(cls, Cell):
        return _make_cell(t, cls, args, kwargs)
    if issubclass(cls, BaseException):
        return cls(*args, **kwargs)
    if is_framework(cls.__module__) or is_host(cls.__module__) or cls.__module__ == "builtins":
        if is_framework(cls.__module__):
            return native(t, cls, args, kwargs)
        return _foreign(t, cls, args, kwargs)
    init = cls.__init__
    if type(cls) is not type or getattr(cls, "__new__") is not object.__new__:  # noqa: B009
        made = native(t, cls, args, kwargs)  # an enum, a named tuple, a metaclass: Python's way
    elif isinstance(init, types.FunctionType) and not hasattr(cls, "__dataclass_fields__"):
        made = object.__new__(cls)
        t.note_own(made)
        _call_function(t, init, (made, *args), kwargs)
        return made
    else:
        made = native(t, cls, args, kwargs)
    t.note_own(made)
    return made


def _make_cell(t: Trace, cls: Any, args: Any, kwargs: Any) -> Any:
    if depends_on_graph(args) or depends_on_graph(kwargs):
        raise UnsupportedSyntaxError(
            f"{cls.__name__}: got an argument that is known only when the compiled function runs",
            construct=cls.__name__,
            remedy="Make the Cell in __init__, outside the compiled function",
        )
    before = thread_state.builder
    thread_state.builder = None
    try:
        made = cls(*args, **kwargs)
    finally:
        thread_state.builder = before
    own = next(made.get_parameters(), None)
    if own is not None:
        raise RefusedError(
            f"{cls.__name__}: got a layer with Parameters ({own.name}) made inside jit",
            construct=cls.__name__,
            remedy="Make it outside, in __init__ or before the function, and call it inside",
        )
    t.note_own(made)
    t.keep.append(made)
    return made


def watch(t: Trace, cell: Cell) -> None:
    """A Cell of ours runs as it stands: everything that it holds is captured."""
    if not is_framework(type(cell).__module__) or id(cell) in t.own or id(cell) in t.captures.cells:
        return
    t.captures.cells[id(cell)] = cell
    name = type(cell).__name__
    for key, value in cell.__dict__.items():
        if key.startswith("_") or isinstance(value, Op):
            continue
        exact = isinstance(value, (Parameter, Cell)) or key in ("training", "requires_grad")
        t.captures.add("attribute", cell, key, value, f"{name}.{key}", exact=exact)
    for i, child in enumerate(cell._cells.values()):
        if child is not None and str(i) in cell._cells:
            t.captures.add("attribute", cell, str(i), child, f"{name}[{i}]", exact=True)


def call_cell(t: Trace, cell: Cell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Cell.

    Raises:
        RefusedError: it has hooks, which compiled code cannot run.
    """
    own = cell.__dict__
    if "_params" not in own:
        raise AttributeError(f"{type(cell).__name__}: call super().__init__() first")
    t.captures.add("hooks", cell, None, False, f"hooks of {type(cell).__name__}", exact=True)
    if id(cell) not in t.own:
        t.captures.members(cell)
    if has_hooks(cell):
        raise RefusedError(
            f"{type(cell).__name__}: got a Cell with hooks inside jit; a compiled function has no place where a "
            f"hook could run",
            construct="hook",
            remedy="Remove the hooks, or run the Cell line by line (PYNATIVE_MODE, without jit)",
        )
    _tree.check_names(cell)
    watch(t, cell)
    t.captures.method(cell, "construct", cell.construct)
    run: Callable[..., Any] = lambda *a, **k: call(t, cell.construct, a, k)  # noqa: E731
    if hasattr(type(cell), "bprop"):
        from .gradients import call_with_bprop

        run = lambda *a, **k: call_with_bprop(t, cell, a, k)  # noqa: E731
    if cell._float_type is not None:
        return _run_cast(t, cell, run, args, kwargs)
    return run(*args, **kwargs)


def _run_cast(t: Trace, cell: Cell, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """As `Cell._run_cast`: floating inputs and own trainable Parameters in the type that `to_float`
    named.
    """
    from ..nn.cell import _cast

    target = cell._float_type
    places = []
    for name, p in cell._params.items():
        if p is not None and p.requires_grad and p.dtype.is_floating and p.dtype is not target:
            places.append((("attribute", id(cell), name), name, p))
    if is_framework(type(cell).__module__):  # its code reads the attributes itself
        for _, name, p in places:
            cell.__dict__[name] = p.astype(target)
        try:
            return run(*_cast(args, target), **_cast(kwargs, target))
        finally:
            for _, name, p in places:
                cell.__dict__[name] = p
    for place, _, p in places:
        t.set_item(t.overlay, place, p.astype(target))
    try:
        return run(*_cast(args, target), **_cast(kwargs, target))
    finally:
        for place, _, _ in places:
            t.touch("item", t.overlay, place)
            t.overlay.pop(place, None)


# ---- code that is not evaluated -----------------------------------------------------------------


def _call_builtin(t: Trace, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    owner = getattr(f, "__self__", None)
    if isinstance(owner, (list, dict, set)):
        return container_method(t, owner, f.__name__, args, kwargs)
    if isinstance(owner, np.ndarray) and f.__name__ in ARRAY_MUTATORS:
        changing_array(t, owner, f.__name__)
    return _foreign(t, f, args, kwargs)


def _foreign(t: Trace, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of another library: now when all is known, else when the graph runs."""
    if is_impure(f):
        if t.strict:
            raise _refused(f, "it does something, or answers differently each time")
        return run_on_host(t, f, args, kwargs, _name(f))
    if not depends_on_graph(args) and not depends_on_graph(kwargs):
        found = native(t, f, args, kwargs)
        if not isinstance(found, (int, float, str, bool, type(None))):
            t.note_own(found, (*args, *kwargs.values(), getattr(f, "__self__", None)))
        return found
    module = getattr(f, "__module__", None)
    if module in (
        "operator",
        "_operator",
        "functools",
        "itertools",
        "builtins",
        None,
        "copy",
        "collections",
        "math",
    ):
        try:
            return native(t, f, args, kwargs)
        except TypeError:
            if t.strict:
                raise
    if t.strict:
        raise _refused(f, "it works on data that are known only when the function runs")
    return run_on_host(t, f, args, kwargs, _name(f))


def _name(f: Any) -> str:
    return str(getattr(f, "__qualname__", None) or getattr(f, "__name__", type(f).__name__))


def _refused(f: Any, why: str) -> UnsupportedSyntaxError:
    name = ".".join(filter(None, (getattr(f, "__module__", None), _name(f))))
    return UnsupportedSyntaxError(
        f"Illegal type in the graph: {name} is a function of Python that a compiled function cannot call "
        f"at STRICT: {why}",
        construct=_name(f),
        remedy="Use ops of duograph, move the call out of the compiled function, or use jit_syntax_level=LAX",
    )


def native(t: Trace, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run Python code as it stands on values of the evaluation.

    When it looks at a value that is known only when the graph runs, the call is taken back and
    becomes a node that Python runs then (LAX), or an error (STRICT).
    """
    for x in args:
        if type(x) in (list, dict, set):
            seen(t, x)
    mark = t.builder.mark()
    t.journals.append({})
    try:
        found = f(*args, **kwargs)
    except (NeedsValue, TypeError, ValueError) as error:
        if not _looked_at_a_value(error):
            _keep(t)
            raise
        _undo(t)
        ours = isinstance(f, (types.FunctionType, types.MethodType)) and is_framework(f.__module__)
        if t.strict and not ours:
            raise _unknown_argument(f, error) from None
        t.builder.rewind(mark)
        function = getattr(f, "__func__", f)
        if isinstance(function, types.FunctionType) and is_framework(function.__module__):
            # ours after all depends on values: its source is evaluated, as the user's is
            given = (f.__self__, *args) if isinstance(f, types.MethodType) else args
            try:
                return enter(t, python_function(t, function), given, kwargs)
            except (
                TypeError,
                ValueError,
            ) as error:  # what Python alone can use was refused as no number
                if isinstance(error, NeedsValue) or not _looked_at_a_value(error):
                    raise
                if t.strict:
                    raise _unknown_argument(f, error) from None
                raise NeedsValue(f"{_name(f)}: {UNKNOWN_NUMBER}") from None
        if f is operator.setitem and isinstance(args[0], GraphTensor):
            target = args[0]
            made = run_on_host(t, with_item, args, kwargs, "setitem", (target._type.plain,))
            t.builder.rebind(target, made)
            return None
        return run_on_host(t, f, args, kwargs, _name(f))
    except BaseException:
        _keep(t)
        raise
    _keep(t)
    return found


UNKNOWN_NUMBER = "got a number that is known only when the compiled function runs, where one is needed while compiling"


def _looked_at_a_value(error: Exception) -> bool:
    """Whether a call failed because a number is known only when the graph runs: Python's errors
    show what they got.
    """
    text = str(error)
    return isinstance(error, NeedsValue) or "GraphScalar" in text or "GraphObject" in text


def _unknown_argument(f: Any, error: Exception) -> UnsupportedSyntaxError:
    why = str(error) if isinstance(error, NeedsValue) else UNKNOWN_NUMBER
    return UnsupportedSyntaxError(
        why if why.startswith(f"{_name(f)}: ") else f"{_name(f)}: {why}",
        construct=_name(f),
        remedy="Compute it with Tensors, move the call out of the compiled function, or use LAX",
    )


def _undo(t: Trace) -> None:
    from .trace import write_location

    for location, before in reversed(list(t.journals.pop().values())):
        write_location(location, before)


def _keep(t: Trace) -> None:
    """What was written stays; the branch around must be able to take it back."""
    journal = t.journals.pop()
    outer = t.journals[-1]
    for key, entry in journal.items():
        outer.setdefault(key, entry)


# ---- errors and contexts ------------------------------------------------------------------------


def raise_now(t: Trace, error: Any, arguments: tuple[Any, ...] | None) -> Flow:
    """`raise error(*arguments)`: now when nothing depends on a tensor, else when the graph runs."""
    unconditional = t.conditions == (t.tries[-1] if t.tries else 0)
    known = arguments is None or not depends_on_graph(arguments)
    if unconditional and known and (t.tries or not t.has_effects()):
        raise error if arguments is None else error(*arguments)

    def run(kind: Any, given: Any) -> None:
        raise kind if given is None else kind(*given)

    note_effect(t, run, (error, arguments), "raise", commit=True)
    return Flow(dead=True)


def enter_context(t: Trace, manager: Any) -> tuple[Callable[..., Any], Any]:
    """Begin a `with`: how to leave it, and the value for `as`."""
    kind = type(manager)
    for name in ("__enter__", "__exit__"):
        if not hasattr(kind, name):
            shown = "Tensor" if isinstance(manager, Tensor) else kind.__name__
            kind_of_error = (
                TypeError if sys.version_info >= (3, 11) else AttributeError
            )  # as Python's own
            raise kind_of_error(
                f"{shown!r} object does not support the context manager protocol (no {name})"
            )
    if is_impure(manager):
        raise UnsupportedSyntaxError(
            f"with: got a {kind.__name__} inside jit, which only Python can use",
            construct="With",
            remedy="Move the `with` out of the compiled function",
        )
    leave = functools.partial(call, t, manager.__exit__)
    return lambda *a: leave(a, {}), call(t, manager.__enter__, (), {})
