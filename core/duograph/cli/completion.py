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

# Arguments that are paths, by their names in the help: the shells complete files, or folders alone.
FILES = ("FILE", "SCRIPT", "SCRIPT.py:FUNCTION", "ARGUMENT", "source", "target", "old", "new")
FOLDERS = ("FOLDER", "folder")


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
    _mark_paths(whole, shtab.FILE, shtab.DIRECTORY)
    sys.stdout.write(shtab.complete(whole, shell=options.shell) + "\n")
    return 0


def _mark_paths(parser: argparse.ArgumentParser, file: object, folder: object) -> None:
    """Tell shtab which arguments of a parser and its subcommands are paths.

    `file` and `folder` are shtab's rules for completing files and folders. Without them zsh and
    fish offer no files at all.
    """
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                _mark_paths(part, file, folder)
            continue
        name = action.metavar or action.dest
        if name in FILES:
            action.complete = file  # type: ignore[attr-defined]
        elif name in FOLDERS:
            action.complete = folder  # type: ignore[attr-defined]
