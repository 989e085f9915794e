"""The check for machines with a GPU, as far as it runs without one."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import check_gpu
import pytest
from check_gpu import STEPS, Step
from duograph.backend import registry
from part_of_tests import part


def test_steps_are_short():
    """Ten minutes for a command at most; the four tools; the libraries on and off."""
    assert max(step.seconds for step in STEPS.values()) <= 600
    tools = [step.before[-1] for step in STEPS.values() if step.before]
    assert tools == ["memcheck", "racecheck", "synccheck", "initcheck"]
    assert [*STEPS][:2] == ["devices", "smoke"]
    assert any("test_attention" in word for word in STEPS["kernels"].arguments)


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7, 1000])
def test_parts_cover_every_test_once(count):
    items = list(range(count))
    parts = [part(items, number, 6) for number in range(1, 7)]
    assert [i for some in parts for i in some] == items
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for wrong in (0, 7):
        with pytest.raises(ValueError, match="TESTS_PART: got"):
            part(items, wrong, 6)


def test_a_part_of_a_suite_runs():
    """The plugin is found: the step's own words, but for the device."""
    step = STEPS["conformance-full-2"]
    words = [w if w != "GPU" else "CPU" for w in step.arguments]
    command = [sys.executable, *words, "--collect-only"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", "/where/duograph/may/be")
        environment = check_gpu.environment_of(step)
    assert environment["PYTHONPATH"].split(os.pathsep)[1:] == ["/where/duograph/may/be"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=check_gpu.ROOT, env=environment
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    counts = re.search(r"(\d+)/(\d+) tests collected", done.stdout)
    assert counts and abs(int(counts[1]) - int(counts[2]) / check_gpu.PARTS) < 1


def test_sanitized_kernels_are_a_handful():
    """The expression still names tests: a product, TF32, rows, sums by index, attention."""
    command = [sys.executable, *check_gpu.PYTEST, *check_gpu.SANITIZED, "--collect-only"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*check_gpu.ON_GPU)
        done = subprocess.run(command, capture_output=True, text=True, cwd=check_gpu.ROOT)
    found = [line for line in done.stdout.splitlines() if "::" in line]
    for name in (
        "matmul",
        "nan_and",
        "convolutions",
        "softmax",
        "layer_norm",
        "scatter",
        "attention",
    ):
        assert any(name in line for line in found), name
    assert len(found) < 160


def test_steps_run_and_are_recorded(monkeypatch, tmp_path, capsys):
    """A failure and a step that takes too long do not stop the next one."""
    monkeypatch.setattr(registry, "problem_of", lambda entry: None)
    commands = {
        "works": Step(["-c", "print('fine')"], 60),
        "fails": Step(["-c", "raise SystemExit(3)"], 60),
        "hangs": Step(["-ISc", "print('begun', flush=True); import time; time.sleep(600)"], 3),
        "lacks": Step([], 60, before=("no-such-tool",)),
        "conformance-full-1": Step(["-c", "print('first')"], 60),
        "conformance-full-2": Step(["-c", "print('second')"], 60),
    }
    monkeypatch.setattr(check_gpu, "STEPS", commands)
    names = "works,fails,hangs,lacks,conformance-full"
    assert check_gpu.main(["--steps", names, "--out", str(tmp_path)]) == 1
    outcomes = (tmp_path / "summary.txt").read_text().splitlines()
    assert [line.partition(" in ")[0] for line in outcomes] == [
        "works: passed",
        "fails: FAILED (3)",
        "hangs: FAILED (stopped after 3 s)",
        "lacks: NOT RUN, no-such-tool is not installed",
        "conformance-full-1: passed",
        "conformance-full-2: passed",
    ]
    assert (tmp_path / "hangs.log").read_text() == "begun\n"
    assert check_gpu.main(["--steps", "works", "--out", str(tmp_path)]) == 0
    with pytest.raises(SystemExit):
        check_gpu.main(["--steps", "nothing", "--out", str(tmp_path)])
    assert "no step nothing; there are works, fails" in capsys.readouterr().err


def test_without_a_gpu(monkeypatch, tmp_path, capsys):
    """Nothing is run, since the tests would leave themselves out, and pass."""
    monkeypatch.setattr(registry, "problem_of", lambda entry: "there is no driver")
    assert check_gpu.main(["--out", str(tmp_path / "none")]) == 2
    assert "nothing was run: there is no driver" in capsys.readouterr().out
    assert not (tmp_path / "none").exists()
