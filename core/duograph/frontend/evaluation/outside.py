"""Operations on objects from outside the function: lists, arrays, files, the user's objects.

An object is from outside if evaluated code did not make it. A *question* about such an object, such
as `len(x)` or `x == 3`, is a call that changes nothing. This module decides when a question is
answered: at compile time, as a constant that the guard compares before each call (`ask`, `settle`),
or by Python when the graph runs (`defer`). Nothing here may change an object while compiling.
"""

from __future__ import annotations

import collections
import decimal
import enum
import functools
import types
from collections.abc import Callable

import numpy as np

from ...errors import UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.values import HostValue, NeedsValue
from ...nn.cell import Cell
from ...tensor import Tensor
from ..libraries import (
    is_framework,
    is_host,
    is_user_function,
    is_users_class,
    user_method,
)
from ..state.captures import Raised, answer, entries_of, same_answer
from ..state.evaluation import Evaluation
from ..state.outside import Restart
from ..state.ownership import base_array
from ..types import Args, Kwargs, Value
from ..values.kinds import CONTAINERS, COPIED, IMMUTABLE, MUTATORS, WINDOWS
from ..values.nested import depends_on_graph
from ..values.symbols import without_symbols
from .host import run_on_host

# The most bytes of a captured array whose contents are compared before each call. Larger arrays are
# read again by Python when the graph runs.
_COMPARED_BYTES = 1 << 20


# ---- who made an object, and can it change? -----------------------------------------------------


def is_outside(ev: Evaluation, value: Value) -> bool:
    """Return whether a value is an object that other code can change between calls of the function.

    False for constants, graph values, Cells, copied containers and objects that evaluated code
    made.
    """
    kind = type(value)
    if kind in COPIED or isinstance(value, IMMUTABLE) or id(value) in ev.owned.objects:
        return False
    if isinstance(value, tuple) or kind is frozenset:
        return any(is_outside(ev, v) for v in value)
    if isinstance(value, np.ndarray):
        return not ev.owned.owns_data(value)
    if isinstance(value, (Cell, types.MethodType, types.BuiltinFunctionType)):
        return False
    return not is_framework(kind.__module__)


def is_live(ev: Evaluation, value: Value) -> bool:
    """Return whether an object from outside may change while the compiled function runs.

    An iterator changes when it is used; a view, such as dict keys, changes with its container; and
    the function may change the object itself. Every operation on such an object must therefore run
    in Python at run time, at its position in the program.
    """
    if not is_outside(ev, value):
        return False
    if _key(value) in ev.outside.written or isinstance(value, WINDOWS):
        return True
    if isinstance(value, np.ndarray):
        return _key(base_array(value)) in ev.outside.written
    step = getattr(type(value), "__next__", None)
    return step is not None and not isinstance(step, types.FunctionType)


def _key(value: Value) -> tuple[str, int, None]:
    return ("object", id(value), None)


def is_query(f: Value) -> bool:
    """Return whether a bound built-in method only reads its receiver and changes nothing."""
    owner = getattr(f, "__self__", None)
    if isinstance(owner, (np.ndarray, tuple, frozenset, *IMMUTABLE)):
        return True
    return is_pure_method(f, owner)


def is_pure_method(f: Value, owner: Value) -> bool:
    """Return whether a method of a library class only reads `owner`, the object it belongs to."""
    return isinstance(owner, (tuple, *CONTAINERS)) and f.__name__ not in MUTATORS


def special_method(ev: Evaluation, value: Value, name: str) -> types.FunctionType | None:
    """Return a method such as `__len__` that the user wrote for the class of `value`, else None.

    What the lookup finds in the classes of the user, or that it finds nothing, is recorded; a later
    call for which it finds something else compiles the function again.
    """
    kind = type(value)
    if kind.__module__ == "builtins" or isinstance(value, (Tensor, HostValue)):
        return None
    users = is_users_class(kind)
    if users or isinstance(value, Cell):
        ev.captures.class_attribute(kind, name)
        made_here = id(value) in ev.owned.objects or isinstance(value, (tuple, frozenset))
        if not made_here and (isinstance(value, Cell) or is_outside(ev, value)):
            ev.captures.class_of(value)
    return user_method(value, name) if users else None


# ---- questions that are answered while compiling ------------------------------------------------


