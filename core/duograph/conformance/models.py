"""Small models that `test_models` trains: a ResNet, an LSTM and a BERT, with their data.

Shapes must be tiny, so that a backend in NumPy trains the models in seconds, and all integers must
be int32, which every backend has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from duograph import nn, ops

if TYPE_CHECKING:
    from ..host_arrays import Array
    from ..parameter import Parameter

__all__ = ["MODELS", "Model"]

# The label of positions that count nothing in the loss.
IGNORED = -100


@dataclasses.dataclass(frozen=True)
class Model:
    """A network to train, with its data.

    Attributes:
        network: function that makes the network, whose result is logits.
        data: function that returns the inputs of the network followed by the labels.
        optimizer: function of the network's parameters that makes the optimizer.
        steps: number of training steps after which the loss must be below `below` times the loss of
            the first step.
    """

    network: Callable[[], nn.Cell]
    data: Callable[[], list[Array]]
    optimizer: Callable[[Sequence[Parameter]], nn.Optimizer]
    steps: int
    below: float = 0.5


# ---- ResNet -------------------------------------------------------------------------------------


class ResidualBlock(nn.Cell):
    """Two convolutions with batch normalisation beside a shortcut (He et al., 2015)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, pad_mode="same")
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, pad_mode="same")
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.SequentialCell()
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, pad_mode="valid")
            self.shortcut = nn.SequentialCell(conv, nn.BatchNorm2d(outputs))

    def construct(self, x):
        out = ops.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        return ops.relu(out + self.shortcut(x))


class ResNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, pad_mode="pad", padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        self.blocks = nn.SequentialCell(ResidualBlock(4, 4, 1), ResidualBlock(4, 8, 2))
        self.mean = nn.AvgPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.out = nn.Dense(8, 3)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        return self.out(self.flatten(self.mean(self.blocks(x))))


def _images() -> list[Array]:
    """Return noisy images of one random pattern for each class, and the images' classes."""
    rng = np.random.default_rng(1)
    labels = np.arange(12) % 3
    images = rng.normal(size=(3, 2, 8, 8))[labels] + 0.3 * rng.normal(size=(12, 2, 8, 8))
    return [images.astype(np.float32), labels.astype(np.int32)]


# ---- LSTM ---------------------------------------------------------------------------------------


class Recurrent(nn.Cell):
    """An LSTM (Hochreiter and Schmidhuber, 1997) that reads tokens and classifies the sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 6)
        self.lstm = nn.LSTM(6, 8, batch_first=True)
        self.out = nn.Dense(8, 5)

    def construct(self, tokens):
        outputs, (hidden, _) = self.lstm(self.embedding(tokens))
        return self.out(outputs[:, -1] + hidden[0])


def _sequences() -> list[Array]:
    """Return random token sequences and labels; the label is the first token, to be remembered."""
    tokens = np.random.default_rng(2).integers(0, 5, (10, 5))
    tokens[:, 0] = np.arange(10) % 5
    return [tokens.astype(np.int32), tokens[:, 0].astype(np.int32)]


# ---- BERT ---------------------------------------------------------------------------------------

WORDS, MASK, LENGTH, WIDTH, HEADS = 10, 10, 6, 16, 2


class SelfAttention(nn.Cell):
    """Multi-head self-attention that ignores padding (Vaswani et al., 2017)."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Dense(WIDTH, WIDTH)
        self.key = nn.Dense(WIDTH, WIDTH, has_bias=False)  # it would have no effect
        self.value = nn.Dense(WIDTH, WIDTH)
        self.out = nn.Dense(WIDTH, WIDTH)
        self.softmax = nn.Softmax(axis=-1)

    def heads(self, x):
        return x.reshape(x.shape[0], LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    def construct(self, x, bias):
        query, key, value = map(self.heads, (self.query(x), self.key(x), self.value(x)))
        scores = ops.matmul(query, key.swapaxes(-1, -2)) / (WIDTH // HEADS) ** 0.5
        found = ops.matmul(self.softmax(scores + bias), value)
        return self.out(found.transpose(0, 2, 1, 3).reshape(x.shape))


class EncoderLayer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.attention = SelfAttention()
        self.norm1 = nn.LayerNorm((WIDTH,))
        self.feed = nn.SequentialCell(
            nn.Dense(WIDTH, 2 * WIDTH), nn.GELU(), nn.Dense(2 * WIDTH, WIDTH)
        )
        self.norm2 = nn.LayerNorm((WIDTH,))
        self.dropout = nn.Dropout(p=0.1)

    def construct(self, x, bias):
        x = self.norm1(x + self.dropout(self.attention(x, bias)))
        return self.norm2(x + self.dropout(self.feed(x)))


class Bert(nn.Cell):
    """An encoder with two layers that predicts masked words (Devlin et al., 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS + 1, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.norm = nn.LayerNorm((WIDTH,))
        self.layers = nn.CellList([EncoderLayer(), EncoderLayer()])
        self.out = nn.Dense(WIDTH, WORDS)

    def construct(self, tokens, positions, attended):
        x = self.norm(self.words(tokens) + self.positions(positions))
        bias = (1.0 - attended.astype(x.dtype))[:, None, None, :] * -1e4
        for layer in self.layers:
            x = layer(x, bias)
        return self.out(x).reshape(-1, WORDS)


def _sentences() -> list[Array]:
    """Return sentences of consecutive numbers, with some words masked and some sentences padded.

    The arrays are the words, their positions, whether each is a real word and not padding, and the
    labels: the word at masked positions, `IGNORED` elsewhere.
    """
    rng = np.random.default_rng(3)
    sentences = (np.arange(8)[:, None] + np.arange(LENGTH)) % WORDS
    attended = np.arange(LENGTH) < np.array([6, 6, 6, 6, 5, 5, 4, 4])[:, None]
    masked = rng.random(sentences.shape) < 0.25
    masked[np.arange(8), np.arange(8) % 4] = True  # at least one word in each sentence
    masked &= attended
    arrays = (
        np.where(masked, MASK, sentences),
        np.broadcast_to(np.arange(LENGTH), sentences.shape),
        attended,
        np.where(masked, sentences, IGNORED).reshape(-1),
    )
    return [a.astype(np.int32) for a in arrays]


MODELS = {
    "resnet": Model(ResNet, _images, lambda params: nn.Momentum(params, 0.05, 0.9), 12),
    "lstm": Model(Recurrent, _sequences, lambda params: nn.Adam(params, 0.05), 20),
    "bert": Model(
        Bert, _sentences, lambda params: nn.AdamWeightDecay(params, 0.01, weight_decay=0.01), 15
    ),
}
