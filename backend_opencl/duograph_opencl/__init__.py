"""The plugin module of the OpenCL backend.

duograph loads it to find the backend, so it must not import anything heavy at the top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duograph.backend.hookspecs import hookimpl

if TYPE_CHECKING:
    from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the spec of the backend `OpenCL`; the CPU backend has a higher priority."""
    from duograph.backend.protocol import BackendSpec

    return BackendSpec("OpenCL", _make, priority=20)


def _make() -> Backend:
    from .backend import OpenCL

    return OpenCL()
