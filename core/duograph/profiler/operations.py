"""Number of the floating-point operations of a kernel, computed from its op and types.

The tables and the roofline of a profile and the table of `summary` use it. A multiplication and an
addition count as one operation each, and so does any elementary function of one element, such as an
exponential. Operations on integers, and ops that only move data, count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from ..backend import registry
from ..backend.observers import Work
from ..errors import DuographError
from ..ir.builder import expand
from ..ir.graph import Graph
from ..ir.optimizer import optimizer
from ..op import Op
from ..types import TensorType

__all__ = ["multiply_adds", "operations"]

# From the types of operands and results to a number of operations.
Rule = Callable[[Sequence[TensorType], Sequence[TensorType]], float]

# Element-wise ops that choose or convert values and compute none.
_MOVES = frozenset({"select", "cast", "identity", "stop_gradient", "fill", "bitcast"})


def _matmul(operands: Sequence[TensorType], results: Sequence[TensorType]) -> float:
    x, y, out = operands[0], operands[1], results[0]
    if not out.size:
        return 0.0
    batch = math.prod(out.shape[:-2])
    inner = math.sqrt(x.size * y.size / out.size / max(1, batch))  # also where one is shared
    return 2.0 * out.size * inner


def _filter(
    weight: int, outputs: Callable[[Sequence[TensorType], Sequence[TensorType]], int]
) -> Rule:
    """Return a function that computes a convolution's number of operations from its types.

    It counts 2 operations for each output element and each element of one filter. `weight` is the
    position of the weight's type in (operands, then results); `outputs` returns the number of
    output elements for the types of operands and results.
    """

    def rule(operands: Sequence[TensorType], results: Sequence[TensorType]) -> float:
        types = (*operands, *results)
        return 2.0 * outputs(operands, results) * math.prod(types[weight].shape[1:])

    return rule


def _weight_gradient(operands: Sequence[TensorType], results: Sequence[TensorType]) -> float:
    return 2.0 * operands[1].size * math.prod(results[0].shape[1:])


def _attention(operands: Sequence[TensorType], results: Sequence[TensorType]) -> float:
    query, key = operands[0], operands[1]
    return 4.0 * query.size * key.shape[-2]


# Ops that multiply and add: half of their operations are multiplications.
_RULES: Mapping[str, Rule] = {
    "matmul": _matmul,
    "conv": _filter(1, lambda x, y: y[0].size),
    "conv_channels_last": _filter(1, lambda x, y: y[0].size),
    "conv_input_grad": _filter(1, lambda x, y: x[0].size),
    "conv_input_grad_channels_last": _filter(1, lambda x, y: x[0].size),
    "conv_weight_grad": _weight_gradient,
    "conv_weight_grad_channels_last": _weight_gradient,
    "scaled_dot_product_attention": _attention,
    "attention": _attention,
}


def operations(work: Work) -> float:
    """Return the floating-point operations of one kernel call.

    A fused region counts the operations of its ops, and an op without a counting rule those of its
    body or decomposition.

    Examples:
        >>> import duograph as ms
        >>> with ms.profile() as p:
        ...     y = ms.ops.matmul(ms.ops.ones((4, 3)), ms.ops.ones((3, 5)))
        >>> from duograph.profiler.operations import operations
        >>> [operations(r.work) for r in p.records() if r.work.name == "matmul"]
        [120.0]
    """
    return _of_work(work, True)


def multiply_adds(work: Work) -> float:
    """Return the multiply-adds of the matmuls, convolutions and attentions of one kernel call.

    Examples:
        >>> import duograph as ms
        >>> with ms.profile() as p:
        ...     y = ms.ops.matmul(ms.ops.ones((4, 3)), ms.ops.ones((3, 5))) + 1
        >>> from duograph.profiler.operations import multiply_adds
        >>> sum(multiply_adds(r.work) for r in p.records())
        60.0
    """
    return _of_work(work, False) / 2


def _of_work(work: Work, all_ops: bool) -> float:
    """Return the number of floating-point operations of a kernel call.

    Without `all_ops`, only the ops in the table `_RULES` count, such as matmul and convolution.
    """
    if work.op is None:
        body = work.attributes.get("body")
        return _of_graph(body, work.device, 8, all_ops) if isinstance(body, Graph) else 0.0
    n = len(work.types) - work.n_results
    return _of_op(work.op, work.types[:n], work.types[n:], work.attributes, work.device, 8, all_ops)


def _of_graph(graph: Graph, device: str, depth: int, all_ops: bool) -> float:
    total = 0.0
    for node in graph.nodes:
        operands = [None if i is None else graph.types[i] for i in node.operands]
        results = [graph.types[i] for i in node.results]
        total += _of_op(node.op, operands, results, node.attributes, device, depth, all_ops)
    return total


def _of_op(
    op: Op,
    operands: Sequence[object],
    results: Sequence[object],
    attributes: Mapping[str, object],
    device: str,
    depth: int,
    all_ops: bool,
) -> float:
    """Return the number of floating-point operations of one op call.

    Args:
        op: the op.
        operands, results: their types.
        attributes: the op's attributes.
        device: name of the device; its backend's decompositions of ops count.
        depth: how many levels of bodies and decompositions are followed at most.
        all_ops: whether to count all ops; otherwise only those in the table `_RULES`, such as
            matmul and convolution.
    """
    body = attributes.get("body")
    if isinstance(body, Graph):
        return _of_graph(body, device, depth, all_ops)
    given = [t for t in operands if isinstance(t, TensorType)]
    made = [t for t in results if isinstance(t, TensorType)]
    if not made or op.alias or not any(t.dtype.kind in "fc" for t in (*given, *made)):
        return 0.0
    rule = _RULES.get(op.name)
    if rule is not None:
        return rule(cast("Sequence[TensorType]", operands), cast("Sequence[TensorType]", results))
    if op.is_reduction and given:
        return float(given[0].size) if all_ops else 0.0
    if op.elementwise and not op.is_composite:
        return 0.0 if op.name in _MOVES or not all_ops else float(made[0].size)
    inner = _inner(op, operands, attributes, device) if depth else None
    return 0.0 if inner is None else _of_graph(inner, device, depth - 1, all_ops)


def _inner(
    op: Op, operands: Sequence[object], attributes: Mapping[str, object], device: str
) -> Graph | None:
    """Return the body or decomposition of an op as a graph, or None if it has none."""
    types = cast("tuple[TensorType | None, ...]", tuple(operands))
    try:
        if op.body is not None:
            return expand(op, types, attributes)
        if op.decompose_rule is not None:
            backend = registry.backend(device.rpartition(":")[0])
            return optimizer().decomposition(backend, op, types, attributes)
    except DuographError:  # the decomposition does not take these operands
        return None
    return None
