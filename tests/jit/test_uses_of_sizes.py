"""Functions that use their sizes as Python does, called with many sizes, compiled and line by line.

The sizes 0 and 1 are among them, and sizes that were served before come again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from amount import spread
from duograph import nn, ops

SIZES = (5, 6, 7, 8, 6, 1, 9, 0, 4, 12, 7, 2, 3, 13)
PAIRS = (
    (5, 5),
    (6, 6),
    (7, 7),
    (7, 8),
    (8, 7),
    (9, 9),
    (1, 9),
    (9, 1),
    (4, 4),
    (0, 3),
    (10, 2),
    (10, 10),
    (11, 12),
)


def zeros(n: int) -> ms.Tensor:
    """Return a float32 tensor of n zeros."""
    return ms.Tensor(np.zeros(n, np.float32))


def countdown(x: ms.Tensor) -> ms.Tensor:
    """Double x once for each row after the third."""
    n, y = x.shape[0], x
    while n > 3:
        y, n = y * 2, n - 1
    return y


PROGRAMS: dict[str, Callable[[ms.Tensor], Any]] = {
    "mean by len": lambda x: x.sum(0) / len(x),
    "int division": lambda x: x[: x.shape[0] // 2] * 2,
    "reshape -1": lambda x: x.reshape(-1) * 2,
    "reshape product": lambda x: x.reshape(x.shape[0] * x.shape[1]),
    "reshape halves": lambda x: x.reshape(2, -1) if x.shape[0] % 2 == 0 else x.reshape(1, -1),
    "loop": lambda x: sum((x[i] for i in range(x.shape[0])), zeros(3)),
    "string": lambda x: x * len(f"{x.shape[0]}"),
    "dict key": lambda x: x * {5: 2.0, 6: 3.0}.get(x.shape[0], 1.0),
    "branch": lambda x: x * 2 if x.shape[0] > 6 else x * 3,
    "branch eq": lambda x: x * 2 if x.shape[0] == 7 else x * 3,
    "math": lambda x: x / math.sqrt(x.shape[0]),
    "numpy": lambda x: x * float(np.float32(x.shape[0])),
    "arange": lambda x: x + ops.arange(x.shape[0]).reshape(-1, 1),
    "ones": lambda x: ops.ones((x.shape[0], 2)) + x[:, :2],
    "eye": lambda x: ops.matmul(ops.eye(x.shape[0]), x),
    "broadcast": lambda x: x + x.mean(0, keep_dims=True),
    "outer": lambda x: ops.matmul(x, x.T),
    "concat": lambda x: ops.cat([x, x[:2]]),
    "index last": lambda x: x[-1],
    "index neg": lambda x: x[x.shape[0] - 1] if x.shape[0] else x,
    "negative slice": lambda x: x[-3:],
    "step slice": lambda x: x[::2],
    "reversed": lambda x: ops.flip(x, (0,)),
    "pad": lambda x: ops.pad(x, (0, 0, 0, 10 - x.shape[0])) if x.shape[0] <= 10 else x,
    "split": lambda x: ops.split(x, x.shape[0] // 2 or 1)[0] if x.shape[0] > 1 else x,
    "topk": lambda x: ops.topk(x, min(2, x.shape[0]), 0)[0] if x.shape[0] else x,
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: ops.softmax(x, 0),
    "max int": lambda x: x * max(x.shape[0], 6),
    "min": lambda x: x[: min(4, x.shape[0])],
    "size": lambda x: x / x.size if x.size else x,
    "ndim tuple": lambda x: x.reshape(x.shape + (1,)),
    "shape eq": lambda x: x * (2 if x.shape == (7, 3) else 1),
    "shape in": lambda x: x * (2 if x.shape[0] in (6, 8) else 1),
    "isinstance": lambda x: x * (2 if isinstance(x.shape[0], int) else 1),
    "type is int": lambda x: x * (2 if type(x.shape[0]) is int else 1),
    "bit ops": lambda x: x * (x.shape[0] & 1) + (x.shape[0] >> 1),
    "pow": lambda x: x * 2 ** x.shape[0],
    "divmod": lambda x: x * divmod(x.shape[0], 4)[1],
    "neg": lambda x: x * -x.shape[0] + abs(-x.shape[0]),
    "round": lambda x: x * round(x.shape[0] / 3),
    "bool": lambda x: x * 2 if x.shape[0] else x,
    "not": lambda x: x * 2 if not x.shape[0] % 2 else x,
    "int()": lambda x: x * int(x.shape[0] * 1.5),
    "float()": lambda x: x * float(x.shape[0]),
    "closure list": lambda x: x * [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13][x.shape[0]],
    "sorted": lambda x: x * sorted([x.shape[0], 6])[0],
    "sum": lambda x: x * sum([x.shape[0], 1]),
    "set": lambda x: x * len({x.shape[0], 6}),
    "comprehension": lambda x: (
        ops.stack([x[i % max(len(x), 1)] for i in range(3)]) if len(x) else x
    ),
    "zip": lambda x: sum([a * b for a, b in zip(x, x)], zeros(3)),
    "enumerate": lambda x: sum([a * i for i, a in enumerate(x)], zeros(3)),
    "while": lambda x: countdown(x),
    "expand": lambda x: ops.broadcast_to(x.mean(0), x.shape),
    "repeat": lambda x: ops.repeat_interleave(x, 2, 0),
    "tile": lambda x: ops.tile(x, (2, 1)),
    "scatter": lambda x: (
        ops.scatter_nd(ops.arange(x.shape[0]).reshape(-1, 1), x, (x.shape[0] + 1, 3))
        if x.shape[0]
        else x
    ),
    "one_hot": lambda x: (
        ops.one_hot(ms.Tensor([1, 2]), x.shape[0], ms.Tensor(1.0), ms.Tensor(0.0))
        if x.shape[0]
        else x
    ),
    "tri": lambda x: ops.tril(ops.matmul(x, x.T)),
    "std": lambda x: x.std(0) if x.shape[0] > 1 else x,
    "norm bn": lambda x: (x - x.mean()) / (x.var() + 1e-5),
    "einsum": lambda x: ops.einsum("ij,kj->ik", x, x),
    "where": lambda x: ops.where(x > 0, x, ms.Tensor(float(x.shape[0]))),
    "grad-like": lambda x: ms.grad(lambda t: (t * t).mean())(x) if x.size else x,
    "grad of pad": lambda x: ms.grad(lambda t: (ops.cat([t, t]) * t.shape[0]).sum())(x),
    "sort": lambda x: ops.sort(x, 0)[0],
    "interp": lambda x: (
        ops.interpolate(x.T.reshape(1, 3, -1), size=(2 * x.shape[0],), mode="nearest")[0]
        if x.shape[0]
        else x
    ),
}

OF_TWO: dict[str, Callable[[ms.Tensor, ms.Tensor], Any]] = {
    "add": lambda a, b: a + b,
    "matmul": lambda a, b: ops.matmul(a, b.T),
    "cat": lambda a, b: ops.cat([a, b]),
    "same branch": lambda a, b: a + b if a.shape == b.shape else a.sum() + b.sum(),
    "longer": lambda a, b: a if len(a) > len(b) else b,
    "outer": lambda a, b: a[:, None] * b[None],
    "mean both": lambda a, b: a.mean(0) * len(b) + b.mean(0) * len(a),
    "reshape like": lambda a, b: a.reshape(-1)[: b.size],
    "where": lambda a, b: ops.where(a[:1] > 0, b, -b),
    "mul shape": lambda a, b: a * (a.shape[0] * b.shape[0]),
    "diff": lambda a, b: a * (a.shape[0] - b.shape[0]),
    "grad": lambda a, b: ms.grad(lambda u, v: (ops.matmul(u, v.T) ** 2).mean(), (0, 1))(a, b),
    "attention": lambda a, b: ops.matmul(
        ops.softmax(ops.matmul(a, b.T) / a.shape[1] ** 0.5, -1), b
    ),
}


def value(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or the class of the error that it raises."""
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 (compared with the other way to run)
        return type(error)


