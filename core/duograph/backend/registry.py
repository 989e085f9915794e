"""The registry of backends: finds plugins by entry point and selects the default device.

The registry is lazy: the first query about devices loads the plugin modules, and a backend is made
when it is first used. An error of one plugin must not affect others: the error is stored, printed
by `duograph devices`, and raised when a user asks for that device. The registry also warns about a
plugin that cannot be loaded. `plugin_checks` decides whether what a plugin returns is well-formed.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import traceback
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from .. import context
from .._locks import importing, new_lock
from ..errors import ArgumentError, BackendError, BackendUnavailable, DeviceError
from ..runtime_state import runtime_state, thread_state
from ..types import Device
from . import hookspecs, observers
from .plugin_checks import (
    backend_problem,
    checked_observers,
    checked_specs,
    error_text,
    shown_value,
)
from .protocol import SEAM_VERSION, Backend, BackendSpec

if TYPE_CHECKING:
    import importlib.metadata

    from .._locks import ReentrantLock

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
        name: the device_target; for a plugin that cannot be loaded, the name of its entry point.
        spec: what the plugin's hook returned; None if the plugin cannot be loaded.
        source: the plugin's entry point, or a text for a backend that a program registered.
        backend: the backend, made at first use.
        problem: the reason why the backend cannot run here; None if it can, or was not made yet.
        broken: whether the problem is an error of the plugin, rather than a missing device or
            library that the plugin reports.
        lock: held while the backend is made.
    """

    name: str
    spec: BackendSpec | None
    source: importlib.metadata.EntryPoint | str
    backend: Backend | None = None
    problem: str | None = None
    broken: bool = False
    lock: ReentrantLock = dataclasses.field(default_factory=new_lock)

    @property
    def origin(self) -> str:
        """Name and version of the package that registered the backend, and its module.

        Slow, since it reads package metadata.
        """
        return self.source if isinstance(self.source, str) else _origin(self.source)

    @property
    def priority(self) -> int | None:
        """The priority for being the default backend; None if it is used only by name."""
        found = None if self.spec is None else self.spec.priority
        return found if isinstance(found, int) else None

    @property
    def other_version(self) -> bool:
        """Whether the backend was built for another major version of the plugin interface."""
        return self.spec is not None and self.spec.seam_version[0] != SEAM_VERSION[0]


# Functions that check a plugin module's ops, rules and decompositions, and return a function that
# registers them. The op table adds one.
on_plugin: list[Callable[[ModuleType], Callable[[], None]]] = []
# Functions that return what is wrong with a new backend, or None. The op table adds one.
on_backend: list[Callable[[Backend], str | None]] = []
# Discard what was prepared by backends, because one of them is gone. The op table installs it.
on_unregistered: list[Callable[[], None]] = []
# Remove what a module registered when it was imported; called with its name when it is disabled.
on_disabled: list[Callable[[str], None]] = []

_manager: pluggy.PluginManager | None = None
_loading: pluggy.PluginManager | None = None
_entries: dict[str, Entry] = {}
_aliases: dict[str, str] = {}
# Texts of warnings that are issued after all plugins are loaded.
_reports: list[str] = []
_lock = new_lock()
_default: Device | None = None


def _load() -> pluggy.PluginManager:
    """Load every plugin module once and return the plugin manager.

    An error of a plugin is stored in its entry and reported by a warning.
    """
    global _manager, _loading
    if _manager is not None:
        return _manager
    with _lock, importing:
        found = _manager or _loading  # `_loading`: a plugin asks for devices while it is loaded
        if found is not None:
            return found
        manager = _loading = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        for point in _entry_points():
            _load_plugin(manager, point)
        _manager = manager
    _report()
    return manager


def _entry_points() -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of all plugins sorted by name, those of duograph itself first.

    If several plugins have the same name, the first one gets it, so that no plugin can take the
    name of a plugin of duograph itself.
    """
    metadata = importlib.import_module("importlib.metadata")  # slow: not at import
    found: list[importlib.metadata.EntryPoint] = []
    try:
        found += metadata.entry_points(group=GROUP)
    except Exception:  # noqa: BLE001 (the metadata of a package is malformed; it may be any)
        for dist in metadata.distributions():
            try:
                found += dist.entry_points.select(group=GROUP)
            except Exception as error:  # noqa: BLE001 (here it is)
                _reports.append(f"the entry points of a package cannot be read: {_one_line(error)}")
    try:
        own = metadata.distribution(hookspecs.PROJECT).entry_points.select(group=GROUP)
        ours = {(p.name, p.value) for p in own}
    except Exception:  # noqa: BLE001 (it runs from its sources, without metadata)
        ours = set()
    return sorted(found, key=lambda p: ((p.name, p.value) not in ours, p.name))


def _one_line(error: BaseException) -> str:
    """Return an exception's description as one line of text, with file and line number."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (at {frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return error_text(error) + where


def _origin(point: importlib.metadata.EntryPoint) -> str:
    """Return the name and version of the package that has an entry point, and its module."""
    try:
        return point.value if point.dist is None else (
            f"{point.dist.name} {point.dist.version} ({point.value})"
        )  # fmt: skip
    except Exception:  # noqa: BLE001 (the metadata of a package may be missing or malformed)
        return point.value


