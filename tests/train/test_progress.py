"""Tests of what training shows: progress on terminals and elsewhere, and pictures of metrics."""

from __future__ import annotations

import io
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn
from duograph.errors import ArgumentError, ArgumentValueError
from duograph.train import Callback, LossMonitor, MetricsPlot, ProgressMonitor, TimeMonitor
from duograph.train.callback.progress import with_progress


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Data:
    """Batches of which each takes a while."""

    def __init__(self, batches: int, seconds: float = 0.0) -> None:
        self.batches, self.seconds = batches, seconds

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(self.batches):
            time.sleep(self.seconds)
            yield Tensor(np.ones((2, 3), np.float32)), Tensor(np.zeros(2, np.int32))


class Unsized:
    """Batches of which nobody knows how many there are."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(Data(3))


def model(metrics: set[str] | None = None) -> ms.Model:
    net = nn.Dense(3, 2)
    return ms.Model(
        net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1), metrics=metrics
    )


def test_one_line_per_epoch_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    monitor = ProgressMonitor(stream=stream, delay=0)
    model({"accuracy", "loss"}).fit(3, Data(4), Data(2), valid_frequency=3, callbacks=[monitor])
    lines = stream.getvalue().splitlines()
    assert [line.split(", ")[:2] for line in lines] == [
        [f"epoch {k}/3", "step 4/4"] for k in (1, 2, 3)
    ]
    assert all("steps/s" in line and line.endswith(" left") and "loss" in line for line in lines)
    assert ["accuracy" in line for line in lines] == [False, False, True]


def test_table_on_a_terminal() -> None:
    stream = Terminal()
    monitor = ProgressMonitor(stream=stream, delay=0)
    model({"accuracy"}).fit(2, Data(4, 0.1), Data(2), callbacks=[monitor])
    text = stream.getvalue()
    rows = [line.rpartition("\r")[2] for line in text.rstrip().split("\n")]
    assert rows[0].split() == ["epoch", "step", "loss", "accuracy", "steps/s", "time", "left"]
    assert [row.split()[:2] for row in rows[1:]] == [["1/2", "4/4"], ["2/2", "4/4"]]
    assert text.count("\r") > 4  # and a row that changed
    assert len({len(row.rstrip()) for row in rows}) == 1  # columns are aligned


def test_steps_of_unknown_number() -> None:
    stream = io.StringIO()
    model().train(2, Unsized(), callbacks=[ProgressMonitor(stream=stream, delay=0)])
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2 and all("left" not in line for line in lines)


def test_evaluation_shows_what_is_left() -> None:
    stream = Terminal()
    model({"accuracy"}).eval(Data(5, 0.15), callbacks=[ProgressMonitor(stream=stream, delay=0)])
    assert "evaluation" in stream.getvalue() and "left" in stream.getvalue()
    assert stream.getvalue().endswith("\r")  # and leaves an empty line


def test_a_short_run_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    model({"accuracy"}).fit(2, Data(3), Data(2))
    assert capfd.readouterr() == ("", "")


def test_standard_output_stays_as_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    model().train(2, Data(6, 0.12))
    out, err = capfd.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and err.startswith("epoch 2/2")
    model().train(1, Data(12, 0.1), callbacks=LossMonitor(12))
    out, err = capfd.readouterr()
    assert out.startswith("epoch: 1 step: 12, loss is ") and err == ""


ADDED: dict[str, tuple[list[Callback], bool]] = {
    "nothing": ([], True),
    "others": ([ms.train.History()], True),
    "loss": ([LossMonitor()], False),
    "time": ([TimeMonitor()], False),
    "disabled": ([ProgressMonitor(enabled=False)], False),
}


@pytest.mark.parametrize("name", ADDED)
def test_a_monitor_is_added_where_nothing_else_prints(name: str) -> None:
    callbacks, added = ADDED[name]
    assert len(with_progress(callbacks)) == len(callbacks) + added


def test_disabled_monitor_writes_nothing() -> None:
    stream = Terminal()
    monitor = ProgressMonitor(enabled=False, stream=stream, delay=0)
    model({"accuracy"}).fit(2, Data(3, 0.1), Data(2), callbacks=[monitor])
    assert stream.getvalue() == ""


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_picture_of_metrics(tmp_path: pathlib.Path, suffix: str) -> None:
    plot = MetricsPlot(tmp_path / "new" / f"metrics{suffix}")  # the folder is created
    model({"accuracy", "loss"}).fit(4, Data(3), Data(2), valid_frequency=2, callbacks=[plot])
    assert {k: len(v) for k, v in plot.history.items()} == {
        "net_output": 4, "accuracy": 2, "loss": 2,
    }  # fmt: skip
    assert plot._epochs["loss"] == [2, 4]
    start = {".png": b"\x89PNG", ".svg": b"<?xml"}[suffix]
    assert plot.path.read_bytes().startswith(start) and plot.path.stat().st_size > 5000


def test_picture_without_epochs(tmp_path: pathlib.Path) -> None:
    assert MetricsPlot(tmp_path / "empty.png").save().exists()


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "format": (lambda: MetricsPlot("metrics.doc"), ArgumentValueError, "ends with one of"),
    "path": (lambda: MetricsPlot(3), ArgumentError, "name of a file"),  # type: ignore[arg-type]
    "stream": (lambda: ProgressMonitor(stream=3), ArgumentError, "a file"),  # type: ignore[arg-type]
    "delay": (lambda: ProgressMonitor(delay=-1), ValueError, "delay"),
    "enabled": (lambda: ProgressMonitor(enabled="no"), TypeError, "enabled"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    make, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        make()