def agree(got: Any, want: Any) -> None:
    """Compare two results of `value`: shapes and elements of tensors; that both are errors."""
    if isinstance(want, type) or isinstance(got, type):
        assert isinstance(want, type) and isinstance(got, type), (got, want)
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for mine, theirs in zip(got, want):
            agree(mine, theirs)
    else:
        mine, theirs = (v.asnumpy() if isinstance(v, ms.Tensor) else v for v in (got, want))
        assert np.shape(mine) == np.shape(theirs)
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-5)


def tensors(seed: int, *shapes: tuple[int, ...]) -> list[ms.Tensor]:
    """Return random float32 tensors."""
    rng = np.random.default_rng(seed)
    return [ms.Tensor(rng.normal(size=s).astype(np.float32)) for s in shapes]


@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning"
)  # the mean of nothing, and code that runs line by line
@pytest.mark.parametrize(("name", "level"), spread(PROGRAMS, ["O0", "O1"], 10))
def test_functions_of_one_size(name: str, level: str) -> None:
    function = PROGRAMS[name]
    compiled = ms.jit(function, jit_level=level)
    for n in SIZES:
        (x,) = tensors(n, (n, 3))
        agree(value(compiled, x), value(function, x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "level"), spread(OF_TWO, ["O0", "O1"], 4))
