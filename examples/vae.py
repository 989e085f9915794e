"""Learn a two-dimensional map of handwritten digits with a variational autoencoder.

    python examples/vae.py [--mode graph] [--epochs 300] [--device CPU] [--out vae.png]

The data are the 8x8 digits that ship inside scikit-learn, four fifths to train on. A pixel is a
count: how many of the 16 points of a 4x4 block are black. The decoder therefore predicts the
parameter p of a binomial distribution of 16 trials for each pixel, and the evidence lower bound

    ELBO = E_q(z|x) [log p(x|z)] - KL(q(z|x) || N(0, 1))  <=  log p(x)

is a bound on the true likelihood of an image, in nats. Training maximises it with one sample of z
for each image (Kingma and Welling, 2014, https://arxiv.org/abs/1312.6114).

The figure is the ELBO of held-out images, estimated with 100 samples of z for each. It is
-137.6 nats in graph mode after 4.3 s on two CPU cores. A decoder that ignores z and predicts the
mean image reaches -253.5.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys
import time
from collections.abc import Sequence

import duograph as ms
import numpy as np
from duograph import nn, ops
from sklearn.datasets import load_digits
from tqdm import tqdm

GOAL = -140.0  # nats
LEVELS = 16  # black points that a pixel can have


class VAE(nn.Cell):
    """Encoder to mean and log variance of z, decoder to the logit of p for each pixel."""

    def __init__(self, pixels: int = 64, hidden: int = 128, latent: int = 2):
        super().__init__()
        self.encoder = nn.SequentialCell(
            nn.Dense(pixels, hidden, activation="relu"), nn.Dense(hidden, hidden, activation="relu")
        )
        self.mean = nn.Dense(hidden, latent)
        self.log_variance = nn.Dense(hidden, latent)
        self.decoder = nn.SequentialCell(
            nn.Dense(latent, hidden, activation="relu"),
            nn.Dense(hidden, hidden, activation="relu"),
            nn.Dense(hidden, pixels),
        )
        choices = [math.log(math.comb(LEVELS, k)) for k in range(LEVELS + 1)]
        self.log_choices = ms.Tensor(choices, ms.float32)

    def encode(self, counts):
        """Mean and log variance of q(z|x), each (N, latent)."""
        x = self.encoder(counts / LEVELS)
        return self.mean(x), self.log_variance(x)

    def construct(self, counts):
        """The ELBO of each image, from one sample of z. counts: (N, 64)."""
        mean, log_variance = self.encode(counts)
        z = mean + ops.exp(0.5 * log_variance) * ops.randn_like(mean)
        logits = self.decoder(z)
        # binomial: log C(16, k) + k log p + (16 - k) log(1 - p), with p = sigmoid(logit)
        log_choices = ops.gather(self.log_choices, counts.astype(ms.int32), 0)
        likelihood = log_choices + counts * logits - LEVELS * ops.softplus(logits)
        divergence = 0.5 * (mean**2 + ops.exp(log_variance) - 1 - log_variance)
        return likelihood.sum(axis=1) - divergence.sum(axis=1)


def load(seed: int) -> tuple[np.ndarray, ...]:
    """Train counts, held-out counts, each (N, 64), and the digits of the held-out images."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.data))
    test, train = np.split(order, [len(order) // 5])
    counts = digits.data.astype(np.float32)
    return counts[train], counts[test], digits.target[test]


def train(net: VAE, counts: np.ndarray, args: argparse.Namespace) -> list[float]:
    """Adam on the negative ELBO; the mean loss of every epoch."""
    steps = len(counts) // args.batch
    rate = nn.cosine_decay_lr(1e-5, 2e-3, args.epochs * steps, steps, args.epochs)
    optimizer = nn.Adam(net.trainable_params(), rate)
    grad_fn = ms.value_and_grad(lambda x: -net(x).mean(), None, optimizer.parameters)

    def train_step(x):
        loss, grads = grad_fn(x)
        optimizer(grads)
        return loss

    if args.mode == "graph":  # forward, backward and update as one compiled graph
        train_step = ms.jit(train_step)
    rng = np.random.default_rng(args.seed)
    losses = []
    bar = tqdm(range(args.epochs), unit="epoch", mininterval=1.0)
    for _ in bar:
        order = rng.permutation(len(counts))
        batches = (order[k * args.batch : (k + 1) * args.batch] for k in range(steps))
        losses.append(np.mean([float(train_step(ms.Tensor(counts[rows]))) for rows in batches]))
        bar.set_postfix_str(f"ELBO {-losses[-1]:.1f} nats", refresh=False)
    return losses


def draw(path: pathlib.Path, net: VAE, counts: np.ndarray, labels: np.ndarray, title: str) -> None:
    """The latent plane: held-out images as points, a grid of decoded points; random samples."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def page(z: np.ndarray, columns: int) -> np.ndarray:
        """Decoded points, in rows of `columns` images."""
        images = ops.sigmoid(net.decoder(ms.Tensor(z, ms.float32))).asnumpy()
        return images.reshape(-1, columns, 8, 8).swapaxes(1, 2).reshape(-1, columns * 8)

    limit, side = 2.5, 12
    x, y = np.meshgrid(np.linspace(-limit, limit, side), np.linspace(limit, -limit, side))
    samples = np.random.default_rng(0).standard_normal((side * side, 2))
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
    figure.suptitle(title)
    z = net.encode(ms.Tensor(counts))[0].asnumpy()
    points = axes[0].scatter(z[:, 0], z[:, 1], c=labels, cmap="tab10", s=12, vmin=-0.5, vmax=9.5)
    figure.colorbar(points, ax=axes[0], ticks=range(10), label="digit")
    axes[0].set(title="held-out images in the latent plane", aspect="equal")
    extent = (-limit, limit, -limit, limit)
    axes[1].imshow(page(np.stack([x.ravel(), y.ravel()], 1), side), cmap="gray_r", extent=extent)
    axes[1].set_title("the plane, decoded")
    axes[2].imshow(page(samples, side), cmap="gray_r")
    axes[2].set(title="samples: decoded z ~ N(0, 1)", xticks=[], yticks=[])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> tuple[list[float], float]:
    """Train, test, draw; returns the loss of every epoch and the ELBO of held-out images."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    parser.add_argument("--device", help="an installed device; see `duograph devices`")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("vae.png"))
    args = parser.parse_args(arguments)

    begin = time.perf_counter()
    if args.device:
        ms.set_context(device_target=args.device)
    ms.set_seed(args.seed)
    train_counts, test_counts, test_labels = load(args.seed)
    net = VAE()
    losses = train(net, train_counts, args)
    estimates = [net(ms.Tensor(test_counts)).mean().asnumpy() for _ in range(100)]
    elbo = float(np.mean(estimates))
    figure = f"ELBO {elbo:.1f} nats on held-out images"
    print(f"{figure} after {time.perf_counter() - begin:.1f} s")
    draw(args.out, net, test_counts, test_labels, figure)
    print(f"wrote {args.out}")
    return losses, elbo


if __name__ == "__main__":
    if main()[1] < GOAL:
        sys.exit(f"missed: wanted an ELBO of {GOAL:.0f} nats or more")
