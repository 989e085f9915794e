"""The plugin module of two test backends that have only the 30 required kernels.

The core loads it through an entry point. The backend `InnerRing` has five dtypes, `WideRing` has
all dtypes. The module must not import the backends at the top.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> list[BackendSpec]:
    """Return the specs of `InnerRing`, with the five required dtypes, and `WideRing`, with all."""
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
