"""float8_e4m3fn, float8_e5m2 and int4: stored, copied and cast; no op computes with them."""

from __future__ import annotations

import copy
import pickle

import duograph as ms
import ml_dtypes
import numpy as np
import pytest
from duograph import Tensor, nn, ops
from duograph.dtype import ALL, STORAGE, as_dtype, promote
from duograph.errors import CheckpointError, DTypeError, GradientError
from duograph.op import OPS, op
from duograph.types import TensorType

MODES = (None, "O0", "O1", "O2")
HOST = {
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "int4": ml_dtypes.int4,
}
IDS = [d.name for d in STORAGE]
REAL = [d for d in ALL if not d.is_complex]


def compiled(function, level):
    return function if level is None else ms.jit(function, jit_level=level)


def codes(dtype):
    """Return every value of a dtype."""
    if dtype is ms.int4:
        return np.arange(-8, 8).astype(ml_dtypes.int4)
    return np.arange(256, dtype=np.uint8).view(HOST[dtype.name])


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def test_they_are_dtypes_like_others():
    for dtype in STORAGE:
        assert as_dtype(dtype.name) is dtype and as_dtype(HOST[dtype.name]) is dtype
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert not (dtype.is_floating or dtype.is_integer or dtype.is_complex)
        assert dtype.itemsize == 1 and getattr(ms, dtype.name) is dtype
        assert ms.dtype_to_nptype(dtype) is HOST[dtype.name]
    assert [str(d) for d in STORAGE] == ["Float8E4M3FN", "Float8E5M2", "Int4"]
    assert [ms.dtype_to_pytype(d) for d in STORAGE] == [float, float, int]
    assert str(ms.float32) == "Float32" and str(ms.bfloat16) == "BFloat16"


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("device", ["CPU", "Reference"])
@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_every_value_is_cast_to_every_dtype(restored, dtype, device, level):
    ms.set_context(device_target=device)
    values = codes(dtype)
    finite = values[np.isfinite(values.astype(np.float32))]
    for target in ALL:
        array = finite if target.is_integer else values
        got = compiled(lambda x: x.astype(target), level)(ms.Tensor(array)).asnumpy()  # noqa: B023
        want = array.astype(np.float32)
        if target.is_complex:
            got = got.real
            target = ms.float32 if target is ms.complex64 else ms.float64
        if target.kind == "u":
            got, want = got[want >= 0], want[want >= 0]
        with np.errstate(all="ignore"):
            same(got, want.astype(target.np))


VALUES = [0.0, -0.0, 1.0, 2.6, -3.3, 0.3, 7.0, -8.0, 448.0, 464.0, 465.0, 57344.0, 1e30, -1e30]
VALUES += [np.inf, -np.inf, np.nan, 2**-9, 2**-10, 2**-16, 2**-17, 1.0625, 1.1875, 3e-5]


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("device", ["CPU", "Reference"])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_values_are_rounded_as_ml_dtypes_does(restored, dtype, source, device, level):
    ms.set_context(device_target=device)
    source = as_dtype(source)
    whole = dtype is ms.int4 or not source.is_floating
    kept = [v for v in VALUES if not whole or (np.isfinite(v) and abs(v) < 8)]
    with np.errstate(all="ignore"):
        array = np.array(kept).astype(source.np)
        want = array.astype(HOST[dtype.name])
    got = compiled(lambda x: x.astype(dtype), level)(ms.Tensor(array, source))
    assert got.dtype is dtype
    same(got.asnumpy(), want)


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_transposes_and_copies(dtype, level):
    x = ms.Tensor(np.arange(6).reshape(1, 2, 3) - 2, dtype)
    array = x.asnumpy().astype(np.float32)

    def function(x):
        return x.transpose(2, 0, 1), x.copy(), x.astype(ms.float32).transpose(0, 2, 1) + 1

    moved, copied, wide = compiled(function, level)(x)
    assert moved.dtype is copied.dtype is dtype
    np.testing.assert_array_equal(moved.asnumpy().astype(np.float32), array.transpose(2, 0, 1))
    np.testing.assert_array_equal(copied.asnumpy().astype(np.float32), array)
    np.testing.assert_array_equal(wide.asnumpy(), array.transpose(0, 2, 1) + 1)


SHAPES = [(), (0,), (1,), (5,), (2, 3), (2, 0, 3), (40, 60)]


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_shapes(dtype, shape, level):
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(np.float32) % 7
    function = compiled(lambda x: (x * 1).astype(dtype).reshape(-1).astype(ms.float32) + 1, level)
    same(function(ms.Tensor(array)).asnumpy(), array.reshape(-1) + 1)


