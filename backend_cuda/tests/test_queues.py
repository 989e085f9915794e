"""Streams and events of CUDA devices, on an emulated driver that runs work as late as it may."""

from __future__ import annotations

import gc
import threading
import types

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops, runtime
from duograph.backend import registry
from duograph.backend.protocol import BackendSpec
from duograph.conformance import oracle, test_transfers
from duograph.types import Device
from duograph_cuda import queues as queues_module
from duograph_cuda.driver import Driver
from duograph_cuda.emulation.backend import CudaEmulated
from duograph_cuda.emulation.compiler import HostCompiler, command
from duograph_cuda.emulation.driver import EmulatedDriver

pytestmark = pytest.mark.skipif(command() is None, reason="there is no C++ compiler")

CASES = [n for n in vars(test_transfers) if n.startswith("test_")]
N = 4096


class Caching(CudaEmulated):
    """An emulated device that uses freed memory again at once."""

    name = "Caching"

    def driver(self):
        if self._driver is None:
            self._driver = Driver(EmulatedDriver(HostCompiler(), limit=1 << 28), caching=True)
        return self._driver


@pytest.fixture
def device():
    """Fixture: a new device, which is the current one of this thread."""
    made = Caching()
    registry.register(BackendSpec("Caching", lambda: made, priority=None))
    with ms.placement.thread_device(Device("Caching")):
        yield made.device(0)
    registry.unregister("Caching")


def session_of(device):
    return types.SimpleNamespace(
        name="Caching",
        backend=registry.backend("Caching"),
        device=Device("Caching"),
        dtypes=(ms.int32, ms.bfloat16, ms.float32),
    )


@pytest.mark.parametrize("name", CASES)
def test_conformance_cases_with_memory_that_is_used_again(name, device):
    oracle.install()
    runtime.Stream()
    vars(test_transfers)[name](session_of(device))


def work(x, steps=5):
    for _ in range(steps):
        x = x * 2 - x + 1
    return x


def overlapping():
    """Return the largest error of results of two streams that free and allocate in turn."""
    a, b = runtime.Stream(), runtime.Stream()
    x = Tensor(np.zeros(N, np.float32), device="Caching")
    found = []
    for k in range(8):
        with runtime.StreamCtx(a):
            found.append(work(x + k))
        with runtime.StreamCtx(b):
            found.append(work(x + k) * 1)
    want = np.repeat(np.arange(8) + 5, 2)
    return max(abs(y.asnumpy() - w).max() for y, w in zip(found, want))


def test_freed_memory_waits_for_the_other_streams(device):
    for k in range(5):
        assert overlapping() == 0
        device.synchronize()
        if k == 1:
            kept = device.pool.reserved
    assert device.pool.reserved == kept, "memory is used again after a wait"


def test_the_streams_are_joined_when_much_memory_is_kept(device, monkeypatch):
    monkeypatch.setattr(queues_module, "KEPT", 16 << 10)
    calls = []
    join = queues_module.Queues.join
    monkeypatch.setattr(queues_module.Queues, "join", lambda self: (calls.append(1), join(self))[1])
    x = Tensor(np.zeros(1 << 19, np.float32), device="Caching")
    stream = runtime.Stream()
    with runtime.StreamCtx(stream):
        for _ in range(12):
            x = x + 1
    assert calls
    assert device.pool.reserved < 12 * x.nbytes
    assert (x.asnumpy() == 12).all()


def test_the_emulation_finds_what_is_not_ordered(device, monkeypatch):
    """Without the orders between streams, values are read before they are computed."""
    assert overlapping() == 0
    monkeypatch.setattr(queues_module.Queues, "order", lambda self, first, then: None)
    stream = runtime.Stream()
    x = Tensor(np.ones(N, np.float32), device="Caching")
    with runtime.StreamCtx(stream):
        y = work(x)
    assert not (y.asnumpy() == 6).all()


