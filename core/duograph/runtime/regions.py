"""Compiles the fused regions of a program, all at once: what levels above O0 add to lowering."""

from __future__ import annotations

import collections
import dataclasses
import functools
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from .. import passes
from ..backend import registry
from ..backend.protocol import Backend
from ..ir.graph import Graph, GraphNode
from ..ir.loops import gathers_long_runs, is_elementwise, is_reduction, is_view, row_length
from ..ir.text import to_text
from ..op import Op
from ..passes import fusion
from ..passes.activation_gradients import save_activation_derivatives
from ..passes.channels_last import channels_last
from ..passes.matmul import fold_transposes, merge_matmul_sums
from ..passes.padded_sums import concatenate_padded_sums
from ..passes.self_attention import use_self_attention
from ..passes.split_reductions import split_reductions
from ..passes.subgraphs import HOLDERS, Done, mapped
from ..types import Device, TensorType
from .lower import body_of, kernel

__all__ = ["compiled_regions"]

Call = Callable[..., Any]
_said: set[str] = set()


def compiled_regions(
    graph: Graph,
    device: Device,
    watch: passes.Watch | None = None,
    notes: list[str] | None = None,
    state: Collection[int] = (),
) -> tuple[Graph, Mapping[Graph, Call]]:
    """The graph with its fusable nodes in regions, and a call for the body of each that the backend
    compiled.

    A graph without regions, and any graph where the backend has no compiler, comes back as it is.
    `notes` gets a line about the regions, and one for each reason why some have no call. `state` as
    in `lower`.
    """
    notes = [] if notes is None else notes
    backend = registry.backend(device.name)
    problem = backend.compiles(device.index)
    if problem is not None:
        notes.append(f"runs op by op: {problem}")
        _say(backend, problem)
        return graph, {}
    graph = _Expansion(backend, device).expanded(graph)
    claims = functools.partial(_claims, backend, device)
    graph = passes.run(
        use_self_attention(
            merge_matmul_sums(concatenate_padded_sums(fold_transposes(graph))), claims
        )
    )
    layouts: list[str] = []
    laid_out = channels_last(graph, state, claims, layouts)
    if laid_out is not graph:
        graph = passes.run(laid_out)
        if watch is not None:
            watch("channels_last", graph)
    graph = fusion.fuse(split_reductions(save_activation_derivatives(graph)), backend.epilogues)
    if watch is not None:
        watch("fuse", graph)
    bodies: dict[str, list[Graph]] = {}
    _collect(graph, bodies, set())
    found: dict[Graph, Call] = {}
    calls = backend.compile([same[0] for same in bodies.values()], device.index) if bodies else []
    for same, call in zip(bodies.values(), calls, strict=True):
        if not isinstance(call, str):
            found.update(dict.fromkeys(same, call))
    missing = collections.Counter(call for call in calls if isinstance(call, str))
    regions = [body for same in bodies.values() for body in same]
    line = f"{len(regions)} fused regions, {len(calls) - missing.total()} kernels"
    notes.append(line + "".join(_kinds(regions, backend)))
    notes += [*layouts, *(f"{count} run op by op: {reason}" for reason, count in missing.items())]
    return graph, found


def _kinds(regions: Sequence[Graph], backend: Backend) -> Iterator[str]:
    """How many regions have something else in them than elementwise ops and rows, as text."""

    def columns(body: Graph, node: GraphNode) -> bool:
        types: Sequence[Any] = body.types
        return is_reduction(node.op) and not row_length(node, types[node.operands[0] or 0])

    kinds: dict[str, Callable[[Graph, GraphNode], bool]] = {
        "regions as epilogues of products": lambda body, node: node.op.name in backend.epilogues,
        "read through indices": lambda body, node: node.op.traits.gather is not None,
        "end in sums of columns": columns,
        "end in scatters": lambda body, node: node.op.traits.scatter is not None,
    }
    for words, has in kinds.items():
        count = sum(any(has(body, node) for node in body.nodes) for body in regions)
        if count:
            yield f", {count} {words}"


def _claims(
    backend: Backend,
    device: Device,
    op: Op,
    types: tuple[TensorType, ...],
    attributes: Mapping[str, Any],
) -> bool:
    """Whether the backend has a kernel of its own for an op."""
    return kernel(backend, op, types, attributes, device) is not None


