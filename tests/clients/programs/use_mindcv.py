"""Use mindcv: names and forward passes of one model of many families, and training in both modes.

`make clients` runs it with `python -m duograph.run`; `import mindspore` means duograph.
"""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from mindcv import create_model, list_models
from mindcv.loss import create_loss
from mindcv.optim import create_optimizer
from mindcv.scheduler import create_scheduler
from mindcv.utils import create_trainer
from mindspore import nn

FORWARD = (
    "convit_tiny", "edgenext_xx_small", "efficientnet_b0", "ghostnet_050", "mixnet_s",
    "mobilenet_v2_035_96", "poolformer_s12", "pvt_v2_b0", "repvgg_a0", "seresnet18",
    "shufflenet_v2_x0_5", "squeezenet1_0", "xcit_tiny_12_p16_224",
)  # fmt: skip
# model, optimiser, options of mindcv's trainer
TRAINED = (
    ("resnet18", "momentum", {}),
    ("mobilenet_v1_025", "lion", {}),
    ("mobilenet_v2_035_96", "adamw", {"ema": True, "clip_grad": True}),
    ("shufflenet_v2_x0_5", "adan", {"gradient_accumulation_steps": 2}),
)


def forward(mode: int) -> None:
    """Run every model of FORWARD once."""
    image = ms.Tensor(np.random.default_rng(0).normal(size=(1, 3, 224, 224)), ms.float32)
    for name in FORWARD:
        model = create_model(name, num_classes=10)
        model.set_train(False)
        scores = model(image)
        assert scores.shape == (1, 10) and np.isfinite(scores.asnumpy()).all(), name
    print(f"mode {mode}: {len(FORWARD)} models run forward")


def train(mode: int) -> None:
    """Train every model of TRAINED on one batch, with mindcv's losses, optimisers and trainer."""
    rng = np.random.default_rng(0)
    images = ms.Tensor(rng.normal(size=(8, 3, 32, 32)), ms.float32)
    labels = ms.Tensor(rng.integers(0, 10, 8), ms.int32)
    for name, kind, options in TRAINED:
        ms.set_seed(1)
        model = create_model(name, num_classes=10)
        rates = create_scheduler(
            4, "cosine_decay", lr=0.01, min_lr=0.001, warmup_epochs=0, decay_epochs=3, num_epochs=3
        )
        optimizer = create_optimizer(
            model.trainable_params(), opt=kind, lr=rates, weight_decay=1e-4,
            **({"momentum": 0.9} if kind == "momentum" else {}),
        )  # fmt: skip
        trainer = create_trainer(
            model, create_loss("CE"), optimizer, {"accuracy": nn.Accuracy()}, "O0", None, "fixed",
            **options,
        )  # fmt: skip
        step = trainer.train_network
        step.set_train()
        losses = [step(images, labels) for _ in range(8)]
        values = [float((x[0] if isinstance(x, tuple) else x).asnumpy()) for x in losses]
        print(f"mode {mode}: {name} with {kind}: losses {values[0]:.3f} to {values[-1]:.3f}")
        assert np.isfinite(values).all(), name
        assert min(values) < values[0], name


def main() -> int:
    """Run all parts in both modes."""
    print(f"{len(list_models())} models are registered")
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        forward(mode)
        train(mode)
    return 0


if __name__ == "__main__":
    sys.exit(main())
