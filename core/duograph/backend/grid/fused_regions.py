"""Compiles fused regions (groups of ops that become one kernel) for GPU-style devices.

`GridBackend.compile` calls `compile_regions`. Every region is planned and scheduled as for the CPU
(`codegen.scheduling`); this module describes the device to the scheduler, generates the kernels and
sets up their launches. Reductions of columns are combined by the device's own reduction kernels,
and unless the device is a CPU, scatters run as separate kernels (`scatter_split`).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from ...dtype import DType, int32, int64
from ...errors import DeviceError, UnsupportedOpError
from ...ir.graph import Graph
from ...types import TensorType
from ..codegen.column_schedule import column_program, scatters_of
from ..codegen.expression import Expr, Number
from ..codegen.loop_printer import GridPrinter
from ..codegen.loop_program import LoopProgram, Work
from ..codegen.region_plan import RegionPlan, Scatter, overwrites, plan_region
from ..codegen.row_schedule import row_program
from ..codegen.scheduling import Target, element_program
from ..prepared import PreparedCall
from ..protocol import Call
from .device import GridDevice, GroupTooLargeError, Launch, Plan, Scalar
from .index_errors import RECORD, number_of
from .kernel_writer import ceil_div, stretch
from .movement import copy_launch, fill_launch
from .reductions import Combine, combine_of, combine_parts, parts_of, row_lanes
from .scatter_split import Split, joined, split_scatter
from .strides import dense

if TYPE_CHECKING:
    from .backend import GridBackend

__all__ = ["compile_regions", "region_plans", "source_of"]

# Regions in one source: every build has a fixed cost.
PER_SOURCE = 8
# The most work items of a group: if each computes an element or column, and if each computes a
# short row.
ITEMS, SHORT_ROWS = 256, 64


def _combine(device: GridDevice, kind: str, dtype: DType) -> Combine:
    """Return the object that emits source to combine two values of a reduction on a device.

    `kind` is "+" or "max".
    """
    return combine_of(device, "sum" if kind == "+" else kind, dtype)


def _target(device: GridDevice) -> Target:
    """Return the description of a device that the scheduler of fused regions needs."""
    combine = functools.partial(_combine, device)
    if device.serial:
        return Target(spans=True, combine=combine)
    return Target(
        spans=False,
        combine=combine,
        narrow=True,
        lanes=functools.partial(row_lanes, device),
        shared_warps=min(device.group, ITEMS) if device.dialect.shuffles else 0,
        split=functools.partial(parts_of, device),
    )


def _scheduled(device: GridDevice, plan: RegionPlan) -> LoopProgram:
    """Return the loop program of a fused region: its plan, scheduled for a device."""
    target = _target(device)
    if plan.columns is not None:
        return column_program(target, plan)
    return row_program(target, plan) if plan.row else element_program(target, plan)


def _division(
    device: GridDevice, program: LoopProgram
) -> tuple[tuple[int, int, int], tuple[int, int, int], tuple[Scalar, ...]]:
    """Return how to launch the kernel of a loop program.

    Returns (groups along three axes, work items of a group along three axes, scalar arguments that
    tell the kernel its size).
    """
    numbers: tuple[Scalar, ...] = ()
    items, groups = 1, program.size
    if program.work is Work.ITEM:
        items = min(device.group, ITEMS)
        groups = ceil_div(program.size, items)
    elif program.work is Work.GROUP:
        items = program.lanes * program.rows
        groups = ceil_div(program.size, program.rows)
    else:
        grain = 1
        if device.serial:
            least, most = ceil_div(2048, program.unit), ceil_div(1 << 16, program.unit)
            grain = stretch(device, program.size, least, most)
        else:
            items = min(device.group, ITEMS, SHORT_ROWS)
        groups = ceil_div(program.size, grain * items)
        numbers = (int64, program.size), (int64, grain)
    if program.count is not None:
        numbers = (*numbers, (int64, program.count))
    return (groups, 1, 1), (items, 1, 1), numbers


class _Printed(NamedTuple):
    """The generated kernel of a fused region, and the launches that must run before and after it.

    `name` is the kernel's name, `program` its schedule.
    """

    name: str
    program: LoopProgram
    before: list[Launch]
    after: list[Launch]


def region_plans(
    device: GridDevice, plans: Sequence[RegionPlan], names: Sequence[str]
) -> list[Plan]:
    """Return the launch plan of each fused region in `plans`; one source text has all the kernels.

    `names` are the names of their kernels.
    """
    texts, printed = [], []
    for plan, name in zip(plans, names, strict=True):
        program = _scheduled(device, plan)
        texts.append(GridPrinter(device.dialect, program).kernel(name))
        before = [_start(device, plan, v) for v in scatters_of(plan)]
        printed.append(_Printed(name, program, before, _combined(device, plan, program)))
    source = "\n".join(texts)
    made = []
    for name, program, before, after in printed:
        scratch = tuple([x.nbytes for x in program.partials])
        buffers = range(program.n_operands + len(program.results) + len(scratch))
        groups, items, numbers = _division(device, program)
        watched = [(int32, number_of(*w)) for w in program.watched]
        kernel = Launch(
            source,
            name,
            (*buffers, *([RECORD] if program.checks else [])),
            (*numbers, *watched),
            groups,
            items,
        )
        made.append(Plan((*before, kernel, *after), scratch))
    return made


def _combined(device: GridDevice, plan: RegionPlan, program: LoopProgram) -> list[Launch]:
    """Return the launches that combine the partial results of a region's column reductions."""
    if not program.partials:
        return []
    assert plan.columns is not None
    outer, _, width = plan.columns
    pieces = program.partials[0].size // (outer * width)
    results = {name: (k, dtype) for k, (name, dtype) in enumerate(plan.outputs)}
    kinds = {v.name: v.node.op.traits.reduction or "" for v in plan.values}
    found = []
    for k, part in enumerate(program.partials):
        at, dtype = results[part.name]
        target = plan.n_operands + at, dtype
        source = plan.n_operands + len(plan.outputs) + k
        name = _combine(device, kinds[part.name], dtype).name
        found.append(combine_parts(device, name, (outer, pieces, width), source, target))
    return found


