"""Streams and events of a backend that has them, and of those that run all work in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, hal, runtime
from duograph.backend.streams import Streams
from duograph.errors import BackendError
from duograph.placement import device_of, thread_device

pytest.importorskip("duograph_reference", reason="the reference backend is not installed")

from plugins.two_devices import Queued, Queues, Two, registered


@pytest.fixture
def queued() -> Iterator[Queued]:
    with registered(Queued) as made, thread_device(device_of("Queued")):
        assert isinstance(made, Queued)
        yield made


def test_work_goes_to_the_current_stream(queued: Queued) -> None:
    lists = queued.queues[0].lists
    stream = runtime.Stream()
    x = Tensor([1.0], device="Queued")
    y = x + x
    with runtime.StreamCtx(stream):
        assert runtime.current_stream() == hal.current_stream() == stream
        z = x * x
        assert (len(lists[None]), len(lists[stream._queue])) == (1, 1)
    assert runtime.current_stream() == runtime.default_stream()
    assert not stream.query()
    assert not runtime.default_stream().query()
    stream.synchronize()
    assert (z._buf.array[0], y._buf.array[0]) == (1, -1)
    ms.synchronize()
    assert y._buf.array[0] == 2
    assert (y + z).asnumpy() == 3


def test_events_order_the_work_of_two_streams(queued: Queued) -> None:
    for waits in (False, True):
        x, stream = Tensor([1.0], device="Queued"), runtime.Stream()
        y = x + x
        done = runtime.current_stream().record_event()
        if waits:
            stream.wait_event(done)
        with runtime.StreamCtx(stream):
            z = y * y
        assert not done.query()
        stream.synchronize()
        assert z._buf.array[0] == (4 if waits else 1)  # (-1)**2: y was not there yet
        assert done.query() is waits
        done.synchronize()
        assert done.query()
        assert y.asnumpy() == 2


WAITS: dict[str, Callable[[runtime.Stream, runtime.Stream], Any]] = {
    "wait_stream": lambda a, b: b.wait_stream(a),
    "wait_event": lambda a, b: b.wait_event(a.record_event()),
    "Event.wait": lambda a, b: a.record_event().wait(b),
    "a blocking event": lambda a, b: a.record_event(runtime.Event(blocking=True)).wait(b),
    "synchronize": lambda a, b: a.synchronize(),
    "Event.synchronize": lambda a, b: a.record_event().synchronize(),
}


@pytest.mark.parametrize("name", WAITS)
def test_ways_to_wait(name: str, queued: Queued) -> None:
    a, b = runtime.Stream(), runtime.Stream()
    x = Tensor([3.0], device="Queued")
    with runtime.StreamCtx(a):
        y = x + x
    WAITS[name](a, b)
    with runtime.StreamCtx(b):
        z = y * y
    b.synchronize()
    assert z._buf.array[0] == 36


def test_an_event_that_is_not_recorded_is_not_waited_for(queued: Queued) -> None:
    event = runtime.Event()
    event.wait()
    runtime.Stream().wait_event(event)
    event.synchronize()
    assert event.query()


def test_events_have_times(queued: Queued) -> None:
    begin, end = (runtime.Event(enable_timing=True) for _ in range(2))
    begin.record()
    x = Tensor([1.0], device="Queued")
    for _ in range(20):
        x = x + x
    end.record()
    assert not end.query()
    assert 0 < begin.elapsed_time(end) < 60_000
    untimed = runtime.Event()
    untimed.record()
    for pair in ((begin, untimed), (untimed, end), (begin, runtime.Event(enable_timing=True))):
        with pytest.raises(RuntimeError, match="without a time"):
            pair[0].elapsed_time(pair[1])
    with thread_device(device_of("Queued:1")):
        other = runtime.Event(enable_timing=True)
        other.record()
    with pytest.raises(RuntimeError, match="events of Queued:0 and Queued:1"):
        begin.elapsed_time(other)


def test_streams_belong_to_a_device(queued: Queued) -> None:
    """An event of one device is waited for before work of another goes on."""
    x = Tensor([1.0], device="Queued")
    y = x + x
    done = runtime.current_stream().record_event()
    with thread_device(device_of("Queued:1")):
        there = runtime.Stream()
        assert (there.device_name, there.device_id) == ("Queued", 1)
        there.wait_event(done)
        assert done.query()
        assert y._buf.array[0] == 2
        with runtime.StreamCtx(there):
            z = Tensor([1.0], device="Queued:1") + 1
    assert len(queued.queues[1].lists[there._queue]) == 1
    assert z.asnumpy() == 2


def test_each_thread_has_its_own_current_stream(queued: Queued) -> None:
    stream, seen = runtime.Stream(), []

    def work() -> None:
        with thread_device(device_of("Queued")):
            seen.append(runtime.current_stream())
            runtime.set_cur_stream(runtime.Stream())
            seen.append(runtime.current_stream())

    runtime.set_cur_stream(stream)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert runtime.current_stream() == stream
        assert seen[0] == runtime.default_stream()
        assert seen[1] not in (stream, runtime.default_stream())
    finally:
        runtime.set_cur_stream(runtime.default_stream())
    assert queued.queues[0].local.stream is None


def test_contexts_nest(queued: Queued) -> None:
    a, b = runtime.Stream(), runtime.Stream()
    with pytest.raises(KeyError), runtime.StreamCtx(a):
        with runtime.StreamCtx(b), runtime.StreamCtx(None):
            assert runtime.current_stream() == b
            assert queued.queues[0].local.stream == b._queue
        assert queued.queues[0].local.stream == a._queue
        raise KeyError
    assert runtime.current_stream() == runtime.default_stream()
    assert queued.queues[0].local.stream is None


def test_streams_have_numbers(queued: Queued) -> None:
    stream = runtime.Stream()
    again = runtime.Stream(stream_id=stream.id)
    assert (again, again._queue) == (stream, stream._queue)
    assert queued.counts["new_stream"] == 1
    with pytest.raises(ValueError, match="stream_id=123456, and Queued:0 has no such stream"):
        runtime.Stream(stream_id=123456)


def test_compiled_functions_and_gradients_run_on_the_current_stream(queued: Queued) -> None:
    x, stream = Tensor([1.0, 2.0], device="Queued"), runtime.Stream()
    plain = ms.jit(lambda v: (v * v + v).sum())
    with runtime.StreamCtx(stream):
        found = plain(x)
        gradient = ms.grad(lambda v: (v * v).sum())(x)
        assert not queued.queues[0].lists[None]
    assert found.asnumpy() == 8
    np.testing.assert_array_equal(gradient.asnumpy(), [2, 4])


# ---- backends without streams, and broken ones --------------------------------------------------


def test_without_streams_all_work_runs_in_order() -> None:
    with registered(Two) as two, thread_device(device_of("Two")):
        waited = []
        two.synchronize = waited.append
        stream, begin, end = runtime.Stream(), *(runtime.Event(True) for _ in range(2))
        begin.record()
        with runtime.StreamCtx(stream):
            y = Tensor([1.0], device="Two") + 1
        end.record(stream)
        stream.wait_event(begin)
        stream.wait_stream(runtime.default_stream())
        assert begin.elapsed_time(end) >= 0
        assert len(waited) == 2
        assert end.query() and stream.query()
        assert len(waited) == 4
        assert y.asnumpy() == 2


def raising(*arguments: Any) -> Any:
    raise OSError("bus")


BROKEN: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {
    "streams": ({"streams": raising}, runtime.Stream),
    "new_stream": ({"new_stream": raising}, runtime.Stream),
    "use_stream": (
        {"use_stream": raising}, lambda: runtime.set_cur_stream(runtime.Stream())
    ),
    "synchronize_stream": (
        {"synchronize_stream": raising}, lambda: runtime.Stream().synchronize()
    ),
    "query_stream": ({"query_stream": raising}, lambda: runtime.Stream().query()),
    "record_event": ({"record_event": raising}, lambda: runtime.Event().record()),
    "wait_event": (
        {"wait_event": raising}, lambda: runtime.Stream().wait_stream(runtime.Stream())
    ),
    "query_event": (
        {"query_event": raising}, lambda: runtime.Stream().record_event().query()
    ),
    "synchronize_event": (
        {"synchronize_event": raising}, lambda: runtime.Stream().record_event().synchronize()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_failures_are_named(name: str) -> None:
    members, use = BROKEN[name]
    own = {k: v for k, v in members.items() if k == "streams"}
    with registered(Queued, **own) as made, thread_device(device_of("Queued")):
        for method, function in members.items():
            if method != "streams":
                setattr(made.queues[0], method, function)
        with pytest.raises(BackendError, match=r"Queued: streams\(\) raised OSError: bus"):
            use()


@pytest.mark.parametrize("found", [3, Queues, "none"])
def test_streams_that_are_none(found: object) -> None:
    wanted = r"streams\(\) returned .*; wanted a Streams or None"
    with (
        registered(Queued, streams=lambda self, d: found),
        thread_device(device_of("Queued")),
        pytest.raises(BackendError, match=wanted),
    ):
        runtime.Stream()


def test_a_method_that_a_backend_left_out_is_named() -> None:
    with (
        registered(Queued, streams=lambda self, d: Streams()),
        thread_device(device_of("Queued")),
        pytest.raises(BackendError, match=r"Streams: has no new_stream\(\)"),
    ):
        runtime.Stream()
