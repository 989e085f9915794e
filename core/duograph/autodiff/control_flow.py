"""How switches, loops and calls are differentiated: a node that also returns residuals, and a
backward node.

A plan is made where the forward is copied. Called on (joint, node, operands, span), it appends the
forward node and returns the ids of the original results, or None to have the node copied as it is.
Its `backward` is called when the walk back comes by. The backward of a sub-graph starts from the
cotangents that its operands have by then, so that sums are formed as if the sub-graph's nodes stood
in its place.
"""

from __future__ import annotations

from typing import Any

from ..ir.graph import NamedGraph
from .activity import Activity
from .branches import plan_switch
from .calls import RecursivePair, plan_call, plan_custom
from .loops import plan_while

__all__ = ["PLANS", "Session"]


class Session:
    """What one linearization shares: the activity of graphs, and the derivatives of recursive
    functions.
    """

    def __init__(self, joint: Any) -> None:
        self.joint = joint
        self.activity = Activity()
        self.pairs: dict[tuple[NamedGraph, tuple[bool, ...]], RecursivePair] = {}
        self.pending: list[Any] = []

    def finish(self) -> None:
        """Build the backward graphs that calls refer to; building one may ask for others."""
        while self.pending:
            self.pending.pop()()


PLANS: dict[str, Any] = {
    "switch": plan_switch,
    "while_loop": plan_while,
    "call": plan_call,
    "custom_call": plan_custom,
}
