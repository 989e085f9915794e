"""Pauses Python's cyclic garbage collector while the package is imported.

`duograph/__init__.py` uses it. The import creates thousands of functions and classes that all stay
alive, and a collection in between takes a tenth of its time to find nothing. This module must not
import another one of the package.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["without_collections"]


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Context manager that disables garbage collection; it restores the former state after."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
