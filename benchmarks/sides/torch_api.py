"""The cases in PyTorch."""

import os
from time import perf_counter

import torch
import torch.nn.functional as F

from . import Case, inputs, repeat, small_torch

torch.set_num_threads(int(os.environ.get("BENCH_THREADS", "2")))


def _tensors(arrays):
    return [torch.from_numpy(array) for array in arrays]


def _simple(call):
    return Case(repeat(call), lambda: [call().detach().numpy()])


def _timed_add(a, b):
    def run(n):
        begin = perf_counter()
        for _ in range(n):
            a + b
        return perf_counter() - begin

    return run


def add3():
    a, b = _tensors(inputs.three())
    return Case(_timed_add(a, b), lambda: [(a + b).numpy()])


def add3_recorded():
    a, b = (t.requires_grad_() for t in _tensors(inputs.three()))
    return Case(
        _timed_add(a, b), lambda: [g.numpy() for g in torch.autograd.grad((a + b).sum(), (a, b))]
    )


def chain100():
    leaves = [t.requires_grad_() for t in _tensors(inputs.chain())]

    def gradient():
        out = inputs.chain_of_100(*leaves, torch.tanh, torch.sin, torch.exp, torch.sqrt).sum()
        return torch.autograd.grad(out, leaves)

    return Case(repeat(gradient), lambda: [g.numpy() for g in gradient()])


def matmul():
    a, b = _tensors(inputs.matrices())
    return _simple(lambda: torch.matmul(a, b))


def conv_forward():
    x, w, _ = _tensors(inputs.convolution())
    return _simple(lambda: F.conv2d(x, w, padding=1))


def _conv_gradient(position):
    x, w, dout = _tensors(inputs.convolution())
    leaf = (x, w)[position].requires_grad_()
    out = F.conv2d(x, w, padding=1)
    return _simple(lambda: torch.autograd.grad(out, leaf, dout, retain_graph=True)[0])


def conv_data_gradient():
    return _conv_gradient(0)


def conv_weight_gradient():
    return _conv_gradient(1)


def softmax():
    x, _, _ = _tensors(inputs.rows())
    return _simple(lambda: torch.softmax(x, -1))


def layer_norm():
    x, scale, shift = _tensors(inputs.rows())
    return _simple(lambda: F.layer_norm(x, (1024,), scale, shift, 1e-5))


def sum_all():
    x, _, _ = _tensors(inputs.rows())
    return _simple(lambda: x.sum())


def sum_rows():
    x, _, _ = _tensors(inputs.rows())
    return _simple(lambda: x.sum(-1))


def add_large():
    a, b = _tensors(inputs.large())
    return _simple(lambda: a + b)


def mul_large():
    a, b = _tensors(inputs.large())
    return _simple(lambda: a * b)


def relu_large():
    a, _ = _tensors(inputs.large())
    return _simple(lambda: torch.relu(a))


def _small(name, recorded):
    """Return the benchmark case of a small call; with `recorded`, under a recorded gradient."""

    def case():
        tensors = _tensors(inputs.small())
        if recorded:
            tensors = [t.requires_grad_(t.is_floating_point()) for t in tensors]
        call = small_torch.calls(*tensors)[name]
        run = repeat(call)

        def timed(n):
            with torch.set_grad_enabled(recorded):
                return run(n)

        return Case(timed, lambda: [call().detach().numpy()])

    return case


CASES = {
    f.__name__: f
    for f in (
        add3, add3_recorded, chain100, matmul, conv_forward, conv_data_gradient,
        conv_weight_gradient, softmax, layer_norm, sum_all, sum_rows, add_large, mul_large,
        relu_large,
    )
}  # fmt: skip
for _name in inputs.SMALL_CALLS:
    CASES[f"small: {_name}"] = _small(_name, False)
    CASES[f"small: {_name}, recorded"] = _small(_name, True)
