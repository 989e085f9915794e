"""Prints fused regions (`codegen.region_plan`) as kernels of a grid.

On a processor the loops of `codegen.loops` run over the stretch of one work item. On a grid an item
has one element, and a group shares a row: its items take the elements in turn, and what a pass
reduces is combined in group memory.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dtype import DType, int32, int64
from ...errors import DeviceError, UnsupportedOpError
from ...types import TensorType
from ..codegen.columns import ColumnLoop
from ..codegen.dialect import SUFFIX
from ..codegen.expression import Expr, compute_dtype, s
from ..codegen.loops import ElementLoop, RowLoop, Writer
from ..codegen.printer import print_expression
from ..codegen.region_plan import (
    SCATTERS,
    Columns,
    Gathered,
    Reduction,
    RegionPlan,
    gathered_in,
    plan_region,
)
from ..protocol import Call
from .device import GridDevice, Launch, Plan
from .index_errors import RECORD, number_of
from .kernel_writer import NARROW, ceil_div, stretch
from .movement import copy_launch, fill_launch
from .reductions import Combine, combine_of, combine_parts, lanes_for, parts_of
from .strides import dense

if TYPE_CHECKING:
    from ...ir.graph import Graph
    from .backend import GridBackend

__all__ = ["compile_regions", "region_plans"]

# Regions in one source: a build has a price of its own.
PER_SOURCE = 8
# Rows up to this long have a single item on a grid; elements of a longer row that an item keeps
# between passes.
SHORT_ROW, KEPT = 16, 16


def watched(plan: RegionPlan) -> list[tuple[str, int]]:
    """Ops and axes that indices of the region are for, each once."""
    return list(dict.fromkeys((g.op, g.axis) for g in gathered_in(plan)))


class _Kernel(Writer):
    """A region as a kernel: its operands and results are the parameters."""

    def head(self, name: str) -> str:
        dtypes = {a.index: SUFFIX[a.dtype] for a in self.plan.accesses.values()}
        parameters = [
            f"{self.memory}const {dtypes.get(k, 'u8')} *arg{k}" for k in range(self.plan.n_operands)
        ]
        parameters += [
            f"{self.memory}{SUFFIX[dtype]} *DG_RESTRICT out{k}"
            for k, (_, dtype) in enumerate(self.plan.outputs)
        ]
        parameters += self.sums_between()
        if self.gathers:
            parameters.append(f"{self.memory}i64 *record")
        parameters += self.numbers()
        parameters += [f"const i32 watched{k}" for k in range(len(watched(self.plan)))]
        return f"{self.dialect.kernel} void {name}({', '.join(parameters)}) {{"

    def numbers(self) -> list[str]:
        """Parameters after the buffers."""
        return []

    def sums_between(self) -> list[str]:
        """Parameters for what a second launch goes on from."""
        return []

    def tail(self) -> list[str]:
        return []

    def wrong(self, label: str, g: Gathered) -> None:
        number = f"watched{watched(self.plan).index((g.op, g.axis))}"
        claim = f"dg_atomic_claim_i32(({self.memory}i32 *)record, {number})"
        self.line(f"if ((u64){label}_counted >= {g.n} && {claim}) {{")
        self.line(f"    record[1] = {g.label}, record[2] = {g.n};")
        self.line("}")

    def operands(self) -> None:
        for label, a in self.plan.accesses.items():
            self.line(f"{self.memory}const {SUFFIX[a.dtype]} *const {label}_data = arg{a.index};")


class _Stretch(_Kernel):
    """Begins with the stretch of work that an item has."""

    def numbers(self) -> list[str]:
        return ["const i64 total", "const i64 grain"]

    def operands(self) -> None:
        super().operands()
        self.line("const i64 begin = DG_ITEM(0) * grain;")
        self.line("const i64 end = total - begin < grain ? total : begin + grain;")


class _ElementStretch(_Stretch, ElementLoop):
    """Elements one after the other."""


class _RowStretch(_Stretch, RowLoop):
    """Rows one after the other."""


class _Element(_Kernel, ElementLoop):
    """One element for each item."""

    def body(self) -> None:
        plan = self.plan
        self.line(f"const {self.index} i = ({self.index})DG_ITEM(0);")
        self.line(f"if (i >= {plan.n}) return;")
        values = self.closure([name for name, _ in plan.outputs], set())
        labels = self.read_by(values)
        moving = [x for x in labels if self.moves(x)]
        at = "i"
        if len(plan.axes) > 1:
            self.line(f"const {self.index} row = i / {self.inner}, j = i - row * {self.inner};")
            self.offsets(plan.axes[:-1], "row")
            at = "j"
        self.hoist(x for x in labels if x not in moving)
        for x in moving:
            self.point(x)
            self.load(x, at)
        for v in values:
            self.define(v)
        for k, (name, dtype) in enumerate(plan.outputs):
            self.line(f"out{k}[i] = {self.dialect.store(dtype, name)};")


class _GroupRow(_Kernel, RowLoop):
    """One row for each group of `lanes` items."""

    def __init__(self, device: GridDevice, plan: RegionPlan) -> None:
        self.device = device
        self.lanes = lanes_for(device, plan.row)
        self.each = ceil_div(plan.row, self.lanes)
        super().__init__(device.dialect, plan)

    def to_keep(self) -> set[str]:
        return super().to_keep() if self.each <= KEPT else set()

    def body(self) -> None:
        self.line(f"enum {{ lanes = {self.lanes} }};")
        sums = [v for v in self.plan.values if isinstance(v, Reduction)]
        for type_ in sorted({SUFFIX[self.combine(v).dtype] for v in sums}):
            self.line(f"DG_SHARED {type_} shared_{type_}[lanes];")
        self.line("const i32 lane = DG_PLACE(0);")
        self.line(f"const {self.index} row = ({self.index})DG_GROUP(0);")
        for name in sorted(self.kept):
            type_ = SUFFIX[compute_dtype(self.values[name].dtype)]
            self.line(f"{type_} {name}_kept[{self.each}];")
        self.passes(self.start_row())
        for k, (name, dtype) in enumerate(self.plan.outputs):
            if name not in self.inner_values:
                self.line(f"if (lane == 0) out{k}[row] = {self.dialect.store(dtype, name)};")

    def combine(self, v: Reduction) -> Any:
        """How the reduction is done."""
        return combine_of(self.device, "sum" if v.kind == "+" else "max", v.dtype)

    def walk(self, stage: int, targets: list[str], known: set[str], moving: list[str]) -> None:
        """One pass over the row by all items of the group."""
        sums = [v for v in self.plan.values if isinstance(v, Reduction) and v.stage == stage + 1]
        loads_kept = {n for n in self.kept if self.values[n].stage < stage}
        values = self.closure(targets, known | loads_kept)
        for v in sums:
            c = self.combine(v)
            self.line(f"{SUFFIX[c.dtype]} {v.name}_acc = {c.start};")
        self.open(f"for (i32 q = 0; q < {self.each}; q++)")
        self.line(f"const {self.index} j = lane + q * lanes;")
        if self.each * self.lanes > self.plan.row:
            self.line(f"if (j >= {self.plan.row}) break;")
        used = set(self.read_by(values))
        for x in moving:
            if x in used:
                self.load(x, "j")
        wanted = {u for v in values for u in v.uses} | set(targets)
        for name in sorted(loads_kept & wanted):
            type_ = SUFFIX[compute_dtype(self.values[name].dtype)]
            self.line(f"const {type_} {name} = {name}_kept[q];")
        for value in values:
            self.define(value)
            if value.name in self.kept and value.stage == stage:
                self.line(f"{value.name}_kept[q] = {value.name};")
        for k, (name, dtype) in enumerate(self.plan.outputs):
            if name in self.inner_values and self.values[name].stage == stage:
                self.line(f"out{k}_row[j] = {self.dialect.store(dtype, name)};")
        for v in sums:
            self.line(self.combine(v).text(f"{v.name}_acc", self.source(v)))
        self.close()
        for v in sums:
            self.share(v)
            known.add(v.name)

    def source(self, v: Reduction) -> str:
        """The text of an element that is reduced, in the dtype of the sum."""
        made = compute_dtype(self.values[v.source].dtype)
        acc: DType = self.combine(v).dtype
        return print_expression(self.dialect, s.cast(Expr("input", made, (), v.source), acc))[1]

    def share(self, v: Reduction) -> None:
        """Combine over the group; afterwards every item knows the value under its name."""
        c = self.combine(v)
        acc, shared = f"{v.name}_acc", f"shared_{SUFFIX[c.dtype]}"
        self.line(f"{shared}[lane] = {acc};")
        self.line("DG_BARRIER();")
        self.open("for (i32 far = lanes / 2; far > 0; far /= 2)")
        self.line(f"if (lane < far) {{ {c.text(f'{shared}[lane]', f'{shared}[lane + far]')} }}")
        self.line("DG_BARRIER();")
        self.close()
        type_ = SUFFIX[compute_dtype(v.dtype)]
        self.line(f"const {type_} {v.name} = ({type_}){shared}[0];")
        self.line("DG_BARRIER();")


class _Sums(_Kernel, ColumnLoop):
    """A region with columns: pieces of them are combined as the device's own reductions do it."""

    device: GridDevice

    def combine(self, v: Reduction) -> Combine:
        """How the reduction is done."""
        return combine_of(self.device, "sum" if v.kind == "+" else "max", v.dtype)

    def sums_between(self) -> list[str]:
        if self.cut.pieces == 1:
            return []
        return [
            f"{self.memory}{self.accumulator(v)} *DG_RESTRICT {v.name}_parts" for v in self.sums
        ]

    def accumulator(self, v: Reduction) -> str:
        return SUFFIX[self.combine(v).dtype]

    def begin(self, v: Reduction) -> str:
        return self.combine(v).start

    def take(self, v: Reduction, sum_: str, text: str) -> str:
        return self.combine(v).text(sum_, text)

    def source(self, v: Reduction) -> str:
        element = Expr("input", compute_dtype(self.values[v.source].dtype), (), v.source)
        return print_expression(self.dialect, s.cast(element, self.combine(v).dtype))[1]

    def kept(self, v: Reduction, text: str) -> str:
        """The text of a sum, as its target stores it."""
        if self.cut.pieces > 1 or v.dtype is self.combine(v).dtype:
            return text
        return (
            self.dialect.store(v.dtype, text)
            if v.dtype.is_floating
            else f"({SUFFIX[v.dtype]}){text}"
        )

    def value(self, v: Reduction) -> str:
        return self.kept(v, f"{v.name}[j]")

    def firsts(self) -> list[Launch]:
        """The launches that write what the results of scatters begin as."""
        found = []
        for v in self.scatters:
            whole = TensorType.of((self.columns.outer * v.at.n * self.columns.width,), v.dtype)
            place = self.plan.n_operands + self.results[v.name]
            found.append(_begin(self.device, whole, v.begin, place))
        return found

    def seconds(self) -> tuple[list[Launch], list[int]]:
        """The launches that combine pieces, and bytes of the memory for each."""
        outer, _, width = self.columns
        pieces = self.cut.pieces
        if pieces == 1:
            return [], []
        results = len(self.plan.outputs)
        found, sizes = [], []
        for k, v in enumerate(self.sums):
            c = self.combine(v)
            target = self.plan.n_operands + self.results[v.name], v.dtype
            source = self.plan.n_operands + results + k
            found.append(combine_parts(self.device, c.name, (outer, pieces, width), source, target))
            sizes.append(outer * pieces * width * c.dtype.itemsize)
        return found, sizes


