"""Weights, under their PyTorch names, and batches for all frameworks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

Arrays = dict[str, np.ndarray]


class Weights:
    """Generator of random weights of the usual sizes; they depend on the order of the calls."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.arrays: Arrays = {}

    def dense(self, name: str, inputs: int, outputs: int, bias: bool = True) -> None:
        bound = 1 / math.sqrt(inputs)
        self.uniform(f"{name}.weight", bound, outputs, inputs)
        if bias:
            self.uniform(f"{name}.bias", bound, outputs)

    def conv(
        self, name: str, inputs: int, outputs: int, size: int, groups: int = 1, bias: bool = False
    ) -> None:
        fan = inputs // groups * size * size
        self.normal(f"{name}.weight", math.sqrt(2 / fan), outputs, inputs // groups, size, size)
        if bias:
            self.uniform(f"{name}.bias", 1 / math.sqrt(fan), outputs)

    def norm(self, name: str, width: int, running: bool = False) -> None:
        """Add scale and shift of a normalisation; for batch normalisation also running averages."""
        self.arrays[f"{name}.weight"] = np.ones(width, np.float32)
        self.arrays[f"{name}.bias"] = np.zeros(width, np.float32)
        if running:
            self.arrays[f"{name}.running_mean"] = np.zeros(width, np.float32)
            self.arrays[f"{name}.running_var"] = np.ones(width, np.float32)

    def uniform(self, name: str, bound: float, *shape: int) -> None:
        self.arrays[name] = self.rng.uniform(-bound, bound, shape).astype(np.float32)

    def normal(self, name: str, deviation: float, *shape: int) -> None:
        self.arrays[name] = (self.rng.standard_normal(shape, dtype=np.float32) * deviation).astype(
            np.float32
        )


def _floats(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def _ints(seed: int, limit: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, limit, shape).astype(np.int32)


# ---- calls and kernels
# -----------------------------------------------------------------------------

LARGE = 16 * 1024 * 1024


def three() -> tuple[np.ndarray, np.ndarray]:
    return _floats(0, 3), _floats(1, 3)


def parameters() -> list[np.ndarray]:
    """Return 50 small arrays, for a call with that many inputs."""
    return [_floats(100 + i, 3) for i in range(50)]


def large() -> np.ndarray:
    return _floats(2, LARGE)


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an (8192, 1024) array, and the scale and shift of its normalisation."""
    return _floats(3, 8192, 1024), _floats(4, 1024), _floats(5, 1024)


def matrices(height: int) -> tuple[np.ndarray, np.ndarray]:
    return _floats(6, height, 1024), _floats(7, 1024, 1024)


LOOP_TOLERANCE = 1e-3


def definite() -> np.ndarray:
    """Return a well-conditioned symmetric (256, 256) matrix, for Newton's iterations."""
    a = _floats(8, 256, 256)
    return (a @ a.T / 256 + np.eye(256, dtype=np.float32)).astype(np.float32)


# ---- training: weights, images or tokens, labels
# --------------------------------------------------------

# Of Adam. As good as none, because MindSpore's enters before the correction of the moments and
# torch's after it.
EPSILON = 1e-12

MLP_SIZES = (784, 512, 256, 10)


def mlp(batch: int = 128) -> tuple[Arrays, np.ndarray, np.ndarray]:
    w = Weights(10)
    for i, (inputs, outputs) in enumerate(itertools.pairwise(MLP_SIZES)):
        w.dense(f"layers.{i}", inputs, outputs)
    return w.arrays, _floats(11, batch, 784), _ints(12, 10, batch)


def deep(depth: int) -> tuple[Arrays, np.ndarray, np.ndarray]:
    """Return weights of `depth` equal dense layers, a batch and labels."""
    w = Weights(13)
    for i in range(depth):
        w.dense(f"layers.{i}", 128, 128)
    w.dense(f"layers.{depth}", 128, 10)
    return w.arrays, _floats(14, 64, 128), _ints(15, 10, 64)


def lenet() -> tuple[Arrays, np.ndarray, np.ndarray]:
    w = Weights(20)
    w.conv("conv1", 1, 6, 5, bias=True)
    w.conv("conv2", 6, 16, 5, bias=True)
    w.dense("fc1", 400, 120)
    w.dense("fc2", 120, 84)
    w.dense("fc3", 84, 10)
    return w.arrays, _floats(21, 64, 1, 32, 32), _ints(22, 10, 64)


RESNET18 = ((64, 2), (128, 2), (256, 2), (512, 2))


def blocks(
    stages: tuple[tuple[int, int], ...], inputs: int, expansion: int = 1
) -> Iterator[tuple[str, int, int, int]]:
    """Yield (name, input width, width, stride) of each residual block."""
    for stage, (width, count) in enumerate(stages, 1):
        for i in range(count):
            yield f"layer{stage}.{i}", inputs, width, 2 if stage > 1 and i == 0 else 1
            inputs = width * expansion


def resnet18() -> tuple[Arrays, np.ndarray, np.ndarray]:
    w = Weights(30)
    w.conv("conv1", 3, 64, 7)
    w.norm("bn1", 64, running=True)
    for name, inputs, width, stride in blocks(RESNET18, 64):
        w.conv(f"{name}.conv1", inputs, width, 3)
        w.norm(f"{name}.bn1", width, running=True)
        w.conv(f"{name}.conv2", width, width, 3)
        w.norm(f"{name}.bn2", width, running=True)
        if stride > 1 or inputs != width:
            w.conv(f"{name}.downsample.0", inputs, width, 1)
            w.norm(f"{name}.downsample.1", width, running=True)
    w.dense("fc", 512, 10)
    return w.arrays, _floats(31, 16, 3, 64, 64), _ints(32, 10, 16)


GPT = {"layers": 4, "width": 256, "heads": 4, "tokens": 128, "batch": 8, "vocabulary": 1000}


def transformer(w: Weights, layers: int, width: int) -> None:
    for i in range(layers):
        w.norm(f"blocks.{i}.ln1", width)
        w.dense(f"blocks.{i}.qkv", width, 3 * width)
        w.dense(f"blocks.{i}.proj", width, width)
        w.norm(f"blocks.{i}.ln2", width)
        w.dense(f"blocks.{i}.up", width, 4 * width)
        w.dense(f"blocks.{i}.down", 4 * width, width)


def gpt() -> tuple[Arrays, np.ndarray, np.ndarray]:
    w = Weights(40)
    w.normal("tok.weight", 0.02, GPT["vocabulary"], GPT["width"])
    w.normal("pos.weight", 0.02, GPT["tokens"], GPT["width"])
    transformer(w, GPT["layers"], GPT["width"])
    w.norm("ln", GPT["width"])
    w.dense("head", GPT["width"], GPT["vocabulary"], bias=False)
    text = _ints(41, GPT["vocabulary"], GPT["batch"], GPT["tokens"] + 1)
    return w.arrays, np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])


