"""F08: the graphs of compiled functions as text in a folder, per pass; levels 0 to 3; drawings for
Graphviz.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import duograph as ms
import numpy as np
import pytest
from duograph.ir.text import parse, to_text
from duograph.ir.verify import verify
from duograph.passes import CLEANUP

SOURCE = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 2)

    @ms.jit
    def construct(self, x):
        if x.sum() > 0:
            return self.dense(x) * 2
        while x.sum() < 0:
            x = x + 1
        print("x", x.shape)
        return self.dense(x)

net = Net()
"""
STEPS = [step.name for step in CLEANUP]


@pytest.fixture(autouse=True)
def _off():
    ms.set_context(jit_level="O0")
    yield
    ms.set_context(save_graphs=0, save_graphs_path=".")


def names(folder, ending=".ir"):
    return sorted(p.name.removesuffix(ending) for p in folder.iterdir() if p.name.endswith(ending))


def x():
    return ms.Tensor(np.ones((1, 3), np.float32))


EVERY = [f"{i:02d}_{what}" for i, what in enumerate(["read", *STEPS])]
LEVELS = {"0": [], "False": [], "1": ["00_read", "01_done"], "2": EVERY, "True": EVERY}


@pytest.mark.parametrize("level", LEVELS)
def test_levels(level, load, tmp_path):
    path = tmp_path / "made" / "when needed"
    ms.set_context(save_graphs=eval(level), save_graphs_path=str(path))
    assert ms.get_context("save_graphs_path") == str(path)
    net = load(SOURCE)["net"]
    net(x()), net(x())
    if not LEVELS[level]:
        assert not path.exists()
        return
    assert [p.name for p in path.iterdir()] == ["Net.construct_0"]
    found = names(path / "Net.construct_0")
    assert found[: len(LEVELS[level])] == LEVELS[level]  # fusion comes after, at levels above O0


def test_fused_regions_are_shown(load, tmp_path):
    ms.set_context(save_graphs=2, save_graphs_path=str(tmp_path), jit_level="O1")
    if ms.backend.registry.backend("CPU").compiles(0) is not None:
        pytest.skip("this machine has no C compiler")
    net = load(SOURCE)["net"]
    net(x())
    (found,) = (tmp_path / "Net.construct_0").glob("*_fuse.ir")
    text = found.read_text()
    assert "= region(" in text
    verify(parse(text))


def test_the_text_reads_back_and_shows_the_lines_of_the_source(load, tmp_path):
    ms.set_context(save_graphs=2, save_graphs_path=str(tmp_path))
    net = load(SOURCE)["net"]
    net(x())
    ms.grad(net)(x())
    found = sorted((tmp_path / "Net.construct_0").iterdir())
    assert len(found) >= 3 * (1 + len(STEPS))
    for file in found:
        text = file.read_text()
        graph = verify(parse(text))
        assert to_text(graph) == re.sub(r"  # <test \d+>:\d+", "", text).rstrip()
    first = found[0].read_text()
    assert re.search(r"dense\(.*  # <test \d+>:10", first) and "while_loop" in first
    assert "host.print" in first


def test_a_derivative_is_written_when_it_is_made(load, tmp_path):
    ms.set_context(save_graphs=1, save_graphs_path=str(tmp_path))
    f = load("@ms.jit\ndef f(x):\n    return ops.exp(x) * 2")["f"]
    f(x())
    assert names(tmp_path / "f_0") == ["00_read", "01_done"]
    ms.grad(f)(x())
    forms = ["02_backward_read", "03_backward_done", "04_forward_read", "05_forward_done"]
    assert names(tmp_path / "f_0") == ["00_read", "01_done", *forms]


def test_every_compilation_has_its_folder(load, tmp_path):
    ms.set_context(save_graphs=1, save_graphs_path=str(tmp_path))
    space = load("f = ms.jit(lambda x, k: x * k)\n@ms.jit\ndef g_(x):\n    return x + 1")
    space["f"](x(), 1), space["f"](x(), 2), space["f"](x(), 1)
    space["g_"](x())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g_0", "lambda_0", "lambda_1"]


def test_a_function_compiled_before_is_not_written(load, tmp_path):
    f = load("@ms.jit\ndef f(x):\n    return x * 2")["f"]
    f(x())
    ms.set_context(save_graphs=1, save_graphs_path=str(tmp_path))
    f(x())
    assert not list(tmp_path.iterdir())


def test_drawings(load, tmp_path):
    ms.set_context(save_graphs=3, save_graphs_path=str(tmp_path))
    load(SOURCE)["net"](x())
    folder = tmp_path / "Net.construct_0"
    assert names(folder, ".dot") == names(folder)
    text = (folder / "00_read.dot").read_text()
    assert text.startswith("digraph {") and text.count("{") == text.count("}")
    boxes = set(re.findall(r"^ *(\w+) \[label", text, re.M))
    edges = re.findall(r"(\w+) -> (\w+)", text)
    assert len(edges) > 10 and {end for edge in edges for end in edge} <= boxes


RECURSIVE = """
def walk(x, n):
    if x.sum() > 100:
        return x
    return walk(x * 2, n)

@ms.jit
def f(x):
    return walk(x, 3) + np.sum(x.asnumpy())
"""


def test_recursion_and_what_python_runs(load, tmp_path, warned):
    ms.set_context(save_graphs=3, save_graphs_path=str(tmp_path))
    f = load(RECURSIVE)["f"]
    f(x())
    folder = next(tmp_path.iterdir())
    for file in folder.glob("*.ir"):
        verify(parse(file.read_text()))
    assert "@walk" in (folder / "00_read.dot").read_text()


def test_the_environment(tmp_path):
    program = (
        "import duograph as ms\nprint(ms.get_context('save_graphs'))\n"
        "ms.jit(lambda x: x + 1)(ms.Tensor([1.0]))"
    )
    (tmp_path / "page.py").write_text(program)
    env = {**os.environ, "DUOGRAPH_DUMP": str(tmp_path / "graphs")}
    line = [sys.executable, "page.py"]
    done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"
    assert names(tmp_path / "graphs" / "lambda_0")[0] == "00_read"


@pytest.mark.parametrize("value", [4, -1, "2", 2.5, None])
def test_levels_are_checked(value):
    with pytest.raises(ValueError, match="save_graphs"):
        ms.set_context(save_graphs=value)


@pytest.mark.parametrize("value", ["", 3, None])
def test_the_path_is_checked(value):
    with pytest.raises(ValueError, match="save_graphs_path"):
        ms.set_context(save_graphs_path=value)
