"""NumPy's numbers beside Tensors do what Python's numbers do: complex ones, zeros with a sign."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import mint, ops
from duograph.call_cache import clear_cached_calls

DTYPES = ("int32", "float32", "float64", "complex64")
COMPLEX = (2 + 1j, np.complex64(2 + 1j), np.complex128(2 + 1j))

JOINED = {
    "add": lambda x, v: x + v,
    "reversed subtract": lambda x, v: v - x,
    "multiply": lambda x, v: ops.mul(x, v),
    "where": lambda x, v: ops.where(x == 1, v, x),
    "power": lambda x, v: x**v,
    "alpha": lambda x, v: mint.add(x, x, alpha=v),
}


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", JOINED)
def test_a_complex_number_of_numpy_joins_as_one_of_python(name, dtype, wrap):
    x = ms.Tensor(np.array([1, 3]), getattr(ms, dtype))
    want, *others = (wrap(JOINED[name])(x, v) for v in COMPLEX)
    assert want.dtype is (ms.complex128 if dtype == "float64" else ms.complex64)
    assert want.asnumpy().imag.any()
    for got in others:
        assert got.dtype is want.dtype
        np.testing.assert_array_equal(got.asnumpy(), want.asnumpy())


INDEX = ms.Tensor([0])
REAL = {
    "masked_fill": lambda x, v: ops.masked_fill(x, x == 1, v),
    "index_fill": lambda x, v: ops.index_fill(x, 0, INDEX, v),
    "pad": lambda x, v: ops.pad(x, (1, 1), "constant", v),
    "scatter": lambda x, v: ops.scatter(x, 0, INDEX, v),
    "full": lambda x, v: ops.full((2,), v, dtype=x.dtype),
    "full_like": ops.full_like,
    "setitem": lambda x, v: x.copy().__setitem__(0, v),
    "setitem of a mask": lambda x, v: x.copy().__setitem__(x == 1, v),
    "masked_fill_": lambda x, v: x.copy().masked_fill_(x == 1, v),
    "add_": lambda x, v: x.copy().add_(v),
    "fill_diagonal": lambda x, v: ops.fill_diagonal(ops.stack([x, x]), v),
    "linspace": lambda x, v: ops.linspace(x[0], v, 3),
    "nan_to_num": lambda x, v: ops.nan_to_num(x.astype(ms.float32), v),
    "clamp": ops.clamp,
    "leaky_relu": lambda x, v: ops.leaky_relu(x.astype(ms.float32), v),
}


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.parametrize("value", COMPLEX, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name", REAL)
def test_a_complex_number_for_a_real_tensor_is_refused(name, value, dtype):
    x = ms.Tensor(np.array([1, 3]), getattr(ms, dtype))
    with pytest.raises((TypeError, ValueError)):
        REAL[name](x, value)


def test_a_complex_tensor_for_a_real_one_is_refused():
    x, value = ms.Tensor([1.0, 3.0]), ms.Tensor(2 + 1j)
    for fill in (REAL["masked_fill"], REAL["index_fill"]):
        with pytest.raises(TypeError, match="complex128 value for float32; wanted a real one"):
            fill(x, value)


ZEROS = {
    "full": lambda v: ops.full((2,), v),
    "quotient": lambda v: 1 / (ops.ones((2,)) * v),
    "where": lambda v: ops.where(ops.ones((2,)) > 5, ops.ones((2,)), v),
    "masked_fill": lambda v: ops.masked_fill(ops.ones((2,)), ops.ones((2,)) > 0, v),
    "pad": lambda v: ops.pad(ops.ones((2,)), (1, 1), "constant", v),
}


@pytest.mark.parametrize("kind", [float, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ZEROS)
def test_cached_calls_keep_the_sign_of_zero(name, kind):
    clear_cached_calls()
    for _ in range(4):
        for value in (kind(0.0), kind(-0.0)):
            found = ZEROS[name](value).asnumpy()
            want = np.signbit(value)
            assert (np.signbit(found) == want).any() and (name == "pad" or
                (np.signbit(found) == want).all())  # fmt: skip