def _load_plugin(manager: pluggy.PluginManager, point: importlib.metadata.EntryPoint) -> None:
    """Import an entry point's plugin and register what its hooks return, if all of it is valid.

    An error is not raised, but stored as an entry with a problem.
    """
    name = point.name
    while manager.has_plugin(name):
        name += "'"  # another package has an entry point of this name
    try:
        module = point.load()
        manager.register(module, name=name)
        manager.check_pending()
        _check_hooks(module)
        hook = getattr(module, "duograph_backend", None)
        specs = () if hook is None else checked_specs(hook())
        hook = getattr(module, "duograph_observers", None)
        watching = () if hook is None else checked_observers(hook())
        take_in = [check(module) for check in on_plugin]
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin may fail in any way; the error is stored)
        if manager.has_plugin(name):
            manager.unregister(name=name)
        for withdraw in on_disabled:
            withdraw(point.value.partition(":")[0].strip())
        entry = Entry(point.name, None, point, problem=_one_line(error), broken=True)
        _entries[_free(point.name, entry)] = entry
        _reports.append(f"the plugin {point.name!r} of {entry.origin} is disabled: {entry.problem}")
        return
    for take in take_in:
        take()
    for observer in watching:
        observers.add(observer)
    for spec in specs:
        _add(spec, point)


def _check_hooks(module: object) -> None:
    """Raise BackendError if a plugin defines no hook, or a hook that would never be called."""
    known = [name for name in vars(hookspecs) if name.startswith("duograph_")]
    hooks = {name: getattr(module, name) for name in known if hasattr(module, name)}
    if not hooks:
        raise BackendError(f"it has no hook; wanted one of {', '.join(known)}")
    for name, hook in hooks.items():
        if not callable(hook):
            raise BackendError(f"{name} is {shown_value(hook)}; wanted a function")
    passes = hooks.get("duograph_passes")  # the only hook called by pluggy, which needs the mark
    if passes is not None and not hasattr(passes, f"{hookspecs.PROJECT}_impl"):
        raise BackendError("duograph_passes is not marked with hookimpl, so it would not be called")


def _free(name: str, entry: Entry) -> str:
    """Return an unused key of the registry for a new entry.

    It is `name` or, if that is taken, `name (origin)`, where the origin says which package
    registered the entry. Apostrophes are appended while that is taken too.
    """
    if name not in _entries:
        return name
    key = f"{name} ({entry.origin})"
    while key in _entries:
        key += "'"
    return key


def _known(name: str) -> Entry | None:
    """Return the usable entry that owns a backend name, in any case of letters, or None.

    Plugins that could not be loaded, or have another major version, own no name.
    """
    for key, entry in _entries.items():
        if entry.spec is not None and not entry.other_version and key.lower() == name.lower():
            return entry
    return None


def _add(spec: BackendSpec, source: importlib.metadata.EntryPoint | str) -> Entry:
    """Register a backend, made as `spec` says, under its name and aliases; return its entry.

    If another backend owns the name, or the plugin was built for another major version of the
    plugin interface, the entry is disabled: it is stored under an unused name, and its `problem`
    states the reason. An alias that is already taken is ignored with a warning.
    """
    entry = Entry(spec.name, spec, source)
    if entry.other_version:
        theirs, ours = (".".join(map(str, v)) for v in (spec.seam_version, SEAM_VERSION))
        older = "the plugin" if spec.seam_version < SEAM_VERSION else "duograph"
        entry.problem = (
            f"built for version {theirs} of the plugin seam, this duograph has {ours}; "
            f"upgrade {older}"
        )
        entry.broken = True
        _entries[_free(spec.name, entry)] = entry
        return entry
    owner = _known(spec.name)
    if owner is not None:
        entry.problem = f"the name is taken by {owner.origin}"
        _entries[_free(f"{spec.name} ({entry.origin})", entry)] = entry
        _reports.append(f"the backend {spec.name} of {entry.origin} is disabled: {entry.problem}")
        return entry
    before = _entries.pop(spec.name, None)  # the entry of a disabled plugin
    _entries[spec.name] = entry
    if before is not None:
        _entries[_free(spec.name, before)] = before
    for alias in spec.aliases:
        taken = _aliases.setdefault(alias.lower(), spec.name)
        other = _known(alias)
        if taken != spec.name or other not in (None, entry):
            _reports.append(
                f"the alias {alias!r} of the backend {spec.name} is ignored: it is a name of "
                f"{taken if other is None else other.name}"
            )
    return entry


def _report() -> None:
    """Warn about each plugin or alias that was disabled since the last call of this function."""
    while _reports:
        warnings.warn(_reports.pop(0), RuntimeWarning, stacklevel=3)


