"""JitConfig: its options, where it can be given, and that levels change no result."""

from __future__ import annotations

import contextlib

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops, option_checks
from duograph.errors import OptionWarning, UnsupportedSyntaxError


def t(*values):
    return ms.Tensor(list(values), ms.float32)


@pytest.fixture(autouse=True)
def _no_config():
    yield
    ms.set_context(jit_config=None)


@pytest.mark.parametrize("option", ["exec_mode", "exc_mode"])
@pytest.mark.parametrize("value", ["auto", "sink", "no_sink"])
def test_exec_mode(option, value):
    """E02: `JitConfig(exec_mode=...)` auto / sink / no_sink, and the product's spelling of it."""
    option_checks.forget_warnings()
    expected = contextlib.nullcontext() if value == "auto" else pytest.warns(OptionWarning)
    with expected:
        config = ms.JitConfig(**{option: value})
    assert config.jit_config_dict["exc_mode"] == value
    f = ms.jit(lambda x: x * 2, jit_config=config)
    assert str(f(t(1))) == "[2.]"
    with pytest.raises(ValueError, match="exec_mode='never'"):
        ms.JitConfig(**{option: "never"})


ONLY_PYTHON = (
    "class Net(nn.Cell):\n    def construct(self, x):\n"
    "        return np.sum(x.asnumpy())\nnet = Net()"
)


@pytest.mark.parametrize("place", ["jit", "Cell", "context", "level in the context"])
@pytest.mark.parametrize("level", ["STRICT", "LAX"])
def test_syntax_levels_in_every_place(place, level, load):
    """STRICT refuses what only Python runs, LAX runs it.

    E03: `JitConfig(jit_syntax_level=...)` STRICT / LAX
    E04: a JitConfig is accepted by `jit(...)`, `Cell.set_jit_config` and
        `set_context(jit_config=...)`
    E07: `set_context(jit_syntax_level=ms.STRICT)` counts for jit and for GRAPH_MODE
    """
    net = load(ONLY_PYTHON)["net"]
    config = ms.JitConfig(jit_syntax_level=level)
    if place == "jit":
        f = ms.jit(lambda x: net(x), jit_config=config)
    elif place == "Cell":
        ms.set_context(mode=ms.GRAPH_MODE)
        net.set_jit_config(config)
        f = net
    elif place == "context":
        ms.set_context(jit_config=config)
        f = ms.jit(net.construct)
    else:
        ms.set_context(jit_syntax_level=getattr(ms, level))
        f = ms.jit(net.construct)
    if level == "LAX":
        assert f(t(1, 2)) == 3.0
    else:
        with pytest.raises(UnsupportedSyntaxError, match="asnumpy"):
            f(t(1, 2))


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Dense(8, 8), nn.Dense(8, 8), nn.Dense(8, 8)
        self.norm = nn.LayerNorm((8,))

    def construct(self, x):
        scores = ops.softmax(ops.matmul(self.q(x), self.k(x).swapaxes(1, 2)) / 8**0.5)
        return self.norm(x + ops.matmul(scores, self.v(x)))


def _convolutions():
    return nn.SequentialCell(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Dense(16, 3),
    )


def _perceptron():
    return nn.SequentialCell(
        nn.Dense(6, 8), nn.GELU(), nn.Dropout(p=0.3), nn.Dense(8, 2), nn.Sigmoid()
    )


MODELS = {
    "perceptron": (_perceptron, (4, 6)),
    "convolutions": (_convolutions, (2, 3, 4, 4)),
    "attention": (Attention, (2, 5, 8)),
    "recurrent": (lambda: nn.LSTM(4, 3), (5, 2, 4)),
}


def _trained(make, shape, level):
    """Return outputs and weights after three training steps at a level (None: line by line)."""
    ms.set_seed(5)
    rng = np.random.default_rng(1)
    net = make()
    net.set_train()
    for p in net.get_parameters():
        p.set_data(ms.Tensor(rng.normal(0, 0.4, p.shape).astype(np.float32)))
    optimizer = nn.Adam(net.trainable_params(), 0.05)

    def loss(x):
        out = net(x)
        out = out[0] if isinstance(out, tuple) else out
        return (out * out).mean()

    forward = ms.value_and_grad(loss, None, optimizer.parameters)

    def step(x):
        value, grads = forward(x)
        optimizer(grads)
        return value

    if level is not None:
        step = ms.jit(step, jit_config=ms.JitConfig(jit_level=level))
    x = ms.Tensor(rng.normal(0, 1, shape).astype(np.float32))
    losses = [float(step(x)) for _ in range(3)]
    return losses, [p.asnumpy() for p in net.get_parameters()]


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("name", MODELS)
def test_levels_change_no_answer(name, level):
    """E01: `JitConfig(jit_level=...)` O0, O1, O2; E06: results of the levels are equal within
    tolerance.
    """
    make, shape = MODELS[name]
    losses, weights = _trained(make, shape, None)
    found, moved = _trained(make, shape, level)
    if level == "O0":  # the same kernels
        assert found == losses
    np.testing.assert_allclose(found, losses, rtol=1e-5, atol=1e-6)
    for got, want in zip(moved, weights, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


def test_o0_keeps_every_op_in_order():
    """E06: O0 keeps the shape of the graph for debugging: every op that was written is a node, in
    order.
    """
    f = ms.jit(lambda x: ops.exp(x * 2) + ops.sin(x), jit_config=ms.JitConfig(jit_level="O0"))
    names = [node.op.name for node in f.graph(t(1, 2)).nodes]
    assert [n for n in names if n != "fill"] == ["mul", "exp", "sin", "add"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"jit_level": "O9"},
        {"jit_syntax_level": "MAYBE"},
        {"debug_level": "LOUD"},
        {"infer_boost": "yes"},
    ],
)
def test_wrong_values(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ms.JitConfig(**wrong)


def test_wrong_configs():
    for wrong in ("O0", {1: "O0"}, 3):
        with pytest.raises(TypeError, match="JitConfig"):
            ms.jit(lambda x: x, jit_config=wrong)
