"""The workloads in MindSpore's API, for duograph or for the module named by `BENCH_MODULE`.

`BENCH_LEVEL` is "eager" or the `jit_level` of the compiled step. `BENCH_DEVICE` is the device, such
as OpenCL or OpenCL:1; the default is CPU. `BENCH_PARTS` decomposes attention into matmuls and a
softmax, as MindSpore computes it on the CPU.
"""

from __future__ import annotations

import importlib
import itertools
import os
from functools import partial

import numpy as np

from . import Case, data, function, training

ms = importlib.import_module(os.environ.get("BENCH_MODULE", "duograph"))
nn, ops = ms.nn, ms.ops
LEVEL = os.environ.get("BENCH_LEVEL", "O0")
DEVICE, _, DEVICE_ID = os.environ.get("BENCH_DEVICE", "CPU").partition(":")
ms.set_context(mode=ms.PYNATIVE_MODE, device_target=DEVICE, device_id=int(DEVICE_ID or 0))

# MindSpore has no fused attention on the CPU; there it is composed of matmuls and a softmax.
FUSED = ms.__name__ == "duograph" and not os.environ.get("BENCH_PARTS")
# Calls are asynchronous, except for those of duograph on the CPU.
SYNCHRONOUS = ms.__name__ == "duograph" and DEVICE == "CPU"
FINISH = None if SYNCHRONOUS else lambda _: ms.runtime.synchronize()


def _compiled(function):
    if LEVEL == "eager":
        return function
    return ms.jit(function, jit_config=ms.JitConfig(jit_level=LEVEL))


def _load(net, weights):
    """Assign weights to the parameters of a network by name."""
    renamed = {"gamma": "weight", "beta": "bias", "embedding_table": "weight",
               "moving_mean": "running_mean", "moving_variance": "running_var"}  # fmt: skip
    for parameter in net.get_parameters():
        first, _, last = parameter.name.rpartition(".")
        name = f"{first}.{renamed.get(last, last)}"
        parameter.set_data(ms.Tensor(weights[name]))


def _train(net, arrays: tuple, optimizer) -> Case:
    weights, x, y = arrays
    _load(net, weights)
    net.set_train()
    x, y = ms.Tensor(x), ms.Tensor(y)
    optimizer = optimizer(net.trainable_params())

    def loss(x, y):
        out = net(x)
        return ops.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))

    forward = ms.value_and_grad(loss, None, optimizer.parameters)

    def step(x, y):
        value, grads = forward(x, y)
        optimizer(grads)
        return value

    step = _compiled(step)
    return training(lambda: step(x, y), lambda value: float(value.asnumpy()))


# ---- networks ------------------------------------------------------------------------------------


class MLP(nn.Cell):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.CellList([nn.Dense(a, b) for a, b in itertools.pairwise(sizes)])

    def construct(self, x):
        for layer in self.layers[:-1]:
            x = ops.relu(layer(x))
        return self.layers[-1](x)


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.fc1 = nn.Dense(400, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)
        self.pool = nn.MaxPool2d(2, 2)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        x = ops.relu(self.fc1(x.reshape(x.shape[0], -1)))
        return self.fc3(ops.relu(self.fc2(x)))


