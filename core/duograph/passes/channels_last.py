"""Graph pass that converts convolutions and nearby ops to channels-last if that pays.

    %2 = conv(%0, %1)                           %4 = transpose(%0, perm=(0, 2, 3, 1))
    %3 = relu(%2)                    ->         %5 = conv_channels_last(%4, %1)
                                                %6 = relu(%5)
                                                %3 = transpose(%6, perm=(0, 3, 1, 2))

A *cluster* is a set of nodes connected by values that can be channels-last: convolutions, pooling,
the gradients of both, batch statistics, elementwise ops, reductions, and movement along axes. The
weights of the convolutions keep their layout. Weights that may change from call to call are only
accepted if the backend wants that (`LayoutCosts.changing_weights`). A layout is visible in the
shape: the channels-last form of a value is another value, of another shape. A value is transposed
at most once where it enters a cluster, and at most once where a node outside reads it; a value with
one element per channel is only reshaped. A cluster is converted as a whole. It is left unchanged if
its transposes would cost more than the faster convolutions save (`channels_last_costs.pays`).

Graphs and sub-graphs keep their parameters and results, so a cluster never extends into another
graph.
"""

from __future__ import annotations

import collections
from collections.abc import Hashable

from ..ir.graph import Attributes, Graph
from ..op import Op
from ..types import TensorType
from .channels_last_conversion import Conversion
from .channels_last_costs import Cluster
from .context import PLAIN, PassContext

__all__ = ["Conversions", "convert_to_channels_last"]


def convert_to_channels_last(graph: Graph, context: PassContext = PLAIN) -> Graph:
    """Convert clusters of convolutions and nearby ops to channels-last where that pays.

    Composites must be decomposed, and dead nodes removed, before this pass. The pass appends to
    `context.notes` a line about what it converted, and one for each reason why it left convolutions
    channels-first.
    """
    work = Conversions(context)
    made = work.graph(graph, context.state)
    if context.notes is not None:
        context.notes.extend(work.notes())
    return made if work.converted else graph


class Conversions:
    """Converts a graph and its sub-graphs to channels-last layout, and counts conversions.

    A sub-graph is converted once for each set of parameters that are call-invariant, which means
    that they are the same in every call.

    Attributes:
        context: facts about the program and its backend.
        costs: the backend's costs of layouts.
        claims: cache of whether the backend has a kernel of its own for an op.
        done: converted graphs by (graph, call-invariant parameters).
        converted: the clusters that were converted.
        rejected: reason -> number of convolutions, without gradients, that stay channels-first for
            this reason.
    """

    def __init__(self, context: PassContext) -> None:
        self.context = context
        self.costs = context.costs.layout
        self.claims: dict[Hashable, bool] = {}
        self.done: dict[tuple[Graph, frozenset[int]], Graph] = {}
        self.converted: list[Cluster] = []
        self.rejected: collections.Counter[str] = collections.Counter()  # convolutions by reason

    def graph(self, graph: Graph, invariant: frozenset[int]) -> Graph:
        """Return the graph in channels-last layout where that pays; the result is cached.

        `invariant` has the ids of the graph's parameters whose values are equal in all calls.
        """
        found = self.done.get((graph, invariant))
        if found is None:
            found = self.done[graph, invariant] = Conversion(graph, invariant, self).result()
        return found

    def claimed(self, op: Op, types: tuple[TensorType, ...], attributes: Attributes) -> bool:
        """Return whether the backend has its own kernel for an op on operands of these types."""
        key = op, types, tuple(attributes.items())
        found = self.claims.get(key)
        if found is None:
            found = self.claims[key] = self.context.claims(op, types, attributes)
        return found

    def notes(self) -> list[str]:
        """Return lines for the user: what was converted, and why other convolutions were not."""
        found = []
        if self.converted:
            borders = sum(c.borders for c in self.converted)
            found.append(
                f"{_count(sum(c.convolutions for c in self.converted))} laid out channels last, "
                f"{borders} value{'s' * (borders != 1)} transposed"
            )
        for why, count in self.rejected.items():
            if count == 0:
                continue  # gradients alone
            found.append(f"{_count(count)} with channels first: {why}")
        return found


def _count(convolutions: int) -> str:
    return f"{convolutions} convolution{'s' * (convolutions != 1)}"
