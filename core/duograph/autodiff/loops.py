"""The derivative of a loop: the forward pushes each turn's residuals on a stack, the backward loop pops them.

Which carries have a cotangent may differ between the last turns and those before: after the last turn, those whose
results are used; before it, those that the turn passes cotangents to. A carry without one gets nothing, as on the
tape, rather than a zero that rules would turn into NaN. Each such choice has its own backward of the body, and the
loop carries which one is next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.builder import GraphBuilder
from ..ir.control import (
    stack_holds,
    stack_new,
    stack_pop,
    stack_push,
    switch,
    while_loop,
)
from ..ir.graph import Graph, GraphNode
from ..op import thread_state
from ..types import INT, STACK, ValueType
from .activity import has_cotangent
from .host_rules import nothing
from .structured import Ids, reopened, rewired, spliced

if TYPE_CHECKING:
    from .linearize import Joint, Linearized, Sweep

__all__ = ["plan_while"]

# More choices than this are joined into one that has every cotangent.
_LIMIT = 8


class WhilePlan:
    """A loop whose body is differentiated. `operands` are (*carries, *invariants), the invariants all different."""

    def __init__(self, joint: Joint, body: Graph, n_carry: int, operands: list[int]) -> None:
        session = joint.session
        self.n_carry = n = n_carry
        self.operands = operands
        types = joint.builder.types
        start = [i in joint.active and has_cotangent(types[i]) for i in operands]
        self.wanted = session.activity.carries(body, n, start)
        self.joint: Joint = session.joint(body, self.wanted, session)
        self.full = lin = self.joint.everything()
        # what a turn keeps for itself; invariants are there outside of the loop
        self.kept = [i for i in lin.residuals if not n <= i < len(operands)]
        self.frame_types = tuple(lin.forward.types[i] for i in self.kept)

    def body(self) -> Graph:
        """The forward body: (*carries, stack, *invariants) -> (predicate, *carries, stack)."""
        lin, n = self.full, self.n_carry
        types = lin.forward.types[: lin.forward.n_params]
        kinds = [*types[:n], STACK, *types[n:]]
        places = [k if k < n else k + 1 for k in range(len(types))]
        shift = len(kinds) - len(types)
        graph = rewired(lin.forward, kinds, places)
        builder = reopened(graph)
        kept = [places[i] if i < len(types) else i + shift for i in self.kept]
        with builder.current():
            values = [builder.tensor(i) for i in (n, *kept)]
            stack = builder.append(stack_push, tuple(values), {})
        outputs = (*graph.outputs[: lin.n_results], stack._id)
        return Graph(builder.n_params, builder.types, builder.nodes, outputs, False)

    def backward(self, sweep: Sweep, node: GraphNode) -> None:
        """Append the backward loop."""
        start = frozenset(
            k
            for k in range(self.n_carry)
            if self.wanted[k] and node.results[k] in sweep.cotangents
        )
        if start:
            _Backward(self, sweep, node, start).append()

    def halves(self, carries: frozenset[int], seeded: Sequence[bool]) -> Linearized:
        """The body's halves when these carries have a cotangent."""
        return self.joint.halves((False, *(k in carries for k in range(self.n_carry))), seeded)


