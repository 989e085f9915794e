"""Evaluates assignment targets: names, attributes, items, and tuples or lists of targets.

Assignments, loops, `with` and comprehensions call this module. Every write must go through the
journal (the undo log of the evaluation), so that the writes of a branch can be undone.
"""

from __future__ import annotations

import ast
import itertools

import numpy as np

from ...errors import UnsupportedSyntaxError
from ...ir.values import GraphObject, GraphScalar, NeedsValue
from ...tensor import Tensor
from ..diagnostics import unsupported
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.nested import depends_on_graph
from .attributes import delete_attribute, get_attribute, set_attribute
from .containers import (
    check_array_changeable,
    container_method,
    delete_item,
    get_item,
    set_item,
)  # fmt: skip
from .dispatch import call, evaluate
from .iteration import is_iterable, iterate
from .operators import BINARY, IN_PLACE, apply
from .outside import special_method
from .tensor_methods import given_method
from .variables import load, remove, store


def mangled(frame: Frame, name: str) -> str:
    """Return an attribute name with the class prefix that Python adds to private names."""
    owner = frame.source.class_name
    if name.startswith("__") and not name.endswith("__") and owner:
        return f"_{owner.lstrip('_')}{name}"
    return name


def assign(ev: Evaluation, frame: Frame, target: Value, value: Value) -> None:
    """Trace an assignment of a value to a target: a name, attribute, item, or tuple of targets."""
    if isinstance(target, ast.Name):
        store(ev, frame, target.id, value)
    elif isinstance(target, ast.Attribute):
        owner = evaluate(ev, frame, target.value)
        set_attribute(ev, owner, mangled(frame, target.attr), value)
    elif isinstance(target, ast.Subscript):
        owner = evaluate(ev, frame, target.value)
        set_item(ev, owner, evaluate(ev, frame, target.slice), value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(ev, frame, target.elts, value)
    else:
        raise unsupported(f"target {type(target).__name__!r}", "Assign to a name")


def _unpack(ev: Evaluation, frame: Frame, targets: list[Value], value: Value) -> None:
    """Unpack a value: assign its items to several targets, of which one may be starred."""
    if isinstance(value, (GraphObject, GraphScalar)):
        raise NeedsValue("unpack: got a value that is known only when the compiled function runs")
    if not is_iterable(ev, value):
        raise TypeError(f"cannot unpack non-iterable {type(value).__name__} object")
    stars = [i for i, x in enumerate(targets) if isinstance(x, ast.Starred)]
    wanted = None if stars else len(targets) + 1  # Python asks for one more
    items = list(itertools.islice(iterate(ev, value), wanted))
    if not stars:
        if len(items) > len(targets):
            raise ValueError(f"too many values to unpack (expected {len(targets)})")
        if len(items) < len(targets):
            raise ValueError(
                f"not enough values to unpack (expected {len(targets)}, got {len(items)})"
            )
        for target, item in zip(targets, items, strict=True):
            assign(ev, frame, target, item)
        return
    star = stars[0]
    after = len(targets) - star - 1
    if len(items) < len(targets) - 1:
        raise ValueError(
            f"not enough values to unpack (expected at least {len(targets) - 1}, got {len(items)})"
        )
    for target, item in zip(targets[:star], items):
        assign(ev, frame, target, item)
    assign(ev, frame, targets[star].value, ev.owned.add(items[star : len(items) - after]))
    for target, item in zip(targets[star + 1 :], items[len(items) - after :]):
        assign(ev, frame, target, item)


def delete(ev: Evaluation, frame: Frame, target: Value) -> None:
    """Trace a `del` statement for a name, attribute, item or tuple of such targets."""
    if isinstance(target, ast.Name):
        remove(ev, frame, target.id)
    elif isinstance(target, ast.Subscript):
        owner = evaluate(ev, frame, target.value)
        delete_item(ev, owner, evaluate(ev, frame, target.slice))
    elif isinstance(target, ast.Attribute):
        delete_attribute(ev, evaluate(ev, frame, target.value), mangled(frame, target.attr))
    else:
        for x in target.elts:
            delete(ev, frame, x)


def evaluate_in_place(ev: Evaluation, frame: Frame, node: ast.AugAssign) -> None:
    """Trace an augmented assignment, such as `name += value`, and bind the new value.

    The target is a name, attribute or item. A target that holds a tensor, number or tuple is bound
    to a new value; a list or set is changed in place.
    """
    target = node.target
    if isinstance(target, ast.Name):
        old = load(ev, frame, target.id)
        store(
            ev, frame, target.id, _augmented_value(ev, node, old, evaluate(ev, frame, node.value))
        )
    elif isinstance(target, ast.Attribute):
        owner = evaluate(ev, frame, target.value)
        name = mangled(frame, target.attr)
        old = get_attribute(ev, owner, name, target)
        set_attribute(
            ev, owner, name, _augmented_value(ev, node, old, evaluate(ev, frame, node.value))
        )
    else:
        owner = evaluate(ev, frame, target.value)
        index = evaluate(ev, frame, target.slice)
        old = get_item(ev, owner, index)
        set_item(ev, owner, index, _augmented_value(ev, node, old, evaluate(ev, frame, node.value)))


def _augmented_value(ev: Evaluation, node: ast.AugAssign, old: Value, value: Value) -> Value:
    """Return the value that an augmented assignment binds to its target.

    As in Python, a list, dict, set or NumPy array is changed in place and returned; for a tensor,
    number or tuple the result is a new value.

    Args:
        ev: the evaluation.
        node: the statement.
        old: the value of the target.
        value: the value of the right side.
    """
    kind = type(node.op)
    in_place = f"__{IN_PLACE[kind].__name__.strip('_')}__"
    if type(old) is list:  # an operator method of the right side comes before that of the list
        own = special_method(ev, value, in_place.replace("__i", "__r"))
        if own is not None or isinstance(value, (Tensor, np.ndarray, np.generic)):
            return apply(ev, IN_PLACE[kind], old, value)
        if kind is ast.Add:
            call(ev, old.extend, (value,), {})
            return old
    if isinstance(old, Tensor):
        given = given_method(ev, old, in_place)
        found = NotImplemented if given is None else call(ev, given, (old, value), {})
        if found is not NotImplemented:
            return found
    if isinstance(old, np.ndarray):
        name = IN_PLACE[kind].__name__
        check_array_changeable(ev, old, name)
        if depends_on_graph(value):
            raise UnsupportedSyntaxError(
                f"{name}: got a change of a NumPy array made while compiling, with values known "
                "only when the function runs; wanted a Tensor"
            )
    special_method(ev, old, in_place)
    if type(old) in (list, dict, set) and hasattr(old, in_place):
        found = container_method(ev, old, in_place, (value,), {})
        if found is NotImplemented:
            raise TypeError(
                f"unsupported operand type(s) for {type(node.op).__name__}: "
                f"{type(old).__name__!r} and {type(value).__name__!r}"
            )
        return found
    if isinstance(old, Tensor) or not hasattr(type(old), in_place):
        return apply(ev, BINARY[kind], old, value)
    return apply(ev, IN_PLACE[kind], old, value)
