"""The walk back: bprop rules traced behind the nodes of a graph, in reverse order, and the cut
between the halves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import context
from ..errors import GradientError, ShapeError
from ..ir.basic_ops import cast_to
from ..ir.builder import GraphBuilder, GraphTensor
from ..ir.graph import Graph, GraphNode, live_nodes
from ..ir.values import number_of
from ..op import NO_GRAD, Op
from ..types import BOOL, HostType, TensorType, ValueType
from .host_rules import RULES, full, nothing
from .optional_cotangents import ABSENT, GARBAGE, PRESENT, Cotangent, added, either, settled

if TYPE_CHECKING:
    from .linearize import Joint

__all__ = ["Linearized", "Sweep", "missing", "checked"]

# Ops that make a value of constants at no cost: with their operands made again rather than kept for
# the backward.
_CHEAP = frozenset({"reshape", "broadcast_to", "cast", "to_tensor", "scalar"})


@dataclasses.dataclass(frozen=True)
class Linearized:
    """The two halves of a derivative.

    Attributes:
        forward: parameters -> (results of the graph..., extra residuals...).
        n_results: how many results the graph itself has.
        residuals: for each residual of the backward, its value id in `forward`.
        backward: (residuals..., cotangents present..., cotangents seeded...) -> cotangents.
        wrt: for each output of `backward`, the parameter it belongs to.
        keys: names of the residuals that two linearizations of one graph share.
        statuses: inside of a derivative, for each of `wrt` whether it is there in every run; see
            `optional_cotangents.py`.
    """

    forward: Graph
    n_results: int
    residuals: tuple[int, ...]
    backward: Graph
    wrt: tuple[int, ...]
    keys: tuple[int, ...]
    statuses: tuple[int, ...] = ()


class Sweep:
    """One walk from the results' cotangents back to those of the parameters.

    Attributes:
        builder: the forward nodes, the parameters for cotangents, and the backward nodes.
        cotangents: by value id, as far as they are summed.
        statuses, flags: of the cotangents; a flag only where the status asks for one.
    """

    def __init__(
        self, joint: Joint, present: tuple[int, ...], seeded: tuple[int, ...], outermost: bool
    ) -> None:
        self.joint = joint
        self.present = present
        self.seeded = seeded
        self.outermost = outermost
        self.active = joint.active
        self.cotangents: dict[int, Any] = {}
        self.statuses: dict[int, int] = {}
        self.flags: dict[int, Any] = {}
        self.builder = builder = GraphBuilder()
        builder.types = list(joint.builder.types)
        builder.nodes = list(joint.builder.nodes)
        builder.n_params = joint.graph.n_params

    def value(self, id_: int) -> Any:
        """A value of the forward, for a rule to keep: under its first name."""
        return self.builder.tensor(self.joint.alias.get(id_, id_))

    def cotangent(self, id_: int) -> Cotangent:
        """The cotangent of a value that has one."""
        return Cotangent(self.cotangents[id_], self.statuses[id_], self.flags.get(id_))

    def status(self, id_: int | None) -> int:
        """Whether a value has a cotangent."""
        return self.statuses.get(id_, ABSENT)  # type: ignore[arg-type]

    def put(self, id_: int, new: Cotangent) -> None:
        """Replace the cotangent of a value."""
        self.cotangents[id_] = new.value
        self.statuses[id_] = new.status
        if new.status > PRESENT:
            self.flags[id_] = new.flag
        else:
            self.flags.pop(id_, None)

    def accumulate(self, id_: int, new: Cotangent) -> None:
        """Add to the cotangent of a value."""
        if id_ in self.cotangents:
            new = added(self.cotangent(id_), new)
        self.put(id_, new)

    def halves(self) -> Linearized:
        joint, builder = self.joint, self.builder
        types = builder.types
        n_forward = len(builder.nodes)
        given = [(i, s) for i, s in enumerate(self.seeded) if s]
        n_own = len(given)
        given += [(i, s) for i, s in zip(joint.outputs, self.present) if s]
        values = [builder._value(types[i]) for i, _ in (*given[n_own:], *given[:n_own])]
        values = values[len(given) - n_own :] + values[: len(given) - n_own]
        flags = [builder._value(BOOL) if s > PRESENT else None for _, s in given]
        order = [*range(n_own, len(given)), *range(n_own)]
        inputs = [values[k]._id for k in order]
        inputs += [flags[k]._id for k in order if flags[k] is not None]
        with builder.current():
            for (i, s), value, flag in zip(given, values, flags):
                self.accumulate(i, Cotangent(value, s, flag))
            cotangents, plans = self.cotangents, joint.plans
            for k in range(n_forward - 1, -1, -1):
                node = builder.nodes[k]
                for r in node.results:
                    if r in cotangents:
                        builder.span = node.span
                        plan = plans.get(k)
                        if plan is not None:
                            plan.backward(self, node)
                        else:
                            self._node(node)
                        break
            wrt = tuple([i for i, w in enumerate(joint.wanted) if w and i in cotangents])
            found = [self.cotangent(i) for i in wrt]
            if self.outermost:
                found = [Cotangent(settled(c), PRESENT) for c in found]
        outputs = [c.value._id for c in found]
        outputs += [c.flag._id for c in found if c.status > PRESENT]
        return self._split(n_forward, inputs, outputs, wrt, tuple([c.status for c in found]))

    def _node(self, node: GraphNode) -> None:
        """Through the bprop rule of one call."""
        active, cotangents, builder = self.active, self.cotangents, self.builder
        if active.isdisjoint(node.results) or active.isdisjoint(node.operands):
            return
        if node.results[0] in self.joint.alias:
            (operand,) = node.operands
            assert operand is not None
            self.accumulate(operand, self.cotangent(node.results[0]))
            return
        op = node.op
        getter = op.bprop_rule or RULES.get(op.name)
        if getter is None:
            raise GradientError(
                f"{op.name}: has no gradient rule; register one with "
                f"bprop_getters.register, or wrap the operand in ops.stop_gradient"
            )
        filled = [
            cotangents[i] if i in cotangents else missing(builder.types[i]) for i in node.results
        ]
        values = [None if i is None else self.value(i) for i in node.operands]
        outs = [builder.tensor(i) for i in node.results]
        status, flag = self.joined(node.results)
        found = getter(node.attributes)(
            *op.arguments(values),
            outs[0] if node.single else tuple(outs),
            filled[0] if node.single else tuple(filled),
        )
        for operand, grad in zip(node.operands, checked(op, values, found), strict=True):
            if operand in active and grad is not NO_GRAD and grad is not None:
                assert operand is not None
                value = _fitted(builder, op, operand, grad)
                self.accumulate(operand, Cotangent(value, status, flag))

    def joined(self, results: Sequence[int]) -> tuple[int, Any]:
        """Status and flag of what a rule makes of the cotangents of these results."""
        given = [self.cotangent(r) for r in results if r in self.cotangents]
        if any(c.status == PRESENT for c in given):
            return PRESENT, None
        return GARBAGE, either([c.flag for c in given])

    def _split(
        self,
        n_forward: int,
        seeds: list[int],
        grads: list[int],
        wrt: tuple[int, ...],
        statuses: tuple[int, ...],
    ) -> Linearized:
        """Cut the joint graph in two at `n_forward`; what crosses the cut are the residuals."""
        builder, graph = self.builder, self.joint.graph
        types, n_params = builder.types, graph.n_params
        n_defined = len(self.joint.builder.types)  # ids below it are the forward's
        nodes = builder.nodes[:n_forward]
        backward = live_nodes(builder.nodes[n_forward:], set(grads))
        used: dict[int, None] = {}
        for node in backward:
            for i in node.operands:
                if i is not None and i < n_defined:
                    used[i] = None
        used.update((i, None) for i in grads if i < n_defined)
        makers = _constants(nodes)
        remade: dict[int, GraphNode] = {}  # by first result
        residuals: list[int] = []
        for i in used:
            if i in makers:
                _remake(i, makers, remade)
            else:
                residuals.append(i)
        back, _ = _renumbered(
            types,
            [*residuals, *seeds],
            [*(remade[i] for i in sorted(remade)), *backward],
            grads,
            False,
        )
        out_ids = self.joint.outputs
        known = set(out_ids)
        extra = [i for i in residuals if i >= n_params and i not in known]
        forward, numbering = _renumbered(
            types,
            list(range(n_params)),
            live_nodes(nodes, {*out_ids, *extra}),
            [*out_ids, *extra],
            graph.single and not extra,
        )
        return Linearized(
            forward,
            len(out_ids),
            tuple([numbering[i] for i in residuals]),
            back,
            wrt,
            tuple(residuals),
            statuses,
        )


def _constants(nodes: Sequence[GraphNode]) -> dict[int, GraphNode]:
    """What makes the values that are known while compiling, and cheap."""
    makers: dict[int, GraphNode] = {}
    for node in nodes:
        if node.operands:
            if node.op.name not in _CHEAP or any(i not in makers for i in node.operands):
                continue
        elif node.op.effects:
            continue
        for r in node.results:
            makers[r] = node
    return makers


def _remake(i: int, makers: dict[int, GraphNode], into: dict[int, GraphNode]) -> None:
    node = makers[i]
    into[node.results[0]] = node
    for operand in node.operands:
        assert operand is not None
        _remake(operand, makers, into)


def missing(type_: ValueType) -> Any:
    """The cotangent of a result that nothing uses, for a rule that wants one."""
    return full(type_, 0) if isinstance(type_, TensorType) else nothing(type_)


def checked(op: Op, operands: Sequence[Any], found: Any) -> tuple[Any, ...]:
    """What a rule returned, one item per operand.

    Raises:
        GradientError: another number of gradients than operands.
    """
    if op.variadic and isinstance(found, (tuple, list)) and len(found) == 1:
        inner = found[0]
        if isinstance(inner, (tuple, list)):
            found = inner
    if not isinstance(found, (tuple, list)):
        found = (found,)
    # a rule of the older form also returns items for attributes that it takes as inputs
    if len(found) < len(operands) or (
        len(found) > len(operands) and len(found) > len(op.parameters)
    ):
        raise GradientError(
            f"{op.name}: its bprop returned {len(found)} gradients, wanted {len(operands)}, "
            f"one per operand"
        )
    return tuple(found[: len(operands)])


def _fitted(builder: GraphBuilder, op: Op, operand: int, grad: Any) -> Any:
    """The gradient as a value of the operand's type; another shape is an error, another dtype is
    cast.
    """
    want: ValueType = builder.types[operand]
    if isinstance(want, HostType):
        return builder.host(grad if want.name == "stack" else number_of(grad, want))
    value = builder.operand(grad, want.dtype)
    assert isinstance(value, GraphTensor)
    if value._type.shape != want.shape:
        raise GradientShapeError(
            f"{op.name}: its bprop returned a gradient of shape {value._type.shape} for an "
            f"operand of shape {want.shape}; wanted the operand's shape"
        )
    if value._type.dtype is not want.dtype:
        if context.settings.debug:
            raise GradientError(
                f"{op.name}: its bprop returned a {value._type.dtype.name} gradient for a "
                f"{want.dtype.name} operand; wanted the operand's dtype"
            )
        value = builder.append(cast_to, (value,), {"dtype": want.dtype})
    return value


class GradientShapeError(GradientError, ShapeError):
    """A rule returned a gradient of another shape than the operand's."""


def _renumbered(
    types: list[ValueType],
    params: list[int],
    nodes: list[GraphNode],
    outputs: list[int],
    single: bool,
) -> tuple[Graph, dict[Any, Any]]:
    """A graph of its own numbering made of some nodes of another one."""
    number: dict[Any, Any] = {i: k for k, i in enumerate(params)}
    number[None] = None
    kinds = [types[i] for i in params]
    made: list[GraphNode] = []
    for node in nodes:
        operands = tuple([number[i] for i in node.operands])
        first = len(kinds)
        for r in node.results:
            number[r] = len(kinds)
            kinds.append(types[r])
        results = tuple(range(first, len(kinds)))
        made.append(GraphNode(node.op, operands, node.attributes, results, node.single, node.span))
    out = tuple([number[i] for i in outputs])
    return Graph(len(params), kinds, made, out, single), number
