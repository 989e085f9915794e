"""Makes a graph runnable on one backend: kernel, else composite body or decomposition, else declared host fallback."""

from __future__ import annotations

import collections
import functools
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import context, passes
from .._locks import new_lock
from ..backend import registry
from ..backend.protocol import Backend
from ..errors import UnsupportedOpError
from ..ir.builder import expand
from ..ir.graph import FrozenArray, Graph, GraphNode, live_nodes
from ..op import Op
from ..passes.extensions import plugin_passes
from ..types import Device, TensorType
from .control import control_call, may_raise, placed
from .executor import Step, link

__all__ = ["body_of", "lower", "host_call", "fallback_counts"]

# A constant of at most this many elements is made once, when the graph is prepared.
CONSTANT_LIMIT = 1024

# (backend, op) -> how often the host ran it
fallback_counts: collections.Counter[tuple[str, str]] = collections.Counter()
_warned: set[tuple[str, str]] = set()
_lock = new_lock()
# What stands in for ops, after the passes (None: they left it as it is), and what it depends on beside the graph: the
# same few bodies stand in all graphs.
_bodies: weakref.WeakKeyDictionary[Graph, tuple[Any, Graph | None]] = weakref.WeakKeyDictionary()


class _Lowering:
    """Collects the steps of one graph."""

    def __init__(self, device: Device, regions: Mapping[Graph, Callable[..., Any]]) -> None:
        self.device = device
        self.regions = regions
        self.backend = registry.backend(device.name)
        self.steps: list[Step] = []
        self.constants: dict[int, Any] = {}
        self.host: set[int] = set()  # slots of constants that are Python objects
        self.n_slots = 0

    def slot(self) -> int:
        self.n_slots += 1
        return self.n_slots - 1

    def graph(self, graph: Graph, slots: list[int], results: set[int], root: bool) -> list[int]:
        """Lower the nodes of `graph` on parameter slots; the slots of its outputs."""
        env = dict(enumerate(slots))
        out = set(graph.outputs)
        for node in live_nodes(graph.nodes, out):
            is_result = root and any(r in out for r in node.results)
            found = self.node(node, graph, env, is_result)
            env.update(zip(node.results, found, strict=True))
        return [env[i] for i in graph.outputs]

    def node(
        self, node: GraphNode, graph: Graph, env: dict[int, int], is_result: bool
    ) -> list[int]:
        op = node.op
        operands = [-1 if i is None else env[i] for i in node.operands]
        if op.alias:
            return [operands[0]]
        kinds: Sequence[Any] = graph.types
        types = tuple([None if i is None else kinds[i] for i in node.operands])
        results = tuple([kinds[i] for i in node.results])
        if op.name == "constant":
            slot = self.slot()
            frozen: FrozenArray = node.attributes["value"]
            self.constants[slot] = self.backend.copy_in(frozen.array, self.device.index)
            return [slot]
        if op.name == "host_constant":
            slot = self.slot()
            self.constants[slot] = node.attributes["value"].value
            self.host.add(slot)
            return [slot]
        if op.name == "region":
            body: Graph = node.attributes["body"]
            call = self.regions.get(body)
            if call is None:
                return self.graph(body, operands, set(), is_result)
            slots = [self.slot() for _ in node.results]
            self.steps.append(Step(call, tuple(operands), tuple(slots), node.single))
            return slots
        inside = functools.partial(lower_closed, regions=self.regions)
        call = control_call(self.backend, op.name, types, node.attributes, self.device, inside)
        if call is not None:
            if node.span is not None and may_raise(op.name, node.attributes):
                call = placed(call, node.span)
            slots = [self.slot() for _ in node.results]
            self.steps.append(Step(call, tuple(operands), tuple(slots), node.single))
            return slots
        call = kernel(self.backend, op, types, node.attributes, self.device)
        if call is None and (op.body is not None or op.decompose_rule is not None):
            inner = body_of(op, types, node.attributes)
            found = tuple(inner.types[i] for i in inner.outputs)
            # a handle of another size than its type says would be read past its end
            assert found == results, f"{op.name}: its body gives {found}, its infer rule {results}"
            given = [s for s in operands if s != -1]
            return self.graph(inner, given, set(), is_result)
        if call is None:
            call = fallback(self.backend, op, types, node.attributes, self.device, results)
        if not operands and node.single and results[0].size <= CONSTANT_LIMIT and not is_result:
            slot = self.slot()
            self.constants[slot] = call()
            return [slot]
        slots = [self.slot() for _ in node.results]
        self.steps.append(Step(call, tuple(operands), tuple(slots), node.single))
        return slots


