"""The workloads in PyTorch: eager, or compiled if `BENCH_COMPILE` is set."""

from __future__ import annotations

import itertools
import os
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops import while_loop

from . import Case, data, function, training

torch.set_num_threads(int(os.environ.get("BENCH_THREADS", "2")))
COMPILE = bool(os.environ.get("BENCH_COMPILE"))


def _compiled(function):
    return torch.compile(function) if COMPILE else function


def _train(net: nn.Module, arrays: tuple, optimizer) -> Case:
    weights, x, y = arrays
    net.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()}, strict=False)
    x, y = torch.from_numpy(x), torch.from_numpy(y).long()
    optimizer = optimizer(net.parameters())
    forward = _compiled(lambda x, y: F.cross_entropy(net(x).flatten(0, -2), y.flatten()))

    def step():
        optimizer.zero_grad()
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return training(step, lambda loss: loss.item())


# ---- networks ------------------------------------------------------------------------------------


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


class BasicBlock(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = nn.Identity()
        if stride > 1 or inputs != width:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self.downsample(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        stages = {}
        for name, inputs, width, stride in data.blocks(data.RESNET18, 64):
            stages.setdefault(name.split(".")[0], []).append(BasicBlock(inputs, width, stride))
        for name, layers in stages.items():
            setattr(self, name, nn.Sequential(*layers))
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        qkv = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers, width, heads, tokens, vocabulary, **_):
        super().__init__()
        self.tok = nn.Embedding(vocabulary, width)
        self.pos = nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads, True) for _ in range(layers))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(256, 256, 2)
        self.fc = nn.Linear(256, 10)

    def forward(self, x):
        return self.fc(self.rnn(x)[0][-1])


# ---- training ------------------------------------------------------------------------------------


def _adam(parameters):
    return torch.optim.Adam(parameters, 1e-3, eps=data.EPSILON, fused=True)


def _momentum(rate):
    return lambda parameters: torch.optim.SGD(parameters, rate, momentum=0.9, fused=True)


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
        lambda p: torch.optim.AdamW(p, 3e-4, eps=data.EPSILON, weight_decay=0.01, fused=True),
    )


def lstm():
    return _train(LSTM(), data.lstm(), _adam)


def _deep(depth):
    return _train(MLP([128] * (depth + 1) + [10]), data.deep(depth), _adam)


def _batch(batch):
    return _train(MLP(data.MLP_SIZES), data.mlp(batch), _adam)


# ---- calls, kernels, loops -----------------------------------------------------------------------


def _function(f, *arrays):
    """Return the case of a function; gradients are disabled for the whole process."""
    torch.set_grad_enabled(False)
    arguments = [torch.from_numpy(a) for a in arrays]
    call = _compiled(f)
    return function(lambda: call(*arguments), lambda out: out.numpy())


def call3():
    return _function(lambda x, y: x * y + x, *data.three())


def call50():
    def f(x, *parameters):
        y = x
        for p in parameters:
            y = y * p + x
        return y

    return _function(f, data.three()[0], *data.parameters())


def chain():
    return _function(lambda x: torch.tanh(x) * torch.sigmoid(x) + torch.exp(-x * x), data.large())


def softmax():
    return _function(lambda x: torch.softmax(x, -1), data.rows()[0])


def layer_norm():
    return _function(
        lambda x, scale, shift: F.layer_norm(x, (1024,), scale, shift, 1e-5), *data.rows()
    )


def sum_rows():
    return _function(lambda x: x.sum(-1), data.rows()[0])


def matmul1024():
    return _function(torch.matmul, *data.matrices(1024))


def matmul4096():
    return _function(torch.matmul, *data.matrices(4096))


def _loop(going, body, state):
    """Run a loop: by `while_loop` in compiled mode, else by Python's `while`."""
    if COMPILE:
        return while_loop(going, body, state)
    while going(*state):
        state = body(*state)
    return state


def newton_inverse():
    def f(a):
        eye = torch.eye(256)
        x = a.T / (a.abs().sum(0).max() * a.abs().sum(1).max())
        return _loop(
            lambda x, e: e > data.LOOP_TOLERANCE,
            lambda x, e: (y := x @ (2 * eye - a @ x), (a @ y - eye).abs().max()),
            (x, (a @ x - eye).abs().max()),
        )[0]

    return _function(f, data.definite())


