"""What the table of file formats is made of: an entry, and a folder to write files to.

`formats` and `dataset_formats` use it.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from duograph.errors import DuographError


class Format(NamedTuple):
    """A file format.

    Attributes:
        samples: makes the bytes of valid files.
        file: name of the file that the bytes are written to, relative to a folder of its own.
        read: reads it, given the path.
        error: the class that a damaged file leads to.
        share: part of all inputs that this format gets; formats that take long get fewer.
        names: what the error names: "file"; "folder", which includes other files in it that the
            file refers to; or "nothing", if the reader is given bytes.
    """

    samples: Callable[[], list[bytes]]
    file: str
    read: Callable[[pathlib.Path], object]
    error: type[DuographError]
    share: float = 1.0
    names: str = "file"


@contextmanager
def folder() -> Iterator[pathlib.Path]:
    """Make a folder in memory where the platform has one: a million files are written."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.path.isdir(memory) else None) as made:
        yield pathlib.Path(made)