def lower(
    graph: Graph,
    device: Device,
    watch: passes.Watch | None = None,
    level: str = "O0",
    notes: list[str] | None = None,
) -> Callable[..., Any]:
    """A callable from parameter handles to result handle(s) of this graph on `device`.

    Args:
        graph: as it came; passes run here.
        device: where it is to run.
        watch: sees the graph after each pass.
        level: "O0" runs op by op, "O1" compiles fused regions where the backend can.
        notes: gets a line about what was compiled, and one for each reason why something was not.
    """
    graph = passes.run(graph, watch)
    regions: Mapping[Graph, Callable[..., Any]] = {}
    if level != "O0":
        from .regions import compiled_regions

        graph, regions = compiled_regions(graph, device, watch, notes)
    return lower_closed(graph, device, regions)


def lower_closed(
    graph: Graph, device: Device, regions: Mapping[Graph, Callable[..., Any]] | None = None
) -> Callable[..., Any]:
    """`lower` for a graph whose passes have run, as part of the graph around it.

    `regions` are calls of bodies of `region` nodes; the nodes of others run one by one.
    """
    work = _Lowering(device, regions or {})
    slots = [work.slot() for _ in range(graph.n_params)]
    outputs = work.graph(graph, slots, set(graph.outputs), True)
    for position, i in enumerate(outputs):
        # a result may not share its buffer with a constant that lives on
        if i in work.constants and i not in work.host:
            slot = work.slot()
            type_: Any = graph.types[graph.outputs[position]]
            fresh = functools.partial(_copy, work.backend, device, type_, work.constants[i])
            work.steps.append(Step(fresh, (), (slot,), True))
            outputs[position] = slot
    return link(
        work.steps, graph.n_params, work.constants, tuple(outputs), graph.single, work.n_slots
    )


def body_of(op: Op, types: tuple[TensorType | None, ...], attributes: Mapping[str, Any]) -> Graph:
    """What an op is made of, after the passes."""
    graph = expand(op, types, attributes)
    # with debug=True the verifier has looked at it
    depends = (context.settings.debug, plugin_passes())
    known = _bodies.get(graph)
    if known is None or known[0] != depends:
        made = passes.run(graph)
        known = _bodies[graph] = (depends, None if made is graph else made)
    return known[1] or graph


def _copy(backend: Backend, device: Device, type_: TensorType, handle: Any) -> Any:
    """A handle to a copy."""
    array = backend.copy_out(handle, type_.shape, type_.dtype.np, device.index)
    return backend.copy_in(np.array(array), device.index)


def kernel(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, Any],
    device: Device,
) -> Callable[..., Any] | None:
    """The backend's own call for this op, or None."""
    if op.host:
        return None
    return backend.prepare(op, types, attributes, device.index)  # type: ignore[arg-type]


def fallback(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, Any],
    device: Device,
    results: tuple[TensorType, ...],
) -> Callable[..., Any]:
    """The host's call for an op that the backend cannot run, if that is allowed."""
    if op.host:  # that is where it runs on every device
        return host_call(backend, op, types, attributes, device, results)
    policy = context.settings.host_fallback
    if policy == "backend":
        policy = backend.host_fallback
    shown = ", ".join("none" if t is None else repr(t) for t in types)
    if policy == "off" or op.reference_rule is None:
        raise UnsupportedOpError(
            f"{op.name}({shown}): the {backend.name} backend has no kernel for it and the op has no "
            f"decomposition; write a kernel, or allow the host to run it with "
            f"set_context(host_fallback='warn')"
        )
    key = (backend.name, op.name)
    if policy == "warn" and key not in _warned:
        _warned.add(key)
        warnings.warn(
            f"{op.name}({shown}) runs on the host: the {backend.name} backend has no kernel for it",
            RuntimeWarning,
            stacklevel=2,
        )
    run = host_call(backend, op, types, attributes, device, results)

    def counted(*handles: Any) -> Any:
        with _lock:
            fallback_counts[key] += 1
        return run(*handles)

    return counted


def host_call(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, Any],
    device: Device,
    results: tuple[TensorType, ...],
) -> Callable[..., Any]:
    """A call that copies out, runs the op's reference and copies in."""
    reference = op.reference_rule
    assert reference is not None
    single = len(results) == 1

    def run(*handles: Any) -> Any:
        arrays = [
            None if t is None else backend.copy_out(h, t.shape, t.dtype.np, device.index)
            for h, t in zip(handles, types, strict=True)
        ]
        found = reference(*op.arguments(arrays), **attributes)
        parts = found if isinstance(found, tuple) else (found,)
        out = [
            backend.copy_in(np.array(a, dtype=t.dtype.np, order="C").reshape(t.shape), device.index)
            for a, t in zip(parts, results, strict=True)
        ]
        return out[0] if single and not isinstance(found, tuple) else tuple(out)

    return run