def newton_root():
    def f(a):
        eye = torch.eye(256)
        norm = torch.sqrt((a * a).sum())
        y, _, _ = _loop(
            lambda y, z, e: e > data.LOOP_TOLERANCE,
            _root_step,
            (a / norm, eye.clone(), norm / norm),
        )
        return y * torch.sqrt(norm)

    def _root_step(y, z, e):
        zy = z @ y
        eye = torch.eye(256)
        t = 1.5 * eye - 0.5 * zy
        return y @ t, t @ z, (zy - eye).abs().max()

    return _function(f, data.definite())


# ---- inference, batch 1 --------------------------------------------------------------------------


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = nn.Identity()
        if stride > 1 or inputs != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        return F.relu(self.bn3(self.conv3(out)) + self.downsample(x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.blocks = nn.ModuleList(
            Bottleneck(inputs, width, stride)
            for _, inputs, width, stride in data.blocks(data.RESNET50, 64, 4)
        )
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        return self.fc(x.mean((2, 3)))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, hidden, outputs, stride):
        super().__init__()
        self.add = stride == 1 and inputs == outputs
        self.expand = (
            nn.Conv2d(inputs, hidden, 1, bias=False) if hidden != inputs else nn.Identity()
        )
        self.bn1 = nn.BatchNorm2d(hidden) if hidden != inputs else nn.Identity()
        self.act1 = nn.ReLU6() if hidden != inputs else nn.Identity()
        self.depthwise = nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False)
        self.bn2 = nn.BatchNorm2d(hidden)
        self.project = nn.Conv2d(hidden, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        out = self.act1(self.bn1(self.expand(x)))
        out = F.relu6(self.bn2(self.depthwise(out)))
        out = self.bn3(self.project(out))
        return x + out if self.add else out


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.blocks = nn.ModuleList(InvertedResidual(*sizes) for sizes in data.inverted_residuals())
        self.conv2 = nn.Conv2d(320, 1280, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(1280)
        self.fc = nn.Linear(1280, 1000)

    def forward(self, x):
        x = F.relu6(self.bn1(self.conv1(x)))
        for block in self.blocks:
            x = block(x)
        return self.fc(F.relu6(self.bn2(self.conv2(x))).mean((2, 3)))


class Encoder(nn.Module):
    def __init__(self, layers, width, heads, tokens):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, heads, False) for _ in range(layers))
        self.ln = nn.LayerNorm(width)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.ln(x)


def network(net: nn.Module, weights: data.Arrays) -> nn.Module:
    net.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()}, strict=False)
    return net.eval()


NETWORKS = {
    "resnet50": ResNet50,
    "mobilenet": MobileNetV2,
    "encoder": lambda: Encoder(**data.ENCODER),
}


def _inference(name):
    weights, x = getattr(data, name)()
    return _function(network(NETWORKS[name](), weights), x)


def resnet50():
    return _inference("resnet50")


def mobilenet():
    return _inference("mobilenet")


def encoder():
    return _inference("encoder")


class DigitsNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(512, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def digits(train_x, train_y, test_x, test_y):
    """Run the digits job; return the loss of every step, and the accuracy on held-out digits."""
    net = DigitsNet()
    net.load_state_dict({k: torch.from_numpy(v) for k, v in data.digits_weights().items()})
    train_x, train_y = torch.from_numpy(train_x), torch.from_numpy(train_y).long()
    optimizer = _adam(net.parameters())
    forward = _compiled(lambda x, y: F.cross_entropy(net(x), y))
    losses = []
    for rows in data.digits_batches(len(train_x)):
        optimizer.zero_grad()
        loss = forward(train_x[rows], train_y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.inference_mode():
        return losses, float((net(torch.from_numpy(test_x)).argmax(1).numpy() == test_y).mean())


CASES = {
    f.__name__: f
    for f in (
        call3,
        call50,
        chain,
        softmax,
        layer_norm,
        sum_rows,
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
