"""Run the docstring examples of MindSpore with duograph and with MindSpore, and compare them.

    python tests/parity/run.py --mindspore PYTHON             # all, then the table
    python tests/parity/run.py --mindspore PYTHON --only nn   # paths that begin with nn
    python tests/parity/run.py --report                       # the table of the last run
    python tests/parity/run.py --report --only ops --show 20  # 20 failures in full

PYTHON has MindSpore installed, with NumPy below version 2. Results are kept in build/parity, one
line of JSON per example. MindSpore's results are reused by later runs, except with
`--fresh-mindspore`. Duograph's results are computed again in each run; with `--resume`, only those
are computed that an interrupted run did not reach.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import queue
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parity.comparing import BOTH, FAILED, PASSED, SHAPE, Verdict, judge

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "parity"
NAMES = HERE.parent / "names" / "mindspore_names.tsv"
Example = dict[str, str]


class Worker:
    """A process that answers tasks; it is restarted after it ended or took too long.

    It runs in a temporary folder, which is removed with all that its tasks left there, also in
    folders of their own and after it was killed.
    """

    def __init__(self, command: Sequence[str], limit: float) -> None:
        self._command = started_anywhere(command)
        self._limit = limit
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[str] | None = None

    def _start(self) -> subprocess.Popen[str]:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        own = {"OMP_NUM_THREADS": "1", "GLOG_v": "3", "TMPDIR": self._folder.name}
        environment = {**os.environ, **own}
        process = subprocess.Popen(
            self._command,
            cwd=self._folder.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._process = process
        if self._line(process, 120) != "ready":
            self.close()
            raise SystemExit(f"{' '.join(self._command)}: does not start")
        return process

    def _line(self, process: subprocess.Popen[str], limit: float) -> str | None:
        """Return the next line of the process, or None if it ended or took too long."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(limit):
                return None
        line = process.stdout.readline()
        return line.strip() if line else None

    def run(self, task: dict[str, Any]) -> Any:
        """Return the answer to a task; None if the process ended or took too long."""
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            line = self._line(process, self._limit)
        except BrokenPipeError:
            line = None
        if line is None:
            self.close()
            return None
        return json.loads(line)

    def close(self) -> None:
        """Kill the process, if it runs."""
        if self._process is not None:
            self._process.kill()
            with self._process:  # closes the pipes and waits
                self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def started_anywhere(command: Sequence[str]) -> list[str]:
    """Return a command whose program is found from any folder."""
    program = shutil.which(command[0]) or command[0]
    return [os.path.abspath(program) if os.sep in program else program, *command[1:]]


def run_all(
    tasks: Sequence[dict[str, Any]],
    command: Sequence[str],
    file: Path,
    jobs: int,
    limit: float,
    key: str = "path",
) -> None:
    """Let `jobs` processes answer the tasks without a result; append the results to a file."""
    done = results(file)
    todo: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    for task in tasks:
        if task[key] not in done:
            todo.put(task)
    total, start, lock = todo.qsize(), time.monotonic(), threading.Lock()
    failures: list[BaseException] = []
    if not total:
        return

    def work() -> None:
        try:
            answer_all()
        except BaseException as error:  # a thread would end unnoticed
            failures.append(error)
            raise

    def answer_all() -> None:
        worker = Worker(command, limit)
        while True:
            try:
                task = todo.get_nowait()
            except queue.Empty:
                worker.close()
                return
            found = worker.run(task)
            with lock, file.open("a") as out:
                out.write(json.dumps({"path": task[key], "ran": found}) + "\n")

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    took = time.monotonic() - start
    print(f"{total} tasks for {' '.join(command)} in {took:.0f} s", flush=True)


def forget(file: Path, paths: set[str]) -> None:
    """Remove the results of some paths from a file."""
    kept = [x for x in results(file).items() if x[0] not in paths]
    file.write_text("".join(json.dumps({"path": p, "ran": r}) + "\n" for p, r in kept))


