"""Re-entrant locks that are released in a forked child.

A fork copies the locks that other threads hold at that moment, and no thread of the child would
ever
release them. The state that these locks guard is consistent between any two statements, so the
child
may start with free ones. The module must not import any other part of the package.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["new_lock"]

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> Any:
    """Return a re-entrant lock that is released in forked child processes."""
    made = threading.RLock()
    _made.add(made)
    return made


def _free_all() -> None:
    """Reset every lock to unlocked; called in the child process after a fork."""
    for lock in list(_made):
        if not lock._is_owned():  # the thread that forked goes on in the child and releases its own
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
