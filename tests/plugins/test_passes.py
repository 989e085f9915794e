"""Tests of graph passes of plugins: they run after the built-in ones and are verified, and one that
fails is named and skipped.
"""

from __future__ import annotations

import sys

import pytest

HEAD = """
import dataclasses
from duograph.backend.hookspecs import hookimpl

seen = []

def swap(old, new):
    '''A pass that puts one op in place of another (of the same operands and attributes).'''
    def step(graph):
        from duograph.op import OPS
        change = lambda n: dataclasses.replace(n, op=OPS[new]) if n.op.name == old else n
        nodes = [change(n) for n in graph.nodes]
        return dataclasses.replace(graph, nodes=nodes)
    step.__name__ = f"{old}_to_{new}"
    return step
"""
PROGRAM = """
import duograph as ms
f = ms.jit(lambda x: x * x + x)
x = ms.Tensor([3.0])
print(f(x), f(x))
print(ms.Tensor([1.0]) + 1)
"""


def plugin(passes: str) -> str:
    return f"{HEAD}\n@hookimpl\ndef duograph_passes():\n    return {passes}\n"


def run(site, program, **environment):
    """Run a program from a file, because the code of `-c` has no source to compile."""
    (site.folder / "program.py").write_text(program)
    return site.command([sys.executable, "-W", "always", "program.py"], **environment)


def test_a_pass_of_a_plugin_runs(site):
    site.install("mul_add", plugin("[swap('mul', 'add')]"))
    assert run(site, PROGRAM).stdout == "[9.] [9.]\n[2.]\n"  # 3 + 3 + 3


def test_plugin_passes_run_after_the_built_in_ones_in_order(site, tmp_path):
    site.install("zz", plugin("[swap('sub', 'add')]"))
    site.install("aa", plugin("[swap('add', 'mul'), swap('mul', 'sub')]"))
    # x*x + x -> x*x*x -> x-x-x -> x+x+x
    assert run(site, PROGRAM, DUOGRAPH_DUMP=str(tmp_path / "dump")).stdout.startswith("[9.]")
    names = sorted(p.name for p in (tmp_path / "dump" / "lambda_0").iterdir())
    written = [name.split("_", 1)[1] for name in names]
    first = written.index("aa.add_to_mul.ir")
    assert "remove_dead_code.ir" in written[:first]
    assert written[first : first + 3] == [
        "aa.add_to_mul.ir",
        "aa.mul_to_sub.ir",
        "zz.sub_to_add.ir",
    ]


FAILING = {
    "raises": "[lambda graph: 1 / 0]",
    "no graph": "[lambda graph: None]",
    "wrong graph": "[swap('mul', 'exp')]",
    "another result": "[lambda graph: dataclasses.replace(graph, outputs=graph.outputs * 2, "
    "single=False)]",
    "the hook": "1 / 0",
    "no pass": "[3]",
    "no list": "3",
}


@pytest.mark.parametrize("what", FAILING)
def test_failing_pass_is_reported_and_disabled(what, site):
    site.install("broken", plugin(FAILING[what]))
    site.install("sound", plugin("[swap('add', 'mul')]"))
    done = run(site, PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[27.] [27.]\n[2.]\n"
    assert done.stderr.count("RuntimeWarning") == 1
    assert "'broken' failed" in done.stderr


def test_failing_pass_raises_in_debug_mode(site):
    site.install("broken", plugin("[lambda graph: 1 / 0]"))
    said = run(site, "import duograph as ms\nms.set_context(debug=True)\n" + PROGRAM).stderr
    assert (
        "GraphError: the pass '<lambda>' of the plugin 'broken' failed: ZeroDivisionError" in said
    )


GRAPH_MODE = """
import duograph as ms
from duograph import nn

class Net(nn.Cell):
    def construct(self, x):
        return x * x + x

ms.set_context(mode=ms.GRAPH_MODE)
x = ms.Tensor([3.0])
print(Net()(x), ms.grad(Net())(x))
"""


def test_plugin_pass_in_graph_mode(site):
    site.install("mul_add", plugin("[swap('mul', 'add')]"))
    assert run(site, GRAPH_MODE).stdout.startswith("[9.] ")
