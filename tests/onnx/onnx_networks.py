"""Networks that the tests of export and import share."""

from __future__ import annotations

import duograph as ms
from duograph import nn, ops

__all__ = ["NETS", "Attention", "Branches", "Fold", "image_net", "mlp"]


class Branches(nn.Cell):
    """Branches and a loop on values, with Python numbers that the loop carries."""

    def construct(self, x):
        if x.sum() > 0:
            y = x + 1
        elif x.sum() > -10:
            y = x * 2
        else:
            y = x - 3
        count = 0
        while y.sum() < 100:
            y = y + ops.abs(x) + 1
            count = count + 1
        return y, count


class Fold(nn.Cell):
    """A reshape that depends on the number of rows, and a mean over them."""

    def construct(self, x):
        y = x.reshape(x.shape[0] * 2, 3)
        z = ops.zeros((x.shape[0], 2), ms.float32)
        return y, z, ops.cat((x, x), 0).mean(0), x / x.shape[0]


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm((8,))

    def construct(self, x):
        return self.norm(x + self.attention(x, x, x)[0])


def image_net():
    return nn.SequentialCell(
        nn.Conv2d(3, 4, 3, has_bias=True), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2dTranspose(4, 2, 3, stride=2), nn.GELU(), nn.AvgPool2d(2, 2), nn.Flatten(),
        nn.Dense(32, 5), nn.Softmax(),
    )  # fmt: skip


def mlp():
    return nn.SequentialCell(nn.Flatten(), nn.Dense(12, 8), nn.ReLU(), nn.Dense(8, 3))


NETS = {
    "mlp": (mlp, (2, 3, 4)),
    "image": (image_net, (2, 3, 8, 8)),
    "attention": (Attention, (2, 5, 8)),
    "lstm": (lambda: nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), (2, 5, 4)),
    "gru": (lambda: nn.GRU(4, 3), (5, 2, 4)),
    "rnn": (lambda: nn.RNN(4, 3), (5, 2, 4)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16), (3, 2, 8)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3, 3)),
    "branches": (Branches, (3, 2)),
}
