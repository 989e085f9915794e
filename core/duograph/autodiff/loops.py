"""The gradient of a while loop: the forward pushes residuals on a stack, the backward pops them.

Which carries (loop variables) have a cotangent can differ between the last iteration and earlier
ones. After the last iteration, a carry has one if its result is used. After an earlier iteration, a
carry has one if the backward of the next iteration returns one for it. A missing cotangent is not
replaced by zero, because gradient rules could turn a zero into NaN, and because the eager tape does
not add a zero there. The statuses of all carries' cotangents after one iteration are a
*pattern*. Each pattern has its own backward of the body; the backward loop has the number of the
next pattern as a loop variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..ir.builder import GraphBuilder, GraphValue
from ..ir.control import (
    stack_holds,
    stack_new,
    stack_pop,
    stack_push,
    switch,
    while_loop,
)
from ..ir.graph import Graph, GraphNode, SourceSpan
from ..ir.values import GraphScalar
from ..types import BOOL, INT, STACK, ValueType
from .activity import has_cotangent
from .host_rules import additive_identity
from .optional_cotangents import (
    ABSENT,
    GARBAGE,
    NEUTRAL,
    PRESENT,
    Cotangent,
    added,
    flag_of,
    select,
)
from .subgraphs import Ids, reopened, spliced, with_outputs_for, with_parameters

if TYPE_CHECKING:
    from .linearize import Joint
    from .partition import Linearized
    from .sweep import Sweep

__all__ = ["plan_while"]

# The most patterns of a loop; more are merged into one in which every cotangent has a flag.
_MAX_PATTERNS = 4

# The status of each carry's cotangent in one iteration.
Pattern: TypeAlias = "tuple[int, ...]"


class WhilePlan:
    """How the gradient of a while loop is computed, from the derivative of its body.

    Attributes:
        n_carry: number of carries (loop variables).
        operands: ids of the operands without the predicate: the carries, then the loop-invariant
            operands without repetitions.
        wanted: for each of these operands, whether it is differentiated in the body.
        joint: the forward nodes of the body, and how to differentiate them (`Joint`).
        full: the forward and backward graph of the body for the case that all results have
            cotangents, which needs the most residuals.
        kept: ids, in the forward body, of the residuals pushed in each iteration. Residuals that
            are loop-invariant are not pushed: the backward loop takes them as operands.
        frame_types: types of the residuals pushed in each iteration.
    """

    def __init__(self, joint: Joint, body: Graph, n_carry: int, operands: list[int]) -> None:
        session = joint.session
        self.n_carry = n = n_carry
        self.operands = operands
        types = joint.builder.types
        start = [i in joint.active and has_cotangent(types[i]) for i in operands]
        self.wanted = tuple(map(bool, session.activity.carries(body, n, start)))
        self.joint: Joint = session.joint(body, self.wanted, session)
        self.full = lin = self.joint.full_halves()
        self.kept = [i for i in lin.residuals if not n <= i < len(operands)]
        self.frame_types = tuple(lin.forward.types[i] for i in self.kept)

    def forward_body(self) -> Graph:
        """Return the loop body as a graph that also pushes the iteration's residuals on a stack.

        It maps (*carries, stack, *invariants) to (predicate, *carries, stack).
        """
        lin, n = self.full, self.n_carry
        types = lin.forward.types[: lin.forward.n_params]
        kinds = [*types[:n], STACK, *types[n:]]
        positions = [k if k < n else k + 1 for k in range(len(types))]
        shift = len(kinds) - len(types)
        graph = with_parameters(lin.forward, kinds, positions)
        builder = reopened(graph)
        kept = [positions[i] if i < len(types) else i + shift for i in self.kept]
        with builder.current():
            values = [builder.tensor(i) for i in (n, *kept)]
            stack = builder.append(stack_push, tuple(values), {})
        outputs = (*graph.outputs[: lin.n_results], stack._id)
        return Graph(builder.n_params, builder.types, builder.nodes, outputs, False)

    def backward(self, sweep: Sweep, node: GraphNode) -> None:
        """Append the backward loop to the sweep's graph; it processes the last iteration first.

        Sets the cotangents of the loop's operands in `sweep`. `node` is the forward loop.
        """
        start = tuple(
            [
                sweep.status(r) if w else ABSENT
                for r, w in zip(node.results, self.wanted[: self.n_carry])
            ]
        )
        if any(start):
            _Backward(self, sweep, node, start).append()

    def halves(self, pattern: Pattern, seeded: Sequence[int]) -> Linearized:
        """Return the body's forward and backward graph for one combination of cotangents.

        Args:
            pattern: for each carry (loop variable), the status of its cotangent after the
                iteration.
            seeded: for each parameter of the body, the status of a cotangent to which the backward
                graph adds.
        """
        return self.joint.halves((ABSENT, *pattern), seeded)


class _Backward:
    """Builder of the backward loop of a while loop.

    The loop variables of the backward loop are the stack of residuals, the number of the pattern
    (if there are several), and the cotangents of `carried` and `summed` operands with the flags of
    `flagged_carries` and `flagged_sums`. A pattern says which carries have a cotangent at the end
    of an iteration.

    Attributes:
        plan: the plan of the loop.
        sweep: the sweep to whose graph the loop is appended.
        node: the forward loop.
        types: types of the values of the loop body.
        patterns: the patterns; number 0 is that of the last iteration.
        after: for each pattern, the number of the pattern of the iteration before.
        carried: carries that have a cotangent in some pattern.
        summed: loop-invariant operands whose cotangents are summed over the iterations.
        seeded: carries whose operand already has a cotangent when the backward loop starts. The
            first iteration, which is processed last, adds to it.
        seeds: for each operand, the status of the cotangent to which an iteration adds.
        halves: for each pattern, the forward and backward graph of the body.
        flagged_carries, flagged_sums: the operands in `carried` and `summed` whose cotangents have
            run-time flags.
        residuals: for each pattern, the ids in the forward body of the values that its backward
            graph reads.
        invariants: loop-invariant operands that some backward body reads.
    """

    def __init__(self, plan: WhilePlan, sweep: Sweep, node: GraphNode, start: Pattern) -> None:
        self.plan, self.sweep, self.node = plan, sweep, node
        n, operands = plan.n_carry, plan.operands
        self.types: list[ValueType] = plan.joint.graph.types
        self.patterns, self.after = _patterns(plan, start)
        self.carried = [k for k in range(n) if any(c[k] for c in self.patterns)]
        no_seeds = (ABSENT,) * len(operands)
        reached: set[int] = set()
        for pattern in self.patterns:
            reached.update(plan.halves(pattern, no_seeds).wrt)
        self.summed = [k for k in range(n, len(operands)) if k in reached]
        taken = {operands[k] for k in self.summed}
        self.seeded: list[int] = []
        for k in self.carried:
            i = operands[k]
            if i in sweep.cotangents and i in sweep.active and i not in taken:
                taken.add(i)
                self.seeded.append(k)
        self.seeds = self._settle_seeds()
        self.halves = [plan.halves(pattern, self.seeds) for pattern in self.patterns]
        self.flagged_carries = [
            k
            for k in self.carried
            if k in self.seeded or any(c[k] != PRESENT for c in self.patterns)
        ]
        self.flagged_sums = [k for k in self.summed if self.seeds[k] != PRESENT]
        id_of = dict(zip(plan.full.keys, plan.full.residuals))
        self.residuals = [[id_of[k] for k in h.keys] for h in self.halves]
        self.invariants = list(
            dict.fromkeys(i for own in self.residuals for i in own if n <= i < len(operands))
        )

    def _settle_seeds(self) -> list[int]:
        """Return for each operand the status of the cotangent to which an iteration adds.

        A status says in which runs a cotangent exists. These statuses and those that the backward
        graph of the body returns depend on each other. Therefore they are computed again until they
        stay the same.
        """
        sweep, operands = self.sweep, self.plan.operands
        seeds = [ABSENT] * len(operands)
        for k in self.summed:
            seeds[k] = sweep.status(operands[k]) or NEUTRAL
        for k in self.seeded:  # later iterations start without a cotangent
            seeds[k] = max(sweep.status(operands[k]), NEUTRAL)
        while True:
            worse = {
                i
                for pattern in self.patterns
                for i, s in _statuses(self.plan.halves(pattern, seeds))
                if s == GARBAGE and i in self.summed and seeds[i] == NEUTRAL
            }
            if not worse:
                return seeds
            for i in worse:
                seeds[i] = GARBAGE

    def append(self) -> None:
        """Append the backward loop and set the cotangents of the original loop's operands."""
        sweep, plan = self.sweep, self.plan
        builder, operands, results = sweep.builder, plan.operands, self.node.results
        stack = builder.tensor(results[plan.n_carry])
        holds = builder.append(stack_holds, (stack,), {})
        start = {
            k: sweep.cotangents[results[k]] for k in self.carried if results[k] in sweep.cotangents
        }
        before = {
            k: sweep.cotangents[operands[k]]
            for k in (*self.summed, *self.seeded)
            if operands[k] in sweep.cotangents
        }
        carries = [
            stack,
            *([builder.host(0)] if len(self.patterns) > 1 else []),
            *(self._initial(start, k) for k in self.carried),
            *(self._initial(before, k) for k in self.summed),
            *(flag_of(start.get(k)) for k in self.flagged_carries),
            *(flag_of(before.get(k)) for k in self.flagged_sums),
        ]
        constants = [
            *(sweep.value(operands[i]) for i in self.invariants),
            *(before[k].value for k in self.seeded),
            *(flag_of(before[k]) for k in self.seeded),
        ]
        made = builder.append(
            while_loop,
            (holds, *carries, *constants),
            {"body": self._body(), "n_carry": len(carries)},
        )
        values = iter(made[2 if len(self.patterns) > 1 else 1 :])
        found = {k: next(values) for k in (*self.carried, *self.summed)}
        flags = {k: next(values) for k in (*self.flagged_carries, *self.flagged_sums)}
        for k in self.summed:
            sweep.cotangents[operands[k]] = Cotangent(found[k], self.seeds[k], flags.get(k))
        for k in self.carried:
            if operands[k] not in sweep.active:
                continue
            new = Cotangent(found[k], self._final_status(k), flags.get(k))
            if k in self.seeded:
                idle = added(before[k], start[k]) if k in start else before[k]
                always = before[k].status == PRESENT  # `new` contains it, but perhaps not `start`
                sweep.cotangents[operands[k]] = _if_ran(holds, idle, new, always)
            else:
                sweep.accumulate(operands[k], new)

    def _initial(self, cotangents: dict[int, Cotangent], k: int) -> GraphValue:
        return cotangents[k].value if k in cotangents else additive_identity(self.types[k])

    def _final_status(self, k: int) -> int:
        """Return the status of the cotangent of carry `k`'s initial value.

        This value is an operand of the forward loop; the backward loop returns its cotangent. The
        status says in which runs the cotangent exists.
        """
        if k not in self.flagged_carries:
            return PRESENT
        if k in self.seeded or any(c[k] == GARBAGE for c in self.patterns):
            return GARBAGE
        return NEUTRAL

    def _body(self) -> Graph:
        """Return the body of the backward loop as a graph.

        Its parameters are the loop variables of the backward loop, then loop-invariant values. It
        returns whether to run another iteration, then the loop variables.
        """
        builder = GraphBuilder()
        several = len(self.patterns) > 1
        types = self.types
        stack = builder.parameter(STACK)
        state = [builder.parameter(INT)] if several else []
        given = [builder.parameter(types[k]) for k in self.carried]
        sums = [builder.parameter(types[k]) for k in self.summed]
        given_flags = [builder.parameter(BOOL) for _ in self.flagged_carries]
        sum_flags = [builder.parameter(BOOL) for _ in self.flagged_sums]
        invariants = [builder.parameter(types[i]) for i in self.invariants]
        haves = [builder.parameter(types[k]) for k in self.seeded]
        have_flags = [builder.parameter(BOOL) for _ in self.seeded]
        with builder.current():
            rest, more, *frame = builder.append(
                stack_pop, (stack,), {"types": self.plan.frame_types}
            )
            seeds, seed_flags = [], []
            if haves:
                first = more.apply("not", more)  # the first iteration of the forward loop
                for have, flag in zip(haves, have_flags):
                    seeds.append(
                        select(first, (have,), lambda x: additive_identity(x._type), lambda x: x)
                    )
                    seed_flags.append(first.apply("and", first, flag))
            values = [
                *frame, *invariants, *given, *seeds, *sums, *given_flags, *seed_flags, *sum_flags,
            ]  # fmt: skip
            kinds = [v._type for v in values]
            steps = [self._step(s, kinds) for s in range(len(self.patterns))]
            if several:
                found = builder.append(switch, (*state, *values), {"branches": tuple(steps)})
            else:
                found = spliced(builder, steps[0], values)
            return builder.finish((more, rest, *found))

    def _step(self, s: int, kinds: list[ValueType]) -> Graph:
        """Return the backward graph of one iteration, for pattern number `s`.

        A pattern says which carries have a cotangent at the end of the iteration. `kinds` are the
        types of the graph's parameters: residuals, cotangents and flags. The graph returns the loop
        variables of the backward loop except the stack.
        """
        plan, halves, pattern = self.plan, self.halves[s], self.patterns[s]
        residual_at = {i: k for k, i in enumerate((*plan.kept, *self.invariants))}
        order = [
            *(("given", k) for k in self.carried),
            *(("seed", k) for k in (*self.seeded, *self.summed)),
            *(("given flag", k) for k in self.flagged_carries),
            *(("seed flag", k) for k in (*self.seeded, *self.flagged_sums)),
        ]
        at = {name: len(residual_at) + j for j, name in enumerate(order)}
        present = [k for k, status in enumerate(pattern) if status]
        started = [k for k, status in enumerate(self.seeds) if status]
        positions = [
            *(residual_at[i] for i in self.residuals[s]),
            *(at["given", k] for k in present),
            *(at["seed", k] for k in started),
            *(at["given flag", k] for k in present if pattern[k] > PRESENT),
            *(at["seed flag", k] for k in started if self.seeds[k] > PRESENT),
        ]
        graph = with_parameters(halves.backward, kinds, positions)
        wrt = [*self.carried, *self.summed]
        flagged = [*self.flagged_carries, *self.flagged_sums]
        graph = with_outputs_for(graph, halves, wrt, flagged, self.types)
        if len(self.patterns) == 1:
            return graph
        builder = reopened(graph)
        with builder.current():
            state = builder.host(self.after[s])._id
        return Graph(builder.n_params, builder.types, builder.nodes, (state, *graph.outputs), False)


