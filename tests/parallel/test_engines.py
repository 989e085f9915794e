"""Every engine moves the same bytes: threads, MPI, and sockets, one of another package."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest
from duograph.conformance import collectives
from duograph.ranks.world import world
from duograph_collectives.local import run_ranks

HERE = pathlib.Path(__file__).parent
MPI = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed"
)
ENGINES = pytest.mark.parametrize("engine", [pytest.param("mpi", marks=MPI), "sockets"])


@pytest.fixture
def sockets(tmp_path: pathlib.Path) -> dict[str, str]:
    """An environment in which the engine of sockets is installed, as pip would do it."""
    folder = tmp_path / "duograph_sockets-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: duograph-sockets\nVersion: 1.0\n"
    )
    (folder / "entry_points.txt").write_text("[duograph]\nsockets = duograph_sockets\n")
    found = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_"))}
    path = [str(tmp_path), str(HERE / "socket_engine"), found.get("PYTHONPATH", "")]
    return found | {"PYTHONPATH": os.pathsep.join(path)}


def run(
    engine: str, sockets: dict[str, str], *arguments: object
) -> subprocess.CompletedProcess[str]:
    """Run `duograph run` on an engine; the sockets have a higher priority than MPI."""
    environment = sockets if engine == "sockets" else dict(os.environ)
    command = [sys.executable, "-m", "duograph.run", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment, check=False
    )


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_threads_conform(size: int) -> None:
    def program() -> list[str]:
        return collectives.check(world().whole.comm)

    assert run_ranks(program, size) == [[]] * size


@ENGINES
@pytest.mark.parametrize("size", [2, 3])
def test_processes_conform(engine: str, size: int, sockets: dict[str, str]) -> None:
    done = run(engine, sockets, "-n", size, "-m", "duograph.conformance.collectives")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{engine}: 6 cases of 5 lengths on {size} ranks\n"


TRAINING = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import rank_programs
from duograph.communication import get_rank

for i, value in enumerate(rank_programs.data_parallel("mlp")):
    sys.stdout.write(f"{get_rank()} {i} {value.tobytes().hex()}\\n")
    sys.stdout.flush()
"""


def test_sockets_train_to_the_bits_of_threads(
    sockets: dict[str, str], tmp_path: pathlib.Path
) -> None:
    import rank_programs

    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    done = run("sockets", sockets, "-n", 2, script, HERE)
    assert done.returncode == 0, done.stderr
    expected = {
        f"{r} {i} {value.tobytes().hex()}"
        for r, values in enumerate(run_ranks(rank_programs.data_parallel, 2, "mlp"))
        for i, value in enumerate(values)
    }
    assert set(done.stdout.splitlines()) == expected


@pytest.mark.parametrize(
    ("how", "status", "text"),
    [
        ("raise", 1, "KeyError: 'the error of rank 1'"),
        ("kill", 137, "rank 1 has ended"),
        ("exit", 3, ""),
        ("differ", 1, "call different collectives: rank 0: AllReduce.*; rank 1: AllGather"),
        ("end", 1, "rank 1: the end of the program"),
    ],
)
def test_a_rank_of_sockets_that_fails_ends_all(
    how: str, status: int, text: str, sockets: dict[str, str]
) -> None:
    done = run("sockets", sockets, "-n", 2, HERE / "failing_ranks.py", how)
    assert done.returncode == status, done.stderr
    assert re.search(text, done.stderr), done.stderr
