"""Pooling with channels last: the bits of pooling with channels first, on every instruction set."""

import numpy as np
import pytest
from duograph.op import OPS
from duograph_cpu._native import lib
from harness import run

# shape (N, C, spatial...), kernel, stride, padding, dilation
WINDOWS = {
    "of ResNet": ((1, 64, 30, 28), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    "halves": ((2, 33, 12, 10), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    "one channel": ((3, 1, 9, 9), (3, 2), (1, 3), ((1, 0), (0, 1)), (1, 1)),
    "with holes": ((1, 20, 13, 11), (3, 3), (1, 2), ((2, 2), (1, 1)), (2, 1)),
    "one axis": ((2, 17, 40), (5,), (3,), ((2, 2),), (1,)),
    "three axes": ((1, 18, 5, 6, 7), (2, 3, 2), (1, 2, 1), ((0, 1), (1, 1), (0, 0)), (1, 1, 1)),
    "all of it": ((2, 48, 7, 7), (7, 7), (1, 1), ((0, 0), (0, 0)), (1, 1)),
}


@pytest.fixture(params=[0, 1, 2], ids=["baseline", "AVX2", "AVX-512"])
def instructions(request):
    lib.dg_isa_limit(request.param)
    yield
    lib.dg_isa_limit(2)


def sample(shape):
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    flat = x.reshape(-1)
    flat[::53], flat[7::91], flat[5::83] = np.nan, np.inf, -np.inf
    flat[1::47] = flat[0]
    return x


@pytest.mark.parametrize("name", WINDOWS)
def test_max_pool(name, instructions):
    shape, kernel, stride, padding, dilation = WINDOWS[name]
    x = sample(shape)
    window = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    want = np.moveaxis(OPS["max_pool"].reference_rule(x, **window)[0], 1, -1)
    got = run("max_pool_channels_last", [np.moveaxis(x, 1, -1)], want, **window)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("counted, divisor", [(True, 0), (False, 0), (True, 3)])
@pytest.mark.parametrize("name", WINDOWS)
def test_avg_pool(name, counted, divisor, instructions):
    shape, kernel, stride, padding, _ = WINDOWS[name]
    x = sample(shape)
    window = {
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "count_include_pad": counted,
        "divisor": divisor,
    }
    with np.errstate(invalid="ignore"):
        want = OPS["avg_pool"].reference_rule(x, **window)
    first = run("avg_pool", [x], want, **window)
    want = np.moveaxis(want, 1, -1)
    got = run("avg_pool_channels_last", [np.moveaxis(x, 1, -1)], want, **window)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(got, np.moveaxis(first, 1, -1))
