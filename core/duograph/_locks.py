"""Locks that a forked child finds free.

A fork copies the locks that other threads hold at that moment, and nobody in the child would ever
release them. What these guard is whole between any two steps, so the child may start with fresh
ones.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["new_lock"]

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> Any:
    """A lock that its own thread may take again."""
    made = threading.RLock()
    _made.add(made)
    return made


def _free_all() -> None:
    for lock in list(_made):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
