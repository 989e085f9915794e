"""The derivative of a loop: the forward pushes each turn's residuals on a stack, the backward loop
pops them.

Which carries have a cotangent may differ between the last turns and those before: after the last
turn, those whose results are used; before it, those that the turn passes cotangents to. A carry
without one gets nothing, as on the tape, rather than a zero that rules would turn into NaN. Each
such choice has its own backward of the body, and the loop carries which one is next.
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
from ..types import BOOL, INT, STACK, ValueType
from .activity import has_cotangent
from .host_rules import nothing
from .optional_cotangents import (
    ABSENT,
    GARBAGE,
    NEUTRAL,
    PRESENT,
    Cotangent,
    added,
    chosen,
    flag_of,
)
from .subgraphs import Ids, answering, reopened, rewired, spliced

if TYPE_CHECKING:
    from .linearize import Joint
    from .sweep import Linearized, Sweep

__all__ = ["plan_while"]

# More choices than this are joined into one in which every cotangent has a flag.
_LIMIT = 4

# Per carry the status of its cotangent.
Choice = tuple[int, ...]


class WhilePlan:
    """A loop whose body is differentiated. `operands` are (*carries, *invariants), the invariants
    all different.
    """

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
        start = tuple(
            [
                sweep.status(r) if w else ABSENT
                for r, w in zip(node.results, self.wanted[: self.n_carry])
            ]
        )
        if any(start):
            _Backward(self, sweep, node, start).append()

    def halves(self, choice: Choice, seeded: Sequence[int]) -> Linearized:
        """The body's halves when the carries have cotangents of these statuses."""
        return self.joint.halves((ABSENT, *choice), seeded)


class _Backward:
    """One backward loop.

    Attributes:
        choices: the statuses of the carries' cotangents, turn by turn; `after[s]` follows choice s.
        carried: the carries that ever have one; `unsure` those among them that come with a flag.
        running: invariants that collect cotangents over the turns.
        seeded: carries whose operand has a cotangent already: the first turn, the last one to be
            gone back
        through, adds to it.
        seeds: statuses with which a turn takes up what running and seeded ones have by then.
    """

    def __init__(self, plan: WhilePlan, sweep: Sweep, node: GraphNode, start: Choice) -> None:
        self.plan, self.sweep, self.node = plan, sweep, node
        n, operands = plan.n_carry, plan.operands
        self.types: list[ValueType] = plan.joint.graph.types
        self.choices, self.after = _choices(plan, start)
        self.carried = [k for k in range(n) if any(c[k] for c in self.choices)]
        nothing_yet = (ABSENT,) * len(operands)
        reached: set[int] = set()
        for choice in self.choices:
            reached.update(plan.halves(choice, nothing_yet).wrt)
        self.running = [k for k in range(n, len(operands)) if k in reached]
        taken = {operands[k] for k in self.running}
        self.seeded: list[int] = []
        for k in self.carried:
            i = operands[k]
            if i in sweep.cotangents and i in sweep.active and i not in taken:
                taken.add(i)
                self.seeded.append(k)
        self.seeds = self._settle_seeds()
        self.halves = [plan.halves(choice, self.seeds) for choice in self.choices]
        self.unsure = [
            k
            for k in self.carried
            if k in self.seeded or any(c[k] != PRESENT for c in self.choices)
        ]
        self.doubtful = [k for k in self.running if self.seeds[k] != PRESENT]
        where = dict(zip(plan.full.keys, plan.full.residuals))
        self.residuals = [[where[k] for k in h.keys] for h in self.halves]
        # invariants that the bodies' backward graphs read
        self.outer = list(
            dict.fromkeys(i for own in self.residuals for i in own if n <= i < len(operands))
        )

    def _settle_seeds(self) -> list[int]:
        sweep, operands = self.sweep, self.plan.operands
        seeds = [ABSENT] * len(operands)
        for k in self.running:
            seeds[k] = sweep.status(operands[k]) or NEUTRAL
        for k in self.seeded:  # before the first turn it is not there
            seeds[k] = max(sweep.status(operands[k]), NEUTRAL)
        while True:
            worse = {
                i
                for choice in self.choices
                for i, s in zip(*_statuses(self.plan.halves(choice, seeds)))
                if s == GARBAGE and i in self.running and seeds[i] == NEUTRAL
            }
            if not worse:
                return seeds
            for i in worse:
                seeds[i] = GARBAGE

    def append(self) -> None:
        """Append the loop, and set the cotangents of the operands."""
        sweep, plan = self.sweep, self.plan
        builder, operands, results = sweep.builder, plan.operands, self.node.results
        stack = builder.tensor(results[plan.n_carry])
        holds = builder.append(stack_holds, (stack,), {})
        start = {
            k: sweep.cotangent(results[k]) for k in self.carried if results[k] in sweep.cotangents
        }
        before = {
            k: sweep.cotangent(operands[k])
            for k in (*self.running, *self.seeded)
            if operands[k] in sweep.cotangents
        }
        carries = [
            stack,
            *([builder.host(0)] if len(self.choices) > 1 else []),
            *(start[k].value if k in start else nothing(self.types[k]) for k in self.carried),
            *(before[k].value if k in before else nothing(self.types[k]) for k in self.running),
            *(flag_of(start.get(k)) for k in self.unsure),
            *(flag_of(before.get(k)) for k in self.doubtful),
        ]
        rest = [
            *(sweep.value(operands[i]) for i in self.outer),
            *(before[k].value for k in self.seeded),
            *(flag_of(before[k]) for k in self.seeded),
        ]
        made = builder.append(
            while_loop,
            (holds, *carries, *rest),
            {"body": self._body(), "n_carry": len(carries)},
        )
        values = iter(made[2 if len(self.choices) > 1 else 1 :])
        found = {k: next(values) for k in (*self.carried, *self.running)}
        flags = {k: next(values) for k in (*self.unsure, *self.doubtful)}
        for k in self.running:
            status = self.seeds[k]
            sweep.put(operands[k], Cotangent(found[k], status, flags.get(k)))
        for k in self.carried:
            if operands[k] not in sweep.active:
                continue
            status = PRESENT
            if k in self.unsure:
                every = [c[k] for c in self.choices]
                status = GARBAGE if GARBAGE in every or k in self.seeded else NEUTRAL
            new = Cotangent(found[k], status, flags.get(k))
            if k in self.seeded:
                idle = added(before[k], start[k]) if k in start else before[k]
                sweep.put(operands[k], _either_way(holds, idle, new))
            else:
                sweep.accumulate(operands[k], new)

    def _body(self) -> Graph:
        builder = GraphBuilder()
        several = len(self.choices) > 1
        types = self.types
        stack = builder.parameter(STACK)
        state = [builder.parameter(INT)] if several else []
        given = [builder.parameter(types[k]) for k in self.carried]
        runs = [builder.parameter(types[k]) for k in self.running]
        given_flags = [builder.parameter(BOOL) for _ in self.unsure]
        run_flags = [builder.parameter(BOOL) for _ in self.doubtful]
        outer = [builder.parameter(types[i]) for i in self.outer]
        haves = [builder.parameter(types[k]) for k in self.seeded]
        have_flags = [builder.parameter(BOOL) for _ in self.seeded]
        with builder.current():
            rest, left, *frame = builder.append(
                stack_pop, (stack,), {"types": self.plan.frame_types}
            )
            seeds, seed_flags = [], []
            if haves:
                last = left.apply("not", left)
                for have, flag in zip(haves, have_flags):
                    seeds.append(chosen(last, (have,), lambda x: nothing(x._type), lambda x: x))
                    seed_flags.append(last.apply("and", last, flag))
            values = [
                *frame, *outer, *given, *seeds, *runs, *given_flags, *seed_flags, *run_flags,
            ]  # fmt: skip
            kinds = [v._type for v in values]
            steps = [self._step(s, kinds) for s in range(len(self.choices))]
            if several:
                found = builder.append(switch, (*state, *values), {"branches": tuple(steps)})
            else:
                found = spliced(builder, steps[0], values)
            return builder.finish((left, rest, *found))

    def _step(self, s: int, kinds: list[ValueType]) -> Graph:
        """One turn back for choice `s`: takes the values in the order of `_body`, returns the
        carries but the stack.
        """
        plan, halves, choice = self.plan, self.halves[s], self.choices[s]
        place = {i: k for k, i in enumerate((*plan.kept, *self.outer))}
        order = [
            *(("given", k) for k in self.carried),
            *(("seed", k) for k in (*self.seeded, *self.running)),
            *(("given flag", k) for k in self.unsure),
            *(("seed flag", k) for k in (*self.seeded, *self.doubtful)),
        ]
        at = {name: len(place) + j for j, name in enumerate(order)}
        present = [k for k, status in enumerate(choice) if status]
        started = [k for k, status in enumerate(self.seeds) if status]
        places = [
            *(place[i] for i in self.residuals[s]),
            *(at["given", k] for k in present),
            *(at["seed", k] for k in started),
            *(at["given flag", k] for k in present if choice[k] > PRESENT),
            *(at["seed flag", k] for k in started if self.seeds[k] > PRESENT),
        ]
        graph = rewired(halves.backward, kinds, places)
        both = [*self.carried, *self.running]
        graph = answering(graph, halves, both, [*self.unsure, *self.doubtful], self.types)
        if len(self.choices) == 1:
            return graph
        builder = reopened(graph)
        with builder.current():
            state = builder.host(self.after[s])._id
        return Graph(builder.n_params, builder.types, builder.nodes, (state, *graph.outputs), False)


