"""GRAPH_MODE and PYNATIVE_MODE: what GRAPH_MODE compiles, with the same results."""

from __future__ import annotations

import subprocess
import sys

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops

SEED = """
class MyNet(nn.Cell):
    def __init__(self):
        super(MyNet, self).__init__()
        self.add = ops.Add()

    def construct(self, x, y):
        '''What is computed.'''
        # a comment
        return self.add(x, y)

x = ms.Tensor(np.array([1, 2, 3]).astype(np.float32))
y = ms.Tensor(np.array([4, 5, 6]).astype(np.float32))
net = MyNet()
print(net(x, y))
"""
MUL = """
class Net(nn.Cell):
    def __init__(self):
        super(Net, self).__init__()
        self.mul = ops.Mul()

    def construct(self, x, y):
        return self.mul(x, y)

x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))
net = Net()
print(net(x, y))
"""
BOTH = [ms.PYNATIVE_MODE, ms.GRAPH_MODE]


def t(*values):
    return ms.Tensor(list(values), ms.float32)


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize(("program", "said"), [(SEED, "[5. 7. 9.]\n"), (MUL, "[ 4. 10. 18.]\n")])
def test_the_seed_programs(program, said, mode, load, capsys):
    """The same source in both modes, one line changed.

    A01: two execution modes in one package
    A02: one network source runs unchanged in both modes
    A03: the mode flips by changing exactly one line
    A06: `MyNet` with `ops.Add()` prints `[5. 7. 9.]` in GRAPH
    A34: docstrings and comments inside `construct` are legal in GRAPH
    A41: `Net` with `ops.Mul()` prints `[ 4. 10. 18.]` in GRAPH
    """
    ms.set_context(mode=mode)
    net = load(program)["net"]
    assert capsys.readouterr().out == said
    assert (net.__dict__.get("_graph") is not None) is (mode == ms.GRAPH_MODE)  # it was compiled


def test_one_instance_with_many_mode_changes():
    """The same Cell, whichever mode it was made in.

    A05: switching back and forth any number of times in one process works
    A08: the same Cell instance gives the same answer after a mode flip
    """
    for first in BOTH:
        ms.set_context(mode=first)
        net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.LayerNorm((4,)))
        x = ms.Tensor(np.ones((2, 3), np.float32))
        want = net(x).asnumpy()
        for mode in BOTH * 5:
            ms.set_context(mode=mode)
            np.testing.assert_array_equal(net(x).asnumpy(), want)
        assert net._graph.cache_info().misses == 1


PRECISION = {
    "a power of numbers": "def f(x):\n    return x + 0.1 ** 2, 0.1 ** 2",
    "a sum of many": "def f(x):\n    for i in range(50):\n        x = x + 0.1 * i\n    return x",
    "softmax": "def f(x):\n    return ops.softmax(x) / 3 - ops.log_softmax(x)",
    "functions": "def f(x):\n    return ops.exp(x) * ops.tanh(x) / ops.sqrt(x) + ops.erf(x)",
    "int / int": "def f(x):\n    return x * (7 / 2), 7 // 2, -7 // 2, -7 % 3",
    "gradients": "def f(x):\n    return ops.exp(x) * ops.sigmoid(x) / (x + 3)",
    "half": "def f(x):\n    return x.astype(ms.float16) / 3 * 7",
    "a loop": "def f(x):\n    while x.sum() < 1000:\n        x = x * 1.1 + 0.3\n    return x",
}


@pytest.mark.parametrize("name", PRECISION)
def test_the_same_bits(name, agree):
    """`agree` compares bit for bit.

    A10: the same network and op has the same precision in both modes
    O10: eager mode and O0 give equal bits on the CPU
    """
    x = np.linspace(0.1, 4, 7, dtype=np.float32)
    agree(PRECISION[name], x, grad=(0,) if name in ("gradients", "functions", "softmax") else ())


def test_single_ops_run_eagerly_in_graph_mode():
    """A21: GRAPH mode changes only Cells and jit functions; `ops.mul(a, b)` at top level runs at
    once.
    """
    ms.set_context(mode=ms.GRAPH_MODE)
    before = ms.jit_stats()["compiles"]
    out = ops.mul(t(1, 2), t(3, 4))
    assert str(out) == "[3. 8.]" and str(out + 1) == "[4. 9.]"
    assert str(ms.grad(lambda x: x * x)(t(3))) == "[6.]"
    assert ms.jit_stats()["compiles"] == before


BREAKPOINT = """
import sys
class Net(nn.Cell):
    def construct(self, x):
        x = x * 2
        breakpoint()
        return x
net = Net()
"""