class _ColumnStretch(_Stretch, _Sums):
    """Pieces of columns one after the other."""

    def __init__(self, device: GridDevice, plan: RegionPlan) -> None:
        self.device = device
        super().__init__(device.dialect, plan)


class _Column(_Sums):
    """One column of a piece for each item."""

    def __init__(self, device: GridDevice, plan: RegionPlan) -> None:
        self.device = device
        super().__init__(device.dialect, plan)
        outer, rows, width = self.columns
        self.cut.piece = ceil_div(rows, parts_of(device, outer, rows, width))
        self.cut.pieces = ceil_div(rows, self.cut.piece)

    def body(self) -> None:
        (outer, rows, width), cut, index = self.columns, self.cut, self.index
        values = self.wanted()
        labels = self.read_by(values)
        moving = [x for x in labels if self.moves(x)]
        self.line(f"const {index} at = ({index})DG_ITEM(0);")
        self.line(f"if (at >= {outer * cut.pieces * width}) return;")
        self.line(f"const {index} piece = at / {width}, j = at - piece * {width};")
        self.line(
            f"const {index} top = piece / {cut.pieces} * {rows} + piece % {cut.pieces} * {cut.piece};"
        )
        self.line(f"const {index} last = (piece / {cut.pieces} + 1) * {rows};")
        self.line(f"const {index} bottom = last - top < {cut.piece} ? last : top + {cut.piece};")
        for v in self.sums:
            self.line(f"{self.accumulator(v)} {v.name} = {self.begin(v)};")
        self.open(f"for ({index} row = top; row < bottom; row++)")
        self.offsets(self.plan.axes[:-1], "row")
        self.hoist(x for x in labels if x not in moving)
        for x in moving:
            self.point(x)
            self.load(x, "j")
        for value in values:
            self.define(value)
        for k, name, dtype in self.inner_results:
            self.line(f"out{k}[row * {width} + j] = {self.dialect.store(dtype, name)};")
        for v in self.sums:
            self.line(self.take(v, v.name, self.source(v)))
        self.close()
        for v in self.sums:
            target = f"{v.name}_parts" if cut.pieces > 1 else f"out{self.results[v.name]}"
            self.line(f"{target}[at] = {self.kept(v, v.name)};")


