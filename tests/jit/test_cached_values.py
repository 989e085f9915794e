"""Values that depend on Parameters alone are computed once, and never go stale."""

import gc
import threading

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops
from duograph.backend import registry
from jit.cached import Net, X, by_set_data, check, compiled, kept, numpy_of

CPU = pytest.importorskip("duograph_cpu")
pytestmark = pytest.importorskip("own_products").only_with_own_products()
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_values_are_cached_from_the_second_call_with_the_same_bits(level):
    net = Net()
    f = compiled(net, level)
    found = []
    for call in range(5):
        found.append(f(Tensor(X)).asnumpy())
        assert (kept(f) > 0) == (call > 0), f"after call {call}"
    assert all((a == found[0]).all() for a in found)
    check(f, net)
    assert "1 kernel run once and 1 operand packed once while Parameters are unchanged" in str(
        f.explain(Tensor(X))
    )


def test_nothing_is_cached_at_o0():
    net = Net()
    f = compiled(net, "O0")
    for _ in range(4):
        check(f, net)
    assert kept(f) == 0


# ---- ways to change the state: (net) -> None, or a function that does it when called again
# ----------------


def by_set_data_of_a_small_one(net):
    net.variance.set_data(net.variance + 1)


def by_assign(net):
    ops.assign(net.gamma, net.gamma * 3)


def by_index(net):
    net.gamma[3] = net.gamma[3] + 50


def by_optimizer(net):
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    optimizer(ms.grad(lambda x: net(x).sum(), None, optimizer.parameters)(Tensor(X)))


def by_compiled_optimizer(net):
    training(net)(Tensor(X))


def by_load_param(net):
    other = {"w": Parameter(Tensor(net.w.asnumpy() + 1), name="w")}
    ms.load_param_into_net(net, other)


def by_array(net):
    net.w.asnumpy()[:] += 0.25


def by_array_of_a_value(net):
    net.w.value().asnumpy()[:] += 0.5


def by_array_of_a_reshape(net):
    net.w.reshape(-1).asnumpy()[:100] += 3


def by_dlpack(net):
    np.from_dlpack(net.w).flat[:50] += 7


def by_memoryview(net):
    memoryview(net.gamma.asnumpy())[5] += 9.0


def by_other_memory(net):
    net.w.set_data(net.w.move_to("CPU"))
    net.w.asnumpy()[0] += 1


CHANGES = [v for k, v in sorted(globals().items()) if k.startswith("by_")]


def training(net):
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    step = ms.value_and_grad(lambda x: ops.square(net(x)).mean(), None, optimizer.parameters)

    @ms.jit(jit_level="O2")
    def train(x):
        loss, grads = step(x)
        optimizer(grads)
        return loss

    return train


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("before", [0, 1, 2, 4], ids=lambda n: f"after_{n}_calls")
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__[3:])
def test_every_change_of_state_invalidates_the_cache(change, before, level):
    net = Net()
    f = compiled(net, level)
    for _ in range(before):
        check(f, net)
    for _ in range(3):
        wanted = numpy_of(net)
        change(net)
        assert np.abs(numpy_of(net) - wanted).max() > 1e-3
        for _ in range(4):
            check(f, net)
    assert kept(f) > 0


@pytest.mark.parametrize("taken", ["before_all", "after_one", "after_three"])
@pytest.mark.parametrize("how", ["asnumpy", "value", "slice", "dlpack", "memoryview"])
def test_writes_through_exported_arrays_are_seen(how, taken):
    net = Net()
    f = compiled(net)
    get = {
        "asnumpy": lambda: net.w.asnumpy(),
        "value": lambda: net.w.value().asnumpy(),
        "slice": lambda: net.w.asnumpy()[5:9, ::2],
        "dlpack": lambda: np.from_dlpack(net.w),
        "memoryview": lambda: np.asarray(memoryview(net.w.asnumpy())),
    }[how]
    if taken == "before_all":
        array = get()
    check(f, net)
    if taken == "after_one":
        array = get()
    check(f, net)
    check(f, net)
    if taken == "after_three":
        array = get()
    for turn in range(4):
        array += turn + 1
        check(f, net)
        check(f, net)
    assert kept(f) == 0
    del array
    for _ in range(300):
        if kept(f):
            break
        check(f, net)
    assert kept(f) > 0, "nothing holds the memory any more"


