"""Programs that look up attributes: `super()`, properties, objects with any attribute."""

BASE = """
class A:
    def __init__(self): self._k = 1.0
    @property
    def k(self): return self._k
    @k.setter
    def k(self, v): self._k = v * 2
"""
# An object that has an attribute of every name, as configurations and mocks do.
ANY = """
class Any:
    answer = %s
    def __init__(self, k): self.k = k
    def __getattr__(self, name): return self.answer
    def __call__(self, x): return x * self.k
    def __getitem__(self, i): return self.k
c = Any(1.0)
cs = [c]
calls = 0
def f(a):
    %s
def between():
    global c, calls
    calls += 1
    c.k += 1
    if calls == 2: c = Any(50.0)
    cs[0] = c
"""
_ANSWERS = {
    "none": "None",
    "number": "1.0",
    "list": "[]",
    "function": "staticmethod(lambda *a: 3.0)",
}
_USES = {
    "read": "return a * c.k + (c.nothing is None)",
    "call": "return c(a)",
    "list": "xs = [c, 1.0]; return a * xs[0].k + cs[0].k, xs",
    "item": "return a * c[2] + cs[0][1]",
    "give": "cs.append(c); cs.append(a); return cs[-2](a)",
    "branch": "d = c if a.sum() > 0 else c; return d(a)",
    "set": "c.k = c.k + 1; return c(a), c",
    "apply": "g = lambda q, x: q(x); return g(c, a) + sum(map(lambda q: q.k, cs))",
    "return": "return c, a * cs[0].k",
    "partial": "import functools; return functools.partial(c, a)() + c.k",
}

PROGRAMS = {
    **{
        f"any_{use}_{name}": ANY % (answer, body)
        for use, body in _USES.items()
        for name, answer in _ANSWERS.items()
    },
    "fset_in_setter": BASE
    + """
class B(A):
    @property
    def k(self): return self._k
    @k.setter
    def k(self, v): A.k.fset(self, v + 1)
b = B()
def f(a):
    b.k = 3.0
    return a * b._k
""",
    "super_get": BASE
    + """
class B(A):
    @property
    def k(self): return super().k + 1
b = B()
def f(a):
    b._k = 3.0
    return a * b.k
""",
    "super_get2": BASE
    + """
class B(A):
    @property
    def k(self): return super().k + 1
    @k.setter
    def k(self, v): self._k = v
b = B()
def f(a):
    b.k += 1
    return a * b.k
""",
    "super_attr_between": BASE
    + """
class B(A):
    @property
    def k(self): return super().k + 1
b = B()
def f(a):
    return a * b.k
def between(): b._k += 1
""",
    "super_prop_swap": BASE
    + """
class B(A):
    def go(self): return super().k + 1
b = B()
def f(a):
    return a * b.go()
i = 0
def between():
    global i
    i += 1
    b._k += 1
    if i == 2: A.k = property(lambda self: 50.0)
    if i == 3: A.k = 7.0
""",
    "super_classattr": """
class A: z = 1.0
class B(A):
    z = 2.0
    def go(self): return super().z
    @classmethod
    def cm(cls): return super().z if hasattr(super(), 'z') else 0
b = B()
def f(a): return a * b.go() + B.cm()
def between(): A.z += 1
""",
    "super_descr": """
class D:
    def __get__(self, o, t=None): return o.q * 2
class A: z = D()
class B(A):
    def go(self): return super().z
b = B(); b.q = 1.0
def f(a):
    b.q += 1
    return a * b.go()
def between(): b.q += 5
""",
    "super_cached": """
import functools
class A:
    @functools.cached_property
    def z(self): return self.q * 2
class B(A):
    def go(self): return super().z
b = B(); b.q = 1.0
def f(a):
    b.q += 1
    return a * b.go()
""",
    "super_getattr": """
class A:
    def __getattr__(self, n): return self.q
    def __setattr__(self, n, v): object.__setattr__(self, n, v + 1)
    def __getitem__(self, i): return self.q * i
    def __call__(self, x): return x * self.q
    def __len__(self): return int(self.q)
class B(A):
    def __getattr__(self, n): return super().__getattr__(n) * 3
    def __setattr__(self, n, v): super().__setattr__(n, v * 2)
    def __getitem__(self, i): return super().__getitem__(i) + 1
    def __call__(self, x): return super().__call__(x) + 1
    def __len__(self): return super().__len__() + 1
b = B(); b.q = 1.0
def f(a):
    b.q = b.q + 1
    return b(a) * b.zz + b[2] + len(b)
def between(): b.q = 0.0
""",
    "super_setattr_prop": BASE
    + """
class B(A):
    def go(self, v):
        super(B, type(self)).k.fset(self, v)
        super().__setattr__('m', v)
b = B()
def f(a):
    b.go(2.0)
    return a * b.k + b.m
""",
    "super_explicit": """
class A:
    def go(self, x): return x + self.k
class B(A):
    def go(self, x): return super(B, self).go(x) * 2
class C(B):
    def go(self, x):
        s = super()
        g = s.go
        return g(x) + super(B, self).go(x)
c = C(); c.k = 1.0
def f(a):
    c.k += 1
    return c.go(a)
i = 0
def between():
    global i
    i += 1
    if i == 1: B.go = lambda self, x: x
    if i == 2: A.go = lambda self, x: x * 100
""",
    "cell_super": """
from duograph import nn
class P(nn.Cell):
    def __init__(self):
        super().__init__()
        self.k = 1.0
    @property
    def z(self): return self.k
    def construct(self, x): return x * self.z
class Q(P):
    @property
    def z(self): return super().z + 1
    def construct(self, x):
        self.k += 1
        return super().construct(x) + self.z
n = Q()
def f(a): return n(a)
def between(): n.k = 7.0
""",
    "super_assign": BASE
    + """
class C(A):
    def go(self): super().k = 5.0
c = C()
def f(a):
    c.go()
    return a * c.k
""",
    "super_missing": BASE
    + """
class C(A):
    def go(self): return super().nope
c = C()
def f(a):
    return a * c.go()
i = 0
def between():
    global i
    i += 1
    if i == 2: A.nope = 3.0
""",
    "super_made_here": BASE
    + """
class C(A):
    @property
    def k(self): return super().k * 2
def f(a):
    c = C()
    c._k = a
    return c.k
""",
    "super_type": """
class A:
    z = property(lambda self: 4.0)
    @classmethod
    def cm(cls, x): return x * cls.q
    @staticmethod
    def st(x): return x + 1
class C(A):
    q = 2.0
    @classmethod
    def cm(cls, x): return super().cm(x) + super().st(x) + len(str(type(super().z)))
def f(a): return C.cm(a)
i = 0
def between():
    global i
    i += 1
    C.q += 1
    if i == 2: A.st = staticmethod(lambda x: x - 1)
    if i == 3: A.cm = classmethod(lambda cls, x: x)
""",
    "key_is_the_argument": """
def f(a):
    b = a + 1
    d = {a: 2.0, b: a}
    d[b] = d[b] + 1
    return d[a] * d[b] + (b in d) + d.get(b + 1, 7.0)
""",
    "key_is_a_result": """
def f(a):
    d = {}
    for t in (a, a * 2, a):
        d[t] = d[t] + t if t in d else t
    return d[a] + len(d)
""",
    "key_is_missing": """
def f(a):
    d = {a: 2.0}
    try:
        return a * d[a + 1]
    except KeyError:
        return a * 5
""",
}
