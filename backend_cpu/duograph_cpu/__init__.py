"""The plugin module of the CPU backend, which the core loads through an entry point.

Its only hook returns the backend's `BackendSpec`. It must not import the C extension or other heavy
modules at the top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duograph.backend.hookspecs import hookimpl
from duograph.backend.locks import importing

if TYPE_CHECKING:
    from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the registration record of the CPU backend: its name, factory and priority."""
    from duograph.backend.protocol import BackendSpec

    return BackendSpec("CPU", _make, priority=50)


def _make() -> Backend:
    with importing:
        from .backend import CPU
    return CPU()