def _conv(inputs, width, size, stride=1):
    return nn.Conv2d(inputs, width, size, stride, pad_mode="pad", padding=size // 2)


class BasicBlock(nn.Cell):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = _conv(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = nn.Identity()
        if stride > 1 or inputs != width:
            self.downsample = nn.SequentialCell(
                _conv(inputs, width, 1, stride), nn.BatchNorm2d(width)
            )

    def construct(self, x):
        out = ops.relu(self.bn1(self.conv1(x)))
        return ops.relu(self.bn2(self.conv2(out)) + self.downsample(x))


class ResNet18(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = _conv(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        stages = {}
        for name, inputs, width, stride in data.blocks(data.RESNET18, 64):
            stages.setdefault(name.split(".")[0], []).append(BasicBlock(inputs, width, stride))
        for name, layers in stages.items():
            setattr(self, name, nn.SequentialCell(*layers))
        self.fc = nn.Dense(512, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Block(nn.Cell):
    def __init__(self, width, heads, tokens, causal):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm((width,), epsilon=1e-5)
        self.qkv = nn.Dense(width, 3 * width)
        self.proj = nn.Dense(width, width)
        self.ln2 = nn.LayerNorm((width,), epsilon=1e-5)
        self.up = nn.Dense(width, 4 * width)
        self.down = nn.Dense(4 * width, width)
        self.causal, self.mask = causal, None
        if causal and not FUSED:
            self.mask = ms.Tensor(np.triu(np.full((tokens, tokens), -1e9, np.float32), 1))

    def construct(self, x):
        b, t, c = x.shape
        qkv = self.qkv(self.ln1(x))
        if FUSED:
            q, k, v = ops.split(qkv, c, -1)
            y = ops.flash_attention_score(
                q,
                k,
                v,
                self.heads,
                scalar_value=(c // self.heads) ** -0.5,
                sparse_mode=2 if self.causal else 0,
            )
            return self.fed(x + self.proj(y))
        q, k, v = (
            qkv.reshape(b, t, 3, self.heads, c // self.heads).transpose(2, 0, 3, 1, 4).unbind(0)
        )
        scores = ops.matmul(q, k.swapaxes(2, 3)) * (c // self.heads) ** -0.5
        if self.mask is not None:
            scores = scores + self.mask
        y = ops.matmul(ops.softmax(scores, -1), v)
        return self.fed(x + self.proj(y.swapaxes(1, 2).reshape(b, t, c)))

    def fed(self, x):
        return x + self.down(ops.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Cell):
    def __init__(self, layers, width, heads, tokens, vocabulary, **_):
        super().__init__()
        self.tok = nn.Embedding(vocabulary, width)
        self.pos = nn.Embedding(tokens, width)
        self.positions = ms.Tensor(np.arange(tokens, dtype=np.int32))
        self.blocks = nn.CellList([Block(width, heads, tokens, True) for _ in range(layers)])
        self.ln = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, vocabulary, has_bias=False)

    def construct(self, ids):
        x = self.tok(ids) + self.pos(self.positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


class LSTM(nn.Cell):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(256, 256, 2)
        self.fc = nn.Dense(256, 10)

    def construct(self, x):
        return self.fc(self.rnn(x)[0][-1])


# ---- training ------------------------------------------------------------------------------------


class Corrected(nn.learning_rate_schedule.LearningRateSchedule):
    """A learning rate schedule that contains AdamW's bias correction.

    `AdamWeightDecay` itself has no such correction.
    """

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def construct(self, global_step):
        t = global_step.astype(ms.float32) + 1.0
        return self.rate * ops.sqrt(1.0 - ops.pow(0.999, t)) / (1.0 - ops.pow(0.9, t))


def _adam(parameters):
    return nn.Adam(parameters, 1e-3, eps=data.EPSILON)


def _momentum(rate):
    return lambda parameters: nn.Momentum(parameters, rate, 0.9)


def mlp():
    return _train(MLP(data.MLP_SIZES), data.mlp(), _adam)


def lenet():
    return _train(LeNet(), data.lenet(), _momentum(0.01))


def resnet18():
    return _train(ResNet18(), data.resnet18(), _momentum(0.01))


def gpt():
    return _train(
        GPT(**data.GPT),
        data.gpt(),
        lambda p: nn.AdamWeightDecay(p, Corrected(3e-4), eps=data.EPSILON, weight_decay=0.01),
    )


def lstm():
    return _train(LSTM(), data.lstm(), _adam)


def _deep(depth):
    return _train(MLP([128] * (depth + 1) + [10]), data.deep(depth), _adam)


def _batch(batch):
    return _train(MLP(data.MLP_SIZES), data.mlp(batch), _adam)


# ---- calls, kernels, loops -----------------------------------------------------------------------


def _function(f, *arrays):
    arguments = [ms.Tensor(a) for a in arrays]
    call = _compiled(f)
    return function(lambda: call(*arguments), lambda out: out.asnumpy(), FINISH)


def call3():
    def f(x, y):
        return x * y + x

    return _function(f, *data.three())


class Fifty(nn.Cell):
    def __init__(self):
        super().__init__()
        self.all = ms.ParameterTuple(
            [ms.Parameter(ms.Tensor(p), name=f"p{i}") for i, p in enumerate(data.parameters())]
        )

    def construct(self, x):
        y = x
        for p in self.all:
            y = y * p + x
        return y


def call50():
    net = Fifty()

    def f(x):
        return net(x)

    return _function(f, data.three()[0])


def chain():
    def f(x):
        return ops.tanh(x) * ops.sigmoid(x) + ops.exp(-x * x)

    return _function(f, data.large())


def softmax():
    def f(x):
        return ops.softmax(x, -1)

    return _function(f, data.rows()[0])


def layer_norm():
    def f(x, scale, shift):
        return ops.layer_norm(x, (1024,), scale, shift, 1e-5)

    primitive = ops.LayerNorm(-1, -1, 1e-5)

    def g(x, scale, shift):  # the function has no kernel on MindSpore's CPU
        return primitive(x, scale, shift)[0]

    return _function(f if ms.__name__ == "duograph" else g, *data.rows())


def sum_rows():
    def f(x):
        return x.sum(-1)

    return _function(f, data.rows()[0])


def transpose():
    def f(x):
        return x.transpose(1, 0)

    return _function(f, data.rows()[0])


def argmax_rows():
    def f(x):
        return ops.argmax(x, 1)

    return _function(f, data.rows()[0])


def _product(a, b):
    return ops.matmul(a, b)


def matmul512():
    return _function(_product, *(m[:512, :512] for m in data.matrices(512)))


def matmul1024():
    return _function(_product, *data.matrices(1024))


def matmul4096():
    return _function(_product, *data.matrices(4096))


def newton_inverse():
    eye = ms.Tensor(np.eye(256, dtype=np.float32))

    def f(a):
        x = a.T / (a.abs().sum(0).max() * a.abs().sum(1).max())
        e = (ops.matmul(a, x) - eye).abs().max()
        while e > data.LOOP_TOLERANCE:
            x = ops.matmul(x, 2.0 * eye - ops.matmul(a, x))
            e = (ops.matmul(a, x) - eye).abs().max()
        return x

    return _function(f, data.definite())


def newton_root():
    eye = ms.Tensor(np.eye(256, dtype=np.float32))

    def f(a):
        norm = ops.sqrt((a * a).sum())
        y, z, e = a / norm, eye, norm / norm
        while e > data.LOOP_TOLERANCE:
            zy = ops.matmul(z, y)
            t = 1.5 * eye - 0.5 * zy
            y, z, e = ops.matmul(y, t), ops.matmul(t, z), (zy - eye).abs().max()
        return y * ops.sqrt(norm)

    return _function(f, data.definite())


# ---- inference, batch 1 --------------------------------------------------------------------------


class Bottleneck(nn.Cell):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = _conv(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _conv(width, 4 * width, 1)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = nn.Identity()
        if stride > 1 or inputs != 4 * width:
            self.downsample = nn.SequentialCell(
                _conv(inputs, 4 * width, 1, stride), nn.BatchNorm2d(4 * width)
            )

    def construct(self, x):
        out = ops.relu(self.bn1(self.conv1(x)))
        out = ops.relu(self.bn2(self.conv2(out)))
        return ops.relu(self.bn3(self.conv3(out)) + self.downsample(x))


class ResNet50(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = _conv(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        blocks = data.blocks(data.RESNET50, 64, 4)
        self.blocks = nn.CellList(
            [Bottleneck(inputs, width, stride) for _, inputs, width, stride in blocks]
        )
        self.fc = nn.Dense(2048, 1000)

    def construct(self, x):
        x = self.pool(ops.relu(self.bn1(self.conv1(x))))
        for block in self.blocks:
            x = block(x)
        return self.fc(x.mean((2, 3)))


class InvertedResidual(nn.Cell):
    def __init__(self, inputs, hidden, outputs, stride):
        super().__init__()
        self.add = stride == 1 and inputs == outputs
        self.grow = hidden != inputs
        if self.grow:
            self.expand = _conv(inputs, hidden, 1)
            self.bn1 = nn.BatchNorm2d(hidden)
        self.depthwise = nn.Conv2d(
            hidden, hidden, 3, stride, pad_mode="pad", padding=1, group=hidden
        )
        self.bn2 = nn.BatchNorm2d(hidden)
        self.project = _conv(hidden, outputs, 1)
        self.bn3 = nn.BatchNorm2d(outputs)

    def construct(self, x):
        out = ops.relu6(self.bn1(self.expand(x))) if self.grow else x
        out = ops.relu6(self.bn2(self.depthwise(out)))
        out = self.bn3(self.project(out))
        return x + out if self.add else out


class MobileNetV2(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = _conv(3, 32, 3, 2)
        self.bn1 = nn.BatchNorm2d(32)
        self.blocks = nn.CellList([InvertedResidual(*sizes) for sizes in data.inverted_residuals()])
        self.conv2 = _conv(320, 1280, 1)
        self.bn2 = nn.BatchNorm2d(1280)
        self.fc = nn.Dense(1280, 1000)

    def construct(self, x):
        x = ops.relu6(self.bn1(self.conv1(x)))
        for block in self.blocks:
            x = block(x)
        return self.fc(ops.relu6(self.bn2(self.conv2(x))).mean((2, 3)))


class Encoder(nn.Cell):
    def __init__(self, layers, width, heads, tokens):
        super().__init__()
        self.blocks = nn.CellList([Block(width, heads, tokens, False) for _ in range(layers)])
        self.ln = nn.LayerNorm((width,), epsilon=1e-5)

    def construct(self, x):
        for block in self.blocks:
            x = block(x)
        return self.ln(x)


def _inference(net, arrays):
    weights, x = arrays
    _load(net, weights)
    net.set_train(False)

    def f(x):
        return net(x)

    return _function(f, x)


def resnet50():
    return _inference(ResNet50(), data.resnet50())


def mobilenet():
    return _inference(MobileNetV2(), data.mobilenet())


def encoder():
    return _inference(Encoder(**data.ENCODER), data.encoder())


class DigitsNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, has_bias=True)
        self.conv2 = nn.Conv2d(16, 32, 3, has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Dense(512, 64)
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv2(ops.relu(self.conv1(x)))))
        return self.fc2(ops.relu(self.fc1(x.reshape(x.shape[0], -1))))


def digits(train_x, train_y, test_x, test_y):
    """Run the digits job; return the loss of every step, and the accuracy on held-out digits."""
    net = DigitsNet()
    _load(net, data.digits_weights())
    optimizer = _adam(net.trainable_params())

    def loss(x, y):
        return ops.cross_entropy(net(x), y)

    forward = ms.value_and_grad(loss, None, optimizer.parameters)

    def step(x, y):
        value, grads = forward(x, y)
        optimizer(grads)
        return value

    step = _compiled(step)
    losses = []
    for rows in data.digits_batches(len(train_x)):
        losses.append(float(step(ms.Tensor(train_x[rows]), ms.Tensor(train_y[rows])).asnumpy()))
    return losses, float((net(ms.Tensor(test_x)).asnumpy().argmax(1) == test_y).mean())


CASES = {
    f.__name__: f
    for f in (
        call3,
        call50,
        chain,
        softmax,
        layer_norm,
        sum_rows,
        transpose,
        argmax_rows,
        matmul512,
        matmul1024,
        matmul4096,
        mlp,
        lenet,
        resnet18,
        gpt,
        lstm,
        newton_inverse,
        newton_root,
        resnet50,
        mobilenet,
        encoder,
    )
}
CASES |= {f"depth{n}": partial(_deep, n) for n in data.DEPTHS}
CASES |= {f"batch{n}": partial(_batch, n) for n in data.BATCHES}
