"""Kernels of softmax and layer_norm over dense rows on a CPU, for calls outside compiled functions.

A work item processes whole rows, each while it is in the caches. A backend may decompose these ops
in compiled functions (`Backend.decomposed`), because a fused region reads a row no more often and
computes the surrounding ops too. For GPUs the builders return None.
"""

from __future__ import annotations

import math

from ...dtype import DType, float32, float64
from ..codegen.dialect import SUFFIX
from .device import GridDevice, Plan
from .kernel_writer import Kernel, ceil_div, element, stretch
from .reductions import combine_of, greatest
from .table import Types, kernel

__all__ = ["OPS"]

# The ops with kernels in this module.
OPS = frozenset(("softmax", "log_softmax", "softmax_grad", "log_softmax_grad", "layer_norm_core"))


_REAL = {"f32": float32, "f64": float64}
_SQRT = {"f32": "DG_SQRT_F32", "f64": "DG_SQRT_F64"}


class _Rows(Kernel):
    """Writes a kernel whose work items process rows of n elements.

    In the lines written between the calls of `begin` and `end`, the C variable `from` is the offset
    of the current row's first element. `real` is the C type of the computation.
    """

    def __init__(self, device: GridDevice, name: str, rows: int, n: int, real: str) -> None:
        super().__init__(device, name, rows * n)
        self.rows, self.n, self.real = rows, n, real

    def begin(self) -> None:
        """Append the start of the kernel's loop over rows; buffers must be declared before."""
        self.number("rows", self.rows)
        self.number("n", self.n)
        self.grain = stretch(
            self.device, self.rows, ceil_div(2048, self.n), ceil_div(1 << 16, self.n)
        )
        super().stretch("rows", self.grain)
        self.open("for (ix row = begin; row < end; row++)")
        self.line("const ix from = row * n;")

    def sum(self, name: str, *texts: str) -> None:
        """Append a loop that sums the variable `value` over a row, into a new variable `name`.

        `texts` are the C lines that define `value` for element j.
        """
        self.line(f"{self.real} {name} = 0;", "DG_ANY_ORDER")
        self.open("for (ix j = 0; j < n; j++)")
        self.line(*texts, f"DG_ADD_TO({name}, value)")
        self.close()

    def each(self, *texts: str) -> None:
        """Append a loop that executes the C lines `texts` for each element j of the row."""
        self.line("DG_INDEPENDENT")
        self.open("for (ix j = 0; j < n; j++)")
        self.line(*texts)
        self.close()

    def end(self) -> Plan:
        """Append the end of the kernel's loop over rows, and return the launch plan."""
        self.close()
        return Plan((self.launch(ceil_div(self.rows, self.grain)),))


def _dense(device: GridDevice, types: Types, first: int, real: DType) -> bool:
    """Return whether these kernels apply: on a CPU, to operands of dtype `real` that are not empty.

    `first` is the number of the first of the axes that form a row; there must be at least one.
    """
    x = types[0]
    return (
        device.serial
        and x.size > 0
        and first < len(x.shape)
        and all(t.dtype is real for t in types)
    )


