"""The `duograph info` command: prints versions, machine, settings and devices for bug reports.

`cli.main` runs it.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from typing import Any

from ..backend.protocol import SEAM_VERSION
from ..version import OWN as __version__
from . import devices
from .command import Commands, command, print_json

__all__ = ["add", "as_text", "facts"]

PACKAGES = ("numpy", "ml_dtypes", "pluggy", "cffi", "safetensors", "scipy-openblas32", "pyopencl")


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    command(
        commands,
        "info",
        _run,
        "print the environment for a bug report",
        "duograph info\nduograph info --json",
        json=True,
    )


def _run(options: argparse.Namespace) -> int:
    if options.json:
        print_json({**facts(), "backends": devices.facts()})
    else:
        sys.stdout.write(as_text() + "\n")
    return 0


def facts() -> dict[str, Any]:
    """Return facts about duograph, Python, the machine and installed packages, by name.

    Of the environment variables, only those that begin with "DUOGRAPH_" are included.
    """
    return {
        "duograph": __version__,
        "seam": ".".join(map(str, SEAM_VERSION)),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": sys.platform,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("DUOGRAPH_")},
    }


def as_text() -> str:
    """Return versions, machine, environment variables and devices as text."""
    f = facts()
    lines = [
        f"duograph {f['duograph']}, plugin seam {f['seam']}",
        f"Python {f['python']} ({f['implementation']}), {f['platform']}, {f['machine']}, "
        f"{f['cores']} cores",
        ", ".join(f"{name} {version}" for name, version in f["packages"].items()),
        ", ".join(f"{k}={v}" for k, v in f["environment"].items()) or "no DUOGRAPH_ variables set",
    ]
    return "\n".join([*lines, "", devices.as_text()])


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
