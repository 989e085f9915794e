"""Folders that only this user can change, opened and checked by descriptor.

The disk cache opens all its files with the class `Folder`, because these files are code that will
run. File names are resolved relative to the descriptor of a folder that was checked, never by a
path, whose parts somebody could replace in the meantime. Links are not followed, and only regular
files are read.
"""

from __future__ import annotations

import contextlib
import os
import stat

__all__ = ["Folder", "problem_of"]

# O_NONBLOCK: opening a named pipe would wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def problem_of(facts: os.stat_result) -> str | None:
    """Return why users other than this one might change a file or folder, or None if they cannot.

    `facts` are its owner and mode, as `os.stat` returns them.
    """
    if facts.st_uid != os.getuid():
        return f"belongs to user {facts.st_uid}, not to user {os.getuid()} who runs this"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return (
            f"others can write to it (mode {facts.st_mode & 0o777:o}); chmod 700 makes it private"
        )
    return None


class Folder:
    """An open folder that only this user can change; close it, or use it in a `with` statement.

    Attributes:
        path: the path by which it was opened.
        descriptor: its file descriptor, relative to which file names are resolved.
    """

    def __init__(self, path: str, parent: Folder | None = None) -> None:
        """Open the folder at `path`, or the folder named `path` in `parent`.

        Raises:
            OSError: there is no such folder, or others can change it.
        """
        self.path: str = path if parent is None else os.path.join(parent.path, path)
        if parent is None:
            self.descriptor = os.open(path, _FOLDER)
        else:
            self.descriptor = os.open(path, _FOLDER | os.O_NOFOLLOW, dir_fd=parent.descriptor)
        problem = problem_of(os.fstat(self.descriptor))
        if problem is not None:
            self.close()
            raise PermissionError(0, problem, self.path)

    def close(self) -> None:
        os.close(self.descriptor)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def folder(self, name: str, make: bool = False) -> Folder:
        """Open and return the subfolder `name`; if `make` is true, create it if it is missing.

        Raises:
            OSError: the subfolder is missing or cannot be created, or other users can change it.
        """
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self.descriptor)
        return Folder(name, self)

    def names(self) -> list[str]:
        return os.listdir(self.descriptor)

    def open(self, name: str, flags: int = _READ) -> int:
        """Open the file `name` in this folder; return its file descriptor.

        `flags` are those of `os.open`, by default for reading.

        Raises:
            OSError: there is no such file, it is a link or not a regular file, or other users can
                write to it.
        """
        file = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self.descriptor)
        facts = os.fstat(file)
        problem = problem_of(facts) if stat.S_ISREG(facts.st_mode) else "is no regular file"
        if problem is not None:
            os.close(file)
            raise PermissionError(0, problem, os.path.join(self.path, name))
        return file

    def status(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Remove a file; do nothing if it does not exist or cannot be removed."""
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self.descriptor)
