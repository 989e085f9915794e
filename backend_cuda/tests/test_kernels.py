"""The backend's own kernels at sizes that conformance does not reach, on the emulated device."""

from __future__ import annotations

import itertools
import os

import duograph as ms
import ml_dtypes
import numpy as np
import pytest
from amount import FULL, spread
from cuda_cases import CONVOLUTIONS
from duograph import ops
from duograph.backend.grid import indexing
from duograph.op import OPS

DEVICE = os.environ.get("DUOGRAPH_CUDA_DEVICE", "CUDA-emulated")  # `make test-gpu` says GPU
NEAR = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
# Every row in every dtype; or all in float32, some in the others: each kernel is compiled for them.
ALL_PAIRS = FULL or DEVICE != "CUDA-emulated"


@pytest.fixture(autouse=True)
def _there():
    problem = ms.backend.registry.problem_of(ms.backend.registry.entries()[DEVICE])
    if problem is not None:
        pytest.skip(problem)


def _tensors(dtype, *shapes):
    rng = np.random.default_rng(len(shapes))
    return [ms.Tensor(rng.normal(size=s), getattr(ms, dtype), device="CPU") for s in shapes]


def _compare(name, operands, attributes, near):
    here = OPS[name](*operands, **attributes)
    there = OPS[name](*[x.move_to(DEVICE) for x in operands], **attributes)
    pairs = zip(*[v if isinstance(v, tuple) else (v,) for v in (here, there)], strict=True)
    for want, got in pairs:
        want, got = want.asnumpy().astype(np.float64), got.asnumpy().astype(np.float64)
        scale = max(1.0, np.abs(want).max(initial=0))
        assert np.abs(got - want).max(initial=0) <= near * scale, name


def _exact(name, x):
    """Return a function of all 16-bit floats in float64."""
    small = np.exp(-np.abs(x))
    return {
        "exp": lambda: np.exp(x),
        "tanh": lambda: np.tanh(x),
        "sigmoid": lambda: np.where(x >= 0, 1, small) / (1 + small),
        "silu": lambda: x * (np.where(x >= 0, 1, small) / (1 + small)),
        "reciprocal": lambda: 1 / x,
        "square": lambda: x * x,
    }[name]()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "silu", "reciprocal", "square"])
def test_approximations_are_not_seen_in_16_bits(name, dtype):
    """Each of all 65,536 numbers: hardly further from the exact value than its nearest number.

    A fused region computes the same bits.
    """
    dtype = getattr(ms, dtype)
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = ms.Tensor(bits.view(dtype.np), device=DEVICE)
    function = getattr(ops, name)
    region = ms.jit(lambda x: (function(x), -function(x)), jit_level="O1")(x)
    got, *others = (v.asnumpy().astype(np.float64) for v in (function(x), *region))
    np.testing.assert_array_equal(others, [got, -got])
    with np.errstate(all="ignore"):
        want = _exact(name, bits.view(dtype.np).astype(np.float64))
        rounded = want.astype(dtype.np).astype(np.float64)
    special = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[special], rounded[special])
    limits = np.finfo(dtype.np) if dtype is ms.float16 else ml_dtypes.finfo(dtype.np)
    size = np.maximum(np.abs(want[~special]), float(limits.smallest_normal))
    unit = 2.0 ** (np.floor(np.log2(size)) + int(np.log2(float(limits.eps))))
    errors = np.abs(got[~special] - want[~special]) / unit
    assert errors.max() <= {ms.float16: 0.52, ms.bfloat16: 0.51}[dtype]


# m, n, k, batch
MATMULS = [
    (5, 7, 3, ()),
    (130, 72, 40, ()),
    (64, 64, 64, (2,)),
    (17, 129, 65, (3,)),
    (600, 520, 33, ()),
    (1, 300, 700, ()),
    (70, 2, 600, (2,)),
]


