"""Use mindcv: three models train for an epoch on pictures on disk, by its own loaders and trainer.

The pictures are synthetic: their class is which half is bright. Each model is then evaluated.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import mindspore as ms
import numpy as np
from mindcv import create_model
from mindcv.data import create_dataset, create_loader, create_transforms
from mindcv.loss import create_loss
from mindcv.optim import create_optimizer
from mindcv.utils import create_trainer
from mindspore import nn
from PIL import Image

SIZE, BATCH, CLASSES = 32, 16, 2
# model, options of mindcv's trainer, of its transforms, and of its loader
TRAINED = (
    ("resnet18", {}, {"auto_augment": None}, {}),
    ("mobilenet_v2_035_96", {"ema": True, "clip_grad": True}, {"color_jitter": 0.2}, {}),
    ("shufflenet_v2_x0_5", {"gradient_accumulation_steps": 2}, {"re_prob": 0.2}, {"mixup": 0.1}),
)


def write_pictures(folder: pathlib.Path, split: str, count: int, seed: int) -> None:
    """Write `count` pictures of each class as mindcv's ImageFolder wants them."""
    rng = np.random.default_rng(seed)
    for label in range(CLASSES):
        place = folder / split / f"class{label}"
        place.mkdir(parents=True)
        for k in range(count):
            picture = rng.integers(0, 90, (SIZE, SIZE, 3))
            half = slice(0, SIZE // 2) if label else slice(SIZE // 2, SIZE)
            picture[half] += 150
            Image.fromarray(picture.astype(np.uint8)).save(place / f"{k}.png")


def loader(folder: pathlib.Path, split: str, transforms: dict, options: dict):
    """Return mindcv's batches of a split of the pictures."""
    training = split == "train"
    data = create_dataset("", str(folder), split, shuffle=training)
    more = {"hflip": 0.0, "scale": (0.9, 1.0), **transforms} if training else {}
    steps = create_transforms("imagenet", image_resize=SIZE, is_training=training, **more)
    return create_loader(
        data, BATCH, drop_remainder=training, is_training=training, transform=steps,
        num_classes=CLASSES, **(options if training else {}),
    )  # fmt: skip


class Losses(ms.Callback):
    """Keeps the loss of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def on_train_step_end(self, run_context) -> None:
        found = run_context.original_args().net_outputs
        found = found[0] if isinstance(found, tuple) else found
        self.values.append(float(found.asnumpy()))


def main() -> int:
    """Train every model for one epoch in both modes."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_pictures(folder, "train", 128, 0)
        write_pictures(folder, "val", 16, 1)
        for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
            ms.set_context(mode=mode)
            for model, trainer_options, transforms, options in TRAINED:
                ms.set_seed(1)
                np.random.seed(1)
                net = create_model(model, num_classes=CLASSES)
                train = loader(folder, "train", transforms, options)
                optimizer = create_optimizer(net.trainable_params(), "adamw", lr=1e-3)
                trainer = create_trainer(
                    net, create_loss("BCE" if options else "CE"), optimizer,
                    {"accuracy": nn.Accuracy()}, "O0", None, "fixed", **trainer_options,
                )  # fmt: skip
                losses = Losses()
                trainer.train(1, train, callbacks=[losses], dataset_sink_mode=False)
                assert len(losses.values) == train.get_dataset_size() == 16
                assert np.isfinite(losses.values).all()
                found = trainer.eval(loader(folder, "val", {}, {}), dataset_sink_mode=False)
                first, least = np.mean(losses.values[:3]), min(losses.values[3:])
                print(f"mode {mode}: {model}: loss {first:.3f}, least {least:.3f}, {found}")
                assert least < first, model
                assert 0 <= found["accuracy"] <= 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
