"""Counts of compiled functions: of one function (`CacheInfo`), and of all together (`jit_stats`).

Each `JitFunction` registers here when it is made and leaves its counts when it is freed; the
command `duograph show` learns of the functions that a script makes. Nothing here may keep a
function alive, except for `created_functions`, or run per call.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..frontend.types import Value

if TYPE_CHECKING:
    from .function import JitFunction

__all__ = ["CacheInfo", "created_functions", "jit_stats", "register", "unregister"]


class CacheInfo(NamedTuple):
    """Counts of one compiled function since it was created (`f.cache_info()`).

    Attributes:
        hits: number of calls for which the cache had a program.
        misses: number of compilations that made a program.
        maxsize: largest number of signatures that one cache keeps; a compiled method has a cache
            for each receiver, and more signatures are kept if sizes are symbolic.
        currsize: number of signatures in all caches of the function.
        fallbacks: number of calls that ran line by line because the function, or its derivative,
            could not be compiled.
        seconds: time spent on compiling.
    """

    hits: int
    misses: int
    maxsize: int
    currsize: int
    fallbacks: int
    seconds: float


_all: weakref.WeakSet[JitFunction] = weakref.WeakSet()
# Counts of functions that were garbage-collected, so that the sums of `jit_stats` never decrease.
_collected: dict[str, float] = dict.fromkeys(
    ("compiles", "hits", "fallbacks", "seconds", "specialised"), 0
)
# Receives all functions that are made while `created_functions` is active.
_created: list[JitFunction] | None = None


@contextlib.contextmanager
def created_functions() -> Iterator[list[JitFunction]]:
    """Return a context manager that yields a list, to which new compiled functions are added.

    The list collects the functions made while the `with` block runs, and keeps them alive.
    """
    global _created
    before, _created = _created, []
    try:
        yield _created
    finally:
        _created = before


def register(function: JitFunction) -> None:
    """Count a new compiled function, and list it where `created_functions` is active."""
    _all.add(function)
    if _created is not None:
        _created.append(function)


def unregister(function: JitFunction) -> None:
    """Add the counts of a function that is being freed to those of all freed functions."""
    _collected["compiles"] += function._misses
    _collected["hits"] += function._hits
    _collected["fallbacks"] += function._fallbacks
    _collected["specialised"] += function._specialised
    _collected["seconds"] += function._seconds


def jit_stats() -> dict[str, Value]:
    """Return sums over all compiled functions, as a dict.

    They are the numbers of compilations, of programs that were made from a program for many sizes
    (`specialised`), of calls that found a program (`hits`), and of calls that ran line by line
    because their function could not be compiled (`fallbacks`); the seconds spent on compiling; and
    the newest reasons for compilations and fallbacks.

    Examples:
        >>> import duograph as ms
        >>> list(ms.jit_stats())[:5]
        ['functions', 'compiles', 'specialised', 'hits', 'fallbacks']
    """
    functions = list(_all)
    reasons: dict[str, list[str]] = {}
    for f in functions:  # several functions may have one name
        found = list(f._reasons)
        if found:
            reasons.setdefault(f._name, []).extend(found)
    return {
        "functions": len(functions),
        "compiles": _collected["compiles"] + sum(f._misses for f in functions),
        "specialised": _collected["specialised"] + sum(f._specialised for f in functions),
        "hits": _collected["hits"] + sum(f._hits for f in functions),
        "fallbacks": _collected["fallbacks"] + sum(f._fallbacks for f in functions),
        "guards": sum(len(p.captures.items) for f in functions for p in f.programs()),
        "seconds": _collected["seconds"] + sum(f._seconds for f in functions),
        "reasons": reasons,
    }
