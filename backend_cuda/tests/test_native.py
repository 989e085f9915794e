"""The C extension: the caching allocator of device memory, and entering the driver."""

from __future__ import annotations

import ctypes
import gc
import itertools
import random
import sys
import threading
import weakref

import numpy as np
import pytest
from cuda_harness import device, run
from duograph.errors import DeviceMemoryError
from duograph_cuda._native import Computation, Gate, Kernel, Memory, Pool

F32 = np.dtype(np.float32)
MIB = 1 << 20


class Driver:
    """Hands out segments of an address space that has no end, or a limit."""

    def __init__(self, limit=1 << 60):
        self.next, self.limit, self.segments = 1 << 40, limit, []

    def take(self, size, nbytes, what):
        if size > self.limit:
            raise DeviceMemoryError(f"{what}: {nbytes}")
        got = max(size, 2 * MIB)
        self.segments.append((self.next, got))
        self.next += 2 * got
        return self.segments[-1]


def test_freed_blocks_are_reused_at_once():
    driver = Driver()
    pool = Pool(driver.take, True, MIB)
    a, b = pool.allocate(12, "a"), pool.allocate(600, "b")
    assert (a.nbytes, b.nbytes, b.pointer - a.pointer) == (12, 600, 512)
    assert (pool.in_use, pool.peak, pool.reserved, pool.allocations) == (612, 612, 2 * MIB, 2)
    place = a.pointer
    del a
    assert pool.allocate(500, "c").pointer == place
    del b
    large = pool.allocate(40 * MIB, "large")
    place = large.pointer
    del large
    halves = [pool.allocate(20 * MIB, "half") for _ in range(2)]
    assert [h.pointer - place for h in halves] == [0, 20 * MIB]
    del halves
    assert pool.allocate(40 * MIB, "again").pointer == place, "neighbours are joined"
    assert pool.in_use == 0 and pool.peak == 40 * MIB
    assert sorted(pool.trim()) == sorted(driver.segments)
    assert pool.reserved == 0 and pool.trim() == []


def test_small_blocks_keep_no_large_segment():
    pool = Pool(Driver().take, True, MIB)
    large = pool.allocate(30 * MIB, "large")
    del large
    small = pool.allocate(1000, "small")
    assert [size for _, size in pool.trim()] == [30 * MIB]
    assert small.nbytes == 1000 and pool.reserved == 2 * MIB


@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_disjoint_and_aligned(seed):
    draw = random.Random(seed)
    driver = Driver()
    pool = Pool(driver.take, True, MIB)
    live = []
    for _ in range(3000):
        if live and draw.random() < 0.48:
            live.pop(draw.randrange(len(live)))
        else:
            live.append(pool.allocate(int(2 ** draw.uniform(0, 27)) + 1, "block"))
    spans = sorted((m.pointer, m.nbytes) for m in live)
    assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(spans))
    assert all(a % 512 == 0 for a, _ in spans)
    assert pool.in_use == sum(n for _, n in spans)
    assert pool.reserved < 1.8 * pool.peak + 40 * MIB
    del live
    assert len(pool.trim()) == len(driver.segments) and pool.reserved == 0


def test_without_caching_every_request_is_a_segment():
    driver = Driver()
    pool = Pool(driver.take, False, MIB)
    a = pool.allocate(12, "a")
    del a
    b = pool.allocate(12, "b")
    assert len(driver.segments) == 2 and b.pointer == driver.segments[1][0]


def test_refused_requests():
    pool = Pool(Driver(10).take, True, MIB)
    with pytest.raises(DeviceMemoryError, match="matmul: 7"):
        pool.allocate(7, "matmul")
    assert (pool.in_use, pool.reserved) == (0, 0)
    for arguments in ((), (1,), (1, "a", 2), (-1, "a"), ("x", "a"), (1 << 70, "a")):
        with pytest.raises((TypeError, OverflowError)):
            pool.allocate(*arguments)
    empty = pool.allocate(0, "nothing")
    assert (empty.pointer, empty.nbytes) == (0, 0)
    with pytest.raises(TypeError):
        Pool(lambda *_: "a segment", True, MIB).allocate(1, "a")


def test_lent_requests_are_those_of_one_thread():
    class Lender:
        def allocate(self, nbytes, what):
            return Memory(7, nbytes)

    pool = Pool(Driver().take, True, MIB)
    assert pool.lend(Lender()) is None
    found = [pool.allocate(3, "a").pointer]
    thread = threading.Thread(target=lambda: found.append(pool.allocate(3, "b").pointer))
    thread.start()
    thread.join()
    assert found[0] == 7 and found[1] > 1 << 39
    assert isinstance(pool.lend(None), Lender)
    assert pool.allocate(3, "c").pointer > 1 << 39


