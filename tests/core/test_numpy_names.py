"""Functions of duograph.numpy return what those of NumPy return."""

from __future__ import annotations

import duograph.numpy as mnp
import numpy as np
import pytest
from duograph import Tensor

A = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
B = np.arange(1, 7, dtype=np.float32).reshape(2, 3)

CALLS = {
    "array": (([1, 2],), {"ndmin": 2}),
    "arange": ((2, 9, 3), {}),
    "linspace": ((0, 1, 5), {}),
    "eye": ((3, 4, 1), {}),
    "full": (((2, 2), 7), {}),
    "zeros_like": ((A,), {}),
    "ones_like": ((A,), {}),
    "where": ((A > 0, A, B), {}),
    "concatenate": (((A, B),), {"axis": 1}),
    "stack": (((A, B),), {"axis": 2}),
    "hstack": (((A, B),), {}),
    "vstack": (((A, B),), {}),
    "tile": ((A, (2, 1)), {}),
    "repeat": ((A, 2), {"axis": 1}),
    "reshape": ((A, (3, -1)), {}),
    "transpose": ((A,), {}),
    "expand_dims": ((A, 1), {}),
    "squeeze": ((A[:1], 0), {}),
    "ravel": ((A,), {}),
    "broadcast_to": ((A[:1], (4, 3)), {}),
    "pad": ((A, ((1, 0), (2, 1))), {}),
    "clip": ((A, -1, 1), {}),
    "sum": ((A,), {"axis": 1, "keepdims": True}),
    "mean": ((A,), {"axis": 0}),
    "prod": ((A,), {"axis": 1}),
    "max": ((A,), {"axis": 1}),
    "min": ((A,), {}),
    "std": ((A,), {"axis": 1, "ddof": 1}),
    "var": ((A,), {}),
    "argmax": ((A,), {"axis": 1}),
    "argmin": ((A,), {}),
    "cumsum": ((A,), {"axis": 1}),
    "any": ((A > 2,), {"axis": 0}),
    "all": ((A > -3,), {}),
    "matmul": ((A, B.T), {}),
    "dot": ((A, B.T), {}),
    "tensordot": ((A, B), {"axes": ([0, 1], [0, 1])}),
    "outer": ((A[0], B[0]), {}),
    "flip": ((A,), {"axis": 1}),
    "roll": ((A, 1), {}),
    "swapaxes": ((A, 0, 1), {}),
    "moveaxis": ((A, 0, 1), {}),
    "triu": ((A,), {"k": 1}),
    "tril": ((A,), {}),
    "diag": ((A[0],), {}),
    "power": ((B, 2.0), {}),
    "arctan": ((A,), {}),
    "divide": ((A, B), {}),
    "log1p": ((B,), {}),
    "maximum": ((A, B), {}),
    "isnan": ((A,), {}),
    "less_equal": ((A, 0), {}),
}


def given(value):
    if isinstance(value, np.ndarray):
        return Tensor(value)
    if isinstance(value, tuple) and value and isinstance(value[0], np.ndarray):
        return tuple(Tensor(v) for v in value)
    return value


@pytest.mark.parametrize("name", CALLS)
def test_function_returns_what_numpy_returns(name: str) -> None:
    args, kwargs = CALLS[name]
    want = getattr(np, name)(*args, **kwargs)
    got = getattr(mnp, name)(*map(given, args), **kwargs)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_pad_modes(mode: str) -> None:
    np.testing.assert_array_equal(
        mnp.pad(Tensor(A), ((1, 0), (2, 1)), mode).asnumpy(), np.pad(A, ((1, 0), (2, 1)), mode)
    )


def test_split_and_meshgrid() -> None:
    for got, want in zip(mnp.split(Tensor(A), 3, 1), np.split(A, 3, 1), strict=True):
        np.testing.assert_array_equal(got.asnumpy(), want)
    for got, want in zip(
        mnp.meshgrid([1, 2], [3, 4, 5]), np.meshgrid([1, 2], [3, 4, 5]), strict=True
    ):
        np.testing.assert_array_equal(got.asnumpy(), want)
    with pytest.raises(ValueError, match="divides"):
        mnp.split(Tensor(A), 2, 1)


def test_names_exist() -> None:
    assert [n for n in mnp.__all__ if not hasattr(mnp, n)] == []
