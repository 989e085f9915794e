"""Programs whose world changes between two calls: classes, functions, optimisers and copies.

Each case is the body of `f` with the definitions after it, and what happens between the calls.
"""

WORLD = """
from duograph import nn
import functools, types, copy, pickle
log = []
i = 0
x = Tensor([1.0, 2.0, 3.0])
m = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
w = ms.Parameter(Tensor([1.0, 2.0, 3.0]), name='w')
class K:
    def __init__(self, v): self.v = v
"""

CASES = {
    "view_T": (
        """
    t = m.T
    t[0] = 9.0
    return a + m.sum() + t.sum()
""",
        "",
    ),
    "view_slice": (
        """
    s = m[0]
    s[1] = 9.0
    s += a
    return a + m.sum()
""",
        "",
    ),
    "view_reshape": (
        """
    s = m.reshape(6)
    s[1] = a[0]
    return a + m.sum()
""",
        "",
    ),
    "view_view": (
        """
    s = m.view(6)
    s.add_(1.0)
    return a + m.sum()
""",
        "",
    ),
    "heldview": (
        """
    held[0] = a[1]
    return a + m.sum() + held.sum()
held = m.reshape(6)
""",
        "",
    ),
    "iadd_held": (
        """
    global x
    x += a
    return x * 1
""",
        "",
    ),
    "mul_held": (
        """
    x.mul_(2.0)
    y = x
    y.add_(a)
    return x + y
""",
        "",
    ),
    "copyto": (
        """
    x.copy_(a)
    return x * 2
""",
        "",
    ),
    "param_iadd": (
        """
    w.set_data(w + a)
    w[0] = 3.0
    return w * 1
""",
        "",
    ),
    "bool_cls": (
        """
    return a * (2 if k else 3)
class B:
    def __bool__(self): return i % 2 == 0
k = B()
""",
        "",
    ),
    "len_cls": (
        """
    return a * (2 if k else 3) * len(k)
class B:
    def __len__(self): return i + 1
k = B()
""",
        "",
    ),
    "eq_cls": (
        """
    return a * (2 if k == 3 else 3) * (2 if 3 in [k] else 5)
class B:
    def __eq__(self, o): return i == 1
k = B()
""",
        "",
    ),
    "contains_cls": (
        """
    return a * (2 if 3 in k else 3)
class B:
    def __contains__(self, o): return i == 1
k = B()
""",
        "",
    ),
    "index_cls": (
        """
    return a * [5, 6, 7, 8, 9, 10][k] * len(range(k))
class B:
    def __index__(self): return i
k = B()
""",
        "",
    ),
    "float_cls": (
        """
    return a * float(k)
class B:
    def __float__(self): return i + 0.5
k = B()
""",
        "",
    ),
    "int_cls": (
        """
    return a * int(k)
class B:
    def __int__(self): return i
k = B()
""",
        "",
    ),
    "array_cls": (
        """
    return a * Tensor(np.asarray(k), ms.float32)
class B:
    def __array__(self, dtype=None, copy=None): return np.array([i, 1, 2], np.float32)
k = B()
""",
        "",
    ),
    "array_mul": (
        """
    return a + np.asarray(k)
class B:
    def __array__(self, dtype=None, copy=None): return np.array([i, 1, 2], np.float32)
k = B()
""",
        "",
    ),
    "hash_cls": (
        """
    return a * {k: 2.0}[k2]
class B:
    def __hash__(self): return 1
    def __eq__(self, o): return True
k = B(); k2 = B()
""",
        "",
    ),
    "getitem_iter": (
        """
    r = a
    for v in k: r = r * v
    return r
class B:
    def __getitem__(self, j):
        if j > i: raise IndexError
        return j + 1.0
k = B()
""",
        "",
    ),
    "iter_cls": (
        """
    return a * sum(k) * len([*k])
class B:
    def __iter__(self): return iter([1.0] * (i + 1))
k = B()
""",
        "",
    ),
    "iter_gen": (
        """
    return a * sum(k)
class B:
    def __iter__(self):
        for j in range(i + 1): yield 1.0
k = B()
""",
        "",
    ),
    "call_cls": (
        """
    return k(a)
class B:
    def __call__(self, t): return t * i
k = B()
""",
        "",
    ),
    "rmul_cls": (
        """
    return a * k + k
class B:
    def __rmul__(self, t): return t * i
    def __radd__(self, t): return t + i
k = B()
""",
        "",
    ),
    "lt_cls": (
        """
    return a * (2 if k < 3 else 3) * sorted([3, 1])[0]
class B:
    def __lt__(self, o): return i == 1
k = B()
""",
        "",
    ),
    "format_cls": (
        """
    log.append(f'{k} {k!r} {k:x}')
    return a
class B:
    def __format__(self, s): return 'f%s%d' % (s, i)
    def __repr__(self): return 'r%d' % i
k = B()
""",
        "",
    ),
    "tsub": (
        """
    return a * t + t.k
class TS(Tensor):
    k = 2.0
t = TS(Tensor([1.0, 2.0, 3.0]))
""",
        "t.__class__.k = 5.0",
    ),
    "psub": (
        """
    return a * t + t.k
class PS(ms.Parameter):
    k = 2.0
t = PS(Tensor([1.0, 2.0, 3.0]), name='q')
""",
        "PS.k = i",
    ),
    "lsub": (
        """
    return a * sum(t) * t.k * len(t)
class LS(list):
    k = 2.0
    def __len__(self): return 7
t = LS([1.0, 2.0])
""",
        "LS.k = i; t.append(1.0)",
    ),
    "dsub": (
        """
    return a * t['a'] * t['q']
class DS(dict):
    def __getitem__(self, k): return dict.get(self, k, i)
t = DS(a=1.0)
""",
        "t['a'] = i",
    ),
    "ssub": (
        """
    return a * len(t) * (1 in t)
class SS(set):
    def __contains__(self, k): return i == 1
t = SS([1.0])
""",
        "t.add(i)",
    ),
    "strsub": (
        """
    return a * {'a': 2.0, 'b': 3.0}[t]
class S(str): pass
t = S('a')
""",
        "global t; t = S('b')",
    ),
    "intsub": (
        """
    return a * t * t.k
class I(int): pass
t = I(3); t.k = 2.0
""",
        "t.k = i",
    ),
    "classdec": (
        """
    return K2(3).go(a)
def dec(c):
    class D(c):
        def go(self, t): return super().go(t) * i
    return D
@dec
class K2:
    def __init__(self, v): self.v = v
    def go(self, t): return t * self.v
""",
        "",
    ),
    "wraps": (
        """
    return g(a)
def d1(h):
    @functools.wraps(h)
    def q(*p, **k): log.append(q.__name__); return h(*p, **k) * 2
    return q
@d1
@d1
def g(t): return t * i
""",
        "",
    ),
    "wrapped_attr": (
        """
    return g.__wrapped__(a)
def d1(h):
    @functools.wraps(h)
    def q(*p, **k): return h(*p, **k) * 2
    return q
@d1
def g(t): return t * i
""",
        "g.__wrapped__ = lambda t: t * 50",
    ),
    "fattr": (
        """
    g.n += 1
    return g(a) * g.n
def g(t): return t
g.n = 0
""",
        "g.n += 10",
    ),
    "defaults": (
        """
    return g(a)
def g(t, s=2.0, *, z=1.0): return t * s + z
""",
        "g.__defaults__ = (i,)",
    ),
    "kwdefaults": (
        """
    return g(a)
def g(t, s=2.0, *, z=1.0): return t * s + z
""",
        "g.__kwdefaults__ = {'z': i}",
    ),
}

STEP = """
def between():
    global i
    i += 1
    """

PROGRAMS = {
    f"between_{name}": f"{WORLD}def f(a):{body}{STEP}{change}"
    for name, (body, change) in CASES.items()
}
