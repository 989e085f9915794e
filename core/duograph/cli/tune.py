"""The `duograph tune` command: measures each device's best settings, such as tile sizes.

`cli.main` runs it. The backends store the results and use them in later runs.
"""

from __future__ import annotations

import argparse
import sys

from ..backend import registry
from ..backend.checked_calls import naming
from ..errors import DuographError
from ..placement import device_of
from ..status_line import status_line
from .command import Commands, UsageError, command, print_json

__all__ = ["add", "tune"]


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "tune",
        _run,
        "measure and store the best settings of devices",
        "duograph tune\nduograph tune --device OpenCL:0",
        json=True,
    )
    made.add_argument(
        "--device",
        metavar="NAME",
        help="a backend, or one of its devices as NAME:0 (default: all devices)",
    )


def _run(options: argparse.Namespace) -> int:
    return tune(options.device, options.json)


def tune(name: str | None, as_json: bool = False) -> int:
    """Measure and store the best kernel settings of devices; print the results; return 0.

    Args:
        name: a device such as "OpenCL:1", a backend's name for all its devices, or None for all
            devices.
        as_json: whether to print the results as JSON at the end, instead of each line at once.

    Raises:
        UsageError: there is no such device.
    """
    try:
        chosen = _chosen(name)
    except DuographError as error:
        raise UsageError(error) from None
    results: dict[str, list[str]] = {}
    for backend, index in chosen:
        lines = results.setdefault(f"{backend}:{index}", [])
        made = registry.backend(backend)
        with naming(made, "tune"):
            results_of_device = iter(made.tune(index))
        while True:
            text = f"tuning {backend}:{index}, {len(lines)} settings are found"
            with status_line(text), naming(made, "tune"):
                line = next(results_of_device, None)
            if line is None:
                break
            lines.append(line)
            if not as_json:
                sys.stdout.write(f"{backend}:{index} {line}\n")
                sys.stdout.flush()
        if not lines and not as_json:
            sys.stdout.write(f"{backend}:{index} has nothing to tune\n")
    if as_json:
        print_json(results)
    return 0


def _chosen(name: str | None) -> list[tuple[str, int]]:
    """Return the devices to tune as (backend name, index).

    `name` is the command's argument: None for all devices, a backend's name, or a device such as
    "OpenCL:1".
    """
    if name is not None and ":" in name:
        device = device_of(name)
        return [(device.name, device.index)]
    if name is not None:
        names = [device_of(name).name]
    else:
        names = [n for n, entry in registry.entries().items() if registry.problem_of(entry) is None]
    return [(n, device.index) for n in names for device in registry.backend(n).devices()]
