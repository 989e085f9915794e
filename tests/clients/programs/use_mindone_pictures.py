"""Use mindone's diffusers: a UNet and a VAE, small and random, train in both modes."""

from __future__ import annotations

import sys
import warnings

import mindspore as ms
import numpy as np
from mindone.diffusers import AutoencoderKL, UNet2DConditionModel
from mindspore import nn, ops

# configuration objects are read while the program runs, so that some Cells run line by line
warnings.filterwarnings("ignore", message=".*runs line by line")


def unet_loss():
    """Return a UNet, and its loss: the noise that it does not find."""
    net = UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), layers_per_block=1,
        cross_attention_dim=8, attention_head_dim=4, norm_num_groups=4,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    noise, text = (
        ms.Tensor(rng.normal(size=size), ms.float32) for size in ((2, 4, 8, 8), (2, 3, 8))
    )
    times = ms.Tensor([3, 500], ms.int32)
    return net, lambda: ops.mse_loss(net(noise, times, text, return_dict=False)[0], noise)


def vae_loss():
    """Return a variational autoencoder, and the difference of a picture and its copy."""
    net = AutoencoderKL(
        block_out_channels=(8, 16), norm_num_groups=4, latent_channels=4, sample_size=16,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    image = ms.Tensor(np.random.default_rng(1).uniform(-1, 1, (2, 3, 16, 16)), ms.float32)
    return net, lambda: ops.mse_loss(net(image, return_dict=False)[0], image)


def main() -> int:
    """Train both for six steps in both modes."""
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        for name, make in (("UNet", unet_loss), ("VAE", vae_loss)):
            ms.set_seed(0)
            net, loss = make()
            net.set_train()
            optimizer = nn.AdamWeightDecay(net.trainable_params(), 3e-3)
            step = ms.value_and_grad(loss, None, optimizer.parameters)
            losses = []
            for _ in range(6):
                value, grads = step()
                optimizer(grads)
                losses.append(float(value.asnumpy()))
            print(f"mode {mode}: {name}: losses {losses[0]:.3f} to {losses[-1]:.3f}", flush=True)
            assert np.isfinite(losses).all(), name
            assert losses[-1] < losses[0], name
    return 0


if __name__ == "__main__":
    sys.exit(main())