def test_skipped_breakpoint_is_reported(load, warned, monkeypatch):
    """A25: breakpoints never fire inside compiled code; stated clearly, not silently."""
    stops = []
    monkeypatch.setattr("sys.breakpointhook", lambda *a, **k: stops.append(1))
    net = load(BREAKPOINT)["net"]
    ms.set_context(mode=ms.GRAPH_MODE)
    assert str(net(t(1, 2))) == "[2. 4.]"
    (warning,) = [w for w in warned if "breakpoint" in str(w.message)]
    assert "line by line" in str(warning.message) and stops == [1]
    net(t(1, 2))
    assert len(stops) == 2 and len([w for w in warned if "breakpoint" in str(w.message)]) == 1


PRINTS = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.zeros(3, np.float32)), name="w")

    def construct(self, x):
        print("before:", self.w)
        ops.assign(self.w, x)
        print("after:", self.w)
        if x.sum() > 0:
            print("positive")
        ops.Print()("last", x)
        return x * 2
net = Net()
"""
PRINTED = """before:
Tensor(shape=[3], dtype=Float32, value=[ 0.00000000e+00  0.00000000e+00  0.00000000e+00])
after:
Tensor(shape=[3], dtype=Float32, value=[ 1.00000000e+00  2.00000000e+00  3.00000000e+00])
positive
last
Tensor(shape=[3], dtype=Float32, value=[ 1.00000000e+00  2.00000000e+00  3.00000000e+00])
"""


def test_prints_show_values_in_order(load, capsys):
    """A print is an op that runs with the graph.

    A29: label on its own line, then the repr of the Tensor
    A30: the order of prints inside one graph is kept, interleaved with other side effects
    A42: values are seen through a print that the user placed, `print` or `ops.Print`, shown while
        the graph runs
    """
    net = load(PRINTS)["net"]
    ms.set_context(mode=ms.GRAPH_MODE)
    net.compile(t(1, 2, 3))
    assert capsys.readouterr().out == ""
    net(t(1, 2, 3))
    assert capsys.readouterr().out == PRINTED
    net(t(1, 2, 3))
    assert capsys.readouterr().out == PRINTED.replace(" 0.00000000e+00", " {}00000000e+00").format(
        "1.", "2.", "3."
    )


@pytest.mark.parametrize("mode", BOTH)
def test_compile_ahead(mode, load, capsys):
    """Compiled ahead, then used by the call that is `Cell.__call__`.

    A31: `model.compile(x)` compiles ahead, prints nothing, returns None; `model(x)` then uses it
    A32: a call is compile and construct, hidden inside `Cell.__call__`
    A33: compiled code is entered through a Cell's `construct` or a jit-decorated callable
    """
    ms.set_context(mode=mode)
    model = nn.Dense(3, 2)
    x = ms.Tensor(np.ones((4, 3), np.float32))
    assert model.compile(x) is None
    assert capsys.readouterr().out == ""
    info = model._graph.cache_info()
    assert (info.misses, info.hits) == (1, 0) and info.seconds > 0
    model(x), model(x)
    info = model._graph.cache_info()
    assert (info.misses, info.hits) == (1, 2)
    assert ms.jit(model.construct)(x).shape == (4, 2)


def test_the_whole_network_is_one_graph():
    """A37: whole-graph optimisation and whole-graph hand-off to the device."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = nn.SequentialCell([nn.Dense(3, 3, activation="relu") for _ in range(3)])

        def construct(self, x):
            twice = ops.exp(x) + ops.exp(x)
            unused = ops.sin(x)  # noqa: F841
            return self.layers(twice * 1)

    from duograph import passes

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    net(ms.Tensor(np.ones((2, 3), np.float32)))
    graph = net._graph.graph(ms.Tensor(np.ones((2, 3), np.float32)))
    names = [node.op.name for node in graph.nodes]
    assert names.count("dense") == 3 and names.count("relu") == 3
    names = [node.op.name for node in passes.run(graph).nodes]
    assert names.count("exp") == 1 and "sin" not in names and "mul" not in names


MEMORY = """
import duograph as ms
from duograph import ops
from duograph.backend import registry

@ms.jit
def f(x):
    kept = x
    for i in range(40):
        kept = ops.exp(-kept) + ops.tanh(kept) * i
    return kept

x = ms.ops.zeros((1 << 18,), ms.float32)  # a megabyte
f(x), f(x)
print(len(f.graph(x).nodes), registry.backend("CPU").memory_stats(0)["peak"] >> 20)
"""


