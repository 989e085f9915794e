"""Kernels by hand on the emulated device."""

from __future__ import annotations

import numpy as np
from duograph.backend.grid import Launch
from duograph_cuda.device import CudaDevice
from duograph_cuda.driver import Driver
from duograph_cuda.emulation.backend import CudaEmulated
from duograph_cuda.emulation.compiler import HostCompiler
from duograph_cuda.emulation.driver import EmulatedDriver
from duograph_cuda.sources import text

__all__ = ["Launch", "device", "run", "text"]


def device(limit=1 << 30, seed=1, caching=False):
    """Return a new emulated device."""
    driver = Driver(EmulatedDriver(HostCompiler(), limit, seed), caching)
    return CudaDevice(
        driver, 0, lambda _: HostCompiler(), CudaEmulated.find_library, CudaEmulated.find_cudnn
    )


def run(source, *arrays, out, scalars=(), groups=(1, 1, 1), size=(32, 1, 1), on=None):
    """Launch kernel `k` of a source; return its result as an array.

    The kernel's arguments are arrays, then the result, then numbers as (dtype, value).
    """
    on = on or device()
    module = on.build(on.dialect.prelude_for(source) + source)
    handles = [on.copy_in(a) for a in (*arrays, out)]
    on.launcher(module, "k", groups, size, len(handles), scalars)(*handles)
    return on.copy_out(handles[-1], out.shape, np.dtype(out.dtype))
