"""The emulated machine does what CUDA says, and finds what a device would leave to chance."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
from cuda_harness import device, run, text
from duograph.dtype import int32
from duograph.errors import DeviceError

LANES = np.arange(32, dtype=np.float32)


def test_elementwise_kernels_run_without_fibres():
    x = np.arange(1000, dtype=np.float32)
    source = """DG_KERNEL void k(const f32 *x, f32 *out, i32 n) {
        const i32 i = (i32)DG_ITEM(0);
        if (i < n) out[i] = x[i] * 2.0f;
    }"""
    got = run(
        source, x, out=np.zeros_like(x), scalars=[(int32, 1000)], groups=(4, 1, 1), size=(256, 1, 1)
    )
    np.testing.assert_array_equal(got, x * 2)


@pytest.mark.parametrize("seed", range(5))
def test_barrier_and_shared_memory(seed):
    """A sum over a block by halves: wrong in some order of the threads without any one of the
    barriers.
    """
    source = """DG_KERNEL void k(const f32 *x, f32 *out) {
        DG_SHARED f32 part[256];
        const i32 t = DG_PLACE(0);
        part[t] = x[DG_ITEM(0)];
        for (i32 half = 128; half > 0; half /= 2) {
            DG_BARRIER();
            if (t < half) part[t] += part[t + half];
        }
        if (t == 0) out[DG_GROUP(0)] = part[0];
    }"""
    x = np.arange(1024, dtype=np.float32)
    got = run(
        source,
        x,
        out=np.zeros(4, np.float32),
        groups=(4, 1, 1),
        size=(256, 1, 1),
        on=device(seed=seed),
    )
    np.testing.assert_array_equal(got, x.reshape(4, 256).sum(1))


def test_missing_barrier_is_detected():
    """Group memory holds NaN until it is written, and threads run in shuffled order."""
    source = """DG_KERNEL void k(const f32 *x, f32 *out) {
        DG_SHARED f32 part[64];
        const i32 t = DG_PLACE(0);
        part[t] = x[t];
        if (t == 63) out[0] = 0.0f; /* no barrier */
        DG_BARRIER();
        DG_SHARED f32 other[64];
        if (t % 2) other[t] = part[t];
        out[t] = other[63 - t];
        DG_BARRIER();
    }"""
    got = run(source, np.ones(64, np.float32), out=np.zeros(64, np.float32), size=(64, 1, 1))
    assert np.isnan(got).any()


@pytest.mark.parametrize(
    "call, wanted",
    [
        ("__shfl_down_sync(0xffffffffu, v, 3)", np.where(LANES + 3 < 32, LANES + 3, LANES)),
        ("__shfl_up_sync(0xffffffffu, v, 3)", np.where(LANES >= 3, LANES - 3, LANES)),
        ("__shfl_xor_sync(0xffffffffu, v, 5)", (np.arange(32) ^ 5).astype(np.float32)),
        ("__shfl_sync(0xffffffffu, v, 7)", np.full(32, 7, np.float32)),
        ("__shfl_down_sync(0xffffffffu, v, 1, 8)", np.where(LANES % 8 < 7, LANES + 1, LANES)),
        ("__shfl_sync(0xffffffffu, v, 2, 16)", LANES // 16 * 16 + 2),
        ("(f32)__popc(__ballot_sync(0xffffffffu, v < 5.0f))", np.full(32, 5, np.float32)),
        ("(f32)__any_sync(0xffffffffu, v > 30.0f)", np.ones(32, np.float32)),
        ("(f32)__all_sync(0xffffffffu, v > 30.0f)", np.zeros(32, np.float32)),
    ],
)
def test_warp_shuffles(call, wanted):
    source = f"""DG_KERNEL void k(const f32 *x, f32 *out) {{
        const f32 v = x[threadIdx.x];
        for (i32 turn = 0; turn < 3; turn++) out[threadIdx.x] = {call};
    }}"""
    np.testing.assert_array_equal(run(source, LANES, out=np.zeros(32, np.float32)), wanted)


def test_atomics():
    source = """DG_KERNEL void k(const i32 *x, f32 *out) {
        dg_atomic_add_f32(out, (f32)x[DG_ITEM(0)]);
        atomicMax((i32 *)out + 1, x[DG_ITEM(0)]);
    }"""
    got = run(
        source,
        np.arange(512, dtype=np.int32),
        out=np.zeros(2, np.float32),
        groups=(4, 1, 1),
        size=(128, 1, 1),
    )
    assert got[0] == 511 * 512 / 2
    assert got.view(np.int32)[1] == 511


def test_dynamic_shared_memory():
    source = """DG_KERNEL void k(const f32 *x, f32 *out) {
        DG_DYNAMIC_SHARED(f32, part);
        part[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] = part[31 - threadIdx.x];
    }"""
    on = device()
    module = on.build(on.dialect.prelude_for(source) + source)
    x, out = on.copy_in(LANES), on.allocate(128, "test")
    function = on.checked("k", "cuModuleGetFunction", module.load().handle, b"k")
    import ctypes

    slots = (ctypes.c_uint64 * 2)(x.pointer, out.pointer)
    places = (ctypes.c_void_p * 2)(ctypes.addressof(slots), ctypes.addressof(slots) + 8)
    on.checked(
        "k", "cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 128, 0, ctypes.addressof(places), 0
    )
    np.testing.assert_array_equal(on.copy_out(out, (32,), np.dtype(np.float32)), LANES[::-1])


@pytest.mark.parametrize("kind, rounded", [(0, np.float16), (2, np.float32)])
def test_mma_fragments(kind, rounded):
    """One product of a warp: fragments as the PTX manual lays them out, against NumPy."""
    rng = np.random.default_rng(3)
    depth = 8 if kind == 2 else 16
    a = rng.integers(-4, 5, (16, depth)).astype(rounded)
    b = rng.integers(-4, 5, (depth, 8)).astype(rounded)
    source = (
        text("mma.cuh")
        + f"""DG_KERNEL void k(const u32 *x, const u32 *y, f32 *out) {{
        const i32 g = threadIdx.x / 4, t = threadIdx.x % 4;
        u32 a[4], b[2];
        f32 d[4] = {{1.0f, 1.0f, 1.0f, 1.0f}};
        for (i32 k = 0; k < 4; k++) a[k] = x[(g + k % 2 * 8) * 8 + t + k / 2 * 4];
        for (i32 k = 0; k < 2; k++) b[k] = y[g * 8 + t + k * 4];
        dg_mma<{kind}>(d, a, b);
        for (i32 k = 0; k < 4; k++) out[(g + k / 2 * 8) * 8 + t * 2 + k % 2] = d[k];
    }}"""
    )
    words = np.ascontiguousarray(a).view(np.uint32), np.ascontiguousarray(b.T).view(np.uint32)
    got = run(source, *words, out=np.zeros((16, 8), np.float32))
    np.testing.assert_array_equal(got, a.astype(np.float32) @ b.astype(np.float32) + 1)


@pytest.mark.parametrize(
    "body, words",
    [
        ("if (threadIdx.x < 16) DG_BARRIER();", "not all threads of a block reach one barrier"),
        ("if (threadIdx.x == 3) return; DG_BARRIER();", "has returned"),
        ("if (threadIdx.x < 16)\n DG_BARRIER();\n else\n DG_BARRIER();", "not all threads"),
        ("if (threadIdx.x < 16) __syncwarp(); else\n DG_BARRIER();", "not all threads"),
        ("__shfl_sync(0xffu, x[0], 0);", "different places"),
    ],
)
def test_deadlocked_threads_are_reported(body, words):
    source = f"DG_KERNEL void k(const f32 *x, f32 *out) {{\n{body}\n}}"
    with pytest.raises(DeviceError, match=f"k: .*{words}"):
        run(source, LANES, out=np.zeros(32, np.float32))


def test_out_of_bounds_write_is_reported():
    source = "DG_KERNEL void k(const f32 *x, f32 *out) { out[threadIdx.x + 1] = x[threadIdx.x]; }"
    with pytest.raises(DeviceError, match="k: a thread wrote beside a buffer"):
        run(source, LANES, out=np.zeros(32, np.float32))


def test_fresh_memory_is_not_zero():
    on = device()
    assert np.isnan(on.copy_out(on.allocate(16, "test"), (4,), np.dtype(np.float32))).all()


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="it counts mappings on Linux")
def test_unloaded_kernels_leave_no_mappings():
    """A process may have 65,530 of them, and a run of the conformance suite loads more kernels."""
    on = device()

    def mapped():
        with open("/proc/self/maps") as file:
            return sum(1 for _ in file)

    def load(number):
        source = f"DG_KERNEL void k(f32 *out) {{ out[DG_ITEM(0)] = {number}.0f; }}"
        got = run(source, out=np.zeros(32, np.float32), on=on)
        np.testing.assert_array_equal(got, np.full(32, number, np.float32))

    load(0)
    before = mapped()
    for number in range(1, 30):
        load(number)
    gc.collect()
    on.unload()
    assert mapped() - before < 29, "each library has at least two mappings"
