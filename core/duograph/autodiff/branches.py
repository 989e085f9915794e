"""The gradient of a switch: another switch on the same index, over backward graphs.

`linearize` calls `plan_switch` for every switch whose operands depend on a differentiated value.
Only the backward graph of the branch that ran in the forward pass may run, because the others lack
their residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ir.builder import GraphValue
from ..ir.control import switch
from ..ir.graph import Graph, GraphNode, SourceSpan
from ..types import ValueType
from .activity import has_cotangent
from .optional_cotangents import ABSENT, GARBAGE, NEUTRAL, PRESENT, Cotangent
from .subgraphs import (
    Ids,
    backward_inputs,
    reopened,
    unread_residual,
    with_outputs_for,
    with_parameters,
)

if TYPE_CHECKING:
    from .linearize import Joint
    from .partition import Linearized
    from .sweep import Sweep

__all__ = ["plan_switch"]


class SwitchPlan:
    """How the gradient of a switch (one of several branches) is computed.

    Each branch is differentiated. The forward switch also returns the *residuals*, the values that
    the backward graphs read. Branches have these extra results, called slots, in common: a branch
    returns its own residuals in some of them and constants in the others.

    Attributes:
        index: value id of the index.
        operands: value ids of the operands of the branches, without repetitions.
        wanted: for each operand, whether it is differentiated.
        joints: for each branch, its forward nodes and how to differentiate them (`Joint`).
        full: for each branch, its forward and backward graph for the case that all results have
            cotangents, which needs the most residuals.
        slots: types of the residuals that the forward switch returns. The k-th residual of a type
            in one branch has the same slot as the k-th residual of that type in another branch.
        slot_of: for each branch, a dict: id of a residual in the branch's forward graph -> its
            slot.
    """

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
        self.full: list[Linearized] = [j.full_halves() for j in self.joints]
        self.n_results = len(node.results)
        self.slots: list[ValueType] = []
        self.slot_of: list[dict[int, int]] = []
        for lin in self.full:
            free: dict[ValueType, list[int]] = {}
            for s, t in enumerate(self.slots):
                free.setdefault(t, []).append(s)
            slot_of: dict[int, int] = {}
            for i in lin.forward.outputs[lin.n_results :]:
                t = lin.forward.types[i]
                queue = free.get(t)
                if queue:
                    slot_of[i] = queue.pop(0)
                else:
                    slot_of[i] = len(self.slots)
                    self.slots.append(t)
            self.slot_of.append(slot_of)

    def forward_branches(self) -> tuple[Graph, ...]:
        """Return the forward switch's branches; each returns its results, then the residuals.

        All branches return the same number of residuals, of the same types. For residuals that only
        other branches have, a branch returns constants.
        """
        return tuple(map(self._forward_branch, self.full, self.slot_of))

    def _forward_branch(self, lin: Linearized, slot_of: dict[int, int]) -> Graph:
        """Return the forward graph of one branch, which outputs its results, then all slots.

        Args:
            lin: the linearization of the branch.
            slot_of: index of the slot of each of the branch's residuals. The other slots get values
                that are never read.
        """
        own = {s: i for i, s in slot_of.items()}
        outputs = list(lin.forward.outputs[: lin.n_results])
        builder = reopened(lin.forward)
        unread: dict[ValueType, int] = {}
        with builder.current():
            for s, t in enumerate(self.slots):
                if s not in own and t not in unread:
                    unread[t] = unread_residual(t)._id
                outputs.append(own[s] if s in own else unread[t])
        return Graph(builder.n_params, builder.types, builder.nodes, tuple(outputs), False)

    def active_results(self) -> list[bool]:
        """Return, for each result, whether it depends on a wanted operand in some branch."""
        return [any(j.outputs[k] in j.active for j in self.joints) for k in range(self.n_results)]

    def _outer_id(self, lin: Linearized, slot_of: dict[int, int], i: int, node: GraphNode) -> int:
        """Return the value id, in the graph around the switch, of residual `i` of a branch.

        The residual is an operand of the switch, one of its additional results, or an original
        result.

        Args:
            lin: the forward and backward graph of the branch.
            slot_of: id of a residual in the branch -> its index among the residuals that the switch
                returns.
            i: id of the residual in the forward graph of the branch.
            node: the forward switch.
        """
        if i < len(self.operands):
            return self.operands[i]
        if i in slot_of:
            return node.results[self.n_results + slot_of[i]]
        return node.results[lin.forward.outputs.index(i)]

    def backward(self, sweep: Sweep, node: GraphNode) -> None:
        """Append a switch on the same index that runs the backward graph of the branch that ran.

        Sets the cotangents of the switch's operands in `sweep`. `node` is the forward switch.
        """
        builder = sweep.builder
        results = node.results[: self.n_results]
        present = [sweep.status(r) if r in sweep.active else ABSENT for r in results]
        if not any(present):
            return
        # cotangents to which no branch adds anything bypass the switch
        without = [j.halves(present, [ABSENT] * len(self.operands)) for j in self.joints]
        reached = {i for h in without for i in h.wrt}
        seeded = [sweep.status(i) if n in reached else ABSENT for n, i in enumerate(self.operands)]
        halves = [j.halves(present, seeded) for j in self.joints]
        wrt = sorted({i for h in halves for i in h.wrt})
        if not wrt:
            return
        status = {i: _joined_status([_status_of(h, i) for h in halves]) for i in wrt}
        flagged = [i for i in wrt if status[i] != PRESENT]
        residuals: list[list[int]] = []
        for lin, h, slot_of in zip(self.full, halves, self.slot_of):
            id_of = dict(zip(lin.keys, lin.residuals))
            residuals.append([self._outer_id(lin, slot_of, id_of[k], node) for k in h.keys])
        position = {i: n for n, i in enumerate(dict.fromkeys(i for s in residuals for i in s))}
        values: list[GraphValue] = [
            *(sweep.value(i) for i in position),
            *backward_inputs(sweep, [*results, *self.operands], [*present, *seeded]),
        ]
        types: list[ValueType] = [v._type for v in values]
        cotangents = range(len(position), len(values))
        branches = tuple(
            with_outputs_for(
                with_parameters(h.backward, types, [*(position[i] for i in own), *cotangents]),
                h,
                wrt,
                flagged,
                self.joints[0].graph.types,
            )
            for h, own in zip(halves, residuals)
        )
        made = builder.append(switch, (sweep.value(self.index), *values), {"branches": branches})
        flags = dict(zip(flagged, made[len(wrt) :]))
        for i, value in zip(wrt, made):
            sweep.cotangents[self.operands[i]] = Cotangent(value, status[i], flags.get(i))


def _status_of(halves: Linearized, parameter: int) -> int:
    """Return the status of a parameter's cotangent in a branch; ABSENT if it has no cotangent."""
    return dict(zip(halves.wrt, halves.statuses)).get(parameter, ABSENT)


