"""Copies between CUDA devices, late copies to the host, and DLPack, on the emulated driver."""

from __future__ import annotations

import gc
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops
from duograph.backend import registry
from duograph.backend.dlpack import array_at, capsule_of
from duograph.backend.protocol import BackendSpec
from duograph.errors import DeviceMemoryError
from duograph_cuda.driver import Driver
from duograph_cuda.emulation.backend import CudaEmulated
from duograph_cuda.emulation.compiler import HostCompiler, command
from duograph_cuda.emulation.driver import EmulatedDriver

pytestmark = pytest.mark.skipif(command() is None, reason="there is no C++ compiler")

A = np.arange(24, dtype=np.float32).reshape(4, 6)
KIND = CudaEmulated.dlpack_kinds[0]


class Pair(CudaEmulated):
    """Two emulated devices whose driver notes the calls."""

    name = "Pair"

    def driver(self):
        if self._driver is None:
            made = EmulatedDriver(HostCompiler(), limit=1 << 24, devices=2)
            self.calls = []

            class Noting:
                def __getattr__(_, name):
                    found = getattr(made, name)
                    if not name.startswith("cu"):
                        return found

                    def call(*arguments):
                        self.calls.append((name, arguments))
                        return found(*arguments)

                    return call

            self._driver = Driver(Noting(), caching=False)
        return self._driver

    def names(self):
        return [name for name, _ in self.calls]


@pytest.fixture(scope="module")
def pair():
    made = Pair()
    registry.register(BackendSpec("Pair", lambda: made, priority=None))
    with ms.placement.thread_device(ms.types.Device("Pair")):
        yield made
    registry.unregister("Pair")


def on(device, array=A):
    return Tensor(array, device=device)


def test_devices_copy_without_the_host(pair):
    x = on("Pair:0") + 0
    pair.calls.clear()
    y = x.move_to("Pair:1")
    z = x.move_to("Pair:0")
    assert [n for n in pair.names() if "Memcpy" in n] == ["cuMemcpyPeerAsync", "cuMemcpyDtoDAsync"]
    peer = dict(pair.calls)["cuMemcpyPeerAsync"]
    assert peer[1] != peer[3], "each device has its context"
    waits = [n for n in pair.names() if n in ("cuStreamWaitEvent", "cuMemcpyPeerAsync")]
    assert waits == ["cuStreamWaitEvent", "cuMemcpyPeerAsync", "cuStreamWaitEvent"]
    assert pair.names().count("cuEventCreate") == pair.names().count("cuEventDestroy")
    for made, device in ((y, "Pair:1"), (z, "Pair:0")):
        assert made.device == device
        np.testing.assert_array_equal((made * 2).asnumpy(), 2 * A)
    assert on("Pair:0", A[:0]).move_to("Pair:1").shape == (0, 6)


def test_a_device_without_memory_says_so(pair):
    x = on("Pair:0", np.zeros(3 << 20, np.float32))
    with pytest.raises(DeviceMemoryError, match="copy_between: no memory for 12582912 bytes"):
        x.move_to("Pair:1")


def test_late_copies_use_page_locked_memory_again(pair):
    x = on("Pair:0") + 0
    staging = pair.device(0).staging
    x.move_to("CPU", blocking=False).asnumpy()
    total = staging.total
    pair.calls.clear()
    y = x.move_to("CPU", blocking=False)
    assert "cuStreamSynchronize" not in pair.names()
    assert "cuEventRecord" in pair.names()
    dropped = x.move_to("CPU", blocking=False)
    del dropped
    np.testing.assert_array_equal(y.asnumpy(), A)
    np.testing.assert_array_equal(x.move_to("CPU", blocking=False).asnumpy(), A)
    gc.collect()
    assert staging.total <= 2 * total


def test_a_wrong_index_is_reported_by_a_late_copy(pair):
    x, wrong = on("Pair:0"), on("Pair:0", np.array([9]))
    y = ops.gather(x, wrong, 0).move_to("CPU", blocking=False)
    with pytest.raises(IndexError, match="index 9 is out of range for axis 0 of size 4"):
        y.asnumpy()


# ---- DLPack -------------------------------------------------------------------------------------


class Foreign:
    """An array of another library over device memory."""

    def __init__(self, x, view=lambda a: a):
        array = array_at(x._buf.pointer, x.shape, x.dtype.np, x)
        self.array = view(array)

    def __dlpack_device__(self):
        return KIND, 0

    def __dlpack__(self, stream=None, max_version=None):
        self.stream = stream
        return capsule_of(self.array, (KIND, 0), max_version)


