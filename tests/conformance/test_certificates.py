"""Levels of the conformance suite, results on disk, runs that are resumed, and reports compared."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from duograph import cli
from duograph.conformance import certificates, report
from duograph.dtype import ALL

HERE = pathlib.Path(__file__).parent


def record(
    check, case="exp", dtype="float32", outcome="passed", seconds=0.01, message="", reached=0.02
):
    return {
        "check": check, "case": case, "dtype": dtype, "outcome": outcome, "seconds": seconds,
        "kinds": [], "on_host": 0, "message": message, "reached": reached,
    }  # fmt: skip


class Run:
    name, title, plugin, dtypes, figures = "Toy", "Toy, 1.0", "toy 1.0 (toy)", ALL, {}
    finished = frozenset()

    def __init__(self, *records, partial=()):
        self.results = {f"{r['check']}/{r['case']}/{r['dtype']}": r for r in records}
        self._partial = partial

    def partial(self):
        return list(self._partial)


WHOLE = [record("forward"), record("gradient"), record("train")]
LEVELS = {
    "all": (WHOLE, (), ["bronze", "silver", "gold"]),
    "a partial run": (WHOLE, ("--quick",), []),
    "a failure in gold": (
        [*WHOLE[:2], record("train", outcome="failed")], (), ["bronze", "silver"],
    ),
    "gold needs silver": (
        [WHOLE[0], record("gradient", outcome="failed"), WHOLE[2]], (), ["bronze"],
    ),
    "gold needs bronze": ([record("forward", outcome="failed"), *WHOLE[1:]], (), []),
    "an expected failure is a failure": (
        [record("forward", outcome="expected failure"), *WHOLE[1:]], (), [],
    ),
    "a declared gap is none": (
        [*WHOLE, record("forward", "cummax", outcome="unsupported")],
        (),
        ["bronze", "silver", "gold"],
    ),
    "a level without tests": (WHOLE[:2], (), ["bronze", "silver"]),
}  # fmt: skip


@pytest.mark.parametrize("case", LEVELS.values(), ids=LEVELS)
def test_levels(case):
    records, partial, want = case
    summary = report.summarise(Run(*records, partial=partial))
    assert [level.split(":")[0] for level in report.reached(summary)] == want
    text = "\n".join(report.terminal(summary, colour=False))
    assert text.count(" reached") == len(want)
    assert ("no level: --quick" in text) is bool(partial)


def written(tmp_path, name, *records, partial=()):
    path = str(tmp_path / name)
    report.write_json(report.summarise(Run(*records, partial=partial)), path)
    return path


# name -> (records of the new run, its filters, lines that must be there, exit status)
COMPARED = {
    "nothing": (WHOLE, (), ["0 tests are worse"], 0),
    "a failure": (
        [record("forward", outcome="failed", message="exp: wrong"), *WHOLE[1:]],
        (),
        ["worse: forward/exp/float32: passed -> failed exp: wrong",
         "worse: bronze: kernels is no more reached", "1 tests are worse"],
        1,
    ),
    "skipped now": (
        [record("forward", outcome="skipped", message="why"), *WHOLE[1:]],
        (),
        ["worse: forward/exp/float32: passed -> skipped why"],
        1,
    ),
    "slower": ([record("forward", seconds=2), *WHOLE[1:]], (), ["slower: forward/exp/float32"], 0),
    "less accurate": (
        [record("forward", reached=0.5), *WHOLE[1:]],
        (),
        ["less accurate: forward/exp/float32: 0.02 -> 0.5 of the tolerance"],
        0,
    ),
    "a part": (WHOLE[:1], ("-k exp",), ["the new run is partial: -k exp", "2 tests of the old"], 0),
    "more": ([*WHOLE, record("forward", "sin")], (), ["1 tests of the new run"], 0),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPARED.values(), ids=COMPARED)
def test_compare(case, tmp_path, capsys):
    records, partial, lines, status = case
    old = written(tmp_path, "old.json", *WHOLE)
    new = written(tmp_path, "new.json", *records, partial=partial)
    assert cli.main(["conformance", "compare", old, new]) == status
    text = capsys.readouterr().out
    for line in lines:
        assert line in text


@pytest.mark.parametrize(
    ("slow", "slower"),
    [
        ({}, []),
        ({3: 3.0}, ["slower: forward/case3/float32: 1.00 -> 3.00 s"]),
        (dict.fromkeys(range(30), 3.0), ["the new run took 3.00 times as long for most tests"]),
        ({**dict.fromkeys(range(30), 3.0), 5: 9.0},
         ["the new run took 3.00 times", "slower: forward/case5/float32: 1.00 -> 9.00 s"]),
    ],
    ids=["equal", "one test", "the machine", "the machine and one test"],
)  # fmt: skip
def test_a_slower_machine_is_told_from_slower_tests(slow, slower):
    runs = []
    for seconds in ({}, slow):
        records = [record("forward", f"case{k}", seconds=seconds.get(k, 1.0)) for k in range(30)]
        results = {f"{r['check']}/{r['case']}/{r['dtype']}": r for r in records}
        runs.append({"title": "", "plugin": "", "partial": [], "reached": [], "results": results})
    lines, worse = certificates.compare(*runs)
    found = [line for line in lines if "slower" in line or "as long" in line]
    assert len(found) == len(slower) and not worse
    assert all(text in line for text, line in zip(slower, found, strict=True))


def test_what_was_worse_is_better_the_other_way_round(tmp_path):
    old = certificates.read(
        written(tmp_path, "old.json", record("forward", outcome="failed"), *WHOLE[1:])
    )
    lines, worse = certificates.compare(old, certificates.read(written(tmp_path, "n.json", *WHOLE)))
    assert not worse
    assert "better: forward/exp/float32: failed -> passed" in lines


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON file"),
        ("[]", "no report"),
        ('{"results": {}, "format": 1}', "Run the suite"),
        (f'{{"results": {{}}, "format": {report.FORMAT}}}', "it is damaged"),
        (
            f'{{"results": {{"a": 3}}, "format": {report.FORMAT}, "title": "", "plugin": "", '
            '"partial": [], "reached": []}',
            "it is damaged",
        ),
    ],
)
def test_what_is_no_report_is_refused(text, words, tmp_path, capsys):
    (tmp_path / "bad.json").write_text(text)
    good = written(tmp_path, "good.json", *WHOLE)
    assert cli.main(["conformance", "compare", str(tmp_path / "bad.json"), good]) == 2
    assert words in capsys.readouterr().err
    assert cli.main(["conformance", "compare", good, str(tmp_path / "none.json")]) == 2


def suite(folder, *more, device="CPU", tests="duograph.conformance"):
    """Run a small part of the suite in a process of its own; return its output and its report."""
    done = run_suite(folder, *more, device=device, tests=tests)
    path = folder / f"{device}.json"
    return done.stdout + done.stderr, json.loads(path.read_text()) if path.exists() else None


def run_suite(folder, *more, device="CPU", tests="duograph.conformance"):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", tests,
         "--device", device, "--quick", "--report", str(folder), *more],
        capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(folder), *sys.path])},
    )  # fmt: skip


def test_a_run_is_resumed(tmp_path):
    text, found = suite(tmp_path, "-k", "test_forward and exp2")
    assert found is not None, text
    names = set(found["results"])
    assert names and found["partial"] == ["--quick", "-k test_forward and exp2"]
    assert found["reached"] == [] and found["seam"] and "duograph_cpu" in found["plugin"]
    assert all(0 <= r["reached"] <= 1 for r in found["results"].values())
    lines = (tmp_path / "CPU.jsonl").read_text().splitlines()
    (tmp_path / "CPU.jsonl").write_text("\n".join(lines[:-1]) + '\n{"name": "forw')  # cut off
    text, found = suite(tmp_path, "-k", "test_forward and exp2", "--resume")
    assert "1 passed" in text and set(found["results"]) == names
    assert found["partial"] == ["--quick", "-k test_forward and exp2"]
    text, _ = suite(tmp_path / ".." / tmp_path.name, "--resume", device="Nobody")
    assert "Nobody" in text


def test_resume_needs_results(tmp_path):
    assert "there is no" in suite(tmp_path, "--resume")[0]


def test_resume_refuses_results_of_other_versions(tmp_path):
    suite(tmp_path, "-k", "[exp2-float32]")
    path = tmp_path / "CPU.jsonl"
    path.write_text(path.read_text().replace("(duograph_cpu)", "(another)", 1))
    text, _ = suite(tmp_path, "-k", "[exp2-float32]", "--resume")
    assert "are of" in text and "(another)" in text and "run without --resume" in text


def test_resume_refuses_results_of_changed_sources(tmp_path):
    """An editable installation has the same version after a change of its files."""
    device = tmp_path / "broken_device.py"
    device.write_text((HERE / "broken_device.py").read_text())
    chosen = ("-p", "broken_device", "-k", "test_forward and [neg-float32]")

    def run(*more):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs"]
        command += ["duograph.conformance", "--device", "Broken", "--quick"]
        done = subprocess.run(
            [*command, "--report", str(tmp_path), *chosen, *more],
            capture_output=True, text=True, check=False, cwd=tmp_path, env=environment,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    assert run()[0] == 0
    assert run("--resume")[0] == 0  # nothing is left to run
    device.write_text(device.read_text() + "\n# changed\n")
    status, text = run("--resume")
    assert status == pytest.ExitCode.USAGE_ERROR and "have changed" in text


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_resumed_run_with_nothing_left_is_as_partial_as_before(processes, tmp_path):
    if processes != "0":
        pytest.importorskip("xdist", reason="several processes need pytest-xdist")
    more = ("-k", "[exp2-float32]", *(("-n", processes) if processes != "0" else ()))
    first = suite(tmp_path, *more)[1]
    again = suite(tmp_path, *more, "--resume")[1]
    assert again["partial"] == first["partial"] == ["--quick", "-k [exp2-float32]"]
    assert again["reached"] == [] and again["results"] == first["results"]


def test_a_test_that_aborts_or_hangs_loses_itself_only(tmp_path):
    pytest.importorskip("xdist", reason="a process of its own for the tests needs pytest-xdist")
    chosen = "test_forward and ([exp-float32] or [sqrt-float32] or [neg-float32])"
    text, found = suite(
        tmp_path, "-p", "broken_device", "-n", "1", "-k", chosen, "--case-seconds", "5",
        device="Broken",
    )  # fmt: skip
    assert found is not None, text
    outcomes = {name: r["outcome"] for name, r in found["results"].items()}
    assert outcomes == {
        "forward/exp/float32": "failed",
        "forward/neg/float32": "passed",
        "forward/sqrt/float32": "failed",
    }
    assert "crashed while running" in found["results"]["forward/exp/float32"]["message"]


def test_a_test_that_aborts_without_worker_processes_is_not_run_again(tmp_path):
    chosen = ("-p", "broken_device", "-k", "test_forward and ([exp-float32] or [neg-float32])")
    for more in ([], ["--resume"]):  # both end in the middle of `exp`
        suite(tmp_path, *chosen, *more, device="Broken")
    text, found = suite(tmp_path, *chosen, "--resume", device="Broken")
    assert found is not None, text
    outcomes = {name: r["outcome"] for name, r in found["results"].items()}
    assert outcomes == {"forward/exp/float32": "failed", "forward/neg/float32": "passed"}
    assert "in the middle of the test, twice" in found["results"]["forward/exp/float32"]["message"]


def test_a_test_by_its_id_is_a_part_of_the_suite(tmp_path):
    one = "duograph.conformance.test_random::test_every_draw_takes_one_position"
    text, found = suite(tmp_path, tests=one)
    assert found is not None, text
    assert "1 passed" in text and found["partial"] == ["--quick", f"only {one}"]
    assert found["reached"] == []


def test_tests_that_another_plugin_leaves_out_are_counted(tmp_path):
    (tmp_path / "half.py").write_text(
        "def pytest_collection_modifyitems(config, items):\n"
        "    config.hook.pytest_deselected(items=items[1:])\n"
        "    del items[1:]\n"
    )
    text, found = suite(tmp_path, "-p", "half")
    assert found is not None, text
    assert re.fullmatch(r"\d+ tests deselected", found["partial"][1])
    assert found["reached"] == []
