# ruff: noqa
"""Layers with state, options and loops, as in growing networks."""

import math

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

from frontend.corpus import case, f, i


class Linear(nn.Cell):
    """A small layer with options that decide while compiling."""

    def __init__(self, n, m, bias=True, act=None, name="lin"):
        super().__init__()
        rng = np.random.default_rng(n * 10 + m)
        self.weight = Parameter(
            Tensor(rng.normal(size=(n, m)).astype(np.float32)), name=name + ".weight"
        )
        self.bias = (
            Parameter(Tensor(np.zeros(m, np.float32)), name=name + ".bias") if bias else None
        )
        self.act = act

    def construct(self, x):
        y = ops.matmul(x, self.weight)
        if self.bias is not None:
            y = y + self.bias
        if self.act is not None:
            y = self.act(y)
        return y


@case.factory("6.9", "S", [(f([[1, 2]]), True), (f([[-1, 2]]), False)])
def network_of_optional_parts():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first = Linear(2, 3, act=ops.relu, name="a")
            self.rest = nn.CellList(
                [Linear(3, 3, bias=False, name="b"), Linear(3, 2, act=nn.Tanh(), name="c")]
            )
            self.heads = nn.CellDict({"x": Linear(2, 1, name="x"), "y": Linear(2, 1, name="y")})
            self.skip = True

        def features(self, x):
            y = self.first(x)
            for layer in self.rest:
                z = layer(y)
                y = z + y if self.skip and z.shape == y.shape else z
            return y

        def construct(self, x, both):
            y = self.features(x)
            if not both:
                return self.heads["x"](y)
            return tuple(head(y) for head in self.heads.values())

    return Net()


@case.factory("6.9", "S", [(f([[1, 2]]),), (f([[-1, 2]]),)], grad=0)
def inherited_cells():
    class Base(nn.Cell):
        scale = 2

        def __init__(self, width):
            super().__init__()
            self.lin = Linear(2, width)

        def pre(self, x):
            return x * self.scale

        def construct(self, x, *, twice=False):
            y = self.lin(self.pre(x))
            return y * 2 if twice else y

    class Child(Base):
        scale = 3

        def __init__(self):
            super().__init__(2)
            self.extra = Linear(2, 2, name="extra")

        def pre(self, x):
            return super().pre(x) + 1

        def construct(self, x):
            return self.extra(super().construct(x, twice=True)).sum()

    return Child()


@case.factory("6.6", "S", [(f(1, 2),), (f(3, 4),), (f(-9, 0),)])
def running_statistics():
    class Norm(nn.Cell):
        def __init__(self):
            super().__init__()
            self.mean = Parameter(Tensor(np.zeros(2, np.float32)), name="mean", requires_grad=False)
            self.steps = Parameter(Tensor(np.array(0, np.int32)), name="steps", requires_grad=False)

        def construct(self, x):
            self.steps += 1
            if x.sum() > 0:
                self.mean = self.mean * 0.9 + x * 0.1
            out = x - self.mean
            if self.steps > 2:
                ops.assign(self.mean, self.mean * 0)
            return out, self.steps + 0

    return Norm()


@case.factory("6.6", "S", [(f(5),), (f(2),)])
def parameters_in_loops_and_helpers():
    w = Parameter(Tensor(np.array(1, np.float32)), name="w")
    log = Parameter(Tensor(np.zeros(4, np.float32)), name="log")

    def bump(by):
        ops.assign_add(w, by)
        return w * 2

    def run(x):
        k = 0
        total = x * 0
        while k < 4:
            total = total + bump(x)
            log[k] = total
            if total > 60:
                break
            k = k + 1
        return total, k

    return run, (w, log)


@case.factory("14.5", "S", [(f(1),), (f(-2),)])
def jitted_methods():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array(2, np.float32)), name="w")

        @ms.jit
        def scaled(self, x, by=1):
            if x > 0:
                return x * self.w * by
            return x - by

        def construct(self, x):
            return self.scaled(x) + self.scaled(x, by=3)

    return Net()


@case("6.2", "S", [(f([[1, 2, 3], [4, 5, 6]]),), (f([[6, 5, 4], [3, 2, 1]]),)])
def shapes_in_arithmetic(x):
    rows, cols = x.shape
    flat = x.reshape(rows * cols)
    half = flat[: rows * cols // 2]
    scale = 1 / math.sqrt(cols)
    blocks = [flat[k * cols : (k + 1) * cols] for k in range(rows)]
    return (
        half * scale,
        ops.stack(blocks[::-1]),
        x.mean(axis=-1, keep_dims=True) if cols > 2 else x,
        x.reshape(-1, 1, rows),
    )


@case(
    "6.2",
    "S",
    [(f([[1, 2], [3, 4]]), f([[1, 0], [0, 1]])), (f([[5, 6], [7, 8]]), f([[0, 1], [1, 0]]))],
    grad=(0, 1),
)
def attention(q, k):
    scores = ops.matmul(q, k.T) / math.sqrt(q.shape[-1])
    mask = ops.tril(ops.ones(scores.shape, ms.float32))
    scores = ops.masked_fill(scores, mask == 0, -1e9)
    return ops.matmul(ops.softmax(scores, axis=-1), q)


@case("6.2", "S", [(f([[1, 2], [3, 4]]), i(1)), (f([[1, 2], [3, 4]]), i(0))])
def slices_with_steps_and_negative_indices(x, n):
    y = ops.concat([x, x * 10], axis=1)
    return (
        y[:, ::2],
        y[::-1, -1],
        y[-1:, 1:-1],
        y[n, -1],
        y[..., n],
        y[:, None, 1:3],
        y[[0, 1], [1, 0]],
        y[n][1:],
    )


@case.factory("6.6", "S", [(f(1),), (f(-1),), (f(3),)])
def parameters_in_branches_and_returns():
    a = Parameter(Tensor(np.array(1, np.float32)), name="a")
    c = Parameter(Tensor(np.array(10, np.float32)), name="c")

    def run(x):
        old = a + 0
        if x < 0:
            ops.assign(c, c + x)
            return old
        ops.assign(a, a * 2)
        for _ in range(2):
            ops.assign_add(c, a)
            if c > 20:
                return c * 1
        return a + old

    return run, (a, c)
