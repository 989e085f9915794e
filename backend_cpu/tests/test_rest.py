"""Pooling, scans, sorting and random bits."""

import itertools
import platform

import ml_dtypes
import numpy as np
import pytest
from duograph import Tensor
from duograph.dtype import ALL
from harness import check, run

RNG = np.random.default_rng(5)
FLOATS = {np.float32: 1e-6, np.float64: 1e-12, np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2}


def windows(shape, kernel, stride, padding, dilation, out):
    """For each output position: the input positions that its window meets."""
    for o in itertools.product(*[range(n) for n in out]):
        cells = itertools.product(*[range(k) for k in kernel])
        at = [
            tuple(o[d] * stride[d] + t[d] * dilation[d] - padding[d][0] for d in range(len(o)))
            for t in cells
        ]
        yield o, [a for a in at if all(0 <= i < n for i, n in zip(a, shape))]


def largest(x, kernel, stride, padding, dilation):
    """The largest of each window, and the number of its cell in the plane."""
    spatial = x.shape[2:]
    out = tuple(
        (n + sum(p) - d * (k - 1) - 1) // s + 1
        for n, p, k, s, d in zip(spatial, padding, kernel, stride, dilation)
    )
    w, flat = x.astype(np.float64), np.arange(np.prod(spatial)).reshape(spatial)
    y, index = np.zeros(x.shape[:2] + out), np.zeros(x.shape[:2] + out, np.int64)
    for o, cells in windows(spatial, kernel, stride, padding, dilation, out):
        rows = tuple(np.array(c) for c in zip(*cells))
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
    # narrow planes, whose outputs share vectors, with what nothing reads and with padding on either
    # side
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
def test_pool(case, dtype):
    shape, kernel, stride, padding, dilation = case
    x = RNG.integers(-9, 9, shape).astype(dtype)
    x[0, 0].flat[3 % x[0, 0].size] = np.nan
    spatial = shape[2:]
    y, index = largest(x, kernel, stride, padding, dilation)
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
    check("max_pool_grad", [dy, index], dx.reshape(shape).astype(dtype), input_shape=shape)
    if max(dilation) > 1:
        return
    x[0, 0].flat[3 % x[0, 0].size] = 1
    w = x.astype(np.float64)
    for include, divisor in [(True, None), (False, None), (True, 5)]:
        y, dx = np.zeros(shape[:2] + out), np.zeros(shape)
        for o, cells in windows(spatial, kernel, stride, padding, dilation, out):
            rows = tuple(np.array(c) for c in zip(*cells))
            count = divisor or (np.prod(kernel) if include else len(cells))
            y[(slice(None), slice(None), *o)] = w[(slice(None), slice(None), *rows)].sum(-1) / count
            dx[(slice(None), slice(None), *rows)] += (
                dy[(slice(None), slice(None), *o)].astype(np.float64)[..., None] / count
            )
        rest = dict(
            kernel=kernel,
            stride=stride,
            padding=padding,
            count_include_pad=include,
            divisor=divisor,
        )
        check("avg_pool", [x], y.astype(dtype), FLOATS[dtype] * 2, **rest)
        check("avg_pool_grad", [dy], dx.astype(dtype), FLOATS[dtype] * 2, input_shape=shape, **rest)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [4, 7, 40])
@pytest.mark.parametrize("padding", [((0, 0), (0, 0)), ((1, 1), (1, 1))], ids=str)
def test_max_pool_where_nothing_is_large(padding, width, dtype):
    """Windows of -infinity name the first of their cells that is no padding."""
    x = np.full((5, 3, width, width), -np.inf, dtype)
    x[1, 1, 2, 3] = np.nan
    x[2, 0, -2, -2] = np.inf
    rest = dict(kernel=(2, 3), stride=(2, 2), padding=padding, dilation=(1, 1))
    check("max_pool", [x], largest(x, *rest.values()), **rest)


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
            few = [np.ascontiguousarray(np.take(a, range(k), axis)) for a in (values, order)]
            check("topk", [x], tuple(few), k=k, axis=axis, largest=descending)


