"""Locks for backends that survive `fork`, part of the interface between core and backends.

A backend guards its state with `new_lock`, and imports its modules late inside `importing`. A
forked child then never waits for a lock that another thread of its parent held.
"""

from __future__ import annotations

from .._locks import importing, new_lock

__all__ = ["importing", "new_lock"]
