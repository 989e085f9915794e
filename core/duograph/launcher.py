"""Starts the ranks of `duograph run -n N` on this machine, and watches them.

An engine (`backend.collectives`) says which command line starts processes. The launcher passes
signals on to that command, and ends all ranks if one of them stays suspended for 3 seconds. The
command itself ends all ranks when one fails. In a rank, `prepare_rank` labels the output or
redirects it to a file.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any, TextIO

from ._cores import cores
from .backend.collectives import engines, unavailable
from .launched import launched, rank_of_parent
from .profiler.merging import merged, read_parts
from .profiler.traces import write_document

__all__ = ["WITH_VALUE", "add_rank_arguments", "prepare_rank", "start_ranks", "trace_path",
           "wanted_ranks"]  # fmt: skip

# Options of msrun that mean the same here, or nothing on one machine; all take a value.
_MSRUN = {
    "--master_addr": "address of the first machine; here it is this one",
    "--master_port": "port of the first machine; ranks find each other without one",
    "--node_rank": "number of this machine; 0",
    "--join": "whether to wait for the ranks, which is always done",
    "--cluster_time_out": "seconds in which ranks must connect; here they connect at once",
    "--bind_core": "whether ranks are bound to cores; the operating system decides",
}
WITH_VALUE = ("-n", "--worker_num", "--local_worker_num", "--log_dir", "--trace", *_MSRUN)

# The most ranks on one machine: so many for each core, or so many in all. Each is a process that
# loads the framework and the program.
_PER_CORE, _ALWAYS = 8, 64
_STOPPED_FOR = 3.0  # seconds after which a stopped rank ends the others
# set for ranks by the launcher
_LABEL, _FOLDER, _TRACES = "DUOGRAPH_RANK_LABEL", "DUOGRAPH_RANK_LOGS", "DUOGRAPH_RANK_TRACES"


def add_rank_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options that start several ranks to an argument parser."""
    ranks = parser.add_argument_group("ranks", "start several processes that communicate")
    ranks.add_argument(
        "-n", "--worker_num", dest="ranks", type=_number, metavar="N", help="start N ranks"
    )
    ranks.add_argument(
        "--local_worker_num", type=_number, metavar="N",
        help="ranks of this machine; only as many as there are in all",
    )  # fmt: skip
    ranks.add_argument(
        "--label", action="store_true", help="begin each line of output with the rank"
    )
    ranks.add_argument(
        "--log_dir", metavar="FOLDER", help="write the output of rank R to FOLDER/worker_R.log"
    )
    ranks.add_argument(
        "--trace", metavar="FILE",
        help="profile the program, and write one trace of all ranks for Perfetto or Chrome",
    )  # fmt: skip
    for name, about in _MSRUN.items():
        ranks.add_argument(name, metavar="VALUE", help=f"accepted for msrun: {about}")


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; wanted a number of ranks, 1 or more")
    return int(text)


def wanted_ranks(options: argparse.Namespace) -> int | str:
    """Return the number of ranks to start, or a message that says why there can be no such ranks.

    In a process that is a rank already, the number is 1.
    """
    asked: int = options.ranks or options.local_worker_num or 1
    here: int = options.local_worker_num or asked
    if launched() is not None:
        return 1
    if here != asked:
        return (
            f"got {asked} ranks, of which {here} on this machine; wanted all of them here. Start "
            "ranks on several machines with mpiexec --hostfile FILE python -m duograph.run ..."
        )
    most = max(_ALWAYS, _PER_CORE * cores())
    if asked > most:
        return (
            f"got {asked} ranks; wanted at most {most} on this machine, which has {cores()} cores. "
            "Start fewer, or start ranks on several machines with mpiexec --hostfile FILE python "
            "-m duograph.run ..."
        )
    return asked


def start_ranks(size: int, options: argparse.Namespace, program: Sequence[str]) -> int:
    """Start ranks that run a program, and wait for them.

    Args:
        size: number of ranks.
        options: options of the command line.
        program: the arguments of `duograph run` for each rank.

    Returns:
        The exit status: 0 if all ranks ended well, 2 if nothing installed can start ranks.
    """
    command = [sys.executable, "-m", "duograph.run", *program]
    reasons = []
    for spec in engines().values():
        if spec.launch is None:
            continue
        reason = unavailable(spec)
        if reason is None:
            try:
                return _traced(spec.launch(size, command), options, size)
            except FileNotFoundError as error:
                reason = str(error)
        reasons.append(f"{spec.name}: {reason}")
    why = "; ".join(reasons) or "no engine that starts processes is installed"
    sys.stderr.write(f"duograph run: cannot start {size} ranks: {why}\n")
    return 2


