"""A conformance run that gets SIGTERM leaves neither processes nor temporary folders behind."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from duograph.cli.command import run_to_end

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
PATIENCE = 300


def wait_until(true, what):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def processes_with(text):
    """Return the ids of the processes, zombies aside, in whose environment a text is."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and text.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


@pytest.mark.parametrize("whole_group", [False, True], ids=["the command", "the process group"])
@pytest.mark.parametrize(
    "options", [["-n", "1", "--json"], []], ids=["command, pytest and a worker", "command, pytest"]
)
def test_sigterm_ends_a_run_with_all_that_it_started(options, whole_group, tmp_path):
    """Also if `timeout` or a service manager sends it to all processes of the run."""
    own, results = tmp_path / "own", tmp_path / "results"
    own.mkdir()
    line = [sys.executable, "-m", "duograph.cli", "conformance", "run", "CPU", "--quick"]
    with subprocess.Popen(
        [*line, "--report", str(results), *options],
        env={**os.environ, "TMPDIR": str(own), "PYTEST_ADDOPTS": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as run:
        lines = results / "CPU.jsonl"
        try:
            wait_until(
                lambda: lines.exists() and lines.read_text().count("\n") > 5, "no test has run"
            )
            assert len(processes_with(str(own))) == (3 if options else 2)
            (os.killpg if whole_group else os.kill)(run.pid, signal.SIGTERM)
            assert run.wait(PATIENCE) == 128 + signal.SIGTERM
        finally:
            left = processes_with(str(own))
            for process in left:
                os.kill(process, signal.SIGKILL)
    assert not left, "a process has outlived the command"
    # pytest keeps its folder for the user, like those of the runs before, and unlocks it
    assert {path.name.partition("-")[0] for path in own.iterdir()} <= {"pytest"}
    assert not list(own.rglob(".lock"))
    assert (results / "CPU.json").exists()  # what was known is reported


STATUSES = {
    "success": ("pass", 0),
    "failure": ("raise SystemExit(3)", 3),
    "a signal": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
}


@pytest.mark.parametrize("case", STATUSES)
def test_the_status_is_that_of_the_program(case):
    before = signal.getsignal(signal.SIGTERM)
    program, status = STATUSES[case]
    assert run_to_end([sys.executable, "-c", program]) == status
    assert signal.getsignal(signal.SIGTERM) is before


# what the program does at SIGTERM -> its status as `run_to_end` returns it
ENDS = {"ends by it": ("", -signal.SIGTERM), "ends by itself": ("sys.exit(9)", 9)}


@pytest.mark.parametrize("case", ENDS)
def test_sigterm_reaches_the_program(case, tmp_path):
    does, status = ENDS[case]
    ready = tmp_path / "ready"
    handler = f"signal.signal(signal.SIGTERM, lambda *_: {does})\n" if does else ""
    program = f"import pathlib, signal, sys, time\n{handler}"
    program += f"pathlib.Path({str(ready)!r}).touch()\ntime.sleep({PATIENCE})"
    outer = f"""
import sys
from duograph.cli.command import run_to_end
print(run_to_end([sys.executable, "-c", {program!r}]))
"""
    with subprocess.Popen([sys.executable, "-c", outer], stdout=subprocess.PIPE, text=True) as run:
        wait_until(ready.exists, "the program has not begun")
        run.terminate()
        said, _ = run.communicate(timeout=PATIENCE)
    assert int(said) == status and run.returncode == 0