def _reach(plan: RegionPlan) -> int:
    """The farthest place in any buffer, or the number of elements."""
    found = [plan.n]
    for a in plan.accesses.values():
        far = sum((size - 1) * step for size, step in zip(plan.axes, a.steps, strict=True))
        found.append(far + (a.gathered.n * a.gathered.step if a.gathered is not None else 0))
    return max(found)


def region_plans(
    device: GridDevice, plans: Sequence[RegionPlan], names: Sequence[str]
) -> list[Plan]:
    """What is launched for each region; their kernels share one source."""
    texts, found = [], []
    for plan, name in zip(plans, names, strict=True):
        writer, groups, size, scalars = _printed(device, plan)
        if _reach(plan) < NARROW and not device.serial:
            writer.index = "i32"
        texts.append(writer.function(name))
        before: list[Launch] = []
        after: list[Launch] = []
        scratch: list[int] = []
        if isinstance(writer, _Sums):
            before, (after, scratch) = writer.firsts(), writer.seconds()
        found.append((name, plan, groups, size, scalars, before, after, scratch))
    source = "\n".join(texts)
    made = []
    for name, plan, groups, size, scalars, before, after, scratch in found:
        places = range(plan.n_operands + len(plan.outputs) + len(scratch))
        main = Launch(
            source,
            name,
            (*places, *([RECORD] if watched(plan) else [])),
            (*((int64, v) for v in scalars), *((int32, number_of(*w)) for w in watched(plan))),
            (groups, 1, 1),
            (size, 1, 1),
        )
        made.append(Plan((*before, main, *after), tuple(scratch)))
    return made