def _traced(command: Sequence[str], options: argparse.Namespace, size: int) -> int:
    """Run a command that starts `size` ranks, then write their merged trace if `--trace` was given.

    Returns the exit status.
    """
    environment = _environment(options)
    if options.trace is None:
        return _watched(command, environment)
    with tempfile.TemporaryDirectory() as folder:
        status = _watched(command, environment | {_TRACES: folder})
        parts = read_parts(pathlib.Path(folder))
    missing = [str(rank) for rank in range(size) if rank not in parts]
    if missing:
        sys.stderr.write(
            f"duograph run: no trace of rank{'s' * (len(missing) > 1)} {', '.join(missing)}, which "
            "did not end by itself\n"
        )
    if not parts:
        return status or 1
    try:
        write_document(options.trace, lambda: merged(parts))
    except OSError as error:
        sys.stderr.write(f"duograph run: the trace cannot be written: {error}\n")
        return status or 1
    return status


def _environment(options: argparse.Namespace) -> dict[str, str]:
    """Return the environment variables of the ranks: those of this process and rank options."""
    found = dict(os.environ)
    if options.label:
        found[_LABEL] = "1"
    if options.log_dir:
        folder = pathlib.Path(options.log_dir).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        found[_FOLDER] = str(folder)
    return found


def _watched(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command that starts ranks; return its exit status.

    The status is 1 if a rank stayed suspended too long. SIGINT and SIGTERM are passed on to the
    command. If this process is killed, the command ends, too (on Linux).
    """
    process = subprocess.Popen(command, env=environment, preexec_fn=_end_with_parent)
    before = {
        number: signal.signal(number, lambda n, _: process.send_signal(n))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    stopped: dict[int, float] = {}
    try:
        while True:
            try:
                status = process.wait(0.25)
                return status if status >= 0 else 128 - status
            except subprocess.TimeoutExpired:
                late = _stopped_longest(process.pid, stopped)
            if late is not None:
                sys.stderr.write(
                    f"duograph run: {late} is stopped, and the other ranks wait for it; all end\n"
                )
                _kill(process)
                return 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if process.poll() is None:
            _kill(process)


def _end_with_parent() -> None:
    """Ask Linux to end this process when its parent ends; runs in the child before the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # 1: PR_SET_PDEATHSIG


def _descendants(process: int) -> dict[int, str]:
    """Return the states, by process id, of all descendants of a process.

    A state is a letter such as "R" (running) or "T" (suspended). Returns an empty dictionary on
    systems without /proc.
    """
    parents: dict[int, tuple[int, str]] = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        parents[int(path.parent.name)] = int(fields[1]), fields[0]
    found: dict[int, str] = {}
    for pid, (parent, state) in parents.items():
        while parent in parents and parent != process:
            parent = parents[parent][0]
        if parent == process:
            found[pid] = state
    return found


def _stopped_longest(process: int, since: dict[int, float]) -> str | None:
    """Return the name of a descendant that has been suspended for more than 3 seconds, or None.

    `since` maps process ids to the time when each was first seen suspended; it is updated.
    """
    now = time.monotonic()
    states = _descendants(process)
    for pid in [p for p in since if states.get(p) != "T"]:
        del since[pid]
    for pid, state in states.items():
        if state == "T" and now - since.setdefault(pid, now) > _STOPPED_FOR:
            rank = _variable(pid, ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"))
            return f"process {pid}" if rank is None else f"rank {rank} (process {pid})"
    return None


def _variable(process: int, names: Sequence[str]) -> str | None:
    """Return the value of the first variable of `names` that a process has in its environment.

    Returns None if it has none of them, or if its environment cannot be read.
    """
    try:
        lines = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    values = dict(line.decode(errors="replace").partition("=")[::2] for line in lines)
    return next((values[n] for n in names if n in values), None)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all its descendants."""
    for pid in (*_descendants(process.pid), process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


# ---- in a rank -----------------------------------------------------------------------------------


class _Labelled:
    """A text stream that begins every line with a label, and writes only complete lines."""

    def __init__(self, stream: TextIO, label: str) -> None:
        self._stream, self._label, self._line = stream, label, ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        if lines:
            self._stream.write("".join(f"{self._label}{line}\n" for line in lines))
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False  # whole lines only: nothing can be redrawn

    def finish(self) -> None:
        """Write a last line that has no newline yet."""
        if self._line:
            self.write("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _own_rank() -> int | None:
    """Return the number of this rank; None in a process that the launcher has not started itself.

    A process that a rank starts inherits the rank's environment, but must not take its log file.
    """
    found = launched()
    return None if found is None or rank_of_parent() is not None else found.rank


def prepare_rank() -> None:
    """Label the output of this rank, or redirect it to a file, as the launcher's environment says.

    Does nothing in a process that no launcher started.
    """
    rank = _own_rank()
    if rank is None:
        return
    folder = os.environ.get(_FOLDER)
    if folder is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        log = os.open(os.path.join(folder, f"worker_{rank}.log"), mode, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    if _LABEL in os.environ:
        for name in ("stdout", "stderr"):
            made = _Labelled(getattr(sys, name), f"[rank {rank}] ")
            atexit.register(made.finish)
            setattr(sys, name, made)


def trace_path(options: argparse.Namespace) -> str | None:
    """Return the file to which this process writes its own trace; None if it writes none."""
    folder, rank = os.environ.get(_TRACES), _own_rank()
    if folder is not None and rank is not None:
        return os.path.join(folder, f"{rank}.json")
    path: str | None = options.trace
    return path
