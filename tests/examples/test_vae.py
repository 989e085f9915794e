"""Tests that the VAE example learns, alike in both modes, and that its bound is a bound."""

import pathlib
import runpy

import duograph as ms
import numpy as np
import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "vae.py"


@pytest.fixture(scope="module")
def example():
    for package in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(package, reason="the examples need duograph[examples]")
    return runpy.run_path(str(EXAMPLE))


def test_vae_learns_alike_in_both_modes(example, tmp_path, restored):
    losses, elbos = {}, {}
    for mode in ("graph", "pynative"):
        picture = tmp_path / f"{mode}.png"
        losses[mode], elbos[mode] = example["main"](
            ["--mode", mode, "--epochs", "20", "--out", str(picture)]
        )
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert losses["graph"][-1] < 200 < 300 < losses["graph"][0]
    assert elbos["graph"] > -200
    np.testing.assert_allclose(losses["graph"], losses["pynative"], rtol=1e-3)
    assert elbos["graph"] == pytest.approx(elbos["pynative"], rel=1e-3)


def test_elbo_without_information_is_the_likelihood(example):
    """With q equal to the prior and a decoder that ignores z, the bound is log p(x)."""
    net = example["VAE"](hidden=4)
    for p in net.get_parameters():
        p.set_data(ms.ops.zeros_like(p))
    counts = np.random.default_rng(0).integers(0, 17, (5, 64)).astype(np.float32)
    choices = net.log_choices.asnumpy()[counts.astype(int)].sum(axis=1)
    likelihood = choices + 64 * 16 * np.log(0.5)  # p is 1/2 in every pixel
    np.testing.assert_allclose(net(ms.Tensor(counts)).asnumpy(), likelihood, rtol=1e-5)
