"""Measure what profiling costs: while a profile runs, and while none does.

Usage: profiler.py [--pairs N] [--json]

The first table compares training steps of about a millisecond with and without a running profile,
eager and compiled, in alternating blocks of one process. The second table compares the shortest
calls before the first profile of the process with the same calls after the last one. Steps are
timed by the clock, because threads that wait for work use CPU time too, and short calls by CPU
time. Each ratio is the median over pairs of neighbouring blocks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import duograph as ms
import numpy as np
from duograph import nn

Function = Callable[[], object]


def training(width: int, batch: int) -> dict[str, Function]:
    """Return name -> function for a training step of an MLP, eager and compiled."""
    rng = np.random.default_rng(0)
    x = ms.Tensor(rng.standard_normal((batch, width)), ms.float32)
    y = ms.Tensor(rng.integers(0, 10, batch), ms.int32)

    def made() -> tuple[Function, Function]:
        net = nn.SequentialCell(nn.Dense(width, width), nn.ReLU(), nn.Dense(width, 10))
        loss_fn = nn.CrossEntropyLoss()
        optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
        step = ms.value_and_grad(lambda a, b: loss_fn(net(a), b), None, optimizer.parameters)

        def train(a: ms.Tensor, b: ms.Tensor) -> ms.Tensor:
            loss, gradients = step(a, b)
            optimizer(gradients)
            return loss

        compiled = ms.jit(train)
        return (lambda: train(x, y)), (lambda: compiled(x, y))

    return {"eager": made()[0], "compiled": made()[1]}


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


def block(run: Function, calls: int, clock: Callable[[], float]) -> float:
    """Return the seconds per call, by a clock, of a block of calls."""
    begin = clock()
    for _ in range(calls):
        run()
    return (clock() - begin) / calls


def calls_in(run: Function, seconds: float) -> int:
    """Return how many calls of `run` take about `seconds`."""
    run()
    return max(1, int(seconds / max(block(run, 3, time.perf_counter), 1e-9)))


def running(pairs: int) -> dict[str, dict[str, float]]:
    """Return, by name, the milliseconds of a step without and with a profile, and the ratio."""
    found = {}
    for name, run in training(256, 400).items():
        calls = calls_in(run, 0.04)
        with ms.profile():  # the first call under a profile prepares the form that reports
            run()
        plain, profiled = [], []
        for _ in range(pairs):
            plain.append(block(run, calls, time.perf_counter))
            with ms.profile():
                profiled.append(block(run, calls, time.perf_counter))
        found[name] = {
            "ms": statistics.median(plain) * 1e3,
            "ms profiled": statistics.median(profiled) * 1e3,
            "ratio": statistics.median(b / a for a, b in zip(plain, profiled)),
        }
    return found


def off(pairs: int) -> dict[str, dict[str, float]]:
    """Return, by name, the time of the shortest calls before and after profiles, and the ratio.

    The times are in nanoseconds.
    """
    found = {}
    for name, run in short().items():
        calls = calls_in(run, 0.02)
        before, after = [], []
        for _ in range(pairs):
            before.append(block(run, calls, time.process_time))
            with ms.profile():
                run()
            run()
            after.append(block(run, calls, time.process_time))
        found[name] = {
            "ns": statistics.median(before) * 1e9,
            "ns after": statistics.median(after) * 1e9,
            "ratio": statistics.median(b / a for a, b in zip(before, after)),
        }
    return found


def table(title: str, rows: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}")
    heads = list(next(iter(rows.values())))
    print(f"{'':<24}" + "".join(f"{head:>14}" for head in heads))
    for name, row in rows.items():
        print(f"{name:<24}" + "".join(f"{row[head]:14.3f}" for head in heads))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    ms.set_context(device_target="CPU")
    rows = {"off": off(args.pairs), "running": running(args.pairs)}
    if args.json:
        print(json.dumps(rows))
        return
    table("a training step, without and with a running profile", rows["running"])
    table("the shortest calls, before and after a profile", rows["off"])


if __name__ == "__main__":
    main()
