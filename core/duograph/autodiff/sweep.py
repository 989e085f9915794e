"""The reverse sweep: appends the gradient of every node of a graph, last node first.

`linearize` makes one `Sweep` for each combination of cotangents that a (sub-)graph receives. A
sweep traces the gradient rules of ops onto the forward nodes; for nodes with control flow it calls
their `control_flow.Plan`. `partition` then separates the forward from the backward graph. A sweep
never changes forward nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import context
from ..errors import GradientError, GradientShapeError, MissingRuleError
from ..ir.basic_ops import cast_to
from ..ir.builder import GraphBuilder, GraphTensor, GraphValue
from ..ir.graph import GraphNode, SourceSpan
from ..ir.values import GraphScalar, number_of
from ..op import NO_GRAD, Op
from ..types import BOOL, HostType, TensorType, ValueType
from .host_rules import RULES, additive_identity, filled
from .optional_cotangents import ABSENT, GARBAGE, PRESENT, Cotangent, added, either, with_zeros
from .partition import Linearized, partition
from .rule_checks import check_op
from .stacks import STACK_RULES

if TYPE_CHECKING:
    from .linearize import Joint

__all__ = ["Sweep", "missing_cotangent"]


class Sweep:
    """Reverse sweep over a graph, from cotangents of its results to those of its parameters.

    Attributes:
        joint: the forward nodes, and how to differentiate those with control flow.
        present: for each result, the status of its cotangent: in which runs it exists.
        seeded: for each parameter, the status of a cotangent to which the sweep adds.
        outermost: whether the graph is not a sub-graph. The cotangents that the sweep returns are
            then zeros in runs in which they do not exist.
        active: ids of the values that depend on a differentiated parameter.
        builder: the forward nodes, parameters for cotangents, and the backward nodes so far.
        cotangents: value id -> the sum of the value's cotangents so far.
    """

    def __init__(
        self, joint: Joint, present: tuple[int, ...], seeded: tuple[int, ...], outermost: bool
    ) -> None:
        self.joint = joint
        self.present = present
        self.seeded = seeded
        self.outermost = outermost
        self.active = joint.active
        self.cotangents: dict[int, Cotangent] = {}
        self.builder = builder = GraphBuilder()
        builder.types = list(joint.builder.types)
        builder.nodes = list(joint.builder.nodes)
        builder.n_params = joint.graph.n_params

    def value(self, id_: int) -> GraphValue:
        """Return the forward value with a given id as a symbolic value for a gradient rule.

        A composite op's body may read an operand through an `identity` node; in that case the
        operand itself is returned.
        """
        found: GraphValue = self.builder.tensor(self.joint.alias.get(id_, id_))
        return found

    def status(self, id_: int) -> int:
        """Return the status of a value's cotangent so far: in which runs it exists.

        It is ABSENT, PRESENT, NEUTRAL or GARBAGE (see `optional_cotangents.Cotangent`).
        """
        found = self.cotangents.get(id_)
        return ABSENT if found is None else found.status

    def accumulate(self, id_: int, new: Cotangent) -> None:
        """Add a cotangent to the sum of cotangents of value `id_`."""
        have = self.cotangents.get(id_)
        self.cotangents[id_] = new if have is None else added(have, new)

    def halves(self) -> Linearized:
        """Append the backward nodes of all forward nodes; return the forward and backward graph."""
        joint, builder = self.joint, self.builder
        n_forward = len(builder.nodes)
        of_results = [(i, s) for i, s in zip(joint.outputs, self.present) if s]
        of_params = [(i, s) for i, s in enumerate(self.seeded) if s]
        given = [*of_results, *of_params]
        values = [builder._value(builder.types[i]) for i, _ in given]
        flags = [builder._value(BOOL) if s > PRESENT else None for _, s in given]
        inputs = [v._id for v in values] + [f._id for f in flags if f is not None]
        cotangents = [Cotangent(v, s, f) for v, (_, s), f in zip(values, given, flags)]
        n = len(of_results)
        with builder.current():
            for (i, _), c in zip([*of_params, *of_results], [*cotangents[n:], *cotangents[:n]]):
                self.accumulate(i, c)
            for k in range(n_forward - 1, -1, -1):
                node = builder.nodes[k]
                if not self.cotangents.keys().isdisjoint(node.results):
                    builder.span = _of_gradient(node.span)
                    plan = joint.plans.get(k)
                    if plan is not None:
                        plan.backward(self, node)
                    else:
                        self._node(node)
            wrt = tuple([i for i, w in enumerate(joint.wanted) if w and i in self.cotangents])
            found = [self.cotangents[i] for i in wrt]
            if self.outermost:
                found = [Cotangent(with_zeros(c)) for c in found]
        gradients = [c.value._id for c in found]
        gradients += [c.flag._id for c in found if c.flag is not None]
        return partition(
            builder.types,
            builder.nodes,
            n_forward,
            len(joint.builder.types),
            joint.graph,
            joint.outputs,
            inputs,
            gradients,
            wrt,
            tuple([c.status for c in found]),
        )

    def _node(self, node: GraphNode) -> None:
        """Append the backward nodes of one graph node, by the gradient rule of its op.

        Adds the results to the cotangents of the node's operands.
        """
        active, builder = self.active, self.builder
        if active.isdisjoint(node.results) or active.isdisjoint(node.operands):
            return
        if node.results[0] in self.joint.alias:
            (operand,) = node.operands
            assert operand is not None
            self.accumulate(operand, self.cotangents[node.results[0]])
            return
        op = node.op
        of_stack = STACK_RULES.get(op.name)
        if of_stack is not None:
            of_stack(self, node)
            return
        getter = op.bprop_rule or RULES.get(op.name)
        if getter is None:
            raise MissingRuleError(op.name)
        douts = self.filled_cotangents(node.results)
        values = [None if i is None else self.value(i) for i in node.operands]
        if context.settings.debug and not op.own_rule:
            check_op(op, [None if v is None else v._type for v in values], node.attributes)
        outs = [builder.tensor(i) for i in node.results]
        status, flag = self.joined_status(node.results)
        found = getter(node.attributes)(
            *op.arguments(values),
            outs[0] if node.single else tuple(outs),
            douts[0] if node.single else tuple(douts),
        )
        for operand, gradient in zip(node.operands, _per_operand(op, values, found), strict=True):
            if operand in active and gradient is not NO_GRAD and gradient is not None:
                assert operand is not None
                value = _fitted(builder, op, operand, gradient)
                self.accumulate(operand, Cotangent(value, status, flag))

    def filled_cotangents(self, results: Sequence[int]) -> list[GraphValue]:
        """Return the cotangents of a graph node's results, with zeros for missing ones."""
        return [
            self.cotangents[r].value
            if r in self.cotangents
            else missing_cotangent(self.builder.types[r])
            for r in results
        ]

    def joined_status(self, results: Sequence[int]) -> tuple[int, GraphScalar | None]:
        """Return the status and the run-time flag for the gradients that a node's rule computes.

        The gradients exist in the runs in which at least one of the node's `results` has a
        cotangent. The flag is None if that is every run.
        """
        given = [self.cotangents[r] for r in results if r in self.cotangents]
        if any(c.status == PRESENT for c in given):
            return PRESENT, None
        return GARBAGE, either([c.flag for c in given])