@pytest.mark.parametrize(
    "sizes, dtype",
    spread(MATMULS, NEAR, 3, ALL_PAIRS),
    ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v)),
)
def test_matmul(sizes, dtype):
    """Both tiles, whole chunks and broken ones, few lines, all four ways to lie in memory.

    H05: CUDA C backend
    """
    m, n, k, batch = sizes
    for a, b in itertools.product((False, True), repeat=2):
        x, y = _tensors(dtype, batch + ((k, m) if a else (m, k)), batch + ((n, k) if b else (k, n)))
        wide = [v.asnumpy().astype(np.float64) for v in (x, y)]
        want = (wide[0].swapaxes(-1, -2) if a else wide[0]) @ (
            wide[1].swapaxes(-1, -2) if b else wide[1]
        )
        got = OPS["matmul"](x.move_to(DEVICE), y.move_to(DEVICE), a, b).asnumpy().astype(np.float64)
        assert np.abs(got - want).max() <= NEAR[dtype] * np.abs(want).max(), (a, b)


@pytest.mark.skipif(DEVICE == "CUDA-emulated", reason="it would take minutes")
@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("m, n, k", [(1000, 1001, 777), (1024, 8192, 2001), (3001, 768, 512)])
def test_large_matmul_with_odd_lines(m, n, k, dtype):
    """cuBLASLt gets copies with aligned lines."""
    for a, b in itertools.product((False, True), repeat=2):
        x, y = _tensors(dtype, (k, m) if a else (m, k), (n, k) if b else (k, n))
        wide = [v.asnumpy().astype(np.float32) for v in (x, y)]
        want = (wide[0].T if a else wide[0]) @ (wide[1].T if b else wide[1])
        got = OPS["matmul"](x.move_to(DEVICE), y.move_to(DEVICE), a, b).asnumpy().astype(np.float32)
        assert np.abs(got - want).max() <= NEAR[dtype] * np.abs(want).max(), (a, b)


def test_matmul_in_tf32(monkeypatch):
    """Off unless asked for; 10 bits of the mantissa are left when it is."""
    x, y = (v.move_to(DEVICE) for v in _tensors("float32", (67, 41), (41, 53)))
    want = x.asnumpy().astype(np.float64) @ y.asnumpy().astype(np.float64)
    exact = np.abs(OPS["matmul"](x, y, False, False).asnumpy() - want).max()
    monkeypatch.setenv("DUOGRAPH_CUDA_TF32", "1")
    OPS["matmul"].forget_calls()  # what is prepared stays as it was prepared
    x, y = (v.move_to(DEVICE) for v in _tensors("float32", (67, 41), (41, 53)))
    rounded = np.abs(OPS["matmul"](x, y, False, False).asnumpy() - want).max()
    OPS["matmul"].forget_calls()
    assert exact < 2e-5 < rounded < 2e-2


@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F800001, 0x7F800000])
def test_nan_and_infinity_in_tf32(bits, monkeypatch):
    """GPUs compute the NaN 0x7fffffff, which must not round up to zero."""
    monkeypatch.setenv("DUOGRAPH_CUDA_TF32", "1")
    OPS["matmul"].forget_calls()
    x, y = np.ones((67, 41), np.float32), np.ones((41, 53), np.float32)
    x.view(np.uint32)[5, 7] = y.view(np.uint32)[3, 50] = bits
    x, y = (ms.Tensor(v).move_to(DEVICE) for v in (x, y))
    got = OPS["matmul"](x, y, False, False).asnumpy()
    OPS["matmul"].forget_calls()
    special = np.zeros((67, 53), bool)
    special[5, :] = special[:, 50] = True
    assert (np.isinf if bits == 0x7F800000 else np.isnan)(got[special]).all()
    assert (got[~special] == 41).all()


