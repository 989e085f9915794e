"""Softmax, layer_norm and their gradients along rows that lie dense: a warp or a block for each row."""

from __future__ import annotations

import math
from typing import Any

from duograph.backend.codegen.dialect import SUFFIX
from duograph.backend.grid import Launch, Plan
from duograph.backend.grid.writing import ceil_div
from duograph.dtype import DType, bfloat16, float16, float32, int64

from .device import CudaDevice
from .dialect import CUDA
from .sources import text

__all__ = ["KERNELS"]

DTYPES = (float16, bfloat16, float32)
# Up to this length a warp has the row to itself, and a block has four of them.
SHORT = 1024
WARPS = 4
LANES = 256
# Rows that one thread adds up when gradients of gamma and beta are taken; and the most parts that leaves.
DEEP, MOST_PARTS = 64, 256

# What a thread of a row does, by op. `x`, `y` are the loaded elements of the operands, `out` stores the result.
SOFTMAX = {
    "softmax": (
        1,
        "dg_running r = {-DG_INF_F32, 0.0f};\nEACH dg_meet(&r, X0);\ndg_row_running<lanes>(&r);\n"
        "EACH OUT(dg_exp_f32(X0 - r.most) / r.sum);",
    ),
    "log_softmax": (
        1,
        "dg_running r = {-DG_INF_F32, 0.0f};\nEACH dg_meet(&r, X0);\ndg_row_running<lanes>(&r);\n"
        "const f32 whole = dg_log_f32(r.sum);\nEACH OUT(X0 - r.most - whole);",
    ),
    "softmax_grad": (
        2,
        "f32 sum = 0.0f;\nEACH sum += X0 * X1;\nsum = dg_row_sum<lanes>(sum);\nEACH OUT(X0 * (X1 - sum));",
    ),
    "log_softmax_grad": (
        2,
        "f32 sum = 0.0f;\nEACH sum += X1;\nsum = dg_row_sum<lanes>(sum);\nEACH OUT(X1 - dg_exp_f32(X0) * sum);",
    ),
}


class _Rows:
    """A kernel with a row for each warp or block.

    Args:
        name: of the kernel, without what belongs to the dtype and the length.
        rows, n: how many rows, of how many elements.
        buffers: (name, dtype, place, whether it is written) of each.
    """

    def __init__(
        self, name: str, rows: int, n: int, buffers: list[tuple[str, DType, int, bool]]
    ) -> None:
        self.rows, self.n, self.buffers = rows, n, buffers
        self.lanes = 32 if n <= SHORT else LANES
        self.name = f"{name}_{SUFFIX[buffers[0][1]]}_{self.lanes}"

    def launch(self, body: str) -> Launch:
        """The launch of a body; `EACH` in it is the loop of a thread over its elements j, at places `at + j`."""
        declared = ", ".join(
            f"{'' if written else 'const '}{SUFFIX[d]} *{label}"
            for label, d, _, written in self.buffers
        )
        threads = WARPS * 32 if self.lanes == 32 else LANES
        each = "for (i64 j = lane; j < n; j += lanes)"
        row = (
            f"(i64)blockIdx.x * {WARPS} + threadIdx.x / 32"
            if self.lanes == 32
            else "(i64)blockIdx.x"
        )
        source = text("rows.cuh") + (
            f"DG_KERNEL void __launch_bounds__({threads}) {self.name}({declared}, i64 rows, i64 n) {{\n"
            f"enum {{ lanes = {self.lanes} }};\n"
            f"const i64 row = {row}, at = row * n;\n"
            "const int lane = threadIdx.x % lanes;\n"
            "if (row >= rows) return; /* with its whole warp */\n"
            f"{body.replace('EACH', each)}\n}}\n"
        )
        groups = ceil_div(self.rows, WARPS) if self.lanes == 32 else self.rows
        return Launch(
            source, self.name, tuple(b[2] for b in self.buffers),
            ((int64, self.rows), (int64, self.n)), (groups, 1, 1), (threads, 1, 1),
        )  # fmt: skip


