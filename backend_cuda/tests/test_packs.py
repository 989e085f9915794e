"""Kernels that load and store several adjacent elements at once: widths, rows, tails, broadcasting.

The same values come from the CPU backend, to the bit where no sum is involved.
"""

from __future__ import annotations

import os

import duograph as ms
import numpy as np
import pytest
from amount import FULL, spread
from duograph import ops

DEVICE = os.environ.get("DUOGRAPH_CUDA_DEVICE", "CUDA-emulated")  # `make test-gpu` says GPU
ALL_PAIRS = FULL or DEVICE != "CUDA-emulated"  # of rows and dtypes, for which kernels are compiled
DTYPES = ("float32", "bfloat16", "float16", "float64", "int8", "int32", "int64", "bool")


@pytest.fixture(autouse=True)
def _there():
    problem = ms.backend.registry.problem_of(ms.backend.registry.entries()[DEVICE])
    if problem is not None:
        pytest.skip(problem)


def tensor(dtype, *shape, seed=0):
    """A tensor with infinities and NaN between ordinary numbers."""
    x = np.random.default_rng((seed, *shape)).uniform(-90, 90, shape)
    if dtype in ("float32", "bfloat16", "float16", "float64") and x.size > 8:
        x.reshape(-1)[:5] = x.reshape(-1)[-5:] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    if dtype == "bool":
        x = x > 0
    return ms.Tensor(x, getattr(ms, dtype), device="CPU")


