"""Evaluates reads, writes and deletions of attributes in compiled code.

Expressions, assignments and built-in functions call this module. The value of an attribute that is
read is captured: it becomes a constant of the graph, compared before each call. A write becomes an
effect of the graph, unless the object was made at compile time. The user's object itself must never
be changed while compiling.
"""

from __future__ import annotations

import enum
import functools
import types

from ...dims import attribute, is_symbolic
from ...errors import ArgumentError, StrictAttributeError, UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.values import GraphObject, GraphScalar, HostValue
from ...nn import _tree
from ...nn.cell import Cell
from ...parameter import Parameter
from ...tensor import Tensor
from ..libraries import in_classes, is_framework, is_host, is_user_function, is_users_class
from ..state.evaluation import Evaluation
from ..state.journal import MISSING, Key
from ..types import Value
from ..values.flow import Maybe, Undefined
from ..values.functions import Choice, Function
from .class_attributes import (
    label,
    native_attribute,
    of_class,
    of_super,
    read_and_capture,
    unmodelled,
)
from .dispatch import call, call_object, replaces
from .host import run_on_host
from .outside import check_made_here, is_live, special_method, uses_up
from .variables import read_missing, read_outside, write_outside

# Attributes of a tensor that follow from its shape and dtype.
_OF_TYPE = {"shape", "dtype", "size", "ndim", "itemsize", "nbytes", "strides"}
# Tensor methods that return the data as a Python or NumPy object.
HOST_METHODS = {"asnumpy", "numpy", "tolist", "item", "__array__", "__dlpack__"}


# Types of class attributes that read data of the object, such as a slot, or `args` of an error.
_OWN_DATA = (types.MemberDescriptorType, types.GetSetDescriptorType)


def get_attribute(ev: Evaluation, owner: Value, name: str, node: Value = None) -> Value:
    """Trace the expression `owner.name` and return its value.

    The value of an attribute of an object from outside the function is captured: it becomes a
    constant, compared before each later call. A property or `__getattr__` that the user wrote is
    evaluated from source.

    Args:
        ev: the evaluation.
        owner: the object.
        name: the name of the attribute.
        node: the attribute's syntax, for the name in messages.
    """
    if isinstance(owner, (GraphTensor, HostValue)):
        return _of_graph_value(ev, owner, name)
    if is_symbolic(owner):
        return attribute(owner, name)
    if isinstance(owner, Choice):
        owner.as_python()
    if isinstance(owner, Function):
        if owner.original is not None:
            return get_attribute(ev, owner.original, name, node)
        if name not in ("__name__", "__qualname__"):
            raise unmodelled(owner, name, "got an attribute of a function that is made")
    if isinstance(owner, Tensor):
        return _of_tensor(ev, owner, name, node)
    if isinstance(owner, types.ModuleType):
        key = ("item", id(vars(owner)), name)
        if key in ev.outside.values:
            return _written_value(ev, owner, name, key)
        try:
            value = native_attribute(owner, name)
        except AttributeError:
            read_missing(ev, "item", vars(owner), name, label(name, node))
            raise
        if is_framework(owner.__name__) or (is_host(owner.__name__) and callable(value)):
            if name in vars(owner):
                ev.captures.add("item", vars(owner), name, value, label(name, node))
            return value
        if name == "__dict__":
            return _read_dict(ev, owner, vars(owner), node)
        if name in vars(owner):  # the same location as a global of the module
            return read_outside(ev, "item", vars(owner), name, value, label(name, node))
        return read_and_capture(ev, owner, name, value, node)
    key = ("attribute", id(owner), name)
    if key in ev.outside.values:
        return _written_value(ev, owner, name, key)
    if isinstance(owner, super):
        return of_super(ev, owner, name, node)
    if id(owner) in ev.owned.objects:
        return _of_made_object(ev, owner, name)
    if isinstance(owner, types.CellType) and name == "cell_contents":
        return read_outside(ev, "cell", owner, None, owner.cell_contents, name)
    if isinstance(owner, type):
        return of_class(ev, owner, name, node)
    return _of_outside_object(ev, owner, name, node)


