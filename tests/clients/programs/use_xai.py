"""Use mindspore-xai: which part of a picture a network looks at, by four explainers."""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore_xai.explainer import GradCAM, Gradient, GuidedBackprop, Occlusion

SIZE = 16


class Network(nn.Cell):
    """A convolution and a layer that look at the left upper quarter alone, for class 1."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, weight_init="ones")
        self.relu = nn.ReLU()
        mask = np.zeros((SIZE, SIZE), np.float32)
        mask[: SIZE // 2, : SIZE // 2] = 1
        self.mask = ms.Tensor(mask)

    def construct(self, x):
        found = (self.relu(self.conv(x)) * self.mask).mean((1, 2, 3)).expand_dims(1)
        return ops.concat((ops.zeros_like(found), found), 1)


def quarter(saliency) -> float:
    """Return the share of the saliency in the left upper quarter (and its border)."""
    values = np.abs(np.asarray(saliency.asnumpy() if hasattr(saliency, "asnumpy") else saliency))
    values = values.reshape(-1, SIZE, SIZE).sum(0)
    return float(values[: SIZE // 2 + 1, : SIZE // 2 + 1].sum() / values.sum())


def main() -> int:
    """Explain class 1 for a bright picture; the rest of the picture must not matter."""
    image = ms.Tensor(np.random.default_rng(0).uniform(0.5, 1, (1, 3, SIZE, SIZE)), ms.float32)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net = Network()
    net.set_train(False)
    explainers = {
        "Gradient": Gradient(net),
        "GuidedBackprop": GuidedBackprop(net),
        "GradCAM": GradCAM(net, layer="relu"),
        "Occlusion": Occlusion(net, activation_fn=nn.Softmax()),
    }
    for name, explain in explainers.items():
        share = quarter(explain(image, 1))
        print(f"{name}: {share:.3f} of the saliency is in the quarter that counts")
        assert share > (0.25 if name == "GradCAM" else 0.7), name
    return 0


if __name__ == "__main__":
    sys.exit(main())
