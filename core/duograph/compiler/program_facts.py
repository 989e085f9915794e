"""Collects what the HTML page of `JitFunction.show` says about a compiled program.

`JitFunction.show` calls `page_facts`, and `pages.render` makes the page. A program keeps neither
the graphs between its passes nor its memory plan. Its graph is therefore lowered once more to
collect them; kernels come from the caches. A program without side effects runs a few times on the
arguments of the call, to time its kernels; its results are dropped. A program with side effects
must never run here.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import inspect
import linecache
import os
import statistics
import textwrap
import time
from collections.abc import Sequence
from typing import Any

from ..autodiff.linearize import linearize
from ..backend import observers, registry
from ..backend.checked_calls import wait_for
from ..backend.prepared import Handle
from ..backend.program import Choice, Instruction, Loop, Step
from ..backend.protocol import Backend
from ..errors import DuographError, UnsupportedSyntaxError
from ..execution.executable import Executable
from ..execution.inspection import InspectedPlan, inspecting
from ..execution.lower import lower_program
from ..execution.optional_methods import answer
from ..execution.regions import compile_regions
from ..frontend.source import source_of
from ..frontend.types import Value
from ..ir.control import region
from ..ir.graph import Graph, GraphNode
from ..ir.text import to_text
from ..ir.values import NeedsValue
from ..parameter import Parameter
from ..passes import context_of
from ..passes.fusion_reasons import explain_fusion
from ..types import Device, TensorType
from .arguments import Slots
from .compiled_program import CompiledProgram
from .explain import Facts, argument_name, input_names, tensor_name
from .graph_facts import GraphFacts, ParameterFact, changes

__all__ = ["page_facts"]

# Lines of a file that the page shows around a node outside every function.
AROUND = 3
# The most runs in which kernels are timed, and the most seconds that these may take.
RUNS = 9
SECONDS = 0.5


def page_facts(
    facts: Facts,
    program: CompiledProgram | None,
    function: Value,
    names: Sequence[str],
    slots: Slots | None = None,
) -> dict[str, object]:
    """Return all data for the HTML page about a function compiled for one signature.

    Args:
        facts: what `explain` prints.
        program: the program; None if the function runs uncompiled.
        function: the Python function, whose source is shown.
        names: the names of the tensor arguments, as `JitKey.tensor_names` returns them.
        slots: the run-time inputs of a call, with which kernels are timed; if None, kernels are not
            timed.
    """
    data: dict[str, Any] = {"facts": dataclasses.asdict(facts), "programs": [], "gradient": ""}
    graphs = GraphFacts()
    main = _main_source(function)
    if program is not None:
        parameters = _parameters(program, names)
        updates, state = program.updates(), program.unwritten()
        handles = None
        if slots is not None and not program.effects:
            handles = program.read(slots.leaves, slots.numbers, slots.containers)
        data["programs"].append(
            _program(
                graphs, "Function", program.graph, program, parameters, updates, state, handles
            )
        )
        halves = _gradient(program, names)
        if isinstance(halves, str):
            data["gradient"] = halves
        else:
            for title, graph, params in halves:
                data["programs"].append(_program(graphs, title, graph, program, params, {}, ()))
    data["heads"], data["named"] = graphs.heads, graphs.named
    data["files"] = [os.path.basename(file) for file in graphs.files]
    data["sources"] = _sources(graphs, main)
    return data


# ---- one graph and its passes --------------------------------------------------------------------


def _program(
    graphs: GraphFacts,
    title: str,
    graph: Graph,
    program: CompiledProgram,
    parameters: Sequence[ParameterFact],
    updates: dict[int, int],
    state: Sequence[int],
    handles: Sequence[Handle] | None = None,
) -> dict[str, object]:
    """Return the data of one graph for the page: the graph after each pass, kernels, memory, times.

    Lowers the graph once.

    Args:
        graphs: converts graphs to data.
        title: the heading of the graph on the page.
        graph: the graph before the passes.
        program: the program, which decides the device and the level.
        parameters: type, name and kind of each parameter of the graph.
        updates: position of an output -> position of the input whose new value it is.
        state: positions of inputs that are state tensors which the function never writes.
        handles: the inputs of a run with which kernels are timed; if None, they are not timed.
    """
    device, level = program.device, program.level
    stages: list[tuple[str, Graph]] = []

    def watch(name: str, graph: Graph) -> None:
        if not stages or (name != "done" and graph is not stages[-1][1]):
            stages.append((name, graph))

    notes: list[str] = []
    with inspecting() as plans:
        executable = lower_program(graph, device, watch, level, notes, updates, state)
    made: list[dict[str, Any]] = []
    for name, stage in stages:
        shown = graphs.graph(stage, parameters)
        if not made:
            made.append({"pass": name, "graph": shown})
            continue
        found = changes(made[-1]["graph"], shown)
        order = [[node[0] for node in g["n"]] for g in (made[-1]["graph"], shown)]
        if any(found.values()) or order[0] != order[1]:
            made.append({"pass": name, "graph": shown, "changes": found})
        else:  # other value ids at most
            made[-1]["graph"] = shown
    final = stages[-1][1]
    fused = next((k for k, (name, _) in enumerate(stages) if name == "fuse"), None)
    if fused is not None:
        made[-1]["fusion"] = _fusion(stages[fused - 1][1], final, device, level, state)
    return {
        "title": title,
        "notes": notes,
        "stages": made,
        "kernels": _kernels(final, device),
        "memory": _memory(plans[0], final) if plans else None,
        "times": {} if handles is None else _times(executable, handles, final, device),
    }


def _fusion(
    before: Graph, after: Graph, device: Device, level: str, state: Sequence[int]
) -> list[dict[str, object]]:
    """Return a dict for each node of the graph `before`: its kernel, and why it was fused or not.

    `after` is the graph after fusion. `state` has the positions of inputs that are state tensors
    which the function never writes.
    """
    context = context_of(device, level, None, [], state)
    home = {i: at for at, node in enumerate(after.nodes) for i in node.results}
    found = []
    decisions = explain_fusion(before, context)
    members: dict[int, list[int]] = {}
    for at, decision in enumerate(decisions):
        if decision.kernel is not None:
            members.setdefault(decision.kernel, []).append(at)
    for at, (node, decision) in enumerate(zip(before.nodes, decisions)):
        kernel = decision.kernel
        # the region node has every value of the kernel that is used outside it
        owners = [at] if kernel is None else members[kernel]
        at_now = [home[i] for k in owners for i in before.nodes[k].results if i in home]
        entry = {
            "op": node.op.name,
            "id": node.results[0] if node.results else -1,
            "kernel": kernel,
            "node": at_now[0] if at_now else -1,
            "line": node.span.line if node.span is not None else 0,
            "why": decision.reason,
            "apart": [[i, why] for i, why in decision.apart],
        }
        found.append(entry)
    return found


def _kernels(graph: Graph, device: Device) -> list[dict[str, object]]:
    """Return the fused regions of a graph and its sub-graphs, each with its kernel's source.

    The entry `built` of a region says whether the backend has compiled it; if not, the region runs
    op by op.
    """
    backend = registry.backend(device.name)
    calls, _ = compile_regions(graph, device)  # compiled already, so found in the caches
    found: dict[str, dict[str, Any]] = {}
    for at, node in _regions(graph):
        body: Graph = node.attributes["body"]
        entry = found.get(to_text(body, locations=False))
        if entry is None:
            entry = found[to_text(body, locations=False)] = {
                "ops": [n.op.name for n in body.nodes],
                "reads": _nbytes(body, range(body.n_params)),
                "writes": _nbytes(body, body.outputs),
                "graph": str(body),
                "built": body in calls,
                "source": _source(backend, body, device) if body in calls else "",
                "nodes": [],
            }
        entry["nodes"].append(at)
    return list(found.values())


def _source(backend: Backend, body: Graph, device: Device) -> str:
    """Return the source of a fused region's kernel, or "" if the backend shows none."""
    return answer(backend, "region_source", lambda: backend.region_source(body, device.index) or "")


