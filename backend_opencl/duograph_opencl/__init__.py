"""The OpenCL backend of duograph. This module holds its plugin hook and imports nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duograph.backend.hookspecs import hookimpl

if TYPE_CHECKING:
    from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """The backend `OpenCL`; the CPU's own ranks above it."""
    from duograph.backend.protocol import BackendSpec

    return BackendSpec("OpenCL", _make, priority=20)


def _make() -> Backend:
    from .backend import OpenCL

    return OpenCL()