def ask(ev: Evaluation, function: Callable[..., Value], *args: Value) -> Value:
    """Call `function(*args)` now, about objects from outside; return the answer as a constant.

    The function must change nothing. The answer is recorded: before each later call of the compiled
    function, the guard calls `function` again and compares the answers. If `function` raises an
    error, the error is recorded likewise and raised. If the compiled function changes one of the
    objects, or if two calls return different answers, a node is appended instead, which calls
    `function` in Python when the graph runs.

    Args:
        function: a function of the `operator` module, a built-in function, or a method's function.
        args: objects from outside the function, and constants. A symbolic size among them is
            replaced by its number in the present call, which the guard then requires.
    """
    args = tuple([without_symbols(ev.scope, v) for v in args])
    if any(_changes_inside(ev, x) for x in reachable(args).values()):
        return run_on_host(ev, function, args, {}, _name(function))
    found = answer(function, args)
    again = answer(function, args)
    if not same_answer(found, again):
        return defer(ev, function, args, {})
    label = f"{_name(function)}({', '.join(_label(x) for x in args)})"
    ev.captures.add("answer", function, args, found, label)
    if isinstance(found, Raised):
        raise found.error
    return take_answer(ev, found, again, label)


def _changes_inside(ev: Evaluation, value: Value) -> bool:
    """Return whether the compiled function may change an object from outside when it runs."""
    changed = id(value) in ev.outside.changed_containers
    return changed or is_live(ev, value) or ev.outside.writes_to(value)


def take_answer(ev: Evaluation, found: Value, again: Value, label: str) -> Value:
    """Return the result of a call such as `len(x)` on an outside object, for use by evaluated code.

    Evaluated code may change an array, list, dict or set that the call made, as `x.tolist()` does.
    A list, dict or set that existed before the call is copied. The contents of an array that
    existed before are recorded as a constant, which is compared before each later call.

    Args:
        ev: the evaluation.
        found: the result.
        again: the result of a second, equal call. If it is the same object as `found`, the object
            existed before the calls.
        label: the call as text, for messages.
    """
    if isinstance(found, np.ndarray) and not np.shares_memory(found, again):
        return ev.owned.add(found)
    if isinstance(found, np.ndarray) or found is again:
        return ev.copies.imported(found, label)
    kind = type(found)
    if kind in (list, set, tuple):
        items = [take_answer(ev, a, b, label) for a, b in zip(found, again)]
        return tuple(items) if kind is tuple else ev.owned.add(kind(items))
    if kind is dict:
        pairs = zip(found.items(), again.values())
        return ev.owned.add({k: take_answer(ev, v, w, label) for (k, v), w in pairs})
    return found


def _name(function: Value) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _label(value: Value) -> str:
    text = repr(value) if isinstance(value, (str, int, float)) else f"a {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:37]}..."


def settle(ev: Evaluation, value: Value) -> bool:
    """Capture everything that Python code could read of a value; return whether that worked.

    To capture is to record a value that the guard compares before each call. If the result is True,
    code that changes nothing may be called with the value at compile time: the guard will notice if
    its result could differ. If it is False, some part cannot be captured, such as an object of a
    library class or an iterator.
    """
    return _settle(ev, value, set())


def _settle(ev: Evaluation, value: Value, seen: set[int]) -> bool:
    """Record all that Python code could read of a value; return whether that worked.

    What is recorded is a constant, which the guard compares before each later call. `seen` are the
    ids of the objects that are already recorded.
    """
    kind = type(value)
    if id(value) in seen:
        return True
    if isinstance(value, np.ndarray):
        return _settle_array(ev, value)
    if isinstance(value, IMMUTABLE) and not isinstance(value, enum.Enum):
        return kind.__module__ == "builtins" or _settle_class(ev, kind)
    seen.add(id(value))
    if kind in COPIED:
        ev.copies.observe(value)
        return all([_settle(ev, v, seen) for v in entries_of(value)])
    if isinstance(value, tuple) or kind in (frozenset, slice):
        items = (value.start, value.stop, value.step) if kind is slice else value
        plain = _settle_class(ev, kind)
        return all([_settle(ev, v, seen) for v in items]) and plain
    if isinstance(value, types.MethodType):
        return _settle(ev, value.__self__, seen)
    if isinstance(value, types.BuiltinFunctionType):
        return value.__self__ is None or _settle(ev, value.__self__, seen)
    if isinstance(value, functools.partial):
        return _settle(ev, (value.func, value.args, value.keywords), seen)
    plain = _settle_class(ev, kind)
    if not is_outside(ev, value):
        return True
    if not plain or is_live(ev, value) or ev.outside.writes_to(value):
        return False
    if isinstance(value, CONTAINERS):
        if any(id(v) in ev.outside.changed_containers for v in entries_of(value)):
            return False
        return all([_settle(ev, v, seen) for v in _read_entries(ev, value)])
    return _settle_object(ev, value, seen)


