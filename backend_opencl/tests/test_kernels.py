"""Tests of the grid package's kernels, with both ways to divide work, against the references."""

import numpy as np
import pytest
from duograph.dtype import float32, int32
from duograph.op import OPS
from duograph.tensor import Tensor
from duograph.types import TensorType
from opencl_harness import FORMS, backend, check, needs_device, run, type_of

pytestmark = [needs_device, pytest.mark.parametrize("form", FORMS)]
R = np.random.default_rng(3)


def f32(*shape):
    return R.standard_normal(shape).astype(np.float32)


def ints(high, *shape, dtype=np.int32):
    return R.integers(0, high, shape).astype(dtype)


NAN = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)

TABLE = [
    ("add", [f32(3, 4), f32(4)], {}, 0),
    ("add", [f32(5, 1, 7), f32(1, 6, 1)], {}, 0),
    ("mul", [f32(70001), f32()], {}, 0),
    ("maximum", [NAN, NAN[:, ::-1]], {}, 0),
    ("select", [ints(2, 9, dtype=np.bool_), f32(9), f32(9)], {}, 0),
    ("cast", [f32(100) * 9], {"dtype": int32}, 0),
    ("transpose", [f32(67, 129)], {"perm": (1, 0)}, 0),
    ("transpose", [R.standard_normal((4, 5, 6)) > 0], {"perm": (2, 0, 1)}, 0),
    ("strided_copy", [f32(10, 10)], {"shape": (3, 4), "strides": (-20, 2), "offset": 60}, 0),
    ("transpose", [f32(3, 70, 40)], {"perm": (2, 0, 1)}, 0),
    ("transpose", [f32(2, 33, 5, 64)], {"perm": (0, 3, 2, 1)}, 0),
    ("transpose", [f32(64, 96).astype(np.float16)], {"perm": (1, 0)}, 0),
    ("transpose", [f32(50, 20).astype(np.float64)], {"perm": (1, 0)}, 0),
    (
        "strided_copy",
        [f32(40, 50)],
        {"shape": (2, 25, 20), "strides": (25, 1, 100), "offset": 3},
        0,
    ),
    ("strided_copy", [f32(40, 50)], {"shape": (30, 20), "strides": (1, 0), "offset": 7}, 0),
    ("concat", [f32(2, 3, 4), f32(2, 0, 4), f32(2, 5, 4)], {"axis": 1}, 0),
    ("pad_constant", [f32(3, 4)], {"low": (1, 0), "high": (0, 2), "value": 7.0}, 0),
    (
        "slice_update",
        [f32(6, 8), f32(2, 4)],
        {"begin": (5, 0), "end": (1, 8), "strides": (-2, 2)},
        0,
    ),
    ("fill", [], {"shape": (3, 5), "value": 2.5, "dtype": float32}, 0),
    ("iota", [], {"shape": (3, 5, 2), "axis": 1, "dtype": int32}, 0),
    ("reduce_sum", [f32(5, 17, 6, 8)], {"axis": (0, 2), "keepdims": False}, 1e-5),
    ("reduce_sum", [f32(300000)], {"axis": (0,), "keepdims": True}, 1e-5),
    ("reduce_sum", [f32(2000, 7)], {"axis": (0,), "keepdims": False}, 1e-5),
    ("reduce_sum", [f32(0, 7)], {"axis": (0,), "keepdims": False}, 0),
    ("reduce_sum", [ints(200, 1000, dtype=np.uint8)], {"axis": (0,), "keepdims": False}, 0),
    ("reduce_max", [NAN], {"axis": (1,), "keepdims": False}, 0),
    ("reduce_min", [ints(99, 40, 50) - 50], {"axis": (1,), "keepdims": False}, 0),
    ("reduce_any", [ints(2, 3, 40, dtype=np.bool_)], {"axis": (1,), "keepdims": False}, 0),
    ("argmax", [NAN], {"axis": 1}, 0),
    ("argmin", [ints(3, 20, 30)], {"axis": 0}, 0),
    ("argmax", [f32(6, 100)], {"axis": 1}, 0),
    ("argmin", [ints(9, 7, 70) - 4], {"axis": 1}, 0),
    ("argmax", [np.full((2, 50), -np.inf, np.float16)], {"axis": 1}, 0),
    ("argmax", [np.where(np.arange(66) % 31 == 30, np.nan, 5.0)[None]], {"axis": 1}, 0),
    ("argmax", [ints(2, 3, 50, dtype=np.uint8)], {"axis": 1}, 0),
    ("argmin", [ints(2, 3, 50, dtype=np.bool_)], {"axis": 1}, 0),
    ("cumsum", [f32(5, 60)], {"axis": 1, "exclusive": True, "reverse": True}, 1e-5),
    ("cummax", [NAN], {"axis": 1}, 0),
    (
        "sort",
        [np.array([3, np.nan, 1, 3, -np.inf, 2], np.float32)],
        {"axis": 0, "descending": False},
        0,
    ),
    ("sort", [ints(9, 4, 37, 3)], {"axis": 1, "descending": True}, 0),
    ("topk", [f32(7, 333)], {"k": 5, "axis": 1, "largest": True}, 0),
    ("topk", [f32(3, 101, 5)], {"k": 16, "axis": 1, "largest": False}, 0),
    ("topk", [ints(9, 13, 77) - 4], {"k": 3, "axis": 1, "largest": True}, 0),
    ("topk", [ints(3, 19, 7)], {"k": 16, "axis": 0, "largest": False}, 0),
    ("topk", [NAN], {"k": 3, "axis": 1, "largest": True}, 0),
    ("topk", [NAN[:, ::-1]], {"k": 2, "axis": 0, "largest": False}, 0),
    ("topk", [f32(1)], {"k": 1, "axis": 0, "largest": True}, 0),
    ("topk", [f32(4, 0)], {"k": 0, "axis": 1, "largest": True}, 0),
    ("topk", [ints(9, 0, 5)], {"k": 2, "axis": 1, "largest": True}, 0),
    ("topk", [ints(9, 3, 5)], {"k": 0, "axis": 1, "largest": False}, 0),
    ("topk", [ints(2, 3, 50, dtype=np.bool_)], {"k": 4, "axis": 1, "largest": True}, 0),
    ("topk", [f32(5, 60).astype(np.float16)], {"k": 7, "axis": 1, "largest": False}, 0),
    ("gather", [f32(6, 5, 4), np.array([[0, -1], [3, 3]])], {"axis": 1}, 0),
    ("scatter_set", [f32(6, 4), np.array([1, 3, 1, 5, 1]), f32(5, 4)], {"axis": 0}, 0),
    ("scatter_set", [f32(3, 9), np.array([8, 8, 0]), f32(3, 3)], {"axis": 1}, 0),
    ("scatter_add", [f32(6, 4), np.array([1, 3, 1, 5, 1]), f32(5, 4)], {"axis": 0}, 1e-6),
    ("scatter_add", [ints(9, 50), ints(50, 700), ints(9, 700)], {"axis": 0}, 0),
    ("reduce_max", [f32(7, 999)], {"axis": (1,), "keepdims": False}, 0),
    (
        "reduce_min",
        [np.where(np.arange(99) == 77, np.nan, 1).astype("f2")],
        {"axis": (0,), "keepdims": True},
        0,
    ),
    ("gather_elements", [f32(5, 6), ints(6, 5, 3)], {"axis": 1}, 0),
    ("scatter_elements_add", [f32(5, 6), ints(6, 5, 9), f32(5, 9)], {"axis": 1}, 1e-6),
    ("random_bits", [np.array([7, 8, 9, 10], np.uint32)], {"shape": (1001,)}, 0),
    (
        "max_pool",
        [f32(2, 3, 9, 8)],
        {"kernel": (3, 2), "stride": (2, 2), "padding": ((1, 1), (0, 0)), "dilation": (1, 2)},
        0,
    ),
    (
        "avg_pool",
        [f32(2, 3, 9)],
        {
            "kernel": (3,),
            "stride": (2,),
            "padding": ((1, 1),),
            "count_include_pad": False,
            "divisor": 0,
        },
        1e-6,
    ),
    (
        "avg_pool_grad",
        [f32(2, 3, 5)],
        {
            "input_shape": (2, 3, 9),
            "kernel": (3,),
            "stride": (2,),
            "padding": ((1, 1),),
            "count_include_pad": False,
            "divisor": 0,
        },
        1e-6,
    ),
]


