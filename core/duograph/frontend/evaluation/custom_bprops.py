"""Calls of Cells with a `bprop` of their own, in compiled code: one node with two graphs.

`cells` calls `call_with_bprop`. The module only builds the graphs of `construct` and `bprop`; it
never runs either, and an error that `bprop` raises must not reach a call without a derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...autodiff.custom import (
    check_gradient_of,
    custom_gradient,
    wrong_number_of_gradients,
)
from ...autodiff.pytrees import tensors_of
from ...autodiff.replay import replay
from ...autodiff.rule_checks import check_function
from ...context import settings
from ...errors import JoinError, UnsupportedSyntaxError
from ...ir.control import custom_call
from ...ir.graph import Graph
from ...ir.values import GraphObject
from ...nn.cell import Cell
from ...ops.creation import fill, zeros_of
from ...tensor import Tensor
from ...tracebacks import defined_at
from ...types import TensorType
from ..state.builder import StagedBuilder
from ..state.evaluation import Evaluation
from ..state.journal import written_for_bprop
from ..types import Args, Kwargs, Value
from .dispatch import Dead, call
from .exceptions import raise_when_run
from .gradients import Ends, append_failed, needs_python, run_and_undo_in
from .join import Join, line_by_line
from .joined_values import with_results

__all__ = ["call_with_bprop"]


def call_with_bprop(ev: Evaluation, cell: Value, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of a Cell with its own `bprop` and return its result.

    One `custom_call` node is appended, with the graphs of `construct` and of `bprop`. An error that
    tracing `bprop` raises becomes a node of the latter, because only a derivative runs `bprop`.

    Raises:
        UnsupportedSyntaxError: `construct` writes to an input, or `bprop` to an object from outside
            it, or `bprop` reads what `construct` or later code writes.
    """
    parent = ev.builder
    forward = StagedBuilder(ev, parent)
    indices = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
    values = [parent.operand(args[i], None) for i in indices]
    given = list(args)
    for i, v in zip(indices, values, strict=True):
        given[i] = forward.parameter(v._type)
    firsts = [(given[i], given[i]._id) for i in indices]
    result, ends, error = run_and_undo_in(
        ev, forward, lambda: call(ev, cell.construct, tuple(given), kwargs)
    )
    if any(v._id != first for v, first in firsts):
        raise UnsupportedSyntaxError(
            f"{type(cell).__name__}: its construct writes to an input, and it has its own bprop; "
            "a compiled call would write to a copy of the input",
            construct="bprop",
            remedy="Write to a copy of the input, or do not compile",
        )
    join = Join.of_one(ev, forward)
    exports = join.exports
    with forward.current():
        returned = [(forward.operand(x, None), x) for x in tensors_of(result)]
    outs = [exports.add_row([value], (x,)).index for value, x in returned]
    shape = join.from_branch(result, 0)
    written = [(location, join.content_from_branch(location, value, 0)) for location, value in ends]
    if error is not None:
        append_failed(ev, forward, values, written, join)
        raise error
    backward = StagedBuilder(ev, parent)
    inner = [backward.parameter(v._type) for v in values]
    results = [backward.parameter(x._type) for x in exports.columns[0]]
    douts = [backward.parameter(x._type) for x in exports.columns[0]]
    given = list(args)
    for i, v in zip(indices, inner, strict=True):
        given[i] = v

    def bprop() -> Value:
        if not outs:  # no derivative leads here
            return None
        several = isinstance(result, (tuple, list))
        dout: Value = tuple(douts[i] for i in outs) if several else douts[outs[0]]
        return call(ev, cell.bprop, (*given, with_results(shape, results), dout), {})

    grads = _traced_bprop(ev, backward, cell, args, indices, ends, bprop)
    outer = list(dict.fromkeys([*forward.outer, *backward.outer]))
    graph = forward.closed(exports.columns[0], outer)
    n = len(inner)
    back = _backward_graph(backward, outer, n, grads)
    if settings.debug:
        _check_bprop(cell, graph, back, n)
    operands = (*values, *(parent.tensor(i) for i in outer))
    attributes = {"graph": graph, "backward": back, "n_args": n, "name": type(cell).__name__}
    made = parent.append(custom_call, operands, attributes)
    join.note_candidates(made)
    for location, template in written:
        ev.journal.write(location, with_results(template, made))
    return with_results(shape, made)


def _backward_graph(
    backward: StagedBuilder, outer: Sequence[int], n: int, grads: Sequence[Value]
) -> Graph:
    """Return the graph of a `bprop`.

    Its parameters are the inputs of `construct`, then the values of `outer`, as in the graph of
    `construct`; the other parameters of the `bprop` (the output and its cotangent) follow.

    Args:
        backward: the builder of the `bprop`.
        outer: the values of the enclosing graph that either graph reads; they become parameters
            after the first `n`, also where the `bprop` does not read them.
        n: the number of inputs of `construct`.
        grads: the results of the `bprop`.
    """
    assert backward.parent is not None
    types = backward.parent.types
    captured = []
    for i in outer:
        known = backward.outer.get(i)
        captured.append(backward._value(types[i])._id if known is None else known)
    own = backward.params
    return backward.renumbered([*own[:n], *captured, *own[n:]], [g._id for g in grads])