@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_tensors_of_them_are_made_and_read(dtype, tmp_path):
    x = ms.Tensor([[1, 2], [-3, 0]], dtype)
    assert x.dtype is dtype and (x.itemsize, x.nbytes, x.shape) == (1, 4, (2, 2))
    assert x.tolist() == [[1, 2], [-3, 0]] and x.item((1, 0)) == -3
    assert str(x).split() == ["[[", "1", "2]", "[-3", "0]]"] or str(x).count("-3") == 1
    assert str(dtype) in repr(x)
    for y in (
        copy.copy(x),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        ms.Tensor(x.asnumpy()),
    ):
        assert y.dtype is dtype and y.tolist() == x.tolist()
    assert ms.Tensor(x).tolist() == ms.Tensor(x, ms.float32).tolist() == x.tolist()
    assert ms.Tensor(2.0, dtype).shape == () and ms.Tensor([], dtype).shape == (0,)
    strided = np.asfortranarray(x.asnumpy())[::-1]
    assert ms.Tensor(strided).tolist() == [[-3, 0], [1, 2]]


@pytest.mark.parametrize("suffix", [".ckpt", ".safetensors"])
@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_they_are_saved_in_checkpoints(dtype, suffix, tmp_path):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([[1, 2], [-3, 0]], dtype), name="w")

        def construct(self, x):
            return x @ self.w.astype(ms.float32)

    path = str(tmp_path / f"net{suffix}")
    net = Net()
    if dtype is ms.int4 and suffix == ".safetensors":
        with pytest.raises(CheckpointError, match=r"'w' of int4.*ends in \.ckpt"):
            ms.save_checkpoint(net, path, format="safetensors")
        return
    ms.save_checkpoint(net, path, format=suffix[1:])
    found = ms.load_checkpoint(path, format=suffix[1:])["w"]
    assert found.dtype is dtype and found.tolist() == [[1, 2], [-3, 0]]
    fresh = Net()
    fresh.w.set_data(ms.Tensor([[0, 0], [0, 0]], dtype))
    assert ms.load_param_into_net(fresh, {"w": found}) == ([], [])
    for level in MODES:
        got = compiled(fresh, level)(ms.Tensor([[1.0, 1.0]]))
        assert got.tolist() == [[-2, 2]]


@pytest.mark.parametrize("level", MODES)
def test_values_pass_through_branches_and_loops(level):
    def function(x, y, n):
        i = ms.Tensor(0)
        while i < n:
            x, y = y, x
            i = i + 1
        return x if n > 1 else y

    x, y = (ms.Tensor([v, 2], ms.float8_e5m2) for v in (1, 3))
    for n in range(4):
        got = compiled(function, level)(x, y, ms.Tensor(n))
        assert got.dtype is ms.float8_e5m2
        assert got.tolist() == function(x, y, n).tolist()


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_parameters_of_them_are_assigned(dtype, level):
    w = ms.Parameter(ms.Tensor([1, 2], dtype), name="w", requires_grad=False)

    def function(x):
        ops.assign(w, x.astype(dtype))
        return {"rows": [ms.vmap(lambda v: v.astype(dtype).astype(ms.float32) + 1)(x)], "w": w}

    got = compiled(function, level)(ms.Tensor([3.0, 4.0]))
    assert w.dtype is got["w"].dtype is dtype and w.tolist() == got["w"].tolist() == [3, 4]
    assert got["rows"][0].tolist() == [4, 5]


X = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
DENSE = nn.Dense(2, 2)
REFUSED = {
    "add": lambda y: y + y,
    "add a number": lambda y: y + 1,
    "a number less it": lambda y: 1.5 - y,
    "with float32": lambda y: X * y,
    "matmul": lambda y: y @ y,
    "exp": lambda y: ops.exp(y),
    "neg": lambda y: -y,
    "sum": lambda y: y.sum(),
    "compare": lambda y: y > y,
    "equal": lambda y: y == 1,
    "index": lambda y: y[0],
    "concat": lambda y: ops.concat((y, y)),
    "select": lambda y: ops.select(X > 1, y, y),
    "softmax": lambda y: ops.softmax(y),
    "zeros": lambda y: ops.zeros((2,), y.dtype),
    "full": lambda y: ops.full((2,), 1, dtype=y.dtype),
    "ones_like": lambda y: ops.ones_like(y),
    "sum to it": lambda y: X.sum(dtype=y.dtype),
    "sort": lambda y: ops.sort(y),
    "nonzero": lambda y: ops.nonzero(y),
    "dense": lambda y: DENSE(y),
    "unique": lambda y: ops.unique(y),
    "masked_select": lambda y: ops.masked_select(y, X > 1),
    "gather": lambda y: ops.gather(y, ms.Tensor([0]), 0),
    "cumsum": lambda y: ops.cumsum(y, 0),
    "iteration": lambda y: [row * 1 for row in y],
}


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
@pytest.mark.parametrize("what", REFUSED)
def test_no_op_computes_with_them(what, dtype, level):
    y = X.astype(dtype)
    with pytest.raises((TypeError, ValueError), match=dtype.name):
        compiled(REFUSED[what], level)(y)


