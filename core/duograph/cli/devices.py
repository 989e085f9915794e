"""The `duograph devices` command: lists every installed backend, with the reason if it cannot run.

`cli.main` runs it.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ..backend import added_kernels, registry
from ..backend.plugin_checks import error_text
from ..backend.protocol import SEAM_VERSION, Backend
from ..dtype import ALL
from ..errors import DuographError
from ..status_line import status_line
from .command import Commands, command

__all__ = ["add", "as_json", "as_text", "facts"]


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    command(
        commands,
        "devices",
        _run,
        "list all backends: availability, devices, memory, dtypes, origin",
        "duograph devices\nduograph devices --json",
        json=True,
    )


def _run(options: argparse.Namespace) -> int:
    sys.stdout.write((as_json() if options.json else as_text()) + "\n")
    return 0


def facts() -> list[dict[str, Any]]:
    """Return one dictionary of properties for each registered backend.

    The default backend comes first, then the other usable ones, then those that cannot run, whose
    "problem" says why. Usable ones have "devices", "dtypes" and further keys.
    """
    found = []
    for name, entry in list(registry.entries().items()):
        with status_line(f"looking at the devices of {name}"):
            found.append(_record(name, entry))
    default = _default()
    for record in found:
        record["default"] = record["name"] == default
    found.sort(
        key=lambda r: (not r["default"], r["problem"] is not None, -(r.get("priority") or 0))
    )
    return found


def _record(name: str, entry: registry.Entry) -> dict[str, Any]:
    """Return the properties of one backend."""
    record: dict[str, Any] = {"name": name, "origin": entry.origin}
    record["problem"] = registry.problem_of(entry)
    if entry.spec is not None:
        record["priority"] = entry.priority
        record["seam"] = ".".join(map(str, entry.spec.seam_version))
    if record["problem"] is None:
        try:
            backend = registry.backend(name)
            record["devices"] = [vars(d) for d in backend.devices()]
            record["compiler"] = [_compiler(backend, d.index) for d in backend.devices()]
            record["dtypes"] = [d.name for d in backend.dtypes]
            record["host_fallback"] = backend.host_fallback
            record["kernels"] = [
                {"op": k.spec.op, "owner": k.owner, "priority": k.spec.priority}
                for k in added_kernels.listed(name)
            ]
        except Exception as error:  # noqa: BLE001 (a plugin may raise anything; the text is shown)
            record["problem"] = f"{type(error).__name__}: {error}"
    return record


def _compiler(backend: Backend, index: int) -> str | None:
    """Return what `Backend.compiler` says, or the error that it raised."""
    try:
        return backend.compiler(index)
    except Exception as error:  # noqa: BLE001 (a plugin may raise anything; the text is shown)
        return f"compiler() raised {error_text(error)}"


def _default() -> str | None:
    try:
        return registry.current_device().name
    except DuographError:
        return None


def as_json() -> str:
    """Return JSON with the version of the plugin interface and the properties of all backends."""
    return json.dumps({"seam": ".".join(map(str, SEAM_VERSION)), "backends": facts()}, indent=1)


def as_text() -> str:
    """Return the properties of all backends as text, for `duograph devices`."""
    records = facts()
    if not records:
        return (
            "no backends are installed. Install duograph with a C compiler to get its CPU backend, "
            "or a plugin (an entry point of the group 'duograph')"
        )
    return "\n\n".join(map(_paragraph, records))


def _paragraph(record: dict[str, Any]) -> str:
    state = "available" if record["problem"] is None else "not available"
    lines = [f"{record['name']}: {state}" + (", used by default" if record["default"] else "")]
    if record["problem"] is not None:
        lines.append(f"  why      {record['problem']}")
    for device in record.get("devices", ()):
        memory = device["memory_bytes"]
        size = f", {memory / 2**30:.1f} GiB" if memory else ""
        text = device["description"] or device["name"]
        lines.append(f"  {record['name']}:{device['index']}".ljust(10) + f" {text}{size}")
    for text in dict.fromkeys(record.get("compiler", ())):
        if text is not None:
            lines.append(f"  compiler {text}")
    if "dtypes" in record:
        lacks = [d.name for d in ALL if d.name not in record["dtypes"]]
        short = "all" if not lacks else ", ".join(record["dtypes"])
        lines.append(f"  dtypes   {short}")
    for kernel in record.get("kernels", ()):
        lines.append(f"  kernels  {kernel['op']}: {kernel['owner']}, priority {kernel['priority']}")
    lines.append(f"  from     {record['origin']}")
    return "\n".join(lines)
