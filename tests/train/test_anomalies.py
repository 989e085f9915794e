"""Tests that `detect_anomaly` and `AnomalyMonitor` name the op and the line of the first NaN."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops
from duograph.autodiff.anomaly import AnomalyWarning
from duograph.errors import AnomalyError, ArgumentError, ArgumentValueError
from duograph.runtime_state import runtime_state
from duograph.train import AnomalyMonitor

ZEROS = np.zeros(3, np.float32)
MODES = [ms.PYNATIVE_MODE, ms.GRAPH_MODE]


def norm(x: Tensor) -> Tensor:
    return ops.sqrt((x * x).sum())  # begins: gradient of sqrt


def log_of_difference(x: Tensor) -> Tensor:
    y = x - x
    return ops.log(y)  # begins: log


def quotient(x: Tensor) -> Tensor:
    return x / x.sum()  # begins: quotient


def too_large(x: Tensor) -> Tensor:
    return ops.exp(x + 1000.0)  # begins: exp


def many(x: Tensor) -> Tensor:
    for _ in range(3):
        x = ops.exp(x) * 8  # begins: loop
    return x


class Layer(nn.Cell):
    """A Cell whose second op is the log of a negative number."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 2, weight_init="zeros", bias_init="zeros")

    def construct(self, x: Tensor) -> Tensor:
        return ops.log(self.dense(x) - 1)  # begins: layer


def line_of(mark: str) -> int:
    lines = inspect.getsource(inspect.getmodule(line_of)).split("\n")  # type: ignore[arg-type]
    (found,) = [i for i, line in enumerate(lines, 1) if line.endswith(f"# begins: {mark}")]
    return found


# name: program, op, kind, in a gradient, mark of the line
PROGRAMS: dict[str, tuple[Callable[[Tensor], Any], str, str, bool, str]] = {
    "forward": (log_of_difference, "log", "Inf", False, "log"),
    "nan": (quotient, "div", "NaN", False, "quotient"),
    "overflow": (too_large, "exp", "Inf", False, "exp"),
    "loop": (many, "exp", "Inf", False, "loop"),
    "backward": (ms.grad(norm), "sqrt", "Inf", True, "gradient of sqrt"),
    "value and gradient": (ms.value_and_grad(norm), "sqrt", "Inf", True, "gradient of sqrt"),
    "second derivative": (
        ms.grad(lambda x: ms.grad(norm)(x).sum()), "sqrt", "Inf", True, "gradient of sqrt",
    ),
    "compiled": (ms.jit(log_of_difference), "log", "Inf", False, "log"),
    "compiled gradient": (ms.jit(lambda x: ms.grad(norm)(x)), "sqrt", "Inf", True,
                          "gradient of sqrt"),
    "gradient of compiled": (ms.grad(ms.jit(norm)), "sqrt", "Inf", True, "gradient of sqrt"),
}  # fmt: skip


