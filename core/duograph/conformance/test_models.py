"""Tests that whole models train with the same results on the device, on the oracle and compiled.

pytest runs them with the conformance suite; `models` has the models. A docstring may begin with the
numbers of the requirements (tests/rows.py) that the test covers.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

import duograph as ms
from duograph import ops

from .compare import difference_of
from .models import IGNORED, MODELS
from .oracle import on_oracle
from .program_runs import settings_for
from .session import Session

# Number of the first steps that are compared. Rounding differences grow with each step.
COMPARED = 4


@dataclasses.dataclass
class Training:
    """The results of training a model.

    Attributes:
        losses: the losses of the compared steps.
        state: values of the Parameters after these steps, including the statistics of batch
            normalisation.
        logits: results of the network for its data after these steps, in evaluation mode.
        later: the losses of further steps, if any.
    """

    losses: list[float]
    state: dict[str, np.ndarray]
    logits: np.ndarray
    later: list[float]


def train(name: str, level: str | None = None, whole: bool = False) -> Training:
    """Train the model `name` on the current device, for the first `COMPARED` steps or for all.

    If `whole` is true, all steps of the model run; those after the first `COMPARED` are in
    `Training.later`. If `level` is not None, the training step is compiled at that jit level.
    """
    model = MODELS[name]
    ms.set_seed(4)
    network = model.network()
    optimizer = model.optimizer(network.trainable_params())

    def loss_of(*data):
        return ops.cross_entropy(network(*data[:-1]), data[-1], ignore_index=IGNORED)

    gradient = ms.value_and_grad(loss_of, None, optimizer.parameters)

    def step(*data):
        loss, grads = gradient(*data)
        optimizer(grads)
        return loss

    data = [ms.Tensor(a) for a in model.data()]
    run = step if level is None else ms.jit(step)
    with settings_for("eager" if level is None else "graph mode", level):
        network.set_train()
        losses = [float(run(*data)) for _ in range(COMPARED)]
        state = {p.name: p.asnumpy().copy() for p in network.get_parameters()}
        logits = network.set_train(False)(*data[:-1]).asnumpy()
        network.set_train()
        later = [float(run(*data)) for _ in range(model.steps - COMPARED if whole else 0)]
    return Training(losses, state, logits, later)


def eager(name: str, session: Session) -> Training:
    """Return the result of uncompiled training, computed once per process and device.

    A quick run trains for the first `COMPARED` steps only.
    """
    return _eager(name, str(session.device), not session.quick)


@functools.cache
def _eager(name: str, device: str, whole: bool) -> Training:
    return train(name, whole=whole)


def check_near(got: Training, want: Training) -> None:
    """Raise AssertionError unless two trainings agree, except for the order of summation.

    Their losses in the first steps, their Parameters and their final outputs are compared.
    """
    np.testing.assert_allclose(got.losses, want.losses, rtol=1e-4, atol=1e-5)
    for name, array in want.state.items():
        np.testing.assert_allclose(got.state[name], array, rtol=1e-3, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(got.logits, want.logits, rtol=1e-3, atol=1e-4)


def check_falls(training: Training, below: float) -> None:
    losses = training.losses + training.later
    assert losses[-1] < below * losses[0], f"the loss did not fall below {below} of it: {losses}"


@pytest.mark.parametrize("name", MODELS)
def test_training_model(name, session):
    """I11: a model trains, and its first steps agree with those of the oracle."""
    got = eager(name, session)
    with on_oracle():
        want = train(name)
    check_near(got, want)
    check_falls(got, 1.0 if session.quick else MODELS[name].below)


@pytest.mark.parametrize("name", MODELS)
def test_training_model_compiled(name, session):
    """I05: with its training step compiled at level O0, a model trains bit for bit as eagerly."""
    want, got = eager(name, session), train(name, "O0")
    for what in ("losses", "state", "logits"):
        text = difference_of(getattr(want, what), getattr(got, what), what)
        assert text is None, f"line by line and compiled differ: {text}"


@pytest.mark.parametrize("name", MODELS)
def test_training_model_optimised(name, session):
    """I05, I11: compiled at level O2, a model trains as eagerly, except for rounding."""
    if session.quick:
        pytest.skip("a quick run compiles at level O0 only")
    got = train(name, "O2", whole=True)
    check_near(got, eager(name, session))
    check_falls(got, MODELS[name].below)
