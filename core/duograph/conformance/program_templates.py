"""Templates of random test programs: surrounding code, expressions by kind of value, conditions.

`random_expressions` and `random_programs` replace the placeholders, such as ``{v}`` for a vector
expression. The module holds data alone.
"""

from __future__ import annotations

__all__ = [
    "BPROP",
    "HEAD",
    "CELL",
    "CHANGES",
    "FROM_VECTOR",
    "OPS",
    "GRADIENTS",
    "SECOND",
    "CONDITIONS",
    "KNOWN",
    "RETURNS",
    "INDEX",
    "ITEMS",
    "REFUSED",
]

# What the own gradient of `Scale` returns; it is no derivative, so that its use shows.
BPROP = "return (dout * 3 + x * 0.125,)"

HEAD = """
import collections
import enum

class Scale(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (dout * 3 + x * 0.125,)

class Layer(nn.Cell):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.scale = Parameter(Tensor(0.5 + k), name="scale")

    def construct(self, x):
        if self.k > 0 and x.sum() > 0:
            return ops.tanh(x) * self.scale
        return x * self.scale

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([0.5, -0.25, 1.0]), name="w")
        self.b = Parameter(Tensor([0.125, 0.25, -0.5]), name="b")
        self.cells = nn.CellList([Layer(0), Layer(1)])
        self.scale = Scale()
        self.n = 1
        self.last = Tensor([0.0, 0.0, 0.0])
        self.log = []
        self.items = [Tensor([0.5, 0.5, -1.0]), Tensor([1.0, 0.0, 0.25])]
        self.table = {"a": Tensor([0.25, 1.0, 0.5]), "k": 2}

    def construct(self, x):
        return ops.tanh(x * self.w + self.b)

Pair = collections.namedtuple("Pair", "a b")

class Box:
    def __init__(self):
        self.value = Tensor([1.0, -1.0, 0.5])
        self.count = 0

    def add(self, t):
        self.count += 1
        self.value = self.value * 0.5 + t
        return self.value

class Unit:
    k = 2
    kinds = {"a": 0.5}

    @property
    def gain(self):
        return self.k * 0.25

    def __getattr__(self, name):
        if name == "extra":
            return 0.5
        raise AttributeError(name)

class Big(Unit):
    @property
    def gain(self):
        return super().gain + 0.125

    def __call__(self, t):
        return t * self.k

    def __len__(self):
        return self.k

    def __contains__(self, key):
        return key in self.kinds

    def __getitem__(self, key):
        return self.kinds.get(key, 0.25)

class Kind(enum.Enum):
    A = 0.5
    B = 0.75

def outer(t, k=0.5):
    return t * k

net = Net()
unit = Big()
KIND = Kind.A
box = Box()
FACTOR = 0.5
count = 0
NUMBERS = [0.5, 1.0]
TABLE = {"k": 0.5}
ARRAY = np.array([0.5, 0.25, 1.0])
PAIRS = [lambda t, w=w: t * w for w in (0.5, -0.5)]
RECENT = collections.deque([0.5, 0.25])
WATCH = ("net.w", "net.b", "net.n", "net.last", "net.log", "net.items", "net.table")
WATCH += ("box.value", "box.count", "count", "NUMBERS", "TABLE", "ARRAY", "list(RECENT)")
WATCH += ("vars(unit)", "Unit.kinds")
"""

CELL = """
class Main(nn.Cell):
    def construct(self, x, y):
        return body(x, y)

f = Main()
"""

