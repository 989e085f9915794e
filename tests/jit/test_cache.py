"""When a function is compiled, when a program is found again, and what `explain` reports.

D12, D13, D14, D15, N02: the key is shapes, dtypes and scalar values; containers of Tensors and
    weights never recompile
"""

from __future__ import annotations

import threading
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.errors import OptionWarning

X = np.array([1.0, 2.0, 3.0], np.float32)


def t(*values, dtype=None):
    return ms.Tensor(list(values), dtype or ms.float32)


def compiles(function) -> int:
    return function.cache_info().misses


# ---- hits and misses
# --------------------------------------------------------------------------------


def test_the_second_call_compiles_nothing():
    @ms.jit
    def f(x):
        return x * 2

    for i in range(5):
        assert f(t(i, 1)).asnumpy().tolist() == [2 * i, 2]
    info = f.cache_info()
    assert (info.misses, info.hits) == (1, 4)
    assert info.currsize == 1 and info.fallbacks == 0 and info.seconds > 0


def test_clear_forgets():
    @ms.jit
    def f(x):
        return x + 1

    f(t(1)), f(t(1))
    f.clear()
    assert f.cache_info().currsize == 0
    assert f(t(1)).asnumpy().tolist() == [2]
    assert compiles(f) == 2


# a call that must share the graph of f(t(1, 2), ...), and one that must not
KEYS = {
    "value": ((t(1, 2),), (t(3, 4),), True),
    "shape": ((t(1, 2),), (t(1, 2, 3),), False),
    "rank": ((t(1, 2),), (ms.Tensor([[1.0, 2.0]]),), False),
    "dtype": ((t(1, 2),), (t(1, 2, dtype=ms.int32),), False),
    "int": ((t(1, 2), 3), (t(1, 2), 4), False),
    "same int": ((t(1, 2), 3), (t(5, 2), 3), True),
    "int and float": ((t(1, 2), 3), (t(1, 2), 3.0), False),
    "int and bool": ((t(1, 2), 1), (t(1, 2), True), False),
    "float": ((t(1, 2), 0.5), (t(1, 2), 0.25), False),
    "zero signs": ((t(1, 2), 0.0), (t(1, 2), -0.0), False),
    "nan": ((t(1, 2), float("nan")), (t(1, 2), float("nan")), True),
    "string": ((t(1, 2), "a"), (t(1, 2), "b"), False),
    "none": ((t(1, 2), None), (t(1, 2), 0), False),
    "tuple of tensors": (((t(1), t(2)),), ((t(3), t(4)),), True),
    "list of tensors": (([t(1), t(2)],), ([t(3), t(4)],), True),
    "dict of tensors": (({"a": t(1), "b": t(2)},), ({"a": t(3), "b": t(4)},), True),
    "nested": (({"a": [t(1), (t(2), 5)]},), ({"a": [t(3), (t(4), 5)]},), True),
    "tuple length": (((t(1), t(2)),), ((t(1),),), False),
    "dict keys": (({"a": t(1)},), ({"b": t(1)},), False),
    "element shape": (([t(1)],), ([t(1, 2)],), False),
    "element number": (([t(1), 2],), ([t(1), 3],), False),
    "tuple and list": (((t(1),),), ([t(1)],), False),
    "list of numbers": (([1, 2],), ([1, 3],), False),
    "parameter and tensor": ((t(1, 2),), (ms.Parameter(t(1, 2), name="p"),), False),
}


@pytest.mark.parametrize("name", KEYS)
def test_arguments_in_the_key(name):
    """D13: a new shape or dtype compiles again; number and string inputs are part of the key;
    lengths too.
    """
    first, second, shared = KEYS[name]

    @ms.jit
    def f(*args):
        return args[0]

    for args in (first, second, first, second):
        f(*args)
    assert compiles(f) == (1 if shared else 2)


def test_scalar_values_are_used():
    @ms.jit
    def f(x, n):
        return x * n

    assert [f(t(1, 2), n).asnumpy().tolist() for n in (2, 3, 2.5, 3)] == [
        [2, 4],
        [3, 6],
        [2.5, 5],
        [3, 6],
    ]
    assert compiles(f) == 3