def test_numbers_that_are_kept_are_there_for_every_stream(device):
    """The Tensor of the number 7.5 is made on one stream, and used by the next one as well."""
    x = Tensor(np.zeros(N, np.float32), device="Caching")
    for _ in range(2):
        with runtime.StreamCtx(runtime.Stream()):
            y = x + 7.5
        assert (y.asnumpy() == 7.5).all()
    y = x + 7.5
    assert (y.asnumpy() == 7.5).all()


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_compiled_programs_follow_the_stream_of_the_caller(level, device):
    function = ms.jit(lambda x, w: (ops.exp(x * 0) * w + x, (w * w).sum()), jit_level=level)
    w = Tensor(np.full(N, 2, np.float32), device="Caching")
    streams = [runtime.Stream(), runtime.Stream(), runtime.default_stream()]
    for k in range(9):
        with runtime.StreamCtx(streams[k % 3]):
            x = Tensor(np.full(N, k, np.float32), device="Caching")
            y, total = function(work(x), w)
            z = y * 2
        assert (z.asnumpy() == 2 * (k + 7)).all()
        assert float(total) == 4 * N


def test_gradients_and_updates_on_a_stream(device):
    net = ms.nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
    optimizer = ms.nn.SGD(net.trainable_params(), 0.1)
    step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()), optimizer)
    x, target = Tensor(np.ones((4, 3), np.float32)), Tensor(np.zeros((4, 2), np.float32))
    with runtime.StreamCtx(runtime.Stream()):
        losses = [float(step(x, target)) for _ in range(4)]
        compiled = ms.jit(step, jit_level="O2")
        losses += [float(compiled(x, target)) for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] == 9


def test_a_wrong_index_on_a_stream(device):
    x = Tensor(np.zeros(5, np.float32), device="Caching")
    wrong = Tensor([7], device="Caching")
    message = "index 7 is out of range for axis 0 of size 5"
    stream = runtime.Stream()
    with runtime.StreamCtx(stream):
        y = ops.gather(x, wrong, 0)
    with pytest.raises(IndexError, match=message):
        y.asnumpy()
    with runtime.StreamCtx(stream):
        ops.gather(x, wrong, 0)
        done = stream.record_event()
    with pytest.raises(IndexError, match=message):
        done.synchronize()
    assert (x.asnumpy() == 0).all()


def test_streams_are_used_again(device):
    first = runtime.Stream()
    handle = first._queue.handle
    del first
    gc.collect()
    again, other = runtime.Stream(), runtime.Stream()
    assert again._queue.handle == handle != other._queue.handle


def test_a_thread_that_ends_leaves_no_stream_to_the_next(device):
    seen = []

    def thread():
        with ms.placement.thread_device(Device("Caching")):
            seen.append(device.stream)
            runtime.set_cur_stream(runtime.Stream())
            (Tensor(np.ones(N, np.float32)) + 1).asnumpy()
            seen.append(device.stream)

    for _ in range(3):
        one = threading.Thread(target=thread)
        one.start()
        one.join()
    assert seen[::2] == [device.main] * 3
    assert device.main not in seen[1::2]


def test_events_that_are_not_reached(device):
    stream = runtime.Stream()
    x = Tensor(np.ones(N, np.float32), device="Caching")
    with runtime.StreamCtx(stream):
        work(x)
        done = stream.record_event()
    assert not done.query()
    assert not stream.query()
    done.synchronize()
    assert done.query()
    stream.synchronize()
    assert stream.query()


def test_dlpack_waits_for_all_streams(device):
    stream = runtime.Stream()
    x = Tensor(np.ones(N, np.float32), device="Caching")
    with runtime.StreamCtx(stream):
        y = work(x)
    z = Tensor.from_dlpack(y) * 2
    assert (z.asnumpy() == 12).all()


def test_a_device_has_one_object_for_its_streams(device):
    """A second one, collected later, would send the launches of its thread to the main stream."""
    backend = registry.backend("Caching")
    found = backend.streams(0)
    x = Tensor(np.zeros(N, np.float32)) + 1
    stream = runtime.Stream()
    assert backend.streams(0) is found
    with runtime.StreamCtx(stream):
        y = x * 2
        gc.collect()
        z = y + 1
        assert device.stream == stream._queue.handle
    assert (z.asnumpy() == 3).all()


def test_a_new_stream_begins_behind_earlier_work(device):
    """Numbers and uploads that earlier calls left on the device are there for it."""
    first = runtime.Stream()
    with runtime.StreamCtx(first):
        x = Tensor(np.full(N, 3.0, np.float32)) + 1
    second = runtime.Stream()
    lists = registry.backend("Caching").driver().module.streams.lists
    assert lists[int(first._queue.handle)], "the sum is queued"
    assert lists[int(second._queue.handle)], "the new stream waits"
    with runtime.StreamCtx(second):
        assert ((x * 2).asnumpy() == 8).all()