@pytest.mark.parametrize(
    "case, dtype", spread(CONVOLUTIONS, [*NEAR, "float32 as TF32"], 4, ALL_PAIRS)
)
def test_convolutions(case, dtype, monkeypatch):
    """Operands that are computed where a tile is read: odd sizes, tiles that are not full, images
    that share one.
    """
    near = NEAR.get(dtype, 4e-3)
    names = ("conv", "conv_input_grad", "conv_weight_grad")
    if dtype not in NEAR:
        monkeypatch.setenv("DUOGRAPH_CUDA_TF32", "1")
        for name in names:
            OPS[name].forget_calls()  # what is prepared stays as it was prepared
        dtype = "float32"
    images, channels, size, filters, kernel, stride, padding, dilation, groups = CONVOLUTIONS[case]
    window = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x_shape, w_shape = (images, channels, *size), (filters, channels // groups, *kernel)
    x, w = _tensors(dtype, x_shape, w_shape)
    (dout,) = _tensors(dtype, OPS["conv"](x, w, **window).shape)
    _compare("conv", (x, w), window, near)
    _compare("conv_input_grad", (dout, w), {"input_shape": x_shape, **window}, near)
    _compare("conv_weight_grad", (x, dout), {"weight_shape": w_shape, **window}, near)
    for name in names:
        OPS[name].forget_calls()


# parts of a warp, warps, blocks of all sizes, pages; lengths that are a multiple of a vector or not
ROWS = [
    (3, 1), (3, 5), (21, 8), (9, 40), (7, 64), (5, 130), (5, 768), (5, 1024), (5, 1025), (2, 2048),
    (3, 3001), (2, 8192), (2, 9001), (2, 32768), (2, 33000), (2, 50257),
]  # fmt: skip


@pytest.mark.parametrize("shape, dtype", spread(ROWS, NEAR, 8 if ALL_PAIRS else 4))
def test_softmax_of_rows(shape, dtype):
    """The last block has rows that are not there."""
    near = NEAR[dtype]
    x, dout = _tensors(dtype, shape, shape)
    for name in ("softmax", "log_softmax"):
        _compare(name, (x,), {"axis": 1}, near)
        _compare(f"{name}_grad", (OPS[name](x, axis=1), dout), {"axis": 1}, near)


@pytest.mark.parametrize(
    "shape, dtype", spread([*ROWS, (130, 33), (300, 768)], NEAR, 9 if ALL_PAIRS else 4)
)
def test_layer_norm(shape, dtype):
    x, dout, gamma, beta = _tensors(dtype, shape, shape, shape[1:], shape[1:])
    near = NEAR[dtype]
    _compare("layer_norm_core", (x, gamma, beta), {"axis": 1, "eps": 1e-5}, near)
    _, mean, rstd = OPS["layer_norm_core"](x, gamma, beta, axis=1, eps=1e-5)
    _compare("layer_norm_grad", (x, gamma, mean, rstd, dout), {"axis": 1}, 4 * near)


@pytest.mark.parametrize("shape", [(5, 768), (6, 1025), (2, 9001)])
@pytest.mark.parametrize("dtypes", [("bfloat16", "float32"), ("float32", "float16")])
def test_layer_norm_of_two_dtypes(shape, dtypes):
    (x, dout), (gamma, beta) = (
        _tensors(dtypes[0], shape, shape),
        _tensors(dtypes[1], shape[1:], shape[1:]),
    )
    near = NEAR["bfloat16" if "bfloat16" in dtypes else "float16"]
    _compare("layer_norm_core", (x, gamma, beta), {"axis": 1, "eps": 1e-5}, near)
    _, mean, rstd = OPS["layer_norm_core"](x, gamma, beta, axis=1, eps=1e-5)
    _compare("layer_norm_grad", (x, gamma, mean, rstd, dout), {"axis": 1}, 4 * near)


@pytest.mark.parametrize("n", [3, 1024, 40000])
def test_softmax_of_infinities(n):
    """The special elements are the first, or the last, of a row."""
    rows = np.zeros((8, n), np.float32)
    rows[:, :3] = [[-np.inf, 1, 2], [np.inf, 1, 2], [-np.inf] * 3, [np.nan, 1, 2]] * 2
    rows[4:] = rows[4:, ::-1]
    rows[2] = -np.inf
    with np.errstate(all="ignore"):
        want = np.exp(rows - rows.max(1, keepdims=True))
        want /= want.sum(1, keepdims=True)
    got = ms.ops.softmax(ms.Tensor(rows, device=DEVICE), axis=1).asnumpy()
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("most", [0, 1000], ids=["columns", "chains"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "bool"])
def test_scatter_add_is_deterministic(dtype, most, monkeypatch):
    monkeypatch.setattr(indexing, "MANY_INDICES", most)
    OPS["scatter_add"].forget_calls()  # what is prepared stays as it was prepared
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, (7, 3)) if dtype == "bool" else rng.normal(size=(7, 3)) * 8
    indices = rng.integers(-7, 7, 200)
    updates = rng.normal(size=(200, 3)) * 8
    tensors = [ms.Tensor(x.astype(dtype)), ms.Tensor(indices), ms.Tensor(updates.astype(dtype))]
    results = [
        OPS["scatter_add"](*[t.move_to(device) for t in tensors], axis=0).asnumpy()
        for device in ("CPU", DEVICE, DEVICE)
    ]
    np.testing.assert_array_equal(results[1], results[2])
    np.testing.assert_allclose(
        results[0].astype(np.float64),
        results[1].astype(np.float64),
        rtol=2e-2 if dtype == "float16" else 1e-5,
        atol=0.1 if dtype == "float16" else 0,
    )


