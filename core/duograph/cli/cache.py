"""The `duograph cache` command: prints the disk cache's size and path, or empties it.

`cli.main` runs it. The disk cache keeps compiled code between processes (`backend.disk_cache`).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from ..backend import disk_cache
from ..status_line import size_text, status_line
from .command import Commands, command, print_json

__all__ = ["add", "clear", "facts"]


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "cache",
        _run,
        "inspect or clear the disk cache of compiled code",
        "duograph cache info\nduograph cache clear",
        {1: "the cache cannot be used or cleared"},
        json=True,
    )
    made.add_argument("action", choices=("info", "clear"), help="show or remove the entries")


def _run(options: argparse.Namespace) -> int:
    if options.action == "clear":
        count = clear()
        if options.json:
            print_json({"removed": count, "path": facts()["path"]})
        else:
            noun = "entry" if count == 1 else "entries"
            sys.stdout.write(f"removed {count} {noun} from {facts()['path']}\n")
        return 0
    found = facts()
    if options.json:
        print_json(found)
    else:
        sys.stdout.write(_text(found) + "\n")
    return 0 if found["problem"] is None else 1


def facts() -> dict[str, Any]:
    """Return facts about the disk cache of compiled code.

    The keys are "path" (the directory, or None if there is none), "entries" (number of entries),
    "bytes" (their total size), "limit" (the most bytes) and "problem" (why the cache is not used,
    or None).
    """
    with warnings.catch_warnings():  # the caller prints the problem itself
        warnings.simplefilter("ignore", RuntimeWarning)
        found = disk_cache.info()
    return {**found._asdict(), "path": None if found.path is None else str(found.path)}


def _text(found: dict[str, Any]) -> str:
    lines = [f"path     {found['path']}", f"entries  {found['entries']}"]
    for name in ("bytes", "limit"):
        short = f" ({size_text(found[name])})" if found[name] >= 1024 else ""
        lines.append(f"{name.ljust(8)} {found[name]}{short}")
    if found["problem"] is not None:
        lines.append(f"not used: {found['problem']}")
    return "\n".join(lines)


def clear() -> int:
    """Remove all entries of the disk cache of compiled code; return their number.

    Raises:
        OSError: the directory is not usable, or an entry cannot be removed.
    """
    found = facts()
    if found["problem"] is not None:
        raise OSError(f"{found['path']}: {found['problem']}")
    with status_line(f"clearing {found['path']}"):
        return disk_cache.clear()
