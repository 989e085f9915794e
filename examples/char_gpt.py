"""Train a small GPT, character by character, on the Python Language Reference, and let it write.

    python examples/char_gpt.py [--mode graph] [--steps 700] [--device CPU] [--out char_gpt.png]

The text ships with Python, as the pages of `help("while")`. A transformer of 4 layers predicts the
next of about 100 characters from up to 128 before it. Writing keeps the keys and values of earlier
characters in a cache, so a new one passes through the network alone; without the cache the network
reads the whole text again for each. Both ways write the same text.

The figure is the loss on the last tenth of the text: 1.65 nats per character with the text of
Python 3.11, after 65 s on two CPU cores in graph mode. With the cache the network writes 1780
characters in a second, without it 290.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys
import textwrap
import time
from collections.abc import Sequence
from pydoc_data.topics import topics

import duograph as ms
import numpy as np
from duograph import nn, ops
from tqdm import tqdm

MODES = {"graph": ms.GRAPH_MODE, "pynative": ms.PYNATIVE_MODE}
GOAL = 1.75  # nats per character
PROMPTS = ("The ", "If a class ", "An expression ", "This function ")
LAYERS, WIDTH, HEADS, CONTEXT = 4, 128, 4, 128


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

    def construct(self, x, mask, cache=None, now=None):
        """`x` is (batch, time, width); `mask` is 0 where a character may look and -1e9 elsewhere.

        With a cache, `x` is one character, and `now` is True at its row of the cached tensors.
        """
        batch, time, _ = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, time, 3, HEADS, WIDTH // HEADS)
        q, k, v = ops.unbind(qkv.transpose(2, 0, 3, 1, 4))  # each (batch, heads, time, size)
        if cache is not None:
            k, v = ops.where(now, k, cache[0]), ops.where(now, v, cache[1])
        scores = ops.matmul(q, k.swapaxes(2, 3)) / math.sqrt(WIDTH // HEADS) + mask
        y = ops.matmul(ops.softmax(scores, -1), v)
        x = x + self.out(y.swapaxes(1, 2).reshape(batch, time, WIDTH))
        return x + self.down(ops.gelu(self.up(self.norm2(x)))), (k, v)


class GPT(nn.Cell):
    """Characters to the logits of their successors."""

    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.CellList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm((WIDTH,))
        self.head = nn.Dense(WIDTH, vocabulary)
        self.positions = ms.Tensor(np.arange(CONTEXT, dtype=np.int32))
        self.causal = ms.Tensor(np.triu(np.full((CONTEXT, CONTEXT), -1e9, np.float32), 1))

    def construct(self, ids):
        """Logits (batch, CONTEXT, vocabulary) and the cache, from ids (batch, CONTEXT)."""
        x = self.tokens(ids) + self.places(self.positions)
        cache = ()
        for block in self.blocks:
            x, kv = block(x, self.causal)
            cache += (kv,)
        return self.head(self.norm(x)), cache

    def one(self, token, position, cache):
        """Logits (1, vocabulary) after one more character, and the cache with it."""
        x = (self.tokens(token) + self.places(position)).reshape(1, 1, WIDTH)
        later = self.positions > position
        mask = later.astype(ms.float32) * -1e9
        now = (self.positions == position).reshape(CONTEXT, 1)
        longer = ()
        for block, kv in zip(self.blocks, cache, strict=True):
            x, kv = block(x, mask, kv, now)
            longer += (kv,)
        return self.head(self.norm(x))[0], longer


def load() -> tuple[str, np.ndarray, np.ndarray]:
    """The characters, then the ids of nine tenths of the text, and those of the rest."""
    paragraphs = (part for name in sorted(topics) for part in topics[name].split("\n\n"))
    text = "\n\n".join(dict.fromkeys(paragraphs))  # without repeated paragraphs
    characters = "".join(sorted(set(text)))
    number = {character: i for i, character in enumerate(characters)}
    ids = np.array([number[character] for character in text], np.int32)
    cut = len(ids) * 9 // 10
    return characters, ids[:cut], ids[cut:]


def batch_at(ids: np.ndarray, starts: np.ndarray) -> tuple[ms.Tensor, ms.Tensor]:
    """Characters from some positions on, and the same shifted by one: what to predict."""
    rows = ids[starts[:, None] + np.arange(CONTEXT + 1)]
    return ms.Tensor(rows[:, :-1]), ms.Tensor(rows[:, 1:])


def train(net: GPT, ids: np.ndarray, args: argparse.Namespace) -> list[float]:
    """Adam, with a warm-up and a cosine schedule; the loss of every step."""
    warm = min(args.steps, 50)
    rates = nn.warmup_lr(args.rate, warm, 1, warm)
    rates += nn.cosine_decay_lr(args.rate / 20, args.rate, args.steps, 1, args.steps)[warm:]
    optimizer = nn.Adam(net.trainable_params(), rates, beta2=0.99)

    def forward(x, y):
        logits, _ = net(x)
        return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))

    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)

    def train_step(x, y):
        loss, grads = grad_fn(x, y)
        optimizer(ops.clip_by_global_norm(grads, 1.0))
        return loss

    if args.mode == "graph":  # forward, backward and update as one compiled graph
        train_step = ms.jit(train_step)
    shuffle = np.random.default_rng(args.seed)
    losses: list[float] = []
    net.set_train()
    pause = 0.1 if sys.stderr.isatty() else 2.0  # seconds between lines; a log file wants few
    with tqdm(total=args.steps, unit="step", mininterval=pause) as bar:
        for _ in range(args.steps):
            starts = shuffle.integers(0, len(ids) - CONTEXT, args.batch)
            losses.append(float(train_step(*batch_at(ids, starts))))
            bar.set_postfix_str(f"loss {losses[-1]:.3f}", refresh=False)
            bar.update()
    net.set_train(False)
    return losses


def held_out_loss(net: GPT, ids: np.ndarray) -> float:
    """Mean loss over the whole held-out text, in nats per character."""
    starts = np.arange(0, len(ids) - CONTEXT, CONTEXT)
    sums = []
    for part in np.array_split(starts, max(1, len(starts) // 32)):
        x, y = batch_at(ids, part)
        logits, _ = net(x)
        loss = ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        sums.append(float(loss) * len(part))
    return sum(sums) / len(starts)


def write(
    net: GPT, prompt: list[int], args: argparse.Namespace, cached: bool
) -> tuple[list[int], float]:
    """The ids of a text that fills the context, and characters per second."""
    one = ms.jit(net.one) if args.mode == "graph" else net.one
    draws = np.random.default_rng(args.seed)
    ids = np.zeros((1, CONTEXT), np.int32)
    ids[0, : len(prompt)] = prompt
    logits, cache = net(ms.Tensor(ids))
    last = logits[0, len(prompt) - 1]
    begin = 0.0
    for position in range(len(prompt), CONTEXT):
        weights = ops.softmax(last / args.temperature).asnumpy().astype(float)
        ids[0, position] = draws.choice(len(weights), p=weights / weights.sum())
        if cached:
            logits, cache = one(ms.Tensor(ids[0, position]), ms.Tensor(position, ms.int32), cache)
            last = logits[0]
        else:
            last = net(ms.Tensor(ids))[0][0, position]
        if position == len(prompt):  # this one may have been compiled
            begin = time.perf_counter()
    return ids[0].tolist(), (CONTEXT - len(prompt) - 1) / (time.perf_counter() - begin)


def draw(path: pathlib.Path, losses: list[float], held_out: float, texts: list[str]) -> None:
    """The loss of each step, and what the network wrote after several prompts."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (curve, page) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    curve.plot(losses, color="#1f4e8c", linewidth=0.8, label="training")
    curve.axhline(held_out, color="#c62828", linewidth=1, label=f"held out: {held_out:.2f}")
    curve.set(xlabel="step", ylabel="cross entropy (nats per character)", title="Loss")
    curve.spines[["top", "right"]].set_visible(False)
    curve.legend(frameon=False)
    page.axis("off")
    page.set_title("What it writes")
    rows = [textwrap.fill(" ".join(text.split()), 44) for text in texts]
    page.text(0, 1, "\n\n".join(rows), family="serif", fontsize=11, va="top", linespacing=1.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> tuple[list[float], float, list[int], list[int]]:
    """Train, test, write; the losses, held out last, and the text without and with the cache."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=MODES, default="graph")
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", help="an installed device; see `duograph devices`")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("char_gpt.png"))
    args = parser.parse_args(arguments)
    if args.steps < 1 or args.batch < 1:
        parser.error("--steps and --batch must be 1 or more")

    begin = time.perf_counter()
    if args.device:
        ms.set_context(device_target=args.device)
    ms.set_context(mode=MODES[args.mode])
    ms.set_seed(args.seed)
    characters, train_ids, test_ids = load()
    net = GPT(len(characters))
    size = sum(p.size for p in net.trainable_params())
    print(f"{size} weights, {len(train_ids)} characters to train on, {len(test_ids)} held out")
    losses = train(net, train_ids, args)
    held_out = held_out_loss(net, test_ids)
    print(f"held-out loss {held_out:.3f} after {time.perf_counter() - begin:.0f} s")

    prompts = [[characters.index(c) for c in text] for text in PROMPTS]
    prompt = prompts[0]
    ids, slow = write(net, prompt, args, cached=False)
    same, fast = write(net, prompt, args, cached=True)
    text = "".join(characters[i] for i in ids)
    print(f"{text}\n\n{fast:.0f} characters/s with the cache, {slow:.0f} without; ", end="")
    print("the same text" if ids == same else "the texts differ")
    others = [write(net, prompt, args, cached=True)[0] for prompt in prompts[1:]]
    texts = ["".join(characters[i] for i in ids) for ids in (same, *others)]
    draw(args.out, losses, held_out, texts)
    print(f"wrote {args.out}")
    return losses, held_out, ids, same


if __name__ == "__main__":
    if main()[1] > GOAL:
        sys.exit(f"missed: wanted a held-out loss of {GOAL} or less")