def _say(backend: Backend, problem: str) -> None:
    """Warn once that a backend which compiles cannot do so on this machine."""
    if type(backend).compile is not Backend.compile and backend.name not in _said:
        _said.add(backend.name)
        warnings.warn(
            f"{backend.name}: compiled functions run op by op (level O0): {problem}",
            RuntimeWarning,
            stacklevel=2,
        )


def _collect(graph: Graph, bodies: dict[str, list[Graph]], seen: set[Graph]) -> None:
    """Bodies of regions by what they compute, those in the graphs inside included."""
    if graph in seen:
        return
    seen.add(graph)
    for node in graph.nodes:
        if node.op.name == "region":
            body: Graph = node.attributes["body"]
            bodies.setdefault(to_text(body, places=False), []).append(body)
        elif node.op.name in HOLDERS:
            for inner in node.graphs:
                _collect(inner, bodies, seen)
            target = node.attributes.get("target")
            if target is not None and target.graph is not None:
                _collect(target.graph, bodies, seen)


class _Expansion:
    """Composites that the backend has no kernel for become their bodies, so that these can be
    fused.
    """

    def __init__(self, backend: Backend, device: Device) -> None:
        self.backend = backend
        self.device = device
        self.claims: dict[Any, bool] = {}
        self.done: Done = {}

    def expanded(self, graph: Graph) -> Graph:
        types: list[Any] = list(graph.types)
        nodes: list[GraphNode] = []
        number: dict[Any, Any] = dict(enumerate(range(len(types))))
        self.append(graph.nodes, types, nodes, number)
        outputs = tuple([number[i] for i in graph.outputs])
        return Graph(graph.n_params, types, nodes, outputs, graph.single)

    def append(
        self, source: Any, types: list[Any], nodes: list[GraphNode], number: dict[Any, Any]
    ) -> None:
        """Append nodes whose values have these numbers in the new graph; `number` learns what
        stands for results.
        """
        number[None] = None
        for node in source:
            operands = tuple([number[i] for i in node.operands])
            if node.op.name in HOLDERS:
                attributes = mapped(node.attributes, self.expanded, self.done)
                node = dataclasses.replace(node, attributes=attributes)
            elif not self.stays(node, operands, number, types):
                kinds = tuple([None if i is None else types[i] for i in operands])
                body = body_of(node.op, kinds, node.attributes)
                inner: dict[Any, Any] = dict(enumerate(i for i in operands if i is not None))
                spanned = [dataclasses.replace(n, span=node.span) for n in body.nodes]
                for i, t in enumerate(body.types):
                    if i >= body.n_params:
                        inner[i] = len(types)
                        types.append(t)
                self.append(spanned, types, nodes, inner)
                for r, out in zip(node.results, body.outputs):
                    number[r] = inner[out]
                continue
            results = tuple([number[r] for r in node.results])
            nodes.append(dataclasses.replace(node, operands=operands, results=results))

    def stays(
        self, node: GraphNode, operands: Any, number: Mapping[Any, Any], types: list[Any]
    ) -> bool:
        """Whether the node is a primitive, or something that a region or a kernel computes as it
        is.
        """
        op = node.op
        if op.body is None and op.decompose_rule is None:
            return True
        if is_reduction(op) or is_view(op) or op.graph_only:
            return True
        kinds = tuple([None if i is None else types[i] for i in operands])
        if op.scalar_rule is not None and node.single:
            result = types[number[node.results[0]]]
            alone = dataclasses.replace(
                node, operands=tuple(range(len(kinds))), results=(len(kinds),)
            )
            if None not in kinds and is_elementwise(alone, [*kinds, result]):
                return True
        if op.traits.gather:
            loaded = [t for t in kinds if t is not None]
            if gathers_long_runs(node, loaded, types[number[node.results[0]]], fusion.MIN_RUN):
                return True
        if op.name in self.backend.taken_apart:
            return False
        key = (op, kinds, op.key(kinds, node.attributes))
        found = self.claims.get(key)
        if found is None:
            call = kernel(self.backend, op, kinds, node.attributes, self.device)
            found = self.claims[key] = call is not None
        return found
