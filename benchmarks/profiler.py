"""Measure what profiling costs: while a profile runs, and while none does.

Usage: profiler.py [--pairs N] [--step MS] [--json]

The first table compares training steps with and without a running profile, eager and compiled. The
batch of each is chosen so that a step takes about a millisecond on this machine. The second table
compares the shortest calls of two processes: one has never used the profiler, and the other has run
a profile before. Blocks of all rows alternate, with both orders of each pair, so that a change of
the machine's speed meets them alike. Each overhead is the median over pairs of neighbouring blocks,
beside its quartiles. Steps are timed by the clock, because threads that wait for work use CPU time
too, and short calls by CPU time. The defaults take about two minutes on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import duograph as ms
import numpy as np
from duograph import nn

Function = Callable[[], object]
Times = tuple[list[float], list[float]]  # seconds of the blocks of two sides, pair by pair
WIDTH = 256
MODES = ("eager", "compiled")
BLOCK = 0.05  # seconds of a block: long against a tick of the clock


def training(mode: str, batch: int) -> Function:
    """Return a training step of an MLP, eager or compiled."""
    rng = np.random.default_rng(0)
    x = ms.Tensor(rng.standard_normal((batch, WIDTH)), ms.float32)
    y = ms.Tensor(rng.integers(0, 10, batch), ms.int32)
    net = nn.SequentialCell(nn.Dense(WIDTH, WIDTH), nn.ReLU(), nn.Dense(WIDTH, 10))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    gradient = ms.value_and_grad(lambda a, b: loss_fn(net(a), b), None, optimizer.parameters)

    def train(a: ms.Tensor, b: ms.Tensor) -> ms.Tensor:
        loss, gradients = gradient(a, b)
        optimizer(gradients)
        return loss

    step = train if mode == "eager" else ms.jit(train)
    return lambda: step(x, y)


class Many(nn.Cell):
    """A network with 50 Parameters, for the cost of a call."""

    def __init__(self) -> None:
        super().__init__()
        values = [ms.Tensor([float(k), 1.0, 2.0]) for k in range(50)]
        self.numbers = ms.ParameterTuple(
            [ms.Parameter(v, name=f"p{k}", requires_grad=False) for k, v in enumerate(values)]
        )

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        for p in self.numbers:
            x = x + p
        return x


def short() -> dict[str, Function]:
    """Return name -> function for the shortest calls."""
    x, y = ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([4.0, 5.0, 6.0])
    compiled = ms.jit(lambda a, b: a * b + a)
    net = Many()
    network = ms.jit(lambda a: net(a))
    return {
        "x*y+x eager": lambda: x * y + x,
        "x*y+x compiled": lambda: compiled(x, y),
        "50 Parameters compiled": lambda: network(x),
    }


def block(run: Function, calls: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds per call, by a clock, of a block of calls."""
    begin = clock()
    for _ in range(calls):
        run()
    return (clock() - begin) / calls


def calls_in(run: Function, seconds: float) -> int:
    """Return how many calls of `run` take about `seconds`."""
    block(run, 3)
    return max(1, int(seconds / min(block(run, 3) for _ in range(5))))


def calibrated(mode: str, seconds: float) -> tuple[int, Function]:
    """Return (batch, training step) such that a step takes about `seconds`."""
    batch = 256
    for _ in range(6):
        run = training(mode, batch)
        block(run, 20)  # compile, and let caches fill
        took = statistics.median(block(run, 10) for _ in range(9))
        if abs(took / seconds - 1) < 0.1:
            break
        batch = max(8, round(batch * seconds / took / 8) * 8)
    return batch, run


def summary(names: tuple[str, str], times: Times, scale: float) -> dict[str, float]:
    """Return the medians of two lists of blocks, and the median overhead of the second in %.

    "from" and "to" are its quartiles. `names` are the headings of the two medians.
    """
    overheads = [(b / a - 1) * 100 for a, b in zip(*times, strict=True)]
    low, middle, high = statistics.quantiles(overheads, n=4)
    medians = [statistics.median(side) * scale for side in times]
    return dict(zip(names, medians)) | {"overhead %": middle, "from": low, "to": high}


