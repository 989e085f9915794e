"""Programs that are divided among ranks, for the tests of engines.

`python sharded_programs.py FOLDER` trains a GPT on the four ranks that a launcher started, data
times tensor parallel, and writes what each rank found to FOLDER.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import duograph as ms
import numpy as np
from duograph import Layout, nn, ops
from duograph.communication import get_group_size, get_rank, init

VOCABULARY, WIDTH, HEADS, LENGTH, LAYERS = 32, 16, 4, 8, 4
BATCH, STEPS = 8, 4
MESH = Layout((2, 2), ("dp", "mp"))
_random = np.random.default_rng(0)
TOKENS = _random.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)


class Block(nn.Cell):
    """A transformer block with causal attention, for (N, T, WIDTH)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.query, self.value = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)
        # a bias would have a gradient of 0, of which Adam makes steps out of rounding
        self.key = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.out = nn.Dense(WIDTH, WIDTH)
        self.up, self.down = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)

    def heads(self, x: ms.Tensor) -> ms.Tensor:
        n, t, _ = x.shape
        return x.reshape(n, t, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    def construct(self, x: ms.Tensor, mask: ms.Tensor) -> ms.Tensor:
        y = self.norm1(x)
        q, k, v = self.heads(self.query(y)), self.heads(self.key(y)), self.heads(self.value(y))
        weights = ops.softmax(ops.matmul(q, k.swapaxes(2, 3)) * 0.5 + mask)
        mixed = ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + self.out(mixed)
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


class GPT(nn.Cell):
    """A GPT for tokens (N, T); the result is (N, T, VOCABULARY)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position = ms.Parameter(ops.zeros((LENGTH, WIDTH), ms.float32), name="position")
        self.blocks = nn.CellList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm((WIDTH,))
        self.head = nn.Dense(WIDTH, VOCABULARY, has_bias=False)
        self.mask = ms.Tensor(np.triu(np.full((LENGTH, LENGTH), -1e4, np.float32), 1))

    def construct(self, tokens: ms.Tensor) -> ms.Tensor:
        x = self.embedding(tokens) + self.position
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


class LossCell(nn.Cell):
    """The mean cross entropy of a GPT."""

    def __init__(self, net: GPT) -> None:
        super().__init__()
        self.net = net

    def construct(self, tokens: ms.Tensor, labels: ms.Tensor) -> ms.Tensor:
        return ops.cross_entropy(self.net(tokens).reshape(-1, VOCABULARY), labels.reshape(-1))


# the columns of the first matrices and what follows from them are divided along "mp"
COLUMNS = ("query", "key", "value", "up")


def train() -> tuple[GPT, Any, list[float]]:
    """Train a GPT on all samples, or on this rank's part of them; return net, step and losses."""
    ms.set_seed(1)
    net = GPT()
    tokens = TOKENS
    if get_group_size() > 1:
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", dataset_strategy=(MESH("dp", "None"),) * 2
        )
        for block in net.blocks:
            plan = {f"{name}.weight": MESH("mp", "None") for name in COLUMNS}
            layouts = (MESH("dp", "None", "None"), MESH("None", "None"))
            block.shard(layouts, parameter_plan=plan)
        half = get_rank() // 2 * (BATCH // 2)
        tokens = TOKENS[half : half + BATCH // 2]
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    step = nn.TrainOneStepCell(LossCell(net), optimizer)
    x, y = ms.Tensor(tokens[:, :-1]), ms.Tensor(tokens[:, 1:])
    losses = [float(step(x, y).asnumpy()) for _ in range(STEPS)]
    return net, step, losses


def results() -> dict[str, np.ndarray]:
    """Train, and return the losses and the values of this rank's Parameters."""
    net, _, losses = train()
    found = {p.name: p.asnumpy() for p in net.get_parameters()}
    return {"losses": np.array(losses), **found}


if __name__ == "__main__":
    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    np.savez(pathlib.Path(sys.argv[1]) / f"{get_rank()}.npz", **results())