# images, size, kernel, stride, padding, dilation
POOLS = {
    "3x3 by 2": ((2, 3), (12, 13), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    "overlapping": ((1, 2), (40, 70), (5, 3), (1, 1), ((2, 2), (0, 1)), (1, 1)),
    "apart": ((2, 2), (17, 19), (3, 2), (1, 3), ((1, 0), (0, 1)), (2, 3)),
    "gaps": ((2, 2), (17, 19), (2, 2), (5, 4), ((0, 0), (0, 0)), (1, 1)),
    "line": ((3, 4), (301,), (7,), (3,), ((3, 3),), (1,)),
    "volume": ((1, 2), (5, 6, 7), (2, 3, 2), (2, 1, 2), ((0, 1), (1, 1), (0, 0)), (1, 2, 1)),
    "no images": ((0, 2), (6, 6), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
}


@pytest.mark.parametrize("case, dtype", spread(POOLS, [*NEAR, "int32", "int8"], 2))
def test_gradients_of_pooling(case, dtype):
    planes, size, kernel, stride, padding, dilation = POOLS[case]
    window = {"kernel": kernel, "stride": stride, "padding": padding}
    shape = (*planes, *size)
    x = ms.Tensor(np.random.default_rng(3).integers(-9, 9, shape), getattr(ms, dtype), device="CPU")
    values, indices = OPS["max_pool"](x, dilation=dilation, **window)
    given = {"input_shape": shape, **window}
    _compare("max_pool", (x,), {"dilation": dilation, **window}, 0)
    _compare("max_pool_grad", (values, indices), {"dilation": dilation, **given}, 0)
    if dtype in NEAR:
        for include, divisor in ((True, 0), (False, 0), (True, 3)):
            more = {"count_include_pad": include, "divisor": divisor}
            (dout,) = _tensors(dtype, OPS["avg_pool"](x, **window, **more).shape)
            _compare("avg_pool_grad", (dout,), {**given, **more}, NEAR[dtype])


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize(
    "shape",
    [
        (5, 3), (2, 3, 7, 7), (2, 3, 16, 16), (64, 3, 49), (3, 2, 96, 96), (70, 1, 16, 24),
        (1, 400), (300, 8), (3000, 24), (2100, 72), (700, 33), (9, 264), (20000, 1),
        (5000, 2, 1, 1),
    ],
)  # fmt: skip
def test_sums_over_channels(shape, dtype):
    """Vectors and single elements, one part of a channel and several, channels as columns."""
    x, dout = _tensors(dtype, shape, shape)
    x = x + 30  # the variance is small beside the square of the mean
    _compare("batch_moments", (x,), {}, 2e-5)
    mean, _ = OPS["batch_moments"](x)
    _compare("batch_products", (dout, x, mean), {}, 2e-5)
    gamma, beta = _tensors("float32", shape[1:2], shape[1:2])
    if x.size == shape[1]:
        return  # the variance of one element is 0, and the CPU's rounding counts
    _compare("batch_norm_train", (x, gamma, beta), {"eps": 1e-5}, max(NEAR[dtype], 1e-4))
    _, mean, variance = OPS["batch_norm_train"](x, gamma, beta, eps=1e-5)
    operands = (x, gamma, mean, variance, dout)
    _compare("batch_norm_grad", operands, {"eps": 1e-5}, max(NEAR[dtype], 1e-4))
    for name, given in (("batch_norm_train", (x, gamma, beta)), ("batch_norm_grad", operands)):
        op, there = OPS[name], [v.move_to(DEVICE) for v in given]
        for level in ("O0", "O1"):
            compiled = ms.jit(lambda *v, op=op: op(*v, eps=1e-5), jit_level=level)(*there)
            for one, other in zip(op(*there, eps=1e-5), compiled, strict=True):
                one, other = (v.asnumpy().view(f"u{v.itemsize}") for v in (one, other))
                np.testing.assert_array_equal(one, other, f"{name} {level}")


@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (128, 3)])
def test_sums_over_channels_of_nan(shape):
    x = np.ones(shape, np.float32)
    x[(0,) * len(shape)], x[1, 1, ...] = np.nan, np.inf
    mean, variance = OPS["batch_moments"](ms.Tensor(x, device=DEVICE))
    assert np.isnan(mean.asnumpy()).tolist() == [True, False, False]
    assert np.isnan(variance.asnumpy()).tolist() == [True, True, False]


