"""The main example: the same weights, line by line, in GRAPH_MODE and with its whole step compiled.

Bit for bit where nothing generates code (without a C compiler everything runs at O0), else up to the order of sums.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import duograph as ms
import numpy as np
import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "digits.py"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Name -> array after one epoch, by mode."""
    pytest.importorskip("sklearn", reason="the example's images ship inside scikit-learn")
    found = {}
    for mode in ("pynative", "graph", "jit", "jit at O1"):
        out = tmp_path_factory.mktemp("digits")
        mode, _, level = mode.partition(" at ")
        environment = dict(os.environ) if level else {**os.environ, "CC": "/nonexistent/cc"}
        command = [sys.executable, str(EXAMPLE), "--mode", mode, "--epochs", "1", "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        loaded = ms.load_checkpoint(str(out / "digits.ckpt"))
        found[mode + level] = {name: p.asnumpy() for name, p in loaded.items()}
    return found


@pytest.mark.parametrize("mode", ["graph", "jit"])
def test_the_digits_train_alike_in_every_mode(weights, mode):
    assert weights[mode].keys() == weights["pynative"].keys()
    for name, array in weights["pynative"].items():
        np.testing.assert_array_equal(weights[mode][name], array, err_msg=name)


def test_generated_code_changes_no_more_than_rounding(weights):
    for name, array in weights["pynative"].items():
        np.testing.assert_allclose(
            weights["jitO1"][name], array, rtol=1e-3, atol=1e-4, err_msg=name
        )
