"""Tests that examples learn in short runs, equally in both modes, and tests of their parts."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import urllib.error
import urllib.request

import duograph as ms
import numpy as np
import pytest
from duograph.backend import registry

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
PACKAGES = ("sklearn", "matplotlib", "tqdm", "onnx", "starlette", "uvicorn")


def load(name, **constants):
    """Import an example, with other constants."""
    for package in PACKAGES:
        pytest.importorskip(package, reason="the examples need duograph[examples]")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module).update(constants)
    return module


@pytest.fixture
def run(tmp_path, restored):
    """Run an example in both modes; yields a function that returns what `main` returned in each."""

    def both(example, line):
        found = []
        for mode in ("graph", "pynative"):
            picture = tmp_path / f"{mode}.png"
            try:
                found.append(example.main(["--mode", mode, "--out", str(picture), *line.split()]))
            finally:
                if "Chip" in registry.entries():
                    registry.unregister("Chip")
            assert picture.read_bytes().startswith(b"\x89PNG")
        return found

    return both


def means(losses, count):
    """Means of the first and of the last losses."""
    return float(np.mean(losses[:count])), float(np.mean(losses[-count:]))


def test_dqn(run):
    graph, pynative = run(load("dqn"), "--steps 800")
    first, last = graph[0][0], min(graph[0])
    assert last < 0.5 * first
    assert graph[1] > 20  # steps; a cart that is always pushed to one side falls after 9
    # What the network does decides what it learns from, so a rounding may lead elsewhere later.
    np.testing.assert_allclose(graph[0][:50], pynative[0][:50], rtol=1e-3)


def test_neural_ode(run):
    graph, pynative = run(load("neural_ode"), "--steps 60 --batch 32")
    first, last = means(graph[0], 5)
    assert last < 0.02 < 0.2 < first
    assert graph[2] < 1e-3  # relative difference of the two gradients
    np.testing.assert_allclose(graph[0], pynative[0], rtol=1e-3)


def test_neural_ode_through_the_solver(run):
    graph, pynative = run(load("neural_ode"), "--steps 20 --batch 32 --gradient solver")
    assert graph[0][-1] < 0.5 * graph[0][0]
    np.testing.assert_allclose(graph[0], pynative[0], rtol=1e-3)


def test_pinn(run):
    graph, pynative = run(load("pinn"), "--steps 150 --points 256")
    first, last = means(graph[0], 10)
    assert last < 0.45 * first
    assert graph[1] < 0.45  # relative error; of the ansatz without a network it is above 0.6
    np.testing.assert_allclose(graph[0], pynative[0], rtol=1e-2)


def test_lora(run):
    small = {"WIDTH": 32, "CONTEXT": 32, "LAYERS": 1}
    graph, pynative = run(load("lora", **small), "--steps 80 --adapt 80 --batch 8")
    assert graph[0].keys() == {"pre-training", "full", "LoRA"}
    for name, (before, after) in {n: means(x, 10) for n, x in graph[0].items()}.items():
        assert after < before - (0.5 if name == "pre-training" else 0.05), name
    assert 0.2 < graph[1] < 1.2  # the share of the improvement that LoRA attains
    assert graph[2] < 1e-4  # merging changes no logit
    for name in graph[0]:
        np.testing.assert_allclose(graph[0][name], pynative[0][name], rtol=2e-3)


def test_serve_onnx(run):
    graph, pynative = run(load("serve_onnx"), "--epochs 2 --clients 3")
    first, last = means(graph[0], 10)
    assert last < 0.5 < 2 < first
    assert min(graph[1], pynative[1]) > 0.85
    assert max(graph[2], pynative[2]) < 1e-5
    np.testing.assert_allclose(graph[0], pynative[0], rtol=2e-3)


def test_custom_op(run):
    graph, pynative = run(load("custom_op", LENGTH=40), "--steps 200")
    assert means(graph[0], 10)[1] < 0.05
    assert graph[1] < 0.05  # always answering 1 has 0.167
    np.testing.assert_allclose(graph[0], pynative[0], rtol=1e-2, atol=1e-5)


def test_custom_device(run):
    graph, pynative = run(load("custom_device"), "--epochs 2")
    for bits in (24, 8, 4):
        first, last = means(graph[0][bits], 10)
        assert last < 0.8 < 2 < first, bits
    assert graph[1][8] > 0.8
    assert graph[0] == pynative[0]  # one kernel after the other in both modes: the same bits
    assert len({tuple(losses) for losses in graph[0].values()}) == 4


# ---- parts


def test_the_cart_falls_as_in_the_equations():
    """A cart that is always pushed to the right: its pole falls to the left."""
    carts = load("dqn").Carts(1, np.random.default_rng(0))
    carts.state[:] = 0
    steps = 0
    while not carts.step(np.ones(1, int))[0][0]:
        steps += 1
    assert steps == 8
    x, speed, angle, turn = carts.state[0]
    assert x > 0 and speed > 0 and angle < -np.deg2rad(12) and turn < 0


def test_replay_overwrites_the_oldest():
    replay = load("dqn").Replay(5, np.random.default_rng(0))
    for k in range(4):
        replay.add(np.full((2, 4), k), np.full(2, k), np.full((2, 4), k), np.zeros(2))
    assert replay.columns[1].tolist() == [2, 3, 3, 1, 2]


def test_the_exact_solution_obeys_burgers_equation():
    example = load("pinn")
    x, t, h = np.linspace(-0.9, 0.9, 7), 0.3, 1e-3
    u = example.exact
    u_t = (u(x, t + h) - u(x, t - h)) / (2 * h)
    u_x = (u(x + h, t) - u(x - h, t)) / (2 * h)
    u_xx = (u(x + h, t) - 2 * u(x, t) + u(x - h, t)) / h**2
    np.testing.assert_allclose(u_t + u(x, t) * u_x, example.VISCOSITY * u_xx, atol=1e-3)
    np.testing.assert_allclose(u(x, 1e-9), -np.sin(np.pi * x), atol=1e-4)


@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 1, 1), (3, 1, 2), (0, 4, 2)], ids=str)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_gradient_of_the_recurrence(shape, compiled):
    example = load("custom_op")
    rng = np.random.default_rng(0)
    a, b, w = (ms.Tensor(rng.uniform(-1, 1, shape), ms.float32) for _ in range(3))
    found = []
    for scan in (example.recurrence, example.loop):
        value_and_grad = ms.value_and_grad(lambda a, b, scan=scan: (scan(a, b) * w).sum(), (0, 1))
        value, grads = (ms.jit(value_and_grad) if compiled else value_and_grad)(a, b)
        found.append([value.asnumpy(), *[g.asnumpy() for g in grads]])
    for own, other in zip(*found, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("x", "bits", "wanted"),
    [(1.0, 2, 1.0), (1.3, 2, 1.5), (1.2, 2, 1.0), (-5.1, 3, -5.0), (0.0, 8, 0.0), (257.0, 8, 256.0),
     (1 / 3, 24, 1 / 3), (np.inf, 8, np.inf)],
)  # fmt: skip
def test_rounding_to_few_bits(x, bits, wanted):
    found = load("custom_device").rounded(np.array([x], np.float32), bits)
    assert found.dtype == np.float32
    assert found[0] == np.float32(wanted)


def test_eight_bits_are_bfloat16():
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    found = load("custom_device").rounded(x, 8)
    np.testing.assert_array_equal(found, x.astype(ms.bfloat16.np).astype(np.float32))


@pytest.mark.parametrize(
    "body", ["{}", '{"images": 3}', '{"images": [[1, 2]]}', '{"images": []}', "no JSON"], ids=repr
)
def test_the_server_explains_a_bad_request(body, tmp_path):
    example = load("serve_onnx")
    path = str(tmp_path / "net.onnx")
    some = ms.Tensor(shape=[None, 1, 8, 8], dtype=ms.float32)
    ms.export(example.Net(), some, file_name=path, file_format="ONNX")
    with example.serving(example.application(path, "pynative")) as port:
        at = f"http://127.0.0.1:{port}"
        assert json.load(urllib.request.urlopen(f"{at}/health"))["model"] == "net.onnx"
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{at}/predict", body.encode())
        assert caught.value.code == 422
        assert "wanted" in json.load(caught.value)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_every_example_states_its_figure_and_is_in_the_gallery(name):
    text = (EXAMPLES / f"{name}.py").read_text()
    gallery = (EXAMPLES.parent / "docs" / "gallery.md").read_text()
    assert f"python examples/{name}.py" in text.split('"""')[1]
    assert re.search(r"\d s (of\s+processor time|on two CPU cores)", text.split('"""')[1])
    assert "sys.exit(" in text.split("if __name__")[1]
    assert f"python examples/{name}.py" in gallery
    assert f"pictures/{name}.png" in gallery
    assert (EXAMPLES.parent / "docs" / "pictures" / f"{name}.png").is_file()
