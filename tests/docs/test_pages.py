"""Tests that the code blocks of the manual run in order and print what the page shows."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.S | re.M)


def program(page: pathlib.Path) -> tuple[str, list[str | None]]:
    """Return the Python blocks of a page as one script, and the expected output of each or None."""
    parts: list[str] = []
    wanted: list[str | None] = []
    for kind, body in BLOCK.findall(page.read_text()):
        if kind == "python":
            parts.append(body)
            wanted.append(None)
        elif wanted:
            wanted[-1] = body
    script = "".join(f"{code}\nprint('@@')\n" for code in parts)
    return script, wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page(page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    script, wanted = program(page)
    if not wanted:
        return  # a page without Python
    (tmp_path / "page.py").write_text(script)
    runner = ["-m", "duograph.run"] if "import mindspore" in script else []
    done = subprocess.run(
        [sys.executable, *runner, "page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    got = done.stdout.split("@@\n")[:-1]
    for i, (want, have) in enumerate(zip(wanted, got, strict=True)):
        assert want is None or have == want, f"block {i + 1} of {page.name}"


def test_every_public_name_has_a_docstring() -> None:
    command = [sys.executable, ROOT / "docs" / "reference.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