@pytest.mark.parametrize(
    "name, arrays, attributes, tol", TABLE, ids=[f"{k}-{row[0]}" for k, row in enumerate(TABLE)]
)
def test_kernel(form, name, arrays, attributes, tol):
    check(form, name, arrays, tol, **attributes)


def test_topk_sorts_for_many_elements_or_a_few_long_lines(form):
    """Beyond 16 elements there is no kernel, so that the op is decomposed; nor for few long lines
    on a GPU.
    """

    def has_kernel(shape, k, axis=1):
        types = (TensorType.of(shape, float32),)
        attributes = {"k": k, "axis": axis, "largest": True}
        return backend(form).prepare(OPS["topk"], types, attributes, 0) is not None

    assert has_kernel((3, 40), 16)
    assert not has_kernel((3, 40), 17)
    assert has_kernel((3, 5000), 2) == (form == "serial")


@pytest.mark.parametrize("dtype", [float32, int32])
def test_topk_of_no_axis(form, dtype):
    """A 0-d operand has no axis: the kernel never gets one."""
    with pytest.raises(ValueError, match="topk: got a 0-d tensor; wanted at least one axis"):
        Tensor(3, dtype, device="OpenCL").topk(1)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normal(x, gamma, beta, axis, eps):
    axes = tuple(range(axis, x.ndim))
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)
    return (x - mean) * rstd * gamma + beta, mean, rstd


