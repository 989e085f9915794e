"""What a terminal shows about operations that take longer than a second, and that others do not."""

from __future__ import annotations

import io
import pathlib
import re
import threading
import time
from types import SimpleNamespace

import duograph as ms
import numpy as np
import pytest
from duograph import dataset, launcher, mindrecord, placement, status_line
from duograph.backend import registry
from duograph.cli import bench
from duograph.common.initializer import initializer
from duograph.status_line import StatusLine, counted, duration_text, size_text
from duograph.status_line import status_line as shown


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def watched(monkeypatch: pytest.MonkeyPatch, stream: object, delay: float = 0.0) -> None:
    monkeypatch.setattr(status_line, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(status_line, "_DELAY", delay)
    monkeypatch.setattr(status_line, "_REFRESH", 0.001)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    watched(monkeypatch, stream)
    return stream


def lines(stream: io.StringIO) -> list[str]:
    return [part for part in stream.getvalue().split("\r\x1b[K") if part]


class Log:
    """A stream that a program has put in the place of `sys.stderr`."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(
    "stream",
    [None, Log(), closed(), io.StringIO()],
    ids=["nothing", "a log", "closed", "in memory"],
)
def test_streams_that_are_no_terminals(monkeypatch: pytest.MonkeyPatch, stream: object) -> None:
    watched(monkeypatch, stream)
    with shown("saving", 3, "rows") as line:
        for _ in counted(range(3), line):
            time.sleep(0.002)
    assert getattr(stream, "text", "") == ""


def test_labelled_output_of_a_rank_is_no_terminal() -> None:
    """Its stream writes whole lines, which cannot be redrawn."""
    assert not status_line.is_terminal(launcher._Labelled(Terminal(), "[rank 0] "))


GIB = 1 << 30
TEXTS = [
    (("saving a", None, ""), 0, 3.2, "saving a, 3 s"),
    (("saving a", 8 * GIB, "bytes"), 0, 3.2, "saving a, 3 s"),
    (("saving a", 8 * GIB, "bytes"), 2 * GIB, 4.0,
     "saving a: 2.0 GiB of 8.0 GiB, 512.0 MiB/s, 12 s left"),
    (("saving a", 8 * GIB, "bytes"), 8 * GIB, 16.0, "saving a: 8.0 GiB, 512.0 MiB/s, 16 s"),
    (("reading", 60_000, "rows"), 600, 2.0, "reading: 600 of 60000 rows, 300/s, 3:18 left"),
    (("reading", None, "rows"), 7, 2.0, "reading: 7 rows, 3.5/s, 2.0 s"),
    (("reading", 3, "rows"), 5, 2.0, "reading: 5 rows, 2.5/s, 2.0 s"),  # more than was promised
]  # fmt: skip


@pytest.mark.parametrize("made, done, seconds, text", TEXTS)
def test_the_text_of_the_line(made, done, seconds, text):
    line = StatusLine(*made)
    line.advance(done)
    assert line.text(seconds) == f"duograph: {text}"


@pytest.mark.parametrize(
    "made, text",
    [(duration_text(9.96), "10.0 s"), (duration_text(59), "59 s"), (duration_text(61), "1:01"),
     (duration_text(3725), "1:02:05"), (size_text(1023), "1023 bytes"),
     (size_text(1536), "1.5 KiB"), (size_text(3 << 29), "1.5 GiB")],
)  # fmt: skip
def test_times_and_sizes(made, text):
    assert made == text


@pytest.mark.parametrize("threaded", [True, False])
def test_a_line_appears_and_is_erased(threaded, terminal):
    with shown("counting", 100, "sheep", threaded) as line:
        for _ in counted(range(100), line):
            time.sleep(0.002)
    found = lines(terminal)
    assert found and all(text.startswith("duograph: counting") for text in found)
    assert any(re.search(r"\d+ of 100 sheep, \d+/s, [\d.]+ s left", text) for text in found)
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    "stream, delay",
    [(io.StringIO(), 0.0), (None, 0.0), (Terminal(), 60.0)],
    ids=["no terminal", "closed", "short"],
)
@pytest.mark.parametrize("threaded", [True, False])
def test_nothing_is_shown(stream, delay, threaded, monkeypatch):
    watched(monkeypatch, stream, delay)
    before = threading.active_count()
    with shown("counting", 10, "sheep", threaded) as line:
        assert threading.active_count() == before + (delay > 0 and threaded)
        for _ in counted(range(10), line):
            time.sleep(0.001)
    assert stream is None or stream.getvalue() == ""


def test_an_error_erases_the_line(terminal):
    with pytest.raises(KeyboardInterrupt), shown("counting"):
        while not terminal.getvalue():
            time.sleep(0.001)
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\r\x1b[K") and status_line._terminal is None


def test_other_threads_show_nothing(terminal):
    def run() -> None:
        with shown("counting", 3, "sheep") as line:
            line.advance()
            time.sleep(0.02)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""


def test_the_innermost_long_operation_is_shown(terminal):
    with shown("outside", 2, "parts", False) as outer:
        outer.advance()
        with shown("inside", 2, "pieces", False) as inner:
            time.sleep(0.002)
            inner.advance()
        time.sleep(0.002)
        outer.advance()
    assert [text.split(":")[1].strip() for text in lines(terminal)] == [
        "outside", "inside", "outside",
    ]  # fmt: skip
    assert terminal.getvalue().count("\r\x1b[K") == 4  # one line, erased once


def test_a_closed_terminal_is_no_error(monkeypatch):
    stream = Terminal()
    watched(monkeypatch, stream)
    with shown("counting", 3, "sheep", False) as line:
        stream.isatty()
        line.advance()
        stream.close()
        time.sleep(0.002)
        line.advance()


# ---- operations that show it ---------------------------------------------------------------------

NET = ms.nn.Dense(3, 2)
ROWS = dataset.NumpySlicesDataset({"x": np.arange(40, dtype=np.int32)}, shuffle=False)


def saved(folder: str, format: str = "ckpt") -> str:
    path = f"{folder}/net.{format}"
    ms.save_checkpoint(NET, path, format=format)
    return path


def exported(folder: str, format: str) -> str:
    path = f"{folder}/net.{format.lower()}"
    ms.export(NET, ms.ops.ones((2, 3)), file_name=path, file_format=format)
    return path


def written(folder: str) -> None:
    writer = mindrecord.FileWriter(f"{folder}/rows.mindrecord")
    writer.add_schema({"x": {"type": "int32"}})
    writer.write_raw_data([{"x": k} for k in range(20)])
    writer.commit()


def profiled(folder: str) -> None:
    with ms.profile() as p:
        NET(ms.ops.ones((2, 3)))
    p.export_chrome_trace(f"{folder}/trace.json")


def made(size: int) -> ms.Tensor:
    value = initializer("normal", (size,), ms.float32)
    value.init_data()
    return value


OPERATIONS = {
    "read values": (saved, "reading the values for .*/net.ckpt: 2 values"),
    "initial value": (lambda f: made(1 << 22), "making 4,194,304 initial values"),
    "Parameters": (
        lambda f: ms.nn.Dense(3, 2).init_parameters_data(),
        "initialising Parameters: 8 values",
    ),
    "save ckpt": (saved, "saving .*/net.ckpt"),
    "save safetensors": (lambda f: saved(f, "safetensors"), "saving .*/net.safetensors"),
    "load ckpt": (lambda f: ms.load_checkpoint(saved(f)), "loading .*/net.ckpt"),
    "export MINDIR": (lambda f: exported(f, "MINDIR"), "exporting .*/net.mindir"),
    "load MINDIR": (lambda f: ms.load(exported(f, "MINDIR")), "loading .*/net.mindir"),
    "export ONNX": (lambda f: exported(f, "ONNX"), "exporting .*/net.onnx"),
    "load ONNX": (lambda f: ms.onnx.load(exported(f, "ONNX")), "loading .*/net.onnx"),
    "save rows": (lambda f: ROWS.save(f"{f}/a.mindrecord"), "reading rows for .*: 40 rows"),
    "save records": (lambda f: ROWS.save(f"{f}/a", 1, "tfrecord"), "writing .*/a: 40 rows"),
    "write rows": (written, "writing .*/rows.mindrecord: 20 rows"),
    "count rows": (lambda f: len(ROWS.filter(lambda x: x > 3)), "counting the rows of a dataset"),
    "count words": (
        lambda f: dataset.text.Vocab.from_dataset(
            dataset.NumpySlicesDataset({"w": ["a", "b"] * 9}, shuffle=False)
        ),
        "counting words: 18 rows",
    ),
    "trace": (profiled, "writing .*/trace.json"),
    "bench": (lambda f: bench.measure(0.001), "measuring training step .*: 6 measurements"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_show_what_they_do(name, tmp_path, monkeypatch):
    if "ONNX" in name:
        pytest.importorskip("onnx", reason="duograph[onnx] exports and loads models")
    run, said = OPERATIONS[name]
    begun: list[StatusLine] = []

    class Recorded(list):
        def append(self, line: StatusLine) -> None:
            begun.append(line)
            super().append(line)

    class Recording(status_line._Terminal):
        def __init__(self, stream: Terminal) -> None:
            super().__init__(stream)
            self.running = Recorded()

    watched(monkeypatch, Terminal())
    monkeypatch.setattr(status_line, "_Terminal", Recording)
    run(str(tmp_path))
    texts = [line.text(1.0) for line in begun]
    assert any(re.match(f"duograph: {said}", text) for text in texts), texts


def test_data_that_arrives_from_a_device_are_no_initial_values(monkeypatch):
    moved = initializer("zeros", (1 << 22,), ms.float32)
    moved._init = placement.Arriving(
        lambda: np.full(1 << 22, 2, np.float32), registry.current_device()
    )
    monkeypatch.setattr(placement, "status_line", None)  # would be called
    assert moved.sum().item() == 2 << 22


def test_the_files_are_the_same_with_and_without_a_terminal(tmp_path, monkeypatch):
    plain = [saved(str(tmp_path)), saved(str(tmp_path), "safetensors")]
    content = [pathlib.Path(path).read_bytes() for path in plain]
    watched(monkeypatch, Terminal())
    again = [saved(str(tmp_path)), saved(str(tmp_path), "safetensors")]
    assert [pathlib.Path(path).read_bytes() for path in again] == content
