"""The registry of backends: finds plugins by entry point and selects the default device.

It is lazy. The first question about devices loads the plugin modules; a backend is made when it is
first used. An error of one plugin must not affect others: it is stored, printed by `duograph
devices`, and raised when a user asks for that device.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pluggy

from .. import context
from .._locks import new_lock
from ..errors import BackendUnavailable, DeviceError
from ..runtime_state import runtime_state
from ..types import Device
from . import hookspecs
from .protocol import SEAM_VERSION, Backend, BackendSpec

__all__ = [
    "Entry",
    "entries",
    "backend",
    "register",
    "unregister",
    "current_device",
    "plugin_hooks",
]

GROUP = "duograph"


@dataclasses.dataclass
class Entry:
    """One registered backend: its spec, the package it comes from, and the backend or its problem.

    Attributes:
        problem: the reason why it cannot run here.
        broken: the problem is an exception, not a missing device or library that it reports.
    """

    name: str
    spec: BackendSpec | None
    source: importlib.metadata.EntryPoint | str
    backend: Backend | None = None
    problem: str | None = None
    broken: bool = False
    lock: Any = dataclasses.field(default_factory=new_lock)

    @property
    def origin(self) -> str:
        """Name of the package that registered the backend.

        Slow, since it reads package metadata.
        """
        if isinstance(self.source, str):
            return self.source
        dist = self.source.dist
        return (
            self.source.value
            if dist is None
            else f"{dist.name} {dist.version} ({self.source.value})"
        )


# Take in what else a plugin module brings (ops, rules, decompositions); the op table installs the
# function.
on_plugin: list[Callable[[Any], None]] = []

_manager: pluggy.PluginManager | None = None
_loading: pluggy.PluginManager | None = None
_entries: dict[str, Entry] = {}
_aliases: dict[str, str] = {}
_lock = new_lock()
_default: Device | None = None


def _load() -> pluggy.PluginManager:
    """Load every plugin module once and return the plugin manager; errors are stored per plugin."""
    global _manager, _loading
    if _manager is not None:
        return _manager
    with _lock:
        found = _manager or _loading  # the latter when a plugin asks for devices while it is loaded
        if found is not None:
            return found
        manager = _loading = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        for point in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda p: p.name):
            try:
                module = point.load()
            except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin may fail in any way; the error is stored)
                _entries[point.name] = Entry(point.name, None, point, problem=_one_line(error))
                continue
            _register_module(manager, module, point)
        _manager = manager
    return _manager


def _one_line(error: BaseException) -> str:
    """Return an exception's description as one line of text, with file and line number."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (at {frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _register_module(
    manager: pluggy.PluginManager, module: Any, point: importlib.metadata.EntryPoint
) -> None:
    name = point.name
    try:
        manager.register(module, name=name)
        manager.check_pending()
        hook = getattr(module, "duograph_backend", None)
        specs = _specs(hook()) if hook is not None else ()
        for take in on_plugin:
            take(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin may fail in any way; the error is stored)
        if manager.has_plugin(name):
            manager.unregister(name=name)
        _entries[name] = Entry(name, None, point, problem=_one_line(error))
        return
    for spec in specs:
        _add(spec, point)


def _specs(found: Any) -> Sequence[BackendSpec]:
    """Return what a plugin's `duograph_backend` hook returned as a sequence of specs.

    Raises:
        DeviceError: it contains anything but a `BackendSpec`.
    """
    specs = found if isinstance(found, (list, tuple)) else (found,)
    for spec in specs:
        if not isinstance(spec, BackendSpec):
            raise DeviceError(
                f"duograph_backend returned {type(spec).__name__}; wanted a BackendSpec, or a list "
                "of them"
            )
    return specs


def _add(spec: BackendSpec, source: importlib.metadata.EntryPoint | str) -> None:
    entry = Entry(spec.name, spec, source)
    if spec.seam_version[0] != SEAM_VERSION[0]:
        theirs, ours = (".".join(map(str, v)) for v in (spec.seam_version, SEAM_VERSION))
        older = "the plugin" if spec.seam_version < SEAM_VERSION else "duograph"
        entry.problem = (
            f"built for version {theirs} of the plugin seam, this duograph has {ours}; "
            f"upgrade {older}"
        )
        entry.broken = True
    elif spec.name in _entries and _entries[spec.name].spec is not None:
        entry.problem = f"the name is taken by {_entries[spec.name].origin}"
        _entries[f"{spec.name} ({entry.origin})"] = entry
        return
    _entries[spec.name] = entry
    for alias in spec.aliases:
        _aliases.setdefault(alias.lower(), spec.name)


