"""The gradients of calls of recursive functions, and of calls with a user's own backward.

`linearize` calls `plan_call` and `plan_custom`. A call of a function that is not recursive is
inlined. A recursive function becomes a pair of functions: a forward function that also returns its
residuals as a stack with one frame, and a backward function that takes this stack. Because all
residuals are one value, the result types of the forward function are known before its graph, which
calls itself, is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ir.builder import GraphBuilder, GraphValue
from ..ir.control import call, stack_new, stack_pop, stack_push, switch
from ..ir.graph import Graph, GraphNode, NamedGraph, SourceSpan
from ..ir.liveness import live_nodes
from ..ir.values import NeedsValue
from ..types import BOOL, STACK
from .activity import forward_uses, has_cotangent, lost_in_bprop
from .host_rules import additive_identity
from .optional_cotangents import ABSENT, GARBAGE, NEUTRAL, PRESENT, Cotangent
from .partition import renumbered
from .subgraphs import Ids, backward_inputs, by_parameter, reopened, spliced

if TYPE_CHECKING:
    from .control_flow import Session
    from .linearize import Joint
    from .sweep import Sweep

__all__ = ["RecursivePair", "plan_call", "plan_custom"]


class RecursivePair:
    """The differentiated form of a recursive function: a forward and several backward functions.

    There is a backward function for each combination of statuses of the cotangents passed to it. A
    status says in which runs a cotangent exists (see `optional_cotangents.Cotangent`).

    Attributes:
        session: the state of the linearization to which the function belongs.
        target: the recursive function.
        wanted: for each parameter, whether it is differentiated.
        active: for each result, whether it depends on a wanted parameter.
        forward: the function that returns the results and a stack of residuals.
        wanted_params: positions of the wanted parameters.
        name: prefix of the names of the new graphs.
    """

    def __init__(self, session: Session, target: NamedGraph, wanted: tuple[bool, ...]) -> None:
        self.session = session
        self.target = target
        self.wanted = wanted
        self.wanted_params = [i for i, w in enumerate(wanted) if w]
        self.active = session.activity.called(target, wanted)
        self.name = f"{target.name}_of_{_digits(wanted)}"
        self.forward = NamedGraph(f"{self.name}_forward", (*target.result_types, STACK))
        self.forward.effects = target.effects
        self._backwards: dict[tuple[tuple[int, ...], tuple[int, ...]], NamedGraph] = {}

    def build(self) -> None:
        """Build the graph of `forward`, which also returns a stack of residuals."""
        target, session = _graph_of(self.target), self.session
        self.joint: Joint = session.joint(target, self.wanted, session)
        self.full = lin = self.joint.full_halves()
        builder = reopened(lin.forward)
        with builder.current():
            empty = builder.append(stack_new, (), {})
            residuals = [builder.tensor(i) for i in lin.residuals]
            stack = builder.append(stack_push, (empty, *residuals), {})
        outputs = (*lin.forward.outputs[: lin.n_results], stack._id)
        self.forward.graph = Graph(builder.n_params, builder.types, builder.nodes, outputs, False)

    def backward(self, present: tuple[int, ...], seeded: tuple[int, ...]) -> NamedGraph:
        """Return the backward function for one combination of existing cotangents.

        It takes (stack of residuals, cotangents of results..., cotangents of parameters to add
        to..., run-time flags...), with a flag for each of these cotangents that is not PRESENT. It
        returns a cotangent per wanted parameter, then the flags of the parameters
        `flagged(seeded)`. The function is created at the first request; its graph is complete after
        `Session.finish`.

        Args:
            present: for each result, the status of its cotangent.
            seeded: for each parameter, the status of a cotangent to which the function adds.
        """
        found = self._backwards.get((present, seeded))
        if found is None:
            graph = _graph_of(self.target)
            name = f"{self.name}_backward_{_digits(present)}_{_digits(seeded)}"
            types = [graph.types[i] for i in self.wanted_params]
            found = NamedGraph(name, (*types, *[BOOL] * len(self.flagged(seeded))))
            self._backwards[present, seeded] = found
            self.session.pending.append(lambda: self._complete(found, present, seeded))
        return found

    def flagged(self, seeded: Sequence[int]) -> list[int]:
        """Return the wanted parameters for whose cotangents the backward function returns flags.

        A flag says at run time whether the cotangent exists. A recursive function may use different
        parameters in each run, so any of their cotangents may be absent. The exception is a
        cotangent that is added to one of status PRESENT: it exists in every run and needs no flag.
        `seeded` has, for each parameter, the status of a cotangent to which the function adds.
        """
        return [i for i in self.wanted_params if seeded[i] != PRESENT]

    def _complete(
        self, named: NamedGraph, present: tuple[int, ...], seeded: tuple[int, ...]
    ) -> None:
        """Build the graph of the backward function `named` for cotangents of the given statuses.

        A status is ABSENT, PRESENT, NEUTRAL or GARBAGE. `present` has, for each result, that of its
        cotangent; `seeded`, for each parameter, that of a cotangent to which the function adds.
        """
        halves = self.joint.halves(present, seeded)
        types = self.joint.graph.types
        builder = GraphBuilder()
        stack = builder.parameter(STACK)
        taken = [*zip(self.joint.graph.outputs, present), *enumerate(seeded)]
        given = [builder.parameter(types[i]) for i, s in taken if s]
        given += [builder.parameter(BOOL) for _, s in taken if s > PRESENT]
        frame_types = tuple(self.full.forward.types[i] for i in self.full.residuals)
        with builder.current():
            _, _, *frame = builder.append(stack_pop, (stack,), {"types": frame_types})
            value_of = dict(zip(self.full.keys, frame))
            operands = [*(value_of[k] for k in halves.keys), *given]
            known, flags = by_parameter(halves, spliced(builder, halves.backward, operands))
            outputs = [
                known[i] if i in known else additive_identity(types[i]) for i in self.wanted_params
            ]
            outputs += [
                flags[i] if i in flags else builder.host(i in known) for i in self.flagged(seeded)
            ]
            named.graph = builder.finish(tuple(outputs))
        named.effects = named.graph.effects


def _graph_of(named: NamedGraph) -> Graph:
    assert named.graph is not None, named
    return named.graph


def _digits(flags: Sequence[int]) -> str:
    return "".join("0123"[f] for f in flags)


class CallPlan:
    """Gradient of a call of a recursive function: a call of that function's backward function.

    Args:
        pair: the differentiated form of the function.
        operands: value ids of the operands of the call.
    """

    def __init__(self, pair: RecursivePair, operands: Sequence[int]) -> None:
        self.pair = pair
        self.operands = operands

    def backward(self, sweep: Sweep, node: GraphNode) -> None:
        """Append a call of the backward function; add its results to the cotangents in `sweep`."""
        pair = self.pair
        *results, stack = node.results
        present = tuple([sweep.status(r) if r in sweep.active else ABSENT for r in results])
        if not any(present):
            return
        first = {i: k for k, i in reversed(list(enumerate(self.operands)))}
        seeded = tuple(
            [
                sweep.status(i) if w and first[i] == k else ABSENT
                for k, (i, w) in enumerate(zip(self.operands, pair.wanted))
            ]
        )
        given = backward_inputs(sweep, [*results, *self.operands], [*present, *seeded])
        target = pair.backward(present, seeded)
        found = sweep.builder.append(
            call,
            (sweep.builder.tensor(stack), *given),
            {"target": target},
        )
        flags = dict(zip(pair.flagged(seeded), found[len(pair.wanted_params) :]))
        for k, value in zip(pair.wanted_params, found):
            i = self.operands[k]
            made = Cotangent(value, GARBAGE, flags[k]) if k in flags else Cotangent(value)
            if first[i] == k:  # its value includes the cotangent accumulated so far
                sweep.cotangents[i] = made
            else:
                sweep.accumulate(i, made)


def _is_recursive(target: NamedGraph) -> bool:
    """Return whether a call of a named graph may lead to another call of the same graph.

    Raises:
        NeedsValue: one of the graphs that may be called is not complete.
    """
    seen: set[NamedGraph] = set()
    graphs: list[Graph | None] = [target.graph]
    visited: set[Graph] = set()
    while graphs:
        graph = graphs.pop()
        if graph is None:
            raise NeedsValue(
                f"call of {target}: its graph is not complete, so that its derivative cannot be "
                "compiled; wanted to differentiate outside of it"
            )
        if graph in visited:
            continue
        visited.add(graph)
        for node in graph.nodes:
            graphs.extend(node.graphs)
            callee = node.attributes.get("target")
            if isinstance(callee, NamedGraph):
                if callee is target:
                    return True
                if callee not in seen:
                    seen.add(callee)
                    graphs.append(callee.graph)
    return False


def plan_call(
    joint: Joint, node: GraphNode, operands: Ids, span: SourceSpan | None
) -> Sequence[int] | None:
    """Inline a call in the forward graph, or append a call of a recursive function's forward form.

    The forward form also returns residuals. `joint` holds the forward graph, `node` is the original
    call, `operands` are the ids of its operands in the forward graph, and inlined nodes without a
    source location get `span`. Returns the ids of the original results. Returns None if the
    function is recursive and no result depends on a differentiated value.
    """
    session = joint.session
    target: NamedGraph = node.attributes["target"]
    wanted = tuple([i in joint.active for i in operands])
    given = [i for i in operands if i is not None]
    if not _is_recursive(target):
        return joint.inline(_graph_of(target), given, span)
    if not any(session.activity.called(target, wanted)):
        return None
    pair = session.pairs.get((target, wanted))
    if pair is None:
        pair = session.pairs[target, wanted] = RecursivePair(session, target, wanted)
        pair.build()
    joint.plans[len(joint.builder.nodes)] = CallPlan(pair, given)
    types = pair.forward.result_types
    results = joint.add(call, operands, {"target": pair.forward}, types, False, span)
    own = results[:-1]
    joint.active.update(r for r, a in zip(own, pair.active) if a)
    return own


class CustomPlan:
    """Gradient of a call whose backward graph the user wrote."""

    def backward(self, sweep: Sweep, node: GraphNode) -> None:
        """Append the user's backward graph; add its results to the cotangents in `sweep`.

        In runs in which no result has a cotangent, the backward graph must not run: it may print,
        draw random numbers or call Python.

        Raises:
            GradientError: the called function captures a differentiated value, for which the
                backward graph returns no gradient.
        """
        n_args = node.attributes["n_args"]
        used = forward_uses(node.attributes["graph"])
        if any(i in sweep.active for k, i in enumerate(node.operands) if k >= n_args and k in used):
            raise lost_in_bprop(node.attributes["name"])
        douts = sweep.filled_cotangents(node.results)
        operands = [i for i in node.operands if i is not None]
        values = [*(sweep.value(i) for i in (*operands, *node.results)), *douts]
        status, flag = sweep.joined_status(node.results)
        graph: Graph = node.attributes["backward"]
        wanted = [k for k, i in enumerate(operands[:n_args]) if i in sweep.active]
        found: Sequence[GraphValue]
        if flag is None:
            every = spliced(sweep.builder, graph, values)
            found = [every[k] for k in wanted]
        else:
            status = NEUTRAL
            read, branches = _optional(graph, wanted)
            given = (flag, *(values[k] for k in read))
            found = sweep.builder.append(switch, given, {"branches": branches})
        for k, value in zip(wanted, found):
            sweep.accumulate(operands[k], Cotangent(value, status, flag))


def _optional(graph: Graph, wanted: Sequence[int]) -> tuple[list[int], tuple[Graph, Graph]]:
    """Return the branches of a switch that runs a user's backward graph, or does nothing.

    Both branches return the outputs at the positions `wanted`; the first one returns values that
    leave any sum unchanged. They take only parameters that the second one reads, whose positions
    are returned first: any other would be a residual that the forward graph does not save.
    """
    outputs = [graph.outputs[k] for k in wanted]
    nodes = live_nodes(graph.nodes, set(outputs))
    ids = {*outputs, *(i for node in nodes for i in node.operands)}
    read = [i for i in range(graph.n_params) if i in ids]
    runs, _ = renumbered(graph.types, read, nodes, outputs, False)
    builder = GraphBuilder()
    for i in read:
        builder.parameter(graph.types[i])
    with builder.current():
        does_nothing = builder.finish(tuple([additive_identity(graph.types[i]) for i in outputs]))
    return read, (does_nothing, runs)


def plan_custom(
    joint: Joint, node: GraphNode, operands: Ids, span: SourceSpan | None
) -> Sequence[int] | None:
    """Append to the forward graph a call with a user-written backward; store its gradient plan.

    `joint` holds the forward graph, `node` is the original call, and `operands` are the ids of its
    operands in the forward graph. If only captured values are differentiated, for which the user's
    backward has no gradient, the call is inlined; nodes without a source location then get `span`.
    Returns the ids of the results, or None if the call reads no differentiated value.
    """
    graph: Graph = node.attributes["graph"]
    if not any(i in joint.active for i in operands[: node.attributes["n_args"]]):
        if not any(operands[k] in joint.active for k in forward_uses(graph)):
            return None
        given = [i for i in operands if i is not None]
        return joint.inline(graph, given, span)  # as in eager mode: an ordinary function
    types = [graph.types[i] for i in graph.outputs]
    joint.plans[len(joint.builder.nodes)] = CustomPlan()
    results = joint.add(node.op, operands, node.attributes, types, node.single, span)
    joint.active.update(r for r, t in zip(results, types) if has_cotangent(t))
    return results
