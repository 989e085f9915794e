"""Export of a network as an ONNX model: its inputs and Parameters, open sizes, the final check.

`train.exported.export` calls `model_bytes`. A network is traced for fixed sizes; where an input
leaves sizes open (None in its shape), several traces are compared (`symbolic_sizes`). The model is
returned only after the checker of the package onnx has accepted it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import onnx
from onnx import helper

from .. import version
from ..compiler.compiled_program import CompiledProgram
from ..compiler.results import Argument, Out
from ..errors import OnnxError
from ..tensor import Tensor
from ..types import TensorType
from .export_graph import write_graph
from .symbolic_sizes import Sizes, open_sizes, unified
from .writer import IR_VERSION, OPSET, Writer, value_info

if TYPE_CHECKING:
    from ..types import ValueType

__all__ = ["Trace", "model_bytes"]

# Traces a network: from example inputs to its name and program.
Trace = Callable[[Sequence[Tensor]], tuple[str, CompiledProgram]]
# Protocol buffers are limited to 2 GiB.
_LIMIT = 2**31 - 1


def model_bytes(trace: Trace, net: object, inputs: Sequence[Tensor]) -> bytes:
    """Return a network as the content of an ONNX file.

    Args:
        trace: function that traces the network for given inputs.
        net: the network, from which the names of its inputs are taken.
        inputs: example inputs. A Tensor without data may have None in its shape; such a size stays
            open (symbolic) in the model.

    Raises:
        OnnxError: ONNX cannot express an op, or the model is larger than 2 GiB.
    """
    names = _input_names(net, len(inputs))
    sizes = open_sizes(inputs)
    if sizes is None:
        model = _Model(*trace(inputs), names)
    else:
        model = unified(sizes, lambda xs: _Model(*trace(xs), names))
    proto = model.proto(sizes)
    if proto.ByteSize() > _LIMIT:
        raise OnnxError(f"export: the model has {proto.ByteSize()} bytes; ONNX files have 2 GiB")
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise OnnxError(f"export: the model does not pass onnx.checker: {error}") from None
    return bytes(proto.SerializeToString())


class _Model:
    """An ONNX model of a network, written for inputs of fixed sizes.

    Attributes:
        writer: the Writer that holds the model's nodes and initializers.
        outputs: (name, type) of each result.
    """

    def __init__(self, name: str, program: CompiledProgram, names: Sequence[str]) -> None:
        self.name = name
        self.writer = w = Writer()
        self.inputs: list[tuple[str, TensorType, int]] = []
        values = self._parameters(program, names)
        results = write_graph(w, program.graph, values)
        arguments = {i: x for x, _, i in self.inputs}
        self.outputs: list[tuple[str, ValueType]] = []
        for leaf in _leaves(name, program.template):
            if isinstance(leaf, Out):
                source, type_ = results[leaf.index], program.graph.types[
                    program.graph.outputs[leaf.index]
                ]  # fmt: skip
            elif isinstance(leaf, Argument) and leaf.index in arguments:
                source = arguments[leaf.index]
                type_ = next(t for _, t, i in self.inputs if i == leaf.index)
            else:
                raise OnnxError(
                    f"export: {name} returns {leaf!r}, which no Tensor determines; wanted Tensors"
                )
            made = w.name("output" if not self.outputs else f"output_{len(self.outputs)}")
            w.rename(source, made)
            self.outputs.append((made, type_))
        if not self.outputs:
            raise OnnxError(f"export: {name} returns no Tensor; wanted at least one")

    def _parameters(self, program: CompiledProgram, names: Sequence[str]) -> list[str]:
        """Add the model's inputs and initializers; return the ONNX names of the graph's parameters.

        `names` are the names of the network's arguments. Raises OnnxError for a network that writes
        state.
        """
        w = self.writer
        for key, value, _ in program.writes:
            written = getattr(value, "name", "its arguments")
            raise OnnxError(
                f"export: {self.name} changes {written if key == 'state' else 'its arguments'}, "
                "and an ONNX model has no state; wanted a network that does not, such as after "
                "set_train(False)"
            )
        values = []
        for i, (kind, value) in enumerate(program.inputs):
            if kind == "arg":
                made = w.name(names[value])
                type_ = program.graph.types[i]
                assert isinstance(type_, TensorType)
                self.inputs.append((made, type_, value))
            elif kind in ("state", "array"):
                array = value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)
                made = w.constant(array, getattr(value, "name", None) or "captured")
            else:
                raise OnnxError(
                    f"export: {self.name} reads {kind} {value!r} at each call; wanted Tensors and "
                    "constants"
                )
            values.append(made)
        return values

    def proto(self, sizes: Sizes | None) -> onnx.ModelProto:
        """Return the finished ModelProto.

        `sizes` describes the sizes that are left open; it is None if all sizes are fixed.
        """
        w = self.writer
        inputs = [
            value_info(x, t, None if sizes is None else sizes.named[i])
            for x, t, i in sorted(self.inputs, key=lambda found: found[2])
        ]
        results = []
        for k, (x, t) in enumerate(self.outputs):
            dims = None if sizes is None or not isinstance(t, TensorType) else [
                n if sizes.fixed_results[k][axis] else f"{x}_{axis}"
                for axis, n in enumerate(t.shape)
            ]  # fmt: skip
            results.append(value_info(x, t, dims))
        graph = helper.make_graph(w.scope.nodes, self.name, inputs, results, w.initializer_protos())
        opset = helper.make_opsetid("", OPSET)
        made = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
        made.producer_name, made.producer_version = "duograph", version.OWN
        return made


def _leaves(name: str, template: Any) -> Iterator[object]:
    """Yield the leaves of a nested result, from left to right; None is skipped.

    `name` is the network's, for messages.

    Raises:
        OnnxError: the result holds an object that is neither a Tensor nor None.
    """
    if type(template) in (tuple, list):
        for v in template:
            yield from _leaves(name, v)
    elif type(template) is dict:
        for v in template.values():
            yield from _leaves(name, v)
    elif type(template) in (Out, Argument):
        yield template
    elif template is not None:
        raise OnnxError(
            f"export: {name} returns {template!r:.80}, which is no Tensor; wanted Tensors, and "
            "tuples, lists and dicts of those"
        )


def _input_names(net: object, count: int) -> list[str]:
    """Return an ONNX name for each of `count` inputs of a network.

    The names are those of the positional parameters of its Python function. An input without one,
    such as an item of ``*args``, is called by its number, as in ``input_0``.
    """
    function = getattr(net, "construct", net)
    names: list[str] = []
    try:
        for p in inspect.signature(cast("Callable[..., object]", function)).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                break
            names.append(p.name)
    except (TypeError, ValueError):  # no Python function
        names = []
    return [names[i] if i < len(names) else f"input_{i}" for i in range(count)]
