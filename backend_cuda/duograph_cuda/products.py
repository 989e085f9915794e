"""Launches of the CUDA kernels of tiled matmul and convolution (cuda/product.cuh).

The kernels use tensor cores for float16 and bfloat16 (for float32 only if the user allows TF32),
and otherwise tiles in registers for float32. `CudaDevice.matmul` calls `launch_of`, whose launch
runs if cuBLASLt does not compute the matmul.
"""

from __future__ import annotations

import dataclasses
import os

from duograph.backend.codegen.dialect import SUFFIX
from duograph.backend.grid import Kernel, Launch
from duograph.backend.grid.device import GridDevice
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.backend.grid.matmul_operands import Matmul, Matrices, Operand, matrix_numbers
from duograph.dtype import DType, bfloat16, float16, float32

from .sources import text

__all__ = ["launch_of", "uses_tf32"]

# The threads for which a multiprocessor must have registers: with tensor cores and both operands in
# memory (128 registers a thread), and otherwise (168 in small blocks; larger blocks may have more).
RESIDENT, RESIDENT_OTHERS = 512, 384


def uses_tf32() -> bool:
    """Return whether the user allows TF32, which ignores 13 operand bits, in float32 matmuls."""
    return os.environ.get("DUOGRAPH_CUDA_TF32", "0") == "1"


def _kind(capability: tuple[int, int], dtype: DType) -> str | None:
    """Return the kind of tensor-core instruction for a dtype, such as "mma_f16", or None.

    Kinds are constants of cuda/mma.cuh. Devices before compute capability 8.0 have tensor cores for
    float16 only; float32 needs TF32 to be allowed.
    """
    if dtype is float16:
        return "mma_f16"
    if capability < (8, 0):
        return None
    if dtype is bfloat16:
        return "mma_bf16"
    return "mma_tf32" if dtype is float32 and uses_tf32() else None


def launch_of(device: GridDevice, capability: tuple[int, int], product: Matmul) -> Launch | None:
    """Return the launch of a tiled CUDA matmul, or None if the generic kernel must be used.

    The generic kernel (`backend.grid`) computes empty matmuls and all other dtypes.
    """
    (m, n, depth), x, y, count = product.sizes, product.x, product.y, product.count
    kind = _kind(capability, x.dtype)
    if (kind is None and x.dtype is not float32) or 0 in product.sizes:
        return None
    # the larger tile if it is filled and there are enough tiles for all multiprocessors
    filled = min(m, n) > 64 and ceil_div(m, 128) * ceil_div(n, 128) * count >= 2 * device.units
    side = 128 if filled else 64
    threads = side * 2 if kind else 256
    stem = f"product_{kind or 'f32'}_{side}"
    k = Kernel(device, stem, product.extent)
    k.functions.append(text("mma.cuh", "product.cuh"))
    for label, operand in (("x", x), ("y", y)):
        k.read(label, operand.dtype, operand.place)
    k.write("out", product.dtype, product.place)
    for name, value in zip(
        ("m", "n", "depth", "run", "matrices"), (m, n, depth, product.run, count)
    ):
        k.number(name, value)
    made = [_operand(k, "x", x, m, depth), _operand(k, "y", y, n, depth)]
    k.line("dg_tile tile;", f"tile.enter({side}, m, n, depth, run, matrices);")
    k.line("const ix at = (ix)tile.matrix;")
    matrix_numbers(k, product.batch, (x, y), "at")
    for label, values in zip("xy", made):
        k.line(
            f"dg_of_{label} of_{label} = {{{', '.join(values)}}};",
            f"of_{label}.enter({label}_matrix);",
        )
    adjacent = product.run % (2 if kind else 4) == 0  # results that are written together
    flags = f"{str(product.run != n).lower()}, {str(adjacent).lower()}"
    which = (
        f"dg_tensor_product<{kind}, {side}, {flags}>"
        if kind
        else f"dg_plain_product<{side}, {flags}>"
    )
    k.line(f"{which}(of_x, of_y, out, tile);")
    both = kind is not None and _adjacent(x) and _adjacent(y)
    resident = (RESIDENT if both else RESIDENT_OTHERS) // threads
    k.name = f"__launch_bounds__({threads}, {resident}) {stem}"
    launch = k.launch(ceil_div(m, side) * ceil_div(n, side) * count, size=(threads,))
    return dataclasses.replace(launch, name=stem)


def _adjacent(operand: Operand) -> bool:
    """Return whether a matmul operand is a stored matrix with adjacent elements along one axis."""
    return isinstance(operand, Matrices) and 1 in (operand.line_step, operand.step)


def _operand(k: Kernel, label: str, operand: Operand, lines: int, depth: int) -> list[str]:
    """Add to a kernel the C++ struct that reads one matmul operand; return its initialisers.

    `label` is "x" or "y". `lines` is the number of rows of x or columns of y, and `depth` the
    length of the axis that is summed over.
    """
    stored = SUFFIX[operand.dtype]
    if _adjacent(operand):
        assert isinstance(operand, Matrices)
        across = operand.step != 1
        pitch = operand.step if across else operand.line_step
        whole = all(
            v * operand.dtype.itemsize % 16 == 0 for v in (pitch, lines if across else depth)
        )
        flags = f"{str(across).lower()}, {str(whole).lower()}"
        k.functions.append(f"typedef dg_matrix<{stored}, {flags}> dg_of_{label};\n")
        k.number(f"{label}_pitch", pitch)
        return [label, "m" if label == "x" else "n", "depth", f"{label}_pitch"]
    first = len(k.parameters)
    operand.numbers(k, label)
    members = k.parameters[first:]
    names = [member.split()[-1] for member in members]
    of_line, of_deep = operand.of_line(label, "number"), operand.of_depth(label, "number")
    of_matrix = operand.of_matrix(label, "number")
    rows = [
        f"struct dg_of_{label} {{",
        f"typedef {stored} T;",
        f"enum {{ across = {int(not operand.along)}, implicit = 1 }};",
        f"const T *{label};",
        *[f"{member};" for member in members],
        *[f"ix {name};" for name, _ in of_matrix],
        "DG_METHOD void enter(ix number) { "
        f"{' '.join(f'{name} = {value};' for name, value in of_matrix)} }}",
    ]
    for kind, values in (("line", of_line), ("deep", of_deep)):
        rows += [
            f"struct {kind} {{ {' '.join(f'ix {name};' for name, _ in values)} bool in; }};",
            f"DG_METHOD {kind} {kind}_at(i64 at) const {{",
            "const ix number = (ix)at;",
            *[f"const ix {name} = {value};" for name, value in values],
            f"const {kind} found = {{{', '.join([name for name, _ in values] + ['true'])}}};",
            "return found;\n}",
        ]
    rows += ["DG_METHOD T at(const line &own_line, const deep &own_deep) const {"]
    for of, values in (("own_line", of_line), ("own_deep", of_deep)):
        rows += [f"const ix {name} = {of}.{name};" for name, _ in values]
    rows += [f"return {operand.element(label)};", "}", "};\n"]
    k.functions.append("\n".join(rows))
    return [label, *names]
