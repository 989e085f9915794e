"""Re-entrant locks that are released in a forked child.

A fork copies the locks that other threads hold at that moment, and no thread of the child would
ever release them. The state that these locks guard is consistent between any two statements, so a
child process may start with all of them unlocked. The locks that Python's import system holds
cannot be reset like this. A fork therefore waits until other threads have ended the imports that
they run inside the context manager `importing`. The module must not import any other part of the
package.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any, TypeAlias

__all__ = ["ReentrantLock", "importing", "new_lock"]

ReentrantLock: TypeAlias = "threading.RLock"

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> ReentrantLock:
    """Return a re-entrant lock that is released in forked child processes."""
    made = threading.RLock()
    _made.add(made)
    return made


def _free_all() -> None:
    """Unlock every lock that another thread held; called in the child process after a fork."""
    for lock in list(_made):
        if not lock._is_owned():  # the thread that forked goes on in the child and releases its own
            lock._at_fork_reinit()


class _Importing:
    """Context manager around an import at run time; forks wait while other threads are inside."""

    def __init__(self) -> None:
        self._depths: dict[int, int] = {}  # by thread

    def __enter__(self) -> None:
        me = threading.get_ident()
        self._depths[me] = self._depths.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        self._depths[me] -= 1
        if not self._depths[me]:
            del self._depths[me]

    def wait(self) -> None:
        """Wait until no other thread is importing, at most `_LONGEST_IMPORT` seconds."""
        me = threading.get_ident()
        end = time.monotonic() + _LONGEST_IMPORT
        while any(t != me for t in list(self._depths)) and time.monotonic() < end:
            time.sleep(0.0005)

    def forget_others(self) -> None:
        """Forget imports of other threads, because those threads do not exist in a forked child."""
        me = threading.get_ident()
        self._depths = {t: n for t, n in self._depths.items() if t == me}


_LONGEST_IMPORT = 10.0  # seconds
importing = _Importing()


def _after_fork() -> None:
    _free_all()
    importing.forget_others()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=importing.wait, after_in_child=_after_fork)
