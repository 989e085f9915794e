"""The `duograph cache` command: prints the disk cache's size and path, or empties it.

`cli.main` runs it. The disk cache keeps compiled code between processes (`backend.disk_cache`).
"""

from __future__ import annotations

import warnings

from ..backend import disk_cache

__all__ = ["clear", "info"]


def info() -> str:
    """Return the path, number of entries, size and limit of the disk cache as text."""
    found = _info()
    lines = [
        f"path     {found.path}",
        f"entries  {found.entries}",
        f"bytes    {found.bytes}{_short(found.bytes)}",
        f"limit    {found.limit}{_short(found.limit)}",
    ]
    if found.problem is not None:
        lines.append(f"not used: {found.problem}")
    return "\n".join(lines)


def clear() -> str:
    """Remove all entries of the disk cache of compiled code and return a message.

    Raises:
        OSError: the directory is not usable, or an entry cannot be removed.
    """
    found = _info()
    if found.problem is not None:
        raise OSError(f"{found.path}: {found.problem}")
    count = disk_cache.clear()
    return f"removed {count} {'entry' if count == 1 else 'entries'} from {found.path}"


def _info() -> disk_cache.Info:
    with warnings.catch_warnings():  # the caller prints the problem itself
        warnings.simplefilter("ignore", RuntimeWarning)
        return disk_cache.info()


def _short(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f" ({count / unit:.1f} {name})"
    return ""
