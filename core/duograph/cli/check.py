"""The `duograph check` command: multiplies two matrices on the default device.

`cli.main` runs it.
"""

from __future__ import annotations

import argparse

from .. import installation
from .command import Commands, command

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
    )


def _run(options: argparse.Namespace) -> int:
    return 0 if installation.check() else 1
