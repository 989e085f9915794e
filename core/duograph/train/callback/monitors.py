"""Callbacks that print, stop training early, change the learning rate or record a history.

Users pass them to `Model.train` and `fit`.
"""

# ruff: noqa: T201  (these callbacks print for the user)

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ...errors import ArgumentError, ArgumentValueError, LossNotFinite
from ...nn import _check
from ...nn.optim.optimizer import Optimizer
from ...parameter import Parameter
from ...tensor import Tensor
from ...tracebacks import called_at
from ._callback import Callback, RunContext, RunParameters

__all__ = [
    "LossMonitor", "TimeMonitor", "EarlyStopping", "ReduceLROnPlateau", "LearningRateScheduler",
    "History", "LambdaCallback",
]  # fmt: skip


Handler: TypeAlias = "Callable[[RunContext], None] | None"


def loss_of(cb_params: RunParameters) -> Any:
    """Return the loss of the last training step, averaged to a number; None if there is none."""
    found = cb_params.get("net_outputs")
    if isinstance(found, (tuple, list)) and found:
        found = found[0]
    if isinstance(found, Tensor):
        array = found.asnumpy()
        return float(np.mean(array)) if array.size else None
    return found


class LossMonitor(Callback):
    """Prints lines such as ``epoch: 1 step: 100, loss is 0.5`` (`mindspore.train.LossMonitor`).

    Args:
        per_print_times: number of steps between two lines; 0 prints only the metrics of
            evaluations.

    Raises:
        ValueError: `per_print_times` is below 0 or, at run time, the loss is NaN or infinite.

    Examples:
        >>> from duograph.train import LossMonitor
        >>> monitor = LossMonitor(100)
    """

    def __init__(self, per_print_times: int = 1) -> None:
        self._per_print_times = _check.non_negative_int(
            "LossMonitor", "per_print_times", per_print_times
        )
        self._last_print_time = 0

    def step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        loss = loss_of(p)
        step = (p.cur_step_num - 1) % p.batch_num + 1
        if isinstance(loss, float) and not np.isfinite(loss):
            raise LossNotFinite(
                f"epoch: {p.cur_epoch_num} step: {step}: the loss is {loss}; wanted a finite one"
            )
        if p.cur_step_num <= self._last_print_time:
            self._last_print_time = p.cur_step_num
        if (
            self._per_print_times
            and (p.cur_step_num - self._last_print_time) >= self._per_print_times
        ):
            self._last_print_time = p.cur_step_num
            print(f"epoch: {p.cur_epoch_num} step: {step}, loss is {loss}", flush=True)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        metrics = p.get("eval_results") or {}
        if metrics:
            print(f"Eval result: epoch {p.cur_epoch_num}, metrics: {metrics}", flush=True)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Do nothing: an evaluation prints no loss."""


class TimeMonitor(Callback):
    """Prints the time of epochs and steps (`mindspore.train.TimeMonitor`).

    Args:
        data_size: number of steps in an epoch; by default the number of batches of the run.
        data_time: also print the mean time that a step waited for its data.

    Raises:
        TypeError: `data_size` is not an int, or `data_time` not a bool.

    Examples:
        >>> import duograph as ms
        >>> callback = ms.train.TimeMonitor()
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        if data_size is not None:
            _check.positive_int("TimeMonitor", "data_size", data_size)
        self.data_size = data_size
        self.data_time = _check.boolean("TimeMonitor", "data_time", data_time)
        self.epoch_time = time.time()
        self._asked = self.epoch_time  # when the loop began to ask for the next batch
        self._waited = 0.0

    def epoch_begin(self, run_context: RunContext) -> None:
        del run_context
        self.epoch_time = self._asked = time.time()
        self._waited = 0.0

    def step_begin(self, run_context: RunContext) -> None:
        del run_context
        self._waited += time.time() - self._asked

    def step_end(self, run_context: RunContext) -> None:
        del run_context
        self._asked = time.time()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        self._print("Train", run_context.original_args())

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        self._print("Eval", run_context.original_args())

    def _print(self, label: str, p: RunParameters) -> None:
        spent = (time.time() - self.epoch_time) * 1000
        steps = self.data_size or p.get("batch_num") or 1
        text = f"{label} epoch time: {spent:5.3f} ms, per step time: {spent / steps:5.3f} ms"
        if self.data_time:
            text += f", per step data time: {self._waited * 1000 / steps:5.3f} ms"
        print(text, flush=True)