def _statuses(halves: Linearized) -> zip[tuple[int, int]]:
    """Return pairs (parameter of the loop body, status of the cotangent computed for it).

    A status says in which runs the cotangent exists (see `optional_cotangents.Cotangent`).
    """
    return zip(halves.wrt, halves.statuses)


def _patterns(plan: WhilePlan, start: Pattern) -> tuple[list[Pattern], list[int]]:
    """Return all patterns of a loop's iterations and, for each, the number of the next one.

    A pattern says which loop variables have a cotangent at the end of an iteration; `start` is the
    pattern of the last iteration. The next pattern is that of the iteration before, because the
    backward loop goes backwards. If there are too many patterns, all are merged into one.
    """
    patterns, after = [start], []
    while True:
        following = _following(plan, patterns[-1])
        if following in patterns:
            after.append(patterns.index(following))
            return patterns, after
        after.append(len(patterns))
        patterns.append(following)
        if len(patterns) > _MAX_PATTERNS:
            return [_merged_pattern(plan, start)], [0]


def _following(plan: WhilePlan, pattern: Pattern) -> Pattern:
    """Return a loop iteration's cotangent pattern, given that of the iteration after it.

    A pattern says which carries (loop variables) have a cotangent at the end of an iteration.
    """
    known = dict(_statuses(plan.halves(pattern, (ABSENT,) * len(plan.operands))))
    return tuple([known.get(k, ABSENT) for k in range(plan.n_carry)])


