"""Observers by hand and by plugin: errors, several at once, ops inside an observer."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator

import duograph as ms
import numpy as np
import pytest
from duograph.backend import observers
from duograph.backend.observers import Event, Observer, Work, reporting
from duograph.errors import ArgumentError

X = np.array([1.0, 2.0, 3.0], np.float32)


class Listed(Observer):
    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []

    def started(self, work: Work) -> None:
        self.log.append(("started", work.name))

    def finished(self, event: Event) -> None:
        self.log.append(("finished", event.work.name))


class Failing(Observer):
    def finished(self, event: Event) -> None:
        raise KeyError("mine")


class Computing(Observer):
    """An observer whose own ops would be reported to it without end."""

    calls = 0

    def finished(self, event: Event) -> None:
        self.calls += 1
        ms.Tensor(X) * 2


@pytest.fixture
def tensor() -> Iterator[ms.Tensor]:
    ms.set_context(device_target="CPU")
    yield ms.Tensor(X)
    for observer in observers.state.observers:
        observers.remove(observer)


def kernels(log: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [entry for entry in log if entry[1] in ("mul", "add", "region", "reduce_sum")]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_start_and_end_come_in_pairs(tensor: ms.Tensor, compiled: bool) -> None:
    def f(a: ms.Tensor) -> ms.Tensor:
        return (a * a).sum() + (a + a).sum()

    run = ms.jit(f, jit_level="O1") if compiled else f
    run(tensor)
    seen = Listed()
    observers.add(seen)
    run(tensor)
    run(tensor)
    observers.remove(seen)
    found = kernels(seen.log)
    assert len(found) >= 8
    assert [kind for kind, _ in found] == ["started", "finished"] * (len(found) // 2)
    assert all(a[1] == b[1] for a, b in zip(found[::2], found[1::2]))


def test_several_observers_get_the_same_events(tensor: ms.Tensor) -> None:
    first, second = Listed(), Listed()
    observers.add(first)
    observers.add(second)
    tensor * tensor
    observers.remove(second)
    tensor + tensor
    observers.remove(first)
    assert kernels(second.log) == [("started", "mul"), ("finished", "mul")]
    assert kernels(first.log) == [*kernels(second.log), ("started", "add"), ("finished", "add")]


def test_an_observer_that_raises_is_named_and_removed(tensor: ms.Tensor) -> None:
    good = Listed()
    observers.add(Failing())
    observers.add(good)
    with pytest.warns(RuntimeWarning, match="the observer Failing is removed: it raised KeyError"):
        product = tensor * tensor
    assert product.asnumpy().tolist() == [1.0, 4.0, 9.0]
    assert observers.state.observers == (good,)
    assert ("finished", "mul") in good.log


def test_ops_of_an_observer_are_not_reported(tensor: ms.Tensor) -> None:
    made = Computing()
    tensor * tensor
    observers.add(made)
    tensor * tensor
    before = made.calls
    tensor * tensor
    assert made.calls == before + 1


@pytest.mark.parametrize("wrong", [None, 3, Listed, print])
def test_only_observers_are_added(wrong: object) -> None:
    with pytest.raises(ArgumentError, match=r"observers\.add: got .*; wanted an Observer"):
        observers.add(wrong)  # type: ignore[arg-type]


def test_threads_are_told_apart(tensor: ms.Tensor) -> None:
    found: list[int] = []

    class Threads(Observer):
        def finished(self, event: Event) -> None:
            found.append(event.thread)

    made = Threads()
    observers.add(made)
    threads = [threading.Thread(target=lambda: [tensor * tensor for _ in range(50)])
               for _ in range(3)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    observers.remove(made)
    assert len(found) >= 150
    assert len(set(found)) >= 1


def test_a_backend_reports_work_of_its_own(tensor: ms.Tensor) -> None:
    seen = Listed()
    with reporting("compile", "unseen"):
        pass
    observers.add(seen)
    with reporting("compile", "mine", "CPU:0", 12):
        pass
    with reporting("copy", "nothing") as report:
        report.happened = False
    assert seen.log == [("started", "mine"), ("finished", "mine"), ("started", "nothing")]


PLUGIN = """
from duograph.backend.hookspecs import hookimpl
from duograph.backend.observers import Observer

SEEN = []

class Watch(Observer):
    def finished(self, event):
        SEEN.append(event.work.name)

@hookimpl
def duograph_observers():
    return {value}
"""


@pytest.mark.parametrize("value, works", [("Watch()", True), ("[Watch()]", True), ("3", False)])
def test_a_plugin_gets_the_events(site, value: str, works: bool) -> None:
    site.install("watching", PLUGIN.replace("{value}", value))
    said = site.run(
        "import warnings, duograph as ms, watching\n"
        "with warnings.catch_warnings(record=True) as found:\n"
        "    warnings.simplefilter('always')\n"
        "    ms.Tensor([1.0]) * 2\n"
        "print(*[w.message for w in found])\n"
        "print('mul' in watching.SEEN)"
    )
    assert said.split()[-1] == str(works)
    if not works:
        assert "duograph_observers returned 3; wanted an Observer" in said


def test_nothing_is_warned_about_by_default() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = Listed()
        observers.add(made)
        observers.add(made)
        observers.remove(made)
        observers.remove(made)
    assert not observers.active()
