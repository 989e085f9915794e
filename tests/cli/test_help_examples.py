"""Each example in `--help` of a subcommand works when it is pasted into a shell."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import subprocess
import sys
import zipfile

import duograph as ms
import pytest
from cli_commands import COMMANDS
from duograph.backend import registry
from duograph.cli import parser
from duograph.conformance import certificates

# What the examples name. `train.py` takes and ignores the arguments that they pass.
TRAIN = """
import mindspore as ms

@ms.jit
def step(x):
    return (x * x).sum()

if __name__ == "__main__":
    print(step(ms.Tensor([1.0, 2.0])))
"""
MODEL = """
import mindspore as ms

class Net(ms.nn.Cell):
    def construct(self, x, scale=1.0):
        return x * scale

def loss(x, labels):
    return (x.sum(1) - labels).abs().mean()

net = Net()
"""
# A state dict as torch.save pickles it: running_mean is a tensor of 4 floats.
PICKLE = (
    b"(dS'running_mean'\nctorch._utils\n_rebuild_tensor_v2\n"
    b"((S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQ"
    b"I0\n(I4\nt(I1\ntI00\nccollections\nOrderedDict\n(tRtRs."
)
# Examples that change this environment or take minutes: only their arguments are checked.
PARSED = ("--install", "conformance run", "duograph tune")


def examples() -> list[tuple[str, str]]:
    """Return (subcommand, line) for each line under "examples:" in a subcommand's help."""
    found = []
    for name, inner in COMMANDS.items():
        lines = (inner.epilog or "").partition("examples:\n")[2].partition("\n\n")[0]
        found += [(name, line.strip()) for line in lines.splitlines()]
    return list(dict.fromkeys((name.split()[0], line) for name, line in found))


EXAMPLES = examples()
# The first example of completion makes the folders of the others.
FOLDERS = next(line for name, line in EXAMPLES if name == "completion")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with what the examples name, and with `duograph` in the folder `bin`."""
    path = tmp_path_factory.mktemp("examples")
    (path / "train.py").write_text(TRAIN)
    (path / "model.py").write_text(MODEL)
    for name in ("resnet50.pt", "model.pt"):
        with zipfile.ZipFile(path / name, "w") as archive:
            archive.writestr("archive/data.pkl", PICKLE)
            archive.writestr("archive/data/0", bytes(16))
    report = {"format": certificates.FORMAT, "title": "CPU", "plugin": "duograph", "partial": [],
              "results": {}, "reached": []}  # fmt: skip
    for name in ("old.json", "new.json"):
        (path / name).write_text(json.dumps(report))
    (path / "bin").mkdir()
    command = path / "bin" / "duograph"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m duograph.cli "$@"\n')
    command.chmod(0o755)
    return path


@pytest.fixture
def fresh(folder: pathlib.Path) -> pathlib.Path:
    """The folder without the weights that an earlier example wrote."""
    for name in ("model.ckpt", "resnet50.ckpt", "model.safetensors"):
        (folder / name).unlink(missing_ok=True)
    return folder


def test_every_subcommand_has_examples() -> None:
    assert {name for name, _ in EXAMPLES} == {name.split()[0] for name in COMMANDS}


@pytest.mark.parametrize("name, line", EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_an_example_works_when_pasted(name: str, line: str, fresh: pathlib.Path) -> None:
    if any(part in line for part in PARSED):
        parser().parse_args(shlex.split(line, comments=True)[1:])
        return
    if "OpenCL" in line:
        entry = registry.entries().get("OpenCL")
        if entry is None or registry.problem_of(entry) is not None:
            pytest.skip("needs an OpenCL device")
    if name == "completion":
        pytest.importorskip("shtab", reason="shtab makes the scripts")
        line = f"{FOLDERS}\n{line}"
    if line.startswith("duograph convert model.ckpt"):
        ms.save_checkpoint({"w": ms.Tensor([1.0])}, str(fresh / "model.ckpt"))
    environment = {
        **os.environ, "PATH": f"{fresh / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(fresh), "BROWSER": "true", "DUOGRAPH_CACHE_DIR": str(fresh / "cache"),
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", line], cwd=fresh, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    if "--json" in line:
        file = fresh / line.partition("> ")[2] if "> " in line else None
        json.loads(done.stdout if file is None else file.read_text())
