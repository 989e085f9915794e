"""Computes ops and graphs by the ops' NumPy rules, as a vendor's compiler might begin."""

from __future__ import annotations

import numpy as np
from duograph.ir.builder import expand


def compute(op, types, attributes, arrays):
    """Compute an op by its NumPy rule; return its results."""
    given = [None if a is None else a.reshape(t.shape) for a, t in zip(arrays, types)]
    if op.name == "region":
        return run_graph(attributes["body"], given)
    if op.reference_rule is None:  # a composite
        return run_graph(expand(op, tuple(types[: len(arrays)]), attributes), given)
    with np.errstate(all="ignore"):
        found = op.reference_rule(*op.arguments(given), **attributes)
    made = found if isinstance(found, tuple) else (found,)
    results = types[len(arrays) :]
    return [np.array(a, t.dtype.np, order="C") for a, t in zip(made, results, strict=True)]


def run_graph(graph, arrays):
    values = dict(enumerate(arrays))
    for node in graph.nodes:
        types = [None if i is None else graph.types[i] for i in (*node.operands, *node.results)]
        given = [None if i is None else values[i] for i in node.operands]
        values.update(zip(node.results, compute(node.op, types, node.attributes, given)))
    return [values[i] for i in graph.outputs]
