"""Conformance tests of communication engines: every kind of transfer, with known bytes.

    duograph run -n 4 -m duograph.conformance.collectives

runs them on the ranks that the launcher has started, with their engine. The tests need no device,
so they are not part of a backend's suite. `check` runs them on a given communicator. With `--device
NAME` at the end of the command, transfers between device memories are checked too, if the engine
has them (`check_device`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..backend import registry
from ..backend.checked_calls import from_device, to_device
from ..backend.collectives import Communicator, DeviceTransfers, Part, Request
from ..dtype import ALL, STORAGE, DType, float32
from ..ranks.world import world
from ..tensor import Tensor
from ..types import Device, TensorType

if TYPE_CHECKING:
    from ..backend.prepared import Handle
    from ..host_arrays import Array

__all__ = ["CASES", "DEVICE_CASES", "check", "check_device", "main"]

Bytes: TypeAlias = "Array"
LENGTHS = (0, 1, 7, 4096, 1_000_001)  # the last is more than engines and sockets buffer
SECONDS = 60.0


def _own(rank: int, n: int, salt: int = 0) -> Bytes:
    """Return the n bytes that a rank sends in a test; `salt` selects different bytes."""
    return ((np.arange(n) * 7 + rank * 31 + salt * 13) % 251).astype(np.uint8)


def _finish(*requests: Request) -> None:
    """Wait for all requests in turn, since one may make no progress before another is complete."""
    end = time.monotonic() + SECONDS
    waiting = list(requests)
    while waiting:
        assert time.monotonic() < end, f"a transfer was not complete after {SECONDS:g} s"
        waiting = [r for r in waiting if not r.wait(1e-3)]
    assert all(r.test() for r in requests), "a complete transfer says that it is not"


def _same(found: Bytes, expected: Bytes) -> None:
    np.testing.assert_array_equal(found, expected)


def _all_gather(comm: Communicator, n: int) -> None:
    out = np.zeros(comm.size * n, np.uint8)
    _finish(comm.all_gather(_own(comm.rank, n), out))
    _same(out, np.concatenate([_own(r, n) for r in range(comm.size)]))


def _all_to_all(comm: Communicator, n: int) -> None:
    """Check all_to_all: rank r sends n + r + 2 * s bytes to rank s, also where r = s.

    The exception is r = s = 0: rank 0 sends no bytes to itself.
    """

    def count(r: int, s: int) -> int:
        return 0 if r == s == 0 else n + r + 2 * s

    ranks = range(comm.size)
    counts, receives = [count(comm.rank, s) for s in ranks], [count(r, comm.rank) for r in ranks]
    sent = np.concatenate([_own(comm.rank, count(comm.rank, s), s) for s in ranks])
    out = np.zeros(sum(receives), np.uint8)
    _finish(comm.all_to_all(sent, counts, out, receives))
    _same(out, np.concatenate([_own(r, count(r, comm.rank), comm.rank) for r in ranks]))


def _broadcast(comm: Communicator, n: int) -> None:
    for root in range(comm.size):
        data = _own(comm.rank, n)
        _finish(comm.broadcast(data, root))
        _same(data, _own(root, n))


def _messages(comm: Communicator, n: int) -> None:
    """Check that tags select messages: the receive of the second message is posted first."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if after == comm.rank:
        return
    sends = [comm.send(_own(comm.rank, n, tag), after, tag) for tag in (3, 5)]
    got = [np.zeros(n, np.uint8) for _ in range(2)]
    receives = [comm.receive(got[1], before, 5), comm.receive(got[0], before, 3)]
    _finish(*sends, *receives)
    for data, tag in zip(got, (3, 5), strict=True):
        _same(data, _own(before, n, tag))


