"""The plugin module of the null backend, which computes nothing.

The core loads it through an entry point; benchmarks and tests use the backend. It must not import
the backend at the top.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the registration record of the null backend, which computes nothing."""
    return BackendSpec("Null", _make, priority=None)


def _make() -> Backend:
    from .backend import Null

    return Null()