def test_functions_of_two_sizes(name: str, level: str) -> None:
    function = OF_TWO[name]
    compiled = ms.jit(function, jit_level=level)
    for n, m in PAIRS:
        given = tensors(n, (n, 3), (m, 3))
        agree(value(compiled, *given), value(function, *given))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_and_dtypes_that_vary_with_the_size() -> None:
    def scaled(x: Any, k: int = 1, more: Any = None) -> Any:
        return x * k + (more["b"] if more else 0), x.shape[0] * k

    compiled = ms.jit(scaled)
    for n, k in ((5, 1), (6, 2), (7, 3), (8, 4), (9, 5), (9, 6), (10, 1)):
        x, b = tensors(n, (n, 3), (n, 1))
        agree(compiled(x, k), scaled(x, k))
        agree(compiled(x, k, {"b": b}), scaled(x, k, {"b": b}))
    total = ms.jit(lambda x: (x * 2).sum(0))
    for n, dtype in enumerate(("float32", "float64", "int32", "float16", "float32", "int32"), 5):
        x = ms.Tensor(np.arange(3 * n).reshape(n, 3), getattr(ms, dtype))
        agree(total(x), (x * 2).sum(0))


def test_threads_that_call_with_different_sizes() -> None:
    def f(x: ms.Tensor) -> ms.Tensor:
        return ops.softmax(ops.matmul(x, x.T), -1).sum(0) * len(x)

    compiled = ms.jit(f)
    failed: list[BaseException] = []

    def calls(seed: int) -> None:
        try:
            for n in np.random.default_rng(seed).integers(1, 20, 20):
                (x,) = tensors(int(n), (int(n), 3))
                agree(compiled(x), f(x))
        except BaseException as error:  # noqa: BLE001 (raised below, in the test's thread)
            failed.append(error)

    threads = [threading.Thread(target=calls, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


class Images(nn.Cell):
    """A convolution, batch normalisation and pooling that small images leave out."""

    def __init__(self) -> None:
        super().__init__()
        self.c, self.b, self.d = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dense(4, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = ops.relu(self.b(self.c(x)))
        y = ops.max_pool2d(y, 2) if min(y.shape[2:]) > 1 else y
        return self.d(y.mean((2, 3)))


def test_images_of_varying_number_and_size() -> None:
    net, reference = Images(), Images()
    ms.load_param_into_net(reference, net.parameters_dict())
    compiled = ms.jit(net.construct)
    for n, h in ((2, 8), (3, 8), (4, 8), (5, 9), (5, 10), (6, 11), (1, 12), (7, 8), (3, 1), (2, 5)):
        (x,) = tensors(n, (n, 3, h, h))
        agree(compiled(x), reference.construct(x))


def test_a_recurrent_layer_of_varying_steps() -> None:
    rnn = nn.LSTM(3, 5)
    compiled = ms.jit(lambda x: rnn(x)[0])
    for n in (2, 3, 4, 5, 6, 1, 7):
        (x,) = tensors(n, (n, 2, 3))
        agree(compiled(x), rnn(x)[0])
