"""Tests of the `duograph` command as a whole: help, mistakes of the user, JSON, completion."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli_commands import COMMANDS
from duograph import context
from duograph.backend import registry
from duograph.backend.health import Finding
from duograph.cli import doctor, main, show

SCRIPT = """
import sys
import numpy as np
import duograph as ms

@ms.jit
def double(x):
    return x + x

@ms.jit
def unused(x):
    return x

def plain(x):
    return x * 2

net = ms.nn.Dense(3, 2)

class Net(ms.nn.Cell):
    def construct(self, x):
        return x + 1

if __name__ == "__main__":
    print("runs", *sys.argv[1:])
    double(ms.Tensor([1.0, 2.0]))
"""

ROOT = os.geteuid() == 0 if hasattr(os, "geteuid") else True


@pytest.fixture
def script(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A script with compiled functions, in the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "binary.py").write_bytes(b"\x00\xff" * 9)
    (tmp_path / "folder").mkdir()
    (tmp_path / "fails.py").write_text("raise KeyError('no such row')\n")
    (tmp_path / "imports.py").write_text("import broken\n")
    (tmp_path / "opens.py").write_text("open('nowhere.bin')\n")
    (tmp_path / "shapes.py").write_text(
        "import duograph as ms\nx = ms.ops.ones((2, 3))\nms.ops.matmul(x, x)\n"
    )
    (tmp_path / "bad.safetensors").write_bytes(b"\xff" * 40)
    (tmp_path / "bad.pt").write_bytes(b"\x80\x02}q\x00.")
    np.savez(tmp_path / "good.npz", weight=np.ones((2, 3), np.float32))
    good = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "short.npz").write_bytes(good[:-40])
    (tmp_path / "flipped.npz").write_bytes(good[:150] + b"\xff" + good[151:])
    np.savez(tmp_path / "words.npz", names=np.array(["a"]))
    np.savez(tmp_path / "long.npz", x=np.ones(2, np.longdouble))
    (tmp_path / "unreadable.npz").write_bytes(b"")
    (tmp_path / "unreadable.npz").chmod(0)
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_exit_statuses(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"]) if name != "run" else COMMANDS[name].parse_args(["-h"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "examples:" in said and f"duograph {name.split()[0]}" in said.split("examples:")[1]
    assert "exit status:" in said and "interrupted" in said


MISTAKES = [
    ("frobnicate", 2, "invalid choice: 'frobnicate'"),
    ("devices --jsn", 2, "unrecognized arguments: --jsn"),
    ("cache shrink", 2, "invalid choice: 'shrink'"),
    ("devices more", 2, "unrecognized arguments: more"),
    ("doctor --device CPU", 2, "unrecognized arguments: --device CPU"),
    ("plugins more", 2, "unrecognized arguments: more"),
    ("info --jsn", 2, "unrecognized arguments: --jsn"),
    ("check more", 2, "unrecognized arguments: more"),
    ("show --json script.py:double -o -", 2, "both write to standard output"),
    ("cache", 2, "the following arguments are required: action"),
    ("run nowhere.py", 2, "no such file"),
    ("run folder", 2, "can't find '__main__.py'"),
    ("run --trace nowhere/t.json script.py", 2, "there is no folder"),
    ("run -n 2 --trace folder script.py", 2, "is a folder; wanted a file"),
    ("run -n 2 --log_dir script.py script.py", 2, "which is a file; wanted a folder"),
    ("run -m", 2, "argument -m: expected one argument"),
    ("run -n 0 script.py", 2, "got '0'; wanted a number of ranks"),
    ("profile nowhere.py", 2, "no such file"),
    ("profile folder", 2, "can't find '__main__.py'"),
    ("profile --rows -1 script.py", 2, "got --rows -1; wanted 0"),
    ("profile --by size script.py", 2, "invalid choice: 'size'"),
    ("profile --trace nowhere/t.json script.py", 2, "there is no folder"),
    ("profile --trace folder script.py", 2, "is a folder; wanted a file"),
    ("profile", 2, "the following arguments are required: SCRIPT"),
    ("run --mode FAST script.py", 2, "invalid choice: 'FAST'"),
    ("run --device Abacus script.py", 2, "'Abacus'"),
    ("show script.py", 2, "wanted SCRIPT.py:FUNCTION"),
    ("show nowhere.py:f", 2, "there is no file"),
    ("show .:f", 2, "is not a file that can be read"),
    ("show broken.py:f", 2, "broken.py:1: invalid syntax"),
    ("show binary.py:f", 2, "binary.py: source code string cannot contain null bytes"),
    ("show fails.py:f", 1, "KeyError: 'no such row'"),
    ("show script.py:missing", 2, "has no function 'missing'; compiled functions: double"),
    ("show script.py:unused", 2, "unused was not compiled"),
    ("show script.py:plain", 2, "plain was not compiled"),
    ("show script.py:np --args 1", 2, "np is no function and no Cell, but module"),
    ("show script.py:double --args 1/0", 2, "--args: '1/0' raised ZeroDivisionError"),
    ("show script.py:double --args float32[8,3] 2 3", 1, "double"),
    ("show script.py:Net.construct --args 1", 1, "'x'; the first argument of a method is the"),
    ("show script.py:double --args float32[99999999999999999999]", 2, "raised ValueError"),
    ("show script.py:double --args flot32[2]", 2, "wanted a Python expression, or a dtype"),
    ("show --device Abacus script.py:double", 2, "'Abacus'"),
    ("show --device CPU:9 script.py:double", 2, "got 9 for CPU; wanted 0"),
    ("show script.py:double -o nowhere/page.html", 2, "nowhere/page.html"),
    ("show script.py:double -o folder", 2, "is a folder; wanted a file"),
    ("tune --device Abacus", 2, "'Abacus'"),
    ("tune --device CPU:9", 2, "got 9 for CPU; wanted 0"),
    ("tune --device CPU:x", 2, "wanted NAME or NAME:INDEX"),
    ("tune more", 2, "unrecognized arguments: more"),
    ("bench --device Abacus", 2, "'Abacus'"),
    ("bench --seconds -1", 2, "wanted a number above 0"),
    ("bench --seconds nan", 2, "wanted a number above 0"),
    ("bench --seconds inf", 2, "wanted a number above 0"),
    ("bench --seconds soon", 2, "invalid float value: 'soon'"),
    ("conformance", 2, "the following arguments are required"),
    ("conformance run Abacus", 2, "'Abacus'"),
    ("conformance run CPU -n x", 2, "got 'x'; wanted a number above 0, or auto"),
    ("conformance run CPU --resume", 2, "--resume needs --report FOLDER"),
    ("conformance run CPU --report script.py", 2, "got script.py, which is a file; wanted"),
    ("conformance compare old.json new.json", 2, "old.json"),
    ("conformance compare folder folder", 2, "Is a directory"),
    ("conformance compare bad.pt bad.pt", 2, "bad.pt"),
    ("new-backend my-device", 2, "wanted letters and digits"),
    ("new-backend MyDevice .", 2, ". exists already"),
    ("new-backend MyDevice script.py/more", 1, "Not a directory"),
    ("new-backend class", 2, "got the name 'class', which Python"),
    ("new-backend Memory", 2, "got the name 'Memory', which Python"),
    ("new-backend cpu", 2, "there is a device CPU already"),
    ("new-backend CUDA", 2, "the package duograph_cuda is installed already"),
    ("new-backend", 2, "the following arguments are required: name"),
    ("convert good.npz weights.h5", 2, "has the suffix '.h5'"),
    ("convert missing.npz out.ckpt", 2, "there is no file missing.npz"),
    ("convert good.npz bad.pt", 2, "exists already; pass --force"),
    ("convert bad.safetensors out.npz", 1, "bad.safetensors"),
    ("convert bad.pt out.npz", 1, "no file of torch.save"),
    ("convert short.npz out.ckpt", 1, "short.npz is damaged, or no .npz file"),
    ("convert flipped.npz out.ckpt", 1, "flipped.npz is damaged, or no .npz file"),
    ("convert words.npz out.ckpt", 1, "names cannot be in a .ckpt file"),
    ("convert words.npz good.npz --force", 1, ".npz has no dtype str32, which names has"),
    ("convert long.npz out.safetensors", 1, "x cannot be in a .safetensors file"),
    ("convert folder out.ckpt", 2, "folder has the suffix ''"),
    ("convert good.npz script.py/out.ckpt", 1, "File exists"),
    ("convert good.npz out.ckpt --rename weight=", 2, "leaves nothing of a name"),
    ("convert good.npz out.ckpt --rename weight", 2, "wanted PATTERN=NAME"),
    ("convert good.npz out.ckpt --rename (=x", 2, "is no regular expression"),
    pytest.param(
        "convert unreadable.npz out.ckpt", 2, "permission denied",
        marks=pytest.mark.skipif(ROOT, reason="root reads every file"),
    ),
    ("completion", 2, "the following arguments are required: shell"),
    ("completion tcl", 2, "invalid choice: 'tcl'"),
    ("completion bash more", 2, "unrecognized arguments: more"),
]  # fmt: skip


@pytest.mark.parametrize("line, status, said", MISTAKES)
def test_a_mistake_is_said_in_one_line_without_traceback(line, status, said, script, capsys):
    if line.startswith("show"):  # it changes what `import mindspore` means
        command = [sys.executable, "-m", "duograph.cli", *shlex.split(line)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found, err = done.returncode, done.stderr
    else:
        try:
            found = main(shlex.split(line))
        except SystemExit as ended:
            found = ended.code
        err = capsys.readouterr().err
    assert (found, said in err) == (status, True), err
    if "fails.py" not in line:  # there the program's own traceback is what the user asked for
        assert "Traceback" not in err
        (told,) = [text for text in err.splitlines() if said in text]
        assert told.startswith("duograph")


def test_profile_asks_for_the_program_alone(capsys):
    with pytest.raises(SystemExit):
        main(["profile"])
    assert capsys.readouterr().err.endswith("arguments are required: SCRIPT\n")


@pytest.mark.parametrize("command", ["run", "profile"])
@pytest.mark.parametrize(
    "file, said",
    [
        ("broken.py", '  File "broken.py", line 1\n    def f(:\n'),
        ("binary.py", "SyntaxError: source code string cannot contain null bytes"),
    ],
)
def test_what_python_cannot_compile_is_told_as_by_python(command, file, said, script):
    line = [sys.executable, "-m", "duograph.cli", command, file]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith(said) and "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run opens.py", "profile opens.py", "show opens.py:f",
                                     "run shapes.py", "profile shapes.py", "show shapes.py:f",
                                     "profile imports.py", "show imports.py:f"])  # fmt: skip
def test_an_error_of_the_program_has_its_traceback_and_no_other_frames(command, script):
    line = [sys.executable, "-m", "duograph.cli", *command.split()]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    name = command.split()[1].partition(":")[0]
    said = {
        "opens.py": ("line 1, in <module>\n    open(", "FileNotFoundError: [Errno 2]"),
        "shapes.py": ("line 3, in <module>\n    ms.ops.matmul(", "ShapeError: matmul: got"),
        "imports.py": ("line 1, in <module>\n    import broken\n", "SyntaxError: "),
    }[name]
    assert done.returncode == 1
    assert done.stderr.startswith('Traceback (most recent call last):\n  File "')
    assert all(text in done.stderr for text in said)
    frames = [text for text in done.stderr.splitlines() if text.startswith("  File ")]
    assert len(frames) == (2 if name == "imports.py" else 1), done.stderr


@pytest.mark.parametrize("options", ["--dtypes float99", "--quick -k no_such_case"])
def test_a_mistake_that_the_conformance_suite_finds(options, script, capfd):
    assert main(["conformance", "run", "CPU", *options.split()]) == 2
    said = "".join(capfd.readouterr())
    assert "Traceback" not in said and ("float99" in said or " 0 selected" in said)


@pytest.mark.parametrize("suffix", [".npz", ".ckpt", ".safetensors"])
def test_an_interrupted_conversion_leaves_the_old_file(suffix, script, monkeypatch, capsys):
    target = script.parent / f"out{suffix}"
    assert main(["convert", "good.npz", target.name]) == 0
    before, files = target.read_bytes(), set(os.listdir())

    def interrupt(number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    assert main(["convert", "good.npz", target.name, "--force", "--rename", "weight=x"]) == 130
    assert target.read_bytes() == before and set(os.listdir()) == files
    assert capsys.readouterr().err == "duograph convert: interrupted\n"


@pytest.mark.parametrize(
    "line, file, printed",
    [
        ("show script.py:double -o a.html -- --epochs 3 -x", "a.html", "runs --epochs 3 -x\n"),
        ("show script.py:double", "double.html", "runs\n"),
        ("show script.py:double --args float32[8,3]", "double.html", ""),
        ("show script.py:plain --args np.ones(3)", "plain.html", ""),
        ("show script.py:net --args float32[8,3]", "net.html", ""),
        ("show script.py:Net.construct --args 'Net()' float32[8,3]", "Net_construct.html", ""),
        ("show --device CPU script.py:double --args 'ms.Tensor([1.0])'", "double.html", ""),
    ],
)
def test_show_runs_a_script_or_compiles_for_arguments(line, file, printed, script):
    command = [sys.executable, "-m", "duograph.cli", *shlex.split(line)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"wrote {file}\n", printed)
    assert (script.parent / file).read_text().startswith("<!doctype html>")


class Kinds:
    def method(self, x):
        return x

    @staticmethod
    def static(x):
        return x

    @classmethod
    def of_class(cls, x):
        return x


@pytest.mark.parametrize(
    "function, hinted",
    [
        ("Kinds.method", True),
        ("Kinds.static", False),
        ("Kinds.of_class", False),
        ("kinds.method", False),
        ("function", False),
    ],
)
def test_show_hints_at_self_for_methods_of_a_class_alone(function, hinted):
    names = {"Kinds": Kinds, "kinds": Kinds(), "function": Kinds.static}
    hint = '; the first argument of a method is the object, self: --args "Kinds()" ...'
    assert show._receiver_hint(function, names) == (hint if hinted else "")


def test_show_writes_the_page_to_stdout(script):
    line = [sys.executable, "-m", "duograph.cli", "show", "script.py:double", "-o", "-"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("<!doctype html>") and done.stdout.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    "line, keys",
    [
        ("devices", ["seam", "backends"]),
        ("info", ["duograph", "python", "backends"]),
        ("cache info", ["path", "entries", "bytes", "limit", "problem"]),
        ("bench --seconds 0.01", ["device", "results"]),
        ("convert good.npz out.safetensors", ["target", "bytes", "tensors"]),
        ("check", ["right", "version", "device", "problem"]),
        ("new-backend Frob made", ["device", "folder", "files"]),
        ("tune --device CPU", ["CPU:0"]),
    ],
)
def test_json_is_one_object(line, keys, script, capsys):
    assert main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(keys) <= set(found)


@pytest.mark.parametrize(
    "line, keys",
    [
        ("show script.py:double", ["function", "page", "bytes"]),
        ("profile script.py", ["seconds", "events", "dropped", "by", "rows"]),
        ("conformance run CPU --quick -k [exp-float32]", ["title", "results", "reached"]),
    ],
)
def test_what_programs_and_tests_print_is_not_in_the_json(line, keys, script):
    words = line.split()
    at = len(words) if words[0] == "conformance" else 1
    command = [sys.executable, "-m", "duograph.cli", *words[:at], "--json", *words[at:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(keys) <= set(json.loads(done.stdout))
    assert "runs" in done.stderr or "passed" in done.stderr


def test_plugins_lists_hooks_and_problems(site, device):
    site.install("toy", device("Toy"))
    site.install("bad", "import no_such_driver")
    command = [sys.executable, "-m", "duograph.cli", "plugins"]
    done = site.command([*command, "--json"])
    assert done.returncode == 1
    found = {plugin["name"]: plugin for plugin in json.loads(done.stdout)}
    assert found["toy"] == {
        "name": "toy", "package": "dist-toy", "version": "1.0", "entry_point": "toy",
        "hooks": ["duograph_backend"], "devices": ["Toy"], "problem": None, "broken": False,
    }  # fmt: skip
    assert found["bad"]["broken"] and "no_such_driver" in found["bad"]["problem"]
    text = site.command(command).stdout
    assert "bad: disabled\n  why      ModuleNotFoundError" in text
    assert "toy: loaded\n  package  dist-toy 1.0\n" in text


@pytest.mark.parametrize(
    "environment, status, said",
    [
        ({}, 0, "ok   CPU compiler"),
        ({"CC": "no-such-compiler"}, 1, "BAD  CPU compiler"),
        ({"CC": "no-such-compiler"}, 1, "mend it: "),
        ({"DUOGRAPH_DEVICE": "Abacus"}, 1, "mend it: unset DUOGRAPH_DEVICE"),
        ({"DUOGRAPH_JIT": "0"}, 0, "SLOW environment"),
        ({"DUOGRAPH_JIT": "0"}, 0, "mend it: unset DUOGRAPH_JIT"),
        ({"DUOGRAPH_CACHE_LIMIT": "0"}, 0, "SLOW disk cache"),
    ],
)
def test_doctor_finds_what_is_missing(environment, status, said, monkeypatch, capsys):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(registry, "_default", None)  # which DUOGRAPH_DEVICE may change
    monkeypatch.setattr(context.settings, "device_target", None)  # what an earlier test has set
    assert main(["doctor"]) == status
    assert said in capsys.readouterr().out
    assert main(["doctor", "--json"]) == status
    assert [Finding(**each) for each in json.loads(capsys.readouterr().out)] == doctor.findings()


@pytest.mark.parametrize("limit, status", [("1", 0), ("0", 1)])
def test_the_status_of_cache_info_says_whether_the_cache_is_used(limit, status, tmp_path):
    environment = {**os.environ, "DUOGRAPH_CACHE_DIR": str(tmp_path), "DUOGRAPH_CACHE_LIMIT": limit}
    line = [sys.executable, "-m", "duograph.cli", "cache", "info", "--json"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert (json.loads(done.stdout)["problem"] is None) == (status == 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_subcommands(shell, capsys):
    pytest.importorskip("shtab", reason="shtab makes the scripts")
    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("doctor", "new-backend", "json"))


def test_completion_offers_files(capsys):
    pytest.importorskip("shtab", reason="shtab makes the scripts")
    assert main(["completion", "zsh"]) == 0
    said = capsys.readouterr().out.splitlines()
    wanted = {
        "the program": "_files", "a file, folder or zip file": "_files",
        "a function, method (Net.construct) or Cell": "_files",
        "the file to read": "_files", "the file to write": "_files", "FILE": "_files",
        "the JSON report of the later run": "_files", "FOLDER": "_files -/",
        "folder to create": "_files -/",
    }  # fmt: skip
    for text, rule in wanted.items():
        found = [line for line in said if f":{text}" in line]
        assert found and all(line.endswith(f':{rule}"') for line in found), text


@pytest.mark.parametrize("command", ["show slow.py:f", "profile --json slow.py"])
def test_an_interrupt_ends_the_command_with_130(command, tmp_path):
    (tmp_path / "slow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    line = [sys.executable, "-m", "duograph.cli", *command.split()]
    with subprocess.Popen(
        line, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        # a job in the background of a shell ignores interrupts, and so would its processes
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        assert process.stderr is not None
        process.stderr.readline()  # what the script prints goes to stderr
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.strip() == f"duograph {command.split()[0]}: interrupted"


@pytest.mark.parametrize("command", ["completion bash", "devices --json", "profile script.py"])
def test_a_closed_pipe_is_no_error(command, script):
    line = f"{sys.executable} -m duograph.cli {command} | head -n 1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


# ---- convert -------------------------------------------------------------------------------------

ARRAYS = {
    "a.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a.steps": np.array(7, np.int64),
    "mask": np.array([True, False]),
    "half": np.array([1.5, -2.0], np.float16),
}


@pytest.mark.parametrize("first", [".ckpt", ".safetensors", ".npz"])
@pytest.mark.parametrize("second", [".ckpt", ".safetensors", ".npz"])
def test_convert_keeps_names_dtypes_and_bits(first, second, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("start.npz", **ARRAYS)
    chain = ["start.npz", f"first{first}", f"second{second}", "end.npz"]
    for source, target in itertools.pairwise(chain):
        assert main(["convert", source, target]) == 0
    with np.load("end.npz") as found:
        assert set(found.files) == set(ARRAYS)
        for name, array in ARRAYS.items():
            assert found[name].dtype == array.dtype and found[name].tobytes() == array.tobytes()
            assert found[name].size == array.size


def test_convert_renames(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("in.npz", **{"bn1.running_mean": np.ones(2), "bn1.weight": np.ones(2)})
    rules = ["running_mean=moving_mean", r"bn(\d)\.weight=bn\1.gamma"]
    assert main(["convert", "in.npz", "out.npz", "--rename", *rules]) == 0
    with np.load("out.npz") as found:
        assert set(found.files) == {"bn1.moving_mean", "bn1.gamma"}
    assert main(["convert", "in.npz", "same.npz", "--rename", ".*=x"]) == 2
