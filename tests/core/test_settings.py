"""Default settings, environment variables, and deprecated names."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def run(program: str, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("DUOGRAPH_")} | environment
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, env=env
    )
    return done.stdout + done.stderr.strip().rpartition("\n")[2]


ASK = "import duograph as ms; print(ms.get_context('mode'), ms.get_context('device_target'))"


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "1 CPU\n"),
        ({"DUOGRAPH_MODE": "pynative"}, "1 CPU\n"),
        ({"DUOGRAPH_MODE": "1"}, "1 CPU\n"),
        ({"DUOGRAPH_DEVICE": "cpu"}, "1 CPU\n"),
    ],
)
def test_default_settings(environment: dict[str, str], said: str) -> None:
    """A09: Default mode when the user says nothing

    A17: `get_context("mode")` / `get_context("device_target")`
    """
    assert run(ASK, **environment) == said


@pytest.mark.parametrize("key", ["DUOGRAPH_MODE", "DUOGRAPH_DEVICE"])
def test_invalid_environment_variable_is_reported(key: str) -> None:
    said = run(ASK, **{key: "fast"})
    assert "got 'fast'" in said
    assert key in said or "device_target" in said


RENAMED = """
import warnings
import duograph as ms
from duograph.ops import operations as P
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        made = {old}
    print(made is {new}, [(w.category.__name__, str(w.message)) for w in caught])
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("P.TensorAdd", "P.Add"),
        ("P.Pack", "P.Stack"),
        ("ms.ops.GatherV2", "P.Gather"),
        ("ms.MetaTensor", "ms.Tensor"),
    ],
)
def test_deprecated_names_warn_once_and_work(old: str, new: str) -> None:
    """M07: Deprecated spellings warn once and keep working"""
    said = run(RENAMED.format(old=old, new=new))
    name = old.rpartition(".")[2]
    assert said.startswith("True [('DeprecationWarning', ")
    assert f"{name} is the old name of {new.rpartition('.')[2]}; both work" in said
    assert said.count("DeprecationWarning") == 1
