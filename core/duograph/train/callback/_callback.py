"""`Callback`, the base class of callbacks, and `RunContext`, the argument of every hook.

`Model` creates a CallbackList, which calls several callbacks in order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from ...advice import kind_of
from ...call_errors import explain_methods, explaining
from ...errors import ArgumentError

__all__ = ["Callback", "RunContext", "RunParameters", "CallbackList"]


class RunParameters(dict[str, Any]):
    """State of a training or evaluation run: a dictionary whose keys are also attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"cb_params: has no {name!r}; it has {', '.join(self)}") from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value


class RunContext:
    """The context passed to callbacks (`mindspore.train.RunContext`).

    `original_args()` has these attributes in training: train_network, network, loss_fn, optimizer,
    epoch_num, batch_num, cur_epoch_num, cur_step_num, net_outputs (the last loss), train_dataset,
    train_dataset_element, parallel_mode, mode, list_callback; and these in evaluation:
    eval_network, valid_dataset, metrics, eval_results.

    Examples:
        >>> from duograph.train import RunContext
        >>> context = RunContext({"epoch_num": 3})
        >>> context.original_args().epoch_num
        3
        >>> context.request_stop(); context.get_stop_requested()
        True
    """

    def __init__(self, original_args: dict[str, Any]) -> None:
        if not isinstance(original_args, dict):
            raise ArgumentError(
                f"RunContext: got {type(original_args).__name__}; wanted a dictionary"
            )
        self._original_args = (
            original_args
            if isinstance(original_args, RunParameters)
            else RunParameters(original_args)
        )
        self._stop_requested = False

    def original_args(self) -> RunParameters:
        """Return the state of the training or evaluation run, such as epoch and step numbers."""
        return self._original_args

    def request_stop(self) -> None:
        """Request that the training or evaluation run ends after this step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Return whether a callback requested the end of the training or evaluation run."""
        return self._stop_requested


class Callback:
    """Base class of callbacks (`mindspore.train.Callback`).

    A subclass overrides methods named `on_train_*` and `on_eval_*`. By default these methods call
    `begin`, `epoch_begin`, `step_begin`, `step_end`, `epoch_end` and `end`, MindSpore's older
    hooks, which thus run in training and in evaluation. A run enters its callbacks as context
    managers: override `__exit__` to release what must not outlive a run, even one that fails.

    Examples:
        >>> from duograph.train import Callback
        >>> class Stop(Callback):
        ...     def on_train_step_end(self, run_context):
        ...         if run_context.original_args().cur_step_num == 10:
        ...             run_context.request_stop()
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__")

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def begin(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs before training or evaluation.

        Does nothing by default.
        """

    def epoch_begin(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs before an epoch; does nothing by default."""

    def epoch_end(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs after an epoch; does nothing by default."""

    def step_begin(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs before a step; does nothing by default."""

    def step_end(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs after a step; does nothing by default."""

    def end(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs after training or evaluation; does nothing by default."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs before training; calls `begin` by default."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs before a training epoch.

        Calls `epoch_begin` by default.
        """
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs after a training epoch; calls `epoch_end` by default."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs before a training step; calls `step_begin` by default."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs after a training step; calls `step_end` by default."""
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs after training; calls `end` by default."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs before evaluation; calls `begin` by default."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Hook that `Model` calls before an epoch of evaluation; calls `epoch_begin` by default."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Hook that `Model` calls after an epoch of evaluation; calls `epoch_end` by default."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs before an evaluation step.

        Calls `step_begin` by default.
        """
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs after an evaluation step; calls `step_end` by default."""
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Callback hook that `Model` runs after evaluation; calls `end` by default."""
        self.end(run_context)


@explaining
class CallbackList(Callback):
    """A callback that forwards each training and evaluation hook to several callbacks in order."""

    def __init__(self, callbacks: Callback | Iterable[Callback] | None) -> None:
        if callbacks is None:
            found: list[Callback] = []
        elif isinstance(callbacks, Callback):
            found = [callbacks]
        elif isinstance(callbacks, Iterable):
            found = list(callbacks)
        else:
            raise ArgumentError(
                f"callbacks: got {kind_of(callbacks)}; wanted a Callback or a list of them"
            )
        for cb in found:
            if not isinstance(cb, Callback):
                raise ArgumentError(
                    f"callbacks: got {kind_of(cb)}; wanted Callbacks, such as "
                    "ms.train.LossMonitor(), or objects of a class derived from ms.train.Callback"
                )
        self.callbacks = found

    def __iter__(self) -> Iterator[Callback]:
        return iter(self.callbacks)

    def for_eval(self) -> CallbackList:
        """Return a CallbackList of the callbacks that override an `on_eval_*` method.

        `Model.fit` calls these in its evaluations.
        """
        return CallbackList([
            cb for cb in self.callbacks
            if any(
                getattr(type(cb), name, None) is not getattr(Callback, name)
                for name in dir(Callback) if name.startswith("on_eval_")
            )
        ])  # fmt: skip

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Enter all callbacks, as context managers, for a run; exit them at its end or error."""
        with contextlib.ExitStack() as stack:
            for cb in self.callbacks:
                stack.enter_context(cb)
            yield

    def call(self, method: str, run_context: RunContext) -> None:
        """Call the method named `method` of every callback in the list."""
        for cb in self.callbacks:
            getattr(cb, method)(run_context)
