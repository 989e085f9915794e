"""Tests that the kernels of a small backend serve line-by-line and compiled execution."""

from __future__ import annotations

import pathlib

PLUGINS = pathlib.Path(__file__).resolve().parents[2] / "plugins"
PROGRAM = """
import numpy as np
import duograph as ms
from duograph import nn, ops

ms.set_context(device_target="Toy")

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 2, weight_init="ones")

    def construct(self, x):
        while x.sum() < 10:
            x = ops.exp(x) + 1
        return self.dense(x) if x.max() > 5 else -x[:, :2]

def trained(mode):
    ms.set_context(mode=mode)
    net = Net()
    forward = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    x = ms.Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    out = []
    for _ in range(3):
        loss, grads = forward(x)
        optimizer(grads)
        out.append(loss.asnumpy())
    assert str(net.dense.weight.device) == "Toy:0"
    return [*out, net.dense.weight.asnumpy(), ms.jit(net.construct)(x).asnumpy()]

for a, b in zip(trained(ms.PYNATIVE_MODE), trained(ms.GRAPH_MODE)):
    assert (a == b).all(), (a, b)
print(ms.jit_stats()["compiles"] > 0)
"""


def test_the_same_device_in_both_modes(site, device):
    """H08: the same backend serves line-by-line and compiled runs with no extra work."""
    site.install("toy", device("Toy"))
    (site.folder / "program.py").write_text(PROGRAM)
    assert site.run("import runpy; runpy.run_path('program.py')") == "True\n"


def test_minimal_backend_runs_in_both_modes(device):
    """N15: a whole backend in about 130 lines."""
    files = list((PLUGINS / "inner_ring" / "duograph_inner_ring").glob("*.py"))
    assert 0 < sum(len(f.read_text().splitlines()) for f in files) <= 130
    assert len(device().splitlines()) < 50


def test_device_description(site, device):
    """N18: capabilities are declared and queried; a missing one is refused by name."""
    site.install(
        "toy",
        device("Toy", lacks=("sin",)).replace(
            'name = "Toy"', 'name = "Toy"\n    dtypes = DTYPES', 1
        ),
    )
    source = (site.folder / "toy.py").read_text()
    head = "import duograph as ms\nDTYPES = (ms.float32, ms.int32, ms.bool_)\n"
    (site.folder / "toy.py").write_text(head + source)
    said = site.run(
        """
        import duograph as ms
        x = ms.Tensor([1.0], device="Toy")
        for attempt in (lambda: ms.ops.sin(x), lambda: ms.Tensor([1.0], ms.float64, device="Toy")):
            try:
                attempt()
            except (NotImplementedError, TypeError) as error:
                print(error)
        """
    )
    first, second = said.splitlines()
    assert first.startswith("sin(float32[1]): the Toy backend has no kernel for it")
    assert second == "Toy:0: got a float64 tensor; this device has float32, int32, bool"
