"""Tests that whole networks train: every optimiser, recurrent and attention networks, checkpoints,
and constant memory.
"""

from __future__ import annotations

import gc
import weakref

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, dataset, nn, ops, train


def quadrants(n=64, seed=0):
    """Return noisy 8x8 images with one bright quadrant each, and the number of that quadrant."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, n).astype(np.int32)
    images = random.rand(n, 1, 8, 8).astype(np.float32)
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[0, row * 4 : row * 4 + 4, column * 4 : column * 4 + 4] += 1
    return images, labels


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2)
        )
        self.flatten = nn.Flatten()
        self.drop = nn.Dropout(p=0.1)
        self.head = nn.Dense(64, 4)

    def construct(self, x):
        return self.head(self.drop(self.flatten(self.features(x))))


def learn(net, optimizer, x, y, steps, loss_fn=None):
    loss_fn = loss_fn or nn.CrossEntropyLoss()
    step = ms.value_and_grad(lambda a, b: loss_fn(net(a), b), None, optimizer.parameters)
    net.set_train()
    losses = []
    for _ in range(steps):
        loss, grads = step(x, y)
        optimizer(grads)
        losses.append(float(loss))
    return losses


OPTIMIZERS = {
    "SGD": lambda p: nn.SGD(p, 0.1),
    "Momentum": lambda p: nn.Momentum(p, 0.05, 0.9, weight_decay=1e-4),
    "Adam": lambda p: nn.Adam(p, 0.01),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.01),
    "AdaMax": lambda p: nn.AdaMax(p, 0.02),
    "RMSProp": lambda p: nn.RMSProp(p, 0.005),
    "Adagrad": lambda p: nn.Adagrad(p, learning_rate=0.05),
    "Adadelta": lambda p: nn.Adadelta(p, 10.0),
    "FTRL": lambda p: nn.FTRL(p, learning_rate=0.1),
    "Lamb": lambda p: nn.Lamb(p, 0.02),
    "LARS": lambda p: nn.LARS(nn.Momentum(p, 0.5, 0.9), coefficient=0.05),
    "Rprop": lambda p: nn.Rprop(p, 0.005),
    "ASGD": lambda p: nn.ASGD(p, 0.1),
    "warm up": lambda p: nn.Momentum(p, nn.WarmUpLR(0.05, 10), 0.9),
    "cosine list": lambda p: nn.Adam(p, nn.cosine_decay_lr(0.001, 0.02, 40, 1, 40)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_learns(name):
    ms.set_seed(1)
    net = Net()
    x, y = (Tensor(a) for a in quadrants())
    losses = learn(net, OPTIMIZERS[name](net.trainable_params()), x, y, 40)
    assert losses[-1] < 0.5 * losses[0], losses


def test_model_with_callbacks_metrics_and_amp_trains(tmp_path):
    ms.set_seed(2)
    x, y = quadrants(96)
    data = dataset.NumpySlicesDataset((x[:64], y[:64]), ["image", "label"]).batch(16)
    held_out = dataset.NumpySlicesDataset((x[64:], y[64:]), ["image", "label"]).batch(16)
    net = Net()
    model = train.Model(
        net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"accuracy"},
    )  # fmt: skip
    keep = train.ModelCheckpoint("net", str(tmp_path), train.CheckpointConfig(20))
    model.fit(10, data, held_out, callbacks=[keep])
    found = model.eval(held_out)["accuracy"]
    assert found > 0.9
    other = Net()
    missing, unused = ms.load_param_into_net(other, ms.load_checkpoint(keep.latest_ckpt_file_name))
    assert (
        not missing and "moments.head.weight" in unused
    )  # the optimiser's state is in the file too
    np.testing.assert_array_equal(
        other.set_train(False)(Tensor(x)).asnumpy(), net.set_train(False)(Tensor(x)).asnumpy()
    )


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "attention"])
def test_recurrent_networks_train(kind):
    """Which of two symbols came first."""
    ms.set_seed(3)
    random = np.random.RandomState(0)
    y = random.randint(0, 2, 64).astype(np.int32)
    x = 0.1 * random.randn(64, 5, 4).astype(np.float32)
    x[np.arange(64), 0, y] += 1
    x[np.arange(64), 3, 1 - y] += 1

    class Sequence(nn.Cell):
        def __init__(self):
            super().__init__()
            if kind == "attention":
                self.place = nn.Embedding(5, 4)
                self.body = nn.TransformerEncoderLayer(4, 2, 16, dropout=0.0, batch_first=True)
            else:
                self.body = getattr(nn, kind)(4, 4, batch_first=True)
            self.head = nn.Dense(4, 2)

        def construct(self, x):
            if kind == "attention":
                return self.head(self.body(x + self.place(ops.arange(5))).mean(1))
            return self.head(self.body(x)[0][:, -1])

    net = Sequence()
    losses = learn(net, nn.Adam(net.trainable_params(), 0.03), Tensor(x), Tensor(y), 120)
    assert losses[-1] < 0.3, losses[::20]


def test_equal_seeds_train_equally():
    def run():
        ms.set_seed(5)
        net = Net()
        x, y = (Tensor(a) for a in quadrants(16))
        learn(net, nn.Adam(net.trainable_params(), 0.01), x, y, 3)
        return [p.asnumpy() for p in net.get_parameters()]

    for a, b in zip(run(), run(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_tape_of_a_step_is_freed():
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    x, y = (Tensor(a) for a in quadrants(16))
    seen = []
    handle = net.features.register_forward_hook(
        lambda cell, args, out: seen.append(weakref.ref(out))
    )
    learn(net, optimizer, x, y, 3)
    handle.remove()
    gc.collect()
    assert len(seen) == 3 and all(r() is None for r in seen)


def test_gradients_in_evaluation_mode_equal_finite_differences():
    ms.set_seed(6)
    net = nn.SequentialCell(
        nn.Conv2d(1, 2, 3, pad_mode="valid"),
        nn.Tanh(),
        nn.Flatten(),
        nn.LayerNorm((8,)),
        nn.Dense(8, 3),
        nn.Softmax(),
    )
    x = np.random.RandomState(0).randn(2, 1, 4, 4).astype(np.float32)
    weight = Tensor(np.random.RandomState(1).randn(2, 3).astype(np.float32))

    def f(x):
        return (net(x) * weight).sum()

    grad = ms.grad(f)(Tensor(x)).asnumpy()
    for at in [(0, 0, 0, 0), (0, 0, 2, 1), (1, 0, 3, 3)]:
        step = np.zeros_like(x)
        step[at] = 1e-2
        wanted = (float(f(Tensor(x + step))) - float(f(Tensor(x - step)))) / 2e-2
        assert grad[at] == pytest.approx(wanted, rel=2e-2, abs=2e-4)
