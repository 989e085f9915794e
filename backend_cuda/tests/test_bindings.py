"""The real cuda-bindings and the real NVRTC over a driver that is made for this test
(`fake_driver.c`).

What the backend passes to cuda-bindings is seen to arrive in C: handles, sizes, flags, and the
arguments of a launch.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
PROGRAM = """
import numpy as np
from duograph.dtype import int32
from duograph.errors import DeviceError, DeviceMemoryError
from duograph_cuda.backend import Cuda

backend = Cuda()
assert backend.available() is None
(info,) = backend.devices()
assert (info.name, info.memory_bytes) == ("fake 100", 8 << 20), info
device = backend.device(0)
assert (device.units, device.capability) == (7, (9, 0))
assert device.compiler().startswith("NVRTC") and "sm_90; matmul by our own" in device.compiler()
source = "DG_KERNEL void k(f32 *x, i32 n) { if (DG_ITEM(0) < n) x[DG_ITEM(0)] += 1.0f; }"
module = device.build(device.dialect.prelude_for(source) + source)
x = device.copy_in(np.arange(5, dtype=np.float32))
device.launcher(module, "k", (3, 1, 1), (32, 2, 1), 1, [(int32, 5)])(x)
assert device.copy_out(x, (5,), np.dtype(np.float32)).tolist() == [1, 2, 3, 4, 5]
from duograph.backend.program import Copy, Program
from duograph_cuda.captured_graph import Captured
program = Program((Copy(0, 1),), (0,), {}, {}, [20, 20], [-1, -1], {}, 0, (1,), True, {}, "O2")
run = Captured(program, device, "a graph")
for _ in range(3):
    run([x])
assert [int(graph.handle) for graph in run.graphs] == [0xb0]
del run, program
assert int(device.stream) == 0x50  # as cuBLASLt is given it
assert device.driver.module.cuCtxSetCurrent(0xc1)[0] == 0  # as another library does
device.launcher(module, "k", (3, 1, 1), (32, 2, 1), 1, [(int32, 5)])(x)
assert device.copy_out(x, (5,), np.dtype(np.float32)).tolist() == [2, 3, 4, 5, 6]
assert int(device.driver.call("cuCtxGetCurrent")) == 0xc1
large = np.arange(1 << 18, dtype=np.float32)  # staged in a page-locked buffer
z = [device.copy_in(large) for _ in range(3)]
assert (device.copy_out(z[1], large.shape, large.dtype) == large).all()
del z
y = device.allocate(1000, "y")
assert device.memory_stats()["in_use"] == 1020
del y
stats = device.memory_stats()
assert (stats["in_use"], stats["launches"]) == (20, 4) and stats["peak"] > 3 << 20, stats
device.empty_cache()
five = (5,), np.dtype(np.float32)
from duograph.backend.dlpack import array_of, source_of
assert backend.copy_out_async(x, *five, 0)().tolist() == [2, 3, 4, 5, 6]
assert device.copy_out(backend.copy_between(x, *five, 0, 0), *five).tolist() == [2, 3, 4, 5, 6]
device.wait_for(device)
device.checked("a copy", "cuMemcpyPeerAsync", x.pointer, device.context, x.pointer,
               device.context, 20, device.stream)
lent = source_of(backend.to_dlpack(x, *five, 0, 1, None))
assert lent.__dlpack_device__() == (2, 0)
assert array_of(lent, (2, 0)).ctypes.data == x.pointer
import gc
gc.collect()
assert len(device.returned) == 1
device.synchronize()
device.checked("end", "cuCtxSynchronize")
queues = backend.streams(0)
stream = queues.new_stream()
queues.use_stream(stream)
assert int(device.stream) == 0x60
device.launcher(module, "k", (3, 1, 1), (32, 2, 1), 1, [(int32, 5)])(x)
begin, end = queues.record_event(stream, True), queues.record_event(stream, True)
queues.wait_event(None, end)
assert queues.query_event(end) and queues.elapsed_time(begin, end) == 2.5
assert queues.query_stream(None) and not queues.query_stream(stream)
queues.synchronize_event(end)
queues.synchronize_stream(stream)
assert device.copy_out(x, *five).tolist() == [3, 4, 5, 6, 7]
with device.alone:
    assert int(device.stream) == 0x50
queues.join()
device.synchronize()
queues.use_stream(None)
try:
    device.allocate(1 << 24, "large")
    raise SystemExit("there is no memory for that")
except DeviceMemoryError as error:
    assert "large: no memory for 16777216 bytes" in str(error), error
try:
    device.launcher(module, "other", (3, 1, 1), (32, 2, 1), 1, [(int32, 5)])
    raise SystemExit("there is no such kernel")
except DeviceError as error:
    assert "other" in str(error), error
try:
    device.launcher(module, "k", (3, 1, 1), (32, 2, 1), 1, [(int32, -1)])(x)
    raise SystemExit("the launch fails")
except DeviceError as error:
    said = "the device was lost (CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"
    assert said in str(error), error
print("all of it arrived")
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the fake driver is found as on Linux"
)
def test_driver_calls(tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs the packages of duograph[cuda]")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = tmp_path / "libcuda.so.1"
    command = [compiler, "-w", "-shared", "-fPIC", "-o", str(library), str(HERE / "fake_driver.c")]
    subprocess.run(command, check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "DUOGRAPH_CUDA_CUBLASLT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "all of it arrived" in done.stdout