class _Backward:
    """One backward loop.

    Attributes:
        masks: the choices of carries with a cotangent; `after[s]` is the choice that follows choice s.
        carried: the carries that ever have one.
        running: invariants that collect cotangents over the turns.
        seeded: carries whose operand has a cotangent already: the first turn, the last one to be gone back
        through, adds to it.
    """

    def __init__(
        self, plan: WhilePlan, sweep: Sweep, node: GraphNode, start: frozenset[int]
    ) -> None:
        self.plan, self.sweep, self.node = plan, sweep, node
        n, operands = plan.n_carry, plan.operands
        self.types: list[ValueType] = plan.joint.graph.types
        self.start = start
        self.masks, self.after = _choices(plan, start)
        self.carried = sorted(frozenset().union(*self.masks))
        reached: set[int] = set()
        for mask in self.masks:
            reached.update(plan.halves(mask, (False,) * len(operands)).wrt)
        self.running = [k for k in range(n, len(operands)) if k in reached]
        taken = {operands[k] for k in self.running}
        self.seeded: list[int] = []
        for k in self.carried:
            i = operands[k]
            if i in sweep.cotangents and i in sweep.active and i not in taken:
                taken.add(i)
                self.seeded.append(k)
        starts = {*self.running, *self.seeded}
        seeds = [k in starts for k in range(len(operands))]
        self.halves = [plan.halves(mask, seeds) for mask in self.masks]
        where = dict(zip(plan.full.keys, plan.full.residuals))
        self.residuals = [[where[k] for k in h.keys] for h in self.halves]
        # invariants that the bodies' backward graphs read
        self.outer = list(
            dict.fromkeys(
                i for own in self.residuals for i in own if n <= i < len(operands)
            )
        )

    def append(self) -> None:
        """Append the loop, and set the cotangents of the operands."""
        sweep, plan, start = self.sweep, self.plan, self.start
        builder, operands, node = sweep.builder, plan.operands, self.node
        cotangents = sweep.cotangents
        stack = builder.tensor(node.results[plan.n_carry])
        holds = builder.append(stack_holds, (stack,), {})
        several = len(self.masks) > 1
        douts = [
            cotangents[node.results[k]] if k in start else nothing(self.types[k])
            for k in self.carried
        ]
        runs = [
            cotangents[operands[k]] if operands[k] in cotangents else nothing(self.types[k])
            for k in self.running
        ]
        haves = [cotangents[operands[k]] for k in self.seeded]
        carries = [stack, *([builder.host(0)] if several else []), *douts, *runs]
        outer = [sweep.value(operands[i]) for i in self.outer]
        body = self._body()
        found = builder.append(
            while_loop,
            (holds, *carries, *outer, *haves),
            {"body": body, "n_carry": len(carries)},
        )
        values = found[2 if several else 1 :]
        for k, value in zip(self.running, values[len(self.carried) :]):
            cotangents[operands[k]] = value
        for k, value in zip(self.carried, values):
            i = operands[k]
            if i not in sweep.active:
                continue
            if k in self.seeded:
                cotangents[i] = _unless(holds, cotangents[i], value, k in start)
            else:
                sweep.accumulate(i, value)

    def _body(self) -> Graph:
        builder = GraphBuilder()
        several = len(self.masks) > 1
        stack = builder.parameter(STACK)
        state = [builder.parameter(INT)] if several else []
        types = self.types
        douts = [builder.parameter(types[k]) for k in self.carried]
        runs = [builder.parameter(types[k]) for k in self.running]
        outer = [builder.parameter(types[i]) for i in self.outer]
        haves = [builder.parameter(types[k]) for k in self.seeded]
        with builder.current():
            rest, left, *frame = builder.append(
                stack_pop, (stack,), {"types": self.plan.frame_types}
            )
            seeds = [_choose(left, have) for have in haves]
            values = [*frame, *outer, *douts, *seeds, *runs]
            kinds = [v._type for v in values]
            steps = [self._step(s, kinds) for s in range(len(self.masks))]
            if several:
                found = builder.append(switch, (*state, *values), {"branches": tuple(steps)})
            else:
                found = spliced(builder, steps[0], values)
            return builder.finish((left, rest, *found))

    def _step(self, s: int, kinds: list[ValueType]) -> Graph:
        """One turn back for choice `s`: (frame, outer, cotangents, seeds, running) -> (choice, cotangents, running)."""
        plan, halves, mask = self.plan, self.halves[s], self.masks[s]
        place = {i: k for k, i in enumerate((*plan.kept, *self.outer))}
        base = len(place)
        dout_at = {k: base + j for j, k in enumerate(self.carried)}
        seed_at = {k: base + len(dout_at) + j for j, k in enumerate((*self.seeded, *self.running))}
        places = [
            *(place[i] for i in self.residuals[s]),
            *(dout_at[k] for k in sorted(mask)),
            *(seed_at[k] for k in sorted(seed_at)),
        ]
        graph = rewired(halves.backward, kinds, places)
        known = dict(zip(halves.wrt, graph.outputs))
        builder = reopened(graph)
        with builder.current():
            outputs = [builder.host(self.after[s])._id] if len(self.masks) > 1 else []
            outputs += [
                known[k] if k in known else nothing(self.types[k])._id
                for k in (*self.carried, *self.running)
            ]
        return Graph(builder.n_params, builder.types, builder.nodes, tuple(outputs), False)


