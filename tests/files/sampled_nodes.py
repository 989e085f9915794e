"""Nodes of graphs, one sample or more for each op, collected from the conformance cases.

`sampled_nodes` runs the cases forward and backward and records every op call that enters a graph,
those in the bodies of composites and in gradient rules included.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import duograph as ms
from duograph.conformance.case import OpCase
from duograph.conformance.cases import all_cases
from duograph.conformance.check import substitute, to_tensor
from duograph.conformance.gradient import Problem
from duograph.errors import DuographError
from duograph.ir.builder import GraphBuilder
from duograph.op import Op
from duograph.types import TensorType

DTYPES = (ms.float32, ms.int32, ms.bool_, ms.complex64)


class Node(NamedTuple):
    """One call of an op: its operand types (None for an absent operand) and attributes."""

    op: Op
    types: tuple[TensorType | None, ...]
    attributes: Mapping[str, Any]

    def __repr__(self) -> str:
        shown = [str(t) for t in self.types] + [f"{k}={v!r}" for k, v in self.attributes.items()]
        return f"{self.op.name}({', '.join(shown)})"


@contextlib.contextmanager
def recorded_nodes() -> Iterator[dict[str, Node]]:
    """Record the nodes that graph builders make, without those that only exist in graphs."""
    found: dict[str, Node] = {}
    append = GraphBuilder.append

    def recording(self, op, values, attributes):
        made = append(self, op, values, attributes)
        if not op.graph_only:
            types = tuple(None if v is None else v._type.plain for v in values)
            node = Node(op, types, dict(attributes))
            found.setdefault(repr(node), node)
        return made

    GraphBuilder.append = recording
    try:
        yield found
    finally:
        GraphBuilder.append = append


def sampled_nodes(per_op: int, cases: Sequence[OpCase] | None = None) -> list[Node]:
    """Return at most `per_op` nodes of each op, those with distinct attributes and ranks first.

    Args:
        per_op: the number.
        cases: conformance cases to run, in all of `DTYPES`; None runs all of them.
    """
    for op in ms.op.OPS.values():
        op.table.clear()
        op.expanded.clear()
    with recorded_nodes() as found, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in all_cases() if cases is None else cases:
            for dtype in DTYPES:
                if dtype in case.takes:
                    _run(case, dtype)
    by_op: dict[str, list[Node]] = {}
    for node in found.values():
        by_op.setdefault(node.op.name, []).append(node)
    return [n for nodes in by_op.values() for n in _various(nodes)[:per_op]]


def _run(case, dtype) -> None:
    for sample in case.made(dtype):
        if sample.kind in ("nan", "noncontiguous"):
            continue
        with contextlib.suppress(DuographError):

            def tensor(array, kind=sample.kind):
                return to_tensor(array, kind)

            case.function(
                *substitute(sample.args, tensor), **substitute(dict(sample.kwargs), tensor)
            )
            if case.differentiable and sample.grad and dtype.kind in "fc":
                problem = Problem(case, sample)
                if problem.inputs:
                    problem.gradients()


def _various(nodes: list[Node]) -> list[Node]:
    """Order nodes so that each differs in kind from those before it as long as that is possible."""
    seen: dict[object, int] = {}

    def repeated(node: Node) -> int:
        kind = (
            tuple(None if t is None else (t.ndim, t.dtype.kind) for t in node.types),
            tuple(sorted((k, repr(v)) for k, v in node.attributes.items())),
        )
        seen[kind] = seen.get(kind, -1) + 1
        return seen[kind]

    return [n for _, _, n in sorted((repeated(n), i, n) for i, n in enumerate(nodes))]