@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_they_are_not_promoted(dtype):
    for other in (*ALL, *STORAGE):
        with pytest.raises(TypeError, match=f"no op computes with {dtype.name}: cast it first"):
            promote(dtype, other) if other.kind != "s" else promote(dtype, ms.float32)
        with pytest.raises(TypeError, match=dtype.name):
            promote(ms.float32, dtype)


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_a_gradient_through_them_is_an_error_and_not_zero(dtype, level):
    def loss(x):
        return (x.astype(dtype).astype(ms.float32) * x).sum()

    def stopped(x):
        return (ops.stop_gradient(x).astype(dtype).astype(ms.float32) * x).sum()

    with pytest.raises(GradientError, match="stop_gradient"):
        compiled(ms.grad(loss), level)(X)
    got = compiled(ms.grad(stopped), level)(X)
    np.testing.assert_array_equal(got.asnumpy(), X.asnumpy())


@pytest.mark.parametrize("dtype", STORAGE, ids=IDS)
def test_a_device_without_them_says_so(restored, dtype):
    ms.set_context(device_target="InnerRing")
    with pytest.raises(DTypeError, match=f"got a {dtype.name} tensor; this device has"):
        ops.reshape(ms.Tensor([1.0], dtype), (1, 1))
    with pytest.raises(DTypeError, match=dtype.name):
        ms.Tensor([1.0], dtype, device="CPU").move_to("InnerRing")
    moved = ms.Tensor([1, 2], dtype, device="CPU").move_to("Reference")
    assert moved.device == "Reference:0" and moved.tolist() == [1, 2]


@pytest.mark.parametrize("level", MODES)
def test_an_op_that_names_them_takes_them(level):
    """A plugin's op may compute with them: its kernels know how."""

    @op(name="scaled_product", composite=False, dtypes=(ms.float8_e4m3fn,), differentiable=False)
    def scaled_product(x: Tensor, y: Tensor):
        """Return the product of two float8 matrices as float32."""

    try:

        @scaled_product.infer
        def _(x, y):
            return TensorType.of((x.shape[0], y.shape[1]), ms.float32)

        @scaled_product.reference
        def _(x, y):
            return x.astype(np.float32) @ y.astype(np.float32)

        ms.set_context(host_fallback="on")
        x = X.astype(ms.float8_e4m3fn)
        got = compiled(lambda a: scaled_product(a, a) + 1, level)(x)
        np.testing.assert_array_equal(got.asnumpy(), X.asnumpy() @ X.asnumpy() + 1)
        with pytest.raises(DTypeError, match="scaled_product"):
            compiled(lambda a: scaled_product(a, a), level)(X)
    finally:
        ms.set_context(host_fallback="backend")
        del OPS["scaled_product"]


SCALE = """
#include <stdint.h>
int scale(int n, void **p, int *ndims, int64_t **shapes, const char **dtypes, void *s, void *x) {
    const uint8_t *in = p[0];
    float *out = p[1];
    for (int64_t i = 0; i < shapes[0][0]; i++) out[i] = in[i];
    return dtypes[0][5] == '8' ? 0 : 1;
}
"""


@pytest.mark.parametrize("level", MODES)
def test_a_kernel_of_the_users_own_takes_them(level):
    custom = ops.Custom(
        {"c": SCALE},
        out_shape=lambda x: x,
        out_dtype=lambda x: ms.float32,
        func_type="source",
        name="scale",
        in_dtype=ms.float8_e5m2,
    )
    x = ms.Tensor(np.arange(5, dtype=np.uint8).view(ml_dtypes.float8_e5m2))
    got = compiled(lambda a: custom(a) * 2, level)(x)
    assert got.tolist() == [0, 2, 4, 6, 8]
