"""What a terminal shows while a function is compiled."""

import io
import re
import time
from types import SimpleNamespace

import duograph as ms
import pytest
from duograph import status_line as waiting
from duograph.compiler import jit_call


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(waiting, "_DELAY", 0.05)
    monkeypatch.setattr(waiting, "_REFRESH", 0.01)
    return stream


@pytest.fixture
def slow_compiler(monkeypatch):
    """The compiler waits until something is shown, or for 0.3 seconds if nothing can be."""
    compile_program = jit_call.compile_program

    def slow(*args):
        stream = waiting.sys.stderr
        end = time.monotonic() + (60 if isinstance(stream, Terminal) else 0.3)
        while not stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        return compile_program(*args)

    monkeypatch.setattr(jit_call, "compile_program", slow)


def plus_one(x):
    return x + 1


@pytest.mark.usefixtures("slow_compiler")
def test_a_long_compilation_is_shown_and_erased(terminal):
    assert ms.jit(plus_one)(ms.Tensor(1.0)).item() == 2
    shown = terminal.getvalue()
    assert re.search(r"duograph: compiling plus_one, \d+ s", shown)
    assert shown.endswith("\r\x1b[K")


def test_a_short_compilation_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(waiting, "_DELAY", 60)
    assert ms.jit(lambda x: x + 1)(ms.Tensor(1.0)).item() == 2
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("slow_compiler")
def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(waiting, "_DELAY", 0)
    assert ms.jit(plus_one)(ms.Tensor(1.0)).item() == 2
    assert "compiling" not in stream.getvalue()


@pytest.mark.usefixtures("slow_compiler")
def test_an_error_erases_the_line(terminal):
    def fails(x):
        return x + ms.ops.ones((7,), ms.float32)

    with pytest.raises(ms.errors.ShapeError):
        ms.jit(fails)(ms.Tensor([1.0, 2.0]))
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_closed_stream_is_no_error(monkeypatch):
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=None))
    assert ms.jit(lambda x: x + 1)(ms.Tensor(1.0)).item() == 2