def _joined_status(statuses: Sequence[int]) -> int:
    """Return the status of a cotangent that a switch returns: in which runs it exists.

    `statuses` are those of the cotangent in the branches (see `optional_cotangents.Cotangent`). The
    result is PRESENT if all of them are PRESENT, else GARBAGE if one of them is, else NEUTRAL.
    """
    if all(s == PRESENT for s in statuses):
        return PRESENT
    return GARBAGE if GARBAGE in statuses else NEUTRAL


def _with_unique_operands(graph: Graph, operands: Sequence[int]) -> tuple[Graph, list[int]]:
    """Merge the parameters of a branch that receive the same operand of the switch.

    Returns the branch with merged parameters, and the operands (value ids) without repetitions.
    """
    unique = list(dict.fromkeys(operands))
    if len(unique) == len(operands):
        return graph, unique
    position = {i: k for k, i in enumerate(unique)}
    type_of = {i: graph.types[k] for k, i in enumerate(operands)}
    types = [type_of[i] for i in unique]
    return with_parameters(graph, types, [position[i] for i in operands]), unique


def plan_switch(
    joint: Joint, node: GraphNode, operands: Ids, span: SourceSpan | None
) -> Sequence[int] | None:
    """Append a switch that also returns residuals to the forward graph; store its gradient plan.

    `joint` holds the forward graph, `node` is the original switch, and `operands` are the ids of
    its operands in the forward graph; the new node has the source location `span`. Returns the ids
    of the original results, or None if no result depends on a differentiated value.
    """
    index, *xs = [i for i in operands if i is not None]
    active = [i in joint.active for i in xs]
    branches: Sequence[Graph] = node.attributes["branches"]
    if not any(any(joint.session.activity.results(b, active)) for b in branches):
        return None
    graphs = []
    for branch in branches:
        graph, unique = _with_unique_operands(branch, xs)
        graphs.append(graph)
    plan = SwitchPlan(joint, node, index, unique, graphs)
    types = [graphs[0].types[i] for i in graphs[0].outputs] + plan.slots
    attributes = {"branches": plan.forward_branches()}
    joint.plans[len(joint.builder.nodes)] = plan
    results = joint.add(switch, (index, *unique), attributes, types, False, span)
    own = results[: len(node.results)]
    joint.active.update(r for r, a in zip(own, plan.active_results()) if a)
    return own
