"""Callback, the context it gets, and the list that calls several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import ArgumentError

__all__ = ["Callback", "RunContext", "RunParameters", "CallbackList"]


class RunParameters(dict[str, Any]):
    """What a run knows, as attributes and as a dictionary: see `RunContext.original_args`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"cb_params: has no {name!r}; it has {', '.join(self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """What a callback gets (`mindspore.train.RunContext`).

    `original_args()` has, in training: train_network, network, loss_fn, optimizer, epoch_num,
    batch_num, cur_epoch_num, cur_step_num, net_outputs (the last loss), train_dataset,
    train_dataset_element, parallel_mode, mode, list_callback; in evaluation: eval_network,
    valid_dataset, metrics, eval_results.

    Examples:
        >>> from duograph.train import RunContext
        >>> context = RunContext({"epoch_num": 3})
        >>> context.original_args().epoch_num
        3
        >>> context.request_stop(); context.get_stop_requested()
        True
    """

    def __init__(self, original_args: Any) -> None:
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
        """What the run knows."""
        return self._original_args

    def request_stop(self) -> None:
        """Ask for the end of the run, after this step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether a callback asked for the end."""
        return self._stop_requested


class Callback:
    """Base class (`mindspore.train.Callback`); override what is needed.

    `on_train_*` and `on_eval_*` are called where they are overridden; otherwise the older `begin`,
    `epoch_begin`, `step_begin`, `step_end`, `epoch_end` and `end`, in training and in evaluation
    alike.

    Examples:
        >>> from duograph.train import Callback
        >>> class Stop(Callback):
        ...     def on_train_step_end(self, run_context):
        ...         if run_context.original_args().cur_step_num == 10:
        ...             run_context.request_stop()
    """

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def begin(self, run_context: RunContext) -> None:
        """Before the run."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Before an epoch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """After an epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Before a step."""

    def step_end(self, run_context: RunContext) -> None:
        """After a step."""

    def end(self, run_context: RunContext) -> None:
        """After the run."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Before training."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Before an epoch of training."""
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """After an epoch of training."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Before a step of training."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """After a step of training."""
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """After training."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Before evaluation."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Before the epoch of evaluation."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """After the epoch of evaluation."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Before a step of evaluation."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """After a step of evaluation."""
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """After evaluation."""
        self.end(run_context)


class CallbackList(Callback):
    """Several callbacks as one: each point calls them in order."""

    def __init__(self, callbacks: Any) -> None:
        if callbacks is None:
            found: list[Callback] = []
        elif isinstance(callbacks, Callback):
            found = [callbacks]
        elif isinstance(callbacks, Iterable):
            found = list(callbacks)
        else:
            raise ArgumentError(
                f"callbacks: got {type(callbacks).__name__}; wanted a Callback or a list of them"
            )
        for cb in found:
            if not isinstance(cb, Callback):
                raise ArgumentError(f"callbacks: got {type(cb).__name__}; wanted Callbacks")
        self.callbacks = found

    def __iter__(self) -> Any:
        return iter(self.callbacks)

    def for_eval(self) -> CallbackList:
        """Those that an evaluation inside `fit` calls: they override an `on_eval_` method."""
        return CallbackList([
            cb for cb in self.callbacks
            if any(
                getattr(type(cb), name, None) is not getattr(Callback, name)
                for name in dir(Callback) if name.startswith("on_eval_")
            )
        ])  # fmt: skip

    def call(self, point: str, run_context: RunContext) -> None:
        """Call one point of all."""
        for cb in self.callbacks:
            getattr(cb, point)(run_context)
