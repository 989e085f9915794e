"""Methods of a backend that copy, wait, count or measure and fail: the error names both.

A backend names itself and the method in what reaches the user. What only measures never ends the
program that is measured.
"""

from __future__ import annotations

import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import cli, ops
from duograph.backend import observers, registry
from duograph.backend.prepared import LinkedProgram
from duograph.backend.protocol import SEAM_VERSION, Backend, BackendSpec
from duograph.errors import BackendError
from duograph.execution import optional_methods
from duograph.profiler import profile

Reference = pytest.importorskip("duograph_reference.backend").Reference

pytestmark = pytest.mark.usefixtures("restored")


def raising(error):
    def method(*arguments, **named):
        raise error

    return method


def returning(value):
    return lambda *arguments, **named: value


@pytest.fixture
def on(monkeypatch):
    """Fixture: a function that registers a broken copy of the reference backend as "Toy".

    It returns a tensor on this device.
    """
    monkeypatch.setattr(optional_methods, "_warned", set())

    def register(**members):
        made = type("Toy", (Reference,), {"name": "Toy", **members})
        registry.register(BackendSpec("Toy", made, priority=None))
        return ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device="Toy")

    yield register
    ms.set_context(device_target="CPU", debug=False)
    registry.unregister("Toy")


# ---- methods without which there is no result ----------------------------------------------------


def streamed(x):
    ms.set_context(device_target="Toy")
    ms.runtime.Stream().synchronize()


def tuned(x):
    assert cli.main(["tune", "--device", "Toy"]) == 0


def looped(a):
    while a.sum() < 100:
        a = a * 2
    return a


NO_SHARING = {"from_host": returning(None)}
USES = {
    "copy_in": ({**NO_SHARING}, lambda x: x + ms.Tensor([1.0])),
    "from_host": ({}, lambda x: x + ms.Tensor([1.0])),
    "copy_out": ({}, lambda x: x.asnumpy()),
    "copy_out of a condition": ({}, looped),
    "copy_out of a compiled condition": ({}, lambda x: ms.jit(looped, jit_level="O0")(x)),
    "synchronize": ({}, lambda x: ms.synchronize("Toy")),
    "synchronize of a stream": ({}, streamed),
    "memory_stats": ({}, lambda x: ms.memory_stats("Toy")),
    "memory_stats of a sum": ({}, lambda x: ms.max_memory_allocated("Toy")),
    "memory_stats of a table": ({}, lambda x: ms.runtime.memory_summary("Toy")),
    "empty_cache": ({}, lambda x: ms.empty_cache("Toy")),
}


@pytest.mark.parametrize("what", USES)
def test_a_method_that_raises_is_named(what, on):
    members, use = USES[what]
    method = what.partition(" ")[0]
    broken = {"now": False}
    sound = {**members}.get(method, getattr(Reference, method))

    def call(*arguments, **named):
        if broken["now"]:
            raise KeyError("bus")
        return sound(*arguments, **named)

    x = on(**{**members, method: call})
    broken["now"] = True
    with pytest.raises(BackendError, match=rf"Toy: {method}\(\).* raised KeyError: 'bus'"):
        use(x)


@pytest.mark.parametrize("error", [IndexError("index 7"), MemoryError("8 GB"), BackendError("x")])
@pytest.mark.parametrize("what", ["copy_out", "synchronize"])
def test_errors_that_a_method_may_raise_stay_as_they_are(what, error, on):
    x = on(**{what: raising(error)})
    with pytest.raises(type(error)) as caught:
        USES[what][1](x)
    assert caught.value is error


def test_a_wrong_handle_is_shown_with_the_way_to_its_kernel(on):
    x = on(prepare=lambda self, op, types, attributes, device_id: returning((1, 2)))
    with pytest.raises(BackendError, match=r"copy_out\(\) of \(1, 2\) as float32\[2, 3\] raised"):
        ops.exp(x).asnumpy()
    with pytest.raises(BackendError, match=r"set_context\(debug=True\) says which"):
        ops.exp(x).asnumpy()


MEMORY = {
    "None": (None, "returned None; wanted a dict of ints by name"),
    "a list": ([], r"returned \[\]; wanted a dict"),
    "a text": ({"in_use": "many"}, "has 'in_use': 'many'; wanted a name and an int from 0 on"),
    "a negative number": ({"in_use": 5, "peak": -1}, "has 'peak': -1"),
    "a float": ({"in_use": 1.5}, "has 'in_use': 1.5"),
    "a bool": ({"in_use": True}, "has 'in_use': True"),
    "no name": ({3: 4}, "has 3: 4"),
}


