"""Fork-safe locks for backends, part of the interface between core and backends.

A backend guards its state with `new_lock`. It imports modules at first use inside the context
manager `importing`. After a fork, the child never waits for a lock that another thread of the
parent held. The module re-exports names only.
"""

from __future__ import annotations

from .._locks import importing, new_lock

__all__ = ["importing", "new_lock"]
