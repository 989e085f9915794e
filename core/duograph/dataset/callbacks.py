"""Callbacks of datasets, which `map` calls before and after its epochs and rows.

User code derives from `DSCallback`; only `steps.MapDataset` runs callbacks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeVar, cast

from ..errors import ArgumentError, ArgumentValueError

__all__ = ["CallbackRunner", "DSCallback"]

T = TypeVar("T")


@dataclasses.dataclass
class DSRunContext:
    """State that the callbacks of datasets receive: numbers of the epoch and step, from 1."""

    cur_epoch_num: int = 0
    cur_step_num_in_epoch: int = 0
    cur_step_num: int = 0


class DSCallback:
    """Base class of callbacks for `Dataset.map` (`mindspore.dataset.DSCallback`).

    A step is a row. Subclasses override the methods that they need. The argument of each method has
    the attributes `cur_epoch_num`, `cur_step_num_in_epoch` and `cur_step_num`.

    Args:
        step_size: number of steps between two calls of the step methods.

    Raises:
        ValueError: `step_size` is below 1.

    Examples:
        >>> from duograph import dataset
        >>> class Counts(dataset.DSCallback):
        ...     def ds_epoch_end(self, ds_run_context):
        ...         print(ds_run_context.cur_step_num, "rows")
        >>> data = dataset.NumpySlicesDataset([1, 2, 3], ["x"], shuffle=False)
        >>> for _ in data.map(abs, "x", callbacks=Counts()):
        ...     pass
        3 rows
    """

    def __init__(self, step_size: int = 1) -> None:
        if isinstance(step_size, bool) or not isinstance(step_size, int) or step_size < 1:
            raise ArgumentValueError(f"DSCallback: got step_size={step_size!r}; wanted 1 or more")
        self.step_size = step_size

    def ds_begin(self, ds_run_context: DSRunContext) -> None:
        """Callback hook that `map` runs before the first epoch; does nothing by default."""

    def ds_epoch_begin(self, ds_run_context: DSRunContext) -> None:
        """Callback hook that `map` runs before each epoch; does nothing by default."""

    def ds_epoch_end(self, ds_run_context: DSRunContext) -> None:
        """Callback hook that `map` runs after each epoch; does nothing by default."""

    def ds_step_begin(self, ds_run_context: DSRunContext) -> None:
        """Callback hook that `map` runs before rows; does nothing by default.

        It runs before each row, or before rows 1, n + 1, 2 n + 1, ... if `step_size` is n.
        """

    def ds_step_end(self, ds_run_context: DSRunContext) -> None:
        """Callback hook that `map` runs after rows; does nothing by default.

        It runs after each row, or after rows 1, n + 1, 2 n + 1, ... if `step_size` is n.
        """


class CallbackRunner:
    """Calls the user's callbacks before and after the rows of one `map`."""

    def __init__(self, callbacks: object) -> None:
        several = [] if callbacks is None else callbacks
        several = list(several) if isinstance(several, (list, tuple)) else [several]
        for c in several:
            if not isinstance(c, DSCallback):
                raise ArgumentError(f"map: got {type(c).__name__} in callbacks; wanted DSCallback")
        self._callbacks: list[DSCallback] = cast("list[DSCallback]", several)
        self._epoch = 0  # from 1; 0: no iterator reads the rows
        self.muted = False  # in a pass that no iterator makes
        self._begun = [0, 0]  # steps of the epoch, and of all epochs
        self._ended = [0, 0]

    def begin_epoch(self, number: int) -> None:
        """Call ``ds_epoch_begin`` for epoch `number`, from 0, and ``ds_begin`` before the first."""
        if not number:
            self._begun, self._ended = [0, 0], [0, 0]
            self._call("ds_begin", 0, [0, 0])
        self._epoch = number + 1
        self._begun[0] = self._ended[0] = 0
        self._call("ds_epoch_begin", self._epoch, self._begun)

    def end_epoch(self) -> None:
        """Call ``ds_epoch_end``."""
        self._call("ds_epoch_end", self._epoch, self._ended)
        self._epoch = 0

    def _call(self, method: str, epoch: int, steps: list[int]) -> None:
        """Call `method` of every callback; step methods are called once per `step_size` steps.

        `epoch` and `steps`, those of the epoch and of all epochs, become the callback's argument.
        """
        context = DSRunContext(epoch, *steps)
        for c in self._callbacks:
            if "step" not in method or (steps[0] - 1) % c.step_size == 0:
                getattr(c, method)(context)

    def before_steps(self, rows: Iterator[T]) -> Iterator[T]:
        """Yield the rows that `map` is given, and call ``ds_step_begin`` before each.

        If the callback's `step_size` is n, it is called before rows 1, n + 1, 2 n + 1, ... of the
        epoch. Nothing is called in a pass that no iterator makes, such as one that counts the rows.
        """
        return self._counted("ds_step_begin", self._begun, rows) if self._heard() else rows

    def after_steps(self, results: Iterator[T]) -> Iterator[T]:
        """Yield the rows that `map` computed, and call ``ds_step_end`` after each.

        Which rows these are, `before_steps` says.
        """
        return self._counted("ds_step_end", self._ended, results) if self._heard() else results

    def _heard(self) -> bool:
        return self._epoch > 0 and not self.muted

    def _counted(self, method: str, steps: list[int], rows: Iterator[T]) -> Iterator[T]:
        for row in rows:
            steps[0] += 1
            steps[1] += 1
            self._call(method, self._epoch, steps)
            yield row
