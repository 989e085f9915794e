"""Arguments and results of all kinds, however they are passed.

D06, D07, D34: how a compiled function is called
"""
# ruff: noqa: B006, B008, BLE001, E742, F841, SIM105, UP031, E741, PLC, S301, S307

from __future__ import annotations

import collections
import dataclasses
import enum
import types
import warnings
import weakref

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops
from jit.calls import Scaled, T, current, eq, same, table

CASES, case = table()


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
    with pytest.raises(TypeError):
        g(x=T(3), y=T(1))


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
    current("[3.]", g, T(1), c)


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
    with pytest.raises(ValueError):
        f(ops.ones((3, 3), ms.float32))


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


@pytest.mark.parametrize("name", CASES)
def test_program(name):
    CASES[name]()


class _Number:
    """An object with a number, equal to every other; without a hash in the subclass."""

    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


class _Unhashable(_Number):
    __hash__ = None


@dataclasses.dataclass(frozen=True)
class _Holder:
    v: list


@pytest.mark.parametrize(
    "make, ask",
    [
        (lambda n: memoryview(bytearray([n])), lambda x, o: x * float(o[0])),
        (lambda n: _Holder([n]), lambda x, o: x * o.v[0]),
        (lambda n: types.MappingProxyType({"v": n}), lambda x, o: x * o["v"]),
        (lambda n: weakref.ref(KEPT[n]), lambda x, o: x * o().v),
        (lambda n: weakref.ref(KEPT[-n]), lambda x, o: x * o().v),
    ],
    ids=["memoryview", "frozen dataclass", "mapping proxy", "weakref", "weakref without a hash"],
)
def test_an_argument_without_a_usable_hash_is_compared_by_identity(make, ask):
    f = ms.jit(ask)
    three, five = make(3), make(5)
    assert [str(f(T(1), o)) for o in (three, five, three)] == ["[3.]", "[5.]", "[3.]"]
    assert f.cache_info().misses == 2


KEPT = {3: _Number(3), 5: _Number(5), -3: _Unhashable(3), -5: _Unhashable(5)}


@dataclasses.dataclass(frozen=True)
class _Setting:
    v: object
    noted: object = dataclasses.field(default=0, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class _Slotted:
    v: object
    noted: object = 0


FROZEN = {
    "plain": (lambda v: _Setting(v), lambda o, v: object.__setattr__(o, "v", v), lambda o: o.v),
    "not compared": (
        lambda v: _Setting(0, v),
        lambda o, v: object.__setattr__(o, "noted", v),
        lambda o: o.noted,
    ),
    "slots": (lambda v: _Slotted(v), lambda o, v: object.__setattr__(o, "v", v), lambda o: o.v),
    "inside another": (
        lambda v: _Setting((_Setting(v),)),
        lambda o, v: object.__setattr__(o.v[0], "v", v),
        lambda o: o.v[0].v,
    ),
    "no field": (
        lambda v: [(o := _Setting(0)), object.__setattr__(o, "more", v)][0],
        lambda o, v: object.__setattr__(o, "more", v),
        lambda o: o.more,
    ),
}


@pytest.mark.parametrize("wrap", [lambda o: o, lambda o: [o], lambda o: {"k": (o,)}])
@pytest.mark.parametrize("name", FROZEN)
def test_a_frozen_dataclass_counts_by_its_present_contents(name, wrap):
    make, change, read = FROZEN[name]

    def inner(o):
        o = o["k"] if isinstance(o, dict) else o
        return o[0] if isinstance(o, (list, tuple)) else o

    f = ms.jit(lambda x, o: (x * read(inner(o)), read(inner(o))))
    one = make(1)
    numbers = [1, 2, 1.0, True, 0.0, -0.0, 2]
    for v in numbers:
        change(one, v)
        for o in (one, make(v)):
            x, got = f(T(3), wrap(o))
            assert (repr(got), str(x)) == (repr(v), str(T(3) * v)), v
    assert f.cache_info().misses == len(set(map(repr, numbers)))


def test_a_frozen_dataclass_with_a_tensor_counts_by_the_tensor():
    f = ms.jit(lambda x, o: x * o.v)
    two, five = T(2), T(5)
    for t in (two, five, two):
        assert str(f(T(3), _Setting(t))) == str(T(3) * t)
    two[0] = 7
    assert str(f(T(3), _Setting(two))) == "[21.]"
    assert f.cache_info().misses == 2
