"""The table of functions that differentiate graph nodes with control flow, by op name.

`linearize` calls `planner(joint, node, operands, span)` while it copies the forward graph. `joint`
holds the copy, `node` is the original, `operands` are its operands in the copy, and `span` is the
source location to use if the node has none. A planner appends a forward node that also returns
residuals, stores a `Plan` of the node's gradient, and returns the ids of the original results. It
may instead return None to have the node copied unchanged. The reverse sweep later calls the plan's
`backward`. The backward graph of a sub-graph takes the cotangents that the node's operands already
have and adds to them. Cotangents are therefore summed in the same order as if the nodes of the
sub-graph stood in the outer graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ..ir.graph import GraphNode, NamedGraph, SourceSpan
from .activity import Activity
from .branches import plan_switch
from .calls import RecursivePair, plan_call, plan_custom
from .loops import plan_while
from .subgraphs import Ids

if TYPE_CHECKING:
    from ..ir.graph import Graph, SourceSpan
    from .linearize import Joint
    from .sweep import Sweep

__all__ = ["PLANS", "Plan", "Session"]


class Plan(Protocol):
    """Interface of objects that append the gradient computation of one node with control flow."""

    def backward(self, sweep: Sweep, node: GraphNode) -> None:
        """Append the backward nodes of a control-flow node to the sweep's graph.

        Adds the cotangents of the node's operands to those in `sweep.cotangents`.
        """


Planner: TypeAlias = "Callable[[Joint, GraphNode, Ids, SourceSpan | None], Sequence[int] | None]"


class Session:
    """State of one linearization, in which a graph and all its sub-graphs are differentiated.

    Attributes:
        joint: function that creates the `Joint` of a sub-graph: its forward nodes, to which sweeps
            append backward nodes.
        activity: the activity analysis of all graphs.
        pairs: (recursive function, which parameters are wanted) -> its derivative.
        pending: Python callbacks, each of which completes the backward graph of a recursive
            function. Calls of the backward graph were appended before it was complete.
    """

    def __init__(self, joint: Callable[[Graph, Sequence[bool], Session], Joint]) -> None:
        self.joint = joint
        self.activity = Activity()
        self.pairs: dict[tuple[NamedGraph, tuple[bool, ...]], RecursivePair] = {}
        self.pending: list[Callable[[], None]] = []

    def finish(self) -> None:
        """Complete the backward graphs of recursive functions until all of them are complete."""
        while self.pending:
            self.pending.pop()()


PLANS: dict[str, Planner] = {
    "switch": plan_switch,
    "while_loop": plan_while,
    "call": plan_call,
    "custom_call": plan_custom,
}
