"""The `duograph plugins` command: lists installed plugins, their hooks and their problems.

`cli.main` runs it. A plugin is an entry point of the group `duograph`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import warnings
from typing import TYPE_CHECKING, TypedDict, cast

from ..backend import hookspecs, registry
from .command import Commands, command, print_json

__all__ = ["add", "facts"]


if TYPE_CHECKING:

    class Facts(TypedDict):
        """The properties of an installed plugin, as the function `facts` describes them."""

        name: str
        package: str
        version: str
        entry_point: str
        hooks: list[str]
        devices: list[str]
        problem: str | None
        broken: bool


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    command(
        commands,
        "plugins",
        _run,
        "list installed plugins: package, version, entry point, hooks, problems",
        "duograph plugins\nduograph plugins --json",
        {1: "a plugin is disabled by an error of its own"},
        json=True,
    )


def _run(options: argparse.Namespace) -> int:
    found = facts()
    if options.json:
        print_json(found)
    else:
        sys.stdout.write("\n\n".join(map(_paragraph, found)) or "no plugins are installed")
        sys.stdout.write("\n")
    return 1 if any(plugin["broken"] for plugin in found) else 0


def facts() -> list[Facts]:
    """Return the properties of each installed plugin, sorted by name.

    "hooks" are the names of the hooks that it implements, and "devices" those of the backends that
    it provides. "problem" is the reason why it is disabled or a device of it cannot be used, or
    None. "broken" says whether that is an error of the plugin rather than missing hardware.
    """
    with warnings.catch_warnings():  # the problems are part of the result
        warnings.simplefilter("ignore", RuntimeWarning)
        entries = list(registry.entries().values())
        found = []
        for point in importlib.metadata.entry_points(group=registry.GROUP):
            own = [e for e in entries if e.source == point]
            problems = [p for e in own if (p := registry.problem_of(e)) is not None]
            found.append(
                {
                    "name": point.name,
                    "package": point.dist.name if point.dist is not None else "",
                    "version": point.dist.version if point.dist is not None else "",
                    "entry_point": point.value,
                    "hooks": _hooks(point.value),
                    "devices": [e.name for e in own if e.spec is not None],
                    "problem": "; ".join(problems) or None,
                    "broken": any(e.broken for e in own),
                }
            )
    return sorted(cast("list[Facts]", found), key=lambda plugin: str(plugin["name"]))


def _hooks(module: str) -> list[str]:
    """Return the names of the hooks that a plugin module implements; [] if it is not loaded."""
    loaded = sys.modules.get(module.partition(":")[0].strip())
    known = [name for name in vars(hookspecs) if name.startswith("duograph_")]
    return [name for name in known if hasattr(loaded, name)]


def _paragraph(plugin: Facts) -> str:
    state = "disabled" if plugin["broken"] else "not usable here" if plugin["problem"] else "loaded"
    lines = [f"{plugin['name']}: {state}"]
    if plugin["problem"]:
        lines.append(f"  why      {plugin['problem']}")
    lines.append(f"  package  {plugin['package']} {plugin['version']}")
    lines.append(f"  module   {plugin['entry_point']}")
    lines.append(f"  hooks    {', '.join(plugin['hooks']) or 'none'}")
    if plugin["devices"]:
        lines.append(f"  devices  {', '.join(plugin['devices'])}")
    return "\n".join(lines)
