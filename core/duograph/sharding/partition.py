"""The SPMD partitioner: rewrites a graph of global tensors into the graph of one rank.

`compiler.divide` calls `partition` for programs that run on several ranks in a parallel mode that
shards tensors; other programs never reach this module. The resulting graph computes the wanted
shards of the outputs from the local shards of the inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from ..ir.builder import GraphBuilder, GraphValue, expand
from ..ir.graph import Graph, GraphNode
from ..ranks.world import World
from ..types import TensorType, ValueType
from .equations import Equation, equation_of, has_equation, localized
from .layouts import Axis, Mesh, Placement, check_divisible
from .propagation import Dims, divided_letters, propagate
from .redistribution import Communication, Redistributor, State
from .report import report
from .stages import Stages

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["BATCH", "Divided", "Layouts", "WHOLE", "layouts", "partition"]

# The layout of an output: replicated, or sharded along axis 0 only, as propagated. An int names the
# input whose layout the output must have.
WHOLE, BATCH = "whole", "batch"


@dataclasses.dataclass(frozen=True)
class Divided:
    """A graph partitioned among ranks: the graph that one rank runs, and the decisions behind it.

    Attributes:
        graph: the graph of one rank, on local shards.
        mesh: the mesh of ranks.
        inputs: the layout of every input.
        shapes: the global shape of every input; None for an input that is no tensor.
        communications: the collectives, in program order.
        whole: the ops that run replicated on global tensors because they have no equation; each
            with its source location.
        stages: what the ranks of this rank's pipeline stage run, which is what they divide among
            them; None without a pipeline.
    """

    graph: Graph
    mesh: Mesh
    inputs: tuple[Dims, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    communications: tuple[Communication, ...]
    whole: tuple[str, ...]
    stages: Stages | None = None

    def report(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return a description of the partitioned program, as lines.

        `names` are those of its inputs.
        """
        return report(self, names)


@dataclasses.dataclass(frozen=True)
class Layouts:
    """The layouts of all values of a program on global tensors.

    Attributes:
        graph: the program, in which bodies replace the ops that have a body but no index equation.
        mesh: the mesh of ranks.
        dims: value id -> layout; a value that is missing is replicated.
        equations: the index equation of each node.
    """

    graph: Graph
    mesh: Mesh
    dims: dict[int, Dims]
    equations: Sequence[Equation]

    def placement(self, value: int) -> Placement:
        """Return the placement of a value."""
        kind = self.graph.types[value]
        ndim = kind.ndim if isinstance(kind, TensorType) else 0
        return Placement(self.dims.get(value) or ((),) * ndim, self.mesh.ranks)


def layouts(
    graph: Graph,
    ranks: Sequence[int],
    known: Mapping[int, Placement],
    fixed: Collection[int],
    wanted: Sequence[str | int],
    messages: Mapping[int, Placement] = MappingProxyType({}),
) -> Layouts:
    """Propagate the known layouts of a program; the arguments are those of `partition`.

    Raises:
        ShapeError, ArgumentValueError: see `partition`.
    """
    graph = _expanded(graph)
    constraints = {
        node.results[0]: node for node in graph.nodes if node.op.name == "sharding_constraint"
    }
    given = [n.attributes["placement"] for n in constraints.values()]
    mesh = Mesh([*known.values(), *given, *messages.values()], ranks)
    dims = {i: mesh.refined(p) for i, p in known.items()}
    kept = set(fixed)
    for value, node in constraints.items():
        kind = graph.types[value]
        assert isinstance(kind, TensorType)
        place = _place(node)
        check_divisible(
            f"{node.attributes['owner']}{place}", kind.shape, node.attributes["placement"]
        )
        dims[value] = mesh.refined(node.attributes["placement"])
        kept.add(value)
    for node in graph.nodes:
        if node.op.name == "receive" and node.attributes["tag"] in messages:
            dims[node.results[0]] = mesh.refined(messages[node.attributes["tag"]])
            kept.add(node.results[0])
    for i, wish in enumerate(wanted):
        if isinstance(wish, int) and wish in dims:
            dims.setdefault(graph.outputs[i], dims[wish])
    equations = propagate(graph, dims, kept)
    return Layouts(graph, mesh, dims, equations)


