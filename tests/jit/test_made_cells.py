"""Cells of the user's classes that a compiled function makes: their `__init__` is evaluated."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn
from duograph.errors import UnsupportedSyntaxError


class Scaled(nn.Cell):
    def __init__(self, k=2):
        super().__init__()
        self.k = k
        self.k += 1
        self.layers = nn.CellList([nn.ReLU(), nn.Sigmoid()])
        self.seq = nn.SequentialCell(nn.ReLU(), nn.Tanh())
        self.register_buffer("b", Tensor([3.0, 4.0]))
        self.add_flags(step=5)
        self.items = [1, 2]
        self.items.append(3)
        self.table = {"a": 1}
        self.table["b"] = 2
        for i in range(2):
            setattr(self, f"relu{i}", nn.ReLU())
        self.set_train(True)

    @property
    def twice(self):
        return self.k * 2

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        x = self.seq(x) * self.k + self.b * self.step + self.relu1(x)
        return x + len(self.items) + self.table["b"] + self.twice


class Nested(Scaled):
    def __init__(self, k):
        super().__init__(k)
        self.more = Scaled(1)
        self.n = self.more.k if k > 1 else 0

    def construct(self, x):
        return self.more(super().construct(x)) * self.n


class OfTensors(nn.Cell):
    def __init__(self):
        super().__init__(auto_prefix=False)
        self.t = Tensor([1.0, 2.0]) * 2

    def construct(self, x):
        return x * self.t


class Plain(nn.Cell):
    def construct(self, x):
        return x * 2


class Derived(nn.ReLU):
    def __init__(self):
        super().__init__()
        self.z = 3

    def construct(self, x):
        return super().construct(x) * self.z


class Options(nn.Cell):
    def __init__(self, *args, act=None, **options):
        super().__init__()
        self.act = act or nn.ReLU()
        self.args, self.options = args, options

    def construct(self, x):
        return self.act(x) * self.options.get("k", 1) * len(self.args)


def assigned_later(x):
    cell = Scaled()
    cell.k = 7
    return cell(x)


def not_in_training(x):
    cell = Scaled()
    cell.set_train(False)
    return cell(x) * (2 if cell.training else 1)


def asked_for_members(x):
    cell = Scaled()
    members = [*cell.get_parameters(), *cell.cells(), *cell.buffers()]
    return x * len(members)


def of_a_loop(x):
    for k in range(3):
        x = Scaled(k)(x)
    return x


FUNCTIONS = {
    "containers": lambda x: Scaled()(x),
    "nested": lambda x: Nested(3)(x),
    "tensors": lambda x: OfTensors()(x),
    "without init": lambda x: Plain()(x),
    "of a layer": lambda x: Derived()(x),
    "options": lambda x: Options(1, 2, k=3)(x),
    "property": lambda x: x * Scaled(4).twice,
    "gradient": lambda x: ms.grad(lambda y: Scaled()(y).sum())(x),
    "branch": lambda x: Scaled()(x) if x.sum() > 0 else Plain()(x),
    "loop": of_a_loop,
    "assigned later": assigned_later,
    "training": not_in_training,
    "members": asked_for_members,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_cell_made_inside(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = ms.jit(function)
    for values in ([1.0, -2.0], [-1.0, 0.5], [1.0, -2.0]):
        want = function(Tensor(values)).asnumpy()
        np.testing.assert_allclose(compiled(Tensor(values)).asnumpy(), want, rtol=1e-6)
    assert compiled.cache_info().fallbacks == 0


def test_a_buffer_of_a_cell_from_outside() -> None:
    cell = Plain()

    @ms.jit(jit_syntax_level=ms.STRICT)
    def f(x):
        cell.register_buffer("b", Tensor([1.0]))
        return cell(x)

    with pytest.raises(UnsupportedSyntaxError, match="register_buffer: got a change of a Plain"):
        f(Tensor([1.0]))
    assert not list(cell.buffers())
