"""Optimisers with groups and learning rate schedules against MindSpore's values, in both modes."""

from __future__ import annotations

import json
import linecache
import pathlib
import subprocess
import sys

import duograph as ms
import numpy as np
import pytest
from duograph.experimental import optim
from duograph.experimental.optim import lr_scheduler
from train import experimental_rows as rows

EXPECTED = json.loads((pathlib.Path(__file__).parent / "experimental_values.json").read_text())


@pytest.mark.parametrize("source", rows.OPTIMIZERS)
def test_optimizers_are_mindspores(source):
    found = rows.trained(ms, optim, source, rows.gradients())
    for a, b in zip(found, EXPECTED[source], strict=True):
        np.testing.assert_allclose(a, np.array(b, "f"), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("source", rows.OPTIMIZERS[::3])
def test_compiled_optimizers(source):
    """A compiled step computes what an eager one does, and keeps its state between calls."""

    def trained(compiled):
        a, b = rows.parameters(ms)
        groups = [{"params": [a]}, {"params": [b], "lr": 0.05}]
        optimizer = eval(source, {**vars(optim), "groups": groups})
        step = (
            ms.jit(lambda x, y: optimizer((x, y))) if compiled else lambda x, y: optimizer((x, y))
        )
        for x, y in rows.gradients():
            step(ms.Tensor(x), ms.Tensor(y))
        return [a.asnumpy(), b.asnumpy()]

    for x, y in zip(trained(False), trained(True), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("source", rows.SCHEDULES)
def test_schedules_are_mindspores(source):
    found = rows.rates_of(ms, optim, source)
    np.testing.assert_allclose(found, EXPECTED[source], rtol=2e-5, atol=2e-7)


@pytest.mark.parametrize("source", rows.CLOSED)
def test_formulas_of_any_step_are_mindspores(source):
    found = rows.rates_of(ms, optim, source, closed=True)
    np.testing.assert_allclose(found, EXPECTED[f"{source} at"], rtol=2e-5, atol=2e-7)


@pytest.mark.parametrize("source", [s for s in rows.SCHEDULES[::3] if "Sequential" not in s])
def test_compiled_schedules(source):
    """`step()` in a compiled function sets the same rates as outside of it."""
    a, b = rows.parameters(ms)
    o = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.3}], 0.1)
    linecache.cache["<schedule>"] = (len(source), None, [source], "<schedule>")  # of its lambdas
    schedule = eval(compile(source, "<schedule>", "eval"), {**vars(lr_scheduler), "o": o})
    step = ms.jit(lambda *metric: schedule.step(*metric))
    found = [[float(rate) for rate in o.lrs]]
    for metric in rows.METRICS:
        step(*[ms.Tensor(metric)] if "Plateau" in source else [])
        found.append([float(rate) for rate in schedule.get_last_lr()])
    np.testing.assert_allclose(found, EXPECTED[source], rtol=2e-5, atol=2e-7)


def test_warm_restarts_at_a_given_step():
    """`step(epoch)` reaches the rates that as many steps reach."""
    for t_mult in (1, 2, 3):
        one, two = (
            lr_scheduler.CosineAnnealingWarmRestarts(
                optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], 0.5), 2, t_mult
            )
            for _ in range(2)
        )
        for number in range(1, 20):
            one.step()
            two.step(number)
            np.testing.assert_allclose(
                float(one.get_last_lr()[0]), float(two.get_last_lr()[0]), atol=1e-6
            )


def test_schedules_of_one_optimizer_multiply():
    o = optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], 1.0)
    first, second = lr_scheduler.ExponentialLR(o, 0.5), lr_scheduler.StepLR(o, 2, 0.1)
    for _ in range(2):
        first.step()
        second.step()
    assert float(o.param_groups[0]["lr"]) == pytest.approx(0.025)


def test_a_resumed_schedule():
    p = ms.Parameter(ms.Tensor([1.0]), name="w")
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(optim.SGD([p], 0.05), 2, 0.5, last_epoch=3)
    o = optim.SGD([{"params": [p], "initial_lr": 0.2}], 0.05)
    assert float(lr_scheduler.StepLR(o, 2, 0.5, last_epoch=3).get_last_lr()[0]) == pytest.approx(
        0.025
    )


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "ASGD", "NAdam", "Adadelta"])
def test_groups_that_are_added_later(name):
    """A group that is added before the first step is trained as if it had been there."""

    def trained(later):
        a, b = rows.parameters(ms)
        if later:
            optimizer = getattr(optim, name)([a], 0.1)
            optimizer.add_param_group({"params": b, "lr": 0.05})
        else:
            optimizer = getattr(optim, name)([{"params": [a]}, {"params": [b], "lr": 0.05}], 0.1)
        assert len(optimizer.lrs) == 2 and optimizer.group_start_id == [0, 1, 2]
        for x, y in rows.gradients():
            optimizer((ms.Tensor(x), ms.Tensor(y)))
        return [a.asnumpy(), b.asnumpy()]

    for x, y in zip(trained(True), trained(False), strict=True):
        np.testing.assert_array_equal(x, y)


