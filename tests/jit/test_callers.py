"""What a caller can do to a compiled function: copies, threads, classes, arguments of all kinds.

D05, D06, D07, D33, D34, D35: what may be compiled, how it is called, what stands around it
"""
# ruff: noqa: B006, B007, B008, BLE001, E742, F821, F841, SIM105, SIM118, SIM223, UP031, B023, E741, PLC, S301, S307

from __future__ import annotations

import abc
import collections
import copy
import dataclasses
import enum
import functools
import gc
import inspect
import pickle
import threading
import typing
import warnings
import weakref
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops


def T(*v):
    return ms.Tensor(list(v), ms.float32)


CASES: dict[str, Any] = {}


def case(function):
    assert function.__name__ not in CASES
    CASES[function.__name__] = function
    return function


def same(a, b):
    a, b = (x.asnumpy() if isinstance(x, Tensor) else x for x in (a, b))
    assert np.array_equal(a, b), (a, b)


def eq(a, b):
    assert str(a) == str(b), (str(a), str(b))


class Scaled(nn.Cell):
    def __init__(self, k=2):
        super().__init__()
        self.k = k
        self.w = Parameter(T(1, 2), name="w")

    @ms.jit
    def construct(self, x):
        return x * self.k + self.w


@case
def deepcopy_cell():
    a = Scaled()
    eq(a(T(1, 1)), "[3. 4.]")
    b = copy.deepcopy(a)
    b.k = 5
    b.w.set_data(T(0, 0))
    eq(b(T(1, 1)), "[5. 5.]")
    eq(a(T(1, 1)), "[3. 4.]")


@case
def copy_cell():
    a = Scaled()
    a(T(1, 1))
    b = copy.copy(a)
    b.k = 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = b(T(1, 1))
    eq(a(T(1, 1)), "[3. 4.]")
    eq(r, "[6. 7.]")


@case
def pickle_cell():
    a = Scaled()
    a(T(1, 1))
    b = pickle.loads(pickle.dumps(a))
    eq(b(T(1, 1)), "[3. 4.]")


@case
def pickle_graph_cell():
    a = nn.Dense(2, 2)
    a.compile(T(1, 1).reshape((1, 2)))
    b = pickle.loads(pickle.dumps(a))
    same(a(T(1, 1).reshape((1, 2))), b(T(1, 1).reshape((1, 2))))


@case
def pickle_function():
    f = pickle.loads(pickle.dumps(MODULE_FN))
    eq(f(T(1)), "[2.]")


@ms.jit
def MODULE_FN(x):
    return x * 2


@case
def deepcopy_function():
    f = copy.deepcopy(MODULE_FN)
    eq(f(T(1)), "[2.]")
    assert copy.copy(MODULE_FN)(T(2)).asnumpy()[0] == 4


class Sub(Scaled):
    def construct(self, x):
        return super().construct(x) + 100


class Sub2(Scaled):
    @ms.jit
    def construct(self, x):
        return super().construct(x) + 100


class Sub3(Scaled):
    pass


@case
def subclass_plain():
    eq(Sub()(T(1, 1)), "[103. 104.]")


@case
def subclass_jit():
    eq(Sub2()(T(1, 1)), "[103. 104.]")
    eq(Sub2(3)(T(1, 1)), "[104. 105.]")


@case
def subclass_inherits():
    a = Sub3(7)
    eq(a(T(1, 1)), "[8. 9.]")
    eq(Sub3(1)(T(1, 1)), "[2. 3.]")


class Util:
    f = 3

    @staticmethod
    @ms.jit
    def st(x):
        return x * 2

    @ms.jit
    @staticmethod
    def st2(x):
        return x * 2

    @classmethod
    @ms.jit
    def cl(cls, x):
        return x * cls.f

    @ms.jit
    @classmethod
    def cl2(cls, x):
        return x * cls.f

    @property
    @ms.jit
    def prop(self):
        return ops.ones((2,), ms.float32) * self.f

    @ms.jit
    def __call__(self, x):
        return x * self.f

    @functools.cached_property
    def later(self):
        return ms.jit(self.plain)

    def plain(self, x):
        return x + self.f