def _regions(graph: Graph, top: int | None = None) -> list[tuple[int, GraphNode]]:
    """Return the fused regions of a graph and of its sub-graphs.

    Each is a pair (position of a node of the whole graph, region node): the node at this position
    is the region node, or it has the sub-graph that contains the region. `top` is this position
    while a sub-graph is searched.
    """
    found = []
    for at, node in enumerate(graph.nodes):
        where = at if top is None else top
        if node.op is region:
            found.append((where, node))
        else:
            for inner in node.graphs:
                found += _regions(inner, where)
    return found


def _nbytes(graph: Graph, values: Sequence[int]) -> int:
    types = [graph.types[i] for i in values]
    return sum(t.nbytes for t in types if isinstance(t, TensorType))


def _memory(plan: InspectedPlan, graph: Graph) -> dict[str, object]:
    """Return a memory plan as JSON-like data: the steps, and when each block is in use."""
    nodes = _by_attributes(graph)
    steps: list[list[Any]] = []  # [op, position of its node or -1]
    writers: dict[int, tuple[str, str, int]] = {}

    def walk(instructions: Sequence[Instruction]) -> None:
        for each in instructions:
            at = -1
            if isinstance(each, Step):
                at = nodes.get(id(each.attributes), -1)
                results = each.types[len(each.operands) :]
                for slot, type_ in zip(each.results, results):
                    writers.setdefault(slot, (each.name, repr(type_), at))
            steps.append([getattr(each, "name", type(each).__name__.lower()), at])
            if isinstance(each, Loop):
                walk(each.body)
                steps.append(["end of loop", -1])
            elif isinstance(each, Choice):
                for branch in each.branches:
                    walk(branch)

    walk(plan.instructions)
    blocks = []
    for slot, offset in enumerate(plan.places):
        if offset >= 0:
            op, type_, at = writers.get(slot, ("", "", -1))
            blocks.append(
                {
                    "offset": offset,
                    "bytes": plan.sizes[slot],
                    "first": plan.first[slot],
                    "last": plan.last[slot],
                    "op": op,
                    "type": type_,
                    "node": at,
                }
            )
    return {
        "arena": plan.arena,
        "total": plan.total,
        "results": plan.results,
        "donations": len(plan.donations),
        "steps": steps,
        "blocks": blocks,
    }


