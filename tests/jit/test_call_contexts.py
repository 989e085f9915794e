"""What surrounds a call of a compiled function: exceptions, threads, collection, settings.

D06, D35: how it is called, what stands around it
"""
# ruff: noqa: B007, BLE001, F841, SIM118, E741, PLC, S301, S307

from __future__ import annotations

import gc
import threading
import warnings
import weakref

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops
from jit.calls import Scaled, T, doubled, eq, same, table

CASES, case = table()


@case
def exc_inside():
    @ms.jit
    def f(x):
        if x.sum() > 0:
            raise ValueError("bad", 3)
        return x

    for _ in range(2):
        try:
            f(T(1))
        except ValueError as e:
            assert e.args[0] == "bad"
        else:
            assert 0
        eq(f(T(-1)), "[-1.]")


@case
def exc_const():
    @ms.jit
    def f(x, k):
        if k > 2:
            raise KeyError("k")
        return x

    for _ in range(2):
        with pytest.raises(KeyError):
            f(T(1), 3)
    eq(f(T(1), 1), "[1.]")


@case
def exc_custom():
    class My(Exception):
        pass

    @ms.jit
    def f(x):
        if x.sum() > 0:
            raise My("m")
        return x

    with pytest.raises(My):
        f(T(1))


@case
def kbint():
    n = [0]

    class K:
        @property
        def shape(self):
            n[0] += 1
            if n[0] == 1:
                raise KeyboardInterrupt
            return 2

    k = K()

    @ms.jit
    def f(x):
        return x * k.shape

    try:
        f(T(1))
    except KeyboardInterrupt:
        pass
    else:
        pass
    eq(f(T(1)), "[2.]")
    eq(T(1) * 2, "[2.]")
    eq(ops.exp(T(0)), "[1.]")


@case
def gcfn():
    def make():
        big = np.zeros(10)
        f = ms.jit(lambda x: x * 2)
        f(T(1))
        return weakref.ref(f)

    r = make()
    gc.collect()
    assert r() is None


@case
def gcnet():
    n = nn.Dense(2, 2)
    ms.jit(n)
    n(T(1, 1).reshape((1, 2)))
    r = weakref.ref(n)
    del n
    gc.collect()
    assert r() is None


@case
def gcclosure():
    def make():
        n = nn.Dense(2, 2)
        f = ms.jit(lambda x: n(x))
        f(T(1, 1).reshape((1, 2)))
        return weakref.ref(n), weakref.ref(f)

    a, b = make()
    gc.collect()
    assert a() is None and b() is None


@case
def gc_graphmode():
    ms.set_context(mode=0)
    n = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
    n(T(1, 1).reshape((1, 2)))
    r = weakref.ref(n)
    del n
    gc.collect()
    ms.set_context(mode=1)
    assert r() is None


@ms.jit
def even(x, n):
    return x if n == 0 else odd(x + 1, n - 1)


@ms.jit
def odd(x, n):
    return x * 0 if n == 0 else even(x + 1, n - 1)


@case
def mutual():
    eq(even(T(0), 6), "[6.]")
    eq(even(T(0), 5), "[0.]")


@ms.jit
def tfact(x):
    if x.sum() <= 1:
        return x
    return x * tfact(x - 1)


@case
def selfrec():
    eq(tfact(T(5)), "[120.]")


@ms.jit
def teven(x):
    if x.sum() <= 0:
        return x
    return todd(x - 1)


@ms.jit
def todd(x):
    if x.sum() <= 0:
        return x + 100
    return teven(x - 1)


@case
def tmutual():
    eq(teven(T(4)), "[0.]")
    eq(teven(T(5)), "[100.]")


@case
def endless():
    def loop(x):
        return loop(x)

    with pytest.raises(RecursionError):
        ms.jit(loop)(T(1))
    eq(doubled(T(1)), "[2.]")


