"""Outside objects with attributes and methods: instances, classes, enums, modules."""

from __future__ import annotations

from .parts import Change, Kind

__all__ = ["KINDS"]

OBJECT = ("truth", "identity", "type", "attribute", "returned")
ATTRIBUTES = (
    Change("attribute", "{o}.v = {n}"),
    Change("new attribute", "{o}.w = {n}"),
    Change("setattr", 'setattr({o}, "v", {n})'),
    Change("delete", "{o}.v = {n}\ndel {o}.v"),
)
DICT = (
    Change("by vars", 'vars({o})["v"] = {n}'),
    Change("by dict", "{o}.__dict__.update(v={n}, w=1.0)"),
)
CLASS = (
    Change("another class", "{o}.__class__ = Other"),
    Change("class attribute", "type({o}).w = {n}"),
)
METHOD = (
    Change("method of the class", "type({o}).go = lambda self, x: x * {n} + self.v"),
    Change("method of the instance", "{o}.go = lambda x: x * {n}"),
    Change("code", "type({o}).go.__code__ = (lambda self, x, y=1.0: x * 3.0 + self.v).__code__"),
    Change("default", "type({o}).go.__defaults__ = ({n},)"),
)
PLAIN = """class Plain:
    def __init__(self, v):
        self.v = v
    def go(self, x, y=1.0):
        return self.v * x + y
class Other(Plain):
    w = 9.0
    def go(self, x):
        return self.v * x + 100.0
"""


def special(name: str, body: str, asks: tuple[str, ...], **own: str) -> Kind:
    """A kind whose class defines special methods; they read `v` and the class's `step`."""
    text = body.replace("\n", "\n    ")
    return Kind(
        name,
        "Special(n)",
        asks,
        (
            Change("attribute", "{o}.v = {n}"),
            Change("class attribute", "type({o}).step = {n}"),
            Change("another class", "{o}.__class__ = Other"),
        ),
        setup=(
            "class Special:\n    step = 1.0\n    def __init__(self, v):\n        self.v = v\n"
            f"    {text}\nclass Other(Special):\n    step = 7.0\n"
        ),
        own=own,
    )


