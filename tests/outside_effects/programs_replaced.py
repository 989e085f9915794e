"""Programs whose functions, Cells, optimisers or modules change between two calls."""

from outside_effects.programs_between import STEP, WORLD

CASES = {
    "kwdefaults_in": (
        """
    return g(a)
def g(t, s=2.0, *, z=1.0): return t * s + z
""",
        "g.__kwdefaults__['z'] = i",
    ),
    "defaults_list": (
        """
    return g(a)
def g(t, s=[2.0]):
    s.append(1.0)
    return t * len(s)
""",
        "g.__defaults__[0].append(3.0)",
    ),
    "code": (
        """
    return g(a)
def g(t): return t
def h(t): return t * 9
""",
        "g.__code__ = h.__code__",
    ),
    "closure": (
        """
    return g(a)
def mk():
    c = 1.0
    def g(t): return t * c
    return g
g = mk()
""",
        "g.__closure__[0].cell_contents = i",
    ),
    "closure_t": (
        """
    return g(a)
def mk():
    c = Tensor([1.0, 1.0, 1.0])
    def g(t):
        nonlocal c
        c = c + t
        return t * c
    return g
g = mk()
""",
        "g.__closure__[0].cell_contents = Tensor([0.0, 0.0, 1.0]) * i",
    ),
    "globals": (
        """
    globals()['log'].append(1)
    return a * globals()['i']
""",
        "",
    ),
    "locals": (
        """
    z = 2
    return a * locals()['z']
""",
        "",
    ),
    "vars": (
        """
    return a * vars(k)['v']
k = K(2.0)
""",
        "k.v = i",
    ),
    "varsset": (
        """
    vars(k)['v'] = vars(k)['v'] + 1
    return a * k.v
k = K(2.0)
""",
        "k.v += i",
    ),
    "dictattr": (
        """
    k.__dict__['v'] += 1
    return a * k.v
k = K(2.0)
""",
        "k.v += i",
    ),
    "dictitems": (
        """
    return a * sum(k.__dict__.values())
k = K(2.0)
""",
        "k.z = i",
    ),
    "evalx": (
        """
    return a * eval('i')
""",
        "",
    ),
    "clschange": (
        """
    return a * k.go()
class A2:
    def go(self): return 1.0
class B2:
    def go(self): return 2.0
k = A2()
""",
        "k.__class__ = B2 if i == 1 else A2",
    ),
    "bases": (
        """
    return a * k.go()
class A2:
    def go(self): return 1.0
class C2:
    def go(self): return 5.0
class B2(A2): pass
k = B2()
""",
        "B2.__bases__ = (C2,)",
    ),
    "static": (
        """
    return K3.s(a) + K3().s(a)
class K3:
    @staticmethod
    @ms.jit
    def s(t): return t * i
""",
        "",
    ),
    "classm": (
        """
    return K3.s(a) + K3().s(a)
class K3:
    v = 2.0
    @classmethod
    @ms.jit
    def s(cls, t): return t * cls.v * i
""",
        "K3.v += 1",
    ),
    "propj": (
        """
    return K3().s * a
class K3:
    v = 2.0
    @property
    @ms.jit
    def s(self): return Tensor(3.0) * self.v * i
""",
        "K3.v += 1",
    ),
    "partialm": (
        """
    return K3().t(a)
class K3:
    v = 2.0
    def s(self, t, k): return t * k * self.v * i
    t = functools.partialmethod(s, k=2.0)
""",
        "K3.v += 1",
    ),
    "partialm2": (
        """
    return K3().t(a)
class K3:
    v = 2.0
    @ms.jit
    def s(self, t, k): return t * k * self.v * i
    t = functools.partialmethod(s, k=2.0)
""",
        "K3.t = functools.partialmethod(K3.s, k=3.0)",
    ),
    "singled": (
        """
    return g(a) + g(2.0)
@functools.singledispatch
def g(t): return t * i
@g.register
def _(t: float): return t + i
""",
        "",
    ),
    "singledm": (
        """
    return K3().g(a)
class K3:
    @functools.singledispatchmethod
    def g(self, t): return t * i
    @g.register
    def _(self, t: float): return t + i
""",
        "",
    ),
    "totalord": (
        """
    return a * (K3(1) >= K3(i))
@functools.total_ordering
class K3:
    def __init__(self, v): self.v = v
    def __lt__(self, o): return self.v < o.v
    def __eq__(self, o): return self.v == o.v
""",
        "",
    ),
    "nestjit": (
        """
    return g(a) + h(a)
@ms.jit(jit_level='O0')
def g(t): log.append('g'); return t * i
@ms.jit(fullgraph=True)
def h(t): return t * i
""",
        "",
    ),
    "nestraise": (
        """
    try:
        return g(a)
    except ValueError:
        log.append('caught')
        return a
@ms.jit
def g(t):
    log.append('g')
    if t.sum() < 0: raise ValueError('neg')
    return t * i
""",
        "",
    ),
    "nestraise2": (
        """
    try:
        return g(a)
    except ValueError:
        log.append('caught')
        return a
@ms.jit
def g(t):
    log.append('g')
    if i == 2: raise ValueError('neg')
    return t * i
""",
        "",
    ),
    "deepcopy": (
        """
    return net(a) + net2(a)
class N(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([1.0, 1.0, 1.0]), name='w')
        self.k = 1.0
    @ms.jit
    def construct(self, t):
        self.k += 1
        self.w += 1
        return t * self.w * self.k
net = N(); net2 = copy.deepcopy(net)
""",
        "net.k = 5.0; net2 = copy.deepcopy(net); globals().update(net2=net2)",
    ),
    "copycopy": (
        """
    return net(a) + net2(a)
class N(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([1.0, 1.0, 1.0]), name='w')
        self.k = 1.0
    def construct(self, t):
        self.k += 1
        self.w += 1
        return t * self.w * self.k
net = N(); net2 = copy.copy(net)
""",
        "net.k = 5.0",
    ),
    "opt": (
        """
    g = ms.grad(lambda t: (t * w).sum(), None, [w])(a)
    opt((g,) if isinstance(g, Tensor) else g)
    return w * 1
opt = nn.Momentum([w], 0.1, 0.9)
""",
        "opt.momentum if 0 else None; opt.learning_rate = opt.learning_rate",
    ),
    "optlr": (
        """
    g = ms.grad(lambda t: (t * w).sum(), None, [w])(a)
    opt((g,) if isinstance(g, Tensor) else g)
    return w * 1
opt = nn.SGD([w], 0.1)
""",
        "opt.learning_rate.set_data(Tensor(0.5))",
    ),
    "opthas": (
        """
    g = ms.grad(lambda t: (t * w).sum(), None, [w])(a)
    opt((g,) if isinstance(g, Tensor) else g)
    return w * 1
opt = nn.AdamWeightDecay([w], 0.1)
w2 = ms.Parameter(Tensor([1.0, 1.0, 1.0]), name='w2')
""",
        "opt.parameters = ms.ParameterTuple([w2]); opt._parameters = opt.parameters",
    ),
    "optwd": (
        """
    g = ms.grad(lambda t: (t * w).sum(), None, [w])(a)
    opt((g,) if isinstance(g, Tensor) else g)
    return w * 1
opt = nn.Momentum([w], 0.1, 0.9, weight_decay=0.1)
""",
        "opt.weight_decay = 0.5; opt.momentum = 0.1",
    ),
    "expopt": (
        """
    g = ms.grad(lambda t: (t * w).sum(), None, [w])(a)
    opt((g,) if isinstance(g, Tensor) else g)
    return w * 1
import duograph.mint as mint
opt = mint.optim.AdamW([w], lr=0.1) if hasattr(mint, 'optim') else nn.SGD([w], 0.1)
""",
        "opt.param_groups[0]['lr'] = 0.5 if hasattr(opt, 'param_groups') else 0",
    ),
    "modattr": (
        """
    return a * mod.k * mod.g(2.0)
mod = types.ModuleType('mod'); mod.k = 2.0; mod.g = lambda v: v
""",
        "mod.k = i; mod.g = lambda v: v * i",
    ),
    "simplens": (
        """
    return a * ns.k
ns = types.SimpleNamespace(k=1.0)
""",
        "ns.k = i",
    ),
    "mapping": (
        """
    return a * ns['k']
ns = types.MappingProxyType({'k': [1.0]})['k'] and {'k': 2.0}
""",
        "ns['k'] = i",
    ),
    "enumv": (
        """
    return a * E.A.value * E['A'].value * len(E)
import enum
class E(enum.Enum):
    A = 2.0
    B = 3.0
""",
        "",
    ),
    "enumflag": (
        """
    return a * (2 if k is E.A else 3)
import enum
class E(enum.Enum):
    A = 2.0
    B = 3.0
k = E.A
""",
        "global k; k = E.B",
    ),
    "namedtup": (
        """
    return a * nt.p
import collections
NT = collections.namedtuple('NT', 'p q')
nt = NT(2.0, 3.0)
""",
        "global nt; nt = nt._replace(p=i)",
    ),
    "setattrover": (
        """
    net.z = 3.0
    return net(a)
class N(nn.Cell):
    def __setattr__(self, n, v):
        if n == 'z': v = v * 2
        super().__setattr__(n, v)
    def construct(self, t): return t * self.z
net = N(); net.z = 1.0
""",
        "net.z = i",
    ),
    "getattrover": (
        """
    return net(a)
class N(nn.Cell):
    def __getattr__(self, n):
        if n == 'zz': return i
        return super().__getattr__(n)
    def construct(self, t): return t * self.zz
net = N()
""",
        "",
    ),
}

PROGRAMS = {
    f"between_{name}": f"{WORLD}def f(a):{body}{STEP}{change}"
    for name, (body, change) in CASES.items()
}