def test_new_weights_compile_nothing():
    """D24: weights are inputs: `set_data`, `load_param_into_net`, optimizer steps change values,
    not graphs.
    """
    net = nn.Dense(3, 2)

    @ms.jit
    def f(x):
        return net(x)

    x = ms.Tensor(np.ones((1, 3), np.float32))
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    for i in range(4):
        np.testing.assert_array_equal(f(x).asnumpy(), net(x).asnumpy())
        net.weight.set_data(ops.ones_like(net.weight) * i)
        optimizer((ops.ones_like(net.weight), ops.ones_like(net.bias)))
        ms.load_param_into_net(net, {"bias": ms.Parameter(t(i, i), name="bias")})
    assert compiles(f) == 1


def test_set_train_specialises_once_each():
    """D25: `set_train()` after the first call re-specialises, and coming back finds the first
    graph.
    """
    net = nn.SequentialCell(nn.Dense(3, 3), nn.Dropout(p=0.5))

    @ms.jit
    def f(x):
        return net(x)

    x = ms.Tensor(np.ones((2, 3), np.float32))
    for train in (False, True, False, True):
        net.set_train(train)
        ms.set_seed(3)
        found = f(x).asnumpy()
        ms.set_seed(3)
        np.testing.assert_array_equal(found, net(x).asnumpy())
    assert compiles(f) == 2


@pytest.mark.filterwarnings("ignore:.* is compiled for the 9th time:RuntimeWarning")
def test_the_cache_is_bounded():
    @ms.jit(dynamic=0)  # each number is compiled
    def f(x, n):
        return x + n

    bound = f.cache_info().maxsize
    for n in range(bound + 10):
        f(t(1), n)
    info = f.cache_info()
    assert info.currsize <= bound < info.misses
    assert f(t(1), 0).asnumpy().tolist() == [1]  # was dropped, is compiled again
    assert f(t(1), bound + 9).asnumpy().tolist() == [bound + 10]


def test_receivers_have_their_own_programs():
    class Net(nn.Cell):
        def __init__(self, k):
            super().__init__()
            self.k = k

        @ms.jit
        def construct(self, x):
            return x * self.k

    nets = [Net(k) for k in range(4)]
    for _ in range(3):
        assert [net(t(1)).asnumpy().tolist() for net in nets] == [[0], [1], [2], [3]]
    assert compiles(Net.construct) == 4


def test_dead_receivers_free_their_programs():
    import gc
    import weakref

    class Net(nn.Cell):
        @ms.jit
        def construct(self, x):
            return x * 2

    net = Net()
    net(t(1))
    ref = weakref.ref(net)
    del net
    gc.collect()
    assert ref() is None


def test_a_settings_change_is_part_of_the_key():
    @ms.jit
    def f(x):
        return ops.exp(x) * 2

    f(t(1))
    ms.set_context(jit_level="O0")
    f(t(1)), f(t(1))
    assert compiles(f) == 2


def test_reregistered_gradient_rule_takes_effect_at_once():
    """C21: one rule, two engines; a re-registered rule changes compiled gradients too."""
    from duograph.op import OPS
    from duograph.op_tables import rules_changed
    from duograph.ops import bprop_getters

    op = OPS["mul"]
    rule = op.bprop_rule

    @ms.jit
    def f(x):
        return (x * x).sum()

    inside = ms.jit(ms.grad(lambda x: (x * x).sum()))
    try:
        assert ms.grad(f)(t(3)).asnumpy().tolist() == [6]
        assert inside(t(3)).asnumpy().tolist() == [6]

        @bprop_getters.register(ops.Mul)
        def get_bprop(self):
            def bprop(x, y, out, dout):
                return y * dout * 100, x * dout

            return bprop

        assert ms.grad(f)(t(3)).asnumpy().tolist() == [303]
        assert inside(t(3)).asnumpy().tolist() == [303]
    finally:
        op.bprop_rule = rule
        rules_changed()
    assert ms.grad(f)(t(3)).asnumpy().tolist() == [6]


# ---- threads
# ----------------------------------------------------------------------------------------


def test_eight_threads_call_one_function():
    """Right results in every thread; each key is compiled once."""

    @ms.jit
    def f(x, n):
        for _ in range(n):
            x = ops.tanh(x * 0.5 + 1)
        return x

    wanted = {}
    for n in (1, 2, 3):
        x = ms.Tensor(X)
        for _ in range(n):
            x = ops.tanh(x * 0.5 + 1)
        wanted[n] = x.asnumpy()
    barrier = threading.Barrier(8)
    wrong, errors = [], []

    def work():
        try:
            barrier.wait()
            for i in range(30):
                n = i % 3 + 1
                if f(ms.Tensor(X), n).asnumpy().tobytes() != wanted[n].tobytes():
                    wrong.append(n)
        except Exception as error:  # noqa: BLE001 (a thread's error must reach the test)
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and not wrong
    assert compiles(f) == 3


