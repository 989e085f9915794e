"""The pages for contributors: their length, and that every file and folder they name is there."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("docs/architecture.md", "docs/subsystems.md", "docs/walk.md", "CONTRIBUTING.md")
# Folders that a path may leave out.
BASES = (
    "", "core", "core/duograph", "core/duograph/conformance", "core/duograph/frontend",
    "core/duograph/frontend/evaluation", "core/duograph/compiler", "core/duograph/execution",
    "core/duograph/sharding", "core/duograph/onnx", "core/duograph/nn/wrap",
    "core/duograph/backend", "core/duograph/ranks", "backend_cuda/duograph_cuda", "collectives",
    "core/duograph/compat", "core/duograph/pages", "core/duograph/passes", "docs", "backend_cpu",
)  # fmt: skip
NAMED = re.compile(r"`([a-z_0-9*/]+(?:\.(?:py|js|md|c|svg)|/))`")


def test_architecture_is_short() -> None:
    words = len((ROOT / "docs/architecture.md").read_text().split())
    assert words <= 2000, f"{words} words; move what is beside the core to docs/subsystems.md"


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page: str) -> None:
    """Every path in code style leads to a file; `*` stands for any part of a name."""
    names = set(NAMED.findall((ROOT / page).read_text()))
    assert len(names) > 5
    missing = [n for n in sorted(names) if not any(any((ROOT / b).glob(n)) for b in BASES)]
    assert missing == []
