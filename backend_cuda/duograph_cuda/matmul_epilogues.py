"""Fuses bias and gelu with 16-bit matmuls as epilogues of cuBLASLt, in compiled functions.

    %2 = matmul(%0, %1)                 %3 = region(%0, %1, %2, body=graph(%0, %1, %2) {
    %3 = add(%2, %bias)         ->             %3 = matmul(%0, %1)
                                               ...

The graph pass `form_epilogues` wraps a matmul and the ops after it in a region; `prepared` compiles
such a region to one call of the library. An epilogue is elementwise code on the result, computed
before the result is stored. The pass finds three patterns:

    gelu_tanh(matmul(x, y) + bias)          also returns the sum, if something else reads it
    gelu_tanh_grad(matmul(x, y), saved)
    matmul(x, y) + bias                     if only library calls read it; otherwise the addition
                                            costs nothing in the region that reads it

The library rounds once, after the epilogue, while single ops round after each op. Results may
therefore differ in the last bit.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from duograph.backend.grid import Plan
from duograph.backend.grid.matmul import matmul_problem
from duograph.backend.protocol import Call
from duograph.dtype import bfloat16, float16
from duograph.ir.graph import Graph, GraphNode, subgraph
from duograph.op import OPS
from duograph.types import TensorType, ValueType

from .cublaslt import BIAS, GELU, GELU_GRADIENT, GELU_SAVED, Called, Epilogue, Library

if TYPE_CHECKING:
    from .backend import Cuda
    from .cublaslt import _Chosen
    from .device import CudaDevice

__all__ = ["form_epilogues", "prepared"]

DTYPES = (float16, bfloat16)
# Ops that a library computes, whose operands therefore are in memory.
LIBRARY_OPS = ("matmul", "self_attention", "self_attention_grad", "attention", "attention_grad")


class _Found(NamedTuple):
    """A matmul node of a graph, and the nodes after it that can be its epilogue.

    Attributes:
        epilogue: the library's epilogue that computes these nodes.
        matmul: the node of the matmul.
        last: the node whose result the library call stores.
        read: id of the other value that the epilogue reads, a vector or a matrix.
        saved: id of the value that the epilogue also stores, or None.
        inside: positions in the graph of all nodes that the region computes, including aliases such
            as reshapes.
        start: position at which the region can run: everything that it reads is computed before,
            and its results are read after it.
    """

    epilogue: Epilogue
    matmul: GraphNode
    last: GraphNode
    read: int
    saved: int | None
    inside: tuple[int, ...]
    start: int


class _Matcher:
    """Finds the epilogues of matmuls in a graph.

    Attributes:
        producer: id of a value -> position of the node that computes it.
        readers: id of a value -> positions of the nodes that read it.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.producer = {r: at for at, node in enumerate(graph.nodes) for r in node.results}
        self.readers: dict[int, list[int]] = {}
        for at, node in enumerate(graph.nodes):
            for i in node.operands:
                if i is not None:
                    self.readers.setdefault(i, []).append(at)

    def found(self, at: int) -> _Found | None:
        """Return the epilogue that ends with the node at position `at`; None if none saves time.

        The addition of a bias alone saves time only if no kernel but calls of libraries reads the
        sum.
        """
        node = self.graph.nodes[at]
        if node.op.name == "add" and not self.only_libraries_read(node.results[0]):
            return None
        return self.ending(at)

    def ending(self, at: int) -> _Found | None:
        """Return the epilogue that ends with the node at position `at`, or None."""
        node = self.graph.nodes[at]
        finders = {"gelu_tanh": self.gelu, "gelu_tanh_grad": self.gelu_gradient, "add": self.bias}
        finder = finders.get(node.op.name)
        return None if finder is None else finder(at, node)

    def bias(self, at: int, node: GraphNode) -> _Found | None:
        """Return the epilogue that adds a vector to a matmul and ends with `node`, or None."""
        for value, vector in (node.operands, node.operands[::-1]):
            produced = None if value is None else self.matmul(value, at)
            if produced is None or vector is None:
                continue
            matmul, inside = produced
            whole, operand, result = (
                _tensor(self.graph.types[i]) for i in (matmul.results[0], vector, node.results[0])
            )
            columns = whole.shape[-1:]
            fits = operand.shape == columns == result.shape[-1:] and result.size == whole.size
            if fits and operand.dtype is result.dtype is whole.dtype:
                return _Found(BIAS, matmul, node, vector, None, (*inside, at), at)
        return None

    def gelu(self, at: int, node: GraphNode) -> _Found | None:
        """Return the epilogue that computes bias and gelu and ends with `node`, or None."""
        producer, aliases = self.through_aliases(node.operands[0])
        if producer is None or self.graph.nodes[producer].op.name != "add":
            return None
        sums = self.graph.nodes[producer]
        found = self.bias(producer, sums)
        if found is None:
            return None
        value = sums.results[0]
        inside = {*found.inside, *aliases, at}
        saved = value if self.is_read_outside(value, inside) else None
        kind = GELU if saved is None else GELU_SAVED
        return found._replace(epilogue=kind, last=node, saved=saved, inside=tuple(sorted(inside)))

    def gelu_gradient(self, at: int, node: GraphNode) -> _Found | None:
        """Return the epilogue that computes gelu's gradient and ends with `node`, or None."""
        value, read = node.operands
        produced = None if value is None else self.matmul(value, at)
        if produced is None or read is None:
            return None
        matmul, inside = produced
        result, saved = (_tensor(self.graph.types[i]) for i in (node.results[0], read))
        if saved.size != result.size or saved.dtype is not result.dtype:
            return None
        return _Found(GELU_GRADIENT, matmul, node, read, None, (*inside, at), at)

    def matmul(self, value: int, reader: int) -> tuple[GraphNode, tuple[int, ...]] | None:
        """Return (node of the matmul that computes a value, positions of it and its aliases).

        Returns None if another op computes the value, if the matmul's operands and result are not
        all of the same 16-bit floating-point dtype, or if the result is an output or is read by a
        node other than the one at position `reader`.
        """
        producer, aliases = self.through_aliases(value)
        if producer is None or self.graph.nodes[producer].op.name != "matmul":
            return None
        node = self.graph.nodes[producer]
        values = (*node.operands, *node.results)
        types = [_tensor(self.graph.types[i]) for i in values if i is not None]
        if len({t.dtype for t in types}) > 1 or types[0].dtype not in DTYPES:
            return None
        inside = {producer, *aliases}
        if self.is_read_outside(node.results[0], {*inside, reader}):
            return None
        return node, tuple(sorted(inside))

    def through_aliases(self, value: int | None) -> tuple[int | None, list[int]]:
        """Return (position of the node that computes a value, positions of aliases after it).

        An alias is a node, such as a reshape, whose result is its operand's memory. The position of
        the node is None if no node computes the value: it is a parameter, or None.
        """
        aliases = []
        at = None if value is None else self.producer.get(value)
        while at is not None and self.graph.nodes[at].op.alias:
            aliases.append(at)
            source = self.graph.nodes[at].operands[0]
            at = None if source is None else self.producer.get(source)
        return at, aliases

    def is_read_outside(self, value: int, inside: set[int]) -> bool:
        """Return whether a value or its alias is an output or read by a node not in `inside`.

        `inside` are positions of nodes.
        """
        if value in self.graph.outputs:
            return True
        for at in self.readers.get(value, ()):
            node = self.graph.nodes[at]
            if at not in inside:
                return True
            if node.op.alias and self.is_read_outside(node.results[0], inside):
                return True
        return False

    def only_libraries_read(self, value: int) -> bool:
        """Return whether calls of libraries, and no other nodes, read a value or its aliases.

        The result is False for an output of the graph.
        """
        if value in self.graph.outputs:
            return False
        readers = [self.graph.nodes[at] for at in self.readers.get(value, ())]
        return bool(readers) and all(
            self.only_libraries_read(node.results[0])
            if node.op.alias
            else node.op.name in LIBRARY_OPS
            for node in readers
        )


