"""Adapt a small language model to another kind of text with low-rank matrices (LoRA).

    python examples/lora.py [--mode graph] [--steps 1000] [--device CPU] [--out lora.png]

A transformer learns to predict the next character of English prose: the Python Language Reference,
which ships with Python as the pages of `help("while")`. Then it must do the same for source code,
modules of Python's standard library, and there are two ways:

- full fine-tuning trains all weights further;
- LoRA (Hu et al., 2021, https://arxiv.org/abs/2106.09685) freezes them, and adds to each matrix W
  of the blocks a product A B of two thin matrices, of rank 8, which alone are trained. Afterwards
  W + A B can be merged into one matrix, so that the adapted model is as fast as the first one.

The figure is the share of the improvement by full fine-tuning that LoRA attains, where improvement
is the decrease of the loss on held-out code. It must be 60 % or more. In graph mode it is 82 %
with 14 % of the weights (2.09 nats per character of code; 2.33 before, 2.04 by full fine-tuning),
after 42 s of processor time. The modes agree within rounding.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import pathlib
import sys
import time
from collections.abc import Sequence
from pydoc_data.topics import topics

import duograph as ms
import numpy as np
from duograph import nn, ops
from tqdm import tqdm

MODES = {"graph": ms.GRAPH_MODE, "pynative": ms.PYNATIVE_MODE}
GOAL = 0.6
LAYERS, WIDTH, HEADS, CONTEXT = 2, 64, 4, 64
MODULES = ("argparse", "ast", "calendar", "configparser", "csv", "difflib", "heapq", "textwrap")
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))


class Block(nn.Cell):
    """Self-attention and a perceptron, each behind a layer norm and added to its input."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm((WIDTH,))
        self.qkv = nn.Dense(WIDTH, 3 * WIDTH)
        self.out = nn.Dense(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm((WIDTH,))
        self.up = nn.Dense(WIDTH, 4 * WIDTH)
        self.down = nn.Dense(4 * WIDTH, WIDTH)

    def construct(self, x, mask):
        batch, time, _ = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, time, 3, HEADS, WIDTH // HEADS)
        q, k, v = ops.unbind(qkv.transpose(2, 0, 3, 1, 4))  # each (batch, heads, time, size)
        scores = ops.matmul(q, k.swapaxes(2, 3)) / math.sqrt(WIDTH // HEADS) + mask
        y = ops.matmul(ops.softmax(scores, -1), v)
        x = x + self.out(y.swapaxes(1, 2).reshape(batch, time, WIDTH))
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


class Model(nn.Cell):
    """Ids (batch, CONTEXT) to the logits of their successors, (batch, CONTEXT, characters)."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(len(CHARACTERS), WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.CellList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm((WIDTH,))
        self.head = nn.Dense(WIDTH, len(CHARACTERS))
        self.positions = ms.Tensor(np.arange(CONTEXT, dtype=np.int32))
        self.causal = ms.Tensor(np.triu(np.full((CONTEXT, CONTEXT), -1e9, np.float32), 1))

    def construct(self, ids):
        x = self.tokens(ids) + self.places(self.positions)
        for block in self.blocks:
            x = block(x, self.causal)
        return self.head(self.norm(x))


class LoRA(nn.Cell):
    """A frozen dense layer, plus a product of two thin matrices of which one begins as zeros."""

    def __init__(self, dense: nn.Dense, rank: int):
        super().__init__()
        self.dense = dense
        for weight in dense.get_parameters():
            weight.requires_grad = False
        self.down = nn.Dense(dense.in_channels, rank, has_bias=False)
        self.up = nn.Dense(rank, dense.out_channels, weight_init="zeros", has_bias=False)
        self.scale = 2.0

    def construct(self, x):
        return self.dense(x) + self.scale * self.up(self.down(x))

    def merged(self) -> nn.Dense:
        """The dense layer with the product added to its matrix."""
        product = ops.matmul(self.up.weight, self.down.weight)
        self.dense.weight.set_data(self.dense.weight + self.scale * product)
        return self.dense


def add_lora(model: Model, rank: int) -> None:
    """Freeze a model, and put every dense layer of its blocks into a `LoRA`."""
    for weight in model.get_parameters():
        weight.requires_grad = False
    for block in model.blocks:
        for name in ("qkv", "out", "up", "down"):
            setattr(block, name, LoRA(getattr(block, name), rank))
    model.update_parameters_name()


def merge_lora(model: Model) -> None:
    """Replace every `LoRA` by one dense layer."""
    for block in model.blocks:
        for name in ("qkv", "out", "up", "down"):
            setattr(block, name, getattr(block, name).merged())
    model.update_parameters_name()


def ids_of(text: str) -> tuple[np.ndarray, np.ndarray]:
    """The ids of nine tenths of a text, and those of the rest; unknown characters are dropped."""
    number = {character: i for i, character in enumerate(CHARACTERS)}
    ids = np.array([number[character] for character in text if character in number], np.int32)
    cut = len(ids) * 9 // 10
    return ids[:cut], ids[cut:]


def load() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Prose and code, each as ids to train on and ids held out."""
    prose = "\n\n".join(dict.fromkeys(topics[name] for name in sorted(topics)))
    origins = [importlib.util.find_spec(name).origin for name in MODULES]
    code = "\n".join(pathlib.Path(origin).read_text(encoding="utf-8") for origin in origins)
    return ids_of(prose), ids_of(code)


def batch_at(ids: np.ndarray, starts: np.ndarray) -> tuple[ms.Tensor, ms.Tensor]:
    """Characters from some positions on, and the same shifted by one: what to predict."""
    rows = ids[starts[:, None] + np.arange(CONTEXT + 1)]
    return ms.Tensor(rows[:, :-1]), ms.Tensor(rows[:, 1:])


def loss_of(model: Model, x, y):
    """Cross entropy in nats per character."""
    logits = model(x)
    return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def held_out_loss(model: Model, ids: np.ndarray) -> float:
    """Mean loss over a held-out text, at most 512 pieces of it."""
    starts = np.arange(0, len(ids) - CONTEXT, CONTEXT)[:512]
    return float(loss_of(model, *batch_at(ids, starts)))


def train(
    model: Model, ids: np.ndarray, steps: int, rate: float, args: argparse.Namespace, what: str
) -> list[float]:
    """Adam on the weights that require a gradient; the loss of every step."""
    rates = nn.cosine_decay_lr(rate / 20, rate, steps, 1, steps)
    optimizer = nn.Adam(model.trainable_params(), rates, beta2=0.99)
    grad_fn = ms.value_and_grad(lambda x, y: loss_of(model, x, y), None, optimizer.parameters)

    def train_step(x, y):
        loss, grads = grad_fn(x, y)
        optimizer(ops.clip_by_global_norm(grads, 1.0))
        return loss

    if args.mode == "graph":  # forward, backward and update as one compiled graph
        train_step = ms.jit(train_step)
    shuffle = np.random.default_rng(args.seed)
    losses: list[float] = []
    pause = 0.1 if sys.stderr.isatty() else 2.0  # seconds between lines; a log file wants few
    with tqdm(total=steps, unit="step", mininterval=pause, desc=what) as bar:
        for _ in range(steps):
            starts = shuffle.integers(0, len(ids) - CONTEXT, args.batch)
            losses.append(float(train_step(*batch_at(ids, starts))))
            bar.set_postfix_str(f"loss {losses[-1]:.3f}", refresh=False)
            bar.update()
    return losses


def draw(path: pathlib.Path, losses: dict[str, list[float]], figures: dict[str, tuple]) -> None:
    """Training losses of the three trainings; held-out losses and numbers of weights."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"pre-training": "#555555", "full": "#1f4e8c", "LoRA": "#c62828"}
    figure, (curves, bars) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    offset = len(losses["pre-training"])
    for name, series in losses.items():
        window = max(1, min(20, len(series) // 5))
        smooth = np.convolve(series, np.ones(window) / window, mode="valid")
        begin = (0 if name == "pre-training" else offset) + window - 1
        curves.plot(begin + np.arange(len(smooth)), smooth, color=colours[name], label=name)
    curves.axvline(offset, color="#9e9e9e", linewidth=0.8, linestyle="--")
    curves.set(xlabel="step", ylabel="nats per character", title="Training: prose, then code")
    curves.legend(frameon=False)
    names = list(figures)
    values = [figures[name][0] for name in names]
    bars.barh(names, values, color=["#555555", "#1f4e8c", "#c62828"], height=0.6)
    bars.invert_yaxis()
    for i, name in enumerate(names):
        loss, trained = figures[name]
        bars.text(loss + 0.03, i, f"{loss:.2f}\n{trained} trained", va="center", fontsize=9)
    bars.set(
        xlim=(0, 1.35 * max(values)), xlabel="nats per character", title="Loss on held-out code"
    )
    for axis in (curves, bars):
        axis.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> tuple[dict[str, list[float]], float, float]:
    """Train three times, test, draw.

    Returns the losses, the share of the improvement that LoRA attains, and the largest difference
    of a logit by merging.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=MODES, default="graph")
    parser.add_argument("--device", help="an installed device; see `duograph devices`")
    parser.add_argument("--steps", type=int, default=1000, help="of pre-training")
    parser.add_argument("--adapt", type=int, default=400, help="steps of each fine-tuning")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("lora.png"))
    args = parser.parse_args(arguments)
    if min(args.steps, args.adapt, args.batch, args.rank) < 1:
        parser.error("--steps, --adapt, --batch and --rank must be 1 or more")

    begin = time.perf_counter()
    if args.device:
        ms.set_context(device_target=args.device)
    ms.set_context(mode=MODES[args.mode])
    ms.set_seed(args.seed)
    prose, code = load()
    model = Model()
    losses = {"pre-training": train(model, prose[0], args.steps, 4e-3, args, "pre-training")}
    before = held_out_loss(model, code[1])
    pretrained = {name: p.clone() for name, p in model.parameters_dict().items()}

    losses["full"] = train(model, code[0], args.adapt, 2e-3, args, "full fine-tuning")
    full = held_out_loss(model, code[1])
    all_weights = sum(p.size for p in model.trainable_params())

    ms.load_param_into_net(model, pretrained)
    add_lora(model, args.rank)
    few_weights = sum(p.size for p in model.trainable_params())
    losses["LoRA"] = train(model, code[0], args.adapt, 1e-2, args, "LoRA")
    lora = held_out_loss(model, code[1])

    x, _ = batch_at(code[1], np.arange(4) * CONTEXT)
    logits = model(x)
    merge_lora(model)
    change = float((model(x) - logits).abs().max())

    share = (before - lora) / (before - full)
    figures = {
        "before": (before, 0),
        "full": (full, all_weights),
        "LoRA": (lora, few_weights),
    }
    for name, (loss, trained) in figures.items():
        print(f"{name:>6}: {loss:.3f} nats per character of code, {trained} weights trained")
    print(f"LoRA attains {share:.0%} of the improvement; merging changes a logit by {change:.0e}")
    print(f"after {time.perf_counter() - begin:.0f} s")
    draw(args.out, losses, figures)
    print(f"wrote {args.out}")
    return losses, share, change


if __name__ == "__main__":
    if main()[1] < GOAL:
        sys.exit(f"missed: wanted {GOAL:.0%} of the improvement or more")
