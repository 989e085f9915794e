"""Programs on a Tensor of varying size, for `test_symbolic_sizes`, which also runs them concretely.

`ONE` have one program for all sizes above 1, `GUARDED` a few, because they ask about a size, and
`SINGLE` one per shape, because they need a size as a number.
"""

from __future__ import annotations

import duograph as ms
import numpy as np
from duograph import Tensor, nn, ops

ONE, GUARDED, SINGLE = {}, {}, {}


def program(table, *shapes, reason=""):
    """Decorator that adds a function to a table; a size of 0 in a shape is the one that varies."""

    def register(function):
        table[function.__name__] = (function, shapes, reason)
        return function

    return register


N = 0
x4 = (N, 4)


@program(ONE, x4, (4, 3))
def matmul_and_reduce(x, w):
    return ops.relu(ops.matmul(x, w)).sum(0)


@program(ONE, x4)
def softmax_both_ways(x):
    return ops.softmax(x, axis=0), ops.log_softmax(x, axis=-1)


@program(ONE, x4)
def reshapes(x):
    flat = x.reshape(-1)
    return flat, flat.reshape(x.shape[0], 2, 2), x.reshape(2, -1), x.flatten(), x.expand_dims(1)


@program(ONE, x4)
def moved(x):
    return (
        x.T,
        x.transpose(1, 0).reshape(-1),
        ops.flip(x, (0,)),
        ops.roll(x, 1, 0),
        x.swapaxes(0, 1),
    )


@program(ONE, x4)
def statistics(x):
    return x.mean(), x.mean(0), x.std(0), x.var(), x.max(0), x.argmax(0), x.prod(0), x.cumsum(0)


@program(ONE, x4)
def shape_arithmetic(x):
    n = x.shape[0]
    return x * len(x) + n // 2, x / n, x * (1.0 / n), x + n**0.5, n * 2 - 1, (n, x.size, x.shape)


@program(ONE, x4)
def sizes_in_containers(x):
    return {"a": x.shape[0]}, [x.ndim, len(x)], (x.shape[0] + 1, (x.shape,))


@program(ONE, x4)
def last_axes(x):
    return x[..., ::2], x[..., None], x[None, ..., 1]


@program(ONE, x4)
def last_rows(x):
    return x[x.shape[0] - 1] + x[-1], x[1:], x[:-1], x[::2], x[::-1]


@program(ONE, x4, x4)
def joined(x, y):
    return x + y, ops.concat((x, y), 0), ops.stack((x, y), 1), ops.concat((x, y), 0).mean(0)


@program(ONE, (N,))
def created(x):
    n = x.shape[0]
    ranges = ops.arange(n) + ops.arange(0, 2 * n, 2)
    return ranges, ops.zeros((n, 2)), ops.ones(x.shape), ops.full((n,), 3.0), ops.zeros_like(x)


@program(ONE, (N, N))
def square(x):
    return ops.tril(x), x + x.T, ops.eye(x.shape[0]), ops.triu(x, 1)


@program(ONE, (2, 3, N, N), (4, 3, 3, 3))
def convolved(x, w):
    y = ops.conv2d(x, w, pad_mode="same")
    return y, ops.relu(ops.conv2d(x, w, pad_mode="pad", padding=1, stride=2))


@program(ONE, (N, 3, 8, 8), (4, 3, 3, 3))
def batch_of_images(x, w):
    return ops.max_pool2d(ops.conv2d(x, w, pad_mode="same"), 2).mean((2, 3))