def test_philox():
    def block(counter, key):
        c, k = list(counter), list(key)
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        return c

    # the known answers of the Random123 distribution
    assert block([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    state = np.array([0xA4093822, 0x299F31D0, 7, 9], np.uint32)
    for n in (1, 63, 64, 1000, 100001):
        got = run("random_bits", [state], np.empty(n, np.uint32), shape=(n,))
        for i in {0, n // 2, n - 1}:
            b = i // 4
            assert got[i] == block([b & 0xFFFFFFFF, b >> 32, 7, 9], [0xA4093822, 0x299F31D0])[i % 4]


@pytest.mark.parametrize("n", [1, 100, 50001])
def test_optimizers(n):
    p, m, g = (RNG.standard_normal(n).astype(np.float32) for _ in range(3))
    v = RNG.random(n, dtype=np.float32)
    lr, b1p, b2p, momentum = (np.array(x, np.float32) for x in (0.1, 0.9**3, 0.99**3, 0.8))
    for nesterov, decay in itertools.product((False, True), (0.0, 0.1)):
        grad = g * 0.5 + p * decay
        m1, v1 = m * 0.9 + grad * 0.1, v * 0.99 + grad**2 * 0.01
        top = m1 * 0.9 + grad * 0.1 if nesterov else m1
        want = p - lr * np.sqrt(1 - b2p) / (1 - b1p) * top / (np.sqrt(v1) + 1e-8)
        rest = dict(beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=decay, scale=0.5)
        like = tuple(a.astype(np.float32) for a in (want, m1, v1))
        check("adam_step", [p, m, v, g, lr, b1p, b2p], like, 1e-5, nesterov=nesterov, **rest)
        a = m * momentum + grad
        like = (p - lr * (grad + a * momentum if nesterov else a), a)
        check(
            "momentum_step",
            [p, m, g, lr, momentum],
            like,
            1e-5,
            nesterov=nesterov,
            weight_decay=decay,
            scale=0.5,
        )
        grad = g * 0.5
        m1, v1 = m * 0.9 + grad * 0.1, v * 0.99 + grad**2 * 0.01
        want = p - lr * (m1 / (np.sqrt(v1) + 1e-8) + p * decay)
        check(
            "adam_weight_decay_step",
            [p, m, v, g, lr],
            tuple(a.astype(np.float32) for a in (want, m1, v1)),
            1e-5,
            **rest,
        )


@pytest.mark.parametrize("n", [1, 7, 50001])
def test_optimizers_at_the_smallest_numbers(n):
    """Subnormal moments count as zero where eps hides them, and no other arithmetic is changed by
    that.
    """
    tiny, one = np.full(n, 4e-45, np.float32), np.ones(n, np.float32)
    zero, lr, power = np.zeros(n, np.float32), np.array(0.1, np.float32), np.array(0.5, np.float32)
    rest = dict(beta1=0.9, beta2=0.999, weight_decay=0.0, scale=1.0)
    flushed = platform.machine() in ("x86_64", "AMD64")  # other processors take no longer for them
    for m, v, g in [(tiny, tiny, zero), (zero, zero, one * 1e-21), (tiny, tiny, tiny)]:
        p1, m1, v1 = run(
            "adam_step",
            [one, m, v, g, lr, power, power],
            (one, m, v),
            nesterov=False,
            eps=1e-8,
            **rest,
        )
        assert np.abs(p1 - one).max() < 1e-7
        assert not v1[v1 < np.finfo(np.float32).tiny].any() or not flushed
        assert not m1[np.abs(m1) < np.finfo(np.float32).tiny].any() or not flushed
    # m / sqrt(v) of subnormal v: 1e-20 / sqrt(1e-40), times the corrected rate
    p1, _, v1 = run(
        "adam_step",
        [one, one * 1e-20, one * 1e-40, zero, lr, power, power],
        (one, zero, zero),
        nesterov=False,
        eps=0.0,
        **rest,
    )
    assert v1.all()
    np.testing.assert_allclose(p1, 1 - 0.1 * np.sqrt(0.5) / 0.5 * 0.9, rtol=1e-4)
    rate = np.array(0.9, np.float32)
    rest = dict(nesterov=False, weight_decay=0.0, scale=1.0)
    _, a = run("momentum_step", [one, tiny, zero, lr, rate], (one, one), **rest)
    assert not a.any() or not flushed
    # on this thread and on those of the pool
    many = np.full(200000, 1e-40, np.float32)
    assert np.array_equal((Tensor(many) * 0.5).asnumpy(), many * np.float32(0.5))
