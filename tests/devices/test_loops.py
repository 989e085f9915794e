"""Tests of fused gathers, scatters and column reductions on every device: E06, F05.

Generated loops have the bits of the kernels except for sums, which are as accurate as those of the
kernels. `explain` checks that each program is one region.
"""

import duograph as ms
import numpy as np
import pytest
from amount import spread
from devices import device  # noqa: F401 (a fixture)
from duograph import ops
from duograph.ops.gather_scatter import scatter_add_by, scatter_set_by

RNG = np.random.default_rng(11)
FLOATS = ["float32", "float16", "float64"]


def values(dtype, *shape):
    found = RNG.uniform(-3, 3, shape)
    return ms.Tensor((found * 9 if np.dtype(dtype).kind in "iu" else found).astype(dtype))


def indices(n, *shape, dtype=np.int32):
    return ms.Tensor(RNG.integers(-n, n, shape).astype(dtype))


def both(function, *operands, regions=1, kinds=()):
    """Return the results of levels O0 and O1; check the number and kinds of the regions of O1."""
    found = []
    for level in ("O0", "O1"):
        call = ms.jit(function, jit_level=level)
        out = call(*operands)
        found.append([r.asnumpy() for r in (out if isinstance(out, tuple) else (out,))])
    said = call.explain(*operands).kernels[0]
    ending = "s" * (regions != 1)
    assert said.startswith(f"{regions} fused region{ending}, {regions} kernel{ending}")
    assert all(words in said for words in kinds)
    return found


# ---- gathers -------------------------------------------------------------------------------------