# Kinds: v is float32 (3,), s float32 (), m float32 (2, 3), u float32 (1,), z float32 (0,), h
# float16 (3,), i int32 (3,), b bool (3,), n a Python number. A hole {v} takes an expression of that
# kind.
FROM_VECTOR = {
    "s": ("{v}.sum()", "{v}.mean()", "{v}[1]", "{v}[-1]", "{v}.max()", "({v} * {v}).sum()"),
    "m": ("ops.stack(({v}, {v}))", "({v} * Tensor([[1.0], [0.5]]))", "{v}.broadcast_to((2, 3))"),
    "u": ("{v}[:1]", "{v}.sum().reshape(1)", "{v}.mean(0, True)"),
    "z": ("{v}[3:]", "{v}[:0]"),
    "h": ("{v}.astype(ms.float16)", "ops.cast({v}, ms.float16)"),
    "i": ("(ops.tanh({v}) * 3).astype(ms.int32)", "({v} > 0.25).astype(ms.int32)"),
    "b": ("({v} > {v})", "({v} < 0.5)", "({v} != {v})"),
}
OPS = {
    "v": (
        "Pair({v}, {v}).{p}",
        "ops.tanh({v})",
        "ops.sin({v})",
        "ops.sigmoid({v})",
        "ops.relu({v})",
        "(-{v})",
        "({v} * 0.5)",
        "(1 - {v})",
        "{v}.abs()",
        "{v}[::-1]",
        "ops.softmax({v}, 0)",
        "({v} - {v}.mean())",
        "net({v})",
        "ops.cos({v} * FACTOR)",
        "(ops.tanh({v}) ** 2)",
        "({v} + {v})",
        "({v} * {v} * 0.5)",
        "({v} - {v})",
        "ops.maximum({v}, {v})",
        "ops.where({b}, {v}, {v})",
        "({v} / ({v} * {v} + 1))",
        "ops.minimum({v}, {v} + 0.5)",
        "({v} * {s})",
        "({v} + {n})",
        "(ops.tanh({v}) * {n})",
        "{m}[0]",
        "{m}.sum(0)",
        "(({m} @ {v}).sum() * {v})",
        "({v} + {u})",
        "({v} + {z}.sum())",
        "ops.concat(({v}[1:], {u}))",
        "ops.concat(({z}, {v}))",
        "{h}.astype(ms.float32)",
        "({i} * {v})",
        "({b} * {v})",
        "{v}[{i}.abs() % 3]",
        "(net.w * {v})",
        "(net.b + {v})",
        "(net.last + {v})",
        "net.items[{j}]",
        "(net.table['a'] * {v})",
        "box.value",
        "net.cells[{j}]({v})",
        "net.scale({v})",
        "ops.stop_gradient({v})",
        "({v} if {c} else {v})",
        "[{v}, {v}][{j}]",
        "max({v}, {v}, key=lambda t: t.shape[0])",
        "ops.cumsum({v}, 0)",
        "ops.clamp({v}, -1, 1)",
        "{v}.reshape((3, 1)).T[0]",
        "(lambda t: t * {v})({v})",
        "({v} * NUMBERS[0])",
        "({v} + sum(NUMBERS))",
        "({v} * TABLE.get('k', 0.25))",
        "({v} * float(ARRAY[1]))",
        "(ops.tanh({v}) * len(RECENT))",
        "({v} - max(RECENT, default=0.5))",
        "PAIRS[{j}]({v})",
        "(PAIRS[0] if {c} else PAIRS[1])({v})",
        "outer({v})",
        "outer({v}, *NUMBERS[:1])",
        "({v} * unit.gain)",
        "({v} + unit.extra)",
        "unit({v})",
        "({v} * len(unit))",
        "({v} * unit['a'])",
        "({v} if 'a' in unit else -{v})",
        "({v} * KIND.value)",
        "({v} if KIND is Kind.A else {v})",
    ),
    "s": (
        "({s} + {s})",
        "({s} * {s})",
        "ops.tanh({s})",
        "{m}.mean()",
        "{z}.sum()",
        "{u}.sum()",
        "({s} * {n})",
        "{h}.astype(ms.float32).sum()",
        "{i}.sum().astype(ms.float32)",
        "({s} if {c} else {s})",
        "max({s}, {s})",
    ),
    "m": (
        "({m} * {v})",
        "({m} + {m})",
        "ops.tanh({m})",
        "{m}[::-1]",
        "({m} * {s})",
        "({m} if {c} else {m})",
    ),
    "u": ("({u} * {u})", "({u} + {s})", "ops.sin({u})"),
    "z": ("({z} * 2)", "({z} + {s})", "({z} + {u})"),
    "h": ("({h} * 0.5)", "({h} + {h})", "ops.tanh({h})"),
    "i": ("({i} + {i})", "({i} % 3)", "({i} // 2)", "(-{i})", "({i} * {b})"),
    "b": ("({b} & {b})", "ops.logical_not({b})", "({b} | {b})"),
}
GRADIENTS = (
    "ms.grad({f})({v}, {v})",
    "ms.grad({f}, (0, 1))({v}, {v})[1]",
    "ms.grad({f}, 1)({v}, {v})",
    "ms.value_and_grad({f})({v}, {v})[1]",
    "ms.grad(lambda t: (t * {v}).sum())({v})",
    "ms.grad(lambda t: {f}(t, {v}).sum() * {s})({v})",
    "ms.grad({f}, None, [net.w])({v}, {v})[0]",
    "ms.jvp(lambda t: {f}(t, t), {v}, {v})[1]",
    "ms.vjp(lambda t: {f}(t, t), {v})[1]({v})[0]",
    "ms.grad(lambda t: ops.tanh(t) * {v})({v})",
    "ops.GradOperation(get_all=True)({f})({v}, {v})[0]",
)
SECOND = (
    "ms.grad(lambda t: (ms.grad(lambda r: ops.tanh(r) * t * {v})(t)).sum())({v})",
    "ms.grad(ms.grad(lambda t: ops.sin(t) * t))({v})",
    "ms.grad(lambda t: ms.grad({f})(t, {v}).sum())({v})",
)
CONDITIONS = (
    "{v}.sum() > {q}",
    "{v}[0] < {q}",
    "{v}.mean() > {v}.mean()",
    "({v} > {v}).any()",
    "{s} > {q}",
    "{v}.max() > 0 and {v}.min() < 0.5",
    "not {v}.sum() > 0",
    "{v}.sum() > 0 or {s} > 0",
    "{b}.all()",
    "0 < {s} < 1",
    "{v}.sum() > 0 and net.n > 1",
    "net.n > 1 or {s} > 0.5",
    "{i}.sum() > 1",
    "{i}[0]",
    "({s} > 0) == ({s} > {q})",
)
KNOWN = (
    "net.n > 1",
    "{v}.shape[0] == 3",
    "FACTOR > 1",
    "len(net.log) < 2",
    "net.last is None",
    "box.count % 2 == 0",
    "isinstance(net.n, int)",
    "count > 1",
    "'a' in net.table",
    "net.table['k'] == 2",
    "NUMBERS",
    "not RECENT",
    "'z' in TABLE",
    "len(NUMBERS) > 2",
    "ARRAY.sum() > 1.5",
    "NUMBERS == [0.5, 1.0]",
    "PAIRS[0] is PAIRS[-1]",
    "getattr(box, 'extra', 0) > 0",
)
# Statements that change, between two calls, what a program reads outside.
CHANGES = (
    "FACTOR = FACTOR + 0.25",
    "NUMBERS.append(0.25)",
    "NUMBERS[0] = -0.5",
    "NUMBERS[:] = [0.25]",
    "NUMBERS = [1.0, 0.5, 0.25]",
    "TABLE['k'] = -0.5",
    "TABLE.pop('k', None)",
    "TABLE['z'] = 1.0",
    "ARRAY[1] = -0.75",
    "ARRAY *= 0.5",
    "PAIRS.reverse()",
    "PAIRS[0] = lambda t: t * 0.25",
    "PAIRS[0].__defaults__ = (0.125,)",
    "PAIRS[1] = PAIRS[0]",
    "outer.__defaults__ = (-0.5,)",
    "outer.__code__ = (lambda t, k=0.5: t - k).__code__",
    "RECENT.append(0.75)",
    "RECENT.clear()",
    "net.n += 1",
    "net.n = -net.n",
    "net.items.reverse()",
    "net.items[0] = Tensor([0.25, -0.5, 0.5])",
    "net.items[1][0] = 0.125",
    "net.table['a'] = Tensor([0.5, -0.5, 0.25])",
    "net.table['k'] += 1",
    "net.last = Tensor([0.5, 0.25, -0.5])",
    "net.last[0] = 0.5",
    "net.w.set_data(net.w * 0.5)",
    "net.b[1] = 0.75",
    "net.log.append(3)",
    "net.log.clear()",
    "net.cells[0].k = 1 - net.cells[0].k",
    "net.cells[1].scale.set_data(Tensor(0.25))",
    "box.count += 1",
    "box.extra = 1",
    "box.value = Tensor([0.5, 0.25, -0.5])",
    "Box.add = lambda self, t: t * 0.5",
    "Layer.construct = lambda self, x: x * self.scale",
    "unit.k += 1",
    "Unit.k = 3",
    "Unit.gain = property(lambda self: 0.75)",
    "Unit.kinds['a'] = -0.25",
    "Unit.kinds = {}",
    "Big.gain = 0.25",
    "Big.__call__ = lambda self, t: t + self.k",
    "Big.__len__ = lambda self: 1",
    "Big.__contains__ = lambda self, key: False",
    "unit.extra = 0.25",
    "unit = Big()",
    "KIND = Kind.B",
    "count += 3",
    "count = 0.5",
)
RETURNS = (
    "{v}",
    "{v}",
    "{v}",
    "({v}, {s})",
    "[{v}, {v}]",
    "{{'a': {v}, 'b': {s}}}",
    "({v}, net.n)",
    "({v}, ({m}, {i}))",
    "Pair({v}, {s})",
)
INDEX = ("0", "-1", "1:", ":2", "::2", "::-1", "...", "[2, 0]", "{b}")
ITEMS = {
    "0": ("{v}[1]", "{s}", "0.5", "{n}"), "-1": ("0.5", "{s}"), "1:": ("{v}[:2]", "0.5", "{u}"),
    ":2": ("0.25", "{v}[1:]"), "::2": ("{v}[1:] * 2",), "::-1": ("{v}",), "...": ("{v}", "0.125"),
    "[2, 0]": ("{v}[:2]", "{s}"), "{b}": ("0.75",),
}  # fmt: skip
# The errors with which compiled code may refuse: mutation of an object selected by a tensor, items
# of `map` whose computation has an effect, second order through a loop, twice, a `bprop` with an
# effect for an input that a branch makes constant.
REFUSED = (
    "to one of several Tensors|got one of several Tensors|keeps, or of one of two, chosen|"
    "an effect of an item|used twice inside a higher derivative|"
    "before an iteration of the loop and nothing after|a constant in some of the runs"
)