class Util2(Util):
    f = 10


@case
def static():
    eq(Util.st(T(1)), "[2.]")
    eq(Util().st(T(1)), "[2.]")
    eq(Util.st2(T(1)), "[2.]")
    eq(Util().st2(T(1)), "[2.]")


@case
def classm():
    eq(Util.cl(T(1)), "[3.]")
    eq(Util().cl(T(1)), "[3.]")
    eq(Util2.cl(T(1)), "[10.]")
    eq(Util.cl(T(1)), "[3.]")
    eq(Util2.cl2(T(1)), "[10.]")
    eq(Util.cl2(T(1)), "[3.]")


@case
def prop():
    eq(Util().prop, "[3. 3.]")
    eq(Util2().prop, "[10. 10.]")


@case
def callobj():
    eq(Util()(T(1)), "[3.]")
    eq(Util2()(T(1)), "[10.]")
    eq(ms.jit(Util())(T(1)), "[3.]")


@case
def cachedp():
    eq(Util().later(T(1)), "[4.]")
    eq(Util2().later(T(1)), "[11.]")


@case
def partial():
    f = ms.jit(functools.partial(lambda a, b, c=1: a * b + c, T(2), c=5))
    eq(f(T(3)), "[11.]")
    eq(f(T(3), c=0), "[6.]")


@case
def partial_of_jit():
    eq(functools.partial(MODULE_FN)(T(1)), "[2.]")
    eq(functools.partial(ms.jit(lambda a, b: a - b), b=T(1))(T(3)), "[2.]")


@case
def partialmethod():
    class A:
        def f(self, x, k):
            return x * k

        g = functools.partialmethod(f, k=3)

    eq(ms.jit(A().g)(T(1)), "[3.]")


@case
def lam():
    eq(ms.jit(lambda x: x * 2)(T(1)), "[2.]")
    eq((ms.jit(lambda x: x * 3), ms.jit(lambda x: x * 4))[1](T(1)), "[4.]")
    eq([ms.jit(lambda x, k=k: x * k) for k in (1, 2, 3)][2](T(1)), "[3.]")


@case
def lam2():
    fs = {"a": lambda x: x + 1, "b": lambda x: x + 2}
    eq(ms.jit(fs["b"])(T(1)), "[3.]")
    eq(ms.jit(fs["a"])(T(1)), "[2.]")


@case
def bound():
    u = Util()
    g = ms.jit(u.plain)
    eq(g(T(1)), "[4.]")
    assert g.__self__ is u


@case
def bound_two():
    a, b = Util(), Util2()
    g, h = ms.jit(a.plain), ms.jit(b.plain)
    eq(g(T(1)), "[4.]")
    eq(h(T(1)), "[11.]")


@case
def jit_of_jit():
    assert ms.jit(MODULE_FN) is MODULE_FN


@case
def jit_class_refused():
    try:
        ms.jit(Util)
    except TypeError:
        pass
    else:
        assert 0


@case
def jit_builtin():
    for f in (len, np.sin, 3, None and 0, "x", print):
        if f is None:
            continue
        try:
            ms.jit(f)
        except TypeError:
            pass
        else:
            assert 0, f


@case
def jit_op():
    eq(ms.jit(ops.relu)(T(-1, 1)), "[0. 1.]")
    eq(ms.jit(ops.ReLU())(T(-1, 1)), "[0. 1.]")


@case
def jit_cell():
    n = nn.ReLU()
    g = ms.jit(n)
    eq(g(T(-1, 1)), "[0. 1.]")
    eq(n(T(-1, 1)), "[0. 1.]")


