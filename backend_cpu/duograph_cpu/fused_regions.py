"""Tier 2: the fused regions of a program as C, built by the machine's compiler.

All regions of a program are printed into a few files, so that the cores build them side by side;
equal sources come from the disk cache. Of a region that goes on from a product only what follows is
compiled: the product's own kernel calls it on every piece of its result that is done.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from duograph.backend.codegen import C
from duograph.backend.codegen.c_regions import print_region
from duograph.backend.codegen.region_plan import gathered_in, overwrites, plan_region
from duograph.dtype import float32
from duograph.ir.epilogue import epilogue_of
from duograph.ir.text import to_text
from duograph.types import TensorType

from . import toolchain
from .kernels import EPILOGUE_OPS, KERNELS
from .region_calls import MOST_INDICES, make_call, make_product_call, make_staged_call

if TYPE_CHECKING:
    from duograph.backend.codegen.c_regions import PrintedRegion
    from duograph.backend.codegen.region_plan import RegionPlan
    from duograph.ir.epilogue import Epilogue
    from duograph.ir.graph import Graph

    from .convolution_chains import Affine
    from .native_program import NativeCall
    from .region_calls import Index

# Of what follows a product: its operand is in a cache already, piece by piece, so nothing is asked
# for ahead.
AFTER = dataclasses.replace(C, fetch="")

# Regions in one file: a compiler takes some 25 ms to start, and a few more for each.
PER_FILE = 8


def compile_regions(graphs: Sequence[Graph]) -> list[NativeCall | str]:
    """For each region a call, or the reason why there is none."""
    epilogues = [epilogue_of(graph, EPILOGUE_OPS) for graph in graphs]
    tails = [graph if e is None else e.tail for graph, e in zip(graphs, epilogues)]
    # what follows several products is one function; whole graphs differ from each other
    keys = [
        graph if e is None else to_text(e.tail, places=False) for graph, e in zip(graphs, epilogues)
    ]
    printed: dict[Graph | str, tuple[str, PrintedRegion, RegionPlan]] = {}
    for key, tail, epilogue in zip(keys, tails, epilogues):
        plan = None if key in printed else plan_region(tail)
        if plan is not None:
            name = f"region{len(printed) % PER_FILE}_{_hint(tail)}"
            printed[key] = name, print_region(AFTER if epilogue else C, name, plan), plan
    order = list(printed)
    files = [order[at : at + PER_FILE] for at in range(0, len(order), PER_FILE)]
    sources = []
    for file in files:
        text = "\n".join(printed[key][1].text for key in file)
        sources.append(toolchain.Source(text, C.prelude_for, C.version()))
    libraries: dict[Graph | str, toolchain.Library | toolchain.BuildFailure] = {}
    for file, library in zip(files, toolchain.build_all(sources), strict=True):
        if isinstance(library, toolchain.BuildFailure):
            _say(library.reason)
        libraries.update(dict.fromkeys(file, library))
    found: list[NativeCall | str] = []
    for graph, epilogue, key in zip(graphs, epilogues, keys):
        built = libraries.get(key)
        if built is None:
            found.append("its operands do not fit one loop nest")
        elif isinstance(built, toolchain.BuildFailure):
            found.append(built.reason)
        else:
            name, function, plan = printed[key]
            found.append(_call(graph, epilogue, built, name, function, plan))
    return found


def _tensor_type(graph: Graph, value: int) -> TensorType:
    """Return the type of a value of a region; all of them are tensors."""
    type_ = graph.types[value]
    assert isinstance(type_, TensorType)
    return type_


def _call(
    graph: Graph,
    epilogue: Epilogue | None,
    library: toolchain.Library,
    name: str,
    function: PrintedRegion,
    plan: RegionPlan,
) -> NativeCall | str:
    address = library.address(name)
    results = tuple([_tensor_type(graph, i) for i in graph.outputs])
    if epilogue is None:
        indices = _indices(graph, plan)
        if len(indices) > MOST_INDICES:
            return "it reads through too many indices"
        over = overwrites(plan)
        if indices or function.second:
            return make_staged_call(library, function, indices, graph.n_params, results, name, over)
        return make_call(
            address,
            function.n,
            function.grain,
            graph.n_params,
            results,
            name,
            overwrites=over,
            infallible=True,
        )
    node = epilogue.product
    operands = [i for i in node.operands if i is not None]
    types = tuple([_tensor_type(graph, i) for i in operands])
    value = _tensor_type(graph, node.results[0])
    product = KERNELS[node.op.name](types, (value,), **node.attributes)
    if product is None:
        return f"{node.op.name} has no kernel for these operands"
    return make_product_call(
        address,
        function,
        product,
        operands,
        value,
        epilogue.reads,
        graph.n_params,
        results,
        name,
        _affine(epilogue.tail) if node.op.name == "conv_channels_last" else None,
    )


# The greatest value that an op leaves.
LIMITS = {"relu": math.inf, "relu6": 6.0}


def _affine(tail: Graph) -> Affine | None:
    """The fields of `dg_affine` when what follows a convolution is min(max(value * scale + bias +
    more, low), high).

    Scale and bias are for each of the last axis, the channels; every part of it may be absent.
    """
    value = _tensor_type(tail, 0)
    found: dict[str, int] = {}
    at, low, high = 0, -math.inf, math.inf
    if value.dtype is not float32 or len(tail.outputs) != 1:
        return None
    for node in tail.nodes:
        name, others = node.op.name, [i for i in node.operands if i is not None and i != at]
        if low == 0 or len(others) != len(node.operands) - 1:
            return None
        if name in LIMITS:
            low, high = 0.0, LIMITS[name]
        elif (
            len(others) == 1
            and 0 < others[0] < tail.n_params
            and _tensor_type(tail, others[0]).dtype is float32
        ):
            type_ = _tensor_type(tail, others[0])
            whole = type_.shape == value.shape
            part = {"mul": "scale", "add": "more" if whole else "bias"}.get(name)
            each = type_.shape[-1:] == value.shape[-1:] and type_.size == value.shape[-1]
            order = ("scale", "bias", "more")
            if part is None or not (whole if part == "more" else each):
                return None
            if any(p in found for p in order[order.index(part) :]):
                return None
            found[part] = others[0]
        else:
            return None
        (at,) = node.results
    if tail.outputs != (at,):
        return None
    return found.get("scale", -1), found.get("bias", -1), found.get("more", -1), low, high


def _indices(graph: Graph, plan: RegionPlan) -> list[Index]:
    """What `make_staged_call` must know of the operands with indices."""
    found = {}
    for g in gathered_in(plan):
        place = plan.accesses[g.label].operand
        found[place, g.op, g.axis, g.n] = (place, _tensor_type(graph, place), g.op, g.axis, g.n)
    return list(found.values())


_said: set[str] = set()


def _say(reason: str) -> None:
    """Warn once of a reason why something was not built; the program goes on with the kernels of
    its ops.
    """
    if reason not in _said:
        _said.add(reason)
        warnings.warn(
            f"CPU: part of a compiled function runs op by op: {reason}",
            RuntimeWarning,
            stacklevel=2,
        )


def _hint(graph: Graph) -> str:
    """The last op that does something, for readers of the source and of profiles."""
    names = [
        node.op.name for node in graph.nodes if node.op.name not in ("fill", "reshape", "cast")
    ]
    return names[-1] if names else "copy"
