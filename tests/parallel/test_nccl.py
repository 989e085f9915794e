"""Ranks with a device each: the engine `nccl` over a library made for these tests (`fake_nccl.c`),
on emulated CUDA devices.
"""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys

import duograph as ms
import emulated_nccl
import emulated_ranks
import nccl_ranks
import pytest
from duograph.backend import registry
from duograph_collectives.local import run_ranks

MPI = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed"
)
HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    problem = registry.backend(emulated_nccl.DEVICE).available()
    path = emulated_nccl.build(tmp_path_factory.mktemp("nccl"))
    if problem is not None or path is None:
        pytest.skip(problem or "there is no C compiler")
    return path


@pytest.fixture
def ranks(library: str, tmp_path: pathlib.Path) -> dict[str, str]:
    """An environment in which ranks have emulated devices and this library."""
    found = emulated_ranks.environment(
        tmp_path, tcp="duograph_collectives.tcp", **{"nccl-emulated": "emulated_nccl"}
    )
    return found | {
        "DUOGRAPH_NCCL": library, "FAKE_NCCL_FOLDER": str(tmp_path),
        "DUOGRAPH_DEVICE": emulated_nccl.DEVICE,
    }  # fmt: skip


def run(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "duograph.run", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment, check=False
    )


@MPI
@pytest.mark.parametrize("size", [2, 4])
def test_devices_conform(size: int, ranks: dict[str, str]) -> None:
    done = run(
        ranks, "-n", size, "-m", "duograph.conformance.collectives", "--device",
        emulated_nccl.DEVICE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = f"6 cases of 5 lengths on {size} ranks, 5 between their CUDA-emulateds"
    assert done.stdout == f"nccl-emulated: {said}\n"


def test_devices_conform_without_mpi(ranks: dict[str, str]) -> None:
    command = [sys.executable, "-m", "duograph_collectives.tcp", "2", sys.executable]
    module = ["-m", "duograph.conformance.collectives", "--device", emulated_nccl.DEVICE]
    done = subprocess.run(
        [*command, *module], capture_output=True, text=True, timeout=300, env=ranks, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nccl-emulated: 6 cases of 5 lengths on 2 ranks, 5 between")


@MPI
@pytest.mark.parametrize("size", [2, 3])
def test_calls(size: int, ranks: dict[str, str]) -> None:
    done = run(ranks, "-n", size, HERE / "nccl_ranks.py", "calls")
    assert done.returncode == 0, done.stderr


@MPI
@pytest.mark.parametrize("size", [2, 4])
def test_devices_train_to_the_bits_of_threads(size: int, ranks: dict[str, str]) -> None:
    """Threads exchange gradients through host memory, where NumPy adds them."""
    done = run(ranks, "-n", size, HERE / "nccl_ranks.py", "train")
    assert done.returncode == 0, done.stderr
    expected = set()
    before = {k: ms.get_context(k) for k in ("mode", "device_target", "jit_level")}
    ms.set_context(device_target=emulated_nccl.DEVICE)
    try:
        for which in nccl_ranks.TRAININGS:
            found = run_ranks(nccl_ranks.trained, size, which)
            expected |= {f"{rank} {which}: {text}" for rank, text in enumerate(found)}
    finally:
        ms.set_context(**before)
    assert set(done.stdout.splitlines()) == expected


WHERE = r"AllReduce\(sum\) of float32 \(3,\) on CUDA-emulated at .*nccl_ranks.py:\d+ on rank [01] "
FAULTS = {
    "late": ({"FAKE_NCCL_LOSES": "0"}, WHERE + "waited 2 s for rank [01]: a rank has ended"),
    "an asynchronous error": (
        {"FAKE_NCCL_BREAKS": "0"},
        WHERE + r"failed: .* 'remote process exited or there was a network error' \(6\): Call",
    ),
    "one GPU for two ranks": (
        {"DUOGRAPH_EMULATED_BUS": "0000:17:00.0"},
        WHERE + r"failed: ranks 0 and 1 of 'hccl_world_group' are on one GPU \(emulated CUDA "
        r"device, 0000:17:00.0 of .*\), and NCCL takes one rank for each GPU. Start no more ranks",
    ),
    "two ranks that NCCL finds on one GPU": (
        {"FAKE_NCCL_GPU": "5"}, WHERE + "failed: .*Duplicate GPU detected : rank 0 and rank 1"
    ),
}  # fmt: skip


@MPI
@pytest.mark.parametrize("how", FAULTS)
def test_faults_end_all_ranks(how: str, ranks: dict[str, str]) -> None:
    variables, text = FAULTS[how]
    done = run(ranks | variables, "-n", 2, HERE / "nccl_ranks.py", "late")
    assert done.returncode == 1, done.stderr
    assert re.search(text, done.stderr), done.stderr
    assert "[" not in done.stdout  # no values
