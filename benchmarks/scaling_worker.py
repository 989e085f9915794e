"""One rank of `scaling.py`: times collectives of several sizes.

Usage: scaling_worker.py OUT ROUNDS. After a barrier, every rank calls the collective; OUT.RANK.json
gets the seconds of each call:

- gather, reduce, scatter: `ops.AllGather`, `ops.AllReduce` and `ops.ReduceScatter`; the size is the
  number of bytes of the operand of a rank.
- messages: K messages of 16 bytes to the next rank, all in flight at once, by the engine; the size
  is K.
- summed: seconds per byte of an operand that `transfers.reduce_tree` adds to another one.
"""

from __future__ import annotations

import json
import os
import sys
import time

import duograph as ms
import numpy as np
from duograph import ops
from duograph.communication import get_group_size, get_rank, init
from duograph.ranks.transfers import reduce_tree
from duograph.ranks.world import world

GATHERS = (256, 4096, 65536, 2**19, 2**21)
REDUCES = (1024, 16384, 2**18, 2**21, 2**23)
MESSAGES = (1, 2, 4, 8, 16, 32)


def collectives():
    """Return (kind, size, function to time) of each measurement."""
    gather, reduce, scatter = ops.AllGather(), ops.AllReduce(), ops.ReduceScatter()
    rank, size = get_rank(), get_group_size()
    found = []
    for kind, op, sizes in (
        ("gather", gather, GATHERS),
        ("reduce", reduce, REDUCES),
        ("scatter", scatter, REDUCES),
    ):
        for nbytes in sizes:
            x = ms.Tensor(np.ones(nbytes // 4, np.float32))
            found.append((kind, nbytes, lambda op=op, x=x: op(x).asnumpy()))
    comm = world().whole.comm  # the engine itself: what it does for each peer of a collective
    sent = np.ones(16, np.uint8)
    for count in MESSAGES:

        def exchange(count=count):
            received = np.zeros((count, 16), np.uint8)
            left = [comm.receive(r, (rank - 1) % size, i) for i, r in enumerate(received)]
            left += [comm.send(sent, (rank + 1) % size, i) for i in range(count)]
            while left:
                left = [request for request in left if not request.test()]

        found.append(("messages", count, exchange))
    return found


def summed() -> float:
    """Return the seconds per byte of adding one array to another, in cache and out of it."""
    times = []
    for size in (2**18, 2**21, 2**23):
        x, y = (np.ones(size // 4, np.float32) for _ in range(2))
        begin = time.perf_counter()
        for _ in range(10):
            reduce_tree([x, y], "sum")
        times.append((time.perf_counter() - begin) / 10 / size)
    return sorted(times)[1]


def main() -> None:
    out, rounds = sys.argv[1], int(sys.argv[2])
    init()
    cores = os.environ.get("BENCH_CORES")
    if cores:
        chosen = [int(c) for c in cores.split(",")]
        os.sched_setaffinity(0, {chosen[get_rank() % len(chosen)]})
    barrier, one = ops.AllReduce(), ms.Tensor(np.ones(1, np.float32))
    rows = collectives()
    times: dict[str, list[float]] = {f"{kind} {size}": [] for kind, size, _ in rows}
    for i in range(rounds + 2):
        for kind, size, run in rows:
            barrier(one).asnumpy()
            begin = time.perf_counter()
            run()
            if i >= 2:
                times[f"{kind} {size}"].append(time.perf_counter() - begin)
    report = {"times": times, "summed": summed()}
    with open(f"{out}.{get_rank()}.json", "w", encoding="utf-8") as file:
        json.dump(report, file)


if __name__ == "__main__":
    main()