def _begin(device: GridDevice, whole: TensorType, begin: int | Expr, place: int) -> Launch:
    """The launch that gives the tensor at a place what it begins as: an operand, or one number
    throughout.
    """
    if isinstance(begin, Expr):
        return fill_launch(device, whole, begin.value, place)
    steps = dense(whole.shape)
    return copy_launch(
        device,
        whole.dtype,
        whole.shape,
        (begin, steps, 0, whole.size),
        (place, steps, 0, whole.size),
    )


class _Apart(NamedTuple):
    """A region that ends in a scatter, taken apart: on a grid the rows go where the op's own
    kernels put them.

    Attributes:
        graph: the rest of the region, which also gives the updates; None when those are an operand.
        places: of the results of `graph` among the buffers of the call.
        scatter: what is launched then.
        scratch: bytes of the memory of both.
    """

    graph: Graph | None
    places: tuple[int, ...]
    scatter: tuple[Launch, ...]
    scratch: tuple[int, ...]


def _apart(backend: GridBackend, device: GridDevice, graph: Graph) -> _Apart | str | None:
    """The region taken apart where it has to be, or the reason why it cannot be."""
    node = next((n for n in graph.nodes if n.op.name in SCATTERS), None)
    if node is None or device.serial:
        return None
    target, indices, updates = (i or 0 for i in node.operands)
    types: Sequence[Any] = graph.types
    (result,) = node.results
    place = {i: i for i in range(graph.n_params)}
    place.update((i, graph.n_params + k) for k, i in enumerate(graph.outputs))
    outputs = [i for i in graph.outputs if i != result]
    scratch: list[int] = []
    last = graph.n_params + len(graph.outputs)
    if updates not in place:
        place[updates] = last
        scratch.append(types[updates].nbytes)
        outputs.append(updates)
    operands = (types[target], types[indices], types[updates])
    plan = backend.plan(device, node.op, operands, (types[result],), node.attributes)
    if not isinstance(plan, Plan) or any(0 in x.buffers for x in plan.launches[1:]):
        return f"{node.op.name} has no plan that begins with a copy"
    own = [place.get(target, place[result]), place[indices], place[updates], place[result]]
    own += range(last + len(scratch), last + len(scratch) + len(plan.scratch))
    launches = _elsewhere(plan, own)
    if target not in place:  # one number throughout: instead of a copy
        fill = next(n for n in graph.nodes if target in n.results)
        value = (
            fill.attributes["value"]
            if fill.op.name == "fill"
            else fill.attributes["value"].array.item()
        )
        launches[0] = fill_launch(device, types[target], value, place[result])
    from ...ir.graph import Graph, live_nodes  # whose package is above this one

    rest = live_nodes([n for n in graph.nodes if n is not node], set(outputs))
    made = {r for n in rest for r in n.results}
    inner = (
        Graph(graph.n_params, list(types), rest, tuple(outputs), len(outputs) == 1)
        if made
        else None
    )
    scratch += plan.scratch
    return _Apart(inner, tuple(place[i] for i in outputs), tuple(launches), tuple(scratch))