@case
def jit_grad():
    eq(ms.jit(ms.grad(lambda x: (x * x).sum()))(T(1, 2)), "[2. 4.]")


@case
def jit_vmap():
    eq(ms.jit(ms.vmap(lambda a: a * 2))(T(1, 2)), "[2. 4.]")


@case
def vmap_jit():
    eq(ms.vmap(ms.jit(lambda a: a * 2))(T(1, 2)), "[2. 4.]")


@case
def kwonly():
    f = ms.jit(lambda x, *, k, m=2: x * k + m)
    eq(f(T(1), k=3), "[5.]")
    eq(f(T(1), k=4, m=0), "[4.]")
    eq(f(x=T(1), k=3), "[5.]")


@case
def posonly():
    def f(x, /, y):
        return x - y

    g = ms.jit(f)
    eq(g(T(3), T(1)), "[2.]")
    eq(g(T(3), y=T(1)), "[2.]")
    try:
        g(x=T(3), y=T(1))
    except TypeError:
        pass
    else:
        assert 0


@case
def varargs():
    def f(*a, **k):
        return sum(a), sorted(k), [v for v in k.values()]

    g = ms.jit(f)
    a, b, c = g(T(1), T(2), q=T(5), z=3)
    eq(a, "[3.]")
    assert b == ["q", "z"]
    eq(c[0], "[5.]")


@case
def kwargs_order():
    f = ms.jit(lambda **k: list(k))
    assert f(a=T(1), b=T(2)) == ["a", "b"]
    assert f(b=T(1), a=T(2)) == ["b", "a"]


@case
def defaults():
    def f(x, k=[1], y=T(2)):
        k.append(1)
        return x * len(k) + y

    g = ms.jit(f)
    eq(g(T(1)), "[4.]")
    eq(g(T(1)), "[5.]")
    assert len(f.__defaults__[0]) == 3


@case
def enum_arg():
    class E(enum.Enum):
        A = 1
        B = 2

    f = ms.jit(lambda x, e: x * e.value if e is E.A else x * 10)
    eq(f(T(1), E.A), "[1.]")
    eq(f(T(1), E.B), "[10.]")


@case
def dtype_arg():
    f = ms.jit(lambda x, d: x.astype(d))
    assert f(T(1), ms.int32).dtype == ms.int32
    assert f(T(1), ms.float16).dtype == ms.float16


@case
def dc_arg():
    @dataclasses.dataclass
    class C:
        a: object
        n: int = 1

    def f(x, c):
        return x * c.n + c.a

    g = ms.jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eq(g(T(1), C(T(2), 3)), "[5.]")
        eq(g(T(1), C(T(7), 3)), "[10.]")
        eq(g(T(1), C(T(7), 4)), "[11.]")


@case
def dc_frozen_arg():
    @dataclasses.dataclass(frozen=True)
    class C:
        n: int = 1

    g = ms.jit(lambda x, c: x * c.n)
    eq(g(T(1), C(3)), "[3.]")
    eq(g(T(1), C(4)), "[4.]")
    eq(g(T(1), C(3)), "[3.]")
    assert g.cache_info().misses == 2


@case
def dc_same_object_changed():
    @dataclasses.dataclass
    class C:
        n: int = 1

    c = C(2)
    g = ms.jit(lambda x, c: x * c.n)
    eq(g(T(1), c), "[2.]")
    c.n = 3
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        r = g(T(1), c)
    assert str(r) == "[3.]" or w, str(r)


@case
def nt_arg():
    P = collections.namedtuple("P", "a b")
    g = ms.jit(lambda p: P(p.b, p.a))
    r = g(P(T(1), 2))
    assert type(r) is P and r.a == 2
    eq(r.b, "[1.]")


@case
def str_arg():
    g = ms.jit(lambda x, s: x if s == "a" else -x)
    eq(g(T(1), "a"), "[1.]")
    eq(g(T(1), "b"), "[-1.]")


