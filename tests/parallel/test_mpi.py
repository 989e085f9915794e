"""Ranks that are processes of MPI: the same bits as threads, and the end of all if one fails."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import uuid

import duograph as ms
import numpy as np
import pytest
import rank_programs as programs
import started_processes
from duograph_collectives import mpi
from rank_programs import COMPILED, EAGER, NETWORKS

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed"
)
HERE = pathlib.Path(__file__).parent
RUN = [sys.executable, "-m", "duograph.run"]


def run(
    *arguments: object, timeout: float = 300, **options: str
) -> subprocess.CompletedProcess[str]:
    """Run `duograph run`; the output has no NUL bytes, which Open MPI prints when ranks abort."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMPI_")} | options
    done = subprocess.run(
        [*RUN, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
        env=environment, check=False,
    )  # fmt: skip
    done.stdout, done.stderr = done.stdout.replace("\0", ""), done.stderr.replace("\0", "")
    return done


@functools.cache
def one_process(name: str, count: int) -> list[np.ndarray]:
    return programs.micro_batches(name, count)


@pytest.mark.parametrize("size", [2, 4])
def test_processes_train_to_the_bits_of_one(size: int, tmp_path: pathlib.Path) -> None:
    done = run("-n", size, HERE / "rank_programs.py", tmp_path)
    assert done.returncode == 0, done.stderr
    for rank in range(size):
        found = np.load(tmp_path / f"{rank}.npz")
        for name in NETWORKS:
            for mode in (EAGER, COMPILED):
                for i, expected in enumerate(one_process(name, size)):
                    np.testing.assert_array_equal(found[f"{name} {mode} {i}"], expected)


# how rank 1 fails -> (exit status, what the output says first)
FAILURES = {
    "raise": (1, "KeyError: 'the error of rank 1'"),
    "exit": (3, ""),
    "kill": (137, "rank 1"),
    "end": (
        1, r"rank 0: AllReduce\(sum\) of float32 \(1,\) at .*failing_ranks.py:\d+; rank 1: the end",
    ),
    "stop": (1, "rank 1 .* is stopped"),
    "hang": (1, r"AllReduce\(sum\) .*failing_ranks.py:\d+ on rank 0 waited 2 s for rank 1"),
    "differ": (1, r"call different collectives: rank 0: AllReduce.*; rank 1: AllGather"),
    "program": (
        1, r"different programs: collective 1 is rank 0: all_reduce.*sum.* "
        r"at .*failing_ranks.py:\d+; rank 1: all_gather\(",
    ),
    "group": (1, r"'pair' call different collectives: rank 0: AllReduce.*; rank 1: the end"),
}  # fmt: skip


@pytest.mark.parametrize("how", FAILURES)
def test_a_rank_that_fails_ends_all(how: str, tmp_path: pathlib.Path) -> None:
    status, text = FAILURES[how]
    mark = uuid.uuid4().hex
    done = run("-n", 2, HERE / "failing_ranks.py", how, mark, TMPDIR=str(tmp_path))
    assert done.returncode == status, done.stderr
    assert re.search(text, done.stderr), done.stderr
    if how == "raise":
        own = done.stderr.index(text)
        assert "MPI_ABORT" not in done.stderr[:own]
    assert not ranks_left(mark)
    assert not list(tmp_path.iterdir()), "temporary files are left"


def ranks_left(mark: str) -> list[str]:
    """The command lines of processes that have this argument and still run."""
    time.sleep(0.2)
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in text:
            found.append(text)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of such an end")
def test_ranks_end_when_the_launcher_is_killed(tmp_path: pathlib.Path) -> None:
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [*RUN, "-n", "2", str(HERE / "failing_ranks.py"), "stop", mark],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},  # in which files of Open MPI are left
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    end = time.monotonic() + 120
    while ranks_left(mark) and time.monotonic() < end:
        time.sleep(0.2)
    assert not ranks_left(mark)


# what starts a command after a launcher with the same process id was killed
AFTER_A_KILLED_LAUNCHER = """
mkdir "$TMPDIR/ompi.$$" && touch "$TMPDIR/ompi.$$/pmix.vm.tool" && exec "$@"
"""


def test_files_of_killed_launchers_do_no_harm(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)  # read from the environment again
    command = mpi._launch(2, [sys.executable, "-c", "print('a rank')"])
    done = subprocess.run(
        ["/bin/sh", "-c", AFTER_A_KILLED_LAUNCHER, "sh", *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "a rank\n" * 2), done.stderr


SCRIPT = """
import sys
import mindspore as ms
from mindspore.communication import get_group_size, get_local_rank, get_rank, init

init()
total = ms.ops.AllReduce()(ms.Tensor([get_rank() + 1.0])).asnumpy().tolist()
print(f"{get_rank()} {get_local_rank()} of {get_group_size()}: {total} {sys.argv[1:]}")
"""


@pytest.fixture
def script(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_lines_are_labelled(script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    done = run("-n", 2, "--label", script, "-n", "7", TMPDIR=str(folder))
    assert not list(folder.iterdir())
    assert sorted(done.stdout.splitlines()) == [
        "[rank 0] 0 0 of 2: [3.0] ['-n', '7']", "[rank 1] 1 1 of 2: [3.0] ['-n', '7']",
    ]  # fmt: skip


def test_flags_of_msrun(script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    logs = tmp_path / "logs"
    done = run(
        "--worker_num=2", "--local_worker_num", "2", "--master_addr=127.0.0.1",
        "--master_port", "8118", "--join=True", f"--log_dir={logs}", script,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (logs / "worker_1.log").read_text() == "1 1 of 2: [3.0] []\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--worker_num=4", "--local_worker_num=2"], "got 4 ranks, of which 2 on this machine"),
        (["-n", "0"], "got '0'; wanted a number of ranks"),
        (["-n", "\u00b2"], "got '\u00b2'; wanted a number of ranks"),
        (["-n", "100000"], "got 100000 ranks; wanted at most"),
        (["--local_worker_num=100000"], "got 100000 ranks; wanted at most"),
        (["-n", "2", "no_such_file.py"], "no such file"),
    ],
)
def test_command_lines_that_are_refused(arguments: list[str], text: str) -> None:
    done = run(*arguments, *([] if len(arguments) > 2 else [__file__]))
    assert done.returncode == 2
    assert text in done.stderr


def test_parts_of_any_length_are_exchanged() -> None:
    """Ranks exchange large parts by messages, and small ones together; both ranks choose alike."""
    done = run("-n", 3, HERE / "uneven_parts.py", timeout=60)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["ok"] * 3


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_that_a_rank_starts_are_no_ranks(start: str) -> None:
    done = run("-n", 2, HERE / "started_processes.py", start, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == started_processes.expected(2)


def test_engine_sums_are_near() -> None:
    """With `engine_sums` the sum of MPI itself is taken."""
    done = run("-n", 2, HERE / "engine_sums.py")
    assert done.returncode == 0, done.stderr
    assert ms.get_context("engine_sums") is False