def _traced_bprop(
    ev: Evaluation,
    backward: StagedBuilder,
    cell: Cell,
    args: Sequence[Value],
    indices: Sequence[int],
    written: Ends,
    run: Callable[[], Value],
) -> list[Value]:
    """Trace a Cell's `bprop` into the graph of `backward`; return its gradients as graph tensors.

    Args:
        ev, backward, cell, args, indices: see `_gradients`.
        written: what `construct` has written.
        run: function that calls `bprop`.
    """
    name = type(cell).__name__
    try:
        with ev.journal.bprop() as reads:
            for x in args:  # it gets these objects, not copies
                ev.journal.note_contents(x)
            found, changes, error = run_and_undo_in(ev, backward, run)
    except JoinError as join:  # uncompiled code runs the bprop only under a derivative
        raise line_by_line(join) from None
    if changes:  # code after the derivative would not see them
        what = "a Tensor" if changes[0][0].kind == "slot" else "an object"
        raise UnsupportedSyntaxError(
            f"{name}: its bprop writes to {what} that existed before; a compiled derivative has no "
            "place for that",
            construct="bprop",
            remedy="Write in construct or after the derivative, or do not compile",
        )
    if any((kind, id(owner), key) in reads for (kind, owner, key), _ in written):
        raise written_for_bprop(name)
    ev.journal.late_reads.update({key: (owner, name) for key, owner in reads.items()})
    try:
        if error is None:
            return _gradients(ev, backward, cell, args, indices, found)
    except UnsupportedSyntaxError:
        raise
    except Exception as wrong:  # noqa: BLE001  (the graph raises it)
        error = wrong
    depth = ev.journal.conditions
    if ev.calls.conditions_of(error, depth) != depth:
        raise error  # it is not certain that the bprop raises it
    with backward.current():
        if not isinstance(error, Dead):  # the code that raised it has not appended a node
            raise_when_run(ev, error)
        inputs = [backward.tensor(i) for i in backward.params[: len(indices)]]
        return [zeros_of(x._type) for x in inputs]


def _check_bprop(cell: Value, graph: Graph, backward: Graph, n_args: int) -> None:
    """Compare a Cell's own `bprop` with finite differences; warn if they differ.

    Does nothing if one of the graphs has control flow or Python code.

    Args:
        cell: the Cell.
        graph: the graph of `construct`.
        backward: the graph of `bprop`.
        n_args: the number of tensor arguments, which are the first parameters of both graphs.
    """
    types = graph.types[: graph.n_params]
    if any(node.op.graph_only for node in (*graph.nodes, *backward.nodes)) or not all(
        isinstance(t, TensorType) for t in types
    ):
        return

    def function(*values: Tensor) -> Value:
        rest = values[n_args:]

        def bprop(*args: Value) -> Value:
            *inputs, out, dout = args
            return replay(backward, [*inputs, *rest, *out, *dout])

        return custom_gradient(
            lambda *inputs: replay(graph, [*inputs, *rest]), bprop, values[:n_args], "bprop"
        )

    check_function(type(cell).__name__, type(cell).bprop, function, types, n_args)


def _gradients(
    ev: Evaluation,
    backward: StagedBuilder,
    cell: Cell,
    args: Sequence[Value],
    indices: Sequence[int],
    found: Value,
) -> list[Value]:
    """Return the results of a Cell's `bprop` as graph tensors, one gradient per tensor input.

    Args:
        ev: the evaluation.
        backward: the builder of the graph of `bprop`.
        cell: the Cell.
        args: the inputs of the Cell.
        indices: positions of the tensor inputs among `args`.
        found: what `bprop` returned.
    """
    rule: Value = getattr(type(cell), "bprop")  # noqa: B009  (the caller checked it)
    name, place = type(cell).__name__, defined_at(rule)
    items = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(items) == len(args):
        items = [items[i] for i in indices]
    elif len(items) != len(indices):
        raise wrong_number_of_gradients(name, place, len(items), len(args))
    grads = []
    with backward.current():
        for i, g in zip(indices, items, strict=True):
            want: Value = backward.types[backward.params[indices.index(i)]]
            if isinstance(g, GraphObject):
                raise needs_python(f"{name}: its bprop returned a gradient that Python computes")
            check_gradient_of(name, place, i, want.shape, want.dtype, g)
            if g is None:
                g = zeros_of(want)
            elif isinstance(g, (int, float, np.number)):
                g = fill(want.shape, g.item() if isinstance(g, np.number) else g, want.dtype)
            g = g if g.dtype is want.dtype else g.astype(want.dtype)
            grads.append(backward.operand(g, None))
    return grads
