"""Sharding propagation: derives the layouts of all values of a graph from those that are known.

Layouts propagate through each call, from operands to results and back, along the op's index
equation (`equations`), until a fixed point. Shardings are only added, never removed. If two tensor
axes ask for the same mesh axis, the axis of the larger tensor gets it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..ir.graph import Graph, GraphNode
from ..types import TensorType, ValueType
from .equations import Equation, equation_of
from .layouts import Axes

__all__ = ["Dims", "divided_letters", "propagate"]

Dims = tuple[Axes, ...]  # per axis of a tensor the mesh axes that shard it


def propagate(graph: Graph, dims: dict[int, Dims], fixed: set[int]) -> list[Equation]:
    """Add the propagated layouts to `dims`; return the index equation of every node.

    Args:
        graph: a graph on global tensors.
        dims: value id -> layout; it holds the known ones at first, and a value that is missing is
            replicated so far.
        fixed: ids of the values whose layouts may not change.
    """
    equations = [equation_of(node, graph.types) for node in graph.nodes]
    steps = [(n, e) for n, e in zip(graph.nodes, equations) if e.divisible]
    changed = True
    while changed:
        changed = False
        for order in (steps, reversed(steps)):
            for node, equation in order:
                changed |= _step(node, equation, graph.types, dims, fixed)
    return equations


def _step(
    node: GraphNode,
    equation: Equation,
    types: Sequence[ValueType],
    dims: dict[int, Dims],
    fixed: set[int],
) -> bool:
    letters = divided_letters(node, equation, types, dims)
    changed = False
    if letters:
        for value, text in _tensors(node, equation):
            if value in fixed:
                continue
            now = dims.get(value) or ((),) * len(text)
            used = {a for axes in now for a in axes}
            new = []
            for axes, letter in zip(now, text, strict=True):
                more = letters.get(letter, ())
                grown = more[: len(axes)] == axes and used.isdisjoint(more[len(axes) :])
                new.append(more if grown else axes)
                used.update(new[-1])
            if tuple(new) != now:
                dims[value] = tuple(new)
                changed = True
    return changed


def divided_letters(
    node: GraphNode, equation: Equation, types: Sequence[ValueType], dims: dict[int, Dims]
) -> dict[str, Axes]:
    """Return, for each letter of a call's equation that is sharded, the mesh axes that shard it.

    `types` and `dims` hold the type and the layout of each value, by value id.
    """
    wanted: dict[str, tuple[int, Axes]] = {}
    sizes: dict[str, set[int]] = {}
    for value, text in _tensors(node, equation):
        type_ = types[value]
        assert isinstance(type_, TensorType)
        known = dims.get(value)
        for i, letter in enumerate(text):
            if not letter.islower():
                continue
            sizes.setdefault(letter, set()).add(type_.shape[i])
            if known is not None and known[i]:
                best = wanted.get(letter, (-1, ()))
                wanted[letter] = max(
                    best, (type_.nbytes, known[i]), key=lambda w: (len(w[1]), w[0])
                )
    found: dict[str, Axes] = {}
    used: set[object] = set()
    for letter, (_, axes) in sorted(wanted.items(), key=lambda item: -item[1][0]):
        kept: list[object] = []
        count = 1
        for axis in axes:
            count *= axis.size
            if axis in used or any(n % count for n in sizes[letter]):
                break
            kept.append(axis)
        if kept:
            found[letter] = axes[: len(kept)]
            used.update(kept)
    return found


def _tensors(node: GraphNode, equation: Equation) -> Iterator[tuple[int, str]]:
    """Yield the value id and the equation's letters of each operand and result that has axes."""
    for value, text in zip(node.operands, equation.operands, strict=True):
        if value is not None and text:
            yield value, text
    for value, text in zip(node.results, equation.results, strict=True):
        if text:
            yield value, text


def parts_of(dims: Dims) -> int:
    """Return the number of shards into which a layout divides a tensor."""
    return math.prod(a.size for axes in dims for a in axes)
