import itertools
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from duograph_cpu.kernels import KERNELS
from harness import CPU_BACKEND, check, run, type_of
from own_products import only_with_own_products

RNG = np.random.default_rng(3)


def conv_reference(x, w, stride, padding, dilation, groups):
    nd = x.ndim - 2
    xp = np.pad(x, [(0, 0), (0, 0), *padding])
    out = [
        (xp.shape[2 + d] - dilation[d] * (w.shape[2 + d] - 1) - 1) // stride[d] + 1
        for d in range(nd)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    og, cg = w.shape[0] // groups, w.shape[1]
    for tap in itertools.product(*[range(k) for k in w.shape[2:]]):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilation, out, stride)
        )
        part = xp[(slice(None), slice(None), *window)]
        for g in range(groups):
            wt = w[(slice(g * og, (g + 1) * og), slice(None), *tap)]
            y[:, g * og : (g + 1) * og] += np.einsum(
                "oc,nc...->no...", wt, part[:, g * cg : (g + 1) * cg]
            )
    return y


def grads_reference(x, w, dy, stride, padding, dilation, groups):
    nd = x.ndim - 2
    xp = np.pad(x, [(0, 0), (0, 0), *padding])
    dxp, dw = np.zeros(xp.shape), np.zeros(w.shape)
    og, cg = w.shape[0] // groups, w.shape[1]
    for tap in itertools.product(*[range(k) for k in w.shape[2:]]):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilation, dy.shape[2:], stride)
        )
        for g in range(groups):
            o, c = slice(g * og, (g + 1) * og), slice(g * cg, (g + 1) * cg)
            at = (slice(None), c, *window)
            dxp[at] += np.einsum("oc,no...->nc...", w[(o, slice(None), *tap)], dy[:, o])
            axes = [0, *range(2, nd + 2)]
            dw[(o, slice(None), *tap)] += np.tensordot(dy[:, o], xp[at], (axes, axes))
    crop = tuple(slice(low, low + n) for (low, high), n in zip(padding, x.shape[2:]))
    return dxp[(slice(None), slice(None), *crop)], dw


