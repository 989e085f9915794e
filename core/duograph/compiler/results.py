"""Templates of results: the Python structure that a compiled function returns.

A template has placeholders for the values that differ between calls. `compiler.evaluate` makes a
template of the evaluated result once; `compiled_program` fills the placeholders at every call.
Rebuilding never evaluates user code.
"""

from __future__ import annotations

import collections
import copy
import re
import types
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..dims import Dim, Real
from ..errors import ArgumentError, UnsupportedSyntaxError
from ..frontend.evaluation.host import check_known, refuse_wrapper
from ..frontend.evaluation.laziness import check_position, remaining
from ..frontend.evaluation.outside import is_outside
from ..frontend.state.evaluation import Evaluation
from ..frontend.types import GraphValue, Value
from ..frontend.values.functions import Choice, Function
from ..frontend.values.kinds import IMMUTABLE
from ..frontend.values.nested import reaches_graph_value, tuple_like
from ..ir.builder import GraphTensor
from ..ir.values import HostValue
from ..tensor import Tensor
from ..types import OBJECT

__all__ = ["Argument", "ArgumentContainer", "Out", "rebuilt", "substituted", "template_of"]


class ArgumentContainer:
    """The graph value of a list, dict or set argument, made a graph input when first needed.

    Attributes:
        ev: the evaluation of the function.
        index: the position among the list, dict and set arguments.
        order: the items of a set argument, in its iteration order.
    """

    def __init__(self, ev: Evaluation, index: int, order: tuple[Value, ...] = ()) -> None:
        self.ev = ev
        self.index = index
        self.order = order
        self._value: Value = None

    def value(self) -> Value:
        """Return the graph value of the container; the first call appends an input to the graph."""
        if self._value is None:
            made = self.ev.root.parameter(OBJECT)
            self.ev.inputs.entries.append(("container", self.index))
            self._value = made
        return self.ev.root.tensor(self._value._id)


class Out:
    """Placeholder in a result template for output `index` of the graph."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Argument:
    """Placeholder in a result template: the function returns its tensor argument `index`."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class _Container(Argument):
    """Placeholder in a result template for a list, dict or set argument, which is returned itself.

    Attributes:
        index: its position among the lists, dicts and sets in the arguments.
    """


class _Outside:
    """Placeholder in a result template for an object from outside, returned by every call."""

    def __init__(self, value: Value) -> None:
        self.value = value


class _WithAliases:
    """Wraps a result template in which some list, dict or object occurs more than once.

    Each call must then return a single new object at all the positions where the template has the
    same object.
    """

    def __init__(self, template: Value) -> None:
        self.template = template


class _Copy:
    """Placeholder in a result template for a mutable object with the same contents in every call.

    The function creates it, such as an array or a bytearray. Each call returns a new copy.
    """

    def __init__(self, value: Value) -> None:
        self.value = copy.deepcopy(value)

    def made(self) -> Value:
        """Return a new deep copy of the object, for the result of one call."""
        return copy.deepcopy(self.value)


class _Made:
    """Placeholder in a result template for an object that each call of the function creates.

    Attributes:
        cls: the class of the object.
        attributes: the templates of its attributes, by name.
    """

    def __init__(self, cls: type, attributes: dict[str, Value]) -> None:
        self.cls = cls
        self.attributes = attributes


def rebuilt(
    template: Value,
    values: Sequence[Value],
    leaves: Sequence[Tensor],
    containers: Sequence[object],
) -> Value:
    """Return the result of a compiled call: its template with values in place of placeholders.

    Args:
        template: the Python structure of the result, with placeholders for run-time values.
        values: the outputs of the graph.
        leaves: the tensors among the arguments.
        containers: the lists, dicts and sets among the arguments.
    """
    kind = template.__class__
    if kind is Out:
        return values[template.index]
    if kind is _WithAliases:
        return _rebuilt(template.template, values, leaves, containers, {})
    return _rebuilt(template, values, leaves, containers, None)


