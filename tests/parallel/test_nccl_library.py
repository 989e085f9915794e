"""How the engine `nccl` finds and declares NVIDIA's library, and the script for a real GPU.

The declarations are compared with the real header where the package nvidia-nccl is installed;
DUOGRAPH_NCCL_WHEEL names its folder (`.../nvidia/nccl`) where it is not beside us.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import emulated_nccl
import pytest
from duograph import context
from duograph.backend import registry
from duograph.types import Device
from duograph_collectives import nccl, nccl_library

HERE = pathlib.Path(__file__).parent
DECLARATIONS = (pathlib.Path(nccl_library.__file__).parent / "nccl.h").read_text()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = emulated_nccl.build(tmp_path_factory.mktemp("nccl"))
    if path is None:
        pytest.skip("there is no C compiler")
    return path


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"DUOGRAPH_NCCL": "0"}, "^DUOGRAPH_NCCL=0$"),
        ({"DUOGRAPH_NCCL": "/no/such/libnccl.so"}, "cannot load library '/no/such/libnccl.so'"),
        ({"DUOGRAPH_NCCL": "libm.so.6"}, "ncclAllGather"),
        ({"FAKE_NCCL_VERSION": "21703"}, "version 21703 of NCCL; wanted 2.18 .*pip install 'duogr"),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
def test_libraries_that_are_not_used(
    variables: dict[str, str], text: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ({"DUOGRAPH_NCCL": library} | variables).items():
        monkeypatch.setenv(name, value)
    found = nccl_library.find()
    assert isinstance(found, str)
    assert re.search(text, found), found
    reason = nccl.duograph_collectives().available()
    if importlib.util.find_spec("mpi4py") is not None:
        assert reason == found  # so that the engine of lower priority is taken


def test_the_version_is_read(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOGRAPH_NCCL", library)
    found = nccl_library.find()
    assert isinstance(found, nccl_library.Library)
    assert (found.version, len(found.unique_id())) == ("2.32.3", 128)


def test_the_check_of_a_gpu_runs_on_the_emulated_one() -> None:
    problem = registry.backend(emulated_nccl.DEVICE).available()
    if problem is not None:
        pytest.skip(problem)
    environment = {k: v for k, v in os.environ.items() if k != "DUOGRAPH_NCCL"}
    done = subprocess.run(
        [sys.executable, str(HERE / "check_nccl.py"), "--device", emulated_nccl.DEVICE],
        capture_output=True, text=True, timeout=500, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed, 0 failed$", done.stdout, re.M)


class Gpus:
    """A backend with a number of devices."""

    def __init__(self, count: int) -> None:
        self.count = count

    def devices(self) -> list[int]:
        return list(range(self.count))


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize(
    ("target", "local", "count", "chosen", "expected"),
    [
        ("GPU", 0, 4, 0, 0), ("GPU", 3, 4, 0, 3), ("GPU", 5, 4, 0, 1), ("GPU", 4, 4, 0, 0),
        ("GPU", 3, 4, 2, 2), ("CPU", 3, 4, 0, 0),
    ],
)  # fmt: skip
def test_each_rank_takes_a_gpu(
    target: str, local: int, count: int, chosen: int, expected: int, forced: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The n-th rank of a machine takes the n-th GPU, unless the program has chosen another one."""
    monkeypatch.setattr(nccl.registry, "current_device", lambda: Device(target))
    monkeypatch.setattr(nccl.registry, "backend", lambda name: Gpus(count))
    monkeypatch.setattr(context, "_forced", {"device_id": chosen} if forced else {})
    monkeypatch.setattr(context.settings, "device_id", chosen)
    monkeypatch.setattr(context, "on_device_change", [])
    nccl._choose_device(local)
    assert context.settings.device_id == expected


# ---- the real library ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel() -> pathlib.Path:
    named = os.environ.get("DUOGRAPH_NCCL_WHEEL")
    for place in [named] if named else [f"{p}/nvidia/nccl" for p in sys.path]:
        if (pathlib.Path(place) / "include/nccl.h").exists():
            return pathlib.Path(place)
    pytest.skip("the package nvidia-nccl-cu13 is not installed")


def _plain(text: str) -> str:
    """Return C source without comments, with single spaces, and none around signs."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^#[^\n]*", " ", text, flags=re.S | re.M)
    return re.sub(r"\s*([*,;(){}=])\s*", r"\1", " ".join(text.split()))


def _numbers(text: str) -> dict[str, int]:
    return {m[1]: int(m[2]) for m in re.finditer(r"\b(nccl\w+)=(\d+)\b", _plain(text))}


def test_constants_equal_the_header(wheel: pathlib.Path) -> None:
    theirs = _numbers((wheel / "include/nccl.h").read_text())
    ours = _numbers(DECLARATIONS)
    assert len(ours) == 25
    assert {name: theirs[name] for name in ours} == ours
    assert {*nccl_library.TYPES.values(), *nccl_library.REDUCTIONS.values()} <= ours.keys()


def test_functions_equal_the_header(wheel: pathlib.Path) -> None:
    theirs = _plain((wheel / "include/nccl.h").read_text()).replace("()", "(void)")
    functions = re.findall(r"(?:ncclResult_t |const char\*)nccl\w+\([^)]*\);", _plain(DECLARATIONS))
    assert len(functions) == 17
    for function in functions:
        assert function in theirs, function


def test_structs_equal_the_header(wheel: pathlib.Path) -> None:
    header = (wheel / "include/nccl.h").read_text()
    theirs = _plain(header)
    assert "#define NCCL_UNIQUE_ID_BYTES 128\n" in header
    assert "#define NCCL_API_MAGIC 0xcafebeef\n" in header
    assert nccl_library._MAGIC == 0xCAFEBEEF
    assert "#define NCCL_CONFIG_UNDEF_INT INT_MIN\n" in header
    assert nccl_library._UNDEFINED == -(2**31)
    assert "typedef struct{char internal[NCCL_UNIQUE_ID_BYTES];}ncclUniqueId;" in theirs
    found = re.search(r"typedef struct ncclConfig_v\d+\{(.*?)\}ncclConfig_t;", theirs)
    own = re.search(r"typedef struct\{(size_t size;.*?)\}ncclConfig_t;", _plain(DECLARATIONS))
    assert found is not None
    assert own is not None
    assert found[1].startswith(own[1])  # later versions append


def test_the_real_library_loads(wheel: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOGRAPH_NCCL", str(wheel / "lib/libnccl.so.2"))
    found = nccl_library.find()
    assert isinstance(found, nccl_library.Library)
    assert found.number >= nccl_library.WITH_FLOAT8
    assert len(found.unique_id()) == 128
