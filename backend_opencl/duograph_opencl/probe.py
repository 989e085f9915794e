"""Tests by small kernels whether an OpenCL device works, and what its kernels may use.

The OpenCL backend calls `probe` for each device that it finds, `Device` the other functions. If a
driver is broken, `probe` must not raise an exception.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl
from duograph.backend.codegen.dialect import OPENCL

from .features import build_options, features_of

if TYPE_CHECKING:
    from .device import Device

# Mesa 22.3's rusticl on llvmpipe takes no int for less than a constant once it is a long, so that
# indices from the end of an axis would be refused and masks would be wrong.
_SOURCE = """
__kernel void probe(__global int *x) {
    const size_t i = get_global_id(0);
    const long wide = (long)x[i];
    x[i] = wide < 0 ? 3 * x[i] : x[i] + 7;
}
"""
_NUMBERS = np.arange(-4, 4, dtype=np.int32)


def probe(device: cl.Device) -> str | None:
    """Return None if an OpenCL device works, else the reason why not.

    The device must have a compiler for OpenCL C 1.2, 64-bit integers and float32 arithmetic as in
    IEEE 754, and a small kernel, built with the options of all kernels, must give the right result.
    """
    if not device.available or not device.compiler_available:
        return "the driver says that it is not available, or has no compiler"
    version = re.match(r"OpenCL C (\d+)\.(\d+)", device.opencl_c_version)
    if version is None or tuple(map(int, version.groups())) < (1, 2):
        return f"its language is {device.opencl_c_version.strip()}; kernels are in OpenCL C 1.2"
    features = features_of(device)
    if not features.int64:
        return "it has no 64-bit integers (extension cles_khr_int64), which kernels count with"
    if not device.single_fp_config & cl.device_fp_config.ROUND_TO_NEAREST:
        return "its float32 arithmetic does not round to nearest"
    if not device.single_fp_config & cl.device_fp_config.INF_NAN:
        return "its float32 arithmetic has no infinities and NaN"
    try:
        context = cl.Context([device])
        queue = cl.CommandQueue(context, device)
        program, options = cl.Program(context, _SOURCE), build_options(device, features)
        kernel = cl.Kernel(build_uncached(program, options), "probe")
        copied = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffer = cl.Buffer(context, copied, hostbuf=_NUMBERS)
        kernel.set_arg(0, buffer)
        cl.enqueue_nd_range_kernel(queue, kernel, _NUMBERS.shape, (1,))
        found = np.zeros_like(_NUMBERS)
        cl.enqueue_copy(queue, found, buffer, is_blocking=True)
    except cl.Error as error:
        return f"it cannot build and run a kernel: {first_line(error)}"
    wanted = np.where(_NUMBERS < 0, 3 * _NUMBERS, _NUMBERS + 7)
    if (found != wanted).any():
        return f"a kernel ran and gave {found.tolist()}; wanted {wanted.tolist()}"
    return None


# 64 work items, each of which adds up the numbers of all in its subgroup.
_SUBGROUPS = """
__kernel void probe(__global int *sum, __global int *size) {
    int x = (int)get_local_id(0) + 1;
    for (i32 far = DG_SUBGROUP_SIZE() / 2; far > 0; far /= 2) x += DG_SUBGROUP_SHUFFLE(x, far);
    if (DG_SUBGROUP_PLACE() == 0) sum[DG_SUBGROUP()] = x;
    size[get_local_id(0)] = DG_SUBGROUP_SIZE() * 100 + DG_SUBGROUPS();
}
"""


def subgroups_work(context: cl.Context, options: Sequence[str]) -> bool:
    """Return whether work items of a subgroup can exchange values by the prelude's macros.

    All subgroups must have the same size, a power of two. `options` are the compiler's options.
    """
    queue = cl.CommandQueue(context)
    items = 64
    found, sizes = np.zeros(items, np.int32), np.zeros(items, np.int32)
    try:
        program = cl.Program(context, OPENCL.own_prelude() + _SUBGROUPS)
        kernel = cl.Kernel(build_uncached(program, options), "probe")
        buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * items) for _ in range(2)]
        for k, buffer in enumerate(buffers):
            kernel.set_arg(k, buffer)
        cl.enqueue_nd_range_kernel(queue, kernel, (items,), (items,))
        cl.enqueue_copy(queue, found, buffers[0], is_blocking=True)
        cl.enqueue_copy(queue, sizes, buffers[1], is_blocking=True)
    except cl.Error:
        return False
    size, count = divmod(int(sizes[0]), 100)
    alike = bool((sizes == sizes[0]).all()) and size * count == items and size & (size - 1) == 0
    return alike and int(found[:count].sum()) == items * (items + 1) // 2


# The length in bits of the longest vector registers for which the compiler builds; 0 if it does not
# say. Compilers that build for the processor itself, such as PoCL's, define the macros.
_REGISTERS = """
DG_KERNEL void registers(DG_GLOBAL i32 *bits) {
#if defined(__AVX512F__)
    bits[0] = 512;
#elif defined(__AVX__)
    bits[0] = 256;
#elif defined(__SSE__) || defined(__ARM_NEON)
    bits[0] = 128;
#else
    bits[0] = 0;
#endif
}
"""


def register_bits(device: Device) -> int:
    """Return the length in bits of the vector registers that a CPU device's kernels may use.

    It is the length for which the OpenCL compiler builds, which may be less than the processor's;
    0 means that it is unknown.
    """
    module = device.build(device.dialect.own_prelude() + _REGISTERS)
    run = device.launcher(module, "registers", (1, 1, 1), (1, 1, 1), 1, ())
    handle = device.allocate(4, "registers")
    run(handle)
    return int(device.copy_out(handle, (1,), np.dtype(np.int32))[0])


def build_uncached(program: cl.Program, options: Sequence[str] | None = None) -> cl.Program:
    """Build an OpenCL program without the cache that pyopencl keeps on disk; return the program.

    `options` are the compiler's options; None means no options. pyopencl's warnings about compiler
    output are suppressed, since Intel's compiler prints some for each program.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        # pyopencl documents False; its types know str and None only
        return program.build(options, cache_dir=False)  # type: ignore[arg-type]


def first_line(error: Exception) -> str:
    """Return the first line of an OpenCL driver error, without the build log."""
    return str(error).strip().partition("\n")[0]