def _tensor(type_: ValueType) -> TensorType:
    assert isinstance(type_, TensorType)
    return type_


def form_epilogues(graph: Graph, library: Library) -> Graph:
    """Wrap matmuls with the ops that can be their epilogues in regions; return the new graph.

    A matmul stays unchanged if the library has no algorithm for it with the epilogue.
    """
    matcher = _Matcher(graph)
    regions: dict[int, GraphNode] = {}  # by the position at which they run
    dropped: set[int] = set()
    taken: set[int] = set()
    for at in range(len(graph.nodes)):
        found = matcher.found(at)
        if found is None or not taken.isdisjoint(found.inside):
            continue
        if _chosen(library, found, graph) is None:
            continue
        taken.update(found.inside)
        regions[found.start] = _region(graph, found)
        for k in found.inside:
            each = graph.nodes[k]
            if not (each.op.alias and matcher.is_read_outside(each.results[0], {*found.inside})):
                dropped.add(k)
    nodes: list[GraphNode] = []
    for at, node in enumerate(graph.nodes):
        if at in regions:
            nodes.append(regions[at])
        if at not in dropped:
            nodes.append(node)
    return Graph(graph.n_params, list(graph.types), nodes, graph.outputs, graph.single)


def _region(graph: Graph, found: _Found) -> GraphNode:
    """Return the region node that computes a matmul with its epilogue."""
    saved = () if found.saved is None else (found.saved,)
    outputs = (*saved, found.last.results[0])
    operands = [i for i in (*found.matmul.operands, found.read) if i is not None]
    parameters = tuple(dict.fromkeys(operands))
    body = subgraph(graph, parameters, [graph.nodes[k] for k in found.inside], outputs)
    single = len(outputs) == 1
    body = dataclasses.replace(body, single=single)
    return GraphNode(OPS["region"], parameters, {"body": body}, outputs, single, found.last.span)


