"""How switches, loops and calls are differentiated: a node that also returns residuals, and a backward node.

A plan is made where the forward is copied. Called on (joint, node, operands, span), it appends the forward node and
returns the ids of the original results, or None to have the node copied as it is. Its `backward` is called when the
walk back comes by. The backward of a sub-graph starts from the cotangents that its operands have by then, so that
sums are formed as if the sub-graph's nodes stood in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import GradientError
from ..ir.builder import GraphBuilder
from ..ir.control import (
    call,
    stack_new,
    stack_pop,
    stack_push,
    switch,
)
from ..ir.graph import Graph, GraphNode, NamedGraph
from ..op import thread_state
from ..types import BOOL, INT, OBJECT, STACK, HostType, ValueType
from .activity import Activity, has_cotangent
from .host_rules import full, nothing
from .presence import ABSENT, GARBAGE, NEUTRAL, PRESENT, Cotangent

if TYPE_CHECKING:
    from .linearize import Joint, Linearized, Sweep

__all__ = ["PLANS", "Session", "rewired", "reopened", "filler"]

Ids = tuple[int | None, ...]


class Session:
    """What one linearization shares: the activity of graphs, and the derivatives of recursive functions."""

    def __init__(self, joint: Any) -> None:
        self.joint = joint
        self.activity = Activity()
        self.pairs: dict[tuple[NamedGraph, tuple[bool, ...]], RecursivePair] = {}
        self.pending: list[Any] = []

    def finish(self) -> None:
        """Build the backward graphs that calls refer to; building one may ask for others."""
        while self.pending:
            self.pending.pop()()


# ---- graphs -------------------------------------------------------------------------------------


def rewired(graph: Graph, kinds: Sequence[ValueType], places: Sequence[int]) -> Graph:
    """The graph on other parameters: its parameter i is the new number `places[i]`."""
    n = len(kinds)
    shift = n - graph.n_params
    number: dict[int | None, int | None] = {
        i: i + shift for i in range(graph.n_params, len(graph.types))
    }
    number.update(enumerate(places))
    number[None] = None
    nodes = [
        GraphNode(
            node.op,
            tuple([number[i] for i in node.operands]),
            node.attributes,
            tuple([r + shift for r in node.results]),
            node.single,
            node.span,
        )
        for node in graph.nodes
    ]
    types = [*kinds, *graph.types[graph.n_params :]]
    return Graph(n, types, nodes, tuple(number[i] for i in graph.outputs), False)  # type: ignore[misc]


def reopened(graph: Graph) -> GraphBuilder:
    """A builder that goes on where the graph ends."""
    builder = GraphBuilder()
    builder.types = list(graph.types)
    builder.nodes = list(graph.nodes)
    builder.n_params = graph.n_params
    return builder


def spliced(builder: GraphBuilder, graph: Graph, values: Sequence[Any]) -> list[Any]:
    """Append the nodes of a closed graph on these values, as they are; its outputs."""
    env: dict[int | None, int | None] = {k: v._id for k, v in enumerate(values)}
    env[None] = None
    for node in graph.nodes:
        first = len(builder.types)
        builder.types.extend([graph.types[r] for r in node.results])
        results = tuple(range(first, len(builder.types)))
        operands = tuple([env[i] for i in node.operands])
        builder.nodes.append(
            GraphNode(node.op, operands, node.attributes, results, node.single, node.span)
        )
        env.update(zip(node.results, results))
    return [builder.tensor(env[i]) for i in graph.outputs]  # type: ignore[arg-type]


def filler(type_: ValueType) -> Any:
    """A residual that nobody will read."""
    builder: Any = thread_state.builder
    if not isinstance(type_, HostType):
        return full(type_, 0)
    if type_ is STACK:
        return builder.append(stack_new, (), {})
    return builder.host({INT: 0, BOOL: False, OBJECT: None}.get(type_, 0.0))


# ---- switch -------------------------------------------------------------------------------------


class SwitchPlan:
    """Each branch is differentiated; the branches share slots for what they alone keep."""

    def __init__(
        self, joint: Joint, node: GraphNode, index: int, operands: list[int], graphs: list[Graph]
    ) -> None:
        session = joint.session
        self.index = index
        self.operands = operands
        self.wanted = [
            i in joint.active and has_cotangent(joint.builder.types[i]) for i in operands
        ]
        self.joints: list[Joint] = [session.joint(g, self.wanted, session) for g in graphs]
        self.full: list[Linearized] = [j.everything() for j in self.joints]
        self.n_results = len(node.results)
        # slots by type: the k-th residual of a type in one branch shares a slot with the k-th in another
        self.slots: list[ValueType] = []
        self.places: list[dict[int, int]] = []  # per branch: value id in its forward -> slot
        for lin in self.full:
            free: dict[ValueType, list[int]] = {}
            for s, t in enumerate(self.slots):
                free.setdefault(t, []).append(s)
            places: dict[int, int] = {}
            for i in lin.forward.outputs[lin.n_results :]:
                t = lin.forward.types[i]
                queue = free.get(t)
                if queue:
                    places[i] = queue.pop(0)
                else:
                    places[i] = len(self.slots)
                    self.slots.append(t)
            self.places.append(places)

    def branches(self) -> tuple[Graph, ...]:
        """The forward branches: the results, then the slots."""
        return tuple(map(self._branch, self.full, self.places))

    def _branch(self, lin: Linearized, places: dict[int, int]) -> Graph:
        own = {s: i for i, s in places.items()}
        outputs = list(lin.forward.outputs[: lin.n_results])
        builder = reopened(lin.forward)
        fillers: dict[ValueType, int] = {}
        with builder.current():
            for s, t in enumerate(self.slots):
                if s not in own and t not in fillers:
                    fillers[t] = filler(t)._id
                outputs.append(own[s] if s in own else fillers[t])
        return Graph(builder.n_params, builder.types, builder.nodes, tuple(outputs), False)

    def active_results(self) -> list[bool]:
        """Per result, whether it is active in some branch."""
        return [
            any(j.outputs[k] in j.active for j in self.joints) for k in range(self.n_results)
        ]

    def _source(self, lin: Linearized, places: dict[int, int], i: int, node: GraphNode) -> int:
        """The value outside of the switch that is value `i` of a branch's forward."""
        if i < len(self.operands):
            return self.operands[i]
        if i in places:
            return node.results[self.n_results + places[i]]
        return node.results[lin.forward.outputs.index(i)]

    def backward(self, sweep: Sweep, node: GraphNode) -> None:
        """Append the switch of the branches' backward graphs."""
        builder = sweep.builder
        results = node.results[: self.n_results]
        present = [sweep.status(r) if r in sweep.active else ABSENT for r in results]
        if not any(present):
            return
        seeded = [sweep.status(i) if w else ABSENT for i, w in zip(self.operands, self.wanted)]
        halves = [j.halves(present, seeded) for j in self.joints]
        wrt = sorted({i for h in halves for i in h.wrt})
        if not wrt:
            return
        # in some runs only, where one branch has none
        status: dict[int, int] = {}
        for i in wrt:
            found = [dict(zip(h.wrt, h.statuses)).get(i, ABSENT) for h in halves]
            same = min(found) == max(found) == PRESENT
            status[i] = PRESENT if same else GARBAGE if GARBAGE in found else NEUTRAL
        flagged = [i for i in wrt if status[i] != PRESENT]
        sources: list[list[int]] = []
        for lin, h, places in zip(self.full, halves, self.places):
            where = dict(zip(lin.keys, lin.residuals))
            sources.append([self._source(lin, places, where[k], node) for k in h.keys])
        union = {i: n for n, i in enumerate(dict.fromkeys(i for s in sources for i in s))}
        values = [*(sweep.value(i) for i in union), *inputs(sweep, [*results, *self.operands], [*present, *seeded])]
        kinds = [v._type for v in values]
        rest = range(len(union), len(values))
        types = self.joints[0].graph.types
        branches = tuple(
            answering(rewired(h.backward, kinds, [*(union[i] for i in own), *rest]), h, wrt, flagged, types)
            for h, own in zip(halves, sources)
        )
        made = builder.append(switch, (sweep.value(self.index), *values), {"branches": branches})
        flags = dict(zip(flagged, made[len(wrt) :]))
        for i, value in zip(wrt, made):
            sweep.put(self.operands[i], Cotangent(value, status[i], flags.get(i)))