def _along(name: str) -> Any:
    count, body = SOFTMAX[name]

    def builder(device: CudaDevice, types: Any, results: Any, *, axis: int) -> Plan | None:
        x = types[0]
        if x.dtype not in DTYPES or not x.shape or any(t != x for t in types):
            return None
        axis %= len(x.shape)
        n = x.shape[axis]
        if math.prod(x.shape[axis + 1 :]) != 1 or not x.size:
            return None
        labels = ("x", "y")[:count]
        buffers = [(label, x.dtype, k, False) for k, label in enumerate(labels)]
        rows = _Rows(name, x.size // n, n, [*buffers, ("out", x.dtype, count, True)])
        done = body
        for k, label in enumerate(labels):
            done = done.replace(f"X{k}", CUDA.load(x.dtype, f"{label}[at + j]"))
        return Plan((rows.launch(_stores(done, "OUT", "out[at + j]", x.dtype)),))

    return builder


def _stores(body: str, word: str, target: str, dtype: DType) -> str:
    """`WORD(value);` at the end of a line as a store of the value, rounded to the dtype."""
    lines = []
    for line in body.split("\n"):
        head, found, rest = line.partition(f"{word}(")
        lines.append(f"{head}{target} = {CUDA.store(dtype, rest[:-2])};" if found else line)
    return "\n".join(lines)


def _same(types: Any) -> bool:
    x = types[0]
    return None not in types and x.size > 0 and x.dtype in DTYPES


def layer_norm_core(
    device: CudaDevice, types: Any, results: Any, *, axis: int, eps: float
) -> Plan | None:
    """y, mean and rstd of rows of the axes axis.. to the end."""
    if not _same(types) or any(t.dtype not in DTYPES for t in (*types, *results)):
        return None
    x, gamma, beta = types
    y, mean, rstd = results
    n = math.prod(x.shape[axis:])
    rows = _Rows(
        "layer_norm", x.size // n, n,
        [("x", x.dtype, 0, False), ("gamma", gamma.dtype, 1, False), ("beta", beta.dtype, 2, False),
         ("y", y.dtype, 3, True), ("mean_of", mean.dtype, 4, True), ("rstd_of", rstd.dtype, 5, True)],
    )  # fmt: skip
    rows.name += f"_{SUFFIX[gamma.dtype]}_{SUFFIX[mean.dtype]}"
    v = CUDA.load(x.dtype, "x[at + j]")
    value = f"({v} - mean) * rstd * {CUDA.load(gamma.dtype, 'gamma[j]')} + {CUDA.load(beta.dtype, 'beta[j]')}"
    body = (
        f"f32 sum = 0.0f;\nEACH sum += {v};\nconst f32 mean = dg_row_sum<lanes>(sum) / (f32)n;\n"
        f"f32 squares = 0.0f;\nEACH {{ const f32 d = {v} - mean; squares += d * d; }}\n"
        f"const f32 rstd = 1.0f / DG_SQRT_F32(dg_row_sum<lanes>(squares) / (f32)n + {float(eps)!r}f);\n"
        f"EACH y[at + j] = {CUDA.store(y.dtype, value)};\n"
        f"if (lane == 0) {{ mean_of[row] = {CUDA.store(mean.dtype, 'mean')}; "
        f"rstd_of[row] = {CUDA.store(rstd.dtype, 'rstd')}; }}"
    )
    return Plan((rows.launch(body),))


def layer_norm_grad(device: CudaDevice, types: Any, results: Any, *, axis: int) -> Plan | None:
    """Gradients of x by rows; of gamma and beta by columns, in parts that are then added up in order."""
    if not _same(types) or any(t.dtype not in DTYPES for t in (*types, *results)):
        return None
    x, gamma, mean, rstd, dout = types
    dx, dgamma, dbeta = results
    n = math.prod(x.shape[axis:])
    count = x.size // n
    names = "_".join(SUFFIX[t.dtype] for t in (gamma, mean))
    read = [
        ("x", x.dtype, 0, False), ("gamma", gamma.dtype, 1, False), ("mean_of", mean.dtype, 2, False),
        ("rstd_of", rstd.dtype, 3, False), ("dout", dout.dtype, 4, False),
    ]  # fmt: skip
    rows = _Rows("layer_norm_grad", count, n, [*read, ("dx", dx.dtype, 5, True)])
    rows.name += f"_{names}"
    statistics = (
        f"const f32 mean = {CUDA.load(mean.dtype, 'mean_of[row]')};\n"
        f"const f32 rstd = {CUDA.load(rstd.dtype, 'rstd_of[row]')};\n"
    )
    element = (
        f"const f32 d = {CUDA.load(dout.dtype, 'dout[at + j]')}; "
        f"const f32 h = ({CUDA.load(x.dtype, 'x[at + j]')} - mean) * rstd;"
    )
    weighted = f"{element} const f32 g = d * {CUDA.load(gamma.dtype, 'gamma[j]')};"
    body = statistics + (
        f"f32 sum = 0.0f, along = 0.0f;\nEACH {{ {weighted} sum += g; along += g * h; }}\n"
        "sum = dg_row_sum<lanes>(sum) / (f32)n;\nalong = dg_row_sum<lanes>(along) / (f32)n;\n"
        f"EACH {{ {weighted} dx[at + j] = {CUDA.store(dx.dtype, 'rstd * (g - sum - h * along)')}; }}"
    )
    parts = max(1, min(MOST_PARTS, ceil_div(count, DEEP)))
    each = ceil_div(count, parts)
    reads = ", ".join(f"const {SUFFIX[d]} *{label}" for label, d, _, _ in read)
    name = f"layer_norm_columns_{SUFFIX[x.dtype]}_{names}"
    columns = (
        f"DG_KERNEL void {name}({reads}, f32 *scales, f32 *shifts, i64 rows, i64 n, i64 each, i64 parts) {{\n"
        "const i64 e = DG_ITEM(0), part = e / n, j = e % n;\n"
        "if (part >= parts) return;\n"
        "const i64 first = part * each, last = first + each < rows ? first + each : rows;\n"
        "f32 scale = 0.0f, shift = 0.0f;\n"
        f"for (i64 row = first; row < last; row++) {{\nconst i64 at = row * n;\n{statistics}{element}\n"
        "scale += d * h;\nshift += d;\n}\n"
        "scales[e] = scale;\nshifts[e] = shift;\n}\n"
    )
    gathered = f"layer_norm_parts_{SUFFIX[dgamma.dtype]}_{SUFFIX[dbeta.dtype]}"
    together = (
        f"DG_KERNEL void {gathered}(const f32 *scales, const f32 *shifts, {SUFFIX[dgamma.dtype]} *dgamma, "
        f"{SUFFIX[dbeta.dtype]} *dbeta, i64 n, i64 parts) {{\n"
        "const i64 j = DG_ITEM(0);\nif (j >= n) return;\nf32 scale = 0.0f, shift = 0.0f;\n"
        "for (i64 part = 0; part < parts; part++) {\n"
        "scale += scales[part * n + j];\nshift += shifts[part * n + j];\n}\n"
        f"dgamma[j] = {CUDA.store(dgamma.dtype, 'scale')};\ndbeta[j] = {CUDA.store(dbeta.dtype, 'shift')};\n}}\n"
    )
    numbers = tuple((int64, v) for v in (count, n, each, parts))
    launches = (
        rows.launch(body),
        Launch(
            columns, name, (0, 1, 2, 3, 4, 8, 9), numbers, (ceil_div(parts * n, 256), 1, 1), (256, 1, 1)
        ),
        Launch(
            together, gathered, (8, 9, 6, 7), (numbers[1], numbers[3]), (ceil_div(n, 256), 1, 1), (256, 1, 1)
        ),
    )  # fmt: skip
    return Plan(launches, (4 * parts * n, 4 * parts * n))


KERNELS: dict[str, Any] = {
    **{name: _along(name) for name in SOFTMAX},
    "layer_norm_core": layer_norm_core,
    "layer_norm_grad": layer_norm_grad,
}
