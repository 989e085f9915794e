"""Tests of the comparison of docstring examples: what counts as equal, and processes that end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from parity import run
from parity.comparing import BOTH, FAILED, PASSED, SHAPE, close, judge, reason_of
from parity.run import Worker, results, run_all
from parity.worker import examples_in, kind_of

SERVE = [sys.executable, str(Path(run.__file__).with_name("worker.py")), "serve", "duograph"]


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("[1. 2.]", "[ 1.0  2.0 ]", True),
        ("[[1 2]\n [3 4]]", "[[1 2] [3 4]]", True),
        ("0.33333334", "0.3333333", True),
        ("0.33", "0.34", False),
        ("nan inf", "nan inf", True),
        ("[0.5+0.86602545j 2.-1.j]", "[ 0.5 +0.8660254j  2.  -1.j ]", True),
        ("[0.5+0.86j]", "[0.5+0.87j]", False),
        ("nan", "1.0", False),
        ("mindspore.float32", "duograph.float32", True),
        ("Tensor(shape=[2], value= [1, 2])", "Tensor(shape=[2],value=[1,2])", True),
        ("Int32", "Int64", False),
        ("<A object at 0x7f12>", "<A object at 0x8a>", True),
        ("(3,)", "(3)", False),
        ("2.+0.j", "2.  -1.9868216e-08j", True),
        ("1.+0.j 2.+0.j", "0.9999999+0.0000000e+00j 1.9999999 +7.9472862e-08j", True),
        ("1.+0.j", "1.+0.5j", False),
        ("1-2", "1+2", False),
        ("<class 'duograph.tensor.Tensor'>", "<class 'mindspore.common.tensor.Tensor'>", True),
        ("<class 'duograph.nn.Dense'>", "<class 'mindspore.nn.Conv2d'>", False),
        ("Generator(seed=5, f=(1, 2))", "<mindspore.common.Generator object at 0x7f>", True),
        ("f(w=A(1), x=3)", "f(w=<m.A object at 0x1>, x=3)", True),
        ("f(w=B(1), x=3)", "f(w=<m.A object at 0x1>, x=3)", False),
    ],
)  # fmt: skip
def test_texts_are_equal_but_for_rounding(a: str, b: str, equal: bool) -> None:
    assert close(a, b) is equal


def test_signs_are_free_where_asked() -> None:
    assert close("[-0.3 0.9]", "[0.3 -0.9]", signs=False)
    assert not close("[-0.3 0.9]", "[0.3 -0.9]")
    assert not close("[-0.3 0.8]", "[0.3 -0.9]", signs=False)


def ran(got: str = "1", want: str = "1", error: str = "", source: str = "print(x)") -> list:
    return [{"source": source, "want": want, "got": got, "error": error}]


@pytest.mark.parametrize(
    ("ours", "theirs", "result"),
    [
        (ran("1"), ran("1"), PASSED),
        (ran("2"), ran("1"), FAILED),
        (ran("2"), ran("2", want="1"), PASSED),  # MindSpore prints something else than documented
        (ran("1"), ran("2", want="1"), PASSED),
        (ran("3"), ran("2", want="1"), SHAPE),
        (ran("3", source="print(ops.rand(1))"), ran("1"), SHAPE),
        (ran("a", source="print(ops.rand(1))"), ran("1"), FAILED),
        (ran("", error="TypeError: no"), ran("1"), FAILED),
        (ran("", error="TypeError: no"), ran("", error="RuntimeError: Ascend"), BOTH),
        (ran("1"), ran("", error="RuntimeError: Ascend"), PASSED),
        (ran("2"), ran("", error="RuntimeError: Ascend"), BOTH),
        (ran("2"), None, BOTH),
        (ran("", error="TypeError: no"), ran("1") + ran("", error="RuntimeError: Ascend"), BOTH),
        (None, ran("1"), FAILED),
        (None, None, BOTH),
    ],
)
def test_verdicts(ours: list | None, theirs: list | None, result: str) -> None:
    assert judge(ours, theirs).result == result


def test_reasons_name_what_is_missing() -> None:
    assert reason_of("AttributeError: module 'm' has no attribute 'fft'").endswith("'fft'")
    assert "'COOTensor'" in reason_of("ImportError: cannot import name 'COOTensor' from 'x' (y)")


def test_examples_are_cut_from_docstrings() -> None:
    assert examples_in("Text.\n\nExamples:\n    >>> 1\n    1").strip() == ">>> 1\n    1"
    assert examples_in("Examples: none") == ""
    assert kind_of("ops.Add", int) == "Primitive classes"
    assert kind_of("ops.add", len) == "ops functions"


def test_processes_that_end_or_hang_are_replaced(tmp_path: Path) -> None:
    texts = {
        "a": ">>> import mindspore as ms\n>>> print(ms.Tensor([1, 2]))\n[1 2]\n",
        "b": ">>> import os\n>>> os._exit(3)\n",
        "c": ">>> while True: pass\n",
        "d": ">>> 1 / 0\n",
        "e": ">>> x = 1\n>>> x + 1\n2\n",
    }
    file = tmp_path / "results.jsonl"
    examples = [{"path": p, "kind": "", "text": t} for p, t in texts.items()]
    run_all(examples[:2], SERVE, file, 1, 60)
    run_all(examples, SERVE, file, 1, 1)  # goes on with the third
    found = results(file)
    assert list(found) == list("abcde")
    assert found["a"][-1]["got"] == "[1 2]\n"
    assert found["b"] is None and found["c"] is None
    assert found["d"][0]["error"].startswith("ZeroDivisionError")
    assert found["e"][-1]["got"] == "2\n"
    with pytest.raises(SystemExit, match="does not start"):
        Worker([*SERVE[:-1], "no_such_package"], 1).run(examples[0])


WRITES = """
>>> import os, pathlib, tempfile
>>> pathlib.Path("checkpoint.ckpt").touch()
>>> pathlib.Path("..", "beside.ckpt").touch()
>>> os.chdir("..")
>>> pathlib.Path("rank_0").mkdir()
>>> handle, name = tempfile.mkstemp()
>>> print(pathlib.Path(".").resolve())
"""


@pytest.mark.parametrize("killed", [False, True])
def test_workers_leave_no_files(
    killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    worker = Worker(SERVE, 60)
    try:
        answer = worker.run({"text": WRITES})
        assert not any(statement["error"] for statement in answer)
        folder = Path(answer[-1]["got"].strip())
        assert folder.is_dir() and (folder / "beside.ckpt").exists()
        if killed:
            worker._limit = 0.2
            assert worker.run({"text": ">>> import time\n>>> time.sleep(60)\n"}) is None
    finally:
        worker.close()
    assert not folder.exists() and not list(tmp_path.iterdir())


def test_programs_are_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "tool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    assert run.started_anywhere(["bin/tool", "-x"]) == [str(program), "-x"]
    assert run.started_anywhere(["no-such-program"]) == ["no-such-program"]