KINDS = (
    Kind(
        "plain object",
        "Plain(n)",
        (*OBJECT, "vars", "method", "hash"),
        (
            *ATTRIBUTES,
            *DICT,
            *CLASS,
            *METHOD,
            Change("store a tensor", "{o}.w = a.sum()", only="inside"),
        ),
        setup=PLAIN,
    ),
    Kind(
        "slotted object",
        "Slotted(n)",
        (*OBJECT, "method"),
        (*ATTRIBUTES, Change("method of the class", METHOD[0].code)),
        setup="""class Slotted:
    __slots__ = ("v", "w")
    def __init__(self, v):
        self.v = v
    def go(self, x):
        return self.v * x
""",
    ),
    Kind(
        "derived object",
        "Derived(n)",
        ("attribute", "method", "type"),
        (
            *ATTRIBUTES[:2],
            Change("base's method", "Plain.go = lambda self, x: x * {n} + self.v"),
            Change("base's attribute", "Plain.w = {n}"),
            Change("bases", "Derived.__bases__ = (Another,)"),
        ),
        setup=PLAIN
        + """class Another(Plain):
    w = 4.0
    def go(self, x):
        return x * 5.0
class Derived(Plain):
    def go(self, x):
        return super().go(x) * 2.0
""",
    ),
    Kind(
        "dataclass",
        "Data(n)",
        (*OBJECT, "vars", "compare", "method", "str"),
        (*ATTRIBUTES, Change("list field", "{o}.items.append({n})"), METHOD[0]),
        setup="""@dataclasses.dataclass
class Data:
    v: float
    items: list = dataclasses.field(default_factory=list)
    def go(self, x):
        return self.v * x + len(self.items)
""",
        own={
            "fields": "k = 1.0 + len(dataclasses.fields({o}))",
            "asdict": 'k = dataclasses.asdict({o})["v"]',
            "replace": "k = dataclasses.replace({o}, items=[1.0]).v",
            "list field": "k = 3.0 if {o}.items else 2.0",
        },
    ),
    Kind(
        "frozen dataclass",
        "Data(n)",
        (*OBJECT, "compare", "hash", "order"),
        (Change("object.__setattr__", 'object.__setattr__({o}, "v", {n})'),),
        setup="@dataclasses.dataclass(frozen=True, order=True)\nclass Data:\n    v: float\n",
    ),
    Kind(
        "SimpleNamespace",
        "types.SimpleNamespace(v=n)",
        (*OBJECT, "vars", "compare", "str"),
        (*ATTRIBUTES, *DICT),
    ),
    Kind(
        "property",
        "Owner(n)",
        ("attribute",),
        (
            Change("field", "{o}._v = {n}"),
            Change("set", "{o}.v = {n}"),
            Change("another property", "type({o}).v = property(lambda self: self._v * {n})"),
            Change("class attribute", "type({o}).step = {n}"),
        ),
        setup="""class Owner:
    step = 1.0
    def __init__(self, v):
        self._v = v
    @property
    def v(self):
        return self._v + self.step
    @v.setter
    def v(self, value):
        self._v = value * 2.0
""",
    ),
    Kind(
        "property with an effect",
        "Owner(n)",
        ("attribute",),
        (Change("field", "{o}._v = {n}"),),
        used=True,
        setup="""class Owner:
    def __init__(self, v):
        self._v = v
        self.reads = 0
    @property
    def v(self):
        self.reads += 1
        return self._v + self.reads
""",
    ),
    Kind(
        "cached property",
        "Owner(n)",
        ("attribute",),
        (
            Change("field", "{o}._v = {n}"),
            Change("forget", '{o}.__dict__.pop("v", None)\n{o}._v = {n}'),
        ),
        setup="""class Owner:
    def __init__(self, v):
        self._v = v
    @functools.cached_property
    def v(self):
        return self._v * 2.0
""",
    ),
    Kind(
        "descriptor",
        "Owner(n)",
        ("attribute",),
        (
            Change("value", "{o}.v = {n}"),
            Change("state", 'vars(type({o}))["v"].scale = {n}'),
            Change("another", "type({o}).v = Scaled({n})"),
        ),
        setup="""class Scaled:
    def __init__(self, scale):
        self.scale = scale
    def __get__(self, obj, cls):
        return self if obj is None else obj.__dict__.get("_v", 1.0) * self.scale
    def __set__(self, obj, value):
        obj.__dict__["_v"] = value
class Owner:
    v = Scaled(2.0)
    def __init__(self, v):
        self.v = v
""",
    ),
    Kind(
        "class attribute",
        "Owner()",
        ("attribute", "method"),
        (
            Change("of the class", "type({o}).v = {n}"),
            Change("shadowed", "{o}.v = {n}"),
            Change("unshadowed", "{o}.v = {n}\ndel {o}.v\ntype({o}).v = {n}"),
        ),
        setup="class Owner:\n    v = 2.0\n    def go(self, x):\n        return self.v * x\n",
    ),
    Kind(
        "list as class attribute",
        "Owner()",
        ("truth", "identity"),
        (
            Change("append", "{o}.items.append({n})"),
            Change("of the class", "type({o}).items = [{n}]"),
            Change("shadowed", "{o}.items = [{n}]"),
        ),
        setup="class Owner:\n    items = []\n",
        own={
            "truth": "k = 3.0 if {o}.items else 2.0",
            "sum": "k = 1.0 + sum({o}.items)",
            "not": "k = 3.0 if not {o}.items else 2.0",
            "len": "k = 1.0 + len({o}.items)",
        },
    ),
    Kind(
        "class",
        "type('Made', (Base,), {'v': n})",
        ("attribute", "identity", "hash", "returned", "truth"),
        (
            Change("attribute", "{o}.v = {n}"),
            Change("new attribute", "{o}.w = {n}"),
            Change("of the base", "Base.w = {n}"),
            Change("method", "{o}.go = classmethod(lambda cls, x: x * {n})"),
        ),
        setup="""class Base:
    @classmethod
    def go(cls, x):
        return cls.v * x
    @staticmethod
    def still(x):
        return x * 2.0
""",
        own={
            "classmethod": "k = {o}.go(2.0)",
            "staticmethod": "k = {o}.still(2.0)",
            "instance": "k = {o}().v",
            "issubclass": "k = 3.0 if issubclass({o}, Base) else 2.0",
            "name": "k = 1.0 + len({o}.__name__)",
        },
    ),
    Kind(
        "class with a metaclass",
        "Made",
        ("attribute", "truth", "len", "identity"),
        (Change("attribute", "{o}.v = {n}"), Change("of the metaclass", "Meta.size = int({n})")),
        setup="""class Meta(type):
    size = 2
    def __len__(cls):
        return cls.size
    def __bool__(cls):
        return cls.size < 6
class Made(metaclass=Meta):
    v = 2.0
""",
    ),
    Kind(
        "object with __getattr__",
        "Lazy(n)",
        ("attribute",),
        (
            Change("held", "{o}.held['v'] = {n}"),
            Change("new", "{o}.held['w'] = {n}"),
            Change("found first", "{o}.v = {n}"),
        ),
        setup="""class Lazy:
    def __init__(self, v):
        self.held = {"v": v}
    def __getattr__(self, name):
        try:
            return self.__dict__["held"][name]
        except KeyError:
            raise AttributeError(name) from None
""",
    ),
    Kind(
        "object with __getattribute__",
        "Watched(n)",
        ("attribute", "method"),
        (Change("attribute", "{o}.v = {n}"), Change("class attribute", "Watched.step = {n}")),
        setup="""class Watched:
    step = 1.0
    def __init__(self, v):
        self.v = v
    def __getattribute__(self, name):
        found = object.__getattribute__(self, name)
        return found * Watched.step if name == "v" else found
    def go(self, x):
        return self.v * x
""",
    ),
    special(
        "object with __bool__",
        "def __bool__(self):\n    return self.v * self.step < 6.0",
        ("truth",),
    ),
    special(
        "object with __len__",
        "def __len__(self):\n    return int(self.v * self.step) % 5",
        ("truth", "len"),
    ),
    special(
        "object with __getitem__",
        "def __getitem__(self, i):\n    if i > 2:\n        raise IndexError(i)\n"
        "    return self.v * self.step + i",
        ("index", "iterate", "member")[0:1] + ("iterate", "member"),
    ),
    special(
        "object with __iter__",
        "def __iter__(self):\n    yield self.v\n    yield self.step",
        ("iterate", "unpack", "member"),
    ),
    special(
        "object with __contains__",
        "def __contains__(self, x):\n    return self.v * self.step > 6.0",
        ("member",),
    ),
    special(
        "object with __eq__",
        "def __eq__(self, other):\n    return self.v == other.v and self.step < 6.0\n"
        "def __hash__(self):\n    return int(self.v)",
        ("compare", "hash"),
    ),
    special(
        "object with __lt__",
        "def __lt__(self, other):\n    return self.v * self.step < other.v\n"
        "def __gt__(self, other):\n    return self.v * self.step > other.v",
        (),
        less="k = 3.0 if {o} < make(3.0) else 2.0",
        greater="k = 3.0 if {o} > make(3.0) else 2.0",
    ),
    special(
        "object with __call__",
        "def __call__(self, x):\n    return self.v * x + self.step",
        ("call",),
    ),
    special(
        "object with __add__",
        "def __add__(self, x):\n    return self.v * x + self.step\n__radd__ = __add__",
        (),
        add="k = {o} + 2.0",
        radd="k = 2.0 + {o}",
        sum="k = sum([{o}])",
    ),
    special(
        "object with __float__",
        "def __float__(self):\n    return self.v * self.step\n"
        "def __index__(self):\n    return int(self.v) % 3\ndef __int__(self):\n    "
        "return int(self.v)",
        (),
        float="k = float({o})",
        int="k = 1.0 + int({o})",
        index="k = (5.0, 6.0, 9.0)[{o}]",
        round="k = 1.0 + len(range({o}))",
    ),
    special(
        "object with __str__",
        "def __str__(self):\n    return f'<{self.v * self.step}>'\n__repr__ = __str__\n"
        "def __format__(self, spec):\n    return str(self)",
        ("str",),
    ),
    special(
        "object with __enter__",
        "def __enter__(self):\n    return self.v * self.step\n"
        "def __exit__(self, *_):\n    return False",
        (),
        **{"with": "with {o} as v:\n    k = v"},
    ),
    special(
        "object with __instancecheck__",
        "def go(self):\n    return self.v",
        (),
        isinstance="k = 3.0 if isinstance({o}, Other) else 2.0",
        tuple="k = 3.0 if isinstance({o}, (int, Other)) else 2.0",
        subclass="k = 3.0 if issubclass(type({o}), Other) else 2.0",
    ),
    Kind(
        "Enum",
        "Colour.RED",
        ("truth", "identity", "hash", "type", "returned"),
        (
            Change("another", "{o} = Colour.BLUE", rebinds=True),
            Change("value", "{o}._value_ = {n}"),
        ),
        setup="class Colour(enum.Enum):\n    RED = 2.0\n    BLUE = 3.0\n",
        own={
            "value": "k = {o}.value",
            "name": "k = 1.0 + len({o}.name)",
            "equal": "k = 3.0 if {o} == Colour.RED else 2.0",
            "members": "k = 1.0 + sum(c is {o} for c in Colour)",
        },
    ),
    Kind(
        "IntEnum",
        "Level.LOW",
        ("truth", "identity", "hash", "type", "number"),
        (Change("another", "{o} = Level.HIGH", rebinds=True),),
        setup="class Level(enum.IntEnum):\n    LOW = 2\n    HIGH = 9\n",
    ),
    Kind(
        "Flag",
        "Bits.A",
        ("truth", "identity", "type"),
        (
            Change("or", "{o} |= Bits.B", rebinds=True),
            Change("none", "{o} = Bits(0)", rebinds=True),
        ),
        setup="class Bits(enum.Flag):\n    A = 1\n    B = 2\n",
        own={"in": "k = 3.0 if Bits.B in {o} else 2.0", "and": "k = 3.0 if {o} & Bits.B else 2.0"},
    ),
    Kind(
        "weak reference",
        "weakref.ref(BACK[0])",
        ("truth", "identity", "type"),
        (
            Change("target changed", "BACK[0].v = {n}"),
            Change("target gone", "BACK[0] = Target({n})"),
        ),
        setup="class Target:\n    def __init__(self, v):\n        self.v = v\nBACK = [Target(2.0)]",
        own={
            "target": "k = 1.5 if {o}() is None else {o}().v",
            "alive": "k = 3.0 if {o}() is not None else 2.0",
        },
    ),
    Kind(
        "module",
        "new_module(n)",
        ("attribute", "identity", "type", "vars", "returned"),
        (*ATTRIBUTES[:3], *DICT, Change("function", "{o}.go = lambda x: x * {n}")),
        setup="def new_module(n):\n    m = types.ModuleType('made')\n    m.v = n\n"
        "    m.go = lambda x: x * m.v\n    return m",
        own={"function": "k = {o}.go(2.0)", "items": "k = 1.0 + sum(x == 'w' for x in dir({o}))"},
    ),
    Kind(
        "nested object",
        "types.SimpleNamespace(b=types.SimpleNamespace(c=[n, 1.0], v=n))",
        ("truth", "identity"),
        (
            Change("leaf", "{o}.b.c[0] = {n}"),
            Change("attribute", "{o}.b.v = {n}"),
            Change("middle", "{o}.b = types.SimpleNamespace(c=[], v={n})"),
            Change("clear", "{o}.b.c.clear()\n{o}.b.v = {n}"),
        ),
        own={
            "leaf": "k = 1.0 + sum({o}.b.c)",
            "truth": "k = 3.0 if {o}.b.c else 2.0",
            "attribute": "k = {o}.b.v",
            "attrgetter": 'k = operator.attrgetter("b.v")({o})',
            "len": "k = 1.0 + len({o}.b.c)",
        },
    ),
    Kind(
        "None or a number",
        "n",
        ("number", "truth", "type", "hash", "str", "returned"),
        (
            Change("None", "{o} = None if {o} else {n}", rebinds=True, only="outside"),
            Change("another type", "{o} = int({n})", rebinds=True),
            Change("in place", "{o} += 1.0", rebinds=True),
        ),
        own={"is None": "k = 3.0 if {o} is None else 2.0"},
    ),
    Kind(
        "Exception",
        "ValueError(n, 'text')",
        ("truth", "identity", "type", "returned"),
        (Change("args", "{o}.args = ({n},)"), Change("attribute", "{o}.v = {n}")),
        own={
            "args": "k = float({o}.args[0])",
            "len": "k = 1.0 + len({o}.args)",
            "raise": "try:\n    raise {o}\nexcept ValueError as e:\n    k = float(e.args[0])",
            "str": "k = 1.0 + sum(map(ord, str({o})))",
        },
    ),
)
