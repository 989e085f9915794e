"""The communication engine `tcp`, whose ranks are processes that connect by TCP, without MPI.

The engine needs no other package. Rank 0 listens at the address in MASTER_ADDR and MASTER_PORT, or
in msrun's MS_SCHED_HOST and MS_SCHED_PORT; other variables of the launcher contain the rank of a
process and the number of ranks (`duograph.launched`). `duograph run -n N` starts ranks of this
engine if there is no MPI: ``python -m duograph_collectives.tcp N COMMAND ...``.

It is intended for small messages, such as those by which the ranks of the engine `nccl` find each
other; MPI transfers large arrays several times as fast.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import secrets
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from duograph.backend.collectives import Buffer, CollectivesSpec, Communicator, Request
from duograph.backend.hookspecs import hookimpl
from duograph.context import settings
from duograph.errors import CommunicationError
from duograph.launched import launched

__all__ = ["duograph_collectives", "rank_and_size"]

_ADDRESSES = (("MASTER_ADDR", "MASTER_PORT"), ("MS_SCHED_HOST", "MS_SCHED_PORT"))
_RANKS = ("RANK", "MS_NODE_ID", "RANK_ID")
_TOKEN = "DUOGRAPH_TCP_TOKEN"  # of the launcher, so that ranks of two programs do not meet
_HEADER = struct.Struct("<16sqqq")  # group, tag or _COLLECTIVE, number, length
_HELLO = struct.Struct("<16sqq")  # digest of the token, rank, port
_COLLECTIVE = -1
_Key = tuple[bytes, int, int, int]  # group, tag, number, sender


class _Peer:
    """A connection with another rank: bytes still to send, and the incomplete message received."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.out: deque[memoryview] = deque()
        self.header = bytearray()
        self.key: tuple[bytes, int, int] | None = None
        self.body, self.filled = bytearray(), 0
        self.ended = False
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self) -> None:
        """Send as many of the queued bytes as the socket accepts without blocking.

        Raises:
            BlockingIOError: the socket accepts no more bytes now.
        """
        while self.out:
            done = self.link.send(self.out[0])
            if done < len(self.out[0]):
                self.out[0] = self.out[0][done:]
            else:
                self.out.popleft()

    def receive(self, inbox: dict[_Key, bytes], source: int) -> None:
        """Receive the bytes that have arrived, and store complete messages in the inbox.

        `source` is the rank at the other end, which becomes a part of a message's key.
        """
        while True:
            if self.key is None:
                found = self.link.recv(_HEADER.size - len(self.header))
                self.header += found
                if len(self.header) == _HEADER.size:
                    group, tag, number, length = _HEADER.unpack(self.header)
                    self.key, self.header = (group, tag, number), bytearray()
                    self.body, self.filled = bytearray(length), 0
            else:
                count = self.link.recv_into(memoryview(self.body)[self.filled :])
                found = bytes(min(count, 1))
                self.filled += count
            if self.key is not None and self.filled == len(self.body):
                inbox[(*self.key, source)] = bytes(self.body)
                self.key = None
            elif not found:
                self.ended = True
                return


