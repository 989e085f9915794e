"""The plugin module of the inner-ring backend: 30 required kernels and five dtypes.

The framework loads it to find the backend, which tests use.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> list[BackendSpec]:
    """Return the specs of the ring on the five required dtypes, and of the ring on all dtypes."""
    return [
        BackendSpec("InnerRing", _inner, priority=None),
        BackendSpec("WideRing", _wide, priority=None),
    ]


def _inner() -> Backend:
    from .backend import InnerRing

    return InnerRing()


def _wide() -> Backend:
    from .backend import WideRing

    return WideRing()
