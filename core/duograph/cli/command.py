"""Common parts of all subcommands: parsers, errors and printing.

`cli.main` builds the parser from the modules of the subcommands. Each has a function `add`, which
registers its parser with `command`, and a function of the parsed options that returns the exit
status.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import IO, TypeAlias

__all__ = [
    "CommandError",
    "Commands",
    "UsageError",
    "as_table",
    "command",
    "print_json",
    "run_to_end",
]

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

# Seconds that a program may take to end after an interrupt, which it has got as well.
GRACE = 30
# What exit statuses mean, if a subcommand does not say more.
EXITS = {0: "success", 1: "the command failed", 2: "a mistake in the command line"}


class UsageError(Exception):
    """Raised for a mistake of the user; `cli.main` prints the text and returns exit status 2."""


class CommandError(Exception):
    """Raised for a failure with a cause outside duograph, such as an error of the user's program.

    `cli.main` prints the text and returns exit status 1.
    """


def command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int] | None,
    help: str,
    examples: str,
    exits: dict[int, str] | None = None,
    json: bool = False,
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Add the parser of a subcommand and return it; the caller then adds the arguments.

    Args:
        commands: the subparsers to which the parser is added.
        name: name of the subcommand.
        run: function of the parsed options that returns the exit status; None for a subcommand that
            only has subcommands of its own.
        help: what the subcommand does, in one line.
        examples: example calls, one per line.
        exits: exit status -> meaning, for the help; it is added to `EXITS` and takes precedence.
        json: whether the subcommand has the option ``--json``.
        usage: the usage line of the help; None for the one that argparse makes.
    """
    lines = "\n".join(f"  {line}" for line in examples.splitlines())
    meanings = {**EXITS, **(exits or {})}
    statuses = "\n".join(f"  {k}  {text}" for k, text in sorted(meanings.items()))
    made = commands.add_parser(
        name,
        help=help,
        description=help[0].upper() + help[1:] + ".",
        usage=usage,
        epilog=f"examples:\n{lines}\n\nexit status:\n{statuses}\n  130  interrupted",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(run=run)
    if json:
        made.add_argument("--json", action="store_true", help="print JSON")
    return made


def run_to_end(line: Sequence[str], stdout: IO[str] | None = None) -> int:
    """Run a program and return its exit status, negative for a signal.

    If this process gets SIGTERM or an interrupt meanwhile, the program ends first.

    Args:
        line: the command line.
        stdout: where the program prints; None for standard output.
    """
    started: list[subprocess.Popen[bytes]] = []
    pending: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        if not started:
            pending.append(number)
        for child in started:
            child.send_signal(number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, pass_on) if in_main_thread else None
    try:
        with subprocess.Popen(line, stdout=stdout) as child:
            started.append(child)
            if pending:
                child.terminate()
            try:
                return child.wait()
            except KeyboardInterrupt:
                try:
                    child.wait(GRACE)
                except subprocess.TimeoutExpired:
                    child.kill()
                raise
    finally:
        if in_main_thread and before is not None:  # None: a handler that Python did not set
            signal.signal(signal.SIGTERM, before)


def print_json(data: object) -> None:
    """Print data as JSON to standard output."""
    sys.stdout.write(json.dumps(data, indent=1) + "\n")


def as_table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Return rows as a text table with the column names `head`; columns of numbers align right."""
    texts = [tuple(map(str, row)) for row in rows]
    widths = [max(len(row[k]) for row in (head, *texts)) for k in range(len(head))]
    right = [
        bool(rows) and all(isinstance(r[k], (int, float)) for r in rows) for k in range(len(head))
    ]
    lines = []
    for row in (head, *texts):
        cells = [
            text.rjust(width) if flush else text.ljust(width)
            for text, width, flush in zip(row, widths, right)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
