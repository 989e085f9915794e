"""The cases in MindSpore's API, for duograph or for the module named by `BENCH_MODULE`."""

import importlib
import os
from time import perf_counter

from . import Case, inputs, repeat, small_mindspore

ms = importlib.import_module(os.environ.get("BENCH_MODULE", "duograph"))
ops = ms.ops

if ms.__name__ == "mindspore":
    # At its best on small eager ops, and it makes a returned result a finished one.
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU", pynative_synchronize=True)
else:
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")


def _tensors(arrays):
    return [ms.Tensor(array) for array in arrays]


def _simple(call):
    return Case(repeat(call), lambda: [call().asnumpy()])


def add3():
    a, b = _tensors(inputs.three())

    def run(n):
        begin = perf_counter()
        for _ in range(n):
            a + b
        return perf_counter() - begin

    return Case(run, lambda: [(a + b).asnumpy()])


def add3_recorded():
    a, b = _tensors(inputs.three())
    seconds = 0.0

    def under_tape(n):
        def f(a, b):
            nonlocal seconds
            begin = perf_counter()
            for _ in range(n):
                a + b
            seconds = perf_counter() - begin
            return (a + b).sum()

        return ms.grad(f, (0, 1))(a, b)

    def run(n):
        under_tape(n)
        return seconds

    return Case(run, lambda: [g.asnumpy() for g in under_tape(1)])


def chain100():
    x, w, b = _tensors(inputs.chain())

    def f(x, w, b):
        return inputs.chain_of_100(x, w, b, ops.tanh, ops.sin, ops.exp, ops.sqrt).sum()

    gradient = ms.grad(f, (0, 1, 2))
    return Case(repeat(lambda: gradient(x, w, b)), lambda: [g.asnumpy() for g in gradient(x, w, b)])


def matmul():
    a, b = _tensors(inputs.matrices())
    return _simple(lambda: ops.matmul(a, b))


def _conv(x, w):
    return ops.conv2d(x, w, pad_mode="pad", padding=1)


def conv_forward():
    x, w, _ = _tensors(inputs.convolution())
    return _simple(lambda: _conv(x, w))


def conv_data_gradient():
    x, w, dout = _tensors(inputs.convolution())
    _, vjp_fn = ms.vjp(lambda x: _conv(x, w), x)
    return _simple(lambda: _first(vjp_fn(dout)))


def conv_weight_gradient():
    x, w, dout = _tensors(inputs.convolution())
    _, vjp_fn = ms.vjp(lambda w: _conv(x, w), w)
    return _simple(lambda: _first(vjp_fn(dout)))


def _first(gradients):
    return gradients[0] if isinstance(gradients, (tuple, list)) else gradients


def softmax():
    x, _, _ = _tensors(inputs.rows())
    return _simple(lambda: ops.softmax(x, axis=-1))


def layer_norm():
    x, scale, shift = _tensors(inputs.rows())
    return _simple(lambda: ops.layer_norm(x, (1024,), scale, shift, 1e-5))


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
    return _simple(lambda: ops.relu(a))


def _small(name, recorded):
    """Return the benchmark case of a small call; with `recorded`, under a recorded gradient."""

    def case():
        tensors = _tensors(inputs.small())
        call = small_mindspore.calls(ms, *tensors)[name]
        plain = repeat(call)
        seconds = 0.0

        def under_tape(n):
            def f(*floats):
                nonlocal seconds
                seconds = repeat(small_mindspore.calls(ms, *floats, *tensors[4:])[name])(n)
                return floats[0].sum()

            ms.grad(f, (0, 1, 2, 3))(*tensors[:4])
            return seconds

        return Case(under_tape if recorded else plain, lambda: [call().asnumpy()])

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
