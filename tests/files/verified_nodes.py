"""Runs nodes as a graph file would: the verifier first, then the kernels."""

from __future__ import annotations

import numpy as np
from duograph import Tensor
from duograph.autodiff.replay import call_op
from duograph.errors import DuographError, GraphError
from duograph.ir.graph import Graph, GraphNode
from duograph.ir.verify import verify
from duograph.types import TensorType
from files.mutated_nodes import values_of
from files.sampled_nodes import Node

# Larger results are not computed: they cost time, and differ from small ones in nothing.
LARGEST = 1 << 22


def graph_of(node: Node) -> Graph:
    """Return a graph of one node, with the result types that the rule of its op gives.

    Raises:
        DuographError: the rule refuses the node.
    """
    types = tuple(node.types)
    found = node.op.result_types(types, node.attributes)
    kinds = found if isinstance(found, tuple) else (found,)
    given = [t for t in types if t is not None]
    numbers = iter(range(len(given)))
    operands = tuple(None if t is None else next(numbers) for t in types)
    results = tuple(range(len(given), len(given) + len(kinds)))
    made = GraphNode(
        node.op, operands, dict(node.attributes), results, not isinstance(found, tuple)
    )
    return Graph(len(given), [*given, *kinds], [made], results, False)


def outcome(node: Node, rng: np.random.Generator) -> str:
    """Verify and run a node; return "refused", "raised" or "ran".

    Any exception that escapes is a finding: the verifier raises GraphError alone, and a kernel
    errors of duograph alone.
    """
    try:
        graph = graph_of(node)
    except Exception:  # noqa: BLE001 (the verifier calls the same rule, and turns it into its own)
        return "refused"
    try:
        verify(graph)
    except GraphError:
        return "refused"
    if sum(t.nbytes for t in graph.types if isinstance(t, TensorType)) > LARGEST:
        return "large"
    operands = tuple(None if a is None else Tensor(a) for a in values_of(node, rng))
    try:
        found = call_op(node.op, operands, node.attributes)
        for t in found if isinstance(found, tuple) else (found,):
            t.asnumpy()
    except DuographError:
        return "raised"
    return "ran"
