"""The derivative of a call: of a recursive function a pair of functions, of a user's own backward
that backward.

Residuals of a recursive call travel as one stack with one frame: so the types of its results are
known before its graph is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import GradientError
from ..ir.builder import GraphBuilder
from ..ir.control import call, stack_new, stack_pop, stack_push
from ..ir.graph import Graph, GraphNode, NamedGraph
from ..types import BOOL, STACK
from .activity import has_cotangent
from .host_rules import nothing
from .optional_cotangents import ABSENT, GARBAGE, PRESENT, Cotangent
from .subgraphs import Ids, answers, inputs, reopened, spliced
from .sweep import missing

if TYPE_CHECKING:
    from .control_flow import Session
    from .linearize import Joint
    from .sweep import Sweep

__all__ = ["RecursivePair", "plan_call", "plan_custom"]


class RecursivePair:
    """A recursive function made differentiable: a forward that also returns one stack with a frame
    of residuals, and a backward per choice of cotangents."""

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
        """(stack, cotangents..., seeds..., their flags...) -> cotangents of the wanted parameters,
        flags of some.
        """
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
        """Parameters whose cotangent comes with a flag: what a function that calls itself reaches
        differs by run.
        """
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
    """Put the callee's nodes in the place of the call; a recursive callee becomes a pair of
    functions.
    """
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
