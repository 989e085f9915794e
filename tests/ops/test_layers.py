"""Convolution, pooling, normalisation, resampling, state and hooks: forms, defaults and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops

T = ms.Tensor
RNG = np.random.default_rng(2)
X = RNG.standard_normal((2, 3, 7, 6)).astype(np.float32)
W = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)


def conv(x: Any, w: Any, stride: int, low: int, high: int) -> Any:
    x = np.pad(x, ((0, 0), (0, 0), (low, high), (low, high)))
    view = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[
        :, :, ::stride, ::stride
    ]
    return np.einsum("nchwij,ocij->nohw", view, w)


@pytest.mark.parametrize("pad_mode,padding,low,high", [("valid", 0, 0, 0), ("same", 0, 1, 1),
                                                       ("pad", 2, 2, 2),
                                                       ("pad", (1, 2, 1, 2), 1, 2)])  # fmt: skip
def test_pad_modes(pad_mode: str, padding: Any, low: int, high: int) -> None:
    got = ops.conv2d(T(X), T(W), pad_mode=pad_mode, padding=padding).asnumpy()
    np.testing.assert_allclose(got, conv(X, W, 1, low, high), rtol=1e-4, atol=1e-4)
    prim = ops.Conv2D(4, 3, pad_mode=pad_mode, pad=padding)(T(X), T(W)).asnumpy()
    np.testing.assert_array_equal(prim, got)


def test_same_with_stride_pads_the_far_end_more() -> None:
    got = ops.conv2d(T(X[..., :6, :]), T(W), stride=2, pad_mode="same").asnumpy()
    assert got.shape == (2, 4, 3, 3)
    np.testing.assert_allclose(got, conv(X[..., :6, :], W, 2, 0, 1), rtol=1e-4, atol=1e-4)


def test_transposed_convolution_is_the_adjoint() -> None:
    x, y = T(X), T(RNG.standard_normal((2, 4, 3, 2)).astype(np.float32))
    forward = ops.conv2d(x, T(W), stride=2)
    back = ops.conv_transpose2d(y, T(W), stride=2, output_padding=(0, 1))
    assert back.shape == x.shape
    np.testing.assert_allclose((forward * y).sum().item(), (x * back).sum().item(), rtol=1e-3)


def test_unbatched_input() -> None:
    np.testing.assert_allclose(
        ops.conv2d(T(X[0]), T(W)).asnumpy(),
        ops.conv2d(T(X), T(W)).asnumpy()[0],
        rtol=1e-5,
        atol=1e-5,
    )
    assert ops.max_pool2d(T(X[0]), 2).shape == (3, 3, 3)


def test_pooling_forms() -> None:
    values, indices = ops.max_pool2d(T(X), 3, 2, 1, return_indices=True)
    flat = X.reshape(2, 3, -1)
    np.testing.assert_array_equal(
        np.take_along_axis(flat, indices.asnumpy().reshape(2, 3, -1), 2).reshape(values.shape),
        values.asnumpy(),
    )
    assert ops.max_pool2d(T(X), 2, ceil_mode=True).shape == (2, 3, 4, 3)
    assert ops.MaxPool(2, 2, "same")(T(X)).shape == (2, 3, 4, 3)
    ramp = T(np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3))
    cut = ops.avg_pool2d(ramp, 2, 2, ceil_mode=True).asnumpy()
    np.testing.assert_allclose(cut, [[[[2, 3.5], [6.5, 8]]]])
    np.testing.assert_allclose(ops.avg_pool2d(ramp, 2, 2, 1).asnumpy()[0, 0, 0], [0, 0.75])
    np.testing.assert_allclose(
        ops.avg_pool2d(ramp, 2, 2, 1, count_include_pad=False).asnumpy()[0, 0, 0], [0, 1.5]
    )


def test_batch_norm_moves_its_statistics() -> None:
    mean = ms.Parameter(ops.zeros((3,)), name="mean")
    var = ms.Parameter(ops.ones((3,)), name="var")
    ops.batch_norm(T(X), mean, var, training=True)
    np.testing.assert_allclose(mean.asnumpy(), 0.1 * X.mean((0, 2, 3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(var.asnumpy(), 0.9 + 0.1 * X.var((0, 2, 3), ddof=1), rtol=1e-4)
    before = mean.asnumpy().copy()
    ops.batch_norm(T(X), mean, var)
    np.testing.assert_array_equal(mean.asnumpy(), before)


def test_layer_norm_forms() -> None:
    g, b = T(RNG.standard_normal(6).astype(np.float32)), ops.zeros((6,))
    want = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5) * g.asnumpy()
    np.testing.assert_allclose(
        ops.layer_norm(T(X), (6,), g, b).asnumpy(), want, rtol=1e-3, atol=1e-4
    )
    y, mean, var = ops.LayerNorm(-1, -1, 1e-5)(T(X), g, b)
    np.testing.assert_allclose(y.asnumpy(), want, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(mean.asnumpy(), X.mean(-1, keepdims=True), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(var.asnumpy(), X.var(-1, keepdims=True), rtol=1e-3, atol=1e-4)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "channels": (lambda: ops.conv2d(T(X), T(W[:, :2])), ValueError, "groups"),
    "pad_mode": (lambda: ops.conv2d(T(X), T(W), pad_mode="full"), ValueError, "'full'"),
    "padding without pad": (lambda: ops.conv2d(T(X), T(W), padding=1), ValueError, "pad_mode"),
    "bias": (lambda: ops.conv2d(T(X), T(W), T(X[0, 0, 0])), ValueError, "bias"),
    "large pooling padding": (lambda: ops.max_pool2d(T(X), 2, 2, 2), ValueError, "half"),
    "group_norm": (lambda: ops.group_norm(T(X), 2), ValueError, "divisor"),
    "layer_norm": (lambda: ops.layer_norm(T(X), (7,)), ValueError, "normalized_shape"),
    "interpolate": (lambda: ops.interpolate(T(X), 3, mode="linear"), ValueError, "'bilinear'"),
    "dropout": (lambda: ops.dropout(T(X), 1.5), ValueError, "p=1.5"),
    "embedding": (lambda: ops.embedding(T(X), T(X[0, 0])), TypeError, "integer"),
    "cross_entropy": (lambda: ops.cross_entropy(T(X[0, 0]), T([1, 2])), ValueError, "shape"),
    "reduction": (lambda: ops.mse_loss(T(X), T(X), "avg"), ValueError, "'avg'"),
    "bce": (lambda: ops.binary_cross_entropy(T([1.5]), T([1.0])), RuntimeError, "1.5"),
    "bce, as the other class": (
        lambda: ops.binary_cross_entropy(T([-0.5]), T([1.0])),
        ValueError,
        "-0.5",
    ),
    "assign": (lambda: ops.assign(ms.Parameter(T([1.0])), T([1.0, 2.0])), ValueError, r"\(2,\)"),
    "randint": (lambda: ops.randint(3, 3, (2,)), ValueError, "low < high"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    run, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        run()


def test_lstm_primitive() -> None:
    steps, n, size, hidden = 4, 2, 3, 5
    x = RNG.standard_normal((steps, n, size)).astype(np.float32)
    h, c = RNG.standard_normal((2, 1, n, hidden)).astype(np.float32)
    w = RNG.standard_normal(4 * hidden * (size + hidden + 1)).astype(np.float32)
    out, last_h, last_c, *_ = ops.LSTM(size, hidden, 1, True, False, 0.0)(
        T(x), T(h), T(c), T(w.reshape(-1, 1, 1))
    )
    w_input = w[: 4 * hidden * size].reshape(4 * hidden, size)
    w_hidden = w[4 * hidden * size : -4 * hidden].reshape(4 * hidden, hidden)
    one, two = h[0], c[0]
    for t in range(steps):
        i, f, g, o = np.split(x[t] @ w_input.T + one @ w_hidden.T + w[-4 * hidden :], 4, 1)
        two = two / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        one = np.tanh(two) / (1 + np.exp(-o))
        np.testing.assert_allclose(out.asnumpy()[t], one, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last_h.asnumpy()[0], one, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last_c.asnumpy()[0], two, rtol=1e-4, atol=1e-5)


# ---- state --------------------------------------------------------------------------------------


def test_assign_keeps_dtype_and_gradients() -> None:
    w = ms.Parameter(T([1.0, 2.0]), name="w")
    assert type(ops.assign(w, T([3, 4]))) is ms.Tensor
    assert w.dtype is ms.float32
    ops.assign_add(w, 1)
    ops.AssignSub()(w, T([1.0, 1.0]))
    np.testing.assert_array_equal(w.asnumpy(), [3, 4])

    def f(x: Any) -> Any:
        ops.assign(w, w * x)
        return (w * w).sum()

    assert ms.grad(f)(T(2.0)).item() == 2 * 2 * 25


def test_hooks() -> None:
    seen = []
    hook = ops.HookBackward(lambda g: seen.append(g[0].item()))
    assert ms.grad(lambda x: hook(x * 2) * 3)(T(1.0)).item() == 6
    assert seen == [3.0]
    both = ops.HookBackward(lambda g: (g[0] * 10, g[1]))

    def f(x: Any, y: Any) -> Any:
        x, y = both(x, y)
        return x * 2 + y * 3

    assert [g.item() for g in ms.grad(f, (0, 1))(T(1.0), T(1.0))] == [20, 3]


def test_custom_of_several_results() -> None:
    both = ops.Custom(
        lambda x: (x + 1, x * 2),
        func_type="pyfunc",
        bprop=lambda x, out, dout: (dout[0] + 2 * dout[1],),
    )
    a, b = both(T([1.0]))
    assert (a.item(), b.item()) == (2, 2)
    assert ms.grad(lambda x: both(x)[0] + both(x)[1])(T(1.0)).item() == 3
    with pytest.raises(ValueError, match="func_type='akg'"):
        ops.Custom(lambda x: x, func_type="akg")


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    ops.Print()("x", T(1), 2)
    assert capsys.readouterr().out == "x\nTensor(shape=[], dtype=Int64, value= 1)\n2\n"


# ---- random numbers -----------------------------------------------------------------------------

DRAWS: dict[str, Callable[[], Any]] = {
    "rand": lambda: ops.rand(5),
    "randn": lambda: ops.randn(5),
    "randint": lambda: ops.randint(0, 99, (5,)),
    "randperm": lambda: ops.randperm(20),
    "normal": lambda: ops.normal((5,), 0.0, 1.0),
    "dropout": lambda: ops.dropout(ops.ones((50,))),
    "bernoulli": lambda: ops.bernoulli(ops.ones((50,))),
    "multinomial": lambda: ops.multinomial(ops.ones((50,)), 9),
    "gamma": lambda: ops.gamma((5,), T(2.0), T(1.0)),
    "laplace": lambda: ops.standard_laplace((5,)),
    "poisson": lambda: ops.random_poisson((9,), T(5.0)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_seed_repeats_and_calls_differ(name: str) -> None:
    draw = DRAWS[name]
    ms.set_seed(7)
    first, second = draw().asnumpy(), draw().asnumpy()
    assert not np.array_equal(first, second)
    ms.set_seed(7)
    np.testing.assert_array_equal(draw().asnumpy(), first)


@pytest.mark.parametrize("name", DRAWS)
def test_every_random_op_takes_one_position(name: str) -> None:
    ms.set_seed(7)
    ops.rand(3)
    want = ops.rand(3).asnumpy()
    ms.set_seed(7)
    DRAWS[name]()
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), want)


def test_own_seed_and_generator() -> None:
    ms.set_seed(1)
    a = ops.rand(4, seed=3).asnumpy()
    ms.set_seed(1)
    assert not np.array_equal(ops.rand(4).asnumpy(), a)
    ms.set_seed(1)
    np.testing.assert_array_equal(ops.rand(4, seed=3).asnumpy(), a)
    g = ms.Generator().manual_seed(5)
    state = g.get_state()
    x = ops.rand(4, generator=g).asnumpy()
    g.set_state(state)
    np.testing.assert_array_equal(ops.rand(4, generator=g).asnumpy(), x)


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_one_stream_for_both_modes(level: str) -> None:
    """K12: Seeds: `set_seed`, `Generator`, per-op seeds; same stream eager and jit"""
    generator = ms.Generator()

    def draws():
        return (
            ops.rand(5),
            ops.rand(5, seed=3),
            ops.randn(5, generator=generator),
            ops.rand(5, generator=generator),
            ops.dropout(ops.ones((40,), ms.float32), 0.5),
            ops.randint(0, 100, (7,)),
            ops.rand(2),
        )

    def run(draw):
        ms.set_seed(11)
        generator.manual_seed(5)
        return [t.asnumpy() for _ in range(3) for t in draw()]

    eager = run(draws)
    for got, want in zip(
        run(ms.jit(draws, jit_config=ms.JitConfig(jit_level=level))), eager, strict=True
    ):
        np.testing.assert_array_equal(got, want)
    assert not np.array_equal(eager[0], eager[7])


def test_distributions() -> None:
    ms.set_seed(3)
    z = ops.randn(50000).asnumpy()
    assert abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02 and np.isfinite(z).all()
    u = ops.rand(50000).asnumpy()
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    g = ops.gamma((50000,), T(2.5), T(2.0)).asnumpy()
    assert abs(g.mean() - 1.25) < 0.03 and abs(g.var() - 0.625) < 0.04
    p = ops.random_poisson((50000,), T(4.0)).asnumpy()
    assert abs(p.mean() - 4) < 0.1 and abs(p.var() - 4) < 0.2
    counts = (
        np.bincount(ops.multinomial(T([0.1, 0.0, 0.6, 0.3]), 20000).asnumpy(), minlength=4) / 20000
    )
    np.testing.assert_allclose(counts, [0.1, 0, 0.6, 0.3], atol=0.02)
    few = ops.multinomial(ops.ones((100, 4)), 4, False).asnumpy()
    assert (np.sort(few, 1) == np.arange(4)).all()
    kept = ops.dropout(ops.ones((20000,)), 0.3).asnumpy()
    assert abs((kept == 0).mean() - 0.3) < 0.02
    np.testing.assert_allclose(kept[kept != 0], 1 / 0.7, rtol=1e-6)


def test_dropout_gradient_has_the_mask() -> None:
    masked = []

    def f(x: Any) -> Any:
        y = ops.dropout(x, 0.5)
        masked.append(y)
        return y.sum()

    grad = ms.grad(f)(ops.ones((64,))).asnumpy()
    np.testing.assert_array_equal(grad, masked[0].asnumpy())
