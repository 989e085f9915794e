"""Programs with bound state see every way of changing a Parameter."""

from __future__ import annotations

import threading
import weakref

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops


class Scale(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.float32([1, 2, 3])), name="w")

    def construct(self, x):
        return x * self.w


class Sums(Scale):
    """A network of two kernels: it becomes a native program to which the state is bound."""

    def construct(self, x):
        return ops.cumsum(x * self.w, 0)


def by_optimizer(net):
    optimizer = nn.SGD(net.trainable_params(), 1.0)
    grads = ms.grad(lambda x: net(x).sum(), None, optimizer.parameters)(
        ms.Tensor(np.float32([1, 1, 1]))
    )
    optimizer(grads)


def by_compiled_step(net):
    @ms.jit
    def step():
        ops.assign(net.w, net.w * 2)
        return net.w.sum()

    step()


def by_thread(net):
    thread = threading.Thread(target=lambda: net.w.set_data(ms.Tensor(np.float32([7, 8, 9]))))
    thread.start()
    thread.join()


def by_item(net):
    net.w[1] = 20.0


def by_augmented(net):
    net.w += 1


def by_shared_memory(net):
    net.w.asnumpy()[:] = 5  # asnumpy shares where the device's memory is the host's


def by_another_parameter(net):
    net.w = ms.Parameter(ms.Tensor(np.float32([4, 4, 4])), name="w")


CHANGES = {
    "set_data": lambda net: net.w.set_data(ms.Tensor(np.float32([4, 5, 6]))),
    "assign_value": lambda net: net.w.assign_value(ms.Tensor(np.float32([4, 5, 6]))),
    "ops.assign": lambda net: ops.assign(net.w, ms.Tensor(np.float32([6, 5, 4]))),
    "ops.assign_add": lambda net: ops.assign_add(net.w, ms.Tensor(np.float32([1, 1, 1]))),
    "load_param_into_net": lambda net: ms.load_param_into_net(
        net, {"w": ms.Parameter(ms.Tensor(np.float32([0, 0, 1])), name="w")}
    ),
    "item": by_item,
    "augmented": by_augmented,
    "optimizer": by_optimizer,
    "compiled step": by_compiled_step,
    "another thread": by_thread,
    "shared memory": by_shared_memory,
    "another Parameter": by_another_parameter,
}


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind, first", [(Scale, [1, 20, 300]), (Sums, [1, 21, 321])])
def test_a_changed_parameter_is_seen(kind, first, change, level):
    net, x = kind(), ms.Tensor(np.float32([1, 10, 100]))
    f = ms.jit(lambda x: net(x), jit_config=ms.JitConfig(jit_level=level))
    for _ in range(4):  # the third call goes the short way
        before = f(x).asnumpy().copy()
    assert before.tolist() == first
    for _ in range(2):
        CHANGES[change](net)
        want = net(x).asnumpy()
        for _ in range(4):
            assert f(x).asnumpy().tolist() == want.tolist()
    assert want.tolist() != before.tolist()


@pytest.mark.parametrize("level", ["O0", "O1"])
def test_gradient_of_a_function_on_the_fast_route(level):
    net, x = Scale(), ms.Tensor(np.float32([1, 10, 100]))
    f = ms.jit(lambda x: net(x), jit_config=ms.JitConfig(jit_level=level))
    for _ in range(3):
        f(x)
    for _ in range(2):
        (found,) = ms.grad(lambda x: f(x).sum(), None, [net.w])(x)
        assert found.asnumpy().tolist() == [1, 10, 100]
        assert ms.grad(lambda x: f(x).sum())(x).asnumpy().tolist() == [1, 2, 3]
        assert f(x).asnumpy().tolist() == [1, 20, 300]


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("kind", [Scale, Sums])
def test_bound_buffers_are_freed_at_the_next_call(kind, level):
    """What a program of little state remembers dies with its next call."""
    net, x = kind(), ms.Tensor(np.float32([1, 10, 100]))
    f = ms.jit(lambda x: net(x), jit_config=ms.JitConfig(jit_level=level))
    for _ in range(4):
        f(x)
    old = weakref.ref(net.w._buf)
    ops.assign(net.w, ms.Tensor(np.float32([4, 5, 6])))
    f(x)
    assert old() is None


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_a_bound_program_is_called_from_threads(level):
    net = Sums()
    f = ms.jit(lambda x: net(x), jit_config=ms.JitConfig(jit_level=level))
    x = ms.Tensor(np.float32([1, 1, 1]))
    for _ in range(4):
        f(x)
    wrong = []

    def work(k):
        x = ms.Tensor(np.float32([k, k, k]))
        want = [k, 3 * k, 6 * k]
        wrong.extend(got for got in (f(x).asnumpy().tolist() for _ in range(500)) if got != want)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_large_state_is_not_kept_alive():
    """Of much state nothing is remembered, so a new value frees the memory of the old one."""
    net = Scale()
    net.w = ms.Parameter(ms.Tensor(np.zeros(1 << 20, np.float32)), name="w")
    x = ms.Tensor(np.ones(1 << 20, np.float32))
    f = ms.jit(lambda x: net(x))
    ops.assign(net.w, x + 2)
    for _ in range(3):
        f(x)
    before = ms.memory_stats()["in_use"]
    ops.assign(net.w, x + 1)
    assert ms.memory_stats()["in_use"] == before
