"""Allocates the CPU backend's buffers, the memory of tensors.

A buffer handle is a cffi pointer or array that owns its bytes; Python's reference count frees it.
Up to `SMALL` bytes, a buffer is an uninitialised `char[n]` inside the Python object, which is the
cheapest allocation. Larger buffers come from the caching allocator of native/memory.c and return to
it when the handle is deleted. Kernel builders call `maker` once per result of a prepared call; each
kernel call then only calls the allocation function that `maker` returned.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from duograph.backend.sizes import is_symbolic
from duograph.errors import DeviceMemoryError

from ._native import ffi, lib
from .sized_structs import unsized

if TYPE_CHECKING:
    from duograph.backend.protocol import Array

    from ._native import CData, CType

    Maker = Callable[[], CData]

SMALL = 4096

# Freed blocks are cached up to this fraction, 1 / CACHE_SHARE, of the memory of the machine or its
# control group.
CACHE_SHARE = 8

new_small = ffi.new_allocator(should_clear_after_alloc=False)
_new_large = ffi.new_allocator(alloc=lib.dg_alloc, free=lib.dg_free, should_clear_after_alloc=False)


def _machine_bytes() -> int:
    """Return the machine's memory in bytes, or its control group's limit if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                total = min(total, int(file.read()))
        except (OSError, ValueError):
            continue  # there is no such control group, or it has no limit ("max")
    return total


TOTAL = _machine_bytes()
lib.dg_memory_limits(TOTAL, TOTAL // CACHE_SHARE)


def stats() -> dict[str, int]:
    """Return statistics of the CPU allocator, which allocates only buffers above `SMALL` bytes."""
    out = ffi.new("int64_t[7]")
    lib.dg_memory_stats(out)
    names = ("in_use", "cached", "peak", "limit", "cache_limit", "allocations", "hits")
    return dict(zip(names, out))


def no_memory(what: str, wanted: int = 0) -> DeviceMemoryError:
    """Return the exception for a failed memory allocation of the op `what`; the caller raises it.

    `wanted` is the number of bytes, or 0 for scratch memory of a kernel.
    """
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
    """Return the cffi type of the handle of an allocated buffer of `nbytes` bytes.

    Handles that share a NumPy array's memory have another type.
    """
    return ffi.typeof(f"char[{max(nbytes, 1)}]")


def shared(array: Array) -> CData:
    """Return a buffer handle that shares the bytes of a C-contiguous NumPy array.

    The handle keeps the array alive.
    """
    return ffi.from_buffer(array.reshape(-1).view(np.uint8))


_SHARED = ffi.typeof("char[]")


def _references(handle: CData) -> tuple[int, int] | None:
    """Return the reference counts of the NumPy array behind a buffer handle, and of its view.

    The handle, which `shared` has made, holds the view, which refers to the array. Returns None if
    the array is itself a view or an instance of a subclass.
    """
    (view,) = gc.get_referents(handle)
    array = view.base
    if type(array) is not np.ndarray or array.base is not None:
        return None
    return sys.getrefcount(array), sys.getrefcount(view)


# Reference counts of an array, and its handle, that nothing else refers to.
_ALONE = _references(shared(np.zeros(1)))


def exclusive(handle: CData) -> bool:
    """Return whether nothing but a buffer handle refers to the memory behind it.

    This is true for memory of the allocator, and for a NumPy array without other references.
    References to the handle itself do not count.
    """
    return ffi.typeof(handle) is not _SHARED or _references(handle) == _ALONE


def maker(nbytes: int, what: str) -> Maker:
    """Return a function without arguments that allocates a buffer of `nbytes` uninitialised bytes.

    The function returns the buffer's handle. `what` names the op in errors. If the number of bytes
    is symbolic, nothing can be allocated.
    """
    if is_symbolic(nbytes):
        return unsized
    if nbytes <= SMALL:
        return functools.partial(new_small, owned_type(nbytes))
    if nbytes >= 2**62:
        raise no_memory(what, nbytes)
    return functools.partial(_large, owned_type(nbytes), what, nbytes)
