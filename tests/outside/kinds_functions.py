"""Outside functions of all sorts: code, defaults, closure and receiver decide what they compute."""

from __future__ import annotations

from .parts import Change, Kind

__all__ = ["KINDS"]

CALL = ("call", "identity", "truth", "returned")
FUNCTION = (
    Change("code", "{o}.__code__ = (lambda x, y=1.0, z=1.0: x * 3.0).__code__"),
    Change("defaults", "{o}.__defaults__ = ({n},)"),
    Change("keyword defaults", '{o}.__kwdefaults__ = {{"z": {n}}}'),
    Change("attribute", "{o}.v = {n}"),
)
OWN = {
    "of the tensor": "k = float(2.0)\na = {o}(a)",
    "attribute": 'k = float(getattr({o}, "v", 1.5))',
    "default": "k = float(({o}.__defaults__ or (1.5,))[0])",
    "code": "k = 1.0 + {o}.__code__.co_argcount",
    "in a list": "k = float([{o}][0](2.0))",
    "in a dict": 'k = float({{"go": {o}}}["go"](2.0))',
    "passed": "k = float((lambda go: go(2.0))({o}))",
    "reduce": "k = float(functools.reduce(lambda x, _: {o}(x), (1, 2), 2.0))",
    "chosen": "k = 1.0\n"
    "a = ({o} if a.sum() > 100.0 else OTHER)(a) + ({o} if a.sum() < 100.0 else OTHER)(a)",
}
OTHER = "def OTHER(x):\n    return x * 0.5\n"
RECEIVER = """class Receiver:
    step = 1.0
    def __init__(self, v):
        self.v = v
        self.items = []
    def go(self, x):
        return self.v * x + self.step + len(self.items)
    @classmethod
    def of_class(cls, x):
        return cls.step * x
    @staticmethod
    def of_none(x, y=1.0):
        return x + y
"""

