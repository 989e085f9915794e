"""The `duograph doctor` command: finds what makes programs slow on this machine, and remedies.

`cli.main` runs it. Each backend examines its devices (`Backend.examine`); this module examines the
disk cache and the environment.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

from ..backend import registry
from ..backend.health import Finding
from ..errors import DuographError
from ..status_line import size_text, status_line
from . import cache
from .command import Commands, command, print_json

__all__ = ["add", "findings"]

MARKS = {"good": "ok", "slow": "SLOW", "bad": "BAD", "absent": "--"}

# Environment variables that make programs slower: name -> (values, what they do).
SLOWING = {
    "DUOGRAPH_JIT": ("0", "turns compilation off"),
    "MS_JIT": ("0", "turns compilation off"),
    "DUOGRAPH_DUMP": (None, "writes the graph after each pass to files"),
    "PYTHONDONTWRITEBYTECODE": (None, "makes each process parse duograph again"),
    "CUDA_LAUNCH_BLOCKING": ("1", "waits for the GPU after each kernel"),
}


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    command(
        commands,
        "doctor",
        _run,
        "find what is missing for speed on this machine, and the command that mends it",
        "duograph doctor\nduograph doctor --json",
        {1: "something important is missing"},
        json=True,
    )


def _run(options: argparse.Namespace) -> int:
    found = findings()
    if options.json:
        print_json([each._asdict() for each in found])
    else:
        width = max(len(each.what) for each in found)
        for each in found:
            line = f"{MARKS[each.state].ljust(5)}{each.what.ljust(width)}  {each.text}"
            sys.stdout.write(line + "\n")
            if each.remedy:
                sys.stdout.write(f"{'':5}{'':{width}}  mend it: {each.remedy}\n")
    return 1 if any(each.state == "bad" for each in found) else 0


def findings() -> list[Finding]:
    """Return facts about what makes programs slow here, with commands that repair it.

    They are about the default device, then each device, the disk cache and environment variables.
    """
    with warnings.catch_warnings():  # the findings say it
        warnings.simplefilter("ignore", RuntimeWarning)
        return [*_default(), *_devices(), *_cache(), *_environment()]


def _default() -> list[Finding]:
    try:
        device = registry.current_device()
    except DuographError as error:
        wanted = os.environ.get("DUOGRAPH_DEVICE")
        if wanted:
            text = f"DUOGRAPH_DEVICE={wanted} cannot be used: {error}"
            return [Finding("device", "bad", text, "unset DUOGRAPH_DEVICE")]
        return [Finding("device", "bad", str(error), "pip install --force-reinstall duograph")]
    return [Finding("device", "good", f"{device} is used by default")]


def _devices() -> list[Finding]:
    """Return what `Backend.examine` of each usable backend has found about its devices.

    A finding for each backend that cannot run, or whose `examine` has raised an error, follows.
    """
    found: list[Finding] = []
    absent: list[Finding] = []
    for name, entry in registry.entries().items():
        problem = registry.problem_of(entry)
        if problem is not None:
            state = "slow" if entry.broken else "absent"
            absent.append(Finding(name, state, problem.splitlines()[0]))
            continue
        backend = registry.backend(name)
        for device in backend.devices():
            try:
                with status_line(f"examining {name}:{device.index}"):
                    found += backend.examine(device.index)
            except Exception as error:  # noqa: BLE001 (a plugin may raise anything; it is shown)
                text = f"examine() raised {type(error).__name__}: {error}"
                absent.append(Finding(name, "slow", text))
    return found + absent


def _cache() -> list[Finding]:
    facts = cache.facts()
    if facts["problem"] is not None:
        return [
            Finding(
                "disk cache",
                "slow",
                f"{facts['path']} is not used: {facts['problem']}; every process compiles again",
                "export DUOGRAPH_CACHE_DIR=/a/folder/that/you/own",
            )
        ]
    text = (
        f"{facts['path']}: {facts['entries']} entries, {size_text(facts['bytes'])} of "
        f"{size_text(facts['limit'])}"
    )
    if facts["bytes"] > 0.95 * facts["limit"]:
        return [Finding("disk cache", "slow", f"{text}; nearly full", "duograph cache clear")]
    return [Finding("disk cache", "good", text)]


def _environment() -> list[Finding]:
    found: list[Finding] = []
    for name, (value, does) in SLOWING.items():
        now = os.environ.get(name)
        if now and (value is None or now == value):
            found.append(Finding("environment", "slow", f"{name}={now} {does}", f"unset {name}"))
    return found or [Finding("environment", "good", "no variable slows duograph down")]
