"""Host calls: graph nodes that run Python code, and the Tensor objects that such code holds.

`run_on_host` appends a node with results, `append_effect` a node without. The other modules of the
evaluation call both for code that only Python can run. Such a node keeps its position in program
order among the writes. Its arguments are stored as nested Python values in which *placeholders*
(`Operand`, `Built`, `Snapshot`, `Held`) stand for what each run inserts. The code of such a node
must never run while compiling.
"""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable

import numpy as np

from ...autodiff.linearize import NUMBER_FOR_OP
from ...dims import is_symbolic
from ...errors import UnsupportedSyntaxError
from ...execution.source_spans import mark_source
from ...ir.builder import GraphTensor
from ...ir.control import HostCall, host_call
from ...ir.values import HostValue, number_of
from ...recorded_tensors import MAKERS
from ...tensor import Tensor
from ...types import FLOAT, OBJECT, HostType
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from ..values.functions import Function
from ..values.kinds import COPIED, HOLDERS, IMMUTABLE
from ..values.nested import reaches_graph_value, sequence_like
from ..values.ranges import GraphRange
from .aliasing import may_have_object, reachable_alias
from .host_mutation import Snapshot, refuse_mutation, was_changed, with_snapshots
from .spans import call_spans

# The name of a host call that raises StopIteration.
END_OF_ITERATION = "raise StopIteration"


class Operand:
    """Placeholder, among a host call's arguments, for input `index` (from 0) of its graph node."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Operands(list[Value]):
    """A list of the inputs of a host call's graph node; a tensor passed twice is one input."""

    def __init__(self) -> None:
        super().__init__()
        self._of: dict[int, tuple[Operand, Value]] = {}  # by id of the source

    def add(self, ev: Evaluation, value: Value, source: Value) -> Operand:
        """Make a graph value an input of the node, unless it is one; return its placeholder.

        Args:
            ev: the evaluation.
            value: the graph value.
            source: the tensor or symbolic number in the arguments for which `value` stands. One
                source is one input, however often it occurs.
        """
        if id(source) not in self._of:
            self.append(ev.builder.bring(value))
            self._of[id(source)] = Operand(len(self) - 1), source
        return self._of[id(source)][0]


def take_operands(ev: Evaluation, value: Value, found: Operands, objects: bool = False) -> Value:
    """Return a host call's arguments with placeholders for everything that exists only at run time.

    Graph values, and outside tensors that the function has written, become `Operand`s. Objects that
    each run must make anew become `Built` or `Snapshot`, and containers from outside become `Held`.

    Args:
        ev: the evaluation.
        value: the arguments, nested in lists, tuples and dicts.
        found: receives the graph values; `Operand(i)` stands for item i.
        objects: whether Python code will store the arguments. A tensor must then be passed as the
            one Python Tensor object that represents it at run time.

    Raises:
        UnsupportedSyntaxError: an argument is an object of the evaluation that cannot be passed to
            Python code.
    """
    if objects:
        check_known(ev, value)
    outside = ev.copies.originals.get(id(value))
    if outside is not None and isinstance(value, (list, dict, set, tuple)):
        if not hasattr(outside, "value"):
            return Held(outside)
        value = outside.value()  # a list or dict argument of the call
    if objects and isinstance(value, Tensor):
        made = object_of(ev, value)
        if made is None:
            return value  # from outside: the object itself, which receives all writes
        return found.add(ev, made, value)
    if isinstance(value, (GraphTensor, HostValue)):
        ev.ask_class(value, "Python code")
        return found.add(ev, value, value)
    if is_symbolic(value):
        return found.add(ev, ev.builder.host(value), value)
    if isinstance(value, Tensor):
        slot = ev.inputs.slots.get(id(value))
        if slot is None or slot.current is slot.incoming:
            return value  # not written: the host call reads the object itself
        return found.add(ev, slot.current, value)
    if hasattr(type(value), "as_python"):
        return value.as_python()
    refuse_wrapper(value)
    if isinstance(value, types.MethodType):
        owner = take_operands(ev, value.__self__, found, objects)
        return value if owner is value.__self__ else Built(types.MethodType, value.__func__, owner)
    if isinstance(value, types.BuiltinFunctionType) and type(value.__self__) in (list, dict, set):
        raise _not_for_python(value.__self__)
    if objects and type(value) in COPIED:
        _give_away(ev, value)
    if type(value) is list or isinstance(value, tuple):
        items = [take_operands(ev, v, found, objects) for v in value]
        return value if _is_made_of(value, items) else sequence_like(value, items)
    if type(value) is dict:
        if any(isinstance(k, (Tensor, tuple)) for k in value):
            return Built(dict, [take_operands(ev, p, found, objects) for p in value.items()])
        return {k: take_operands(ev, v, found, objects) for k, v in value.items()}
    if type(value) is slice:
        return slice(
            *[take_operands(ev, v, found, objects) for v in (value.start, value.stop, value.step)]
        )
    if id(value) in ev.owned.objects:
        return _take_made(ev, value, found, objects)
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        if take_operands(ev, parts, Operands()) != parts:
            raise _not_for_python(value)
    if isinstance(value, GraphRange):
        return Built(range, *take_operands(ev, [value.start, value.stop, value.step], found))
    if (isinstance(value, HOLDERS) or hasattr(type(value), "__next__")) and reaches_graph_value(
        value, sizes=True
    ):
        raise _not_for_python(value)
    ev.outside.given[id(value)] = value
    return value


