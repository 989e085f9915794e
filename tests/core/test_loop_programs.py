"""Loop programs of fused regions: how they are scheduled for a target, and printed."""

from __future__ import annotations

import pytest
from duograph.backend.codegen.c_regions import print_region
from duograph.backend.codegen.column_schedule import column_program
from duograph.backend.codegen.dialect import OPENCL, C
from duograph.backend.codegen.loop_printer import CPrinter, GridPrinter
from duograph.backend.codegen.loop_program import For, Locate, Order, Work, least, name, number
from duograph.backend.codegen.region_plan import plan_region
from duograph.backend.codegen.row_schedule import row_program
from duograph.backend.codegen.scheduling import Target, element_program
from duograph.backend.grid import GridDevice
from duograph.backend.grid.reductions import combine_of
from duograph.ir.text import parse

BIAS = """graph(%0: float32[64, 100], %1: float32[100]) {
  %2 = add(%0, %1) : float32[64, 100]
  %3 = exp(%2) : float32[64, 100]
  return %3
}"""
SOFTMAX = """graph(%0: float32[64, 100]) {
  %1 = reduce_max(%0, axis=(1,), keepdims=True) : float32[64, 1]
  %2 = sub(%0, %1) : float32[64, 100]
  %3 = exp(%2) : float32[64, 100]
  %4 = reduce_sum(%3, axis=(1,), keepdims=True) : float32[64, 1]
  %5 = div(%3, %4) : float32[64, 100]
  return %5
}"""
COLUMNS = """graph(%0: float32[6400, 100]) {
  %1 = mul(%0, %0) : float32[6400, 100]
  %2 = reduce_sum(%1, axis=(0,), keepdims=False) : float32[100]
  return %2
}"""
GATHER = """graph(%0: float32[10, 100], %1: int32[64]) {
  %2 = gather(%0, %1, axis=0) : float32[64, 100]
  %3 = exp(%2) : float32[64, 100]
  return %3
}"""


class Device(GridDevice):
    dialect = OPENCL


def combine(kind, dtype):
    return combine_of(Device(), "sum" if kind == "+" else kind, dtype)


PROCESSOR = Target(spans=True, combine=combine)
GRID = Target(spans=False, combine=combine, narrow=True, lanes=lambda n: 32, split=lambda *sizes: 4)


def plan(text):
    found = plan_region(parse(text))
    assert found is not None
    return found


def loops(statements):
    """Return all loops among statements, outermost first."""
    for s in statements:
        if isinstance(s, For):
            yield s
        yield from loops(getattr(s, "body", ()))


def test_index_arithmetic_has_the_parentheses_that_it_needs():
    i, n = name("i"), number(7)
    assert str((i + 1) * n) == "(i + 1) * 7"
    assert str(i // 4 % 3 * 8 + i % 4) == "i / 4 % 3 * 8 + i % 4"
    assert str(n - (i - n)) == "7 - (i - 7)"
    assert str(least(i, n)) == "i < 7 ? i : 7"


@pytest.mark.parametrize(
    ("target", "shape", "expected"),
    [
        (PROCESSOR, (64, 100), (Work.SPAN, 6400, 1)),
        (GRID, (64, 100), (Work.ITEM, 1600, 4)),
        (GRID, (64, 102), (Work.ITEM, 3264, 2)),
        (GRID, (64, 101), (Work.ITEM, 1616, 4)),
    ],
)
def test_an_elementwise_region_has_a_span_or_a_pack_for_each_work_item(target, shape, expected):
    text = BIAS.replace("64, 100", f"{shape[0]}, {shape[1]}").replace("[100]", f"[{shape[1]}]")
    program = element_program(target, plan(text))
    assert (program.work, program.size, program.unit) == expected


@pytest.mark.parametrize(
    ("n", "size", "tail"), [(4096, 1024, False), (4099, 1025, True), (3, 2, True), (1, 1, False)]
)
def test_the_last_pack_of_a_row_may_have_fewer_elements(n, size, tail):
    text = f"graph(%0: float32[{n}]) {{\n  %1 = exp(%0) : float32[{n}]\n  return %1\n}}"
    program = element_program(GRID, plan(text))
    assert program.size == size
    source = GridPrinter(OPENCL, program).kernel("k")
    assert ("left" in source) is tail


@pytest.mark.parametrize(
    ("dtypes", "width"),
    [
        (("float32", "float32"), 4),
        (("float16", "float32"), 8),
        (("bool", "float32"), 8),
        (("int64", "float32"), 4),
        (("bool", "bool"), 16),
        (("float64", "float64"), 2),
    ],
)
def test_packs_have_16_bytes_of_the_smaller_dtype(dtypes, width):
    x, y = dtypes
    program = element_program(
        GRID,
        plan(
            f"graph(%0: {x}[64]) {{\n  %1 = cast(%0, dtype={y}) : {y}[64]\n"
            f"  %2 = equal(%1, %1) : bool[64]\n  return %1\n}}"
        ),
    )
    assert program.unit == width


def test_a_row_has_one_pass_for_each_reduction_and_one_for_the_result():
    span = row_program(PROCESSOR, plan(SOFTMAX))
    row, *passes = loops(span.body)
    assert row.variable == "row" and span.unit == 100
    assert [p.order for p in passes] == [Order.ANY_ORDER, Order.ANY_ORDER, Order.INDEPENDENT]
    group = row_program(GRID, plan(SOFTMAX))
    assert (group.work, group.size, group.lanes) == (Work.GROUP, 64, 32)


def test_partial_results_of_columns_are_combined_by_another_kernel():
    whole = column_program(PROCESSOR, plan(COLUMNS.replace("6400", "32")))
    parts = column_program(GRID, plan(COLUMNS))
    assert not whole.partials
    assert [(p.name, p.size) for p in parts.partials] == [("reduce_sum_2", 4 * 100)]


def test_indices_are_checked_where_a_region_reads_through_them():
    program = element_program(GRID, plan(GATHER))
    assert program.watched == [("gather", 0)]
    assert sum(isinstance(s, Locate) for s in program.body) == 1


def test_one_program_prints_in_every_dialect():
    program = row_program(PROCESSOR, plan(SOFTMAX))
    c = CPrinter(C, program).kernel("softmax")
    grid = GridPrinter(OPENCL, program).kernel("softmax")
    assert c.startswith("DG_KERNEL int softmax(void **args, i64 begin, i64 end) {")
    assert grid.startswith("DG_KERNEL void softmax(DG_GLOBAL const f32 *arg0, ")

    def statements(text):
        """What is the same in all dialects: lines without pragmas and qualifiers."""
        kept = (line.replace("DG_GLOBAL ", "").strip() for line in text.splitlines()[1:])
        lines = [x for x in kept if "exp" in x and "reduce_sum_4" not in x]
        assert lines
        return lines

    assert statements(c) == statements(grid)
    assert "reduction(+:reduce_sum_4)" in c and "DG_ADD_TO(reduce_sum_4, exp_3)" in grid


def test_a_region_of_columns_is_two_functions_in_c():
    one = print_region(C, "columns", plan(COLUMNS.replace("6400", "32")))
    assert one.second is None and one.memory == 0
    two = print_region(C, "columns", plan(COLUMNS))
    assert two.second is not None and two.second[:2] == ("columns_second", 100)
    assert two.memory >= 2 * 100 * 4


def test_equal_plans_give_equal_programs():
    texts = {GridPrinter(OPENCL, element_program(GRID, plan(BIAS))).kernel("k") for _ in range(3)}
    assert len(texts) == 1