def register(spec: BackendSpec, origin: str = "registered by the program") -> None:
    """Register a backend without an installed plugin, for tests and notebooks.

    Raises:
        DeviceError: the name is taken, or the backend is for another version of the interface.
    """
    _load()
    try:
        checked_specs(spec)
    except BackendError as error:
        raise DeviceError(f"register: {error}") from None
    if _known(spec.name) is not None:
        raise DeviceError(f"register: the backend name {spec.name!r} is taken")
    with _lock:
        entry = _add(spec, origin)
    if entry.problem is not None:
        _remove(entry)
        raise DeviceError(f"register: backend {spec.name!r} is {entry.problem}")
    _report()
    _changed()


def unregister(name: str) -> None:
    """Remove a backend that was added by `register`; do nothing if there is none of this name."""
    entry = _entries.get(name)
    if entry is not None:
        _remove(entry)
        for discard in on_unregistered:
            discard()
    _changed()


def _remove(entry: Entry) -> None:
    for names in (_entries, _aliases):
        for key in [k for k, v in names.items() if v in (entry, entry.name)]:
            del names[key]


def _changed() -> None:
    """Forget the default device and call `context.on_device_change`: backends have changed."""
    global _default
    _default = None
    for call in context.on_device_change:
        call()


def entries() -> dict[str, Entry]:
    """Return a dict from name to entry of all backends, including those that cannot run here."""
    _load()
    return _entries


def plugin_hooks() -> Any:
    """Return pluggy's hook object; its method of a hook's name calls that hook of all plugins."""
    return _load().hook


def problem_of(entry: Entry) -> str | None:
    """Return why an entry's backend cannot run here, or None; make the backend if necessary."""
    if entry.problem is not None:
        return entry.problem
    if entry.backend is None:
        assert entry.spec is not None
        made_now = False
        with entry.lock, importing:
            if entry.backend is None and entry.problem is None:
                try:
                    made = entry.spec.factory()
                    entry.problem, entry.broken = backend_problem(made, entry.spec)
                    for check in on_backend if entry.problem is None else ():
                        entry.problem = check(made)
                        entry.broken = entry.problem is not None
                    if entry.problem is None:
                        entry.backend = made
                except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin may fail in any way; the error is stored)
                    entry.problem, entry.broken = _one_line(error), True
                made_now = entry.backend is not None
        if made_now:
            _note_other_seam(entry.spec)
    return entry.problem


def _note_other_seam(spec: BackendSpec) -> None:
    """Warn that a plugin was written for another minor version of the interface.

    An older one works as before, which concerns developers alone. A newer one may rely on methods
    that this version never calls.
    """
    theirs, ours = (".".join(map(str, v)) for v in (spec.seam_version, SEAM_VERSION))
    text = (
        f"the backend {spec.name} was written for version {theirs} of the plugin seam, this "
        f"duograph has {ours}: "
    )
    if spec.seam_version < SEAM_VERSION:
        text += "it works as before; docs/plugins.md says what is new"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    elif spec.seam_version > SEAM_VERSION:
        text += "what is new there is not used; upgrade duograph"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def canonical(name: str) -> str:
    """Return the name (device_target) of the backend with a name or alias, in any letter case.

    Raises:
        DeviceError: no installed backend has this name.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"device_target: got {name!r}; wanted the name of a device")
    _load()
    if name in _entries:
        return name
    lowered = name.lower()
    owner = _known(name)
    if owner is not None:
        return owner.name
    if lowered in _aliases:
        return _aliases[lowered]
    for known in _entries:
        if known.lower() == lowered:
            return known
    raise DeviceError(
        f"device_target: got {name!r}, and no plugin brings it; wanted one of {_available()}. "
        "A device is added by installing its package; `duograph devices` lists what is there"
    )


def _available() -> str:
    """Return the names of the backends that can run here as far as is known, "CPU, OpenCL"."""
    parts = [name for name in _entries if problem_of(_entries[name]) is None]
    return ", ".join(parts) or "none"


def _installed() -> str:
    parts = []
    for name, entry in _entries.items():
        parts.append(name if entry.problem is None else f"{name} (unavailable: {entry.problem})")
    return ", ".join(parts) or "none"


def check_target(name: str) -> str:
    """Return the name of the backend with a given name or alias, if it can run here.

    Raises:
        DeviceError: no installed backend has this name.
        BackendUnavailable: the backend cannot run here.
    """
    known = canonical(name)
    problem = problem_of(_entries[known])
    if problem is not None:
        raise BackendUnavailable(
            f"device_target: got {name!r}, and the backend {known} cannot run here: {problem}; "
            f"wanted one of {_available()}"
        )
    return known


def backend(name: str) -> Backend:
    """Return the backend of a given name, made at first use.

    Raises:
        DeviceError: no installed backend has this name.
        BackendUnavailable: the backend cannot run here.
    """
    entry = _entries.get(name)
    if entry is None or entry.backend is None:
        entry = _entries[check_target(name)]
    made = entry.backend
    assert made is not None
    return made


def current_device() -> Device:
    """Return the device on which ops on host data run.

    The first of these that is set decides: `thread_device` in this thread, the device_target of the
    context, the environment variable DUOGRAPH_DEVICE. Otherwise the available backend of highest
    priority is used.
    """
    if thread_state.device is not None:
        return thread_state.device
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
            (priority, entry)
            for entry in _entries.values()
            if (priority := entry.priority) is not None
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
