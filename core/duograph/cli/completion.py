"""The `duograph completion SHELL` command: prints a script that completes the command in a shell.

`cli.main` runs it. The package shtab makes the script from the parsers of the subcommands.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys

from .command import Commands, command

__all__ = ["add"]

EXAMPLES = """\
mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc ~/.config/fish/completions
duograph completion bash > ~/.local/share/bash-completion/completions/duograph
duograph completion zsh > ~/.zfunc/_duograph       # with ~/.zfunc in fpath
duograph completion fish > ~/.config/fish/completions/duograph.fish"""


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "completion",
        _run,
        "print a script that completes this command in a shell",
        EXAMPLES,
        {1: "the package shtab is not installed"},
    )
    made.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def _run(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("shtab") is None:
        sys.stderr.write(
            "duograph completion: the package shtab is not installed: "
            'pip install "duograph[completion]"\n'
        )
        return 1
    shtab = importlib.import_module("shtab")
    whole = importlib.import_module(__package__).parser()
    sys.stdout.write(shtab.complete(whole, shell=options.shell) + "\n")
    return 0
