"""Compiles the fused regions of a program, all in one batch, for jit levels above O0.

`execution.lower` calls it after the graph passes. It asks the backend for kernels. It must neither
choose nor change regions, which the pass `fuse` has formed.
"""

from __future__ import annotations

import collections
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence

from ..backend import registry
from ..backend.observers import reporting
from ..backend.plugin_checks import as_prepared, checked_reason, shown_value
from ..backend.prepared import PreparedCall
from ..backend.protocol import Backend
from ..errors import BackendError
from ..ir.control import SUBGRAPH_OPS, region
from ..ir.graph import Graph, GraphNode
from ..ir.loops import row_length
from ..ir.text import to_text
from ..types import Device, TensorType
from .optional_methods import answer

__all__ = ["cannot_compile", "compile_regions"]

# Backends that were warned about.
_warned: set[str] = set()


def cannot_compile(device: Device) -> str | None:
    """Return why a device's backend cannot compile fused regions, or None if it can.

    Warns once per backend that has a compiler but cannot use it on this machine.
    """
    backend = registry.backend(device.name)
    problem = answer(backend, "compiles", lambda: checked_reason(backend.compiles(device.index)))
    if problem is not None and type(backend).compile is not Backend.compile:
        _warn_once(backend, problem)
    return problem


def compile_regions(graph: Graph, device: Device) -> tuple[dict[Graph, PreparedCall], list[str]]:
    """Compile all fused regions of a graph (nodes that one kernel computes) in one batch.

    Returns:
        The prepared call for each region body that the backend compiled, and lines for the user:
        one line with the numbers of regions and kernels, and one for each reason why regions have
        no call.
    """
    backend = registry.backend(device.name)
    bodies: dict[str, list[Graph]] = {}
    _collect(graph, bodies, set())
    found: dict[Graph, PreparedCall] = {}
    calls = _calls(backend, [same[0] for same in bodies.values()], device) if bodies else []
    for same, call in zip(bodies.values(), calls, strict=True):
        if not isinstance(call, str):
            found.update(dict.fromkeys(same, call))
    missing = collections.Counter(call for call in calls if isinstance(call, str))
    regions = [body for same in bodies.values() for body in same]
    line = f"{_counted(len(regions), 'fused region')}, "
    line += _counted(len(calls) - missing.total(), "kernel")
    line += "".join(_kinds(regions, backend))
    return found, [
        line,
        *(
            f"{_counted(count, 'region')} without a kernel, run op by op: {reason}"
            for reason, count in missing.items()
        ),
    ]


def _counted(number: int, noun: str) -> str:
    """Return a number with a noun, such as "1 kernel" or "2 kernels"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def _calls(backend: Backend, bodies: list[Graph], device: Device) -> list[PreparedCall | str]:
    """Ask a backend to compile fused regions.

    Returns for each region its prepared call, or the reason why there is none.
    """

    def ask() -> list[PreparedCall | str]:
        calls: object = backend.compile(bodies, device.index)
        if not isinstance(calls, (list, tuple)) or len(calls) != len(bodies):
            raise BackendError(
                f"returned {shown_value(calls)}; wanted a list of {len(bodies)} calls or reasons"
            )
        return [
            call
            if isinstance(call, str)
            else as_prepared(call, body.n_params, functools.partial(len, body.outputs))
            for call, body in zip(calls, bodies)
        ]

    name = f"compile {_counted(len(bodies), 'fused region')}"
    with reporting("compile", name, repr(device)):
        found = answer(backend, "compile", ask)
    return [found] * len(bodies) if isinstance(found, str) else found


def _kinds(regions: Sequence[Graph], backend: Backend) -> Iterator[str]:
    """Yield a phrase for the log, such as ", 2 end in scatters", for each kind of fused region.

    The kinds are regions that continue after a matmul or convolution, that read through indices,
    that end in sums of columns, and that end in scatters. Kinds without regions are left out.
    """

    def columns(body: Graph, node: GraphNode) -> bool:
        if not node.op.is_reduction:
            return False
        operand = body.types[node.operands[0] or 0]
        assert isinstance(operand, TensorType)
        return not row_length(node, operand)

    kinds: dict[str, Callable[[Graph, GraphNode], bool]] = {
        "after a matmul or convolution": lambda body, node: node.op.name in backend.epilogues,
        "read through indices": lambda body, node: node.op.traits.gather is not None,
        "end in sums of columns": columns,
        "end in scatters": lambda body, node: node.op.traits.scatter is not None,
    }
    for words, has in kinds.items():
        count = sum(any(has(body, node) for node in body.nodes) for body in regions)
        if count:
            yield f", {count} {words}"


def _warn_once(backend: Backend, problem: str) -> None:
    """Warn, the first time for a backend, that it cannot compile regions on this machine."""
    if backend.name not in _warned:
        _warned.add(backend.name)
        warnings.warn(
            f"{backend.name}: compiled functions run op by op (level O0): {problem}",
            RuntimeWarning,
            stacklevel=2,
        )


def _collect(graph: Graph, bodies: dict[str, list[Graph]], seen: set[Graph]) -> None:
    """Add the bodies of a graph's fused regions, including those in sub-graphs, to `bodies`.

    The key is the printed form of a body. Bodies with the same printed form compute the same, so a
    single kernel serves all of them. `seen` are the graphs already collected.
    """
    if graph in seen:
        return
    seen.add(graph)
    for node in graph.nodes:
        if node.op is region:
            body: Graph = node.attributes["body"]
            bodies.setdefault(to_text(body, locations=False), []).append(body)
        elif node.op in SUBGRAPH_OPS:
            for inner in node.graphs:
                _collect(inner, bodies, seen)
            target = node.attributes.get("target")
            if target is not None and target.graph is not None:
                _collect(target.graph, bodies, seen)