def _rebuilt(
    template: Value,
    values: Sequence[Value],
    leaves: Sequence[Tensor],
    containers: Sequence[object],
    made: dict[int, Value] | None,
) -> Value:
    """Return one part of the result of a compiled call: a template with placeholders filled in.

    Args:
        template, values, leaves, containers: see `rebuilt`.
        made: the objects made so far, by id of their template; None if no object occurs twice.
    """
    kind = template.__class__
    if kind is Out:
        return values[template.index]
    if kind is Argument:
        return leaves[template.index]
    if kind is _Container:
        return containers[template.index]
    if kind is _Outside:
        return template.value
    if made is not None and id(template) in made:
        return made[id(template)]
    found: Value
    if isinstance(template, tuple):
        items = [_rebuilt(v, values, leaves, containers, made) for v in template]
        return tuple_like(template, items)
    if kind is list:
        found = [_rebuilt(v, values, leaves, containers, made) for v in template]
    elif kind is dict:
        found = {k: _rebuilt(v, values, leaves, containers, made) for k, v in template.items()}
    elif kind is _Copy:
        found = template.made()
    elif kind is _Made:
        found = object.__new__(template.cls)
        for k, v in template.attributes.items():
            found.__dict__[k] = _rebuilt(v, values, leaves, containers, made)
    else:
        return template
    if made is not None:
        made[id(template)] = found
    return found


def substituted(template: Value, number: Callable[[Value], Value]) -> Value:
    """Return a copy of a result template with each symbolic number n replaced by `number(n)`.

    A symbolic number is a Python number of the result that is computed from symbolic sizes.

    Raises:
        ArgumentError: the template has a constant that may contain a symbolic number.
    """
    if type(template) is _WithAliases:
        return _WithAliases(_substituted(template.template, number, {}))
    return _substituted(template, number, {})


def _substituted(
    template: Value, number: Callable[[Value], Value], made: dict[int, Value]
) -> Value:
    """Return a copy of a part of a result template with its symbolic numbers replaced.

    `number` is a function from a symbolic number to its replacement (see `substituted`). `made` has
    the copies made so far, by id of the part.
    """
    kind = type(template)
    if kind in (Dim, Real):
        return number(template)
    if id(template) in made:
        return made[id(template)]
    found: Value = template
    if isinstance(template, tuple):
        items = [_substituted(v, number, made) for v in template]
        found = tuple_like(template, items)
    elif kind is list:
        found = [_substituted(v, number, made) for v in template]
    elif kind is dict:
        found = {k: _substituted(v, number, made) for k, v in template.items()}
    elif kind is slice:
        parts = (template.start, template.stop, template.step)
        found = slice(*[_substituted(v, number, made) for v in parts])
    elif kind is _Made:
        held = template.attributes.items()
        found = _Made(template.cls, {k: _substituted(v, number, made) for k, v in held})
    elif kind is _Copy and not _is_numeric(template.value):
        name = type(template.value).__name__
        raise ArgumentError(f"jit: got a result with a {name}, which may contain a size")
    made[id(template)] = found
    return found


def _is_numeric(value: Value) -> bool:
    """Return whether a value is an array of numbers, which cannot contain a symbolic number."""
    return isinstance(value, np.ndarray) and not value.dtype.hasobject


_RETURNED_AS_TUPLE = (zip, enumerate, type(iter(())))
# Names of Python's views of containers that are returned as a tuple, and as a list.
_AS_TUPLE = ("dict_keys", "dict_values")
_AS_LIST = ("dict_items",)
_MAX_DEPTH = 50


def template_of(
    ev: Evaluation,
    value: Value,
    put: Callable[[Value], int],
    leaves: Sequence[tuple[Value, int | None]],
    containers: Sequence[Value],
) -> Value:
    """Return the template of a compiled function's result.

    The template is the Python structure of the result, with placeholders for what differs between
    calls: outputs of the graph and arguments.

    Args:
        ev: the evaluation of the function.
        value: the result.
        put: function that makes a value an output of the graph, and returns its position.
        leaves: for each tensor argument its graph value, and the id of this value before the
            function wrote to the argument; the id is None if the argument is also a state tensor.
        containers: copies of the lists, dicts and sets among the arguments.

    Raises:
        UnsupportedSyntaxError: the result holds an object that a call of a program cannot create
            anew, such as a local function, an iterator, or a set or deque of graph values.
        ArgumentError: the result is nested too deeply, or contains itself.
    """
    maker = _TemplateMaker(ev, put, leaves, containers)
    template = maker.template(value, 0)
    maker.check()
    return _WithAliases(template) if maker.has_aliases else template