def softmax(x):
    e = ops.exp(x - ops.amax(x, -1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


GATHERS = {
    "rows of a table": (lambda t, i, y: ops.gather(t, i, 0) * 2 + y, (50, 64), (4, 6), 0, (6, 64)),
    "numbers of a vector": (lambda t, i, y: ops.gather(t, i, 0) * y + 1, (50,), (4, 6), 0, (4, 6)),
    "along the last axis": (lambda t, i, y: ops.gather(t, i, 1) * y + 1, (3, 50), (70,), 1, (70,)),
    "along a middle axis": (
        lambda t, i, y: ops.gather(t, i, 1) + y * 2,
        (3, 50, 64),
        (5,),
        1,
        (3, 1, 64),
    ),
    "one index": (lambda t, i, y: ops.gather(t, i, 0) * y + 1, (50, 64), (), 0, (64,)),
    "one row in all": (lambda t, i, y: ops.gather(t, i, 0) * y + 1, (1, 64), (7,), 0, (7, 64)),
    "elements along the last axis": (
        lambda t, i, y: ops.gather_elements(t, 1, i) * y - 1,
        (9, 50),
        (9, 70),
        1,
        (9, 70),
    ),
    "fewer elements along another axis": (
        lambda t, i, y: ops.gather_elements(t, 0, i) * y - 1,
        (50, 90),
        (7, 80),
        0,
        (7, 80),
    ),
    "one element of each row": (
        lambda t, i, y: ops.gather_elements(t, 1, i) * y - 1,
        (9, 50),
        (9, 1),
        1,
        (9, 1),
    ),
    "spread over others": (
        lambda t, i, y: y * 2 + ops.gather(t, i, 0),
        (50, 64),
        (6,),
        0,
        (4, 6, 64),
    ),
    "reshaped": (
        lambda t, i, y: ops.gather(t, i, 0).reshape(-1) * 2 + y,
        (50, 64),
        (6,),
        0,
        (384,),
    ),
}


@pytest.mark.parametrize("name, dtype", spread(GATHERS, [*FLOATS, "int32"], 4))
def test_gathers_have_the_bits_of_the_kernels(device, name, dtype):
    function, shape, index_shape, axis, other = GATHERS[name]
    kind = np.int64 if dtype in ("float32", "int32") else np.int32
    operands = (
        values(dtype, *shape),
        indices(shape[axis], *index_shape, dtype=kind),
        values(dtype, *other),
    )
    want, found = both(function, *operands, kinds=["1 read through indices"])
    np.testing.assert_array_equal(want[0], found[0])


def test_nan_and_infinity_propagate(device):
    table = np.arange(128, dtype=np.float32).reshape(2, 64)
    table[0, :3] = np.nan, np.inf, -np.inf
    want, found = both(
        lambda t, i: (ops.gather(t, i, 0) * 2, ops.relu(ops.gather(t, i, 0))),
        ms.Tensor(table), ms.Tensor(np.array([0, -1, -2], np.int32)),
    )  # fmt: skip
    for a, b in zip(want, found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isnan(found[0][0, 0])


ROWS = {
    "a row's softmax": lambda t, i: softmax(ops.gather(t, i, 0)),
    "a sum over what was taken": lambda t, i: ops.gather(t, i, 0).sum(-1) * 2,
    "a value for each row": lambda t, i: (
        (ops.gather(t, i, 0) + 1).sum(-1, keepdims=True) * ops.gather(t, i, 0)
    ),
    "taken and given": lambda t, i: (ops.gather(t, i, 0), ops.exp(ops.gather(t, i, 0)) + 1),
}


@pytest.mark.parametrize("name", ROWS)
def test_gathers_in_rows(device, name):
    want, found = both(ROWS[name], values("float32", 50, 64), indices(50, 70))
    for a, b in zip(want, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_gradients_of_gathers(device):
    def loss(t, p, i):
        return (ops.gather(t, i, 0) * ops.gather(p, i, 0) + 1).sum()

    operands = values("float32", 50, 64), values("float32", 50, 64), indices(50, 4, 6)
    want = ms.grad(loss, (0, 1))(*operands)
    found = ms.jit(lambda *xs: ms.grad(loss, (0, 1))(*xs), jit_level="O1")(*operands)
    for a, b in zip(want, found, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-5, atol=2e-5)


def two_tables(t, i, p, j):
    return ops.gather(t, i, 0) * 2 + ops.gather(p, j, 1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    "place, at, value, words",
    [
        (1, 0, 50, "index 50 is out of range for axis 0 of size 50; wanted -50 to 49"),
        (1, 5, -51, "index -51 is out of range for axis 0 of size 50; wanted -50 to 49"),
        (3, 63, 90, "index 90 is out of range for axis 1 of size 90; wanted -90 to 89"),
        (
            3,
            0,
            2**31 - 1,
            "index 2147483647 is out of range for axis 1 of size 90; wanted -90 to 89",
        ),
        (
            3,
            0,
            -(2**31),
            "index -2147483648 is out of range for axis 1 of size 90; wanted -90 to 89",
        ),
    ],
)
@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_a_wrong_index_raises_as_the_kernel_does(device, level, place, at, value, words, dtype):
    operands = [
        values("float32", 50, 64),
        indices(50, 6, dtype=dtype),
        values("float32", 6, 90),
        indices(90, 64),
    ]
    call = ms.jit(two_tables, jit_level=level)
    want = call(*operands).asnumpy()
    wrong = operands[place].asnumpy().astype(dtype)
    wrong[at] = value
    bad = list(operands)
    bad[place] = ms.Tensor(wrong)
    with pytest.raises(IndexError, match=f"gather: {words}"):
        call(*bad).asnumpy()
    np.testing.assert_array_equal(
        call(*operands).asnumpy(), want
    )  # said once, and nothing else was changed


APART = {
    "an empty result": (lambda t, i: ops.exp(ops.gather(t, i, 0)) + 1, (5, 64), (0,)),
    "short runs": (lambda t, i: ops.gather(t, i, 0) * 2, (50, 8), (70,)),
    "what waits for its own columns": (
        lambda t, i: (t * 2 - ops.mean(t, 0)).sum(0),
        (50, 64),
        (1,),
    ),
    "what the program computes": (lambda t, i: ops.gather(ops.exp(t) + 1, i, 0) * 2, (5, 64), (9,)),
}


@pytest.mark.parametrize("name", APART)
def test_what_stays_apart(device, name):
    function, shape, index_shape = APART[name]
    operands = values("float32", *shape), indices(shape[0], *index_shape)
    want, found = (ms.jit(function, jit_level=level)(*operands).asnumpy() for level in ("O0", "O1"))
    np.testing.assert_allclose(want, found, rtol=1e-5, atol=1e-4)


# ---- columns
# ---------------------------------------------------------------------------------------


def relu_grad(x, d):
    g = ops.select(x > 0, d, ops.zeros_like(d)) * 2
    return g, g.sum(0)


def several_sums(x, d):
    return (x * d).sum(0), d.sum(0), ops.amax(x * d, 0)


def two_sums(x, d):
    return (x * d).sum(0), (d + x).sum(0), ops.amax(x * d, 0)


COLUMNS = {
    "a result and its columns": (relu_grad, (300, 40)),
    "several columns": (several_sums, (300, 40)),
    "columns of two values": (two_sums, (300, 40)),
    "many rows of few columns": (relu_grad, (9000, 16)),
    "more columns than a tile": (relu_grad, (70, 1300)),
    "few rows of many columns": (two_sums, (2, 5000)),
    "two leading axes": (lambda x, d: (x * d).sum((0, 1)), (9, 31, 24)),
    "a middle axis": (lambda x, d: (x * d).sum(1), (5, 200, 24)),
    "two middle axes": (lambda x, d: (x * d).sum((1, 2), keepdims=True), (3, 20, 10, 24)),
    "a mean": (lambda x, d: ops.mean(x * d, 0), (300, 40)),
    "what is spread over rows": (lambda x, d: ((x - x[:, :1]) * d[0]).sum(0), (300, 40)),
}  # fmt: skip
NEAR = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-14, "int32": 0}


@pytest.mark.parametrize("name, dtype", spread(COLUMNS, [*FLOATS, "int32"], 4))
def test_columns(device, name, dtype):
    function, shape = COLUMNS[name]
    if dtype == "int32" and name == "a mean":
        pytest.skip("a mean of integers is refused")
    operands = values(dtype, *shape), values(dtype, *shape)
    # a mean of float16 is rounded after it was divided
    regions = 2 if (name, dtype) == ("a mean", "float16") else 1
    want, found = both(function, *operands, regions=regions, kinds=["1 end in sums of columns"])
    for a, b in zip(want, found, strict=True):
        if a.shape == shape:  # computed element by element
            np.testing.assert_array_equal(a, b)
            continue
        near = NEAR[dtype] * (np.abs(a.astype(np.float64)) + 30 * np.sqrt(np.prod(shape) / a.size))
        assert (np.abs(a.astype(np.float64) - b) <= near).all()


def test_column_reductions_propagate_nan(device):
    x = np.ones((300, 40), np.float32)
    x[7, 3], x[8, 4], x[9, 5], x[10, 5] = np.nan, np.inf, np.inf, -np.inf
    want, found = both(lambda x: ((x * 2).sum(0), ops.amax(x * 2, 0)), ms.Tensor(x))
    for a, b in zip(want, found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isnan(found[0][[3, 5]]).all()
    assert np.isnan(found[1][3])
    assert found[1][4] == np.inf


def test_columns_of_what_an_index_takes(device):
    def function(t, i):
        x = ops.gather(t, i, 0) * 2
        return x, x.sum(0)

    want, found = both(function, values("float32", 50, 64), indices(50, 300))
    np.testing.assert_array_equal(want[0], found[0])
    np.testing.assert_allclose(want[1], found[1], rtol=1e-5, atol=1e-4)
    call = ms.jit(function, jit_level="O1")
    # of two wrong indices, parts of a column may find either first
    with pytest.raises(IndexError, match=r"gather: index (50|-51) is out of range for axis 0 of"):
        call(values("float32", 50, 64), ms.Tensor(np.array([1, 50, -51] * 100)))[1].asnumpy()


def test_sums_are_as_exact_as_the_kernels(device):
    """A long column of one sign, where an order that adds one by one would lose digits."""
    x = RNG.uniform(0.5, 1.5, (200_000, 16)).astype(np.float32)
    want, found = both(lambda x: (x * 1.5).sum(0), ms.Tensor(x))
    true = (x.astype(np.float64) * 1.5).sum(0)
    worst = [np.abs(r[0] - true).max() / true.max() for r in (want, found)]
    assert worst[1] <= max(4 * worst[0], 1e-5)


def test_calls_are_reproducible(device):
    operands = values("float32", 9000, 70), values("float32", 9000, 70)
    call = ms.jit(relu_grad, jit_level="O1")
    first = [r.asnumpy() for r in call(*operands)]
    for _ in range(3):
        for a, b in zip(first, call(*operands), strict=True):
            np.testing.assert_array_equal(a, b.asnumpy())


# ---- scatters
# --------------------------------------------------------------------------------------


SCATTERS = {
    "an embedding's gradient": (
        lambda x, i, u: scatter_add_by(ops.zeros((50, 64), u.dtype), i, u * 2 + 1, 0),
        (50, 64),
        (4, 70),
        0,
    ),
    "into zeros alone": (
        lambda x, i, u: scatter_add_by(ops.zeros((50, 64), u.dtype), i, u, 0),
        (50, 64),
        (70,),
        0,
    ),
    "into a number": (
        lambda x, i, u: scatter_add_by(ops.full((50, 64), 3, dtype=u.dtype), i, -u, 0),
        (50, 64),
        (7,),
        0,
    ),
    "into a tensor": (lambda x, i, u: scatter_add_by(x, i, u * 2, 0), (50, 64), (70,), 0),
    "more columns than a tile": (
        lambda x, i, u: scatter_add_by(x, i, u * 2, 0),
        (50, 300),
        (70,),
        0,
    ),
    "along a middle axis": (lambda x, i, u: scatter_add_by(x, i, u * 2, 1), (3, 50, 64), (70,), 1),
    "rows that are replaced": (lambda x, i, u: scatter_set_by(x, i, u * 2, 0), (50, 64), (70,), 0),
    "what is given too": (
        lambda x, i, u: (scatter_set_by(x, i, ops.relu(u) * 2, 1), ops.relu(u)),
        (3, 50, 64),
        (70,),
        1,
    ),
    "one index": (lambda x, i, u: scatter_add_by(x, i, u * 2, 0), (50, 64), (), 0),
    "all into one row": (lambda x, i, u: scatter_add_by(x, i, u * 2, 0), (1, 64), (70,), 0),
    "of what an index took": (
        lambda x, i, u: scatter_add_by(x, i, ops.gather(x, i, 0) * 2, 0),
        (50, 64),
        (70,),
        0,
    ),
}


def updated(shape, index_shape, axis):
    return (*shape[:axis], *index_shape, *shape[axis + 1 :])


@pytest.mark.parametrize(
    "name, dtype",
    [*spread(SCATTERS, [*FLOATS, "int32", "int64"], 3), ("into zeros alone", "bool")],
)
def test_scatters_have_the_bits_of_the_kernels(device, name, dtype):
    """Equal indices meet in their order, on any number of threads."""
    function, shape, index_shape, axis = SCATTERS[name]
    kind = np.int64 if dtype in ("float32", "int32") else np.int32
    operands = (
        values(dtype, *shape), indices(shape[axis], *index_shape, dtype=kind),
        values(dtype, *updated(shape, index_shape, axis)),
    )  # fmt: skip
    want, found = both(function, *operands, kinds=["1 end in scatters"])
    for a, b in zip(want, found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("wrong", [50, -51, 2**31 - 1, -(2**31)])
def test_a_wrong_index_of_a_scatter(device, level, wrong):
    x, u = values("float32", 50, 64), values("float32", 70, 64)
    good = RNG.integers(-50, 50, 70).astype(np.int32)
    call = ms.jit(lambda x, i, u: scatter_add_by(x, i, u * 2, 0), jit_level=level)
    want = call(x, ms.Tensor(good), u).asnumpy()
    kept = x.asnumpy().copy()
    bad = good.copy()
    bad[[31, 69]] = wrong
    with pytest.raises(
        IndexError, match=f"scatter_add: index {wrong} is out of range for axis 0 of size 50"
    ):
        call(x, ms.Tensor(bad), u).asnumpy()
    np.testing.assert_array_equal(x.asnumpy(), kept)
    np.testing.assert_array_equal(call(x, ms.Tensor(good), u).asnumpy(), want)


def test_scatter_waits_for_its_operand(device):
    """A scatter whose target depends on values of a region is not fused into that region."""

    def function(x, i):
        y = ops.exp(x) + 1
        z = ops.matmul(y, y)
        return scatter_add_by(z, i, y * 2, 0)

    operands = values("float32", 64, 64), ms.Tensor(np.arange(64, dtype=np.int32)[::-1].copy())
    want, found = (ms.jit(function, jit_level=level)(*operands).asnumpy() for level in ("O0", "O1"))
    np.testing.assert_allclose(want, found, rtol=1e-5)


def test_embedding_trains_equally(device):
    def loss(table, i, w):
        return (ops.gather(table, i, 0) * w).sum()

    operands = values("float32", 50, 64), indices(50, 4, 70), values("float32", 4, 70, 64)
    want = ms.grad(loss)(*operands).asnumpy()
    found = ms.jit(lambda *xs: ms.grad(loss)(*xs), jit_level="O1")(*operands).asnumpy()
    np.testing.assert_array_equal(want, found)
