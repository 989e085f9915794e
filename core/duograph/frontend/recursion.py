"""Functions that call themselves under a condition on a tensor: a named graph that calls itself.

A call is recursive in this sense when the same function is being evaluated already with arguments
of the same types and equal constants: unrolling it would never end. (A number that differs from
call to call, such as a depth, becomes one that is known when the graph runs, once the calls are
SAME_BUT_NUMBERS deep.) The outer call starts over as a named graph. The type of its result comes
from the branch that ends without a recursive call; a second evaluation knows it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from ..autodiff.transforms import mapped, tensors_of
from ..errors import UnsupportedSyntaxError
from ..ir.builder import GraphTensor
from ..ir.control import call as call_op
from ..ir.graph import NamedGraph
from ..ir.values import HostValue, kind_of
from .aliases import note_one_of
from .branches import Exports, Join, fill_in
from .builder import StagedBuilder
from .frames import Function
from .spans import begin_at
from .trace import Trace

__all__ = ["Recursive", "guard", "leave", "named_call", "with_numbers"]

_numbers = itertools.count()
SAME_BUT_NUMBERS = 8


class Recursive(Exception):
    """The call of `record` turned out to be recursive; `numbers`: its numbers are to be values of
    the graph.
    """

    def __init__(self, record: Record, numbers: bool = False) -> None:
        self.record = record
        self.numbers = numbers


class Record:
    """A call that is being evaluated.

    Attributes:
        key: function and arguments.
        target: its named graph, when it is known to be recursive.
        shape: its result with places for the results of the graph; None while that is unknown.
        captured: values of the graph around that the named graph uses, as its own parameters.
        pending: a recursive call was met while the result was unknown.
    """

    def __init__(self, key: Any, loose: Any = None, conditions: int = 0) -> None:
        self.key = key
        self.loose = loose
        self.conditions = conditions
        self.target: NamedGraph | None = None
        self.shape: Any = None
        self.known = False
        self.captured: list[Any] = []
        self.pending = False


def _key(value: Any, loose: bool = False) -> Any:
    """What tells calls apart; `loose` leaves the values of numbers out."""
    if isinstance(value, (GraphTensor, HostValue)):
        return value._type
    if isinstance(value, (tuple, list)):
        return (type(value), *[_key(v, loose) for v in value])
    if isinstance(value, dict):
        return (dict, *[(k, _key(v, loose)) for k, v in value.items()])
    if loose and kind_of(value) is not None:
        return kind_of(value)
    if isinstance(value, (int, float, str, bool, type(None))):
        return (type(value), repr(value))
    return (type(value), id(value))


def guard(
    t: Trace, f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[], Any] | None:
    """How to make the call when it closes a loop of calls, else None; then `leave` ends it."""
    node = f.source.node
    records = t.calls.setdefault(node, [])
    key = (_key(args), _key(kwargs), id(f.parent))
    for record in records:
        if record.key == key:
            if record.target is None:
                raise Recursive(record)
            return lambda: _again(t, record, args, kwargs)
    loose = (_key(args, True), _key(kwargs, True), id(f.parent))
    same = [r for r in records if r.loose == loose and r.target is None]
    if len(same) >= SAME_BUT_NUMBERS and t.conditions > same[0].conditions:
        raise Recursive(same[0], numbers=True)
    records.append(Record(key, loose, t.conditions))
    return None


def with_numbers(t: Trace, value: Any) -> Any:
    """Arguments with their numbers as values of the graph."""
    if kind_of(value) is not None:
        return t.builder.host(value)
    if type(value) in (tuple, list):
        return type(value)(with_numbers(t, v) for v in value)
    if type(value) is dict:
        return {k: with_numbers(t, v) for k, v in value.items()}
    return value


def leave(t: Trace, f: Function) -> None:
    """A call that `guard` let through has ended."""
    t.calls[f.source.node].pop()


def _leaves(args: Any, kwargs: Any) -> list[Any]:
    found: list[Any] = []

    def walk(value: Any) -> None:
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


def _again(t: Trace, record: Record, args: Any, kwargs: Any) -> Any:
    """A recursive call: a node that calls the named graph."""
    from .calls import Dead

    if not record.known:
        record.pending = True
        raise Dead  # the other branch says what the type of the result is
    assert record.target is not None
    builder = t.builder
    operands = [builder.bring(v) for v in (*_leaves(args, kwargs), *record.captured)]
    found = builder.append(call_op, tuple(operands), {"target": record.target})
    return fill_in(record.shape, found)


def named_call(
    t: Trace, f: Function, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[..., Any]
) -> Any:
    """Evaluate a recursive call as a named graph, and call it.

    Args:
        run: evaluates the body for given arguments.

    Raises:
        RecursionError: no branch ends without a recursive call.
    """
    from .calls import Dead

    parent = t.builder
    key = (_key(args), _key(kwargs), id(f.parent))
    record = Record(key)
    record.target = NamedGraph(f"{f.__name__}_{next(_numbers)}", ())
    outer: list[int] = []
    records = t.calls.setdefault(f.source.node, [])
    for _ in range(12):
        child = StagedBuilder(t, parent)
        record.pending = False
        records.append(record)

        def body(child: StagedBuilder = child, outer: list[int] = outer) -> Any:
            given, named = _entered(child, args), _entered(child, kwargs)
            record.captured = [child.bring(parent.tensor(i)) for i in outer]
            try:
                return run(given, named)
            except Dead:
                error = RecursionError(
                    f"{f.__name__}: There isn't any branch that can be evaluated: every branch calls "
                    f"{f.__name__} again; wanted one that ends"
                )
                begin_at(t, error, f.source, f.source.node)
                raise error from None

        t.conditions += 1
        try:
            result, ends = t.undone(child, body)
        finally:
            t.conditions -= 1
            records.pop()
        _refuse_writes(t, f, ends)
        join = Join(t, None, [child], ("", ""))
        join.exports = exports = Exports([child])
        with child.current():
            brought = mapped(result, functools.partial(_own, child))
        shape = join.only(_hosted(child, brought), 0)
        outputs = exports.columns[0]
        types = tuple(v._type for v in outputs)
        settled = (
            record.known and types == record.target.result_types and list(child.outer) == outer
        )
        record.shape, record.known = shape, True
        record.target.result_types = types
        new = list(child.outer)
        if settled:
            record.target.graph = child.closed(outputs, outer)
            record.target.effects = record.target.graph.effects
            break
        outer = new
    else:
        raise UnsupportedSyntaxError(
            f"{f.__name__}: the types of its result differ at every recursive call; wanted one type",
            construct="recursion",
            remedy="Return one shape and dtype from every branch",
        )
    operands = [*map(parent.bring, _leaves(args, kwargs)), *(parent.tensor(i) for i in outer)]
    found = parent.append(call_op, tuple(operands), {"target": record.target})
    graph = record.target.graph
    if any(_passed_on(graph, i) for i in graph.outputs):
        for x in found:
            given = [a for a in tensors_of((args, kwargs)) if a._type.plain is x._type.plain]
            note_one_of(t, x, given)
    return fill_in(record.shape, found)


def _passed_on(graph: Any, i: int) -> bool:
    """Whether a value of a graph may be one of its parameters."""
    if i < graph.n_params:
        return True
    node = next(n for n in graph.nodes if i in n.results)
    if node.op.name == "switch":
        k = node.results.index(i)
        return any(_passed_on(b, b.outputs[k]) for b in node.attributes["branches"])
    return node.op.name == "call" and any(_passed_on(graph, o) for o in node.operands)


def _own(child: StagedBuilder, x: Any) -> Any:
    return child.tensor(child.operand(x, None)._id)


def _hosted(child: StagedBuilder, value: Any) -> Any:
    """The result with host values of other graphs as values of the child's."""
    if isinstance(value, HostValue):
        return child.bring(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_hosted(child, v) for v in value)
    if type(value) is list:
        return [_hosted(child, v) for v in value]
    return value


def _entered(child: StagedBuilder, value: Any) -> Any:
    if isinstance(value, (GraphTensor, HostValue)):
        return child.parameter(value._type)
    if isinstance(value, tuple):
        items = [_entered(child, v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is list:
        return [_entered(child, v) for v in value]
    if type(value) is dict:
        return {k: _entered(child, v) for k, v in value.items()}
    return value


def _refuse_writes(t: Trace, f: Function, ends: dict[Any, Any]) -> None:
    if ends:
        raise UnsupportedSyntaxError(
            f"{f.__name__}: got a function that calls itself under a condition on a Tensor and writes a Parameter, "
            f"an attribute or a variable outside; return the value instead"
        )
