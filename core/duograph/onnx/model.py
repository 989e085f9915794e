"""The program of an ONNX model: its graphs as plain Python objects, checked when they are read.

`reading.load` creates the objects and `running` interprets them. Every node holds its operator's
rule and, for messages, its label. Nothing in this module computes with tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..errors import OnnxError
from ..host_arrays import Array

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["RULES", "Graph", "Node", "Rule", "Value", "onnx_op", "parsed"]

# A value of a running model: a Tensor, a NumPy array that is known on the host, a list (sequence)
# of those, or None for an absent optional value.
Dense: TypeAlias = "Tensor | Array"
Value: TypeAlias = "Dense | list[Value] | None"
Results: TypeAlias = "Value | tuple[Value, ...]"  # of an operator
F = TypeVar("F", bound="Callable[..., Results]")


@dataclasses.dataclass(frozen=True)
class Rule:
    """The implementation of an ONNX operator.

    Attributes:
        function: called as `function(node, *inputs)`; it returns the result or a tuple of results.
        static: positions of inputs whose values must be known when a graph is built; the function
            receives them as NumPy arrays.
        host: whether the function receives its inputs unconverted, such as arrays of strings and
            sequences, instead of as Tensors.
        random: whether two calls with equal inputs may return different results.
    """

    function: Callable[..., Results]
    static: frozenset[int] = frozenset()
    host: bool = False
    random: bool = False


# The operators of the default domain by name; those that are missing are run by the functions with
# which ONNX defines them.
RULES: dict[str, Rule] = {}


def onnx_op(
    *names: str, static: Sequence[int] = (), host: bool = False, random: bool = False
) -> Callable[[F], F]:
    """Return a decorator that registers a function as the rule of operators.

    `static`, `host` and `random` are the attributes of the `Rule`.
    """

    def add(function: F) -> F:
        for name in names:
            RULES[name] = Rule(function, frozenset(static), host, random)
        return function

    return add


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """One node of a model.

    Attributes:
        op_type, domain: name of the operator and of its operator set.
        label: description of the node for messages, such as ``node 3 (Conv 'conv1')``.
        inputs, outputs: names of values; "" for an absent one.
        attributes: name -> number, string, array, graph, or list of these.
        opset: version of the operator set that the model imports.
        rule: implementation of the operator; None for functions and control flow.
        function: the body of the function that the node calls, if the model defines one; else None.
        proto: the node as the protocol buffer in the file.
    """

    op_type: str
    domain: str
    label: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    opset: int
    rule: Rule | None
    function: Graph | None
    proto: onnx.NodeProto

    def get(self, name: str, default: object = None) -> Any:
        """Return an attribute, or the default if the node does not have it."""
        return self.attributes.get(name, default)

    def has(self, output: int) -> bool:
        """Return whether the optional result number `output` is wanted, that is, has a name."""
        return output < len(self.outputs) and bool(self.outputs[output])


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """A graph of a model, a branch, a loop body or a function.

    Attributes:
        name: name of the graph.
        inputs, outputs: names of values.
        nodes: the nodes, in an order in which they can run.
        constants: initializers by name.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]


