"""The hooks by which plugins add backends, communication engines, kernels, ops, rules or passes.

A plugin is a module named by an entry point of the group ``duograph``::

    [project.entry-points.duograph]
    mydevice = "duograph_mydevice"

whose functions are marked with `hookimpl`::

    from duograph.backend.hookspecs import hookimpl

    @hookimpl
    def duograph_backend():
        return BackendSpec("MyDevice", factory)

Hooks take no arguments. Plugin modules must not import anything heavy: `registry` loads them when a
program first asks about devices or ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from ..op import Op
    from .added_kernels import KernelSpec
    from .collectives import CollectivesSpec
    from .observers import Observer
    from .protocol import BackendSpec

__all__ = [
    "duograph_backend",
    "duograph_bprops",
    "duograph_collectives",
    "duograph_decompositions",
    "duograph_kernels",
    "duograph_observers",
    "duograph_ops",
    "duograph_passes",
]

PROJECT = "duograph"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def duograph_backend() -> BackendSpec | Sequence[BackendSpec]:  # type: ignore[empty-body]
    """Return the spec of the plugin's backend, or a list of specs."""


@hookspec
def duograph_ops() -> Sequence[Op]:  # type: ignore[empty-body]
    """Return ops to add to `duograph.ops`."""


@hookspec
def duograph_bprops() -> Mapping[str, Callable[..., object]]:  # type: ignore[empty-body]
    """Return gradient rules by op name, each `bprop(*operands, out, dout, **attributes)`."""


@hookspec
def duograph_decompositions() -> Mapping[str, Callable[..., object]]:  # type: ignore[empty-body]
    """Return decompositions by op name: functions with the op's signature that call other ops."""


@hookspec
def duograph_kernels() -> KernelSpec | Sequence[KernelSpec]:  # type: ignore[empty-body]
    """Return kernels of single ops to add to installed backends, each with a priority."""


@hookspec
def duograph_collectives() -> CollectivesSpec | Sequence[CollectivesSpec]:  # type: ignore[empty-body]
    """Return the spec of the plugin's communication engine, or a list of specs."""


@hookspec
def duograph_observers() -> Observer | Sequence[Observer]:  # type: ignore[empty-body]
    """Return observers, which are notified of every later kernel, copy and compilation."""


@hookspec
def duograph_passes() -> Sequence[Callable[..., object]]:  # type: ignore[empty-body]
    """Return graph passes to run after the built-in ones, each from graph to graph."""