def test_dead_values_are_freed(tmp_path):
    """A38: a compiled function needs less memory than keeping every value of it."""
    (tmp_path / "page.py").write_text(MEMORY)
    line = [sys.executable, "page.py"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    values, peak = map(int, done.stdout.split())
    assert values >= 200 and peak < 10


def test_compile_time_is_reported(load):
    """A39: a function that is run once need not be compiled; what compiling costs is visible."""
    f = load("def f(x):\n    return x * 2 + 1")["f"]
    before = ms.jit_stats()
    f(t(1))
    assert ms.jit_stats() == before
    compiled = ms.jit(f)
    compiled(t(1))
    assert compiled.cache_info().seconds > 0
    assert ms.jit_stats()["seconds"] >= before["seconds"] + compiled.cache_info().seconds
    assert "compiling took" in str(compiled.explain(t(1)))


def test_documentation_lists_what_compiles():
    """A40: not all Python compiles; a list says what does: `docs/compile.md`, and the corpus of
    accepted syntax.
    """
    import pathlib

    from frontend.syntax_rows import ROWS

    page = (pathlib.Path(__file__).parents[2] / "docs" / "compile.md").read_text()
    for word in ("## LAX and STRICT", "generator", "`try`", "breakpoint", "STRICT"):
        assert word in page
    assert len(ROWS) > 140


# ---- gradients
# ----------------------------------------------------------------------------------------


def test_a_compiled_function_between_eager_neighbours(load):
    """C24: the backward of a jit function inside eager code is one compiled graph, joined to its
    neighbours.
    """
    space = load(
        """
        @ms.jit
        def inner(x, y):
            return ops.exp(x) * y + y

        def outer(x, y):
            return (inner(x * 2, y) * x).sum()

        def plain(x, y):
            return ((ops.exp(x * 2) * y + y) * x).sum()
        """
    )
    x, y = t(0.1, 0.2, 0.3), t(1, 2, 3)
    want = ms.grad(space["plain"], (0, 1))(x, y)
    for _ in range(2):
        for got, right in zip(ms.grad(space["outer"], (0, 1))(x, y), want, strict=True):
            np.testing.assert_array_equal(got.asnumpy(), right.asnumpy())
    assert space["inner"].cache_info().misses == 1


NESTED = {
    "grad inside jit": "@ms.jit\ndef f(x):\n    return ms.grad(cube)(x)",
    "jit inside grad": "g = ms.jit(cube)\ndef f(x):\n    return ms.grad(g)(x)",
    "jit inside grad inside jit": "g = ms.jit(cube)\n@ms.jit\ndef f(x):\n    return ms.grad(g)(x)",
    "jit of grad": "f = ms.jit(ms.grad(cube))",
    "jit of grad of jit": "f = ms.jit(ms.grad(ms.jit(cube)))",
    "value_and_grad": "@ms.jit\ndef f(x):\n    return ms.value_and_grad(cube)(x)[1]",
    "GradOperation": "@ms.jit\ndef f(x):\n    return ops.GradOperation()(cube)(x)",
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_grad_and_jit(name, load):
    """C26: grad inside jit, jit inside grad, both nested."""
    f = load("def cube(x):\n    return x * x * x\n" + NESTED[name])["f"]
    for _ in range(2):
        assert str(f(t(1, 2, 3))) == "[ 3. 12. 27.]"
    second = ms.grad(lambda x: f(x).sum())
    assert str(second(t(1, 2, 3))) == "[ 6. 12. 18.]"


FLOW = {
    "if": "def f(x):\n    if x.sum() > 0:\n        return x * x\n    return x * 5",
    "while": "def f(x):\n    while x.sum() < 100:\n        x = x * x + 1\n    return x",
    "for": "def f(x):\n    y = x\n    for i in range(3):\n        y = y * x + i\n    return y",
    "for in while": (
        "def f(x):\n    y = x\n    while y.sum() < 100:\n        for i in range(2):\n            y "
        "= y * 2 + x\n"
        "    return y"
    ),
    "break": (
        "def f(x):\n    y = x\n    for i in range(9):\n        y = y * x\n        if y.sum() > "
        "50:\n            break\n"
        "    return y"
    ),
    "recursion": (
        "def walk(x, n):\n    if n == 0:\n        return x\n    return walk(x * x, n - 1)\n"
        "def f(x):\n    return walk(x, 3)"
    ),
    "recursion on a Tensor": (
        "def walk(x):\n    if x.sum() > 100:\n        return x\n    return walk(x * x + 1)\n"
        "def f(x):\n    return walk(x)"
    ),
    "closure": (
        "def f(x):\n    k = x * 2\n    def inner(y):\n        return y * k\n    return inner(x) + "
        "inner(k)"
    ),
    "function as value": (
        "def f(x):\n    g = (lambda a: a * a) if x.sum() > 0 else (lambda a: a * 3)\n    return "
        "g(x)"
    ),
}


@pytest.mark.parametrize("name", FLOW)
def test_gradients_through_control_flow(name, agree):
    """C33: gradients through if, while, for, recursion and closures in graphs."""
    for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5]):
        agree(FLOW[name], np.array(values, np.float32), grad=(0,))
