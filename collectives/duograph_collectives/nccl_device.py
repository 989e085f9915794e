"""Transfers GPU memory by NCCL, with one communicator on a separate CUDA stream.

`NcclTransfers` implements `DeviceTransfers` of `duograph.backend.collectives`. A transfer begins
when the device has done its work before the mark `after`; the device meanwhile continues with other
work. The host must not wait for a transfer; a thread (`_Watch`) therefore checks whether transfers
end in time, and aborts those that do not. Otherwise the program would wait for its device for ever.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from duograph.backend.collectives import DeviceRequest, DeviceTransfers, Part
from duograph.context import settings
from duograph.dtype import DType, bool_, uint8
from duograph.errors import CommunicationError

from .nccl_library import REDUCTIONS, TYPES, WITH_FLOAT8, Library, NcclError

if TYPE_CHECKING:
    from duograph.backend.prepared import Handle

__all__ = ["NcclTransfers"]

_NOT_READY = 600  # of CUDA: what was queued has not finished
_LOOKS = 0.25  # seconds from one look of the watching thread to the next
_BIT_BY_BIT = 8  # how many transfers that are complete are forgotten when a new one starts


class _Enqueued(DeviceRequest):
    """A transfer that was queued on the CUDA stream of a communicator.

    Attributes:
        event: CUDA event behind the transfer in the stream.
        kept: the buffers of the transfer, kept until it is complete or later work of the device
            waits for it.
        since: start of the transfer, in seconds of `time.monotonic`.
    """

    def __init__(self, transfers: NcclTransfers, event: object, kept: Sequence[object]) -> None:
        self._transfers, self.event, self.kept = transfers, event, kept
        self.since = time.monotonic()
        self.done = False

    def test(self) -> bool:
        if not self.done:
            self._transfers.check()
            if self.event is None or self._transfers.reached(self.event):
                self.finish()
        return self.done

    def wait(self, seconds: float) -> bool:
        if not self.done:
            self._transfers.check()
            if self.event is not None:
                self._transfers.order(self.event)
            self.finish()
        return True

    def finish(self) -> None:
        """Mark the transfer as done and drop its buffers."""
        self.done, self.kept = True, ()


class NcclTransfers(DeviceTransfers):
    """An NCCL communicator between the GPUs of a group of ranks.

    Args:
        library: the library NCCL.
        device: the `CudaDevice` of this rank.
        size, rank: number of ranks in the group, and position of this rank.
        unique_id: id of this communicator, the same on all its ranks (`Library.unique_id`).
        seconds: time limit for connecting the ranks.
        name: name of the group, for messages.

    Raises:
        NcclError: the ranks cannot be connected.
    """

    def __init__(
        self,
        library: Library,
        device: Any,
        size: int,
        rank: int,
        unique_id: bytes,
        seconds: float,
        name: str = "",
    ) -> None:
        self.library, self.device, self.size, self.rank = library, device, size, rank
        self.name, self.seconds = name, seconds
        self.broken: Exception | None = None
        self._flying: deque[_Enqueued] = deque()  # in the order of the stream
        self._lock = threading.Lock()  # of `_flying` and of the end of `comm`
        with device.inside:
            self.stream = device.checked("NCCL", "cuStreamCreate", device.stream_flags)
            self.comm = library.new_comm(size, rank, unique_id)
        try:
            library.settle(self.comm, seconds)
        except NcclError as error:
            self.abort()
            raise NcclError(f"{error}, when it connected the ranks of {name!r}") from None
        _watch.add(self)

    # ---- order on the device --------------------------------------------------------------------

    def mark(self) -> object:
        device = self.device
        event = device.checked("NCCL", "cuEventCreate", device.no_timing)
        device.checked("NCCL", "cuEventRecord", event, device.stream)
        return event

    def order(self, event: object) -> None:
        """Make later work of the device, on this thread's stream, wait for an event."""
        self.device.checked("NCCL", "cuStreamWaitEvent", self.device.stream, event, 0)

    def reached(self, event: object) -> bool:
        """Return whether the device has reached an event."""
        code, _ = self.device.tried("cuEventQuery", event)
        if code and int(code) != _NOT_READY:
            self.device.failed(code, "NCCL")
        return not code

    def destroy(self, event: object) -> None:
        """Free an event; work that already waits for the event still waits for it."""
        self.device.checked("NCCL", "cuEventDestroy", event)

    def allocate(self, nbytes: int) -> Handle:
        return self.device.allocate(nbytes, "NCCL")

    # ---- transfers ------------------------------------------------------------------------------

    def _start(
        self, after: object, kept: Sequence[object], calls: Callable[[], None]
    ) -> DeviceRequest:
        """Start a transfer: queue NCCL calls on the communicator's stream; return its request.

        Args:
            after: event (the mark) that the stream waits for before the transfer; it is freed.
            kept: the buffers of the transfer, which the request keeps alive.
            calls: function that makes the calls of NCCL, inside one group of NCCL.

        Raises:
            NcclError: NCCL failed.
            Exception: the error that made the communicator unusable before.
        """
        library, device = self.library, self.device
        self.check()
        with device.inside:  # before our own lock: who waits for the device holds the first
            self._forget(_BIT_BY_BIT, self.reached)
            device.checked("NCCL", "cuStreamWaitEvent", self.stream, after, 0)
            self.destroy(after)
            with self._grouped():
                calls()
            library.settle(self.comm, self.seconds)
            event = device.checked("NCCL", "cuEventCreate", device.no_timing)
            device.checked("NCCL", "cuEventRecord", event, self.stream)
        made = _Enqueued(self, event, kept)
        with self._lock:
            self._flying.append(made)
        return made

    def _forget(self, most: int, reached: Callable[[object], bool]) -> None:
        """Release up to `most` complete transfers with their buffers, the oldest first.

        `reached` is a function of an event that returns whether it has been reached.
        """
        with self._lock:
            for _ in range(most):
                if not self._flying or not reached(self._flying[0].event):
                    return
                oldest = self._flying.popleft()
                oldest.finish()
                self.destroy(oldest.event)
                oldest.event = None

    def check(self) -> None:
        """Raise the error that made the communicator unusable, if there was one."""
        if self.broken is not None:
            raise self.broken

    # ---- in the watching thread -----------------------------------------------------------------

    def look(self) -> None:
        """Abort the communicator if its oldest transfer has failed or exceeds the time limit.

        The device then becomes unusable (`CudaDevice.interrupt`), since its work waits for the
        transfer.
        """
        driver = self.device.driver.module
        driver.cuCtxSetCurrent(self.device.context)  # of this thread, which nobody else uses
        with self._lock:
            if self.comm is None or not self._flying:
                return
            oldest = self._flying[0]
            age, seconds = time.monotonic() - oldest.since, settings.communication_timeout
            if age < _LOOKS or not int(driver.cuEventQuery(oldest.event)[0]):
                return
            reason = None
            with contextlib.suppress(NcclError):  # of the query itself; the next look repeats it
                state = self.library.state(self.comm)
                if state not in (
                    self.library.functions.ncclSuccess, self.library.functions.ncclInProgress,
                ):  # fmt: skip
                    reason = f"NCCL gave {self.library.words(state, self.comm)}"
            if reason is None and age < seconds:
                return
            self.broken = _error(oldest, self.name, reason, seconds)
        self.device.interrupt(self.broken)
        self.abort()

    @contextlib.contextmanager
    def _grouped(self) -> Iterator[None]:
        library = self.library
        library.call("ncclGroupStart")
        try:
            yield
        except BaseException:  # the first failure is the one to report
            with contextlib.suppress(NcclError):
                library.call("ncclGroupEnd")
            raise
        library.call("ncclGroupEnd", comm=self.comm)

    def _call(self, name: str, *arguments: object) -> None:
        stream = self.library.ffi.cast("cudaStream_t", int(self.stream))
        self.library.call(name, *arguments, self.comm, stream, comm=self.comm)

    def _at(self, handle: Handle, offset: int = 0) -> object:
        return self.library.ffi.cast("void *", handle.pointer + offset)

    def exchange(
        self, sends: Sequence[Part], receives: Sequence[Part], after: object
    ) -> DeviceRequest:
        kind = self.library.functions.ncclUint8

        def calls() -> None:
            for name, parts in (("ncclSend", sends), ("ncclRecv", receives)):
                for part in parts:
                    if part.nbytes:
                        place = self._at(part.handle, part.offset)
                        self._call(name, place, part.nbytes, kind, part.rank)

        return self._start(after, [p.handle for p in (*sends, *receives)], calls)

    def reduces(self, dtype: DType, reduction: str) -> bool:
        if dtype.kind == "s" and self.library.number < WITH_FLOAT8:
            return False
        return dtype is bool_ or dtype in TYPES

    def _kinds(self, dtype: DType, reduction: str) -> tuple[int, int]:
        """Return NCCL's (number of a dtype, number of a reduction).

        Raises:
            NcclError: NCCL does not support this dtype and reduction.
        """
        if not self.reduces(dtype, reduction):
            names = ", ".join(["bool", *(t.name for t in TYPES)])
            raise NcclError(
                f"NCCL {self.library.version} reduces no {dtype.name}; it reduces {names}"
            )
        functions = self.library.functions
        if dtype is bool_:  # of 0 and 1: a sum is "or", a product "and"
            dtype, reduction = uint8, {"sum": "max", "prod": "min"}.get(reduction, reduction)
        return getattr(functions, TYPES[dtype]), getattr(functions, REDUCTIONS[reduction])

    def all_reduce(
        self,
        pairs: Sequence[tuple[Handle, Handle, int]],
        dtype: DType,
        reduction: str,
        after: object,
    ) -> DeviceRequest:
        kind, op = self._kinds(dtype, reduction)

        def calls() -> None:
            for x, out, count in pairs:
                self._call("ncclAllReduce", self._at(x), self._at(out), count, kind, op)

        return self._start(after, [h for x, out, _ in pairs for h in (x, out)], calls)

    def reduce_scatter(
        self, x: Handle, out: Handle, count: int, dtype: DType, reduction: str, after: object
    ) -> DeviceRequest:
        kind, op = self._kinds(dtype, reduction)
        return self._start(
            after, (x, out),
            lambda: self._call("ncclReduceScatter", self._at(x), self._at(out), count, kind, op),
        )  # fmt: skip

    def all_gather(self, x: Handle, out: Handle, nbytes: int, after: object) -> DeviceRequest:
        kind = self.library.functions.ncclUint8
        return self._start(
            after, (x, out),
            lambda: self._call("ncclAllGather", self._at(x), self._at(out), nbytes, kind),
        )  # fmt: skip

    def broadcast(
        self, x: Handle, out: Handle, nbytes: int, root: int, after: object
    ) -> DeviceRequest:
        kind = self.library.functions.ncclUint8
        return self._start(
            after, (x, out),
            lambda: self._call("ncclBroadcast", self._at(x), self._at(out), nbytes, kind, root),
        )  # fmt: skip

    # ---- the end --------------------------------------------------------------------------------

    def abort(self) -> None:
        """End all incomplete transfers immediately, without cooperation of the other ranks."""
        with self._lock:
            comm, self.comm = self.comm, None
        if comm is not None:
            self.library.call("ncclCommAbort", comm)

    def close(self) -> None:
        if self.broken is not None:
            return
        with self._lock:
            comm, self.comm = self.comm, None
        if comm is None:
            return
        self.device.synchronize()
        with self.device.inside:
            self.device.checked("NCCL", "cuStreamSynchronize", self.stream)
            self._forget(len(self._flying), lambda event: True)
            try:
                self.library.call("ncclCommFinalize", comm, comm=comm)
                self.library.settle(comm, self.seconds)
                self.library.call("ncclCommDestroy", comm)
            except NcclError:  # a call that failed before leaves its error in the communicator
                self.library.call("ncclCommAbort", comm)
            self.device.checked("NCCL", "cuStreamDestroy", self.stream)


def _error(request: _Enqueued, name: str, reason: str | None, seconds: float) -> Exception:
    """Return the exception for a transfer that failed for `reason`, or timed out if that is None.

    `name` is the name of the group of ranks, and `seconds` the time limit, for the message.
    """
    operation = request.operation
    if reason is None and operation is not None:
        found: Exception = operation.late(seconds)
        return found
    what = f"a transfer of the group {name!r}" if operation is None else operation.where()
    why = f"was not complete after {seconds:g} s" if reason is None else f"failed: {reason}"
    return CommunicationError(f"{what} {why}")


class _Watch:
    """The thread that checks this process's communicators for failed or late transfers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: weakref.WeakSet[NcclTransfers] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, transfers: NcclTransfers) -> None:
        with self._lock:
            self._all.add(transfers)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="NCCL", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(_LOOKS)
            with self._lock:
                found = list(self._all)
            for transfers in found:
                transfers.look()
            del found


_watch = _Watch()
