"""Says what the conformance suite needs and this environment lacks: pytest, or pytest-xdist.

The `duograph` command and the package `duograph_pytest` ask before they start a run.
"""

from __future__ import annotations

import importlib.util
from importlib import metadata

__all__ = ["problem"]

OLDEST = 8  # wrappers among the hooks of the suite's plugin
INSTALL = 'pip install "duograph[conformance]"'


def problem(parallel: bool) -> str | None:
    """Return why the suite cannot run here, as one line, or None.

    `parallel` says whether worker processes are to run the tests (the option -n).
    """
    if importlib.util.find_spec("pytest") is None:
        return f"the conformance suite needs pytest, which is not installed: {INSTALL}"
    try:
        found = metadata.version("pytest")
    except metadata.PackageNotFoundError:  # it is importable, from a folder of its own
        found = str(importlib.import_module("pytest").__version__)
    if int(found.split(".")[0]) < OLDEST:
        return (
            f"the conformance suite needs pytest {OLDEST} or later, and this is {found}: {INSTALL}"
        )
    if parallel and importlib.util.find_spec("xdist") is None:
        return f"-n needs pytest-xdist, which is not installed: {INSTALL}"
    return None
