"""Locks for backends, part of the seam between core and backends.

A backend guards its state with `new_lock`, so that a forked child never waits for a lock that a
thread of its parent held.
"""

from __future__ import annotations

from .._locks import new_lock

__all__ = ["new_lock"]
