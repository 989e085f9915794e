"""Tests that the GAN example learns, alike in both modes, and what its figure counts."""

import pathlib
import runpy

import numpy as np
import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "gan.py"


@pytest.fixture(scope="module")
def example():
    for package in ("matplotlib", "tqdm"):
        pytest.importorskip(package, reason="the examples need duograph[examples]")
    return runpy.run_path(str(EXAMPLE))


def test_gan_learns_alike_in_both_modes(example, tmp_path, restored):
    losses = {}
    for mode in ("graph", "pynative"):
        picture = tmp_path / f"{mode}.png"
        line = ["--mode", mode, "--steps", "150", "--batch", "64", "--out", str(picture)]
        losses[mode], _ = example["main"](line)
        assert picture.read_bytes().startswith(b"\x89PNG")
    # at first the discriminator learns faster than the generator; 2 log 2 is a guess
    assert min(losses["graph"]) < 1.2 < 1.36 < losses["graph"][0]
    np.testing.assert_allclose(losses["graph"], losses["pynative"], rtol=1e-3)


@pytest.mark.parametrize(
    ("kept", "shift", "modes", "share"),
    [(8, 0.0, 8, 0.99), (3, 0.0, 3, 0.99), (8, 0.4, 0, 0.12)],
    ids=["data", "collapsed", "beside the modes"],
)
def test_coverage(example, kept, shift, modes, share):
    points = example["data_points"](np.random.default_rng(0), 10_000)
    near = np.linalg.norm(points[:, None] - example["CENTRES"], axis=2).argmin(axis=1)
    found = example["coverage"](points[near < kept] + shift / np.sqrt(2))
    assert found == (modes, pytest.approx(share, abs=0.02))