VIEWS = {
    "dense": lambda a: a,
    "transposed": lambda a: a.T,
    "every second": lambda a: a[:, ::2],
    "backwards": lambda a: a[::-1, ::-2],
    "not aligned": lambda a: a.reshape(-1)[1:],
    "one row": lambda a: a[2],
    "a number": lambda a: a[3:, 5:].reshape(()),
    "no elements": lambda a: a[:, :0],
    "repeated": lambda a: np.lib.stride_tricks.as_strided(a, (3, 6), (0, 4)),
}


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_memory_of_other_libraries(name, copy, pair):
    view = VIEWS[name]
    for dtype in (ms.float32, ms.bfloat16, ms.int8):
        values = A.astype(dtype.np)
        foreign = Foreign(on("Pair:0", values), view)
        handle, shape, found = pair.from_dlpack(foreign, 0, copy)
        assert foreign.stream == pair.device(0).stream
        want = view(values)
        assert (shape, found) == (want.shape, want.dtype)
        y = Tensor._make(ms.types.TensorType.of(shape, dtype).on(ms.types.Device("Pair")), handle)
        np.testing.assert_array_equal((y + Tensor(0, dtype)).asnumpy(), want)
        if want.size:
            shares = handle.pointer == foreign.array.ctypes.data
            assert shares is (name == "dense" and not copy)


def test_memory_of_another_device_is_refused(pair):
    foreign = Foreign(on("Pair:0"))
    assert pair.from_dlpack(foreign, 1, False) is None
    foreign.__class__.__dlpack_device__ = lambda self: (1, 0)
    assert pair.from_dlpack(foreign, 0, False) is None
    foreign.__class__.__dlpack_device__ = lambda self: (KIND, 0)


def test_borrowed_memory_goes_back_after_the_work_that_reads_it(pair):
    device = pair.device(0)
    device.synchronize()
    foreign = Foreign(on("Pair:0"))
    y = Tensor.from_dlpack(foreign)
    z = y * 3
    del y
    assert len(device.borrowed) == 1, "the kernel may still run"
    np.testing.assert_array_equal(z.asnumpy(), 3 * A)
    assert not device.borrowed


def test_lent_memory_is_reused_after_the_work_of_the_consumer(pair):
    device = pair.device(0)
    x = on("Pair:0") + 0
    used = device.pool.in_use
    pair.calls.clear()
    y = Tensor.from_dlpack(x.__dlpack__(stream=0x77))
    waited = [a for n, a in pair.calls if n == "cuStreamWaitEvent"]
    assert [a[0] for a in waited] == [0x77], "the consumer's stream waits for the value"
    del x
    gc.collect()
    assert device.pool.in_use == used
    np.testing.assert_array_equal((y * 1).asnumpy(), A)
    pair.calls.clear()
    del y
    gc.collect()
    device.synchronize()
    device.synchronize()
    recorded = [a[1] for n, a in pair.calls if n == "cuEventRecord"]
    waited = [a[0] for n, a in pair.calls if n == "cuStreamWaitEvent"]
    assert (recorded, waited) == ([0x77], [device.stream])
    assert device.pool.in_use < used


def test_streams_that_the_protocol_does_not_know(pair):
    x = on("Pair:0")
    for stream in (0, -2, 1.5, "default"):
        with pytest.raises(ValueError, match="got stream="):
            x.__dlpack__(stream=stream)
    pair.calls.clear()
    x.__dlpack__(stream=-1)
    assert "cuStreamWaitEvent" not in pair.names()
    x.__dlpack__()
    assert dict(pair.calls)["cuStreamWaitEvent"][0] == 1


def test_a_stream_that_is_gone_at_the_end(pair):
    device = pair.device(0)
    x = on("Pair:0") + 0
    capsule = x.__dlpack__(stream=0x99)
    real = pair.driver().module.cuEventRecord
    with pytest.MonkeyPatch.context() as patch:
        del x, capsule
        gc.collect()
        module = pair.driver().module
        patch.setattr(
            type(module),
            "cuEventRecord",
            lambda self, event, stream: (1,) if stream == 0x99 else real(event, stream),
            raising=False,
        )
        pair.calls.clear()
        device.take_back()
    assert "cuCtxSynchronize" in pair.names()
    assert not device.returned


def test_results_of_a_captured_program_keep_what_was_exported(pair):
    """Its buffers are written again by the next call."""

    @ms.jit(jit_level="O2")
    def program(x, y):
        return ops.exp(x) * y, x + y

    y = on("Pair:0") * 0 + 2
    exported = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(8):
            first, second = program(on("Pair:0", np.full_like(A, k)), y)
            exported.append(Tensor.from_dlpack(first))
            np.testing.assert_array_equal(second.asnumpy(), k + 2)
    for k, made in enumerate(exported):
        np.testing.assert_allclose(made.asnumpy(), 2 * np.exp(np.float32(k)), rtol=1e-6)


def test_states_of_a_captured_program_keep_what_was_exported(pair):
    net = ms.nn.Dense(3, 2)
    optimizer = ms.nn.SGD(net.trainable_params(), 0.1)
    step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()), optimizer)
    compiled = ms.jit(step, jit_level="O2")
    x, target = Tensor(np.ones((4, 3), np.float32)), Tensor(np.zeros((4, 2), np.float32))
    seen = []
    for _ in range(6):
        compiled(x, target)
        seen.append((Tensor.from_dlpack(net.weight), net.weight.asnumpy().copy()))
    for exported, values in seen:
        np.testing.assert_array_equal(exported.asnumpy(), values)
