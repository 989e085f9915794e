"""The plugin module of two test backends that have only the 30 required kernels.

The core loads it through an entry point. `InnerRing` has five dtypes, `WideRing` all of them.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> list[BackendSpec]:
    """Return the specs of `InnerRing`, on the five required dtypes, and `WideRing`, on all."""
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
