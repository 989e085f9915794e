"""The interface of communication engines: what a plugin provides so that ranks can communicate.

A rank is a process, or a thread, that runs the same program as the other ranks. An engine moves
bytes between ranks; what the bytes mean, the order of sums, deadlines and error messages belong to
`duograph.ranks`. A plugin returns a `CollectivesSpec` from the hook `duograph_collectives`.

Buffers are C-contiguous NumPy arrays in host memory. The engine may read and write them until the
request is complete.
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

        This definition polls: 100 times in a row, then with pauses of up to a millisecond, so that
        ranks that share a core do not keep each other from running.
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
    """Interface of the operation of a group that a transfer on the device is part of."""

    def where(self) -> str: ...

    def late(self, seconds: float) -> CommunicationError: ...


class DeviceRequest(Request):
    """A transfer between device memories: `wait` lets later work of the device wait, not the host.

    `test` still says whether the transfer is complete on the device. It keeps its buffers until
    either is done.

    Attributes:
        operation: what it is part of, None or an object with the methods `where() -> str` and
            `late(seconds) -> CommunicationError`; the core sets it when the transfer has started.
    """

    operation: DeviceOperation | None = None


class Part(NamedTuple):
    """Bytes of a buffer on a device that go to a rank of the group, or come from it."""

    handle: Handle
    offset: int
    nbytes: int
    rank: int


class DeviceTransfers(ABC):
    """Transfers between the ranks of a group of buffers in the memory of one device.

    The core makes one for a group and a device at its first transfer (`Communicator.on_device`).
    All ranks of the group call the same methods in the same order. Each starts the transfer behind
    the work of the device at the mark `after`, which it uses up. Buffers are handles of the
    backend, dense, and of at least the bytes that are named.
    """

    @abstractmethod
    def mark(self) -> object:
        """Return a mark behind the work so far of this thread on the device."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Handle:
        """Return new memory of the device."""

    @abstractmethod
    def reduces(self, dtype: DType, reduction: str) -> bool:
        """Return whether `all_reduce` and `reduce_scatter` take this dtype and reduction."""

    @abstractmethod
    def exchange(
        self, sends: Sequence[Part], receives: Sequence[Part], after: object
    ) -> DeviceRequest:
        """Start sending parts to ranks, this one too, and receiving parts from them, all at once.

        The parts between two ranks have the same order and lengths on both.
        """

    @abstractmethod
    def all_reduce(
        self,
        pairs: Sequence[tuple[Handle, Handle, int]],
        dtype: DType,
        reduction: str,
        after: object,
    ) -> DeviceRequest:
        """Start reducing buffers over ranks, in the order that is fastest for the engine.

        Args:
            pairs: (operand, result, number of elements) of each; the two may be one.
            dtype: of the elements.
            reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
            after: the mark.
        """

    @abstractmethod
    def reduce_scatter(
        self, x: Handle, out: Handle, count: int, dtype: DType, reduction: str, after: object
    ) -> DeviceRequest:
        """Start reducing `size * count` elements, of which rank r gets the r-th `count`."""

    @abstractmethod
    def all_gather(self, x: Handle, out: Handle, nbytes: int, after: object) -> DeviceRequest:
        """Start copying `nbytes` bytes of every rank to all ranks, those of rank 0 first."""

    @abstractmethod
    def broadcast(
        self, x: Handle, out: Handle, nbytes: int, root: int, after: object
    ) -> DeviceRequest:
        """Start copying `nbytes` bytes of `x` of rank `root` to `out` of all ranks."""

    @abstractmethod
    def close(self) -> None:
        """End the use, in which every rank takes part."""


class Communicator(ABC):
    """The ranks of one group, as one of them sees it.

    The methods that transfer data start the transfer and return its `Request` without waiting.

    Attributes:
        rank: position of this rank in the group.
        size: number of ranks in the group.
    """

    rank: int
    size: int

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
        """Start sending uint8 (n,) to a rank, which receives it by the same `tag`.

        The request is complete when `data` may be overwritten.
        """

    @abstractmethod
    def receive(self, data: Buffer, source: int, tag: int) -> Request:
        """Start receiving the next message of a rank with this tag into `data`, uint8 (n,)."""

    @abstractmethod
    def split(self, ranks: Sequence[int]) -> Communicator:
        """Return a communicator of some ranks of this group, which all of them call.

        Args:
            ranks: ranks of this group, this one among them, in the order of the new group.
        """

    @abstractmethod
    def abort(self, reason: str, status: int = 1) -> None:
        """End the communication of all ranks now, because of an error on this one.

        Where ranks are processes, this ends all of them, this one too, with exit status `status`.
        """

    def all_reduce(self, data: Buffer, received: Buffer, reduction: str) -> Request | None:
        """Start reducing elements over ranks in the order that is fastest for the engine.

        Args:
            data, received: arrays of any dtype and of one size.
            reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.

        Returns:
            None if the engine has no reduction for this dtype; `duograph.ranks` then uses its own.
        """
        return None

    def serves(self, backend: Backend, device_id: int) -> bool:
        """Return whether `on_device` transfers buffers of a device; else host memory is used."""
        return False

    def on_device(self, backend: Backend, device_id: int, name: str) -> DeviceTransfers:
        """Return the transfers of buffers of a device in this group; it may wait for all its ranks.

        `name` is that of the group, for messages. It is called once for a device that `serves`
        accepts.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no on_device()")

    def close(self) -> None:  # noqa: B027 (an engine need not have anything to close)
        """End the use of this communicator, in which every rank takes part."""


@dataclasses.dataclass(frozen=True)
class CollectivesSpec:
    """A communication engine, as its plugin describes it.

    Attributes:
        name: unique name, as shown in messages.
        world: returns the communicator of all ranks; called once, on every rank.
        claims: returns whether this process, or this thread, is a rank that the engine serves. It
            must be cheap, and must not import the engine's library.
        available: returns None, or the reason why the engine cannot run here.
        launch: returns the command line that starts `size` processes of `command` on this machine;
            None if the engine starts no processes.
        priority: the engine with the highest one among those that claim the process is used.
    """

    name: str
    world: Callable[[], Communicator]
    claims: Callable[[], bool]
    available: Callable[[], str | None] = lambda: None
    launch: Callable[[int, Sequence[str]], list[str]] | None = None
    priority: int = 0


_engines: dict[str, CollectivesSpec] = {}


def _check(module: ModuleType) -> Callable[[], None]:
    """Check the engines that a plugin module brings; return the function that registers them.

    Raises:
        BackendError: the hook returned something else, or a name is taken.
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
    """Return the reason why the engine of a spec cannot run here, or None if it can."""
    try:
        return spec.available()
    except Exception as error:  # noqa: BLE001 (a plugin may fail in any way; the text is shown)
        return error_text(error)