class parsed:
    """Converter of the protocol buffers of one model to `Graph` objects.

    Args:
        file: name of the file, for messages.
        opsets: domain -> version of its operator set.
        functions: (domain, name) -> function of the model.
    """

    def __init__(
        self,
        file: str,
        opsets: Mapping[str, int],
        functions: Mapping[tuple[str, str], onnx.FunctionProto],
    ) -> None:
        self.file = file
        self.opsets = opsets
        self.functions = functions
        self._open: list[tuple[str, str]] = []

    def graph(self, proto: onnx.GraphProto) -> Graph:
        """Convert a GraphProto to a Graph."""
        constants = {t.name: self._array(t) for t in proto.initializer}
        for sparse in proto.sparse_initializer:
            constants[sparse.values.name] = self._dense(sparse)
        return Graph(
            proto.name,
            tuple([i.name for i in proto.input]),
            tuple([o.name for o in proto.output]),
            tuple([self.node(n, k, {}) for k, n in enumerate(proto.node)]),
            constants,
        )

    def function(self, proto: onnx.FunctionProto, attributes: Mapping[str, Any]) -> Graph:
        """Convert a FunctionProto to a Graph, for one call with the given attributes.

        Where a node of the function refers to an attribute of the function, the node in the Graph
        has the value from `attributes`.
        """
        return Graph(
            proto.name,
            tuple(proto.input),
            tuple(proto.output),
            tuple([self.node(n, k, attributes) for k, n in enumerate(proto.node)]),
            {},
        )

    def node(self, proto: onnx.NodeProto, index: int, outer: Mapping[str, Value]) -> Node:
        """Convert a NodeProto, number `index` of its graph, to a Node.

        `outer` holds the attributes of the call, if the node belongs to the body of a function.
        """
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        name = f" {proto.name!r}" if proto.name else ""
        label = f"node {index} ({proto.op_type}{name})"
        attributes = {}
        for a in proto.attribute:
            if a.ref_attr_name:
                if a.ref_attr_name in outer:
                    attributes[a.name] = outer[a.ref_attr_name]
            else:
                attributes[a.name] = self._attribute(a, label)
        opset = self.opsets.get(domain, 0)
        key = (domain, proto.op_type)
        function = rule = None
        if key in self.functions:
            function = self._called(key, label, attributes)
        elif domain == "":
            rule = RULES.get(proto.op_type)
        return Node(
            proto.op_type, domain, label, tuple(proto.input), tuple(proto.output), attributes,
            opset, rule, function, proto,
        )  # fmt: skip

    def _called(self, key: tuple[str, str], label: str, attributes: Mapping[str, Any]) -> Graph:
        """Return the body of a function of the model as a Graph, for the attributes of one call.

        `key` is (domain, name) of the function, and `label` names the calling node in errors.

        Raises:
            OnnxError: the function calls itself.
        """
        if key in self._open:
            raise OnnxError(f"load: {self.file!r}, {label}: the function calls itself")
        self._open.append(key)
        proto = self.functions[key]
        defaults = {a.name: self._attribute(a, label) for a in proto.attribute_proto}
        before, self.opsets = self.opsets, {**self.opsets, **_versions(proto.opset_import)}
        try:
            return self.function(proto, {**defaults, **attributes})
        finally:
            self.opsets = before
            self._open.pop()

    def _attribute(self, a: onnx.AttributeProto, label: str) -> Any:
        """Convert an AttributeProto to a number, string, array or graph, or a list of these.

        `label` names the node in errors.
        """
        kinds = onnx.AttributeProto
        if a.type == kinds.GRAPH:
            return self.graph(a.g)
        if a.type == kinds.TENSOR:
            return self._array(a.t)
        if a.type == kinds.STRING:
            return a.s.decode("utf-8", "replace")
        if a.type == kinds.STRINGS:
            return [s.decode("utf-8", "replace") for s in a.strings]
        if a.type == kinds.TENSORS:
            return [self._array(t) for t in a.tensors]
        if a.type == kinds.SPARSE_TENSOR:
            return self._dense(a.sparse_tensor)
        if a.type in (kinds.INT, kinds.FLOAT, kinds.INTS, kinds.FLOATS):
            found = helper.get_attribute_value(a)
            return list(found) if a.type in (kinds.INTS, kinds.FLOATS) else found
        if a.type == kinds.TYPE_PROTO:
            return a.tp
        raise OnnxError(f"load: {self.file!r}, {label}: got attribute {a.name!r} of unknown type")

    def _array(self, tensor: onnx.TensorProto) -> Array:
        """Convert a TensorProto to an array; strings become an object array of Python strings."""
        try:
            found = numpy_helper.to_array(tensor)
        except Exception as error:  # noqa: BLE001 (whatever a damaged tensor makes the package raise)
            raise OnnxError(
                f"load: {self.file!r}, tensor {tensor.name!r} cannot be read: {error}"
            ) from None
        if found.dtype.kind in "SU" or found.dtype == object:
            texts = [s.decode("utf-8", "replace") if isinstance(s, bytes) else str(s)
                     for s in found.reshape(-1)]  # fmt: skip
            found = np.array(texts, object).reshape(found.shape)
        return found

    def _dense(self, sparse: onnx.SparseTensorProto) -> Array:
        """Return a sparse tensor as a dense array."""
        values, at = self._array(sparse.values), self._array(sparse.indices)
        shape = tuple(sparse.dims)
        dense = np.zeros(shape, values.dtype)
        if at.ndim == 2:
            dense[tuple(at.T)] = values
        else:
            dense.reshape(-1)[at] = values
        return dense


def _versions(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Return the version of each imported operator set by domain; "" is ONNX's own domain."""
    return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}