def same(function, *operands):
    """Compare a function's results on the device with those on the CPU."""
    with np.errstate(all="ignore"):
        want = function(*operands)
        got = function(*[x.move_to(DEVICE) for x in operands])
    for w, g in zip(*[v if isinstance(v, tuple) else (v,) for v in (want, got)], strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        g, w = (x.astype(ms.float32) if x.dtype == ms.bfloat16 else x for x in (g, w))
        np.testing.assert_array_equal(g.asnumpy(), w.asnumpy())


# the shapes of two operands: whole packs, tails, one element, rows of every divisor, broadcasting
SHAPES = {
    "whole packs": ((4096,), (4096,)),
    "a tail": ((1003,), (1003,)),
    "less than a pack": ((3,), (3,)),
    "one element": ((1,), (1,)),
    "no element": ((0, 4), (0, 4)),
    "no columns": ((4, 0), (4, 1)),
    "a number": ((33,), (1,)),
    "rows of 16": ((5, 16), (16,)),
    "rows of 12": ((5, 12), (12,)),
    "rows of 6": ((7, 6), (6,)),
    "rows of 5": ((7, 5), (5,)),
    "a column": ((6, 40), (6, 1)),
    "a row and a column": ((1, 24), (9, 1)),
    "a middle axis": ((3, 1, 8), (3, 5, 8)),
    "both ends": ((1, 5, 1), (3, 5, 8)),
}


@pytest.mark.parametrize("case, dtype", spread(SHAPES, DTYPES, 5, ALL_PAIRS))
def test_elementwise_kernels(case, dtype):
    x, y = (tensor(dtype, *shape, seed=k) for k, shape in enumerate(SHAPES[case]))
    same(lambda x, y: ops.equal(x, y), x, y)
    same(lambda x, y: ops.select(ops.less(x, y), x, y), x, y)
    if dtype != "bool":
        same(lambda x, y: x + y, x, y)


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_between_all_widths(dtype, to):
    for n in (64, 67):
        x = ms.Tensor(
            np.random.default_rng(n).integers(0, 100, n), getattr(ms, dtype), device="CPU"
        )
        same(lambda x: x.astype(getattr(ms, to)), x)


@pytest.mark.parametrize(
    "case, dtype", spread(SHAPES, ["float32", "bfloat16", "float16", "int32"], 5, ALL_PAIRS)
)
def test_fused_regions(case, dtype):
    """One region with an intermediate result and a result of another dtype."""
    x, y = (tensor(dtype, *shape, seed=k) for k, shape in enumerate(SHAPES[case]))

    @ms.jit(jit_level="O1")
    def chain(x, y):
        z = x * 2 + y
        return z - x, ops.less(z, y), z.astype(ms.float32) * 0.5

    same(chain, x, y)


GATHERS = {
    "rows of a table": ((50, 64), (4, 6), 0, (6, 64)),
    "odd rows": ((50, 7), (4, 6), 0, (6, 7)),
    "elements": ((50,), (4, 6), 0, (4, 6)),
    "along the last axis": ((3, 50), (70,), 1, (70,)),
    "along a middle axis": ((3, 50, 64), (5,), 1, (3, 1, 64)),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", GATHERS)
def test_fused_gathers(case, dtype):
    table, index, axis, other = GATHERS[case]
    t, y = tensor(dtype, *table), tensor(dtype, *other, seed=1)
    i = ms.Tensor(np.random.default_rng(2).integers(-table[axis], table[axis], index), ms.int32)
    same(ms.jit(lambda t, i, y: ops.gather(t, i, axis) * 2 + y, jit_level="O1"), t, i, y)


def test_conversions_of_16_bit_floats_round_to_nearest_even():
    """All float16 and bfloat16 numbers and the points half way between them, beside NumPy's."""
    bits = np.arange(1 << 16, dtype=np.uint32)
    halves = bits.astype(np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        between = (halves[1:] + halves[:-1]) / 2
        x = np.concatenate([halves, between, np.nextafter(between, np.float32(0))])
        brain = (bits << 16).view(np.float32)
        x = np.concatenate([x, brain, ((bits << 16) + 0x8000).astype(np.uint32).view(np.float32)])
    for dtype in (ms.float16, ms.bfloat16):
        want = ms.Tensor(x, device="CPU").astype(dtype).astype(ms.float32).asnumpy()
        got = ms.Tensor(x, device=DEVICE).astype(dtype).astype(ms.float32).asnumpy()
        np.testing.assert_array_equal(got, want)


# shape, permutation: tiles that are full and not, odd sizes, outer axes, narrow matrices
TRANSPOSES = {
    "one tile": ((32, 32), (1, 0)),
    "full tiles": ((128, 64), (1, 0)),
    "broken tiles": ((70, 45), (1, 0)),
    "even sizes": ((66, 130), (1, 0)),
    "odd rows": ((65, 130), (1, 0)),
    "many bands": ((33, 1200), (1, 0)),
    "narrow": ((300, 9), (1, 0)),
    "three columns": ((300, 3), (1, 0)),
    "channels last": ((3, 12, 7, 9), (0, 2, 3, 1)),
    "channels first": ((3, 7, 9, 12), (0, 3, 1, 2)),
    "heads": ((2, 5, 3, 8), (0, 2, 1, 3)),
    "reversed": ((11, 13, 17), (2, 1, 0)),
    "two outer axes": ((3, 33, 4, 40), (2, 3, 0, 1)),
}


@pytest.mark.parametrize(
    "case, dtype", spread(TRANSPOSES, ["float32", "bfloat16", "int8", "float64"], 5, ALL_PAIRS)
)
def test_transposes(case, dtype):
    shape, perm = TRANSPOSES[case]
    x = ms.Tensor(np.arange(np.prod(shape)).reshape(shape) % 251 - 120, getattr(ms, dtype))
    same(lambda x: ops.transpose(x, perm), x.move_to("CPU"))


COPIES = {
    "concat of rows": lambda x, y: ops.concat((x, y, x), 0),
    "concat of columns": lambda x, y: ops.concat((x, y, x), 1),
    "slices": lambda x, y: (x[:, 4:], x[1:, :4], x[:, 1:], x[:, ::2], x[2:], x[:, :-3], x[::2]),
    "padding": lambda x, y: (ops.pad(x, (4, 8)), ops.pad(x, (1, 2)), ops.pad(x, (0, 3, 2, 0))),
    "flips": lambda x, y: (ops.flip(x, (0,)), ops.flip(x, (1,))),
    "fills": lambda x, y: (ops.zeros_like(x), ops.full_like(y, 3)),
    "broadcast": lambda x, y: ops.broadcast_to(x[:1], x.shape),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float64", "bool"])
@pytest.mark.parametrize("columns", [16, 24, 20, 15])
@pytest.mark.parametrize("case", COPIES)
def test_copies(case, columns, dtype):
    x, y = (tensor(dtype, 5, n, seed=n) for n in (columns, columns))
    same(COPIES[case], x, y)


def softmax(x, y):
    e = ops.exp(x - ops.amax(x, -1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalised(x, y):
    """Two reductions, a result for each row, an operand that is broadcast, a wider result."""
    wide = x.astype(ms.float32)
    centred = wide - wide.mean(-1, keep_dims=True)
    scale = ops.rsqrt((centred * centred).mean(-1, keep_dims=True) + 1e-5)
    return (centred * scale).astype(x.dtype) * y, scale, centred * 0.5


def extremes(x, y):
    return ops.amax(x, -1), ops.equal(x, ops.amax(x, -1, keepdims=True)).astype(ms.int32).sum(-1)


ROWS = (3, 5, 8, 10, 17, 31, 49, 64, 120, 250, 513, 1001, 4096, 9001)


@pytest.mark.parametrize("row, dtype", spread(ROWS, ["float32", "bfloat16"], 6, ALL_PAIRS))
def test_fused_rows(row, dtype):
    """Rows of whole packs, rows that begin in the middle of one, rows shorter and longer than a
    group.
    """
    rng = np.random.default_rng(row)
    for rows in (5,):
        x = ms.Tensor(rng.normal(size=(rows, row)) * 3, getattr(ms, dtype), device="CPU")
        y = ms.Tensor(rng.normal(size=row), getattr(ms, dtype), device="CPU")
        for function in (softmax, normalised, extremes):
            results = []
            for device, level in (("CPU", "O0"), (DEVICE, "O1"), (DEVICE, "O1")):
                found = ms.jit(function, jit_level=level)(x.move_to(device), y.move_to(device))
                found = found if isinstance(found, tuple) else (found,)
                results.append([v.astype(ms.float32).asnumpy() for v in found])
            for want, got, again in zip(*results, strict=True):
                near = {"float32": 2e-5, "bfloat16": 3e-2}[dtype]
                near *= max(1, np.abs(want).max())
                np.testing.assert_allclose(got, want, rtol=0, atol=near)
                np.testing.assert_array_equal(got, again)


@pytest.mark.parametrize("row", [40, 1001, 1024])
def test_fused_rows_of_infinities(row):
    x = np.random.default_rng(0).normal(size=(6, row)).astype(np.float32)
    x[1, 5] = x[2, -1] = x[3, 0] = np.nan
    x[4, row // 2] = np.inf
    x[5] = -np.inf
    with np.errstate(all="ignore"):
        want = np.exp(x - x.max(1, keepdims=True))
        want /= want.sum(1, keepdims=True)
    got = ms.jit(softmax, jit_level="O1")(ms.Tensor(x, device=DEVICE), ms.Tensor(0.0)).asnumpy()
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-7)


REDUCED = {
    "a vector": ((100_003,), (0,)),
    "all": ((37, 64), (0, 1)),
    "nothing": ((0, 5), (0,)),
    "empty rows": ((5, 0), (1,)),
    "rows": ((9, 1024), (1,)),
    "odd rows": ((9, 1021), (1,)),
    "short rows": ((300, 6), (1,)),
    "rows of a warp": ((45, 100), (1,)),
    "rows of half a warp": ((45, 64), (1,)),
    "columns": ((700, 136), (0,)),
    "odd columns": ((700, 33), (0,)),
    "few columns": ((3000, 3), (0,)),
    "one column": ((3000, 1), (0,)),
    "many columns": ((3, 5000), (0,)),
    "a middle axis": ((4, 90, 20), (1,)),
    "channels": ((6, 8, 7, 7), (0, 2, 3)),
    "two runs": ((6, 8, 5, 12), (0, 2)),
}


@pytest.mark.parametrize(
    "case, dtype",
    spread(REDUCED, ["float32", "bfloat16", "float64", "int32", "int8", "bool"], 4, ALL_PAIRS),
)
def test_reductions(case, dtype):
    shape, axis = REDUCED[case]
    x = np.random.default_rng(3).integers(-3, 4, shape)  # sums are exact
    x = ms.Tensor(x, getattr(ms, dtype), device="CPU")
    names = ["any", "all"] if dtype == "bool" else ["sum"]
    if 0 not in shape and dtype != "bool":
        names += ["max", "min"]
    for name in names:
        op = ms.op.OPS[f"reduce_{name}"]
        same(lambda x: op(x, axis=axis, keepdims=False), x)  # noqa: B023 (called at once)


def test_reductions_of_nan_and_many_units(monkeypatch):
    """More parts than rows of a group, as on a device with many multiprocessors."""
    device = ms.backend.registry.backend(DEVICE).device(0)
    monkeypatch.setattr(device, "units", 132)
    for shape, axis in (((5000, 40), (0,)), ((70_000,), (0,)), ((2, 5000, 8), (1,))):
        x = np.random.default_rng(4).integers(-9, 9, shape).astype(np.float32)
        for value in (x, np.where(x == 8, np.float32(np.nan), x)):
            for name in ("sum", "max"):
                op = ms.op.OPS[f"reduce_{name}"]
                op.forget_calls()
                same(lambda x: op(x, axis=axis, keepdims=True), ms.Tensor(value))  # noqa: B023
                op.forget_calls()


def columns(x, y, z):
    """Sums over the rows of two values, one of which is also a result, and an extreme."""
    v = x * y + z
    return v, v.sum(0), (v * x).astype(ms.float32).sum(0), ops.amax(v, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(5, 40), (300, 66), (300, 33), (2000, 8), (7, 3000)])
def test_fused_columns(shape, dtype, monkeypatch):
    monkeypatch.setattr(ms.backend.registry.backend(DEVICE).device(0), "units", 132)
    rng = np.random.default_rng(shape)
    operands = [rng.integers(-2, 3, s) for s in (shape, shape, shape[1:])]  # sums are exact
    same(
        ms.jit(columns, jit_level="O1"),
        *[ms.Tensor(x, getattr(ms, dtype), device="CPU") for x in operands],
    )