def _statuses(halves: Linearized) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return halves.wrt, halves.statuses


def _choices(plan: WhilePlan, start: Choice) -> tuple[list[Choice], list[int]]:
    """The carries' cotangents, turn by turn from the last one, until the choices repeat."""
    choices, after = [start], []
    while True:
        following = _following(plan, choices[-1])
        if following in choices:
            after.append(choices.index(following))
            return choices, after
        after.append(len(choices))
        choices.append(following)
        if len(choices) > _LIMIT:
            return [_joined(plan, start)], [0]


def _following(plan: WhilePlan, choice: Choice) -> Choice:
    found = plan.halves(choice, (ABSENT,) * len(plan.operands))
    known = dict(zip(*_statuses(found)))
    return tuple([known.get(k, ABSENT) for k in range(plan.n_carry)])


def _joined(plan: WhilePlan, start: Choice) -> Choice:
    """One choice that holds at every turn: every cotangent that there ever is may be there."""
    choice = tuple([GARBAGE if s else ABSENT for s in start])
    while True:
        found = tuple(
            [GARBAGE if a or b else ABSENT for a, b in zip(choice, _following(plan, choice))]
        )
        if found == choice:
            return choice
        choice = found


def _either_way(ran: Any, idle: Cotangent, new: Cotangent) -> Cotangent:
    """The operand's cotangent: of a loop that did not run, the result is the operand itself."""
    value = chosen(ran, (idle.value, new.value), lambda a, b: a, lambda a, b: b)
    if idle.status == PRESENT:  # then the first turn has added to what was there
        return Cotangent(value)
    flags = (flag_of(idle), flag_of(new))
    return Cotangent(value, GARBAGE, chosen(ran, flags, lambda a, b: a, lambda a, b: b))


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
