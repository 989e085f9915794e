"""Caches of rows in memory, which avoid reading a source again in every pass.

Users create a `DatasetCache` and pass it to a source; the classes in `source` read through it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from .._locks import new_lock
from ..call_errors import explaining
from ..errors import ArgumentError, ArgumentValueError
from .rows import Row, copied

__all__ = ["DatasetCache"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@explaining
class DatasetCache:
    """Keeps the rows of a source in the memory of this process (`mindspore.dataset.DatasetCache`).

    MindSpore's cache needs a server; this one needs none, and ends with the process. One cache
    belongs to one source.

    Args:
        session_id: a number that identifies the cache in messages.
        size: largest total size of the kept rows in MB; 0 means no limit. Rows beyond it are read
            again in every pass.
        spilling: must be False; rows are not written to a disk.
        hostname, port, num_connections, prefetch_size: must be None; there is no server.

    Raises:
        ValueError: the size is negative, or `spilling` or an option of the server is given.

    Examples:
        >>> from duograph import dataset
        >>> cache = dataset.DatasetCache(1)
        >>> data = dataset.FakeImageDataset(3, (4, 4, 3), cache=cache)
        >>> _ = list(data), list(data)
        >>> cache.get_stat().num_mem_cached
        3
    """

    def __init__(
        self,
        session_id: int,
        size: int = 0,
        spilling: bool = False,
        hostname: str | None = None,
        port: int | None = None,
        num_connections: int | None = None,
        prefetch_size: int | None = None,
    ) -> None:
        for name, value in (("session_id", session_id), ("size", size)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentError(f"DatasetCache: got {name}={value!r}; wanted an int")
            if value < 0:
                raise ArgumentValueError(f"DatasetCache: got {name}={value}; wanted 0 or more")
        for name, asked in (
            ("spilling", spilling), ("hostname", hostname), ("port", port),
            ("num_connections", num_connections), ("prefetch_size", prefetch_size),
        ):  # fmt: skip
            if asked:
                raise ArgumentValueError(
                    f"DatasetCache: got {name}, which is not offered; rows are kept in the memory "
                    "of this process"
                )
        self.session_id, self.size = session_id, size
        self._rows: dict[Hashable, Row] = {}
        self._bytes = 0
        self._owner: object = None
        self._lock = new_lock()

    def get_stat(self) -> CacheStatistics:
        """Return statistics of the cache.

        They have `num_mem_cached` (rows), `avg_cache_sz` (bytes per row) and `num_disk_cached` (0).
        """
        count = len(self._rows)
        return CacheStatistics(count, self._bytes // count if count else 0)

    def reader(self, read: Callable[[K], Row]) -> Callable[[K], Row]:
        """Return a function that returns the row of a key from the cache, or else by `read(key)`.

        A row that `read` returns is stored in the cache if there is space; the caller gets copies
        of its arrays. Keys are hashable, such as row numbers. From then on, the cache belongs to
        the source of which `read` is a method.

        Raises:
            ArgumentValueError: the cache belongs to another source.
        """
        owner = getattr(read, "__self__", read)
        if self._owner is not None and self._owner is not owner:
            raise ArgumentValueError(
                f"DatasetCache: {self.session_id} belongs to another source; wanted a cache for "
                "each"
            )
        self._owner = owner

        def cached(key: K) -> Row:
            found = self._rows.get(key)
            if found is None:
                found = read(key)
                self._keep(key, found)
            return cast(Row, tuple(copied(v) for v in found))

        return cached

    def _keep(self, key: Hashable, row: Row) -> None:
        """Store a row under `key` unless it is stored already or would exceed the cache's size."""
        count = sum(getattr(v, "nbytes", 64) for v in row)
        with self._lock:
            if key not in self._rows and (not self.size or self._bytes + count <= self.size << 20):
                self._rows[key] = row
                self._bytes += count


class CacheStatistics:
    """The statistics that `DatasetCache.get_stat` returns."""

    def __init__(self, rows: int, average: int) -> None:
        self.num_mem_cached, self.avg_cache_sz, self.num_disk_cached = rows, average, 0