def _read_entries(ev: Evaluation, value: Value) -> list[Value]:
    """Return the items of an outside container, recorded as constants.

    The guard compares the items before each later call of the compiled function.
    Lists, dicts and sets among the items are replaced by copies.
    """
    label = f"a {type(value).__name__}"
    entries = entries_of(value)
    ev.captures.add("entries", value, None, entries, label)
    ev.keep.append(value)
    return [ev.copies.imported(v, label) for v in entries]


def observe(ev: Evaluation, value: Value) -> None:
    """Record the items of nested containers as constants, before framework code reads them.

    The items are compared before each later call of the compiled function. Arrays among them are
    not recorded: an array that is passed to an op becomes an input of the graph. With a Decimal the
    context is recorded, on which results depend.
    """
    kind = type(value)
    if kind in _PLAIN:
        return
    if kind is decimal.Decimal:
        ev.captures.decimal_context()
    elif kind in COPIED:
        ev.copies.observe(value)
        for v in entries_of(value):
            if type(v) in _NESTED or isinstance(v, CONTAINERS):
                observe(ev, v)
    elif isinstance(value, tuple):
        for v in value:
            observe(ev, v)
    elif isinstance(value, CONTAINERS) and is_outside(ev, value):
        refuse_stream(ev, value, kind.__name__)
        for v in _read_entries(ev, value):
            observe(ev, v)


_NESTED = {list, dict, set, tuple, decimal.Decimal}
# Frequent classes that contain nothing; asking whether another one is a container takes long.
_PLAIN = {bool, int, float, str, type(None), Tensor, GraphTensor}


def owned_result(ev: Evaluation, found: Value, given: Value) -> Value:
    """Return the result of Python code that ran at compile time, for use by evaluated code.

    A new object counts as made by evaluated code. A list, dict or set from outside the function in
    the result is replaced by its copy.

    Args:
        ev: the evaluation.
        found: the result.
        given: the arguments of the code, for which `settle` returned True.
    """
    if isinstance(found, (int, float, str, bool, type(None))):
        return found
    known = reachable(given)
    if id(found) in known:
        return _imported(ev, found, known)
    ev.owned.add(found, [x for x in known.values() if isinstance(x, np.ndarray)])
    kind = type(found)
    if kind is list:
        found[:] = [_imported(ev, v, known) for v in found]
    elif kind is dict:
        found.update({k: _imported(ev, v, known) for k, v in found.items()})
    elif kind is tuple:
        return tuple(_imported(ev, v, known) for v in found)
    return found


def _imported(ev: Evaluation, value: Value, known: dict[int, Value]) -> Value:
    """Return the copy of a list, dict or set from outside; return any other value unchanged.

    Args:
        ev: the evaluation.
        value: a result of code that ran at compile time, or an item of one.
        known: by id, everything that the arguments of that code hold. Only such values can be from
            outside.
    """
    if type(value) not in COPIED or id(value) not in known:
        return value
    if id(value) in ev.copies.originals or id(value) in ev.owned.objects:
        return value
    return ev.copies.imported(value, f"a {type(value).__name__}")


def reachable(value: Value) -> dict[int, Value]:
    """Return, by id, an object and everything that its containers and attributes hold."""
    known: dict[int, Value] = {}
    _collect(value, known)
    return known


