"""The `duograph run` command, which runs a program for MindSpore; `duograph.run` does the work.

`cli.main` calls `duograph.run` directly, because all arguments after the program's name belong to
the program. The parser in this module only serves `duograph --help` and shell completion.
"""

from __future__ import annotations

from ..run import add_arguments
from .command import Commands, command

__all__ = ["add"]


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "run",
        None,
        "run a program for MindSpore on duograph",
        "duograph run train.py --epochs 3\nduograph run --device CPU --mode GRAPH train.py",
    )
    add_arguments(made)
