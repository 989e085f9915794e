"""Matmul kernels for GPUs: a group of work items computes a tile through shared memory.

`matmul_plan` and the CUDA backend call these functions if the device's own kernels do not support a
matmul. The module writes source and launches; it runs nothing.
"""

from __future__ import annotations

from ..codegen.dialect import SUFFIX
from .device import GridDevice, Launch
from .kernel_writer import Kernel, ceil_div
from .matmul_operands import Matmul, Operand, define, matrix_numbers, rounded, sum_dtype
from .tiles import GROUP, GroupTiles

__all__ = ["THIN", "few_lines", "tiles"]

# Matmuls with fewer rows or columns are not worth packing, nor worth tiles.
THIN = 4


def few_lines(device: GridDevice, problem: Matmul) -> Launch | None:
    """Return the launch of a matmul with very few rows or columns; None for other matmuls.

    If both operands are dense along the summed axis, and that axis is long, a group computes one
    result together: every work item sums a strided part, and the sums are added in a tree.
    Otherwise each work item computes one result, and adjacent work items compute results that are
    adjacent along the longer axis. The result is also None if a size is 0.
    """
    (m, n, depth), x, y, count = problem.sizes, problem.x, problem.y, problem.count
    if min(m, n) >= THIN or 0 in problem.sizes:
        return None
    acc = SUFFIX[sum_dtype(x.dtype)]
    shared = x.along and y.along and depth >= 2 * device.group
    k = Kernel(device, "few_lines", problem.extent)
    problem.declare(k)
    for name, value in (("m", m), ("n", n), ("depth", depth), ("total", count * m * n)):
        k.number(name, value)
    to = problem.result(k)
    x.numbers(k, "x")
    y.numbers(k, "y")
    if shared:
        k.line(f"enum {{ lanes = {device.group} }};", f"DG_SHARED {acc} sums[lanes];")
        k.line("const i32 lane = DG_PLACE(0);", "const ix e = (ix)DG_GROUP(0);")
    else:
        k.line(
            "enum { lane = 0, lanes = 1 };",
            "const ix e = (ix)DG_ITEM(0);",
            "if (e >= total) return;",
        )
    inner, split = ("n", "r = rest % m, c") if n >= m else ("m", "c = rest % n, r")
    outer = "m" if n >= m else "n"
    k.line(f"const ix rest = e / {inner}, {split} = e - rest * {inner}, at = rest / {outer};")
    matrix_numbers(k, problem.batch, (x, y), "at")
    for label, operand, line in (("x", x, "r"), ("y", y, "c")):
        define(k, operand.of_matrix(label, f"{label}_matrix"))
        define(k, operand.of_line(label, line))
    k.line(f"{acc} sum = 0;")
    k.open("for (ix k = lane; k < depth; k += lanes)")
    for label, operand in (("x", x), ("y", y)):
        define(k, operand.of_depth(label, "k"))
    a, b = (f"({acc}){operand.value(k, label)}" for label, operand in (("x", x), ("y", y)))
    k.line(f"sum = dg_fma_{acc}({a}, {b}, sum);" if acc in ("f32", "f64") else f"sum += {a} * {b};")
    k.close()
    if shared:
        k.line("sums[lane] = sum;", "DG_BARRIER();")
        k.open("for (i32 far = lanes / 2; far > 0; far /= 2)")
        k.line("if (lane < far) sums[lane] += sums[lane + far];", "DG_BARRIER();")
        k.close()
        k.line(f"if (lane == 0) out[{to}] = {rounded(device, problem.dtype, 'sums[0]')};")
        return k.launch(count * m * n, size=(device.group,))
    k.line(f"out[{to}] = {rounded(device, problem.dtype, 'sum')};")
    return k.launch_items(count * m * n)