def lstm() -> tuple[Arrays, np.ndarray, np.ndarray]:
    """Return weights of an LSTM, 64 steps of 32 sequences (steps first), and labels."""
    w = Weights(50)
    for layer in range(2):
        for name, shape in (
            ("weight_ih", (1024, 256)),
            ("weight_hh", (1024, 256)),
            ("bias_ih", (1024,)),
            ("bias_hh", (1024,)),
        ):
            w.uniform(f"rnn.{name}_l{layer}", 1 / 16, *shape)
    w.dense("fc", 256, 10)
    return w.arrays, _floats(51, 64, 32, 256), _ints(52, 10, 32)


DIGITS_BATCH = 32
DIGITS_EPOCHS = 12


def digits_weights() -> Arrays:
    w = Weights(70)
    w.conv("conv1", 1, 16, 3, bias=True)
    w.conv("conv2", 16, 32, 3, bias=True)
    w.dense("fc1", 512, 64)
    w.dense("fc2", 64, 10)
    return w.arrays


def digits_batches(count: int) -> Iterator[np.ndarray]:
    """Yield the row numbers of every batch of the digits job, shuffled in each epoch."""
    shuffle = np.random.default_rng(71)
    for _ in range(DIGITS_EPOCHS):
        order = shuffle.permutation(count)
        for begin in range(0, count - DIGITS_BATCH + 1, DIGITS_BATCH):
            yield order[begin : begin + DIGITS_BATCH]


# For the growth of cost.
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)

# ---- inference: weights, the input
# -----------------------------------------------------------------

RESNET50 = ((64, 3), (128, 4), (256, 6), (512, 3))
IMAGE = (1, 3, 224, 224)


def resnet50() -> tuple[Arrays, np.ndarray]:
    w = Weights(60)
    w.conv("conv1", 3, 64, 7)
    w.norm("bn1", 64, running=True)
    for i, (_, inputs, width, stride) in enumerate(blocks(RESNET50, 64, 4)):
        for k, (a, b, size) in enumerate(
            ((inputs, width, 1), (width, width, 3), (width, 4 * width, 1)), 1
        ):
            w.conv(f"blocks.{i}.conv{k}", a, b, size)
            w.norm(f"blocks.{i}.bn{k}", b, running=True)
        w.arrays[f"blocks.{i}.bn3.weight"] *= (
            0.2  # keeps the residual sum from growing with every block
        )
        if stride > 1 or inputs != 4 * width:
            w.conv(f"blocks.{i}.downsample.0", inputs, 4 * width, 1)
            w.norm(f"blocks.{i}.downsample.1", 4 * width, running=True)
    w.dense("fc", 2048, 1000)
    return w.arrays, _floats(61, *IMAGE)


def inverted_residuals() -> Iterator[tuple[int, int, int, int]]:
    """Yield (channels in, inside, out, stride) of each block of MobileNetV2."""
    inputs = 32
    for factor, outputs, count, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for i in range(count):
            yield inputs, inputs * factor, outputs, stride if i == 0 else 1
            inputs = outputs


def mobilenet() -> tuple[Arrays, np.ndarray]:
    w = Weights(62)
    w.conv("conv1", 3, 32, 3)
    w.norm("bn1", 32, running=True)
    for i, (inputs, hidden, outputs, _) in enumerate(inverted_residuals()):
        if hidden != inputs:
            w.conv(f"blocks.{i}.expand", inputs, hidden, 1)
            w.norm(f"blocks.{i}.bn1", hidden, running=True)
        w.conv(f"blocks.{i}.depthwise", hidden, hidden, 3, groups=hidden)
        w.norm(f"blocks.{i}.bn2", hidden, running=True)
        w.conv(f"blocks.{i}.project", hidden, outputs, 1)
        w.norm(f"blocks.{i}.bn3", outputs, running=True)
    w.conv("conv2", 320, 1280, 1)
    w.norm("bn2", 1280, running=True)
    w.dense("fc", 1280, 1000)
    return w.arrays, _floats(63, *IMAGE)


ENCODER = {"layers": 12, "width": 768, "heads": 12, "tokens": 128}


def encoder() -> tuple[Arrays, np.ndarray]:
    w = Weights(64)
    transformer(w, ENCODER["layers"], ENCODER["width"])
    w.norm("ln", ENCODER["width"])
    return w.arrays, _floats(65, 1, ENCODER["tokens"], ENCODER["width"])