class _Mesh:
    """The connections of a process with all other ranks of the program."""

    def __init__(self, rank: int, links: dict[int, socket.socket]) -> None:
        self.rank = rank
        self.peers = {r: _Peer(link) for r, link in links.items()}
        self.inbox: dict[_Key, bytes] = {}
        self.formed: dict[tuple[int, ...], int] = {}  # groups so far, by their ranks
        self._ready = selectors.DefaultSelector()
        for r, peer in self.peers.items():
            self._ready.register(peer.link, selectors.EVENT_READ, r)

    def post(self, to: int, key: tuple[bytes, int, int], data: bytes) -> None:
        """Queue a message for a rank, which may be the calling rank, and send as much as possible.

        `to` is the rank, `data` the content, and `key` identifies the message at the receiver.
        """
        if to == self.rank:
            self.inbox[(*key, to)] = data
            return
        self.peers[to].out += (memoryview(_HEADER.pack(*key, len(data))), memoryview(data))
        self.progress()

    def progress(self) -> None:
        """Send and receive as much as is possible without blocking, on all connections."""
        for peer in self.peers.values():
            if peer.out and not peer.ended:
                self._tried(peer, peer.send)
        for key, _ in self._ready.select(0):
            peer = self.peers[key.data]
            self._tried(peer, peer.receive, self.inbox, key.data)
            if peer.ended:
                self._ready.unregister(peer.link)

    def _tried(self, peer: _Peer, do: Callable[..., object], *arguments: object) -> None:
        try:
            do(*arguments)
        except BlockingIOError:
            return
        except OSError:
            peer.ended = True

    def flush(self) -> None:
        """Send all queued bytes, for at most five seconds."""
        end = time.monotonic() + 5
        while any(p.out and not p.ended for p in self.peers.values()) and time.monotonic() < end:
            self.progress()


class _Awaited(Request):
    """A transfer that is complete when messages have arrived for all its buffers."""

    def __init__(self, mesh: _Mesh, parts: list[tuple[_Key, Buffer]]) -> None:
        self._mesh, self._parts = mesh, parts

    def test(self) -> bool:
        mesh = self._mesh
        mesh.progress()
        left = []
        for key, into in self._parts:
            data = mesh.inbox.pop(key, None)
            if data is not None:
                if len(data) != into.size:
                    raise CommunicationError(
                        f"rank {key[3]} sends {len(data)} bytes; wanted {into.size}"
                    )
                into[:] = np.frombuffer(data, np.uint8)
            elif key[3] != mesh.rank and mesh.peers[key[3]].ended:
                raise ConnectionError(f"rank {key[3]} has ended")
            else:
                left.append((key, into))
        self._parts = left
        return not left


class TcpCommunicator(Communicator):
    """A group of ranks that TCP connects, from the viewpoint of one of them."""

    def __init__(self, mesh: _Mesh, name: bytes, ranks: Sequence[int]) -> None:
        self._mesh, self._name, self._ranks = mesh, name, list(ranks)
        self.rank, self.size = self._ranks.index(mesh.rank), len(self._ranks)
        self._count = 0
        self._sent: dict[tuple[int, int], int] = {}
        self._received: dict[tuple[int, int], int] = {}

    def _meet(self, parts: dict[int, Buffer], into: dict[int, Buffer]) -> Request:
        """Start a collective transfer of parts to and from ranks of the group.

        `parts` and `into` are dicts from rank in the group to the part sent or the buffer received.
        """
        number, self._count = self._count, self._count + 1
        for r, part in parts.items():
            self._mesh.post(self._ranks[r], (self._name, _COLLECTIVE, number), part.tobytes())
        return _Awaited(self._mesh, [
            ((self._name, _COLLECTIVE, number, self._ranks[r]), part) for r, part in into.items()
        ])  # fmt: skip

    def all_gather(self, sent: Buffer, received: Buffer) -> Request:
        rows = np.split(received, self.size)
        return self._meet(dict.fromkeys(range(self.size), sent), dict(enumerate(rows)))

    def all_to_all(
        self, sent: Buffer, counts: Sequence[int], received: Buffer, receives: Sequence[int]
    ) -> Request:
        parts = np.split(sent, np.cumsum(counts)[:-1])
        into = np.split(received, np.cumsum(receives)[:-1])
        return self._meet(dict(enumerate(parts)), dict(enumerate(into)))

    def broadcast(self, data: Buffer, root: int) -> Request:
        parts = dict.fromkeys(range(self.size), data) if self.rank == root else {}
        return self._meet(parts, {root: data})

    def send(self, data: Buffer, to: int, tag: int) -> Request:
        number = self._sent[to, tag] = self._sent.get((to, tag), -1) + 1
        self._mesh.post(self._ranks[to], (self._name, tag, number), data.tobytes())
        return _Awaited(self._mesh, [])  # the mesh has a copy

    def receive(self, data: Buffer, source: int, tag: int) -> Request:
        number = self._received[source, tag] = self._received.get((source, tag), -1) + 1
        return _Awaited(self._mesh, [((self._name, tag, number, self._ranks[source]), data)])

    def split(self, ranks: Sequence[int]) -> Communicator:
        members = [self._ranks[r] for r in ranks]
        formed = self._mesh.formed
        again = formed[tuple(members)] = formed.get(tuple(members), 0) + 1
        name = hashlib.blake2b(repr((members, again)).encode(), digest_size=16).digest()
        return TcpCommunicator(self._mesh, name, members)

    def abort(self, reason: str, status: int = 1) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # the launcher ends the others, or they see that the connection ends


