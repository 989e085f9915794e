"""Convolutions whose channels lie innermost, against sums of products in float64."""

import os
import subprocess
import sys

import numpy as np
import pytest
from duograph_cpu._native import lib
from duograph_cpu.kernels import KERNELS
from harness import CPU_BACKEND, check, run, type_of

RNG = np.random.default_rng(7)


def expected(x, w, stride, padding, dilation, groups):
    """Compute a channels-last convolution by its definition, in float64.

    x is (N, spatial..., C), w is (O, C / groups, kernel...).
    """
    x = np.pad(x.astype(np.float64), ((0, 0), *padding, (0, 0)))
    w = w.astype(np.float64)
    kernel, n = w.shape[2:], len(w.shape) - 2
    out = [
        (s - d * (k - 1) - 1) // t + 1
        for s, k, t, d in zip(x.shape[1:-1], kernel, stride, dilation)
    ]
    o, c = w.shape[0] // groups, w.shape[1]
    y = np.zeros((x.shape[0], *out, groups * o))
    for tap in np.ndindex(*kernel):
        where = tuple(
            slice(i * d, i * d + (m - 1) * s + 1, s)
            for i, d, m, s in zip(tap, dilation, out, stride)
        )
        part = x[(slice(None), *where)]
        for g in range(groups):
            weights = w[(slice(g * o, (g + 1) * o), slice(None), *tap)]
            y[..., g * o : (g + 1) * o] += part[..., g * c : (g + 1) * c] @ weights.T
    assert y.ndim == n + 2
    return y


