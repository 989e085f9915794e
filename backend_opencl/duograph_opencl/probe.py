"""Tests whether an OpenCL device works, by running a small kernel on it.

The OpenCL backend calls `probe` for each device that it finds. The test must not raise for a broken
driver.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyopencl as cl

_SOURCE = (
    "__kernel void probe(__global int *x) { x[get_global_id(0)] = 3 * (int)get_global_id(0) + 1; }"
)
_ITEMS = 8


def probe(device: cl.Device) -> str | None:
    """Run a small kernel on an OpenCL device; return None if the result is right, else why not."""
    if not device.available or not device.compiler_available:
        return "the driver says that it is not available, or has no compiler"
    try:
        context = cl.Context([device])
        queue = cl.CommandQueue(context, device)
        kernel = cl.Kernel(build_uncached(cl.Program(context, _SOURCE)), "probe")
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * _ITEMS)
        kernel.set_arg(0, buffer)
        cl.enqueue_nd_range_kernel(queue, kernel, (_ITEMS,), (1,))
        found = np.zeros(_ITEMS, np.int32)
        cl.enqueue_copy(queue, found, buffer, is_blocking=True)
    except cl.Error as error:
        return f"it cannot build and run a kernel: {first_line(error)}"
    if found.tolist() != [3 * i + 1 for i in range(_ITEMS)]:
        return f"a kernel ran and gave {found.tolist()}"
    return None


def build_uncached(program: cl.Program, options: Sequence[str] | None = None) -> cl.Program:
    """Build an OpenCL program without the cache that pyopencl keeps on disk."""
    # pyopencl documents False; its types know str and None only
    return program.build(options, cache_dir=False)  # type: ignore[arg-type]


def first_line(error: Exception) -> str:
    """Return the first line of an OpenCL driver error, without the build log."""
    return str(error).strip().partition("\n")[0]
