"""Attaches to an exception the user's source location of the graph node that raised it.

The executor and the interpreter mark exceptions that kernels and Python functions raise; compiled
functions add the location to the error's text. An exception that is already marked must keep its
mark, so that the innermost location counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

__all__ = ["SOURCE_ATTRIBUTE", "mark_source", "source_of"]

# exceptions are the user's own objects: no class of ours can hold it
SOURCE_ATTRIBUTE = "_duograph_place"


def mark_source(error: BaseException, spans: Sequence[object]) -> None:
    """Attach source locations, innermost last, to an exception that carries none yet."""
    if not hasattr(error, SOURCE_ATTRIBUTE):
        with contextlib.suppress(AttributeError):  # an exception class that allows no attributes
            setattr(error, SOURCE_ATTRIBUTE, spans)


def source_of(error: BaseException) -> Sequence[Any] | None:
    """Return the user's source locations attached to an exception, or None."""
    found: Sequence[Any] | None = getattr(error, SOURCE_ATTRIBUTE, None)
    return found
