"""The script of docs/parallel.md, on one process and on ranks."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "parallel.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_script_gives_the_same_on_any_number_of_ranks(size: int, tmp_path: pathlib.Path) -> None:
    if size > 1 and importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    script = tmp_path / "train.py"
    script.write_text(BLOCKS[0])
    done = subprocess.run(
        [sys.executable, "-m", "duograph.run", "-n", str(size), str(script)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert re.fullmatch(rf"{size} ranks, error 0\.\d\d", line)


def test_steps_of_the_user_and_threads(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(BLOCKS[1], names)
    step = names["step"]
    assert callable(step)
    exec("loss = step(ms.ops.ones((2, 3), ms.float32), ms.ops.ones((2, 1), ms.float32))", names)
    for block in BLOCKS[2:]:
        exec(block, {})
    printed = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.S)
    assert capsys.readouterr().out == "".join(printed)