def test_threads_with_gradients_and_state():
    net = nn.Dense(3, 2)

    @ms.jit
    def loss(x):
        return (net(x) ** 2).sum()

    step = ms.value_and_grad(loss, None, net.trainable_params())
    x = ms.Tensor(np.ones((4, 3), np.float32))
    wanted = [g.asnumpy().tobytes() for g in step(x)[1]]
    found, errors = [], []

    def work():
        try:
            for _ in range(5):
                found.append([g.asnumpy().tobytes() for g in step(x)[1]])
        except Exception as error:  # noqa: BLE001 (a thread's error must reach the test)
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert all(f == wanted for f in found) and len(found) == 40


# ---- explain and stats
# ------------------------------------------------------------------------------


def test_explain_names_reads_writes_captures_and_effects(load):
    """O09: Side-effect report per function: reads, writes, IO, randomness. N02: `explain()`."""
    space = load("""
        FACTOR = 3
        weight = ms.Parameter(ms.Tensor([1.0]), name="weight")
        count = ms.Parameter(ms.Tensor([0.0]), name="count")

        @ms.jit
        def f(x):
            print("x", x)
            ops.assign_add(count, weight)
            return ops.dropout(x * weight * FACTOR, 0.5)
    """)
    report = space["f"].explain(t(1, 2))
    assert space["count"].asnumpy().tolist() == [0]  # it compiles, and does not run
    assert {"weight", "count"} <= set(report.reads)
    assert report.writes == ["count"]
    assert any("FACTOR" in name and value == 3 for name, value in report.captures)
    assert {"io", "random"} <= set(report.effects)
    text = str(report)
    for word in ("weight", "count", "FACTOR", "io", "random"):
        assert word in text
    assert report.graph is not None and "mul" in str(report.graph)
    assert compiles(space["f"]) == 1
    space["f"](t(1, 2))
    assert compiles(space["f"]) == 1


def test_explain_names_the_field_that_differed(load):
    ms.set_context(stale_captures="recompile")
    space = load("""
        VALUE = 5

        @ms.jit
        def f(x, n=1):
            return x * n + VALUE
    """)
    f = space["f"]
    f(t(1))
    f(t(1, 2))
    f(t(1, 2), 7)
    space["VALUE"] = 6
    f(t(1, 2), 7)
    text = str(f.explain(t(1, 2), 7))
    assert "[2]" in text or "(2,)" in text  # the shape
    assert "7" in text
    assert "VALUE" in text


def test_stats_sum_over_the_process(load):
    """O04: Every fallback, break, recompile countable from Python (`jit_stats()`)."""
    ms.set_context(stale_captures="recompile")
    space = load("""
        VALUE = 5

        @ms.jit
        def counted(x):
            return x + VALUE
    """)
    before = ms.jit_stats()
    space["counted"](t(1)), space["counted"](t(1)), space["counted"](t(1, 2))
    space["VALUE"] = 6
    space["counted"](t(1, 2))
    after = ms.jit_stats()
    assert after["compiles"] - before["compiles"] == 3
    assert after["hits"] - before["hits"] == 1
    assert after["seconds"] > before["seconds"]
    assert any("VALUE" in str(r) for r in after["reasons"]["counted"])


# ---- shapes that are declared
# -----------------------------------------------------------------------


def test_input_signature():
    """D41: `input_signature`: arguments that do not fit are refused."""

    @ms.jit(input_signature=(ms.Tensor(shape=[2, None], dtype=ms.float32),))
    def f(x):
        return x.sum(axis=0)

    assert f(ms.Tensor([[1.0], [2.0]])).asnumpy().tolist() == [3]
    assert f(ms.Tensor([[1.0, 5.0], [2.0, 6.0]])).asnumpy().tolist() == [3, 11]
    with pytest.raises(ValueError, match="input_signature"):
        f(ms.Tensor([[1.0], [2.0], [3.0]]))
    with pytest.raises(ValueError, match="input_signature"):
        f(ms.Tensor([[1], [2]], ms.int32))


