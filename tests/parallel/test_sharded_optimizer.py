"""ZeRO-1: each rank stores and updates its part of the optimiser state."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import communication as comm
from duograph import nn
from duograph_collectives.local import run_ranks
from rank_programs import COMPILED, EAGER

MODES = pytest.mark.parametrize("mode", [EAGER, COMPILED], ids=["eager", "compiled"])
STEPS = 3


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    mode, level = ms.get_context("mode"), ms.get_context("jit_level")
    yield
    ms.set_context(mode=mode, jit_level=level)


Make = Callable[[Any], nn.Optimizer]


def decaying(params: Any) -> list[dict[str, Any]]:
    """Groups with rates and decays of their own."""
    return [{"params": params[:1], "lr": 0.2}, {"params": params[1:], "weight_decay": 0.1}]


class Falling(nn.Cell):
    """A weight decay that depends on the step."""

    def construct(self, step: ms.Tensor) -> ms.Tensor:
        return 0.1 / (step.astype(ms.float32).reshape(()) + 1.0)


# name -> (optimiser, states per Parameter)
OPTIMISERS: dict[str, tuple[Make, int]] = {
    "SGD": (lambda p: nn.SGD(p, 0.1, momentum=0.9), 2),
    "Momentum": (lambda p: nn.Momentum(p, 0.1, 0.9), 1),
    "Momentum with groups": (lambda p: nn.Momentum(decaying(p), 0.1, 0.9), 1),
    "Momentum with a falling decay": (
        lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=Falling(), loss_scale=4.0), 1
    ),
    "Adam": (lambda p: nn.Adam(p, 0.01, weight_decay=0.1), 2),
    "Adam with the largest moment": (lambda p: nn.Adam(p, 0.01, use_amsgrad=True), 3),
    "AdamWeightDecay": (lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1), 2),
    "RMSProp": (lambda p: nn.RMSProp(p, 0.01), None),
    "Adagrad": (lambda p: nn.Adagrad(p), 1),
    "Adadelta": (lambda p: nn.Adadelta(p), None),
    "AdaMax": (lambda p: nn.AdaMax(p), 2),
    "FTRL": (lambda p: nn.FTRL(p), None),
    "ProximalAdagrad": (lambda p: nn.ProximalAdagrad(p), 1),
    "Rprop": (lambda p: nn.Rprop(p), 2),
    "ASGD": (lambda p: nn.ASGD(p), 3),
    "LARS": (lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9)), None),
    "Lamb": (lambda p: nn.Lamb(p, 0.01, weight_decay=0.1), 2),
}  # fmt: skip
ROUNDED = {"Lamb"}  # its norms are added in another order


def set_parallel(sharded: bool, threshold: int = 0) -> None:
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=sharded,
        parallel_optimizer_config={"parallel_optimizer_threshold": threshold},
    )  # fmt: skip


def state_of(optimiser: nn.Optimizer) -> dict[str, ms.Parameter]:
    """The state of an optimiser for its Parameters, by name."""
    own = getattr(optimiser, "opt", optimiser)
    known = {id(p) for p in own.parameters}
    return {
        p.name: p for p in own.get_parameters()
        if id(p) not in known and any(p.name.endswith(q.name) for q in own.parameters)
    }  # fmt: skip


def train(make: Make, sharded: bool, own_step: bool = False) -> tuple[list[np.ndarray], int]:
    """Train on this rank's share; return the Parameters, and the bytes of state."""
    set_parallel(sharded)
    rank, size = comm.get_rank(), comm.get_group_size()
    ms.set_seed(5)
    net = nn.SequentialCell(nn.Dense(6, 9), nn.LayerNorm((9,)), nn.Tanh(), nn.Dense(9, 3))
    optimiser = make(net.trainable_params())
    loss = nn.WithLossCell(net, nn.MSELoss())
    if own_step:
        gradients = ms.value_and_grad(loss, None, optimiser.parameters)
        reducer = nn.DistributedGradReducer(optimiser.parameters)
        step = lambda x, y: optimiser(reducer(gradients(x, y)[1]))  # noqa: E731
    else:
        step = nn.TrainOneStepCell(loss, optimiser).set_train()
    random = np.random.default_rng(0)
    x, y = random.normal(size=(8, 6)), random.normal(size=(8, 3))
    mine = slice(rank * 8 // size, (rank + 1) * 8 // size)
    for _ in range(STEPS):
        step(ms.Tensor(x[mine], ms.float32), ms.Tensor(y[mine], ms.float32))
    nbytes = sum(p.size * p.itemsize for p in state_of(optimiser).values())
    return [p.asnumpy() for p in net.get_parameters()], nbytes


@functools.cache
def replicated(name: str, size: int, mode: int, level: str) -> list[np.ndarray]:
    ms.set_context(mode=mode, jit_level=level)
    return run_ranks(train, size, OPTIMISERS[name][0], False)[0][0]


@pytest.mark.parametrize(
    ("mode", "level"),
    [(EAGER, "O0"), (COMPILED, "O0"), (COMPILED, "O1")],
    ids=["eager", "O0", "O1"],
)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_updates_in_parts_are_those_of_whole_parameters(name: str, mode: int, level: str) -> None:
    make, states = OPTIMISERS[name]
    expected = replicated(name, 4, mode, level)
    ms.set_context(mode=mode, jit_level=level)
    found = run_ranks(train, 4, make, True)
    sizes = [p.size for p in expected]
    for trained, nbytes in found:
        for a, b in zip(trained, expected, strict=True):
            if name in ROUNDED:
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(a, b)
        if states is not None:
            assert nbytes == 4 * states * sum(-(-n // 4) for n in sizes)


@MODES
@pytest.mark.parametrize("size", [2, 3])
def test_steps_of_the_user_give_whole_gradients(size: int, mode: int) -> None:
    make = OPTIMISERS["Adam"][0]
    ms.set_context(mode=mode)
    expected = run_ranks(train, size, make, False, True)[0][0]
    for trained, _ in run_ranks(train, size, make, True, True):
        for a, b in zip(trained, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_small_parameters_are_updated_on_all_ranks() -> None:
    """The threshold is in KiB; 64 is the default of MindSpore."""

    def program() -> list[tuple[int, ...]]:
        set_parallel(True, 1)
        net = nn.Dense(16, 16)
        whole = ms.Parameter(ms.ops.zeros((64, 64), ms.float32), "whole", parallel_optimizer=False)
        return [m.shape for m in nn.Momentum([*net.trainable_params(), whole], 0.1, 0.9).moments]

    assert run_ranks(program, 2) == [[(128,), (16,), (64, 64)]] * 2


class Own(nn.Optimizer):
    """An optimiser of a user, which updates whole Parameters."""

    def construct(self, gradients: Any) -> bool:
        return True


def centralized(params: Any) -> nn.Optimizer:
    return nn.Momentum([{"params": params, "grad_centralization": True}], 0.1, 0.9)


ERRORS: dict[str, tuple[dict[str, Any], Make, type[Exception], str]] = {
    "means": ({}, nn.AdaFactor, NotImplementedError, "rows and columns of whole gradients"),
    "construct": ({}, lambda p: Own(0.1, p), NotImplementedError, "its `construct` takes whole"),
    "mint": ({}, lambda p: ms.mint.optim.AdamW(p, lr=0.1), NotImplementedError, "whole Parameters"),
    "experimental": (
        {}, lambda p: ms.experimental.optim.SGD(p, lr=0.1), NotImplementedError, "whole Parameters",
    ),
    "centralized": ({}, centralized, NotImplementedError, "means of whole gradients"),
    "mode": (
        {"parallel_mode": "stand_alone"}, OPTIMISERS["Adam"][0], NotImplementedError,
        "wanted set_auto_parallel_context.parallel_mode='data_parallel'",
    ),
    "option": (
        {"enable_parallel_optimizer": 1}, OPTIMISERS["Adam"][0], ValueError, "wanted True or False"
    ),
    "key": (
        {"parallel_optimizer_config": {"threshold": 1}}, OPTIMISERS["Adam"][0], ValueError,
        "some of the keys parallel_optimizer_threshold",
    ),
    "threshold": (
        {"parallel_optimizer_config": {"parallel_optimizer_threshold": -1}},
        OPTIMISERS["Adam"][0], ValueError, "wanted an int of 0 or more",
    ),
    "shard size": (
        {"parallel_optimizer_config": {"optimizer_weight_shard_size": 3}},
        OPTIMISERS["Adam"][0], ValueError, "wanted -1 or 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    options, make, error, text = ERRORS[name]

    def program() -> None:
        set_parallel(True)
        ms.set_auto_parallel_context(**options)
        make(nn.Dense(3, 2).trainable_params())

    with pytest.raises(error, match=text):
        run_ranks(program, 2)


def test_one_process_updates_whole_parameters() -> None:
    try:
        set_parallel(True)
        optimiser = nn.Adam(nn.Dense(3, 2).trainable_params())
    finally:
        ms.reset_auto_parallel_context()
    assert optimiser.sharding is None
    assert [m.shape for m in optimiser.moment1] == [(2, 3), (2,)]
