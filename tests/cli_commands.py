"""The parsers of the subcommands of `duograph`, for tests of their help and of their arguments."""

from __future__ import annotations

import argparse

from duograph.cli import parser


def subcommands(whole: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of all subcommands by name, those of actions as "conformance run"."""
    found = {}
    for action in whole._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found[name] = inner
                found |= {f"{name} {k}": v for k, v in subcommands(inner).items()}
    return found


COMMANDS = subcommands(parser())
