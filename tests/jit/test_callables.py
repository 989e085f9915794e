"""The callables that jit takes: methods, classes, copies, partials, decorated functions.

D05, D06, D33: what may be compiled, and what stands around it
"""
# ruff: noqa: F821, SIM223, B023, PLC, S301, S307

from __future__ import annotations

import abc
import functools
import inspect
import typing
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops
from jit.calls import Scaled, T, current, doubled, eq, table

CASES, case = table()


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
    eq(functools.partial(doubled)(T(1)), "[2.]")
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
    assert ms.jit(doubled) is doubled


@case
def jit_class_refused():
    with pytest.raises(TypeError):
        ms.jit(Util)


@case
def jit_builtin():
    for f in (len, np.sin, 3, None and 0, "x", print):
        if f is None:
            continue
        with pytest.raises(TypeError):
            ms.jit(f)


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
def attrs():
    f = doubled
    assert (
        f.__name__ == "doubled"
        and f.__wrapped__ is f.function
        and f.__module__ == f.function.__module__
    )
    f.extra = 3
    assert f.extra == 3
    assert "doubled" in repr(f)


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
    current("[3.]", g, T(1), b)


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
def nested_jit_options():
    inner = ms.jit(lambda x: x * float(x.asnumpy()[0]))
    outer = ms.jit(lambda x: inner(x) + 1, fullgraph=True)
    with pytest.raises(RuntimeError):
        outer(T(2))


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

    with pytest.raises(NameError):
        f(T(1))
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


@pytest.mark.parametrize("name", CASES)
def test_callable_form(name):
    CASES[name]()