@case
def threads():
    @ms.jit
    def f(x, k):
        return ops.exp(x) * k

    errs = []

    def run(i):
        try:
            for j in range(30):
                k = (i + j) % 5
                same(f(T(0, 0), k), np.array([k, k], np.float32))
                same(
                    f(ms.Tensor(np.zeros((1 + j % 4,), np.float32)), k),
                    np.full((1 + j % 4,), k, np.float32),
                )
        except Exception as e:
            errs.append(e)

    ts = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    assert not errs, errs[:2]


@case
def threads_nets():
    net = nn.Dense(3, 3)
    ms.set_context(mode=0)
    errs = []
    x = ms.Tensor(np.ones((2, 3), np.float32))
    want = net(x).asnumpy()

    def run(i):
        try:
            for j in range(20):
                same(net(x), want)
                g = ms.grad(net)(x)
        except Exception as e:
            errs.append(e)

    ts = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    ms.set_context(mode=1)
    assert not errs, errs[:2]


@case
def ctx_changes():
    f = ms.jit(lambda x: x / 3)
    a = f(T(1))
    for kw in (
        {"mode": 0},
        {"jit_level": "O0"},
        {"jit_level": "O1"},
        {"jit_level": ""},
        {"mode": 1},
        {"device_target": "CPU"},
    ):
        ms.set_context(**kw)
        same(f(T(1)), a)


@case
def ctx_jit_off():
    log = []

    @ms.jit
    def f(x):
        log.append(1)
        return x

    ms.set_context(jit=False)
    f(T(1))
    f(T(1))
    ms.set_context(jit=True)
    f(T(1))
    f(T(1))
    assert len(log) == 4, log


@case
def setinputs():
    n = nn.Dense(2, 2)
    n.set_inputs(Tensor(shape=[None, 2], dtype=ms.float32))
    ms.set_context(mode=0)
    assert n(ops.ones((3, 2), ms.float32)).shape == (3, 2)
    ms.set_context(mode=1)


@case
def cell_compile_then_other_shape():
    n = nn.ReLU()
    n.compile(T(1, 2))
    eq(n(T(1, -2, 3)), "[1. 0. 3.]")
    eq(n(T(1, -2)), "[1. 0.]")


@case
def cell_compile_kwargs():
    class A(nn.Cell):
        def construct(self, x, k=1, *, m=0):
            return x * k + m

    a = A()
    a.compile(T(1), k=3, m=1)
    eq(a(T(1), k=3, m=1), "[4.]")
    eq(a(T(1)), "[1.]")


@case
def cell_bad_call():
    ms.set_context(mode=0)
    try:
        for args in ((), (T(1), T(2))):
            with pytest.raises(TypeError):
                nn.ReLU()(*args)
    finally:
        ms.set_context(mode=1)


