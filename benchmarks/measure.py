"""Shared code of the benchmarks: workers, interleaved pairs, rows and tables."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TOLERANCE = 0.03  # of every budget: two runs of one program differ by that much
PAIRS = 9
THREADS = 2


class CaseFailed(Exception):
    """Error: a side could not run a case, or the sides disagree on its values."""


def environment(**more: str) -> dict[str, str]:
    """Return the environment variables of every framework: number of threads, caches enabled."""
    threads = {f"{library}_NUM_THREADS": str(THREADS) for library in ("OMP", "MKL", "OPENBLAS")}
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, **threads, "BENCH_THREADS": str(THREADS), **more}


class Worker:
    """A framework in a separate process (`worker.py`)."""

    def __init__(self, name: str, side: str, python: str = sys.executable, **variables: str):
        self.name = name
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), side, str(THREADS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if os.environ.get("BENCH_QUIET", "1") == "1" else None,
            text=True,
            cwd=tempfile.gettempdir(),  # some peers write logs to the working directory
            env=environment(**variables),
        )
        if self.process.stderr is not None:
            # Drain stderr: a full pipe would block the worker.
            threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, what: str, **request: object) -> dict:
        try:
            self.process.stdin.write(json.dumps({"what": what, **request}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise CaseFailed(f"{self.name}: the process ended with {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise CaseFailed(f"{self.name}: {answer['error']}")
        return answer

    def prepare(self, case: str) -> list[np.ndarray]:
        return self.prepare_noting(case)[0]

    def prepare_noting(self, case: str) -> tuple[list[np.ndarray], dict[str, float]]:
        """Prepare a case; return its results and the timings of the preparation."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "values.npz")
            notes = self.ask("prepare", case=case, path=path)
            with np.load(path) as saved:
                return [saved[name] for name in saved.files], notes

    def run(self, case: str, n: int) -> float:
        """Run `n` repetitions of a case; return the seconds of one."""
        return self.ask("run", case=case, n=n)["seconds"] / n

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


@dataclass(frozen=True)
class Pairs:
    """Seconds of interleaved repetitions of one case on several sides."""

    seconds: dict[str, list[float]]

    def median(self, side: str) -> float:
        return statistics.median(self.seconds[side])

    def ratio(self, side: str, other: str) -> float:
        """Return the median, over the pairs, of `side`'s time divided by `other`'s."""
        pairs = zip(self.seconds[side], self.seconds[other], strict=True)
        return statistics.median(a / b for a, b in pairs)


def check_values(case: str, values: dict[str, list[np.ndarray]]) -> None:
    """Raise CaseFailed unless all sides computed equal values, up to float32 summation order."""
    (first, expected), *others = values.items()
    for name, got in others:
        if len(got) != len(expected):
            raise CaseFailed(f"{case}: {first} gives {len(expected)} results, {name} {len(got)}")
        for e, g in zip(expected, got, strict=True):
            scale = float(np.max(np.abs(e), initial=1e-6))
            if e.shape != g.shape or not np.allclose(e, g, rtol=1e-3, atol=1e-5 * scale):
                raise CaseFailed(f"{case}: {first} and {name} compute different values")


def interleaved(case: str, sides: dict[str, tuple[Worker, str]], pairs: int = PAIRS) -> Pairs:
    """Compare the values of all sides, then time the sides alternately.

    `sides` maps a name to a worker and its case. Sides that run a case of another name (the
    STREAM copy) are not compared.
    """
    values = {name: worker.prepare(own) for name, (worker, own) in sides.items()}
    check_values(case, {n: v for n, v in values.items() if sides[n][1] == case})
    counts = {}
    for name, (worker, own) in sides.items():
        worker.run(own, 3)
        once = min(worker.run(own, 3) for _ in range(3))
        counts[name] = max(1, round(0.05 / once))  # 50 ms each: long against a timer tick
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for index in range(pairs):
        order = list(sides.items())
        if index % 2:
            order.reverse()
        for name, (worker, own) in order:
            seconds[name].append(worker.run(own, counts[name]))
    return Pairs(seconds)


@dataclass(frozen=True)
class Figure:
    """A measurement, its details, and whether it meets the budget."""

    text: str
    detail: str
    met: bool


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    budget: str
    figure: Figure

    @classmethod
    def of(cls, what: str, budget: str, measure: Callable[[], Figure]) -> Row:
        """Measure a row; if the case fails, the row says why."""
        try:
            return cls(what, budget, measure())
        except CaseFailed as error:
            return cls(what, budget, Figure("failed", str(error).splitlines()[0], False))

    def cells(self) -> tuple[str, ...]:
        verdict = "met" if self.figure.met else "MISSED"
        return self.what, self.budget, self.figure.text, verdict, self.figure.detail


def at_most(value: float, limit: float) -> bool:
    return value <= limit * (1 + TOLERANCE)


def at_least(value: float, limit: float) -> bool:
    return value >= limit * (1 - TOLERANCE)


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


COLUMNS = ("what", "budget", "figure", "verdict", "detail")


def terminal_line(row: Row) -> str:
    what, budget, figure, verdict, detail = row.cells()
    return f"{what:<38} {budget:<24} {figure:<12} {verdict:<8} {detail}"


def markdown(rows: list[Row], heading: str) -> str:
    lines = [f"# {heading}", "", "| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += ["| " + " | ".join(c.replace("|", "\\|") for c in row.cells()) + " |" for row in rows]
    return "\n".join(lines) + "\n"
