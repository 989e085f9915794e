"""Programs in which functions are values: chosen, returned, wrapped, recursive."""

PROGRAMS = {
    "two_defaults": """
hs = [lambda q, w=w: q * w for w in (10., 20.)]
def f(a):
    return (hs[0] if a.sum() > 0 else hs[1])(a)
""",
    "two_closures": """
def make(w):
    def inner(q):
        return q * w
    return inner
h, k = make(10.), make(20.)
def f(a):
    g = h if a.sum() > 0 else k
    return g(a)
""",
    "two_kwdefaults": """
def make(v):
    def inner(q, *, w=v):
        return q * w
    return inner
h, k = make(10.), make(20.)
def f(a):
    g = h if a.sum() > 0 else k
    return g(a)
""",
    "two_partials": """
from functools import partial
def scale(w, q):
    return q * w
h, k = partial(scale, 10.), partial(scale, 20.)
def f(a):
    g = h if a.sum() > 0 else k
    return g(a)
""",
    "two_partials_kw": """
from functools import partial
def scale(q, w):
    return q * w
h, k = partial(scale, w=10.), partial(scale, w=20.)
def f(a):
    return (h if a.sum() > 0 else k)(a)
""",
    "two_receivers": """
class C:
    def __init__(self, w):
        self.w = w
    def m(self, q):
        return q * self.w
x, y = C(10.), C(20.)
def f(a):
    return (x.m if a.sum() > 0 else y.m)(a)
""",
    "two_callables": """
class C:
    def __init__(self, w):
        self.w = w
    def __call__(self, q):
        return q * self.w
x, y = C(10.), C(20.)
def f(a):
    return (x if a.sum() > 0 else y)(a)
""",
    "equal_callables": """
class C:
    def __init__(self, w):
        self.w = w
    def __eq__(self, other):
        return isinstance(other, C)
    def __hash__(self):
        return 1
    def __call__(self, q):
        return q * self.w
x, y = C(10.), C(20.)
def f(a):
    return (x if a.sum() > 0 else y)(a)
""",
    "inner_defaults": """
def f(a):
    hs = [lambda q, w=w: q * w for w in (10., 20.)]
    return (hs[0] if a.sum() > 0 else hs[1])(a)
""",
    "inner_tensor_defaults": """
def f(a):
    hs = [lambda q, w=w: q * w for w in (a, a + 1)]
    return (hs[0] if a.sum() > 0 else hs[1])(a)
""",
    "inner_closures": """
def f(a):
    def make(w):
        return lambda q: q * w
    h, k = make(10.), make(20.)
    return (h if a.sum() > 0 else k)(a)
""",
    "inner_closures_tensor": """
def f(a):
    def make(w):
        return lambda q: q * w
    h, k = make(a), make(a + 1)
    return (h if a.sum() > 0 else k)(a)
""",
    "inner_late_binding": """
def f(a):
    hs = []
    for w in (10., 20.):
        hs.append(lambda q: q * w)
    return (hs[0] if a.sum() > 0 else hs[1])(a)
""",
    "def_in_branches": """
def f(a):
    if a.sum() > 0:
        def g(q):
            return q * 2
    else:
        def g(q):
            return q * 3
    return g(a)
""",
    "def_in_branches_tensor": """
def f(a):
    if a.sum() > 0:
        b = a * 2
        def g(q):
            return q * b
    else:
        b = a * 3
        def g(q):
            return q * b
    return g(a)
""",
    "two_on_one_line": """
h, k = (lambda q: q * 2), (lambda q: q * 3)
def f(a):
    return (h if a.sum() > 0 else k)(a)
""",
    "wraps": """
import functools
def scaled(w):
    def deco(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs) * w
        return wrapper
    return deco
@scaled(10.)
def h(q):
    return q + 1
@scaled(20.)
def k(q):
    return q + 1
def f(a):
    return (h if a.sum() > 0 else k)(a)
""",
    "choice_of_three": """
hs = [lambda q, w=w: q * w for w in (10., 20., 30.)]
def f(a):
    g = hs[0]
    if a.sum() > 0:
        g = hs[1]
        if a.sum() > 8:
            g = hs[2]
    return g(a)
""",
    "choice_in_list": """
hs = [lambda q, w=w: q * w for w in (10., 20.)]
def f(a):
    chain = [hs[0], hs[1]]
    if a.sum() > 0:
        chain = [hs[1], hs[0]]
    return chain[0](a) + 1
""",
    "in_dict_by_function": """
hs = [lambda q, w=w: q * w for w in (10., 20.)]
table = {hs[0]: 1., hs[1]: 2.}
def f(a):
    return hs[0](a) * table[hs[0]] + hs[1](a) * table[hs[1]]
""",
    "compare_functions": """
hs = [lambda q, w=w: q * w for w in (10., 20.)]
def f(a):
    if hs[0] is hs[1] or hs[0] == hs[1]:
        return a
    return a * 3
""",
    "recursion_two_closures": """
def make(w, other):
    def step(q, n):
        if n == 0:
            return q
        return (other or step)(q * w, n - 1)
    return step
h = make(2., None)
k = make(3., h)
def f(a):
    return k(a, 3)
""",
    "recursion_mutual_closures": """
cells = []
def make(w, i):
    def step(q, n):
        if q.sum() > 100 or n > 20:
            return q
        return cells[i](q * w, n + 1)
    return step
cells.append(make(2., 1))
cells.append(make(3., 0))
def f(a):
    return cells[0](a * a, 0)
""",
    "recursion_two_defaults": """
hs = []
for w in (2., 3.):
    def step(q, i, w=w):
        if q.sum() > 100:
            return q
        return hs[1 - i](q * w, 1 - i)
    hs.append(step)
def f(a):
    return hs[0](a * a, 0)
""",
    "recursion_same_arguments": """
hs = []
for w in (2., 3.):
    def step(q, w=w):
        if q.sum() > 100:
            return q
        if w == 2.:
            return hs[1](q * w)
        return hs[0](q * w)
    hs.append(step)
def f(a):
    return hs[0](a * a)
""",
    "recursion_methods": """
class C:
    def __init__(self, w):
        self.w = w
        self.other = None
    def step(self, q):
        if q.sum() > 100:
            return q
        return self.other.step(q * self.w)
x, y = C(2.), C(3.)
x.other, y.other = y, x
def f(a):
    return x.step(a * a)
""",
    "recursion_nested_def": """
def f(a):
    def outer(w):
        def step(q):
            if q.sum() > 100:
                return q
            return step(q * w)
        return step
    return outer(2.)(a * a) + outer(3.)(a * a)
""",
    "returns_function": """
def h(q):
    return q
def f(a):
    return a * 2, h
""",
    "returns_lambda_from_list": """
hs = [lambda q, w=w: q * w for w in (10., 20.)]
def f(a):
    return a, hs[1]
""",
    "returns_object": """
class C:
    pass
obj = C()
def f(a):
    return a * 2, obj, obj is obj
""",
    "stores_function": """
box = {}
def h(q):
    return q
def f(a):
    box['h'] = h
    box['len'] = len
    return a * 2
""",
    "appends_outside_lambda": """
kept = []
hs = [lambda q, w=w: q * w for w in (10., 20.)]
def f(a):
    kept.append(hs[1])
    return a * 2
def between():
    assert kept[-1] is hs[1]
""",
    "appends_inner_function": """
kept = []
def f(a):
    def g(q):
        return q * 2
    kept.append(g(a))
    kept.append(g)
    return g(a)
def between():
    assert float(kept[-1](ms.Tensor(2.0))) == 4.0
    kept.clear()
""",
    "returns_inner_function": """
got = []
def f(a):
    w = 3.0
    def g(q):
        return q * w
    got.append(1)
    return a, g(a)
""",
    "changed_defaults": """
def h(q, w=2.):
    return q * w
def f(a):
    return h(a)
def between():
    h.__defaults__ = (h.__defaults__[0] + 1,)
""",
    "changed_kwdefaults": """
def h(q, *, w=2.):
    return q * w
def f(a):
    return h(a)
def between():
    h.__kwdefaults__ = {'w': h.__kwdefaults__['w'] + 1}
""",
    "changed_code": """
def h(q):
    return q * 2
def k(q):
    return q * 5
def f(a):
    return h(a)
def between():
    h.__code__ = k.__code__
""",
    "changed_partial": """
from functools import partial
def h(q, w):
    return q * w
p = partial(h, w=2.)
def f(a):
    return p(a)
def between():
    p.keywords['w'] = p.keywords['w'] + 1
""",
    "mutable_default": """
def h(q, seen=[]):
    seen.append(1)
    return q * len(seen)
def f(a):
    return h(a)
""",
    "mutable_default_inner": """
def f(a):
    def h(q, seen=[]):
        seen.append(1)
        return q * len(seen)
    return h(a) + h(a)
""",
    "function_attribute": """
def h(q):
    h.calls += 1
    return q * h.calls
h.calls = 0
def f(a):
    return h(a)
""",
    "nonlocal_counter": """
def make():
    n = 0
    def count(q):
        nonlocal n
        n += 1
        return q * n
    return count
c, d = make(), make()
def f(a):
    return c(a) + d(a) + c(a)
""",
    "lru_cache": """
import functools
log = []
@functools.lru_cache(maxsize=None)
def h(n):
    log.append(n)
    return n * 2.
def f(a):
    return a * h(2) * h(3) * h(2)
""",
    "lru_cache_tensor": """
import functools
log = []
@functools.lru_cache(maxsize=None)
def h(q):
    log.append(1)
    return q * 2.
def f(a):
    return h(a) + h(a)
def between():
    h.cache_clear()
""",
    "cached_property": """
import functools
class C:
    @functools.cached_property
    def w(self):
        log.append('w')
        return 2.
log = []
c = C()
def f(a):
    return a * c.w * c.w
""",
    "singledispatch": """
import functools
@functools.singledispatch
def h(x):
    return 1.
@h.register(int)
def _(x):
    return 2.
@h.register(str)
def _(x):
    return 3.
def f(a):
    return a * h(1) * h('x') * h(1.5)
""",
    "map_of_methods": """
class C:
    def __init__(self, w):
        self.w = w
    def m(self, q):
        return q * self.w
cs = [C(2.), C(3.)]
def f(a):
    for m in [c.m for c in cs]:
        a = m(a)
    return a
""",
    "static_and_class_methods": """
class C:
    w = 2.
    @staticmethod
    def s(q):
        return q * 3
    @classmethod
    def c(cls, q):
        return q * cls.w
class D(C):
    w = 5.
def f(a):
    g = C.c if a.sum() > 0 else D.c
    return g(a) + C.s(a) + D().c(a)
""",
}
