"""Mutations of nodes: each attribute and each operand type, one at a time, made wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duograph as ms
import numpy as np
from duograph.dtype import ALL, DType
from duograph.types import TensorType
from files.sampled_nodes import Node

WRONG_KINDS = (None, "x", 1.5, True, (), (1, 2), ms.float16, float("nan"), 10**400)
# 2**31 is absent: the time that some ops take grows with it.
INTS = (-1, -2, 0, 1, 2, 3, 7, 64, 2**62, 2**63, -(2**63))
FLOATS = (0.0, -1.0, float("nan"), float("inf"), 1e300)


def mutations(node: Node) -> Iterator[Node]:
    """Yield nodes that differ from a node in one attribute or one operand type."""
    for name, value in node.attributes.items():
        for other in _values(value):
            if repr(other) != repr(value):
                yield node._replace(attributes={**node.attributes, name: other})
    for i, type_ in enumerate(node.types):
        for changed in _types(type_):
            if changed is not type_:
                yield node._replace(types=(*node.types[:i], changed, *node.types[i + 1 :]))
    if len(node.types) > 1:
        yield node._replace(types=node.types[:-1])
        yield node._replace(types=node.types[::-1])
    if node.types:
        yield node._replace(types=(*node.types, node.types[-1]))


def _values(value: Any) -> Iterator[Any]:
    """Yield other values for an attribute: near it, far from it, and of other kinds."""
    yield from WRONG_KINDS
    if type(value) is bool:
        yield not value
    elif type(value) is int:
        yield from (value + 1, value - 1, -value, *INTS)
    elif type(value) is float:
        yield from (-value, *FLOATS)
    elif isinstance(value, tuple):
        yield from _tuples(value)
    elif isinstance(value, DType):
        yield from ALL


def _tuples(value: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield value[:-1]
    yield value[::-1]
    yield (*value, *value[-1:])
    yield (value[:1] or (0,)) * len(value)
    for i, item in enumerate(value):
        for other in _values(item):
            yield (*value[:i], other, *value[i + 1 :])


def _types(type_: TensorType | None) -> Iterator[TensorType | None]:
    """Yield other types for an operand: another rank, another size of an axis, another dtype."""
    if type_ is None:
        yield from (TensorType.of((), ms.float32), TensorType.of((2, 3), ms.float32))
        return
    yield None
    shape = type_.shape
    yield from (type_.with_(shape=s) for s in _shapes(shape))
    yield from (type_.with_(dtype=d) for d in (ms.float32, ms.int32, ms.bool_, ms.float64, ms.int8))


def _shapes(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield (1, *shape)
    yield (*shape, 1)
    yield (*shape, 2)
    yield shape[::-1]
    for i, n in enumerate(shape):
        yield shape[:i] + shape[i + 1 :]
        for other in (0, 1, n + 1, n - 1, 2 * n):
            if other >= 0:
                yield (*shape[:i], other, *shape[i + 1 :])


def values_of(node: Node, rng: np.random.Generator) -> list[np.ndarray[Any, Any] | None]:
    """Return random operands for a node: integers are often no valid indices."""
    made: list[np.ndarray[Any, Any] | None] = []
    for t in node.types:
        if t is None:
            made.append(None)
        elif t.dtype is ms.bool_:
            made.append(rng.random(t.shape) < 0.5)
        elif t.dtype.is_integer:
            wild = np.array([-(2**40), -9, -1, 0, 0, 1, 1, 2, 9, 100, 2**31, 2**40])
            chosen = rng.choice(wild if rng.random() < 0.5 else [0, 1], t.shape)
            made.append(np.asarray(chosen).astype(t.dtype.np))
        else:
            made.append(np.asarray(rng.uniform(-2, 2, t.shape)).astype(t.dtype.np))
    return made
