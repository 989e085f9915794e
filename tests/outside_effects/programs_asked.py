"""Programs about attributes, classes and containers that change between two calls."""

from outside_effects.programs_between import STEP, WORLD

CASES = {
    "async": (
        """
    b = a * 2
    log.append(b)
    return b
""",
        "log[-1][0] = 7.0",
    ),
    "resultwrite": (
        """
    return x
""",
        "x[0] = i",
    ),
    "resultheld": (
        """
    return held['t']
held = {'t': x}
""",
        "held['t'][0] = i; held['t'] = held['t'] + 1",
    ),
    "delattr_made": (
        """
    k = K(2.0)
    del k.v
    try: return a * k.v
    except AttributeError: return a * 9
""",
        "",
    ),
    "delattr_cls": (
        """
    k = K4()
    del k.v
    return a * k.v
class K4:
    v = 5.0
    def __init__(self): self.v = 1.0
""",
        "K4.v = i",
    ),
    "delslot": (
        """
    k = K4()
    del k.v
    return a * hasattr(k, 'v')
class K4:
    __slots__ = ('v',)
    def __init__(self): self.v = 1.0
""",
        "",
    ),
    "deleter": (
        """
    k = K4()
    del k.v
    return a * k.w
class K4:
    def __init__(self): self.w = 1.0
    @property
    def v(self): return 1
    @v.deleter
    def v(self): self.w = 5.0
""",
        "",
    ),
    "delattr_over": (
        """
    k = K4()
    del k.v
    return a * k.w
class K4:
    def __init__(self): self.w = 1.0; self.v = 2.0
    def __delattr__(self, n): self.w = 7.0
""",
        "",
    ),
    "del_err": (
        """
    k = K(2.0)
    try: del k.zz
    except AttributeError: return a * 4
    return a
""",
        "",
    ),
    "made_prop_ro": (
        """
    k = K4()
    try: k.v = 2
    except AttributeError: return a * 4
    return a * k.v
class K4:
    v = property(lambda s: 3.0)
""",
        "",
    ),
    "made_frozen": (
        """
    k = F(2.0)
    try: k.v = 3.0
    except Exception: return a * 4 * k.v
    return a * k.v
import dataclasses
@dataclasses.dataclass(frozen=True)
class F:
    v: float
""",
        "",
    ),
    "replace_dc": (
        """
    k = dataclasses.replace(fr, v=5.0)
    return a * k.v
import dataclasses
@dataclasses.dataclass(frozen=True)
class F:
    v: float
fr = F(2.0)
""",
        "",
    ),
    "made_setattr": (
        """
    k = K4()
    k.v = 2
    return a * k.w
class K4:
    def __setattr__(self, n, v): object.__setattr__(self, 'w', v * 3)
""",
        "",
    ),
    "objset": (
        """
    object.__setattr__(k, 'v', k.v + 1)
    return a * k.v
k = K(1.0)
""",
        "k.v += 5",
    ),
    "setattr_fn": (
        """
    setattr(k, 'v' + str(i % 2), i)
    return a * k.v
k = K(1.0)
""",
        "k.v += 5",
    ),
    "chained": (
        """
    k.v = z = log2[0] = a.sum()
    return a * k.v + z
k = K(1.0)
log2 = [0]
""",
        "",
    ),
    "swap": (
        """
    k.v, q.v = q.v, k.v
    return a * k.v
k = K(1.0); q = K(2.0)
""",
        "k.v += 1",
    ),
    "augitem": (
        """
    log2[0] += a
    return log2[0] * 1
log2 = [Tensor([1.0, 1.0, 1.0])]
alias = log2[0]
""",
        "",
    ),
    "augalias": (
        """
    z = x
    z += a
    return x * 1 + z
""",
        "",
    ),
    "inpl": (
        """
    x.add_(a)
    al.mul_(2.0)
    return x * 1
al = x
""",
        "",
    ),
    "setitem_alias": (
        """
    x[1] = a[0]
    return al * 1
al = x
""",
        "al[2] = i",
    ),
    "swapalias": (
        """
    x[1] = a[0]
    return al * 1
al = x
""",
        "global al; al = x.copy() if i == 1 else x",
    ),
    "paramview": (
        """
    v = w.value()
    w[0] = a[1]
    return v + w
""",
        "",
    ),
    "paramT": (
        """
    v = w.T
    w.add_(a) if hasattr(w, 'add_') else None
    return v + w
""",
        "",
    ),
    "asnumpy_alias": (
        """
    n = x.asnumpy()
    x[0] = a[1]
    return a * float(n[0])
""",
        "",
    ),
    "npshare": (
        """
    arr[0] += 1
    return a * arr[0]
arr = np.ones(3, np.float32)
""",
        "arr[0] += 5",
    ),
    "nptensor": (
        """
    return a * t
arr = np.ones(3, np.float32)
t = Tensor(arr)
""",
        "arr[0] += 5",
    ),
    "npfrom": (
        """
    return a * t
arr = np.ones(3, np.float32)
t = Tensor.from_numpy(arr)
""",
        "arr[0] += 5",
    ),
    "bigarr": (
        """
    return a * Tensor(arr)[0]
arr = np.ones((4, 3000), np.float32)[:, :3]
""",
        "arr[0] += 5",
    ),
    "bigsum": (
        """
    return a * float(arr.sum())
arr = np.ones((400, 400))
""",
        "arr[0] += 5",
    ),
    "hugesum": (
        """
    return a * float(arr.sum())
arr = np.ones((600, 600))
""",
        "arr[0] += 5",
    ),
    "arrview": (
        """
    return a * float(v.sum())
arr = np.ones((6, 6))
v = arr[1]
""",
        "arr[1, 2] += 5",
    ),
    "memview": (
        """
    return a * mv[0]
mv = memoryview(bytearray(b'abc'))
""",
        "mv[0] = i",
    ),
    "arrays": (
        """
    return a * ar[0]
import array
ar = array.array('d', [1.0])
""",
        "ar[0] = i",
    ),
    "bytearr": (
        """
    ba[0] += 1
    return a * ba[0]
ba = bytearray(b'abc')
""",
        "ba[0] = i",
    ),
    "lru_method": (
        """
    return a * g(3.0)
@functools.lru_cache
def g(v):
    log.append(v)
    return v * i
""",
        "g.cache_clear() if i == 2 else None",
    ),
    "cachedp": (
        """
    return a * k.p
class C:
    @functools.cached_property
    def p(self): log.append(1); return i
k = C()
""",
        "vars(k).pop('p', None) if i == 2 else None",
    ),
    "slicing": (
        """
    log3[1:2] = [a, a]
    return a * len(log3)
log3 = [1, 2, 3]
""",
        "log3.append(0)",
    ),
    "delslice": (
        """
    del log3[:1]
    return a * len(log3)
log3 = [1, 2, 3, 4, 5]
""",
        "log3.append(0)",
    ),
    "unpack": (
        """
    p, *q = log3
    return a * p * len(q)
log3 = [1, 2, 3, 4, 5]
""",
        "log3.insert(0, i)",
    ),
    "kwunpack": (
        """
    return g(**d)* a
d = {'p': 2.0}
def g(p=1.0, q=2.0): return p * q
""",
        "d['q'] = i",
    ),
    "fstr": (
        """
    log.append(f'{i}-{k.v!r}-{a.shape}')
    return a
k = K(1)
""",
        "k.v += 1",
    ),
    "sortkey": (
        """
    log3.sort(key=lambda v: -v)
    return a * log3[0]
log3 = [1, 2, 3]
""",
        "log3.append(i * 10)",
    ),
    "sortedk": (
        """
    return a * sorted(log3, key=key)[0]
log3 = [1, 2, 3]
key = lambda v: v
""",
        "global key; key = lambda v: -v",
    ),
    "try_fin": (
        """
    try:
        k.v += 1
        return a * k.v
    finally:
        k.v *= 2
k = K(1.0)
""",
        "k.v -= 1",
    ),
    "with_cls": (
        """
    with C() as c:
        return a * c.v
class C:
    def __enter__(self): log.append('in'); self.v = i; return self
    def __exit__(self, *e): log.append('out')
""",
        "",
    ),
    "excnote": (
        """
    try: raise ValueError(i)
    except ValueError as e: err = e
    return a * err.args[0]
""",
        "",
    ),
    "abc": (
        """
    return a * isinstance(k, A5)
import abc
class A5(abc.ABC): pass
k = K(1)
""",
        "A5.register(K)",
    ),
    "instchk": (
        """
    return a * isinstance(k, A5)
class M(type):
    def __instancecheck__(cls, o): return i == 1
class A5(metaclass=M): pass
k = K(1)
""",
        "",
    ),
    "subclasshook": (
        """
    return a * issubclass(K, A5)
import abc
class A5(abc.ABC): pass
""",
        "A5.register(K)",
    ),
    "protocol": (
        """
    return a * isinstance(k, A5)
import typing
@typing.runtime_checkable
class A5(typing.Protocol):
    zz: int
k = K(1)
""",
        "k.zz = 1",
    ),
    "hasattr": (
        """
    return a * hasattr(k, 'zz') * hasattr(K, 'yy')
k = K(1)
K.yy = 1
""",
        "k.zz = 1",
    ),
    "getattrd": (
        """
    return a * getattr(k, 'zz', 2.0)
k = K(1)
""",
        "k.zz = i",
    ),
    "callable": (
        """
    return a * callable(k)
k = K(1)
""",
        "K.__call__ = lambda s: 1",
    ),
    "typename": (
        """
    return a * len(type(k).__name__)
k = K(1)
""",
        "K.__name__ = 'K' * i",
    ),
    "fname": (
        """
    return a * len(g.__name__)
def g(): 'doc'
""",
        "g.__name__ = 'd' * i",
    ),
    "annot": (
        """
    return a * len(g.__annotations__)
def g(p: int): 'doc'
""",
        "g.__annotations__['q'] = int",
    ),
    "dirr": (
        """
    return a * len([n for n in dir(k) if n[0] != '_'])
k = K(1)
""",
        "setattr(k, 'z%d' % i, 1)",
    ),
    "slots": (
        """
    k.v += a
    return k.v
class S:
    __slots__ = ('v',)
k = S(); k.v = x
""",
        "k.v = k.v * 2",
    ),
    "weakm": (
        """
    return a * r().v
import weakref
k = K(1.0); r = weakref.ref(k)
""",
        "k.v += 1",
    ),
    "deferred": (
        """
    return a * ns.x.y.z
ns = types.SimpleNamespace(x=types.SimpleNamespace(y=types.SimpleNamespace(z=1.0)))
""",
        "ns.x.y.z = i; ns.x = types.SimpleNamespace(y=types.SimpleNamespace(z=i * 2))",
    ),
    "ddict": (
        """
    return a * dd['q'] * len(dd)
import collections
dd = collections.defaultdict(lambda: i)
""",
        "dd.pop('q', None)",
    ),
    "counter": (
        """
    c['a'] += 1
    return a * c['a'] * c.most_common(1)[0][1]
import collections
c = collections.Counter()
""",
        "c['b'] += 5",
    ),
    "chainmap": (
        """
    return a * cm['q']
import collections
d1 = {'q': 1.0}
cm = collections.ChainMap({}, d1)
""",
        "d1['q'] = i",
    ),
    "userlist": (
        """
    return a * sum(ul)
import collections
ul = collections.UserList([1.0])
""",
        "ul.append(i)",
    ),
    "dequerot": (
        """
    dq.rotate(1)
    return a * dq[0]
import collections
dq = collections.deque([1.0, 2.0, 3.0])
""",
        "dq.append(i)",
    ),
    "heap": (
        """
    import heapq
    heapq.heappush(hp, 3 - len(hp))
    return a * hp[0]
hp = []
""",
        "hp.append(9)",
    ),
}

PROGRAMS = {
    f"asked_{name}": f"{WORLD}def f(a):{body}{STEP}{change}"
    for name, (body, change) in CASES.items()
}
