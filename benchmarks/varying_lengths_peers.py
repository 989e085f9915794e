"""The encoder of `varying_lengths` in PyTorch and in JAX, for batches of many lengths.

`varying_lengths` runs each in a process of its own, whose Python has the package. PyTorch compiles
one program for all lengths (``torch.compile(dynamic=True)``). JAX compiles one for each size, so
batches are padded to the next of a few sizes, and masks keep the padding out of the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from varying_lengths import HEADS, WIDTH, WORDS

BLOCKS, CLASSES, RATE = 2, 10, 1e-3
# Takes ids of shape (rows, length) and one label per row; returns the mean output or the loss.
Step = Callable[[np.ndarray, np.ndarray], float]


def torch_step(train: bool) -> Step:
    """Return a step of the encoder in PyTorch, compiled for all lengths."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    torch.set_num_threads(2)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH, eps=1e-7) for _ in range(2 * BLOCKS)])
            self.inward = nn.ModuleList([nn.Linear(WIDTH, 3 * WIDTH) for _ in range(BLOCKS)])
            self.outward = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(BLOCKS)])
            self.wide = nn.ModuleList([nn.Linear(WIDTH, 4 * WIDTH) for _ in range(BLOCKS)])
            self.narrow = nn.ModuleList([nn.Linear(4 * WIDTH, WIDTH) for _ in range(BLOCKS)])
            self.embedding = nn.Embedding(WORDS, WIDTH)
            self.head = nn.Linear(WIDTH, CLASSES)

        def forward(self, ids):
            x = self.embedding(ids)
            b, t, d = x.shape
            for k in range(BLOCKS):
                parts = self.inward[k](self.norms[2 * k](x)).chunk(3, -1)
                q, key, v = [p.reshape(b, t, HEADS, d // HEADS).transpose(1, 2) for p in parts]
                a = q @ key.transpose(2, 3) / (d // HEADS) ** 0.5
                y = (a.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d)
                x = x + self.outward[k](y)
                x = x + self.narrow[k](F.gelu(self.wide[k](self.norms[2 * k + 1](x))))
            return self.head(x.mean(1))

    net = Encoder()
    if not train:
        forward = torch.compile(lambda ids: net(ids).mean(), dynamic=True)

        def infer(ids: np.ndarray, labels: np.ndarray) -> float:
            with torch.no_grad():
                return float(forward(torch.from_numpy(ids)))

        return infer
    optimizer = torch.optim.Adam(net.parameters(), RATE)
    loss_of = torch.compile(lambda ids, y: F.cross_entropy(net(ids), y), dynamic=True)

    def step(ids: np.ndarray, labels: np.ndarray) -> float:
        optimizer.zero_grad()
        loss = loss_of(torch.from_numpy(ids), torch.from_numpy(labels.astype(np.int64)))
        loss.backward()
        optimizer.step()
        return float(loss)

    return step


def jax_step(train: bool) -> Step:
    """Return a step of the encoder in JAX, for batches padded to powers of two from 8 on."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)

    def dense(a: int, b: int) -> dict[str, np.ndarray]:
        bound = 1 / math.sqrt(a)
        w = rng.uniform(-bound, bound, (a, b)).astype(np.float32)
        return {"w": w, "b": np.zeros(b, np.float32)}

    def norm_weights() -> dict[str, np.ndarray]:
        return {"w": np.ones(WIDTH, np.float32), "b": np.zeros(WIDTH, np.float32)}

    weights = {
        "embedding": rng.standard_normal((WORDS, WIDTH)).astype(np.float32),
        "head": dense(WIDTH, CLASSES),
        "blocks": [
            {
                "norm1": norm_weights(), "norm2": norm_weights(),
                "inward": dense(WIDTH, 3 * WIDTH), "outward": dense(WIDTH, WIDTH),
                "wide": dense(WIDTH, 4 * WIDTH), "narrow": dense(4 * WIDTH, WIDTH),
            }
            for _ in range(BLOCKS)
        ],
    }  # fmt: skip

    def norm(p, x):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-7) * p["w"] + p["b"]

    def linear(p, x):
        return x @ p["w"] + p["b"]

    def forward(w, ids, length):
        x = w["embedding"][ids]
        b, t, d = x.shape
        present = jnp.arange(t) < length
        for p in w["blocks"]:
            parts = jnp.split(linear(p["inward"], norm(p["norm1"], x)), 3, -1)
            q, key, v = [
                part.reshape(b, t, HEADS, d // HEADS).transpose(0, 2, 1, 3) for part in parts
            ]
            a = q @ key.transpose(0, 1, 3, 2) / (d // HEADS) ** 0.5
            a = jax.nn.softmax(jnp.where(present, a, -jnp.inf), -1)
            x = x + linear(p["outward"], (a @ v).transpose(0, 2, 1, 3).reshape(b, t, d))
            h = jax.nn.gelu(linear(p["wide"], norm(p["norm2"], x)), approximate=False)
            x = x + linear(p["narrow"], h)
        mean = jnp.where(present[:, None], x, 0).sum(1) / length
        return linear(w["head"], mean)

    def padded(ids: np.ndarray) -> np.ndarray:
        size = max(8, 1 << (ids.shape[1] - 1).bit_length())
        return np.pad(ids, ((0, 0), (0, size - ids.shape[1])))

    if not train:
        infer = jax.jit(lambda w, ids, length: forward(w, ids, length).mean())
        return lambda ids, labels: float(infer(weights, padded(ids), ids.shape[1]))

    def loss_of(w, ids, length, labels):
        chances = jax.nn.log_softmax(forward(w, ids, length))
        return -chances[jnp.arange(len(labels)), labels].mean()

    def update(state, ids, length, labels):
        w, m, v, k = state
        loss, g = jax.value_and_grad(loss_of)(w, ids, length, labels)
        k = k + 1
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
        rate = RATE * jnp.sqrt(1 - 0.999**k) / (1 - 0.9**k)
        w = jax.tree.map(lambda a, b, c: a - rate * b / (jnp.sqrt(c) + 1e-8), w, m, v)
        return (w, m, v, k), loss

    compiled = jax.jit(update, donate_argnums=0)
    zeros = jax.tree.map(np.zeros_like, weights)
    state = jax.device_put((weights, zeros, jax.tree.map(np.copy, zeros), 0))

    def step(ids: np.ndarray, labels: np.ndarray) -> float:
        nonlocal state
        state, loss = compiled(state, padded(ids), ids.shape[1], labels)
        return float(loss)

    return step


STEPS: dict[str, Callable[[bool], Step]] = {"torch": torch_step, "JAX": jax_step}
