"""The conformance cases of copies, DLPack and streams, on small backends: sound and faulty ones."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph.backend import registry
from duograph.conformance import oracle, test_transfers
from duograph.conformance.session import Session
from duograph.placement import device_of, thread_device

pytest.importorskip("duograph_reference", reason="the reference backend is not installed")

from plugins.two_devices import Held, Queued, Queues, Two, registered

CASES = {n: f for n, f in vars(test_transfers).items() if n.startswith("test_")}


def run(name: str, kind: type[Two], **members: Any) -> None:
    """Run a case on the first device of a backend."""
    oracle.install()
    with registered(kind, **members) as backend, thread_device(device_of(kind.name)):
        session = types.SimpleNamespace(
            name=kind.name,
            backend=backend,
            device=device_of(kind.name),
            dtypes=(ms.bool_, ms.int32, ms.bfloat16, ms.float32),
        )
        CASES[name](session) if CASES[name].__code__.co_argcount else CASES[name]()


@pytest.mark.parametrize("index", [None, 0, 1])
def test_the_suite_tests_the_device_that_was_asked_for(index: int | None) -> None:
    name = "Two" if index is None else f"Two:{index}"
    before = ms.get_context("device_target"), ms.get_context("device_id"), ms.get_context("debug")
    with registered(Two) as backend:
        try:
            session = Session(name, quick=True)
            session.begin()
            assert registry.current_device() == session.device
            assert ms.Tensor([1.0]).device == f"Two:{index or 0}"
            assert backend.devices()[index or 0].description in session.title
        finally:
            ms.set_context(device_target=before[0], device_id=before[1], debug=before[2])


@pytest.mark.parametrize("name", CASES)
def test_a_sound_backend_passes(name: str) -> None:
    run(name, Queued)


@pytest.mark.parametrize("name", [n for n in CASES if "stream" in n])
def test_cases_are_left_out_with_a_reason(name: str) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"Two has no streams\(\)"):
        run(name, Two)


class NoWait(Queues):
    """Streams that forget events."""

    def wait_event(self, stream: Any, event: Any) -> None:
        return None


def zeros(self: Any, handle: Any, shape: Any, dtype: Any, source: int, target: int) -> Any:
    return Held(np.zeros(shape, dtype), target)


def late(self: Any, handle: Any, shape: Any, dtype: Any, device_id: int) -> Callable[[], Any]:
    array = np.zeros(shape, dtype)
    return lambda: array


FAULTS: dict[str, tuple[str, type[Two], dict[str, Any]]] = {
    "a copy of zeros": ("test_copies_between_devices", Two, {"copy_between": zeros}),
    "a late copy of zeros": (
        "test_copies_to_the_host_that_are_not_awaited", Two, {"copy_out_async": late}
    ),
    "a shape that is lost": (
        "test_dlpack_shares_memory", Two,
        {
            "to_dlpack": lambda self, h, shape, *a: Two.to_dlpack(self, h, h.array.size, *a)
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_backend_fails(name: str) -> None:
    case, kind, members = FAULTS[name]
    with pytest.raises(AssertionError):
        run(case, kind, **members)


def test_streams_without_order_fail() -> None:
    class Unordered(Queued):
        name = "Queued"

        def __init__(self) -> None:
            super().__init__()
            self.queues = [NoWait(self), NoWait(self)]

    with pytest.raises(AssertionError):
        run("test_events_order_streams", Unordered)
