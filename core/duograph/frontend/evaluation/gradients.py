"""Derivatives inside compiled code: a function becomes a closed graph, which is linearised.

`autodiff.recording` reaches `record` through the evaluator; Cells with a `bprop` of their own are
in `custom_bprops`. The module only builds graphs; it never runs a backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ...autodiff.linearize import Linearized, linearize
from ...autodiff.pytrees import mapped, tensors_of
from ...autodiff.recording import main_result
from ...errors import ArgumentError, GradientError, GraphError, JoinError, UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.graph import Graph
from ...ir.values import NeedsValue
from ...ops.creation import fill, zeros_of
from ...parameter import Parameter
from ...tensor import Tensor
from ...types import ValueType
from ..state.builder import StagedBuilder
from ..state.captures import tensor_hooks_of
from ..state.evaluation import Evaluation
from ..state.journal import Key, Location, written_for_bprop
from ..state.outside import Restart
from ..types import Kwargs, Value
from ..values.nested import depends_on_graph
from .branches import run_and_undo
from .dispatch import call
from .join import Join
from .joined_values import with_results
from .recursion import Recursive

Ends: TypeAlias = "list[tuple[Location, Value]]"  # written locations, with what they hold then


def run_and_undo_in(
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


def append_failed(
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
            raise needs_python(
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
        append_failed(ev, child, incoming, written, join)
        raise error
    outer = list(child.outer)
    n_own = len(child.params)
    graph = child.closed(join.exports.columns[0], outer)
    lin = _linearized(graph, n_own, len(outputs))
    values = [*incoming, *(parent.tensor(i) for i in outer)]
    found, residuals = _insert_forward(parent, lin, values)
    join.note_candidates(found)
    for location, template in written:
        ev.journal.write(location, with_results(template, found))
    ev.journal.late_reads.update(late)
    leaves = _leaves_of(len(leaf_types), weights)
    result = with_results(shape, found)
    types = [leaf_types[i] for i in leaves]
    return GraphRecorded(ev, lin, residuals, found[: len(outputs)], result, leaves, types, late)


def _insert_forward(
    parent: StagedBuilder, lin: Linearized, values: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """Insert the forward graph of a linearised function into the graph `parent`.

    `values` are its arguments. Returns its results, and the residuals that its backward graph
    takes.
    """
    found = parent.inline(lin.forward, values)
    by_id = {**dict(enumerate(values)), **dict(zip(lin.forward.outputs, found, strict=True))}
    return found, [by_id[i] for i in lin.residuals]


def _leaves_of(n_parameters: int, weights: Sequence[Parameter]) -> list[int]:
    """Return which parameter of a function's graph stands for each input and each weight.

    The graph has `n_parameters` of them: one for each input, then one for each distinct weight.
    """
    distinct = list(dict.fromkeys(map(id, weights)))
    n_inputs = n_parameters - len(distinct)
    return [*range(n_inputs), *(n_inputs + distinct.index(id(p)) for p in weights)]


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
    `run_and_undo_in`.
    """
    ev.journal.derivatives += 1
    try:
        return run_and_undo_in(ev, child, run)
    except NeedsValue as error:  # raised by the function, not by the transform
        raise needs_python(str(error)) from None
    finally:
        ev.journal.derivatives -= 1


def _differentiated_outputs(
    child: StagedBuilder, fn: Value, result: Value, has_aux: bool
) -> list[Value]:
    """Return the differentiated tensors of a result of `fn`, as values of the child graph.

    Raises:
        GradientError: the result has no tensor.
        UnsupportedSyntaxError: a graph node that calls Python code computes the result, which has
            no gradient.
    """
    main = main_result(fn, result) if has_aux else result
    with child.current():
        outputs = [child.copy_of(x) for x in tensors_of(main)]
    if not outputs and depends_on_graph(main):
        raise needs_python(
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
        raise needs_python(str(error)) from None


def needs_python(why: str) -> UnsupportedSyntaxError:
    """Return the error for a gradient that compiled code cannot compute."""
    return UnsupportedSyntaxError(
        why,
        construct="grad",
        remedy="Compute it with ops whose result has a known size, or differentiate outside",
    )