# ---- connecting ----------------------------------------------------------------------------------


def rank_and_size() -> tuple[int, int] | None:
    """Return (rank of this process, number of ranks), or None if no launcher has set them."""
    found = launched()
    if found is None:
        return None
    texts = [os.environ.get(name, "") for name in _RANKS]
    rank = next((int(t) for t in texts if t.isdigit()), found.rank)
    return None if rank is None else (rank, found.size)


def _address() -> tuple[str, int] | None:
    """Return the (host, port) where rank 0 listens, or None if the environment does not have it."""
    for host, port in _ADDRESSES:
        number = os.environ.get(port, "")
        if os.environ.get(host) and number.isdigit():
            return os.environ[host], int(number)
    return None


def _world() -> Communicator:
    """Connect with the other ranks; return the communicator of all ranks.

    After the call, an uncaught exception ends this process at once, so that the launcher ends the
    other ranks.

    Raises:
        CommunicationError: a rank does not connect within the time limit.
    """
    found, address = rank_and_size(), _address()
    assert found is not None
    assert address is not None
    rank, size = found
    digest = hashlib.blake2b(os.environ.get(_TOKEN, "").encode(), digest_size=16).digest()
    links = _Meeting(rank, size, address, digest, settings.communication_timeout).links()
    mesh = _Mesh(rank, links)
    show, process = sys.excepthook, os.getpid()
    atexit.register(lambda: mesh.flush() if os.getpid() == process else None)

    def hook(
        kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
    ) -> None:
        show(kind, error, trace)
        # in an interactive session the user goes on, and a fork ends by itself
        if not hasattr(sys, "ps1") and os.getpid() == process:
            sys.stderr.flush()
            os._exit(1)

    sys.excepthook = hook
    return TcpCommunicator(mesh, bytes(16), range(size))


