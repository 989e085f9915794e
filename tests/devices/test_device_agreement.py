"""Tests that a program has the same weights, masks, losses and output on every device and mode."""

import importlib.util
import pathlib
import subprocess
import sys
import textwrap

import duograph as ms
import numpy as np
import pytest
from devices import device, use  # noqa: F401 (a fixture)
from duograph import nn, ops

ROOT = pathlib.Path(__file__).parents[2]
STEPS, BATCH, RATE = 3, 8, 1e-3
# Losses: sums in another order, and mathematical functions that round differently.
LOSS = 2e-5
LEVELS = [None, "O0", "O1", "O2"]


def module_at(path):
    spec = importlib.util.spec_from_file_location(path.stem + "_of_devices", ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    pytest.importorskip("tqdm")
    return module_at(pathlib.Path("examples/digits.py"))


def train(example, level):
    """Initial weights, a dropout mask, losses, and the weights after some steps of Adam, on the
    current device.
    """
    ms.set_seed(7)
    net = example.Net()
    first = {p.name: p.asnumpy() for p in net.get_parameters()}
    images, labels, _, _ = example.load(0)
    optimizer = nn.Adam(net.trainable_params(), RATE)
    loss_fn = nn.CrossEntropyLoss()
    grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

    def mask(x):
        return ops.dropout(x, 0.25, training=True)

    def step(x, y):
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        return loss

    if level is not None:
        mask, step = ms.jit(mask, jit_level=level), ms.jit(step, jit_level=level)
    masks = [mask(ms.Tensor(np.ones((16, 33), np.float32))).asnumpy() for _ in range(2)]
    net.set_train()
    losses = []
    for k in range(STEPS):
        rows = slice(k * BATCH, (k + 1) * BATCH)
        losses.append(float(step(ms.Tensor(images[rows]), ms.Tensor(labels[rows]))))
    return first, masks, losses, {p.name: p.asnumpy() for p in net.get_parameters()}


@pytest.fixture(scope="module")
def on_cpu(example):
    """The result of line-by-line execution on the CPU."""
    before = ms.get_context("device_target")
    use("CPU")
    found = train(example, None)
    ms.set_context(device_target=before)
    return found


@pytest.mark.parametrize("level", LEVELS, ids=["eager", "O0", "O1", "O2"])
def test_digits_example_trains_equally_on_devices(device, level, example, on_cpu):
    weights, masks, losses, after = train(example, level)
    for name, want in on_cpu[0].items():
        np.testing.assert_array_equal(weights[name], want, err_msg=f"initial {name}")
    np.testing.assert_array_equal(masks, on_cpu[1], err_msg="dropout masks")
    assert not np.array_equal(masks[0], masks[1])
    np.testing.assert_allclose(losses, on_cpu[2], rtol=LOSS, err_msg="losses")
    assert losses[0] != losses[-1]
    for name, want in on_cpu[3].items():
        # Adam's first steps have the size of the learning rate, whatever the gradient and its
        # rounding
        np.testing.assert_allclose(after[name], want, atol=2.1 * RATE * STEPS, err_msg=name)


DRIVER = """
import runpy, sys
for path in sys.argv[1:]:
    runpy.run_path(path, run_name="__main__")
    print("----", flush=True)
"""


@pytest.mark.parametrize("mode", ["PYNATIVE_MODE", "GRAPH_MODE"])
def test_programs_print_the_same_on_devices(device, mode, tmp_path, monkeypatch):
    """The programs that a reader of the seed documents would write, with the lines that they print.

    I07: the seeds' examples with exact printed output, on every device.
    """
    programs = module_at(pathlib.Path("tests/core/test_programs.py"))
    assert "PYNATIVE_MODE" in programs.HEAD
    names = sorted(
        programs.PROGRAMS, key=lambda name: name == "rule"
    )  # this one changes a rule for good
    for name in names:
        text = programs.HEAD.replace("PYNATIVE_MODE", mode) + textwrap.dedent(
            programs.PROGRAMS[name][0]
        )
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("DUOGRAPH_DEVICE", device)
    command = [sys.executable, "-c", DRIVER, *(str(tmp_path / f"{name}.py") for name in names)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    *said, rest = done.stdout.split("----\n")
    assert rest == ""
    assert dict(zip(names, said, strict=True)) == {
        name: programs.PROGRAMS[name][1] for name in names
    }