@case
def none_arg():
    g = ms.jit(lambda x, m=None: x if m is None else x * m)
    eq(g(T(1)), "[1.]")
    eq(g(T(1), T(5)), "[5.]")
    eq(g(T(1), None), "[1.]")


@case
def ret_none():
    assert ms.jit(lambda x: None)(T(1)) is None
    assert ms.jit(lambda: None)() is None


@case
def ret_misc():
    r = ms.jit(lambda x: {"a": [x, {"b": (1, "s", None, ms.float32)}]})(T(1))
    assert r["a"][1]["b"] == (1, "s", None, ms.float32)


@case
def ret_param():
    p = Parameter(T(1), name="p")
    f = ms.jit(lambda x: (p, x))
    assert f(T(1))[0] is p


@case
def ret_self():
    n = Scaled()

    class A(nn.Cell):
        @ms.jit
        def construct(self, x):
            return self, x

    a = A()
    assert a(T(1))[0] is a


@case
def ret_arg():
    f = ms.jit(lambda x: x)
    t = T(1)
    assert f(t) is t or np.array_equal(f(t).asnumpy(), t.asnumpy())


@case
def ret_fn():
    def k(x):
        return x

    assert ms.jit(lambda x: k)(T(1)) is k


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
        try:
            f(T(1), 3)
        except KeyError:
            pass
        else:
            assert 0
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

    try:
        f(T(1))
    except My:
        pass
    else:
        assert 0


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

    try:
        ms.jit(loop)(T(1))
    except RecursionError:
        pass
    else:
        assert 0
    eq(MODULE_FN(T(1)), "[2.]")


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
def hugetree():
    tree = {"k%d" % i: [T(i), (T(i), i)] for i in range(200)}
    f = ms.jit(lambda t: sum(v[0] + v[1][0] * v[1][1] for v in t.values()))
    want = f.function(tree)
    same(f(tree), want)
    same(f(tree), want)
    assert f.cache_info().misses == 1


@case
def deeptree():
    t = T(1)
    for _ in range(60):
        t = [t]
    f = ms.jit(lambda t: t)
    try:
        r = f(t)
    except Exception as e:
        assert not isinstance(e, (AttributeError, KeyError)), repr(e)


@case
def selfcontaining():
    l = [T(1)]
    l.append(l)
    try:
        ms.jit(lambda l: l[0])(l)
    except (RecursionError, TypeError, ValueError):
        pass


@case
def manyargs():
    f = ms.jit(lambda *a: a[0] + a[-1])
    eq(f(*[T(i) for i in range(300)]), "[299.]")


@case
def signature_in():
    f = ms.jit(lambda x: x * 2, input_signature=Tensor(shape=[None, 2], dtype=ms.float32))
    assert f(ops.ones((3, 2), ms.float32)).shape == (3, 2)
    assert f(ops.ones((4, 2), ms.float32)).shape == (4, 2)
    try:
        f(ops.ones((3, 3), ms.float32))
    except ValueError:
        pass
    else:
        assert 0


@case
def setinputs():
    n = nn.Dense(2, 2)
    n.set_inputs(Tensor(shape=[None, 2], dtype=ms.float32))
    ms.set_context(mode=0)
    assert n(ops.ones((3, 2), ms.float32)).shape == (3, 2)
    ms.set_context(mode=1)


@case
def mutables():
    f = ms.jit(lambda x, t: x * t[0] + t[1])
    eq(f(T(1), ms.mutable((2, 3))), "[5.]")
    eq(f(T(1), ms.mutable((4, 5))), "[9.]")
    assert f.cache_info().misses == 1
    g = ms.jit(lambda d: d["a"] + d["b"])
    assert g(ms.mutable({"a": 1, "b": 2})) == 3
    assert g(ms.mutable({"a": 4, "b": 2})) == 6
    assert g.cache_info().misses == 1