def _of_tensor(ev: Evaluation, owner: Tensor, name: str, node: Value) -> Value:
    """Return an attribute of a tensor from outside the function, or one that is a constant."""
    made_here = id(owner) in ev.owned.tensors
    held = getattr(owner, "__dict__", {})
    if name in held and not made_here:  # the user's, or a plain option of a Parameter
        found = read_outside(ev, "item", held, name, held[name], label(name, node))
        if isinstance(found, (bool, str, int, type(None))):
            ev.captures.add("item", held, name, found, name, exact=True)
        return found
    try:
        found = getattr(owner, name)
    except AttributeError:
        _record_missing(ev, owner, name)
        raise
    of_users_class = ev.captures.class_attribute(type(owner), name)
    if made_here:
        return found
    text = label(name, node)
    if isinstance(owner, Parameter) and isinstance(found, (bool, str, int, type(None))):
        ev.captures.add("attribute", owner, name, found, text, exact=True)
    if isinstance(owner, Parameter) and callable(found):  # its own attribute would hide it
        ev.captures.add("item", held, name, MISSING, text)
    if name in _OF_TYPE:
        ev.captures.form_of(owner, f"the type of {text.rpartition('.')[0] or 'a Tensor'}")
    elif of_users_class:
        ev.captures.class_of(owner)
        ev.captures.add("attribute", owner, name, found, text)
    return found


def _record_missing(ev: Evaluation, owner: Tensor, name: str) -> None:
    """Record for the guards of the program that a tensor has no attribute `name`.

    Neither the tensor nor its class has it. A later call compiles again if it has been added.
    """
    ev.captures.class_attribute(type(owner), name)
    ev.captures.class_attribute(type(owner), "__getattr__")
    held = getattr(owner, "__dict__", None)
    if held is not None and id(owner) not in ev.owned.tensors:
        ev.captures.add("item", held, name, MISSING, f"{type(owner).__name__}.{name}")
        ev.keep.append(owner)


def _written_value(ev: Evaluation, owner: Value, name: str, key: Key) -> Value:
    """Return the value that compiled code assigned to an attribute of an object from outside it.

    Raises:
        AttributeError: compiled code has deleted the attribute.
        UnsupportedSyntaxError: only the running graph knows whether the attribute was assigned.
    """
    ev.journal.note_read("item", ev.outside.values, key)
    value = ev.outside.values[key]
    if value is MISSING:
        raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}")
    if isinstance(value, (Undefined, Maybe)):
        raise unmodelled(owner, name, "got an attribute that a condition on a Tensor may have set")
    return value


def _of_made_object(ev: Evaluation, owner: Value, name: str) -> Value:
    """Return an attribute of an object that evaluated code made.

    A value found in the class, such as a method, is recorded, to be compared before each later call
    of the compiled function, because the class itself is from outside that function.
    """
    if isinstance(owner, type):
        return native_attribute(owner, name)
    intercepted = special_method(ev, owner, "__getattribute__")
    if intercepted is not None:
        return call(ev, intercepted, (owner, name), {})
    ev.captures.class_attribute(type(owner), name)
    found = in_classes(type(owner), name, MISSING)
    held = name in getattr(owner, "__dict__", ())
    descriptor = None if found is MISSING else special_method(ev, found, "__get__")
    if descriptor is not None and (hasattr(type(found), "__set__") or not held):
        return call(ev, descriptor, (found, owner, type(owner)), {})
    if _staged_property(owner, name):
        return _property(ev, owner, name)
    if held:
        return native_attribute(owner, name)
    if found is MISSING and name != "__dict__":
        otherwise = special_method(ev, owner, "__getattr__")
        if otherwise is not None:
            return call(ev, otherwise, (owner, name), {})
    value = native_attribute(owner, name)
    if isinstance(found, _OWN_DATA):
        if type(value) is dict and id(value) not in ev.owned.objects:  # as old as its owner
            ev.owned.add(value)
            ev.owned.depths[id(value)] = ev.owned.depths[id(owner)]
        return value
    return ev.copies.imported(value, f"{type(owner).__name__}.{name}")


