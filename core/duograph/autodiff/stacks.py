"""Gradients of pushes and pops, for the derivative of a loop's or a recursion's derivative.

The derivative of a loop saves residuals on a stack. When that derivative is differentiated again,
`sweep` calls this module for the nodes that push and pop. The cotangent of a stack is a stack too.
Each of its frames has the cotangents of one frame's values, and after each of them a bool that says
whether it exists: not every saved value is read, and a missing cotangent must not become a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ir.builder import GraphBuilder, GraphValue, current_builder
from ..ir.control import stack_holds, stack_pop, stack_push, switch
from ..ir.graph import Graph, GraphNode
from ..types import BOOL, STACK, ValueType
from .activity import has_cotangent
from .host_rules import additive_identity
from .optional_cotangents import GARBAGE, Cotangent, flag_of, with_zeros

if TYPE_CHECKING:
    from .sweep import Sweep

__all__ = ["STACK_RULES"]


def _push(sweep: Sweep, node: GraphNode) -> None:
    """Pop a frame from the cotangent of a push's result; set the cotangents of its operands."""
    stack, *values = [i for i in node.operands if i is not None]
    kept = [i for i in values if has_cotangent(sweep.builder.types[i])]
    types = [sweep.builder.types[i] for i in kept]
    rest, *found = _pop_or_identity(with_zeros(sweep.cotangents[node.results[0]]), types)
    if stack in sweep.active:
        sweep.accumulate(stack, Cotangent(rest))
    for i, value, flag in zip(kept, found[::2], found[1::2], strict=True):
        if i in sweep.active:
            sweep.accumulate(i, Cotangent(value, GARBAGE, flag))  # type: ignore[arg-type]


def _pop(sweep: Sweep, node: GraphNode) -> None:
    """Push the cotangents of the values that were popped on the cotangent of the operand."""
    (stack,) = node.operands
    rest, _, *values = node.results
    if stack is None or stack not in sweep.active:
        return
    frame: list[GraphValue] = []
    for i in values:
        type_ = sweep.builder.types[i]
        if has_cotangent(type_):
            found = sweep.cotangents.get(i)
            frame.append(additive_identity(type_) if found is None else found.value)
            frame.append(flag_of(found))
    below = sweep.cotangents.get(rest)
    bottom = additive_identity(STACK) if below is None else with_zeros(below)
    pushed = sweep.builder.append(stack_push, (bottom, *frame), {})
    sweep.accumulate(stack, Cotangent(pushed))


def _pop_or_identity(stack: GraphValue, types: Sequence[ValueType]) -> tuple[GraphValue, ...]:
    """Append nodes that pop a frame of cotangents from a stack, which may be empty at run time.

    Returns the rest of the stack, then for each of the types a cotangent and its run-time flag. If
    the stack is empty, it stays empty and all flags are false.
    """
    branches: list[Graph] = []
    for holds in (False, True):
        inner = GraphBuilder()
        own = inner.parameter(STACK)
        with inner.current():
            if holds:
                frame = tuple([each for t in types for each in (t, BOOL)])
                rest, _, *values = inner.append(stack_pop, (own,), {"types": frame})
            else:
                rest = own
                values = [each for t in types for each in (additive_identity(t), inner.host(False))]
            branches.append(inner.finish((rest, *values)))
    builder = current_builder()
    flag = builder.append(stack_holds, (stack,), {})
    made: tuple[GraphValue, ...] = builder.append(
        switch, (flag, stack), {"branches": tuple(branches)}
    )
    return made


# By the name of the op: function (sweep, node) that adds to the cotangents of the operands.
STACK_RULES = {"stack_push": _push, "stack_pop": _pop}
