"""Copies of Cells and functions that are compiled: deep, shallow and pickled.

D05, D06, D33: what may be compiled, and what stands around it
"""

from __future__ import annotations

import copy
import pickle
import warnings

import duograph as ms
import pytest
from duograph import Parameter, nn
from jit.calls import Scaled, T, doubled, eq, same, table

CASES, case = table()


@case
def deepcopy_cell():
    a = Scaled()
    eq(a(T(1, 1)), "[3. 4.]")
    b = copy.deepcopy(a)
    b.k = 5
    b.w.set_data(T(0, 0))
    eq(b(T(1, 1)), "[5. 5.]")
    eq(a(T(1, 1)), "[3. 4.]")


@case
def copy_cell():
    a = Scaled()
    a(T(1, 1))
    b = copy.copy(a)
    b.k = 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = b(T(1, 1))
    eq(a(T(1, 1)), "[3. 4.]")
    eq(r, "[6. 7.]")


@case
def pickle_cell():
    a = Scaled()
    a(T(1, 1))
    b = pickle.loads(pickle.dumps(a))
    eq(b(T(1, 1)), "[3. 4.]")


@case
def pickle_graph_cell():
    a = nn.Dense(2, 2)
    a.compile(T(1, 1).reshape((1, 2)))
    b = pickle.loads(pickle.dumps(a))
    same(a(T(1, 1).reshape((1, 2))), b(T(1, 1).reshape((1, 2))))


@case
def pickle_function():
    f = pickle.loads(pickle.dumps(doubled))
    eq(f(T(1)), "[2.]")


@case
def deepcopy_function():
    f = copy.deepcopy(doubled)
    eq(f(T(1)), "[2.]")
    assert copy.copy(doubled)(T(2)).asnumpy()[0] == 4


@pytest.mark.parametrize("name", CASES)
def test_program(name):
    CASES[name]()


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda net: pickle.loads(pickle.dumps(net)),
}


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("made", ["jit", "compile", "plain"])
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_a_cell_is_compiled_for_itself(way, made, mode):
    ms.set_context(mode=mode)
    x = T(2).reshape((1, 1))
    net = nn.Dense(1, 1, weight_init="ones", bias_init="zeros")
    if made == "jit":
        ms.jit(net)
    elif made == "compile":
        net.compile(x)
    eq(net(x), "[[2.]]")
    other = COPIES[way](net)
    other.weight = Parameter(T(5).reshape((1, 1)), name="weight")
    if way == "copy":
        net.weight = Parameter(
            T(1).reshape((1, 1)), name="weight"
        )  # members are shared by a shallow copy
        return
    for _ in range(2):
        eq(other(x), "[[10.]]")
        eq(net(x), "[[2.]]")


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("made", ["jit", "compile", "plain"])
def test_a_shallow_copy_has_attributes_of_its_own(made, mode):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.k = 2

        def construct(self, x):
            return x * self.k

    ms.set_context(mode=mode)
    net = Net()
    if made == "jit":
        ms.jit(net)
    elif made == "compile":
        net.compile(T(1))
    eq(net(T(1)), "[2.]")
    other = copy.copy(net)
    other.k = 5
    for _ in range(2):
        eq(other(T(1)), "[5.]")
        eq(net(T(1)), "[2.]")