def results(file: Path) -> dict[str, Any]:
    """Return the results in a file, by path."""
    if not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
    return {line["path"]: line["ran"] for line in lines}


def collected(python: str | None) -> list[Example]:
    """Return all examples; MindSpore's Python collects them once, into a file."""
    file = FOLDER / "examples.jsonl"
    if not file.exists():
        if python is None:
            raise SystemExit("no examples yet: give --mindspore PYTHON")
        command = started_anywhere([python, str(HERE / "worker.py"), "collect", str(NAMES)])
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode:
            raise SystemExit(f"{python} cannot import MindSpore:\n{done.stderr[-2000:]}")
        file.write_text("".join(x + "\n" for x in done.stdout.splitlines() if x[:1] == "{"))
    return [json.loads(line) for line in file.read_text().splitlines()]


def verdicts(examples: list[Example]) -> dict[str, Verdict]:
    """Return the verdict on each example that ran in duograph, by path."""
    ours, theirs = results(FOLDER / "duograph.jsonl"), results(FOLDER / "mindspore.jsonl")
    return {
        e["path"]: judge(ours[e["path"]], theirs.get(e["path"]))
        for e in examples
        if e["path"] in ours
    }


def table(examples: list[Example], found: dict[str, Verdict]) -> None:
    """Print how many examples of each kind pass."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for example in examples:
        if example["path"] in found:
            for kind in (example["kind"], "all"):
                counts[kind][found[example["path"]].result] += 1
    columns = (PASSED, SHAPE, FAILED, BOTH)
    print(f"{'':26}" + "".join(f"{c:>16}" for c in columns) + f"{'of those that run there':>26}")
    for kind in sorted(counts, key=lambda k: (k == "all", k)):
        row = counts[kind]
        good, runs = row[PASSED] + row[SHAPE], sum(row.values()) - row[BOTH]
        share = f"{100 * good / runs:.1f} %" if runs else "-"
        print(f"{kind:26}" + "".join(f"{row[c]:16}" for c in columns) + f"{share:>26}")


def reasons(found: dict[str, Verdict], most: int) -> None:
    """Print the `most` frequent reasons of failures, each with its first paths."""
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for path, verdict in found.items():
        if verdict.result == FAILED:
            groups[verdict.reason].append(path)
    for reason, paths in sorted(groups.items(), key=lambda g: -len(g[1]))[:most]:
        print(f"{len(paths):5}  {reason}\n         {', '.join(paths[:6])}")


def main() -> None:
    """Run the actions that the command line selects."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mindspore", metavar="PYTHON", help="a Python that has MindSpore")
    parser.add_argument("--only", default="", metavar="PREFIX", help="paths that begin so")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--resume", action="store_true", help="keep our results of the last run")
    parser.add_argument("--fresh-mindspore", action="store_true", help="forget its results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=20, help="seconds for an example")
    parser.add_argument("--reasons", type=int, default=25, metavar="N", help="how many to print")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="failures in full")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.fresh_mindspore:
        for name in ("examples.jsonl", "mindspore.jsonl"):
            (FOLDER / name).unlink(missing_ok=True)
    examples = [e for e in collected(options.mindspore) if e["path"].startswith(options.only)]
    if not options.report:
        worker = [str(HERE / "worker.py"), "serve"]
        if options.mindspore:
            command = [options.mindspore, *worker, ""]
            run_all(examples, command, FOLDER / "mindspore.jsonl", options.jobs, options.limit)
        file = FOLDER / "duograph.jsonl"
        if not options.resume:
            forget(file, {e["path"] for e in examples})
        command = [sys.executable, *worker, "duograph"]
        run_all(examples, command, file, options.jobs, options.limit)
    found = verdicts(examples)
    table(examples, found)
    reasons(found, options.reasons)
    failed = [(p, v) for p, v in found.items() if v.result == FAILED]
    for path, verdict in failed[: options.show]:
        print(f"\n=== {path}: {verdict.reason}\n{verdict.detail}")


if __name__ == "__main__":
    main()
