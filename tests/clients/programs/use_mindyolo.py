"""Use mindyolo: a small YOLOv8 runs forward and trains in both modes.

The loss is a simple one: those of mindyolo 0.5 take the result of `x.max(2)` for a Tensor, which
is a tuple in MindSpore 2.10 as well as here.
"""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindyolo.models import create_model
from mindyolo.utils.config import Config

NETWORK = {
    "model_name": "yolov8",
    "nc": 4,
    "reg_max": 16,
    "stride": [8, 16, 32],
    "depth_multiple": 0.33,
    "width_multiple": 0.125,
    "max_channels": 256,
    "backbone": [
        [-1, 1, "ConvNormAct", [64, 3, 2]],
        [-1, 1, "ConvNormAct", [128, 3, 2]],
        [-1, 3, "C2f", [128, True]],
        [-1, 1, "ConvNormAct", [256, 3, 2]],
        [-1, 6, "C2f", [256, True]],
        [-1, 1, "ConvNormAct", [512, 3, 2]],
        [-1, 6, "C2f", [512, True]],
        [-1, 1, "ConvNormAct", [1024, 3, 2]],
        [-1, 3, "C2f", [1024, True]],
        [-1, 1, "SPPF", [1024, 5]],
    ],
    "head": [
        [-1, 1, "Upsample", ["None", 2, "nearest"]],
        [[-1, 6], 1, "Concat", [1]],
        [-1, 3, "C2f", [512]],
        [-1, 1, "Upsample", ["None", 2, "nearest"]],
        [[-1, 4], 1, "Concat", [1]],
        [-1, 3, "C2f", [256]],
        [-1, 1, "ConvNormAct", [256, 3, 2]],
        [[-1, 12], 1, "Concat", [1]],
        [-1, 3, "C2f", [512]],
        [-1, 1, "ConvNormAct", [512, 3, 2]],
        [[-1, 9], 1, "Concat", [1]],
        [-1, 3, "C2f", [1024]],
        [[15, 18, 21], 1, "YOLOv8Head", ["nc", "reg_max", "stride"]],
    ],
}


def main() -> int:
    """Run forward and train for four steps in both modes."""
    rng = np.random.default_rng(0)
    images = ms.Tensor(rng.uniform(size=(2, 3, 64, 64)), ms.float32)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(1)
        config = Config(NETWORK)
        net = create_model("yolov8", config, num_classes=4)
        optimizer = nn.Momentum(net.trainable_params(), 0.002, 0.9)

        def forward(x, net=net):
            return sum(ops.square(feature).mean() for feature in net(x))

        step = ops.value_and_grad(forward, None, optimizer.parameters)
        net.set_train()
        losses = []
        for _ in range(4):
            loss, grads = step(images)
            optimizer(grads)
            losses.append(float(loss.asnumpy()))
        print(f"mode {mode}: losses {losses[0]:.3f} to {losses[-1]:.3f}")
        assert np.isfinite(losses).all() and losses[-1] < losses[0]
        net.set_train(False)
        found = net(images)[0]
        assert found.shape == (2, 84, 8), found.shape
    return 0


if __name__ == "__main__":
    sys.exit(main())
