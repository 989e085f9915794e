"""Matmuls and convolutions with fused epilogues: one region, one native call, the bits of O0."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops
from duograph.ops.channels_last import conv_channels_last

COMPILES = ms.backend.registry.backend("CPU").compiles(0) is None
needs_compiler = pytest.mark.skipif(not COMPILES, reason="this machine has no C compiler")


def conv(x, w, stride=1, padding=0, dilation=1, groups=1):
    return ops.conv2d(x, w, None, stride, "pad", padding, dilation, groups)


def last(x, w, stride=1, padding=0, dilation=1, groups=1):
    pads = ((padding, padding),) * 2
    return conv_channels_last(x, w, (stride, stride), pads, (dilation, dilation), groups)


def matmul(x, y):
    return ops.matmul(x, y)


def turned(x, y):
    return ops.matmul(x, ops.swapaxes(y, -1, -2))


# function, shapes of its operands, shape of its result
PRODUCTS = {
    "matmul": (matmul, (33, 40), (40, 70), (33, 70)),
    "matmul of one row": (matmul, (1, 50), (50, 37), (1, 37)),
    "matmul of two rows": (matmul, (2, 130), (130, 300), (2, 300)),
    "matmul of one column": (matmul, (45, 30), (30, 1), (45, 1)),
    "matmul of few columns": (matmul, (300, 20), (20, 5), (300, 5)),
    "matmul of one element": (matmul, (1, 1), (1, 1), (1, 1)),
    "matmul over nothing": (matmul, (4, 0), (0, 6), (4, 6)),
    "matmul turned": (turned, (3, 64), (200, 64), (3, 200)),
    "matmul turned, deep": (turned, (128, 800), (96, 800), (128, 96)),
    "matmul in blocks": (matmul, (300, 420), (420, 600), (300, 600)),
    "matmul in batches": (matmul, (3, 2, 17, 20), (2, 20, 33), (3, 2, 17, 33)),
    "matmul of many small": (matmul, (40, 5, 6), (40, 6, 7), (40, 5, 7)),
    "matmul of rows in a batch": (matmul, (2, 9, 20), (20, 33), (2, 9, 33)),
    "conv 1x1": (conv, (1, 24, 14, 14), (40, 24, 1, 1), (1, 40, 14, 14)),
    "conv 1x1 of a batch": (conv, (3, 24, 7, 7), (40, 24, 1, 1), (3, 40, 7, 7)),
    "conv 1x1 of points": (conv, (4, 64, 3, 3), (128, 64, 1, 1), (4, 128, 3, 3)),
    "conv 1x1 of points, few": (conv, (8, 32, 2, 2), (48, 32, 1, 1), (8, 48, 2, 2)),
    "conv 1x1 with steps": (
        lambda x, w: conv(x, w, stride=2),
        (1, 32, 15, 15),
        (100, 32, 1, 1),
        (1, 100, 8, 8),
    ),
    "conv 3x3": (
        lambda x, w: conv(x, w, padding=1),
        (2, 5, 19, 23),
        (11, 5, 3, 3),
        (2, 11, 19, 23),
    ),
    "conv 3x3 of small planes": (
        lambda x, w: conv(x, w, padding=1),
        (1, 40, 7, 7),
        (100, 40, 3, 3),
        (1, 100, 7, 7),
    ),
    "conv 3x3 of a batch of small planes": (
        lambda x, w: conv(x, w, padding=1),
        (5, 40, 7, 7),
        (100, 40, 3, 3),
        (5, 100, 7, 7),
    ),
    "conv 3x3 of many tiny planes": (
        lambda x, w: conv(x, w, padding=1),
        (30, 4, 5, 5),
        (9, 4, 3, 3),
        (30, 9, 5, 5),
    ),
    "conv 3x3 of tiles": (
        lambda x, w: conv(x, w, padding=1),
        (1, 48, 29, 31),
        (56, 48, 3, 3),
        (1, 56, 29, 31),
    ),
    "conv 3x3 of few tiles": (
        lambda x, w: conv(x, w, padding=1),
        (1, 64, 14, 15),
        (72, 64, 3, 3),
        (1, 72, 14, 15),
    ),
    "conv 3x3 of tiles of a batch": (
        lambda x, w: conv(x, w, padding=1),
        (5, 64, 7, 8),
        (64, 64, 3, 3),
        (5, 64, 7, 8),
    ),
    "conv 3x3 with steps": (
        lambda x, w: conv(x, w, padding=1, stride=2),
        (2, 6, 21, 17),
        (10, 6, 3, 3),
        (2, 10, 11, 9),
    ),
    "conv depthwise": (
        lambda x, w: conv(x, w, padding=1, groups=20),
        (2, 20, 13, 15),
        (20, 1, 3, 3),
        (2, 20, 13, 15),
    ),
    "conv depthwise with steps": (
        lambda x, w: conv(x, w, padding=1, stride=2, groups=20),
        (1, 20, 13, 15),
        (20, 1, 3, 3),
        (1, 20, 7, 8),
    ),
    "conv depthwise, 5x5 with holes": (
        lambda x, w: conv(x, w, padding=4, dilation=2, groups=6),
        (1, 6, 18, 16),
        (6, 1, 5, 5),
        (1, 6, 18, 16),
    ),
    "conv in groups": (
        lambda x, w: conv(x, w, padding=1, groups=2),
        (2, 24, 9, 11),
        (32, 12, 3, 3),
        (2, 32, 9, 11),
    ),
}

# The same with channels last, float32 only: as many as there are rows, see _channel.
LAST = {
    "last 1x1": (last, (1, 24, 31, 16), (24, 16, 1, 1), (1, 24, 31, 24)),
    "last 1x1 of few pixels": (last, (2, 100, 1, 70), (100, 70, 1, 1), (2, 100, 1, 100)),
    "last 1x1 of few pixels, many weights": (
        last,
        (1, 300, 1, 600),
        (300, 600, 1, 1),
        (1, 300, 1, 300),
    ),
    "last 1x1, crowded": (last, (1, 100, 3, 1024), (100, 1024, 1, 1), (1, 100, 3, 100)),
    "last 1x1 with steps": (
        lambda x, w: last(x, w, stride=2),
        (1, 79, 15, 32),
        (40, 32, 1, 1),
        (1, 40, 8, 40),
    ),
    "last 3x3": (
        lambda x, w: last(x, w, padding=1),
        (2, 11, 23, 5),
        (11, 5, 3, 3),
        (2, 11, 23, 11),
    ),
    "last 3x3 of tiles": (
        lambda x, w: last(x, w, padding=1),
        (1, 40, 29, 48),
        (40, 48, 3, 3),
        (1, 40, 29, 40),
    ),
    "last 3x3 of few tiles": (
        lambda x, w: last(x, w, padding=1),
        (2, 64, 2, 64),
        (64, 64, 3, 3),
        (2, 64, 2, 64),
    ),
    "last 3x3 with steps": (
        lambda x, w: last(x, w, padding=1, stride=2),
        (1, 40, 21, 30),
        (20, 30, 3, 3),
        (1, 20, 11, 20),
    ),
    "last 3x3 in groups": (
        lambda x, w: last(x, w, padding=1, groups=2),
        (2, 32, 9, 24),
        (32, 12, 3, 3),
        (2, 32, 9, 32),
    ),
    "last depthwise": (
        lambda x, w: last(x, w, padding=1, groups=20),
        (2, 20, 15, 20),
        (20, 1, 3, 3),
        (2, 20, 15, 20),
    ),
    "last depthwise with steps": (
        lambda x, w: last(x, w, padding=1, stride=2, groups=20),
        (1, 39, 5, 20),
        (20, 1, 3, 3),
        (1, 20, 3, 20),
    ),
}
PRODUCTS |= LAST


def _channel(shape):
    """Return the shape of an operand with one element for each channel, or column."""
    return (shape[1], 1, 1) if len(shape) == 4 and shape[-1] != shape[1] else shape[-1:]


# function of the product's value and other operands, and the shapes of these
EPILOGUES = {
    "one op": (lambda v: ops.neg(v), lambda s: []),
    "bias": (lambda v, b: v + b, lambda s: [_channel(s)]),
    "scale, shift and relu": (lambda v, a, b: ops.relu(v * a + b), lambda s: [_channel(s)] * 2),
    "scale, shift, residual and relu": (
        lambda v, a, b, r: ops.relu(v * a + b + r), lambda s: [_channel(s), _channel(s), s]),
    "scale and residual": (lambda v, a, r: r + v * a, lambda s: [_channel(s), s]),
    "shift and relu6": (lambda v, b: ops.relu6(v + b), lambda s: [_channel(s)]),
    "relu": (lambda v: ops.relu(v), lambda s: []),
    "bias, relu6 and residual": (lambda v, b, r: ops.relu6(v + b) + r, lambda s: [_channel(s), s]),
    "bias and gelu": (lambda v, b: ops.gelu(v + b, approximate="tanh"), lambda s: [_channel(s)]),
    "silu": (lambda v: v * ops.sigmoid(v), lambda s: []),
    "a reshape between": (lambda v, b: (v + b).reshape(-1) * 2, lambda s: [_channel(s)]),
    "two results": (lambda v, b: (v + b, ops.relu(v + b)), lambda s: [_channel(s)]),
    "another dtype": (lambda v, b: (v + b) > 0, lambda s: [_channel(s)]),
    "rows": (lambda v, r: v * r + 1, lambda s: [(*s[:-1], 1)]),
}  # fmt: skip

FLOATING = ["float64", "float16", "bfloat16"]
INTEGERS = [
    "matmul",
    "matmul of one row",
    "matmul over nothing",
    "matmul in batches",
    "matmul turned",
]
COMBINATIONS = [
    *[(product, epilogue, "float32", "O1") for product in PRODUCTS for epilogue in EPILOGUES],
    *[(product, "bias, relu6 and residual", "float32", "O2") for product in PRODUCTS],
    *[
        (p, epilogue, dtype, "O1")
        for p in PRODUCTS
        if p not in LAST
        for epilogue in ("bias", "another dtype")
        for dtype in FLOATING
    ],
    *[
        (p, epilogue, "int32", "O1")
        for p in INTEGERS
        for epilogue in ("one op", "two results", "another dtype")
    ],
]


def operands(shapes, dtype):
    rng = np.random.default_rng(5)
    kind = getattr(ms, dtype)
    return [Tensor(rng.uniform(-3, 3, s).astype(np.float32)).astype(kind) for s in shapes]


def parts(found):
    return found if isinstance(found, tuple) else (found,)


def compare(function, xs, level, near=0.0):
    """Check a function's results at `level` against those at O0; return its report of kernels.

    `near` is the tolerance; at 0 the bits must be equal.
    """
    want = parts(ms.jit(function, jit_level="O0")(*xs))
    compiled = ms.jit(function, jit_level=level)
    got = parts(compiled(*xs))
    for a, b in zip(want, got, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.float().asnumpy(), b.float().asnumpy(), rtol=near, atol=near)
    return compiled.explain(*xs).kernels


@needs_compiler
@pytest.mark.parametrize("product, epilogue, dtype, level", COMBINATIONS)
def test_fused_epilogue_has_the_bits_of_o0(product, epilogue, dtype, level):
    compute, a, b, out = PRODUCTS[product]
    follow, others = EPILOGUES[epilogue]
    xs = operands([a, b, *others(out)], dtype)
    # few rows of a transposed operand, whose transposition O0 does not fold, are summed in another
    # order
    near = 1e-5 if product == "matmul turned" and dtype == "float32" else 0.0
    kernels = compare(lambda x, y, *rest: follow(compute(x, y), *rest), xs, level, near)
    assert kernels[0] == "1 fused region, 1 kernel, 1 after a matmul or convolution", kernels
    assert not any("step by step" in line for line in kernels), kernels


@needs_compiler
@pytest.mark.parametrize("product", LAST)
@pytest.mark.parametrize("limit", ["relu", "relu6", None])
def test_special_values(product, limit):
    """NaN, infinities and the signs of zeros are those of the ops one by one."""
    compute, a, b, out = PRODUCTS[product]
    x, w = [np.zeros(s, np.float32) for s in (a, b)]
    x.reshape(-1)[::7] = np.resize(np.float32([np.nan, np.inf, -np.inf, 1e38, -0.0, -1]), x.size)[
        : -(-x.size // 7)
    ]
    w[..., 0, 0] = np.random.default_rng(2).choice(np.float32([-1e3, -0.0, 0.0, 1e-3]), b[:2])
    shift = np.resize(np.float32([-0.0, 0.0, 7, np.nan, -np.inf, 1e-40]), out[-1])
    scale = np.resize(np.float32([-1, 1, -0.0, 3, 1e-30]), out[-1])
    follow = {"relu": ops.relu, "relu6": ops.relu6, None: lambda v: v}[limit]

    def function(x, w, scale, shift):
        return follow(compute(x, w) * scale + shift)

    xs = [Tensor(v) for v in (x, w, scale, shift)]
    want, found = [ms.jit(function, jit_level=level)(*xs).asnumpy() for level in ("O0", "O1")]
    np.testing.assert_array_equal(want, found)
    np.testing.assert_array_equal(
        np.signbit(want) & ~np.isnan(want), np.signbit(found) & ~np.isnan(found)
    )


def kept_for_later(x, w, b):
    v = ops.matmul(x, w)
    return ops.relu(v + b), v


def kept_under_another_name(x, w, b):
    v = ops.matmul(x, w)
    return ops.relu(v.reshape(-1) + 1), v.reshape(-1), b


def reduced_afterwards(x, w, b):
    v = ops.relu(ops.matmul(x, w) + b)
    return v / v.sum(-1, keepdims=True)


def both_operands_are_matmuls(x, w, b):
    return ops.matmul(x, w) + ops.matmul(x, w * 2) * b


def its_own_operand(x, w, b):
    return ops.matmul(x, w) + x + b


def nothing_to_compute(x, w, b):
    return ops.matmul(x, w) + b, x[:0] @ w + b


# Programs other than one matmul and its epilogue: how many regions begin with a matmul.
PROGRAMS = {
    "the matmul is a result too": (kept_for_later, 0),
    "the matmul is a result under another name": (kept_under_another_name, 0),
    "a row is reduced": (reduced_afterwards, 0),
    "one region of two matmuls": (both_operands_are_matmuls, 1),
    "the operand of the matmul is read again": (its_own_operand, 1),
    "an empty matmul beside": (nothing_to_compute, 1),
}


@needs_compiler
@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, level):
    function, taken = PROGRAMS[name]
    xs = operands([(64, 64), (64, 64), (64,)], "float32")
    want = parts(ms.jit(function, jit_level="O0")(*xs))
    compiled = ms.jit(function, jit_level=level)
    for a, b in zip(want, parts(compiled(*xs)), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-6, atol=2e-5)
    said = " ".join(compiled.explain(*xs).kernels)
    after = "after a matmul or convolution"
    assert (f"{taken} {after}" in said) if taken else (after not in said), said


class Net(nn.Cell):
    """Convolutions, normalised and not, a residual, and dense layers."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, has_bias=True, weight_init="normal", bias_init="ones")
        self.b = nn.Conv2d(8, 8, 3, weight_init="normal")
        self.norm = nn.BatchNorm2d(8)
        self.c = nn.Dense(8 * 36, 10, weight_init="normal", bias_init="ones")
        self.d = nn.Dense(10, 4, weight_init="normal")

    def construct(self, x):
        x = ops.relu(self.a(x))
        x = ops.relu(self.norm(self.b(x)) + x)
        return self.d(ops.gelu(self.c(x.reshape(x.shape[0], -1)))) * 2