def _merged_pattern(plan: WhilePlan, start: Pattern) -> Pattern:
    """Return one cotangent pattern that is valid for all iterations of a loop.

    In it, every cotangent that may exist has status GARBAGE: code may use the cotangent's value
    only if its flag is true. `start` is the pattern of the last iteration.
    """
    pattern = tuple([GARBAGE if s else ABSENT for s in start])
    while True:
        found = tuple(
            [GARBAGE if a or b else ABSENT for a, b in zip(pattern, _following(plan, pattern))]
        )
        if found == pattern:
            return pattern
        pattern = found


def _if_ran(ran: GraphScalar, idle: Cotangent, new: Cotangent, always: bool) -> Cotangent:
    """Append a choice made at run time: `new` if the loop ran at least once, else `idle`.

    Returns the resulting cotangent. `always` says that both exist in every run.
    """
    value = select(ran, (idle.value, new.value), lambda a, b: a, lambda a, b: b)
    if always:
        return Cotangent(value)
    flag = select(ran, (flag_of(idle), flag_of(new)), lambda a, b: a, lambda a, b: b)
    assert isinstance(flag, GraphScalar)
    return Cotangent(value, GARBAGE, flag)


def plan_while(
    joint: Joint, node: GraphNode, operands: Ids, span: SourceSpan | None
) -> Sequence[int] | None:
    """Append a loop that also pushes residuals on a stack, and store its `WhilePlan`.

    The loop is appended to the forward graph, which `joint` holds. `node` is the original loop, and
    `operands` are the ids of its operands in the forward graph; the new nodes have the source
    location `span`. Returns the ids of the original results, or None if no result depends on a
    differentiated value.
    """
    n = node.attributes["n_carry"]
    body: Graph = node.attributes["body"]
    predicate, *rest = [i for i in operands if i is not None]
    active = joint.session.activity.carries(body, n, [i in joint.active for i in rest])
    if not any(active[:n]):
        return None
    invariants = list(dict.fromkeys(rest[n:]))
    position = {i: n + k for k, i in enumerate(invariants)}
    if len(invariants) < len(rest) - n:
        kinds = [joint.builder.types[i] for i in (*rest[:n], *invariants)]
        body = with_parameters(body, kinds, [*range(n), *(position[i] for i in rest[n:])])
    own = [*rest[:n], *invariants]
    plan = WhilePlan(joint, body, n, own)
    (stack,) = joint.add(stack_new, (), {}, (STACK,), True, span)
    attributes = {"body": plan.forward_body(), "n_carry": n + 1}
    types = [*body.types[:n], STACK]
    joint.plans[len(joint.builder.nodes)] = plan
    given = (predicate, *own[:n], stack, *own[n:])
    *results, _ = joint.add(node.op, given, attributes, types, False, span)
    joint.active.update(r for r, w in zip(results, plan.wanted) if w)
    return results
