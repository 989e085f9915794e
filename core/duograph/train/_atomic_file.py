"""Atomic replacement of a file: readers see either the old content or the complete new content.

`_checkpoint_file` and `duograph convert` call it. The new content is written to a temporary file in
the folder of the target, flushed to disk, and renamed. The temporary file is locked until the
rename, so that the next save into the folder recognises and removes temporary files that killed
processes left.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # no such locks on this platform: temporary files of killed saves stay
    fcntl = None  # type: ignore[assignment]

__all__ = ["replace_file", "replacing"]

_TEMPORARY = re.compile(r"\.duograph-[0-9a-f]{16}\.part")


def replace_file(path: str, chunks: Iterable[bytes | memoryview]) -> None:
    """Replace the content of `path` by `chunks` atomically, as `replacing` does."""
    with replacing(path) as file:
        file.writelines(chunks)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Yield a new file that replaces `path` atomically when the `with` block ends without error.

    An existing file keeps its mode. If `path` is a symbolic link, the file that it names is
    replaced.

    Raises:
        OSError: the file cannot be written, or is a pipe or a device; it then has its old content.
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    _sweep(folder)
    kept = _mode_of(path)
    handle, temporary = _create(folder, 0o666 if kept is None else 0o600)
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            if kept is not None:
                os.chmod(file.fileno() if os.chmod in os.supports_fd else temporary, kept)
            os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _mode_of(path: str) -> int | None:
    """Return the permission bits of a file or folder, or None if the path does not exist.

    Raises:
        OSError: the path names something else, such as a pipe.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        text = "it is a pipe, a socket or a device; wanted a file, or a name that is free"
        raise OSError(errno.EINVAL, text, path)
    return stat.S_IMODE(mode) & 0o777


def _create(folder: str, mode: int) -> tuple[int, str]:
    """Create a locked temporary file in a folder; return its descriptor and path.

    `mode` is the file's permission bits.
    """
    while True:
        temporary = os.path.join(folder, f".duograph-{os.urandom(8).hex()}.part")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with contextlib.suppress(OSError):  # a file system without locks
            _lock(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return handle, temporary
        os.close(handle)  # removed by another save between its creation and its lock


def _lock(handle: int, wait: bool) -> None:
    """Lock an open file; the lock belongs to the descriptor, so threads exclude each other too.

    Args:
        wait: wait until the lock is free. Another save holds it only for microseconds, while it
            checks whether the file can be removed (`_sweep`).

    Raises:
        OSError: the lock is taken (without `wait`), or the platform has no file locks.
    """
    if fcntl is None:
        raise OSError("this platform has no file locks")
    fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _sweep(folder: str) -> None:
    """Remove the temporary files of this module that killed processes have left in a folder.

    They are recognised by their names; a file that is locked is still in use and is kept.
    """
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        names = os.listdir(folder)
    except OSError:  # files can be written in a folder that cannot be listed
        return
    for name in names:
        if not _TEMPORARY.fullmatch(name):
            continue
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):  # in use, gone meanwhile, or of another user
            handle = os.open(path, flags)
            try:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    _lock(handle, wait=False)
                    os.unlink(path)
            finally:
                os.close(handle)