def host_method_refused(name: str) -> StrictAttributeError:
    """Return the error for a Tensor method that gives host data, such as `item`, at STRICT."""
    return StrictAttributeError(
        f"In JIT strict mode a Tensor has no {name!r}: its data are known only when the "
        "function runs",
        construct=name,
        remedy="Compute with the Tensor, move the call out, or use "
        "ms.set_context(jit_syntax_level=ms.LAX)",
    )


def _of_outside_object(ev: Evaluation, owner: Value, name: str, node: Value) -> Value:
    """Return an attribute of an object from outside the function, by Python's rules of lookup."""
    intercepted = special_method(ev, owner, "__getattribute__")
    if intercepted is not None:
        return call(ev, intercepted, (owner, name), {})
    held = getattr(owner, "__dict__", None)
    found = in_classes(type(owner), name, MISSING)
    if isinstance(owner, enum.Enum) and isinstance(found, types.DynamicClassAttribute):
        return get_attribute(ev, owner, f"_{name}_", node)  # `name` or `value`
    if is_live(ev, owner) and not callable(found):
        return run_on_host(ev, getattr, (owner, name), {}, "getattr")
    descriptor = None if found is MISSING else special_method(ev, found, "__get__")
    if descriptor is not None and (
        hasattr(type(found), "__set__") or held is None or name not in held
    ):
        ev.captures.method(owner, name, None)
        return call(ev, descriptor, (found, owner, type(owner)), {})
    if held is not None and name in held and not _staged_property(owner, name):
        if isinstance(found, functools.cached_property):  # another object would compute it
            uses_up(ev, owner)
        if isinstance(owner, Cell) and is_users_class(type(owner)):
            # a property of this name would take precedence; guards of Cells do not notice one
            ev.captures.class_attribute(type(owner), name)
        return read_and_capture(ev, owner, name, held[name], node)
    if isinstance(found, functools.cached_property) and not is_framework(type(owner).__module__):
        return _computed_once(ev, owner, name, found, held)
    if _staged_property(owner, name):
        ev.captures.method(owner, name, None)
        return _property(ev, owner, name)
    if found is MISSING and special_method(ev, owner, "__getattr__") is not None:
        ev.captures.class_attribute(type(owner), name)
        ev.captures.class_of(owner)
        if held is not None:
            ev.captures.add("item", held, name, MISSING, f"{type(owner).__name__}.{name}")
        return call(ev, type(owner).__getattr__, (owner, name), {})
    if name == "__dict__" and held is not None:
        return _read_dict(ev, owner, held, node)
    return _native_outside(ev, owner, name, found, node)


def _computed_once(
    ev: Evaluation,
    owner: Value,
    name: str,
    found: Value,
    held: dict[str, Value] | None,
) -> Value:
    """Compute a cached property of an object from outside the function, and store it there.

    `found` is the property; `held` is the `__dict__` of the object, which has no value of it yet.
    """
    ev.captures.method(owner, name, None)
    text = f"{type(owner).__name__}.{name}"
    if held is not None:
        ev.captures.add("item", held, name, MISSING, text, exact=True)
    # the object stores the value, so it must be exact
    outer, ev.captures.all_exact = ev.captures.all_exact, True
    made = call(ev, found.func, (owner,), {})
    ev.captures.all_exact = outer
    write_outside(ev, "attribute", owner, name, made, text)
    return made


def _native_outside(ev: Evaluation, owner: Value, name: str, found: Value, node: Value) -> Value:
    """Return an attribute that Python finds without code of the user, and capture it.

    `found` is what the class of `owner` has under the name.
    """
    try:
        value = native_attribute(owner, name)
    except AttributeError:
        read_missing(ev, "attribute", owner, name, label(name, node))
        ev.captures.class_attribute(type(owner), name)
        raise
    if callable(value) and isinstance(found, _OWN_DATA):  # such as the factory of a defaultdict
        return read_and_capture(ev, owner, name, value, node)
    if callable(value):
        ev.captures.method(owner, name, value)
    elif is_framework(type(owner).__module__):
        ev.captures.class_attribute(type(owner), name)
    if (
        callable(value)
        or is_framework(type(owner).__module__)
        or type(owner) in (list, dict, set, tuple, str)
    ):
        return value
    # a class attribute or a slot: captured on the object, which may get its own attribute
    return read_and_capture(ev, owner, name, value, node)


