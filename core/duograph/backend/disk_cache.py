"""On-disk cache of compiled code, shared by processes; an entry's key is a hash of its inputs.

    DUOGRAPH_CACHE_DIR      the directory (default: duograph/ under XDG_CACHE_HOME or ~/.cache)
    DUOGRAPH_CACHE_LIMIT    most bytes kept (default 1 GiB); 0 keeps nothing after the process ends

An entry of the cache is one file, `<first 2 digits of the key>/<key>-<checksum><suffix>`. The
checksum of its content is part of the name, so one rename creates a complete entry, and loaders
open the file itself, not a copy. Entries are code that will run: the owner and mode of every folder
and file are checked when it is opened, by its descriptor, and a file or folder that other users can
write to is not used. If the directory is unusable, one warning is shown and files go to a private
temporary folder that is deleted when the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import re
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .._locks import new_lock
from .observers import reporting
from .private_folder import Folder, problem_of

try:  # hashlib loads OpenSSL: 3 ms, of the 10 ms that a warm first result may take
    from _blake2 import blake2b
except ImportError:  # not CPython
    from hashlib import blake2b

__all__ = [
    "Info",
    "Opened",
    "clear",
    "distrust",
    "info",
    "keeps",
    "key_of",
    "load",
    "opened",
    "read",
    "scratch",
    "store",
]

DEFAULT_LIMIT = 1 << 30
BLOCK = 4096
# An entry's time of last use is written again when it is older than this, in seconds.
STALE = 60
# A temporary file as old as this was left by a process that died.
ABANDONED = 3600

_ENTRY = r"[0-9a-f]{64}-[0-9a-f]{32}\.\w+"
_SHARD = r"[0-9a-f]{2}"
_SCRATCH = ".new-"
_USAGE = "usage"
_numbers = itertools.count()
# A limit of more digits is no number of bytes.
_DIGITS = 30


class Info(NamedTuple):
    """Statistics of the on-disk cache of compiled code.

    Attributes:
        path: the cache directory.
        entries, bytes: number and total size of the entries.
        limit: most bytes that the cache keeps.
        problem: reason why nothing is stored in the directory, or None.
    """

    path: str
    entries: int
    bytes: int
    limit: int
    problem: str | None


def key_of(*parts: object) -> str:
    """Return the disk cache key of some parts, 64 hex digits: a hash of bytes, or of each `str`.

    Examples:
        >>> from duograph.backend.disk_cache import key_of
        >>> key_of("ab", "c") == key_of("a", "bc")
        False
    """
    digest = blake2b(digest_size=32)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def _checksum(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


class _Store:
    """One directory of compiled-code files, with lookup, insertion and removal of old entries.

    Its methods may raise OSError, which the callers handle. `limit` is the most bytes kept; None
    means no limit.
    """

    def __init__(self, root: str, limit: int | None) -> None:
        self.root = root
        self.limit = limit

    @contextlib.contextmanager
    def find(self, key: str, suffix: str) -> Iterator[_Entry | None]:
        """Return a context manager that opens the cache entry of a key and file name suffix.

        The value is the entry, or None if there is none. An entry with a wrong checksum is
        deleted.
        """
        with contextlib.ExitStack() as opened:
            try:
                root = opened.enter_context(Folder(self.root))
                shard = opened.enter_context(root.folder(key[:2]))
                names = shard.names()
            except OSError:  # there is no such folder, or others can change it
                names = []
            for name in names:
                checksum = name[len(key) + 1 : -len(suffix)]
                if name == f"{key}-{checksum}{suffix}" and len(checksum) == 32:
                    data = _read(shard, name, checksum)
                    if data is not None:
                        yield _Entry(shard, name, data)
                        return
            yield None

    def make(self) -> None:
        os.makedirs(self.root, 0o700, exist_ok=True)

    def opened(self) -> Folder:
        """Open the cache directory and return it; create it again if it was removed."""
        try:
            return Folder(self.root)
        except FileNotFoundError:
            self.make()
            return Folder(self.root)

    def scratch(self, suffix: str) -> str:
        """Return an unused path for a temporary file in the cache directory; create no file."""
        self.make()
        return os.path.join(self.root, f"{_SCRATCH}{os.getpid()}-{next(_numbers)}{suffix}")

    def store(self, key: str, suffix: str, data: bytes, whole: str | None) -> str:
        """Create a cache entry for `key` and `suffix` from `data`; return its path.

        `whole` is the path of a file with the same content, or None. A file in the cache directory
        is moved; any other is copied.
        """
        with self.opened() as root, root.folder(key[:2], make=True) as shard:
            name = f"{key}-{_checksum(data)}{suffix}"
            if whole is None or os.path.dirname(whole) != self.root:
                whole = self.write(root, suffix, data)
            os.replace(
                os.path.basename(whole), name,
                src_dir_fd=root.descriptor, dst_dir_fd=shard.descriptor,
            )  # fmt: skip
            path = os.path.join(shard.path, name)
            # the entry is stored; if the disk is full, storing the next one fails
            with contextlib.suppress(OSError):
                self.account(root, path, len(data))
        return path

    def write(self, root: Folder, suffix: str, data: bytes) -> str:
        """Write data to a new temporary file in the cache directory; return its name there."""
        while True:
            name = os.path.basename(self.scratch(suffix))
            try:
                file = root.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                break
            except FileExistsError:  # of a process with the same id on another machine
                continue
        try:
            with open(file, "wb") as out:
                out.write(data)
        except BaseException:
            root.remove(name)
            raise
        return name

    def account(self, root: Folder, kept: str, size: int) -> None:
        """Add the size of a new cache entry to the total; evict old entries above the limit.

        All processes share the total as the length of a file: one byte for each block of cached
        data. Adding to it is an append and reading it is a stat, so no process lists the whole
        directory. If an entry was stored twice or removed, the total is too large; eviction counts
        the entries again.

        Args:
            root: the open cache directory.
            kept: path of the new entry, which is not evicted.
            size: size of the new entry in bytes.
        """
        if self.limit is None:
            return
        file = root.open(_USAGE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK)
        try:
            known = os.fstat(file).st_size
            os.write(file, bytes(_blocks(size)))
            if known == 0 or (known + _blocks(size)) * BLOCK > self.limit:
                os.ftruncate(file, self.evict(kept))
        finally:
            os.close(file)

    def evict(self, kept: str) -> int:
        """Remove the least recently used entries until a tenth of the limit is free.

        The entry at path `kept` stays. Nothing is removed if the entries are within the limit.
        Abandoned temporary files are removed with the entries. Returns the number of blocks that
        the remaining entries occupy.
        """
        assert self.limit is not None
        found = sorted((s.st_mtime_ns, path, _blocks(s.st_size)) for path, s in self.entries())
        left = sum(blocks for _, _, blocks in found)
        goal = self.limit - self.limit // 10
        if left * BLOCK <= self.limit:
            return left
        with Folder(self.root) as root:
            for _, path, blocks in found:
                if left * BLOCK <= goal:
                    break
                if path != kept:
                    _remove(root, path)
                    left -= blocks
        self.sweep(time.time() - ABANDONED)
        return left

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """Return (path, file status) of every cache entry, ignoring foreign files and folders."""
        found = []
        try:
            with Folder(self.root) as root:
                for name in filter(re.compile(_SHARD).fullmatch, root.names()):
                    with contextlib.suppress(OSError), root.folder(name) as shard:
                        for entry in filter(re.compile(_ENTRY).fullmatch, shard.names()):
                            path = os.path.join(shard.path, entry)
                            with contextlib.suppress(OSError):  # gone meanwhile
                                facts = shard.status(entry)
                                if not stat.S_ISDIR(facts.st_mode):
                                    found.append((path, facts))
        except OSError:
            return found
        return found

    def sweep(self, before: float) -> None:
        """Remove the cache's temporary files that were last written before the time `before`."""
        with Folder(self.root) as root:
            for name in root.names():
                with contextlib.suppress(OSError):  # its process has removed it
                    if name.startswith(_SCRATCH) and root.status(name).st_mtime < before:
                        root.remove(name)

    def clear(self) -> int:
        """Remove all cache entries, but no foreign files; return how many there were."""
        found = self.entries()
        try:
            root = Folder(self.root)
        except FileNotFoundError:
            return 0
        with root:
            for path, _ in found:
                folder, name = os.path.split(path)
                ignored = contextlib.suppress(FileNotFoundError)
                with ignored, root.folder(os.path.basename(folder)) as shard:
                    os.unlink(name, dir_fd=shard.descriptor)
            for name in filter(re.compile(_SHARD).fullmatch, root.names()):
                with contextlib.suppress(
                    OSError
                ):  # another user may change it, or it was filled again meanwhile
                    os.rmdir(name, dir_fd=root.descriptor)
            self.sweep(time.time() - ABANDONED)
            root.remove(_USAGE)
        return len(found)


