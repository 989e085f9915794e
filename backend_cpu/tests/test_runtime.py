"""The pool and the allocator: threads, forks, limits, statistics."""

import gc
import os
import threading

import numpy as np
import pytest
from duograph.errors import DeviceMemoryError
from duograph_cpu import memory
from duograph_cpu._native import ffi, lib
from harness import CPU_BACKEND, run


def total(x):
    return run("reduce_sum", [x], np.empty((), x.dtype), axis=(0, 1), keepdims=False)


def test_threads_agree():
    """A second caller runs inline and gets the same bits."""
    x = np.random.default_rng(0).standard_normal((3000, 1000)).astype(np.float32)
    alone, found = total(x), []

    def work():
        for _ in range(10):
            found.append(total(x))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 40 and all(f == alone for f in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork():
    x = np.ones((3000, 1000), np.float32)
    assert total(x) == 3e6
    child = os.fork()
    if child == 0:
        os._exit(0 if total(x) == 3e6 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert total(x) == 3e6


def test_freed_blocks_are_reused():
    """H11: Memory: allocate, free, host-to-device, device-to-host, device-to-device, pool provided
    by core
    """
    gc.collect()
    before = memory.stats()
    make = memory.maker(10 << 20, "test")
    for _ in range(100):
        block = make()
    now = memory.stats()
    assert now["in_use"] >= before["in_use"] + (10 << 20)
    assert now["allocations"] == before["allocations"] + 100
    assert now["hits"] >= before["hits"] + 98
    del block
    now = memory.stats()
    assert now["in_use"] == before["in_use"] and now["cached"] >= 10 << 20
    CPU_BACKEND.empty_cache(0)
    assert memory.stats()["cached"] == 0


def test_small_blocks_release_their_memory():
    """Blocks of one slab: what is cached goes, beside those in use or with the whole slab, and
    comes back usable.
    """
    gc.collect()
    CPU_BACKEND.empty_cache(0)
    before = memory.stats()
    size = 200 << 10
    make = memory.maker(size, "test")

    def view(block):
        return np.frombuffer(ffi.buffer(ffi.cast("char *", block), size), np.uint8)

    blocks = [make() for _ in range(100)]  # more than a slab
    for k, block in enumerate(blocks):
        view(block)[:] = k
    kept = blocks[::10]
    del block, blocks
    assert memory.stats()["cached"] >= 90 * size
    CPU_BACKEND.empty_cache(0)
    assert memory.stats()["cached"] == 0
    again = [make() for _ in range(90)]
    for block in again:
        view(block)[:] = 200
    for k, block in enumerate(kept):
        assert np.all(view(block) == 10 * k)
    assert len({int(ffi.cast("uintptr_t", b)) for b in (*kept, *again)}) == 100
    del block, again, kept
    CPU_BACKEND.empty_cache(0)
    now = memory.stats()
    assert now["cached"] == 0 and now["in_use"] == before["in_use"]


def test_limits():
    with pytest.raises(DeviceMemoryError, match=r"add: no memory for \d+ bytes; in use"):
        memory.maker(memory.TOTAL * 2, "add")()
    lib.dg_memory_limits(memory.TOTAL, 1 << 20)
    try:
        memory.maker(10 << 20, "test")()
        assert memory.stats()["cached"] <= 1 << 20
    finally:
        lib.dg_memory_limits(memory.TOTAL, memory.TOTAL // memory.CACHE_SHARE)


def test_host_memory():
    x = np.arange(5000, dtype=np.float32)
    shared = CPU_BACKEND.from_host(x, 0)
    x[0] = 7
    assert CPU_BACKEND.copy_out(shared, x.shape, x.dtype, 0)[0] == 7
    assert CPU_BACKEND.from_host(x[::2], 0) is None
    copied = CPU_BACKEND.copy_in(x, 0)
    x[0] = 8
    out = CPU_BACKEND.copy_out(copied, x.shape, x.dtype, 0)
    del copied
    gc.collect()
    assert out[0] == 7 and (out[1:] == x[1:]).all()
