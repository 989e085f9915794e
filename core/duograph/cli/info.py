"""The `duograph info` command: prints versions, machine, settings and devices for bug reports.

`cli.main` runs it.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

from ..backend.protocol import SEAM_VERSION
from ..version import OWN as __version__
from . import devices

__all__ = ["as_text"]

PACKAGES = ("numpy", "ml_dtypes", "pluggy", "cffi", "safetensors", "scipy-openblas32", "pyopencl")


def as_text() -> str:
    """Return versions, machine, environment variables and devices as text."""
    lines = [
        f"duograph {__version__}, plugin seam {'.'.join(map(str, SEAM_VERSION))}",
        f"Python {platform.python_version()} ({platform.python_implementation()}), "
        f"{sys.platform}, {platform.machine()}, {os.cpu_count()} cores",
        ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
    ]
    chosen = {k: v for k, v in sorted(os.environ.items()) if k.startswith("DUOGRAPH_")}
    lines.append(", ".join(f"{k}={v}" for k, v in chosen.items()) or "no DUOGRAPH_ variables set")
    return "\n".join([*lines, "", devices.as_text()])


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
