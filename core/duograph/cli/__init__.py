"""The `duograph` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="duograph", description="Devices and plugins of this installation."
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    devices = commands.add_parser(
        "devices", help="every backend: available or why not, devices, memory, dtypes, origin"
    )
    devices.add_argument("--json", action="store_true", help="for programs")
    commands.add_parser("info", help="what to put into a bug report")
    commands.add_parser("check", help="compute something on the default device")
    cache = commands.add_parser("cache", help="compiled code that is kept on disk")
    cache.add_argument("action", choices=("info", "clear"), help="show what there is; remove it")
    tune = commands.add_parser("tune", help="measure what a device does best with, and keep it")
    tune.add_argument(
        "--device",
        metavar="NAME",
        help="a backend, or one device of it as NAME:0 (default: all of them)",
    )
    new = commands.add_parser("new-backend", help="write a package for a new device")
    new.add_argument("name", help="what users will write as device_target, such as MyDevice")
    new.add_argument("folder", nargs="?", help="where to (default: duograph-<name>)")
    chosen = parser.parse_args(arguments)
    if chosen.version:
        from .. import __version__

        print(f"duograph {__version__}")
        return 0
    if chosen.command is None:
        parser.print_help()
        return 2
    return _run(chosen)


def _run(chosen: argparse.Namespace) -> int:
    from . import cache, devices, info, new_backend, tune

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
    if chosen.command == "tune":
        return tune.tune(chosen.device)
    if chosen.command == "check":
        from ..installation import check

        return 0 if check() else 1
    try:
        root = new_backend.write(chosen.name, chosen.folder)
    except (ValueError, FileExistsError) as error:
        print(f"duograph new-backend: {error}", file=sys.stderr)
        return 1
    low = chosen.name.lower()
    print(
        f"wrote {root}: the device is duograph_{low}/backend.py\n"
        f"  pip install --editable {root}\n"
        f"  pytest --pyargs duograph.conformance --device {chosen.name} --quick"
    )
    return 0