def test_memory_of_another_owner_and_moves():
    pool = Pool(Driver().take, True, MIB)
    block, fresh = pool.allocate(8, "block"), pool.allocate(8, "fresh")
    view = Memory(block.pointer, 8, block)
    seen = weakref.ref(view)
    assert seen() is view
    del block
    assert pool.in_use == 16
    view.move(fresh)
    assert view.pointer == fresh.pointer and pool.in_use == 8
    del fresh
    assert pool.in_use == 8
    del view
    assert pool.in_use == 0 and seen() is None
    with pytest.raises(TypeError, match="wanted a Memory"):
        pool.allocate(8, "x").move(3)


def test_a_shared_block_stays_when_its_handle_moves():
    pool = Pool(Driver().take, True, MIB)
    handle = pool.allocate(8, "handle")
    before = sys.getrefcount(handle)
    second = handle.share()
    third = handle.share()
    place = handle.pointer
    assert sys.getrefcount(handle) == before and (second.pointer, third.pointer) == (place, place)
    handle.move(pool.allocate(8, "fresh"))
    del third
    assert pool.in_use == 16 and pool.allocate(8, "other").pointer not in (place, handle.pointer)
    del second
    assert pool.in_use == 8 and pool.allocate(8, "other").pointer == place
    assert Memory(7, 8).share().pointer == 7


def test_exclusive_memory():
    """A block of the pool is, until another handle shares it; memory of another owner is not."""
    pool = Pool(Driver().take, True, MIB)
    block = pool.allocate(8, "block")
    assert block.exclusive and pool.allocate(0, "nothing").exclusive
    view = Memory(block.pointer, 8, block)
    assert not view.exclusive and block.exclusive
    second = block.share()
    assert second.exclusive and not block.exclusive
    block.move(pool.allocate(8, "fresh"))
    assert not block.exclusive and not Memory(7, 8).exclusive


def test_devices_are_collected():
    on = device()
    run("DG_KERNEL void k(f32 *out) { out[0] = 1.0f; }", out=np.zeros(1, np.float32), on=on)
    gone = weakref.ref(on)
    del on
    gc.collect()
    assert gone() is None


def test_unused_modules_are_unloaded(monkeypatch):
    on = device()
    unloaded = []
    monkeypatch.setattr(on.driver.module, "cuModuleUnload", lambda m: unloaded.append(m) or (0,))
    source = "DG_KERNEL void k(f32 *out) { out[0] += 1.0f; }"
    module = on.build(on.dialect.prelude_for(source) + source)
    x = on.copy_in(np.zeros(1, np.float32))
    kernels = [on.launcher(module, "k", (1, 1, 1), (1, 1, 1), 1, ()) for _ in range(2)]
    loaded = module.load()
    for kernel in kernels:
        kernel(x)
    on.unload()
    assert module.load() is loaded
    del loaded, kernel, kernels
    on.unload()
    assert len(unloaded) == 2, "the one that the build loaded, and the one of the kernels"
    on.launcher(module, "k", (1, 1, 1), (1, 1, 1), 1, ())(x)
    assert on.copy_out(x, (1,), F32) == 3


def test_wrong_buffers():
    on = device()
    module = on.build(on.dialect.prelude_for("") + "DG_KERNEL void k(f32 *out) { out[0] = 1.0f; }")
    kernel = on.launcher(module, "k", (1, 1, 1), (1, 1, 1), 1, ())
    for given, said in (((), "0 buffers; wanted 1"), ((3,), "got 3; wanted a Memory")):
        with pytest.raises(TypeError, match=said):
            kernel(*given)
    with pytest.raises(ValueError, match="at most 256 arguments"):
        Kernel(on.gate, 1, (1, 1, 1), (1, 1, 1), 0, 257, b"", "k", None)


def test_results_are_allocated_where_they_are_computed():
    """In one call of C: the result comes from the pool, or from whom the pool is lent."""
    on = device()
    text = "DG_KERNEL void k(const f32 *x, f32 *out) { out[0] = x[0] + 1.0f; }"
    kernel = on.launcher(on.build(on.dialect.prelude_for("") + text), "k", *((1, 1, 1),) * 2, 2, ())
    run = on.computing(kernel, 4, "k")
    assert isinstance(run.__self__, Computation)
    x, before = on.copy_in(np.ones(1, np.float32)), on.memory_stats()
    y = run(run(x))
    assert on.copy_out(y, (1,), F32) == 3
    assert on.memory_stats()["in_use"] == before["in_use"] + 4, "the first result is free again"
    for given, said in (((), "0 buffers; wanted 1"), ((3,), "got 3"), ((x, x), "2 buffers")):
        with pytest.raises(TypeError, match=said):
            run(*given)
    assert on.memory_stats()["in_use"] == before["in_use"] + 4

    class Lender:
        def allocate(self, nbytes, what):
            assert (nbytes, what) == (4, "k")
            return x

    on.pool.lend(Lender())
    assert run(x) is x
    on.pool.lend(None)
    assert on.copy_out(x, (1,), F32) == 2
    wrapped = on.computing(lambda *handles: kernel(*handles), 4, "k")
    assert on.copy_out(wrapped(x), (1,), F32) == 3