@case
def grad_inside_thread_during_compile():
    f = ms.jit(lambda x: (ops.exp(x) * x).sum())
    out = []

    def run():
        out.append(str(ms.grad(f)(T(0, 1))))

    ts = [threading.Thread(target=run) for _ in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    assert len(set(out)) == 1 and len(out) == 4, out


@case
def interrupted_state():
    class Boom(BaseException):
        pass

    @ms.jit
    def f(x):
        raise_it()
        return x

    def raise_it():
        raise Boom

    for _ in range(2):
        with pytest.raises(Boom):
            f(T(1))
    eq(doubled(T(1)), "[2.]")
    eq(ops.neg(T(1)), "[-1.]")


@case
def explain_api():
    e = doubled.explain(T(1, 2, 3))
    assert "doubled" in str(e)
    s = Scaled()
    str(Scaled.construct.explain(s, T(1, 1)))

    def g(x):
        def y():
            yield 1

        return sum(y()) * x

    h = ms.jit(g)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        e = h.explain(T(1))
    assert e.line_by_line


@case
def explain_method_bound():
    s = Scaled()
    assert "reads" in str(s.construct.explain(T(1, 1)))


@case
def negative_cache_then_ok():
    def g(x, k):
        if k:

            def y():
                yield 1

            return sum(y()) * x
        return x * 2

    h = ms.jit(g)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eq(h(T(3), True), "[3.]")
    eq(h(T(3), False), "[6.]")
    assert h.cache_info().misses == 1


@case
def param_shape_change():
    n = Scaled()
    n(T(1, 1))
    n.w.set_data(T(1, 2, 3), slice_shape=True)
    eq(n(T(1, 1, 1)), "[3. 4. 5.]")


@case
def add_child_later():
    class A(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = nn.ReLU()

        @ms.jit
        def construct(self, x):
            return self.a(x)

    a = A()
    eq(a(T(-1)), "[0.]")
    a.a = nn.Sigmoid()
    eq(a(T(0)), "[0.5]")


@case
def celllist_grow():
    class A(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = nn.CellList([nn.ReLU()])

        @ms.jit
        def construct(self, x):
            for l in self.a:
                x = l(x) + 1
            return x

    a = A()
    eq(a(T(-1)), "[1.]")
    a.a.append(nn.ReLU())
    eq(a(T(-1)), "[2.]")


@case
def hook_later():
    n = Scaled()
    n(T(1, 1))
    log = []
    n.register_forward_hook(lambda c, i, o: log.append(1))
    n(T(1, 1))
    assert log == [1]


@case
def construct_kw_graph():
    ms.set_context(mode=0)

    class A(nn.Cell):
        def construct(self, x, y=None, *rest, flag=False, **kw):
            return x if y is None else x * y + len(rest) + len(kw)

    a = A()
    eq(a(T(2)), "[2.]")
    eq(a(T(2), T(3)), "[6.]")
    eq(a(T(2), T(3), 1, 2, q=1), "[9.]")
    eq(a(T(2), y=T(3), flag=True), "[6.]")
    ms.set_context(mode=1)


class Chain(nn.Cell):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    @ms.jit
    def construct(self, x):
        return self.inner(x)


class Each(Chain):
    @ms.jit
    def construct(self, x):
        for layer in self.inner:
            x = layer(x) + 1
        return x


class Keys(Chain):
    @ms.jit
    def construct(self, x):
        for key in self.inner.keys():
            x = self.inner[key](x) + 1
        return x * len(self.inner)


class Own(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()

    @ms.jit
    def construct(self, x):
        for layer in self.cells():
            x = layer(x) + 1
        for p in self.trainable_params():
            x = x + p
        return x


CHANGES = {
    "sequence": (
        lambda: Chain(nn.SequentialCell(nn.ReLU())),
        [
            lambda n: n.inner.append(nn.Sigmoid()),
            lambda n: n.inner.__setitem__(0, nn.Tanh()),
            lambda n: n.inner.__delitem__(1),
        ],
    ),
    "list": (
        lambda: Each(nn.CellList([nn.ReLU()])),
        [
            lambda n: n.inner.append(nn.Sigmoid()),
            lambda n: n.inner.extend([nn.Tanh()]),
            lambda n: n.inner.insert(0, nn.Sigmoid()),
            lambda n: n.inner.__delitem__(0),
            lambda n: n.inner.__setitem__(0, nn.Tanh()),
            lambda n: setattr(n, "inner", nn.CellList([nn.Tanh()])),
        ],
    ),
    "dict": (
        lambda: Keys(nn.CellDict({"a": nn.ReLU()})),
        [
            lambda n: n.inner.update({"b": nn.Sigmoid()}),
            lambda n: n.inner.pop("a"),
            lambda n: n.inner.clear(),
        ],
    ),
    "members": (
        Own,
        [
            lambda n: setattr(n, "b", nn.Sigmoid()),
            lambda n: setattr(n, "p", Parameter(T(3), name="p")),
            lambda n: setattr(n.p, "requires_grad", False),
            lambda n: delattr(n, "b"),
        ],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_adding_or_removing_a_subcell_is_seen(name):
    """D23: a layer that is added, taken out or put in place of another is seen at the next call."""
    make, changes = CHANGES[name]
    net = make()
    plain = type(net).construct.function
    for change in [lambda n: None, *changes]:
        change(net)
        for _ in range(2):
            same(net(T(-3, 2)), plain(net, T(-3, 2)))


@pytest.mark.filterwarnings("ignore:.* is compiled for the 9th time:RuntimeWarning")
@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("name", CASES)
def test_call_context(name):
    CASES[name]()
