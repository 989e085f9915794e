"""Recurrent and attention layers against NumPy, or against numbers that MindSpore 2.10 printed."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn


def rand(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def close(found, wanted, tol=1e-5):
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=tol, atol=tol)


# ---- recurrent layers and attention
# -----------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step_numpy(kind, x, states, p):
    own = x @ p["weight_ih"].T + p["bias_ih"]
    h = states[0]
    other = h @ p["weight_hh"].T + p["bias_hh"]
    if kind == "RNN":
        return (np.tanh(own + other),)
    if kind == "LSTM":
        i, f, g, o = np.split(own + other, 4, 1)
        c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (r1, z1, n1), (r2, z2, n2) = np.split(own, 3, 1), np.split(other, 3, 1)
    z, new = sigmoid(z1 + z2), np.tanh(n1 + sigmoid(r1 + r2) * n2)
    return ((1 - z) * new + z * h,)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_cells(kind):
    cell = getattr(nn, kind + "Cell")(3, 4)
    p = {n: q.asnumpy() for n, q in cell.parameters_and_names()}
    x, h, c = rand(2, 3), rand(2, 4, seed=1), rand(2, 4, seed=2)
    given = (Tensor(h), Tensor(c)) if kind == "LSTM" else Tensor(h)
    found = cell(Tensor(x), given)
    for a, b in zip(
        found if kind == "LSTM" else (found,), step_numpy(kind, x, (h, c), p), strict=True
    ):
        close(a, b)


@pytest.mark.parametrize("lengths", [None, [2, 4]])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(kind, lengths):
    net = getattr(nn, kind)(3, 4, 2, bidirectional=True)
    x = rand(4, 2, 3)
    n_states = 2 if kind == "LSTM" else 1
    out = x
    ends = []
    for layer in range(2):
        halves = []
        for suffix in ("", "_reverse"):
            p = {k: dict(net.parameters_dict())[f"{k}_l{layer}{suffix}"].asnumpy()
                 for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}  # fmt: skip
            half = np.zeros((4, 2, 4), np.float32)
            end = np.zeros((n_states, 2, 4), np.float32)
            for b in range(2):
                steps = 4 if lengths is None else lengths[b]
                order = range(steps) if not suffix else range(steps - 1, -1, -1)
                states = tuple(np.zeros((1, 4), np.float32) for _ in range(n_states))
                for t in order:
                    states = step_numpy(kind, out[t, b : b + 1], states, p)
                    half[t, b] = states[0][0]
                end[:, b] = [s[0] for s in states]
            halves.append(half)
            ends.append(end)
        out = np.concatenate(halves, 2)
    given = None if lengths is None else Tensor(lengths, ms.int32)
    found, final = net(Tensor(x), seq_length=given)
    close(found, out)
    finals = final if kind == "LSTM" else (final,)
    for k, f in enumerate(finals):
        close(f, np.stack([e[k] for e in ends]))
    first = getattr(nn, kind)(3, 4, 2, bidirectional=True, batch_first=True)
    first.load_state_dict(net.state_dict())
    if lengths is None:
        close(first(Tensor(x.transpose(1, 0, 2)))[0], out.transpose(1, 0, 2))


def attention_numpy(net, q, k, v, heads, mask=None):
    w, b = net.in_proj_weight.asnumpy(), net.in_proj_bias.asnumpy()
    e = w.shape[1]
    q, k, v = (
        x @ w[i * e : (i + 1) * e].T + b[i * e : (i + 1) * e] for i, x in enumerate((q, k, v))
    )
    out = np.zeros(q.shape, np.float32)
    d = e // heads
    weights = np.zeros((q.shape[1], heads, q.shape[0], k.shape[0]))
    for n in range(q.shape[1]):
        for h in range(heads):
            part = slice(h * d, (h + 1) * d)
            s = q[:, n, part] @ k[:, n, part].T / np.sqrt(d)
            if mask is not None:
                s = np.where(mask, -np.inf, s)
            s = np.exp(s - s.max(1, keepdims=True))
            weights[n, h] = s / s.sum(1, keepdims=True)
            out[:, n, part] = weights[n, h] @ v[:, n, part]
    return out @ net.out_proj.weight.asnumpy().T + net.out_proj.bias.asnumpy(), weights


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked):
    net = nn.MultiheadAttention(8, 2)
    q, k, v = rand(4, 3, 8), rand(5, 3, 8, seed=1), rand(5, 3, 8, seed=2)
    mask = np.triu(np.ones((4, 5), bool), 1) if masked else None
    out, weights = attention_numpy(net, q, k, v, 2, mask)
    given = None if mask is None else Tensor(mask)
    found, shown = net(Tensor(q), Tensor(k), Tensor(v), attn_mask=given)
    close(found, out)
    close(shown, weights.mean(1))
    assert net(Tensor(q), Tensor(k), Tensor(v), need_weights=False)[1] is None


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("options", "masks"),
    [
        ({}, {}),
        ({"batch_first": True}, {"attn_mask": np.triu(np.ones((5, 5), bool), 1)}),
        ({"add_bias_kv": True, "add_zero_attn": True}, {"key_padding_mask": np.eye(3, 5) > 0}),
        (
            {"dropout": 0.5},
            {"attn_mask": np.linspace(-1, 1, 150, dtype=np.float32).reshape(6, 5, 5)},
        ),
    ],
    ids=["plain", "causal", "extra keys", "added"],
)
def test_attention_output_is_the_same_without_weights(options, masks, compiled):
    net = nn.MultiheadAttention(8, 2, **options).set_train(False)
    x = Tensor(rand(3, 5, 8) if "batch_first" in options else rand(5, 3, 8))
    masks = {name: Tensor(mask) for name, mask in masks.items()}

    def total(x, weighted):
        out, _ = net(x, x, x, need_weights=weighted, **masks)
        return (out * out).sum()

    def both(weighted):
        def f(x):
            return ms.value_and_grad(lambda x: total(x, weighted), 0, net.trainable_params())(x)

        return (ms.jit(f) if compiled else f)(x)

    (value, (dx, weights)), (wanted, (wanted_dx, wanted_weights)) = both(False), both(True)
    close(value, wanted.asnumpy())
    close(dx, wanted_dx.asnumpy())
    for found, other in zip(weights, wanted_weights, strict=True):
        close(found, other.asnumpy())


@pytest.mark.parametrize("dropout", [0.0, 0.9])
def test_attention_weights_drop_out_in_training_only(dropout):
    net = nn.MultiheadAttention(8, 2, dropout=dropout)
    x = Tensor(rand(4, 3, 8))
    calm = net.set_train(False)(x, x, x, need_weights=False)[0].asnumpy()
    trained = net.set_train(True)(x, x, x, need_weights=False)[0].asnumpy()
    assert np.array_equal(calm, trained) == (dropout == 0.0)


def test_padding_mask_equals_shorter_keys():
    net = nn.MultiheadAttention(8, 2)
    q, k = rand(4, 3, 8), rand(5, 3, 8, seed=1)
    mask = np.zeros((3, 5), bool)
    mask[:, 3:] = True
    found, _ = net(Tensor(q), Tensor(k), Tensor(k), key_padding_mask=Tensor(mask))
    close(found, net(Tensor(q), Tensor(k[:3]), Tensor(k[:3]))[0].asnumpy())


def test_transformer_names_and_shapes():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2)
    assert [p.name for p in net.layers[1].get_parameters()][:5] == [
        "layers.1.self_attn.in_proj_weight",
        "layers.1.self_attn.in_proj_bias",
        "layers.1.self_attn.out_proj.weight",
        "layers.1.self_attn.out_proj.bias",
        "layers.1.dense1.weight",
    ]
    assert net(Tensor(rand(4, 3, 8))).shape == (4, 3, 8)
    assert nn.Transformer(8, 2, 1, 1, 16)(Tensor(rand(4, 3, 8)), Tensor(rand(5, 3, 8))).shape == (
        5,
        3,
        8,
    )
