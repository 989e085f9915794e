"""Tests of observers: each kernel, copy and compilation of a program is reported once, in order.

pytest runs them with the conformance suite, on every backend and at every jit level.
"""

from __future__ import annotations

import contextlib
import importlib.util
import pathlib
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import duograph as ms
from duograph.backend import observers
from duograph.backend.observers import Event, Observer
from duograph.errors import IndexRangeError

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)
LEVELS = ("eager", "O0", "O1", "O2")
PROGRAM = """
def whole(x, y):
    return (x * y + x).sum(axis=0)


def part(x):
    return x * 3 + x


def run(function, *arguments):
    return function(*arguments)
"""


class _Listed(Observer):
    """Observer that appends all events to the list `events`."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def finished(self, event: Event) -> None:
        self.events.append(event)

    def names(self, kind: str) -> list[str]:
        return [e.work.name for e in self.events if e.work.kind == kind]


@contextlib.contextmanager
def _observing() -> Iterator[_Listed]:
    made = _Listed()
    observers.add(made)
    try:
        yield made
    finally:
        observers.remove(made)


@pytest.fixture
def program(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    """Fixture that imports the source text `PROGRAM` as a module and returns the module.

    The module has a file, so that the events of its kernels carry source lines. The fixture turns
    off debug mode, because its checks read every result back to the host.
    """
    path = tmp_path / "observed_program.py"
    path.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("observed_program", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "observed_program", made)
    spec.loader.exec_module(made)
    before = ms.get_context("debug")
    ms.set_context(debug=False)
    yield made
    ms.set_context(debug=before)


def _at(program, level: str):
    return program.whole if level == "eager" else ms.jit(program.whole, jit_level=level)


@pytest.mark.parametrize("level", LEVELS)
def test_each_kernel_is_reported_once(session, program, level):
    call = _at(program, level)
    x, y = ms.Tensor(ARRAY), ms.Tensor(ARRAY + 1)
    want = program.run(call, x, y).asnumpy()
    program.run(call, x, y)
    with _observing() as first:
        found = program.run(call, x, y)
    assert np.array_equal(found.asnumpy(), want)
    with _observing() as second:
        program.run(call, x, y)
    kernels = [e for e in second.events if e.work.kind == "kernel"]
    assert first.names("kernel") == second.names("kernel") != []
    device = repr(session.device)
    assert all(e.work.device == device for e in kernels)
    assert all(e.begin <= e.end for e in kernels)
    assert [e.end for e in kernels] == sorted(e.end for e in kernels)
    moved = sum(e.work.nbytes for e in kernels)
    assert moved >= 2 * x.nbytes + 3 * 4  # both operands are read, and the result is written
    if level in ("eager", "O0"):
        ops = [e.work.name for e in kernels]
        assert ops.index("mul") < ops.index("add") < len(ops) - 1
        assert kernels[ops.index("mul")].work.nbytes == 3 * x.nbytes
    assert {(pathlib.Path(e.file).name, e.line) for e in kernels} == {("observed_program.py", 3)}


def test_copies_are_reported_once(session, program):
    with _observing() as seen:
        handle = session.backend.copy_in(ARRAY, session.device.index)  # not by the core: no event
        del handle
        x = ms.Tensor(ARRAY) * 2  # data may be shared instead of copied
        back = x.asnumpy()
    assert np.array_equal(back, ARRAY * 2)
    out = [e.work for e in seen.events if e.work.kind == "copy" and e.work.name == "from device"]
    assert [w.nbytes for w in out] == [ARRAY.nbytes]
    into = [e.work for e in seen.events if e.work.kind == "copy" and e.work.name == "to device"]
    assert len([w for w in into if w.nbytes == ARRAY.nbytes]) <= 1
    assert {w.device for w in (*out, *into)} == {repr(session.device)}


def test_compilations_are_reported_once(session, program):
    x = ms.Tensor(ARRAY)
    run = ms.jit(program.part)
    with _observing() as first:
        run(x)
    with _observing() as second:
        run(x)
    wholes = [n for n in first.names("compile") if n == "compile part"]
    assert len(wholes) == 1
    assert second.names("compile") == []


def test_a_kernel_that_raises_is_reported(session):
    x, wrong = ms.Tensor(ARRAY), ms.Tensor([7], ms.int32)
    with _observing() as seen, pytest.raises((IndexRangeError, IndexError)):
        ms.ops.gather(x, wrong, 0).asnumpy()
    assert len(seen.names("kernel")) >= 1


def test_nothing_is_reported_afterwards(session, program):
    x = ms.Tensor(ARRAY)
    run = ms.jit(program.part)
    with _observing() as seen:
        run(x + 1)
    count = len(seen.events)
    assert np.array_equal(run(x + 1).asnumpy(), (ARRAY + 1) * 4)
    assert len(seen.events) == count
    assert not observers.active()


def test_device_times_are_durations(session):
    with _observing() as seen:
        x = ms.Tensor(ARRAY) + 1
        ms.synchronize()
    del x
    times = [e.device_times() for e in seen.events if e.device_times is not None]
    for begin, end in times:
        assert 0 <= end - begin < 60_000_000_000