def test_context_of_another_library_comes_back():
    on = device()
    module = on.driver.module
    x = on.copy_in(np.arange(3, dtype=np.float32))
    assert int(module.cuCtxGetCurrent()[1]) == int(on.context)
    module.cuCtxSetCurrent(0x77)
    seen = []
    real = module.cuLaunchKernel
    module.cuLaunchKernel = lambda *a: seen.append(int(module.cuCtxGetCurrent()[1])) or real(*a)
    got = run("DG_KERNEL void k(f32 *o) { o[0] = 1.0f; }", out=np.zeros(1, np.float32), on=on)
    assert got[0] == 1 and seen == [int(on.context)]
    np.testing.assert_array_equal(on.copy_out(x, (3,), F32), [0, 1, 2])
    assert int(module.cuCtxGetCurrent()[1]) == 0x77


def test_a_thread_that_holds_the_device_is_alone():
    on = device()
    module = on.build(on.dialect.prelude_for("") + "DG_KERNEL void k(f32 *o) { o[0] += 1.0f; }")
    kernel = on.launcher(module, "k", (1, 1, 1), (1, 1, 1), 1, ())
    x = on.copy_in(np.zeros(1, np.float32))
    started = threading.Event()

    def work():
        started.set()
        for _ in range(50):
            kernel(x)

    threads = [threading.Thread(target=work) for _ in range(3)]
    with on.alone, on.alone:
        for t in threads:
            t.start()
        started.wait()
        before = on.gate.launches
        for _ in range(5):
            kernel(x)
            gc.collect()
        assert on.gate.launches == before + 5
    for t in threads:
        t.join()
    assert on.copy_out(x, (1,), F32) == 155


def test_failing_driver_functions():
    """What the driver refuses is raised, whatever the function was."""
    said = []

    def failed(code, what):
        said.append((code, what))
        raise DeviceMemoryError(what)

    ok, bad = (
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _, code=code: code)
        for code in (0, 201)
    )
    address = [ctypes.cast(f, ctypes.c_void_p).value for f in (ok, bad)]
    gate = Gate(address[0], address[1], address[0], 5, 6, threading.RLock(), sys.exit, failed)
    with pytest.raises(DeviceMemoryError):
        gate.enter()
    with pytest.raises(DeviceMemoryError, match="k"):
        Kernel(gate, 1, (1, 1, 1), (1, 1, 1), 0, 0, b"", "k", None).launch()
    assert said == [(201, "cuCtxSetCurrent"), (201, "k")]
    gate.blocked = True
    with pytest.raises(SystemExit):
        gate.enter()
    thread = threading.Thread(target=gate.hold)  # it ends as the holder, as after a fork
    thread.start()
    thread.join()
    with pytest.raises(SystemExit):
        gate.enter()


@pytest.mark.parametrize("nbytes", [4, 64 << 10, (64 << 10) + 4, 3 * MIB, (64 << 20) + 4])
def test_uploads_do_not_see_later_changes(nbytes, monkeypatch):
    """An array that changes after `copy_in` has returned must arrive as it was.

    The driver of this test reads the source of each transfer only when the stream is synchronised,
    as a GPU may with page-locked memory.
    """
    on = device()
    late = []
    real = on.driver.module.cuMemcpyHtoDAsync

    def copy(target, source, n, stream):
        given = source if isinstance(source, bytes) else None
        late.append((target, given or source, n, stream))
        return (0,)

    def synchronize(stream):
        while late:
            real(*late.pop(0))
        return (0,)

    monkeypatch.setattr(on.driver.module, "cuMemcpyHtoDAsync", copy)
    monkeypatch.setattr(on.driver.module, "cuStreamSynchronize", synchronize)
    array = np.arange(nbytes // 4, dtype=np.int32)
    memory = on.copy_in(array)
    array[:] = -1
    on.synchronize()
    got = on.copy_out(memory, array.shape, array.dtype)
    np.testing.assert_array_equal(got, np.arange(nbytes // 4))


def test_staging_buffers_are_reused_within_a_limit(monkeypatch):
    on = device(limit=4 << 30)
    array = np.ones(MIB, np.float32)
    for _ in range(5):
        on.copy_in(array)
    assert on.staging.total == 4 * MIB
    busy = on.driver.module.CUresult(1)
    monkeypatch.setattr(on.driver.module, "cuEventQuery", lambda _: (busy,))
    for _ in range(100):
        on.copy_in(array)
    assert on.staging.total == 256 * MIB
    on.copy_in(np.ones(2 * MIB, np.float32))
    assert on.staging.total == 8 * MIB, "another size: the others are returned first"
    on.empty_cache()
    assert on.staging.total == 0 and not on.driver.module.pinned
