"""Graph pass that pads a matrix with unaligned rows once for all matmuls that read it.

Tensor cores need rows that begin at multiples of 16 bytes. Without this pass, `cublaslt` copies a
large matrix with other rows for each matmul. The gradient of a language model's logits, for
instance, is read by two matmuls; a compiled function pads it once:

    %2 = matmul(%0, %1)                              %4 = pad_constant(%0, high=(0, 7))
    %3 = matmul(%0, %x, transpose_a=True)     ->     %2 = matmul(%4, pad_constant(%1, high=(7, 0)))
                                                     %3 = first rows of matmul(%4, %x, ...)

The padding consists of zeros and does not change any result. `Cuda.use_cublaslt` calls the pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from duograph.dtype import bfloat16, float16
from duograph.ir.graph import Graph, GraphNode
from duograph.op import OPS
from duograph.types import TensorType, ValueType

from .cublaslt import ALIGNED, pays

__all__ = ["pad_operands"]

DTYPES = (float16, bfloat16)
# Matmuls from which one padded copy is better than a copy for each.
LEAST_READERS = 2


def pad_operands(graph: Graph) -> Graph:
    """Pad each large matrix with unaligned rows that several matmuls read; return the new graph."""
    readers: dict[int, list[int]] = {}
    for at, node in enumerate(graph.nodes):
        if node.op.name == "matmul":
            operands = {i for i in node.operands if i is not None}
            if len(operands) < 2 or not _pays(graph.types, node):
                continue  # a matrix that is multiplied by itself would need both its axes padded
            for i in operands:
                if _is_unaligned(graph.types[i]):
                    readers.setdefault(i, []).append(at)
    chosen = {i: found for i, found in readers.items() if len(found) >= LEAST_READERS}
    if not chosen:
        return graph
    padding = _Padding(graph)
    padded = {at: i for i, found in chosen.items() for at in found}
    for at, node in enumerate(graph.nodes):
        if at in padded:
            padding.matmul(node, padded[at])
        else:
            padding.nodes.append(node)
    return Graph(graph.n_params, padding.types, padding.nodes, graph.outputs, graph.single)


def _is_unaligned(type_: ValueType) -> bool:
    """Return whether a value's type is a matrix of 16-bit floats with unaligned rows."""
    if not isinstance(type_, TensorType) or type_.ndim != 2 or type_.dtype not in DTYPES:
        return False
    return type_.shape[1] % ALIGNED != 0


def _pays(types: Sequence[ValueType], node: GraphNode) -> bool:
    """Return whether a matmul does enough work to pay for copies of its operands and its result.

    It is False unless operands and result are matrices.
    """
    found = [types[i] for i in (*node.operands, *node.results) if i is not None]
    if any(not isinstance(t, TensorType) or t.ndim != 2 for t in found) or len(found) != 3:
        return False
    x, _, result = (t for t in found if isinstance(t, TensorType))
    depth = x.shape[0 if node.attributes["transpose_a"] else 1]
    copied = sum(t.size for t in found if isinstance(t, TensorType))
    return pays(result.size * depth, copied)


class _Padding:
    """Builds the new graph, with padded operands of matmuls.

    Attributes:
        types: the types of all values.
        nodes: the nodes of the new graph so far.
        made: (value, axis) -> the value's copy that is padded along that axis.
    """

    def __init__(self, graph: Graph) -> None:
        self.types: list[ValueType] = list(graph.types)
        self.nodes: list[GraphNode] = []
        self.made: dict[tuple[int, int], int] = {}

    def tensor(self, i: int) -> TensorType:
        """Return the type of the value with id `i`, which must be a tensor."""
        type_ = self.types[i]
        assert isinstance(type_, TensorType)
        return type_

    def call(
        self,
        like: GraphNode,
        name: str,
        operands: tuple[int, ...],
        attributes: dict[str, object],
        result: int | None = None,
    ) -> int:
        """Append a node that calls an op; return the id of its result.

        `result` is the id that the result must have; None creates a new value. `like` is the node
        that is replaced, whose source location is kept.
        """
        op = OPS[name]
        if result is None:
            (type_,) = op.infer_types(tuple([self.tensor(i) for i in operands]), attributes)
            result = len(self.types)
            self.types.append(type_)
        self.nodes.append(GraphNode(op, operands, attributes, (result,), True, like.span))
        return result

    def pad(self, value: int, axis: int, like: GraphNode) -> int:
        """Return the id of a copy of a matrix, padded with zeros at the end of an axis.

        The length of the axis becomes a multiple of ALIGNED, a number of elements. `value` is the
        matrix's id; `like` is the node for which the copy is made and whose source location the
        copy gets. A value is copied only once for each axis.
        """
        found = self.made.get((value, axis))
        if found is None:
            high = [0, 0]
            high[axis] = -self.tensor(value).shape[axis] % ALIGNED
            pads = {"low": (0, 0), "high": tuple(high), "value": 0}
            found = self.made[value, axis] = self.call(like, "pad_constant", (value,), pads)
        return found

    def matmul(self, node: GraphNode, value: int) -> None:
        """Append the matmul `node`, reading a padded copy of its operand `value` (an id).

        The padding is at the end of the operand's rows. If that axis is summed over, the other
        operand is padded with zeros as well. Otherwise the result of the matmul has additional rows
        or columns, and only the original ones are copied to the final result.
        """
        (result,), attributes = node.results, dict(node.attributes)
        operands = [i for i in node.operands if i is not None]
        side = operands.index(value)
        # the axis of each operand that is summed over
        summed = (0 if attributes["transpose_a"] else 1, 1 if attributes["transpose_b"] else 0)
        operands[side] = self.pad(value, 1, node)
        if summed[side] == 1:
            operands[1 - side] = self.pad(operands[1 - side], summed[1 - side], node)
            self.call(node, "matmul", (operands[0], operands[1]), attributes, result)
            return
        longer = self.call(node, "matmul", (operands[0], operands[1]), attributes)
        steps = {"shape": self.tensor(result).shape, "offset": 0}
        steps["strides"] = (self.tensor(longer).shape[1], 1)
        self.call(node, "strided_copy", (longer,), steps, result)
