"""Interpreter of the program of an ONNX model on Tensors, eager and inside compiled functions.

`reading.OnnxCell` calls `run_model`. Values that Python knows, such as shapes, stay NumPy arrays on
the host. What depends only on them is computed by NumPy immediately, so it is constant in a
compiled function. The front end may translate `run_nodes` and the functions that it calls, except
`apply`, from source where a condition is known only at run time; they must therefore be plain loops
and calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
from onnx import helper

from ..autodiff.pytrees import rebuilt
from ..dtype import as_computed_dtype
from ..errors import OnnxError, UnsupportedSyntaxError
from ..ir.values import HostValue, NeedsValue
from ..runtime_state import without_builder
from ..tensor import Tensor
from .control import CONTROL
from .model import Array, Dense, Graph, Node, Results, Value, parsed

__all__ = ["run_graph", "run_model"]


def run_model(file: str, graph: Graph, env: Mapping[str, Value]) -> list[Value]:
    """Run a model on its inputs and weights (`env`, by name); return its results.

    Raises:
        OnnxError: the model does not accept its inputs; the message names the file and the node.
    """
    try:
        return run_graph(graph, [], env)
    except OnnxError as error:
        if error.file:
            raise
        made = OnnxError(f"{file!r}, {error}")
        made.file, made.why = file, error.why
        raise made from error


def run_graph(graph: Graph, inputs: Sequence[Value], outer: Mapping[str, Value]) -> list[Value]:
    """Run a graph and return its results.

    Args:
        graph: the graph.
        inputs: values of the graph's inputs.
        outer: name -> value of an enclosing graph, which the graph may read.
    """
    env = dict(outer)
    for name in graph.constants:
        if name not in env:
            env[name] = graph.constants[name]
    for name, value in zip(graph.inputs, inputs):
        env[name] = value
    run_nodes(graph.nodes, env)
    return [env[name] if name else None for name in graph.outputs]


def run_nodes(nodes: Sequence[Node], env: dict[str, Value]) -> None:
    """Run nodes in order; `env` maps names to values and receives the results."""
    for node in nodes:
        inputs = [env[name] if name else None for name in node.inputs]
        control = CONTROL.get(node.op_type) if node.domain == "" else None
        if control is not None:
            found = control(node, inputs, env, run_graph)
        elif node.function is not None:
            found = run_function(node.function, inputs)
        elif node.rule is None:
            found = run_function(definition(node, inputs), inputs)
        else:
            found = apply(node, inputs)
        for name, value in zip(node.outputs, found):
            if name:
                env[name] = value


def run_function(graph: Graph, inputs: Sequence[Value]) -> list[Value]:
    """Run the body of a function; return its results. Inputs that the caller omits are None."""
    env: dict[str, Value] = {}
    for k, name in enumerate(graph.inputs):
        env[name] = inputs[k] if k < len(inputs) else None
    run_nodes(graph.nodes, env)
    return [env.get(name) for name in graph.outputs]  # results that are not wanted may be missing


def apply(node: Node, inputs: Sequence[Value]) -> list[Value]:
    """Run a node by the rule of its operator; return its results.

    Raises:
        OnnxError: the operator refuses its inputs; the message names the node.
        UnsupportedSyntaxError: while a function is being compiled, the operator needs a value, such
            as a shape, that is known only when the function runs.
    """
    assert node.rule is not None
    try:
        if any(isinstance(x, HostValue) for x in inputs):
            raise NeedsValue("an input is a Python object that a compiled loop carries")
        known = all(x is None or isinstance(x, np.ndarray) for x in inputs)
        if node.rule.host:
            found = node.rule.function(node, *inputs)
        elif known and inputs and not node.rule.random:
            with without_builder():
                found = _host_value(node.rule.function(node, *_arguments(node, inputs)))
        else:
            found = node.rule.function(node, *_arguments(node, inputs))
    except NeedsValue as error:
        raise UnsupportedSyntaxError(
            f"{node.label}: {error}",
            construct=node.op_type,
            remedy="Pass shapes, axes and limits as NumPy arrays, which are constants",
        ) from None
    except OnnxError as error:
        if error.why:
            raise
        raise _failed(node, str(error)) from None
    except Exception as error:
        raise _failed(node, f"{type(error).__name__}: {error}") from error
    return list(found) if isinstance(found, tuple) else [found]


def _failed(node: Node, why: str) -> OnnxError:
    """Return an OnnxError about a node; the message is the node's label and the reason `why`."""
    made = OnnxError(f"{node.label}: {why}")
    made.why = why
    return made