class _Watcher(Callback):
    """Base class of callbacks that compare a loss or metric with its best value so far."""

    def __init__(self, monitor: str, mode: str, min_delta: float, patience: int) -> None:
        owner = type(self).__name__
        if not isinstance(monitor, str):
            raise ArgumentError(f"{owner}: got monitor={monitor!r}; wanted a name")
        _check.one_of(owner, "mode", mode, ("auto", "min", "max"))
        self.monitor = monitor
        self._made_at = called_at()
        self.min_delta = abs(_check.real(owner, "min_delta", min_delta))
        self.patience = _check.non_negative_int(owner, "patience", patience)
        rising = ("acc", "accuracy", "top", "f1", "recall", "precision", "dice", "auc")
        up = mode == "max" or (mode == "auto" and any(r in monitor.lower() for r in rising))
        self._sign = 1.0 if up else -1.0
        self.best = -np.inf * self._sign

    def _better(self, value: float, than: float) -> bool:
        """Return whether `value` improves on `than` by more than `min_delta`.

        Whether an improvement is a higher or a lower value depends on `mode`.
        """
        return self._sign * (value - than) > self.min_delta

    def _value(self, run_context: RunContext) -> float | None:
        """Return the monitored loss of the last step or metric of the last evaluation.

        The result is None if there is no such loss or no evaluation has run.

        Raises:
            ArgumentValueError: the evaluation has no metric of the monitored name.
        """
        p = run_context.original_args()
        if self.monitor == "loss":
            return loss_of(p)
        results = p.get("eval_results") or {}
        name = self.monitor[5:] if self.monitor.startswith("eval_") else self.monitor
        for key in (self.monitor, name):
            if key in results:
                return float(np.mean(results[key]))
        if results:
            known = ["loss", *results]
            where = f" (made at {self._made_at})" if self._made_at else ""
            raise ArgumentValueError(
                f"{type(self).__name__}: got monitor={self.monitor!r}{where}; "
                f"wanted {' or '.join(map(repr, known))}: the loss, or a metric of the Model"
            )
        return None


