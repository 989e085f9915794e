"""Tests of what a notebook shows, in a real kernel: tensors, Cells, compiled functions, tables."""

from __future__ import annotations

import textwrap

import nbformat
import pytest
from nbclient import NotebookClient

SETUP = """
import numpy as np
import duograph as ms
from duograph import nn, ops

net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))

@ms.jit
def double(x):
    return x * 2 + 1

x = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
double(x)
None
"""

# expression -> parts of its HTML
SHOWN: dict[str, tuple[str, ...]] = {
    "x": ("Tensor (2, 3), float32", "6 values: min 0, max 5, mean 2.5", "<svg"),
    "ms.Tensor(2.5)": ("Tensor (), float32", "2.5"),
    "ms.Tensor([1.0, np.nan, np.inf])": ("1 NaN", "1 Inf"),
    "ms.Tensor(np.zeros((0, 3)))": ("no elements",),
    "ms.Tensor([True])": ("Tensor (1,), bool", "True"),
    "net[0].weight": ("Parameter 0.weight (8, 4), float32", "will be made by HeUniform"),
    "net(ms.ops.ones((1, 4))).shape and net[2].weight": ("Parameter 2.weight (2, 8)", "<svg"),
    "net": ("SequentialCell", "58 parameters", "<details", "Dense(input_channels=4"),
    "double": ("compiled function double", "float32[2, 3]", "O1"),
    "double.explain(x)": ("compiled for", "graph before optimisation"),
    "double.explain(x).graph": ("return", "<pre"),
    "double.show(x)": ("<iframe", "srcdoc"),
    "ms.summary(net, (3, 4))": ("multiply-adds", "(3, 8)", "<table"),
    "ms.jit(lambda x: x)": ("no program yet",),
}


@pytest.fixture(scope="module")
def outputs() -> dict[str, dict[str, str]]:
    """Run a notebook with one cell per expression; return what each shows, by MIME type."""
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(SETUP))]
    cells += [nbformat.v4.new_code_cell(expression) for expression in SHOWN]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return {cell.source: cell.outputs[0]["data"] for cell in notebook.cells[1:]}


@pytest.mark.parametrize("expression", SHOWN)
def test_shown(outputs: dict[str, dict[str, str]], expression: str) -> None:
    found = outputs[expression]
    assert found["text/plain"]
    for part in SHOWN[expression]:
        assert part in found["text/html"]
    assert "<script" not in found["text/html"].partition("srcdoc")[0]