def check_known(ev: Evaluation, value: Value, kept: bool = False) -> None:
    """Raise if a graph condition decides which of several lists or dicts a value is.

    This is called where the identity of the value matters: the function returns it, stores it in an
    object from outside, or compares it with `is`. Lists and dicts that evaluated code made do not
    matter, unless `kept`.

    Args:
        ev: the evaluation.
        value: the value.
        kept: whether other code also receives one of the objects that the value may be.

    Raises:
        UnsupportedSyntaxError: the value may be one of several objects.
    """
    of = ev.owned.chosen.get(id(value), ())
    if of and (kept or any(id(v) in ev.copies.originals for v in of)):
        raise UnsupportedSyntaxError(
            f"{type(value).__name__}: got one of two, chosen by a condition on a Tensor, to be "
            "returned, stored or compared by identity inside jit",
            construct="If",
            remedy="Copy it, e.g. list(x)",
        )


def refuse_wrapper(value: Value) -> None:
    """Raise UnsupportedSyntaxError for a function that evaluated code has wrapped with `jit`."""
    if isinstance(getattr(value, "__dict__", {}).get("__wrapped__"), Function):
        raise _not_for_python(value)


def _give_away(ev: Evaluation, value: Value) -> None:
    """Record that Python code will store a list, dict or set, which may therefore no longer change.

    At each run of the graph, the Python code gets a new container. A later change by evaluated code
    would not reach that container.

    Raises:
        UnsupportedSyntaxError: other Python code already stores the container; the two would get
            different objects.
    """
    if id(value) in ev.owned.kept and value:
        raise _not_for_python(value)
    ev.owned.kept.add(id(value))
    ev.keep.append(value)


class Built:
    """Marker, among a host call's arguments, for an object that each run makes from its parts.

    Attributes:
        make: the function that makes the object.
        args: its arguments, in which graph values are `Operand`s.
    """

    __slots__ = ("args", "make")

    def __init__(self, make: Callable[..., Value], *args: Value) -> None:
        self.make = make
        self.args = args


def _take_made(ev: Evaluation, value: Value, found: Operands, objects: bool) -> Value:
    """Return what represents an object that evaluated code made, among a host call's arguments.

    It is a placeholder if each run needs a new object, otherwise the object itself. `found`
    collects the graph values among its parts; `objects` says whether Python code will store the
    arguments.

    Raises:
        UnsupportedSyntaxError: each run would need a new object, but it cannot be made again.
    """
    kind = type(value)
    if kind in (set, frozenset):
        items = [take_operands(ev, v, found, objects) for v in value]
        is_constant = all(a is b for a, b in zip(items, value))
        return value if is_constant and not objects else Built(kind, items)
    if kind is np.ndarray:
        return Snapshot(value)
    if hasattr(kind, "__next__"):
        if objects:
            raise _not_for_python(value)  # evaluated code would advance another iterator
        is_lazy = id(value) in ev.owned.lazy
        if not (is_lazy or hasattr(kind, "__length_hint__")) or kind is itertools.repeat:
            raise _not_for_python(value)  # it may have no end
        items = [take_operands(ev, v, found, objects) for v in value]
        return Built(iter, items)
    if objects:
        refuse_keeping(value)
    if reaches_graph_value(value, sizes=True):
        raise _not_for_python(value)
    return value


