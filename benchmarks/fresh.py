"""Measurements in a fresh process: import time, memory, installed size, a long training loop."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from importlib import metadata

from measure import PAIRS, CaseFailed

# Peak memory in KiB. Not ru_maxrss, which on Linux includes the memory of the parent process.
IMPORT = """
import json, re, time
begin = time.perf_counter()
import {module}
seconds = time.perf_counter() - begin
with open("/proc/self/status") as f:
    print(json.dumps([seconds, int(re.search(r"VmHWM:\\s+(\\d+) kB", f.read())[1])]))
"""

# A small net, 10,000 steps. Memory is read in the last tenth and after the first.
STEPS = """
import json, os
import numpy as np
import duograph as ms
from duograph import nn

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 4))
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
x = ms.Tensor(np.random.default_rng(0).standard_normal((32, 16), dtype=np.float32))
y = ms.Tensor(np.arange(32, dtype=np.int32) % 4)
step = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
first = None
for i in range({steps}):
    loss, grads = step(x, y)
    optimizer(grads)
    if i == 0:
        first = float(loss.asnumpy())
    if i == {steps} // 10:
        before = resident()
print(json.dumps([before, resident(), first, float(loss.asnumpy())]))
"""


def program(source: str, timeout: int = 600) -> list[float]:
    """Run Python source in a fresh process outside this folder.

    Return the JSON of its last line.
    """
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=timeout, cwd="/"
    )
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise CaseFailed(words[-1])
    return json.loads(done.stdout.splitlines()[-1])


def import_cost(pairs: int = PAIRS) -> tuple[float, float, float]:
    """Return (seconds above NumPy's, KiB above NumPy's, seconds in all) of importing duograph.

    They are medians of interleaved pairs.
    """
    program(IMPORT.format(module="duograph"))  # compiles the .pyc files
    both = [
        (program(IMPORT.format(module="numpy")), program(IMPORT.format(module="duograph")))
        for _ in range(pairs)
    ]
    return (
        statistics.median(ours[0] - bare[0] for bare, ours in both),
        statistics.median(ours[1] - bare[1] for bare, ours in both),
        statistics.median(ours[0] for _, ours in both),
    )


def installed_size() -> int:
    """Return the bytes of the installed distribution, without its dependencies."""
    files = metadata.files("duograph") or []
    return sum(path.stat().st_size for f in files if (path := f.locate()).is_file())


def training_steps(steps: int = 10_000) -> tuple[float, float, float]:
    """Run a long training.

    Return (growth of memory in bytes after warm-up, first loss, last loss).
    """
    before, after, first, last = program(STEPS.format(steps=steps))
    return after - before, first, last
