"""Compare two installations of duograph: speed of every benchmark, and the bits of its results.

Usage: against.py --old PYTHON [--new PYTHON] [--levels O0,O1] [--only WORDS] [--pairs N]
                  [--out FILE]

Run it after a change that must not make duograph slower. PYTHON is the interpreter of an
environment in which that version is installed; the default for --new is this one. Each version runs
in its own process; their repetitions alternate, and a ratio is the median over the pairs of new
time divided by old time, so above 1 is slower. Exit status: 1 if a row is slower by more than 3 %,
or its results are not equal bit for bit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import whole
from measure import TOLERANCE, CaseFailed, Worker, duration

PAIRS = 9
EAGER = (
    "add3", "add3_recorded", "chain100", "matmul", "conv_forward", "conv_data_gradient",
    "conv_weight_gradient", "softmax", "layer_norm", "sum_all", "sum_rows", "add_large",
    "mul_large", "relu_large",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One benchmark on both versions: seconds of each repetition, and whether the results agree."""

    name: str
    old: list[float]
    new: list[float]
    equal_bits: bool | None  # None: nothing was compared

    @property
    def ratio(self) -> float:
        return statistics.median(n / o for o, n in zip(self.old, self.new, strict=True))

    @property
    def passed(self) -> bool:
        return self.ratio <= 1 + TOLERANCE and self.equal_bits is not False

    def __str__(self) -> str:
        bits = {None: "", True: "same bits", False: "OTHER BITS"}[self.equal_bits]
        old, new = (duration(statistics.median(s)) for s in (self.old, self.new))
        best = min(self.new) / min(self.old)
        mark = "" if self.ratio <= 1 + TOLERANCE else "  SLOWER"
        return (
            f"{self.name:<34} old {old:>8}  new {new:>8}  {self.ratio:.3f}  "
            f"(best by best {best:.3f})  {bits}{mark}"
        )


def compare(case: str, name: str, workers: list[Worker], pairs: int) -> Comparison:
    """Prepare a case on the old and the new version, compare results, and time both alternately."""
    values = [worker.prepare(case) for worker in workers]
    equal = len(values[0]) == len(values[1]) and all(
        a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
        for a, b in zip(*values, strict=True)
    )
    for worker in workers:
        worker.run(case, 2)
    once = min(workers[0].run(case, 2) for _ in range(2))
    count = max(1, min(100_000, round(0.1 / once)))
    seconds: list[list[float]] = [[], []]
    for pair in range(pairs):
        for version in (0, 1) if pair % 2 == 0 else (1, 0):
            seconds[version].append(workers[version].run(case, count))
    return Comparison(name, seconds[0], seconds[1], equal)


def first_results(case: str, level: str, pythons: list[str], pairs: int) -> list[Comparison]:
    """Measure the time to a compiled function's first result in a new process, cold and warm."""
    seconds: dict[str, list[list[float]]] = {"cold": [[], []], "warm": [[], []]}
    for pair in range(pairs):
        for version in (0, 1) if pair % 2 == 0 else (1, 0):
            with tempfile.TemporaryDirectory() as folder:
                for kind in ("cold", "warm"):
                    worker = start(pythons[version], "workloads.mindspore_api", level, folder)
                    notes = worker.prepare_noting(case)[1]
                    worker.close()
                    seconds[kind][version].append(notes["first step"])
    return [
        Comparison(f"first result {case} {level}, {kind}", *both, None)
        for kind, both in seconds.items()
    ]


def start(python: str, side: str, level: str = "", folder: str | None = None) -> Worker:
    variables = {"BENCH_LEVEL": level} if level else {"BENCH_MODULE": "duograph"}
    return Worker(python, side, python, **variables, **(whole.caches(folder) if folder else {}))


def comparisons(options: argparse.Namespace):
    """Yield the selected comparisons, each as soon as it is measured."""
    pythons = [str(Path(python).absolute()) for python in (options.old, options.new)]
    words = options.only.split(",") if options.only else []

    def chosen(name: str) -> bool:
        return not words or any(word in name for word in words)

    tasks = [("mindspore_api", "", case, f"eager {case}") for case in EAGER]
    for level in options.levels.split(","):
        tasks += [
            ("workloads.mindspore_api", level, row.case, f"{row.case} {level}")
            for row in whole.ROWS
        ]
    for side, level, case, name in tasks:
        if not chosen(name):
            continue
        workers = [start(python, side, level) for python in pythons]
        try:
            yield compare(case, name, workers, options.pairs)
        except CaseFailed as error:
            print(f"{name}: {error}", file=sys.stderr)
        finally:
            for worker in workers:
                worker.close()
    for row in whole.FIRST:
        if chosen(f"first {row.case}"):
            yield from first_results(row.case, "O1", pythons, options.pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--old", required=True, metavar="PYTHON", help="interpreter of the old version"
    )
    parser.add_argument("--new", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--levels", default="O0,O1", help="compilation levels, with commas")
    parser.add_argument("--only", default="", help="only rows that contain one of these words")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="repetitions of each version")
    parser.add_argument("--out", type=Path, help="write the table there as JSON")
    options = parser.parse_args()
    found = []
    for comparison in comparisons(options):
        print(comparison, flush=True)
        found.append(comparison)
    failed = [comparison for comparison in found if not comparison.passed]
    print(f"{len(found)} rows, {len(failed)} slower by more than 3 % or with other bits")
    if found:
        middle = statistics.geometric_mean(comparison.ratio for comparison in found)
        print(f"geometric mean of new / old: {middle:.3f}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps([vars(c) | {"ratio": c.ratio} for c in found], indent=1))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