@pytest.mark.parametrize("what", MEMORY)
def test_statistics_of_memory_are_numbers_of_bytes(what, on):
    value, words = MEMORY[what]
    on(memory_stats=returning(value))
    for use in (ms.memory_stats, ms.memory_allocated, ms.runtime.memory_stats):
        with pytest.raises(BackendError, match=rf"Toy: memory_stats\(\) {words}"):
            use("Toy")


def test_statistics_of_numpy_are_numbers_too(on):
    on(memory_stats=returning({"in_use": np.int64(7), "peak": 9}))
    assert ms.memory_stats("Toy") == {"in_use": 7, "peak": 9}


@pytest.mark.parametrize("value", ["x", -1, 1.5, True])
def test_the_size_of_a_buffer_is_a_number(value, on):
    x = on(nbytes=returning(value))
    ms.set_context(debug=True)
    with pytest.raises(BackendError, match=r"Toy: nbytes\(\) returned .*; wanted the number of"):
        x * 2


# ---- methods that only measure or help -----------------------------------------------------------


class Timer(observers.DeviceTimer):
    """A clock whose methods are given."""

    def __init__(self, mark, elapsed):
        self.mark, self.elapsed = mark, elapsed


class Log(observers.Observer):
    def __init__(self):
        self.events = []

    def finished(self, event):
        self.events.append(event)


TIMERS = {
    "timer() raises": (raising(KeyError("bus")), "timer"),
    "timer() returns a number": (returning(3), "timer"),
    "mark() raises": (returning(Timer(raising(KeyError("bus")), returning(1))), "timer().mark"),
    "no marks": (returning(Timer(returning(None), returning(1))), None),
}


@pytest.mark.parametrize("level", [None, "O0", "O1", "O2"])
@pytest.mark.parametrize("what", TIMERS)
def test_a_clock_that_fails_ends_no_call(what, level, on):
    timer, method = TIMERS[what]
    x = on(timer=timer)
    log = Log()
    observers.add(log)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function = lambda a: ops.exp(a) * 2  # noqa: E731 (compiled below)
            got = (function if level is None else ms.jit(function, jit_level=level))(x)
    finally:
        observers.remove(log)
    np.testing.assert_allclose(got.asnumpy(), 2 * np.exp(x.asnumpy()), rtol=1e-6)
    kernels = [e for e in log.events if e.work.kind == "kernel"]
    assert kernels and all(e.device_times is None for e in kernels)
    said = [str(w.message) for w in caught if "Toy" in str(w.message)]
    assert [s.startswith(f"{method}() of the Toy backend r") for s in said] == [True] * bool(method)


@pytest.mark.parametrize(
    "elapsed, words",
    [(raising(KeyError("bus")), "raised KeyError: 'bus'"), (returning("long"), "returned 'long'")],
)
def test_times_of_a_clock_that_fails_name_it(elapsed, words, on):
    x = on(timer=returning(Timer(returning(0), elapsed)))
    log = Log()
    observers.add(log)
    try:
        x * 2
    finally:
        observers.remove(log)
    (event,) = [e for e in log.events if e.work.kind == "kernel"]
    with pytest.raises(BackendError, match=rf"Toy: timer\(\).elapsed\(\) {words}"):
        event.device_times()


def test_a_profile_does_without_statistics_of_memory(on):
    x = on(memory_stats=raising(KeyError("bus")))
    ms.set_context(device_target="Toy")
    said = r"memory_stats\(\) of the Toy backend raised KeyError"
    with pytest.warns(RuntimeWarning, match=said), profile(profile_memory=True):
        got = x * 2 + 1
    np.testing.assert_array_equal(got.asnumpy(), x.asnumpy() * 2 + 1)