def partition(
    graph: Graph,
    world: World,
    ranks: Sequence[int],
    known: Mapping[int, Placement],
    fixed: Collection[int],
    wanted: Sequence[str | int],
    messages: Mapping[int, Placement] = MappingProxyType({}),
) -> Divided:
    """Partition a graph; return the graph of this rank.

    Args:
        graph: the program on global tensors.
        world: the world of this rank.
        ranks: the ranks of the mesh, which include this one.
        known: position of an input -> its placement.
        fixed: positions of the inputs whose placement propagation may not change; one that is not
            in `known` is replicated.
        wanted: the layout of each output: "whole" (replicated), "batch" (as propagated, but sharded
            along axis 0 only), or the position of an input whose layout it takes.
        messages: number of a message between pipeline stages -> the placement of its tensor.

    Raises:
        ShapeError: a layout does not fit a tensor.
        ArgumentValueError: the layouts do not fit together.
    """
    if len(ranks) == 1:  # one rank of a pipeline stage: nothing is sharded, and every bit stays
        none: tuple[Dims, ...] = tuple(
            [
                ((),) * (t.ndim if isinstance(t, TensorType) else 0)
                for t in graph.types[: graph.n_params]
            ]
        )
        return Divided(graph, Mesh((), ranks), none, _shapes(graph), (), ())
    found = layouts(graph, ranks, known, fixed, wanted, messages)
    writer = _Writer(found.graph, found.mesh, world, found.dims, messages)
    return writer.run(found.equations, wanted)


def _expanded(graph: Graph) -> Graph:
    """Replace the calls of ops that have a body but no equation by their bodies."""
    if all(has_equation(n.op) or _body_of(n) is None for n in graph.nodes):
        return graph
    builder = GraphBuilder()
    values: dict[int, GraphValue] = {}
    for i in range(graph.n_params):
        values[i] = builder.parameter(graph.types[i])
    _inline(builder, graph, values)
    outputs = tuple(values[i]._id for i in graph.outputs)
    return Graph(graph.n_params, builder.types, builder.nodes, outputs, graph.single)


def _inline(builder: GraphBuilder, graph: Graph, values: dict[int, GraphValue]) -> None:
    for node in graph.nodes:
        before = builder.span
        builder.span = node.span or before
        body = None if has_equation(node.op) else _body_of(node)
        if body is None:
            results = _copied(builder, node, [_get(values, i) for i in node.operands],
                              node.attributes, [graph.types[i] for i in node.results])  # fmt: skip
            values.update(zip(node.results, results, strict=True))
        else:
            types = tuple(None if i is None else graph.types[i] for i in node.operands)
            inner = expand(node.op, types, node.attributes)  # type: ignore[arg-type]
            given = [values[i] for i in node.operands if i is not None]
            inside: dict[int, GraphValue] = dict(enumerate(given))
            _inline(builder, inner, inside)
            outs = [inside[i] for i in inner.outputs]
            values.update(zip(node.results, outs, strict=True))
        builder.span = before


def _get(values: dict[int, GraphValue], i: int | None) -> GraphValue | None:
    return None if i is None else values[i]


def _body_of(node: GraphNode) -> object:
    """Return the body or decomposition that can replace a call of an op; None if there is none."""
    if node.op.graph_only or node.op.effects or node.op.host:
        return None
    return node.op.body or node.op.decompose_rule


def _copied(
    builder: GraphBuilder,
    node: GraphNode,
    operands: Sequence[GraphValue | None],
    attributes: Mapping[str, object],
    types: Sequence[ValueType],
) -> list[GraphValue]:
    """Append a copy of the call `node` to the builder's graph; return its results.

    The copy has the given operands (None for an absent one), attributes and result types.
    """
    first = len(builder.types)
    builder.types.extend(types)
    ids = tuple(range(first, first + len(types)))
    given = tuple(None if x is None else x._id for x in operands)
    builder.nodes.append(GraphNode(node.op, given, attributes, ids, node.single, node.span))
    return [builder.tensor(i) for i in ids]


def _place(node: GraphNode) -> str:
    return "" if node.span is None else f" at {node.span.file}:{node.span.line}"


