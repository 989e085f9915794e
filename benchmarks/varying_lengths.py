"""Batches of many lengths through an encoder: one program for all, one per length, and the peers.

    python benchmarks/varying_lengths.py [--batches 1000] [--lengths 200] [--level O1] [--train]
        [--peers PYTHON]

Each way runs in a process of its own with an empty disk cache, and gets the same batches. PYTHON
has PyTorch and JAX (`varying_lengths_peers`). Printed are the seconds of all calls, compilation
included, the median of a call whose length was seen before, and what was compiled: functions,
programs made for a length from one for all lengths, and C files.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

# What `dynamic` of `jit` is.
WAYS = {"one program": None, "one per length": 0}
PEERS = {"torch dynamic": "torch", "JAX, padded": "JAX"}
WIDTH, HEADS, WORDS, ROWS = 64, 4, 100, 8


def network():
    """Return an encoder of two transformer blocks for sequences of any length."""
    from duograph import nn, ops

    class Encoder(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norms = nn.CellList([nn.LayerNorm((WIDTH,)) for _ in range(4)])
            self.inward = nn.CellList([nn.Dense(WIDTH, 3 * WIDTH) for _ in range(2)])
            self.outward = nn.CellList([nn.Dense(WIDTH, WIDTH) for _ in range(2)])
            self.wide = nn.CellList([nn.Dense(WIDTH, 4 * WIDTH) for _ in range(2)])
            self.narrow = nn.CellList([nn.Dense(4 * WIDTH, WIDTH) for _ in range(2)])
            self.embedding = nn.Embedding(WORDS, WIDTH)
            self.head = nn.Dense(WIDTH, 10)

        def construct(self, ids):
            x = self.embedding(ids)
            b, t, d = x.shape
            for k in range(2):
                parts = ops.chunk(self.inward[k](self.norms[2 * k](x)), 3, -1)
                q, key, v = [
                    p.reshape(b, t, HEADS, d // HEADS).transpose(0, 2, 1, 3) for p in parts
                ]
                a = ops.matmul(q, key.transpose(0, 1, 3, 2)) / (d // HEADS) ** 0.5
                y = ops.matmul(ops.softmax(a, -1), v).transpose(0, 2, 1, 3).reshape(b, t, d)
                x = x + self.outward[k](y)
                h = ops.gelu(self.wide[k](self.norms[2 * k + 1](x)))
                x = x + self.narrow[k](h)
            return self.head(x.mean(1))

    return Encoder()


def run(dynamic: int | None, batches: int, lengths: int, level: str, train: bool) -> dict:
    """Run all batches; return the measured numbers by name."""
    import duograph as ms
    import duograph_cpu.toolchain as toolchain
    from duograph import Tensor, nn

    compiled = 0
    library = toolchain._library

    def counted(*arguments):
        nonlocal compiled
        compiled += 1
        return library(*arguments)

    toolchain._library = counted  # the only place that starts the C compiler
    ms.set_seed(0)
    net = network()
    if train:
        optimizer = nn.Adam(net.trainable_params(), 1e-3)
        criterion = nn.CrossEntropyLoss()
        gradient = ms.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)

        @ms.jit(jit_level=level, dynamic=dynamic)
        def step(x, y):
            loss, gradients = gradient(x, y)
            optimizer(gradients)
            return loss

    else:

        @ms.jit(jit_level=level, dynamic=dynamic)
        def step(x, y):
            return net(x).mean()

    def call(ids: np.ndarray, targets: np.ndarray) -> float:
        return float(step(Tensor(ids), labels))

    labels = Tensor(labels_of_rows())
    found = measure(call, batches, lengths)
    return {
        **found,
        "programs": step.cache_info().misses,
        "specialised": step._specialised,
        "c_files": compiled,
    }


def labels_of_rows() -> np.ndarray:
    """Return the label of each row of a batch."""
    return np.random.default_rng(1).integers(0, 10, ROWS).astype(np.int32)


def measure(step: Callable[[np.ndarray, np.ndarray], float], batches: int, lengths: int) -> dict:
    """Call a step with all batches; return seconds, and the median for lengths seen before."""
    rng = np.random.default_rng(0)
    order = [*rng.permutation(lengths), *rng.integers(0, lengths, batches - lengths)]
    rng.shuffle(order)
    seen, again, total, last, labels = set(), [], 0.0, 0.0, labels_of_rows()
    for k in order:
        length = int(k) + 5
        ids = rng.integers(0, WORDS, (ROWS, length)).astype(np.int32)
        start = time.perf_counter()
        last = step(ids, labels)
        spent = time.perf_counter() - start
        total += spent
        if length in seen:
            again.append(spent)
        seen.add(length)
    return {"seconds": total, "median_ms": 1e3 * statistics.median(again), "last": last}


def run_peer(name: str, batches: int, lengths: int, train: bool) -> dict:
    """Run all batches through a peer; return the figures."""
    from varying_lengths_peers import STEPS

    return measure(STEPS[name](train), batches, lengths)


def main() -> None:
    """Run both ways and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--lengths", type=int, default=200)
    parser.add_argument("--level", default="O1")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python that has PyTorch and JAX")
    ways = [*WAYS, *PEERS]
    parser.add_argument("--way", choices=ways, help="run this one only, and print JSON")
    given = parser.parse_args()
    if given.way:
        if given.way in PEERS:
            found = run_peer(PEERS[given.way], given.batches, given.lengths, given.train)
        else:
            found = run(WAYS[given.way], given.batches, given.lengths, given.level, given.train)
        print(json.dumps(found))
        return
    titles = ("seconds", 9), ("ms again", 10), ("programs", 10), ("per length", 12), ("C files", 9)
    print(" " * 16 + "".join(f"{title:>{width}}" for title, width in titles) + "  last")
    for way in ways if given.peers else WAYS:
        with tempfile.TemporaryDirectory() as folder:
            environment = {
                **os.environ,
                "PYTHONWARNINGS": "ignore",
                **dict.fromkeys(("DUOGRAPH_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"), folder),
            }
            python = given.peers if way in PEERS else sys.executable
            command = [python, *sys.argv, "--way", way]
            said = subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True
            )
        found = json.loads(said.stdout.splitlines()[-1])
        print(
            f"{way:16}{found['seconds']:9.2f}{found['median_ms']:10.2f}"
            f"{found.get('programs', ''):10}{found.get('specialised', ''):12}"
            f"{found.get('c_files', ''):9}  {found['last']:.6f}"
        )


if __name__ == "__main__":
    main()
