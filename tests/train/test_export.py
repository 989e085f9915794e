"""Tests of exported networks, which `load` and `nn.GraphCell` run without their source.

F18, K08: the graph with its weights in a file, run without source
"""

from __future__ import annotations

import json
import subprocess
import sys

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.errors import CheckpointError
from duograph.train import _checkpoint_file


@pytest.fixture(autouse=True)
def _settings():
    before = {k: ms.get_context(k) for k in ("mode", "jit")}
    yield
    ms.set_context(**before)


def tensor(*shape, seed=0):
    return ms.Tensor(np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32))


class Walk(nn.Cell):
    """Control flow, a constant, nested results."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 3)
        self.scale = ms.Tensor([1.0, 2.0, 3.0])

    def construct(self, x, y):
        n = ops.zeros((), ms.int32)
        while x.sum() < 20:
            x = x * x + self.scale
            n = n + 1
        if y.sum() > 0:
            y = self.dense(y)
        else:
            y = -y
        return {"x": x, "rest": [y, (n, 3, None, "text", 0.5)], "in": y + x.shape[0]}


class Recursive(nn.Cell):
    def walk(self, x):
        if x.sum() > 100:
            return x
        return self.walk(x * 2)

    def construct(self, x):
        return self.walk(x + 10)


def _convolutions():
    net = nn.SequentialCell(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(p=0.5),
        nn.Flatten(),
        nn.Dense(64, 2),
    )
    return net.set_train(False)


NETS = {
    "dense": (lambda: nn.Dense(3, 2), [(4, 3)]),
    "convolutions": (_convolutions, [(2, 3, 4, 4)]),
    "recurrent": (lambda: nn.LSTM(4, 3), [(5, 2, 4)]),
    "control flow": (Walk, [(2, 3), (2, 3)]),
    "recursion": (Recursive, [(3,)]),
    "function": (lambda: lambda x: ops.exp(x) * 2, [(3,)]),
    "jit": (lambda: ms.jit(lambda x: ops.exp(x) * 2), [(3,)]),
}


def same(a, b):
    if isinstance(a, ms.Tensor):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    elif isinstance(a, (tuple, list)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for k in a:
            same(a[k], b[k])
    else:
        assert a == b and type(a) is type(b)


@pytest.mark.parametrize("how", ["call", "jit", "graph", "off", "inside"])
@pytest.mark.parametrize("name", NETS)
def test_exported_graph_has_the_same_results(name, how, tmp_path):
    make, shapes = NETS[name]
    net = make()
    inputs = [tensor(*shape, seed=i) for i, shape in enumerate(shapes)]
    ms.export(net, *inputs, file_name=str(tmp_path / "net"), file_format="MINDIR")
    assert [p.name for p in tmp_path.iterdir()] == ["net.mindir"]
    again = nn.GraphCell(ms.load(str(tmp_path / "net.mindir")))
    run = again
    if how == "jit":
        run = ms.jit(again)
    elif how == "inside":
        run = ms.jit(lambda *xs: again(*xs), fullgraph=True)
    ms.set_context(mode=ms.GRAPH_MODE if how == "graph" else ms.PYNATIVE_MODE, jit=how != "off")
    for seed in (0, 5):
        inputs = [tensor(*shape, seed=seed + i) for i, shape in enumerate(shapes)]
        same(run(*inputs), net(*inputs))
    if isinstance(net, nn.Cell):
        names = sorted(p.name for p in again.trainable_params())
        assert names == sorted(p.name for p in net.trainable_params())


def test_exported_graph_has_gradients_and_trains(tmp_path):
    net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 1))
    x = tensor(8, 3)
    ms.export(net, x, file_name=str(tmp_path / "net.mindir"), file_format="MINDIR")
    again = nn.GraphCell(ms.load(str(tmp_path / "net.mindir")))
    same(ms.grad(lambda v: again(v).sum())(x), ms.grad(lambda v: net(v).sum())(x))

    def trained(cell):
        optimizer = nn.Adam(cell.trainable_params(), 0.1)
        step = ms.value_and_grad(lambda v: (cell(v) ** 2).mean(), None, optimizer.parameters)
        losses = []
        for _ in range(4):
            loss, grads = step(x)
            optimizer(grads)
            losses.append(float(loss))
        return losses

    found = trained(again)
    assert found == trained(net) and len(set(found)) == 4


def test_params_init_replaces_weights(tmp_path):
    net, x = nn.Dense(3, 2), tensor(4, 3)
    ms.export(net, x, file_name=str(tmp_path / "net.mindir"), file_format="MINDIR")
    graph = ms.load(str(tmp_path / "net.mindir"))
    again = nn.GraphCell(graph, {"bias": ms.Tensor([5.0, 6.0])})
    net.bias.set_data(ms.Tensor([5.0, 6.0]))
    same(again(x), net(x))
    ms.save_checkpoint(net, str(tmp_path / "net.ckpt"))
    other = nn.GraphCell(graph)
    ms.load_param_into_net(other, ms.load_checkpoint(str(tmp_path / "net.ckpt")))
    same(other(x), net(x))
    for wrong, error in (
        ({"b": x}, ValueError),
        ({"bias": x}, ValueError),
        ({"bias": 3}, TypeError),
        (3, TypeError),
    ):
        with pytest.raises(error, match="GraphCell"):
            nn.GraphCell(graph, wrong)


def test_exported_graph_runs_without_source(tmp_path):
    ms.export(
        Walk(), tensor(2, 3), tensor(2, 3), file_name=str(tmp_path / "net"), file_format="MINDIR"
    )
    program = (
        "import duograph as ms, numpy as np\n"
        "net = ms.nn.GraphCell(ms.load('net.mindir'))\n"
        "print(net(ms.ops.ones((2, 3)), ms.ops.ones((2, 3)))['rest'][1][1:])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(3, None, 'text', 0.5)\n"


class Printing(nn.Cell):
    def construct(self, x):
        print("x", x)
        return x


class Host(nn.Cell):
    def construct(self, x):
        return x * float(x.asnumpy()[0])


class Counting(nn.Cell):
    count = 0

    def construct(self, x):
        self.count += 1
        return x


@pytest.mark.parametrize(
    "make",
    [Printing, Host, Counting, lambda: nn.Dropout(p=0.5).set_train(), lambda: lambda x: {1, 2}],
)
def test_export_refuses_side_effects(make, tmp_path):
    with pytest.raises(RuntimeError):
        ms.export(make(), tensor(3), file_name=str(tmp_path / "net"), file_format="MINDIR")
    assert not list(tmp_path.iterdir())


def test_results_that_are_inputs(tmp_path):
    path, x, y = str(tmp_path / "net.mindir"), tensor(2), tensor(3)
    ms.export(lambda x, y: (y, {"x": x}, x * 2), x, y, file_name=path, file_format="MINDIR")
    again = nn.GraphCell(ms.load(path))
    for run in (again, ms.jit(lambda *xs: again(*xs))):
        first, second, third = run(x, y)
        np.testing.assert_array_equal(first.asnumpy(), y.asnumpy())
        np.testing.assert_array_equal(second["x"].asnumpy(), x.asnumpy())
        np.testing.assert_array_equal(third.asnumpy(), 2 * x.asnumpy())


FORMS = {
    "no JSON": lambda form: "{",
    "deep": lambda form: "[" * 100_000,
    "a list": lambda form: [],
    "no order": lambda form: {k: v for k, v in form.items() if k != "order"},
    "too few arguments": lambda form: form | {"order": form["order"][:-1]},
    "an argument twice": lambda form: form | {"order": [form["order"][0]] * len(form["order"])},
    "an unknown weight": lambda form: form | {"order": [["weight", 9], *form["order"][1:]]},
    "a kind": lambda form: form | {"order": [["file", 0], *form["order"][1:]]},
    "a weight of another type": lambda form: form | {"order": form["order"][::-1]},
    "weights that are not there": lambda form: form | {"weights": [["x", True]]},
    "weights that are texts": lambda form: form | {"weights": [["%none", True], ["bias", True]]},
    "a write of no result": lambda form: form | {"writes": [[0, 5]]},
    "a write of another type": lambda form: form | {"writes": [[0, 0]]},
    "a result that is none": lambda form: form | {"results": {"result": 7}},
    "a result from the end": lambda form: form | {"results": {"result": -1}},
    "an unknown container": lambda form: form | {"results": {"set": []}},
    "two containers": lambda form: form | {"results": {"tuple": [], "list": []}},
}


@pytest.mark.parametrize("name", FORMS)
def test_load_refuses_damaged_forms(tmp_path, name):
    path = str(tmp_path / "net.mindir")
    ms.export(nn.Dense(3, 2), tensor(4, 3), file_name=path, file_format="MINDIR")
    found = _checkpoint_file.read(path, False)
    form = FORMS[name](json.loads(found["%form"]))
    text = form if isinstance(form, str) else json.dumps(form)
    _checkpoint_file.write(path, {**found, "%form": text}, False)
    with pytest.raises(CheckpointError, match=r"net\.mindir' cannot be read"):
        ms.load(path)


@pytest.mark.parametrize("op", ["region", "host_call"])
def test_load_refuses_nodes_that_export_never_writes(tmp_path, op):
    path = str(tmp_path / "net.mindir")
    ms.export(lambda x: x * 2, tensor(2), file_name=path, file_format="MINDIR")
    found = _checkpoint_file.read(path, False)
    nodes = {
        "region": "%1 = region(%0) {\nbody = graph(%0: float32[2]) {\nreturn %0\n}\n} : float32[2]",
        "host_call": "%1 = host_call(%0, run=host.f, types=(float32[2],)) : float32[2]",
    }
    text = f"graph(%0: float32[2]) {{\n{nodes[op]}\nreturn %1,\n}}"
    _checkpoint_file.write(path, {**found, "%graph": text}, False)
    with pytest.raises(CheckpointError, match="cannot be read"):
        ms.load(path)


def test_inputs_of_graph_cell_are_checked(tmp_path):
    net, x = nn.Dense(3, 2), tensor(4, 3)
    with pytest.raises(ValueError, match="file_format='AIR'"):
        ms.export(net, x, file_name=str(tmp_path / "net"), file_format="AIR")
    with pytest.raises(TypeError, match="input 0"):
        ms.export(net, 3, file_name=str(tmp_path / "net"), file_format="MINDIR")
    with pytest.raises(TypeError, match="GraphCell"):
        nn.GraphCell(net)
    ms.export(net, x, file_name=str(tmp_path / "net"), file_format="MINDIR")
    again = nn.GraphCell(ms.load(str(tmp_path / "net.mindir")))
    for wrong, error in (((x, x), TypeError), ((3,), TypeError), ((tensor(5, 3),), ValueError)):
        with pytest.raises(error, match="GraphCell"):
            again(*wrong)


def test_load_refuses_damaged_files(tmp_path):
    path = str(tmp_path / "net.mindir")
    ms.export(nn.Dense(3, 2), tensor(4, 3), file_name=path, file_format="MINDIR")
    found = _checkpoint_file.read(path, False)
    for change in (
        {"%graph": "graph() { import os }"},
        {"%graph": found["%graph"].replace("dense", "no_such_op")},
        {"%graph": found["%graph"].replace("float32[4, 2]", "float32[4, 9]")},
        {"%graph": "graph(" * 5000},
        {"%graph": "graph() {\n%0 = fill(shape=" + "(" * 5000 + ")\n  return %0\n}"},
        {"%graph": "graph() {\n" + "%0 = switch() {\nbranches[0] = graph() {\n" * 3000},
    ):
        _checkpoint_file.write(path, {**found, **change}, False)
        with pytest.raises(CheckpointError, match=r"net\.mindir' cannot be read: (graph|dense)"):
            ms.load(path)
    _checkpoint_file.write(path, {**found, "%form": '{"version": 9}'}, False)
    with pytest.raises(CheckpointError, match="version 9"):
        ms.load(path)
    ms.save_checkpoint(nn.Dense(3, 2), str(tmp_path / "net.ckpt"))
    with pytest.raises(CheckpointError, match="holds no graph"):
        ms.load(str(tmp_path / "net.ckpt"))
    with pytest.raises(CheckpointError, match="no such file"):
        ms.load(str(tmp_path / "nothing"))
