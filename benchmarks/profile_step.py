"""Profile a compiled training step of duograph by kernel.

Usage: profile_step.py [--level O0] [--steps N] [--top N] WORKLOAD...

Each prepared call is timed while whole steps run. The tables show its count and milliseconds per
step, the bytes of its operands and results (a lower bound of the traffic), and the resulting
speeds. There are two tables per workload: by kind of op, and the slowest calls by op and shapes.
The total is the best step; the kernels are those of the median step.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import math
import os
import sys
import time
from pathlib import Path

from duograph.backend.prepared import PreparedCall

Key = tuple[str, str]


@dataclasses.dataclass
class Entry:
    """The accumulated cost of one kind of call on one tuple of shapes."""

    size: int
    operations: float
    seconds: float = 0.0
    count: int = 0


entries: dict[Key, Entry] = {}
CONTROL = {"while_loop", "switch", "call"}  # the calls in their subgraphs are counted instead


def _flops(name: str, operands, results) -> float:
    """Return the multiplications and additions of a matmul or convolution; 0 for other ops."""
    if name == "matmul":
        (x, y), out = operands[:2], results[0]
        return (
            2.0
            * out.size
            * math.sqrt(x.size * y.size / out.size / max(1, math.prod(out.shape[:-2])))
        )
    if name in ("conv", "conv_channels_last"):
        return 2.0 * results[0].size * math.prod(operands[1].shape[1:])
    if name == "conv_input_grad":
        return 2.0 * operands[0].size * math.prod(operands[1].shape[1:])
    if name == "conv_weight_grad":
        return 2.0 * operands[1].size * math.prod(results[0].shape[1:])
    return 0.0


class Timed(PreparedCall):
    """A prepared call that adds its duration to an `Entry`; it cannot be linked into a program."""


def _timed(call: PreparedCall, entry: Entry) -> Timed:
    inner = call.run

    def run(*handles):
        begin = time.perf_counter()
        out = inner(*handles)
        entry.seconds += time.perf_counter() - begin
        entry.count += 1
        return out

    return Timed(run)


def watch() -> None:
    """Make lowered graphs time each of their calls from now on; they then run step by step."""
    from duograph.backend.program import Step
    from duograph.execution import lowering as lower
    from duograph.types import TensorType

    plain = lower.Lowering.node

    @functools.wraps(plain)
    def node(self, node, graph, env, is_result):
        first = len(self.steps)
        found = plain(self, node, graph, env, is_result)
        for i in range(first, len(self.steps)):
            step = self.steps[i]
            if (
                node.op.name in CONTROL
                or not isinstance(step, Step)
                or isinstance(step.call, Timed)
            ):
                continue
            operands = [graph.types[k] for k in node.operands if k is not None]
            results = [graph.types[k] for k in node.results]
            tensors = [t for t in (*operands, *results) if isinstance(t, TensorType)]
            name = node.op.name
            flops = _flops(name, operands, results)
            if name == "region":  # named after the fused ops
                body = node.attributes["body"]
                inside = [n.op.name for n in body.nodes]
                for n in body.nodes:
                    shapes_of = (
                        [body.types[k] for k in n.operands],
                        [body.types[k] for k in n.results],
                    )
                    flops += _flops(n.op.name, *shapes_of)
                name = f"region of {len(inside)}: " + "+".join(dict.fromkeys(inside))[:40]
            shapes = " ".join("x".join(map(str, t.shape)) or "()" for t in tensors[:4])
            flags = "".join(
                "ab"[k == "transpose_b"]
                for k, v in node.attributes.items()
                if k.startswith("transpose_") and v
            )
            key = name, (f"[{flags}] " if flags else "") + shapes
            size = sum(t.size * t.dtype.np.itemsize for t in tensors)
            entry = entries.setdefault(key, Entry(size, flops))
            self.steps[i] = dataclasses.replace(step, call=_timed(step.call, entry))
        return found

    lower.Lowering.node = node


def profile(name: str, steps: int, top: int) -> None:
    from workloads.mindspore_api import CASES

    case = CASES[name]()
    case.values()
    case.run(2)
    rounds = []
    for _ in range(steps):
        for entry in entries.values():
            entry.seconds, entry.count = 0.0, 0
        seconds = case.run(1)
        rounds.append((seconds, {k: dataclasses.replace(e) for k, e in entries.items() if e.count}))
    entries.clear()
    rounds.sort(key=lambda r: r[0])
    seconds, found = rounds[len(rounds) // 2]
    inside = sum(e.seconds for e in found.values())
    calls = sum(e.count for e in found.values())
    print(
        f"\n== {name}: {seconds * 1e3:.2f} ms a step (best {rounds[0][0] * 1e3:.2f}), {calls} "
        "calls, "
        f"{inside * 1e3:.2f} ms inside them, {(seconds - inside) / max(calls, 1) * 1e6:.1f} µs "
        "around each"
    )
    kinds: dict[str, list[Entry]] = collections.defaultdict(list)
    for (kind, _), entry in found.items():
        kinds[kind].append(entry)
    table({k: _sum(v) for k, v in kinds.items()}, seconds, top)
    print()
    table({f"{k} {s}": _sum([e]) for (k, s), e in found.items()}, seconds, top)


def _sum(entries: list[Entry]) -> tuple[int, float, float, float]:
    return (
        sum(e.count for e in entries),
        sum(e.seconds for e in entries),
        sum(e.size * e.count for e in entries),
        sum(e.operations * e.count for e in entries),
    )


def table(rows: dict[str, tuple[int, float, float, float]], whole: float, top: int) -> None:
    print(f"{'':<72} {'calls':>5} {'ms':>9} {'%':>5} {'MB':>8} {'GB/s':>6} {'GFLOP/s':>8}")
    for name, (count, seconds, size, flops) in sorted(rows.items(), key=lambda r: -r[1][1])[:top]:
        speed = f"{flops / seconds / 1e9:8.0f}" if flops else ""
        print(
            f"{name:<72} {count:5d} {seconds * 1e3:9.3f} {seconds / whole * 100:5.1f} "
            f"{size / 1e6:8.2f} "
            f"{size / seconds / 1e9:6.1f} {speed}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="+")
    parser.add_argument("--level", default="O0", choices=("O0", "O1"))
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--top", type=int, default=20)
    args = parser.parse_args()
    os.environ["BENCH_LEVEL"] = args.level
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    watch()
    for name in args.workloads:
        profile(name, args.steps, args.top)


if __name__ == "__main__":
    main()
