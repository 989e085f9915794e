"""Tests that the main example computes the same weights line by line, in GRAPH_MODE and with its
whole step compiled.

The weights agree to the bit without code generation (without a C compiler everything runs at O0),
and within rounding with it.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import duograph as ms
import numpy as np
import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "digits.py"


# Without its picture, which takes longer than the training: one of them is enough.
WITHOUT_PICTURE = """
import runpy, sys
example, *runs = sys.argv[1:]
for mode, out in zip(runs[::2], runs[1::2], strict=True):
    main = runpy.run_path(example)["main"]
    main.__globals__["draw"] = lambda *arguments: None
    sys.argv = [example, "--mode", mode, "--epochs", "1", "--out", out]
    main()
"""


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Name -> array after one epoch, by mode."""
    pytest.importorskip("sklearn", reason="the example's images ship inside scikit-learn")
    out = {
        mode: tmp_path_factory.mktemp("digits") for mode in ("pynative", "graph", "jit", "jitO1")
    }
    # as a script it ends with status 1, since one epoch does not reach the figure
    main = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0])['main']()"
    line = ["-c", main, str(EXAMPLE), "--mode", "pynative", "--epochs", "1"]
    line += ["--out", str(out["pynative"])]
    graphs = [str(EXAMPLE), "graph", str(out["graph"]), "jit", str(out["jit"])]
    without_compiler = {**os.environ, "CC": "/nonexistent/cc"}
    for command, environment in (
        (line, without_compiler),
        (["-c", WITHOUT_PICTURE, *graphs], without_compiler),
        (["-c", WITHOUT_PICTURE, str(EXAMPLE), "jit", str(out["jitO1"])], dict(os.environ)),
    ):
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
        accuracies = re.findall(r"held-out accuracy ([\d.]+)%", done.stdout)
        assert accuracies and min(map(float, accuracies)) > 50  # guessing reaches 10 %
    assert (out["pynative"] / "digits.png").read_bytes().startswith(b"\x89PNG")
    return {
        mode: {
            name: p.asnumpy() for name, p in ms.load_checkpoint(str(folder / "digits.ckpt")).items()
        }
        for mode, folder in out.items()
    }


@pytest.mark.parametrize("mode", ["graph", "jit"])
def test_digits_example_trains_equally_in_every_mode(weights, mode):
    assert weights[mode].keys() == weights["pynative"].keys()
    for name, array in weights["pynative"].items():
        np.testing.assert_array_equal(weights[mode][name], array, err_msg=name)


def test_generated_code_changes_no_more_than_rounding(weights):
    for name, array in weights["pynative"].items():
        np.testing.assert_allclose(
            weights["jitO1"][name], array, rtol=1e-3, atol=1e-4, err_msg=name
        )