def _read_dict(ev: Evaluation, owner: Value, held: dict[str, Value], node: Value) -> Value:
    """Return the `__dict__` of an object from outside the function, as a read-only copy.

    Args:
        ev: the evaluation.
        owner: the object.
        held: the `__dict__`.
        node: the syntax of the attribute, for messages.

    Raises:
        UnsupportedSyntaxError: the function also assigns attributes of the object.
    """
    written = any(where == id(held) for _, where, _ in ev.outside.written)
    if written or ev.outside.writes_to(owner):
        raise unmodelled(owner, "__dict__", "got the dict of an object whose attributes it sets")
    found = read_outside(ev, "attribute", owner, "__dict__", held, label("__dict__", node))
    ev.copies.read_only.add(id(found))
    return found


def _staged_property(owner: Value, name: str) -> bool:
    """Return whether an attribute is a property of a user's class, whose getter must be traced."""
    found = in_classes(type(owner), name)
    return isinstance(found, property) and not is_framework(type(owner).__module__)


def _property(ev: Evaluation, owner: Value, name: str) -> Value:
    """Trace the getter of a property of a user's class, and return its result."""
    return call(ev, in_classes(type(owner), name).fget, (owner,), {})


# Methods of every Tensor that do something else for a Parameter.
_OF_PARAMETERS = {"clone", "init_data", "value"}


def _of_graph_value(ev: Evaluation, owner: Value, name: str) -> Value:
    """Return the value of an attribute of a graph tensor, graph number or run-time object.

    Attributes of numbers and objects are read by Python when the graph runs.
    """
    if isinstance(owner, GraphObject):
        found = run_on_host(ev, getattr, (owner, name), {}, "getattr")
        return found
    if isinstance(owner, GraphScalar):
        kind = {"int": int, "float": float, "bool": bool}[owner._type.name]
        if name == "__class__":
            return kind
        if not hasattr(kind, name):
            raise AttributeError(f"{owner._type.name!r} object has no attribute {name!r}")
        return run_on_host(ev, getattr, (owner, name), {}, "getattr")
    if name == "__class__":
        return Tensor
    if name in HOST_METHODS and ev.strict:
        raise host_method_refused(name)
    if name in _OF_PARAMETERS:
        ev.ask_class(owner, name)
    ev.captures.class_attribute(Tensor, name)
    if in_classes(Tensor, name, MISSING) is MISSING:
        ev.captures.class_attribute(Tensor, "__getattr__")
    users = vars(Tensor).get(name)  # what the user gave to the class
    if isinstance(users, property) and is_user_function(users.fget):
        return call(ev, users.fget, (owner,), {})
    try:
        return getattr(owner, name)
    except AttributeError as error:
        if "'GraphTensor' object" not in str(error):
            raise
        if hasattr(ev.inputs.parameters.get(id(owner)), name):
            ev.ask_class(owner, name)
        raise AttributeError(f"'Tensor' object has no attribute {name!r}") from None