def test_compiled_functions_do_without_exclusive(on):
    x = on(exclusive=raising(KeyError("bus")))
    w = ms.Parameter(ms.Tensor(np.ones((3, 3), np.float32), device="Toy"))
    compiled = ms.jit(lambda a: a @ ops.exp(w).T + 1, jit_level="O1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = [compiled(x).asnumpy() for _ in range(6)]
    for got in found:
        np.testing.assert_allclose(got, x.asnumpy() @ np.full((3, 3), np.e) + 1, rtol=1e-5)


COMMANDS = {
    "compiler": (["devices"], 0, "compiler() raised KeyError: 'bus'"),
    "examine": (["doctor"], None, "examine() raised KeyError: 'bus'"),
    "tune": (["tune", "--device", "Toy"], 1, "Toy: tune() raised KeyError: 'bus'"),
}


@pytest.mark.parametrize("method", COMMANDS)
def test_the_command_shows_what_failed(method, on, capsys):
    command, status, words = COMMANDS[method]
    on(**{method: raising(KeyError("bus"))})
    assert cli.main(command) == status or status is None
    out, err = capsys.readouterr()
    assert words in out + err
    if method == "compiler":
        assert "Toy: available" in out


# ---- results of several --------------------------------------------------------------------------

COUNTS = {
    "one": lambda made: made[:1],
    "three": lambda made: (*made, made[0]),
    "one handle": lambda made: made[0],
    "None": lambda made: None,
}
CALLS = {
    "eager": lambda x: ops.sort(x),
    "recorded": lambda x: ms.grad(lambda a: ops.sort(a)[0].sum())(x),
    "recorded twice": lambda x: ms.grad(ms.grad(lambda a: (ops.sort(a)[0] ** 3).sum()))(x),
    "O0": ms.jit(lambda x: ops.sort(x)[0] * 2, jit_level="O0"),
    "O1": ms.jit(lambda x: ops.sort(x)[0] * 2, jit_level="O1"),
    "O2": ms.jit(lambda x: ops.sort(x), jit_level="O2"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("count", COUNTS)
def test_missing_results_are_no_error_of_the_user(count, call, on):
    """They are counted outside debug mode too."""

    def prepare(self, op, types, attributes, device_id):
        sound = Reference.prepare(self, op, types, attributes, device_id)
        return sound if op.name != "sort" else lambda x: COUNTS[count](sound(x))

    x = on(prepare=prepare)[0]
    with pytest.raises(BackendError, match=r"returned .*; wanted a tuple of 2 handles"):
        CALLS[call](x)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("method", ["link", "compile_graph"])
@pytest.mark.parametrize("fault", ["raises", "few", "none"])
def test_a_program_that_fails_names_the_method_that_made_it(fault, method, debug, on):
    run = {"raises": raising(KeyError("bus")), "few": returning(()), "none": returning(None)}[fault]
    members = {
        "compiles": returning(None),
        "compile": lambda self, regions, device_id: ["no"] * len(regions),
        "links": returning(None),
        method: lambda self, program, device_id: run,
    }
    x = on(**members)
    ms.set_context(debug=debug)
    with pytest.raises(BackendError, match="Toy") as caught:
        ms.jit(lambda a: (ops.exp(a) * 2, a + 1), jit_level="O1")(x)
    if fault == "raises" or debug:
        assert f"that {method}() of the Toy backend made r" in str(caught.value)


def test_a_compiler_that_exits_does_not_end_the_program(on):
    x = on(compile_graph=raising(SystemExit("no licence")))
    with pytest.warns(RuntimeWarning, match=r"compile_graph\(\) of the Toy backend raised System"):
        got = ms.jit(lambda a: ops.exp(a) + 1, jit_level="O1")(x)
    np.testing.assert_allclose(got.asnumpy(), np.exp(x.asnumpy()) + 1, rtol=1e-6)


@pytest.mark.parametrize("field", ["run", "bind", "timed"])
def test_the_functions_of_a_linked_program_are_functions(field, on):
    fields = {"run": returning(()), field: 3}
    x = on(compile_graph=returning(LinkedProgram(**fields)))
    with pytest.warns(RuntimeWarning, match="LinkedProgram"):
        got = ms.jit(lambda a: ops.exp(a) + 1, jit_level="O1")(x)
    np.testing.assert_allclose(got.asnumpy(), np.exp(x.asnumpy()) + 1, rtol=1e-6)


def test_python_errors_of_numbers_stay_the_users(restored):
    """A native program with Python numbers may divide by zero as Python does."""

    def function(x):
        n = int(x.sum())
        return x * (7 // n)

    with pytest.raises(ZeroDivisionError):
        ms.jit(function, jit_level="O2")(ms.Tensor([0.0]))


def test_a_plugin_for_a_newer_minor_version_is_told_what_it_lacks(restored):
    major, minor = SEAM_VERSION
    made = type("Toy", (Reference,), {"name": "Toy"})
    registry.register(BackendSpec("Toy", made, priority=None, seam_version=(major, minor + 4)))
    try:
        said = rf"version {major}\.{minor + 4} of the plugin seam.*{major}\.{minor}: what is new"
        with pytest.warns(RuntimeWarning, match=said):
            x = ms.Tensor([1.0], device="Toy")
        assert (x + 1).asnumpy() == 2
    finally:
        registry.unregister("Toy")


def test_every_method_of_a_backend_is_checked_for_being_one():
    """A new optional method is added to the list of those that must be functions."""
    from duograph.backend.plugin_checks import OPTIONAL_METHODS, REQUIRED_METHODS

    methods = {n for n, m in vars(Backend).items() if callable(m) and not n.startswith("_")}
    assert methods == {*REQUIRED_METHODS, *OPTIONAL_METHODS}
