"""Derivatives inside compiled code: a function becomes a closed graph, which is linearised.

`autodiff.recording` reaches `record` through the evaluator, and `cells` calls `call_with_bprop` for
a Cell with its own `bprop`. The module only builds graphs; it never runs a backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ...autodiff.custom import (
    check_gradient_of,
    custom_gradient,
    wrong_number_of_gradients,
)
from ...autodiff.linearize import Linearized, linearize
from ...autodiff.pytrees import mapped, tensors_of
from ...autodiff.recording import main_result
from ...autodiff.replay import replay
from ...autodiff.rule_checks import check_function
from ...context import settings
from ...errors import ArgumentError, GradientError, GraphError, JoinError, UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.control import custom_call
from ...ir.graph import Graph
from ...ir.values import GraphObject, NeedsValue
from ...nn.cell import Cell
from ...ops.creation import fill, zeros_of
from ...parameter import Parameter
from ...tensor import Tensor
from ...tracebacks import defined_at
from ...types import TensorType, ValueType
from ..state.builder import StagedBuilder
from ..state.captures import tensor_hooks_of
from ..state.evaluation import Evaluation
from ..state.journal import Key, Location, written_for_bprop
from ..state.outside import Restart
from ..types import Args, Kwargs, Value
from ..values.nested import depends_on_graph
from .branches import run_and_undo
from .dispatch import Dead, call
from .exceptions import raise_when_run
from .join import Join, line_by_line, with_results
from .recursion import Recursive

Ends: TypeAlias = "list[tuple[Location, Value]]"  # written locations, with what they hold then


def _run_and_undo_in(
    ev: Evaluation, child: StagedBuilder, run: Callable[[], Value]
) -> tuple[Value, Ends, Exception | None]:
    """Trace code into the graph of `child`, then undo the code's changes of variables.

    Returns:
        the result, with its tensors and containers copied so that later writes do not change them;
        pairs (written location, its content at the end of the code); and the error that ended the
        code, if any.
    """
    failed: list[Exception] = []

    def copied() -> Value:
        try:
            return _owned(ev, mapped(run(), child.copy_of))
        except (Restart, NeedsValue, Recursive, UnsupportedSyntaxError, JoinError):
            raise
        except Exception as error:  # noqa: BLE001  (the caller raises it)
            failed.append(error)
            return None

    result, changes = run_and_undo(ev, child, copied)
    return result, list(changes.values()), failed[0] if failed else None


def _owned(ev: Evaluation, value: Value) -> Value:
    """Record that evaluated code made the lists and dicts of a copied result; return the result."""
    if isinstance(value, (list, dict)):
        ev.owned.add(value)
    if isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            _owned(ev, item)
    return value


def _append_failed(
    ev: Evaluation, child: StagedBuilder, incoming: Sequence[Value], written: Ends, join: Join
) -> None:
    """Insert into the current graph what a function did before the error that ended it.

    Args:
        ev: the evaluation.
        child: the builder into which the function was traced.
        incoming: the values of the child graph's parameters in the current graph.
        written: pairs (written location, its content with placeholders of `join`).
        join: the join of the graph of `child`.
    """
    outer = list(child.outer)
    whole = child.closed(join.exports.columns[0], outer)
    found = ev.builder.inline(whole, [*incoming, *(ev.builder.tensor(i) for i in outer)])
    join.note_candidates(found)
    for location, template in written:
        ev.journal.write(location, with_results(template, found))


class GraphRecorded:
    """A function traced for its gradient: values of its forward graph, and its backward graph.

    Attributes:
        lin: the linearised graph, which holds the backward graph.
        residuals: values of the forward graph that the backward graph takes.
        outputs: the differentiated outputs.
        result: the result of the function.
        leaves: for each differentiated input, the position of its parameter of the graph.
        leaf_types: types of the differentiated inputs.
        late_reads: locations that a `bprop` reads which the backward graph contains.
    """

    def __init__(
        self,
        ev: Evaluation,
        lin: Linearized,
        residuals: Sequence[Value],
        outputs: Sequence[Value],
        result: Value,
        leaves: Sequence[int],
        leaf_types: Sequence[Value],
        late_reads: Mapping[Key, tuple[Value, str]],
    ) -> None:
        self.late_reads = late_reads
        self._pulled_at: list[Value] = []  # what these locations held when `pull` was called first
        self.leaves = leaves
        self.ev = ev
        self.lin = lin
        self.residuals = residuals
        self.outputs = outputs
        self.result = result
        self.leaf_types = leaf_types

    def pull(self, seeds: Sequence[Value]) -> list[Value]:
        """Append the nodes of the backward graph; return one gradient per differentiated input.

        Args:
            seeds: for each differentiated output its cotangent; None stands for a cotangent of
                ones.
        """
        builder = self.ev.builder
        self._check_late_reads()
        given = []
        for out, seed in zip(self.outputs, seeds, strict=True):
            if seed is None:
                one: Value = True if out.dtype.kind == "b" else 1
                seed = fill(out.shape, one, out.dtype)
            elif seed.dtype is not out.dtype:
                seed = seed.astype(out.dtype)
            given.append(builder.operand(seed, None))
        try:
            residuals = [builder.bring(r) for r in self.residuals]
        except GraphError:
            raise _needs_python(
                "vjp: got a call of a pullback outside of the branch or the loop that made it"
            ) from None
        found = builder.inline(self.lin.backward, [*residuals, *given])
        by_leaf = dict(zip(self.lin.wrt, found, strict=True))
        return [
            by_leaf[i] if i in by_leaf else zeros_of(type_)
            for i, type_ in zip(self.leaves, self.leaf_types, strict=True)
        ]

    def _check_late_reads(self) -> None:
        """Allow writes to what the user's `bprop`s read, because the gradient is computed now.

        Raises:
            UnsupportedSyntaxError: there was a write since an earlier gradient of this record.
        """
        journal = self.ev.journal
        present = [Location(k[0], o, k[2]).read() for k, (o, _) in self.late_reads.items()]
        if self._pulled_at:
            for was, now, (_, name) in zip(self._pulled_at, present, self.late_reads.values()):
                if not _is_unchanged(was, now):
                    raise written_for_bprop(name)
        self._pulled_at = present
        if not journal.derivatives:  # otherwise the outer derivative may run the `bprop`
            for key in self.late_reads:
                journal.late_reads.pop(key, None)


def _is_unchanged(was: Value, now: Value) -> bool:
    """Return whether nothing was written to a location between two reads of its content."""
    if isinstance(was, GraphTensor) and isinstance(now, GraphTensor):
        return was._builder is now._builder and was._id == now._id
    if isinstance(was, (list, dict)) and type(was) is type(now):
        return len(was) == len(now) and all(a is b for a, b in zip(_items(was), _items(now)))
    return was is now or (isinstance(was, set) and was == now)


def _items(container: Value) -> list[Value]:
    return [*container, *container.values()] if isinstance(container, dict) else container


def record(
    ev: Evaluation,
    fn: Callable[..., Value],
    args: Sequence[Value],
    kwargs: Kwargs,
    positions: Sequence[int],
    weights: Sequence[Parameter],
    has_aux: bool,
) -> GraphRecorded:
    """Trace a function for its gradient; its forward graph is inserted into the current graph.

    The function becomes a separate graph, whose first parameters are the chosen inputs and the
    weights. That graph is linearised; `GraphRecorded.pull` inserts its backward graph.

    Args:
        ev: the evaluation.
        fn, args, kwargs: the call of the function.
        positions: indices of the differentiated arguments.
        weights: the differentiated Parameters.
        has_aux: whether only the first item of the result is differentiated.

    Raises:
        UnsupportedSyntaxError: an input or weight has gradient hooks, which a graph cannot call.
    """
    for t in (*tensors_of([args[i] for i in positions]), *weights):
        if not isinstance(t, GraphTensor) and id(t) not in ev.owned.tensors:
            _check_no_hooks(ev, t)
    parent = ev.builder
    child = StagedBuilder(ev, parent)
    incoming: list[Value] = []
    leaf_types: list[ValueType] = []
    given = list(args)
    weight_ids: dict[int, int] = {}  # per slot of a weight, the id of its parameter

    def parameter(value: Value) -> Value:
        incoming.append(parent.tensor(value._id))
        leaf_types.append(value._type)
        return child.parameter(value._type)

    for i in positions:
        given[i] = mapped(given[i], lambda x: parameter(parent.operand(x, None)))

    def run() -> Value:
        for p in {id(p): p for p in weights}.values():
            slot = ev.inputs.slot(p)
            made = parameter(parent.bring(slot.current))
            ev.journal.touch("slot", slot)
            slot.current = made
            weight_ids[id(slot)] = made._id
        return call(ev, fn, tuple(given), kwargs)

    read_before = set(ev.journal.late_reads)
    result, ends, error = _evaluate_function(ev, child, run)
    join = Join.of_one(ev, child)
    outputs = []
    try:
        if error is None:
            outputs = _differentiated_outputs(child, fn, result, has_aux)
    except (ArgumentError, GradientError) as wrong:
        error = wrong
    # other exits of the graph: the rest of the result, and the writes except unwritten weights
    join.exports.columns[0].extend(outputs)
    shape = join.from_branch(result, 0)
    written = [
        (location, join.content_from_branch(location, value, 0))
        for location, value in ends
        if location.kind != "slot"
        or value._builder is not child
        or value._id != weight_ids.get(id(location.owner))
    ]
    late = {k: v for k, v in ev.journal.late_reads.items() if k not in read_before}
    for key in late:  # the writes below were made before these reads
        del ev.journal.late_reads[key]
    if error is not None:
        _append_failed(ev, child, incoming, written, join)
        raise error
    outer = list(child.outer)
    n_own = len(child.params)
    graph = child.closed(join.exports.columns[0], outer)
    lin = _linearized(graph, n_own, len(outputs))
    values = [*incoming, *(parent.tensor(i) for i in outer)]
    found = parent.inline(lin.forward, values)
    by_id = {**dict(enumerate(values)), **dict(zip(lin.forward.outputs, found, strict=True))}
    residuals = [by_id[i] for i in lin.residuals]
    join.note_candidates(found)
    for location, template in written:
        ev.journal.write(location, with_results(template, found))
    ev.journal.late_reads.update(late)
    distinct = list(dict.fromkeys(map(id, weights)))
    n_inputs = len(leaf_types) - len(distinct)
    leaves = [*range(n_inputs), *(n_inputs + distinct.index(id(p)) for p in weights)]
    result = with_results(shape, found)
    types = [leaf_types[i] for i in leaves]
    return GraphRecorded(ev, lin, residuals, found[: len(outputs)], result, leaves, types, late)


def _check_no_hooks(ev: Evaluation, tensor: Tensor) -> None:
    """Raise if gradient hooks are registered on an eager tensor that is differentiated.

    Whether there are any is compared before each later call of the compiled function.
    """
    hooks = tensor_hooks_of(tensor)
    name = getattr(tensor, "name", "a Tensor")
    ev.captures.add("tensor hooks", tensor, None, hooks, f"hooks of {name}", exact=True)
    if hooks:
        raise UnsupportedSyntaxError(
            f"register_hook: got gradient hooks of {name}, which is differentiated inside jit; a "
            "compiled function cannot call them",
            construct="hook",
            remedy="Remove the hooks, or run the function line by line",
        )


def _evaluate_function(
    ev: Evaluation, child: StagedBuilder, run: Callable[[], Value]
) -> tuple[Value, Ends, Exception | None]:
    """Trace a function to differentiate into a child graph, then undo its changes of variables.

    `run` calls the function on parameters of the builder `child`. The results are those of
    `_run_and_undo_in`.
    """
    ev.journal.derivatives += 1
    try:
        return _run_and_undo_in(ev, child, run)
    except NeedsValue as error:  # raised by the function, not by the transform
        raise _needs_python(str(error)) from None
    finally:
        ev.journal.derivatives -= 1


def _differentiated_outputs(
    child: StagedBuilder, fn: Value, result: Value, has_aux: bool
) -> list[Value]:
    """Return the differentiated tensors of a result of `fn`, as values of the child graph.

    Raises:
        GradientError: the result has no tensor.
        UnsupportedSyntaxError: Python computes the result.
    """
    main = main_result(fn, result) if has_aux else result
    with child.current():
        outputs = [child.copy_of(x) for x in tensors_of(main)]
    if not outputs and depends_on_graph(main):
        raise _needs_python(
            "grad: got a result that Python computes, whose gradient cannot be compiled"
        )
    if not outputs:
        raise GradientError(
            f"grad: the function returned {type(main).__name__} without a Tensor; wanted at least "
            "one Tensor to differentiate"
        )
    return outputs


def _linearized(graph: Graph, n_inputs: int, n_outputs: int) -> Linearized:
    """Return the forward graph, with residuals, and the backward graph of a graph.

    The backward graph takes the residuals and the cotangents of the first `n_outputs` outputs; it
    returns cotangents of those of the first `n_inputs` inputs that have one (see `Linearized.wrt`).
    Raises UnsupportedSyntaxError if compiled code cannot compute the gradient.
    """
    wanted = [i < n_inputs for i in range(graph.n_params)]
    present = [i < n_outputs for i in range(len(graph.outputs))]
    try:
        return linearize(graph, wanted, present)
    except NeedsValue as error:
        raise _needs_python(str(error)) from None


def _needs_python(why: str) -> UnsupportedSyntaxError:
    """Return the error for a gradient that compiled code cannot compute."""
    return UnsupportedSyntaxError(
        why,
        construct="grad",
        remedy="Compute it with ops whose result has a known size, or differentiate outside",
    )


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
    result, ends, error = _run_and_undo_in(
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
        _append_failed(ev, forward, values, written, join)
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
    own = backward.params
    captured = []
    for i in outer:
        known = backward.outer.get(i)
        captured.append(backward._value(parent.types[i])._id if known is None else known)
    back = backward.renumbered([*own[:n], *captured, *own[n:]], [g._id for g in grads])
    if settings.debug:
        _check_bprop(cell, graph, back, n)
    operands = (*values, *(parent.tensor(i) for i in outer))
    attributes = {"graph": graph, "backward": back, "n_args": n, "name": type(cell).__name__}
    made = parent.append(custom_call, operands, attributes)
    join.note_candidates(made)
    for location, template in written:
        ev.journal.write(location, with_results(template, made))
    return with_results(shape, made)


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
            found, changes, error = _run_and_undo_in(ev, backward, run)
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
                raise _needs_python(f"{name}: its bprop returned a gradient that Python computes")
            check_gradient_of(name, place, i, want.shape, want.dtype, g)
            if g is None:
                g = zeros_of(want)
            elif isinstance(g, (int, float, np.number)):
                g = fill(want.shape, g.item() if isinstance(g, np.number) else g, want.dtype)
            g = g if g.dtype is want.dtype else g.astype(want.dtype)
            grads.append(backward.operand(g, None))
    return grads