@case
def attrs():
    f = MODULE_FN
    assert f.__name__ == "MODULE_FN" and f.__wrapped__ is f.function and f.__module__ == __name__
    f.extra = 3
    assert f.extra == 3
    assert "MODULE_FN" in repr(f)


@case
def annotations():
    def f(x: Tensor, k: int = 2) -> Tensor:
        "doc"
        y: Tensor = x * k
        return y

    g = ms.jit(f)
    assert g.__doc__ == "doc"
    assert str(inspect.signature(g)) == str(inspect.signature(f))
    eq(g(T(1)), "[2.]")


@case
def wraps_decorated():
    def deco(fn):
        @functools.wraps(fn)
        def inner(*a, **k):
            return fn(*a, **k) + 1

        return inner

    @ms.jit
    @deco
    def f(x):
        return x * 2

    eq(f(T(1)), "[3.]")

    @deco
    @ms.jit
    def g(x):
        return x * 2

    eq(g(T(1)), "[3.]")


@case
def wraps_two():
    def deco(k):
        def d(fn):
            @functools.wraps(fn)
            def inner(*a):
                return fn(*a) * k

            return inner

        return d

    f = ms.jit(deco(2)(lambda x: x + 1))
    g = ms.jit(deco(3)(lambda x: x + 1))
    eq(f(T(1)), "[4.]")
    eq(g(T(1)), "[6.]")


@case
def lru():
    f = functools.lru_cache(ms.jit(lambda n: ops.ones((n,), ms.float32)))
    eq(f(2), "[1. 1.]")
    eq(f(2), "[1. 1.]")


@case
def singledispatch():
    @functools.singledispatch
    def h(x):
        return x * 2

    @h.register
    def _(x: int):
        return x * 100

    @ms.jit
    def f(x, k):
        return h(x) + h(k)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eq(f(T(1), 1), "[102.]")


@case
def generic_class():
    X = typing.TypeVar("X")

    class G(typing.Generic[X]):
        def __init__(self, k):
            self.k = k

        @ms.jit
        def f(self, x):
            return x * self.k

    eq(G[int](3).f(T(1)), "[3.]")


@case
def slots():
    class S:
        __slots__ = ("k",)

        def __init__(self, k):
            self.k = k

        @ms.jit
        def f(self, x):
            return x * self.k

    a, b = S(2), S(3)
    eq(a.f(T(1)), "[2.]")
    eq(b.f(T(1)), "[3.]")
    eq(a.f(T(1)), "[2.]")


@case
def hash_eq():
    class S:
        def __init__(self, k):
            self.k = k

        def __eq__(self, o):
            return True

        def __hash__(self):
            return 1

        @ms.jit
        def f(self, x):
            return x * self.k

    a, b = S(2), S(3)
    eq(a.f(T(1)), "[2.]")
    eq(b.f(T(1)), "[3.]")
    g = ms.jit(lambda x, s: x * s.k)
    eq(g(T(1), a), "[2.]")
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        r = g(T(1), b)
    assert str(r) == "[3.]" or w, str(r)


@case
def abcs():
    class B(abc.ABC):
        @abc.abstractmethod
        def k(self): ...
        @ms.jit
        def f(self, x):
            return x * self.k()

    class C(B):
        def k(self):
            return 4

    eq(C().f(T(1)), "[4.]")


