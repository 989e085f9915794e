"""A graph is a flat list of typed nodes in program order. Values are numbered; everything used is defined before."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..op import Op
from ..types import TensorType

__all__ = ["GraphNode", "Graph", "FrozenArray", "live_nodes"]


@dataclasses.dataclass(frozen=True)
class GraphNode:
    """One op call: value ids in (None for an absent optional operand), value ids out."""

    op: Op
    operands: tuple[int | None, ...]
    attributes: Mapping[str, Any]
    results: tuple[int, ...]
    single: bool
    span: Any = None


@dataclasses.dataclass
class Graph:
    """Closed: parameters are values 0 .. n_params - 1, every other value is some node's result.

    Attributes:
        n_params: number of parameters.
        types: the type of every value, by id.
        nodes: in program order.
        outputs: ids of the results.
        single: the graph returns one value rather than a tuple.
    """

    n_params: int
    types: list[TensorType]
    nodes: list[GraphNode]
    outputs: tuple[int, ...]
    single: bool

    def __str__(self) -> str:
        from .text import to_text

        return to_text(self)


class FrozenArray:
    """An array as an attribute value: hashable by identity, read-only."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = np.array(array)
        self.array.flags.writeable = False

    def __repr__(self) -> str:
        return f"array{list(self.array.shape)}"


def live_nodes(nodes: Sequence[GraphNode], wanted: set[int]) -> list[GraphNode]:
    """The nodes that `wanted` values need, in order. Nodes with effects always stay."""
    needed = set(wanted)
    kept: list[GraphNode] = []
    for node in reversed(nodes):
        if node.op.effects or any(r in needed for r in node.results):
            kept.append(node)
            needed.update(i for i in node.operands if i is not None)
    kept.reverse()
    return kept