# x, w, stride, padding, dilation, groups
CASES = [
    ((2, 3, 8, 9), (4, 3, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((2, 3, 8, 9), (5, 3, 3, 2), (2, 3), ((0, 1), (2, 1)), (1, 2), 1),
    ((1, 17, 30, 30), (20, 17, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((1, 17, 31, 30), (20, 17, 1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1), 1),
    ((2, 6, 11), (8, 3, 5), (1,), ((2, 2),), (1,), 2),
    ((2, 6, 11), (6, 1, 3), (2,), ((1, 1),), (1,), 6),
    ((2, 8, 12, 13), (16, 1, 3, 3), (2, 1), ((1, 0), (1, 1)), (1, 2), 8),
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 3), (1, 2, 1), ((1, 1), (0, 1), (1, 1)), (1, 1, 2), 1),
    ((2, 64, 28, 28), (64, 64, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((3, 64, 28, 28), (96, 64, 3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), 1),
    ((1, 3, 60, 60), (64, 3, 7, 7), (2, 2), ((3, 3), (3, 3)), (1, 1), 1),
    ((4, 130, 7, 7), (70, 130, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((3, 11, 5, 7), (101, 11, 3, 3), (1, 1), ((1, 0), (2, 1)), (1, 2), 1),
    ((2, 99, 9, 8), (98, 99, 3, 2), (2, 1), ((1, 1), (0, 1)), (1, 1), 1),
    ((7, 100, 7, 7), (100, 100, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((1, 97, 3, 4, 5), (96, 97, 2, 3, 1), (1, 1, 1), ((0, 1), (1, 1), (0, 0)), (1, 1, 1), 1),
    ((2, 40, 13), (100, 40, 4), (3,), ((3, 0),), (1,), 1),
    ((2, 12, 9, 7), (20, 6, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 2),
    ((1, 33, 2, 3), (40, 33, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((2, 6, 40, 41), (12, 2, 3, 5), (2, 1), ((1, 1), (2, 2)), (1, 1), 3),
    ((1, 5, 4, 9, 11), (5, 1, 3, 3, 3), (1, 2, 2), ((1, 1), (1, 1), (1, 1)), (1, 1, 1), 5),
    ((1, 3, 130, 150), (3, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 3),
    ((2, 5, 14, 14), (5, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 5),
    ((2, 6, 33, 34), (6, 1, 3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), 6),
    ((1, 4, 28, 71), (4, 1, 3, 3), (2, 2), ((0, 1), (0, 1)), (1, 1), 4),
    ((1, 3, 40, 37), (6, 1, 5, 5), (2, 2), ((2, 2), (1, 3)), (1, 1), 3),
    ((2, 4, 20, 23), (4, 1, 3, 3), (3, 3), ((1, 1), (2, 0)), (1, 1), 4),
    ((1, 4, 25, 40), (8, 1, 3, 3), (2, 2), ((2, 2), (2, 2)), (2, 2), 4),
    ((1, 3, 2, 3), (3, 1, 5, 5), (1, 1), ((2, 2), (2, 2)), (1, 1), 3),
    ((1, 2, 4, 5), (2, 1, 1, 1), (2, 2), ((3, 3), (2, 2)), (1, 1), 2),
    ((1, 3, 8), (6, 1, 4), (1,), ((1, 2),), (1,), 3),
    ((2, 4, 3, 3), (4, 4, 2, 2), (3, 3), ((0, 0), (0, 0)), (1, 1), 1),
    ((0, 4, 5, 5), (4, 4, 2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
]  # fmt: skip

# x, w, padding of 3x3 kernels that conv_winograd.c takes: odd sizes, channels that are no multiple
# of a vector, few lines and many, tiles of several images in one block, and more channels than a
# block of a product has.
WINOGRAD = [
    ((1, 64, 14, 14), (64, 64, 3, 3), ((1, 1), (1, 1))),
    ((1, 64, 56, 56), (64, 64, 3, 3), ((1, 1), (1, 1))),
    ((1, 50, 15, 21), (83, 50, 3, 3), ((1, 1), (1, 1))),
    ((2, 49, 23, 17), (65, 49, 3, 3), ((0, 2), (2, 1))),
    ((1, 72, 13, 40), (40, 72, 3, 3), ((0, 0), (0, 0))),
    ((1, 40, 70, 6), (90, 40, 3, 3), ((2, 0), (2, 2))),
    ((1, 48, 4, 130), (48, 48, 3, 3), ((1, 1), (0, 0))),
    ((9, 80, 7, 7), (96, 80, 3, 3), ((1, 1), (1, 1))),
    ((40, 60, 4, 4), (60, 60, 3, 3), ((1, 1), (1, 1))),
    ((3, 400, 8, 9), (33, 400, 3, 3), ((1, 1), (1, 1))),
    ((1, 33, 20, 20), (800, 33, 3, 3), ((1, 1), (1, 1))),
]  # fmt: skip
TOL = {np.float32: 1e-4, np.float64: 1e-10, np.float16: 3e-2, ml_dtypes.bfloat16: 1e-1}


@pytest.mark.parametrize("dtype", list(TOL))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv(case, dtype):
    xs, ws, stride, padding, dilation, groups = case
    x, w = (
        RNG.standard_normal(xs).astype(dtype),
        (RNG.standard_normal(ws) / np.sqrt(ws[1] * 9)).astype(dtype),
    )
    wide = x.astype(np.float64), w.astype(np.float64)
    tol = TOL[dtype]
    y = conv_reference(*wide, stride, padding, dilation, groups)
    attributes = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    check("conv", [x, w], y.astype(dtype), tol, **attributes)
    dy = (RNG.standard_normal(y.shape) / np.sqrt(max(1, y.size // max(1, y.shape[1])))).astype(
        dtype
    )
    dx, dw = grads_reference(*wide, dy.astype(np.float64), stride, padding, dilation, groups)
    check("conv_input_grad", [dy, w], dx.astype(dtype), tol, input_shape=xs, **attributes)
    check("conv_weight_grad", [x, dy], dw.astype(dtype), tol, weight_shape=ws, **attributes)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_instruction_sets(level):
    from duograph_cpu._native import lib

    lib.dg_isa_limit(level)
    try:
        for dtype in (np.float32, np.float64):
            for case in CASES[5:7] + CASES[9:10] + CASES[12:-2]:
                test_conv(case, dtype)
        for x, w, padding in WINOGRAD[:1] + WINOGRAD[2:4] + WINOGRAD[7:10]:
            test_winograd(x, w, padding)
    finally:
        lib.dg_isa_limit(2)


@pytest.mark.parametrize("xs, ws, padding", WINOGRAD, ids=str)
def test_winograd(xs, ws, padding):
    """Sums of products in another order and about as exact: some units in the last place of the
    largest.
    """
    x, w = RNG.standard_normal(xs), RNG.standard_normal(ws) / np.sqrt(ws[1] * 9)
    y = conv_reference(x, w, (1, 1), padding, (1, 1), 1)
    dy = RNG.standard_normal(y.shape)
    dx, _ = grads_reference(x, w, dy, (1, 1), padding, (1, 1), 1)
    single = [a.astype(np.float32) for a in (x, w, dy)]
    attributes = dict(stride=(1, 1), padding=padding, dilation=(1, 1), groups=1)
    found = run("conv", single[:2], y.astype(np.float32), **attributes)
    assert np.abs(found - y).max() < 4e-6 * np.abs(y).max()
    found = run(
        "conv_input_grad", single[:0:-1], dx.astype(np.float32), input_shape=xs, **attributes
    )
    assert np.abs(found - dx).max() < 4e-6 * np.abs(dx).max()


def test_winograd_of_integers_is_exact():
    x, w = RNG.integers(-9, 10, (1, 64, 30, 30)), RNG.integers(-9, 10, (64, 64, 3, 3))
    y = conv_reference(x, w, (1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    attributes = dict(stride=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=1)
    check("conv", [x.astype(np.float32), w.astype(np.float32)], y.astype(np.float32), **attributes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e37, 1e25])
@pytest.mark.parametrize("where", ["input", "weights", "both"])
@pytest.mark.parametrize("side, batch", [(14, 1), (30, 1), (9, 8)])
def test_winograd_of_large_inputs_is_computed_directly(value, where, side, batch):
    """Transforms would spread an infinity over a tile: an output is what its own inputs make of it,
    and no other.
    """
    x = RNG.standard_normal((batch, 64, side, side)).astype(np.float32)
    w = (RNG.standard_normal((64, 64, 3, 3)) / 24).astype(np.float32)
    if where != "weights":
        x[-1, 5, side // 2, 4] = value
        x[0, 63, 0, 0] = -value
    if where != "input":
        w[7, 3, 1, 2] = value
    padding = ((1, 1), (1, 1))
    with np.errstate(invalid="ignore", over="ignore"):
        wide = conv_reference(
            x.astype(np.float64), w.astype(np.float64), (1, 1), padding, (1, 1), 1
        )
        y = np.where(np.abs(wide) > 3.4e38, np.sign(wide) * np.inf, wide)
    found = run("conv", [x, w], x, stride=(1, 1), padding=padding, dilation=(1, 1), groups=1)
    # an infinite weight of a zero of the padding is NaN
    inside = (slice(None), slice(None), slice(1, -1), slice(1, -1))
    np.testing.assert_allclose(found[inside], y[inside], rtol=1e-4, atol=1e-4)


# x, w, stride, padding of convolutions whose weights may be packed: by Winograd's way, as products,
# as gathered columns
PACKED = [
    *[(x, w, 1, padding) for x, w, padding in WINOGRAD if x[0] * x[2] * x[3] <= 2000],
    ((1, 256, 7, 7), (512, 256, 3, 3), 1, ((1, 1), (1, 1))),
    ((1, 64, 15, 17), (128, 64, 3, 3), 2, ((1, 1), (1, 1))),
    ((1, 200, 14, 14), (128, 200, 1, 1), 1, ((0, 0), (0, 0))),
    ((1, 200, 14, 14), (128, 200, 1, 1), 2, ((0, 0), (0, 0))),
]


@only_with_own_products()
@pytest.mark.parametrize("large", ["nothing", "input", "weights"])
@pytest.mark.parametrize("xs, ws, stride, padding", PACKED, ids=str)
def test_packed_weights_have_the_same_bits(xs, ws, stride, padding, large):
    x, w = RNG.standard_normal(xs).astype(np.float32), RNG.standard_normal(ws).astype(np.float32)
    if large == "input":
        x[0, 3, 2, 1] = np.inf
    if large == "weights":
        w[1, 2].flat[-1] = np.nan
    out = [(n + sum(p) - k) // stride + 1 for n, p, k in zip(xs[2:], padding, ws[2:])]
    types, result = (type_of(x), type_of(w)), type_of(np.zeros((xs[0], ws[0], *out), np.float32))
    call = KERNELS["conv"](
        types, (result,), stride=(stride, stride), padding=padding, dilation=(1, 1), groups=1
    )
    packing = call.packings[1]()
    handles = [CPU_BACKEND.copy_in(a, 0) for a in (x, w)]
    want = call(*handles)
    packed = packing.pack(handles[1])
    del handles[1]
    got = packing.call(handles[0], packed)
    want, got = (CPU_BACKEND.copy_out(h, result.shape, x.dtype, 0) for h in (want, got))
    np.testing.assert_array_equal(want.view(np.int32), got.view(np.int32))


SHAPES_OF_THREADS = """
import os, sys, hashlib
os.sched_setaffinity(0, set(map(int, sys.argv[1].split(","))))
import numpy as np
from harness import run
rng = np.random.default_rng(1)
for n, c, k, side, taps, step in [
    (1, 64, 64, 56, 3, 1), (1, 128, 96, 14, 3, 1), (3, 70, 64, 9, 3, 1), (1, 256, 512, 7, 3, 1),
    (2, 32, 32, 30, 3, 2),
    (1, 3, 32, 64, 3, 2), (1, 200, 300, 7, 1, 1), (1, 24, 144, 28, 1, 1), (1, 144, 24, 28, 1, 1),
    (2, 40, 60, 14, 1, 1),
]:
    pad, out = taps // 2, (side - 1) // step + 1
    x = rng.standard_normal((n, c, side, side), np.float32)
    w = rng.standard_normal((k, c, taps, taps), np.float32)
    y = np.zeros((n, k, out, out), np.float32)
    kind = dict(stride=(step, step), padding=((pad, pad), (pad, pad)), dilation=(1, 1), groups=1)
    y = run("conv", [x, w], y, **kind)
    dx = run("conv_input_grad", [y, w], x, input_shape=x.shape, **kind)
    dw = run("conv_weight_grad", [x, y], w, weight_shape=w.shape, **kind)
    print(*[hashlib.sha256(a.tobytes()).hexdigest()[:16] for a in (y, dx, dw)])
"""


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="one thread is all there is",
)
def test_bits_do_not_depend_on_threads():
    cores = [str(c) for c in sorted(os.sched_getaffinity(0))[:2]]
    found = [
        subprocess.run(
            [sys.executable, "-c", SHAPES_OF_THREADS, ",".join(some)],
            cwd=os.path.dirname(__file__), check=True, capture_output=True, text=True,
        ).stdout
        for some in (cores[:1], cores)
    ]  # fmt: skip
    assert found[0].count("\n") == 10
    assert found[0] == found[1]
