"""Level O2: a compiled function as one captured graph."""

from __future__ import annotations

import gc
import threading
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.backend import registry
from duograph_cuda.emulation import driver as emulated

DEVICE = "CUDA-emulated"


@pytest.fixture
def device(monkeypatch):
    problem = registry.problem_of(registry.entries()[DEVICE])
    if problem is not None:
        pytest.skip(problem)
    return registry.backend(DEVICE).device(0)


def _operands(seed):
    rng = np.random.default_rng(seed)
    shapes = ((5, 8), (8, 8))
    return [ms.Tensor(rng.normal(size=s).astype(np.float32), device=DEVICE) for s in shapes]


def _net(x, w):
    for _ in range(3):
        x = ops.tanh(ops.matmul(x, w)) + x
    return x, (x * x).sum()


def test_one_launch_a_call_and_the_same_bits(device):
    whole, stepwise = ms.jit(_net, jit_level="O2"), ms.jit(_net, jit_level="O0")
    kept = []
    for seed in range(4):
        x, w = _operands(seed)
        got, want = whole(x, w), stepwise(x, w)
        kept.append((got, [v.asnumpy() for v in want]))
        before = device.counts["launches"]
        whole(x, w)
        assert device.counts["launches"] == before + 1
    for got, want in kept:  # results outlive the calls after them
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-5)


def test_gradients_and_updates(device):
    def run(level):
        w = ms.Parameter(ms.Tensor(np.full((8, 8), 0.1, np.float32), device=DEVICE), name="w")
        loss = ms.value_and_grad(
            lambda x: (ops.softmax(ops.matmul(x, w), axis=1) ** 2).sum(), None, [w]
        )

        def step(x):
            value, (grad,) = loss(x)
            ops.assign(w, w - 0.1 * grad)
            return value

        compiled = ms.jit(step, jit_level=level)
        return [float(compiled(_operands(k)[0])) for k in range(4)] + [w.asnumpy()]

    for a, b in zip(run("O2"), run("O0"), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_memory_goes_with_the_function(device):
    gc.collect()
    before = device.memory_stats()["in_use"]
    whole = ms.jit(lambda x, w: _net(x, w)[1], jit_level="O2")
    float(whole(*_operands(0)))
    assert device.memory_stats()["in_use"] > before
    del whole
    gc.collect()
    assert device.memory_stats()["in_use"] <= before


def test_threads_capture_and_launch_side_by_side(device):
    wanted = [float(ms.jit(_net, jit_level="O0")(*_operands(k))[1]) for k in range(4)]
    found = [[] for _ in range(4)]

    def work(k):
        mine = ms.jit(lambda x, w: _net(x, w)[1], jit_level="O2")
        for _ in range(5):
            found[k].append(float(mine(*_operands(k))))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        np.testing.assert_allclose(found[k], wanted[k], rtol=1e-6)
        assert len(found[k]) == 5


def test_the_switch_and_the_other_levels(device, monkeypatch):
    """One launch a call at O2 only, and not where the switch says no."""

    def launches(level, switch):
        monkeypatch.setenv("DUOGRAPH_CUDA_GRAPHS", switch)
        run = ms.jit(lambda x, w: _net(x, w)[1], jit_level=level)
        operands = _operands(1)
        value = float(run(*operands))
        before = device.counts["launches"]
        assert float(run(*operands)) == pytest.approx(value)
        return device.counts["launches"] - before

    assert launches("O2", "1") == 1
    assert launches("O2", "0") > 3
    assert launches("O1", "1") > 3


def test_what_is_not_captured_runs_by_its_steps(device):
    """A loop whose end depends on data: the notes say why there is no graph."""

    @ms.jit(jit_level="O2")
    def halve(x):
        while x.sum() > 1.0:
            x = x / 2.0
        return x

    x = _operands(2)[0].abs()
    assert float(halve(x).sum()) <= 1.0
    assert float(halve(x * 3.0).sum()) <= 1.0
    assert "a CUDA graph" in str(halve.explain(x))


@pytest.mark.parametrize("fails", ["cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate"])
def test_a_capture_that_fails(device, fails, monkeypatch):
    """What a driver refuses to capture runs by its steps from then on, and that is said once."""
    whole = ms.jit(lambda x, w: _net(x, w)[1], jit_level="O2")
    x, w = _operands(3)
    wanted = float(ms.jit(_net, jit_level="O0")(x, w)[1])
    module = device.driver.module

    def refuse(*arguments):
        module.capture = None
        return emulated.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, None

    monkeypatch.setattr(module, fails, refuse)
    with pytest.warns(RuntimeWarning, match="CAPTURE_UNSUPPORTED.*runs step by step from now on"):
        assert float(whole(x, w)) == pytest.approx(wanted, rel=1e-5)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = device.counts["launches"]
        assert float(whole(x, w)) == pytest.approx(wanted, rel=1e-5)
        assert device.counts["launches"] > before + 3
    in_use = device.memory_stats()["in_use"]
    del whole
    gc.collect()
    assert device.memory_stats()["in_use"] == in_use, "the memory of the capture was kept"
