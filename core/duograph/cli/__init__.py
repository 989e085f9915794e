"""The `duograph` command: its arguments, and one module per subcommand.

The console script and `python -m duograph.cli` call `main`, which calls the subcommand's module.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import run
from ..installation import check
from ..version import OWN as __version__
from . import cache, conformance, devices, info, new_backend, tune

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand of the `duograph` command line and return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["run"]:  # what follows the program's name is its own
        return run.main(given[1:])
    parser = argparse.ArgumentParser(
        prog="duograph", description="Show and manage the devices and plugins of this installation."
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    devices = commands.add_parser(
        "devices", help="list all backends: availability, devices, memory, dtypes, origin"
    )
    devices.add_argument("--json", action="store_true", help="print JSON")
    commands.add_parser("info", help="print the environment for a bug report")
    commands.add_parser("check", help="run a computation on the default device")
    cache = commands.add_parser("cache", help="inspect or clear the disk cache of compiled code")
    cache.add_argument("action", choices=("info", "clear"), help="show or remove the entries")
    tune = commands.add_parser("tune", help="measure and store the best settings of devices")
    tune.add_argument(
        "--device",
        metavar="NAME",
        help="a backend, or one of its devices as NAME:0 (default: all devices)",
    )
    suite = commands.add_parser(
        "conformance", help="compare results of the conformance suite"
    ).add_subparsers(dest="action", metavar="ACTION", required=True)
    both = suite.add_parser("compare", help="say what differs between two JSON reports")
    both.add_argument("old", help="the JSON report of the earlier run")
    both.add_argument("new", help="the JSON report of the later run")
    commands.add_parser("run", help="run a program for MindSpore: duograph run SCRIPT")
    new = commands.add_parser("new-backend", help="create a package for a new device")
    new.add_argument("name", help="the device_target of the device, such as MyDevice")
    new.add_argument("folder", nargs="?", help="folder to create (default: duograph-<name>)")
    chosen = parser.parse_args(given)
    if chosen.version:
        print(f"duograph {__version__}")
        return 0
    if chosen.command is None:
        parser.print_help()
        return 2
    return _run(chosen)


def _run(chosen: argparse.Namespace) -> int:
    if chosen.command == "devices":
        print(devices.as_json() if chosen.json else devices.as_text())
        return 0
    if chosen.command == "info":
        print(info.as_text())
        return 0
    if chosen.command == "cache":
        try:
            print(cache.info() if chosen.action == "info" else cache.clear())
        except OSError as error:
            print(f"duograph cache: {error}", file=sys.stderr)
            return 1
        return 0
    if chosen.command == "conformance":
        return conformance.compare(chosen.old, chosen.new)
    if chosen.command == "tune":
        return tune.tune(chosen.device)
    if chosen.command == "check":
        return 0 if check() else 1
    try:
        root = new_backend.write(chosen.name, chosen.folder)
    except (ValueError, FileExistsError) as error:
        print(f"duograph new-backend: {error}", file=sys.stderr)
        return 1
    low = chosen.name.lower()
    print(
        f"wrote {root}: the device is in duograph_{low}/backend.py\n"
        f"  pip install --editable {root}\n"
        f"  pytest --pyargs duograph.conformance --device {chosen.name} --quick"
    )
    return 0
