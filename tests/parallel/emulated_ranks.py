"""Environments in which engines of this repository are installed for the ranks of a test."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib

__all__ = ["environment"]

HERE = pathlib.Path(__file__).parent


def environment(folder: pathlib.Path, **modules: str) -> dict[str, str]:
    """Return variables under which plugins are installed that may not be: names and modules."""
    known = {point.name for point in importlib.metadata.entry_points(group="duograph")}
    lines = [f"{name} = {module}\n" for name, module in modules.items() if name not in known]
    info = folder / "test_engines-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: test-engines\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[duograph]\n" + "".join(lines))
    found = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_"))}
    path = os.pathsep.join([str(folder), str(HERE), found.get("PYTHONPATH", "")])
    return found | {"PYTHONPATH": path}
