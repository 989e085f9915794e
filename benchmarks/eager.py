"""Compare eager duograph with its peers, as ratios within one run.

Usage: eager.py [--out TABLE.md] [--only WORD] [--pairs N] [--mindspore PYTHON]

Each peer runs in its own process on the same two cores. The values of a case are compared before it
is timed; then the sides alternate, and a figure is the median over the pairs. Exit status: 0 if
every budget is met within 3 %, 1 otherwise.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import fresh
from measure import (
    PAIRS,
    CaseFailed,
    Figure,
    Row,
    Worker,
    at_least,
    at_most,
    duration,
    interleaved,
    markdown,
    terminal_line,
)
from sides.inputs import SMALL_CALLS

MIB = 1024 * 1024
LARGE_BYTES = 16 * MIB * 4
MATMUL = "matmul 1024^3"

# case, description, largest fraction of torch's time that duograph may take
AGAINST_TORCH = (
    ("add3", "a + b, 3 floats", 0.8),
    ("add3_recorded", "a + b, 3 floats, recorded", 0.8),
    ("chain100", "100 small ops, forward and backward", 0.8),
    ("conv_forward", "conv 3x3 N16 C64 56x56", 1.0),
    ("conv_data_gradient", "  its gradient for the images", 1.0),
    ("conv_weight_gradient", "  its gradient for the weights", 1.0),
    ("softmax", "softmax (8192, 1024)", 1.0),
    ("layer_norm", "layer_norm (8192, 1024)", 1.0),
    ("sum_all", "sum of (8192, 1024)", 1.0),
    ("sum_rows", "sum of each row of (8192, 1024)", 1.0),
)
# case, description, number of arrays read or written
AGAINST_COPY = (
    ("add_large", "a + b, 16M floats", 3),
    ("mul_large", "a * b, 16M floats", 3),
    ("relu_large", "relu, 16M floats", 2),
)
WITH_MINDSPORE = {"add3", "add3_recorded", "chain100"}


class Eager:
    """The worker processes, and a measurement for each line of the table."""

    def __init__(self, pairs: int, mindspore: str | None):
        self.pairs = pairs
        self.ours = Worker("duograph", "mindspore_api", BENCH_MODULE="duograph")
        self.copy = Worker("copy", "copy")
        self.torch = Worker("torch", "torch_api")
        self.jax = Worker("JAX", "jax_api", JAX_PLATFORMS="cpu")
        self.mindspore = None
        if mindspore and Path(mindspore).exists():
            self.mindspore = Worker(
                "MindSpore",
                "mindspore_api",
                str(Path(mindspore).absolute()),
                BENCH_MODULE="mindspore",
                GLOG_v="3",
            )

    def close(self) -> None:
        for worker in (self.ours, self.copy, self.torch, self.jax, self.mindspore):
            if worker is not None:
                worker.close()

    def table(self) -> Iterator[tuple[str, str, Callable[[], Figure]]]:
        """Yield (description, budget, function that measures it) of each line of the table."""
        for case, what, limit in AGAINST_TORCH:
            yield what, f"<= {limit} of torch's time", partial(self.time, case, limit)
        for name in SMALL_CALLS:
            for case in (f"small: {name}", f"small: {name}, recorded"):
                yield case, "<= 0.8 of torch's time", partial(self.time, case, 0.8)
        yield MATMUL, "speed >= 2 of torch", partial(self.matmul, self.torch, 2.0)
        yield MATMUL, "speed >= 0.95 of JAX", partial(self.matmul, self.jax, 0.95)
        for case, what, arrays in AGAINST_COPY:
            yield what, "bytes/s >= 0.8 of a copy", partial(self.bandwidth, case, arrays)
        yield "import duograph", "<= 0.15 s over NumPy", self.import_time
        yield "import duograph", "<= 40 MiB over NumPy", self.import_memory
        yield "installed, without dependencies", "<= 30 MB", self.size
        yield "10,000 training steps", "memory grows <= 1 MiB", self.steps

    def time(self, case: str, limit: float) -> Figure:
        """Return our time divided by torch's, with MindSpore's time where it is available."""
        sides = {"ours": (self.ours, case), "torch": (self.torch, case)}
        if self.mindspore is not None and case in WITH_MINDSPORE:
            sides["MindSpore"] = (self.mindspore, case)
        pairs = interleaved(case, sides, self.pairs)
        ratio = pairs.ratio("ours", "torch")
        detail = ", ".join(f"{side} {duration(pairs.median(side))}" for side in sides)
        return Figure(f"{ratio:.2f}", detail, at_most(ratio, limit))

    def matmul(self, peer: Worker, limit: float) -> Figure:
        sides = {"ours": (self.ours, "matmul"), peer.name: (peer, "matmul")}
        pairs = interleaved("matmul", sides, self.pairs)
        ratio = pairs.ratio(peer.name, "ours")
        gflops = {side: 2 * 1024**3 / pairs.median(side) / 1e9 for side in sides}
        detail = ", ".join(f"{side} {value:.0f} GFLOP/s" for side, value in gflops.items())
        return Figure(f"{ratio:.2f}", detail, at_least(ratio, limit))

    def bandwidth(self, case: str, arrays: int) -> Figure:
        sides = {
            "ours": (self.ours, case),
            "torch": (self.torch, case),
            "copy": (self.copy, "copy_large"),
        }
        moved = {"ours": arrays, "torch": arrays, "copy": 2}
        pairs = interleaved(case, sides, self.pairs)
        ratio = pairs.ratio("copy", "ours") * moved["ours"] / moved["copy"]
        detail = ", ".join(
            f"{side} {moved[side] * LARGE_BYTES / pairs.median(side) / 1e9:.0f} GB/s"
            for side in sides
        )
        return Figure(f"{ratio:.2f}", detail, at_least(ratio, 0.8))

    def import_time(self) -> Figure:
        above, _, total = fresh.import_cost(self.pairs)
        return Figure(f"{above:.3f} s", f"{total:.3f} s with NumPy", at_most(above, 0.15))

    def import_memory(self) -> Figure:
        mib = fresh.import_cost(self.pairs)[1] / 1024
        return Figure(f"{mib:.1f} MiB", "", at_most(mib, 40))

    def size(self) -> Figure:
        megabytes = fresh.installed_size() / 1e6
        return Figure(f"{megabytes:.1f} MB", "", at_most(megabytes, 30))

    def steps(self) -> Figure:
        grown, first, last = fresh.training_steps()
        detail = f"loss {first:.3f} to {last:.2g}"
        if not last < first:
            raise CaseFailed(f"the loss did not fall: {detail}")
        return Figure(f"{grown / MIB:+.2f} MiB", detail, grown <= MIB)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the table there, as markdown")
    parser.add_argument("--only", default="", help="only rows whose name contains this word")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="interleaved repetitions")
    parser.add_argument("--mindspore", metavar="PYTHON", help="an interpreter that has MindSpore")
    options = parser.parse_args()
    if options.pairs < 7:
        print("note: fewer than 7 pairs is too few for a figure that anyone should cite")

    eager = Eager(options.pairs, options.mindspore)
    rows = []
    try:
        for what, budget, measure in eager.table():
            if options.only in what:
                rows.append(Row.of(what, budget, measure))
                print(terminal_line(rows[-1]), flush=True)
    finally:
        eager.close()
    missed = sum(not row.figure.met for row in rows)
    print(f"{len(rows) - missed} of {len(rows)} budgets met")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        heading = f"Eager, {platform.machine()}, Python {platform.python_version()}"
        options.out.write_text(markdown(rows, heading), encoding="utf-8")
    # a missed budget is a figure like any other; a row that could not be measured is a fault
    return int(any(row.figure.text == "failed" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