def _arguments(node: Node, inputs: Sequence[Value]) -> list[Value]:
    """Convert a node's inputs to the form that the rule of its operator takes.

    The inputs at the positions `Rule.static` become NumPy arrays, the others Tensors; None, an
    absent input, stays None.
    """
    assert node.rule is not None
    wanted = node.rule.static
    return [
        None if x is None else static(x) if i in wanted else tensor_of(x)
        for i, x in enumerate(inputs)
    ]


def static(value: Value) -> Array:
    """Return the NumPy array of a value that Python must know, such as a shape.

    Raises:
        NeedsValue: the function is being compiled, and computes the value only when it runs.
    """
    return value if isinstance(value, np.ndarray) else np.asarray(cast("Tensor", value).asnumpy())


def tensor_of(value: Value) -> Tensor:
    """Return an array as a Tensor; Tensors are returned unchanged.

    Raises:
        OnnxError: duograph has no such element type.
    """
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, np.ndarray):
        raise OnnxError(f"got {type(value).__name__}; wanted a tensor")
    try:
        as_computed_dtype(value.dtype)
    except TypeError:
        raise OnnxError(f"got a tensor of dtype {value.dtype}, which no op takes") from None
    return Tensor(value)


def _host_value(value: Results) -> Results:
    """Convert the Tensors in a result of NumPy code to NumPy arrays."""
    if isinstance(value, (tuple, list)):
        return rebuilt(value, [_host_value(v) for v in value])
    return np.asarray(value.asnumpy()) if isinstance(value, Tensor) else value


# ---- operators that ONNX defines by others ------------------------------------------------------


def definition(node: Node, inputs: Sequence[Value]) -> Graph:
    """Return the function by which ONNX defines an operator, for the types of the given inputs.

    Raises:
        OnnxError: there is no such operator, or ONNX does not define it by a function.
    """
    if node.domain:
        raise OnnxError(f"{node.label}: got the domain {node.domain!r}; wanted ONNX's default one")
    try:
        schema = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    except onnx.defs.SchemaError:
        raise OnnxError(
            f"{node.label}: operator set {node.opset} has no operator {node.op_type}"
        ) from None
    proto = _function_of(schema, node, inputs)
    if proto is None:
        raise OnnxError(f"{node.label}: duograph does not run the operator {node.op_type}")
    defaults = {a.name: a.default_value for a in schema.attributes.values() if a.default_value.name}
    reader = parsed(node.label, {"": _version(proto, node.opset)}, {})
    given = {k: reader._attribute(v, node.label) for k, v in defaults.items()}
    return reader.function(proto, {**given, **node.attributes})


def _version(proto: onnx.FunctionProto, default: int) -> int:
    return next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default)


def _function_of(schema: Any, node: Node, inputs: Sequence[Value]) -> onnx.FunctionProto | None:
    """Return the function by which ONNX defines an operator for the types of the inputs.

    `schema` is ONNX's schema of the operator. The result is None if ONNX has no function for it.
    """
    if schema.has_function:
        return schema.function_body
    if not schema.has_context_dependent_function:
        return None
    types = []
    for x in inputs:
        if x is None:
            types.append(onnx.TypeProto().SerializeToString())
            continue
        dtype = x.dtype.np if isinstance(x, Tensor) else cast("Array", x).dtype
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        types.append(
            helper.make_tensor_type_proto(element, cast("Dense", x).shape).SerializeToString()
        )
    call = onnx.NodeProto()
    call.CopyFrom(node.proto)
    for a in call.attribute:  # inside a function, an attribute may name one of the function
        if a.ref_attr_name and a.name in node.attributes:
            a.CopyFrom(helper.make_attribute(a.name, node.attributes[a.name]))
    found = onnx.FunctionProto()
    found.ParseFromString(schema.get_context_dependent_function(call.SerializeToString(), types))
    return found