def _chosen(library: Library, found: _Found, graph: Graph) -> _Chosen | None:
    """Return the library's algorithm for a matmul with an epilogue, or None if it has none."""
    values = (*found.matmul.operands, *found.matmul.results)
    x, y, result = (_tensor(graph.types[i]) for i in values if i is not None)
    problem = matmul_problem((x, y), (result,), **found.matmul.attributes)
    if problem is None or problem.count != 1:
        return None
    return library.choose(problem, found.epilogue)


def prepared(backend: Cuda, device: CudaDevice, body: Graph) -> Call | str | None:
    """Return the prepared call of a region that `form_epilogues` has formed.

    Returns None if `body` is another region or cuBLASLt is not available, and a text with the
    reason if the library has no algorithm for it.
    """
    if all(node.op.name != "matmul" for node in body.nodes):
        return None
    matcher = _Matcher(body)
    end = matcher.producer.get(body.outputs[-1])
    found = None if end is None else matcher.ending(end)
    library = device.library()
    if found is None or isinstance(library, str):
        return None
    chosen = _chosen(library, found, body)
    if chosen is None:
        return f"cuBLASLt has no algorithm with {found.epilogue.kind}"
    results = tuple([_tensor(body.types[i]) for i in body.outputs])
    operands = [i for i in (*found.matmul.operands, found.read) if i is not None]
    places = tuple(range(body.n_params, body.n_params + len(results)))
    launch = Called("", "", (*operands, *places), (), (1, 1, 1), (1, 1, 1), chosen)
    name = f"matmul with {found.last.op.name}"
    return backend.call(device, name, Plan((launch,)), body.n_params, results, body.single)