def inputs(sweep: Sweep, ids: Sequence[int], statuses: Sequence[int]) -> list[Any]:
    """What a backward graph for cotangents of these statuses takes: the cotangents, then the flags."""
    given = [sweep.cotangent(i) for i, s in zip(ids, statuses) if s]
    return [*(c.value for c in given), *(c.flag for c in given if c.status > PRESENT)]


def answering(
    graph: Graph, halves: Linearized, wrt: Sequence[int], flagged: Sequence[int], types: Sequence[ValueType]
) -> Graph:
    """The graph returning a cotangent for every parameter of `wrt`, then a flag for each of `flagged`."""
    known, flags = answers(halves, graph.outputs)
    if not flagged and len(known) == len(wrt):
        return graph
    builder = reopened(graph)
    with builder.current():
        outputs = [known[i] if i in known else nothing(types[i])._id for i in wrt]
        outputs += [flags[i] if i in flags else builder.host(i in known)._id for i in flagged]
    return Graph(builder.n_params, builder.types, builder.nodes, tuple(outputs), False)


def answers(halves: Linearized, outputs: Sequence[Any]) -> tuple[dict[int, Any], dict[int, Any]]:
    """What a backward graph returned: cotangents by parameter, and the flags of those that have one."""
    known = dict(zip(halves.wrt, outputs))
    flagged = [i for i, s in zip(halves.wrt, halves.statuses) if s > PRESENT]
    return known, dict(zip(flagged, outputs[len(halves.wrt) :]))


