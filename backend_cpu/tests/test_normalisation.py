import ml_dtypes
import numpy as np
import pytest
from harness import check, run

RNG = np.random.default_rng(4)
TOL = {np.float32: 2e-5, np.float64: 1e-12, np.float16: 1e-2, ml_dtypes.bfloat16: 6e-2}


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("dtype", list(TOL))
@pytest.mark.parametrize(
    "shape, axis",
    [((5,), 0), ((7, 100), 1), ((7, 100), 0), ((3, 40, 33), 1), ((900, 70), 1), ((0, 4), 1)],
)
def test_softmax(shape, axis, dtype):
    x, dy = RNG.standard_normal(shape).astype(dtype), RNG.standard_normal(shape).astype(dtype)
    tol, w, d = TOL[dtype], x.astype(np.float64), dy.astype(np.float64)
    y = softmax(w, axis)
    check("softmax", [x], y.astype(dtype), tol, axis=axis)
    check("log_softmax", [x], np.log(y).astype(dtype), tol, axis=axis)
    y = y.astype(dtype)
    w = y.astype(np.float64)
    check(
        "softmax_grad",
        [y, dy],
        (w * (d - (w * d).sum(axis, keepdims=True))).astype(dtype),
        tol,
        axis=axis,
    )
    y = np.log(w).astype(dtype)
    want = d - np.exp(y.astype(np.float64)) * d.sum(axis, keepdims=True)
    check("log_softmax_grad", [y, dy], want.astype(dtype), 2 * tol, axis=axis)


def test_softmax_extremes():
    x = np.array([[0, -100, 80, 1e4], [-np.inf, 0, -86, -np.inf], [np.nan, 1, 2, 3]], np.float32)
    with np.errstate(all="ignore"):
        check("softmax", [x], softmax(x.astype(np.float64), 1).astype(np.float32), 1e-6, axis=1)
    t = np.linspace(-87, 0, 100001, dtype=np.float32).reshape(-1, 1)
    pair = np.ascontiguousarray(np.concatenate([t, np.zeros_like(t)], 1))
    got = run("softmax", [pair], pair, axis=1).astype(np.float64)
    want = softmax(pair.astype(np.float64), 1)
    assert np.abs(got / want - 1).max() < 4e-7


@pytest.mark.parametrize("dtype", list(TOL))
@pytest.mark.parametrize(
    "shape, axis", [((5, 7), 1), ((3, 4, 50), 2), ((3, 4, 50), 1), ((600, 96), 1), ((6,), 0)]
)
def test_layer_norm(shape, axis, dtype):
    x, dy = RNG.standard_normal(shape).astype(dtype), RNG.standard_normal(shape).astype(dtype)
    gamma, beta = (
        RNG.standard_normal(shape[axis:]).astype(dtype),
        RNG.standard_normal(shape[axis:]).astype(dtype),
    )
    tol, axes, lead = TOL[dtype] * 3, tuple(range(axis, len(shape))), tuple(range(axis))
    w, d, g = (a.astype(np.float64) for a in (x, dy, gamma))
    mean = w.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(w.var(axes, keepdims=True) + 1e-5)
    hat = (w - mean) * rstd
    y = hat * g + beta.astype(np.float64)
    stat = np.float32 if np.dtype(dtype).itemsize == 2 else dtype
    check(
        "layer_norm_core",
        [x, gamma, beta],
        (y.astype(dtype), mean.astype(stat), rstd.astype(stat)),
        tol,
        axis=axis,
        eps=1e-5,
    )
    gd = d * g
    dx = rstd * (gd - gd.mean(axes, keepdims=True) - hat * (gd * hat).mean(axes, keepdims=True))
    want = (dx.astype(dtype), (d * hat).sum(lead).astype(dtype), d.sum(lead).astype(dtype))
    check(
        "layer_norm_grad",
        [x, gamma, mean.astype(stat), rstd.astype(stat), dy],
        want,
        tol * 4,
        axis=axis,
    )


@pytest.mark.parametrize("dtype", list(TOL))
@pytest.mark.parametrize("shape", [(5, 7), (3, 20, 50), (4, 6, 9, 9), (2, 3, 2, 2)])
def test_batch_norm(shape, dtype):
    x, dy = RNG.standard_normal(shape).astype(dtype), RNG.standard_normal(shape).astype(dtype)
    gamma, beta = (
        RNG.standard_normal(shape[1]).astype(dtype),
        RNG.standard_normal(shape[1]).astype(dtype),
    )
    tol, axes = TOL[dtype] * 4, (0, *range(2, len(shape)))
    along = (-1,) + (1,) * (len(shape) - 2)
    w, d, g = (a.astype(np.float64) for a in (x, dy, gamma))
    mean, var = w.mean(axes), w.var(axes)
    hat = (w - mean.reshape(along)) / np.sqrt(var + 1e-5).reshape(along)
    y = hat * g.reshape(along) + beta.astype(np.float64).reshape(along)
    stat = np.float32 if np.dtype(dtype).itemsize == 2 else dtype
    check(
        "batch_norm_train",
        [x, gamma, beta],
        (y.astype(dtype), mean.astype(stat), var.astype(stat)),
        tol,
        eps=1e-5,
    )
    m = w.size / shape[1]
    dgamma, dbeta = (d * hat).sum(axes), d.sum(axes)
    scale = (g / np.sqrt(var + 1e-5)).reshape(along)
    dx = scale * (d - dbeta.reshape(along) / m - hat * dgamma.reshape(along) / m)
    want = (dx.astype(dtype), dgamma.astype(dtype), dbeta.astype(dtype))
    check(
        "batch_norm_grad",
        [x, gamma, mean.astype(stat), var.astype(stat), dy],
        want,
        tol * 2,
        eps=1e-5,
    )
