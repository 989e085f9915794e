"""Traversal of nested lists, tuples, dicts and slices of values.

The modules of `frontend.evaluation` call these functions. The functions must not evaluate source or
keep state.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ...dims import is_symbolic
from ...ir.builder import GraphTensor
from ...ir.values import HostValue
from ...tensor import Tensor
from ..state.tuples import tuple_like
from ..types import Value
from .flow import Maybe
from .ranges import GraphRange

__all__ = [
    "depends_on_graph",
    "pairs",
    "reaches",
    "reaches_graph_value",
    "sequence_like",
    "tuple_like",
    "with_subgraphs",
]

# Classes of objects that hold far more than what belongs to them.
_OPAQUE = (
    types.ModuleType, types.FunctionType, types.CodeType, types.TracebackType, type, np.ndarray,
    Tensor,
)  # fmt: skip


def depends_on_graph(value: Value) -> bool:
    """Return whether a nested structure holds a value known only when the graph runs."""
    if isinstance(value, (GraphTensor, HostValue)):
        return True
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(map(depends_on_graph, value))
    if isinstance(value, dict):
        return any(map(depends_on_graph, value)) or any(map(depends_on_graph, value.values()))
    if isinstance(value, slice):
        return any(map(depends_on_graph, (value.start, value.stop, value.step)))
    return False


def reaches_graph_value(value: Value, sizes: bool = False) -> bool:
    """Return whether a graph value can be reached from an object.

    Args:
        value: the object.
        sizes: whether a symbolic size (`dims.Dim`) counts as a graph value.
    """
    kinds = (GraphTensor, HostValue, GraphRange)
    return reaches(value, lambda v: isinstance(v, kinds) or (sizes and is_symbolic(v)))


def reaches(
    value: Value,
    wanted: Callable[[Value], bool],
    limit: int = 2000,
    opaque: tuple[type, ...] = (),
) -> bool:
    """Return whether `value`, or an object reachable from it, is one for which `wanted` is true.

    The search follows all references that the garbage collector knows, except those of objects of
    the classes `opaque`. It stops, with the result False, when it has met `limit` objects.
    """
    seen, waiting = {id(value)}, [value]
    while waiting and len(seen) < limit:
        found = waiting.pop()
        if wanted(found):
            return True
        if not isinstance(found, (*_OPAQUE, *opaque)):
            inner = [x for x in gc.get_referents(found) if id(x) not in seen]
            seen.update(map(id, inner))
            waiting += inner
    return False


def pairs(a: Value, b: Value) -> Iterator[tuple[Value, Value]]:
    """Yield the corresponding leaves of two nested structures as pairs.

    The structures (1, 2) and (3, 4) yield (1, 3) and (2, 4). Dicts are paired by common keys, lists
    and tuples by position up to the end of the shorter one. If two parts differ in kind, they are
    yielded as one pair.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for k in a.keys() & b.keys():
            yield from pairs(a[k], b[k])
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        for x, y in zip(a, b):
            yield from pairs(x, y)
    elif isinstance(a, Maybe) or isinstance(b, Maybe):
        yield from pairs(
            a.value if isinstance(a, Maybe) else a, b.value if isinstance(b, Maybe) else b
        )
    else:
        yield a, b


def sequence_like(original: Value, items: list[Value]) -> Value:
    """Return items as a list, tuple or named tuple, whichever `original` is."""
    return items if isinstance(original, list) else tuple_like(original, items)


def with_subgraphs(nodes: Iterable[Value]) -> Iterator[Value]:
    """Yield graph nodes and, recursively, the nodes of their sub-graphs."""
    for n in nodes:
        yield n
        for g in n.graphs:
            yield from with_subgraphs(g.nodes)
