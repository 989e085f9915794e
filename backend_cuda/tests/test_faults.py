"""What the user is told when something goes wrong, and what still works after it."""

from __future__ import annotations

import inspect
import os
import pathlib
import re

import numpy as np
import pytest
from cuda_harness import device, run
from duograph.errors import DeviceError, DeviceMemoryError
from duograph_cuda import driver as driver_module
from duograph_cuda.backend import Cuda
from duograph_cuda.emulation import driver as emulated

F32 = np.dtype(np.float32)


def test_out_of_memory_empties_the_pool_and_tries_again():
    on = device(limit=10_000)
    first = on.allocate(6000, "first")
    del first
    assert on.memory_stats()["cached"] == 6000
    second = on.allocate(8000, "second")
    stats = on.memory_stats()
    assert (stats["in_use"], stats["cached"], stats["limit"]) == (8000, 0, 10_000)
    with pytest.raises(
        DeviceMemoryError,
        match=r"third: no memory for 4000 bytes on .*; in use 8000, cached 0, limit 10000",
    ):
        on.allocate(4000, "third")
    del second
    assert on.allocate(4000, "fourth").nbytes == 4000


def test_a_kernel_that_does_not_compile():
    on = device()
    with pytest.raises(DeviceError, match="a kernel does not compile") as found:
        on.build("DG_KERNEL void k( {")
    folder = pathlib.Path(re.search(r"log are in (\S+)", str(found.value))[1])
    assert (folder / "kernel.cu").read_text() == "DG_KERNEL void k( {"
    assert "error" in (folder / "kernel.log").read_text()


def test_a_device_that_is_lost():
    on = device()
    kept = on.copy_in(np.ones(4, np.float32))
    on.driver.module.lose = True
    with pytest.raises(DeviceError, match=r"the device was lost .*lost on purpose, seen at k"):
        run("DG_KERNEL void k(f32 *out) { out[0] = 1.0f; }", out=np.zeros(1, np.float32), on=on)
    with pytest.raises(DeviceError, match="this process cannot use it again"):
        on.copy_out(kept, (4,), F32)
    del kept  # nothing is freed there, and nothing is raised


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_is_told_so():
    on = device()
    kept = on.copy_in(np.ones(4, np.float32))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            on.copy_out(kept, (4,), F32)
            words = "it worked"
        except DeviceError as error:
            words = str(error)
        os.write(writing, words.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        words = file.read()
    os.waitpid(child, 0)
    assert "forked from one that had used the device" in words and "'spawn'" in words
    np.testing.assert_array_equal(on.copy_out(kept, (4,), F32), np.ones(4))


def test_a_grid_that_no_device_takes():
    on = device()
    source = "DG_KERNEL void k(f32 *out) { out[0] = 1.0f; }"
    module = on.build(on.dialect.prelude_for(source) + source)
    with pytest.raises(DeviceError, match=r"k: a grid of .* blocks"):
        on.launcher(module, "k", (1, 70000, 1), (32, 1, 1), 1, ())


def test_without_packages(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert "cuda-bindings is not installed" in Cuda().available()
    assert "pip install duograph[cuda]" in Cuda().available()


def test_without_a_driver():
    """What this machine says, when it has the packages and no GPU."""
    pytest.importorskip("cuda.bindings.driver")
    words = Cuda().available()
    if words is None:
        pytest.skip("there is a GPU")
    assert "NVIDIA driver" in words and "\n" not in words


def test_the_emulation_has_the_numbers_of_the_driver():
    real = pytest.importorskip("cuda.bindings.driver")
    for enum in ("CUresult", "CUdevice_attribute", "CUmemPool_attribute", "CUstream_flags"):
        for member in getattr(emulated, enum):
            assert int(getattr(getattr(real, enum), member.name)) == int(member), member


def test_the_emulation_has_the_functions_of_the_driver():
    """Names and numbers of arguments: what the backend calls here it can call there."""
    real = pytest.importorskip("cuda.bindings.driver")
    ours = [n for n in vars(emulated.EmulatedDriver) if n.startswith("cu") and n != "cuuint64_t"]
    assert len(ours) > 20
    for name in ours:
        signature = (getattr(real, name).__doc__ or "").split("\n", 1)[0]
        wanted = signature[signature.index("(") + 1 : signature.rindex(")")]
        count = len([p for p in re.sub(r"\[[^]]*\]", "", wanted).split(",") if p.strip()])
        given = inspect.signature(getattr(emulated.EmulatedDriver, name)).parameters
        assert len(given) - 1 == count, f"{name}: {signature}"


def test_every_driver_function_that_is_called_exists():
    real = pytest.importorskip("cuda.bindings.driver")
    folder = pathlib.Path(driver_module.__file__).parent
    called = set()
    for name in ("driver.py", "device.py", "backend.py", "program.py"):
        called |= set(re.findall(r"\bcu(?!BLAS)[A-Z]\w+", (folder / name).read_text()))
    assert len(called) > 15
    missing = [n for n in called if not hasattr(real, n)]
    assert not missing
    assert not [n for n in called if not hasattr(emulated.EmulatedDriver, n)]