def _not_for_python(value: Value) -> UnsupportedSyntaxError:
    """Return the error for an object of evaluated code that cannot be passed to Python code."""
    kind = type(value).__name__
    return UnsupportedSyntaxError(
        f"{kind}: got a {kind} made inside jit for Python code that runs with the graph",
        construct="Call",
        remedy="Make it outside the compiled function, or pass Tensors, lists and dicts",
    )


def object_of(ev: Evaluation, tensor: Value) -> Value:
    """Return, as a graph value, the Python Tensor object that represents a tensor at run time.

    Python code may store that object, and all in-place writes to the tensor must reach it. There is
    therefore one object per tensor; the node that makes it is appended at the first use. The result
    is None if `tensor` is a Tensor from outside the function: it is itself that object.
    """
    known = ev.host_objects.get(id(tensor))
    if known is not None:
        return known[1]
    if id(tensor) in ev.candidates:
        chosen = _chosen_object(ev, tensor)
        if chosen is not None:
            return chosen
    slot = None
    if not isinstance(tensor, GraphTensor):
        if id(tensor) not in ev.owned.tensors:
            return None
        home = ev.builder
        while home.depth > ev.owned.depths.get(id(tensor), 0):
            assert home.parent is not None
            home = home.parent
        first = home.made_constant(tensor)
        slot = ev.inputs.slots.get(id(tensor))
        later = slot is not None and slot.written
    else:
        for made, _, index in ev.inputs.arguments:
            if made is tensor:
                return ev.inputs.argument_object(index)
        held = ev.inputs.locations.get(id(tensor))
        if held is not None:
            return ev.inputs.object(*held[1])
        first = tensor
        for journal in ev.journal.branches:
            entry = journal.get(("tensor", id(tensor), None))
            if entry is not None:
                first = entry[1]
                break
        home = first._builder
        later = first._id != tensor._id or home is not tensor._builder
    run = HostCall(lambda x: (x,), "tensor object")
    with home.current():
        made = home.append(host_call, (home.tensor(first._id),), {"run": run, "types": (OBJECT,)})[
            0
        ]
    ev.host_objects[id(tensor)] = (tensor, made)
    if later:
        # The write belongs to the graph that computed the present value: the body of a loop is
        # traced several times, but only the first trace comes here.
        present = tensor if slot is None else slot.current
        with present._builder.current():
            write_through(ev, tensor)
    return made


def _chosen_object(ev: Evaluation, tensor: Value) -> Value:
    """Return, as a graph value, the Tensor object of a tensor that a graph condition chose.

    For `x = y if c else z` it is the object of y or of z. The result is None if Python code holds
    neither object and cannot reach the tensors; any new object is right in that case.

    Raises:
        UnsupportedSyntaxError: the objects exist, but the graph cannot tell which of them it is.
    """
    _, condition, sides = ev.choices.get(id(tensor), (None, None, []))
    home = tensor._builder
    inside = [side is None or _is_inside(side, home) for side in sides]
    alone = all(inside) or not reachable_alias(ev, tensor)
    if sides and alone and not may_have_object(ev, tensor):
        return None
    unknown = [may_have_object(ev, side) for k, side in enumerate(sides) if inside[k]]
    if any(unknown) or not sides:
        if not sides and not may_have_object(ev, tensor) and not reachable_alias(ev, tensor):
            return None
        raise UnsupportedSyntaxError(
            "setattr: got one of several Tensors, chosen by a condition on a Tensor or by a loop "
            "inside jit, to be kept by an object from outside; it would have to keep the original",
            construct="setattr",
            remedy="Copy the Tensor before it is stored, e.g. x.copy()",
        )
    constants: list[Value] = [None, None]
    operands = [condition, home.tensor(tensor._id)]
    positions = [1, 1]  # a tensor that the branch made becomes a new object
    with home.current():
        for k, side in enumerate(sides):
            if inside[k]:
                continue
            known = object_of(ev, side)
            if known is None:  # the tensor from outside itself
                constants[k] = side
            else:
                positions[k] = len(operands)
                operands.append(home.bring(known))

        def run(*values: Value) -> tuple[Value]:
            k = int(bool(values[0]))
            return (values[positions[k]] if constants[k] is None else constants[k],)

        call = HostCall(run, "tensor object")
        found = home.append(host_call, tuple(operands), {"run": call, "types": (OBJECT,)})[0]
    ev.host_objects[id(tensor)] = (tensor, found)
    return found


