"""The main CUDA kernels as machine code: what is expected of each, and a table of all.

python backend_cuda/tests/cuda_main_kernels.py             prints the table

The kernels are those that the backend launches for a device with the number of multiprocessors of
an H100, without NVIDIA's libraries. NVRTC compiles them; no GPU is needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
from cuda_machine_code import MachineCode, read_machine_code
from cuda_recording import NAME, Recording
from duograph import ops
from duograph.backend import registry
from duograph.backend.grid import GridDevice, Launch
from duograph.backend.protocol import BackendSpec
from duograph.op import OPS
from duograph_cuda.compiler import Nvrtc

__all__ = [
    "CAPABILITIES",
    "KERNELS",
    "Found",
    "MainKernel",
    "compiles_for",
    "found",
    "machine_code",
]

CAPABILITIES = ((8, 0), (9, 0), (10, 0))
MULTIPROCESSORS = 132
COLUMNS = (
    "kernel", "threads of a block", "registers", "threads at once", "shared bytes",
    "local memory", "bytes of a load", "of a store", "HMMA", "MUFU", "BAR", "instructions",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class MainKernel:
    """One kernel, and what its machine code must have on every architecture.

    Attributes:
        name: the printed name.
        call: runs the op on the recording device.
        stem: how the kernel's name begins.
        threads: threads that a multiprocessor can run at once, at least; registers and shared
            memory limit them.
        loads, stores: bytes that each load from global memory, and each store to it, may access.
        needs: instructions that it must have, by the beginnings of their names.
        tf32: whether DUOGRAPH_CUDA_TF32 is set.
    """

    name: str
    call: Callable[[], object]
    stem: str
    threads: int
    loads: frozenset[int]
    stores: frozenset[int]
    needs: tuple[str, ...] = ()
    tf32: bool = False


@dataclasses.dataclass(frozen=True)
class Found:
    """A launch of a kernel, and the complete source that NVRTC compiles."""

    launch: Launch
    source: str


class Launching(Recording):
    """The recording backend, which also keeps every launch, in `launches`."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[Found] = []

    def launcher(self, device: GridDevice, name: str, launch: Launch) -> Callable[..., None]:
        device.units = MULTIPROCESSORS
        text = launch.source
        self.launches.append(Found(launch, device.dialect.prelude_for(text) + text))
        return super().launcher(device, name, launch)


# ---- the kernels --------------------------------------------------------------------------------

F32, F16, BF16 = ms.float32, ms.float16, ms.bfloat16
ROWS = (512, 4096)


def _zeros(*shape: int, dtype: ms.dtype.DType = F32) -> ms.Tensor:
    return ms.Tensor(np.zeros(shape, np.float32)).astype(dtype)


def _on(function: Callable[..., object], dtype: ms.dtype.DType, *shapes: tuple[int, ...]) -> Any:
    """Return a function that calls `function` with Tensors of a dtype and the given shapes."""
    return lambda: function(*[_zeros(*shape, dtype=dtype) for shape in shapes])


def _chain(x: ms.Tensor) -> object:
    """The element-wise chain of benchmarks/gpu.py, as one fused region."""
    return ms.jit(lambda v: ops.sigmoid(ops.tanh(v) + ops.exp(-v) * 0.1), jit_level="O1")(x)


def _rows(x: ms.Tensor) -> object:
    """A softmax by hand, as one fused region."""

    def softmax(x: ms.Tensor) -> ms.Tensor:
        e = ops.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return ms.jit(softmax, jit_level="O1")(x)


def _concat(x: ms.Tensor) -> ms.Tensor:
    return ops.concat((x, x), 0)


def _transpose(x: ms.Tensor) -> ms.Tensor:
    return ops.transpose(x, (1, 0))


def _layer_norm(x: ms.Tensor) -> ms.Tensor:
    gamma, beta = (_zeros(ROWS[1], dtype=x.dtype) for _ in range(2))
    return ops.layer_norm(x, (ROWS[1],), gamma, beta)


def _cross_entropy(x: ms.Tensor) -> object:
    labels = ms.Tensor(np.zeros(len(x), np.int32))

    def loss(x: ms.Tensor) -> ms.Tensor:
        return ops.cross_entropy(x.astype(F32), labels)

    return ms.jit(ms.value_and_grad(loss), jit_level="O1")(x)


def _products(x: ms.Tensor) -> object:
    return OPS["batch_products"](x, x, _zeros(x.shape[1]))


