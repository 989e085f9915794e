"""The element-wise functions keep the error bounds of docs/accuracy.md."""

from __future__ import annotations

import os
import pathlib
import re
import sys
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import accuracy_rows as accuracy

COUNT = 20_000 if os.environ.get("DUOGRAPH_FULL") else 120


@pytest.mark.parametrize("dtype", accuracy.DTYPES)
@pytest.mark.parametrize("row", accuracy.ROWS, ids=lambda row: row.name)
def test_error(row: accuracy.Row, dtype: str) -> None:
    bound = row.bounds[list(accuracy.DTYPES).index(dtype)]
    error, at = accuracy.measured(row, dtype, COUNT)
    assert error <= bound, f"{error:g} ulp at {at}; bound {bound}"


def test_document_has_the_bounds() -> None:
    """The document is written by `python tests/accuracy_rows.py`."""
    found = {}
    for line in accuracy.DOCUMENT.read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"[\d.e+]+", cells[1]):
            found[cells[0]] = (float(cells[2]), float(cells[4]))
    assert found == {row.name: row.bounds for row in accuracy.ROWS}


@pytest.mark.parametrize("dtype", [ms.float32, ms.float64])
def test_compiled_code_has_the_bits_of_eager_calls(dtype: ms.dtype.DType) -> None:
    x = ms.Tensor(np.linspace(-6.3, 6.3, 1001), dtype)
    for function in (ops.digamma, ops.sinc, ops.lgamma, lambda x: ops.erfinv(x / 6.5)):
        np.testing.assert_array_equal(ms.jit(function)(x).asnumpy(), function(x).asnumpy())


PARTS = (0.0, 1e-30, -1e-12, 1e-5, 0.3, -0.49, 0.5, -0.75, 2.0, -30.0)
COMPLEX = {
    "log1p": (ops.log1p, accuracy.MP.log1p),
    "expm1": (ops.expm1, accuracy.MP.expm1),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions_lose_nothing_near_zero(name: str, dtype: Any, compiled: bool) -> None:
    function, exact = COMPLEX[name]
    z = np.array([complex(a, b) for a in PARTS for b in PARTS], dtype)
    got = (ms.jit(function) if compiled else function)(ms.Tensor(z)).asnumpy()
    want = [complex(exact(accuracy.MP.mpc(complex(v)))) for v in z]
    np.testing.assert_allclose(got, want, rtol=8 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("function", [ops.log1p, ops.expm1])
def test_huge_and_infinite_complex_numbers(function: Any) -> None:
    got = function(ms.Tensor(np.array([3e30 + 1j, -1e30, np.inf], np.complex64))).asnumpy()
    with np.errstate(all="ignore"):
        want = np.array([3e30 + 1j, -1e30, np.inf], np.complex64)
        want = np.log(want + 1) if function is ops.log1p else np.exp(want) - 1
    np.testing.assert_allclose(np.abs(got), np.abs(want), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_upper_incomplete_gamma_function_of_small_orders(dtype: Any) -> None:
    orders = (1e-30, 1e-10, 1e-5, 0.01, 0.2, 0.21, 0.5, 2.0, 10.0)
    at = (1e-30, 1e-5, 0.1, 0.9, 1.1, 1.19, 1.25, 3.0)
    a, x = (np.array(v, dtype).reshape(-1) for v in np.meshgrid(orders, at))
    got = ops.igammac(ms.Tensor(a), ms.Tensor(x)).asnumpy()
    upper = accuracy.MP.gammainc
    want = [float(upper(float(v), float(w), regularized=True)) for v, w in zip(a, x, strict=True)]
    np.testing.assert_allclose(got, want, rtol=64 * np.finfo(dtype).eps, atol=0)


BESSEL = {
    "bessel_j0": lambda x: accuracy.MP.besselj(0, x),
    "bessel_j1": lambda x: accuracy.MP.besselj(1, x),
    "bessel_y0": lambda x: accuracy.MP.bessely(0, x),
    "bessel_y1": lambda x: accuracy.MP.bessely(1, x),
}


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_of_large_numbers_keep_their_phase(name: str) -> None:
    x = np.random.default_rng(3).uniform(8, 10, 40) * 10.0 ** np.repeat([0, 1, 3, 7, 14], 8)
    got = getattr(ops, name)(ms.Tensor(x)).asnumpy()
    error = [abs(g - BESSEL[name](accuracy.MP.mpf(float(v)))) for g, v in zip(got, x, strict=True)]
    height = np.sqrt(2 / (np.pi * x))
    assert max(np.array(error, np.float64) / height) < 8 * np.finfo(np.float64).eps


def test_polygamma_of_negative_numbers() -> None:
    x = np.array([-0.5, -3.21, -19.99, -1453.9, -9999.25])
    for order in (1, 2, 3, 5, 10):
        got = ops.polygamma(order, ms.Tensor(x)).asnumpy()
        want = [float(accuracy.MP.polygamma(order, accuracy.MP.mpf(float(v)))) for v in x]
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=0)


def test_derivatives_of_digamma_at_whole_numbers() -> None:
    x = ms.Tensor([1.0, 2.0, 3.0])
    first = ms.grad(ops.digamma)(x).asnumpy()
    np.testing.assert_allclose(first, [np.pi**2 / 6 - s for s in (0, 1, 1.25)], 1e-6)
    second = ms.grad(ms.grad(ops.digamma))(x).asnumpy()
    np.testing.assert_allclose(second, [-2.4041138, -0.4041138, -0.1541138], 1e-5)


def test_gradient_of_logit_at_its_ends() -> None:
    slope = ms.grad(ops.logit)(ms.Tensor([0.0, 0.5, 1.0])).asnumpy()
    assert slope.tolist() == [np.inf, 4.0, np.inf]