def _is_inside(value: Value, home: Value) -> bool:
    """Return whether a tensor was made in a graph nested inside the graph of builder `home`."""
    builder: Value = value._builder if isinstance(value, GraphTensor) else home
    return bool(builder.depth > home.depth)


class Held:
    """Placeholder, among a host call's arguments, for a container from outside the function.

    Python code receives the container itself. When the call runs, the changes that precede it in
    the program have already been made to the container.
    """

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


def refuse_keeping(value: Value) -> None:
    """Raise if Python code would store a mutable object that was made only once, while compiling.

    In uncompiled code, each call of the function would make a new object.

    Raises:
        UnsupportedSyntaxError: the object is mutable.
    """
    kind = type(value)
    constant = isinstance(value, IMMUTABLE) and kind is not types.ModuleType
    if constant or isinstance(value, (np.ndarray, types.MethodType, types.BuiltinFunctionType)):
        return
    raise UnsupportedSyntaxError(
        f"setattr: got a {kind.__name__} made inside jit, to be kept by an object from outside",
        construct="Call",
        remedy="Make it outside the compiled function, or use a list, a dict or a Tensor",
    )


def write_through(ev: Evaluation, tensor: Value) -> None:
    """Append a node that stores a tensor's value in its Tensor object, if Python code holds one."""
    if id(tensor) in ev.host_objects or id(tensor) in ev.inputs.locations:
        append_effect(ev, Tensor._rebind, (object_of(ev, tensor), tensor), "set the value")


def with_operands(nested: Value, values: Value) -> Value:
    """Return nested arguments of a host call with all placeholders replaced, for one run.

    Args:
        nested: the arguments as `take_operands` returns them.
        values: the values of the node's inputs.
    """
    if isinstance(nested, Operand):
        return values[nested.index]
    if isinstance(nested, Held):
        return nested.value
    if isinstance(nested, Snapshot):
        return nested.made()
    if isinstance(nested, Built):
        return nested.make(*with_operands(nested.args, values))
    if type(nested) is list or isinstance(nested, tuple):
        items = [with_operands(v, values) for v in nested]
        return nested if _is_made_of(nested, items) else sequence_like(nested, items)
    if type(nested) is dict:
        return {k: with_operands(v, values) for k, v in nested.items()}
    if type(nested) is slice:
        return slice(*[with_operands(v, values) for v in (nested.start, nested.stop, nested.step)])
    return nested


def _is_made_of(value: Value, items: list[Value]) -> bool:
    """Return whether `value` is a tuple of a user's class with exactly the objects `items`.

    The caller then uses `value` itself instead of a new sequence. The result is False for plain
    lists and tuples and for named tuples.
    """
    ours = type(value) in (list, tuple) or hasattr(value, "_fields")
    return not ours and all(a is b for a, b in zip(value, items))