@program(ONE, (2, N, 8))
def attention(x):
    b, t, d = x.shape
    q = x.reshape(b, t, 2, d // 2).transpose(0, 2, 1, 3)
    a = ops.matmul(q, q.transpose(0, 1, 3, 2)) / (d // 2) ** 0.5
    a = ops.softmax(ops.masked_fill(a, ops.tril(ops.ones((t, t))) == 0, -1e9), axis=-1)
    return ops.matmul(a, q).transpose(0, 2, 1, 3).reshape(b, t, d)


def loss(x, w):
    h = ops.gelu(ops.layer_norm(x @ w, (3,), ops.ones(3), ops.zeros(3), 1e-5))
    return (ops.softmax(h, axis=0)[1:].sum(1) * ops.arange(x.shape[0] - 1)).sum() / x.shape[0]


@program(ONE, x4, (4, 3))
def gradients(x, w):
    return ops.value_and_grad(loss, (0, 1))(x, w)


@program(ONE, x4)
def branch_on_a_value(x):
    y = x * 2 if x.sum() > 0 else x - 1
    return y, ops.where(x > 0, x, -x)


@program(ONE, x4)
def loop_on_a_value(x):
    i = 0
    while x.sum() > 1 and i < 3:
        x = x * 0.5
        i = i + 1
    return x, i


@program(ONE, x4)
def loop_to_a_size(x):
    i = Tensor(0)
    while i < x.shape[0]:
        i = i + 1
    return x * i


@program(ONE, (N, 3))
def contracted(x):
    return ops.einsum("ij,kj->ik", x, x), ops.norm(x), ops.bmm(x.unsqueeze(0), x.T.unsqueeze(0))


@program(ONE, (N, 3))
def gathered(x):
    hot = ops.one_hot(ops.arange(x.shape[0]), x.shape[0])
    return ops.gather(x, Tensor([0, 0]), 0), x[Tensor([0])], hot


@program(ONE, (N, 3))
def written(x):
    y = x * 1
    y[0] = 5.0
    y[-1] = y[-1] + 1
    return y


@program(ONE, (N, 3))
def written_argument(x):
    x += 1
    return x


@program(ONE, (N, 5))
def cross_entropy(x):
    return ops.cross_entropy(x, ops.zeros((x.shape[0],), ms.int32))


@program(GUARDED, x4, (1, 4))
def broadcast(x, y):
    return x + y, ops.broadcast_to(y, (x.shape[0], 4)), ops.tile(y, (x.shape[0], 1))


@program(GUARDED, x4)
def more_than_four(x):
    return x * 2 if x.shape[0] > 4 else x - 1


@program(GUARDED, x4)
def even(x):
    return x.reshape(2, -1) if x.shape[0] % 2 == 0 else x.reshape(-1, 2)


@program(GUARDED, x4)
def first_rows(x):
    return x[:5], ops.topk(x, 2, 0) if x.shape[0] > 2 else x


@program(GUARDED, x4)
def chosen_in_a_tuple(x):
    return x if x.shape[0] in (3, 7) else -x


@program(SINGLE, x4, reason="s0")
def loop_over_rows(x):
    total = ops.zeros(4)
    for row in x:
        total = total + row
    return total


@program(SINGLE, x4, reason="symbolic_programs.py")
def unrolled(x):
    return [x[i] * i for i in range(x.shape[0])]


@program(SINGLE, x4, reason="used as numbers")
def text(x):
    return f"{x.shape[0]} {x.shape}", str(x.shape), repr(len(x))


TABLE = {3: 1.0, 5: 2.0, 7: 4.0}


@program(SINGLE, x4, reason="used as numbers")
def looked_up(x):
    n = x.shape[0]
    return x * TABLE.get(n, 9.0), n in {3, 5}, n in TABLE


@program(SINGLE, x4, reason="used as numbers")
def keys(x):
    return {x.shape[0]: 1, 3: 2}, len(set(x.shape)), dict.fromkeys(x.shape, 1)


@program(SINGLE, x4, reason="used as numbers")
def caught(x):
    try:
        y = TABLE[x.shape[0]]
    except KeyError:
        y = -1.0
    try:
        z = (1, 2, 3, 4)[x.shape[0]]
    except IndexError:
        z = -1
    return x * y, z


@program(SINGLE, x4, reason="used as numbers")
def of_python(x):
    n = x.shape[0]
    numbers = (n & 1, n << 1, 2**n, int(n / 2), round(n / 3, 1), n * 1j, -7 // n if n else 0)
    return numbers, type(n) is int, isinstance(n, int), [0] * n, "a" * n, (1,) * n, x.shape[::-1]


@program(SINGLE, x4, reason="")
def of_numpy(x):
    return np.prod(x.shape), np.zeros(x.shape[0]), Tensor(x.shape[0]), Tensor(np.arange(x.shape[0]))


@program(ONE, x4)
def python_at_run_time(x):
    print(x.shape)
    return x


class Encoder(nn.Cell):
    """Two pre-norm transformer blocks with a classification head."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.norms = nn.CellList([nn.LayerNorm((width,)) for _ in range(4)])
        self.dense = nn.CellList([nn.Dense(width, 3 * width), nn.Dense(width, width)])
        self.wide = nn.CellList([nn.Dense(width, 4 * width), nn.Dense(4 * width, width)])
        self.embedding = nn.Embedding(50, width)
        self.head = nn.Dense(width, 5)
        self.dropout = nn.Dropout(p=0.1)

    def construct(self, ids):
        x = self.embedding(ids)
        b, t, d = x.shape
        for k in range(2):
            q, key, v = ops.chunk(self.dense[0](self.norms[2 * k](x)), 3, -1)
            q, key, v = [
                a.reshape(b, t, self.heads, d // self.heads).transpose(0, 2, 1, 3)
                for a in (q, key, v)
            ]
            a = ops.softmax(ops.matmul(q, key.transpose(0, 1, 3, 2)) / d**0.5, -1)
            a = self.dropout(a)
            x = x + self.dense[1](ops.matmul(a, v).transpose(0, 2, 1, 3).reshape(b, t, d))
            x = x + self.wide[1](ops.gelu(self.wide[0](self.norms[2 * k + 1](x))))
        return self.head(x.mean(1))
