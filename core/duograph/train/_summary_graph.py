"""The graph of a network as TensorBoard reads it: a GraphDef of named nodes.

`SummaryRecord.add_graph` calls `graph_bytes`. The network is compiled, but not run. The graph is
the one before optimisation, because it has the ops that the user called.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from types import ModuleType

from ..compiler.compiled_program import CompiledProgram
from ..compiler.explain import tensor_name
from ..compiler.function import JitFunction
from ..compiler.options import JitConfig
from ..errors import ArgumentError, ArgumentValueError
from ..ir.graph import Graph, GraphNode
from ..nn.cell import Cell
from ..tensor import Tensor
from ..types import TensorType

__all__ = ["graph_bytes"]

# Characters of an attribute's value.
_LONG = 60


def graph_bytes(net: Cell, inputs: Sequence[Tensor]) -> bytes:
    """Return the serialised GraphDef of a network called with the given inputs.

    Raises:
        ArgumentError: `net` is no Cell, or an input is no Tensor.
        ArgumentValueError: the network cannot be compiled.
    """
    if not isinstance(net, Cell) or not all(isinstance(x, Tensor) for x in inputs):
        kinds = ", ".join(type(x).__name__ for x in (net, *inputs))
        raise ArgumentError(f"add_graph: got {kinds}; wanted a Cell and Tensors")
    function = JitFunction(type(net).construct, JitConfig(), None, None, net)
    found = function.explain(*inputs)
    programs = function.programs()
    if not programs:
        raise ArgumentValueError(
            f"add_graph: {type(net).__name__} runs line by line ({found.line_by_line}); wanted a "
            "network that can be compiled"
        )
    return _Nodes(programs[-1]).serialised()


class _Nodes:
    """Collects the nodes of a GraphDef."""

    def __init__(self, program: CompiledProgram) -> None:
        def load(name: str) -> ModuleType:
            return importlib.import_module(f"tensorboardX.proto.{name}_pb2")

        self._node = load("node_def").NodeDef
        self._value = load("attr_value").AttrValue
        self._shape = load("tensor_shape").TensorShapeProto
        self._graph = load("graph").GraphDef
        self._versions = load("versions").VersionDef
        self.made: list[object] = []
        self._used: set[str] = set()
        graph = program.graph
        names: dict[int, str] = {}
        parameters: dict[int, str] = {}
        for k, (kind, v) in enumerate(program.inputs):
            if kind == "state":
                parameters[k] = tensor_name(v).replace(".", "/")
            label = parameters.get(k, f"inputs/{v}" if kind == "arg" else f"inputs/{kind}")
            names[k] = self._add(label, "Parameter" if k in parameters else "Input", [], graph, [k])
        self._body(graph, names, functools.partial(_scope, scopes=_scopes(parameters)))
        ends = [names[i] for i in graph.outputs]
        self._add("results", "Result", ends, graph, list(graph.outputs))

    def _body(self, graph: Graph, names: dict[int, str], scope: Callable[[GraphNode], str]) -> None:
        for node in graph.nodes:
            given = [names[i] for i in node.operands if i is not None]
            name = self._add(
                scope(node) + node.op.name, node.op.name, given, graph, node.results, node
            )
            names.update(dict.fromkeys(node.results, name))
            for k, inner in enumerate(node.graphs):
                prefix = f"{name}/{k}/"
                own = {
                    i: self._add(f"{prefix}input", "Input", given, inner, [i])
                    for i in range(inner.n_params)
                }
                self._body(inner, own, functools.partial(_inside, prefix=prefix))

    def _add(
        self,
        label: str,
        op: str,
        operands: Sequence[str],
        graph: Graph,
        results: Sequence[int],
        node: GraphNode | None = None,
    ) -> str:
        """Add a node and return its name: `label`, with a number appended if that name is taken.

        Args:
            op: name of the node's op.
            operands: names of the nodes that it reads.
            graph: the compiled graph.
            results: ids of the node's results in `graph`.
            node: the call in `graph`, whose attributes and source line are added; None for a node
                that is no call, such as a parameter.
        """
        name, k = label, 1
        while name in self._used:
            name, k = f"{label}_{k}", k + 1
        self._used.add(name)
        types = [t for i in results if isinstance(t := graph.types[i], TensorType)]
        shapes = [self._shape(dim=[self._shape.Dim(size=n) for n in t.shape]) for t in types]
        attributes = {"_output_shapes": self._value(list=self._value.ListValue(shape=shapes))}
        texts = {"dtype": ", ".join(t.dtype.name for t in types)}
        if node is not None:
            texts |= {k: repr(v)[:_LONG] for k, v in node.attributes.items()}
            if node.span is not None:
                texts["line"] = f"{node.span.file}:{node.span.line}"
        attributes |= {k: self._value(s=v.encode()) for k, v in texts.items() if v}
        self.made.append(self._node(name=name, op=op, input=operands, attr=attributes))
        return name

    def serialised(self) -> bytes:
        graph = self._graph(node=self.made, versions=self._versions(producer=22))
        found: bytes = graph.SerializeToString()
        return found


def _scopes(parameters: dict[int, str]) -> dict[int, str]:
    """Return a dict from the id of a Parameter's graph value to the path of the Cell that owns it.

    A path ends with a slash. `parameters` maps ids of graph values to names of Parameters.
    Parameters of the outermost Cell are left out.
    """
    return {i: n.rpartition("/")[0] + "/" for i, n in parameters.items() if "/" in n}


def _scope(node: GraphNode, scopes: dict[int, str]) -> str:
    """Return the path of the Cell whose Parameter a node reads first, or "" if it reads none.

    `scopes` maps ids of Parameters' graph values to such paths. If all operands are in `scopes`,
    the results of the node are added to it with the path that is returned.
    """
    found = [scopes.get(i) for i in node.operands if i is not None]
    first = next((each for each in found if each), "")
    if first and None not in found:
        scopes.update(dict.fromkeys(node.results, first))
    return first


def _inside(node: GraphNode, prefix: str) -> str:
    del node
    return prefix