class _Watch(observers.Observer):
    """Observer that adds up the run times of kernels, by the id of their attributes.

    On a device that runs kernels asynchronously and cannot time them itself, the observer waits for
    each kernel.
    """

    def __init__(self, device: Device) -> None:
        self.backend = registry.backend(device.name)
        self.index = device.index
        self.seconds: dict[int, float] = collections.defaultdict(float)
        self.start = 0.0

    def started(self, work: observers.Work) -> None:
        self.start = time.perf_counter()

    def finished(self, event: observers.Event) -> None:
        if event.device_times is not None:
            begin, end = event.device_times()
            seconds = (end - begin) / 1e9
        else:
            wait_for(self.backend, self.index)
            # of a kernel in a native program only the event knows the time
            seconds = max((event.end - event.begin) / 1e9, time.perf_counter() - self.start)
        self.seconds[id(event.work.attributes)] += seconds


def _times(
    executable: Executable, handles: Sequence[Handle], graph: Graph, device: Device
) -> dict[str, float]:
    """Return a dict: position of a node, as text -> seconds of its kernels in one run.

    The seconds are the median of several runs. `handles` are the inputs of the runs. The dict is
    empty if a run raises an error, such as that for an index out of range.
    """
    nodes = _by_attributes(graph)
    runs: list[dict[int, float]] = []
    end = time.perf_counter() + SECONDS
    watch = _Watch(device)
    observers.add(watch)
    try:
        run = executable.form.run
        run(*handles)  # the first run allocates
        while len(runs) < RUNS and (not runs or time.perf_counter() < end):
            watch.seconds.clear()
            run(*handles)
            one: dict[int, float] = collections.defaultdict(float)
            for key, seconds in watch.seconds.items():
                one[nodes.get(key, -1)] += seconds
            runs.append(one)
    except DuographError:
        return {}
    finally:
        observers.remove(watch)
    known = {at for one in runs for at in one if at >= 0}
    return {str(at): statistics.median([one.get(at, 0.0) for one in runs]) for at in sorted(known)}


def _by_attributes(graph: Graph) -> dict[int, int]:
    """Return a dict: id of a node's attributes -> position of the node.

    A running kernel is identified by its attributes object, which its node also holds. A node of a
    sub-graph counts as the node of the whole graph that contains it. The position is -1 if several
    nodes have the same attributes object.
    """
    found: dict[int, int] = {}

    def visit(inner: Graph, top: int | None) -> None:
        for k, node in enumerate(inner.nodes):
            at = k if top is None else top
            key = id(node.attributes)
            found[key] = at if found.get(key, at) == at else -1
            if node.op is not region:
                for each in node.graphs:
                    visit(each, at)

    visit(graph, None)
    return found