SAME = ((1, 1), (1, 1))
NONE = ((0, 0), (0, 0))
# (shape of x, shape of w, stride, padding, dilation, groups)
TABLE = [
    # kernels of one
    ((1, 7, 7, 33), (50, 33, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((2, 9, 5, 16), (96, 16, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((1, 30, 31, 24), (17, 24, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((1, 28, 28, 144), (24, 144, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((1, 7, 7, 1024), (256, 1024, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((1, 20, 20, 1024), (70, 1024, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((1, 40, 40, 512), (1000, 512, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((1, 14, 14, 300), (600, 300, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((1, 1, 1, 40), (30, 40, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((3, 4, 4, 1), (1, 1, 1, 1), (1, 1), NONE, (1, 1), 1),
    ((1, 15, 14, 64), (128, 64, 1, 1), (2, 2), NONE, (1, 1), 1),
    ((1, 5, 5, 20), (33, 20, 1, 1), (1, 1), SAME, (1, 1), 1),
    ((2, 4, 6, 32), (64, 16, 1, 1), (1, 1), NONE, (1, 1), 2),
    # kernels of several
    ((1, 20, 21, 3), (64, 3, 7, 7), (2, 2), ((3, 3), (3, 3)), (1, 1), 1),
    ((2, 33, 32, 3), (32, 3, 3, 3), (2, 2), SAME, (1, 1), 1),
    ((1, 13, 12, 37), (41, 37, 3, 3), (2, 2), ((0, 1), (1, 0)), (1, 1), 1),
    ((1, 9, 8, 130), (40, 130, 3, 3), (2, 2), SAME, (1, 1), 1),
    ((1, 12, 11, 20), (35, 20, 3, 2), (1, 2), ((2, 0), (1, 3)), (2, 1), 1),
    ((1, 12, 11, 20), (35, 20, 3, 3), (1, 1), ((2, 2), (2, 2)), (2, 2), 1),
    ((2, 8, 9, 40), (80, 20, 3, 3), (1, 2), SAME, (1, 1), 2),
    ((1, 3, 3, 8), (16, 8, 5, 5), (1, 1), ((4, 4), (4, 4)), (1, 1), 1),
    ((1, 6, 6, 5), (20, 5, 3, 3), (1, 1), ((5, 5), (5, 5)), (1, 1), 1),
    ((2, 40, 12), (20, 12, 5), (2,), ((1, 2),), (1,), 1),
    ((1, 5, 6, 7, 10), (24, 10, 3, 2, 3), (1, 2, 1), ((1, 1), (0, 1), (1, 1)), (1, 1, 2), 1),
    # 3x3 in steps of one
    ((1, 14, 14, 64), (64, 64, 3, 3), (1, 1), SAME, (1, 1), 1),
    ((1, 7, 7, 128), (130, 128, 3, 3), (1, 1), SAME, (1, 1), 1),
    ((2, 30, 29, 40), (50, 40, 3, 3), (1, 1), SAME, (1, 1), 1),
    ((1, 56, 56, 64), (64, 64, 3, 3), (1, 1), SAME, (1, 1), 1),
    ((3, 9, 11, 70), (64, 70, 3, 3), (1, 1), ((0, 1), (2, 0)), (1, 1), 1),
    ((1, 17, 17, 300), (96, 300, 3, 3), (1, 1), NONE, (1, 1), 1),
    ((1, 1, 1, 64), (64, 64, 3, 3), (1, 1), SAME, (1, 1), 1),
    # a channel by itself
    ((1, 14, 14, 96), (96, 1, 3, 3), (1, 1), SAME, (1, 1), 96),
    ((2, 15, 13, 40), (40, 1, 3, 3), (2, 2), SAME, (1, 1), 40),
    ((1, 28, 28, 17), (17, 1, 5, 5), (1, 1), ((2, 2), (2, 2)), (1, 1), 17),
    ((1, 29, 30, 36), (36, 1, 5, 5), (2, 2), ((1, 2), (2, 1)), (1, 1), 36),
    ((1, 12, 20, 3), (3, 1, 3, 3), (1, 1), SAME, (1, 1), 3),
    ((1, 20, 20, 32), (32, 1, 3, 3), (1, 1), ((2, 2), (2, 2)), (2, 2), 32),
    ((1, 20, 25, 32), (32, 1, 7, 4), (3, 1), ((3, 0), (0, 5)), (1, 1), 32),
    ((1, 2, 2, 64), (64, 1, 3, 3), (1, 1), ((4, 4), (4, 4)), (1, 1), 64),
    ((3, 30, 20), (20, 1, 5), (1,), ((2, 2),), (1,), 20),
    ((1, 6, 7, 8, 18), (18, 1, 3, 3, 3), (1, 2, 1), ((1, 1),) * 3, (1, 1, 1), 18),
]  # fmt: skip


@pytest.mark.parametrize("xs, ws, stride, padding, dilation, groups", TABLE, ids=str)
def test_channels_last_matches_channels_first(xs, ws, stride, padding, dilation, groups):
    x, w = RNG.standard_normal(xs, np.float32), RNG.standard_normal(ws, np.float32)
    attributes = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = expected(x, w, **attributes)
    size = np.float32(np.sqrt(np.prod(ws[1:])))  # of a sum
    check("conv_channels_last", [x, w / size], (y / size).astype(np.float32), 2e-5, **attributes)


def call_of(x, w, result, **attributes):
    types = type_of(x), type_of(w)
    return KERNELS["conv_channels_last"](types, (type_of(result),), **attributes)


@pytest.mark.parametrize("large", ["nothing", "input", "weights"])
@pytest.mark.parametrize("xs, ws, stride, padding, dilation, groups", TABLE[::2], ids=str)
def test_packed_weights_have_the_same_bits(xs, ws, stride, padding, dilation, groups, large):
    x, w = RNG.standard_normal(xs, np.float32), RNG.standard_normal(ws, np.float32)
    if large == "input":
        x.flat[x.size // 2] = np.inf
    if large == "weights":
        w.flat[-1] = np.nan
    attributes = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    result = expected(x, w, **attributes).astype(np.float32)
    call = call_of(x, w, result, **attributes)
    packing = call.packings[1]()
    handles = [CPU_BACKEND.copy_in(a, 0) for a in (x, w)]
    want = call(*handles)
    packed = packing.pack(handles[1])
    del handles[1]
    got = packing.call(handles[0], packed)
    want, got = (CPU_BACKEND.copy_out(h, result.shape, x.dtype, 0) for h in (want, got))
    np.testing.assert_array_equal(want.view(np.int32), got.view(np.int32))


@pytest.mark.parametrize("large", [np.inf, -np.inf, np.nan, 1e30])
@pytest.mark.parametrize("where", ["input", "weights"])
@pytest.mark.parametrize(
    "side, channels, outs, step",
    [(56, 64, 64, 1), (9, 40, 48, 1), (14, 64, 130, 1), (10, 32, 32, 2)],
)
def test_large_inputs_affect_only_outputs_that_read_them(side, channels, outs, step, where, large):
    x = RNG.standard_normal((1, side, side, channels), np.float32)
    w = RNG.standard_normal((outs, channels, 3, 3), np.float32)
    attributes = {"stride": (step, step), "padding": SAME, "dilation": (1, 1), "groups": 1}
    tame = expected(x, w, **attributes)
    if where == "input":
        x[0, 4, 5, 3] = large
    else:
        w[2, 3] = large
    with np.errstate(all="ignore"):
        want = expected(x, w, **attributes)
    found = run("conv_channels_last", [x, w], tame.astype(np.float32), **attributes)
    touched = (want != tame) | np.isnan(want)
    assert touched.any() and not touched.all()
    np.testing.assert_allclose(found[~touched], tame[~touched], rtol=1e-3, atol=1e-3)
    if not np.isfinite(large):
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(want))
    else:
        np.testing.assert_allclose(found[touched], want[touched], rtol=1e-4, atol=1e26)


@pytest.mark.parametrize(
    "xs, ws, groups",
    [
        ((0, 5, 5, 16), (16, 16, 3, 3), 1),
        ((2, 5, 5, 16), (0, 16, 1, 1), 1),
        ((1, 5, 5, 0), (16, 0, 3, 3), 1),
    ],
)
def test_empty_operands(xs, ws, groups):
    x, w = np.ones(xs, np.float32), np.ones(ws, np.float32)
    attributes = {"stride": (1, 1), "padding": NONE, "dilation": (1, 1), "groups": groups}
    check(
        "conv_channels_last", [x, w], expected(x, w, **attributes).astype(np.float32), **attributes
    )


@pytest.mark.parametrize(
    "dtype, ws, groups",
    [
        (np.float64, (16, 16, 3, 3), 1),
        (np.float16, (16, 16, 1, 1), 1),
        (np.float32, (8, 4, 3, 3), 4),
    ],
)
def test_unsupported_types_have_no_kernel(dtype, ws, groups):
    x, w = np.ones((1, 8, 8, 16), dtype), np.ones(ws, dtype)
    attributes = {"stride": (1, 1), "padding": SAME, "dilation": (1, 1), "groups": groups}
    assert call_of(x, w, np.zeros((1, 8, 8, ws[0]), dtype), **attributes) is None


IN_A_PROCESS = """
import os, sys, hashlib
os.sched_setaffinity(0, set(map(int, sys.argv[1].split(","))))
import numpy as np
from test_conv_last import RNG, TABLE, expected
from harness import run
from duograph_cpu._native import lib
lib.dg_isa_limit(int(sys.argv[2]))
for xs, ws, *rest in TABLE:
    kind = dict(zip(("stride", "padding", "dilation", "groups"), rest))
    x, w = RNG.standard_normal(xs, np.float32), RNG.standard_normal(ws, np.float32)
    w /= np.float32(np.sqrt(np.prod(ws[1:])))
    want = expected(x, w, **kind)
    y = run("conv_channels_last", [x, w], want.astype(np.float32), **kind)
    np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-5, err_msg=str((xs, ws)))
    print(hashlib.sha256(y.tobytes()).hexdigest()[:16])
"""


def in_a_process(cores, level):
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, cores, str(level)],
        cwd=os.path.dirname(__file__), check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == len(TABLE)
    return done.stdout


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="one thread is all there is",
)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_bits_do_not_depend_on_threads(level):
    if lib.dg_isa() < level:
        pytest.skip("the processor has no such instructions")
    cores = [str(c) for c in sorted(os.sched_getaffinity(0))[:2]]
    assert in_a_process(cores[0], level) == in_a_process(",".join(cores), level)
