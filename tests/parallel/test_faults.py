"""One trial of each fault of `benchmarks/faults.py`; `faults.py --trials 100` runs more."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest
from amount import FULL

TRIALS = 3 if FULL else 1
SCRIPT = pathlib.Path(__file__).parents[2] / "benchmarks" / "faults.py"


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
@pytest.mark.skipif(sys.platform != "linux", reason="the processes are found in /proc")
@pytest.mark.parametrize(
    ("kind", "ranks"),
    [("kill", 2), ("kill", 4), ("stop", 2), ("raise", 4), ("mismatch", 2), ("launcher", 2)],
)
def test_every_fault_ends_all_ranks(kind: str, ranks: int) -> None:
    command = [sys.executable, SCRIPT, "--trials", str(TRIALS), "--ranks", str(ranks),
               "--kinds", kind, "--limit", "240", "--json"]  # fmt: skip
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)[kind]
    assert (found["trials"], found["bad"]) == (TRIALS, [])
    assert done.returncode == 0
