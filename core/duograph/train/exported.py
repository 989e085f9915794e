"""Export of compiled networks: `export` writes a graph and its weights, `load` reads them.

`nn.GraphCell` runs a loaded graph without its source. A file is a checkpoint file with the weights
by name, the graph as text, and the structure of its arguments and results as JSON. Reading never
executes code from the file: text that does not parse as a graph of known ops is refused.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..backend import registry
from ..call_errors import explaining
from ..compiler.compiled_program import CompiledProgram
from ..compiler.evaluate import compile_program
from ..compiler.function import JitFunction
from ..compiler.interpret import interpret
from ..compiler.options import JitConfig
from ..compiler.results import Argument, Out
from ..errors import (
    ArgumentError,
    ArgumentValueError,
    CheckpointError,
    GraphError,
    UnsupportedSyntaxError,
)
from ..frontend.state.captures import has_hooks
from ..ir.control import HostCall
from ..ir.graph import Graph, GraphNode, NamedGraph
from ..ir.text import parse, to_text
from ..ir.verify import verify
from ..nn.cell import Cell
from ..option_checks import check_options
from ..parameter import Parameter
from ..placement import commit
from ..runtime_state import staged_builder
from ..status_line import status_line
from ..tensor import Tensor
from . import _checkpoint_file
from ._atomic_file import replace_file
from ._encryption import Secret, secret_of
from ._exported_form import VERSION, decoded, read_form

if TYPE_CHECKING:
    from ..host_arrays import Array
    from ._exported_form import Form

__all__ = ["export", "load", "ExportedGraph"]

_GRAPH, _FORM = "%graph", "%form"
# The formats of `export` with the suffix of their files.
_SUFFIXES = {"MINDIR": ".mindir", "ONNX": ".onnx"}


class ExportedGraph:
    """A compiled graph with weights, read by `load`; `nn.GraphCell` runs the graph.

    Attributes:
        graph: the graph.
        weights: the Parameters by name, in the order of the graph's parameters.
    """

    def __init__(self, graph: Graph, form: Form, weights: dict[str, Parameter]) -> None:
        self.graph = graph
        self.weights = weights
        self._form = form
        self._run = JitFunction(self.replayed, JitConfig(), True, target=self.replayed)

    def run(self, weights: Sequence[Parameter], inputs: Sequence[object]) -> Any:
        """Run the loaded graph, compiled, on the given weights and inputs; return its results.

        Raises:
            ArgumentError: the number of inputs is wrong, or an input is no Tensor.
            ArgumentValueError: an input has another shape or dtype than the graph was exported for.
        """
        wanted = [
            self.graph.types[i] for i, (kind, _) in enumerate(self._form["order"]) if kind == "arg"
        ]
        if len(inputs) != len(wanted):
            raise ArgumentError(
                f"GraphCell: got {len(inputs)} inputs; the graph takes {len(wanted)}"
            )
        for i, (x, type_) in enumerate(zip(inputs, wanted)):
            if not isinstance(x, Tensor):
                raise ArgumentError(
                    f"GraphCell: got {type(x).__name__} for input {i}; wanted a Tensor"
                )
            if x._type.plain is not type_:
                raise ArgumentValueError(
                    f"GraphCell: got a Tensor of shape {x.shape} and dtype {x.dtype} for input "
                    f"{i}; the graph was "
                    f"exported for {type_}"
                )
        return self._run(tuple(weights), tuple(inputs))

    def replayed(self, weights: Sequence[Parameter], inputs: Sequence[Tensor]) -> Any:
        """Run the loaded graph on weights and inputs; return its results, nested as in the network.

        Inside a function that is being compiled, append the nodes of the graph instead.
        """
        values = [(inputs if kind == "arg" else weights)[k] for kind, k in self._form["order"]]
        builder: Any = staged_builder()
        if builder is None:
            device = next((x._type.device for x in values if x._type.device is not None), None)
            if device is None:
                device = registry.current_device()
            for x in values:
                if x._type.device is None:
                    commit(x, device)
            found: Sequence[object] = interpret(self.graph, values, device)
        else:
            entered = [builder.operand(v, None) for v in values]
            env: dict[object, object] = {None: None, **dict(enumerate(entered))}
            for node in self.graph.nodes:
                out = builder.append(node.op, tuple(env[i] for i in node.operands), node.attributes)
                env.update(zip(node.results, (out,) if node.single else out, strict=True))
            found = [env[i] for i in self.graph.outputs]
        for k, i in self._form["writes"]:
            weights[k].set_data(cast("Tensor", found[i]))
        return decoded(self._form["results"], found, inputs)

    def __repr__(self) -> str:
        return f"<exported graph of {self._form['name']}, {len(self.weights)} weights>"


@explaining
def export(
    net: object,
    *inputs: object,
    file_name: str,
    file_format: str = "MINDIR",
    enc_key: bytes | None = None,
    enc_mode: str = "AES-GCM",
    **kwargs: object,
) -> None:
    """Write a network as a graph with its weights (`mindspore.export`).

    "MINDIR" is duograph's own format under MindSpore's name: MindSpore cannot read these files, and
    duograph cannot read those of MindSpore. "ONNX" is the Open Neural Network Exchange format,
    which other runtimes read; it needs the package onnx (``pip install duograph[onnx]``).

    Args:
        net: Cell, function, or the result of `jit`.
        inputs: example Tensors; the graph is specialised to their shapes and dtypes. For ONNX, a
            Tensor without data such as ``Tensor(shape=[None, 3], dtype=float32)`` makes the sizes
            that are None variable.
        file_name: path; the suffix ".mindir" or ".onnx" is added if it is missing.
        file_format: "MINDIR" or "ONNX".
        enc_key, enc_mode: encrypt a MINDIR file, as `save_checkpoint` does.

    Raises:
        ValueError: an unknown format, two weights with the same name, a key of a wrong length, an
            option that is not offered, or for ONNX an op that it cannot express
            (`errors.OnnxError`).
        TypeError: an input is not a Tensor, or an unknown option.
        RuntimeError: the network has effects that a file cannot hold: it prints, changes Python
            objects, or draws random numbers.

    Examples:
        >>> import duograph as ms
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.mindir")
        >>> net, x = ms.nn.Dense(3, 2), ms.ops.ones((4, 3), ms.float32)
        >>> ms.export(net, x, file_name=path, file_format="MINDIR")
        >>> again = ms.nn.GraphCell(ms.load(path))
        >>> bool((again(x) == net(x)).all())
        True
    """
    check_options("export", **kwargs)
    secret = secret_of("export", "enc", enc_key, enc_mode)
    if file_format not in _SUFFIXES:
        raise ArgumentValueError(
            f"export: got file_format={file_format!r}; wanted one of {', '.join(_SUFFIXES)}"
        )
    if not isinstance(file_name, (str, os.PathLike)) or not os.fspath(file_name):
        raise ArgumentError(f"export: got file_name={file_name!r}; wanted a path")
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise ArgumentError(f"export: got {type(x).__name__} for input {i}; wanted a Tensor")
    _check_count(net, inputs)
    path = os.fspath(file_name)
    path = path if path.endswith(_SUFFIXES[file_format]) else path + _SUFFIXES[file_format]
    if file_format == "ONNX":
        if secret is not None:
            raise ArgumentValueError(
                "export: got enc_key with file_format='ONNX', whose files are never encrypted; "
                "wanted file_format='MINDIR'"
            )
        # imported here since onnx is an optional package
        from ..onnx.export import model_bytes

        with status_line(f"exporting {path}"):
            trace = functools.partial(_traced, net)
            content = model_bytes(trace, net, cast("tuple[Tensor, ...]", inputs))
            replace_file(path, [content])
        return
    with status_line(f"exporting {path}"):
        name, program = _traced(net, cast("tuple[Tensor, ...]", inputs))
    form, weights = _form_of(name, program)
    entries: dict[str, _checkpoint_file.Entry] = {
        _GRAPH: to_text(program.graph),
        _FORM: json.dumps(form),
    }
    for key, value in weights.items():
        entries[key] = value.asnumpy() if isinstance(value, Tensor) else value
    _checkpoint_file.write(path, entries, False, secret)


def _check_count(net: object, inputs: Sequence[object]) -> None:
    """Raise ArgumentError if the network `net`, called by `export`, cannot take these inputs.

    Only the number of inputs is checked, against the signature of the network.
    """
    function = net.construct if isinstance(net, Cell) else net
    if not callable(function):
        return
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return
    try:
        inspect.signature(function).bind(*inputs)
    except TypeError:
        name = type(net).__name__ if isinstance(net, Cell) else getattr(net, "__name__", "the net")
        listed = ", ".join(parameters)
        raise ArgumentError(
            f"export: got {len(inputs) or 'no'} input{'s' if len(inputs) != 1 else ''}; wanted a "
            f"Tensor for each input of {name}, ({listed}): ms.export(net, {listed}, file_name=...)"
        ) from None


def _traced(net: Any, inputs: Sequence[Tensor]) -> tuple[str, CompiledProgram]:
    """Compile a network for the given inputs; return its name and the compiled program.

    Raises:
        UnsupportedSyntaxError: the network has side effects, hooks or a custom kernel
            (`ops.Custom`).
    """
    device = registry.current_device()
    for x in inputs:
        if x._type.device is None:
            commit(x, device)
        device = x._type.device or device
    target = net
    if isinstance(net, JitFunction):
        target = net.function if net._target is None else net._target
    name = str(getattr(target, "__qualname__", type(target).__name__))
    if isinstance(target, Cell) and has_hooks(target):
        raise UnsupportedSyntaxError(
            f"export: got {name}, which has hooks; wanted a network without, since a file cannot "
            "hold them"
        )
    program = compile_program(target, tuple(inputs), {}, True, device, f"export of {name}")
    for node in _nodes(program.graph, set()):
        if node.op.name == "custom":
            raise UnsupportedSyntaxError(
                f"export: got {name}, which has a kernel of its own (ops.Custom) at "
                f"{_location(node)}; wanted ops of the framework, since a file cannot hold code"
            )
        if node.effects or any(isinstance(v, HostCall) for v in node.attributes.values()):
            raise UnsupportedSyntaxError(
                f"export: got {name}, which has {node.op.name} at {_location(node)}; wanted a "
                "network that computes "
                f"with Tensors alone: set_train(False) takes Dropout out",
            )
    return name, program


@explaining
def load(
    file_name: str, dec_key: bytes | None = None, dec_mode: str = "AES-GCM", **kwargs: object
) -> ExportedGraph:
    """Read a graph file written by `export` (`mindspore.load`); run the result with `nn.GraphCell`.

    Args:
        file_name: path of the file.
        dec_key, dec_mode: key and mode of an encrypted file, as given to `export`; None for a file
            that is not encrypted.
        kwargs: other options of MindSpore, which must have their default values.

    Raises:
        TypeError: `file_name` is no path, or `kwargs` has an unknown name.
        ValueError: the file does not exist, has another format or cannot be decrypted with the key,
            or an option in `kwargs` has another value than its default.
    """
    check_options("load", **kwargs)
    secret = secret_of("load", "dec", dec_key, dec_mode)
    if not isinstance(file_name, (str, os.PathLike)):
        raise ArgumentError(f"load: got file_name={file_name!r}; wanted a path")
    path = os.fspath(file_name)
    with status_line(f"loading {path}"):
        return _loaded(path, secret)


def _loaded(path: str, secret: Secret | None) -> ExportedGraph:
    """Read and verify a graph file for `load`."""
    found = _checkpoint_file.read(path, False, secret)
    text, about = found.pop(_GRAPH, None), found.pop(_FORM, None)
    if not isinstance(text, str) or not isinstance(about, str):
        raise CheckpointError(
            f"load: {path!r} holds no graph; wanted a file of duograph.export (load_checkpoint "
            "reads weights alone)"
        )
    try:
        graph = parse(text)
        _refuse_foreign_ops(graph)
        form = read_form(about, verify(graph), found)
        weights = {
            name: Parameter(Tensor(found[name]), name=name, requires_grad=trained)
            for name, trained in form["weights"]
        }
    except ValueError as error:
        raise CheckpointError(f"load: {path!r} cannot be read: {error}") from None
    return ExportedGraph(graph, form, weights)


def _refuse_foreign_ops(graph: Graph) -> None:
    """Raise GraphError if a graph holds a `region`, `host_call` or `random_state` node.

    `export` never writes such nodes. A `region` is not verified like other nodes, because only
    passes may create it; the others could call Python code of this process.
    """
    for node in _nodes(graph, set(), calls=True):
        if node.op.name in ("region", "host_call", "random_state"):
            raise GraphError(f"{node.op.name}: got a node that no exported graph has")


def _form_of(name: str, program: CompiledProgram) -> tuple[Form, dict[str, Tensor | Array]]:
    """Return a program's arguments and results as a JSON-serialisable description, and its weights.

    The weights are a dictionary by name. `name` is the name of the network, for messages.
    """
    weights: dict[str, Tensor | Array] = {}
    index: dict[int, int] = {}
    trained: list[tuple[str, bool]] = []
    order: list[tuple[str, int]] = []
    for kind, v in program.inputs:
        if kind == "arg":
            order.append(("arg", v))
        elif kind in ("state", "array"):
            key = getattr(v, "name", None) or f"constant.{len(weights)}"
            if key in weights:
                raise ArgumentValueError(f"export: got two weights of the name {key!r}; wanted one")
            index[id(v)] = len(weights)
            weights[key] = v
            trained.append((key, bool(getattr(v, "requires_grad", False))))
            order.append(("weight", index[id(v)]))
        else:
            raise UnsupportedSyntaxError(
                f"export: got {name}, which reads {kind} {v!r} at each call; wanted Tensors and "
                "constants"
            )
    writes = []
    for kind, v, i in program.writes:
        if kind != "state":
            raise UnsupportedSyntaxError(
                f"export: got {name}, which changes its arguments; wanted results"
            )
        writes.append((index[id(v)], i))
    form = {
        "version": VERSION, "name": name, "order": order, "weights": trained, "writes": writes,
        "results": _encoded(program.template),
    }  # fmt: skip
    return cast("Form", form), weights


def _encoded(template: Any) -> dict[str, object]:
    """Return the structure of a network's results (nested containers) in JSON-serialisable form."""
    if type(template) in (Out, Argument):
        return {"result" if type(template) is Out else "input": template.index}
    if type(template) in (tuple, list):
        return {type(template).__name__: [_encoded(v) for v in template]}
    if type(template) is dict and all(isinstance(k, str) for k in template):
        return {"dict": {k: _encoded(v) for k, v in template.items()}}
    if template is None or isinstance(template, (bool, int, float, str)):
        return {"value": template}
    raise UnsupportedSyntaxError(
        f"export: got a result with a {type(template).__name__}; wanted Tensors, numbers, texts, "
        "and tuples, lists "
        f"and dicts of those"
    )


def _nodes(graph: Graph, seen: set[int], calls: bool = False) -> Iterator[GraphNode]:
    """Yield the nodes of a graph and of its subgraphs, visiting each graph once.

    A node that has subgraphs is yielded only with `calls`. `seen` holds the ids of visited graphs.
    """
    if id(graph) in seen:
        return
    seen.add(id(graph))
    for node in graph.nodes:
        inner = list(node.graphs)
        inner += [
            v.graph for v in node.attributes.values() if isinstance(v, NamedGraph) and v.graph
        ]
        if calls or not inner:
            yield node
        for g in inner:
            yield from _nodes(g, seen, calls)


def _location(node: GraphNode) -> str:
    """Return the source location of a graph node as ``file.py:12``."""
    if node.span is None:
        return "an unknown line"
    return f"{os.path.basename(node.span.file)}:{node.span.line}"
