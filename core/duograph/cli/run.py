"""The `duograph run` command: runs a program for MindSpore; `duograph.run` does the work.

`cli.main` calls that module directly, since what follows the program's name is its own. The parser
here serves the list of commands and completion.
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