@needs_compiler
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_inference_enters_native_code_once(level):
    """Batch normalisation ends in the epilogue of its convolution; Parameters may change between
    calls.
    """
    from duograph_cpu._native import lib

    ms.set_seed(1)
    net = Net()
    net.set_train(False)
    compiled = ms.jit(lambda x: net(x), jit_level=level)
    (x,) = operands([(2, 3, 6, 6)], "float32")
    for _ in range(2):
        np.testing.assert_allclose(compiled(x).asnumpy(), net(x).asnumpy(), rtol=1e-5, atol=1e-5)
        net.norm.gamma.set_data(net.norm.gamma * 1.5 + 1)
        net.a.bias.set_data(net.a.bias - 2)
    said = compiled.explain(x).kernels
    assert "4 after a matmul or convolution" in said[0], said
    before = lib.dg_program_crossings()
    compiled(x)
    assert lib.dg_program_crossings() == before + 1


@needs_compiler
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_training(level):
    """Residuals are results of the epilogue; parameters are updated in place."""

    def train(level):
        ms.set_seed(1)
        net = Net()
        optimizer = nn.Momentum(net.trainable_params(), 1e-3, 0.9)
        gradient = ms.value_and_grad(
            lambda x, y: ((net(x) - y) ** 2).mean(), None, net.trainable_params()
        )

        def step(x, y):
            loss, grads = gradient(x, y)
            optimizer(grads)
            return loss

        compiled = ms.jit(step, jit_level=level)
        xs = operands([(4, 3, 6, 6), (4, 4)], "float32")
        losses = [float(compiled(*xs)) for _ in range(4)]
        return losses, [p.asnumpy() for p in net.get_parameters()], compiled.explain(*xs).kernels

    wanted, found = train("O0"), train(level)
    np.testing.assert_allclose(wanted[0], found[0], rtol=1e-4)
    for a, b in zip(wanted[1], found[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    assert "after a matmul or convolution" in found[2][0], found[2]


@needs_compiler
def test_epilogue_reads_a_donated_parameter_before_it_is_overwritten():
    """The new value of a Parameter may take its memory; the product is there before all of the old
    one is read.
    """
    weights = np.random.default_rng(1).standard_normal((48, 48)).astype(np.float32)
    state = Parameter(Tensor(weights), name="state")
    (x,) = operands([(48, 48)], "float32")

    def step(x):
        state.set_data(ops.tanh(ops.matmul(x, state) + state))
        return state.sum()

    compiled = ms.jit(step, jit_level="O1")
    want = weights
    for _ in range(3):
        compiled(x)
        want = np.tanh(x.asnumpy() @ want + want)
        np.testing.assert_allclose(state.asnumpy(), want, rtol=1e-5, atol=1e-5)


@needs_compiler
def test_equal_epilogues_share_one_generated_function():
    def several(x, w, y, z):
        return ops.relu(x @ w + 1), ops.relu(y @ z + 1)

    shapes = [(20, 30), (30, 40), (20, 50), (50, 40)]
    compiled = ms.jit(several, jit_level="O1")
    xs = operands(shapes, "float32")
    compiled(*xs)
    assert "2 after a matmul or convolution" in compiled.explain(*xs).kernels[0]