def tiles(device: GridDevice, problem: Matmul) -> Launch:
    """Return the launch of a matmul in which each group of work items computes one result tile."""
    (m, n, depth), x, y, count = problem.sizes, problem.x, problem.y, problem.count
    acc = SUFFIX[sum_dtype(x.dtype)]
    side = next(n for n in (16, 8, 4, 2, 1) if n * n <= device.group)
    chosen = device.tiles if isinstance(device.tiles, GroupTiles) else GROUP[0]
    tile, deep = side * chosen.each, chosen.deep
    while deep > 1 and 2 * deep * (tile + 1) * sum_dtype(x.dtype).itemsize > device.shared_bytes:
        deep //= 2
    tiles_m, tiles_n = ceil_div(m, tile), ceil_div(n, tile)
    k = Kernel(device, "matmul", problem.extent)
    problem.declare(k)
    for name, value in (
        ("m", m), ("n", n), ("depth", depth), ("tiles_m", tiles_m), ("tiles_n", tiles_n),
    ):  # fmt: skip
        k.number(name, value)
    at = problem.result(k)
    x.numbers(k, "x")
    y.numbers(k, "y")
    k.line(
        f"enum {{ side = {side}, each = {chosen.each}, tile = side * each, deep = {deep}, "
        "items = side * side };",
        f"DG_SHARED {acc} xs[deep * (tile + 1)];",
        f"DG_SHARED {acc} ys[deep * (tile + 1)];",
        "const i32 place = DG_PLACE(0), px = place % side, py = place / side;",
        "const ix group = (ix)DG_GROUP(0), tile_n = group % tiles_n, rest = group / tiles_n;",
        "const ix tile_m = rest % tiles_m, at = rest / tiles_m;",
    )
    matrix_numbers(k, problem.batch, (x, y), "at")
    for label, operand in (("x", x), ("y", y)):
        define(k, operand.of_matrix(label, f"{label}_matrix"))
    _multiply(k, problem, acc)
    k.open("for (i32 i = 0; i < each; i++) for (i32 j = 0; j < each; j++)")
    k.line(
        "const ix r = tile_m * tile + py + i * side, c = tile_n * tile + px + j * side;",
        f"if (r < m && c < n) out[{at}] = {rounded(device, problem.dtype, 'sums[i][j]')};",
    )
    k.close()
    return k.launch(count * tiles_m * tiles_n, size=(side * side,))


def _multiply(k: Kernel, problem: Matmul, acc: str) -> None:
    """Append to kernel `k` the main loop of a tiled matmul, over the axis that is summed.

    In each iteration it copies a slice of x and of y to shared memory and adds their products to
    the sums of the work items. `acc` is the C type of the sums.
    """
    k.line(
        f"{acc} sums[each][each];",
        "for (i32 i = 0; i < each; i++) for (i32 j = 0; j < each; j++) sums[i][j] = 0;",
    )
    k.open("for (ix begin = 0; begin < depth; begin += deep)")
    _copy_slice(k, problem.x, "x", acc, "m", "tile_m * tile")
    _copy_slice(k, problem.y, "y", acc, "n", "tile_n * tile")
    k.line("DG_BARRIER();")
    k.open("for (i32 k = 0; k < deep; k++)")
    k.line(
        f"{acc} a[each], b[each];",
        "for (i32 i = 0; i < each; i++) a[i] = xs[k * (tile + 1) + py + i * side];",
        "for (i32 j = 0; j < each; j++) b[j] = ys[k * (tile + 1) + px + j * side];",
    )
    fma = "a[i] * b[j] + sums[i][j]"
    if acc in ("f32", "f64"):
        fma = f"dg_fma_{acc}(a[i], b[j], sums[i][j])"
    k.line(f"for (i32 i = 0; i < each; i++) for (i32 j = 0; j < each; j++) sums[i][j] = {fma};")
    k.close()
    k.line("DG_BARRIER();")
    k.close()


def _copy_slice(k: Kernel, x: Operand, label: str, acc: str, limit: str, first: str) -> None:
    """Append to kernel `k` the loop that copies a slice of a matmul operand to shared memory.

    The slice has all lines of the group's tile (rows of the left operand, columns of the right one)
    and, of each line, as many elements along the summed axis as the kernel's constant `deep` says.
    Past the last line or element, it is filled with zeros. Adjacent work items read adjacent
    elements, whichever axis is dense. `label` is "x" or "y", `acc` the C type of the elements in
    shared memory; `first` and `limit` are C expressions of the tile's first line and of the number
    of all lines.
    """
    k.open("for (i32 e = place; e < deep * tile; e += items)")
    k.line(
        "const i32 k = e % deep, l = e / deep;"
        if x.along
        else "const i32 l = e % tile, k = e / tile;",
        f"const ix line = {first} + l, here = begin + k;",
        f"{acc} v = 0;",
    )
    k.open(f"if (line < {limit} && here < depth)")
    define(k, x.of_line(label, "line"))
    define(k, x.of_depth(label, "here"))
    k.line(f"v = ({acc}){x.value(k, label)};")
    k.close()
    k.line(f"{label}s[k * (tile + 1) + l] = v;")
    k.close()
