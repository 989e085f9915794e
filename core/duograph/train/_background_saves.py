"""Background threads that write files, in order for each path.

`serialization` uses them for `async_save`. Each path has at most one thread, so a save never
overtakes an earlier one. If several saves of a path are requested while its thread writes, only the
newest of them is carried out, because it would overwrite the others. A failure is raised by the
next call that concerns saves, or printed when the process exits.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import TypeAlias

from .._locks import new_lock
from ..errors import CheckpointError

__all__ = ["active", "raise_failures", "start", "wait"]

Save: TypeAlias = Callable[[], None]


class _Writer:
    """A background thread that saves to one path, and the newest requested save of that path."""

    def __init__(self, path: str, save: Save) -> None:
        self.path = path
        self.next: Save | None = save
        self.thread = threading.Thread(target=self.run, name="save_checkpoint")

    def run(self) -> None:
        while True:
            with _lock:
                save, self.next = self.next, None
                if save is None:
                    del _writers[_key(self.path)]
                    return
            try:
                save()
            except BaseException as error:  # noqa: BLE001 (raised again in the user's thread)
                with _lock:
                    _failures.append((self.path, error))


_lock = new_lock()
_writers: dict[str, _Writer] = {}
_failures: list[tuple[str, BaseException]] = []


def _key(path: str) -> str:
    """Return the dictionary key of a path: absolute, with symbolic links in its folder resolved.

    If the last component is itself a symbolic link, that link is not resolved.
    """
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def start(path: str, save: Save) -> None:
    """Run `save`, which writes `path`, in a background thread.

    If a save of this path is running, `save` runs after it; a requested save that has not begun is
    dropped, since this one would overwrite its file.
    """
    key = _key(path)
    with _lock:
        writer = _writers.get(key)
        if writer is not None:
            writer.next = save
            return
        writer = _Writer(path, save)
        writer.thread.start()  # it waits for the lock
        _writers[key] = writer


def active() -> bool:
    """Return whether any background save is still running."""
    return bool(_writers)


def wait(path: str | None = None) -> None:
    """Wait until the background saves to `path` have finished; with None, those to all paths."""
    with _lock:
        key = None if path is None else _key(path)
        found = [w for k, w in _writers.items() if key in (None, k)]
    for writer in found:
        if writer.thread is not threading.current_thread():
            writer.thread.join()


def raise_failures(path: str | None = None) -> None:
    """Raise CheckpointError if a background save to `path` has failed; with None, to any path.

    Each failure is reported only once.
    """
    with _lock:
        key = None if path is None else _key(path)
        found = [f for f in _failures if key in (None, _key(f[0]))]
        _failures[:] = [f for f in _failures if f not in found]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise CheckpointError(f"{_text(*found[0])}{more}") from found[0][1]


def _text(path: str, error: BaseException) -> str:
    return (
        f"save_checkpoint: the asynchronous save of {path!r} failed "
        f"({type(error).__name__}: {error}); the file has its earlier content, save it again"
    )


def _print_failures() -> None:
    """Print the failures of saves that no call has raised; runs when the process exits."""
    for failure in _failures:
        sys.stderr.write(f"duograph: {_text(*failure)}\n")


def _forget() -> None:
    """Clear the records of background saves in a forked child process.

    The saves run in the parent.
    """
    _writers.clear()
    _failures.clear()


atexit.register(_print_failures)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
