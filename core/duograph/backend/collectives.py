"""The interface of communication engines: what a plugin provides so that ranks can communicate.

A rank is a process, or a thread, that runs the same program as the other ranks. An engine moves
bytes between ranks; the meaning of the bytes, the order of sums, deadlines and error messages are
the task of `duograph.ranks`. A plugin returns a `CollectivesSpec` from the hook
`duograph_collectives`.

Buffers are C-contiguous NumPy arrays in host memory. The engine may read and write a buffer until
its request is complete, so the caller must keep the buffer alive and must not access it until then.
"""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import BackendError
from ..host_arrays import Array
from . import registry
from .plugin_checks import error_text, shown_value

if TYPE_CHECKING:
    from ..dtype import DType
    from ..errors import CommunicationError
    from .prepared import Handle
    from .protocol import Backend

__all__ = ["CollectivesSpec", "Communicator", "DeviceRequest", "DeviceTransfers", "Part", "Request",
           "engines"]  # fmt: skip

Buffer = Array


class Request(ABC):
    """A transfer between ranks that has been started."""

    @abstractmethod
    def test(self) -> bool:
        """Return whether the transfer is complete; make progress without blocking.

        Raises:
            Exception: the transfer failed, for instance because a rank has ended.
        """

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the transfer; return whether it is complete.

        This default implementation polls: 100 times in a row, then with pauses of up to a
        millisecond, so that several ranks can run on the same core.
        """
        for _ in range(100):
            if self.test():
                return True
        end = time.monotonic() + seconds
        pause = 0.0
        while not self.test():
            if time.monotonic() > end:
                return False
            time.sleep(pause)
            pause = min(pause + 2e-5, 1e-3)
        return True


class DeviceOperation(Protocol):
    """What a transfer between device memories asks of the collective operation that it is part of.

    `where` describes the operation for messages; `late` returns the error to raise if it has not
    ended after so many seconds.
    """

    def where(self) -> str: ...

    def late(self, seconds: float) -> CommunicationError: ...


class DeviceRequest(Request):
    """A transfer between device memories; `wait` delays later work of the device, not the host.

    `test` says whether the transfer is complete on the device. The request keeps the transfer's
    buffers alive until `wait` was called or `test` has returned True.

    Attributes:
        operation: the operation that the transfer belongs to, an object with the methods `where()
            -> str` and `late(seconds) -> CommunicationError`, or None. The core sets it when the
            transfer has started.
    """

    operation: DeviceOperation | None = None


class Part(NamedTuple):
    """A range of bytes in a device buffer, sent to or received from rank `rank` of the group."""

    handle: Handle
    offset: int
    nbytes: int
    rank: int


class DeviceTransfers(ABC):
    """Transfers of buffers in device memory between the ranks of a group.

    The core makes one such object for a group and a device, at their first transfer
    (`Communicator.on_device`). All ranks of the group must call the same methods in the same order.
    Buffers are dense, are given by the backend's handles, and have at least the bytes that the
    method transfers. Every method that starts a transfer has an argument `after`, a mark from
    `mark`: the transfer begins when the device has done the work before the mark. A mark can be
    used for one transfer only.
    """

    @abstractmethod
    def mark(self) -> object:
        """Return a mark in the device's queue, behind all work that this thread has launched."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Handle:
        """Allocate `nbytes` bytes of device memory; return the buffer's handle."""

    @abstractmethod
    def reduces(self, dtype: DType, reduction: str) -> bool:
        """Return whether `all_reduce` and `reduce_scatter` support this dtype and reduction."""

    @abstractmethod
    def exchange(
        self, sends: Sequence[Part], receives: Sequence[Part], after: object
    ) -> DeviceRequest:
        """Start sending parts to ranks and receiving parts from ranks, all at the same time.

        A rank may send to itself. For every pair of ranks, the parts that one sends and the other
        receives have the same order and lengths. `after` is the mark in the device's queue behind
        which the transfer begins.
        """

    @abstractmethod
    def all_reduce(
        self,
        pairs: Sequence[tuple[Handle, Handle, int]],
        dtype: DType,
        reduction: str,
        after: object,
    ) -> DeviceRequest:
        """Start reducing buffers over all ranks, in whatever order is fastest for the engine.

        Args:
            pairs: (operand, result, number of elements) for each buffer; operand and result may be
                the same handle.
            dtype: dtype of the elements.
            reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
            after: mark behind which the transfer begins.
        """

    @abstractmethod
    def reduce_scatter(
        self, x: Handle, out: Handle, count: int, dtype: DType, reduction: str, after: object
    ) -> DeviceRequest:
        """Start reducing an array over ranks and giving each rank one part of the result.

        `x` has `size * count` elements, where `size` is the number of ranks. Rank r receives the
        r-th block of `count` elements of the reduced array in `out`. `after` is the mark in the
        device's queue behind which the transfer begins.
        """

    @abstractmethod
    def all_gather(self, x: Handle, out: Handle, nbytes: int, after: object) -> DeviceRequest:
        """Start copying `nbytes` bytes of `x` of each rank to `out` of all ranks, in rank order.

        `after` is the mark in the device's queue behind which the transfer begins.
        """

    @abstractmethod
    def broadcast(
        self, x: Handle, out: Handle, nbytes: int, root: int, after: object
    ) -> DeviceRequest:
        """Start copying `nbytes` bytes of `x` of rank `root` to `out` of all ranks.

        `after` is the mark in the device's queue behind which the transfer begins.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the transfers' resources; every rank of the group must call it."""


