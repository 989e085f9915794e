import ml_dtypes
import numpy as np
import pytest
from duograph.dtype import ALL
from harness import check, run

RNG = np.random.default_rng(0)
BF16 = np.dtype(ml_dtypes.bfloat16)


def sample(shape, dtype, low=-3, high=4):
    if dtype.kind == "u":
        low = 0
    x = RNG.integers(low, high, shape)
    if dtype.kind == "c":
        return (x + 1j * RNG.integers(low, high, shape)).astype(dtype)
    return x.astype(dtype)


SHAPES = [
    ((), ()),
    ((5,), (0,)),
    ((3, 4), ()),
    ((300, 7), (1,)),
    ((300, 7), (0,)),
    ((4, 5, 6, 7), (0, 2)),
    ((4, 5, 6, 7), (1, 3)),
    ((2, 3, 70, 70), (0, 2, 3)),
    ((100003,), (0,)),
    ((0, 3), (0,)),
    ((3, 0), (0,)),
    ((200, 1500), (0,)),
    ((70, 1, 2000), (0, 1)),
    ((3, 90000), (1,)),
    ((90000, 3), (0,)),
    ((2, 70000, 3), (0, 2)),
]


@pytest.mark.parametrize("dtype", [d.np for d in ALL], ids=lambda d: d.name)
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_reduce(shape, axis, dtype):
    x = sample(shape, dtype)
    wide = np.float64 if dtype.itemsize == 2 and dtype.kind in "fV" else dtype
    for name in ("sum", "prod", "max", "min", "all", "any"):
        if name in ("max", "min") and (x.size == 0 or dtype.kind == "c"):
            continue
        if name == "prod" and dtype.kind not in "biu":
            x = (
                np.where(RNG.random(shape) < 0.01, x, 1).astype(dtype)
                if x.size < 1000
                else np.ones(shape, dtype)
            )
        with np.errstate(all="ignore"):
            if name in ("all", "any"):
                want = getattr(np, name)(x != 0, axis=axis)
            elif name in ("sum", "prod"):
                want = getattr(np, name)(x.astype(wide), axis=axis, dtype=wide).astype(dtype)
            else:
                want = getattr(np, name)(x.astype(wide), axis=axis).astype(dtype)
        check(f"reduce_{name}", [x], np.asarray(want), axis=axis, keepdims=False)


def test_accuracy_and_nan():
    x = RNG.random(3_000_001, dtype=np.float32)
    got = run("reduce_sum", [x], np.empty((), np.float32), axis=(0,), keepdims=False)
    assert abs(got - x.astype(np.float64).sum()) / got < 2e-7
    for dtype in (np.float16, BF16, np.float32, np.float64):
        x = RNG.standard_normal((50, 300)).astype(dtype)
        x[7, 150] = x[9, 0] = x[9, 299] = np.nan
        for name in ("max", "min"):
            for axis in ((0,), (1,), (0, 1)):
                want = np.asarray(getattr(np, name)(x.astype(np.float64), axis=axis)).astype(dtype)
                check(f"reduce_{name}", [x], want, axis=axis, keepdims=False)
            for axis in (0, 1):
                want = np.asarray(getattr(np, "arg" + name)(x.astype(np.float64), axis=axis))
                check(f"arg{name}", [x], want, axis=axis)


@pytest.mark.parametrize("dtype", [d.np for d in ALL if d.kind != "c"], ids=lambda d: d.name)
def test_arg(dtype):
    for shape, axis in [((7,), 0), ((30, 40), 0), ((30, 40), 1), ((3, 50, 300), 1), ((2, 5000), 1)]:
        x = sample(shape, dtype)
        for name in ("argmax", "argmin"):
            check(name, [x], getattr(np, name)(x.astype(np.float64), axis=axis), axis=axis)
