"""The plugin module of the OpenCL backend, which the core loads through an entry point.

Its only hook returns the backend's `BackendSpec`. It must not import pyopencl or other heavy
modules at the top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duograph.backend.hookspecs import hookimpl

if TYPE_CHECKING:
    from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the registration record of the OpenCL backend, with lower priority than the CPU."""
    from duograph.backend.protocol import BackendSpec

    return BackendSpec("OpenCL", _make, priority=20)


def _make() -> Backend:
    from duograph.errors import DeviceError

    try:
        import pyopencl
    except ImportError as error:
        raise DeviceError(
            f"the Python package pyopencl is not installed ({error}); pip install duograph[opencl]"
        ) from error
    from .backend import OpenCL

    return OpenCL()
