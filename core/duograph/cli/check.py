"""The `duograph check` command: multiplies two matrices on the default device.

`cli.main` runs it.
"""

from __future__ import annotations

import argparse

from .. import installation
from .command import Commands, command, print_json

__all__ = ["add"]


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    command(
        commands,
        "check",
        _run,
        "run a computation on the default device",
        "duograph check\nDUOGRAPH_DEVICE=OpenCL duograph check",
        {1: "there is no device, or its result is wrong"},
        json=True,
    )


def _run(options: argparse.Namespace) -> int:
    found = installation.checked()
    if options.json:
        print_json(found._asdict())
    else:
        installation.say(found)
    return 0 if found.right else 1