class _Entry(NamedTuple):
    """A cache entry with a valid checksum: its file name, content and open folder."""

    shard: Folder
    name: str
    data: bytes

    @property
    def path(self) -> str:
        return os.path.join(self.shard.path, self.name)


def _read(shard: Folder, name: str, checksum: str) -> bytes | None:
    """Return the content of a cache entry; update its time of last use if that is out of date.

    The time may be up to STALE seconds old. Returns None if the entry cannot be read or its
    checksum is wrong; in the latter case it also deletes the entry.
    """
    try:
        with open(shard.open(name), "rb") as file:
            data = file.read()
            used = os.fstat(file.fileno()).st_mtime
            if _checksum(data) == checksum and abs(time.time() - used) > STALE:
                with contextlib.suppress(OSError):  # a read-only directory evicts nothing either
                    os.utime(file.fileno())
    except OSError:  # evicted meanwhile, unreadable, or not to be trusted
        return None
    if _checksum(data) != checksum:
        shard.remove(name)
        return None
    return data


def _blocks(size: int) -> int:
    return max(1, -(-size // BLOCK))


def _remove(root: Folder, path: str) -> None:
    """Remove the cache entry with path `path` from the open folder `root`, if possible."""
    folder, name = os.path.split(path)
    with contextlib.suppress(OSError), root.folder(os.path.basename(folder)) as shard:
        shard.remove(name)


# ---- the directory of this process ---------------------------------------------------------------


class _Place:
    """The cache directory in use, or the reason why none can be used.

    Attributes:
        directory: path of the cache directory; None if there is no home directory.
        limit: most bytes kept.
        disk: the directory as a `_Store`; None if nothing can be stored or read there.
        problem: reason why nothing is stored there, or None.
    """

    def __init__(self, directory: str | None, limit: int) -> None:
        self.directory = directory
        self.limit = limit
        self.disk: _Store | None = None  # None: nothing can be stored or read
        self.problem: str | None = None

    def open(self) -> None:
        """Check the cache directory and create `disk`, or record the problem.

        `_place` calls it once for each directory.
        """
        if self.limit == 0:
            self.problem = "DUOGRAPH_CACHE_LIMIT is 0"
        elif self.directory is None:
            self.distrust("there is no home directory; set DUOGRAPH_CACHE_DIR")
        else:
            reason = _make(self.directory)
            if reason is None:
                self.disk = _Store(self.directory, self.limit)
            else:
                self.distrust(reason)

    def distrust(self, reason: str) -> None:
        """Store nothing more in the cache directory in this process; warn and state the reason.

        Entries that are there can still be read if the directory itself was usable. Does nothing if
        `problem` is set already.
        """
        if self.problem is None:
            self.problem = reason
            where = self.directory or "the cache of compiled code"
            _warn(f"{where}: {reason}. Compiled code is not kept for the next process")

    def readable(self) -> list[_Store]:
        return [s for s in (self.disk, _private.get(os.getpid())) if s is not None]

    def writable(self) -> _Store:
        if self.disk is not None and self.problem is None:
            return self.disk
        return _temporary()


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _make(directory: str) -> str | None:
    """Create the cache directory if it is missing; return why it is unusable, or None.

    A directory is unusable if it cannot be made, belongs to another user, or if others can write to
    it.
    """
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        return problem_of(os.stat(directory))
    except OSError as error:
        return f"cannot be made ({error.strerror or error})"


_lock = new_lock()
_places: dict[tuple[str | None, ...], _Place] = {}
_private: dict[int, _Store] = {}


def _temporary() -> _Store:
    """Return the process's temporary cache folder, made at first use and deleted at exit."""
    pid = os.getpid()  # a forked child makes its own
    with _lock:
        found = _private.get(pid)
        if found is None or not os.path.isdir(found.root):
            found = _private[pid] = _Store(tempfile.mkdtemp(prefix="duograph-"), None)
            atexit.register(_discard, pid, found.root)
    return found


def _discard(pid: int, root: str) -> None:
    if os.getpid() == pid:  # a forked child inherits the call
        shutil.rmtree(root, ignore_errors=True)


def _place() -> _Place:
    """Return the cache directory that environment variables select, checked at its first use."""
    names = ("DUOGRAPH_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "DUOGRAPH_CACHE_LIMIT")
    key = tuple(map(os.environ.get, names))
    found = _places.get(key)
    if found is None:
        with _lock:
            found = _places.get(key)
            if found is None:
                size, complaint = _limit(key[3])
                # stored first: a warning may raise, and must not be repeated at the next call
                found = _places[key] = _Place(_directory(key[0], key[1]), size)
                found.open()
                if complaint:
                    _warn(complaint)
    return found


def _directory(chosen: str | None, xdg: str | None) -> str | None:
    """Return the path of the cache directory, or None if there is no home directory.

    `chosen` and `xdg` are the values of DUOGRAPH_CACHE_DIR and XDG_CACHE_HOME. If neither is set,
    the cache is in the home directory.
    """
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    if xdg and os.path.isabs(xdg):  # the specification has relative paths ignored
        return os.path.join(xdg, "duograph")
    found = os.path.expanduser(os.path.join("~", ".cache", "duograph"))
    return found if os.path.isabs(found) else None


def _limit(text: str | None) -> tuple[int, str | None]:
    """Parse the cache's size limit; return (limit in bytes, a complaint about `text` or None).

    `text` is the value of DUOGRAPH_CACHE_LIMIT. If it is invalid or missing, the limit is the
    default.
    """
    if not text:
        return DEFAULT_LIMIT, None
    if text.isdecimal() and len(text) <= _DIGITS:
        return int(text), None
    shown = repr(text) if len(text) <= _DIGITS else f"{text[:_DIGITS]!r}..."
    complaint = (
        f"DUOGRAPH_CACHE_LIMIT: got {shown}; wanted a number of bytes, so it is {DEFAULT_LIMIT}"
    )
    return DEFAULT_LIMIT, complaint


# ---- what others call ----------------------------------------------------------------------------


def load(key: str, suffix: str) -> Path | None:
    """Return the path of the file cached on disk under a key and file name suffix, or None.

    A damaged file is deleted. To load the file as code, use `opened`, which prevents other
    processes from replacing the file in the meantime.
    """
    with opened(key, suffix) as found:
        return None if found is None else found.path


def read(key: str, suffix: str) -> bytes | None:
    """Return the bytes cached on disk under a key and file name suffix, or None."""
    with opened(key, suffix) as found:
        return None if found is None else found.data


class Opened(NamedTuple):
    """A cache entry that is open and whose checksum is right.

    Attributes:
        path: path of the file.
        data: content of the file.
        checked_path: another path of the same file, through the descriptor of the folder that was
            checked. A user who can change a parent folder cannot replace the file under this path.
            It is valid while the entry is open.
    """

    path: Path
    data: bytes
    checked_path: str


@contextlib.contextmanager
def opened(key: str, suffix: str) -> Iterator[Opened | None]:
    """Return a context manager that opens the file cached under a key and file name suffix.

    The value is the open file, or None if there is none.
    """
    for place in _place().readable():
        with place.find(key, suffix) as found:
            if found is not None:
                folder = f"/proc/self/fd/{found.shard.descriptor}"
                if not os.path.isdir(folder):  # not Linux
                    folder = found.shard.path
                path = Path(found.path)
                with reporting("cache", "disk cache hit", nbytes=len(found.data)):
                    pass
                yield Opened(path, found.data, os.path.join(folder, found.name))
                return
    with reporting("cache", "disk cache miss"):
        pass
    yield None


def store(key: str, suffix: str, data: bytes | str | os.PathLike[str]) -> Path:
    """Store bytes or a file in the disk cache under a key; return the path of the entry.

    Args:
        key: hash of the inputs, from `key_of`.
        suffix: file name suffix with its dot, such as ``".so"``.
        data: bytes, or the path of a file. A file at a path from `scratch` is moved, any other is
            copied.

    Raises:
        OSError: neither the cache nor the temporary folder can be written, or `data` cannot be
            read.
    """
    whole = None
    if not isinstance(data, bytes):
        whole = os.fspath(data)
        data = Path(whole).read_bytes()
    place = _place()
    target = place.writable()
    try:
        return Path(target.store(key, suffix, data, whole))
    except OSError as error:
        if target is not place.disk:
            raise
        place.distrust(f"cannot be written ({error.strerror or error})")
    return Path(place.writable().store(key, suffix, data, whole))


def keeps() -> bool:
    """Return whether entries stored in the disk cache now will outlive the process."""
    place = _place()
    return place.disk is not None and place.problem is None


def scratch(suffix: str) -> Path:
    """Return the path for a new file on the disk cache's file system, to be stored later.

    Raises:
        OSError: the cache is unusable and its temporary replacement cannot be made.
    """
    return Path(_place().writable().scratch(suffix))


def distrust(error: OSError | str) -> bool:
    """Store nothing more in the disk cache directory, after a failed write, and warn.

    `error` is the reason. Returns whether entries were stored in the directory until now; if not,
    nothing is done.
    """
    place = _place()
    changes = keeps()
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else error
    if changes:
        place.distrust(f"cannot be written ({reason})")
    return changes


def info() -> Info:
    """Return statistics of the disk cache: directory, number of entries, bytes and limit."""
    place = _place()
    found = place.disk.entries() if place.disk is not None else []
    size = sum(s.st_size for _, s in found)
    return Info(place.directory or "", len(found), size, place.limit, place.problem)


def clear() -> int:
    """Delete all disk cache entries and return how many there were.

    Raises:
        OSError: an entry could not be removed.
    """
    disk = _place().disk
    return 0 if disk is None else disk.clear()
