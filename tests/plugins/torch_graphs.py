"""Programs that torch.compile receives as whole graphs, and programs that it does not."""

from __future__ import annotations

from typing import Any

import duograph as ms
from duograph import Tensor, ops

# Functions of a (3, 4) and a (4, 3) float32 Tensor, and of (2, 2) int64 indices.
PROGRAMS: dict[str, Any] = {
    "softmax": lambda x, y, i: ops.softmax(x @ y, -1),
    "layer_norm": lambda x, y, i: ops.layer_norm(x, (4,)) @ y,
    "several results": lambda x, y, i: (x @ y, x.T + y, x.sum(), x > 0),
    "an operand as a result": lambda x, y, i: (x, x @ y),
    "slices and flips": lambda x, y, i: (x[1:, ::2], x[::-1], x[:, ::-2], y.T[1]),
    "constants": lambda x, y, i: x * Tensor([1.0, 2.0, 3.0, 4.0]) + ops.ones_like(x) * 2,
    "casts": lambda x, y, i: (x.astype(ms.int32), (x > 0).astype(ms.float32), i.astype(ms.float16)),
    "gather": lambda x, y, i: ops.gather(x, i, 0) * 2,
    "scatter": lambda x, y, i: ops.tensor_scatter_elements(x, i, x[:2, :2]),
    "sort and cumsum": lambda x, y, i: (*ops.sort(x), ops.cumsum(y, 0)),
    "convolution": lambda x, y, i: ops.conv2d(
        x.reshape((1, 1, 3, 4)), y.reshape((3, 1, 2, 2)), pad_mode="same"
    ),
    "decomposed ops": lambda x, y, i: (ops.erfinv(ops.tanh(x)), ops.max_pool2d(x[None, None], 2)),
    "a gradient": ms.grad(lambda x, y, i: (ops.tanh(x @ y) ** 2).sum(), (0, 1)),
    "gradient of a gather": ms.grad(lambda x, y, i: ops.gather(x, i, 0).exp().sum(), 0),
    "gradient of a convolution": ms.grad(
        lambda x, y, i: ops.conv2d(x.reshape((1, 1, 3, 4)), y.reshape((3, 1, 2, 2))).sum(), (0, 1)
    ),
    "a second gradient": ms.grad(
        lambda x, y, i: ms.grad(lambda x: (ops.sin(x) * x).sum())(x).sum(), 0
    ),
    "many ops": lambda x, y, i: [ops.gelu(x * k) for k in range(1, 6)],
    "empty": lambda x, y, i: (x[:0] + 1, x[:0].sum(), x[:0] @ y),
    "a scalar": lambda x, y, i: x.sum() * y.mean(),
    "random numbers": lambda x, y, i: (ops.dropout(x, 0.5) @ y, ops.standard_normal((2, 3))),
    "gradient of dropout": ms.grad(lambda x, y, i: ops.dropout(x @ y, 0.5).exp().sum(), (0, 1)),
}


def _loop(x: Tensor, y: Tensor, i: Tensor) -> Tensor:
    while x.sum() < 100:
        x = x * x + 1
    return x @ y


def _branch(x: Tensor, y: Tensor, i: Tensor) -> Tensor:
    return x @ y if x.sum() > 0 else y.T @ x.T


def _random_branch(x: Tensor, y: Tensor, i: Tensor) -> Tensor:
    return ops.dropout(x, 0.5) if x.sum() > 0 else x


# Functions, and the reason that `explain` gives.
REFUSED: dict[str, tuple[Any, str]] = {
    "a loop": (_loop, "not compiled as a whole: it has the op while_loop"),
    "a branch": (_branch, "not compiled as a whole: it has the op switch"),
    "random numbers in a branch": (
        _random_branch,
        "not compiled as a whole: random_state has side effects or runs in Python",
    ),
}
