"""Tests of copies between devices, DLPack and streams.

pytest runs them with the conformance suite; a test is skipped if the backend lacks the optional
methods.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import duograph as ms
from duograph.backend import registry
from duograph.backend.dlpack import HOST
from duograph.backend.protocol import Backend
from duograph.dtype import STORAGE, DType
from duograph.placement import device_of, thread_device
from duograph.tensor import Tensor
from duograph.types import Device

from . import oracle

SHAPES = ((), (0, 3), (5, 7))


def _need(session, *methods: str) -> None:
    """Skip the test unless the backend defines the given optional methods."""
    lacks = [m for m in methods if getattr(type(session.backend), m) is getattr(Backend, m)]
    if lacks:
        pytest.skip(f"{session.name} has no {lacks[0]}()")


def _need_dlpack(session) -> None:
    _need(session, "dlpack_device", "to_dlpack", "from_dlpack")
    if session.backend.dlpack_device(session.device.index) is None:
        pytest.skip(f"{session.name}: dlpack_device() returned None")


def _values(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 7).reshape(shape).astype(dtype.np)


def _cases(session) -> list[tuple[np.ndarray, Tensor]]:
    """Return (array, Tensor with the same values) for several shapes and all dtypes of the device.

    The Tensors are results of a kernel rather than copies from the host, if the dtype supports
    addition.
    """
    made = []
    for dtype in session.dtypes:
        for shape in SHAPES:
            array = _values(shape, dtype)
            x = Tensor(array, device=repr(session.device))
            adds = dtype is not ms.bool_ and dtype not in STORAGE
            made.append((array, x + Tensor(0, dtype) if adds else x))
    return made


def _devices(session) -> list[str]:
    return [repr(Device(session.name, d.index)) for d in session.backend.devices()]


def test_copies_between_devices(session):
    _need(session, "copy_between")
    own = session.device.index
    for array, x in _cases(session):
        for device in _devices(session):
            y = x.move_to(device)
            np.testing.assert_array_equal(y.asnumpy(), array)
            np.testing.assert_array_equal(y.move_to(repr(session.device)).asnumpy(), array)
    x = Tensor([1.0, 2.0], device=repr(session.device))
    made = session.backend.copy_between(x._buf, x.shape, x.dtype.np, own, own)
    if made is None:
        pytest.skip(f"{session.name}: copy_between() returned None")
    assert made is not x._buf


def test_gradients_pass_copies_between_devices(session):
    _need(session, "copy_between")
    x = Tensor([1.0, 2.0])
    for device in _devices(session):
        moved = ms.grad(lambda v, d=device: ((v * v).move_to(d) * 3).sum())(x)
        assert moved.device == x.device
        np.testing.assert_array_equal(moved.asnumpy(), [6.0, 12.0])


def test_copies_to_the_host_that_are_not_awaited(session):
    _need(session, "copy_out_async")
    taken = registry.backend(oracle.NAME).dtypes  # which lack those that only store values
    cases = [(array, x) for array, x in _cases(session) if x.dtype in taken]
    moved = [(array, x.move_to(oracle.NAME, blocking=False)) for array, x in cases]
    for array, y in moved:
        assert y.device == f"{oracle.NAME}:0"
        np.testing.assert_array_equal(y.asnumpy(), array)
    x = Tensor(np.ones(1000, np.float32))
    for k in range(20):  # the memory of a copied value is not used again too early
        x = x + 1
        later = (x * 1).move_to(oracle.NAME, blocking=False)
        y = x * -1
        assert (later.asnumpy() == k + 2).all()
    assert (y.asnumpy() == -21).all()


def test_dlpack_shares_memory(session):
    _need_dlpack(session)
    where = session.backend.dlpack_device(session.device.index)
    for array, x in _cases(session):
        assert x.__dlpack_device__() == where
        try:
            capsule = session.backend.to_dlpack(
                x._buf, x.shape, x.dtype.np, session.device.index, None, None
            )
        except BufferError:
            continue  # of this dtype the values are copied
        y = Tensor.from_dlpack(capsule)
        np.testing.assert_array_equal(y.asnumpy(), array)
        assert (y.dtype, y.shape) == (x.dtype, x.shape)
        copy = Tensor.from_dlpack(x.__dlpack__(copy=True))
        np.testing.assert_array_equal(copy.asnumpy(), array)
        del x, capsule  # the new Tensor keeps the memory
        for _ in range(3):
            Tensor(np.full(array.shape, 1), y.dtype, device=repr(session.device))
        np.testing.assert_array_equal(y.asnumpy(), array)


def test_dlpack_copies_to_the_host(session):
    _need_dlpack(session)
    for array, x in _cases(session):
        if x.dtype in STORAGE:
            with pytest.raises(BufferError, match=r"x\.astype"):
                x.__dlpack__(dl_device=HOST, copy=True)
            continue
        host = Tensor.from_dlpack(x.__dlpack__(dl_device=HOST, copy=True))
        np.testing.assert_array_equal(host.asnumpy(), array)


def test_dlpack_imports(session):
    """Test that other libraries' memory, dense or strided, can be imported and is kept alive."""
    _need_dlpack(session)
    index = session.device.index
    if session.backend.dlpack_device(index) == HOST:
        for array in (_values((4, 6), ms.float32), np.array(3.0, np.float32)):
            for view in (array, array.T, array[..., ::2] if array.ndim else array):
                for copy in (False, True):
                    found = session.backend.from_dlpack(view, index, copy)
                    handle, shape, dtype = found
                    assert (shape, dtype) == (view.shape, view.dtype)
                    seen = session.backend.copy_out(handle, shape, dtype, index)
                    np.testing.assert_array_equal(seen, view)
    x = Tensor(_values((4, 6), ms.float32), device=repr(session.device))
    for copy in (False, True):
        handle, shape, dtype = session.backend.from_dlpack(x, index, copy)
        y = Tensor._make(x._type, handle)
        assert (shape, dtype) == (x.shape, x.dtype.np)
        np.testing.assert_array_equal((y * 2).asnumpy(), 2 * x.asnumpy())


