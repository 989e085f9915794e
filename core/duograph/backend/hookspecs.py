"""The hooks of the plugin seam. An implementation may take fewer arguments, never others.

A plugin is a module named by an entry point of the group ``duograph``::

    [project.entry-points.duograph]
    mydevice = "duograph_mydevice"

whose functions are marked with `hookimpl`::

    from duograph.backend.hookspecs import hookimpl

    @hookimpl
    def duograph_backend():
        return BackendSpec("MyDevice", factory)

Plugin modules import nothing heavy at load: they are loaded when a device or an op table is first
needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from ..op import Op
    from .protocol import BackendSpec

PROJECT = "duograph"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def duograph_backend() -> BackendSpec | Sequence[BackendSpec]:  # type: ignore[empty-body]
    """The backend, or backends, that this plugin brings."""


@hookspec
def duograph_ops() -> Sequence[Op]:  # type: ignore[empty-body]
    """Ops that this plugin adds; they appear in `duograph.ops` under their names."""


@hookspec
def duograph_bprops() -> Mapping[str, Callable[..., Any]]:  # type: ignore[empty-body]
    """Gradient rules by op name, each `bprop(*operands, out, dout, **attributes)`."""


@hookspec
def duograph_decompositions() -> Mapping[str, Callable[..., Any]]:  # type: ignore[empty-body]
    """Decompositions by op name, each a function with the op's signature made of ops."""


@hookspec
def duograph_passes() -> Sequence[Callable[..., Any]]:  # type: ignore[empty-body]
    """Graph passes to run after the built-in ones, each from graph to graph."""
