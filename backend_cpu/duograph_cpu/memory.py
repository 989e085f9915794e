"""Where results live. A handle is a cffi pointer or array that owns its bytes; Python's reference
count frees it.

Up to `SMALL` bytes that is an uncleared `char[n]` inside the Python object, the cheapest allocation
there is. Larger ones come from the caching allocator of native/memory.c and go back to it when the
handle dies. Of freed blocks at most an eighth of the machine's memory (`CACHE_SHARE`) is kept.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from duograph.errors import DeviceMemoryError

from ._native import ffi, lib

if TYPE_CHECKING:
    from ._native import CData, CType

    Maker = Callable[[], CData]

SMALL = 4096

# At most this share of the memory of the machine (or of its control group) is kept cached after
# use.
CACHE_SHARE = 8

new_small = ffi.new_allocator(should_clear_after_alloc=False)
_new_large = ffi.new_allocator(alloc=lib.dg_alloc, free=lib.dg_free, should_clear_after_alloc=False)


def _machine_bytes() -> int:
    """Memory that this process may use: the machine's, or its control group's when that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                total = min(total, int(file.read()))
        except (OSError, ValueError):
            continue  # no such control group, or one without a limit ("max")
    return total


TOTAL = _machine_bytes()
lib.dg_memory_limits(TOTAL, TOTAL // CACHE_SHARE)


def stats() -> dict[str, int]:
    """Statistics of the large blocks; small results belong to Python's own allocator."""
    out = ffi.new("int64_t[7]")
    lib.dg_memory_stats(out)
    names = ("in_use", "cached", "peak", "limit", "cache_limit", "allocations", "hits")
    return dict(zip(names, out))


def no_memory(what: str, wanted: int = 0) -> DeviceMemoryError:
    """The exception for an allocation that failed."""
    now = stats()
    wanted_text = f"no memory for {wanted} bytes" if wanted else "no memory for scratch space"
    return DeviceMemoryError(
        f"{what}: {wanted_text}; in use {now['in_use']}, cached {now['cached']}, "
        f"limit {now['limit']} bytes. Free tensors, or work on smaller ones"
    )


def _large(ctype: CType, what: str, nbytes: int) -> CData:
    try:
        return _new_large(ctype)
    except MemoryError:
        raise no_memory(what, nbytes) from None


def owned_type(nbytes: int) -> CType:
    """The C type of handles of so many bytes that own their memory; those that share an array have
    another.
    """
    return ffi.typeof(f"char[{max(nbytes, 1)}]")


def shared(array: np.ndarray[Any, Any]) -> CData:
    """A handle to the bytes of a C-contiguous array, which it keeps alive."""
    return ffi.from_buffer(array.reshape(-1).view(np.uint8))


_SHARED = ffi.typeof("char[]")


def _references(handle: CData) -> tuple[int, int] | None:
    """References to the array under a handle of `shared`, and to the view of it that the handle
    holds; or None.
    """
    (view,) = gc.get_referents(handle)
    array = view.base
    if type(array) is not np.ndarray or array.base is not None:
        return None
    return sys.getrefcount(array), sys.getrefcount(view)


# Of an array that only a handle holds.
_ALONE = _references(shared(np.zeros(1)))


def exclusive(handle: CData) -> bool:
    """Whether nothing but the handle holds its memory, which may be an array's; who holds the
    handle is not asked.
    """
    return ffi.typeof(handle) is not _SHARED or _references(handle) == _ALONE


def maker(nbytes: int, what: str) -> Maker:
    """A function that makes a handle to `nbytes` uninitialised bytes; `what` names the op in
    errors.
    """
    if nbytes <= SMALL:
        return functools.partial(new_small, owned_type(nbytes))
    if nbytes >= 2**62:
        raise no_memory(what, nbytes)
    return functools.partial(_large, owned_type(nbytes), what, nbytes)
