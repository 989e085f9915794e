"""`duograph run` behaves as `python` does, and `import mindspore` means duograph.

Programs run in processes of their own, since an alias stays for the rest of a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from duograph import cli

RUN = ["-m", "duograph.run"]


def run(*arguments: object, cwd: Path | None = None, **environment: str) -> tuple[int, str, str]:
    """Start Python with these arguments; return the exit status, output and error output."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


# name -> program; `python` and `duograph run` print the same, errors and exit status included
PROGRAMS = {
    "arguments": "import sys\nprint(sys.argv, __name__, __file__, sys.path[0])\n",
    "error": """
def f():
    raise ValueError("x")
try:
    1 / 0
except ZeroDivisionError:
    f()
""",
    "syntax": "x = (\n",
    "status": """
import atexit, pickle, sys
class Kept: pass
atexit.register(lambda: print(type(pickle.loads(pickle.dumps(Kept()))) is Kept))
sys.exit('stopped')
""",
    # a process that a shell started in the background ignores the signal
    "interrupt": """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_script_runs_as_under_python(program: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAMS[program])
    arguments = ["a", "-m", "--device", "b c"]
    assert run(*RUN, script, *arguments) == run(script, *arguments)


def test_modules_and_folders_run_as_under_python(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import os, sys\nprint(sys.argv, __name__, __package__, os.path.abspath(sys.path[0]))\n"
    )
    for arguments in (["-m", "package", "x", "--mode"], ["package", "y"]):
        wanted = run(*arguments, cwd=tmp_path)
        assert wanted[0] == 0
        assert run(*RUN, *arguments, cwd=tmp_path) == wanted


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["no_such.py"], 2, "can't open file"),
        (["--device", "Nothing", __file__], 2, "device_target='Nothing', and no plugin"),
        (["--mode", "both", __file__], 2, "invalid choice: 'BOTH'"),
        ([], 2, "duograph run train.py --epochs 3"),
    ],
)
def test_wrong_command_lines(
    arguments: list[str], status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = cli.main(["run", *arguments])
    except SystemExit as stopped:
        found = stopped.code
    assert found == status
    assert text in capsys.readouterr().err


def test_a_missing_module_is_named() -> None:
    status, _, errors = run(*RUN, "-m", "no_such_module")
    assert (status, errors) == (1, "duograph run: no module named 'no_such_module'\n")


OVERRIDES = """
import multiprocessing, subprocess, sys
import mindspore as ms
from mindspore import context

def settings(x):
    import mindspore
    target = mindspore.get_context("device_target")
    return mindspore.__name__, mindspore.get_context("mode"), target, int(mindspore.Tensor(x) + 1)

if __name__ == "__main__":
    context.set_context(mode=context.PYNATIVE_MODE, device_target="Ascend", device_id=7)
    ms.set_device("Ascend", 5)
    print(settings(1), flush=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(settings, [1]), flush=True)
    code = "import mindspore as ms; print(ms.__file__ == sys.argv[1], ms.get_context('mode'))"
    code = "import sys, chained; print(chained.ran, 'mindspore' in sys.modules); " + code
    code += "; from importlib.metadata import version; print(version('mindspore'))"
    subprocess.run([sys.executable, "-c", code, ms.__file__], check=True)
"""


def test_device_and_mode_hold_in_children_too(tmp_path: Path) -> None:
    """Children inherit the alias and the settings; a `sitecustomize` of the user's still runs."""
    (tmp_path / "script.py").write_text(OVERRIDES)
    (tmp_path / "chained.py").write_text("ran = False\n")
    (tmp_path / "sitecustomize.py").write_text("import chained\nchained.ran = True\n")
    options = ["--device", "CPU", "--mode", "graph"]
    status, out, errors = run(*RUN, *options, tmp_path / "script.py", PYTHONPATH=str(tmp_path))
    assert status == 0, errors
    one = "('duograph', 0, 'CPU', 2)"
    assert out.splitlines() == [one, f"[{one}]", "True False", "True 0", "2.10.0"]
    assert errors.count("'Ascend' in the program; this run was told to use 'CPU'") == 1
    assert errors.count("mode is PYNATIVE_MODE (1) in the program") == 1


def test_a_startup_without_duograph_does_nothing(tmp_path: Path) -> None:
    """The hook in the environment must not break a Python that has no duograph."""
    startup = Path(__file__).parents[2] / "core" / "duograph" / "compat" / "startup"
    code = "import sys; print(any('startup' in p for p in sys.path))\nimport mindspore"
    code = f"import sys; sys.path.insert(0, {str(startup)!r}); import sitecustomize\n{code}"
    status, out, errors = run("-S", "-c", code, DUOGRAPH_AS_MINDSPORE="")
    assert (status, out) == (1, "False\n")
    assert "No module named 'mindspore'" in errors


ALIAS = """
import importlib.metadata, os, pickle, sys
sys.path.insert(0, sys.argv[1])  # another package of the name is there
import duograph, duograph.nn, duograph.compat
before = duograph.__version__
assert duograph.compat.install() is duograph and duograph.compat.installed()
spec = duograph.__spec__
import mindspore as ms
import mindspore.nn as nn
import mindspore.common.dtype as mstype
from mindspore.ops import operations as P, composite as C
from mindspore.train.serialization import export, load_checkpoint
assert ms is duograph and nn is duograph.nn and nn.Cell is duograph.nn.Cell
assert sys.modules["mindspore.nn"] is sys.modules["duograph.nn"]
assert ms.__spec__ is spec and nn.__spec__.name == nn.__name__ == "duograph.nn"
assert mstype.float32 is duograph.float32 and P.Add is duograph.ops.Add
assert before == importlib.metadata.version("duograph") != ms.__version__
assert ms.__version__ == importlib.metadata.version("mindspore") == "2.10.0"
here = b"cmindspore.nn.layer.activation\\nReLU\\n."
assert pickle.loads(here) is duograph.nn.ReLU
def message(code):
    try:
        exec(code)
    except (ImportError, AttributeError) as error:
        return str(error)
for code, near in [
    ("from mindspore import Tenser", "duograph.Tensor"),
    ("import mindspore.nnn", "duograph.nn"),
    ("from mindspore.nn import Conv2", "duograph.nn.Conv2d"),
    ("from mindspore import ReLU", "duograph.ops.ReLU"),
    ("from mindspore.ops.operations import MatMull", "duograph.ops.operations.MatMul"),
    ("ms.Tenser", "duograph.Tensor"),
    ("ms.nn.Covn2d", "duograph.nn.Conv2d"),
]:
    assert f"did you mean {near}?" in message(code), (code, message(code))
duograph.compat.install(mode="GRAPH")
ms.set_context(mode=ms.GRAPH_MODE)
assert sum(p.endswith("startup") for p in os.environ["PYTHONPATH"].split(os.pathsep)) == 1
print("done")
"""


def test_every_module_is_the_same_object(tmp_path: Path) -> None:
    (tmp_path / "mindspore.py").write_text("raise RuntimeError('the other package')")
    status, out, errors = run("-c", ALIAS, tmp_path)
    assert (status, out) == (0, "done\n"), errors


def test_an_alias_after_the_real_import_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mindspore.py").write_text("")
    code = "import mindspore, duograph.compat; duograph.compat.install()"
    status, _, errors = run("-c", code, PYTHONPATH=str(tmp_path))
    assert status == 1
    assert "call it before that import" in errors