# ---- streams ------------------------------------------------------------------------------------


def _need_streams(session) -> None:
    _need(session, "streams")
    if session.backend.streams(session.device.index) is None:
        pytest.skip(f"{session.name}: streams() returned None")


def _work(x: Tensor, steps: int = 6) -> Tensor:
    for _ in range(steps):
        x = x * 2 - x + 1
    return x


def test_events_order_streams(session):
    _need_streams(session)
    a, b = ms.runtime.Stream(), ms.runtime.Stream()
    x = Tensor(np.zeros((64, 64), np.float32), device=repr(session.device))
    for k in range(10):
        with ms.runtime.StreamCtx(a):
            y = _work(x + k)
            done = a.record_event()
        b.wait_event(done)
        with ms.runtime.StreamCtx(b):
            z = _work(y)
        ms.runtime.current_stream().wait_stream(b)
        assert ((z * 1).asnumpy() == k + 12).all()
    assert ms.runtime.current_stream() == ms.runtime.default_stream()


def test_streams_and_events_are_awaited(session):
    _need_streams(session)
    stream = ms.runtime.Stream()
    begin, end = (ms.runtime.Event(enable_timing=True) for _ in range(2))
    with ms.runtime.StreamCtx(stream):
        begin.record()
        x = _work(ms.ops.zeros((32, 32)))
        end.record()
    end.synchronize()
    assert begin.query()
    assert end.query()
    assert begin.elapsed_time(end) >= 0
    stream.synchronize()
    assert stream.query()
    assert (x.asnumpy() == 6).all()
    stream.wait_event(ms.runtime.Event())  # was not recorded


def test_a_value_is_read_from_any_stream(session):
    """Test that a copy to the host waits for the value, whatever the current stream is."""
    _need_streams(session)
    stream = ms.runtime.Stream()
    x = Tensor(np.zeros((64, 64), np.float32), device=repr(session.device))
    for k in range(5):
        with ms.runtime.StreamCtx(stream):
            y = _work(x + k)
        assert (y.asnumpy() == k + 6).all()


def test_memory_is_not_reused_across_streams_too_early(session):
    _need_streams(session)
    a, b = ms.runtime.Stream(), ms.runtime.Stream()
    x = Tensor(np.zeros((128, 128), np.float32), device=repr(session.device))
    found = []
    for k in range(12):
        with ms.runtime.StreamCtx(a if k % 2 else b):
            found.append(_work(x + k).sum())  # the values between are freed at once
        with ms.runtime.StreamCtx(b if k % 2 else a):
            _work(x - 1000)
    for k, y in enumerate(found):
        assert float(y) == 128 * 128 * (k + 6)


def test_threads_have_streams_of_their_own(session):
    _need_streams(session)

    def work(k: int) -> float:
        device = thread_device(device_of(repr(session.device)))
        with device, ms.runtime.StreamCtx(ms.runtime.Stream()):
            return float(_work(Tensor(np.full((17, 5), k, np.float32))).sum())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(12))) == [85.0 * (k + 6) for k in range(12)]


def test_gradients_and_compiled_functions_on_a_stream(session):
    _need_streams(session)
    x, stream = Tensor([1.0, 2.0]), ms.runtime.Stream()
    x + 0
    function = ms.jit(lambda v: (v * v).sum())
    ms.synchronize()
    with ms.runtime.StreamCtx(stream):
        for _ in range(3):
            assert float(function(x)) == 5
        np.testing.assert_array_equal(ms.grad(function)(x).asnumpy(), [2.0, 4.0])
