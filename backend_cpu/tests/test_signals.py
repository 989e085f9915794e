"""Signals that arrive while a long kernel runs: Ctrl-C stops it, and nothing else is disturbed.

Every test runs in a process of its own, to which it sends real signals.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals to processes")

SETUP = """
import os, signal, sys, threading, time
import numpy as np
import duograph as ms
from duograph import ops
from duograph_cpu import kernels

random = np.random.default_rng(0)
stops = []  # what kernels that stopped raised
raise_stopped = kernels.raise_stopped

def noted():
    try:
        raise_stopped()
    except BaseException as error:
        stops.append(type(error).__name__)
        raise

kernels.raise_stopped = noted

def floats(*shape, dtype=np.float32):
    return ms.Tensor(random.standard_normal(shape).astype(dtype))

def ones(*shape, dtype=np.float32):
    return ms.Tensor(np.ones(shape, dtype))

def soon(seconds=0.4, number=signal.SIGINT):
    threading.Thread(target=lambda: (time.sleep(seconds), os.kill(os.getpid(), number))).start()

def bits(t):
    return t.asnumpy().tobytes()

small = floats(300, 200), floats(200, 400)
want = bits(ops.matmul(*small))
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
STOPPED = """
soon()
try:
    run()
except KeyboardInterrupt:
    pass
else:
    sys.exit("it was not interrupted")
assert stops == ["KeyboardInterrupt"], "it ran to its end"
for _ in range(20):  # the thread pool is in order
    assert bits(ops.matmul(*small)) == want
"""
# Each takes many seconds if nothing stops it.
LONG = {
    "matmul": "x = ones(9000, 9000); run = lambda: ops.matmul(x, x)",
    "float16": "x = ones(9000, 9000, dtype=np.float16); run = lambda: ops.matmul(x, x)",
    # a kernel looks for signals after 1536 rows
    "integers": "x, w = ones(40000, 1200, dtype=np.int32), ones(1200, 1200, dtype=np.int32);"
    "run = lambda: ops.matmul(x, w)",
    "batches": "x = ones(800, 500, 500); run = lambda: ops.matmul(x, x)",
    "one thread": "os.sched_setaffinity(0, [0]); x = ones(9000, 9000);"
    "run = lambda: ops.matmul(x, x)",
    "convolution": "x, w = ones(64, 128, 128, 128), ones(256, 128, 5, 5);"
    "run = lambda: ops.conv2d(x, w)",
    "gradient": "x, w = ones(64, 128, 64, 64), ones(256, 128, 5, 5);"
    "run = lambda: ms.grad(lambda w: ops.conv2d(x, w).sum())(w)",
    "sort": "x = ms.Tensor(random.random(30_000_000)); run = lambda: ops.sort(x)",
    "O1": "x = ones(9000, 9000); net = ms.nn.Cell()\n"
    "ms.set_context(mode=ms.GRAPH_MODE, jit_level='O1')\n"
    "net.construct = lambda a: ops.relu(a @ a + 1) @ a\n"
    "net.compile(x)\n"  # so that the signal comes when a kernel runs
    "run = lambda: net(x)",
    "forked child": "x = ones(9000, 9000); run = lambda: ops.matmul(x, x)\n"
    "child = os.fork()\n"
    "if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
}


def python(code: str) -> None:
    """Run a program in a new process; fail with what it printed if it fails."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SETUP + code],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", LONG)
def test_ctrl_c_stops_a_long_kernel(what):
    if what == "one thread" and not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system cannot bind a process to one core")
    python(LONG[what] + STOPPED)


# A matmul of a second or two, with the bits of its result.
SECONDS = """
x = floats(5000, 5000)
right = bits(ops.matmul(x, x))
"""


def test_a_handler_that_returns_runs_during_the_kernel_and_changes_nothing():
    """It may call kernels itself."""
    python(SECONDS + """
seen = []
def handler(number, frame):
    seen.append(time.monotonic())
    assert bits(ops.matmul(*small)) == want
signal.signal(signal.SIGINT, handler)
soon(0.2), soon(0.4)
found = ops.matmul(x, x)
end = time.monotonic()
assert bits(found) == right and not stops
assert seen and seen[0] < end - 0.1, "the handler ran after the kernel"
""")  # fmt: skip


def test_any_exception_of_a_handler_stops_the_kernel():
    python(SECONDS + """
def handler(number, frame):
    raise TimeoutError("too long")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    ops.matmul(x, x)
except TimeoutError as error:
    assert str(error) == "too long" and stops == ["TimeoutError"]
else:
    sys.exit("nothing was raised")
assert bits(ops.matmul(x, x)) == right
""")  # fmt: skip


def test_a_kernel_of_another_thread_goes_on():
    """Python handles signals in the main thread, which is not in the kernel."""
    python(SECONDS + """
found = []
thread = threading.Thread(target=lambda: found.append(bits(ops.matmul(x, x))))
thread.start()
soon(0.2)
try:
    time.sleep(600)
except KeyboardInterrupt:
    pass
else:
    sys.exit("it was not interrupted")
thread.join()
assert found == [right] and not stops
""")  # fmt: skip


def test_other_threads_are_not_stopped_with_the_main_thread():
    python(SECONDS + """
found, ended, y = [], threading.Event(), ones(9000, 9000)
def work():
    while not ended.is_set():
        found.append(bits(ops.matmul(*small)))
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
soon()
try:
    ops.matmul(y, y)
except KeyboardInterrupt:
    pass
else:
    sys.exit("it was not interrupted")
ended.set()
for t in threads: t.join()
assert stops == ["KeyboardInterrupt"] and len(found) > 1 and set(found) == {want}
assert bits(ops.matmul(x, x)) == right
""")  # fmt: skip


def test_another_thread_forks_during_the_kernel():
    """Neither thread waits for the other, and the child has a pool of its own."""
    python(SECONDS + """
codes = []
def forks():
    for _ in range(3):
        time.sleep(0.2)
        child = os.fork()
        if child == 0:
            os._exit(0 if bits(ops.matmul(*small)) == want else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread = threading.Thread(target=forks)
thread.start()
while thread.is_alive():
    assert bits(ops.matmul(x, x)) == right
assert codes == [0, 0, 0]
""")  # fmt: skip


def test_parameters_keep_their_values():
    """A step that was stopped changed no Parameter, though it overwrites them in place."""
    python("""
from duograph import nn, Parameter
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(floats(6000, 6000), name="w")
    def construct(self, x):
        return ops.matmul(ops.matmul(x, self.w), self.w).sum()
ms.set_context(mode=ms.GRAPH_MODE)
net = Net()
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
step = nn.TrainOneStepCell(net, optimizer)
x = floats(6000, 6000)
step.compile(x)
names = [p.name for p in step.get_parameters()]
before = [bits(p) for p in step.get_parameters()]
soon(1.0)
try:
    step(x)
except KeyboardInterrupt:
    pass
else:
    sys.exit("it was not interrupted")
assert stops == ["KeyboardInterrupt"]
assert [bits(p) for p in step.get_parameters()] == before
""")  # fmt: skip
