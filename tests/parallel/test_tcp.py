"""The engine `tcp`: ranks without MPI, started by its launcher and by variables of others."""

from __future__ import annotations

import os
import pathlib
import re
import socket
import subprocess
import sys

import emulated_ranks
import pytest
import started_processes
from duograph_collectives import tcp

HERE = pathlib.Path(__file__).parent
RANKS = [sys.executable, "-m", "duograph_collectives.tcp"]


@pytest.fixture
def ranks(tmp_path: pathlib.Path) -> dict[str, str]:
    return emulated_ranks.environment(tmp_path, tcp="duograph_collectives.tcp")


def run(
    variables: dict[str, str], size: int, *arguments: object
) -> subprocess.CompletedProcess[str]:
    command = [*RANKS, str(size), sys.executable, "-m", "duograph.run", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=variables, check=False
    )


@pytest.mark.parametrize("size", [2, 3])
def test_processes_conform(size: int, ranks: dict[str, str]) -> None:
    done = run(ranks, size, "-m", "duograph.conformance.collectives")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"tcp: 6 cases of 5 lengths on {size} ranks\n"


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_that_a_rank_starts_are_no_ranks(start: str, ranks: dict[str, str]) -> None:
    done = run(ranks, 2, HERE / "started_processes.py", start)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == started_processes.expected(2)


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
def test_a_rank_that_fails_ends_all(
    how: str, status: int, text: str, ranks: dict[str, str]
) -> None:
    done = run(ranks, 2, HERE / "failing_ranks.py", how)
    assert done.returncode == status, done.stderr
    assert re.search(text, done.stderr), done.stderr


SCRIPT = """
import duograph as ms
from duograph.communication import get_rank
total = ms.ops.AllReduce()(ms.Tensor([get_rank() + 1.0])).item()
print(f"{get_rank()} {total}", flush=True)
"""
# The variables by which launchers tell a process its rank, and where rank 0 listens.
LAUNCHERS = {
    "torchrun": lambda r, port: {
        "RANK": r, "LOCAL_RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "localhost",
        "MASTER_PORT": port,
    },
    "msrun": lambda r, port: {
        "MS_WORKER_NUM": 2, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": r, "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": port,
    },
    "srun": lambda r, port: {
        "SLURM_STEP_NUM_TASKS": 2, "SLURM_PROCID": r, "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    },
}  # fmt: skip


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_variables_of_launchers(
    launcher: str, ranks: dict[str, str], tmp_path: pathlib.Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    port = free_port()
    started = [
        subprocess.Popen(
            [sys.executable, str(script)], text=True, stdout=subprocess.PIPE,
            env=ranks | {k: str(v) for k, v in LAUNCHERS[launcher](r, port).items()},
        )
        for r in (1, 0)
    ]  # fmt: skip
    found = [process.communicate(timeout=120)[0] for process in started]
    assert found == ["1 3.0\n", "0 3.0\n"]


def test_a_rank_that_does_not_come_is_named(ranks: dict[str, str], tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    alone = LAUNCHERS["torchrun"](0, free_port()) | {"WORLD_SIZE": 3}
    variables = {k: str(v) for k, v in alone.items()} | {"DUOGRAPH_COMMUNICATION_TIMEOUT": "1"}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60,
        env=ranks | variables, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert re.search(r"rank 0 waited 1 s at .* for ranks 1, 2 of 3 to connect", done.stderr)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "0"}, False),
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "h", "MASTER_PORT": "1"}, True),
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "h", "MASTER_PORT": "x"}, False),
    ],
)
def test_what_it_claims(
    variables: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*os.environ,):
        if re.match(r"OMPI|PMI|MS_|SLURM|RANK|LOCAL_RANK|WORLD_SIZE|MASTER", name):
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert tcp.duograph_collectives().claims() is expected
