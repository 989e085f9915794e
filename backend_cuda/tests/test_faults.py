"""What the user is told when something goes wrong, and what still works after it."""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import subprocess
import sys
import warnings

import duograph as ms
import numpy as np
import pytest
from cuda_harness import device, run
from duograph.backend import registry
from duograph.backend.protocol import BackendSpec
from duograph.errors import DeviceError, DeviceMemoryError
from duograph_cuda import cublaslt
from duograph_cuda import driver as driver_module
from duograph_cuda.backend import Cuda
from duograph_cuda.driver import Driver
from duograph_cuda.emulation import driver as emulated
from duograph_cuda.emulation.backend import CudaEmulated
from duograph_cuda.emulation.compiler import HostCompiler

F32 = np.dtype(np.float32)


@pytest.mark.parametrize("caching", [False, True])
def test_out_of_memory_empties_the_pool_and_retries(caching):
    on = device(limit=10_240, caching=caching)
    first = on.allocate(6144, "first")
    del first
    assert on.memory_stats()["cached"] == 6144
    second = on.allocate(8192, "second")
    stats = on.memory_stats()
    assert (stats["in_use"], stats["cached"], stats["limit"]) == (8192, 0, 10_240)
    with pytest.raises(
        DeviceMemoryError,
        match=r"third: no memory for 4000 bytes on .*; in use 8192, cached 0, limit 10240",
    ):
        on.allocate(4000, "third")
    del second
    assert on.allocate(4000, "fourth").nbytes == 4000


def test_kernel_that_does_not_compile():
    on = device()
    with pytest.raises(DeviceError, match="a kernel does not compile") as found:
        on.build("DG_KERNEL void k( {")
    folder = pathlib.Path(re.search(r"log are in (\S+)", str(found.value))[1])
    assert (folder / "kernel.cu").read_text() == "DG_KERNEL void k( {"
    assert "error" in (folder / "kernel.log").read_text()


def test_lost_device():
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
def test_forked_process_raises():
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


# ---- as a user meets it
# ----------------------------------------------------------------------------


@pytest.fixture
def small():
    """Fixture: the device of an emulated backend CUDA-small, which has one megabyte of memory."""

    class Small(CudaEmulated):
        name = "CUDA-small"

        def driver(self):
            if self._driver is None:
                self._driver = Driver(emulated.EmulatedDriver(HostCompiler(), 1 << 20))
            return self._driver

    made = Small()
    if made.available() is not None:
        pytest.skip(made.available())
    registry.register(BackendSpec(made.name, lambda: made, priority=None))
    yield made.device(0)
    registry.unregister(made.name)
    for op in ("add", "matmul"):
        ms.op.OPS[op].table.clear()


def _ones(*shape):
    return ms.Tensor(np.ones(shape, np.float32), device="CUDA-small")


@pytest.mark.parametrize("level", [None, "O1", "O2"], ids=["pynative", "O1", "O2"])
def test_program_continues_after_out_of_memory(small, level):
    def twice(x):
        return ms.ops.matmul(x, x) + x

    twice = ms.jit(twice, jit_level=level) if level else twice
    kept = [_ones(256, 256) for _ in range(3)]
    said = r"no memory for 262144 bytes on .*; in use \d+, cached 0, limit 1048576"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(DeviceMemoryError, match=said):
            kept.append([twice(kept[0]) for _ in range(2)])
    assert not warned
    del kept[1:]
    assert float(twice(kept[0])[0, 0]) == 257


@pytest.mark.parametrize("level", [None, "O1", "O2"], ids=["pynative", "O1", "O2"])
def test_calls_after_device_loss_raise(small, level):
    def twice(x):
        return ms.ops.matmul(x, x) + x

    twice = ms.jit(twice, jit_level=level) if level else twice
    x = _ones(8, 8)
    kept = twice(x)
    small.driver.module.lose = True
    with pytest.raises(
        DeviceError, match=r"the device was lost .*lost on purpose.*Start a new one"
    ):
        twice(x)
    for use in (
        lambda: twice(x),
        kept.asnumpy,
        lambda: kept + 1.0,
        lambda: kept.move_to("CPU"),
        lambda: _ones(2),
        lambda: ms.ops.softmax(x, axis=1),
        lambda: float(kept[0, 0]),
        small.memory_stats,
    ):
        with pytest.raises(DeviceError, match="this process cannot use it again"):
            use()
    there = ms.Tensor(np.ones(3, np.float32), device="CPU")
    np.testing.assert_array_equal((there + there).asnumpy(), [2, 2, 2])


FORK = """
import os
import duograph as ms, numpy as np
x = ms.Tensor(np.ones(4, np.float32), device="CUDA-emulated") + 1.0
step = ms.jit(lambda x: ms.ops.tanh(x) * 2.0, jit_level="O2")
step(x).asnumpy()
child = os.fork()
if child == 0:
    code = 0
    for use in (lambda: x + 1.0, lambda: x.asnumpy(), lambda: step(x), lambda: x.move_to("CPU")):
        try:
            use()
            code = 1
        except ms.errors.DeviceError as error:
            code = code or 2 * ("forked from one that had used the device" not in str(error))
    y = ms.Tensor(np.ones(4, np.float32), device="CPU")
    code = code or 3 * (float((y + y)[0]) != 2.0)
    os._exit(code)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float((x + 1.0).asnumpy()[0]))
"""