@pytest.mark.parametrize("calls_before", [0, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_first_anomaly_is_named(name: str, calls_before: int) -> None:
    program, op, kind, backward, mark = PROGRAMS[name]
    x = Tensor(ZEROS)
    for _ in range(calls_before):  # calls that were prepared before are looked at too
        program(x)
    with pytest.raises(AnomalyError) as caught, ms.detect_anomaly():
        program(x)
    found: Any = caught.value.anomaly
    assert (found.op, found.kind, found.backward, found.began) == (op, kind, backward, True)
    # several ops of the line before may differ in name
    assert found.places[0] == (__file__, line_of(mark))
    assert f":{line_of(mark)}" in str(caught.value)
    program(x)  # and nothing is looked at afterwards
    assert runtime_state.watch is None and ms.get_context("jit") is True


@pytest.mark.parametrize("mode", MODES)
def test_cells(mode: int) -> None:
    ms.set_context(mode=mode)
    try:
        net = Layer()
        net(Tensor(ZEROS[None]))
        with pytest.raises(AnomalyError, match="result of log"), ms.detect_anomaly():
            net(Tensor(ZEROS[None]))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


INNOCENT: dict[str, Callable[[], Any]] = {
    "mask": lambda: ops.softmax(
        ops.masked_fill(Tensor(ZEROS), Tensor([True, False, False]), float("-inf"))
    ),
    "infinities that are passed on": lambda: ops.relu(Tensor([np.inf, 1.0])) + 1,
    "made on purpose": lambda: ops.full((2,), float("nan")),
    "replaced": lambda: ops.where(Tensor([np.nan, 1.0]).isnan(), Tensor(0.0), Tensor(1.0)),
    "inside of an op": lambda: ms.grad(ops.sinc)(Tensor([0.0, 1.0])),
    "integers": lambda: Tensor([1, 2]) * 3,
    "empty": lambda: ops.exp(Tensor(np.zeros((0, 2), np.float32))),
    "bfloat16": lambda: ops.exp(Tensor([1.0], ms.bfloat16)),
    "complex": lambda: Tensor([1 + 1j]) * 2,
    "dropout": lambda: nn.Dropout(p=0.5)(Tensor(ZEROS)),
    "training": lambda: train_once(),
}


def train_once() -> None:
    net = nn.Dense(3, 2)
    optimizer = nn.Adam(net.trainable_params())
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
    step(Tensor(np.ones((4, 3), np.float32)), Tensor(np.ones((4, 2), np.float32)))


@pytest.mark.parametrize("name", INNOCENT)
def test_nothing_is_found_where_nothing_begins(name: str) -> None:
    with ms.detect_anomaly() as found:
        INNOCENT[name]()
    assert found.anomalies == []


def test_a_nan_of_the_data_is_reported_where_it_is_read() -> None:
    with pytest.raises(AnomalyError, match="in a value that it read"), ms.detect_anomaly():
        ops.relu(Tensor([1.0, np.nan]))


def test_infinities_can_be_allowed() -> None:
    with ms.detect_anomaly(check_inf=False) as found:
        log_of_difference(Tensor(ZEROS))
    assert found.anomalies == []


def test_warnings_name_each_line_once() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with ms.detect_anomaly(on_found="warn") as found:
            for _ in range(3):
                quotient(Tensor(ZEROS))
    assert [w.category for w in told] == [AnomalyWarning] and len(found.anomalies) == 3


def test_decorator_and_nesting() -> None:
    @ms.detect_anomaly()
    def run() -> Tensor:
        with ms.detect_anomaly(check_inf=False):
            log_of_difference(Tensor(ZEROS))
        return log_of_difference(Tensor(ZEROS))

    for _ in range(2):
        with pytest.raises(AnomalyError):
            run()
    assert runtime_state.watch is None


@pytest.mark.parametrize("level", ["O0", "O1"])
def test_results_are_those_without_it(level: str) -> None:
    def value_and_gradient() -> tuple[Any, ...]:
        ms.set_seed(1)
        net = nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 1))
        x = Tensor(np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3))
        step = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
        loss, gradients = step(x)
        return (loss.asnumpy(), *[g.asnumpy() for g in gradients])

    ms.set_context(jit_level=level)
    plain = value_and_gradient()
    with ms.detect_anomaly():
        watched = value_and_gradient()
    ms.set_context(jit_level="")
    for a, b in zip(plain, watched, strict=True):
        np.testing.assert_array_equal(a, b)


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "kind": ({"check_nan": 1}, ArgumentError, "wanted a bool"),
    "nothing": ({"check_nan": False, "check_inf": False}, ArgumentValueError, "wanted one"),
    "action": ({"on_found": "stop"}, ArgumentValueError, "'raise' or 'warn'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    options, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        ms.detect_anomaly(**options)


class Diverging(nn.Cell):
    """The logarithm of a weight that training makes negative."""

    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(Tensor([1.0]), name="w")
        self.drop = nn.Dropout(p=0.1)

    def construct(self, x: Tensor) -> Tensor:
        return (ops.log(self.w) * self.drop(x)).mean()  # begins: diverging


@pytest.mark.parametrize("mode", MODES)
def test_monitor_explains_the_loss(mode: int) -> None:
    ms.set_context(mode=mode)
    try:
        net = Diverging()
        model = ms.Model(net, None, nn.SGD(net.trainable_params(), 0.3))
        data = [(Tensor(np.ones((2, 2), np.float32)),) for _ in range(50)]
        with pytest.raises(AnomalyError) as caught:
            model.train(1, data, callbacks=[AnomalyMonitor()])
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    found: Any = caught.value.anomaly
    assert (found.op, found.kind) == ("log", "NaN") and "the loss is nan" in str(caught.value)
    assert found.places[0][1] == line_of("diverging")


def test_monitor_leaves_training_as_it_is() -> None:
    def losses(callbacks: list[Any]) -> list[float]:
        ms.set_seed(3)
        net = nn.SequentialCell(nn.Dense(3, 4), nn.Dropout(p=0.5), nn.Dense(4, 1))
        found: list[float] = []
        keep = ms.train.LambdaCallback(
            on_train_step_end=lambda c: found.append(float(c.original_args().net_outputs))
        )
        model = ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params()))
        x, y = Tensor(np.ones((4, 3), np.float32)), Tensor(np.ones((4, 1), np.float32))
        model.train(1, [(x, y)] * 5, callbacks=[*callbacks, keep])
        return found

    assert losses([AnomalyMonitor()]) == losses([])
