"""The plugin module of the backend on PyTorch.

The core loads it through an entry point. It must not import PyTorch at the top; the backend is
imported when the device is first used.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the registration record of the backend on PyTorch, which is used only by name."""
    return BackendSpec("Torch", _make, priority=None)


def _make() -> Backend:
    from .backend import Torch

    return Torch()
