"""A communication engine over TCP sockets, written from docs/plugins.md alone.

Ranks are processes of one machine. Every two of them share a connection; a frame on it carries the
bytes of one transfer, with a key by which the receiver finds them. A process that runs this module
starts the ranks: ``python -m duograph_sockets SIZE COMMAND ...``.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from duograph.backend.collectives import CollectivesSpec, Communicator, Request
from duograph.backend.hookspecs import hookimpl

HEADER = struct.Struct("<16sqqq")  # group, tag or -1 for a collective, number, length
COLLECTIVE = -1
Key = tuple[bytes, int, int, int]  # group, tag, number, sender


class Mesh:
    """The connections of a process with the others, by rank of the world."""

    def __init__(self, rank: int, peers: dict[int, socket.socket]) -> None:
        self.rank, self.peers = rank, peers
        self.out = {r: deque[memoryview]() for r in peers}
        self.partial = {r: bytearray() for r in peers}
        self.inbox: dict[Key, bytes] = {}
        self.ended: set[int] = set()
        self.formed: dict[tuple[int, ...], int] = {}  # groups so far, by their ranks
        for peer in peers.values():
            peer.setblocking(False)

    def post(self, to: int, key: tuple[bytes, int, int], data: bytes) -> None:
        """Send a copy of bytes to a rank, which may be this one."""
        if to == self.rank:
            self.inbox[key[0], key[1], key[2], to] = data
            return
        self.out[to].append(memoryview(HEADER.pack(*key, len(data)) + data))
        self.progress()

    def progress(self) -> None:
        """Send and receive what is possible now."""
        for r in self.peers:
            if r not in self.ended:
                try:
                    self._send(r)
                    self._receive(r)
                except OSError:
                    self.ended.add(r)

    def _send(self, to: int) -> None:
        waiting = self.out[to]
        try:
            while waiting:
                done = self.peers[to].send(waiting[0])
                if done == len(waiting[0]):
                    waiting.popleft()
                else:
                    waiting[0] = waiting[0][done:]
        except BlockingIOError:
            return

    def _receive(self, source: int) -> None:
        data = self.partial[source]
        try:
            while True:
                found = self.peers[source].recv(1 << 20)
                if not found:
                    self.ended.add(source)
                    break
                data += found
        except BlockingIOError:
            pass
        at = 0
        while len(data) - at >= HEADER.size:
            *key, length = HEADER.unpack_from(data, at)
            end = at + HEADER.size + length
            if end > len(data):
                break
            self.inbox[key[0], key[1], key[2], source] = bytes(data[at + HEADER.size : end])
            at = end
        del data[:at]

    def flush(self) -> None:
        """Send what is left, for a minute at most."""
        end = time.monotonic() + 60
        while any(self.out[r] for r in self.peers if r not in self.ended):
            if time.monotonic() > end:
                return
            self.progress()


class Awaited(Request):
    """A transfer that is complete when bytes of some senders have arrived; `into` takes them."""

    def __init__(self, mesh: Mesh, parts: list[tuple[Key, np.ndarray]]) -> None:
        self._mesh, self._parts = mesh, parts

    def test(self) -> bool:
        mesh = self._mesh
        mesh.progress()
        left = []
        for key, into in self._parts:
            data = mesh.inbox.pop(key, None)
            if data is not None:
                into[:] = np.frombuffer(data, np.uint8)
            elif key[3] in mesh.ended:
                raise ConnectionError(f"rank {key[3]} has ended")
            else:
                left.append((key, into))
        self._parts = left
        return not left


class SocketCommunicator(Communicator):
    """A group of ranks, as one of them sees it; `ranks` are those of the world."""

    def __init__(self, mesh: Mesh, name: bytes, ranks: Sequence[int]) -> None:
        self._mesh, self._name, self._ranks = mesh, name, list(ranks)
        self.rank, self.size = self._ranks.index(mesh.rank), len(self._ranks)
        self._count = 0
        self._sent: dict[tuple[int, int], int] = {}
        self._received: dict[tuple[int, int], int] = {}

    def _meet(self, parts: dict[int, np.ndarray], into: dict[int, np.ndarray]) -> Request:
        """Send a part to each rank of the group, and take one of each."""
        number, self._count = self._count, self._count + 1
        for r, part in parts.items():
            key = self._name, COLLECTIVE, number
            self._mesh.post(self._ranks[r], key, part.tobytes())
        return Awaited(self._mesh, [
            ((self._name, COLLECTIVE, number, self._ranks[r]), part) for r, part in into.items()
        ])  # fmt: skip

    def all_gather(self, sent: np.ndarray, received: np.ndarray) -> Request:
        rows = np.split(received, self.size)
        return self._meet(dict.fromkeys(range(self.size), sent), dict(enumerate(rows)))

    def all_to_all(
        self, sent: np.ndarray, counts: Sequence[int], received: np.ndarray, receives: Sequence[int]
    ) -> Request:
        parts = np.split(sent, np.cumsum(counts)[:-1])
        into = np.split(received, np.cumsum(receives)[:-1])
        return self._meet(dict(enumerate(parts)), dict(enumerate(into)))

    def broadcast(self, data: np.ndarray, root: int) -> Request:
        parts = dict.fromkeys(range(self.size), data) if self.rank == root else {}
        return self._meet(parts, {root: data})

    def send(self, data: np.ndarray, to: int, tag: int) -> Request:
        number = self._sent[to, tag] = self._sent.get((to, tag), -1) + 1
        self._mesh.post(self._ranks[to], (self._name, tag, number), data.tobytes())
        return Awaited(self._mesh, [])  # the mesh has a copy

    def receive(self, data: np.ndarray, source: int, tag: int) -> Request:
        number = self._received[source, tag] = self._received.get((source, tag), -1) + 1
        return Awaited(self._mesh, [((self._name, tag, number, self._ranks[source]), data)])

    def split(self, ranks: Sequence[int]) -> Communicator:
        members = [self._ranks[r] for r in ranks]
        formed = self._mesh.formed
        again = formed[tuple(members)] = formed.get(tuple(members), 0) + 1
        name = hashlib.blake2b(repr((members, again)).encode(), digest_size=16).digest()
        return SocketCommunicator(self._mesh, name, members)

    def abort(self, reason: str, status: int = 1) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # the launcher ends the others


def connected() -> Communicator:
    """Connect with the other ranks; called once in each process."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    port = int(os.environ["MASTER_PORT"])
    mine = socket.create_server(("127.0.0.1", port if rank == 0 else 0))
    peers: dict[int, socket.socket] = {}
    if rank == 0:
        ports = [port] + [0] * (size - 1)
        for _ in range(size - 1):
            peer = mine.accept()[0]
            r, ports_r = struct.unpack("<qq", _exactly(peer, 16))
            peers[r], ports[r] = peer, ports_r
        for peer in peers.values():
            peer.sendall(struct.pack(f"<{size}q", *ports))
    else:
        peers[0] = _connect(port)
        peers[0].sendall(struct.pack("<qq", rank, mine.getsockname()[1]))
        ports = list(struct.unpack(f"<{size}q", _exactly(peers[0], 8 * size)))
        for r in range(1, rank):
            peers[r] = _connect(ports[r])
            peers[r].sendall(struct.pack("<q", rank))
        for _ in range(rank + 1, size):
            peer = mine.accept()[0]
            peers[struct.unpack("<q", _exactly(peer, 8))[0]] = peer
    mine.close()
    mesh = Mesh(rank, peers)
    atexit.register(mesh.flush)
    show = sys.excepthook

    def end_all(*error: Any) -> None:
        show(*error)
        sys.stderr.flush()
        os._exit(1)

    sys.excepthook = end_all
    return SocketCommunicator(mesh, bytes(16), range(size))


def _connect(port: int) -> socket.socket:
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _exactly(peer: socket.socket, n: int) -> bytes:
    data = b""
    while len(data) < n:
        found = peer.recv(n - len(data))
        if not found:
            raise ConnectionError("a rank has ended while the ranks connected")
        data += found
    return data


@hookimpl
def duograph_collectives() -> CollectivesSpec:
    return CollectivesSpec(
        "sockets", world=connected, claims=lambda: os.environ.get("DUOGRAPH_SOCKETS") == "1",
        launch=lambda size, command: [
            sys.executable, "-m", "duograph_sockets", str(size), *command
        ],
        priority=20,
    )  # fmt: skip


def launch(size: int, command: list[str]) -> int:
    """Start ranks and wait; if one fails, end the others. Return the status of that one."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shared = {"DUOGRAPH_SOCKETS": "1", "WORLD_SIZE": str(size), "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(command, env=os.environ | shared | {"RANK": str(r), "LOCAL_RANK": str(r)})
        for r in range(size)
    ]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
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