_VIEWS: tuple[Value, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def _collect(value: Value, known: dict[int, Value]) -> None:
    """Add an object and all that containers in it hold to `known`, by id."""
    if isinstance(value, (int, float, str, bool, type(None), HostValue)) or id(value) in known:
        return
    known[id(value)] = value
    kind: Value = type(value)
    if isinstance(value, np.ndarray):
        return
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)) or kind in _VIEWS:
        for v in value:
            _collect(v, known)
    elif isinstance(value, (dict, types.MappingProxyType)):
        for v in value.values():
            _collect(v, known)
    elif isinstance(value, (types.BuiltinFunctionType, types.MethodType)):
        _collect(value.__self__, known)
    elif not isinstance(value, (*IMMUTABLE, Cell)) and hasattr(value, "__dict__"):
        for v in vars(value).values():
            _collect(v, known)


def _settle_array(ev: Evaluation, value: np.ndarray) -> bool:
    """Record the contents of an array from outside as a constant; return False if impossible.

    The constant is compared with the array before each later call. Recording is impossible for
    large arrays, arrays of objects, and arrays that the function changes.
    """
    if ev.owned.owns_data(value):
        return True
    if value.dtype.hasobject or value.nbytes > _COMPARED_BYTES or is_live(ev, value):
        return False
    ev.captures.contents(value)
    return True


# Methods that make objects; Python code that only reads an object does not call them.
_MAKING = {"__init__", "__new__", "__post_init__", "__init_subclass__", "__class_getitem__"}


def _settle_class(ev: Evaluation, kind: type) -> bool:
    """Record the special methods of a class; return False if the user wrote one of them.

    Python code that reads an object of the class could run such a method. The methods are compared
    before each later call, because a program may add one to its class.
    """
    classes = tuple(c for c in kind.__mro__ if is_users_class(c))
    if not classes:
        return True
    found = _special_methods(*classes)
    label = f"the special methods of {kind.__name__}"
    ev.captures.bases_of(kind)
    ev.captures.add("answer", _special_methods, classes, found, label)
    calling = issubclass(kind, type)  # a call of a class is evaluated
    return not any(is_user_function(f) for n, f in found if not (calling and n == "__call__"))


def _special_methods(*classes: type) -> tuple[tuple[str, Value], ...]:
    """Return (name, method) of the special methods that classes define, without bases."""
    return tuple(
        (name, found)
        for cls in classes
        for name, found in vars(cls).items()
        if name[:2] == "__" and name not in _MAKING and (callable(found) or found is None)
    )


def _settle_object(ev: Evaluation, value: Value, seen: set[int]) -> bool:
    """Record all attributes of an object, recursively; return False if that is impossible.

    The attributes are constants, which the guard compares before each later call. Recording is
    impossible for objects of library classes, for classes with special methods or properties that
    the user wrote, and if the function has changed an attribute. `seen` are the ids of the objects
    that are already recorded.
    """
    kind = type(value)
    if is_host(kind.__module__) and kind is not types.SimpleNamespace:
        return False
    for cls in kind.__mro__[:-1]:
        for name, found in vars(cls).items():
            if isinstance(found, property) or special_method(ev, found, "__get__") is not None:
                return False
            if not name.startswith("__") and not callable(found):
                ev.captures.class_attribute(kind, name)
    ev.captures.class_of(value)
    names = list(getattr(value, "__dict__", ()))
    ev.captures.add("answer", _attributes, (value,), _attributes(value),
                    f"attributes of a {kind.__name__}")  # fmt: skip
    slots = [n for cls in kind.__mro__ for n in getattr(cls, "__slots__", ()) if hasattr(value, n)]
    for name in [*names, *slots]:
        held = getattr(value, name)
        ev.captures.add("attribute", value, name, held, f"{kind.__name__}.{name}")
        if id(held) in ev.outside.changed_containers:
            return False  # code would read the original, which has not changed yet
        if not _settle(ev, ev.copies.imported(held, f"{kind.__name__}.{name}"), seen):
            return False
    ev.keep.append(value)
    return True


def _attributes(value: Value) -> tuple[Value, ...]:
    return tuple(getattr(value, "__dict__", {}).items())


# ---- operations that Python carries out when the graph runs -------------------------------------


