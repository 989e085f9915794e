"""Pooling kernels against a loop over windows in NumPy."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from harness import check

RNG = np.random.default_rng(5)
FLOATS = {np.float32: 1e-6, np.float64: 1e-12, np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2}


def windows(shape, kernel, stride, padding, dilation, out):
    """Yield each output position with the input positions of its window."""
    for o in itertools.product(*[range(n) for n in out]):
        elements = itertools.product(*[range(k) for k in kernel])
        at = [
            tuple(o[d] * stride[d] + t[d] * dilation[d] - padding[d][0] for d in range(len(o)))
            for t in elements
        ]
        yield o, [a for a in at if all(0 <= i < n for i, n in zip(a, shape))]


def max_pool_reference(x, kernel, stride, padding, dilation):
    """Return the maximum of each window, and its index in the flattened plane."""
    spatial = x.shape[2:]
    out = tuple(
        (n + sum(p) - d * (k - 1) - 1) // s + 1
        for n, p, k, s, d in zip(spatial, padding, kernel, stride, dilation)
    )
    w, flat = x.astype(np.float64), np.arange(np.prod(spatial)).reshape(spatial)
    y, index = np.zeros(x.shape[:2] + out), np.zeros(x.shape[:2] + out, np.int64)
    for o, elements in windows(spatial, kernel, stride, padding, dilation, out):
        rows = tuple(np.array(c) for c in zip(*elements))
        values = w[(slice(None), slice(None), *rows)]
        best = values.argmax(-1)
        y[(slice(None), slice(None), *o)] = values.max(-1)
        index[(slice(None), slice(None), *o)] = flat[rows][best]
    return y.astype(x.dtype), index


POOLS = [
    ((2, 3, 8), (3,), (2,), ((1, 0),), (1,)),
    ((2, 3, 8, 9), (3, 2), (1, 2), ((1, 1), (1, 0)), (1, 1)),
    ((1, 2, 9, 40), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 2)),
    ((1, 2, 4, 5, 6), (2, 2, 2), (2, 1, 2), ((0, 0), (1, 1), (0, 0)), (1, 1, 1)),
    ((1, 3, 112, 112), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    ((1, 2, 11, 75), (2, 5), (3, 3), ((1, 0), (2, 2)), (1, 1)),
    ((2, 1, 6, 37), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    ((1, 1, 1, 270000), (1, 3), (1, 512), ((0, 0), (1, 1)), (1, 1)),
    ((2, 2, 7, 7), (7, 7), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    # narrow planes, whose outputs share vectors; with unread inputs and padding on either side
    ((37, 3, 8, 8), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((5, 40, 4, 4), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((3, 7, 10, 11), (2, 2), (2, 2), ((0, 0), (0, 1)), (1, 1)),
    ((3, 9, 7, 7), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    ((2, 9, 9, 5), (2, 3), (3, 2), ((1, 0), (0, 2)), (2, 1)),
    ((4, 33, 9), (3,), (2,), ((1, 1),), (1,)),
    ((2, 3, 3, 5, 5), (2, 2, 2), (1, 2, 1), ((1, 0), (0, 1), (0, 0)), (1, 1, 1)),
    ((3, 2, 1, 1), (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((2, 2, 1, 6, 6), (2, 2, 2), (1, 2, 2), ((1, 1), (0, 0), (0, 0)), (1, 1, 1)),
]


@pytest.mark.parametrize("dtype", list(FLOATS))
@pytest.mark.parametrize("case", POOLS, ids=str)
def test_pooling(case, dtype):
    shape, kernel, stride, padding, dilation = case
    x = RNG.integers(-9, 9, shape).astype(dtype)
    x[0, 0].flat[3 % x[0, 0].size] = np.nan
    spatial = shape[2:]
    y, index = max_pool_reference(x, kernel, stride, padding, dilation)
    out, flat = y.shape[2:], np.arange(np.prod(spatial)).reshape(spatial)
    check(
        "max_pool",
        [x],
        (y.astype(dtype), index),
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    dy = RNG.integers(-4, 4, y.shape).astype(dtype)
    dx = np.zeros((*shape[:2], flat.size))
    for n, c in np.ndindex(*shape[:2]):
        np.add.at(dx[n, c], index[n, c].reshape(-1), dy[n, c].astype(np.float64).reshape(-1))
    check(
        "max_pool_grad",
        [dy, index],
        dx.reshape(shape).astype(dtype),
        input_shape=shape,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    if max(dilation) > 1:
        return
    x[0, 0].flat[3 % x[0, 0].size] = 1
    w = x.astype(np.float64)
    for include, divisor in [(True, None), (False, None), (True, 5)]:
        y, dx = np.zeros(shape[:2] + out), np.zeros(shape)
        for o, elements in windows(spatial, kernel, stride, padding, dilation, out):
            rows = tuple(np.array(c) for c in zip(*elements))
            count = divisor or (np.prod(kernel) if include else len(elements))
            y[(slice(None), slice(None), *o)] = w[(slice(None), slice(None), *rows)].sum(-1) / count
            dx[(slice(None), slice(None), *rows)] += (
                dy[(slice(None), slice(None), *o)].astype(np.float64)[..., None] / count
            )
        attributes = dict(
            kernel=kernel,
            stride=stride,
            padding=padding,
            count_include_pad=include,
            divisor=divisor,
        )
        check("avg_pool", [x], y.astype(dtype), FLOATS[dtype] * 2, **attributes)
        check(
            "avg_pool_grad",
            [dy],
            dx.astype(dtype),
            FLOATS[dtype] * 2,
            input_shape=shape,
            **attributes,
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [4, 7, 40])
@pytest.mark.parametrize("padding", [((0, 0), (0, 0)), ((1, 1), (1, 1))], ids=str)
def test_max_pool_of_minus_infinity(padding, width, dtype):
    """The index of a window of -infinity is that of its first element inside the input."""
    x = np.full((5, 3, width, width), -np.inf, dtype)
    x[1, 1, 2, 3] = np.nan
    x[2, 0, -2, -2] = np.inf
    attributes = dict(kernel=(2, 3), stride=(2, 2), padding=padding, dilation=(1, 1))
    check("max_pool", [x], max_pool_reference(x, *attributes.values()), **attributes)