def _joined(part: _Apart, plan: Plan | None, n_params: int) -> Plan:
    """What is launched for a region that was taken apart."""
    if plan is None:
        return Plan(part.scatter, part.scratch)
    launches = _elsewhere(plan, [*range(n_params), *part.places])
    return Plan((*launches, *part.scatter), part.scratch)


def _elsewhere(plan: Plan, places: Sequence[int]) -> list[Launch]:
    """The launches of a plan, on the buffers at these places."""
    return [
        dataclasses.replace(x, buffers=tuple([b if b == RECORD else places[b] for b in x.buffers]))
        for x in plan.launches
    ]


def _printed(device: GridDevice, plan: RegionPlan) -> tuple[Writer, int, int, tuple[int, ...]]:
    """The writer of a kernel, groups, items of a group, numbers."""
    if plan.columns is not None:
        return _printed_columns(device, plan, plan.columns)
    rows = plan.n // plan.row if plan.row else 0
    if device.serial and not plan.row:
        grain = stretch(device, plan.n)
        return _ElementStretch(device.dialect, plan), ceil_div(plan.n, grain), 1, (plan.n, grain)
    if device.serial:
        grain = stretch(device, rows, ceil_div(2048, plan.row), ceil_div(1 << 16, plan.row))
        return _RowStretch(device.dialect, plan), ceil_div(rows, grain), 1, (rows, grain)
    size = min(device.group, 256)
    if not plan.row:
        return _Element(device.dialect, plan), ceil_div(plan.n, size), size, ()
    if plan.row <= SHORT_ROW:
        size = min(size, 64)
        return _RowStretch(device.dialect, plan), ceil_div(rows, size), size, (rows, 1)
    row = _GroupRow(device, plan)
    return row, rows, row.lanes, ()


