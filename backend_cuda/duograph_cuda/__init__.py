"""The plugin module of the CUDA backend, which the core loads through an entry point.

Its only hook returns the backend's specs. It must not import the CUDA driver or other heavy modules
at the top.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> list[BackendSpec]:
    """Return the registration records of the device targets `GPU` and `CUDA-emulated`.

    `GPU` has a lower priority than the CPU backend; where that backend is installed, `GPU` is used
    only by name. `CUDA-emulated` runs the CUDA kernels on the CPU, for tests.
    """
    return [
        BackendSpec("GPU", _make, priority=20, aliases=("CUDA",)),
        BackendSpec("CUDA-emulated", _make_emulated, priority=None),
    ]


def _make() -> Backend:
    from .backend import Cuda

    return Cuda()


def _make_emulated() -> Backend:
    from .emulation.backend import CudaEmulated

    return CudaEmulated()
