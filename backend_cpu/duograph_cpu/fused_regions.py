"""Compiles the fused regions of a program (ops that become one kernel) with the C compiler.

`CPU.compile` calls `compile_regions`. The C source of all regions of a program is written to a few
files, which compilers build in parallel; libraries of equal sources come from the disk cache. If a
region begins with a matmul or convolution, only its elementwise rest (the epilogue) is compiled,
and the prebuilt kernel calls the compiled function on each part of its result as soon as the part
is complete. Nothing here decides which ops form a region.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from duograph.backend.codegen import C
from duograph.backend.codegen.c_regions import PrintedRegion, print_region
from duograph.backend.codegen.dialect import Dialect
from duograph.backend.codegen.region_plan import RegionPlan, gathered_in, overwrites, plan_region
from duograph.backend.sizes import scope_of
from duograph.dtype import float32
from duograph.ir.epilogue import Epilogue, epilogue_of
from duograph.ir.graph import Graph
from duograph.ir.text import to_text
from duograph.types import TensorType

from . import toolchain
from .convolution_chains import Affine
from .kernels import EPILOGUE_OPS, KERNELS
from .native_call import NativeCall
from .region_calls import (
    MOST_INDICES,
    IndexOperand,
    Tail,
    make_call,
    make_epilogue_call,
    make_staged_call,
)
from .sized_source import build_sized, generalised, refuse
from .sized_structs import SizeTable

# The dialect of epilogues: the first operand is in a cache already, so nothing is prefetched.
EPILOGUE = dataclasses.replace(C, fetch="")

# Regions in one file: a compiler takes about 25 ms to start, and a few more for each.
PER_FILE = 8


class _Printed(NamedTuple):
    """The C source of a fused region (ops that one kernel computes), and its loop plan.

    Attributes:
        name: name of its first C function.
        table: the sizes that its functions read; None if all sizes are numbers.
    """

    name: str
    function: PrintedRegion
    plan: RegionPlan
    table: SizeTable | None = None


def compile_regions(graphs: Sequence[Graph]) -> list[NativeCall | str]:
    """Compile fused regions as C; return for each a prepared call or the reason for the failure."""
    epilogues = [epilogue_of(graph, EPILOGUE_OPS) for graph in graphs]
    tails = [graph if e is None else e.tail for graph, e in zip(graphs, epilogues)]
    # equal epilogues of several kernels are one function; whole regions differ from each other
    keys: list[Graph | str] = [
        graph if e is None else to_text(e.tail, locations=False)
        for graph, e in zip(graphs, epilogues)
    ]
    printed: dict[Graph | str, _Printed] = {}
    for key, tail, epilogue in zip(keys, tails, epilogues):
        plan = None if key in printed else plan_region(tail)
        if plan is not None:
            name = f"region{len(printed) % PER_FILE}_{_hint(tail)}"
            printed[key] = _printed(EPILOGUE if epilogue else C, name, plan, tail)
    libraries = _built(printed, any([graph.varying for graph in graphs]))
    found: list[NativeCall | str] = []
    for graph, epilogue, key in zip(graphs, epilogues, keys):
        library = libraries.get(key)
        if library is None:
            found.append("its operands do not fit one loop nest")
        elif isinstance(library, toolchain.BuildFailure):
            found.append(library.reason)
        elif epilogue is None:
            found.append(_region_call(graph, library, printed[key]))
        else:
            found.append(_epilogue_call(graph, epilogue, library, printed[key]))
    return found


def _printed(dialect: Dialect, name: str, plan: RegionPlan, graph: Graph) -> _Printed:
    """Print the C functions of a fused region whose graph is `graph`.

    If sizes are symbolic, the functions read them from a table, whose address is one more operand.
    """
    sizes = [n for t in _types(graph, range(len(graph.types))) for n in t.shape]
    scope = scope_of([*sizes, *[v for node in graph.nodes for v in node.attributes.values()]])
    if scope is None:
        return _Printed(name, print_region(dialect, name, plan), plan)
    table, write = SizeTable(), scope.write
    scope.write = table.name
    try:
        made = print_region(dialect, name, plan._replace(n_operands=plan.n_operands + 1))
    finally:
        scope.write = write
    return _Printed(name, made._replace(text=table.read(made.text, plan.n_operands)), plan, table)


def source_of(graph: Graph) -> str | None:
    """Return the C source of a fused region's kernel; None if it does not fit one loop nest."""
    epilogue = epilogue_of(graph, EPILOGUE_OPS)
    tail = graph if epilogue is None else epilogue.tail
    plan = plan_region(tail)
    if plan is None:
        return None
    return print_region(EPILOGUE if epilogue else C, f"region_{_hint(tail)}", plan).text


def _built(
    printed: dict[Graph | str, _Printed], varying: bool
) -> dict[Graph | str, toolchain.Library | toolchain.BuildFailure]:
    """Compile the C source of fused regions; return a dict from region key to library or failure.

    With `varying`, the same regions will be compiled again for other sizes; sources that differ
    only in numbers are then compiled once.
    """
    order = list(printed)
    files = [order[at : at + PER_FILE] for at in range(0, len(order), PER_FILE)]
    sources = []
    for file in files:
        text = "\n".join(printed[key].function.text for key in file)
        sources.append(toolchain.Source(text, C.prelude_for, C.version()))
    libraries: dict[Graph | str, toolchain.Library | toolchain.BuildFailure] = {}
    built = _built_once(sources) if varying else toolchain.build_all(sources)
    for file, library in zip(files, built, strict=True):
        if isinstance(library, toolchain.BuildFailure):
            _warn(library.reason)
        libraries.update(dict.fromkeys(file, library))
    return libraries