def set_attribute(ev: Evaluation, owner: Value, name: str, value: Value) -> None:
    """Trace `owner.name = value`: assign immediately, or append a node that assigns at run time.

    An object that evaluated code made is changed immediately; any other object when the graph runs.
    A setter that the user wrote (`__setattr__`, a property or `__set__`) is traced. The value for a
    Parameter of a Cell is written into this Parameter, as `_write_parameter` describes.

    Raises:
        UnsupportedSyntaxError: `owner` is a Parameter that evaluated code did not make; or its
            class may refuse the assignment, as a frozen dataclass does; or the object is from
            outside the function and `_set_outside` refuses the assignment.
    """
    if isinstance(owner, Parameter) and id(owner) not in ev.owned.tensors:
        raise UnsupportedSyntaxError(
            f"setattr: got a change of {name!r} of the Parameter {owner.name} inside jit",
            construct="setattr",
            remedy="Set it outside the compiled function",
        )
    if isinstance(owner, (GraphTensor, Tensor)):
        try:
            setattr(owner, name, value)
        except AttributeError as error:  # the user does not know this class
            if isinstance(owner, GraphTensor):
                ev.ask_class(owner, name)
            raise AttributeError(str(error).replace("'GraphTensor'", "'Tensor'")) from None
        return
    if isinstance(owner, GraphObject):
        run_on_host(ev, setattr, (owner, name, value), {}, "setattr", ())
        return
    if isinstance(owner, Cell) and name in owner._params:
        if isinstance(value, Parameter) and value is owner._params[name]:
            return
        if isinstance(owner._params[name], Parameter):
            _write_parameter(owner, name, value)
            return
    custom = special_method(ev, owner, "__setattr__")
    if custom is not None:
        call(ev, custom, (owner, name, value), {})
        return
    _store_attribute(ev, owner, name, value)


@replaces(super)
def _super(ev: Evaluation, *args: Value) -> Value:
    """Return the `super` object of a call `super(cls, owner)`."""
    return call_object(ev, super, args, {}) if len(args) != 2 else super(*args)


@replaces(object.__setattr__)
def _store_by_object(ev: Evaluation, owner: Value, name: Value, value: Value) -> Value:
    """Trace `object.__setattr__(owner, name, value)`, as a class's own `__setattr__` calls it."""
    kind: Value = type(owner)
    plain = kind.__module__ != "builtins" and not is_host(kind.__module__)
    if not plain or isinstance(owner, (Tensor, Cell, HostValue)) or not isinstance(name, str):
        return call_object(ev, object.__setattr__, (owner, name, value), {})
    _store_attribute(ev, owner, name, value, by_object=True)
    return None


def _store_attribute(
    ev: Evaluation, owner: Value, name: str, value: Value, by_object: bool = False
) -> None:
    """Trace `owner.name = value`, without a `__setattr__` of the user.

    `by_object` says whether the code calls `object.__setattr__`, whatever the class of `owner` has.
    The other arguments and the errors are those of `set_attribute`.
    """
    found = in_classes(type(owner), name, None)
    if is_users_class(type(owner)):
        ev.captures.class_attribute(type(owner), name)
    if isinstance(found, property) and found.fset is not None:
        ev.captures.method(owner, name, None)
        call(ev, found.fset, (owner, value), {})
        return
    descriptor = None if found is None else special_method(ev, found, "__set__")
    if descriptor is not None:
        ev.captures.method(owner, name, None)
        call(ev, descriptor, (found, owner, value), {})
        return
    if not _stores_attribute(owner, found, by_object):
        raise unmodelled(owner, name, "got an assignment that the class may refuse")
    if id(owner) in ev.owned.objects:
        if hasattr(owner, "__dict__") and not hasattr(type(found), "__set__"):
            ev.journal.touch("attribute", owner, name)
            if not isinstance(owner, (type, Cell)):
                owner.__dict__[name] = value
                return
        else:  # a slot
            check_made_here(ev, owner, "setattr")
        object.__setattr__(owner, name, value) if by_object else setattr(owner, name, value)
        return
    _set_outside(ev, owner, name, value)