@pytest.mark.parametrize("dropped", [False, True])
def test_parameter_over_an_exported_array_is_not_cached(dropped):
    net = Net()
    f = compiled(net)
    value = Tensor(np.ones((96, 80), np.float32)) + 1
    array = value.asnumpy()
    net.w.set_data(value)
    if dropped:
        del value
    for turn in range(4):
        check(f, net)
        array += turn
    check(f, net)


def test_captured_tensor_over_a_user_array_is_not_cached():
    array = np.ones((96, 80), np.float32)
    w = ms.from_numpy(array)
    f = ms.jit(lambda x: ops.matmul(x, w), jit_level="O1")
    for turn in range(6):
        array[:] = turn + RNG.standard_normal((96, 80))
        np.testing.assert_allclose(f(Tensor(X)).asnumpy(), X @ array, rtol=2e-4, atol=1e-4)
        np.testing.assert_allclose(f(Tensor(X)).asnumpy(), X @ array, rtol=2e-4, atol=1e-4)
    assert kept(f) == 0


def test_view_of_a_user_array_is_not_cached():
    whole = np.ones((2, 96, 80), np.float32)
    w = ms.from_numpy(whole[1])
    f = ms.jit(lambda x: ops.matmul(x, w), jit_level="O1")
    for turn in range(6):
        whole[:] = turn
        np.testing.assert_allclose(f(Tensor(X)).asnumpy(), X @ whole[1], rtol=2e-4, atol=1e-4)


def test_programs_that_share_a_parameter():
    net = Net()
    first, second = compiled(net), compiled(net, "O1")
    other = RNG.standard_normal((40, 96)).astype(np.float32)
    for turn in range(4):
        for _ in range(3):
            check(first, net)
            check(second, net)
            np.testing.assert_allclose(
                first(Tensor(other)).asnumpy(), numpy_of(net, other), rtol=2e-4, atol=1e-4
            )
        assert kept(first) >= 4 and kept(second) >= 2
        (by_set_data, by_array, by_compiled_optimizer, by_index)[turn](net)
        assert kept(first) == kept(second) == 0, "freed at once"


def test_training_between_calls_keeps_updates_in_place():
    net = Net(4000)  # more state than a program remembers the handles of
    train, f = training(net), compiled(net)
    for _ in range(3):
        train(Tensor(X))
    place = id(net.gamma._buf)
    train(Tensor(X))
    assert id(net.gamma._buf) == place, "the update is written over the old value"
    for _ in range(6):  # one evaluation after each step: nothing is ever kept
        train(Tensor(X))
        f(Tensor(X))
        assert kept(f) == 0
    assert id(net.gamma._buf) == place
    for _ in range(3):
        for _ in range(4):
            f(Tensor(X))
        assert kept(f)
        train(Tensor(X))
        assert kept(f) == 0
        assert id(net.gamma._buf) == place
    check(f, net)


def in_use():
    gc.collect()
    return registry.backend("CPU").memory_stats(0)["in_use"]


def test_cached_memory_is_counted_bounded_and_freed():
    class Wide(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.ones((1024, 1024), np.float32)), name="w")

        def construct(self, x):
            return ops.matmul(x, self.w)

    net = Wide()
    x = Tensor(np.ones((16, 1024), np.float32))
    f = compiled(net)
    f(x)
    before = in_use()
    f(x)
    assert 4 << 20 <= in_use() - before < 5 << 20, "the packed weights count"
    for turn in range(5):
        net.w.set_data(Tensor(np.full((1024, 1024), turn, np.float32)))
        assert in_use() - before < 1 << 20, "freed as soon as the state changes"
        for _ in range(3):
            assert (f(x).asnumpy() == 1024 * turn).all()
        assert in_use() - before < 5 << 20
    del f
    assert in_use() - before < 1 << 20, "freed with the program"
    from duograph.placement import watched

    assert id(net.w._buf) not in watched