def register(spec: BackendSpec, origin: str = "registered by the program") -> None:
    """Register a backend without an installed plugin, for tests and notebooks.

    Raises:
        DeviceError: the name is taken, or the version of the backend interface does not fit.
    """
    _load()
    if spec.name in _entries:
        raise DeviceError(f"register: the backend name {spec.name!r} is taken")
    with _lock:
        _add(spec, origin)
    problem = _entries[spec.name].problem
    if problem is not None:
        del _entries[spec.name]
        raise DeviceError(f"register: backend {spec.name!r} is {problem}")
    _changed()


def unregister(name: str) -> None:
    """Remove a backend that was added by `register`."""
    _entries.pop(name, None)
    _changed()


def _changed() -> None:
    global _default
    _default = None
    for call in context.on_device_change:
        call()


def entries() -> dict[str, Entry]:
    """Return all registered backends by name, also those that cannot run here."""
    _load()
    return _entries


def plugin_hooks() -> Any:
    """Return the object through which the hooks of all plugins are called."""
    return _load().hook


def problem_of(entry: Entry) -> str | None:
    """Return why a backend cannot run here, or None; creates the backend if necessary."""
    if entry.problem is not None:
        return entry.problem
    if entry.backend is None:
        with entry.lock:
            if entry.backend is None and entry.problem is None:
                assert entry.spec is not None
                try:
                    made = entry.spec.factory()
                    reason = made.available()
                    if reason is None and not made.devices():
                        reason = "it has no devices"
                    if reason is None:
                        entry.backend = made
                    else:
                        entry.problem = reason
                except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin may fail in any way; the error is stored)
                    entry.problem, entry.broken = _one_line(error), True
    return entry.problem


def canonical(name: str) -> str:
    """Return a backend's own spelling of its name (the device_target).

    Raises:
        DeviceError: no installed backend has this name.
    """
    _load()
    if name in _entries:
        return name
    lowered = name.lower()
    if lowered in _aliases:
        return _aliases[lowered]
    for known in _entries:
        if known.lower() == lowered:
            return known
    raise DeviceError(
        f"device_target: got {name!r}, and no plugin brings it. Installed: {_installed()}. "
        f"A backend is added by installing a package with an entry point of the group 'duograph' "
        f"(docs/plugins.md); `duograph devices` lists what is there"
    )


def _installed() -> str:
    parts = []
    for name, entry in _entries.items():
        parts.append(name if entry.problem is None else f"{name} (unavailable: {entry.problem})")
    return ", ".join(parts) or "none"


def check_target(name: str) -> str:
    """Return the canonical name of a backend.

    Raises:
        DeviceError: no installed backend has this name.
        BackendUnavailable: the backend cannot run here.
    """
    known = canonical(name)
    problem = problem_of(_entries[known])
    if problem is not None:
        raise BackendUnavailable(
            f"device_target: got {name!r}, and that backend cannot run here: {problem}. "
            f"Installed: {_installed()}"
        )
    return known


def backend(name: str) -> Backend:
    """Return the backend of a given name, created at first use."""
    entry = _entries.get(name)
    if entry is None or entry.backend is None:
        entry = _entries[check_target(name)]
    made = entry.backend
    assert made is not None
    return made


def current_device() -> Device:
    """Return the device on which ops on host data run.

    That is device_target, else DUOGRAPH_DEVICE, else the available backend of highest priority.
    """
    target = context.settings.device_target
    if target is None:
        return _default_device()
    return Device(target, context.settings.device_id)


def _default_device() -> Device:
    global _default
    if _default is not None and _default.index == context.settings.device_id:
        return _default
    wanted = os.environ.get("DUOGRAPH_DEVICE")
    if wanted:
        _default = Device(check_target(wanted), context.settings.device_id)
        return _default
    _load()
    ranked = sorted(
        (
            (spec.priority, entry)
            for entry in _entries.values()
            if (spec := entry.spec) is not None and spec.priority is not None
        ),
        key=lambda pair: -pair[0],
    )
    broken: list[Entry] = []
    for _, entry in ranked:
        if problem_of(entry) is None:
            _default = Device(entry.name, context.settings.device_id)
            for first in broken:
                warnings.warn(
                    f"the backend {first.name} would be taken here and does not work: "
                    f"{first.problem}; {entry.name} is "
                    f"taken instead. set_context(device_target={entry.name!r}) or "
                    f"DUOGRAPH_DEVICE={entry.name} says "
                    f"that this is meant",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return _default
        if entry.broken:
            broken.append(entry)
    raise BackendUnavailable(
        f"no backend can run here. Installed: {_installed()}. Install duograph with a C compiler "
        f"to get its CPU backend"
    )


def _check_context_target(name: str) -> str:
    return check_target(name)


runtime_state.check_device = _check_context_target
runtime_state.default_device = lambda: current_device().name
