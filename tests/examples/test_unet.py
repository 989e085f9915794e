"""Tests that the U-Net example learns, alike in both modes, and writes its picture."""

import pathlib
import runpy

import numpy as np
import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "unet.py"
SHORT = ["--images", "48", "--size", "16", "--epochs", "6", "--batch", "8"]


def test_unet_learns_alike_in_both_modes(tmp_path, restored):
    pytest.importorskip("matplotlib", reason="the examples need duograph[examples]")
    main = runpy.run_path(str(EXAMPLE))["main"]
    losses, ious = {}, {}
    for mode in ("graph", "pynative"):
        picture = tmp_path / f"{mode}.png"
        losses[mode], ious[mode] = main(["--mode", mode, "--out", str(picture), *SHORT])
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(losses["graph"]) == 36
    assert np.mean(losses["graph"][-6:]) < 0.75 < 1.2 < losses["graph"][0]
    assert ious["graph"] > 0.25  # all background is 0.2
    np.testing.assert_allclose(losses["graph"], losses["pynative"], rtol=2e-3)
    assert ious["graph"] == pytest.approx(ious["pynative"], abs=0.01)