def _built_once(
    sources: Sequence[toolchain.Source],
) -> list[toolchain.Library | toolchain.BuildFailure]:
    """Return the libraries of C sources; sources that differ only in numbers are compiled once."""
    found: list[toolchain.Library | toolchain.BuildFailure | None] = []
    for source in sources:
        sized = generalised(source.text)
        library = None
        if sized is not None:
            library = build_sized(source, sized)
            if isinstance(library, toolchain.BuildFailure):
                refuse(sized)
                library = None
        found.append(library)
    rest = iter(toolchain.build_all([s for s, b in zip(sources, found) if b is None]))
    return [next(rest) if library is None else library for library in found]


def _types(graph: Graph, values: Sequence[int | None]) -> tuple[TensorType, ...]:
    """Return the tensor types of graph values, given by their ids, without absent ones."""
    found = [graph.types[i] for i in values if i is not None]
    return tuple([t for t in found if isinstance(t, TensorType)])


def _region_call(graph: Graph, library: toolchain.Library, printed: _Printed) -> NativeCall | str:
    """Return the prepared call of a fused region, or the reason why there is none.

    It is for regions that do not begin with a matmul or convolution.
    """
    name, function, plan, table = printed
    results = _types(graph, graph.outputs)
    indices = _indices(graph, plan)
    if len(indices) > MOST_INDICES:
        return "it reads through too many indices"
    over = overwrites(plan)
    if indices or function.second:
        return make_staged_call(
            library, function, indices, graph.n_params, results, name, over, table
        )
    return make_call(
        library.function(name),
        function.n,
        function.grain,
        graph.n_params,
        results,
        name,
        overwrites=over,
        infallible=True,
        table=table,
    )


def _epilogue_call(
    graph: Graph, epilogue: Epilogue, library: toolchain.Library, printed: _Printed
) -> NativeCall | str:
    """Return the prepared call of a matmul or convolution with a compiled elementwise epilogue.

    An epilogue is elementwise code on the result. Returns the reason for the failure if the matmul
    or convolution has no kernel for its operands.
    """
    node = epilogue.product
    (value,) = _types(graph, node.results)
    kernel = KERNELS[node.op.name](_types(graph, node.operands), (value,), **node.attributes)
    if kernel is None:
        return f"{node.op.name} has no kernel for these operands"
    tail = Tail(
        library.function(printed.name),
        printed.function,
        tuple([i for i in node.operands if i is not None]),
        value,
        epilogue.reads,
        graph.n_params,
        _types(graph, graph.outputs),
        printed.name,
        _affine(epilogue.tail) if node.op.name == "conv_channels_last" else None,
        printed.table,
    )
    return make_epilogue_call(kernel, tail)


# The largest value of the result of an op whose smallest is 0.
LIMITS = {"relu": math.inf, "relu6": 6.0}


def _affine(tail: Graph) -> Affine | None:
    """Return a convolution's epilogue as an `Affine` (scale, add, clip); None for other forms.

    `tail` is the epilogue's graph; its first parameter is the convolution's result.
    """
    value, *others = _types(tail, range(tail.n_params))
    at, found, low, high = 0, dict[str, int](), -math.inf, math.inf
    if value.dtype is not float32 or len(tail.outputs) != 1:
        return None
    for node in tail.nodes:
        read = [i for i in node.operands if i != at and i is not None]
        if low == 0 or len(read) != len(node.operands) - 1:
            return None
        if node.op.name in LIMITS:
            low, high = 0.0, LIMITS[node.op.name]
        elif len(read) == 1 and 0 < read[0] < tail.n_params:
            part = _affine_part(node.op.name, value, others[read[0] - 1])
            order = ("scale", "bias", "more")
            if part is None or any(p in found for p in order[order.index(part) :]):
                return None
            found[part] = read[0]
        else:
            return None
        (at,) = node.results
    if tail.outputs != (at,):
        return None
    scale, bias, more = (found.get(part, -1) for part in ("scale", "bias", "more"))
    return Affine(scale, bias, more, low, high)


def _affine_part(op: str, value: TensorType, other: TensorType) -> str | None:
    """Return which field of `Affine` an op's operand can be: "more", "scale" or "bias".

    `op` is the op's name, `value` the type of the convolution's result, `other` the type of the
    operand. Returns None if it can be none of them, such as an operand that is not float32.
    """
    if other.dtype is not float32:
        return None
    if op == "add" and other.shape == value.shape:
        return "more"
    each = other.shape[-1:] == value.shape[-1:] and other.size == value.shape[-1]
    return {"mul": "scale", "add": "bias"}.get(op) if each else None


def _indices(graph: Graph, plan: RegionPlan) -> list[IndexOperand]:
    """Return the operands of a fused region that hold indices, once for each indexed axis."""
    found: dict[tuple[int, str, int, int], IndexOperand] = {}
    for g in gathered_in(plan):
        operand = plan.accesses[g.label].operand
        (type_,) = _types(graph, (operand,))
        found[operand, g.op, g.axis, g.n] = IndexOperand(operand, type_, g.op, g.axis, g.n)
    return list(found.values())


_warned: set[str] = set()


def _warn(reason: str) -> None:
    """Warn, once for each reason, that a fused region was not built and runs op by op instead."""
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(
            f"CPU: part of a compiled function runs op by op: {reason}",
            RuntimeWarning,
            stacklevel=2,
        )


def _hint(graph: Graph) -> str:
    """Return a part of a fused region's function name: the name of its last op.

    Fills, reshapes and casts are ignored; the result is "copy" if there is no other op.
    """
    names = [
        node.op.name for node in graph.nodes if node.op.name not in ("fill", "reshape", "cast")
    ]
    return names[-1] if names else "copy"