# ---- parameters and the gradient -----------------------------------------------------------------


def _parameters(program: CompiledProgram, names: Sequence[str]) -> list[ParameterFact]:
    """Return type, name and kind of each parameter of a program's graph.

    `names` are those of the tensor arguments.
    """
    found = []
    for k, (kind, v) in enumerate(program.inputs):
        if kind == "arg":
            name = _shown(argument_name(names, v))
        elif kind == "state":
            name = tensor_name(v)
        elif kind in ("attribute", "item", "cell"):
            name = str(v[1])
        else:
            name = kind
        found.append([repr(program.graph.types[k]), name, kind])
    return found


def _shown(name: str) -> str:
    """Return the name of an argument as the page shows it: "x" for "argument x"."""
    short = name.removeprefix("argument ")
    return name if short[:1].isdigit() else short


def _gradient(
    program: CompiledProgram, arguments: Sequence[str]
) -> list[tuple[str, Graph, list[ParameterFact]]] | str:
    """Return the forward and backward graph of a program's gradient, or why there is none.

    `arguments` are the names of the tensor arguments.
    """
    graph = program.graph
    wanted = []
    for (kind, v), t in zip(program.inputs, graph.types):
        differentiable = isinstance(t, TensorType) and t.dtype.kind in "fc"
        trained = isinstance(v, Parameter) and v.requires_grad
        wanted.append(differentiable and (kind == "arg" or (kind == "state" and trained)))
    results = [graph.types[i] for i in graph.outputs]
    present = [isinstance(t, TensorType) and t.dtype.kind in "fc" for t in results]
    if not any(wanted):
        return "no input of floating-point numbers is differentiated"
    if not any(present):
        return "no result consists of floating-point numbers"
    try:
        found = linearize(graph, wanted, present)
    except (DuographError, NeedsValue) as error:
        return str(error)
    names = [_shown(name) for name in input_names(program, arguments)]
    forward = [[repr(t), name, "arg"] for t, name in zip(found.forward.types, names)]
    types = found.backward.types[: found.backward.n_params]
    saved = [names[i] if i < len(names) else f"saved %{i}" for i in found.residuals]
    incoming = [f"d result {k}" for k, here in enumerate(present) if here]
    labels = [*saved, *incoming, *(f"input {k}" for k in range(len(types)))]
    backward = [[repr(t), label, "arg"] for t, label in zip(types, labels)]
    return [
        ("Gradient: forward", found.forward, forward),
        ("Gradient: backward", found.backward, backward),
    ]


# ---- source --------------------------------------------------------------------------------------


def _main_source(function: Value) -> tuple[str, int, int] | None:
    """Return (file, first line, last line) of the function, or None if its source is not found."""
    try:
        plain: Value = getattr(function, "__func__", function)
        found = source_of(inspect.unwrap(plain))
    except (UnsupportedSyntaxError, AttributeError):
        return None
    first = min([found.node.lineno, *[d.lineno for d in getattr(found.node, "decorator_list", ())]])
    return found.file, first, found.node.end_lineno


def _sources(graphs: GraphFacts, main: tuple[str, int, int] | None) -> list[dict[str, Any]]:
    """Return the source code that nodes come from: first the function `main`, then others."""
    lines: dict[str, set[int]] = {}
    for head in graphs.heads:
        if head[3] >= 0:
            lines.setdefault(graphs.files[head[3]], set()).add(head[4])
    parts = [] if main is None else [main]
    for file, wanted in lines.items():
        functions = _functions(file)
        for line in sorted(wanted):
            if not any(f == file and a <= line <= b for f, a, b in parts):
                inside = [(a, b) for a, b in functions if a <= line <= b]
                a, b = max(inside, default=(max(1, line - AROUND), line + AROUND))
                parts.append((file, a, b))
    shown = []
    for file, a, b in parts:
        text = textwrap.dedent("".join(linecache.getlines(file)[a - 1 : b])).splitlines()
        number = graphs.files.index(file) if file in graphs.files else -1
        shown.append({"file": number, "name": os.path.basename(file), "first": a, "lines": text})
    return shown


def _functions(file: str) -> list[tuple[int, int]]:
    """Return (first line, last line) of each function of a file; empty if it cannot be parsed."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]