def _of_gradient(span: SourceSpan | None) -> SourceSpan | None:
    """Return the source location for the backward nodes of a forward node with location `span`.

    It is the same one, but says that the nodes are backward nodes where a pipeline needs to know.
    """
    if getattr(span, "part", None) is None:
        return span
    found: SourceSpan = span._replace(backward=True)  # type: ignore[union-attr]
    return found


def missing_cotangent(type_: ValueType) -> GraphValue:
    """Return a constant zero as the cotangent of a result that nothing uses.

    Gradient rules of ops with several results need a cotangent for each.
    """
    return filled(type_, 0) if isinstance(type_, TensorType) else additive_identity(type_)


def _per_operand(op: Op, operands: Sequence[object], found: object) -> tuple[object, ...]:
    """Return what a gradient rule returned as a tuple with one gradient per operand.

    A rule may also return an item for each attribute, after those of the operands; these are
    dropped.

    Raises:
        GradientError: the rule returned fewer gradients than the op has operands, or more than it
            has operands and attributes.
    """
    if op.variadic and isinstance(found, (tuple, list)) and len(found) == 1:
        inner = found[0]
        if isinstance(inner, (tuple, list)):
            found = inner
    if not isinstance(found, (tuple, list)):
        found = (found,)
    # rules in the style of MindSpore 1.x return items for attributes too, after the operands'
    if len(found) < len(operands) or (
        len(found) > len(operands) and len(found) > len(op.parameters)
    ):
        raise GradientError(
            f"{op.name}: its bprop returned {len(found)} gradients, wanted {len(operands)}, "
            "one per operand"
        )
    return tuple(found[: len(operands)])


def _fitted(builder: GraphBuilder, op: Op, operand: int, gradient: object) -> GraphValue:
    """Return a rule's gradient as a graph value, checked and cast to the type of its operand.

    Args:
        builder: the builder of the graph.
        op: the op, for messages.
        operand: value id of the operand.
        gradient: what the rule returned for the operand.

    Raises:
        GradientShapeError: the gradient has another shape.
        GradientError: it has another dtype, and the setting `debug` or `check_bprop` is on.
    """
    want: ValueType = builder.types[operand]
    if isinstance(want, HostType):
        host: GraphValue = builder.host(number_of(gradient, want))
        return host
    value = builder.operand(gradient, want.dtype)
    assert isinstance(value, GraphTensor)
    if value._type.shape != want.shape:
        raise GradientShapeError(
            f"{op.name}: its bprop returned a gradient of shape {value._type.shape} for an "
            f"operand of shape {want.shape}; wanted the operand's shape"
        )
    if value._type.dtype is not want.dtype:
        if context.settings.debug or context.settings.check_bprop:
            raise GradientError(
                f"{op.name}: its bprop returned a {value._type.dtype.name} gradient for a "
                f"{want.dtype.name} operand; wanted the operand's dtype"
            )
        value = builder.append(cast_to, (value,), {"dtype": want.dtype})
    return value
