"""Generates the C functions that compute a fused region (ops compiled as one kernel) on a CPU.

The CPU backend calls `print_region` and compiles the result. A region that ends in column
reductions or in scatters needs two functions; the backend calls the second when every thread has
finished the first.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from ...dtype import DType
from .column_schedule import column_program, scatters_of
from .dialect import SUFFIX, Dialect
from .expression import Expr, compute_dtype, constant
from .loop_printer import CPrinter, least_value, partial_offsets
from .loop_program import LoopProgram
from .printer import is_heavy, print_expression
from .region_plan import Computed, Reduction, RegionPlan, Scatter
from .row_schedule import row_program
from .scalar_kernels import GRAIN, grain_of
from .scheduling import Target, element_program

__all__ = ["PrintedRegion", "print_region"]


class PrintedRegion(NamedTuple):
    """The generated C functions of a fused region, and how the backend must call them.

    Attributes:
        text: source of the functions, without the dialect's prelude.
        n: the first function is called for ranges from ``begin`` up to, not including, ``end`` that
            together cover 0 to n - 1. Different threads may compute different ranges.
        grain: smallest length of a range that is worth a thread of its own.
        second: (name, n, grain) of the function to call after the first, with `n` and `grain` as
            above; None if there is no second function.
        memory: bytes of scratch memory that both functions share. In the functions' argument
            `args`, its address follows those of the operands and results.
    """

    text: str
    n: int
    grain: int
    second: tuple[str, int, int] | None = None
    memory: int = 0


@dataclasses.dataclass(frozen=True)
class _InOrder:
    """Emits C code that combines elements of a sum or maximum one by one, in element order.

    It implements the interface `Combine` of `loop_program`. `kind` is "+" or "max"; `dtype` is the
    dtype of the accumulator.
    """

    dialect: Dialect
    kind: str
    dtype: DType

    @property
    def start(self) -> str:
        first = constant(0, self.dtype) if self.kind == "+" else least_value(self.dtype)
        return print_expression(self.dialect, first)[1]

    def text(self, acc: str, x: str) -> str:
        if self.kind == "+":
            return f"{acc} += {x};"
        nan = f" | ({x} != {x})" if self.dtype.is_floating else ""
        return f"{acc} = ({x} > {acc}){nan} ? {x} : {acc};"


def print_region(dialect: Dialect, name: str, plan: RegionPlan) -> PrintedRegion:
    """Return the C source of a fused region: a function `name`, and a second one if necessary."""
    target = Target(
        spans=True,
        combine=lambda kind, dtype: _InOrder(dialect, kind, compute_dtype(dtype)),
        prefetches=bool(dialect.fetch),
        streams=bool(dialect.stream),
    )
    if plan.columns is not None:
        program = column_program(target, plan)
    else:
        program = row_program(target, plan) if plan.row else element_program(target, plan)
    heavy = any(isinstance(v, Computed) and is_heavy(v.expression) for v in plan.values)
    worth = grain_of(heavy)
    grain = max(1, worth // program.unit)
    scatters = scatters_of(plan)
    if scatters:
        assert plan.columns is not None
        second = f"{name}_second"
        text = _scatter_start(dialect, name, plan, scatters)
        text += CPrinter(dialect, program).kernel(second)
        n = plan.columns.outer * scatters[0].at.n * plan.columns.width
        return PrintedRegion(text, n, GRAIN, (second, program.size, grain))
    text = CPrinter(dialect, program).kernel(name)
    if not program.partials:
        return PrintedRegion(text, program.size, grain)
    assert plan.columns is not None
    outer, _, width = plan.columns
    pieces = program.partials[0].size // (outer * width)
    second = f"{name}_second"
    text += _second(dialect, second, plan, program, pieces)
    memory = partial_offsets(program)[-1]
    after = (second, outer * width, max(1, worth // pieces))
    return PrintedRegion(text, program.size, grain, after, memory)


def _scatter_start(dialect: Dialect, name: str, plan: RegionPlan, scatters: list[Scatter]) -> str:
    """Return the source of a C function that initialises the results of scatters.

    Each result starts either as a copy of the scatter's target tensor, or with one constant in all
    elements. The C function `name` initialises elements ``begin`` up to, not including, ``end`` of
    every result.
    """
    results = {result: k for k, (result, _) in enumerate(plan.outputs)}
    lines = [f"{dialect.kernel} int {name}(void **args, i64 begin, i64 end) {{"]
    for v in scatters:
        type_, k = SUFFIX[v.dtype], plan.n_operands + results[v.name]
        if isinstance(v.start, Expr):
            text = dialect.store(v.dtype, print_expression(dialect, v.start)[1])
        else:
            text = f"((const {type_} *)args[{v.start}])[i]"
        target = f"(({type_} *)args[{k}])[i]"
        lines.append(f"    for (i64 i = begin; i < end; i++) {target} = {text};")
    return "\n".join([*lines, "    return 0;", "}", ""])


def _second(
    dialect: Dialect, name: str, plan: RegionPlan, program: LoopProgram, pieces: int
) -> str:
    """Return the source of C function `name`, which combines partial results of column reductions.

    Each sum or maximum has `pieces` partial results for each of its elements. The function combines
    them in order and writes elements ``begin`` up to, not including, ``end`` of the region's
    results.
    """
    assert plan.columns is not None
    width = plan.columns.width
    reductions = {v.name: v for v in plan.values if isinstance(v, Reduction)}
    results = {result: k for k, (result, _) in enumerate(plan.outputs)}
    last = plan.n_operands + len(plan.outputs)
    lines = [f"{dialect.kernel} int {name}(void **args, i64 begin, i64 end) {{"]
    for part, at in zip(program.partials, partial_offsets(program)):
        v, k, acc = reductions[part.name], results[part.name], SUFFIX[part.dtype]
        combine = _InOrder(dialect, v.kind, part.dtype)
        data = f"(const void *)((const u8 *)args[{last}] + {at})"
        first = f"{v.name}_parts + i / {width} * {pieces * width} + i % {width}"
        combined = combine.text("all", f"part[p * {width}]")
        lines += [
            f"    const {acc} *const {v.name}_parts = {data};",
            f"    {SUFFIX[v.dtype]} *const out{k} = args[{plan.n_operands + k}];",
            "    for (i64 i = begin; i < end; i++) {",
            f"        const {acc} *const part = {first};",
            f"        {acc} all = part[0];",
            f"        for (i64 p = 1; p < {pieces}; p++) {{ {combined} }}",
            f"        out{k}[i] = {dialect.store(v.dtype, 'all')};",
            "    }",
        ]
    return "\n".join([*lines, "    return 0;", "}", ""])