def run_on_host(
    ev: Evaluation,
    function: Callable[..., Value],
    args: Args,
    kwargs: Kwargs,
    name: str,
    result_types: tuple[Value, ...] = (OBJECT,),
    objects: bool = False,
) -> Value:
    """Append a node that calls a Python function when the graph runs; return its results.

    Writes to tensors that precede the node in program order are visible to the call.

    Args:
        ev: the evaluation.
        function, args, kwargs: the call.
        name: name of the call, for messages.
        result_types: types of the results.
        objects: whether Python code will store the arguments, so that each tensor must be passed as
            the one Tensor object that represents it.

    Returns:
        the results as graph values: one value, a tuple of several, or None.
    """
    refuse_wrapper(function)
    refuse_mutation(ev, function, args, kwargs, name, objects)
    ev.outside.has_writes = True
    if OBJECT in result_types or not result_types:  # other host calls only convert values
        ev.python_effects += 1
    found = Operands()
    nested = with_snapshots(ev, take_operands(ev, (args, kwargs), found, objects))
    commits = take_writes(ev, found)
    spans = call_spans(ev)

    def run(*values: Value) -> tuple[Value, ...]:
        for target, index in commits:
            (values[target] if isinstance(target, int) else target)._rebind(values[index])
        given, named = with_operands(nested, values)
        try:
            result = function(*given, **named)
            if was_changed(nested, (given, named)):
                raise UnsupportedSyntaxError(
                    f"{name}: has changed a list or an array made while compiling (it received a "
                    "copy); use a function that returns a new one, or call it outside of compiled "
                    "code"
                )
        except Exception as error:
            mark_source(error, spans)
            raise
        if not result_types:
            return ()
        return (result,) if len(result_types) == 1 else tuple(result)

    out = ev.builder.append(
        host_call, tuple(found), {"run": HostCall(run, name), "types": tuple(result_types)}
    )
    if not result_types:
        return None
    return out[0] if len(result_types) == 1 else out


def host_number(ev: Evaluation, x: Tensor, kind: HostType) -> Value:
    """Return a tensor's only element as a symbolic number, through which no gradient flows.

    The number is known only when the graph runs; `kind` is its type. If `kind` is FLOAT and a
    function of the framework, such as an op, needs the number, a node that runs Python computes it.
    A derivative with respect to the tensor then raises an error instead of being zero.
    """
    frames = ev.calls.frames
    if kind is FLOAT and frames and frames[-1].globals.get("__name__", "").startswith(MAKERS):
        return run_on_host(ev, float, (x,), {}, NUMBER_FOR_OP, (FLOAT,))
    return number_of(x, kind)


def take_writes(ev: Evaluation, found: list[Value]) -> list[tuple[Tensor | int, int]]:
    """Return the in-place writes to tensors that must be carried out before a host call runs.

    In the graph, a write only makes a new value. The Tensor object, which Python code would read,
    still has the old value. The new values are appended to `found`, the operands of the call.

    Returns:
        a pair per write. The first item is the Tensor from outside the function or, for an argument
            of the compiled function, its operand index; the second is the operand index of the new
            value.
    """
    commits: list[tuple[Tensor | int, int]] = []
    for slot in ev.inputs.slots.values():
        if not slot.fresh and slot.written:
            found.append(ev.builder.bring(slot.current))
            commits.append((slot.tensor, len(found) - 1))
    for made, first, index in ev.inputs.arguments:
        if made._id != first or made._builder is not ev.root:
            found += [ev.builder.bring(ev.inputs.argument_object(index)), ev.builder.bring(made)]
            commits.append((len(found) - 2, len(found) - 1))
    return commits


def append_effect(
    ev: Evaluation,
    function: Callable[..., Value],
    args: Args,
    name: str,
    commit: bool = False,
    objects: bool = False,
) -> None:
    """Append a node without results that calls `function(*args)` in Python when the graph runs.

    Such a call, for example, prints, sets an attribute, or raises an error.

    Args:
        ev: the evaluation.
        function, args: the call.
        name: name of the call, for messages.
        commit: whether the values of earlier writes are stored in tensors first, so that the
            tensors have these values if the call raises. It is set for checks that can only raise.
        objects: whether Python code will store the arguments, so that each tensor must be passed as
            the one Tensor object that represents it.
    """
    found = Operands()
    ev.outside.has_writes = True
    ev.python_effects += not commit
    nested = take_operands(ev, args, found, objects)
    if objects:
        nested = with_snapshots(ev, nested)
    commits = take_writes(ev, found) if commit else []
    spans = call_spans(ev)

    def run(*values: Value) -> tuple[Value, ...]:
        for target, index in commits:
            (values[target] if isinstance(target, int) else target)._rebind(values[index])
        try:
            function(*with_operands(nested, values))
        except Exception as error:
            mark_source(error, spans)
            raise
        return ()

    ev.builder.append(host_call, tuple(found), {"run": HostCall(run, name), "types": ()})


def with_item(tensor: Value, index: Value, value: Value) -> Value:
    """Run `tensor[index] = value` in Python when the graph runs, and return the tensor."""
    tensor[index] = value
    return tensor