def defer(ev: Evaluation, f: Callable[..., Value], args: Args, kwargs: Kwargs) -> Value:
    """Append a node that calls a function which may change outside objects; return its results.

    The objects are the receiver and the arguments of the function. Every later operation on them is
    also run by Python at run time.

    Raises:
        UnsupportedSyntaxError: at syntax level STRICT.
        Restart: one of the objects was already read as a constant.
    """
    receiver = getattr(f, "__self__", None)
    targets = [x for x in (receiver, *args, *kwargs.values()) if is_outside(ev, x)]
    if ev.strict:
        name = _name(f)
        kinds = ", ".join(dict.fromkeys(type(x).__name__ for x in targets)) or "Python"
        raise UnsupportedSyntaxError(
            f"{name}: got an operation inside jit at STRICT on an object from outside ({kinds}) "
            "that only Python can carry out",
            construct=name,
            remedy="Pass Tensors, move it out of the compiled function, or use "
            "ms.set_context(jit_syntax_level=ms.LAX)",
        )
    for target in targets:
        check_no_weak_reference(target, (args, kwargs))
    change(ev, targets)
    return run_on_host(ev, f, args, kwargs, _name(f), objects=True)


def check_no_weak_reference(holder: Value, held: Value) -> None:
    """Raise if a function or class of the module `weakref` would receive a graph value.

    Args:
        holder: the function or class.
        held: its arguments.

    Raises:
        UnsupportedSyntaxError: an argument is or holds a graph value. The tensor of a graph value
            does not live as long as the variable in uncompiled code, so that the weak reference
            would die at a different time.
    """
    bound = isinstance(holder, (types.MethodType, types.BuiltinFunctionType))
    modules = {type(holder.__self__ if bound else holder).__module__}
    if isinstance(holder, (type, types.FunctionType)):
        modules.add(holder.__module__)
    if not modules.isdisjoint(("weakref", "_weakref", "_weakrefset")) and depends_on_graph(held):
        raise UnsupportedSyntaxError(
            f"{_name(holder)}: got a weak reference to a Tensor inside jit, which would not live "
            "as long as its variable",
            construct="weakref",
            remedy="Make it outside the compiled function",
        )


def change(ev: Evaluation, targets: list[Value]) -> None:
    """Record that the compiled function changes the objects `targets` when it runs.

    The objects were made outside the function.

    Raises:
        Restart: one of them was already read as a constant.
    """
    for target in targets:
        key = _key(target)
        ev.outside.targets[id(target)] = target
        if key in ev.outside.written:
            continue
        ev.outside.written |= {key, _key(base_array(target))}
        ev.keep.append(target)
        read = {id(target): target}
        if any(c.concerns(read) for c in ev.captures.items.values()):
            raise Restart(type(target).__name__)
    ev.outside.has_writes = True


def uses_up(ev: Evaluation, *values: Value) -> None:
    """Record that calls may change the given outside objects, as `next` changes an iterator.

    Each call of the compiled function must then work on the object that exists at that call. If a
    location that leads to the object, such as the attribute that holds the iterator, has changed
    since compilation, the function is compiled again, whatever the user's setting `stale_captures`
    says.
    """
    ev.outside.targets.update({id(x): x for x in values if is_outside(ev, x)})


def check_made_here(ev: Evaluation, receiver: Value, name: str) -> None:
    """Raise if code would change an object that it made before the current branch or loop.

    Such a change depends on a graph condition, or happens in each iteration of a graph loop, so it
    cannot be made once at compile time.

    Args:
        ev: the evaluation.
        receiver: the object.
        name: name of the operation, for the message.

    Raises:
        UnsupportedSyntaxError: the object was made before the current branch or loop.
    """
    depth = ev.owned.depths.get(id(receiver))
    if id(receiver) in ev.owned.objects and depth != ev.builder.depth:
        raise UnsupportedSyntaxError(
            f"{name}: got a change of a {type(receiver).__name__} under a condition or in a loop "
            "on Tensors inside jit",
            construct=name,
            remedy="Use a list or a dict, or move it out of the condition",
        )


def refuse_stream(ev: Evaluation, value: Value, what: str) -> None:
    """Raise NeedsValue if a value's items are known only at run time, such as those of an iterator.

    Args:
        ev: the evaluation.
        value: the value.
        what: what needs the items, for the message.
    """
    if is_live(ev, value):
        raise NeedsValue(
            f"{what}: got a {type(value).__name__} from outside whose items are known only when "
            "the compiled function runs; wanted a list, tuple or Tensor"
        )