def _python(code, **environment):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_child_process_raises_and_uses_another_device():
    if CudaEmulated().available() is not None:
        pytest.skip(CudaEmulated().available())
    out, errors = _python(FORK).communicate(timeout=300)
    assert out.split() == ["0", "3.0"], errors


def test_two_concurrent_processes(tmp_path):
    """Both compile the same kernels into the same cache, at the same time."""
    if CudaEmulated().available() is not None:
        pytest.skip(CudaEmulated().available())
    code = (
        "import duograph as ms, numpy as np\n"
        "x = ms.Tensor(np.ones((64, 64), np.float32))\n"
        "for _ in range(5): x = ms.ops.tanh(ms.ops.matmul(x, x))\n"
        "print(float(x.asnumpy()[0, 0]))"
    )
    both = [
        _python(code, DUOGRAPH_DEVICE="CUDA-emulated", DUOGRAPH_CACHE_DIR=str(tmp_path))
        for _ in range(2)
    ]
    for process in both:
        out, errors = process.communicate(timeout=300)
        assert out.split() == ["1.0"], errors


def test_grid_beyond_device_limits():
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


def test_driver_older_than_the_packages(monkeypatch):
    module = pytest.importorskip("cuda.bindings.driver")
    major = driver_module._version_of_bindings()
    assert major >= 12
    for name, answer in (
        ("cuInit", (0,)),
        ("cuDriverGetVersion", (0, (major - 1) * 1000 + 80)),
        ("cuDeviceGetCount", (0, 1)),
    ):
        monkeypatch.setattr(module, name, lambda *_, answer=answer: answer)
    words = Cuda().available()
    assert f"is one for CUDA {major - 1}, and" in words and f"need one for CUDA {major}" in words
    assert "update the driver" in words and f"'cuda-bindings=={major - 1}.*'" in words
    monkeypatch.setattr(module, "cuDriverGetVersion", lambda: (0, major * 1000))
    monkeypatch.setattr(module, "cuDeviceGetCount", lambda: (0, 0))
    assert Cuda().available() == "the NVIDIA driver has no device"


@pytest.mark.parametrize(
    "missing, said",
    [
        ("cffi", "the Python package cffi, which calls it, is not installed .*; pip install cffi"),
        ("cuda.pathfinder", "it is not installed .*; pip install nvidia-cublas"),
    ],
)
def test_cublaslt_without_packages(missing, said, monkeypatch):
    path = "" if missing == "cuda.pathfinder" else "libcublasLt.so"
    monkeypatch.setenv("DUOGRAPH_CUDA_CUBLASLT", path)
    monkeypatch.setitem(sys.modules, missing, None)
    cublaslt._ffi.cache_clear()
    assert re.fullmatch(said, cublaslt.find())


def test_without_a_driver():
    """What this machine says, when it has the packages and no GPU."""
    pytest.importorskip("cuda.bindings.driver")
    words = Cuda().available()
    if words is None:
        pytest.skip("there is a GPU")
    assert "NVIDIA driver" in words and "\n" not in words


def test_emulation_has_the_constants_of_the_driver():
    real = pytest.importorskip("cuda.bindings.driver")
    for enum in ("CUresult", "CUdevice_attribute", "CUevent_flags", "CUstream_flags"):
        for member in getattr(emulated, enum):
            assert int(getattr(getattr(real, enum), member.name)) == int(member), member


def test_emulation_has_the_functions_of_the_driver():
    """Names and numbers of arguments: what the backend calls here it can call there."""
    real = pytest.importorskip("cuda.bindings.driver")
    ours = [n for n in vars(emulated.EmulatedDriver) if n.startswith("cu")]
    assert len(ours) > 20
    for name in ours:
        signature = (getattr(real, name).__doc__ or "").split("\n", 1)[0]
        wanted = signature[signature.index("(") + 1 : signature.rindex(")")]
        count = len([p for p in re.sub(r"\[[^]]*\]", "", wanted).split(",") if p.strip()])
        given = inspect.signature(getattr(emulated.EmulatedDriver, name)).parameters
        assert len(given) - 1 == count, f"{name}: {signature}"


def test_called_driver_functions_exist():
    real = pytest.importorskip("cuda.bindings.driver")
    folder = pathlib.Path(driver_module.__file__).parent
    called = set()
    for name in ("driver.py", "device.py", "backend.py", "captured_graph.py"):
        called |= set(re.findall(r"\bcu(?!BLAS|DNN)[A-Z]\w+", (folder / name).read_text()))
    assert len(called) > 15
    missing = [n for n in called if not hasattr(real, n)]
    assert not missing
    assert not [n for n in called if not hasattr(emulated.EmulatedDriver, n)]