REALS = ["float32", "float16", "bfloat16", "float64", "int8", "int32", "int64", "uint8", "bool"]


@pytest.mark.parametrize(
    "shape, axis, dtype, descending",
    [
        *[((2, 300, 2), 1, dtype, dtype < "g") for dtype in REALS],
        *[((2, 5000), 1, dtype, dtype > "g") for dtype in REALS],
        ((3, 5), 1, "float32", True),
        ((3000, 2), 0, "float32", False),
        ((9000, 2), 0, "float32", True),
    ],
)
def test_sort(shape, axis, dtype, descending):
    """Equal elements keep their order, -0 equals 0, NaN comes last: in one block, and in tiles."""
    rng = np.random.default_rng(7)
    x = rng.integers(-40, 40, shape).astype(np.float64)
    if dtype.startswith(("float", "bfloat")):
        x = np.where(rng.integers(0, 9, shape) == 0, np.nan, x)
        x = np.where(rng.integers(0, 9, shape) == 0, -0.0, x)
        x[0, :2] = np.inf, -np.inf
    elif dtype[0] in "ub":
        x = np.abs(x)
    tensor = ms.Tensor(x, ms.float64, device="CPU").astype(getattr(ms, dtype))
    for name, attributes in (
        ("sort", {"descending": descending}),
        ("topk", {"k": 2, "largest": descending}),
    ):
        here = OPS[name](tensor, axis=axis, **attributes)
        there = OPS[name](tensor.move_to(DEVICE), axis=axis, **attributes)
        for values in zip(here, there, strict=True):
            want, got = (v.asnumpy() for v in values)
            exact = np.float64 if want.dtype.itemsize == 2 else want.dtype
            np.testing.assert_array_equal(want.astype(exact), got.astype(exact))


# shape, axis, tokens; indices of one row, of every row, and out of the order of rows
SCATTERS = [((7, 3), 0, 200), ((50, 8), 0, 5000), ((2, 300, 5), 1, 4097), ((1, 1), 0, 100)]