class _Writer:
    """Writes the graph of one rank, node by node.

    Attributes:
        values: id of a value of the global graph -> its local shard and its layout.
        messages: see `partition`.
        zeros: ids of values that are 0 everywhere, and hence partial sums along any mesh axis.
    """

    def __init__(
        self,
        graph: Graph,
        mesh: Mesh,
        world: World,
        dims: dict[int, Dims],
        messages: Mapping[int, Placement],
    ) -> None:
        self.graph, self.mesh, self.dims, self.messages = graph, mesh, dims, messages
        self.builder = GraphBuilder()
        self.moving = Redistributor(mesh, world)
        self.values: dict[int, tuple[GraphValue, State]] = {}
        self.zeros: set[int] = set()
        self.whole: dict[str, None] = {}
        self._changed: dict[tuple[int, State], GraphValue] = {}

    def run(self, equations: Sequence[Equation], wanted: Sequence[str | int]) -> Divided:
        graph = self.graph
        inputs = []
        for i in range(graph.n_params):
            dims = self._dims(i)
            inputs.append(dims)
            made = self.builder.parameter(_local(graph.types[i], dims))
            self.values[i] = made, State(dims)
        with self.builder.current():
            for node, equation in zip(graph.nodes, equations, strict=True):
                self.builder.span = node.span
                self.moving.why, self.moving.place = node.op.name, _place(node)
                self._write(node, equation)
            self.builder.span = None
            self.moving.why, self.moving.place = "a result", ""
            outputs = [self._output(i, wish) for i, wish in zip(graph.outputs, wanted, strict=True)]
        made_graph = Graph(
            graph.n_params, self.builder.types, self.builder.nodes, tuple(outputs), graph.single
        )
        return Divided(
            made_graph, self.mesh, tuple(inputs), _shapes(graph), tuple(self.moving.found),
            tuple(self.whole),
        )  # fmt: skip

    def _dims(self, value: int) -> Dims:
        kind = self.graph.types[value]
        ndim = kind.ndim if isinstance(kind, TensorType) else 0
        return self.dims.get(value) or ((),) * ndim

    def _output(self, value: int, wish: str | int) -> int:
        kind = self.graph.types[value]
        if not isinstance(kind, TensorType):
            return int(self.values[value][0]._id)
        dims: Dims = ((),) * kind.ndim
        if isinstance(wish, int):
            dims = self._dims(wish)
        elif wish == BATCH and kind.ndim:
            dims = (self._dims(value)[0], *dims[1:])
        return int(self._as(value, State(dims))._id)

    def _as(self, value: int, want: State) -> GraphValue:
        """Return the local shard of a value in the layout `want`, redistributed if necessary.

        Each redistribution is appended only once.
        """
        x, have = self.values[value]
        if have == want:
            return x
        found = self._changed.get((value, want))
        if found is None:
            found = self._changed[value, want] = cast(
                "GraphValue", self.moving.change(cast("Tensor", x), have, want)
            )
        return found

    def _write(self, node: GraphNode, equation: Equation) -> None:
        if node.op.name == "sharding_constraint":
            (source,), (result,) = node.operands, node.results
            assert source is not None
            want = State(self._dims(result))
            self.values[result] = self._as(source, want), want
            return
        if node.attributes.get("tag") in self.messages:
            self._message(node)
            return
        if node.op.name == "fill" and node.attributes["value"] == 0:
            self.zeros.add(node.results[0])
        letters = divided_letters(node, equation, self.graph.types, self.dims)
        operands, partial, sums = self._operands(node, equation, letters)
        types = self.graph.types
        results = [_local(types[i], _of(letters, text))
                   for i, text in zip(node.results, equation.results, strict=True)]  # fmt: skip
        given = [None if x is None else x._type for x in operands]
        attributes = localized(node, given, results) if letters else node.attributes
        made = _copied(self.builder, node, operands, attributes, results)
        if letters:
            self._check(node, given, attributes, results)
        elif not equation.divisible and self._could_divide(node):
            self.whole[f"{node.op.name}{_place(node)}"] = None
        for i, text, x in zip(node.results, equation.results, made, strict=True):
            missing = frozenset(a for c, axes in sums.items() if c not in text for a in axes)
            if missing and equation.combine != "sum":
                order = tuple(sorted(missing, reverse=True))
                x, missing = (
                    cast(
                        "GraphValue",
                        self.moving.reduced(cast("Tensor", x), order, equation.combine),
                    ),
                    frozenset(),
                )
            self.values[i] = x, State(_of(letters, text), partial | missing)

    def _message(self, node: GraphNode) -> None:
        """Write a message between pipeline stages: the local shard goes to or comes from a peer."""
        dims = self.mesh.refined(self.messages[node.attributes["tag"]])
        (result,) = node.results
        kind = self.graph.types[result]
        operands = [self._as(i, State(dims)) for i in node.operands if i is not None]
        attributes, state = node.attributes, State(())
        if not operands:  # it is received
            kind, state = _local(kind, dims), State(dims)
            assert isinstance(kind, TensorType)
            attributes = {**attributes, "shape": kind.shape}
        (made,) = _copied(self.builder, node, operands, attributes, [kind])
        self.values[result] = made, state

    def _operands(
        self, node: GraphNode, equation: Equation, letters: dict[str, tuple[Axis, ...]]
    ) -> tuple[list[GraphValue | None], frozenset[Axis], dict[str, tuple[Axis, ...]]]:
        """Return the operands of a call, redistributed to the layouts that it needs.

        An absent operand is None. The second result holds the mesh axes along which partial
        operands make partial results; the third maps each contracted letter to the mesh axes that
        shard it. `letters` maps each sharded letter of the call's index equation to the mesh axes
        that shard it.
        """
        partial = self._linear(node, equation, letters)
        inside = set("".join(equation.operands))
        sums = {
            c: axes for c, axes in letters.items()
            if c in inside and any(c not in text for text in equation.results)
        }  # fmt: skip
        summed = frozenset(a for axes in sums.values() for a in axes)
        operands: list[GraphValue | None] = []
        for k, (i, text) in enumerate(zip(node.operands, equation.operands, strict=True)):
            if i is None:
                operands.append(None)
                continue
            if not isinstance(self.graph.types[i], TensorType):
                operands.append(self.values[i][0])
                continue
            have = self.values[i][1]
            keep = have.partial & partial
            if k in equation.added and i not in self.zeros:
                keep |= summed
            operands.append(self._as(i, State(_of(letters, text), keep)))
        return operands, partial, sums

    def _linear(
        self, node: GraphNode, equation: Equation, letters: dict[str, tuple[Axis, ...]]
    ) -> frozenset[Axis]:
        """Return the mesh axes along which operands of a call may stay partial sums.

        The op must be linear in the operands that are partial along such an axis
        (`Equation.linear`). `letters` maps each sharded letter of `equation` to the mesh axes that
        shard it.
        """
        busy = {a for axes in letters.values() for a in axes}
        states = [None if i is None else self.values[i][1] for i in node.operands]
        found = {a for s in states if s is not None for a in s.partial} - busy

        def carries(k: int, axis: Axis) -> bool:
            state = states[k]
            return state is not None and axis in state.partial

        def passes(axis: Axis) -> bool:
            given = {k for k in range(len(states)) if carries(k, axis)}
            return any(
                given.issubset(group)
                and all(k in given or node.operands[k] in self.zeros for k in group)
                for group in equation.linear
            )

        return frozenset(filter(passes, found))

    def _could_divide(self, node: GraphNode) -> bool:
        """Return whether a call without an equation reads a value that is sharded or partial."""
        states = (self.values[i][1] for i in node.operands if i is not None)
        return not has_equation(node.op) and any(s.used or s.partial for s in states)

    def _check(
        self,
        node: GraphNode,
        given: Sequence[ValueType | None],
        attributes: Mapping[str, object],
        results: Sequence[ValueType],
    ) -> None:
        """Assert that an op infers the types `results`, which follow from its equation.

        `given` are the types of the operands on one rank.
        """
        found = node.op.result_types(
            cast("tuple[TensorType | None, ...]", tuple(given)), attributes
        )
        kinds = list(found) if isinstance(found, tuple) else [found]
        assert kinds == list(results), (node.op.name, str(equation_of(node, self.graph.types)),
                                        given, kinds, results)  # fmt: skip


def _shapes(graph: Graph) -> tuple[tuple[int, ...] | None, ...]:
    """Return the shapes of a graph's inputs; None for an input that is no tensor."""
    return tuple(
        [t.shape if isinstance(t, TensorType) else None for t in graph.types[: graph.n_params]]
    )


def _of(letters: dict[str, tuple[Axis, ...]], text: str) -> Dims:
    return tuple(letters.get(c, ()) for c in text)


def _local(kind: ValueType, dims: Dims) -> ValueType:
    """Return the type of the local shard of a tensor with layout `dims`.

    Other types are unchanged.
    """
    if not isinstance(kind, TensorType):
        return kind
    shape = list(kind.shape)
    for i, axes in enumerate(dims):
        for axis in axes:
            shape[i] //= axis.size
    return kind.with_(shape=tuple(shape))