class _TemplateMaker:
    """Builds the template of a compiled function's result: its structure with placeholders.

    `template_of` describes the arguments of the constructor.
    """

    def __init__(
        self,
        ev: Evaluation,
        put: Callable[[Value], int],
        leaves: Sequence[tuple[Value, int | None]],
        containers: Sequence[Value],
    ) -> None:
        self.ev = ev
        self.put = put
        self.leaves = leaves
        self.containers = containers
        self.has_aliases = False
        self._made: dict[int, Value] = {}  # id of a list, dict or object -> its template
        self._values: list[Value] = []

    def template(self, value: Value, depth: int) -> Value:
        """Return a part of a function's result with placeholders for its run-time values.

        `depth` is the number of containers around the part.
        """
        if isinstance(value, (GraphTensor, HostValue)):
            return self.of_graph_value(value)
        if isinstance(value, Tensor):
            return self.of_tensor(value)
        if isinstance(value, (list, dict, set)):
            check_known(self.ev, value)
            self.ev.copies.observe(value)
            for i, c in enumerate(self.containers):
                if c is value:
                    return _Container(i)
            outside = self.ev.copies.originals.get(id(value))
            if outside is not None and not isinstance(outside, ArgumentContainer):
                return self._outside(outside)
        if depth > _MAX_DEPTH:
            raise ArgumentError("jit: got a result that contains itself; wanted a tree")
        if isinstance(value, tuple):
            outside = self.ev.copies.originals.get(id(value))
            if outside is not None:
                return self._outside(outside)
            return self._of_parts(value, depth)
        found = self._made.get(id(value))
        if found is not None:
            self.has_aliases = True
            return found
        found = self._of_parts(value, depth)
        if isinstance(found, (list, dict, _Copy, _Made)):
            self._made[id(value)] = found
            self._values.append(value)
        return found

    def _outside(self, value: Value) -> _Outside:
        """Return the placeholder of a container from outside the function, such as a global list.

        Each call then returns this container itself, not a copy.

        Raises UnsupportedSyntaxError if the container holds a graph value.
        """
        if reaches_graph_value(value):  # it belongs to an object that the evaluated code made
            raise _only_line_by_line(value)
        return _Outside(value)

    def check(self) -> None:
        """Raise if a graph condition decides whether the result holds the same list or dict twice.

        For example, the result is (x, z) after `z = x if c else y`. If `c` is true when the program
        runs, both items must be the same object, otherwise two objects; a single template (the
        structure of the result with placeholders) cannot express both cases.
        """
        for value in self._values:
            of = self.ev.owned.chosen.get(id(value), ())
            check_known(self.ev, value, any(id(v) in self._made for v in of))

    def _of_parts(self, value: Value, depth: int) -> Value:
        """Return a container or object in the result, with placeholders for the values in it."""
        if isinstance(value, tuple):
            items = [self.template(v, depth + 1) for v in value]
            if getattr(value, "__dict__", None):
                raise _only_line_by_line(value)
            return tuple_like(value, items)
        if type(value) is list:
            return [self.template(v, depth + 1) for v in value]
        if type(value) is dict and not any(map(_of_graph, value)):
            return {k: self.template(v, depth + 1) for k, v in value.items()}
        name, module = type(value).__name__, type(value).__module__
        if hasattr(type(value), "__next__") and module == "builtins":
            return self._of_iterator(value, depth)
        if isinstance(value, range) or name in _AS_TUPLE:
            return tuple([self.template(v, depth + 1) for v in value])
        if name in _AS_LIST:
            return [self.template(v, depth + 1) for v in value]
        return self.of_object(value, depth)

    def _of_iterator(self, value: Value, depth: int) -> Value:
        """Return the items that are left of an iterator in the result, as a tuple or list.

        Raises:
            UnsupportedSyntaxError: computing an item has an effect, which would happen when the
                caller asks for it; or the number of items is unknown.
        """
        check_position(self.ev, value)
        by_kind = tuple if isinstance(value, _RETURNED_AS_TUPLE) else list
        returned = self.ev.owned.lazy.get(id(value), by_kind)
        items = [self.template(v, depth + 1) for v in remaining(self.ev, value, "return")]
        return tuple(items) if returned is tuple else items

    def of_graph_value(self, value: GraphValue) -> Out | Argument:
        """Return the placeholder of a graph value in the result: an argument or a graph output."""
        if isinstance(value, GraphTensor):
            for i, (made, first) in enumerate(self.leaves):
                if value is made or (value._id == first and made._id == first):
                    return Argument(i)
            held = self.ev.inputs.locations.get(id(value))
            if held is not None and held[0]._id == value._id:  # the Tensor that was there
                return Out(self.put(self.ev.inputs.object(*held[1])))
        return Out(self.put(value))

    def of_tensor(self, value: Tensor) -> Out | Tensor:
        """Return the placeholder of a tensor in the result, or the tensor if it is from outside.

        A tensor that the evaluation made becomes an output, so that each call returns a new one.
        """
        if id(value) not in self.ev.owned.tensors:
            return value
        slot = self.ev.inputs.slots.get(id(value))
        if slot is not None and slot.current is not slot.incoming:
            return Out(self.put(slot.current))
        return Out(self.put(value))

    def of_object(self, value: Value, depth: int) -> Value:
        """Return the template of a result that is not a tensor, graph value, list, dict or tuple.

        `depth` is the number of containers around it. Raises UnsupportedSyntaxError for an object
        that a call of a program cannot create anew, such as a local function, an iterator, or a set
        of graph values.
        """
        if isinstance(value, Choice):
            value.as_python()
        refuse_wrapper(value)
        if isinstance(value, np.ndarray) and not self.ev.owned.owns_data(value):
            self.ev.captures.arrays[id(value)] = value
        if isinstance(value, Function):
            if value.original is not None:
                return value.original
            raise UnsupportedSyntaxError(
                f"return: got the function {value.__name__}, which the compiled function defines; "
                "wanted Tensors and "
                "Python values",
                construct="Return",
                remedy="Define the function outside the compiled one",
            )
        if isinstance(value, (dict, set, frozenset, collections.deque)):
            held = (*value, *value.values()) if isinstance(value, dict) else value
            if any(map(_of_graph, held)):
                raise UnsupportedSyntaxError(
                    f"return: got a {type(value).__name__} that holds what is known only when the "
                    "function "
                    "runs; wanted a list, tuple or dict",
                    construct="Return",
                    remedy="Return list(...) or dict(...) of it",
                )
        made = id(value) in self.ev.owned.objects
        if isinstance(value, Iterator) and not is_outside(self.ev, value):
            raise _only_line_by_line(value)
        if _own_data(self.ev, value):
            return _Copy(value)
        plain = isinstance(value, (type, np.ndarray)) or type(value).__module__ == "builtins"
        if made and not plain and _is_its_attributes(value):
            attributes = {k: self.template(v, depth + 1) for k, v in vars(value).items()}
            return _Made(type(value), attributes)
        if reaches_graph_value(value) or (made and not isinstance(value, _CONSTANT)):
            raise _only_line_by_line(value)
        return value


