"""Collector of the nodes and initializers of an ONNX model that is being written.

The export rules call it once per ONNX operator. It creates unique names and keeps one list of
initializers for the whole model, including constants of branches. It must not know any op of
duograph.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..dtype import DType
from ..errors import OnnxError
from ..types import BOOL, FLOAT, HostType, TensorType, ValueType

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..host_arrays import Array

__all__ = ["OPSET", "Scope", "Writer", "element_type", "value_info"]

# The version of the operator set that models are written in; Gelu is the newest operator used.
OPSET = 20
# Version 9 of the file format came with this operator set: older runtimes can read the model.
IR_VERSION = 9


def element_type(type_: ValueType) -> int:
    """Return ONNX's number of the element type of a value; Python numbers are 64 bits wide.

    Raises:
        OnnxError: the value is a Python object.
    """
    if isinstance(type_, TensorType):
        return int(helper.np_dtype_to_tensor_dtype(type_.dtype.np))
    if isinstance(type_, HostType) and type_.name in ("int", "float", "bool"):
        dtypes = {"int": np.int64, "float": np.float64, "bool": np.bool_}
        return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtypes[type_.name])))
    raise OnnxError(f"export: got a value of type {type_}; ONNX has tensors only")


def value_info(
    name: str, type_: ValueType, dims: Sequence[int | str] | None = None
) -> onnx.ValueInfoProto:
    """Return ONNX's description of an input or result of a graph (a ValueInfoProto).

    Args:
        name: name of the value.
        type_: type of the value.
        dims: the shape, with names for sizes that are open; by default the shape of the type.
    """
    shape = (type_.shape if isinstance(type_, TensorType) else ()) if dims is None else dims
    return helper.make_tensor_value_info(name, element_type(type_), list(shape))


@dataclasses.dataclass
class Scope:
    """The nodes of one ONNX graph: of the model, of a branch or of a loop body."""

    nodes: list[onnx.NodeProto] = dataclasses.field(default_factory=list)


class Writer:
    """Builder of the parts of an ONNX model.

    Attributes:
        scope: the graph to which new nodes are appended.
        initializers: all constants and Parameters by name, in the order of their first use.
        sources: name of a node's first result -> source location of the node.
        where: source location of the nodes that are appended next, such as ``net.py:12``.
    """

    def __init__(self) -> None:
        self.scope = Scope()
        self.initializers: dict[str, Array] = {}
        self.sources: dict[str, str] = {}
        self.where = "an unknown line"
        self._taken: set[str] = set()

    def name(self, stem: str) -> str:
        """Return an unused name for a value: the stem itself, or the stem and a number."""
        made, k = stem, 0
        while made in self._taken:
            k += 1
            made = f"{stem}_{k}"
        self._taken.add(made)
        return made

    def constant(self, array: ArrayLike, stem: str = "constant") -> str:
        """Add an array to the initializers and return its name."""
        made = self.name(stem)
        self.initializers[made] = np.ascontiguousarray(array).reshape(np.shape(array))
        return made

    def ints(self, values: Sequence[int]) -> str:
        """Add a list of ints, such as sizes or axes, to the initializers and return its name."""
        return self.constant(np.array(list(values), np.int64).reshape(-1), "ints")

    def number(self, value: object, dtype: DType) -> str:
        """Add a number as a 0-d constant of `dtype` to the initializers and return its name."""
        return self.constant(np.array(value).astype(dtype.np))

    def nodes(
        self, op_type: str, inputs: Sequence[str], outputs: int, **attributes: Any
    ) -> list[str]:
        """Append a node of operator `op_type` with `outputs` results; return the names of these."""
        names = [self.name(op_type.lower()) for _ in range(outputs)]
        self._append(helper.make_node(op_type, list(inputs), names, **attributes))
        return names

    def call(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Append a node of operator `op_type` with one result; return the name of the result."""
        return self.nodes(op_type, inputs, 1, **attributes)[0]

    def rename(self, value: str, name: str) -> None:
        """Append an Identity node that gives a value another name, which must be unused."""
        self._append(helper.make_node("Identity", [value], [name]))

    def _append(self, node: onnx.NodeProto) -> None:
        node.doc_string = self.where
        self.sources[node.output[0]] = self.where
        self.scope.nodes.append(node)

    def cast(self, x: str, dtype: DType | type[np.generic]) -> str:
        """Append a Cast to an element type and return the name of the result."""
        target = np.dtype(dtype.np if isinstance(dtype, DType) else dtype)
        return self.call("Cast", x, to=int(helper.np_dtype_to_tensor_dtype(target)))

    @contextmanager
    def graph(self) -> Iterator[Scope]:
        """Return a context manager inside which nodes are appended to a new graph.

        Its value is the new graph. At the end, nodes are appended to the previous graph again.
        """
        before, self.scope = self.scope, Scope()
        try:
            yield self.scope
        finally:
            self.scope = before

    def initializer_protos(self) -> list[onnx.TensorProto]:
        """Return the initializers as TensorProtos."""
        return [numpy_helper.from_array(array, name) for name, array in self.initializers.items()]


def host_dtype(type_: HostType) -> type[np.generic]:
    """Return the NumPy scalar type that represents a Python number in a model."""
    return np.bool_ if type_ is BOOL else np.float64 if type_ is FLOAT else np.int64
