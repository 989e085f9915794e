"""Recursion under a graph condition: a function becomes a named graph that calls itself.

A call is recursive in this sense if the same function is already being evaluated with arguments of
the same types and equal constants, because unrolling would never end. (A number that differs from
call to call, such as a depth, becomes a graph value after SAME_BUT_NUMBERS nested calls.)
`functions` then evaluates the outer call again as a named graph. The result type comes from the
branch that ends without a recursive call, and a second evaluation uses it. A named graph must not
write anything outside it; functions that would do so are refused.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

from ...autodiff.pytrees import mapped, tensors_of
from ...errors import UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.control import call as call_op
from ...ir.graph import NamedGraph
from ...ir.values import HostValue, kind_of
from ..state.builder import StagedBuilder
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from ..values.functions import Function
from ..values.nested import tuple_like
from .aliasing import note_candidates, tensor_behind
from .branches import run_condition
from .dispatch import Dead
from .join import Join
from .joined_values import with_results
from .spans import set_error_span

_graph_numbers = itertools.count()


SAME_BUT_NUMBERS = 8
# The most evaluations until the types of a recursive result must be stable.
_MAX_EVALUATIONS = 12


class Recursive(Exception):
    """Raised to trace an unfinished function call again, as a named graph that calls itself.

    Attributes:
        record: the unfinished call.
        numbers: whether the number arguments of the call must become graph values.
    """

    def __init__(self, record: OpenCall, numbers: bool = False) -> None:
        self.record = record
        self.numbers = numbers


class OpenCall:
    """A call of a user's function that is being traced, recorded to detect recursion.

    Attributes:
        key: hashable key of the arguments: types of graph values, values of constants.
        loose: the same key without the values of numbers.
        conditions: how many graph conditions surrounded the call when it began.
        target: the named graph of the function if the call is known to be recursive, else None.
        shape: the structure of the call's result, with placeholders for results of the named graph.
        known: whether `shape` is known.
        captured: values of the enclosing graph that the named graph takes as parameters.
        pending: whether a recursive call was met while the result was unknown.
    """

    def __init__(self, key: Value, loose: Value = None, conditions: int = 0) -> None:
        self.key = key
        self.loose = loose
        self.conditions = conditions
        self.target: NamedGraph | None = None
        self.shape: Value = None
        self.known = False
        self.captured: list[Value] = []
        self.pending = False


def _signature(value: Value, loose: bool = False) -> Value:
    """Return a hashable key of call arguments, which decides whether two calls are the same.

    It has the types of graph values, and the values of constants; other objects count by identity.

    Args:
        value: the arguments, or an item of them.
        loose: whether to leave out the values of numbers.
    """
    if isinstance(value, (GraphTensor, HostValue)):
        return value._type
    if isinstance(value, (tuple, list)):
        return (type(value), *[_signature(v, loose) for v in value])
    if isinstance(value, dict):
        return (dict, *[(k, _signature(v, loose)) for k, v in value.items()])
    if loose and kind_of(value) is not None:
        return kind_of(value)
    if isinstance(value, (int, float, str, bool, type(None))):
        return (type(value), repr(value))
    return (type(value), id(value))


def _identity(f: Function) -> Value:
    """Return a hashable key of a function's closure, defaults and enclosing call.

    Two functions made by the same `def` with equal keys compute the same results.
    """
    cells = tuple(map(id, f.closure.values()))
    return id(f.parent), cells, _signature(f.defaults), _signature(f.kw_defaults)


def open_call(
    ev: Evaluation, f: Function, args: Args, kwargs: Kwargs
) -> Callable[[], Value] | None:
    """Record that tracing of a function call starts; detect whether the call is recursive.

    A call that is being traced is *open*. The new call is recursive if an open call of the same
    function has arguments of the same types, with equal constants.

    Returns:
        None in most cases; the caller must then trace the body and call `close_call`. If the open
            call already has a named graph: a function that appends a call of that graph.

    Raises:
        Recursive: the open call must be traced again, as a named graph.
    """
    node = f.source.node
    records = ev.calls.open_calls.setdefault(node, [])
    key = (_signature(args), _signature(kwargs), _identity(f))
    for record in records:
        if record.key == key:
            if record.target is None:
                raise Recursive(record)
            return lambda: _call_again(ev, record, args, kwargs)
    loose = (_signature(args, True), _signature(kwargs, True), _identity(f))
    same = [r for r in records if r.loose == loose and r.target is None]
    if len(same) >= SAME_BUT_NUMBERS and ev.journal.conditions > same[0].conditions:
        raise Recursive(same[0], numbers=True)
    records.append(OpenCall(key, loose, ev.journal.conditions))
    return None


def with_numbers(ev: Evaluation, value: Value) -> Value:
    """Return nested call arguments with their numbers converted to graph values."""
    if kind_of(value) is not None:
        return ev.builder.host(value)
    if type(value) in (tuple, list):
        return type(value)(with_numbers(ev, v) for v in value)
    if type(value) is dict:
        return {k: with_numbers(ev, v) for k, v in value.items()}
    return value


def close_call(ev: Evaluation, f: Function) -> None:
    """Record that tracing of a function call ended, after `open_call` recorded its start."""
    ev.calls.open_calls[f.source.node].pop()


def _graph_leaves(args: Args, kwargs: Kwargs) -> list[Value]:
    """Return the graph values in nested call arguments, in the order in which they occur."""
    found: list[Value] = []

    def walk(value: Value) -> None:
        if isinstance(value, (GraphTensor, HostValue)):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            for v in value:
                walk(v)
        elif isinstance(value, dict):
            for v in value.values():
                walk(v)

    walk(args)
    walk(kwargs)
    return found


def _call_again(ev: Evaluation, record: OpenCall, args: Args, kwargs: Kwargs) -> Value:
    """Append a node that calls a named graph recursively; return the result of the call.

    Raises:
        Dead: the result type is not known yet; a branch that does not recurse must determine it
            first.
    """
    if not record.known:
        record.pending = True
        raise Dead  # the other branch determines the result type
    assert record.target is not None
    builder = ev.builder
    operands = [builder.bring(v) for v in (*_graph_leaves(args, kwargs), *record.captured)]
    found = builder.append(call_op, tuple(operands), {"target": record.target})
    return with_results(record.shape, found)


def call_named_graph(
    ev: Evaluation,
    f: Function,
    args: Args,
    kwargs: Kwargs,
    run: Callable[..., Value],
) -> Value:
    """Trace a recursive function into a named graph, and append a call of that graph.

    Returns the result of the call.

    Args:
        ev: the evaluation.
        f: the function.
        args, kwargs: the arguments of the call.
        run: function that evaluates the body for given arguments.

    Raises:
        RecursionError: every branch makes a recursive call.
        UnsupportedSyntaxError: the types of the result keep changing.
    """
    parent = ev.builder
    record = OpenCall((_signature(args), _signature(kwargs), _identity(f)))
    target = record.target = NamedGraph(f"{f.__name__}_{next(_graph_numbers)}", ())
    outer: list[int] = []
    for _ in range(_MAX_EVALUATIONS):
        child = StagedBuilder(ev, parent)
        body = functools.partial(_body, ev, f, record, child, args, kwargs, run, outer)
        shape, outputs, returned = _evaluate_named(ev, f, record, child, body)
        types = tuple(v._type for v in outputs)
        stable = record.known and types == target.result_types and list(child.outer) == outer
        record.shape, record.known = shape, True
        target.result_types = types
        captured = list(child.outer)
        if stable:
            target.graph = child.closed(outputs, outer)
            target.effects = target.graph.effects
            break
        outer = captured
    else:
        raise UnsupportedSyntaxError(
            f"{f.__name__}: the types of its result differ at every recursive call; wanted one "
            "type",
            construct="recursion",
            remedy="Return one shape and dtype from every branch",
        )
    operands = [*map(parent.bring, _graph_leaves(args, kwargs)), *(parent.tensor(i) for i in outer)]
    found = parent.append(call_op, tuple(operands), {"target": target})
    if any(_may_be_parameter(target.graph, i) for i in target.graph.outputs):
        returned += tensors_of((args, kwargs))
    for x in found:
        note_candidates(ev, x, [t for t in returned if t._type.plain is x._type.plain])
    return with_results(record.shape, found)


def _body(
    ev: Evaluation,
    f: Function,
    record: OpenCall,
    child: StagedBuilder,
    args: Args,
    kwargs: Kwargs,
    run: Callable[..., Value],
    outer: Sequence[int],
) -> Value:
    """Trace a recursive function's body on graph parameters for its arguments; return the result.

    `outer` lists ids of values of the enclosing graph that also become parameters. `run` evaluates
    the body.
    """
    given, named = _as_parameters(child, args), _as_parameters(child, kwargs)
    assert child.parent is not None
    record.captured = [child.bring(child.parent.tensor(i)) for i in outer]
    try:
        return run(given, named)
    except Dead:
        error = RecursionError(
            f"{f.__name__}: There isn't any branch that can be evaluated: every branch "
            f"calls {f.__name__} again; wanted one that ends"
        )
        set_error_span(ev, error, f.source, f.source.node)
        raise error from None


def _evaluate_named(
    ev: Evaluation,
    f: Function,
    record: OpenCall,
    child: StagedBuilder,
    body: Callable[[], Value],
) -> tuple[Value, list[Value], list[Value]]:
    """Trace a recursive function's body once into its named graph.

    Args:
        ev: the evaluation.
        f: the function.
        record: the open call.
        child: the builder of the named graph.
        body: function that evaluates the body on parameters of `child` and returns the result.

    Returns:
        the result with placeholders, the outputs of the graph, and the tensors other than arguments
            that the result may be.
    """
    record.pending = False
    records = ev.calls.open_calls.setdefault(f.source.node, [])
    records.append(record)
    try:
        result, ends = run_condition(ev, child, body)
    finally:
        records.pop()
    _refuse_writes(ev, f, ends)
    join = Join.of_one(ev, child)
    returned = [tensor_behind(ev, x) for x in tensors_of(result)]
    with child.current():
        brought = mapped(result, child.copy_of)
    shape = join.from_branch(_bring_host_values(child, brought), 0)
    return shape, join.exports.columns[0], returned


def _may_be_parameter(graph: Value, i: int) -> bool:
    """Return whether value `i` of a graph may be one of the graph's parameters, unchanged.

    A `switch` may return a parameter from a branch, and a call may return an argument.
    """
    if i < graph.n_params:
        return True
    node = next(n for n in graph.nodes if i in n.results)
    if node.op.name == "switch":
        k = node.results.index(i)
        return any(_may_be_parameter(b, b.outputs[k]) for b in node.attributes["branches"])
    return node.op.name == "call" and any(_may_be_parameter(graph, o) for o in node.operands)


def _bring_host_values(child: StagedBuilder, value: Value) -> Value:
    """Return a function's result with its symbolic Python values as values of `child`'s graph.

    A symbolic Python value is a number or object known only when the graph runs. If it belongs to
    an enclosing graph, it becomes a parameter of `child`'s graph.
    """
    if isinstance(value, HostValue):
        return child.bring(value)
    if isinstance(value, tuple):
        return tuple_like(value, [_bring_host_values(child, v) for v in value])
    if type(value) is list:
        return [_bring_host_values(child, v) for v in value]
    return value


def _as_parameters(child: StagedBuilder, value: Value) -> Value:
    """Return nested call arguments with each graph value replaced by a parameter of `child`."""
    if isinstance(value, (GraphTensor, HostValue)):
        return child.parameter(value._type)
    if isinstance(value, tuple):
        items = [_as_parameters(child, v) for v in value]
        return tuple_like(value, items)
    if type(value) is list:
        return [_as_parameters(child, v) for v in value]
    if type(value) is dict:
        return {k: _as_parameters(child, v) for k, v in value.items()}
    return value


def _refuse_writes(ev: Evaluation, f: Function, ends: dict[Value, Value]) -> None:
    """Raise UnsupportedSyntaxError if a recursive function wrote anything outside its own graph.

    `ends` maps the variables, attributes, containers and tensors that the function wrote to their
    last contents. A function that recurses under a graph condition may write nothing.
    """
    if ends:
        raise UnsupportedSyntaxError(
            f"{f.__name__}: got a function that calls itself under a condition on a Tensor and "
            "writes a Parameter, an attribute or a variable outside; return the value instead"
        )
