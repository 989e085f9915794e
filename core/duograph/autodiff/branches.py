"""The derivative of a switch: a switch on the same index over the branches' backward graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.control import switch
from ..ir.graph import Graph, GraphNode
from ..types import ValueType
from .activity import has_cotangent
from .optional_cotangents import ABSENT, GARBAGE, NEUTRAL, PRESENT, Cotangent
from .subgraphs import Ids, answering, filler, inputs, reopened, rewired

if TYPE_CHECKING:
    from .linearize import Joint
    from .sweep import Linearized, Sweep

__all__ = ["plan_switch"]


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
        return [any(j.outputs[k] in j.active for j in self.joints) for k in range(self.n_results)]

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
        values = [
            *(sweep.value(i) for i in union),
            *inputs(sweep, [*results, *self.operands], [*present, *seeded]),
        ]
        kinds = [v._type for v in values]
        rest = range(len(union), len(values))
        types = self.joints[0].graph.types
        branches = tuple(
            answering(
                rewired(h.backward, kinds, [*(union[i] for i in own), *rest]),
                h,
                wrt,
                flagged,
                types,
            )
            for h, own in zip(halves, sources)
        )
        made = builder.append(switch, (sweep.value(self.index), *values), {"branches": branches})
        flags = dict(zip(flagged, made[len(wrt) :]))
        for i, value in zip(wrt, made):
            sweep.put(self.operands[i], Cotangent(value, status[i], flags.get(i)))


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
    if not any(any(joint.session.activity.results(b, flags)) for b in node.attributes["branches"]):
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
