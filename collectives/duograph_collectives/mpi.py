"""The communication engine `mpi`, whose ranks are MPI processes (``pip install duograph[mpi]``).

It calls MPI through mpi4py. Any launcher of MPI can start the ranks: `duograph run -n 4`, mpiexec
or srun. Transfers must be non-blocking and polled, so that a wait can end at its deadline. If a
rank ends with an error, its traceback is printed and MPI ends all other ranks.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import sysconfig
import time
import types
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from duograph.backend.collectives import Buffer, CollectivesSpec, Communicator, Request
from duograph.backend.hookspecs import hookimpl

__all__ = ["duograph_collectives"]

# Variables of the environment by which the libraries of MPI find the processes beside this one.
_CONNECTIONS = ("PMIX_RANK", "PMI_FD", "PMI_PORT", "PMI_CONTROL_PORT")
_CHUNK = 2**30  # bytes in one call: counts of MPI are ints of 32 bits


class _Requests(Request):
    """MPI requests that together form one transfer.

    `keep` are the buffers that they use. `land` is a received buffer with the arrays among which
    its bytes are divided at the end.
    """

    def __init__(
        self, requests: list[Any], *keep: object, land: tuple[Buffer, list[Buffer]] | None = None
    ) -> None:
        self._requests, self._keep, self._land = requests, keep, land

    def test(self) -> bool:
        self._requests = [r for r in self._requests if not r.Test()]
        if self._requests:
            return False
        if self._land is not None:
            (received, parts), self._land, at = self._land, None, 0
            for part in parts:
                part[:] = received[at : at + part.size]
                at += part.size
        return True


class MpiCommunicator(Communicator):
    """A group of ranks that MPI connects, as `Communicator`; `comm` is mpi4py's communicator."""

    # With Open MPI over TCP, a bucket of gradients is complete after 7 to 9 polls of one test, and
    # after 3 to 5 of eight.
    idle_polls = 8

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()

    def all_gather(self, sent: Buffer, received: Buffer) -> Request:
        if sent.size <= _CHUNK:
            return _Requests([self._comm.Iallgather(sent, received)], sent, received)
        rows = received.reshape(self.size, -1)
        requests, parts = [], []
        for root in range(self.size):
            if root == self.rank:
                rows[root] = sent
            for at in range(0, sent.size, _CHUNK):
                part = rows[root, at : at + _CHUNK]
                parts.append(part)
                requests.append(self._comm.Ibcast(part, root))
        return _Requests(requests, sent, received, parts)

    def all_to_all(
        self, sent: Buffer, counts: Sequence[int], received: Buffer, receives: Sequence[int]
    ) -> Request:
        # The length of a part alone decides how it travels, so that its two ranks decide alike: as
        # messages if it is large, since offsets of MPI have 32 bits, else in the call of all ranks.
        small = _CHUNK // self.size
        out, into = np.cumsum([0, *counts]), np.cumsum([0, *receives])
        requests, landed = [], []
        for data, ends, lengths, call in (
            (received, into, receives, self._comm.Irecv), (sent, out, counts, self._comm.Isend),
        ):  # fmt: skip
            for rank, n in enumerate(lengths):
                for at in range(ends[rank], ends[rank + 1], _CHUNK) if n > small else ():
                    requests.append(call(data[at : min(at + _CHUNK, ends[rank + 1])], rank, _LARGE))
        together = [[n if n <= small else 0 for n in lengths] for lengths in (counts, receives)]
        if requests:  # some parts are left out, so that the others do not lie one after the other
            parts = [sent[out[r] : out[r + 1]] for r, n in enumerate(together[0]) if n]
            landed = [received[into[r] : into[r + 1]] for r, n in enumerate(together[1]) if n]
            sent = np.concatenate([np.empty(0, np.uint8), *parts])
            received = np.empty(sum(together[1]), np.uint8)
        requests.append(self._comm.Ialltoallv([sent, together[0]], [received, together[1]]))
        return _Requests(requests, sent, received, land=(received, landed))

    def broadcast(self, data: Buffer, root: int) -> Request:
        parts = [data[at : at + _CHUNK] for at in range(0, data.size, _CHUNK)]
        return _Requests([self._comm.Ibcast(part, root) for part in parts], data)

    def send(self, data: Buffer, to: int, tag: int) -> Request:
        parts = [data[at : at + _CHUNK] for at in range(0, data.size, _CHUNK)]
        return _Requests([self._comm.Isend(part, to, tag) for part in parts], data)

    def receive(self, data: Buffer, source: int, tag: int) -> Request:
        parts = [data[at : at + _CHUNK] for at in range(0, data.size, _CHUNK)]
        return _Requests([self._comm.Irecv(part, source, tag) for part in parts], data)

    def split(self, ranks: Sequence[int]) -> Communicator:
        members = self._comm.Get_group().Incl(list(ranks))
        tag = 1 + hash(tuple(ranks)) % 32000  # groups that are formed at once are told apart
        return MpiCommunicator(self._comm.Create_group(members, tag))

    def abort(self, reason: str, status: int = 1) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(0.2)  # so that the launcher prints this output before its own
        self._comm.Abort(status)

    def all_reduce(self, data: Buffer, received: Buffer, reduction: str) -> Request | None:
        from mpi4py import MPI  # loaded when the world is made

        if data.dtype.kind not in "iuf" or data.dtype.itemsize < 4 or data.size >= 2**31:
            return None
        ops = {"sum": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN}
        return _Requests([self._comm.Iallreduce(data, received, ops[reduction])], data, received)

    def close(self) -> None:
        self._comm.Free()