def running(pairs: int, seconds: float) -> dict[str, dict[str, float]]:
    """Return, by mode, the milliseconds of a step without and with a profile, and the overhead."""
    made = {mode: calibrated(mode, seconds) for mode in MODES}
    kernels, times = {}, {mode: ([], []) for mode in MODES}
    for mode, (_, run) in made.items():
        with ms.profile():  # the first calls under a profile prepare the form that reports
            block(run, 10)
        with ms.profile() as p:
            run()
        kernels[mode] = sum(r.kind == "kernel" for r in p.records())
    for pair in range(pairs):
        for mode in MODES if pair % 2 else reversed(MODES):
            run = made[mode][1]
            calls = max(1, round(BLOCK / seconds))
            for profiled in (False, True) if pair // 2 % 2 else (True, False):
                if profiled:
                    with ms.profile():
                        took = block(run, calls)
                else:
                    took = block(run, calls)
                times[mode][profiled].append(took)
    return {
        f"{mode}, batch {made[mode][0]}": {
            "kernels": kernels[mode],
            **summary(("plain", "profiled"), times[mode], 1e3),
        }
        for mode in MODES
    }


class Side:
    """A process that times the shortest calls, which has or has never run a profile."""

    def __init__(self, side: str) -> None:
        line = [sys.executable, __file__, "--side", side]
        self.process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, name: str, calls: int = 0) -> float:
        """Return the CPU seconds of a call; with 0 calls, the number of calls in a block."""
        self.process.stdin.write(json.dumps([name, calls]) + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def answer(side: str) -> None:
    """Time blocks of calls, as the parent process asks on standard input."""
    functions = short()
    for run in functions.values():
        block(run, 100)
        if side == "after":
            with ms.profile():
                block(run, 100)
            block(run, 100)
    for line in sys.stdin:
        name, calls = json.loads(line)
        run = functions[name]
        found = block(run, calls, time.process_time) if calls else calls_in(run, BLOCK)
        print(found, flush=True)


def off(pairs: int) -> dict[str, dict[str, float]]:
    """Return, by name, the nanoseconds of the shortest calls of two processes, and the overhead.

    The first has never used the profiler; the second has run a profile before.
    """
    sides = Side("never"), Side("after")
    names = list(short())
    calls = {name: int(sides[0].seconds(name)) for name in names}
    times = {name: ([], []) for name in names}
    for pair in range(pairs):
        for name in names:
            for k in (0, 1) if pair % 2 else (1, 0):
                times[name][k].append(sides[k].seconds(name, calls[name]))
    for side in sides:
        side.close()
    return {name: summary(("never", "after"), times[name], 1e9) for name in names}


def table(title: str, rows: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}")
    heads = list(next(iter(rows.values())))
    print(f"{'':<24}" + "".join(f"{head:>12}" for head in heads))
    for name, row in rows.items():
        print(f"{name:<24}" + "".join(f"{row[head]:12.6g}" for head in heads))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=150, help="of neighbouring blocks, per row")
    parser.add_argument("--step", type=float, default=1.0, metavar="MS", help="length of a step")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--side", choices=("never", "after"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.pairs < 2 or args.step <= 0:
        parser.error("wanted at least 2 pairs, and a step above 0 ms")
    ms.set_context(device_target="CPU")
    if args.side:
        answer(args.side)
        return
    rows = {"running": running(args.pairs, args.step / 1e3), "off": off(args.pairs)}
    if args.json:
        print(json.dumps(rows))
        return
    table("a training step in ms, without and with a running profile", rows["running"])
    table("the shortest calls in ns, never profiled and after a profile", rows["off"])


if __name__ == "__main__":
    main()