def _gather(x: ms.Tensor) -> ms.Tensor:
    return ops.gather(x, ms.Tensor(np.zeros(512, np.int32)), 0)


def _convolution(x: ms.Tensor, w: ms.Tensor) -> ms.Tensor:
    return ops.conv2d(x, w, pad_mode="same")


def _attention(q: ms.Tensor, k: ms.Tensor, v: ms.Tensor) -> ms.Tensor:
    return ops.flash_attention_score(q, k, v, q.shape[1], scalar_value=0.1, input_layout="BNSD")


_attention_grad = ms.grad(_attention, (0, 1, 2))
N = (1 << 16,)
SIDE = (2176, 2176)
HEADS = ((2, 4, 256, 64),) * 3
IMAGES = ((8, 64, 56, 56), (64, 64, 3, 3))


def _widths(*widths: int) -> frozenset[int]:
    return frozenset(widths)


WIDE = _widths(16)
HMMA = ("HMMA.16816.F32.BF16",)

KERNELS = (
    MainKernel("add, float32", _on(ops.add, F32, N, N), "add_f32", 2048, WIDE, WIDE),
    MainKernel("add, bfloat16", _on(ops.add, BF16, N, N), "add_bf16", 2048, WIDE, WIDE),
    MainKernel(
        "row added, bfloat16", _on(ops.add, BF16, ROWS, ROWS[1:]), "add_bf16", 2048, WIDE, WIDE
    ),
    MainKernel("concat, bfloat16", _on(_concat, BF16, ROWS), "strided_copy", 2048, WIDE, WIDE),
    MainKernel("fused chain, float32", _on(_chain, F32, N), "region", 2048, WIDE, WIDE),
    MainKernel("fused chain, bfloat16", _on(_chain, BF16, N), "region", 2048, WIDE, WIDE),
    MainKernel("fused rows, bfloat16", _on(_rows, BF16, ROWS), "region", 1024, WIDE, WIDE),
    MainKernel("softmax, float32", _on(ops.softmax, F32, ROWS), "softmax", 2048, WIDE, WIDE),
    MainKernel("softmax, bfloat16", _on(ops.softmax, BF16, ROWS), "softmax", 2048, WIDE, WIDE),
    MainKernel(
        "layer_norm, bfloat16", _on(_layer_norm, BF16, ROWS), "layer_norm",
        1536, WIDE, _widths(4, 16),
    ),
    MainKernel(
        "layer_norm's gradient, bfloat16", _on(ms.grad(_layer_norm), BF16, ROWS),
        "layer_norm_grad", 1024, _widths(4, 16), WIDE,
    ),
    MainKernel(
        "cross entropy and gradient, bfloat16", _on(_cross_entropy, BF16, (512, 8192)), "region2",
        512, _widths(1, 4, 16), _widths(4, 16),
    ),
    MainKernel(
        "sum of rows, float32", _on(lambda x: x.sum(1), F32, ROWS), "reduce_sum",
        2048, WIDE, _widths(4),
    ),
    MainKernel(
        "sum of rows, bfloat16", _on(lambda x: x.sum(1), BF16, ROWS), "reduce_sum",
        2048, WIDE, _widths(4),
    ),
    MainKernel(
        "sum of columns, float32", _on(lambda x: x.sum(0), F32, ROWS), "reduce_sum",
        1536, WIDE, _widths(4),
    ),
    MainKernel(
        "sum of columns, bfloat16", _on(lambda x: x.sum(0), BF16, ROWS), "reduce_sum",
        1536, WIDE, _widths(4),
    ),
    MainKernel(
        "batch moments, channels last, bfloat16", _on(OPS["batch_moments"], BF16, (1 << 16, 64)),
        "column_moments", 768, WIDE, _widths(4),
    ),
    MainKernel(
        "batch products, channels last, bfloat16", _on(_products, BF16, (1 << 16, 64)),
        "column_products", 768, _widths(4, 16), _widths(4),
    ),
    MainKernel(
        "argmax of rows, bfloat16", _on(lambda x: x.argmax(1), BF16, ROWS), "extreme",
        2048, WIDE, _widths(8),
    ),
    MainKernel(
        "cumsum of rows, float32", _on(lambda x: x.cumsum(1), F32, ROWS), "scan", 1536, WIDE, WIDE
    ),
    MainKernel(
        "gather of rows, float32", _on(_gather, F32, (1000, 768)), "gather",
        2048, _widths(4, 16), _widths(8, 16),
    ),
    # a warp reads and writes 128 adjacent bytes
    MainKernel(
        "transpose, float32", _on(_transpose, F32, (512, 512)), "tiled_copy",
        2048, _widths(4), _widths(4),
    ),
    MainKernel(
        "matmul, bfloat16", _on(ops.matmul, BF16, SIDE, SIDE), "product",
        512, WIDE, _widths(4), HMMA,
    ),
    MainKernel(
        "matmul, TF32", _on(ops.matmul, F32, SIDE, SIDE), "product",
        512, WIDE, _widths(4, 8), ("HMMA.1688.F32.TF32",), tf32=True,
    ),
    MainKernel(
        "matmul, float32", _on(ops.matmul, F32, SIDE, SIDE), "product", 256, WIDE, _widths(4, 16)
    ),
    # the images' elements are computed where they are read, one by one
    MainKernel(
        "convolution, bfloat16", _on(_convolution, BF16, *IMAGES), "product",
        384, _widths(2, 16), _widths(4), HMMA,
    ),
    # with code for rows that are not aligned
    MainKernel(
        "attention, bfloat16", _on(_attention, BF16, *HEADS), "attend",
        384, _widths(2, 16), _widths(2, 4), HMMA,
    ),
    MainKernel(
        "attention's gradient, queries", _on(_attention_grad, BF16, *HEADS), "attend_queries",
        384, _widths(2, 4, 16), _widths(2, 4), HMMA,
    ),
    MainKernel(
        "attention's gradient, keys", _on(_attention_grad, BF16, *HEADS), "attend_keys",
        256, _widths(2, 4, 16), _widths(2, 4), HMMA,
    ),
)  # fmt: skip


