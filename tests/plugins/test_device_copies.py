"""Copies between devices without the host, and DLPack of device memory."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, ops
from duograph.backend.dlpack import device_of
from duograph.errors import BackendError, DeviceError, DeviceMemoryError, DTypeError

pytest.importorskip("duograph_reference", reason="the reference backend is not installed")

from plugins.two_devices import KIND, Held, Two, registered

A = np.arange(6, dtype=np.float32).reshape(2, 3)


class Other(Two):
    """The same devices under another name; memory of one is memory of the other."""

    name = "Other"


@pytest.fixture
def two() -> Iterator[Two]:
    with registered() as made:
        yield made


@pytest.fixture
def other() -> Iterator[Two]:
    with registered(Other) as made:
        yield made


def host_copies(*backends: Two) -> int:
    return sum(b.counts[what] for b in backends for what in ("in", "out", "started"))


def on(device: str, array: Any = A) -> Tensor:
    return Tensor(array, device=device)


# ---- moves --------------------------------------------------------------------------------------

MOVES: dict[str, tuple[Callable[[Tensor], Tensor], str, int]] = {
    "move_to": (lambda x: x.move_to("Two:1"), "Two:1", 1),
    "move_to its own device": (lambda x: x.move_to("Two:0"), "Two:0", 1),
    "not blocking": (lambda x: x.move_to("Two:1", blocking=False), "Two:1", 1),
    "to": (lambda x: x.to("Two:1"), "Two:1", 1),
    "to, not blocking": (lambda x: x.to("Two:1", non_blocking=True), "Two:1", 1),
    "to its own device": (lambda x: x.to("Two:0"), "Two:0", 0),
    "there and back": (lambda x: x.move_to("Two:1").move_to("Two"), "Two:0", 2),
    "a reshape": (lambda x: x.reshape(3, 2).move_to("Two:1").reshape(2, 3), "Two:1", 1),
    "no elements": (lambda x: ops.concat((x[:0].move_to("Two:1"), x.to("Two:1"))), "Two:1", 2),
    "compiled, line by line": (
        ms.jit(lambda x: (x + x).move_to("Two:1").reshape(3, 2).reshape(2, 3)), "Two:1", 1
    ),
    "a Parameter": (lambda x: Parameter(x).move_to("Two:1"), "Two:1", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_moves_do_not_pass_the_host(name: str, two: Two) -> None:
    function, device, copies = MOVES[name]
    x = on("Two:0")
    two.counts.clear()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*runs line by line")
        y = function(x)
    assert (y.device, host_copies(two), two.counts["between"]) == (device, 0, copies)
    want = A + A if "compiled" in name else A
    np.testing.assert_array_equal(y.asnumpy(), want)
    np.testing.assert_array_equal((y + 1).asnumpy(), want + 1)


def test_a_copy_has_memory_of_its_own(two: Two) -> None:
    x = on("Two:0")
    y = x.move_to("Two:0")
    y._buf.array[:] = 7
    np.testing.assert_array_equal(x.asnumpy(), A)


def test_gradients_take_the_same_way(two: Two) -> None:
    x = on("Two:0")
    two.counts.clear()
    gradient = ms.grad(lambda x: ((x * x).move_to("Two:1") * 3).sum())(x)
    assert gradient.device == "Two:0"
    assert two.counts["between"] == 2
    assert two.counts["out"] == 0  # the constants go in
    np.testing.assert_array_equal(gradient.asnumpy(), 6 * A)
    second = ms.grad(
        lambda x: ms.grad(lambda x: (x**3).move_to("Two:1").sum())(x).move_to("Two:1").sum()
    )
    np.testing.assert_allclose(second(x).asnumpy(), 6 * A)


def test_two_backends_exchange_memory_by_dlpack(two: Two, other: Two) -> None:
    x = on("Two:1")
    two.counts.clear()
    y = x.move_to("Other:0")
    assert (y.device, host_copies(two, other)) == ("Other:0", 0)
    assert (two.counts["exported"], other.counts["imported"]) == (1, 1)
    y._buf.array[:] = 7
    np.testing.assert_array_equal(x.asnumpy(), A)
    gradient = ms.grad(lambda x: ((x * x).move_to("Other") * 3).sum())(x)
    np.testing.assert_array_equal(gradient.asnumpy(), 6 * A)


def refusing(self: Any, *arguments: Any) -> Any:
    raise BufferError("not this memory")


WITHOUT: dict[str, tuple[dict[str, Any], str]] = {
    "copy_between": ({"copy_between": lambda self, *a: None}, "Two:1"),
    "dlpack_device": ({"dlpack_device": lambda self, d: None}, "Other"),
    "from_dlpack": ({"to_dlpack": refusing}, "Other"),
    "to another kind of memory": ({}, "Reference"),
    "to the CPU": ({}, "CPU"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_other_moves_pass_the_host(name: str, other: Two) -> None:
    members, device = WITHOUT[name]
    with registered(**members) as two:
        x = on("Two:0")
        two.counts.clear()
        y = x.move_to(device)
        assert two.counts["out"] == 1
        np.testing.assert_array_equal((y + 1).asnumpy(), A + 1)


def test_moves_in_threads(two: Two) -> None:
    def work(k: int) -> float:
        x = on("Two:0", np.full((17, k + 1), k, np.float32))
        for _ in range(10):
            x = (x.move_to("Two:1") + 1).move_to("Two:0")
        return float(x.sum())

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(12)))
    assert found == [17.0 * (k + 1) * (k + 10) for k in range(12)]
    assert two.counts["between"] == 12 * 20


def raising(error: Exception) -> Callable[..., Any]:
    def method(*arguments: Any) -> Any:
        raise error

    return method


FAILURES: dict[str, tuple[dict[str, Any], str, type[Exception], str]] = {
    "copy_between raises": (
        {"copy_between": raising(KeyError("bus"))}, "Two:1", BackendError,
        r"Two: copy_between\(\) raised KeyError",
    ),
    "copy_between has no memory": (
        {"copy_between": raising(DeviceMemoryError("full"))}, "Two:1", MemoryError, "^full\n",
    ),
    "copy_between returns its operand": (
        {"copy_between": lambda self, handle, *a: handle}, "Two:0", BackendError,
        r"copy_between\(\) returned the handle that it was to copy",
    ),
    "copy_between returns too little": (
        {"copy_between": lambda self, *a: Held(np.zeros(2, np.float32), a[-1])}, "Two:1",
        BackendError, r"copy_between\(\) returned memory of 8 bytes; wanted 24",
    ),
    "no such device": ({}, "Two:2", DeviceError, "got 2 for Two"),
    "dlpack_device raises": (
        {"dlpack_device": raising(OSError("bus"))}, "Other", BackendError,
        r"Two: dlpack_device\(\) raised OSError: bus",
    ),
    "dlpack_device returns a number": (
        {"dlpack_device": lambda self, d: 2}, "Other", BackendError, "returned 2; wanted DLPack's",
    ),
    "to_dlpack raises": (
        {"to_dlpack": raising(OSError("bus"))}, "Other", BackendError,
        r"Two: to_dlpack\(\) raised OSError: bus",
    ),
    "to_dlpack returns no capsule": (
        {"to_dlpack": lambda self, *a: 3}, "Other", TypeError, "got 3; wanted .* DLPack capsule",
    ),
}  # fmt: skip
IMPORTS: dict[str, tuple[Callable[..., Any], str]] = {
    "raises": (raising(OSError("bus")), r"Other: from_dlpack\(\) raised OSError: bus"),
    "returns a handle alone": (lambda self, *a: Held(A, 0), "wanted a handle, a shape"),
    "returns no handle": (lambda self, *a: (None, (2, 3), A.dtype), "wanted a handle, a shape"),
    "returns a list": (lambda self, *a: (Held(A, 0), [2, 3], A.dtype), "wanted a handle, a shape"),
    "returns a name": (lambda self, *a: (Held(A, 0), (2, 3), "f4"), "wanted a handle, a shape"),
    "returns another dtype": (
        lambda self, *a: (Held(A, 0), (2, 3), np.dtype("i4")), r"returned int32\[2, 3\] for float32"
    ),
    "returns another shape": (
        lambda self, *a: (Held(A, 0), (3, 2), A.dtype), r"returned float32\[3, 2\] for float32\[2"
    ),
    "returns too little": (
        lambda self, *a: (Held(A[:1], 0), (2, 3), A.dtype), "returned memory of 12 bytes; wanted 24"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_named(name: str, other: Two) -> None:
    members, device, error, text = FAILURES[name]
    with registered(**members):
        x = on("Two:0")
        with pytest.raises(error, match=text):
            x.move_to(device)


@pytest.mark.parametrize("name", IMPORTS)
def test_failures_of_imports_are_named(name: str, two: Two) -> None:
    method, text = IMPORTS[name]
    with registered(Other, from_dlpack=method):
        x = on("Two:0")
        with pytest.raises(BackendError, match=text):
            x.move_to("Other")


def test_a_dtype_that_the_target_lacks() -> None:
    with registered() as two, registered(Other, dtypes=(ms.float32,)):
        x = on("Two:0", np.arange(3))
        for blocking in (True, False):
            with pytest.raises(DTypeError, match=r"Other:0: got a int64 tensor; .* float32"):
                x.move_to("Other", blocking)
        assert two.counts["out"] == two.counts["started"] == 0


# ---- copies to the host that are not waited for -------------------------------------------------

USES: dict[str, Callable[[Tensor], Any]] = {
    "asnumpy": lambda y: y.asnumpy(),
    "an op": lambda y: (y * 1).asnumpy(),
    "an op with a number": lambda y: (2 * y / 2).asnumpy(),
    "a compiled function": lambda y: ms.jit(lambda v: v * 1)(y).asnumpy(),
    "another move": lambda y: y.move_to("Two:0").asnumpy(),
    "a second move": lambda y: y.move_to("CPU", blocking=False).asnumpy(),
    "to": lambda y: y.to("CPU").asnumpy(),
    "DLPack": lambda y: np.from_dlpack(y),
    "a gradient": lambda y: ms.grad(lambda v: (v * v).sum())(y).asnumpy() / 2,
    "a Parameter": lambda y: Parameter(y).asnumpy(),
    "a write": lambda y: on("CPU", np.zeros_like(A)).add_(y).asnumpy(),
    "data_sync": lambda y: (y.data_sync(), y.asnumpy())[1],
    "init_data": lambda y: y.init_data().asnumpy(),
    "a new Tensor": lambda y: Tensor(y).asnumpy(),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_the_first_use_waits_for_the_values(name: str, two: Two) -> None:
    x = on("Two:0")
    two.counts.clear()
    y = x.move_to("CPU", blocking=False)
    assert (two.counts["started"], two.counts["waited"], two.counts["out"]) == (1, 0, 0)
    assert (y.shape, y.dtype, y.device, y.has_init) == ((2, 3), ms.float32, "CPU:0", False)
    np.testing.assert_array_equal(USES[name](y), A)
    assert two.counts["waited"] == 1
    assert "4." in str(y) and "4." in repr(y)
    assert y.device == (y + 1).device == "CPU:0"
    assert two.counts["waited"] == 1


def test_an_op_runs_where_the_values_were_moved_to(two: Two) -> None:
    """Not on the current device, as an op on host data would."""
    x = on("Two:0")
    with ms.placement.thread_device(ms.placement.device_of("Two:1")):
        y = x.move_to("CPU", blocking=False)
        assert (y + 1).device == "CPU:0"
        z = x.move_to("CPU", blocking=False)
        with pytest.raises(DeviceError, match="got operands on"):
            z + x


def test_the_source_lives_until_the_values_have_arrived(two: Two) -> None:
    x = on("Two:0")
    handle = weakref.ref(x._buf)
    y = x.move_to("CPU", blocking=False)
    del x
    gc.collect()
    assert handle() is not None
    np.testing.assert_array_equal(y.asnumpy(), A)
    gc.collect()
    assert handle() is None


def test_threads_wait_once(two: Two) -> None:
    y = on("Two:0").move_to("CPU", blocking=False)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: float((y + k).sum()), range(8)))
    assert found == [15.0 + 6 * k for k in range(8)]
    assert two.counts["waited"] == 1


LATER: dict[str, tuple[Any, str]] = {
    "raises": (raising(OSError("bus")), r"copy_out_async\(\) raised OSError: bus"),
    "returns an array": (lambda self, *a: A, "wanted a function that waits"),
    "the wait raises": (lambda self, *a: raising(OSError("late")), "raised OSError: late"),
    "the wait returns None": (lambda self, *a: lambda: None, r"returned None; wanted an array"),
    "too few": (lambda self, *a: lambda: A[:1], r"an array of float32\[1, 3\]; wanted"),
    "another dtype": (lambda self, *a: lambda: A.astype(float), r"float64\[2, 3\]; wanted"),
}


@pytest.mark.parametrize("name", LATER)
def test_failures_of_late_copies_are_named(name: str) -> None:
    method, text = LATER[name]
    with registered(copy_out_async=method):
        x = on("Two:0")
        with pytest.raises(BackendError, match=text):
            x.move_to("CPU", blocking=False).asnumpy()


def test_without_late_copies_the_call_waits() -> None:
    with registered(copy_out_async=lambda self, *a: None) as two:
        y = on("Two:0").move_to("CPU", blocking=False)
        assert two.counts["out"] == 1
        np.testing.assert_array_equal(y.asnumpy(), A)


# ---- DLPack -------------------------------------------------------------------------------------


class Foreign:
    """An array of another library on a device."""

    def __init__(self, array: np.ndarray[Any, Any], device: tuple[int, int] = (KIND, 0)) -> None:
        self.tensor = on("Two:0", array)
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**options)


def test_device_memory_is_shared_both_ways(two: Two) -> None:
    x = on("Two:1")
    assert x.__dlpack_device__() == (KIND, 1)
    two.counts.clear()
    y = Tensor.from_dlpack(x)
    assert (y.device, host_copies(two)) == ("Two:1", 0)
    assert np.shares_memory(x._buf.array, y._buf.array)
    for capsule in (x.to_dlpack(), ms.utils.to_dlpack(x), x.__dlpack__()):
        z = ms.utils.from_dlpack(capsule)
        assert np.shares_memory(x._buf.array, z._buf.array)
    with pytest.raises(TypeError, match="that was not used before"):
        Tensor.from_dlpack(capsule)
    memory = weakref.ref(x._buf.array.base if x._buf.array.base is not None else x._buf.array)
    del x
    gc.collect()
    np.testing.assert_array_equal((y + z).asnumpy(), 2 * A)
    del y, z
    gc.collect()
    assert memory() is None


def test_the_options_of_the_protocol(two: Two) -> None:
    x = on("Two:0")
    copied = Tensor.from_dlpack(x.__dlpack__(copy=True))
    assert (copied.device, two.counts["between"]) == ("Two:0", 1)
    assert not np.shares_memory(x._buf.array, copied._buf.array)
    host = Tensor.from_dlpack(x.__dlpack__(dl_device=(1, 0)))
    assert two.counts["out"] == 1
    np.testing.assert_array_equal(host.asnumpy(), A)
    for version, name in ((None, '"dltensor"'), ((1, 0), '"dltensor_versioned"')):
        if version is None or np.lib.NumpyVersion(np.__version__) >= "2.1.0":
            assert name in repr(x.__dlpack__(max_version=version, stream=None))
    for options, text in (
        ({"dl_device": (2, 0)}, r"got dl_device=\(2, 0\) for memory of \(15, 0\)"),
        ({"dl_device": (1, 0), "copy": False}, "can only be copied to the host"),
    ):
        with pytest.raises(BufferError, match=text):
            x.__dlpack__(**options)
    with pytest.raises(TypeError, match="colour"):
        x.__dlpack__(colour=1)


@pytest.mark.parametrize("device", [None, "CPU", "Reference"])
def test_memory_of_the_host(device: str | None) -> None:
    for dtype in ms.dtype.ALL:
        for shape in ((), (0, 2), (2, 3)):
            x = Tensor(np.ones(shape), dtype)
            if device is not None:
                x = x.move_to(device)
            assert x.__dlpack_device__() == (1, 0)
            y = Tensor.from_dlpack(x)
            assert (y.dtype, y.shape) == (dtype, shape)
            np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())
            if x.size:
                assert np.shares_memory(y.asnumpy(), x.asnumpy())
                z = Tensor.from_dlpack(x.__dlpack__(copy=True))
                assert not np.shares_memory(z.asnumpy(), x.asnumpy())
            x.__dlpack__(copy=False)


def test_arrays_that_are_not_dense_are_copied() -> None:
    for array in (A.T, A[:, ::2], A[::-1], np.broadcast_to(A[0], (2, 3))):
        y = Tensor.from_dlpack(np.array(array) if not array.flags.writeable else array)
        np.testing.assert_array_equal((y + 1).asnumpy(), array + 1)


def test_a_backend_without_dlpack_exports_copies(two: Two) -> None:
    with registered(Other, dlpack_device=lambda self, d: None):
        x = on("Other:1")
        assert x.__dlpack_device__() == (1, 0)
        np.testing.assert_array_equal(np.from_dlpack(x), A)
        with pytest.raises(BufferError, match="copy=False for a tensor on Other:1"):
            x.__dlpack__(copy=False)


def test_the_current_device_comes_first(two: Two, other: Two) -> None:
    source = Foreign(A)
    assert Tensor.from_dlpack(source).device in ("Two:0", "Other:0")
    for name in ("Two:0", "Other:0"):
        with ms.placement.thread_device(ms.placement.device_of(name)):
            y = Tensor.from_dlpack(source)
            assert y.device == name
            np.testing.assert_array_equal((y * 2).asnumpy(), 2 * A)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no object of the protocol": (lambda: [1.0], TypeError, "got .*; wanted an object with __dlp"),
    "memory that nobody has": (lambda: Foreign(A, (99, 0)), BufferError, r"\(99, 0\), and no dev"),
    "memory that is elsewhere": (lambda: Foreign(A, (KIND, 5)), BufferError, "no device here"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_objects_that_cannot_be_imported(name: str, two: Two) -> None:
    make, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        Tensor.from_dlpack(make())


def test_a_broken_backend_does_not_hide_a_sound_one(two: Two) -> None:
    source = Foreign(A)
    with registered(Other, dlpack_device=raising(OSError("bus"))):
        assert Tensor.from_dlpack(source).device == "Two:0"
        with pytest.raises(BufferError, match=r"\(99, 0\).*Other: dlpack_device\(\) raised OSErr"):
            Tensor.from_dlpack(Foreign(A, (99, 0)))


def test_a_gradient_does_not_pass_dlpack(two: Two) -> None:
    """The capsule is a constant of every derivative, as the array of `asnumpy` is."""
    x = on("Two:0")
    gradient = ms.grad(lambda x: (Tensor.from_dlpack(x) * x).sum())(x)
    np.testing.assert_array_equal(gradient.asnumpy(), A)


def test_the_protocol_names_the_device(two: Two) -> None:
    assert device_of(on("Two:1")) == (KIND, 1)
