"""The NumPy reference backend: a thin adaptor over the ops' `reference` rules."""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """The hook through which duograph finds the reference backend."""
    return BackendSpec("Reference", _make, priority=-10)


def _make() -> Backend:
    from .backend import Reference

    return Reference()