def _unique(graph: Graph, operands: Sequence[int]) -> tuple[Graph, list[int]]:
    """The graph on operands that are all different."""
    unique = list(dict.fromkeys(operands))
    if len(unique) == len(operands):
        return graph, unique
    place = {i: k for k, i in enumerate(unique)}
    kinds: list[Any] = [None] * len(unique)
    for k, i in enumerate(operands):
        kinds[place[i]] = graph.types[k]
    return rewired(graph, kinds, [place[i] for i in operands]), unique


def plan_switch(joint: Joint, node: GraphNode, operands: Ids, span: Any) -> Sequence[int] | None:
    """Append a switch that returns residuals."""
    index, *xs = operands
    flags = [i in joint.active for i in xs]
    if not any(
        any(joint.session.activity.results(b, flags)) for b in node.attributes["branches"]
    ):
        return None
    assert index is not None
    graphs = []
    for b in node.attributes["branches"]:
        graph, unique = _unique(b, xs)  # type: ignore[arg-type]
        graphs.append(graph)
    plan = SwitchPlan(joint, node, index, unique, graphs)
    types = [graphs[0].types[i] for i in graphs[0].outputs] + plan.slots
    attributes = {"branches": plan.branches()}
    joint.plans[len(joint.builder.nodes)] = plan
    results = joint.add(switch, (index, *unique), attributes, types, False, span)
    own = results[: len(node.results)]
    joint.active.update(r for r, a in zip(own, plan.active_results()) if a)
    return own


# ---- calls --------------------------------------------------------------------------------------


class RecursivePair:
    """A recursive function made differentiable: a forward that also returns one stack with a frame of residuals, and
    a backward per choice of cotangents."""

    def __init__(self, session: Session, target: NamedGraph, wanted: tuple[bool, ...]) -> None:
        assert target.graph is not None, target
        self.session = session
        self.target = target
        self.wanted = wanted
        self.active = session.activity.called(target, wanted)
        self.name = f"{target.name}_of_{_bits(wanted)}"
        self.forward = NamedGraph(f"{self.name}_forward", (*target.result_types, STACK))
        self.forward.effects = target.effects
        self._backwards: dict[Any, NamedGraph] = {}

    def build(self) -> None:
        """Complete the forward; calls of the function inside it find this pair already."""
        target, session = self.target.graph, self.session
        assert target is not None
        self.joint: Joint = session.joint(target, self.wanted, session)
        self.full = lin = self.joint.everything()
        builder = reopened(lin.forward)
        with builder.current():
            empty = builder.append(stack_new, (), {})
            stack = builder.append(
                stack_push, (empty, *(builder.tensor(i) for i in lin.residuals)), {}
            )
        outputs = (*lin.forward.outputs[: lin.n_results], stack._id)
        self.forward.graph = Graph(builder.n_params, builder.types, builder.nodes, outputs, False)

    def backward(self, present: tuple[int, ...], seeded: tuple[int, ...]) -> NamedGraph:
        """(stack, cotangents..., seeds..., their flags...) -> cotangents of the wanted parameters, flags of some."""
        found = self._backwards.get((present, seeded))
        if found is None:
            graph = self.target.graph
            assert graph is not None
            name = f"{self.name}_backward_{_bits(present)}_{_bits(seeded)}"
            types = [graph.types[i] for i in self.places] + [BOOL] * len(self.flagged(seeded))
            found = self._backwards[present, seeded] = NamedGraph(name, tuple(types))
            self.session.pending.append(lambda: self._complete(found, present, seeded))
        return found

    @property
    def places(self) -> list[int]:
        """The wanted parameters."""
        return [i for i, w in enumerate(self.wanted) if w]

    def flagged(self, seeded: Sequence[int]) -> list[int]:
        """Parameters whose cotangent comes with a flag: what a function that calls itself reaches differs by run."""
        return [i for i in self.places if seeded[i] != PRESENT]

    def _complete(
        self, named: NamedGraph, present: tuple[int, ...], seeded: tuple[int, ...]
    ) -> None:
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
            where = dict(zip(self.full.keys, frame))
            found = spliced(builder, halves.backward, [*(where[k] for k in halves.keys), *given])
            known, flags = answers(halves, found)
            outputs = [known[i] if i in known else nothing(types[i]) for i in self.places]
            outputs += [
                flags[i] if i in flags else builder.host(i in known) for i in self.flagged(seeded)
            ]
            named.graph = builder.finish(tuple(outputs))
        named.effects = named.graph.effects


