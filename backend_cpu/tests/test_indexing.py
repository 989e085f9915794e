import ml_dtypes
import numpy as np
import pytest
from duograph.errors import IndexRangeError
from harness import check, run

RNG = np.random.default_rng(1)
DTYPES = [
    np.bool_,
    np.int8,
    np.uint16,
    np.int32,
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]


def sample(shape, dtype):
    return RNG.integers(0, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint8])
def test_gather_and_scatter_of_slices(dtype, index):
    for shape, axis, ishape in [
        ((7,), 0, (3, 4)),
        ((5, 6, 7), 1, (9,)),
        ((5, 6, 7), 2, ()),
        ((50, 600), 0, (40,)),
        ((5, 6, 7), 0, (0,)),
    ]:
        x = sample(shape, dtype)
        low = 0 if index is np.uint8 else -shape[axis]
        i = RNG.integers(low, shape[axis], ishape).astype(index)
        taken = np.take(x, i.astype(np.int64), axis)
        check("gather", [x, i], np.asarray(taken), axis=axis)
        v = sample(taken.shape, dtype)
        moved, flat = np.moveaxis(x.copy(), axis, 0), i.reshape(-1).astype(int)
        rows = np.moveaxis(v.reshape(shape[:axis] + (-1,) + shape[axis + 1 :]), axis, 0)
        want = moved.copy()
        for k, row in zip(flat, rows):
            want[k] = row
        check("scatter_set", [x, i, v], np.moveaxis(want, 0, axis).copy(), axis=axis)
        want = moved.copy()
        for k, row in zip(flat, rows):
            want[k] += row
        check("scatter_add", [x, i, v], np.moveaxis(want, 0, axis).copy(), axis=axis)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_and_scatter_of_elements(dtype):
    for shape, axis, m in [((7,), 0, 4), ((5, 6, 7), 1, 9), ((5, 6, 7), 2, 3), ((50, 60), 0, 70)]:
        x = sample(shape, dtype)
        ishape = shape[:axis] + (m,) + shape[axis + 1 :]
        i = RNG.integers(-shape[axis], shape[axis], ishape)
        check("gather_elements", [x, i], np.take_along_axis(x, i % shape[axis], axis), axis=axis)
        v = sample(ishape, dtype)
        sets, adds = x.copy(), x.copy()
        for at in np.ndindex(*ishape):
            to = at[:axis] + (i[at],) + at[axis + 1 :]
            sets[to] = v[at]
            adds[to] += v[at]
        check("scatter_elements_set", [x, i, v], sets, axis=axis)
        check("scatter_elements_add", [x, i, v], adds, axis=axis)


def test_index_out_of_range():
    x = np.zeros((3, 4), np.float32)
    for bad in (4, -5):
        with pytest.raises(IndexRangeError, match=f"gather: index {bad} .* axis 1 of size 4"):
            run("gather", [x, np.array([1, bad])], np.zeros((3, 2), np.float32), axis=1)