def _choices(
    plan: WhilePlan, start: frozenset[int]
) -> tuple[list[frozenset[int]], list[int]]:
    """Which carries have a cotangent, turn by turn from the last one, until the choices repeat."""
    seeded = (False,) * len(plan.operands)
    masks, after = [start], []
    while True:
        found = plan.halves(masks[-1], seeded).wrt
        following = frozenset(k for k in found if k < plan.n_carry)
        if following in masks:
            after.append(masks.index(following))
            return masks, after
        after.append(len(masks))
        masks.append(following)
        if len(masks) > _LIMIT:
            return _joined(plan, start, seeded)


def _joined(
    plan: WhilePlan, start: frozenset[int], seeded: Sequence[bool]
) -> tuple[list[frozenset[int]], list[int]]:
    """One choice that holds at every turn."""
    mask = start
    while True:
        found = mask | {k for k in plan.halves(mask, seeded).wrt if k < plan.n_carry}
        if found == mask:
            return [mask], [0]
        mask = found


def _choose(left: Any, have: Any) -> Any:
    """What the turn adds to: nothing yet while turns are left, then what was there before the loop."""
    builder: Any = thread_state.builder
    branches = []
    for k in (0, 1):
        inner = GraphBuilder()
        own = inner.parameter(have._type)
        with inner.current():
            branches.append(inner.finish((nothing(have._type) if k else own,)))
    (found,) = builder.append(switch, (left, have), {"branches": tuple(branches)})
    return found


def _unless(ran: Any, have: Any, value: Any, used: bool) -> Any:
    """The operand's cotangent: of a loop that did not run, the result is the operand itself."""
    builder: Any = thread_state.builder
    branches = []
    for k in (0, 1):
        inner = GraphBuilder()
        before, found = inner.parameter(have._type), inner.parameter(value._type)
        with inner.current():
            if not k:
                found = before + found if used else before
            branches.append(inner.finish((found,)))
    (made,) = builder.append(switch, (ran, have, value), {"branches": tuple(branches)})
    return made


def plan_while(joint: Joint, node: GraphNode, operands: Ids, span: Any) -> Sequence[int] | None:
    """Append a loop that pushes residuals."""
    n = node.attributes["n_carry"]
    body: Graph = node.attributes["body"]
    predicate, *rest = operands
    flags = joint.session.activity.carries(body, n, [i in joint.active for i in rest])
    if not any(flags[:n]):
        return None
    invariants = list(dict.fromkeys(rest[n:]))
    place = {i: n + k for k, i in enumerate(invariants)}
    if len(invariants) < len(rest) - n:
        kinds = [joint.builder.types[i] for i in (*rest[:n], *invariants)]  # type: ignore[index]
        body = rewired(body, kinds, [*range(n), *(place[i] for i in rest[n:])])
    own: list[Any] = [*rest[:n], *invariants]
    plan = WhilePlan(joint, body, n, own)
    (stack,) = joint.add(stack_new, (), {}, (STACK,), True, span)
    attributes = {"body": plan.body(), "n_carry": n + 1}
    types = [*body.types[:n], STACK]
    joint.plans[len(joint.builder.nodes)] = plan
    given = (predicate, *own[:n], stack, *own[n:])
    *results, _ = joint.add(node.op, given, attributes, types, False, span)
    joint.active.update(r for r, w in zip(results, plan.wanted) if w)
    return results
