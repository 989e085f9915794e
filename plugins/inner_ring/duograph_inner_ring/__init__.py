"""The plugin module of the smallest backend: the inner ring of kernels and five dtypes."""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the spec of the inner-ring backend."""
    return BackendSpec("InnerRing", _make, priority=None)


def _make() -> Backend:
    from .backend import InnerRing

    return InnerRing()