def _printed_columns(
    device: GridDevice, plan: RegionPlan, columns: Columns
) -> tuple[Writer, int, int, tuple[int, ...]]:
    """As `_printed`, for a region with columns."""
    if device.serial:
        writer = _ColumnStretch(device, plan)
        units, unit = (
            writer.cut.units(columns),
            writer.cut.tile * min(writer.cut.piece, columns.rows),
        )
        grain = stretch(device, units, ceil_div(2048, unit), ceil_div(1 << 16, unit))
        return writer, ceil_div(units, grain), 1, (units, grain)
    column = _Column(device, plan)
    size = min(device.group, 256)
    return column, ceil_div(columns.outer * column.cut.pieces * columns.width, size), size, ()


_said: set[str] = set()


def compile_regions(
    backend: GridBackend, device: GridDevice, graphs: Sequence[Graph]
) -> list[Call | str]:
    """For each region a call, or the reason why there is none."""
    found: list[Call | str] = ["its operands do not fit one loop nest"] * len(graphs)
    apart: dict[int, _Apart] = {}
    plans: dict[int, RegionPlan | None] = {}
    for k, g in enumerate(graphs):
        part = _apart(backend, device, g)
        if isinstance(part, str):
            found[k] = part
            continue
        if part is not None:
            apart[k] = part
        inner = g if part is None else part.graph
        plan = None if inner is None else plan_region(inner)
        if plan is not None or inner is None:
            plans[k] = plan
    order = list(plans)
    for begin in range(0, len(order), PER_SOURCE):
        keys = order[begin : begin + PER_SOURCE]
        names = [f"region{at}_{_hint(graphs[k])}" for at, k in enumerate(keys)]
        printed = {k: p for k in keys if (p := plans[k]) is not None}
        texts = [name for k, name in zip(keys, names) if k in printed]
        made = dict(zip(printed, region_plans(device, list(printed.values()), texts)))
        for k, name in zip(keys, names):
            graph = graphs[k]
            launched = made[k] if k not in apart else _joined(apart[k], made.get(k), graph.n_params)
            results = tuple([graph.types[i] for i in graph.outputs])
            try:
                found[k] = backend.call(
                    device, name, launched, graph.n_params, results, graph.single
                )
            except (DeviceError, UnsupportedOpError) as error:
                found[k] = str(error)
                _say(backend.name, str(error))
    return found


def _say(name: str, reason: str) -> None:
    """Warn once of a reason why something was not built; the program goes on with the kernels of
    its ops.
    """
    if reason not in _said:
        _said.add(reason)
        warnings.warn(
            f"{name}: part of a compiled function runs op by op: {reason}",
            RuntimeWarning,
            stacklevel=2,
        )


def _hint(graph: Graph) -> str:
    """The last op that does something, for readers of the source and of profiles."""
    names = [
        node.op.name for node in graph.nodes if node.op.name not in ("fill", "reshape", "cast")
    ]
    return names[-1] if names else "copy"
