"""Reader of ONNX files: `load` returns a Cell that runs the model.

The package onnx parses and checks the file. Every defect of a file or a call raises `OnnxError`
with the name of the file and of the node. Reading must never execute code from a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import onnx

from ..dtype import as_computed_dtype
from ..errors import ArgumentError, OnnxError
from ..nn.cell import Cell
from ..parameter import Parameter
from ..status_line import status_line
from ..tensor import Tensor
from . import (  # noqa: F401  (they fill the table of rules)
    rules_elementwise,
    rules_others,
    rules_recurrent,
    rules_reductions,
    rules_sampling,
    rules_shapes,
    rules_windows,
)
from .model import Array, Graph, Value, parsed
from .running import run_model

__all__ = ["OnnxCell", "load"]

# Whole-number constants of at most this many elements stay on the host: shapes, axes, indices.
_HOST_SIZE = 1024
# Inputs that are shapes, of operators that are run by their definitions.
_DEFINED = {"AffineGrid": (1,), "CenterCropPad": (1,)}


class OnnxCell(Cell):
    """A Cell that runs an ONNX model; `load` makes it.

    Floating-point initializers with at least one axis are trainable Parameters. A call takes one
    value for each input of the model. A Tensor is data; a NumPy array is a constant, such as a
    shape, to whose value a compiled function is specialised. The result is a Tensor, or a tuple of
    Tensors if the model has several results. Strings and element types that duograph lacks are
    NumPy arrays, and sequences are lists.

    Attributes:
        file: name of the file.
        input_names, output_names: names of the model's inputs and results.
    """

    def __init__(self, file: str, graph: Graph) -> None:
        super().__init__()
        self.file = file
        self.input_names = tuple([n for n in graph.inputs if n not in graph.constants])
        self.output_names = graph.outputs
        self._graph_of_model = graph
        self._weights: dict[str, Value] = {}
        wanted_on_host = set(_static_names(graph))
        for name, array in graph.constants.items():
            self._weights[name] = self._constant(name, array, name in wanted_on_host)

    def _constant(self, name: str, array: Array, on_host: bool) -> Value:
        """Return an initializer as a Parameter of the Cell, or as the array itself.

        It stays a NumPy array if `on_host` is true (Python needs its values to run some node), and
        if it is 0-d, a small integer array, or of a dtype that Tensors lack.
        """
        try:
            dtype = as_computed_dtype(array.dtype)
        except TypeError:
            return array
        if on_host or not array.ndim or (not dtype.is_floating and array.size <= _HOST_SIZE):
            return array
        made = Parameter(Tensor(array), name=name, requires_grad=dtype.is_floating)
        self._params.add_unnamed(name, made)
        return made

    def construct(self, *inputs: object) -> Any:
        if len(inputs) != len(self.input_names):
            raise ArgumentError(
                f"{self.file}: got {len(inputs)} inputs; wanted {len(self.input_names)}: "
                f"{', '.join(self.input_names)}"
            )
        env = dict(self._weights)
        for name, value in zip(self.input_names, inputs):
            env[name] = cast("Value", value)
        found = [_result(v) for v in run_model(self.file, self._graph_of_model, env)]
        return found[0] if len(found) == 1 else tuple(found)

    def extend_repr(self) -> str:
        """Return the names of the inputs and results, for printing."""
        return f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}"


def _result(value: Value) -> Value:
    """Convert the NumPy arrays in a result to Tensors, also those in lists.

    An array of a dtype that Tensors lack, such as strings, is returned unchanged.
    """
    if isinstance(value, list):
        return [_result(v) for v in value]
    if isinstance(value, np.ndarray):
        try:
            as_computed_dtype(value.dtype)
        except TypeError:
            return value
        return Tensor(value)
    return value


def _static_names(graph: Graph) -> Iterator[str]:
    """Yield the names of values that some node of a graph needs as NumPy arrays."""
    for node in graph.nodes:
        if node.op_type == "Loop":
            yield from node.inputs[:2]
        for i, name in enumerate(node.inputs):
            wanted = _DEFINED.get(node.op_type, ()) if node.rule is None else node.rule.static
            if i in wanted or (node.rule is not None and node.rule.host):
                yield name
        for value in node.attributes.values():
            if isinstance(value, Graph):
                yield from _static_names(value)


def load(file_name: str | os.PathLike[str]) -> OnnxCell:
    """Read an ONNX model and return it as a Cell that runs eagerly and compiled.

    The model may use the operators of ONNX's default domain, up to the operator set of the
    installed package onnx, and functions that it defines itself. Large weights may be in separate
    files beside it.

    Args:
        file_name: path of the model.

    Returns:
        an `OnnxCell`, which is called with a Tensor or NumPy array for each input of the model.

    Raises:
        OnnxError: the file does not exist, is no valid model, or has an operator that duograph does
            not run. Calls of the Cell raise it for inputs that the model does not take.
        TypeError: `file_name` is no path.

    Examples:
        >>> import duograph as ms
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.onnx")
        >>> net, x = ms.nn.Dense(3, 2), ms.ops.ones((4, 3), ms.float32)
        >>> ms.export(net, x, file_name=path, file_format="ONNX")
        >>> again = ms.onnx.load(path)
        >>> again.input_names
        ('x',)
        >>> bool(ms.ops.isclose(again(x), net(x)).all())
        True
    """
    if not isinstance(file_name, (str, os.PathLike)):
        raise ArgumentError(f"onnx.load: got file_name={file_name!r}; wanted a path")
    path = os.fspath(file_name)
    with status_line(f"loading {path}"):
        return _loaded(path)


def _loaded(path: str) -> OnnxCell:
    """Read and check the ONNX model of a file; raise OnnxError for what cannot be read."""
    try:
        model = onnx.load(path)
        onnx.checker.check_model(path if _has_external(model) else model)
    except Exception as error:  # noqa: BLE001 (whatever a damaged file makes the package raise)
        raise OnnxError(f"onnx.load: {path!r} is no valid model: {error}") from None
    try:
        return cell_of(model, path)
    except OnnxError:
        raise
    except Exception as error:
        raise OnnxError(f"onnx.load: {path!r} cannot be read: {error}") from error


def _has_external(model: onnx.ModelProto) -> bool:
    return any(t.data_location == onnx.TensorProto.EXTERNAL for t in model.graph.initializer)


def cell_of(model: onnx.ModelProto, file: str) -> OnnxCell:
    """Return a checked model as a Cell; `file` is the name of its file, for messages."""
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    functions = {(f.domain, f.name): f for f in model.functions}
    try:
        graph = parsed(file, opsets, functions).graph(model.graph)
    except RecursionError:
        raise OnnxError(f"onnx.load: {file!r} has graphs that are nested too deeply") from None
    return OnnxCell(file, graph)
