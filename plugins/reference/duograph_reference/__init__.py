"""The plugin module of the reference backend, which runs the ops' NumPy `reference` rules.

The core loads it through an entry point; tests use the backend. It must not import the backend at
the top.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the registration record of the reference backend, which runs NumPy rules."""
    return BackendSpec("Reference", _make, priority=-10)


def _make() -> Backend:
    from .backend import Reference

    return Reference()
