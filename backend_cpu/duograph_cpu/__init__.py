"""The plugin module of the CPU backend.

duograph loads it to find the backend, so it must not import anything heavy at the top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duograph.backend.hookspecs import hookimpl

if TYPE_CHECKING:
    from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the spec of the backend `CPU`."""
    from duograph.backend.protocol import BackendSpec

    return BackendSpec("CPU", _make, priority=50)


def _make() -> Backend:
    from .backend import CPU

    return CPU()