@case
def getattr_dyn():
    class D:
        def __getattr__(self, n):
            if n.startswith("k"):
                return int(n[1:])
            raise AttributeError(n)

    d = D()
    f = ms.jit(lambda x: x * d.k7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eq(f(T(1)), "[7.]")


@case
def setattr_override():
    n = Scaled()
    n(T(1, 1))
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        n.k = 5
        r = n(T(1, 1))
    assert str(r) == "[3. 4.]" and w


@case
def swap_method():
    class A(nn.Cell):
        def construct(self, x):
            return x * 2

    a = A()
    a.construct = ms.jit(lambda x: x * 5)
    eq(a(T(1)), "[5.]")


@case
def monkeypatch_class():
    class A(nn.Cell):
        def construct(self, x):
            return x * 2

    A.construct = ms.jit(A.construct)
    eq(A()(T(1)), "[2.]")


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
            try:
                nn.ReLU()(*args)
            except TypeError:
                pass
            else:
                assert 0
    finally:
        ms.set_context(mode=1)


@case
def params_as_args():
    p = Parameter(T(1, 2), name="p")
    f = ms.jit(lambda a: a * 2)
    eq(f(p), "[2. 4.]")

    @ms.jit
    def g(a):
        ops.assign(a, a * 3)
        return a + 0

    eq(g(p), "[3. 6.]")
    eq(p, "[3. 6.]") if False else same(p, np.array([3, 6], np.float32))


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
def nested_jit_options():
    inner = ms.jit(lambda x: x * float(x.asnumpy()[0]))
    outer = ms.jit(lambda x: inner(x) + 1, fullgraph=True)
    try:
        outer(T(2))
    except RuntimeError:
        pass
    else:
        assert 0, "strict outer ran lax inner"


@case
def exec_fn():
    ns = {"ms": ms, "ops": ops}
    exec("@ms.jit\ndef f(x):\n    return ops.exp(x)*2\n", ns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eq(ns["f"](T(0)), "[2.]")


@case
def eval_lambda():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eq(ms.jit(eval("lambda x: x*2"))(T(1)), "[2.]")


@case
def redefine():
    fs = []
    for k in (1, 2):

        @ms.jit
        def f(x):
            return x * k

        fs.append(f)
    eq(fs[1](T(1)), "[2.]")


@case
def closure_cell_late():
    def make():
        @ms.jit
        def f(x):
            return g(x) + 1

        def g(x):
            return x * 2

        return f

    eq(make()(T(1)), "[3.]")


@case
def global_late():
    @ms.jit
    def f(x):
        return LATE_FN(x)

    try:
        f(T(1))
    except NameError:
        pass
    else:
        assert 0
    globals()["LATE_FN"] = lambda x: x * 9
    eq(f(T(1)), "[9.]")


@case
def empty_fn():
    @ms.jit
    def f(x):
        pass

    assert f(T(1)) is None


@case
def only_doc():
    @ms.jit
    def f(x):
        "doc"

    assert f(T(1)) is None


@case
def noargs():
    f = ms.jit(lambda: ops.ones((2,), ms.float32))
    eq(f(), "[1. 1.]")
    a = f()
    a[0] = 5
    eq(f(), "[1. 1.]")


@case
def result_not_shared():
    c = T(1, 2)
    f = ms.jit(lambda x: (x + 0, c))
    r = f(T(1, 1))
    r[0][0] = 9
    eq(f(T(1, 1))[0], "[1. 1.]")
    assert f(T(1, 1))[1] is c


@case
def const_result_alias():
    f = ms.jit(lambda x: Tensor([1.0, 2.0]))
    a = f(T(1))
    a[0] = 7
    eq(f(T(1)), "[1. 2.]")


@case
def np_arg():
    f = ms.jit(lambda x, a: x + Tensor(a))
    eq(f(T(1, 2), np.array([1, 1], np.float32)), "[2. 3.]")
    eq(f(T(1, 2), np.array([5, 1], np.float32)), "[6. 3.]")


@case
def np_scalar_arg():
    f = ms.jit(lambda x, a: x * a)
    eq(f(T(1), np.float32(2)), "[2.]")
    eq(f(T(1), np.int64(3)), "[3.]")


@case
def set_arg():
    f = ms.jit(lambda x, s: x * len(s))
    eq(f(T(1), {1, 2}), "[2.]")
    eq(f(T(1), {1, 2, 3}), "[3.]")


@case
def iter_arg():
    f = ms.jit(lambda xs: sum(xs))
    eq(f([T(1), T(2)]), "[3.]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eq(f(iter([T(1), T(2)])), "[3.]")
        eq(f(iter([T(5), T(2)])), "[7.]")


@case
def gen_arg():
    f = ms.jit(lambda xs: sum(xs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eq(f(v for v in [T(1), T(2)]), "[3.]")
        eq(f(v for v in [T(5), T(2)]), "[7.]")


@case
def fn_arg():
    f = ms.jit(lambda g, x: g(x))
    eq(f(ops.neg, T(1)), "[-1.]")
    eq(f(lambda v: v * 3, T(1)), "[3.]")
    eq(f(lambda v: v * 4, T(1)), "[4.]")


@case
def cell_arg():
    f = ms.jit(lambda n, x: n(x))
    a, b = nn.ReLU(), nn.Sigmoid()
    eq(f(a, T(-1)), "[0.]")
    eq(f(b, T(0)), "[0.5]")


@case
def cls_arg():
    f = ms.jit(lambda c, x: isinstance(x, c))
    assert f(Tensor, T(1)) is True
    assert f(int, T(1)) is False


@case
def range_slice_arg():
    f = ms.jit(lambda x, s: x[s])
    eq(f(T(1, 2, 3), slice(0, 2)), "[1. 2.]")
    eq(f(T(1, 2, 3), slice(1, 3)), "[2. 3.]")


@case
def odict_arg():
    f = ms.jit(
        lambda d: [k for k in d],
    )
    d = collections.OrderedDict(a=T(1), b=T(2))
    assert f(d) == ["a", "b"]
    g = ms.jit(lambda d: d["a"] * 2)
    eq(g(collections.OrderedDict(a=T(1))), "[2.]")
    eq(g(collections.OrderedDict(a=T(4))), "[8.]")


@case
def listsub_arg():
    class L(list):
        pass

    g = ms.jit(lambda d: d[0] * 2)
    eq(g(L([T(1)])), "[2.]")
    eq(g(L([T(4)])), "[8.]")


@case
def intsub_arg():
    class I(int):
        pass

    class E(enum.IntEnum):
        A = 2
        B = 3

    g = ms.jit(lambda x, d: x * d)
    eq(g(T(1), I(2)), "[2.]")
    eq(g(T(1), I(3)), "[3.]")
    eq(g(T(1), E.A), "[2.]")
    eq(g(T(1), E.B), "[3.]")


@case
def boolint():
    g = ms.jit(lambda x, d: (x * d, type(d).__name__))
    assert g(T(1), True)[1] == "bool"
    assert g(T(1), 1)[1] == "int"


@case
def big_int():
    g = ms.jit(lambda x, d: d + 1)
    assert g(T(1), 10**30) == 10**30 + 1


@case
def float_nan():
    g = ms.jit(lambda x, d: x * d)
    g(T(1), float("nan"))
    g(T(1), float("nan"))
    assert g.cache_info().misses == 1


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
        try:
            f(T(1))
        except Boom:
            pass
        else:
            assert 0
    eq(MODULE_FN(T(1)), "[2.]")
    eq(ops.neg(T(1)), "[-1.]")


@case
def explain_api():
    e = MODULE_FN.explain(T(1, 2, 3))
    assert "MODULE_FN" in str(e)
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
    assert (
        "reads" in str(s.construct.explain(s, T(1, 1))) if hasattr(s.construct, "explain") else True
    )


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
def async_fn():
    @ms.jit
    async def f(x):
        return x

    with pytest.warns(RuntimeWarning, match="AsyncFunctionDef"):
        f(T(1)).close()


@case
def gen_fn():
    @ms.jit
    def f(x):
        yield x
        yield x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eq(list(f(T(1)))[1], "[2.]")


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


@case
def target_line_by_line():
    class Obj:
        def __call__(self, x, k=1):
            def gen():
                yield x

            return sum(gen()) * k

    f = functools.partial(Obj(), k=3)
    with pytest.warns(RuntimeWarning, match="line by line"):
        eq(ms.jit(Obj())(T(2)), "[2.]")
    with pytest.warns(RuntimeWarning, match="line by line"):
        eq(ms.jit(f)(T(2)), "[6.]")
    ms.set_context(jit=False)
    eq(ms.jit(functools.partial(lambda x, k: x * k, k=3))(T(2)), "[6.]")
    eq(ms.jit(Util())(T(1)), "[3.]")


CHANGES = {
    "sequence": (
        lambda: Chain(nn.SequentialCell(nn.ReLU())),
        [
            lambda n: n.inner.append(nn.Sigmoid()), lambda n: n.inner.__setitem__(0, nn.Tanh()),
            lambda n: n.inner.__delitem__(1),
        ],
    ),
    "list": (
        lambda: Each(nn.CellList([nn.ReLU()])),
        [
            lambda n: n.inner.append(nn.Sigmoid()), lambda n: n.inner.extend([nn.Tanh()]),
            lambda n: n.inner.insert(0, nn.Sigmoid()), lambda n: n.inner.__delitem__(0),
            lambda n: n.inner.__setitem__(0, nn.Tanh()), lambda n: setattr(n, "inner", nn.CellList([nn.Tanh()])),
        ],
    ),
    "dict": (
        lambda: Keys(nn.CellDict({"a": nn.ReLU()})),
        [lambda n: n.inner.update({"b": nn.Sigmoid()}), lambda n: n.inner.pop("a"), lambda n: n.inner.clear()],
    ),
    "members": (
        Own,
        [
            lambda n: setattr(n, "b", nn.Sigmoid()), lambda n: setattr(n, "p", Parameter(T(3), name="p")),
            lambda n: setattr(n.p, "requires_grad", False), lambda n: delattr(n, "b"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_which_cells_are_in_a_cell_is_part_of_the_key(name):
    """D23: a layer that is added, taken out or put in place of another is seen at the next call."""
    make, changes = CHANGES[name]
    net = make()
    plain = type(net).construct.function
    for change in [lambda n: None, *changes]:
        change(net)
        for _ in range(2):
            same(net(T(-3, 2)), plain(net, T(-3, 2)))


COPIES = {
    "copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda net: pickle.loads(pickle.dumps(net)),
}  # fmt: skip


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("made", ["jit", "compile", "plain"])
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_a_cell_is_compiled_for_itself(way, made, mode):
    ms.set_context(mode=mode)
    x = T(2).reshape((1, 1))
    net = nn.Dense(1, 1, weight_init="ones", bias_init="zeros")
    if made == "jit":
        ms.jit(net)
    elif made == "compile":
        net.compile(x)
    eq(net(x), "[[2.]]")
    other = COPIES[way](net)
    other.weight = Parameter(T(5).reshape((1, 1)), name="weight")
    if way == "copy":
        net.weight = Parameter(
            T(1).reshape((1, 1)), name="weight"
        )  # members are shared by a shallow copy
        return
    for _ in range(2):
        eq(other(x), "[[10.]]")
        eq(net(x), "[[2.]]")


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("made", ["jit", "compile", "plain"])
def test_a_shallow_copy_has_attributes_of_its_own(made, mode):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.k = 2

        def construct(self, x):
            return x * self.k

    ms.set_context(mode=mode)
    net = Net()
    if made == "jit":
        ms.jit(net)
    elif made == "compile":
        net.compile(T(1))
    eq(net(T(1)), "[2.]")
    other = copy.copy(net)
    other.k = 5
    for _ in range(2):
        eq(other(T(1)), "[5.]")
        eq(net(T(1)), "[2.]")


@pytest.mark.parametrize("name", CASES)
def test_program(name):
    try:
        CASES[name]()
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE, jit=True)
