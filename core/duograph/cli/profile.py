"""The `duograph profile` command: runs a program under the profiler and prints a table.

`cli.main` runs it. The program receives its own arguments, as under `duograph run`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys

from .. import run as program_runner
from ..errors import DuographError
from ..profiler import profile
from ..profiler.tables import GROUPS, SORTS
from .command import CommandError, Commands, UsageError, command, print_json

__all__ = ["add"]

USAGE = (
    "duograph profile [--by op|line|kernel] [--sort KEY] [--rows N] [--roofline] [--trace FILE] "
    "[--json] SCRIPT [ARGUMENT ...]"
)


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "profile",
        _run,
        "run a program and print which ops and lines its time went to",
        "duograph profile train.py --epochs 1\n"
        "duograph profile --by line --trace trace.json train.py\n"
        "duograph profile --roofline --json train.py > profile.json",
        exits={1: "the program failed; the table of what it did is printed"},
        json=True,
        usage=USAGE,
    )
    made.add_argument("--by", choices=GROUPS, default="op", help="what is one row (default: op)")
    made.add_argument("--sort", choices=SORTS, default="time", help="order (default: time)")
    made.add_argument("--rows", type=int, default=20, help="most rows; 0 is all (default: 20)")
    made.add_argument(
        "--roofline", action="store_true", help="compare with the measured limits of the device"
    )
    made.add_argument("--trace", metavar="FILE", help="also write a trace for Perfetto or Chrome")
    made.add_argument("script", metavar="SCRIPT", help="the program")
    rest = made.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="its own"
    )
    rest.required = False  # older versions of Python would name it where SCRIPT is missing


def _run(options: argparse.Namespace) -> int:
    """Run the program under the profiler, then print the results, even if the program fails.

    With ``--json``, output of the program goes to standard error.

    Raises:
        UsageError: there is no such program, it cannot be read, the number of rows is negative, or
            the trace cannot be written there.
        CommandError: the trace cannot be written.
        SystemExit, Exception: raised by the program; not an error of duograph or the system, whose
            traceback is printed here.
    """
    problem = program_runner.problem_of(options.script)
    if options.trace:
        problem = problem or program_runner.output_problem("--trace", options.trace)
    if problem is not None:
        raise UsageError(problem)
    if options.rows < 0:
        raise UsageError(f"got --rows {options.rows}; wanted 0 or a larger number")
    out = contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()
    finished = profile(start_profile=False)
    try:
        with out, finished:
            return _run_program([options.script, *options.arguments])
    finally:
        _report(finished, options)


def _run_program(words: list[str]) -> int:
    """Run a program with its arguments as `duograph run` does; return the exit status.

    `cli.main` would take errors of duograph and the system for those of this command and print one
    line, so their tracebacks are printed here, as Python prints those of the others.
    """
    try:
        return program_runner.main(words)
    except BrokenPipeError:  # nobody reads what the program prints
        raise
    except (DuographError, OSError) as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return 1


def _report(finished: profile, options: argparse.Namespace) -> None:
    """Print the results of a finished profile; write the trace if the option ``--trace`` is set.

    Raises:
        CommandError: the trace cannot be written.
    """
    sys.stdout.flush()
    if options.json:
        rows = finished.rows(options.by, options.sort, options.roofline)
        print_json(
            {
                "seconds": finished.seconds,
                "events": len(finished.records()),
                "dropped": finished.dropped,
                "by": options.by,
                "rows": [dataclasses.asdict(r) for r in rows[: options.rows or None]],
            }
        )
    else:
        print(finished.table(options.by, options.sort, options.rows or None, options.roofline))
    if options.trace:
        try:
            finished.export_chrome_trace(options.trace)
        except OSError as error:
            raise CommandError(f"the trace cannot be written: {error}") from error
