"""Emits code by which a thread block reduces one value per work item to one.

`loop_printer` calls `group_reduction`. Afterwards every work item has the result. In languages with
`GridDialect.shuffles`, the 32 work items of a warp exchange values by registers; with
`GridDialect.subgroups`, the work items of a subgroup, whose size the kernel queries at run time, do
the same. In other languages, the two halves of the group combine their values through shared
memory, repeatedly. On a given device, values are always combined in the same order.
"""

from __future__ import annotations

from .dialect import SUFFIX, GridDialect
from .loop_program import Combine

__all__ = ["WARP", "group_reduction"]

WARP = 32


def group_reduction(
    dialect: GridDialect, combine: Combine, acc: str, shared: str, lanes: int
) -> list[str]:
    """Return the source lines that combine the variable `acc` over all work items of a group.

    Args:
        dialect: the language of the source.
        combine: emits the statement that combines two values.
        acc: name of the variable that holds each work item's value; afterwards it holds the result
            in every work item.
        shared: name of an array in shared memory with one element per work item.
        lanes: number of work items that are combined. Their numbers are in the variable ``lane``.
            If the language has `shuffles`, `lanes` may be a power of two below 32; then each part
            of a warp with that many work items is combined separately.
    """
    if dialect.subgroups:
        return _by_subgroups(combine, acc, shared)
    if not dialect.shuffles:
        combined = combine.text(f"{shared}[lane]", f"{shared}[lane + far]")
        return [
            f"{shared}[lane] = {acc};",
            "DG_BARRIER();",
            "for (i32 far = lanes / 2; far > 0; far /= 2) {",
            f"    if (lane < far) {{ {combined} }}",
            "    DG_BARRIER();",
            "}",
            f"{acc} = {shared}[0];",
            "DG_BARRIER();",
        ]
    lines = [
        "DG_UNROLL",
        f"for (i32 far = {min(lanes, WARP) // 2}; far > 0; far /= 2) {{",
        f"    const {SUFFIX[combine.dtype]} other = DG_SHUFFLE({acc}, far);",
        f"    {combine.text(acc, 'other')}",
        "}",
    ]
    if lanes <= WARP:
        # the partners of an exchange may differ in the sign of a zero
        return [*lines, f"{acc} = DG_OF_FIRST({acc}, {lanes});"]
    return [
        *lines,
        f"if (lane % {WARP} == 0) {shared}[lane / {WARP}] = {acc};",
        "DG_BARRIER();",
        f"{acc} = {shared}[0];",
        f"for (i32 warp = 1; warp < {lanes // WARP}; warp++) {{",
        f"    {combine.text(acc, f'{shared}[warp]')}",
        "}",
        "DG_BARRIER();",
    ]


def _by_subgroups(combine: Combine, acc: str, shared: str) -> list[str]:
    """Return `group_reduction`'s lines for a language whose subgroups can exchange registers."""
    return [
        "for (i32 far = DG_SUBGROUP_SIZE() / 2; far > 0; far /= 2) {",
        f"    const {SUFFIX[combine.dtype]} other = DG_SUBGROUP_SHUFFLE({acc}, far);",
        f"    {combine.text(acc, 'other')}",
        "}",
        # the partners of an exchange may differ in the sign of a zero: one of them counts
        f"if (DG_SUBGROUP_PLACE() == 0) {shared}[DG_SUBGROUP()] = {acc};",
        "DG_BARRIER();",
        f"{acc} = {shared}[0];",
        "for (i32 part = 1; part < DG_SUBGROUPS(); part++) {",
        f"    {combine.text(acc, f'{shared}[part]')}",
        "}",
        "DG_BARRIER();",
    ]
