"""Tests of the messages for wrong programs: what happened, the user's line and a remedy."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback

import duograph as ms
import pytest
from duograph import nn, ops
from duograph.tracebacks import user_line
from errors.corpus import PROGRAMS, programs

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FAMILIES = sorted({p.path.parent.name for p in programs()})
# as users run them; one for each way to an error: an op, a compiled Cell, Python's own error
SCRIPTS = ("shapes/matmul_operator", "jit/join_dtype", "gradients/backward", "data/columns_count")


def run(*arguments, **variables):
    """Run Python in the root of the source tree; return exit status, output and standard error."""
    env = {k: v for k, v in os.environ.items() if k not in ("DUOGRAPH_TRACEBACK", "GLOG_v")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT, env={**env, **variables}, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    printed = done.stderr.replace(ROOT + os.sep, "")
    return done.returncode, done.stdout.replace(ROOT + os.sep, ""), printed


def test_size():
    found = programs()
    assert len(found) >= 300
    assert sum("graph" in p.modes for p in found) >= 60
    assert len(FAMILIES) >= 15
    assert all(len(p.path.read_text().splitlines()) < 50 for p in found)


@pytest.mark.parametrize("family", FAMILIES)
def test_messages(family):
    """The error has the right class, line and words, and no frame of duograph."""
    status, printed, errors = run(os.path.join(HERE, "show.py"), "--check", f"{family}/")
    assert status == 0, printed + errors


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_what_the_runner_records(name):
    path = os.path.relpath(PROGRAMS / f"{name}.py", ROOT)
    status, _, printed = run(path)
    assert status == 1
    _, recorded, _ = run(os.path.join(HERE, "show.py"), name, "--mode", "eager")
    assert printed.strip() in recorded


def test_all_frames_on_request():
    path = os.path.relpath(PROGRAMS / "shapes/matmul_operator.py", ROOT)
    for variables in ({"DUOGRAPH_TRACEBACK": "full"}, {"GLOG_v": "0"}):
        _, _, printed = run(path, **variables)
        assert "duograph/nn/cell.py" in printed, variables
        assert "matmul: got shapes" in printed


class Net(nn.Cell):
    def construct(self, x):
        return x @ x


class Outer(nn.Cell):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def construct(self, x):
        return self.inner(x)


def add(x):
    return x + ops.ones((5,))


def sliced(x):
    return x[7]


def divided(x):
    return x / (x.ndim - 2)


CALLS = {
    "operator": (add, ValueError, "test_messages.py:{line} in add"),
    "index": (sliced, IndexError, "test_messages.py:{line} in sliced"),
    "jit": (ms.jit(add), ValueError, "test_messages.py:{line} in add"),
    "cell": (Net(), ValueError, "test_messages.py:{line} in construct"),
    "nested": (Outer(Outer(Net())), ValueError, "test_messages.py:{line} in construct"),
    "function": (lambda x: ops.matmul(x, x), ValueError, "test_messages.py:{line} in <lambda>"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_place_is_in_str(name):
    """`str(error)` has the source line, for programs that catch the error and log it."""
    run_, kind, where = CALLS[name]
    with pytest.raises(kind) as raised:
        run_(ops.ones((2, 3)))
    inner = {"jit": add, "cell": Net.construct, "nested": Net.construct}.get(name, run_)
    line = inner.__code__.co_firstlineno + (name != "function")
    assert where.format(line=line) in str(raised.value)
    assert str(raised.value).count("test_messages.py") == 1
    text = "".join(traceback.format_exception(raised.value))
    if sys.version_info >= (3, 11) and name != "index":
        assert "duograph/nn" not in text and "duograph/compiler" not in text
        assert "duograph/ops" not in text and "duograph/execution" not in text


def test_the_place_is_that_of_the_first_raise():
    with pytest.raises(ValueError, match=r"test_messages\.py") as raised:
        add(ops.ones((2, 3)))
    first = str(raised.value)
    with pytest.raises(ValueError, match="broadcast") as again:
        raise raised.value
    assert str(again.value) == first


def test_no_place_without_a_file():
    names: dict[str, object] = {"ops": ops}
    with pytest.raises(ValueError, match="broadcast") as raised:
        exec(compile("ops.ones((2,)) + ops.ones((3,))", "<stdin>", "exec"), names)
    assert "<stdin>" not in str(raised.value)
    assert user_line(None) == ""


def test_errors_of_user_code_keep_their_frames():
    class Failing(nn.Cell):
        def construct(self, x):
            return x.shape[0] // 0

    with pytest.raises(ZeroDivisionError) as raised:
        Outer(Failing())(ops.ones((2, 3)))
    files = [f.filename for f in traceback.extract_tb(raised.value.__traceback__)]
    assert files.count(os.path.abspath(__file__)) == 3


def test_uncaught_errors_of_threads():
    program = (
        "import threading, duograph as ms\n"
        "f = lambda: ms.ops.ones((2,)) + ms.ops.ones((3,))\n"
        "t = threading.Thread(target=f); t.start(); t.join()\n"
    )
    _, _, printed = run("-c", program)
    assert "wanted shapes that broadcast" in printed
    assert "duograph/op.py" not in printed and "execution" not in printed


def test_a_hook_of_the_user_is_called():
    program = (
        "import sys\n"
        "sys.excepthook = lambda kind, error, trace: print('mine', kind.__name__, error)\n"
        "import duograph as ms\n"
        "ms.ops.ones((2,)) + ms.ops.ones((3,))\n"
    )
    _, printed, _ = run("-c", program)
    assert printed.startswith("mine ShapeError add: got operands")


def test_causes_without_user_code_are_left_out():
    program = (
        "import duograph as ms\n"
        "try:\n    {}['key']\nexcept KeyError:\n    ms.ops.reshape(ms.ops.ones((2,)), 'ab')\n"
    )
    _, _, printed = run("-c", program)
    assert "KeyError: 'key'" in printed  # the user's own is kept
    assert printed.count("Traceback") == 2
    assert "duograph/ops" not in printed
