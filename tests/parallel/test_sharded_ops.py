"""Ops on operands that are divided among ranks give the results and gradients of whole operands."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Layout, nn, ops
from duograph_collectives.local import run_ranks

Function = Callable[..., Any]
# as many ranks as a mesh has places; axes of size 1 divide nothing
MESHES = [
    ((2, 2), ("dp", "mp")),
    ((4, 1), ("dp", "mp")),
    ((1, 4), ("dp", "mp")),
    ((4,), ("dp",)),
]
_random = np.random.default_rng(0)


def real(*shape: int) -> np.ndarray:
    return _random.normal(size=shape).astype(np.float32)


def index(n: int, *shape: int) -> np.ndarray:
    return _random.integers(0, n, shape).astype(np.int32)


_labels = index(8, 16)
_table = index(16, 4, 8)
_places = index(8, 8, 4)
_norm = nn.LayerNorm((8,))
_heads = 4

# name -> (function, operands); the first operands of float32 are differentiated
CASES: dict[str, tuple[Function, list[np.ndarray]]] = {
    "add": (lambda x, y: x + y, [real(4, 8), real(4, 8)]),
    "add, broadcast": (lambda x, y: x + y, [real(4, 8, 4), real(8, 1)]),
    "sub, mul, div": (lambda x, y: (x - y) * x / (y * y + 1), [real(8, 8), real(8, 8)]),
    "scalar": (lambda x: 2.5 * x + 1, [real(4, 8)]),
    "relu": (ops.relu, [real(4, 8)]),
    "gelu": (ops.gelu, [real(4, 8)]),
    "tanh, exp": (lambda x: ops.tanh(x) * ops.exp(x), [real(16)]),
    "where": (lambda x, y: ops.where(x > 0, x, y), [real(4, 8), real(4, 8)]),
    "cast": (lambda x: x.astype(ms.float64) * 3, [real(4, 8)]),
    "matmul": (ops.matmul, [real(8, 4), real(4, 8)]),
    "matmul, both transposed": (lambda x, y: ops.matmul(x.T, y.T), [real(4, 8), real(8, 4)]),
    "matmul, chain": (lambda x, y, z: ops.matmul(ops.matmul(x, y), z),
                      [real(8, 4), real(4, 8), real(8, 4)]),
    "matmul, batch": (ops.matmul, [real(4, 8, 4), real(4, 4, 8)]),
    "matmul, broadcast batch": (ops.matmul, [real(4, 4, 8, 4), real(4, 8)]),
    "dense": (lambda x, w, b: ops.dense(x, w, b), [real(4, 8, 8), real(16, 8), real(16)]),
    "sum": (lambda x: x.sum(), [real(4, 8)]),
    "sum, one axis": (lambda x: x.sum(1), [real(4, 8, 4)]),
    "sum, keepdims": (lambda x: x - x.sum((0, 2), keepdims=True), [real(4, 8, 4)]),
    "mean": (lambda x: x.mean(0), [real(8, 4)]),
    "var": (lambda x: ops.var(x, 1), [real(4, 8)]),
    "max": (lambda x: x.max(1), [real(4, 8)]),
    "min, keepdims": (lambda x: x / ops.amin(x, 0, True), [real(8, 4)]),
    "prod": (lambda x: x.prod(1), [real(4, 8)]),
    "all, any": (lambda x: ((x > -9).all(1), (x > 1).any(0)), [real(4, 8)]),
    "norm": (lambda x: ops.norm(x), [real(4, 8)]),
    "transpose": (lambda x: x.transpose(2, 0, 1), [real(4, 8, 4)]),
    "reshape, joined": (lambda x: x.reshape(32, 4), [real(4, 8, 4)]),
    "reshape, divided": (lambda x: x.reshape(4, 2, 4, 4), [real(8, 16)]),
    "reshape, mixed": (lambda x: x.reshape(8, 6), [real(4, 12)]),
    "reshape, size 1": (lambda x: x.reshape(1, 8, 1, 4), [real(8, 4)]),
    "expand_dims, squeeze": (lambda x: x.expand_dims(1).squeeze(1) * 2, [real(4, 8)]),
    "broadcast_to": (lambda x: ops.broadcast_to(x, (4, 8, 4)), [real(8, 1)]),
    "concat": (lambda x, y: ops.concat((x, y), 1), [real(4, 8), real(4, 4)]),
    "stack": (lambda x, y: ops.stack((x, y), 1), [real(4, 8), real(4, 8)]),
    "split": (lambda x: ops.split(x, 4, 1), [real(4, 8)]),
    "slice": (lambda x: x[:, 1:5], [real(4, 8)]),
    "slice, both": (lambda x: x[2:, ::2], [real(4, 8)]),
    "index": (lambda x: x[1], [real(4, 8)]),
    "pad": (lambda x: ops.pad(x, (1, 2)), [real(4, 8)]),
    "flip": (lambda x: ops.flip(x, (0,)), [real(4, 8)]),
    "tile": (lambda x: ops.tile(x, (2, 1)), [real(4, 8)]),
    "embedding": (lambda w, i: ops.gather(w, i, 0), [real(16, 8), _table]),
    "gather, axis 1": (lambda w, i: ops.gather(w, i, 1), [real(4, 16), _table]),
    "gather_elements": (lambda x, i: ops.gather_elements(x, 1, i), [real(8, 8), _places]),
    "scatter_add": (
        lambda x, i, u: ops.tensor_scatter_add(x, i.reshape(16, 1), u),
        [real(8, 4), _labels, real(16, 4)],
    ),
    "index_add": (lambda x, i, u: ops.index_add(x, i, u, 0), [real(8, 4), _labels, real(16, 4)]),
    "softmax": (lambda x: ops.softmax(x, 1), [real(4, 8)]),
    "log_softmax": (lambda x: ops.log_softmax(x, 0), [real(4, 8)]),
    "logsumexp": (lambda x: ops.logsumexp(x, 1), [real(4, 8)]),
    "layer_norm": (lambda x: _norm(x), [real(4, 4, 8)]),
    "rms_norm": (lambda x, g: ops.rms_norm(x, g)[0], [real(4, 4, 8), real(8)]),
    "cross_entropy": (ops.cross_entropy, [real(16, 8), _labels]),
    "cross_entropy, sum": (
        lambda x, y: ops.cross_entropy(x, y, reduction="sum", label_smoothing=0.1),
        [real(16, 8), _labels],
    ),
    "mse_loss": (lambda x, y: ops.mse_loss(x, y), [real(4, 8), real(4, 8)]),
    "binary_cross_entropy": (
        lambda x, y: ops.binary_cross_entropy_with_logits(x, ops.sigmoid(y)),
        [real(4, 8), real(4, 8)],
    ),
    "attention": (
        lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(2, 3))), v),
        [real(4, 4, 4, 8), real(4, 4, 4, 8), real(4, 4, 4, 8)],
    ),
    "heads": (
        lambda x: x.reshape(4, 4, _heads, 4).transpose(0, 2, 1, 3).reshape(16, 4, 4),
        [real(4, 4, 16)],
    ),
    "conv": (lambda x, w: ops.conv2d(x, w), [real(4, 4, 6, 6), real(8, 4, 3, 3)]),
    "conv, groups": (
        lambda x, w: ops.conv2d(x, w, groups=2), [real(4, 4, 6, 6), real(8, 2, 3, 3)],
    ),
    "max_pool": (lambda x: ops.max_pool2d(x, 2), [real(4, 8, 4, 4)]),
    "avg_pool": (lambda x: ops.avg_pool2d(x, 2), [real(4, 8, 4, 4)]),
    "cumsum": (lambda x: ops.cumsum(x, 1), [real(4, 8)]),
    "sort": (lambda x: ops.sort(x, 1)[0], [real(4, 8)]),
    "topk": (lambda x: ops.topk(x, 4)[0], [real(4, 8)]),
    "argmax": (lambda x: (x * 1, ops.argmax(x, 1)), [real(4, 8)]),
    "one_hot": (lambda x, i: x * ops.one_hot(i, 8, 1.0, 0.0), [real(16, 8), _labels]),
    "arange": (lambda x: x * ops.arange(8).astype(ms.float32), [real(4, 8)]),
    "zeros": (lambda x: x + ops.zeros((4, 8), ms.float32) + ops.ones_like(x), [real(4, 8)]),
    "stop_gradient": (lambda x: x * ops.stop_gradient(x), [real(4, 8)]),
    "no equation": (lambda x: ops.svd(x, compute_uv=False), [real(4, 8)]),
    "same operand twice": (lambda x: ops.matmul(x, x), [real(8, 8)]),
    "loop": (lambda x: _powers(x), [real(4, 8)]),
    "branch": (lambda x: _branch(x), [real(4, 8)]),
}  # fmt: skip
WITHOUT_GRADIENT = {"no equation", "all, any", "argmax"}


def _powers(x: ms.Tensor) -> ms.Tensor:
    i = ops.zeros((), ms.int32)
    while i < 3:
        x = x * 1.5
        i = i + 1
    return x


def _branch(x: ms.Tensor) -> ms.Tensor:
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    yield
    ms.reset_auto_parallel_context()


def layouts(
    arrays: list[np.ndarray], mesh: tuple[tuple[int, ...], tuple[str, ...]], seed: int
) -> tuple[Layout, ...]:
    """A random layout of each array: every mesh axis divides at most one of its axes."""
    random = np.random.default_rng(seed)
    sizes, names = mesh
    found = []
    for x in arrays:
        entries: list[list[str]] = [[] for _ in x.shape]
        left = list(x.shape)
        for k in random.permutation(len(names)):
            axis = int(random.integers(-1, x.ndim)) if x.ndim else -1
            if axis >= 0 and left[axis] % sizes[k] == 0:
                entries[axis].append(names[k])
                left[axis] //= sizes[k]
        found.append(Layout(sizes, names)(*(tuple(e) if e else "None" for e in entries)))
    return tuple(found)


def outputs(found: Any) -> list[np.ndarray]:
    values = found if isinstance(found, (tuple, list)) else (found,)
    return [v.asnumpy() for v in values]


def total(found: Any) -> ms.Tensor:
    """A sum of results in which every element counts differently."""
    values = found if isinstance(found, (tuple, list)) else (found,)
    parts = [(v * ops.arange(v.size).reshape(v.shape).astype(v.dtype)).sum() for v in values]
    return sum(parts[1:], parts[0])


def evaluated(
    function: Function, arrays: list[np.ndarray], with_gradient: bool
) -> list[np.ndarray]:
    """Results and gradients of a function, compiled."""
    tensors = [ms.Tensor(x) for x in arrays]
    found = outputs(ms.jit(function)(*tensors))
    if with_gradient:
        first = tuple(i for i, x in enumerate(arrays) if x.dtype == np.float32)
        back = ms.grad(lambda *args: total(function(*args)), first)
        found += outputs(ms.jit(lambda *args: back(*args))(*tensors))
    return found


@pytest.mark.parametrize("name", CASES)
def test_ops(name: str) -> None:
    function, arrays = CASES[name]
    with_gradient = name not in WITHOUT_GRADIENT
    expected = evaluated(function, arrays, with_gradient)
    seed = zlib.crc32(name.encode())
    chosen = [MESHES[0], MESHES[0], MESHES[seed % len(MESHES)]]
    divisions = [layouts(arrays, mesh, seed + i) for i, mesh in enumerate(chosen)]

    def program() -> list[list[np.ndarray]]:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", full_batch=True)
        found = []
        for division in divisions:

            def run(*args: ms.Tensor, division: Any = division) -> Any:
                given = [ms.parallel.reshard(x, way) for x, way in zip(args, division)]
                return function(*given)

            found.append(evaluated(run, arrays, with_gradient))
        return found

    for found in run_ranks(program, 4):
        for division, values in zip(divisions, found):
            assert len(values) == len(expected)
            for value, whole in zip(values, expected):
                np.testing.assert_allclose(
                    value, whole, rtol=2e-5, atol=2e-5 * max(1, np.abs(whole).max()),
                    err_msg=str(division), strict=True,
                )  # fmt: skip
