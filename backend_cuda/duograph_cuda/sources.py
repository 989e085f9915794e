"""The texts of our own kernels."""

from __future__ import annotations

import functools
import pathlib

__all__ = ["text"]

HERE = pathlib.Path(__file__).parent / "cuda"


@functools.cache
def text(*names: str) -> str:
    """The files of these names, one after the other."""
    return "".join((HERE / name).read_text() for name in names)