def _in_order(comm: Communicator, n: int) -> None:
    """Check that messages of one tag arrive in the order of sending while a collective runs."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    out = np.zeros(comm.size * n, np.uint8)
    gathered = comm.all_gather(_own(comm.rank, n), out)
    for number in range(3 if comm.size > 1 else 0):
        sent = comm.send(_own(comm.rank, n, number), after, 0)
        data = np.zeros(n, np.uint8)
        received = comm.receive(data, before, 0)
        _finish(sent, received)
        _same(data, _own(before, n, number))
    _finish(gathered)
    _same(out, np.concatenate([_own(r, n) for r in range(comm.size)]))


def _groups(comm: Communicator, n: int) -> None:
    """Check groups: all ranks in reverse order, two halves (created twice), and one rank alone."""
    ranks = list(range(comm.size))
    halves = [ranks[::2], ranks[1::2]]
    mine = next(half for half in halves if comm.rank in half)
    for members in (ranks[::-1], mine, mine, [comm.rank]):
        part = comm.split(members)
        assert (part.rank, part.size) == (members.index(comm.rank), len(members))
        out = np.zeros(part.size * n, np.uint8)
        _finish(part.all_gather(_own(comm.rank, n), out))
        _same(out, np.concatenate([_own(r, n) for r in members]))
        part.close()


CASES: dict[str, Callable[[Communicator, int], None]] = {
    "all_gather": _all_gather, "all_to_all": _all_to_all, "broadcast": _broadcast,
    "messages": _messages, "messages in order": _in_order, "groups": _groups,
}  # fmt: skip


def check(comm: Communicator, lengths: Sequence[int] = LENGTHS) -> list[str]:
    """Run all test cases on every rank of a communicator; return texts of what failed.

    Args:
        comm: communicator of any engine; all its ranks must call this function.
        lengths: numbers of bytes to transfer, one after the other.
    """
    failed = []
    for name, case in CASES.items():
        for n in lengths:
            try:
                case(comm, n)
            except Exception as error:  # noqa: BLE001 (of the engine; it may be any)
                failed.append(f"{name} of {n} bytes on rank {comm.rank}: {error!r}")
                return failed  # the ranks may be at different cases now
    return failed


# ---- transfers between devices -------------------------------------------------------------------


class OnDevice:
    """What a device test uses: the engine's device transfers `d`, the rank and the device."""

    def __init__(self, d: DeviceTransfers, comm: Communicator, device: Device) -> None:
        self.d, self.rank, self.size, self.device = d, comm.rank, comm.size, device
        self.backend = registry.backend(device.name)

    def put(self, array: Bytes) -> Handle:
        """Copy an array to the device; return the buffer handle."""
        return to_device(self.backend, np.ascontiguousarray(array), self.device.index)

    def get(self, handle: Handle, n: int, dtype: DType | None = None) -> Bytes:
        """Copy n elements of `dtype` from a buffer to the host; None stands for uint8."""
        kind = np.dtype(np.uint8) if dtype is None else dtype.np
        return from_device(self.backend, handle, (n,), kind, self.device.index)


def _device_all_gather(on: OnDevice, n: int) -> None:
    x, out = on.put(_own(on.rank, n)), on.d.allocate(n * on.size)
    _finish(on.d.all_gather(x, out, n, on.d.mark()))
    _same(on.get(out, n * on.size), np.concatenate([_own(r, n) for r in range(on.size)]))


def _device_broadcast(on: OnDevice, n: int) -> None:
    for root in range(on.size):
        x, out = on.put(_own(on.rank, n)), on.d.allocate(n)
        _finish(on.d.broadcast(x, out, n, root, on.d.mark()))
        _same(on.get(out, n), _own(root, n))
        _same(on.get(x, n), _own(on.rank, n))