def _softmax(device: GridDevice, types: Types, axis: int, log: bool) -> Plan | None:
    (x,) = types
    if not _dense(device, types, axis, x.dtype) or axis != len(x.shape) - 1:
        return None
    real = element(x.dtype)
    n = x.shape[-1]
    k = _Rows(device, "log_softmax" if log else "softmax", x.size // n, n, real)
    k.read("x", x.dtype, 0)
    k.write("out", x.dtype, 1)
    load, store = device.dialect.load, device.dialect.store
    v = load(x.dtype, "x[from + j]")
    wide = SUFFIX[x.dtype] == real
    k.begin()
    greatest(k, combine_of(device, "max", x.dtype), "most", v, "0", "n")
    value = f"const {real} value = dg_exp_{real}({v} - most);"
    if log:
        k.sum("sum", value)
        k.line(f"const {real} whole = dg_log_{real}(sum);")
        k.each(f"out[from + j] = {store(x.dtype, f'{v} - most - whole')};")
    elif wide:
        k.sum("sum", value, "out[from + j] = value;")
        k.each("out[from + j] = out[from + j] / sum;")
    else:
        k.sum("sum", value)
        k.each(f"out[from + j] = {store(x.dtype, f'dg_exp_{real}({v} - most) / sum')};")
    return k.end()


@kernel("softmax")
def softmax(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
    """Return the launch plan of softmax, exp(x - max) / sum(exp(x - max)), on a CPU.

    Returns None on a GPU, along another axis than the last, and for empty operands or mixed dtypes.
    """
    return _softmax(device, types, axis, False)


@kernel("log_softmax")
def log_softmax(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
    """Return the launch plan of log_softmax, x - max - log(sum(exp(x - max))), on a CPU.

    Returns None on a GPU, along another axis than the last, and for empty operands or mixed dtypes.
    """
    return _softmax(device, types, axis, True)


def _softmax_grad(device: GridDevice, types: Types, axis: int, log: bool) -> Plan | None:
    y, dy = types
    if not _dense(device, types, axis, y.dtype) or axis != len(y.shape) - 1 or y.shape != dy.shape:
        return None
    real = element(y.dtype)
    n = y.shape[-1]
    k = _Rows(device, "log_softmax_grad" if log else "softmax_grad", y.size // n, n, real)
    k.read("y", y.dtype, 0)
    k.read("dy", y.dtype, 1)
    k.write("out", y.dtype, 2)
    a, b = (device.dialect.load(y.dtype, f"{name}[from + j]") for name in ("y", "dy"))
    k.begin()
    k.sum("sum", f"const {real} value = {b if log else f'{a} * {b}'};")
    value = f"{b} - dg_exp_{real}({a}) * sum" if log else f"{a} * ({b} - sum)"
    k.each(f"out[from + j] = {device.dialect.store(y.dtype, value)};")
    return k.end()


@kernel("softmax_grad")
def softmax_grad(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
    """Return the launch plan of softmax's gradient, out * (dout - sum(out * dout)), on a CPU.

    Returns None on a GPU, along another axis than the last, and for empty operands or mixed dtypes
    or shapes.
    """
    return _softmax_grad(device, types, axis, False)


@kernel("log_softmax_grad")
def log_softmax_grad(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
    """Return the launch plan of log_softmax's gradient, dout - exp(out) * sum(dout), on a CPU.

    Returns None on a GPU, along another axis than the last, and for empty operands or mixed dtypes
    or shapes.
    """
    return _softmax_grad(device, types, axis, True)


@kernel("layer_norm_core")
def layer_norm_core(
    device: GridDevice, types: Types, results: Types, *, axis: int, eps: float
) -> Plan | None:
    """Return the launch plan of layer_norm on a CPU: the normalised tensor, mean and rstd.

    Mean and variance are those over the axes from `axis` on. rstd is 1 / sqrt(variance + eps); the
    tensor is (x - mean) * rstd * gamma + beta. Returns None on a GPU, and for empty operands or
    mixed dtypes.
    """
    x = types[0]
    if not _dense(device, types, axis, x.dtype):
        return None
    real = element(x.dtype)
    n = math.prod(x.shape[axis:])
    k = _Rows(device, "layer_norm", x.size // n, n, real)
    for place, name in enumerate(("x", "gamma", "beta")):
        k.read(name, x.dtype, place)
    for place, (name, t) in enumerate(zip(("out", "means", "rstds"), results, strict=True), 3):
        k.write(name, t.dtype, place)
    load, store = device.dialect.load, device.dialect.store
    v = load(x.dtype, "x[from + j]")
    statistic = results[1].dtype
    k.begin()
    k.number("eps", eps, _REAL[real])
    k.sum("sum", f"const {real} value = {v};")
    k.line(f"const {real} mean = sum / ({real})n;")
    k.sum("squares", f"const {real} centred = {v} - mean, value = centred * centred;")
    k.line(f"const {real} rstd = ({real})1 / {_SQRT[real]}(squares / ({real})n + eps);")
    scaled = f"({v} - mean) * rstd * {load(x.dtype, 'gamma[j]')} + {load(x.dtype, 'beta[j]')}"
    k.each(f"out[from + j] = {store(x.dtype, scaled)};")
    k.line(f"means[row] = {store(statistic, 'mean')};", f"rstds[row] = {store(statistic, 'rstd')};")
    return k.end()
