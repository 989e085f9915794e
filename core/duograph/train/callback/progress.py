"""ProgressMonitor, which shows the progress of training, and MetricsPlot, which plots its metrics.

`Model` adds a ProgressMonitor to runs whose callbacks print nothing themselves; users pass one to
choose where it writes. ProgressMonitor must not read the loss more often than it shows it, because
reading waits for the device.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TextIO

import numpy as np

from ...errors import ArgumentError, ArgumentValueError
from ...nn import _check
from ...status_line import duration_text, is_terminal
from ...tensor import Tensor
from ._callback import Callback, RunContext, RunParameters
from .monitors import History, LossMonitor, TimeMonitor, loss_of

__all__ = ["MetricsPlot", "ProgressMonitor", "with_progress"]

# Seconds between two drawings of the line that changes.
_REFRESH = 0.2
# Callbacks that print of their own.
_PRINTING = (LossMonitor, TimeMonitor)


class ProgressMonitor(Callback):
    """Shows steps, loss, metrics, speed and the estimated remaining time of a run.

    `Model.train`, `fit` and `eval` add one if none of their callbacks is a ProgressMonitor,
    LossMonitor or TimeMonitor. By default it writes nothing in the first second of a run, and
    writes to standard error, so that it does not mix with the output of a script. On a terminal it
    draws a table with a row per epoch and a last row that changes; elsewhere it writes one line per
    epoch.

    Args:
        enabled: False shows nothing, and keeps `Model` from adding one.
        stream: file to write to; standard error by default.
        delay: seconds before the first output.

    Raises:
        TypeError: `enabled` is no bool, or `stream` is no file.
        ValueError: `delay` is below 0.

    Examples:
        >>> from duograph.train import ProgressMonitor
        >>> silent = ProgressMonitor(enabled=False)
    """

    def __init__(
        self, enabled: bool = True, stream: TextIO | None = None, delay: float = 1.0
    ) -> None:
        self.enabled = _check.boolean("ProgressMonitor", "enabled", enabled)
        if stream is not None and not hasattr(stream, "write"):
            raise ArgumentError(f"ProgressMonitor: got {stream!r} for stream; wanted a file")
        self.delay = _check.in_range("ProgressMonitor", "delay", delay, 0)
        self._given = stream
        self._stream: TextIO = sys.stderr
        self._live = False
        self._width = 80
        self._training = False
        self._began = self._epoch_began = self._drawn = 0.0
        self._first = 0  # steps that were done before this run
        self._columns: list[str] = []
        self._shown = ""  # the row that changes
        self._eval_began = 0.0

    # ---- training -------------------------------------------------------------------------------

    def on_train_begin(self, run_context: RunContext) -> None:
        self._training = True
        self._start(run_context.original_args().cur_step_num)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        del run_context
        self._epoch_began = time.perf_counter()

    def on_train_step_end(self, run_context: RunContext) -> None:
        now = time.perf_counter()
        if self._live and now - self._drawn >= _REFRESH and now - self._began >= self.delay:
            self._drawn = now
            p = run_context.original_args()
            self._redraw(self._row(p, loss_of(p), now))

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        if not self.enabled:
            return
        now = time.perf_counter()
        p = run_context.original_args()
        if now - self._began < self.delay:
            return
        loss = loss_of(p)
        if self._live:
            self._keep(self._row(p, loss, now))
        else:
            self._write(self._sentence(p, loss, now) + "\n")

    def on_train_end(self, run_context: RunContext) -> None:
        del run_context
        self._training = False
        self._redraw("")

    # ---- evaluation -----------------------------------------------------------------------------

    def on_eval_begin(self, run_context: RunContext) -> None:
        if not self._training:
            self._start(0)
        self._eval_began = time.perf_counter()

    def on_eval_step_end(self, run_context: RunContext) -> None:
        now = time.perf_counter()
        if self._live and now - self._drawn >= _REFRESH and now - self._began >= self.delay:
            self._drawn = now
            p = run_context.original_args()
            rate = p.cur_step_num / max(now - self._eval_began, 1e-9)
            left = (p.batch_num - p.cur_step_num) / rate
            self._redraw(
                f"evaluation {_of(p.cur_step_num, p.batch_num)}  {_number(rate)} steps/s  "
                f"{duration_text(left)} left"
            )

    def on_eval_end(self, run_context: RunContext) -> None:
        self._redraw("")

    # ---- text -----------------------------------------------------------------------------------

    def _start(self, first: int) -> None:
        self._stream = self._given or sys.stderr
        self._live = self.enabled and is_terminal(self._stream)
        self._width = shutil.get_terminal_size().columns
        self._began = self._epoch_began = time.perf_counter()
        self._drawn, self._first, self._columns, self._shown = 0.0, first, [], ""

    def _facts(self, p: RunParameters, loss: object, now: float) -> dict[str, str]:
        """Return the columns of the table's row for the present step: name -> text.

        `p` is the state of the run, `loss` the last loss, and `now` the time in seconds.
        """
        done = p.cur_step_num - (p.cur_epoch_num - 1) * p.batch_num
        known = p.batch_num > 1 or done <= 1  # a dataset of unknown size counts as one batch
        spent = now - self._epoch_began
        facts = {
            "epoch": f"{p.cur_epoch_num}/{p.epoch_num}",
            "step": _of(done, p.batch_num) if known else f"{done}",
            "loss": _number(loss) if isinstance(loss, float) else "-",
        }
        results = p.get("eval_results") or {}
        for name in {**(p.get("metrics") or {}), **results}:
            text = _metric(results[name]) if name in results else ""
            facts[name if name != "loss" else "eval loss"] = text
        steps = p.cur_step_num - self._first
        facts["steps/s"] = _number(steps / max(now - self._began, 1e-9))
        facts["time"] = duration_text(spent)
        total = p.epoch_num * p.batch_num - self._first
        if known and steps:
            facts["left"] = duration_text((now - self._began) / steps * max(total - steps, 0))
        return facts

    def _row(self, p: RunParameters, loss: object, now: float) -> str:
        """Return the table's row for the present step as text.

        If a value has no column yet, first write a new table header. `p` is the state of the run,
        `loss` the last loss, and `now` the time in seconds.
        """
        facts = self._facts(p, loss, now)
        widths = {k: max(len(k), _WIDTHS.get(k, 8), len(v)) for k, v in facts.items()}
        if any(k not in self._columns for k in facts):
            self._redraw("")
            self._columns = list(facts)
            self._write("  ".join(k.rjust(w) for k, w in widths.items()) + "\n")
        names = self._columns
        return "  ".join(
            facts.get(k, "").rjust(widths.get(k, max(len(k), _WIDTHS.get(k, 8)))) for k in names
        )

    def _sentence(self, p: RunParameters, loss: object, now: float) -> str:
        facts = self._facts(p, loss, now)
        parts = [f"epoch {facts.pop('epoch')}", f"step {facts.pop('step')}"]
        rate, spent = facts.pop("steps/s"), facts.pop("time")
        left = facts.pop("left", None)
        parts += [f"{k} {v}" for k, v in facts.items() if v]
        parts += [f"{rate} steps/s", spent] + ([f"{left} left"] if left else [])
        return ", ".join(parts)

    def _redraw(self, row: str) -> None:
        """Replace the last line on the terminal, the row of the running epoch, with `row`.

        An empty `row` erases the line.
        """
        if row or self._shown:
            row = row[: self._width - 1]
            self._write("\r" + row + " " * max(len(self._shown) - len(row), 0) + "\r" * (not row))
            self._shown = row

    def _keep(self, row: str) -> None:
        """Write a finished row and start a new line, so that later rows do not overwrite it."""
        self._redraw(row)
        self._write("\n")
        self._shown = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


_WIDTHS: Mapping[str, int] = {"epoch": 7, "step": 11, "loss": 9, "steps/s": 9, "time": 7, "left": 7}


def _of(done: int, total: int) -> str:
    return f"{done}/{total}" if total > 1 else f"{done}"


def _number(value: float) -> str:
    """Return a number as text with four significant digits."""
    return f"{value:.4g}"


def _metric(value: object) -> str:
    """Return the value of a metric, which may be an array or a tuple, as a short text."""
    array = value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.size == 1 and array.dtype.kind in "fiub":
        return _number(float(array.reshape(())))
    if array.dtype.kind == "f" and array.size <= 4:
        return " ".join(_number(float(v)) for v in array.reshape(-1))
    return f"{array.shape}" if array.dtype.kind in "fiub" else str(value)[:12]


def with_progress(callbacks: Sequence[Callback]) -> list[Callback]:
    """Return the callbacks, with a ProgressMonitor appended unless one of them prints progress."""
    if any(isinstance(cb, (ProgressMonitor, *_PRINTING)) for cb in callbacks):
        return list(callbacks)
    return [*callbacks, ProgressMonitor()]


class MetricsPlot(History):
    """Draws the loss and the metrics of all epochs into a picture when training ends.

    Needs matplotlib (`pip install matplotlib`). The metrics are those of the evaluations of
    `Model.fit`. `history` has the numbers, as in `History`.

    Args:
        path: file to write; the suffix chooses the format, such as ``.png`` or ``.svg``. A folder
            that does not exist is created when training begins.

    Raises:
        TypeError: `path` is no path.
        ValueError: matplotlib is not installed, or has no such format.

    Examples:
        >>> import tempfile, os
        >>> from duograph.train import MetricsPlot
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     callback = MetricsPlot(os.path.join(folder, "training.png"))
    """

    def __init__(self, path: str | os.PathLike[str] = "metrics.png") -> None:
        super().__init__()
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentError(f"MetricsPlot: got {path!r} for path; wanted the name of a file")
        self.path = pathlib.Path(path)
        try:
            self._figures = importlib.import_module("matplotlib.figure")
        except ModuleNotFoundError:
            raise ArgumentValueError(
                "MetricsPlot: the package matplotlib is not installed; wanted "
                "`pip install matplotlib`"
            ) from None
        formats = self._figures.Figure().canvas.get_supported_filetypes()
        if self.path.suffix[1:] not in formats:
            raise ArgumentValueError(
                f"MetricsPlot: got path={str(path)!r}; wanted a name that ends with one of "
                f"{', '.join('.' + f for f in formats)}"
            )
        self._epochs: dict[str, list[int]] = {}

    def begin(self, run_context: RunContext) -> None:
        super().begin(run_context)
        self._epochs = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)  # not at the end of a long training

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        before = {k: len(v) for k, v in self.history.items()}
        super().on_train_epoch_end(run_context)
        for name, values in self.history.items():
            if len(values) > before.get(name, 0):
                epoch = run_context.original_args().cur_epoch_num
                self._epochs.setdefault(name, []).append(epoch)

    def on_train_end(self, run_context: RunContext) -> None:
        del run_context
        self.save()

    def save(self) -> pathlib.Path:
        """Write the plot of losses and metrics in the epochs so far to a file; return its path.

        Raises:
            OSError: the file cannot be written.
        """
        curves = {k: v for k, v in self.history.items() if all(np.ndim(x) == 0 for x in v)}
        losses = [k for k in curves if k in ("net_output", "loss")]
        others = [k for k in curves if k not in losses]
        groups = [g for g in (losses, *[[k] for k in others]) if g]
        figure = self._figures.Figure(figsize=(4.2 * max(1, len(groups)), 3.2), layout="tight")
        for axes, names in zip(figure.subplots(1, max(1, len(groups)), squeeze=False)[0], groups):
            for name in names:
                label = {"net_output": "training", "loss": "validation"}.get(name, name)
                axes.plot(self._epochs[name], curves[name], marker="o", markersize=3, label=label)
            axes.set_xlabel("epoch")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_title("loss" if names is losses else names[0])
            axes.grid(alpha=0.3)
            if len(names) > 1:
                axes.legend()
        figure.savefig(self.path, dpi=120)
        return self.path
