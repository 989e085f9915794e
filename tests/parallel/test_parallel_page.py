"""The script of docs/parallel.md, on one process and on ranks."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import duograph as ms
import pytest
from duograph_collectives.local import run_ranks

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "parallel.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


def block_with(text: str) -> str:
    """Return the one block of the page that contains a text."""
    (found,) = [block for block in BLOCKS if text in block]
    return found


@pytest.mark.parametrize("size", [1, 2, 4])
def test_script_gives_the_same_on_any_number_of_ranks(size: int, tmp_path: pathlib.Path) -> None:
    if size > 1 and importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    script = tmp_path / "train.py"
    script.write_text(BLOCKS[0])
    done = subprocess.run(
        [sys.executable, "-m", "duograph.run", "-n", str(size), str(script)],
        capture_output=True, text=True, timeout=300, check=False,
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
    mode = ms.get_context("mode")
    try:
        for block in map(block_with, ("mint.distributed", "AllReduce()", "PipelineCell")):
            exec(block, {})
    finally:
        ms.set_context(mode=mode)
    printed = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.S)
    assert capsys.readouterr().out == "".join(printed)


def test_checkpoints_in_shards() -> None:
    """The block runs on two ranks, and then goes on in one process, of which it is written."""
    names: dict[str, Any] = {}
    definitions = block_with("begins =").split("begins =")[0]
    exec(definitions, names)
    shutil.rmtree(names["folder"], ignore_errors=True)
    try:
        assert run_ranks(names["train"], 2, 3) == [0, 0]
        assert names["train"](5) == 3
        exec(block_with("begins ="), names)
        assert names["begins"] == [5, 5]
    finally:
        shutil.rmtree(names["folder"], ignore_errors=True)
        ms.reset_auto_parallel_context()