# Classes of objects that cannot change.
_CONSTANT = (
    *IMMUTABLE,
    frozenset,
    slice,
    range,
    type,
    property,
    types.BuiltinFunctionType,
    re.Match,
)


def _only_line_by_line(value: Value) -> UnsupportedSyntaxError:
    """Return the error for a result `value` that only the uncompiled function can create anew."""
    return UnsupportedSyntaxError(
        f"return: got a {type(value).__name__} that the compiled function made; wanted Tensors and "
        "Python values",
        construct="Return",
        remedy="Return the values that it holds, such as list(...) of an iterator",
    )


def _is_its_attributes(value: Value) -> bool:
    """Return whether an object consists only of its class and its `__dict__`."""
    kind = type(value)
    if any(getattr(c, "__slots__", ()) for c in kind.__mro__) or not hasattr(value, "__dict__"):
        return False
    try:
        object.__new__(kind)
    except TypeError:  # a class with data of its own, such as list
        return False
    return True


def _own_data(ev: Evaluation, value: Value) -> bool:
    """Return whether a value is an array, set or bytearray that the compiled function created.

    Containers of the modules `collections` and `array` count as well. Each call returns a new copy
    of such a value.
    """
    base = value
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    if id(value) not in ev.owned.objects and id(base) not in ev.owned.objects:
        return False
    return isinstance(value, (np.ndarray, set, bytearray)) or type(value).__module__ in (
        "collections",
        "array",
    )


def _of_graph(value: Value) -> bool:
    """Return whether a value is a graph value, or holds one at any depth.

    Tuples, lists, sets and the values of dicts are searched.
    """
    if isinstance(value, (tuple, list, dict, set)):
        return any(map(_of_graph, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (GraphTensor, HostValue))
