"""Tests that the example of a GPT learns equally in both modes, and writes as without a cache."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "char_gpt.py"


@pytest.mark.usefixtures("restored")
def test_char_gpt_learns_equally_in_both_modes(tmp_path, monkeypatch):
    pytest.importorskip("tqdm")
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("char_gpt", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "LAYERS", 2)
    monkeypatch.setattr(example, "WIDTH", 32)
    monkeypatch.setattr(example, "CONTEXT", 48)
    losses = {}
    for mode in example.MODES:
        picture = tmp_path / f"{mode}.png"
        line = ["--mode", mode, "--steps", "40", "--rate", "0.01", "--out", str(picture)]
        losses[mode], held_out, without, with_cache = example.main(line)
        assert losses[mode][0] > 4.5
        assert held_out < 3.1
        assert without == with_cache
        assert len(set(with_cache)) > 5
        assert picture.stat().st_size > 10_000
    np.testing.assert_allclose(losses["graph"], losses["pynative"], rtol=2e-3)
