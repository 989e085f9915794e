"""The OpenCL backend of duograph. This module holds its plugin hook and imports nothing heavy."""

from duograph.backend.hookspecs import hookimpl


@hookimpl
def duograph_backend():
    """The backend `OpenCL`; the CPU's own ranks above it."""
    from duograph.backend.protocol import BackendSpec

    return BackendSpec("OpenCL", _make, priority=20)


def _make():
    from .backend import OpenCL

    return OpenCL()