def test_mutable():
    """D15: `mutable(x)` makes scalars and containers run-time inputs; `dynamic_len`."""

    @ms.jit
    def f(x, k):
        return x * k

    assert [f(t(2), ms.mutable(k)).asnumpy().tolist() for k in (3, 4, 5)] == [[6], [8], [10]]
    assert compiles(f) == 1

    @ms.jit
    def total(x, ks):
        for k in ks:
            x = x + k
        return x

    found = [total(t(0), ms.mutable(ks)).asnumpy().tolist() for ks in ((1, 2), (3, 4), (5, 6))]
    assert found == [[3], [7], [11]]
    assert compiles(total) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptionWarning)  # of dynamic_len
        assert total(t(0), ms.mutable((1, 2, 3), True)).asnumpy().tolist() == [6]
    assert ms.mutable(3) + ms.mutable(2) == 5
    with pytest.raises(TypeError):
        ms.mutable("text")


def test_mutable_numbers_in_conditions(agree):
    @ms.jit
    def f(x, k):
        if k > 2:
            return x * k
        return x - k

    assert f(t(1), ms.mutable(5)).asnumpy().tolist() == [5]
    assert f(t(1), ms.mutable(1)).asnumpy().tolist() == [0]
    assert compiles(f) == 1


# ---- Cell.compile
# -----------------------------------------------------------------------------------


def test_a_compiled_cell_uses_its_graph_in_either_mode(capsys):
    """A Cell that `compile` prepared uses that graph for matching arguments, and compiles nothing
    at the call.
    """

    class Net(nn.Cell):
        def construct(self, x):
            print("run", x)
            return x * 2

    net = Net()
    net.compile(t(1, 2))
    assert capsys.readouterr().out == ""
    before = ms.jit_stats()["compiles"]
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        assert net(t(3, 4)).asnumpy().tolist() == [6, 8]
        assert "Tensor(shape=[2]" in capsys.readouterr().out  # the layout of compiled prints
    assert ms.jit_stats()["compiles"] == before
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net(t(1, 2, 3))
    assert "Tensor(shape" not in capsys.readouterr().out  # other arguments: line by line


def test_graph_mode_compiles_the_outermost_cell(capsys):
    """Plain functions run line by line in GRAPH_MODE; a Cell called from one is compiled."""
    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def construct(self, x):
            print(x)
            return x * 2

    net = Net()

    def plain(x):
        return net(x) + 1

    assert plain(t(1)).asnumpy().tolist() == [3]
    assert "Tensor(shape=[1]" in capsys.readouterr().out


def test_set_jit_config():
    net = nn.Dense(2, 1)
    net.set_jit_config(ms.JitConfig(jit_level="O0"))
    ms.set_context(mode=ms.GRAPH_MODE)
    x = ms.Tensor([[1.0, 2.0]])
    found = net(x).asnumpy()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_array_equal(found, net(x).asnumpy())


def test_set_inputs():
    net = nn.Dense(2, 1)
    net.set_inputs(ms.Tensor(shape=[None, 2], dtype=ms.float32))
    ms.set_context(mode=ms.GRAPH_MODE)
    for rows in (1, 2, 3):
        assert net(ms.Tensor(np.ones((rows, 2), np.float32))).shape == (rows, 1)


# ---- gradients and the cache
# ------------------------------------------------------------------------


def test_gradients_compile_once():
    @ms.jit
    def f(x):
        return (x * x).sum()

    grad = ms.grad(f)
    for i in range(3):
        assert grad(t(i)).asnumpy().tolist() == [2 * i]
    assert compiles(f) <= 2
    order_two = ms.grad(lambda x: ms.grad(f)(x).sum())
    assert order_two(t(3)).asnumpy().tolist() == [2]
    assert ms.jit(order_two)(t(3)).asnumpy().tolist() == [2]


def test_jit_of_a_transform():
    """C26: grad inside jit, jit inside grad, both nested."""

    def f(x):
        return (x**3).sum()

    for transform in (
        ms.jit(ms.grad(f)),
        ms.grad(ms.jit(f)),
        ms.jit(ms.grad(ms.jit(f))),
        ms.jit(lambda x: ms.grad(f)(x)),
    ):
        assert transform(t(2, 3)).asnumpy().tolist() == [12, 27]
    second = ms.jit(ms.grad(lambda x: ms.grad(f)(x).sum()))
    assert second(t(2, 3)).asnumpy().tolist() == [12, 18]
