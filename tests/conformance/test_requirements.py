"""What the conformance suite lacks is said in one line, before anything runs."""

from __future__ import annotations

import importlib.util
import sys
from importlib import metadata

import pytest
from duograph.cli import main, new_backend
from duograph.conformance.requirements import INSTALL, problem

# missing packages, version of pytest, whether processes are wanted -> what is said; None: nothing
CASES = {
    "all": ((), "9.2.0", True, None),
    "no pytest": (("pytest", "xdist"), "", True, "needs pytest, which is not installed"),
    "old": ((), "7.4.4", False, "needs pytest 8 or later, and this is 7.4.4"),
    "oldest": ((), "8.0.0", False, None),
    "a release candidate": ((), "10.0.0rc1", False, None),
    "old, and no xdist": (("xdist",), "7.4.4", True, "needs pytest 8 or later"),
    "no xdist": (("xdist",), "9.2.0", True, "-n needs pytest-xdist, which is not installed"),
    "no xdist, not wanted": (("xdist",), "9.2.0", False, None),
}


@pytest.fixture
def lacking(monkeypatch):
    """Fixture: a function that hides packages and gives pytest another version."""
    find, version = importlib.util.find_spec, metadata.version

    def hide(names, number):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda n, *rest: None if n in names else find(n, *rest)
        )
        monkeypatch.setattr(
            metadata, "version", lambda name: number if name == "pytest" else version(name)
        )

    return hide


@pytest.mark.parametrize("case", CASES)
def test_what_is_missing(case, lacking):
    names, number, parallel, said = CASES[case]
    lacking(names, number)
    found = problem(parallel)
    if said is None:
        assert found is None
        return
    assert said in found and found.endswith(INSTALL) and "\n" not in found


COMMANDS = {
    "run": ["conformance", "run", "CPU"],
    "run with processes": ["conformance", "run", "CPU", "-n", "2", "--json"],
    "run on an unknown device": ["conformance", "run", "Abacus"],
    "new-backend": ["new-backend", "Frob", "made", "--install"],
}


@pytest.mark.parametrize("names, number", [(("pytest",), ""), ((), "7.4.4")], ids=["none", "old"])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_it_first(command, names, number, lacking, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    lacking(names, number)
    assert main(COMMANDS[command]) == 1
    out, said = capfd.readouterr()
    assert out == "" and said.count("\n") == 1 and "the conformance suite needs pytest" in said
    assert not list(tmp_path.iterdir())  # no package without the tests that were asked for


HIDDEN = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "xdist" else find(name, *rest)
"""
OLD = """
from importlib import metadata
version = metadata.version
metadata.version = lambda name: "7.4.4" if name == "pytest" else version(name)
"""
# start of the process, options -> the only line
LINES = {
    "-n 2": (HIDDEN, ["-n", "2"], "ERROR: -n needs pytest-xdist"),
    "-n2": (HIDDEN, ["-n2"], "ERROR: -n needs pytest-xdist"),
    "--numprocesses": (HIDDEN, ["--numprocesses=auto"], "ERROR: -n needs pytest-xdist"),
    "--dist": (HIDDEN, ["--dist", "load"], "ERROR: -n needs pytest-xdist"),
    "old": (OLD, ["-n", "2", "--quick"], "ERROR: the conformance suite needs pytest 8 or later"),
}


@pytest.mark.parametrize("case", LINES)
def test_pytest_says_it_alone(case, site):
    start, options, said = LINES[case]
    (site.folder / "sitecustomize.py").write_text(start)
    line = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--pyargs", "duograph.conformance"]
    done = site.command([*line, "--device", "CPU", *options])
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stdout == "" and done.stderr.startswith(said), done.stdout + done.stderr
    assert done.stderr.strip().count("\n") == 0 and INSTALL in done.stderr


PIP, SUITE = "pip install --editable made", "pytest --pyargs duograph.conformance --device Frob"
# option, status of pip, status of the test -> own status, steps that are left
STEPS = {
    "not installed": ([], None, None, 0, [PIP, SUITE]),
    "installed": (["--install"], 0, 0, 0, [SUITE]),
    "pip fails": (["--install"], 1, None, 1, [PIP, SUITE]),
    "the test fails": (["--install"], 0, 1, 1, [SUITE]),
    "interrupted": (["--install"], -15, None, 1, [PIP, SUITE]),
}


@pytest.mark.parametrize("json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("case", STEPS)
def test_a_new_backend_names_the_steps_that_are_left(case, json, tmp_path, monkeypatch, capsys):
    options, pip, test, status, steps = STEPS[case]
    statuses = [s for s in (pip, test) if s is not None]
    monkeypatch.setattr(new_backend, "run_to_end", lambda line, stdout=None: statuses.pop(0))
    monkeypatch.chdir(tmp_path)
    line = ["new-backend", "Frob", "made", *options, *(["--json"] if json else [])]
    assert main(line) == status
    assert not statuses
    out = capsys.readouterr().out
    found = out.partition("next:\n")[2].splitlines()
    assert len(found) == (0 if json else len(steps))
    assert all(step in text for step, text in zip(steps, found))
