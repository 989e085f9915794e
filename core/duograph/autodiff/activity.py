"""Activity analysis: finds the graph values that depend differentiably on chosen parameters.

`linearize` computes cotangents only for such *active* values. The analysis builds no derivative. It
must use types and ops alone, never the values of tensors, because it runs before the graph does.
It therefore distinguishes values that are active in every run from those that are active in some:
a branch may have replaced the value by a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..effects import Reads
from ..errors import GradientError
from ..ir.basic_ops import cast_to
from ..ir.builder import expand
from ..ir.graph import Graph, GraphNode, NamedGraph
from ..op import Op
from ..types import FLOAT, STACK, TensorType, ValueType

__all__ = [
    "Activity", "forward_uses", "has_cotangent", "has_side_effects", "expandable", "lost_in_bprop",
    "passes_on", "STACK_OPS",
]  # fmt: skip

# In which runs a value depends differentiably on a differentiated parameter. The values true and
# false stand for ALWAYS and NEVER.
NEVER = 0
ALWAYS = 1
SOMETIMES = 2

# Ops of residual stacks that have a derivative, needed to differentiate the derivative of a loop.
STACK_OPS = frozenset({"stack_push", "stack_pop"})
# Further ops without a derivative, which need no mark because their results are host values.
_OPAQUE = frozenset({"host_call", "stack_new", "stack_holds"})


def has_cotangent(type_: ValueType) -> bool:
    """Return whether values of a type can have a cotangent: tensors, Python floats and stacks.

    A stack is the graph value on which a loop saves residuals.
    """
    return isinstance(type_, TensorType) or type_ is FLOAT or type_ is STACK


def expandable(op: Op) -> bool:
    """Return whether an op is differentiated through its body, because it has no gradient rule."""
    return op.bprop_rule is None and op.body is not None and op.differentiable


def passes_on(node: GraphNode, types: Sequence[ValueType]) -> bool:
    """Return whether results of a node may depend differentiably on its operands.

    False for ops such as comparisons, whose results have no gradient, and for casts from floats to
    integers or bool. `types` are the types of the graph's values.
    """
    op = node.op
    if op is cast_to and node.attributes["dtype"].kind in "biu":
        (operand,) = node.operands
        assert operand is not None
        type_ = types[operand]
        return isinstance(type_, TensorType) and type_.dtype.kind in "biu"
    return (op.differentiable and op.name not in _OPAQUE) or op.name in STACK_OPS


def operand_types(graph: Graph, node: GraphNode) -> tuple[TensorType | None, ...]:
    """Return the types of a node's operands, which must be tensors; None for an absent operand."""
    found: list[TensorType | None] = []
    for i in node.operands:
        type_ = None if i is None else graph.types[i]
        assert type_ is None or isinstance(type_, TensorType), node
        found.append(type_)
    return tuple(found)


def lost_in_bprop(name: str) -> GradientError:
    """Return the error for a differentiated value that a function reads but does not get as input.

    The function's own `bprop` returns only gradients of its inputs, so the gradient of this value
    would be lost. `name` is the name of the function.
    """
    return GradientError(
        f"{name}: the function uses a Tensor or Parameter that is being differentiated and is not "
        "an input, so that its bprop has no gradient for it; wanted it as an input, or "
        "ops.stop_gradient"
    )


def forward_uses(graph: Graph) -> set[int]:
    """Return the positions of those parameters of a graph that a node or the outputs read."""
    used = {i for node in graph.nodes for i in node.operands if i is not None}
    return {i for i in range(graph.n_params) if i in used or i in graph.outputs}