_LARGE = 32001  # tag of the messages of a large all_to_all


def _world() -> Communicator:
    """Initialise MPI; return the communicator of all ranks.

    After the call, an uncaught exception of one rank ends all ranks, except in an interactive
    session. MPI is ended at exit, which waits for the other ranks.
    """
    import mpi4py  # only where ranks are connected

    mpi4py.rc.thread_level = "multiple"
    mpi4py.rc.finalize = False
    from mpi4py import MPI

    world = MpiCommunicator(MPI.COMM_WORLD.Dup())
    if world.size > 1:
        _end_all_on_errors(world)
    atexit.register(_finish, world._comm, os.getpid())
    return world


def _end_all_on_errors(world: MpiCommunicator) -> None:
    """Install a hook that ends all ranks after an uncaught exception was printed."""
    show, process = sys.excepthook, os.getpid()

    def hook(
        kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
    ) -> None:
        show(kind, error, trace)
        # in an interactive session the user goes on, and a fork ends by itself
        if not hasattr(sys, "ps1") and os.getpid() == process:
            world.abort(str(error))

    sys.excepthook = hook


def _finish(comm: Any, process: int) -> None:
    """Wait for the other ranks and end MPI, at the end of the process with this number.

    A fork of that process leaves MPI alone.
    """
    from mpi4py import MPI

    if os.getpid() == process and not MPI.Is_finalized():
        comm.Free()
        MPI.Finalize()


def _claims() -> bool:
    return any(name in os.environ for name in _CONNECTIONS)


def _available() -> str | None:
    if find_spec("mpi4py") is None:
        return "mpi4py is not installed; install it with: pip install 'duograph[mpi]'"
    return None


def _launch(size: int, command: Sequence[str]) -> list[str]:
    """Return the command line of mpiexec that starts `size` processes on this machine.

    Raises:
        FileNotFoundError: mpiexec was not found.
    """
    scripts = sysconfig.get_path("scripts")
    found = shutil.which("mpiexec", path=scripts) or shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError(
            "no mpiexec was found; install one with: pip install 'duograph[mpi]', or that of your "
            "system"
        )
    return [found, *_flags(found), "-n", str(size), *command]


def _flags(mpiexec: str) -> list[str]:
    """Return the flags with which mpiexec of Open MPI starts ranks; none for other versions of MPI.

    They allow more ranks than cores and ranks run by root, and name a temporary folder
    (`_own_folder`).
    """
    import subprocess  # only to start ranks

    said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    if "Open MPI" not in said.stdout and "OpenRTE" not in said.stdout:
        return []
    version = re.search(r"\) (\d+)\.", said.stdout)
    kind, variable = ("--mca", "orte_tmpdir_base")
    if version is not None and int(version[1]) >= 5:
        kind, variable = "--prtemca", "prte_tmpdir_base"
    root = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return ["--oversubscribe", *root, kind, variable, _own_folder()]


def _own_folder() -> str:
    """Return a new temporary folder for the files by which Open MPI connects the started ranks.

    By default, Open MPI uses a folder whose name contains the launcher's process id. A launcher
    that was killed leaves that folder behind, and Open MPI later refuses to start under the same
    process id: "The PMIx server's listener thread failed to start".
    """
    import tempfile  # only to start ranks

    folder = tempfile.mkdtemp(prefix="duograph-run-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@hookimpl
def duograph_collectives() -> CollectivesSpec:
    """Return the specification of the engine `mpi`."""
    return CollectivesSpec(
        "mpi", world=_world, claims=_claims, available=_available, launch=_launch, priority=10
    )