def _set_outside(ev: Evaluation, owner: Value, name: str, value: Value) -> None:
    """Append a node that runs `owner.name = value`, for an object from outside the function.

    Raises:
        UnsupportedSyntaxError: at syntax level STRICT; or a Parameter or Cell is assigned to a
            Cell; or the function has read the `__dict__` of `owner`; or `owner` is a class or a
            function; or `name` is special, such as `__call__`.
    """
    if ev.strict:
        raise UnsupportedSyntaxError(
            f"setattr: got an assignment to the attribute {name!r} of {type(owner).__name__} "
            "inside jit at STRICT",
            construct="setattr",
            remedy="The attribute should be a Parameter made in __init__, or use "
            "ms.set_context(jit_syntax_level=ms.LAX)",
        )
    if isinstance(value, (Parameter, Cell)) and isinstance(owner, Cell):
        raise UnsupportedSyntaxError(
            f"setattr: got a {type(value).__name__} for {type(owner).__name__}.{name} inside jit",
            construct="setattr",
            remedy="Make Parameters and Cells in __init__",
        )
    if isinstance(owner, types.CellType) and name == "cell_contents":
        write_outside(ev, "cell", owner, None, value, name)
        return
    if ev.copies.is_copied(getattr(owner, "__dict__", None)):
        raise unmodelled(owner, name, "got an assignment to an object whose dict is read")
    if isinstance(owner, types.ModuleType):
        write_outside(ev, "item", vars(owner), name, value, f"{owner.__name__}.{name}")
        return
    special = name.startswith("__") and name.endswith("__")
    if special or isinstance(owner, (type, types.FunctionType, Function, types.MethodType)):
        raise unmodelled(owner, name, "got an assignment that changes how code behaves")
    write_outside(ev, "attribute", owner, name, value, f"{type(owner).__name__}.{name}")


def _stores_attribute(owner: Value, found: Value, by_object: bool) -> bool:
    """Return whether assigning to an attribute only stores the value in the object.

    Args:
        owner: the object.
        found: what its class has under the attribute's name, or None.
        by_object: whether `object.__setattr__` assigns, not the `__setattr__` of the class.
    """
    setter = getattr(type(owner), "__setattr__")  # noqa: B009  (of the class, not of an object)
    is_function = isinstance(setter, types.FunctionType) and not by_object
    if is_function and not is_framework(setter.__module__):
        return False  # the one of a frozen dataclass, or of a library
    if isinstance(found, property):
        return False
    return hasattr(owner, "__dict__") or hasattr(type(found), "__set__")


def _write_parameter(owner: Cell, name: str, value: Value) -> None:
    """Trace an assignment to a Cell's Parameter, which replaces the Parameter's data in place.

    Raises:
        ArgumentError: the value is itself a Parameter, or a string.
        UnsupportedSyntaxError: the value is None.
    """
    if isinstance(value, Parameter):
        raise ArgumentError(
            f"{type(owner).__name__}: got the Parameter {value.name} for {name!r} inside jit; "
            "wanted a Tensor to write into the Parameter that is there"
        )
    if value is None:
        raise UnsupportedSyntaxError(
            f"setattr: got None for the Parameter {name!r} inside jit",
            construct="setattr",
            remedy="Assign a Tensor, or take the Parameter away outside the compiled function",
        )
    present = owner._params[name]
    if isinstance(value, str) or (isinstance(value, (int, float)) and present.size != 1):
        raise ArgumentError(_tree.no_value(owner, name, value))
    if not isinstance(value, Tensor):
        value = Tensor(value)
    present.set_data(value, slice_shape=True)


def delete_attribute(ev: Evaluation, owner: Value, name: str) -> None:
    """Trace `del owner.name`, for an object that evaluated code made.

    Raises:
        UnsupportedSyntaxError: the object is from outside the function, or its class defines how
            the attribute is deleted.
    """
    get_attribute(ev, owner, name)
    kind: Value = type(owner)
    plain = kind.__delattr__ is object.__delattr__ and name in getattr(owner, "__dict__", ())
    described = hasattr(type(in_classes(kind, name)), "__delete__")
    if id(owner) in ev.owned.objects and plain and not described:
        ev.journal.touch("attribute", owner, name)
        owner.__dict__.pop(name)
        return
    raise UnsupportedSyntaxError(
        f"Delete: got the attribute {name!r} of {kind.__name__}, an object from outside or of a "
        "class that deletes it in its own way, inside jit",
        construct="Delete",
        remedy="Move the `del` out of the compiled function",
    )
