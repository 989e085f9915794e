"""The main example: the same weights, bit for bit, line by line, in GRAPH_MODE and with its whole step compiled."""

from __future__ import annotations

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
    for mode in ("pynative", "graph", "jit"):
        out = tmp_path_factory.mktemp(mode)
        command = [sys.executable, str(EXAMPLE), "--mode", mode, "--epochs", "1", "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        loaded = ms.load_checkpoint(str(out / "digits.ckpt"))
        found[mode] = {name: p.asnumpy() for name, p in loaded.items()}
    return found


@pytest.mark.parametrize("mode", ["graph", "jit"])
def test_the_digits_train_alike_in_every_mode(weights, mode):
    assert weights[mode].keys() == weights["pynative"].keys()
    for name, array in weights["pynative"].items():
        np.testing.assert_array_equal(weights[mode][name], array, err_msg=name)
