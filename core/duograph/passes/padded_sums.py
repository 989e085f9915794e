"""Graph pass that replaces a sum of zero-padded tensors by a concatenation of the tensors.

    %3 = pad_constant(%0, low=(0,), high=(2,), value=0)
    %4 = pad_constant(%1, low=(2,), high=(0,), value=0)    ->    %5 = concat(%0, %1, axis=0)
    %5 = add(%3, %4)

The gradients of slices of one tensor add up to such a sum. The pass runs only above O0, because it
can change the sign of a zero: the sum -0.0 + 0.0 is 0.0, but the concatenation keeps -0.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from ..ir.graph import Graph, GraphNode
from ..types import TensorType, ValueType
from .context import PassContext
from .matched_ops import add, concat, pad_constant
from .subgraphs import everywhere

__all__ = ["concatenate_padded_sums"]


class _Slices(NamedTuple):
    """Description of a tensor that is zero except in slices along one axis.

    Attributes:
        axis: the axis.
        parts: start of a slice -> (id of the value in the slice, end of the slice, exclusive).
    """

    axis: int
    parts: dict[int, tuple[int, int]]


@everywhere
def concatenate_padded_sums(graph: Graph, context: PassContext) -> Graph:
    """Replace sums of zero-padded tensors that fill a whole axis by concatenations.

    The nodes that pad, and those that add parts of the sum, stay in the graph as dead nodes.
    """
    types = graph.types
    known: dict[int | None, _Slices] = {}
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        found = None
        if node.op is pad_constant:
            found = _padded(node, types)
        elif node.op is add:
            a, b = (known.get(i) for i in node.operands)
            found = None if a is None or b is None else _sum(a, b)
            whole = types[node.results[0]]
            if found is not None and isinstance(whole, TensorType) and _fills(found, whole):
                operands = tuple([value for value, _ in found.parts.values()])
                node = dataclasses.replace(
                    node, op=concat, operands=operands, attributes={"axis": found.axis}
                )
        if found is not None:
            known[node.results[0]] = found
        nodes.append(node)
    return Graph(graph.n_params, list(types), nodes, graph.outputs, graph.single)


def _padded(node: GraphNode, types: Sequence[ValueType]) -> _Slices | None:
    """Describe the result of a `pad_constant` node as one slice of a tensor of zeros.

    Returns None unless the node pads along one axis, with zeros, by lengths that are not negative.
    """
    low, high = node.attributes["low"], node.attributes["high"]
    axes = [k for k, (a, b) in enumerate(zip(low, high)) if a or b]
    if len(axes) != 1 or node.attributes["value"] != 0 or min(*low, *high) < 0:
        return None
    (axis,) = axes
    source = node.operands[0]
    assert source is not None
    type_ = types[source]
    assert isinstance(type_, TensorType)
    start = low[axis]
    return _Slices(axis, {start: (source, start + type_.shape[axis])})


def _sum(a: _Slices, b: _Slices) -> _Slices | None:
    """Describe the sum of two tensors that are zero outside slices, or return None.

    The result is None if their axes differ or slices overlap.
    """
    parts = dict(sorted([*a.parts.items(), *b.parts.items()]))
    if a.axis != b.axis or len(parts) != len(a.parts) + len(b.parts):
        return None
    end_before = 0
    for start, (_, end) in parts.items():
        if start < end_before:
            return None
        end_before = end
    return _Slices(a.axis, parts)


def _fills(slices: _Slices, whole: TensorType) -> bool:
    """Return whether slices that do not overlap cover their axis of a tensor completely."""
    return sum(end - start for start, (_, end) in slices.parts.items()) == whole.shape[slices.axis]