class EarlyStopping(_Watcher):
    """Stops training when a loss or metric stops improving (`mindspore.train.EarlyStopping`).

    Args:
        monitor: ``"loss"``, ``"eval_loss"`` or the name of a metric.
        min_delta: a change counts as an improvement if it is larger than this.
        patience: number of epochs in a row without improvement after which training stops.
        verbose: print when training stops.
        mode: whether lower (``"min"``) or higher (``"max"``) values are better; ``"auto"`` decides
            by the name.
        baseline: value that the first epoch must improve on.
        restore_best_weights: restore the weights of the best epoch when training ends.

    Raises:
        ValueError: `mode` is unknown, `patience` is below 0 or, at run time, there is no metric of
            the name `monitor`.

    Examples:
        >>> import duograph as ms
        >>> callback = ms.train.EarlyStopping("eval_loss", patience=3)
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, mode, min_delta, patience)
        self.verbose, self.baseline = verbose, baseline
        self.restore_best_weights = restore_best_weights
        self.stopped_epoch = 0
        self.wait = 0
        self._best_weights: dict[str, Tensor] | None = None

    def on_train_begin(self, run_context: RunContext) -> None:
        del run_context
        self.wait, self.stopped_epoch, self._best_weights = 0, 0, None
        self.best = -np.inf * self._sign if self.baseline is None else self.baseline

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        value = self._value(run_context)
        if value is None:
            return
        p = run_context.original_args()
        network = p.train_network
        if self.restore_best_weights and self._best_weights is None:
            self._best_weights = {q.name: q.clone() for q in network.get_parameters()}
        if self._better(value, self.best):
            self.best, self.wait = value, 0
            if self.restore_best_weights:
                self._best_weights = {q.name: q.clone() for q in network.get_parameters()}
            return
        self.wait += 1
        if self.wait >= max(self.patience, 1):
            self.stopped_epoch = p.cur_epoch_num
            run_context.request_stop()
            if self._best_weights is not None:
                for q in network.get_parameters():
                    q.set_data(self._best_weights[q.name])
            if self.verbose:
                print(f"Epoch {self.stopped_epoch}: early stopping", flush=True)


class ReduceLROnPlateau(_Watcher):
    """Lowers the learning rate when a loss or metric stops improving
    (`mindspore.train.ReduceLROnPlateau`).

    Args:
        monitor, min_delta, patience, verbose, mode: as for `EarlyStopping`.
        factor: number by which the learning rate is multiplied, 0 or more and below 1.
        cooldown: number of epochs after a change in which the rate is not lowered again.
        min_lr: lower bound of the learning rate.

    Raises:
        ValueError: `factor` is 1 or more, `mode` is unknown, or the optimiser has a learning rate
            schedule.

    Examples:
        >>> import duograph as ms
        >>> callback = ms.train.ReduceLROnPlateau("eval_loss", patience=3)
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta, patience)
        self.factor = _check.in_range("ReduceLROnPlateau", "factor", factor, 0, 1, open_high=True)
        self.cooldown = _check.non_negative_int("ReduceLROnPlateau", "cooldown", cooldown)
        self.min_lr = _check.in_range("ReduceLROnPlateau", "min_lr", min_lr, 0)
        self.verbose = verbose
        self.wait = self.cooldown_counter = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        del run_context
        self.wait = self.cooldown_counter = 0
        self.best = -np.inf * self._sign

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        value = self._value(run_context)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._better(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter == 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._lower(run_context.original_args())
                self.cooldown_counter, self.wait = self.cooldown, 0

    def _lower(self, p: RunParameters) -> None:
        """Multiply the optimiser's learning rates by `factor`, but not to less than `min_lr`."""
        for rate in _rates("ReduceLROnPlateau", p.optimizer):
            old = float(rate.asnumpy())
            new = max(old * self.factor, self.min_lr)
            if new < old:
                rate.set_data(Tensor(new, rate.dtype))
                if self.verbose:
                    print(f"Epoch {p.cur_epoch_num}: the learning rate is now {new}", flush=True)


def _rates(owner: str, optimizer: Optimizer) -> list[Parameter]:
    """Return the distinct learning rate Parameters of an optimiser.

    Raises ArgumentValueError if a rate is a schedule; `owner` names the caller in the message.
    """
    rate = optimizer.learning_rate
    found: list[Parameter] = []
    for r in rate if isinstance(rate, tuple) else (rate,):
        if not isinstance(r, Parameter):
            raise ArgumentValueError(
                f"{owner}: got an optimiser whose rate changes with every step "
                f"({type(r).__name__}); wanted a constant rate"
            )
        if all(r is not f for f in found):
            found.append(r)
    return found


class LearningRateScheduler(Callback):
    """Sets the learning rate after every step (`mindspore.train.LearningRateScheduler`).

    Args:
        learning_rate_function: function of (current rate, number of the step from 1) that returns
            the rate of the next step.

    Raises:
        TypeError: the argument is not a function.

    Examples:
        >>> from duograph.train import LearningRateScheduler
        >>> decay = lambda rate, step: rate * 0.1 if step % 100 == 0 else rate
        >>> callback = LearningRateScheduler(decay)
    """

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        if not callable(learning_rate_function):
            raise ArgumentError("LearningRateScheduler: wanted a function of (rate, step)")
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        for rate in _rates("LearningRateScheduler", p.optimizer):
            new = self.learning_rate_function(float(rate.asnumpy()), p.cur_step_num)
            rate.set_data(Tensor(float(new), rate.dtype))


class History(Callback):
    """Records the loss and the metrics of every epoch in `history` and `epoch`
    (`mindspore.train.History`).

    Examples:
        >>> import duograph as ms
        >>> ms.train.History().history
        {}
    """

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] = {}

    def begin(self, run_context: RunContext) -> None:
        del run_context
        self.epoch = {"epoch": []}
        self.history = {}

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Do nothing: an evaluation during training continues the history."""

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        self.epoch.setdefault("epoch", []).append(p.get("cur_epoch_num", 1))
        outputs = p.get("net_outputs")
        if outputs is not None:
            first = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
            value = first.asnumpy() if isinstance(first, Tensor) else first
            self.history.setdefault("net_output", []).append(
                value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
            )
        for name, metric in (p.get("eval_results") or {}).items():
            self.history.setdefault(name, []).append(metric)


class LambdaCallback(Callback):
    """A callback composed of functions (`mindspore.train.LambdaCallback`).

    Raises:
        TypeError: an argument is not a function.

    Examples:
        >>> from duograph.train import LambdaCallback
        >>> callback = LambdaCallback(on_train_epoch_end=lambda run_context: print("an epoch"))
    """

    def __init__(
        self,
        on_train_epoch_begin: Handler = None,
        on_train_epoch_end: Handler = None,
        on_train_step_begin: Handler = None,
        on_train_step_end: Handler = None,
        on_train_begin: Handler = None,
        on_train_end: Handler = None,
        on_eval_epoch_begin: Handler = None,
        on_eval_epoch_end: Handler = None,
        on_eval_step_begin: Handler = None,
        on_eval_step_end: Handler = None,
        on_eval_begin: Handler = None,
        on_eval_end: Handler = None,
    ) -> None:
        functions = {k: v for k, v in locals().items() if k.startswith("on_") and v is not None}
        for name, function in functions.items():
            if not callable(function):
                raise ArgumentError(
                    f"LambdaCallback: got {function!r} for {name}; wanted a function"
                )
            setattr(self, name, function)
