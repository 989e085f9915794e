"""Differentiates a graph: a forward graph that also returns residuals, and a backward graph.

The tape's plans and the compiler call `linearize`. It copies the nodes of the graph; nodes with
control flow (`control_flow`) are replaced by nodes that also return what their backward needs. A
`Sweep` then traces the gradient rules, last node first, and appends their ops to the copy. The
residuals are those forward values that backward nodes read. A rule that uses only the shape of a
value therefore keeps no residual, and a rule that uses only its op's output keeps only that.

Cotangents are summed in the order in which the eager tape sums them: nodes in reverse program
order, and the operands of one call in order. A composite op counts as one call: its own sums are
complete before they are added. Eager and compiled gradients are therefore equal bit for bit.
Nothing here may change this order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.builder import GraphBuilder, expand
from ..ir.control import custom_call
from ..ir.graph import Graph, GraphNode, NamedGraph, SourceSpan
from ..ir.values import NeedsValue
from ..op import Op
from ..ops.movement import identity
from ..types import OBJECT, TensorType, ValueType
from .activity import (
    Activity,
    expandable,
    has_cotangent,
    has_side_effects,
    operand_types,
    passes_on,
)
from .control_flow import PLANS, Plan, Session
from .optional_cotangents import ABSENT
from .partition import Linearized
from .subgraphs import Ids
from .sweep import Sweep

__all__ = ["NUMBER_FOR_OP", "Linearized", "linearize"]


def linearize(
    graph: Graph,
    wanted: Sequence[bool],
    present: Sequence[bool],
    seeded: Sequence[bool] | None = None,
) -> Linearized:
    """Differentiate a graph; return its forward graph with residuals and its backward graph.

    Args:
        graph: the graph, which is not changed.
        wanted: for each parameter, whether to compute its cotangent.
        present: for each result, whether a call of the backward graph passes a cotangent for it;
            the other cotangents count as absent.
        seeded: for each parameter, whether a call of the backward graph passes a cotangent to which
            the graph adds the one that it computes; such a parameter must be wanted. None: no call
            passes such a cotangent.

    Raises:
        GradientError: an active op has no rule, or a rule returned something of the wrong kind.
        NeedsValue: Python code in the graph computes a value from a differentiated one, or only a
            run can tell whether a `bprop` of the user's with side effects has to run.
    """
    session = Session(Joint)
    _check_own_bprops(graph, wanted, session.activity)
    joint = Joint(graph, wanted, session)
    seeds = (False,) * graph.n_params if seeded is None else seeded
    found = joint.halves(tuple(map(int, present)), tuple(map(int, seeds)), True)
    session.finish()
    return found


def _check_own_bprops(graph: Graph, wanted: Sequence[bool], activity: Activity) -> None:
    """Raise NeedsValue if a `bprop` with side effects has inputs that are active in some runs only.

    Line by line, a `bprop` does not run where the run has made its inputs constant.
    """
    if not _has_own_bprop_with_effects(graph, set()):
        return
    activity.results(graph, [w and has_cotangent(t) for w, t in zip(wanted, graph.types)])
    if activity.uncertain:
        raise NeedsValue(
            f"grad: got a bprop of {', '.join(sorted(activity.uncertain))} that prints or has "
            "another side effect, for an input that is a constant in some of the runs, such as "
            "after a branch that overwrites it"
        )


def _has_own_bprop_with_effects(graph: Graph, seen: set[Graph]) -> bool:
    """Return whether a graph, with all it contains and calls, has such a `custom_call`.

    `seen` are the graphs that need no further look.
    """
    if graph in seen:
        return False
    seen.add(graph)
    for node in graph.nodes:
        if node.op is custom_call and has_side_effects(node.attributes["backward"]):
            return True
        target = node.attributes.get("target")
        called = target.graph if isinstance(target, NamedGraph) else None
        for inner in node.graphs if called is None else (called,):
            if _has_own_bprop_with_effects(inner, seen):
                return True
    return False


class Joint:
    """The forward nodes of a graph being differentiated, to which sweeps append backward nodes.

    Attributes:
        graph: the graph.
        wanted: for each parameter, whether it is differentiated.
        session: the state of the linearization to which the graph belongs.
        builder: the builder that holds the forward nodes; every sweep works on a copy.
        active: ids of the values that depend on a wanted parameter.
        alias: id of an `identity` result through which a composite op's body reads an operand -> id
            of the operand.
        plans: position of a node with control flow -> how to differentiate it.
        outputs: ids of the results.
    """

    def __init__(self, graph: Graph, wanted: Sequence[bool], session: Session) -> None:
        self.graph = graph
        self.wanted = tuple(wanted)
        self.session = session
        self.builder = builder = GraphBuilder()
        for i in range(graph.n_params):
            builder.parameter(graph.types[i])
        self.active = {i for i, w in enumerate(self.wanted) if w and has_cotangent(graph.types[i])}
        self.alias: dict[int, int] = {}
        self.plans: dict[int, Plan] = {}
        self._halves: dict[tuple[tuple[int, ...], tuple[int, ...], bool], Linearized] = {}
        self.outputs = self.inline(graph, range(graph.n_params), None)

    # ---- forward --------------------------------------------------------------------------------

    def add(
        self,
        op: Op,
        operands: Ids,
        attributes: Mapping[str, object],
        types: Sequence[ValueType],
        single: bool,
        span: SourceSpan | None,
    ) -> tuple[int, ...]:
        """Append a node with known result types to the forward graph; return its results' ids.

        `types` are the result types; `single` says whether the op returns one value instead of a
        tuple.
        """
        builder = self.builder
        first = len(builder.types)
        builder.types.extend(types)
        results = tuple(range(first, first + len(types)))
        builder.nodes.append(GraphNode(op, operands, attributes, results, single, span))
        return results

    def inline(self, graph: Graph, params: Sequence[int], span: SourceSpan | None) -> list[int]:
        """Append another graph's nodes to the forward graph, with `params` for its parameters.

        Returns the ids of the other graph's outputs in the forward graph. Where values are active,
        composite ops without a gradient rule are replaced by their bodies, and control-flow nodes
        by nodes that also return residuals. `span` is the source location for nodes that have none.

        Raises:
            NeedsValue: Python code in the other graph computes a value from an active one.
        """
        env: dict[int, int] = dict(enumerate(params))
        active, types = self.active, graph.types
        for node in graph.nodes:
            operands = tuple([None if i is None else env[i] for i in node.operands])
            own = node.span or span
            made: Sequence[int] | None = None
            on_active = not active.isdisjoint(operands)
            op = node.op
            if on_active:
                if op.name == "host_call" and _may_have_gradient(node, types):
                    raise NeedsValue(
                        "grad: got a value that Python computes from one that is differentiated, "
                        "through which no compiled gradient goes"
                    )
                plan = PLANS.get(op.name)
                if plan is not None:
                    made = plan(self, node, operands, own)
                elif expandable(op):
                    made = self._expanded(graph, node, operands, own)
            if made is None:
                kinds = [types[r] for r in node.results]
                made = self.add(op, operands, node.attributes, kinds, node.single, own)
                # a plan returns None if no cotangent flows through the node
                if on_active and op.name not in PLANS and passes_on(node, types):
                    active.update(m for m, t in zip(made, kinds) if has_cotangent(t))
            env.update(zip(node.results, made))
        return [env[i] for i in graph.outputs]

    def _expanded(
        self, graph: Graph, node: GraphNode, operands: Ids, span: SourceSpan | None
    ) -> list[int]:
        """Append a composite op's body to the forward graph; return the ids of its results.

        A differentiated operand that the body reads more than once is passed to it through an
        `identity` node. Its cotangents are then summed within the body first, and the sum is added
        once, in the order of the operands. The eager tape sums in the same order.
        """
        inner = expand(node.op, operand_types(graph, node), node.attributes)
        values = [i for i in operands if i is not None]
        uses = _uses(inner)
        fed = list(values)
        for k in reversed(range(len(values))):
            v = values[k]
            if v in self.active and (uses[k] > 1 or values.count(v) > 1):
                (fed[k],) = self.add(identity, (v,), {}, (self.builder.types[v],), True, span)
                self.alias[fed[k]] = self.alias.get(v, v)
                self.active.add(fed[k])
        return self.inline(inner, fed, span)

    # ---- backward -------------------------------------------------------------------------------

    def halves(
        self, present: Sequence[int], seeded: Sequence[int], outermost: bool = False
    ) -> Linearized:
        """Return the forward and backward graph for one combination of existing cotangents, cached.

        Args:
            present: for each result, the status of its cotangent: in which runs it exists.
            seeded: for each parameter, the status of a cotangent to which the backward graph adds.
            outermost: whether the graph is not a sub-graph of the one being linearized.
        """
        key = (tuple(present), tuple(seeded), outermost)
        found = self._halves.get(key)
        if found is None:
            found = self._halves[key] = Sweep(self, *key).halves()
        return found

    def full_halves(self) -> Linearized:
        """Return the forward and backward graph for the case that all results have cotangents.

        No other case needs more residuals.
        """
        present = [int(has_cotangent(self.graph.types[i])) for i in self.graph.outputs]
        return self.halves(present, (ABSENT,) * self.graph.n_params)


# Calls of Python that return a string, or a tensor object that only host code receives.
_WITHOUT_GRADIENT = {"format", "join", "str", "repr", "tensor object"}
# The call that reads a number for a function of the framework, which makes a tensor of it.
NUMBER_FOR_OP = "a number for an op"


def _may_have_gradient(node: GraphNode, types: Sequence[ValueType]) -> bool:
    """Return whether a host call returns a value through which a gradient might have to pass.

    A host call is a node that runs Python code, which cannot be differentiated; if the result is
    True, the caller refuses the graph. `types` are the types of the graph's values.
    """
    if node.attributes["run"].name in _WITHOUT_GRADIENT:
        return False
    if node.attributes["run"].name == NUMBER_FOR_OP:
        return True
    found = [types[r] for r in node.results]
    return any(t is OBJECT or (isinstance(t, TensorType) and t.dtype.kind in "fc") for t in found)


def _uses(graph: Graph) -> list[int]:
    """Return how often a graph uses each parameter; being an output counts as two uses."""
    n = graph.n_params
    uses = [0] * n
    for node in graph.nodes:
        for i in node.operands:
            if i is not None and i < n:
                uses[i] += 1
    for i in graph.outputs:
        if i < n:
            uses[i] += 2
    return uses
