"""Compiles whole typed graphs with torch.compile; `Torch.compile_graph` calls it.

A graph is first converted to a graph of PyTorch's own ops (`make_fx`), of which torch.compile makes
one native function. An op that has no translation must have a decomposition, which replaces it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import torch
from duograph.backend.locks import new_lock
from duograph.ir.builder import expand
from duograph.ir.graph import Graph, GraphNode
from duograph.types import TensorType
from torch.fx.experimental.proxy_tensor import make_fx

from .translations import TORCH_DTYPES, WrongIndex, translated

__all__ = ["COMPILER", "compiled", "compiler", "refusal"]

# Environment variable with the backend of torch.compile. Another one than "inductor", such as
# "aot_eager", compiles in milliseconds instead of seconds, and runs PyTorch's kernels one by one.
COMPILER = "DUOGRAPH_TORCH_COMPILER"

# Reported for a gather whose indices are all in range; it is never an index itself.
_IN_RANGE = torch.iinfo(torch.int64).min
# Without this, PyTorch keeps float32 where line-by-line execution rounds to 16 bits.
_OPTIONS: dict[str, Any] = {"emulate_precision_casts": True}

_lock = new_lock()  # PyTorch's compiler serves one thread at a time


def refusal(graph: Graph) -> str | None:
    """Return the reason why torch.compile cannot compile a graph here, or None if it can."""
    compilers = (os.environ.get("CXX", "g++"), "g++", "clang++")
    if compiler() == "inductor" and not any(map(shutil.which, compilers)):
        return "torch.compile needs a C++ compiler, such as g++"
    return _untranslated(graph)


def compiler() -> str:
    """Return the name of the torch.compile backend in use, such as "inductor"."""
    return os.environ.get(COMPILER, "inductor")


def _untranslated(graph: Graph) -> str | None:
    """Return why an op of a graph has neither a translation nor a decomposition, or None."""
    for node in graph.nodes:
        types, results = _types(graph, node)
        if any(t.dtype not in TORCH_DTYPES for t in (*types, *results) if t is not None):
            return f"{node.op.name} has a dtype that the device lacks"
        if translated(node.op, types, node.attributes) is not None:
            continue
        if node.op.body is None and node.op.decompose_rule is None:
            return f"it has the op {node.op.name}"
        reason = _untranslated(expand(node.op, types, node.attributes))
        if reason is not None:
            return reason
    return None


def _types(graph: Graph, node: GraphNode) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return (types of a node's operands, types of its results); None for an absent operand."""
    operands = tuple([None if i is None else graph.types[i] for i in node.operands])
    return operands, tuple([graph.types[i] for i in node.results])


class _Checks:
    """Collects the index checks of a graph's ops while the graph is traced.

    Attributes:
        errors: for each check, the function of a wrong index that returns the exception.
        found: for each check, a 0-d tensor with a wrong index, or `_IN_RANGE` if there is none.
    """

    def __init__(self) -> None:
        self.errors: list[WrongIndex] = []
        self.found: list[torch.Tensor] = []

    def __call__(self, wrong: WrongIndex, indices: torch.Tensor, bad: torch.Tensor) -> None:
        if indices.numel():
            self.errors.append(wrong)
            self.found.append(torch.where(bad, indices.to(torch.int64), _IN_RANGE).amax())


def _traced(graph: Graph, given: Sequence[Any], check: _Checks) -> list[Any]:
    """Apply the translations of a graph's ops in order; return the values of its outputs.

    `given` are the values of its parameters.
    """
    values = dict(enumerate(given))
    for node in graph.nodes:
        operands = [None if i is None else values[i] for i in node.operands]
        types, _ = _types(graph, node)
        call = translated(node.op, types, node.attributes)
        if call is not None:
            found = call(operands, check)
        else:
            found = tuple(_traced(expand(node.op, types, node.attributes), operands, check))
        values.update(zip(node.results, found, strict=True))
    return [values[i] for i in graph.outputs]


def compiled(graph: Graph) -> Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]:
    """Return the compiled form of a graph: a function of its parameters that returns its outputs.

    torch.compile compiles at the first call of the function. The function raises an exception if an
    index is out of range.
    """
    check = _Checks()
    parameters = [t for t in graph.types[: graph.n_params] if isinstance(t, TensorType)]

    def trace(*given: torch.Tensor) -> list[torch.Tensor]:
        outputs = _traced(graph, given, check)
        return [*outputs, torch.stack(check.found)] if check.found else outputs

    with _lock:
        examples = [torch.zeros(t.shape, dtype=TORCH_DTYPES[t.dtype]) for t in parameters]
        module = make_fx(trace, tracing_mode="fake")(*examples)
        name = compiler()
        options = _OPTIONS if name == "inductor" else None
        run = torch.compile(module, fullgraph=True, dynamic=False, backend=name, options=options)
    ready = False

    def call(given: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        nonlocal ready
        if ready:
            found = run(*given)
        else:
            with _lock:
                found = run(*given)
            ready = True
        if not check.errors:
            return found
        *outputs, indices = found
        for wrong, index in zip(check.errors, indices.tolist(), strict=True):
            if index != _IN_RANGE:
                raise wrong(index)
        return outputs

    return call
