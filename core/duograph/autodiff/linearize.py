"""From a graph to its derivative: a forward graph that also returns residuals, and a backward
graph.

The nodes are copied first, structured ones (`control_flow.py`) with what their backward will need;
then the bprop rules are traced behind them, in reverse order. What the live part of the backward
uses of the forward are the residuals. So a shape that a rule asks for costs nothing, and a rule
that uses only its output keeps only its output.

Sums of cotangents are formed in the order in which the eager tape forms them: nodes in reverse
program order, operands of one call in order, and a composite op as one call, whose own sums are
complete before they are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.builder import GraphBuilder, expand
from ..ir.graph import Graph, GraphNode
from ..ir.values import NeedsValue
from ..op import Op
from ..ops.movement import identity
from ..types import OBJECT, TensorType, ValueType
from .activity import expandable, has_cotangent, passes_on
from .control_flow import PLANS, Session
from .optional_cotangents import ABSENT
from .sweep import Linearized, Sweep

__all__ = ["Linearized", "linearize"]


def linearize(
    graph: Graph,
    wanted: Sequence[bool],
    present: Sequence[bool],
    seeded: Sequence[bool] | None = None,
) -> Linearized:
    """Differentiate `graph` with respect to the `wanted` parameters.

    Args:
        wanted: per parameter, whether its cotangent is asked for.
        present: per result, whether a cotangent will be given (else it is zero).
        seeded: per parameter, whether a cotangent is given to which its own is added; such a
        parameter is wanted.

    Raises:
        GradientError: an op on the way has no rule, or a rule returned something of the wrong kind.
    """
    session = Session(Joint)
    joint = Joint(graph, wanted, session)
    seeds = (False,) * graph.n_params if seeded is None else seeded
    found = joint.halves(tuple(map(int, present)), tuple(map(int, seeds)), True)
    session.finish()
    return found


class Joint:
    """A graph that is being differentiated: its nodes as they will run forward, and which values
    are active.

    Attributes:
        builder: holds the forward nodes; every backward is traced onto a copy.
        active: ids of the values that depend on a wanted parameter.
        alias: the names under which a composite op knows its operands, each with the operand's id.
        plans: of structured nodes, by position.
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
        self.plans: dict[int, Any] = {}
        self._halves: dict[Any, Linearized] = {}
        self.outputs = self._copied(graph, range(graph.n_params), None)

    # ---- forward --------------------------------------------------------------------------------

    def add(
        self,
        op: Op,
        operands: tuple[int | None, ...],
        attributes: Mapping[str, Any],
        types: Sequence[ValueType],
        single: bool,
        span: Any,
    ) -> tuple[int, ...]:
        """Append a node whose types are known."""
        builder = self.builder
        first = len(builder.types)
        builder.types.extend(types)
        results = tuple(range(first, first + len(types)))
        builder.nodes.append(GraphNode(op, operands, attributes, results, single, span))
        return results

    def _copied(self, graph: Graph, params: Sequence[int], span: Any) -> list[int]:
        """Append the nodes of `graph` on these values, composites on the way of a cotangent by
        their bodies.
        """
        env: dict[Any, Any] = dict(enumerate(params))
        env[None] = None
        active, types = self.active, graph.types
        for node in graph.nodes:
            operands = tuple([env[i] for i in node.operands])
            own = node.span or span
            made: Sequence[int] | None = None
            on_the_way = not active.isdisjoint(operands)
            op = node.op
            if on_the_way:
                if op.name == "host_call" and _may_depend(node, types):
                    raise NeedsValue(
                        "grad: got a value that Python computes from one that is differentiated, through which no "
                        "compiled gradient goes"
                    )
                plan = PLANS.get(op.name)
                if plan is not None:
                    made = plan(self, node, operands, own)
                elif expandable(op):
                    made = self._expanded(node, operands, own)
            if made is None:
                kinds = [types[r] for r in node.results]
                made = self.add(op, operands, node.attributes, kinds, node.single, own)
                # a plan that declines says that no cotangent comes through the node
                if on_the_way and op.name not in PLANS and passes_on(op):
                    active.update(m for m, t in zip(made, kinds) if has_cotangent(t))
            env.update(zip(node.results, made))
        return [env[i] for i in graph.outputs]

    def _expanded(self, node: GraphNode, operands: tuple[int | None, ...], span: Any) -> list[int]:
        """The body of a composite, fed so that its cotangents are summed apart and then added in
        operand order.
        """
        builder_types = self.builder.types
        types: tuple[Any, ...] = tuple(None if i is None else builder_types[i] for i in operands)
        inner = expand(node.op, types, node.attributes)
        values = [i for i in operands if i is not None]
        uses = _uses(inner)
        fed = list(values)
        for k in reversed(range(len(values))):
            v = values[k]
            if v in self.active and (uses[k] > 1 or values.count(v) > 1):
                (fed[k],) = self.add(identity, (v,), {}, (builder_types[v],), True, span)
                self.alias[fed[k]] = self.alias.get(v, v)
                self.active.add(fed[k])
        return self._copied(inner, fed, span)

    # ---- backward -------------------------------------------------------------------------------

    def halves(
        self, present: Sequence[int], seeded: Sequence[int], outermost: bool = False
    ) -> Linearized:
        """The two halves for cotangents of these statuses."""
        key = (tuple(present), tuple(seeded), outermost)
        found = self._halves.get(key)
        if found is None:
            found = self._halves[key] = Sweep(self, *key).halves()
        return found

    def everything(self) -> Linearized:
        """The halves that keep the most residuals: every result that can have a cotangent has one."""
        present = [int(has_cotangent(self.graph.types[i])) for i in self.graph.outputs]
        return self.halves(present, (ABSENT,) * self.graph.n_params)


# Calls of Python that make a text, or the object of a tensor, which only places outside get.
_SILENT = {"format", "join", "str", "repr", "tensor object"}


def _may_depend(node: GraphNode, types: Sequence[ValueType]) -> bool:
    """Whether a result of Python's may hold something with a gradient."""
    if node.attributes["run"].name in _SILENT:
        return False
    found = [types[r] for r in node.results]
    return any(t is OBJECT or (isinstance(t, TensorType) and t.dtype.kind in "fc") for t in found)


def _uses(graph: Graph) -> list[int]:
    """How often each parameter is used; one that is returned as it is counts twice."""
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