class Activity:
    """Cached activity analysis: which graph values depend on differentiated parameters.

    Loops and recursive calls are analysed repeatedly until the result stays the same.

    Attributes:
        uncertain: names of the functions with a `bprop` of the user's that prints or has another
            side effect, and with inputs that are active only in some of the runs.
    """

    def __init__(self) -> None:
        self.uncertain: set[str] = set()
        self._graphs: dict[tuple[Graph, tuple[int, ...]], tuple[int, ...]] = {}
        self._named: dict[tuple[NamedGraph, tuple[int, ...]], tuple[int, ...]] = {}

    def results(self, graph: Graph, wanted: Sequence[int]) -> tuple[int, ...]:
        """Return, per result of a graph, in which runs it depends on a differentiated parameter.

        Args:
            graph: the graph.
            wanted: for each parameter of the graph, in which runs it is differentiated: NEVER,
                SOMETIMES or ALWAYS. The results are such values too.
        """
        key = (graph, tuple(wanted))
        found = self._graphs.get(key)
        if found is None:
            active = {i: w for i, w in enumerate(wanted) if w}
            for node in graph.nodes:
                operands = [NEVER if i is None else active.get(i, NEVER) for i in node.operands]
                if any(operands):
                    for r, when in zip(node.results, self._node(graph, node, operands)):
                        if when and has_cotangent(graph.types[r]):
                            active[r] = when
            found = self._graphs[key] = tuple([active.get(i, NEVER) for i in graph.outputs])
        return found

    def carries(self, body: Graph, n_carry: int, wanted: Sequence[int]) -> tuple[int, ...]:
        """Return, per parameter of a loop body, in which runs it depends on a differentiated one.

        A loop variable also counts if only later iterations make it depend on a differentiated
        parameter.

        Args:
            body: the loop body.
            n_carry: number of loop variables, which are the first parameters of the body.
            wanted: for each parameter of the body, in which runs it is differentiated.
        """
        flags = list(wanted)
        while True:
            found = self.results(body, flags)[1:]
            joined = [_joined(pair) for pair in zip(flags[:n_carry], found)]
            if joined == flags[:n_carry]:
                return tuple(flags)
            flags[:n_carry] = joined

    def called(self, target: NamedGraph, wanted: Sequence[int]) -> tuple[int, ...]:
        """Return, per result of a named graph, in which runs it depends on a differentiated one.

        Args:
            target: the named graph.
            wanted: for each parameter of the graph, in which runs it is differentiated.
        """
        key = (target, tuple(wanted))
        found = self._named.get(key)
        if found is not None:
            return found
        assert target.graph is not None, target
        guess: tuple[int, ...] = (NEVER,) * len(target.result_types)
        before = self._graphs
        while True:
            self._named[key] = guess
            self._graphs = {}  # results that used the previous guess are invalid
            found = self.results(target.graph, wanted)
            if found == guess:
                self._graphs = {**before, **self._graphs}
                return found
            guess = found

    def _node(self, graph: Graph, node: GraphNode, operands: Sequence[int]) -> Sequence[int]:
        """Return, for each result of a node, in which runs it depends on a differentiated value.

        `operands` says for each operand of the node in which runs it depends on such a value.
        """
        name, attributes = node.op.name, node.attributes
        if name == "switch":
            every = [self.results(b, operands[1:]) for b in attributes["branches"]]
            return [_joined(flags) for flags in zip(*every)]
        if name == "while_loop":
            n = attributes["n_carry"]
            return self.carries(attributes["body"], n, operands[1:])[:n]
        if name == "call":
            return self.called(attributes["target"], operands)
        if name == "custom_call":
            return self._custom_call(node, operands)
        if expandable(node.op):
            inner = expand(node.op, operand_types(graph, node), attributes)
            given = [a for a, i in zip(operands, node.operands) if i is not None]
            return self.results(inner, given)
        when = _of_any(operands) if passes_on(node, graph.types) else NEVER
        return [when] * len(node.results)

    def _custom_call(self, node: GraphNode, operands: Sequence[int]) -> Sequence[int]:
        attributes = node.attributes
        inputs = operands[: attributes["n_args"]]
        if _of_any(inputs) == SOMETIMES and has_side_effects(attributes["backward"]):
            self.uncertain.add(attributes["name"])
        used = forward_uses(attributes["graph"])
        return [_of_any([operands[i] for i in used])] * len(node.results)


def has_side_effects(graph: Graph) -> bool:
    """Return whether a graph does more than read and return values: it prints, writes or draws."""
    return any(not isinstance(effect, Reads) for effect in graph.effects)


def _of_any(operands: Iterable[int]) -> int:
    """Return in which runs at least one of several values is active.

    `operands` says for each of the values in which runs it is active.
    """
    found = set(operands)
    return ALWAYS if ALWAYS in found else SOMETIMES if SOMETIMES in found else NEVER


def _joined(flags: Iterable[int]) -> int:
    """Return in which runs the value is active that a run chooses among several.

    `flags` says for each of them in which runs it is active.
    """
    found = set(flags)
    return found.pop() if len(found) == 1 else SOMETIMES