class _Meeting:
    """Connects all ranks: each tells rank 0 on which port it listens, and receives all ports."""

    def __init__(
        self, rank: int, size: int, address: tuple[str, int], digest: bytes, seconds: float
    ) -> None:
        self.rank, self.size, self.address, self.digest = rank, size, address, digest
        self.seconds, self.end = seconds, time.monotonic() + seconds

    def links(self) -> dict[int, socket.socket]:
        """Connect with all other ranks; return a dict from rank to connection."""
        if self.rank == 0:
            with socket.create_server(self.address, backlog=self.size) as server:
                found = self._accepted(server, self.size - 1)
            table = "\n".join(
                f"{link.getpeername()[0]} {port}" for _, (link, port) in sorted(found.items())
            ).encode()
            for link, _ in found.values():
                link.sendall(struct.pack("<q", len(table)) + table)
            return {r: link for r, (link, _) in found.items()}
        first = self._connected(*self.address)
        with socket.create_server((first.getsockname()[0], 0), backlog=self.size) as server:
            self._greet(first, server.getsockname()[1])
            (length,) = struct.unpack("<q", self._exactly(first, 8))
            places = [t.split() for t in self._exactly(first, length).decode().split("\n")]
            links = {0: first}
            for r in range(1, self.rank):
                links[r] = self._connected(places[r - 1][0], int(places[r - 1][1]))
                self._greet(links[r], 0)
            later = self._accepted(server, self.size - 1 - self.rank)
        return links | {r: link for r, (link, _) in later.items()}

    def _greet(self, link: socket.socket, port: int) -> None:
        link.sendall(_HELLO.pack(self.digest, self.rank, port))

    def _accepted(self, server: socket.socket, count: int) -> dict[int, tuple[socket.socket, int]]:
        """Accept connections of `count` ranks; return rank -> (connection, port where it listens).

        Connections that do not send the right token and a new rank are closed.
        """
        found: dict[int, tuple[socket.socket, int]] = {}
        while len(found) < count:
            server.settimeout(max(self.end - time.monotonic(), 0.01))
            try:
                link, _ = server.accept()
                digest, rank, port = _HELLO.unpack(self._exactly(link, _HELLO.size))
            except TimeoutError:
                missing = sorted(set(range(self.size)) - found.keys() - {self.rank})
                raise CommunicationError(
                    f"rank {self.rank} waited {self.seconds:g} s at {server.getsockname()[:2]} for "
                    f"ranks {', '.join(map(str, missing))} of {self.size} to connect"
                ) from None
            except (ConnectionError, struct.error):
                continue
            if digest == self.digest and 0 <= rank < self.size and rank not in found:
                found[rank] = link, port
            else:
                link.close()
        return found

    def _connected(self, host: str, port: int) -> socket.socket:
        while True:
            try:
                return socket.create_connection((host, port), max(self.end - time.monotonic(), 0.1))
            except OSError as error:
                if time.monotonic() > self.end:
                    raise CommunicationError(
                        f"rank {self.rank} could not connect to {host}:{port} in "
                        f"{self.seconds:g} s: {error}"
                    ) from None
                time.sleep(0.05)

    def _exactly(self, link: socket.socket, n: int) -> bytes:
        link.settimeout(max(self.end - time.monotonic(), 0.1))
        data = b""
        while len(data) < n:
            found = link.recv(n - len(data))
            if not found:
                raise ConnectionError("a rank has ended while the ranks connected")
            data += found
        return data


def _claims() -> bool:
    return rank_and_size() is not None and _address() is not None


@hookimpl
def duograph_collectives() -> CollectivesSpec:
    """Return the specification of the engine `tcp`."""
    return CollectivesSpec(
        "tcp", world=_world, claims=_claims, priority=5,
        launch=lambda size, command: [sys.executable, "-m", __name__, str(size), *command],
    )  # fmt: skip


# ---- launcher ------------------------------------------------------------------------------------


def launch(size: int, command: Sequence[str]) -> int:
    """Start `size` ranks that run `command` on this machine, and wait for their end.

    If one fails, the others are ended.

    Returns:
        0 if no rank failed, else the exit status of the lowest rank whose status is neither 0 nor 1
        (128 plus the signal's number if a signal ended it), or 1 if there is none. A rank that ends
        because another one has ended has status 1.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shared = {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size),
        _TOKEN: secrets.token_hex(16),
    }  # fmt: skip
    started: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for r in range(size):  # if one cannot start, those before it end
            own = {"RANK": str(r), "LOCAL_RANK": str(r)}
            started.append(subprocess.Popen(command, env=os.environ | shared | own))
        while not any(p.poll() for p in started) and any(p.poll() is None for p in started):
            time.sleep(0.02)
        if any(p.poll() for p in started):
            time.sleep(0.5)  # the others may have something to say
        failed = [p.returncode for p in started if p.poll()]
        # a rank that ends because another one has ended has status 1
        status = next((s for s in failed if s != 1), 1 if failed else 0)
        return status if status >= 0 else 128 - status
    finally:
        for p in started:
            p.kill()


if __name__ == "__main__":
    sys.exit(launch(int(sys.argv[1]), sys.argv[2:]))
