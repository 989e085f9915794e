import ml_dtypes
import numpy as np
import pytest
from harness import check, run

DTYPES = [np.bool_, np.int8, np.int16, np.float32, np.float64, np.complex128, ml_dtypes.bfloat16]


def sample(shape, dtype):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 251).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape, perm",
    [((3, 4), (1, 0)), ((67, 129), (1, 0)), ((5, 1, 7, 33), (3, 2, 0, 1)), ((), ()),
     ((0, 3), (1, 0)),
     ((4, 50, 60), (0, 2, 1)), ((40, 3, 50), (2, 1, 0)), ((700, 801), (1, 0)),
     ((8, 16, 4, 40), (0, 2, 1, 3)),
     ((3, 640, 640), (1, 2, 0)), ((600, 640, 3), (2, 0, 1))],
)  # fmt: skip
def test_transpose(shape, perm, dtype):
    x = sample(shape, dtype)
    check("transpose", [x], np.transpose(x, perm), perm=perm)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slices(dtype):
    x = sample((7, 6, 20), dtype)
    cases = [((0, 0, 0), (7, 6, 20), (1, 1, 1)), ((6, 1, 3), (-1, 6, 18), (-2, 2, 1)),
             ((2, 2, 19), (3, 2, -1), (1, 1, -1)),
             ((1, 5, 19), (6, -1, -1), (1, -1, -3))]  # fmt: skip
    for begin, end, strides in cases:
        index = tuple(slice(b, None if e < 0 else e, s) for b, e, s in zip(begin, end, strides))
        out = x[index]
        check(
            "strided_slice", [x], np.ascontiguousarray(out), begin=begin, end=end, strides=strides
        )
        v = sample(out.shape, dtype)
        want = x.copy()
        want[index] = v
        check("slice_update", [x, v], want, begin=begin, end=end, strides=strides)
    check("flip", [x], np.ascontiguousarray(x[::-1, :, ::-1]), axes=(0, 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_movement_ops(dtype):
    x = sample((3, 1, 5), dtype)
    check("broadcast_to", [x], np.broadcast_to(x, (2, 3, 4, 5)).copy(), shape=(2, 3, 4, 5))
    check(
        "strided_copy",
        [x],
        np.broadcast_to(x.reshape(3, 5)[:, :1], (3, 9)).copy(),
        shape=(3, 9),
        strides=(5, 0),
        offset=0,
    )
    want = np.full((4, 3, 8), 1, dtype)
    want[1:, 1:2, 2:7] = x
    check("pad_constant", [x], want, low=(1, 1, 2), high=(0, 1, 1), value=1)
    y = sample((3, 4, 5), dtype)
    for axis in (0, 1, 2):
        a, b = (
            sample((3, 4, 5), dtype),
            sample([4 if i == axis else n for i, n in enumerate(y.shape)], dtype),
        )
        check("concat", [a, b, a], np.concatenate([a, b, a], axis), axis=axis)


def test_constants():
    from duograph.dtype import ALL

    for dtype in ALL:
        for shape in [(), (0,), (3, 5), (100, 1000)]:
            want = np.full(shape, 1, dtype.np)
            check("fill", [], want, shape=shape, value=1, dtype=dtype)
        for axis in (0, 1, 2):
            want = np.arange(6).reshape([6 if i == axis else 1 for i in range(3)])
            shape = tuple(6 if i == axis else 4 for i in range(3))
            want = np.ascontiguousarray(np.broadcast_to(want, shape).astype(dtype.np))
            check("iota", [], want, shape=shape, axis=axis, dtype=dtype)
    big = run("iota", [], np.empty(100003, np.int64), shape=(100003,), axis=0, dtype=ALL[4])
    assert (big == np.arange(100003)).all()
