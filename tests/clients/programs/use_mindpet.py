"""Use mindpet: networks that it froze train the weights that it left, in both modes.

Its layers (`mindpet.delta`) need the package mindformers; the program uses `mindpet.graph`.
"""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from mindpet.graph.freeze_utils import freeze_delta, freeze_modules
from mindspore import nn, ops


class Network(nn.Cell):
    """Two layers, the first beside a low-rank update with the names of mindpet's layers."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Dense(8, 16)
        self.mindpet_delta_lora_a = nn.Dense(8, 2, has_bias=False)
        self.mindpet_delta_lora_b = nn.Dense(2, 16, has_bias=False)
        self.head = nn.Dense(16, 2)

    def construct(self, x):
        update = self.mindpet_delta_lora_b(self.mindpet_delta_lora_a(x))
        return self.head(ops.relu(self.body(x) + update))


WAYS = {
    "lora": (lambda net: freeze_delta(net, "lora"), "mindpet_delta_lora"),
    "bitfit": (lambda net: freeze_delta(net, "bitfit"), "bias"),
    "modules": (lambda net: freeze_modules(net, include=["*"], exclude=["head.*"]), "head"),
}


def main() -> int:
    """Train after each way of freezing; frozen weights must keep their values."""
    rng = np.random.default_rng(0)
    x = ms.Tensor(rng.normal(size=(16, 8)), ms.float32)
    labels = ms.Tensor((x.asnumpy()[:, 0] > 0).astype(np.int32))
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        for way, (freeze, part) in WAYS.items():
            ms.set_seed(1)
            net = Network()
            freeze(net)
            trained = [p.name for p in net.trainable_params()]
            assert trained and all(part in name for name in trained), trained
            before = {p.name: p.asnumpy().copy() for p in net.get_parameters()}
            step = nn.TrainOneStepCell(
                nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), 0.02)
            )
            step.set_train()
            losses = [float(step(x, labels).asnumpy()) for _ in range(20)]
            print(f"mode {mode}: {way}: {trained}: losses {losses[0]:.3f} to {losses[-1]:.3f}")
            assert losses[-1] < losses[0]
            for parameter in net.get_parameters():
                same = (parameter.asnumpy() == before[parameter.name]).all()
                assert same == (parameter.name not in trained), parameter.name
    return 0


if __name__ == "__main__":
    sys.exit(main())
