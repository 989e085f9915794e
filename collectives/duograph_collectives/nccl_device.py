"""Transfers by NCCL between the memories of GPUs: one communicator, on a stream of its own.

`DeviceTransfers` of `duograph.backend.collectives` says what they do. A transfer begins behind the
work of the device at its `after`, and the device goes on meanwhile. Nothing waits on the host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from duograph.backend.collectives import DeviceRequest, DeviceTransfers, Part
from duograph.dtype import DType, bool_, uint8
from duograph.errors import CommunicationError, UnsupportedOpError

from .nccl_library import REDUCTIONS, TYPES, WITH_FLOAT8, Library

__all__ = ["NcclTransfers"]

_NOT_READY = 600  # of CUDA: what was queued has not finished


class _Enqueued(DeviceRequest):
    """A transfer in the stream of a communicator; `kept` are the buffers that it uses."""

    def __init__(self, transfers: NcclTransfers, event: Any, kept: Sequence[Any]) -> None:
        self._transfers, self._event, self._kept = transfers, event, kept
        self._done = False

    def test(self) -> bool:
        if not self._done and self._transfers.reached(self._event):
            self._finish()
        return self._done

    def wait(self, seconds: float) -> bool:
        if not self._done:
            self._transfers.order(self._event)
            self._finish()
        return True

    def _finish(self) -> None:
        self._done, self._kept = True, ()
        self._transfers.destroy(self._event)


class NcclTransfers(DeviceTransfers):
    """A communicator of NCCL between the devices of the ranks of a group.

    Args:
        library: NCCL.
        device: the `CudaDevice` of this rank.
        size, rank: of the group.
        unique_id: of this communicator, the same on all its ranks.
        seconds: how long NCCL may take to connect the ranks.
        name: of the group, for messages.

    Raises:
        CommunicationError: the ranks cannot be connected.
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
        self.library, self.device, self.size, self.rank, self.name = (
            library, device, size, rank, name,
        )  # fmt: skip
        self.seconds = seconds
        with device.inside:
            self.stream = device.checked("NCCL", "cuStreamCreate", device.stream_flags)
            self.comm = library.new_comm(size, rank, unique_id)
        try:
            library.settle(self.comm, seconds)
        except CommunicationError:
            self.abort()
            raise

    # ---- order on the device --------------------------------------------------------------------

    def mark(self) -> Any:
        device = self.device
        event = device.checked("NCCL", "cuEventCreate", device.no_timing)
        device.checked("NCCL", "cuEventRecord", event, device.stream)
        return event

    def order(self, event: Any) -> None:
        """Let later work of the device wait for an event."""
        self.device.checked("NCCL", "cuStreamWaitEvent", self.device.stream, event, 0)

    def reached(self, event: Any) -> bool:
        """Return whether an event has been reached."""
        code, _ = self.device.tried("cuEventQuery", event)
        if code and int(code) != _NOT_READY:
            self.device.failed(code, "NCCL")
        return not code

    def destroy(self, event: Any) -> None:
        """Free an event; what waits for it still does."""
        self.device.checked("NCCL", "cuEventDestroy", event)

    def allocate(self, nbytes: int) -> Any:
        return self.device.allocate(nbytes, "NCCL")

    # ---- transfers ------------------------------------------------------------------------------

    def _start(self, after: Any, kept: Sequence[Any], calls: Callable[[], None]) -> DeviceRequest:
        """Run `calls` of NCCL in the stream, behind the mark `after`, as one group."""
        library, device = self.library, self.device
        with device.inside:
            device.checked("NCCL", "cuStreamWaitEvent", self.stream, after, 0)
            self.destroy(after)
            with self._grouped():
                calls()
        library.settle(self.comm, self.seconds)
        event = device.checked("NCCL", "cuEventCreate", device.no_timing)
        device.checked("NCCL", "cuEventRecord", event, self.stream)
        return _Enqueued(self, event, kept)

    @contextlib.contextmanager
    def _grouped(self) -> Iterator[None]:
        library = self.library
        library.call("ncclGroupStart")
        try:
            yield
        except BaseException:  # the first failure is the one to report
            with contextlib.suppress(CommunicationError):
                library.call("ncclGroupEnd")
            raise
        library.call("ncclGroupEnd", comm=self.comm)

    def _call(self, name: str, *arguments: Any) -> None:
        stream = self.library.ffi.cast("cudaStream_t", int(self.stream))
        self.library.call(name, *arguments, self.comm, stream, comm=self.comm)

    def _at(self, handle: Any, offset: int = 0) -> Any:
        return self.library.ffi.cast("void *", handle.pointer + offset)

    def exchange(
        self, sends: Sequence[Part], receives: Sequence[Part], after: Any
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
        """Return the numbers of a dtype and a reduction.

        Raises:
            UnsupportedOpError: NCCL does not have them.
        """
        if not self.reduces(dtype, reduction):
            names = ", ".join(["bool", *(t.name for t in TYPES)])
            raise UnsupportedOpError(
                f"NCCL {self.library.version} reduces no {dtype.name}; it reduces {names}"
            )
        functions = self.library.functions
        if dtype is bool_:  # of 0 and 1: a sum is "or", a product "and"
            dtype, reduction = uint8, {"sum": "max", "prod": "min"}.get(reduction, reduction)
        return getattr(functions, TYPES[dtype]), getattr(functions, REDUCTIONS[reduction])

    def all_reduce(
        self,
        pairs: Sequence[tuple[Any, Any, int]],
        dtype: DType,
        reduction: str,
        after: Any,
    ) -> DeviceRequest:
        kind, op = self._kinds(dtype, reduction)

        def calls() -> None:
            for x, out, count in pairs:
                self._call("ncclAllReduce", self._at(x), self._at(out), count, kind, op)

        return self._start(after, [h for x, out, _ in pairs for h in (x, out)], calls)

    def reduce_scatter(
        self, x: Any, out: Any, count: int, dtype: DType, reduction: str, after: Any
    ) -> DeviceRequest:
        kind, op = self._kinds(dtype, reduction)
        return self._start(
            after, (x, out),
            lambda: self._call("ncclReduceScatter", self._at(x), self._at(out), count, kind, op),
        )  # fmt: skip

    def all_gather(self, x: Any, out: Any, nbytes: int, after: Any) -> DeviceRequest:
        kind = self.library.functions.ncclUint8
        return self._start(
            after, (x, out),
            lambda: self._call("ncclAllGather", self._at(x), self._at(out), nbytes, kind),
        )  # fmt: skip

    def broadcast(self, x: Any, out: Any, nbytes: int, root: int, after: Any) -> DeviceRequest:
        kind = self.library.functions.ncclUint8
        return self._start(
            after, (x, out),
            lambda: self._call("ncclBroadcast", self._at(x), self._at(out), nbytes, kind, root),
        )  # fmt: skip

    # ---- the end --------------------------------------------------------------------------------

    def abort(self) -> None:
        comm, self.comm = self.comm, None
        if comm is not None:
            self.library.call("ncclCommAbort", comm)

    def close(self) -> None:
        comm, self.comm = self.comm, None
        if comm is None:
            return
        with self.device.inside:
            self.library.call("ncclCommFinalize", comm, comm=comm)
            self.library.settle(comm, self.seconds)
            self.library.call("ncclCommDestroy", comm)
            self.device.checked("NCCL", "cuStreamDestroy", self.stream)
