"""Pauses Python's cyclic garbage collector while the package is imported.

`duograph/__init__.py` uses it. The import creates thousands of functions and classes that all stay
alive; garbage collections during the import would find nothing to free and take a tenth of its
time. This module must not import any other module of the package.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["without_collections"]


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Return a context manager that disables garbage collection inside its `with` block.

    On exit it enables garbage collection again, unless it was disabled before.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
