"""Reads attributes of classes, and through `super()`, in compiled code.

`attributes` calls this module for the owners that are classes or `super()` objects, and uses its
functions to record what it reads. What a search finds in each class of the user is recorded as a
constant, which is compared before each later call.
"""

from __future__ import annotations

import ast
import functools

from ...errors import UnsupportedSyntaxError
from ...nn.cell import Cell
from ...parameter import Parameter
from ..libraries import in_classes, is_framework, is_user_function, is_users_class
from ..state.evaluation import Evaluation
from ..state.journal import MISSING
from ..types import Value
from .dispatch import call
from .outside import special_method
from .variables import read_outside

_ALWAYS_KEYED = {"training", "requires_grad"}


def unmodelled(owner: Value, name: str, what: str) -> UnsupportedSyntaxError:
    """Return the error for an attribute operation that cannot become a graph node.

    `what` describes the operation in the message. At syntax level LAX this error makes the whole
    function run uncompiled, as plain Python.
    """
    return UnsupportedSyntaxError(
        f"setattr: {what} inside jit: {name!r} of {type(owner).__name__}",
        construct="setattr",
        remedy="Move it out of the compiled function, or run the function line by line",
    )


def label(name: str, node: Value) -> str:
    """Return the name of an attribute for messages: its source text, such as `net.size`, if known.

    The plain name is returned if `node` is None.
    """
    return f"{ast.unparse(node.value)}.{name}" if isinstance(node, ast.Attribute) else name


def native_attribute(owner: Value, name: str) -> Value:
    """Return `owner.name` as Python finds it."""
    return getattr(owner, name)


def read_and_capture(ev: Evaluation, owner: Value, name: str, value: Value, node: Value) -> Value:
    """Capture an attribute of an object from outside the function and return its value.

    To capture is to record the value as a constant, which is compared before each call.
    """
    text = label(name, node)
    found = read_outside(ev, "attribute", owner, name, value, text)
    if isinstance(value, (Parameter, Cell)) or (name in _ALWAYS_KEYED and isinstance(owner, Cell)):
        ev.captures.add("attribute", owner, name, value, text, exact=True)
    if isinstance(value, Cell):
        ev.captures.members(value)
    return found


def of_class(ev: Evaluation, owner: type, name: str, node: Value) -> Value:
    """Return the attribute `name` of a class, found as Python finds it.

    A property or `__getattr__` of the user's metaclass, and a `__get__` of the user's descriptor,
    are evaluated.
    """
    if not is_users_class(owner):
        if is_framework(owner.__module__):
            ev.captures.class_attribute(owner, name)
        return native_attribute(owner, name)
    intercepted = special_method(ev, owner, "__getattribute__")
    if intercepted is not None:
        return call(ev, intercepted, (owner, name), {})
    ev.captures.class_attribute(owner, name)
    ev.captures.class_attribute(type(owner), name)
    above, own = (in_classes(k, name, MISSING) for k in (type(owner), owner))
    if isinstance(above, property) and is_user_function(above.fget):
        return call(ev, above.fget, (owner,), {})
    descriptor = None if own is MISSING else special_method(ev, own, "__get__")
    if descriptor is not None:
        return call(ev, descriptor, (own, None, owner), {})
    if own is MISSING and above is MISSING:
        otherwise = special_method(ev, owner, "__getattr__")
        if otherwise is not None:
            return call(ev, otherwise, (owner, name), {})
    value = native_attribute(owner, name)
    if name in ("__mro__", "__bases__", "__base__"):
        ev.captures.bases_of(owner)
        return value
    if (own is not MISSING and not callable(value)) or name in ("__name__", "__qualname__"):
        return read_and_capture(ev, owner, name, value, node)
    return value


def of_super(ev: Evaluation, owner: Value, name: str, node: Value) -> Value:
    """Return the attribute `name` of a `super()` object, found as Python finds it.

    What the lookup finds in each class is recorded, and compared before each later call of the
    compiled function. `node` is the syntax of the attribute, for messages.

    Raises:
        UnsupportedSyntaxError: the attribute is a `cached_property` of the user.
    """
    held_by, found = _next_class(ev, owner, name)
    receiver = owner.__self__
    if held_by is None or not is_users_class(held_by):
        return native_attribute(owner, name)
    if isinstance(found, functools.cached_property):
        raise unmodelled(receiver, name, "got a cached property of super()")
    if isinstance(found, property) and not isinstance(receiver, type):
        return call(ev, found.fget, (receiver,), {})
    descriptor = special_method(ev, found, "__get__")
    if descriptor is not None:
        given = None if isinstance(receiver, type) else receiver
        return call(ev, descriptor, (found, given, owner.__self_class__), {})
    if hasattr(type(found), "__get__"):  # a method
        value = native_attribute(owner, name)
        ev.keep.append(owner)
        ev.captures.add("attribute", owner, name, value, f"super().{name}")
        return value
    return read_and_capture(ev, held_by, name, found, node)


def _next_class(ev: Evaluation, owner: Value, name: str) -> tuple[type | None, Value]:
    """Return the class in which `super()` finds a name, and the value; (None, MISSING) if in none.

    What the search finds under the name in each class of the user or of this framework, or that it
    finds nothing, is recorded, to be compared before each later call of the compiled function.
    """
    classes = owner.__self_class__.__mro__
    if not isinstance(owner.__self__, type):
        ev.captures.class_of(owner.__self__)
    for cls in classes[classes.index(owner.__thisclass__) + 1 :]:
        found = vars(cls).get(name, MISSING)
        if is_users_class(cls) or is_framework(cls.__module__):
            ev.captures.add("method", cls, name, found, f"{cls.__name__}.{name}")
        if found is not MISSING:
            return cls, found
    return None, MISSING
