"""Measure how fast all ranks end after a fault, and whether they always do.

Usage: faults.py [--trials N] [--ranks N] [--kinds KIND,...] [--limit SECONDS] [--json]

Each trial is reported on standard error when it ends, and the totals on standard output.

A trial starts ranks with `duograph run`, which combine tensors in a loop, and makes one of them
fail at a random moment: it is killed or stopped by a signal, it raises, it runs another program
than the others, or the launcher is killed. A trial is good if the launcher ends with a status other
than 0, its output begins with the error of the fault, and no process is left. The seconds are those
from the fault until the last process has ended. The command ends with status 1 if a trial is bad.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import time
import uuid
from typing import NamedTuple

LIMIT = 30.0  # seconds after which a trial is bad, unless --limit says otherwise
# what the output must say before anything about other ranks or MPI's own words
FIRST = {
    "kill": r"rank 1|signal 9|Killed",
    "stop": r"duograph run: rank 1 .* is stopped",
    "raise": r"KeyError: 'the error of rank 1'",
    "mismatch": r"(call different collectives|compile different programs).*rank 0: .*; rank 1: ",
    "launcher": "",
}
# words of MPI about an end that it was asked for; they must not come before the error
LATER = "MPI_ABORT"


class Trial(NamedTuple):
    """The result of one trial: its seconds, and what was wrong ("" if nothing)."""

    seconds: float
    wrong: str


def main() -> None:
    """Run the trials of each kind; print the results as text or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--kinds", default=",".join(FIRST))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a bad trial")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    gave: dict[str, list[Trial]] = {kind: [] for kind in kinds}
    for _ in range(options.trials):
        for kind in kinds:
            one = trial(kind, options.ranks, options.limit)
            gave[kind].append(one)
            sys.stderr.write(f"{kind} {one.seconds:.3f} {one.wrong}\n")
    found = {}
    for kind, trials in gave.items():
        seconds = [t.seconds for t in trials]
        found[kind] = {
            "trials": len(trials), "min": min(seconds), "median": statistics.median(seconds),
            "max": max(seconds), "bad": [t.wrong for t in trials if t.wrong],
        }  # fmt: skip
        if not options.json:
            row = found[kind]
            print(
                f"{kind:10} {len(trials):4} trials, {len(row['bad'])} bad, seconds: "
                f"min {row['min']:.2f} median {row['median']:.2f} max {row['max']:.2f}"
            )
    if options.json:
        print(json.dumps(found))
    sys.exit(1 if any(row["bad"] for row in found.values()) else 0)


def trial(kind: str, ranks: int, limit: float) -> Trial:
    """Start ranks, make one fail, and wait until all have ended."""
    mark = uuid.uuid4().hex
    command = [sys.executable, "-m", "duograph.run", "-n", str(ranks), __file__, "--as-rank", kind,
               mark, str(random.random())]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    assert process.stdout is not None
    pids: dict[int, int] = {}
    while len(pids) < ranks:
        line = process.stdout.readline()
        if not line:
            return Trial(0.0, f"{kind}: the ranks did not start: {process.communicate()[1]!r}")
        started = re.match(r"started (\d+) (\d+)", line)
        if started is not None:
            pids[int(started[1])] = int(started[2])
    time.sleep(random.random() * 0.2)
    begin = time.monotonic()
    if kind in ("kill", "stop"):
        os.kill(pids[1], signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
    elif kind == "launcher":
        process.kill()
    else:
        os.kill(pids[1], signal.SIGUSR1)  # the rank now fails by itself
    try:
        said = process.communicate(timeout=limit)[1].replace("\0", "")
    except subprocess.TimeoutExpired:
        return _ended(process, mark, begin, f"{kind}: the launcher had not ended in {limit} s")
    while left(mark) and time.monotonic() - begin < limit:
        time.sleep(0.01)
    return _ended(process, mark, begin, wrong_output(kind, said, process.returncode))


def _ended(process: subprocess.Popen[str], mark: str, begin: float, wrong: str) -> Trial:
    seconds = time.monotonic() - begin
    alive = left(mark)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()
    if alive and not wrong:
        wrong = f"{len(alive)} processes were left after {seconds:.1f} s"
    return Trial(seconds, wrong)


def wrong_output(kind: str, said: str, status: int) -> str:
    """Return what is wrong with the status and output of the launcher, or ""."""
    if kind == "launcher":
        return ""  # it was killed; that no rank is left is all that can be asked
    if status == 0:
        return f"{kind}: the status was 0"
    error = re.search(FIRST[kind], said, re.S)
    if error is None:
        return f"{kind}: the output does not name the fault: {said!r}"
    if kind in ("raise", "mismatch") and LATER in said[: error.start()]:
        return f"{kind}: the output begins with the end of MPI: {said!r}"
    return ""


def left(mark: str) -> list[int]:
    """Return the ids of the running processes that have the argument `mark`."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has ended
            continue
    return found


def rank(kind: str) -> None:
    """Run collectives, eager and compiled, until a signal tells this rank to fail."""
    import duograph as ms
    from duograph import ops
    from duograph.communication import get_rank, init

    init()
    told: list[int] = []
    signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
    x = ms.Tensor([1.0, 2.0])
    both = ms.jit(lambda x: ops.AllReduce()(x * 2))
    ops.AllReduce()(x)
    print(f"started {get_rank()} {os.getpid()}", flush=True)
    while True:
        ops.AllReduce()(x)
        both(x)
        if told and kind == "raise":
            raise KeyError("the error of rank 1")
        if told and kind == "mismatch" and random.random() < 0.5:
            ops.AllGather()(x)
        elif told:
            ms.jit(lambda x: ops.AllGather()(x + 1))(x)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-rank"]:
        rank(sys.argv[2])
    else:
        main()