# ---- their machine code -------------------------------------------------------------------------


@contextlib.contextmanager
def _recording() -> Iterator[list[Found]]:
    """Make a recording device the current one; give the list of its launches."""
    backend = Launching()
    registry.register(BackendSpec(NAME, lambda: backend, priority=None))
    before = ms.get_context("device_target")
    try:
        ms.set_context(device_target=NAME)
        yield backend.launches
    finally:
        ms.set_context(device_target=before)
        registry.unregister(NAME)


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@functools.cache
def found(kernel: MainKernel) -> Found:
    """Return the launch of a kernel, which the backend makes for its call."""
    with _variable("DUOGRAPH_CUDA_TF32", "01"[kernel.tf32]), _recording() as launches:
        kernel.call()
    names = [each.launch.name for each in launches]
    for each, name in zip(launches, names):
        if name.startswith(kernel.stem):
            return each
    raise LookupError(f"{kernel.name}: no kernel {kernel.stem} among {names}")


@functools.cache
def _compiler(capability: tuple[int, int]) -> Nvrtc:
    return Nvrtc(capability)


def compiles_for(capability: tuple[int, int]) -> bool:
    """Return whether the installed NVRTC makes machine code for an architecture."""
    return _compiler(capability).suffix == Nvrtc.suffix


def machine_code(kernel: MainKernel, capability: tuple[int, int]) -> MachineCode:
    """Return the machine code of a kernel for an architecture; the disk cache keeps its cubin."""
    each = found(kernel)
    image = _compiler(capability).image(each.source)
    return read_machine_code(image, each.launch.name, capability)


def _row(kernel: MainKernel) -> str:
    """Return a kernel's row of the table: figures for each architecture, or for sm_90 only."""
    threads = math.prod(found(kernel).launch.size)
    codes = [machine_code(kernel, capability) for capability in CAPABILITIES]
    code = codes[CAPABILITIES.index((9, 0))]
    cells = [
        kernel.name,
        threads,
        " ".join(str(c.registers) for c in codes),
        " ".join(str(c.blocks(threads) * threads) for c in codes),
        code.shared,
        max(c.count("LDL", "STL") for c in codes),
        " ".join(map(str, sorted(code.widths("LDG")))),
        " ".join(map(str, sorted(code.widths("STG")))),
        *(code.count(name) or "" for name in ("HMMA", "MUFU", "BAR")),
        code.length,
    ]
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print a table of all kernels."""
    nvrtc = _compiler(CAPABILITIES[0]).name
    names = ", ".join(f"sm_{a}{b}" for a, b in CAPABILITIES)
    print(f"NVRTC {nvrtc}, {time.strftime('%Y-%m-%d')}; registers and threads: {names}\n")
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for kernel in KERNELS:
        print(_row(kernel), flush=True)


if __name__ == "__main__":
    main()
