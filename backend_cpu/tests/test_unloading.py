"""Libraries of generated code are unloaded when no program and no prepared call needs them."""

import gc
import os
import threading
from collections import deque

import numpy as np
import pytest
from compiling import needs_compiler
from duograph import Tensor, jit, nn, ops
from duograph_cpu import toolchain

pytestmark = pytest.mark.usefixtures("fresh")


def _programs(number):
    """Return calls whose programs hold generated functions in every kind of struct."""
    x = Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    w = Tensor(np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4))
    i = Tensor(np.array([2, 0, 1, 2]))
    image = Tensor(np.linspace(0, 1, 2 * 4 * 6 * 6, dtype=np.float32).reshape(2, 4, 6, 6))
    conv = nn.Conv2d(4, 4, 3, weight_init="ones")
    k = 1.0 + number / 7

    def elementwise():
        return jit(lambda a: ops.tanh(a * k) + a, jit_level="O1")(x)

    def several_results():
        return jit(lambda a: (ops.tanh(a * k), ops.sin(a) * k), jit_level="O1")(x)

    def reduction():
        return jit(lambda a: (a * k - a.mean(1, True)).sum(1), jit_level="O1")(x)

    def indices():
        return jit(lambda a, j: ops.tanh(ops.gather(a, j, 0) * k), jit_level="O1")(x, i)

    def epilogue():
        return jit(lambda a, b: ops.relu((a @ b) * k + 1), jit_level="O1")(x, w)

    def convolutions():
        return jit(lambda a: ops.relu(conv(ops.tanh(conv(a) * k) * k)), jit_level="O2")(image)

    def loop():
        def body(a):
            while a.sum() < 4:
                a = a + ops.cos(a * k) * k
            return a

        return jit(body, jit_level="O2")(x)

    return [elementwise, several_results, reduction, indices, epilogue, convolutions, loop]


KINDS = [f.__name__ for f in _programs(0)]


def _loaded_libraries():
    with open("/proc/self/maps") as file:
        return len({line.split(maxsplit=5)[-1] for line in file if ".so" in line})


@needs_compiler
@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="it counts mappings on Linux")
@pytest.mark.parametrize("kind", KINDS)
def test_a_dropped_function_leaves_no_library(kind, monkeypatch):
    monkeypatch.setattr(toolchain, "_recent", deque(maxlen=2))

    def call(number):
        return next(f for f in _programs(number) if f.__name__ == kind)()

    call(0)
    gc.collect()
    before = _loaded_libraries()
    for number in range(1, 9):
        call(number)
    gc.collect()
    assert _loaded_libraries() - before <= 2


@needs_compiler
def test_functions_come_and_go_while_threads_run_them(monkeypatch):
    """No thread may run code whose library another thread has unloaded."""
    monkeypatch.setattr(toolchain, "_recent", deque(maxlen=1))
    wrong = []

    def work(start):
        for number in range(start, start + 12):
            for program in _programs(number % 5):
                want = program()
                gc.collect(0)
                if not all(map(np.array_equal, _arrays(want), _arrays(program()))):
                    wrong.append((number, program.__name__))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def _arrays(result):
    return [t.asnumpy() for t in (result if isinstance(result, tuple) else (result,))]


@needs_compiler
def test_recent_libraries_stay_loaded():
    """A function that is defined again and again does not load its kernels each time."""

    def define():
        return jit(lambda a: ops.tanh(a * 1.375) + a, jit_level="O1")(Tensor([1.0, 2.0]))

    define()
    gc.collect()
    before = list(toolchain._loaded)
    define()
    assert list(toolchain._loaded) == before