KINDS = (
    Kind(
        "function",
        "new(n)",
        (*CALL, "type", "hash"),
        (*FUNCTION, Change("another of the same line", "{o} = LINE[1]", rebinds=True)),
        setup=OTHER
        + "def new(n):\n    def go(x, y=n, *, z=1.0):\n        return x * y + z\n    return go\n"
        "LINE = [lambda x, w=w: x * w for w in (4.0, 5.0)]",
        own=OWN,
    ),
    Kind(
        "lambda",
        "LINE[0]",
        CALL,
        (
            Change("another of the same line", "{o} = LINE[1]", rebinds=True),
            Change("defaults", "{o}.__defaults__ = ({n},)"),
            Change("code", "{o}.__code__ = (lambda x, w=1.0: x + w).__code__"),
        ),
        setup=OTHER + "LINE = [lambda x, w=w: x * w for w in (4.0, 5.0)]",
        own=OWN,
    ),
    Kind(
        "closure",
        "new([n])",
        (*CALL, "hash"),
        (
            Change("contents", "{o}.__closure__[0].cell_contents.append({n})"),
            Change("cell", "{o}.__closure__[0].cell_contents = [{n}]"),
            Change("item", "{o}.__closure__[0].cell_contents[0] = {n}"),
        ),
        setup=OTHER + "def new(c):\n    return lambda x: x * c[0] + len(c)\n",
        own=OWN,
    ),
    Kind(
        "closure that counts",
        "new(n)",
        ("call",),
        (Change("cell", "{o}.__closure__[0].cell_contents = {n}"),),
        used=True,
        setup="def new(c):\n    def go(x):\n        nonlocal c\n        c += 1.0\n"
        "        return x * c\n    return go\n",
    ),
    Kind(
        "list of lambdas",
        "[lambda x, w=w: x * w for w in (n, n + 1.0)]",
        ("truth", "len", "identity"),
        (
            Change("replaced", "{o}[0] = lambda x: x + {n}"),
            Change("swapped", "{o}.reverse()"),
            Change("defaults", "{o}[0].__defaults__ = ({n},)"),
            Change("appended", "{o}.append(lambda x: x * {n})"),
        ),
        own={
            "first": "k = {o}[0](2.0)",
            "all": "k = 1.0\nfor go in {o}:\n    k = go(k)",
            "chosen": "k = 1.0\na = ({o}[0] if a.sum() > 0 else {o}[1])(a)",
            "chosen other": "k = 1.0\na = ({o}[0] if a.sum() < 0 else {o}[1])(a)",
            "called": "k = 1.0\na = {o}[1]({o}[0](a))",
        },
    ),
    Kind(
        "dict of functions",
        '{"go": lambda x: x * n, "by": lambda x: x + n}',
        ("truth", "len"),
        (
            Change("replaced", '{o}["go"] = lambda x: x + {n}'),
            Change("cell", '{o}["go"].__closure__[0].cell_contents = {n}'),
        ),
        own={
            "go": 'k = {o}["go"](2.0)',
            "of the tensor": 'k = 1.0\na = {o}["go"](a)',
            "chosen": 'k = 1.0\na = {o}["go" if a.sum() > 0 else "by"](a) if a.shape else a',
        },
    ),
    Kind(
        "partial",
        "functools.partial(base, n, z=[1.0])",
        CALL,
        (
            Change("keyword item", '{o}.keywords["z"].append({n})'),
            Change("keyword", '{o}.keywords["z"] = [{n}, {n}]'),
            Change("state", '{o}.__setstate__((base, ({n},), {{"z": []}}, {{}}))'),
            Change("function's defaults", "base.__defaults__ = ({n}, [])"),
            Change("function's code", "base.__code__ = (lambda y, x, u=0.0, z=1: x + y).__code__"),
        ),
        setup=OTHER + "def base(y, x, u=0.0, z=()):\n    return x * y + u + len(z)\n",
        own={k: v for k, v in OWN.items() if k not in ("default", "code")}
        | {
            "args": "k = {o}.args[0]",
            "keywords": 'k = 1.0 + len({o}.keywords["z"])',
            "func": "k = 3.0 if {o}.func is base else 2.0",
        },
    ),
    Kind(
        "partial of a list",
        "functools.partial(base, [n, 1.0])",
        CALL,
        (
            Change("item", "{o}.args[0][0] = {n}"),
            Change("append", "{o}.args[0].append({n})"),
            Change("clear", "{o}.args[0].clear()"),
        ),
        setup="def base(held, x):\n    return x * (3.0 if held else 2.0) + sum(held)\n",
    ),
    Kind(
        "bound method",
        "Receiver(n).go",
        CALL,
        (
            Change("receiver's attribute", "{o}.__self__.v = {n}"),
            Change("receiver's list", "{o}.__self__.items.append({n})"),
            Change("method", "Receiver.go = lambda self, x: x * {n}"),
            Change("class attribute", "Receiver.step = {n}"),
            Change("code", "Receiver.go.__code__ = (lambda self, x: x + self.v).__code__"),
        ),
        setup=RECEIVER,
        own={
            "receiver": "k = {o}.__self__.v",
            "same": "k = 3.0 if {o} == {o}.__self__.go else 2.0",
        },
    ),
    Kind(
        "class method",
        "Receiver.of_class",
        ("call", "truth"),
        (
            Change("class attribute", "Receiver.step = {n}"),
            Change("method", "Receiver.of_class = classmethod(lambda cls, x: x * {n})"),
            Change(
                "code",
                "Receiver.of_class.__func__.__code__ = (lambda cls, x: x + cls.step).__code__",
            ),
        ),
        setup=RECEIVER,
        own={
            "by the class": "k = Receiver.of_class(2.0)",
            "by an instance": "k = Receiver(1.0).of_class(2.0)",
        },
    ),
    Kind(
        "static method",
        "Receiver.of_none",
        ("call",),
        (
            Change("method", "Receiver.of_none = staticmethod(lambda x: x * {n})"),
            Change("defaults", "Receiver.of_none.__defaults__ = ({n},)"),
            Change("code", "Receiver.of_none.__code__ = (lambda x, y=1.0: x * 5.0).__code__"),
        ),
        setup=RECEIVER,
        own={
            "by the class": "k = Receiver.of_none(2.0)",
            "by an instance": "k = Receiver(1.0).of_none(2.0)",
        },
    ),
    Kind(
        "callable object",
        "Adder(n)",
        (*CALL, "type"),
        (
            Change("attribute", "{o}.v = {n}"),
            Change("method", "Adder.__call__ = lambda self, x: x * {n}"),
            Change("class", "{o}.__class__ = Other"),
            Change("instance attribute that Python ignores", "{o}.__call__ = lambda x: x * {n}"),
        ),
        setup=OTHER + "class Adder:\n    def __init__(self, v):\n        self.v = v\n"
        "    def __call__(self, x):\n        return x + self.v\n"
        "class Other(Adder):\n    def __call__(self, x):\n        return x * self.v\n",
        own={k: OWN[k] for k in ("of the tensor", "in a list", "passed", "chosen")},
    ),
    Kind(
        "decorated function",
        "decorated(n)",
        CALL,
        (
            Change("wrapped", "{o}.__wrapped__.__defaults__ = ({n},)"),
            Change("factor", "FACTOR[0] = {n}"),
        ),
        setup=OTHER
        + """FACTOR = [1.0]
def scale(go):
    @functools.wraps(go)
    def wrapper(*args, **named):
        return go(*args, **named) * FACTOR[0]
    return wrapper
def decorated(n):
    @scale
    def go(x, y=n):
        return x + y
    return go
""",
        own={"of the tensor": OWN["of the tensor"], "chosen": OWN["chosen"]},
        roots=("FACTOR",),
    ),
    Kind(
        "cached function",
        "cached(n)",
        ("call",),
        (
            Change("forget", "{o}.cache_clear()\nFACTOR[0] = {n}"),
            Change("factor", "FACTOR[0] = {n}"),
        ),
        setup="FACTOR = [1.0]\ndef cached(n):\n    @functools.lru_cache\n    def go(x):\n"
        "        return x * n + FACTOR[0]\n    return go\n",
        own={"info": "k = {o}(2.0) + {o}.cache_info().hits"},
        used=True,
    ),
    Kind(
        "function with effects",
        "counting(n)",
        ("call",),
        (Change("log", "LOG.append({n})"),),
        used=True,
        roots=("LOG",),
        setup="LOG = []\ndef counting(n):\n    def go(x):\n        LOG.append(x)\n"
        "        return x * n + len(LOG)\n    return go\n",
        own={"of the tensor": "k = 2.0\na = {o}(a) if a.shape else a"},
    ),
    Kind(
        "generator function",
        "new(n)",
        ("identity",),
        (Change("defaults", "{o}.__defaults__ = ({n},)"), FUNCTION[0]),
        setup="def new(n):\n    def go(x=n, y=1.0):\n        yield x\n        "
        "yield x + 1.0\n    return go\n",
        own={
            "sum": "k = 1.0 + sum({o}())",
            "loop": "k = 1.0\nfor v in {o}():\n    k = k * 2.0 + v",
            "next": "k = next({o}())",
        },
    ),
    Kind(
        "builtin function",
        "max",
        ("identity", "truth"),
        (Change("another", "{o} = min", rebinds=True),),
        own={"call": "k = {o}(2.0, 3.0)", "map": "k = list(map({o}, (2.0,), (3.0,)))[0]"},
    ),
    Kind(
        "itemgetter",
        "operator.itemgetter(int(n) - 2)",
        ("identity", "truth"),
        (Change("another", "{o} = operator.itemgetter(1)", rebinds=True),),
        setup="ROWS = [[1.0, 3.0] * 4, [2.0, 1.0] * 4]",
        own={
            "call": "k = {o}([2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])",
            "sorted": "k = 2.0\nfor v in sorted(ROWS, key={o}):\n    k = k * 2.0 + v[0]",
        },
    ),
    Kind(
        "global of a helper function",
        "helping(n)",
        ("call",),
        (
            Change("global", "FACTOR[0] = {n}"),
            Change("truth", "MARKS.append({n})"),
            Change("inner default", "inner.__defaults__ = ({n},)"),
            Change("inner code", "inner.__code__ = (lambda x, y=1.0: x - y).__code__"),
        ),
        setup="FACTOR = [1.0]\nMARKS = []\ndef inner(x, y=1.0):\n    return x + y\n"
        "def helping(n):\n    return lambda x: inner(x) * (FACTOR[0] if MARKS else 2.0) + n\n",
        roots=("FACTOR", "MARKS"),
        own={"of the tensor": OWN["of the tensor"]},
    ),
    Kind(
        "recursive function",
        "fact",
        ("call",),
        (
            Change("code", "{o}.__code__ = (lambda x, y=1.0: x * 3.0).__code__"),
            Change("defaults", "{o}.__defaults__ = ({n},)"),
        ),
        setup="def fact(x, y=1.0):\n    return y if x < 1.0 else x * fact(x - 1.0, y)\n",
    ),
    Kind(
        "compiled function",
        "jit(new(n))",
        ("identity",),
        (Change("factor", "FACTOR[0] = {n}"),),
        setup="FACTOR = [1.0]\ndef new(n):\n    def go(x):\n        "
        "return x * n * FACTOR[0]\n    return go\n",
        own={"of the tensor": OWN["of the tensor"]},
        roots=("FACTOR",),
    ),
)
