"""Scan, sort and topk kernels against NumPy."""

import numpy as np
import pytest
from duograph.dtype import ALL
from harness import check

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", [d.np for d in ALL], ids=lambda d: d.name)
def test_scan(dtype):
    for shape, axis in [
        ((), 0),
        ((9,), 0),
        ((5, 300), 0),
        ((5, 300), 1),
        ((3, 4, 5), 1),
        ((0, 3), 1),
        ((2, 0, 3), 2),
        ((2, 3, 0), 1),
    ]:
        x = RNG.integers(0, 3, shape).astype(dtype) if shape else np.ones((), dtype)
        if not shape:
            continue
        wide = np.float64 if dtype.itemsize == 2 and dtype.kind in "fV" else dtype
        w = x.astype(wide)
        check("cumsum", [x], np.cumsum(w, axis, dtype=wide).astype(dtype), axis=axis)
        check("cumprod", [x], np.cumprod(w, axis, dtype=wide).astype(dtype), axis=axis)
        back = (
            np.flip(np.cumsum(np.flip(w, axis), axis, dtype=wide), axis) - w
            if dtype.kind != "b"
            else None
        )
        if back is not None:
            check("cumsum", [x], back.astype(dtype), axis=axis, exclusive=True, reverse=True)
        if dtype.kind == "c":
            continue
        for name, f in (("cummax", np.maximum), ("cummin", np.minimum)):
            values = f.accumulate(w, axis)
            hit = w == values
            position = np.arange(shape[axis]).reshape(
                [-1 if i == axis else 1 for i in range(len(shape))]
            )
            index = np.maximum.accumulate(np.where(hit, position, 0), axis)
            check(name, [x], (values.astype(dtype), index), axis=axis)


@pytest.mark.parametrize("dtype", [d.np for d in ALL if d.kind != "c"], ids=lambda d: d.name)
def test_sort(dtype):
    for shape, axis in [
        ((1,), 0),
        ((40,), 0),
        ((5, 300), 1),
        ((300, 5), 0),
        ((3, 7, 4), 1),
        ((150000,), 0),
        ((0, 3), 1),
    ]:
        x = RNG.integers(0 if dtype.kind in "bu" else -100, 100, shape).astype(dtype)
        if dtype.kind in "fV":
            x = (RNG.standard_normal(shape) * 50).astype(dtype)
            x[RNG.random(shape) < 0.05] = np.nan
            x[RNG.random(shape) < 0.05] = -0.0
            x[RNG.random(shape) < 0.05] = 0.0
        w = x.astype(np.float64) if dtype.kind in "fV" else x
        up = np.argsort(w, axis, kind="stable")
        if dtype.kind in "fV":
            down = np.argsort(np.where(np.isnan(w), np.nan, -w), axis, kind="stable")
        else:
            down = np.argsort(-x.astype(np.float64), axis, kind="stable")
        for order, descending in ((up, False), (down, True)):
            values = np.take_along_axis(x, order, axis)
            check("sort", [x], (values, order), axis=axis, descending=descending)
            k = min(3, shape[axis])
            first = [np.ascontiguousarray(np.take(a, range(k), axis)) for a in (values, order)]
            check("topk", [x], tuple(first), k=k, axis=axis, largest=descending)
