"""The CUDA backend of duograph. This module holds its plugin hook and imports nothing heavy."""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> list[BackendSpec]:
    """The backend `GPU`, and `CUDA-emulated`, which runs its kernels on the processor for tests.

    GPU ranks below CPU, so it is taken only when it is named, until it has been seen to run on
    hardware.
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
