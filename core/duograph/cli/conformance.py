"""The `duograph conformance` command: runs the conformance suite, or compares two runs of it.

`cli.main` runs it. The action `compare` prints the differences of two result files; the exit status
is 1 if the new one is worse.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys
import tempfile

from ..conformance import certificates
from ..conformance.requirements import problem
from ..errors import DuographError
from ..placement import device_of
from .command import (
    EXITS,
    CommandError,
    Commands,
    UsageError,
    command,
    print_json,
    run_to_end,
)

__all__ = ["add", "compare"]

TERMINATED = 128 + signal.SIGTERM
# Exit status of pytest -> our own: interrupted, a mistake in the options, no case selected, ended
# by SIGTERM.
_STATUS = {0: 0, 2: 130, 4: 2, 5: 2, TERMINATED: TERMINATED, -signal.SIGTERM: TERMINATED}

EXAMPLES = """\
duograph conformance run CPU --quick
duograph conformance run MyDevice --report results -n 4
duograph conformance run MyDevice --report results --resume
duograph conformance compare old.json new.json"""


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "conformance",
        None,
        "run the conformance suite on a device, or compare two runs",
        EXAMPLES,
        {1: "a case failed, or the new run is worse"},
    )
    actions = made.add_subparsers(dest="action", metavar="ACTION", required=True)
    one = command(actions, "run", _run, "run the suite on a device", EXAMPLES, EXITS, json=True)
    one.add_argument("device", help="the device, such as CPU or MyDevice:1")
    one.add_argument("--quick", action="store_true", help="run a selection of the cases")
    one.add_argument("-k", metavar="CASES", help='run some cases, such as "[exp-float32]"')
    one.add_argument("--dtypes", metavar="NAMES", help="run these dtypes alone: float16,float64")
    one.add_argument(
        "--report",
        metavar="FOLDER",
        help="write DEVICE.json and DEVICE.html there, as results come",
    )
    one.add_argument(
        "--resume", action="store_true", help="with --report: run what has not passed there yet"
    )
    one.add_argument(
        "-n",
        type=_processes,
        metavar="N",
        help="run so many processes; one that ends is replaced; auto is one for each core",
    )
    both = command(
        actions,
        "compare",
        _compare,
        "say what differs between two JSON reports",
        EXAMPLES,
        {1: "the new run is worse"},
        json=True,
    )
    both.add_argument("old", help="the JSON report of the earlier run")
    both.add_argument("new", help="the JSON report of the later run")


def _run(options: argparse.Namespace) -> int:
    missing = problem(options.n is not None)
    if missing is not None:
        raise CommandError(missing)
    try:
        device_of(options.device)
    except DuographError as error:
        raise UsageError(error) from None
    if options.resume and options.report is None:
        raise UsageError("--resume needs --report FOLDER, where the results are")
    folder = options.report
    if folder is not None and os.path.exists(folder) and not os.path.isdir(folder):
        raise UsageError(f"--report: got {folder}, which is a file; wanted a folder")
    line = [sys.executable, "-m", "pytest", "--pyargs", "duograph.conformance"]
    line += ["--device", options.device]
    line += [f"--{name}" for name in ("quick", "resume") if getattr(options, name)]
    for name in ("-k", "-n", "--dtypes"):
        value = getattr(options, name.lstrip("-"))
        line += [name, value] if value is not None else []
    if not options.json:
        line += ["--report", folder] if folder is not None else []
        return _STATUS.get(run_to_end(line), 1)
    with tempfile.TemporaryDirectory() as own:
        line += ["--report", folder or own]
        reports = pathlib.Path(folder or own)
        before = {report: report.stat().st_mtime_ns for report in reports.glob("*.json")}
        status = run_to_end(line, sys.stderr)
        for report in reports.glob("*.json"):  # others in the folder are of other devices
            if report.stat().st_mtime_ns != before.get(report):
                sys.stdout.write(report.read_text("utf-8") + "\n")
    return _STATUS.get(status, 1)


def _processes(text: str) -> str:
    if text != "auto" and not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"got {text!r}; wanted a number above 0, or auto")
    return text


def _compare(options: argparse.Namespace) -> int:
    return compare(options.old, options.new, options.json)


def compare(old: str, new: str, as_json: bool = False) -> int:
    """Print how two JSON reports of the conformance suite differ; return the exit status.

    The status is 1 if the outcome of a test, or the conformance level, is worse in the new report,
    and 0 otherwise.

    Args:
        old, new: paths of the reports.
        as_json: whether to print JSON instead of lines of text.

    Raises:
        UsageError: a report cannot be read.
    """
    reports = []
    for path in (old, new):
        try:
            reports.append(certificates.read(path))
        except (OSError, ValueError) as error:
            text = str(error)
            raise UsageError(text if path in text else f"{path}: {text}") from None
    lines, worse = certificates.compare(*reports)
    if as_json:
        print_json({"worse": worse, "differences": lines})
    else:
        sys.stdout.write("\n".join(lines) + "\n")
    return 1 if worse else 0
