"""Training programs that ranks run, for the tests of engines; each returns what it trained.

`python rank_programs.py FOLDER` runs all of them on the ranks that a launcher started, and writes
the results of each rank to FOLDER.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable

import duograph as ms
import numpy as np
from duograph import nn, ops
from duograph.communication import get_group_size, get_rank, init, micro_batch, tree_sum

BATCH = 8
STEPS = 3
EAGER, COMPILED = ms.PYNATIVE_MODE, ms.GRAPH_MODE


class Attention(nn.Cell):
    """A GPT of one block with causal attention, for tokens (N, T)."""

    def __init__(self, vocabulary: int = 11, width: int = 8, length: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = ms.Parameter(ops.zeros((length, width), ms.float32), name="position")
        self.norm = nn.LayerNorm((width,))
        self.qkv = nn.Dense(width, 3 * width)
        self.inner, self.outer = nn.Dense(width, 2 * width), nn.Dense(2 * width, width)
        self.head = nn.Dense(width, vocabulary)
        self.mask = ms.Tensor(np.triu(np.full((length, length), -1e4, np.float32), 1))

    def construct(self, tokens: ms.Tensor) -> ms.Tensor:
        x = self.embedding(tokens) + self.position
        q, k, v = ops.split(self.qkv(self.norm(x)), x.shape[-1], -1)
        weights = ops.softmax(ops.matmul(q, k.swapaxes(1, 2)) * 0.35 + self.mask)
        x = x + ops.matmul(weights, v)
        x = x + self.outer(ops.gelu(self.inner(x)))
        return self.head(x).reshape(-1, 11)


class LSTM(nn.Cell):
    """An LSTM over (N, T, 5), and a classifier of its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 6, batch_first=True)
        self.head = nn.Dense(6, 3)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


class Block(nn.Cell):
    """The block of ResNet-18: two convolutions, and a projection where the size changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.main = nn.SequentialCell(
            nn.Conv2d(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.down: nn.Cell = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.down = nn.SequentialCell(
                nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
            )

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return ops.relu(self.main(x) + self.down(x))


def _resnet() -> nn.Cell:
    """ResNet-18 with few channels: four stages of two blocks."""
    widths = (3, 4, 5, 6)
    blocks = [
        Block(widths[max(i - 1, 0)] if first else width, width, 2 if first and i else 1)
        for i, width in enumerate(widths) for first in (True, False)
    ]  # fmt: skip
    return nn.SequentialCell(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Dense(6, 3),
    )  # fmt: skip


def _dropout() -> nn.Cell:
    return nn.SequentialCell(nn.Dense(6, 9), nn.Dropout(p=0.5), nn.Tanh(), nn.Dense(9, 3))


def _mlp() -> nn.Cell:
    return nn.SequentialCell(nn.Dense(6, 9), nn.Tanh(), nn.Dense(9, 3))


def _conv() -> nn.Cell:
    return nn.SequentialCell(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        nn.Dense(36, 3),
    )  # fmt: skip


_random = np.random.default_rng(0)
_labels = _random.integers(0, 3, BATCH).astype(np.int32)
_tokens = _random.integers(0, 11, (BATCH, 7)).astype(np.int32)
# name -> (network, data, labels), the data of all ranks
NETWORKS: dict[str, tuple[Callable[[], nn.Cell], np.ndarray, np.ndarray]] = {
    "mlp": (_mlp, _random.normal(size=(BATCH, 6)).astype(np.float32), _labels),
    "conv": (_conv, _random.normal(size=(BATCH, 2, 6, 6)).astype(np.float32), _labels),
    "resnet": (_resnet, _random.normal(size=(BATCH, 2, 8, 8)).astype(np.float32), _labels),
    "dropout": (_dropout, _random.normal(size=(BATCH, 6)).astype(np.float32), _labels),
    "gpt": (Attention, _tokens[:, :-1], _tokens[:, 1:]),
    "lstm": (LSTM, _random.normal(size=(BATCH, 4, 5)).astype(np.float32), _labels),
}


def _network(name: str) -> tuple[nn.Cell, nn.Optimizer, np.ndarray, np.ndarray]:
    make, data, labels = NETWORKS[name]
    ms.set_seed(5)
    net = make()
    loss = nn.CrossEntropyLoss()
    whole = nn.WithLossCell(net, lambda out, y: loss(out, y.reshape(-1)))
    return whole.set_train(), nn.Momentum(net.trainable_params(), 0.1, 0.9), data, labels


def _trained(optimizer: nn.Optimizer) -> list[np.ndarray]:
    return [p.asnumpy() for p in optimizer.parameters]


def data_parallel(name: str, sharded: bool = False) -> list[np.ndarray]:
    """Train on this rank's share of each batch; return the Parameters.

    `sharded`: each rank updates its part of them.
    """
    init()
    rank, size = get_rank(), get_group_size()
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=sharded,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )  # fmt: skip
    net, optimizer, data, labels = _network(name)
    step = nn.TrainOneStepCell(net, optimizer).set_train()
    n = BATCH // size
    mine = slice(rank * n, (rank + 1) * n)
    for _ in range(STEPS):
        with micro_batch(rank):
            step(ms.Tensor(data[mine]), ms.Tensor(labels[mine]))
    return _trained(optimizer)


def micro_batches(name: str, count: int) -> list[np.ndarray]:
    """Train with gradients of `count` micro-batches in all, shared by the ranks."""
    rank, size = get_rank(), get_group_size()
    net, optimizer, data, labels = _network(name)
    gradients = ms.value_and_grad(net, None, optimizer.parameters)
    reducer = nn.DistributedGradReducer(optimizer.parameters, mean=False)
    n, own = BATCH // count, count // size
    for _ in range(STEPS):
        parts = []
        for i in range(rank * own, (rank + 1) * own):
            rows = slice(i * n, (i + 1) * n)
            with micro_batch(i):
                parts.append(gradients(ms.Tensor(data[rows]), ms.Tensor(labels[rows]))[1])
        sums = reducer(tuple(tree_sum(column) for column in zip(*parts, strict=True)))
        optimizer(tuple(g * (1 / count) for g in sums))
    return _trained(optimizer)


def main(folder: pathlib.Path) -> None:
    """Run all programs in both modes on this rank; write the results."""
    found = {}
    for name in NETWORKS:
        for mode in (EAGER, COMPILED):
            ms.set_context(mode=mode, jit_level="O0")
            sharded = name == "gpt"
            for i, value in enumerate(data_parallel(name, sharded)):
                found[f"{name} {mode} {i}"] = value
    np.savez(folder / f"{get_rank()}.npz", **found)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