SPECIAL = np.array([[1, np.nan, 2], [-np.inf, 3, 9], [np.inf, 0, 1]], np.float32)
COMPOSITES = [
    ("softmax", [f32(70, 300) * 9], {"axis": 1}, softmax),
    ("softmax", [SPECIAL], {"axis": 1}, softmax),
    ("softmax", [f32(3, 5, 65)], {"axis": 2}, softmax),
    ("log_softmax", [f32(9, 33)], {"axis": 1}, lambda x, axis: np.log(softmax(x, axis))),
    ("softmax_grad", [f32(9, 33), f32(9, 33)], {"axis": 1},
     lambda y, dy, axis: y * (dy - (y * dy).sum(axis, keepdims=True))),
    ("log_softmax_grad", [f32(2, 3, 40), f32(2, 3, 40)], {"axis": 2},
     lambda y, dy, axis: dy - np.exp(y) * dy.sum(axis, keepdims=True)),
    ("layer_norm_core", [f32(9, 4, 10), f32(4, 10), f32(4, 10)], {"axis": 1, "eps": 1e-5}, normal),
    ("layer_norm_core", [f32(1, 4000), f32(4000), f32(4000)], {"axis": 1, "eps": 1e-3}, normal),
]  # fmt: skip


@pytest.mark.parametrize(
    "dtype, tol", [(np.float32, 5e-6), (np.float64, 1e-13), (np.float16, 4e-3)]
)
@pytest.mark.parametrize(
    "name, arrays, attributes, oracle", COMPOSITES, ids=[row[0] for row in COMPOSITES]
)
def test_normalisation_of_rows(form, name, arrays, attributes, oracle, dtype, tol):
    """Kernels process whole rows on a processor; for a GPU there are none: the op is decomposed."""
    arrays = [a.astype(dtype) for a in arrays]
    if form == "grid":
        types = tuple(type_of(a) for a in arrays)
        assert backend(form).prepare(OPS[name], types, attributes, 0) is None
        return
    with np.errstate(all="ignore"):
        wanted = oracle(*(a.astype(np.float64) for a in arrays), **attributes)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for got, want in zip(run(form, name, arrays, **attributes), wanted, strict=True):
        scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=tol, atol=tol * scale)


PRODUCTS = [
    ((), (), 65, 33, 300), ((), (), 1, 70, 9), ((), (), 9, 1, 70), ((3,), (), 8, 32, 16),
    ((2, 1), (1, 3), 5, 40, 7), ((), (), 130, 4, 600), ((), (), 4, 5, 0),
]  # fmt: skip
TURNED = (False, True)
# Every size both ways in float32; in the other dtypes one way each, and the way of the next size is
# the other one.
MATMULS = [(np.float32, turned, *sizes) for sizes in PRODUCTS for turned in TURNED]
MATMULS += [
    (dtype, TURNED[(j + k) % 2], *sizes)
    for j, dtype in enumerate((np.float64, np.float16, np.int32, np.int64))
    for k, sizes in enumerate(PRODUCTS)
]


@pytest.mark.parametrize("dtype, turned, x_batch, y_batch, m, n, k", MATMULS)
def test_matmul(form, dtype, turned, x_batch, y_batch, m, n, k):
    transpose_a = transpose_b = turned
    x = f32(*x_batch, *((k, m) if transpose_a else (m, k)))
    y = f32(*y_batch, *((n, k) if transpose_b else (k, n)))
    tol = {np.float32: 2e-6, np.float64: 1e-12, np.float16: 4e-3}.get(dtype, 0)
    arrays = [(x * 3).astype(dtype), (y * 3).astype(dtype)]
    check(form, "matmul", arrays, tol, transpose_a=transpose_a, transpose_b=transpose_b)


STEPS = [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 1, 2)]
# All steps with and without groups over two axes; over one and three, every other one of them with
# groups.
CONVOLUTIONS = [(2, groups, *step) for groups in (1, 2) for step in STEPS]
CONVOLUTIONS += [
    (ndim, 1 + (k + ndim // 2) % 2, *step) for ndim in (1, 3) for k, step in enumerate(STEPS)
]


@pytest.mark.parametrize("ndim, groups, stride, pad, dilation", CONVOLUTIONS)
def test_convolution(form, ndim, groups, stride, pad, dilation):
    size, kernel = (9, 8, 7)[:ndim], (3, 2, 3)[:ndim]
    out = [(n + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(size, kernel)]
    x, w, y = f32(3, 4, *size), f32(6, 4 // groups, *kernel), f32(3, 6, *out)
    same = {
        "stride": (stride,) * ndim,
        "padding": ((pad, pad),) * ndim,
        "dilation": (dilation,) * ndim,
        "groups": groups,
    }
    check(form, "conv", [x, w], 1e-5, **same)
    check(form, "conv_input_grad", [y, w], 1e-5, input_shape=x.shape, **same)
    check(form, "conv_weight_grad", [x, y], 1e-5, weight_shape=w.shape, **same)
