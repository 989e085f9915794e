"""The communication engine `nccl`, whose ranks are processes with one GPU each.

NVIDIA's library NCCL (``pip install duograph[nccl]``) transfers arrays from GPU to GPU. The ranks
find each other through another engine, `mpi` or, without MPI, `tcp`, which also transfers data in
host memory: arrays of the CPU, and the few bytes by which ranks compare their calls. Each group of
ranks has its own NCCL communicators, made at its first transfer.
"""

from __future__ import annotations

import atexit
import functools
import os
import socket
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from duograph.backend import registry
from duograph.backend.collectives import (
    Buffer,
    CollectivesSpec,
    Communicator,
    DeviceTransfers,
    Request,
)
from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend
from duograph.context import on_device_change, settings, take_device
from duograph.errors import CommunicationError

from . import mpi, tcp
from .nccl_device import NcclTransfers
from .nccl_library import Library, NcclError, find

__all__ = ["NcclCommunicator", "duograph_collectives"]

# Files of the NVIDIA driver, on Linux and on its Windows subsystem.
_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")
_ID, _PLACE = 128, 128  # bytes of a unique id, and of the name of a GPU


class NcclCommunicator(Communicator):
    """A group of ranks that transfers GPU memory by NCCL, and host memory by another engine.

    Args:
        host: communicator of the group in the other engine.
        library: the library NCCL.
    """

    def __init__(self, host: Communicator, library: Library) -> None:
        self._host, self._library = host, library
        self.rank, self.size = host.rank, host.size

    # ---- host memory ----------------------------------------------------------------------------

    def all_gather(self, sent: Buffer, received: Buffer) -> Request:
        return self._host.all_gather(sent, received)

    def all_to_all(
        self, sent: Buffer, counts: Sequence[int], received: Buffer, receives: Sequence[int]
    ) -> Request:
        return self._host.all_to_all(sent, counts, received, receives)

    def broadcast(self, data: Buffer, root: int) -> Request:
        return self._host.broadcast(data, root)

    def send(self, data: Buffer, to: int, tag: int) -> Request:
        return self._host.send(data, to, tag)

    def receive(self, data: Buffer, source: int, tag: int) -> Request:
        return self._host.receive(data, source, tag)

    def all_reduce(self, data: Buffer, received: Buffer, reduction: str) -> Request | None:
        return self._host.all_reduce(data, received, reduction)

    def split(self, ranks: Sequence[int]) -> Communicator:
        return NcclCommunicator(self._host.split(ranks), self._library)

    def abort(self, reason: str, status: int = 1) -> None:
        self._host.abort(reason, status)

    def close(self) -> None:
        self._host.close()

    # ---- GPU memory -----------------------------------------------------------------------------

    def serves(self, backend: Backend, device_id: int) -> bool:
        from duograph_cuda.backend import Cuda  # loaded where there is such a backend

        return isinstance(backend, Cuda)

    def on_device(self, backend: Backend, device_id: int, name: str) -> DeviceTransfers:
        device: Any = backend.device(device_id)  # type: ignore[attr-defined]
        own = self._library.unique_id() if self.rank == 0 else bytes(_ID)
        text = own + _gpu(device).encode()[:_PLACE].ljust(_PLACE)
        found = _told(self._host, text, f"{name!r} to their first transfer between GPUs")
        places = [row[_ID:].decode().strip() for row in found]
        for rank, place in enumerate(places):
            first = places.index(place)
            if first < rank:
                raise NcclError(
                    f"ranks {first} and {rank} of {name!r} are on one GPU ({place}), and NCCL "
                    "takes one rank for each GPU. Start no more ranks than GPUs, choose one by "
                    "set_context(device_id=...), or set DUOGRAPH_NCCL=0: arrays then go through "
                    "host memory"
                )
        made = NcclTransfers(
            self._library, device, self.size, self.rank, found[0][:_ID],
            settings.communication_timeout, name,
        )  # fmt: skip
        _open.add(made)
        return made


_open: weakref.WeakSet[NcclTransfers] = weakref.WeakSet()


def _gpu(device: Any) -> str:
    """Return a text that identifies a GPU among the GPUs of all machines."""
    number = device.driver.call("cuDeviceGet", device.index)
    bus = device.driver.call("cuDeviceGetPCIBusId", 64, number)
    return f"{device.name}, {bus.split(bytes(1), 1)[0].decode()} of {socket.gethostname()}"


def _close_all() -> None:
    """Close all NCCL communicators at the end of the process, before the other engine ends."""
    for transfers in list(_open):
        transfers.close()


def _told(host: Communicator, text: bytes, why: str) -> list[bytes]:
    """Send `text` to all ranks; return the texts that all ranks have sent, in order of the ranks.

    The texts have equal length.

    Raises:
        NcclError: not all ranks have sent a text in time; `why` completes the message "not all
            ranks of ...".
    """
    out = np.empty(host.size * len(text), np.uint8)
    request = host.all_gather(np.frombuffer(text, np.uint8), out)
    seconds = settings.communication_timeout
    if not request.wait(seconds):
        raise NcclError(f"not all ranks of {why} came within {seconds:g} s")
    return [row.tobytes() for row in out.reshape(host.size, -1)]


def _world() -> Communicator:
    library = find()
    if isinstance(library, str):
        raise CommunicationError(library)
    spec = _host()
    assert spec is not None  # `_available` has looked
    host = spec.world()
    own = socket.gethostname().encode()[:_PLACE].ljust(_PLACE)
    machines = _told(host, own, "the world to its beginning")
    local = machines[: host.rank].count(own)
    _choose_device(local)
    on_device_change.append(functools.partial(_choose_device, local))
    atexit.register(_close_all)
    return NcclCommunicator(host, library)


def _choose_device(local: int) -> None:
    """Select the GPU of this rank, unless the program has selected another GPU than the first.

    `local` is the number of this rank among the ranks of this machine.
    """
    name = registry.current_device().name
    if settings.device_id == 0 and local and name == "GPU":
        count = len(registry.backend(name).devices())
        if local % count:
            take_device(local % count)


def _host() -> CollectivesSpec | None:
    """Return the engine, `mpi` or `tcp`, that connects the processes, or None if neither can."""
    found = (mpi.duograph_collectives(), tcp.duograph_collectives())
    return next((s for s in found if s.claims() and s.available() is None), None)


def _claims() -> bool:
    return mpi.duograph_collectives().claims() or tcp.duograph_collectives().claims()


def _available() -> str | None:
    if not os.environ.get("DUOGRAPH_NCCL") and not any(map(os.path.exists, _DRIVERS)):
        return "there is no NVIDIA driver on this machine"
    found = find()
    if isinstance(found, str):
        return found
    return mpi.duograph_collectives().available() if _host() is None else None


@hookimpl
def duograph_collectives() -> CollectivesSpec:
    """Return the specification of the engine `nccl`."""
    return CollectivesSpec("nccl", world=_world, claims=_claims, available=_available, priority=20)