def test_an_optimizer_of_the_user():
    """MindSpore's documented way to write one: `construct` with groups, start ids and rates."""

    class Ascent(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def construct(self, gradients):
            for number, group in enumerate(self.param_groups):
                start = self.group_start_id[number]
                for i, param in enumerate(group["params"]):
                    ms.ops.assign(param, param + gradients[start + i] * self.lrs[number])
            return True

    a, b = rows.parameters(ms)
    optimizer = Ascent([a], 0.5)
    optimizer.add_param_group({"params": b})
    before = b.asnumpy().copy()
    optimizer((ms.ops.ones_like(a), ms.ops.ones_like(b)))
    np.testing.assert_allclose(b.asnumpy(), before + 0.5)
    lr_scheduler.StepLR(optimizer, 1, 0.1).step()
    assert [float(v) for v in optimizer.lrs] == pytest.approx([0.05, 0.05])


def test_half_precision_parameters_keep_their_dtype():
    for name in ("Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop", "ASGD", "Rprop"):
        p = ms.Parameter(ms.Tensor([1.0, 2.0], ms.float16), name="w")
        optimizer = getattr(optim, name)([p], 0.1)
        optimizer((ms.Tensor([1.0, -1.0], ms.float16),))
        assert p.dtype == ms.float16 and np.isfinite(p.asnumpy()).all(), name


W = ms.Parameter(ms.Tensor([1.0]), name="w")
WRONG = [
    (lambda o: optim.Adagrad([], 0.1), ValueError, "no parameters"),
    (lambda o: optim.Adagrad([W, W]), ValueError, "twice"),
    (lambda o: optim.Adagrad([{"params": {W}}]), TypeError, "set"),
    (lambda o: o.add_param_group({"params": W}), ValueError, "twice"),
    (lambda o: optim.RMSprop([W], -1.0), ValueError, "lr=-1.0"),
    (lambda o: optim.RMSprop([W], ms.Tensor([1.0])), ValueError, "0-d"),
    (lambda o: optim.RMSprop([W], eps=0), ValueError, "eps"),
    (lambda o: optim.RMSprop([W], centered=1), TypeError, "centered"),
    (lambda o: optim.Adadelta([W], rho=1.5), ValueError, "rho"),
    (lambda o: optim.NAdam([W], betas=(0.5, 1.0)), ValueError, r"betas\[1\]"),
    (lambda o: optim.Rprop([W], etas=(0.5, 0.9)), ValueError, r"etas\[1\]"),
    (lambda o: optim.ASGD([W], lambd="1"), TypeError, "lambd"),
    (lambda o: lr_scheduler.StepLR(3, 2), TypeError, "optimizer"),
    (lambda o: lr_scheduler.StepLR(o, 2.0), TypeError, "step_size"),
    (lambda o: lr_scheduler.StepLR(o, 2, last_epoch=-2), ValueError, "last_epoch"),
    (lambda o: lr_scheduler.LinearLR(o, 0.0), ValueError, "start_factor"),
    (lambda o: lr_scheduler.ConstantLR(o, 2.0), ValueError, "factor"),
    (lambda o: lr_scheduler.LambdaLR(o, [abs, abs]), ValueError, "2 functions"),
    (lambda o: lr_scheduler.CyclicLR(o, [0.1, 0.2], 1.0), ValueError, "base_lr"),
    (lambda o: lr_scheduler.CyclicLR(o, 0.1, 1.0, mode="round"), ValueError, "round"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, "least"), ValueError, "least"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError, "factor"),
    (lambda o: lr_scheduler.SequentialLR(o, [], [3]), ValueError, "milestones"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_wrong_arguments_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(optim.SGD([W], 0.1))


def test_mint_shares_the_optimizers():
    assert ms.mint.optim.AdamW is optim.AdamW and issubclass(ms.mint.optim.SGD, optim.SGD)
    code = (
        "import duograph, sys; found = 'duograph.experimental' in sys.modules; "
        "duograph.experimental.optim.Adam; print(found)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