def _device_exchange(on: OnDevice, n: int) -> None:
    """Check `exchange`: rank r sends n + r + 2 * s bytes to rank s in two parts, also where r = s.

    The exception is r = s = 0: rank 0 sends no bytes to itself.
    """

    def count(r: int, s: int) -> int:
        return 0 if r == s == 0 else n + r + 2 * s

    ranks = range(on.size)
    counts, receives = [count(on.rank, s) for s in ranks], [count(r, on.rank) for r in ranks]
    x = on.put(np.concatenate([_own(on.rank, count(on.rank, s), s) for s in ranks]))
    out = on.d.allocate(sum(receives))

    def parts(handle: Handle, lengths: Sequence[int]) -> list[Part]:
        begins = [sum(lengths[:r]) for r in ranks]
        return [
            part
            for r, (a, k) in enumerate(zip(begins, lengths, strict=True))
            for part in (Part(handle, a, k // 3, r), Part(handle, a + k // 3, k - k // 3, r))
        ]

    _finish(on.d.exchange(parts(x, counts), parts(out, receives), on.d.mark()))
    expected = [_own(r, count(r, on.rank), on.rank) for r in ranks]
    _same(on.get(out, sum(receives)), np.concatenate(expected))


_RESULTS: dict[str, Callable[..., Array]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def _numbers(rank: int, n: int, dtype: DType) -> Bytes:
    """Return n small numbers, whose sums and products over a few ranks are exact in every dtype."""
    found = (np.arange(n) * (rank + 1) + rank) % 3
    return (found > 0 if dtype.np.kind == "b" else found).astype(dtype.np)


def _device_reductions(on: OnDevice, n: int) -> None:
    """Check all_reduce of two arrays together, and reduce_scatter, in every dtype of the engine."""
    if n > 5000:  # there are a hundred pairs of dtype and reduction
        return
    for dtype in (*ALL, *STORAGE):
        for name, combine in _RESULTS.items():
            if not on.d.reduces(dtype, name):
                continue
            m = n * on.size
            values = [_numbers(r, m, dtype) for r in range(on.size)]
            expected = values[0]
            for value in values[1:]:
                expected = combine(expected, value).astype(dtype.np)
            x, mine = on.put(values[on.rank]), on.d.allocate(m // on.size * dtype.itemsize)
            outs = [on.d.allocate(m * dtype.itemsize) for _ in range(2)]
            pairs = [(x, out, m) for out in outs]
            _finish(on.d.all_reduce(pairs, dtype, name, on.d.mark()))
            _finish(on.d.reduce_scatter(x, mine, m // on.size, dtype, name, on.d.mark()))
            for out in outs:
                np.testing.assert_array_equal(on.get(out, m, dtype), expected, f"{name} {dtype}")
            part = expected.reshape(on.size, -1)[on.rank]
            np.testing.assert_array_equal(on.get(mine, len(part), dtype), part, f"{name} {dtype}")


def _device_order(on: OnDevice, n: int) -> None:
    """Check that a transfer begins after earlier kernels, and that later kernels wait for it."""
    n += 1
    x = Tensor(np.full(n, on.rank, np.float32), device=str(on.device))
    for _ in range(3):
        x = x + 1.0
    outs = [on.d.allocate(4 * n * on.size) for _ in range(3)]
    started = [on.d.all_gather(x._buf, out, 4 * n, on.d.mark()) for out in outs]
    y = x * 2.0  # beside them
    for request in reversed(started):  # the device waits; the host need not
        assert request.wait(SECONDS)
    kind = TensorType.of((n * on.size,), float32).on(on.device)
    found = [Tensor._make(kind, out) + 1.0 for out in outs]
    expected = np.repeat(np.arange(on.size, dtype=np.float32) + 4, n)
    for each in found:
        _same(each.asnumpy(), expected)
    _same(y.asnumpy(), np.full(n, 2 * on.rank + 6, np.float32))


DEVICE_CASES: dict[str, Callable[[OnDevice, int], None]] = {
    "all_gather": _device_all_gather, "broadcast": _device_broadcast,
    "exchange": _device_exchange, "reductions": _device_reductions, "order": _device_order,
}  # fmt: skip


def check_device(comm: Communicator, device: Device, lengths: Sequence[int] = LENGTHS) -> list[str]:
    """Run all device test cases in the group and in subgroups; return texts of what failed.

    Args:
        comm: communicator of an engine that serves the device; all its ranks must call this
            function.
        device: device of this rank.
        lengths: numbers of bytes to transfer, one after the other.
    """
    ranks = list(range(comm.size))
    halves = (ranks[::2], ranks[1::2])
    mine = next(half for half in halves if comm.rank in half)
    failed: list[str] = []
    for members in (None, ranks[::-1], mine):
        part = comm if members is None else comm.split(members)
        d = part.on_device(registry.backend(device.name), device.index, f"ranks {members}")
        on = OnDevice(d, part, device)
        for name, case in DEVICE_CASES.items():
            for n in lengths if members is None else lengths[2:3]:
                try:
                    case(on, n)
                except Exception as error:  # noqa: BLE001 (of the engine; it may be any)
                    text = f"{name} of {n} bytes on rank {comm.rank} of {device}: {error!r}"
                    return [*failed, text]
        d.close()
        if members is not None:
            part.close()
    return failed


def main() -> None:
    """Run the command: test the engine of the started ranks; exit with 1 if a case fails."""
    parser = argparse.ArgumentParser(prog="duograph.conformance.collectives")
    parser.add_argument("--device", metavar="NAME", help="also check transfers between devices")
    device = parser.parse_args().device
    own = world()
    failed = check(own.whole.comm)
    done = f"{len(CASES)} cases of {len(LENGTHS)} lengths on {own.size} ranks"
    if device is not None and not failed:
        name, _, index = device.partition(":")
        place = Device(registry.backend(name).name, int(index or 0))
        if not own.whole.comm.serves(registry.backend(name), place.index):
            failed = [f"the engine {own.engine!r} has no transfers between devices of {name}"]
        else:
            failed = check_device(own.whole.comm, place)
            done += f", {len(DEVICE_CASES)} between their {name}s"
    if failed:
        sys.stderr.write("\n".join(failed) + "\n")
        sys.exit(1)
    if own.rank == 0:
        sys.stdout.write(f"{own.engine}: {done}\n")


if __name__ == "__main__":
    main()
