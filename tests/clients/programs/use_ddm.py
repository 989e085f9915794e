"""Use denoising-diffusion-mindspore: a network of its blocks learns to remove noise, and draws.

Its U-Net is not used: the attention there calls `x.split(1, 3)` for three parts along axis 1, as
in MindSpore 1; MindSpore 2.10 takes that for parts of size 1 along axis 3, as duograph does.
"""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from ddm import GaussianDiffusion, value_and_grad
from ddm.modules import ResnetBlock, SinusoidalPosEmb
from mindspore import nn


class Denoiser(nn.Cell):
    """Predicts the noise in a picture from the picture and the time."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.channels, self.out_dim, self.self_condition = 3, 3, False
        self.random_or_learned_sinusoidal_cond = False
        self.time = nn.SequentialCell(SinusoidalPosEmb(dim), nn.Dense(dim, dim), nn.GELU())
        self.first = nn.Conv2d(3, dim, 3)
        self.block = ResnetBlock(dim, dim, time_emb_dim=dim)
        self.last = nn.Conv2d(dim, 3, 1)

    def construct(self, x, time, x_self_cond=None):
        return self.last(self.block(self.first(x), self.time(time)))


def main() -> int:
    """Train the diffusion model on one batch in both modes, and sample from it."""
    images = ms.Tensor(np.random.default_rng(0).uniform(size=(4, 3, 16, 16)), ms.float32)
    times = ms.Tensor([3, 7, 11, 15], ms.int32)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(0)
        np.random.seed(0)
        net = GaussianDiffusion(
            Denoiser(), image_size=16, timesteps=20, sampling_timesteps=4, loss_type="l1"
        )
        net.set_train()
        optimizer = nn.Adam(net.trainable_params(), 3e-3)
        step = value_and_grad(net, None, optimizer.parameters)
        losses = []
        for k in range(12):
            noise = ms.Tensor(np.random.default_rng(k % 2).normal(size=images.shape), ms.float32)
            loss, grads = step(images, times, noise, False)
            optimizer(grads)
            losses.append(float(loss.asnumpy()))
        print(f"mode {mode}: losses {losses[0]:.3f} to {losses[-1]:.3f}")
        assert np.isfinite(losses).all() and np.mean(losses[-4:]) < np.mean(losses[:4])
        net.set_train(False)
        drawn = net.sample(batch_size=1)
        assert drawn.shape == (1, 3, 16, 16) and np.isfinite(drawn).all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
