"""The `duograph` command: its arguments, and one module per subcommand.

The console script and `python -m duograph.cli` call `main`, which calls the subcommand's module.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from .. import run as program_runner
from ..errors import DuographError
from ..version import OWN as __version__
from . import (
    bench,
    cache,
    check,
    completion,
    conformance,
    convert,
    devices,
    doctor,
    info,
    new_backend,
    plugins,
    profile,
    run,
    show,
    tune,
)
from .command import CommandError, UsageError

__all__ = ["main", "parser"]

# In the order of `duograph --help`.
COMMANDS = (
    run, show, profile, bench, tune, devices, doctor, cache, plugins, conformance, new_backend,
    convert, info, check, completion,
)  # fmt: skip

EPILOG = """examples:
  duograph run train.py --epochs 3
  duograph show train.py:step
  duograph COMMAND --help

exit status:
  0  success
  1  the command failed, or found a problem
  2  a mistake in the command line
  130  interrupted"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    made = argparse.ArgumentParser(
        prog="duograph",
        description="Run, look at and measure programs, and manage the devices and plugins of this "
        "installation.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="store_true", help="print the version and exit")
    commands = made.add_subparsers(dest="command", metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand of the `duograph` command line and return the exit status.

    `arguments` are the words after "duograph"; None means those of the process. Mistakes of the
    user, and errors of duograph, are printed to standard error without a traceback.

    Raises:
        SystemExit: argparse has printed the help, or an error about the arguments.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["run"]:  # what follows the program's name is its own
        return program_runner.main(given[1:])
    whole = parser()
    program: list[str] = []  # the arguments of a script, which follow `--`
    if given[:1] == ["show"] and "--" in given:
        at = given.index("--")
        given, program = given[:at], given[at + 1 :]
    chosen = whole.parse_args(given, argparse.Namespace(program=program))
    if chosen.version:
        sys.stdout.write(f"duograph {__version__}\n")
        return 0
    if chosen.command is None:
        whole.print_help()
        return 2
    return _run(chosen)


def _run(chosen: argparse.Namespace) -> int:
    """Run the chosen subcommand; return its exit status.

    For a `UsageError`, a `CommandError`, an OSError and an error of duograph, it prints the message
    to standard error; the status is 2 for a `UsageError` and 1 for the others. The status is 130
    after Ctrl-C, and 141 if nobody reads standard output any more. Other exceptions pass.
    """
    name = f"duograph {chosen.command}"
    try:
        status: int = chosen.run(chosen)
        sys.stdout.flush()
        return status
    except UsageError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return 2
    except BrokenPipeError:  # the reader, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (CommandError, DuographError, OSError) as error:
        sys.stderr.write(f"{name}: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write(f"{name}: interrupted\n")
        return 130
