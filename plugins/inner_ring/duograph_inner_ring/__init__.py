"""The plugin module of the inner-ring backend: 30 required kernels and five dtypes.

The framework loads it to find the backend, which tests use.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the registration record of the inner-ring backend with the 30 required kernels."""
    return BackendSpec("InnerRing", _make, priority=None)


def _make() -> Backend:
    from .backend import InnerRing

    return InnerRing()