def _start(device: GridDevice, plan: RegionPlan, v: Scatter) -> Launch:
    """Return the launch that initialises a scatter's result, by a copy or with a constant."""
    assert plan.columns is not None
    whole = TensorType.of((plan.columns.outer * v.at.n * plan.columns.width,), v.dtype)
    result = plan.n_operands + [name for name, _ in plan.outputs].index(v.name)
    if isinstance(v.start, Expr):
        return fill_launch(device, whole, cast("Number", v.start.value), result)
    strides = dense(whole.shape)
    source, target = (v.start, strides, 0, whole.size), (result, strides, 0, whole.size)
    return copy_launch(device, whole.dtype, whole.shape, source, target)


def compile_regions(
    backend: GridBackend, device: GridDevice, planned: GridDevice, graphs: Sequence[Graph]
) -> list[Call | str]:
    """Compile fused regions, the graphs in `graphs`, for a device.

    Args:
        planned: `device`, or a description of it with smaller groups (`device.fitting`), for which
            launches are planned.

    Returns:
        for each region a prepared call, or the reason why the device cannot compile it.

    Raises:
        GroupTooLargeError: a kernel cannot run with groups of its launch's size; the caller then
            repeats the call with smaller groups in `planned`.
    """
    found: list[Call | str] = ["its operands do not fit one loop nest"] * len(graphs)
    splits: dict[int, Split] = {}
    plans: dict[int, RegionPlan | None] = {}
    for k, graph in enumerate(graphs):
        split = None if device.serial else split_scatter(backend, planned, graph)
        if isinstance(split, str):
            found[k] = split
            continue
        if split is not None:
            splits[k] = split
        inner = graph if split is None else split.graph
        plan = None if inner is None else plan_region(inner)
        if plan is not None or inner is None:
            plans[k] = plan
    order = list(plans)
    for begin in range(0, len(order), PER_SOURCE):
        keys = order[begin : begin + PER_SOURCE]
        names = {k: f"region{at}_{_hint(graphs[k])}" for at, k in enumerate(keys)}
        regions = {k: p for k in keys if (p := plans[k]) is not None}
        made = region_plans(planned, list(regions.values()), [names[k] for k in regions])
        launches = dict(zip(regions, made))
        for k in keys:
            n_params, plan_ = graphs[k].n_params, launches.get(k)
            whole = joined(splits[k], plan_, n_params) if k in splits else launches[k]
            region = None if k in splits else plans[k]
            found[k] = _call(backend, device, names[k], whole, graphs[k], region)
    return found


def source_of(backend: GridBackend, planned: GridDevice, graph: Graph) -> str | None:
    """Return the source of a fused region's kernels, or None if the region cannot be planned.

    `planned` is the device, or a description of it with smaller groups (`device.fitting`).
    """
    split = None if planned.serial else split_scatter(backend, planned, graph)
    if isinstance(split, str):
        return None
    plan = plan_region(graph if split is None or split.graph is None else split.graph)
    if plan is None:
        return None
    (made,) = region_plans(planned, [plan], [f"region_{_hint(graph)}"])
    return "\n".join(dict.fromkeys(launch.source for launch in made.launches))


def _call(
    backend: GridBackend,
    device: GridDevice,
    name: str,
    plan: Plan,
    graph: Graph,
    region: RegionPlan | None,
) -> Call | str:
    """Return the prepared call of a fused region, or the reason why the device cannot build it.

    `plan` has the launches; `name` is for messages. `region` is the region's plan if one kernel
    computes the whole region, else None; from it follows which results may overwrite operands.

    Raises:
        GroupTooLargeError: a kernel cannot run with groups of its launch's size.
    """
    results = tuple([graph.types[i] for i in graph.outputs])
    over = () if region is None or region.columns is not None else tuple(overwrites(region))
    try:
        run = backend.call(device, name, plan, graph.n_params, results, graph.single)
        return PreparedCall(run, over) if over and not isinstance(run, PreparedCall) else run
    except GroupTooLargeError:
        raise  # all regions are planned again
    except (DeviceError, UnsupportedOpError) as error:
        _warn(backend.name, str(error))
        return str(error)


_warned: set[str] = set()


def _warn(name: str, reason: str) -> None:
    """Warn, once for each reason, that a fused kernel was not built and its ops run one by one.

    `name` is the name of the backend.
    """
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(
            f"{name}: part of a compiled function runs op by op: {reason}",
            RuntimeWarning,
            stacklevel=2,
        )


def _hint(graph: Graph) -> str:
    """Return a part of the kernel's name that tells what the region does: the name of its last op.

    Fills, reshapes and casts are ignored; the result is "copy" if there is no other op.
    """
    names = [
        node.op.name for node in graph.nodes if node.op.name not in ("fill", "reshape", "cast")
    ]
    return names[-1] if names else "copy"