class Communicator(ABC):
    """A group of ranks, from the viewpoint of one of its ranks.

    The methods that transfer data start the transfer and return its `Request` without waiting.

    Attributes:
        rank: position of this rank in the group.
        size: number of ranks in the group.
        idle_polls: tests of requests in a row that must find nothing new before there is nothing
            new, when the ranks poll between kernels. An engine that handles in one test what it
            read from the network in the test before sets more than 1.
    """

    rank: int
    size: int
    idle_polls = 1

    @abstractmethod
    def all_gather(self, sent: Buffer, received: Buffer) -> Request:
        """Start copying the bytes of every rank to all ranks.

        Args:
            sent: uint8 (n,), with the same n on all ranks.
            received: uint8 (size * n,), the bytes of rank 0 first.
        """

    @abstractmethod
    def all_to_all(
        self, sent: Buffer, counts: Sequence[int], received: Buffer, receives: Sequence[int]
    ) -> Request:
        """Start sending a part of the bytes to each rank.

        Args:
            sent: uint8 (sum of counts,), the part for rank 0 first.
            counts: number of bytes for each rank.
            received: uint8 (sum of receives,), the part from rank 0 first.
            receives: number of bytes from each rank.
        """

    @abstractmethod
    def broadcast(self, data: Buffer, root: int) -> Request:
        """Start copying `data`, uint8 (n,), of rank `root` into `data` of all ranks."""

    @abstractmethod
    def send(self, data: Buffer, to: int, tag: int) -> Request:
        """Start sending bytes, uint8 (n,), to a rank, which receives them by the same `tag`.

        The request is complete when `data` may be overwritten.
        """

    @abstractmethod
    def receive(self, data: Buffer, source: int, tag: int) -> Request:
        """Start receiving the next message from a rank with this `tag` into `data`, uint8 (n,)."""

    @abstractmethod
    def split(self, ranks: Sequence[int]) -> Communicator:
        """Return a communicator for some ranks of this group; each of these ranks must call it.

        Args:
            ranks: positions in this group, in the order of the new group; the calling rank is one
                of them.
        """

    @abstractmethod
    def abort(self, reason: str, status: int = 1) -> None:
        """End the communication of all ranks immediately, because of an error on this rank.

        If ranks are processes, all of them exit with exit status `status`, including this one.
        """

    def all_reduce(self, data: Buffer, received: Buffer, reduction: str) -> Request | None:
        """Start reducing elements over ranks, in whatever order is fastest for the engine.

        Args:
            data, received: operand and result, arrays of the same size and of any dtype.
            reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.

        Returns:
            None if the engine has no reduction for this dtype; `duograph.ranks` then uses its own.
        """
        return None

    def serves(self, backend: Backend, device_id: int) -> bool:
        """Return whether `on_device` supports a device; else transfers use host memory."""
        return False

    def on_device(self, backend: Backend, device_id: int, name: str) -> DeviceTransfers:
        """Return the object that transfers device buffers between the ranks of this group.

        The method may wait until all ranks of the group have called it. The core calls it once for
        each device that `serves` accepts. `name` is the group's name, for messages.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no on_device()")

    def close(self) -> None:  # noqa: B027 (an engine need not have anything to close)
        """Release this communicator's resources; every rank of the group must call it."""


def _runs_anywhere() -> str | None:
    """Return None: the engine can run here."""
    return None


@dataclasses.dataclass(frozen=True)
class CollectivesSpec:
    """A communication engine, as its plugin describes it.

    Attributes:
        name: unique name, as shown in messages.
        world: function that returns the communicator of all ranks; each rank calls it once.
        claims: function that returns whether the calling process or thread was started as a rank of
            this engine. It must be cheap, and must not import the engine's library.
        available: function that returns None, or the reason why the engine cannot run here.
        launch: function that returns the command line that starts `size` processes of `command` on
            this machine; None if the engine starts no processes.
        priority: of the engines whose `claims` returns True, the one with the highest priority is
            used.
    """

    name: str
    world: Callable[[], Communicator]
    claims: Callable[[], bool]
    available: Callable[[], str | None] = _runs_anywhere
    launch: Callable[[int, Sequence[str]], list[str]] | None = None
    priority: int = 0


_engines: dict[str, CollectivesSpec] = {}


def _check(module: ModuleType) -> Callable[[], None]:
    """Check what a plugin's engine hook returns; return a function that registers it.

    The hook is `duograph_collectives`.

    Raises:
        BackendError: the hook returned anything but engines, or the name of an engine is taken.
    """
    hook = getattr(module, "duograph_collectives", None)
    found = () if hook is None else hook()
    specs = list(found) if isinstance(found, (tuple, list)) else [found]
    for spec in specs:
        if not isinstance(spec, CollectivesSpec):
            raise BackendError(
                f"duograph_collectives() returned {shown_value(spec)}; wanted a CollectivesSpec"
            )
        if spec.name in _engines:
            raise BackendError(f"the name {spec.name!r} of a communication engine is taken")
    return lambda: _engines.update({spec.name: spec for spec in specs})


registry.on_plugin.append(_check)


def engines() -> dict[str, CollectivesSpec]:
    """Return the installed communication engines by name, those of the highest priority first."""
    registry.entries()  # loads the plugins
    return dict(sorted(_engines.items(), key=lambda item: (-item[1].priority, item[0])))


def unavailable(spec: CollectivesSpec) -> str | None:
    """Return the reason why an engine cannot run on this machine, or None if it can."""
    try:
        return spec.available()
    except Exception as error:  # noqa: BLE001 (a plugin may fail in any way; the text is shown)
        return error_text(error)