@pytest.mark.parametrize(
    "case, dtype",
    spread(SCATTERS, ["float32", "bfloat16", "float64", "int8", "int64", "bool"], 2),
)
@pytest.mark.parametrize("kind", ["any", "one", "few"])
def test_scatter_add_by_sorted_indices(case, dtype, kind):
    """Rows whose indices lie in one part of the sorted indices, and in many."""
    shape, axis, tokens = case
    rng = np.random.default_rng(9)
    n = shape[axis]
    indices = {
        "any": rng.integers(-n, n, tokens),
        "one": np.full(tokens, n - 1),
        "few": rng.integers(0, 2, tokens) * (n - 1),
    }[kind]
    updates = (*shape[:axis], tokens, *shape[axis + 1 :])
    x, u = (
        ms.Tensor(rng.integers(0, 3, s), getattr(ms, dtype), device="CPU") for s in (shape, updates)
    )
    i = ms.Tensor(indices, ms.int64, device="CPU")
    if dtype == "bfloat16":  # the CPU rounds each sum
        want = np.moveaxis(x.asnumpy().astype(np.float64), axis, 0).copy()
        np.add.at(want, indices, np.moveaxis(u.asnumpy().astype(np.float64), axis, 0))
        got = OPS["scatter_add"](*[t.move_to(DEVICE) for t in (x, i, u)], axis=axis)
        got = np.moveaxis(got.asnumpy().astype(np.float64), axis, 0)
        np.testing.assert_allclose(got, want, rtol=4e-3)
    else:
        _compare("scatter_add", (x, i, u), {"axis": axis}, 0)


LINES = [
    ((3, 5), 1),
    ((2, 2500), 1),
    ((1, 30001), 1),
    ((1, 40000), 1),
    ((2, 700, 3), 1),
    ((900, 2), 0),
]


def _reals(shape, dtype, special):
    """Small integers, so that sums are exact and equal elements meet."""
    x = np.random.default_rng(11).integers(-3, 4, shape).astype(np.float64)
    if dtype.startswith(("float", "bfloat")) and special:
        x.flat[x.size // 3 :: 977] = np.nan
    elif dtype[0] in "ub":
        x = np.abs(x)
    return ms.Tensor(x, ms.float64, device="CPU").astype(getattr(ms, dtype))


# lines that are read 16 bytes at a time, in a warp and in a block
WIDE_LINES = [((3, 272), 1), ((2, 2064), 1)]
WIDE = [(case, dtype) for case in WIDE_LINES for dtype in ("float32", "bfloat16", "int8", "int64")]


@pytest.mark.parametrize("case, dtype", [*spread(LINES, REALS, 2), *WIDE])
def test_extremes(case, dtype):
    """Warps, blocks and threads; lines in one part and in several."""
    shape, axis = case
    for special in (False, True):
        x = _reals(shape, dtype, special)
        for name in ("argmax", "argmin"):
            _compare(name, (x,), {"axis": axis}, 0)


@pytest.mark.parametrize("case, dtype", spread(LINES, REALS[:-1]))
def test_scans(case, dtype):
    shape, axis = case
    x = _reals(shape, dtype, False)
    for exclusive, reverse in ((False, False), (True, dtype == "float32"), (False, True)):
        _compare("cumsum", (x,), {"axis": axis, "exclusive": exclusive, "reverse": reverse}, 0)
    ones = OPS["cast"](OPS["equal"](x, x), x.dtype)
    _compare("cumprod", (ones,), {"axis": axis, "exclusive": True, "reverse": False}, 0)
    for special in (False, dtype.startswith("float")):
        x = _reals(shape, dtype, special)
        for name in ("cummax", "cummin"):
            here, there = (OPS[name](v, axis=axis) for v in (x, x.move_to(DEVICE)))
            for values in zip(here, there, strict=True):
                want, got = (v.asnumpy().astype(np.float64) for v in values)
                np.testing.assert_array_equal(want, got)


@pytest.mark.parametrize(
    "case, dtype",
    spread(
        [((2, 50), 1, 700), ((30, 3), 0, 20), ((1,), 0, 90)],
        ["float32", "bfloat16", "int32", "bool"],
    ),
)
def test_scatter_of_elements(case, dtype):
    """The last of equal indices is set; equal indices are added in parts."""
    shape, axis, chosen = case
    rng = np.random.default_rng(13)
    many = (*shape[:axis], chosen, *shape[axis + 1 :])
    indices = ms.Tensor(rng.integers(-shape[axis], shape[axis], many), ms.int64, device="CPU")
    x, u = (
        ms.Tensor(rng.integers(0, 2, s), getattr(ms, dtype), device="CPU") for s in (shape, many)
    )
    for name in ("scatter_elements_set", "scatter_elements_add"):
        _compare(name, (x, indices, u), {"axis": axis}, 0)