def test_recompilation_and_replaced_parameter():
    net = Net()
    f = compiled(net)
    for _ in range(3):
        check(f, net)
    f.clear()
    gc.collect()
    for _ in range(3):
        check(f, net)
    net.w = Parameter(Tensor(np.full((96, 80), 0.5, np.float32)), name="w")
    for _ in range(3):
        check(f, net)
    assert kept(f) > 0


def test_threads_see_complete_and_current_values():
    class Scaled(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.zeros((96, 128), np.float32)), name="w")

        def construct(self, x):
            return ops.matmul(x, self.w)

    net = Scaled()
    f = compiled(net)
    x = Tensor(np.ones((16, 96), np.float32))
    f(x)
    wrong, newest, stop = [], [0], threading.Event()

    def evaluate():
        while not stop.is_set():
            least = newest[0]
            found = f(x).asnumpy()
            value = found.flat[0] / 96
            if not (found == found.flat[0]).all() or value < least:
                wrong.append((least, found))

    threads = [threading.Thread(target=evaluate) for _ in range(3)]
    for t in threads:
        t.start()
    for turn in range(1, 150):
        net.w.set_data(Tensor(np.full((96, 128), turn, np.float32)))
        newest[0] = turn
        for _ in range(turn % 4):
            f(x)
    stop.set()
    for t in threads:
        t.join()
    assert not wrong
    assert (f(x).asnumpy() == 96 * 149).all()


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_control_flow_random_ops_and_results_of_state(level):
    net = Net()
    scale = Parameter(Tensor(np.float32(2.0)), name="scale")

    def several(x):
        y = x
        n = Tensor(0, ms.int32)
        while n < 3:
            y = ops.tanh(ops.matmul(ops.matmul(y, net.w), net.w.swapaxes(0, 1)) * scale)
            n = n + 1
        return y, net.gamma * ops.rsqrt(net.variance + 1e-5), net.gamma

    f = ms.jit(several, jit_level=level)
    wanted = [v.asnumpy().copy() for v in f(Tensor(X))]
    for turn in range(4):
        found = [v.asnumpy() for v in f(Tensor(X))]
        for a, b in zip(wanted, found):
            np.testing.assert_array_equal(a, b)
        found[1][:] = -1  # a result is the caller's own
        if turn == 2:
            scale.set_data(Tensor(np.float32(3.0)))
            wanted = [v.asnumpy().copy() for v in f(Tensor(X))]
            assert np.abs(wanted[0] - found[0]).max() > 0


def test_written_state_is_not_cached():
    net = Net()

    @ms.jit(jit_level="O2")
    def f(x):
        y = net(x)
        ops.assign(net.gamma, net.gamma + 1)
        return y

    for _ in range(5):
        wanted = numpy_of(net)
        np.testing.assert_allclose(f(Tensor(X)).asnumpy(), wanted, rtol=2e-4, atol=1e-4)


def test_functions_with_host_calls_cache_nothing():
    net = Net()

    def change():
        net.w.asnumpy()[:] += 1

    @ms.jit(jit_level="O1")
    def f(x):
        y = ops.matmul(x, net.w)
        change()
        return y

    for _ in range(5):
        wanted = X @ np.array(net.w.value().copy().asnumpy())
        np.testing.assert_allclose(f(Tensor(X)).asnumpy(), wanted, rtol=2e-4, atol=1e-3)


def test_index_errors_are_raised():
    table = Parameter(Tensor(np.ones((10, 2000), np.float32)), name="table")
    index = Parameter(Tensor(np.int32([1, 2, 30])), name="index", requires_grad=False)
    f = ms.jit(lambda x: x + ops.gather(table, index, 0).sum(), jit_level="O1")
    for _ in range(4):
        with pytest.raises(IndexError, match="out of range"):
            f(Tensor(np.float32([1.0])))
    index.set_data(Tensor(np.int32([1, 2, 3])))
    for _ in range(4):
        assert f(Tensor(np.float32([1.0]))).asnumpy()[0] == 6001
