"""Print how the work items of a group combine their values of a reduction, so that all have it.

Languages with `GridDialect.shuffles` exchange values within a warp of 32 work items by registers;
the others combine halves of the group through shared memory. The order is fixed.
"""

from __future__ import annotations

from .dialect import SUFFIX, GridDialect
from .loop_program import Combine

__all__ = ["WARP", "group_reduction"]

WARP = 32


def group_reduction(
    dialect: GridDialect, combine: Combine, acc: str, shared: str, lanes: int
) -> list[str]:
    """Return the lines that combine the variable `acc` over all work items of a group.

    Args:
        dialect: the language.
        combine: how two values are combined.
        acc: the variable; afterwards each work item has the result in it.
        shared: name of an array in shared memory with an element for each work item.
        lanes: work items of the group; ``lane`` is the number of each. Parts of a warp may be
            groups of their own if the language shuffles.
    """
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
