"""The CPU backend of duograph: C kernels behind cffi. This module holds its plugin hook and imports
nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duograph.backend.hookspecs import hookimpl

if TYPE_CHECKING:
    from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """The backend `CPU`."""
    from duograph.backend.protocol import BackendSpec

    return BackendSpec("CPU", _make, priority=50)


def _make() -> Backend:
    from .backend import CPU

    return CPU()
