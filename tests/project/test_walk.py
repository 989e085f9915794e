"""docs/walk.md names the functions that a call enters, in their order."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "walk.md").read_text()
SECTIONS = {text.split("\n", 1)[0]: text for text in PAGE.split("\n## ")[1:]}
STEP = re.compile(r"^\d+\. `([\w/]+\.py)`: `([\w.]+)`", re.M)
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import walks
for step in walks.walk_of(open(sys.argv[2]).read(), sys.argv[2]).steps:
    print(*step)
"""


@pytest.mark.parametrize("title", SECTIONS)
def test_the_call_enters_these_functions_in_this_order(title: str, tmp_path: pathlib.Path) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", SECTIONS[title], re.S)
    file = tmp_path / "walk.py"
    file.write_text(source)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(pathlib.Path(__file__).parent), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    entered = [tuple(line.split()) for line in done.stdout.splitlines()]
    position = 0
    for file_name, function in STEP.findall(SECTIONS[title]):
        step = (file_name, function.split(".")[-1])
        assert step in entered, f"{step} is not entered at all"
        assert step in entered[position:], f"{step} is entered, but not after the step before it"
        position = entered.index(step, position) + 1


def test_every_step_has_a_file_and_a_function() -> None:
    for title, text in SECTIONS.items():
        numbered = re.findall(r"^\d+\. ", text, re.M)
        assert len(STEP.findall(text)) == len(numbered) >= 5, title
