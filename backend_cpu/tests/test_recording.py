"""The C form of watched calls stores what `Recorder.take` stores in Python: events, lines, errors.

Each program runs under a profile in both forms, many times, since lines are found by another way
after the first few events.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.backend import observers
from duograph.profiler import recording
from duograph.profiler.recording import Record
from duograph_cpu import _recording

Program = Callable[[ms.Tensor], object]


@pytest.fixture
def x() -> Iterator[ms.Tensor]:
    ms.set_context(device_target="CPU")
    yield ms.Tensor([1.0, 2.0, 3.0])
    assert not observers.active()


def one_line(x: ms.Tensor) -> None:
    for _ in range(9):
        x * x + x


def several_lines(x: ms.Tensor) -> None:
    for _ in range(9):
        y = x * x
        z = y * x
        [(lambda a: a * z)(y) for _ in range(2)]


def layer(x: ms.Tensor) -> None:
    net = nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())
    for _ in range(9):
        net(x.reshape(1, 3))
        net(x.reshape(1, 3))


def derivative(x: ms.Tensor) -> None:
    def f(a: ms.Tensor) -> ms.Tensor:
        return (ops.tanh(a) * a).sum()

    for _ in range(9):
        ms.grad(f)(x)
        ms.vmap(f)(x.reshape(1, 3))


def recursion(x: ms.Tensor) -> ms.Tensor:
    def down(n: int, a: ms.Tensor) -> ms.Tensor:
        return a * x if n == 0 else down(n - 1, a + x) * a

    return down(40, x)


def errors(x: ms.Tensor) -> None:
    labels = ms.Tensor([7], ms.int32)
    for _ in range(9):
        with pytest.raises(ValueError, match="7"):
            ops.cross_entropy(x.reshape(1, 3), labels)
        x * x


def in_a_thread(x: ms.Tensor) -> None:
    thread = threading.Thread(target=one_line, args=(x,))
    thread.start()
    thread.join()


def copies(x: ms.Tensor) -> None:
    for _ in range(9):
        (ms.Tensor(np.ones(3, np.float32)) * x).asnumpy()
        x[1:].sum().item()


PROGRAMS = [
    one_line, several_lines, layer, derivative, recursion, errors, in_a_thread, copies,
]  # fmt: skip


def recorded(program: Program, x: ms.Tensor, form: str, **options: object) -> ms.profile:
    with ms.profile(**options) as found:
        assert observers.state.log is not None or "with_stack" in options
        if form == "python":
            observers.state.log = None
        for _ in range(3):
            program(x)
    return found


def facts(record: Record) -> tuple[object, ...]:
    own = record.thread == threading.get_ident()
    return record.kind, record.work.name, record.work.types, record.lines, record.stack, own


@pytest.mark.parametrize("options", [{}, {"with_stack": True}], ids=["lines", "stack"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_both_forms_store_the_same_events(
    program: Program, options: dict[str, object], x: ms.Tensor
) -> None:
    recorded(program, x, "c")  # nothing is compiled or prepared after this
    found = {form: recorded(program, x, form, **options).records() for form in ("python", "c")}
    assert [facts(r) for r in found["c"]] == [facts(r) for r in found["python"]]
    assert len(found["c"]) > 20
    for record in found["c"]:
        assert 0 < record.begin <= record.end
    begins = [r.begin for r in found["c"]]
    assert begins == sorted(begins)


@pytest.mark.parametrize("form", ["python", "c"])
def test_events_beyond_the_limit_are_counted(form: str, x: ms.Tensor) -> None:
    one_line(x)
    found = ms.profile(start_profile=False)
    found.max_events = 10
    with pytest.warns(RuntimeWarning, match="10 events are stored"), found:
        if form == "python":
            observers.state.log = None
        one_line(x)
    assert [r.work.name for r in found.records()] == ["mul", "add"] * 5
    assert found.dropped == 8


@pytest.mark.parametrize("form", ["python", "c"])
def test_memory_is_sampled(form: str, x: ms.Tensor) -> None:
    found = recorded(one_line, x, form, profile_memory=True)
    assert len(found.memory) >= 2
    assert {sample.device for sample in found.memory} == {"CPU:0"}


def test_with_another_observer_the_python_form_serves_both(x: ms.Tensor) -> None:
    class Counting(observers.Observer):
        names: list[str] = []

        def finished(self, event: observers.Event) -> None:
            self.names.append(event.work.name)

    counting = Counting()
    observers.add(counting)
    try:
        with ms.profile() as found:
            assert observers.state.log is None
            x * x
    finally:
        observers.remove(counting)
    assert [r.work.name for r in found.records() if r.kind == "kernel"] == ["mul"]
    assert counting.names[-1] == "mul"
    assert observers.state.log is None


def test_an_error_of_the_log_is_raised() -> None:
    class Broken:
        def walk(self, work: object, frame: object) -> object:
            raise KeyError("walk")

        def drop(self) -> None:
            raise KeyError("drop")

        def sample(self, device: str) -> None:
            raise KeyError("sample")

    class State:
        log: object = None

    state, work = State(), observers.Work("kernel", "mine", "CPU:0")
    call = _recording.watched_call(state, lambda a: a + 1, work, lambda a: a - 1)
    assert call(3) == 2  # without a log
    for limits, text in [([0, 1 << 62], "drop"), ([99, 1 << 62], "walk"), (["x", 0], "integer")]:
        state.log = (Broken(), [], limits)
        with pytest.raises((KeyError, TypeError), match=text):
            call(3)
    compiled = observers.Work("kernel", "mine", "CPU:0", spans=(object(),))
    values: list[object] = []
    state.log = (Broken(), values, [99, 0])
    with pytest.raises(KeyError, match="sample"):
        _recording.watched_call(state, abs, compiled, abs)(-3)
    assert values[0] is compiled and values[4:] == [None, 0, None]
    with pytest.raises(ZeroDivisionError):  # the call's own error comes before the log's
        _recording.watched_call(state, lambda: 1 // 0, work, abs)()
    with pytest.raises(TypeError, match="watched_call"):
        _recording.watched_call(state, abs)


def test_an_interrupt_while_an_event_is_stored_is_not_lost() -> None:
    class Interrupted:
        def walk(self, work: object, frame: object) -> object:
            raise KeyboardInterrupt

    class State:
        log = (Interrupted(), [], [99, 1 << 62])

    work = observers.Work("kernel", "mine", "CPU:0")
    for run, given in [(abs, 3), (abs, "text")]:
        with pytest.raises(KeyboardInterrupt):
            _recording.watched_call(State(), run, work, run)(given)


@pytest.mark.parametrize("found", [None, [None, 0], (None,), (None, 0, 0)], ids=repr)
def test_what_walk_returns_is_checked(found: object) -> None:
    class Odd:
        def walk(self, work: object, frame: object) -> object:
            return found

    class State:
        log = (Odd(), [], [99, 1 << 62])

    work = observers.Work("kernel", "mine", "CPU:0")
    with pytest.raises(TypeError, match="walk: wanted a tuple"):
        _recording.watched_call(State(), abs, work, abs)(3)


def test_an_observer_of_a_plugin_is_called_by_its_methods(x: ms.Tensor) -> None:
    class Own(recording.Recorder):
        names: list[str] = []

        def take(self, work: observers.Work, *rest: object) -> None:
            self.names.append(work.name)
            super().take(work, *rest)

    own = Own(100)
    observers.add(own)
    try:
        assert observers.state.log is None
        x * x
    finally:
        observers.remove(own)
    assert own.names[-1] == "mul"


def test_nothing_leaks(x: ms.Tensor) -> None:
    class Log(list):
        def walk(self, work: object, frame: object) -> tuple[None, int]:
            return None, 0

    class State:
        log: object = None

    def run(*given: object) -> object:
        return given[0]

    state, work, value = State(), observers.Work("kernel", "mine", "CPU:0"), object()
    values: list[object] = []
    state.log = (Log(), values, [1 << 40, 1 << 62])
    call = _recording.watched_call(state, run, work, run)
    watched = (work, value, state.log, run, state, work.sites)

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(each) for each in watched]

    before = counts()
    for _ in range(1000):
        assert call(value, 1, 2) is value
        with pytest.raises(IndexError):
            call()
    values.clear()
    assert counts() == before
    call = None
    assert counts()[0] == before[0] - 1
    depth, here = 0, sys._getframe()
    work.sites[:] = [(depth, here.f_code, here.f_lasti), (10**6, here.f_code, 0)]
    call = _recording.watched_call(state, run, work, run)
    before = counts(), sys.getrefcount(here.f_code)
    for _ in range(1000):
        call(value)
    values.clear()
    assert (counts(), sys.getrefcount(here.f_code)) == before