def _bits(flags: Sequence[int]) -> str:
    return "".join("0123"[f] for f in flags)


class CallPlan:
    """A call of a recursive function."""

    def __init__(self, pair: RecursivePair, operands: list[int]) -> None:
        self.pair = pair
        self.operands = operands

    def backward(self, sweep: Sweep, node: GraphNode) -> None:
        """Append the call of the backward."""
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
        given = inputs(sweep, [*results, *self.operands], [*present, *seeded])
        target = pair.backward(present, seeded)
        found = sweep.builder.append(
            call, (sweep.builder.tensor(stack), *given), {"target": target}
        )
        flags = dict(zip(pair.flagged(seeded), found[len(pair.places) :]))
        for k, value in zip(pair.places, found):
            i = self.operands[k]
            made = Cotangent(value, GARBAGE, flags[k]) if k in flags else Cotangent(value)
            if first[i] == k:  # its own cotangent went in
                sweep.put(i, made)
            else:
                sweep.accumulate(i, made)


def _recursive(target: NamedGraph) -> bool:
    """Whether the function can come to call itself."""
    seen: set[NamedGraph] = set()
    graphs: list[Graph | None] = [target.graph]
    visited: set[Graph] = set()
    while graphs:
        graph = graphs.pop()
        if graph is None:
            raise GradientError(
                f"call of {target}: its graph is not complete; wanted to differentiate outside of it"
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


def plan_call(joint: Joint, node: GraphNode, operands: Ids, span: Any) -> Sequence[int] | None:
    """Put the callee's nodes in the place of the call; a recursive callee becomes a pair of functions."""
    session = joint.session
    target: NamedGraph = node.attributes["target"]
    wanted = tuple([i in joint.active for i in operands])
    if not _recursive(target):
        assert target.graph is not None
        return joint._copied(target.graph, operands, span)  # type: ignore[arg-type]
    if not any(session.activity.called(target, wanted)):
        return None
    pair = session.pairs.get((target, wanted))
    if pair is None:
        pair = session.pairs[target, wanted] = RecursivePair(session, target, wanted)
        pair.build()
    joint.plans[len(joint.builder.nodes)] = CallPlan(pair, list(operands))  # type: ignore[arg-type]
    types = pair.forward.result_types
    results = joint.add(call, operands, {"target": pair.forward}, types, False, span)
    own = results[:-1]
    joint.active.update(r for r, a in zip(own, pair.active) if a)
    return own


class CustomPlan:
    """A graph whose backward the user wrote."""

    def backward(self, sweep: Sweep, node: GraphNode) -> None:
        """Append the user's backward."""
        from .linearize import missing

        cotangents = sweep.cotangents
        douts = [
            cotangents[r] if r in cotangents else missing(sweep.builder.types[r])
            for r in node.results
        ]
        values = [sweep.value(i) for i in (*node.operands, *node.results)]  # type: ignore[arg-type]
        status, flag = sweep.joined(node.results)
        found = spliced(sweep.builder, node.attributes["backward"], [*values, *douts])
        for i, value in zip(node.operands, found):
            if i is not None and i in sweep.active:
                sweep.accumulate(i, Cotangent(value, status, flag))


def plan_custom(joint: Joint, node: GraphNode, operands: Ids, span: Any) -> Sequence[int] | None:
    """Append the node as it is, with the user's backward for its plan."""
    n = node.attributes["n_args"]
    if not any(i in joint.active for i in operands[:n]):
        return None
    types = [node.attributes["graph"].types[i] for i in node.attributes["graph"].outputs]
    joint.plans[len(joint.builder.nodes)] = CustomPlan()
    results = joint.add(node.op, operands, node.attributes, types, node.single, span)
    joint.active.update(r for r, t in zip(results, types) if has_cotangent(t))
    return results


def _plan_while(joint: Joint, node: GraphNode, operands: Ids, span: Any) -> Sequence[int] | None:
    from .loops import plan_while

    return plan_while(joint, node, operands, span)


PLANS: dict[str, Any] = {
    "switch": plan_switch,
    "while_loop": _plan_while,
    "call": plan_call,
    "custom_call": plan_custom,
}

