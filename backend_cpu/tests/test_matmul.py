import ml_dtypes
import numpy as np
import pytest
from harness import check

RNG = np.random.default_rng(2)
DTYPES = [
    np.int8,
    np.uint16,
    np.int32,
    np.uint64,
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]
SHAPES = [((3, 4), (4, 5)), ((1, 70), (70, 300)), ((300, 70), (70, 1)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 6)),
          ((130, 600), (600, 700)), ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((40, 33, 65), (40, 65, 17)),
          ((1, 1, 9), (6, 9, 8)),
          ((1, 3000), (3000, 2000)), ((2000, 3000), (3000, 1))]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("a, b", SHAPES)
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_matmul(a, b, ta, tb, dtype):
    dtype = np.dtype(dtype)
    x, y = RNG.integers(0, 3, a).astype(dtype), RNG.integers(-1, 2, b).astype(dtype)
    if dtype.kind == "c":
        x, y = x + dtype.type(1j) * RNG.integers(0, 3, a), y + dtype.type(1j)
        x, y = x.astype(dtype), y.astype(dtype)
    wide = np.complex128 if dtype.kind == "c" else np.float64 if dtype.kind in "fV" else dtype
    if dtype.kind in "iu" and max(a) > 1000:
        return
    want = np.matmul(x.astype(wide), y.astype(wide)).astype(dtype)
    xs = np.ascontiguousarray(np.swapaxes(x, -1, -2)) if ta else x
    ys = np.ascontiguousarray(np.swapaxes(y, -1, -2)) if tb else y
    check(
        "matmul",
        [xs, ys],
        want,
        tol=1e-2 if dtype.itemsize == 2 else 1e-5,
        transpose_a=ta,
        transpose_b=tb,
    )
