"""Outside objects that asking changes, or that the world changes: iterators, files, locks."""

from __future__ import annotations

from .parts import Change, Kind

__all__ = ["KINDS"]

NEXT = {
    "next": "k = float(next({o}, 1.5))",
    "twice": "k = float(next({o}, 1.5)) * 2.0 + float(next({o}, 1.5))",
    "of the tensor": "k = 2.0\na = a * next({o}, 1.5)",
    "zip": "k = 1.0\nfor _, v in zip((1, 2), {o}):\n    k = k * 2.0 + v",
    "islice": "k = 1.0 + sum(itertools.islice({o}, 2))",
    "unpack": "x, y = next({o}, 1.5), next({o}, 2.5)\nk = x + y",
    "branch": "k = 2.0\nif a.sum() > 0:\n    a = a * next({o}, 1.5)",
    "loop": "k = 1.0\nfor v in {o}:\n    k = k + v\n    break",
    "is": "k = 3.0 if {o} is FIRST else 2.0",
    "helper": "k = float((lambda it: next(it, 1.5))({o}))",
}
USED_UP = {
    "list": "k = 1.0 + sum(list({o}))",
    "comprehension": "k = 1.0 + sum([v for v in {o}])",
    "in": "k = 3.0 if 5.0 in {o} else 2.0",
    "max": "k = float(max({o}, default=1.5))",
}
TAKEN = (Change("taken", "next({o}, None)"),)

KINDS = (
    Kind(
        "list iterator",
        "iter([n, n + 1.0, 4.0, 5.0, 6.0])",
        (),
        (*TAKEN, Change("list", "BACK.append({n})")),
        own={**NEXT, **USED_UP},
        used=True,
        setup="BACK = []",
    ),
    Kind("count", "itertools.count(n)", (), TAKEN, own=NEXT, used=True),
    Kind("cycle", "itertools.cycle([n, 3.0, 5.0])", (), TAKEN, own=NEXT, used=True),
    Kind(
        "map iterator",
        "map(lambda x: x * n, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])",
        (),
        TAKEN,
        own={**NEXT, **USED_UP},
        used=True,
    ),
    Kind(
        "enumerate",
        "enumerate([n, 3.0, 5.0, 7.0])",
        (),
        (Change("taken", "next({o}, None)"),),
        used=True,
        own={
            "next": "k = float(next({o}, (0, 1.5))[1])",
            "loop": "k = 1.0\nfor i, v in {o}:\n    k = k + i * v\n    break",
        },
    ),
    Kind(
        "generator",
        "new(n)",
        (),
        (*TAKEN, Change("closed", "{o}.close()")),
        own={**NEXT, **USED_UP},
        used=True,
        setup="def new(n):\n    while n < 20.0:\n        yield n\n        n += 1.0\n",
    ),
    Kind(
        "generator with send",
        "new(n)",
        (),
        (Change("sent", "{o}.send({n})"),),
        used=True,
        own={
            "send": "k = float({o}.send(2.0))",
            "send twice": "k = float({o}.send(2.0)) + {o}.send(3.0)",
        },
        setup="def new(n):\n    def go():\n        total = n\n        "
        "while True:\n            total += (yield total)\n"
        "    it = go()\n    next(it)\n    return it\n",
    ),
    Kind(
        "iterator object",
        "Steps(n)",
        (),
        (
            *TAKEN,
            Change("attribute", "{o}.v = {n}"),
            Change("method", "Steps.__next__ = lambda self: {n}"),
        ),
        own=NEXT,
        used=True,
        setup="class Steps:\n    def __init__(self, v):\n        self.v = v\n    "
        "def __iter__(self):\n        "
        "return self\n    def __next__(self):\n        self.v += 1.0\n        return self.v\n",
    ),
    Kind(
        "text buffer",
        "io.StringIO(f'{n}\\n3.0\\n4.0\\n5.0\\n6.0\\n7.0\\n')",
        (),
        (
            Change("sought", "{o}.seek(0)"),
            Change("written", "{o}.seek(0)\n{o}.write('9.5')\n{o}.seek(0)"),
            Change("read", "{o}.readline()"),
        ),
        used=True,
        own={
            "readline": "k = float({o}.readline() or 1.5)",
            "read": "k = 1.0 + len({o}.read())",
            "tell": "k = 1.0 + {o}.tell()",
            "getvalue": "k = 1.0 + len({o}.getvalue())",
            "write": "{o}.write('1')\nk = 1.0 + {o}.tell()",
            "loop": "k = 1.0\nfor line in {o}:\n    k = k + float(line)\n    break",
            "closed": "k = 3.0 if {o}.closed else 2.0",
            "print": "print('x', file={o})\nk = 2.0",
            "print a tensor's item": "print(float(a[0]), file={o})\nk = 2.0",
        },
    ),
    Kind(
        "lock",
        "threading.Lock()",
        (),
        (
            Change("taken", "{o}.acquire(blocking=False)"),
            Change("free", "if {o}.locked():\n    {o}.release()"),
        ),
        used=True,
        own={
            "locked": "k = 3.0 if {o}.locked() else 2.0",
            "acquire": "k = 3.0 if {o}.acquire(blocking=False) else 2.0",
            "with": "k = 2.0\nif not {o}.locked():\n    with {o}:\n        "
            "k = 3.0 if {o}.locked() else 4.0",
        },
    ),
    Kind(
        "event",
        "threading.Event()",
        ("truth",),
        (Change("set", "{o}.set()"), Change("clear", "{o}.clear()")),
        used=True,
        own={
            "is_set": "k = 3.0 if {o}.is_set() else 2.0",
            "wait": "k = 3.0 if {o}.wait(0) else 2.0",
        },
    ),
    Kind(
        "queue",
        "filled(n)",
        (),
        (Change("put", "{o}.put({n})"), Change("get", "{o}.put({n})\n{o}.get()")),
        used=True,
        setup="def filled(n):\n    q = queue.SimpleQueue()\n    q.put(n)\n    "
        "q.put(3.0)\n    return q\n",
        own={
            "get": "k = 1.5 if {o}.empty() else {o}.get()",
            "size": "k = 1.0 + {o}.qsize()",
            "put": "{o}.put(5.0)\nk = 1.0 + {o}.qsize()",
            "empty": "k = 3.0 if {o}.empty() else 2.0",
            "put a tensor": "{o}.put(a * 2.0)\nk = 1.0 + {o}.qsize()",
        },
    ),
    Kind(
        "random.Random",
        "random.Random(int(n))",
        (),
        (Change("seed", "{o}.seed({n})"), Change("drawn", "{o}.random()")),
        used=True,
        own={
            "random": "k = 1.0 + {o}.random()",
            "choice": "k = {o}.choice([1.0, 2.0, 3.0, 4.0])",
            "uniform": "k = {o}.uniform(1.0, 5.0)",
            "randint": "k = float({o}.randint(1, 99))",
            "shuffle": "x = [1.0, 2.0, 3.0]\n{o}.shuffle(x)\nk = x[0]",
            "if": "k = 3.0 if {o}.random() > 0.5 else 2.0",
        },
    ),
    Kind(
        "random module",
        "random",
        (),
        (Change("seed", "random.seed({n})"), Change("drawn", "random.random()")),
        used=True,
        setup="random.seed(3)",
        own={
            "random": "k = 1.0 + {o}.random()",
            "of the tensor": "k = 2.0\na = a * {o}.random()",
            "by name": "k = 1.0 + random.random()",
            "branch": "k = 2.0\nif a.sum() > 0:\n    a = a + random.random()",
        },
    ),
    Kind(
        "NumPy generator",
        "np.random.default_rng(int(n))",
        (),
        (Change("drawn", "{o}.random()"),),
        used=True,
        own={
            "random": "k = 1.0 + {o}.random()",
            "normal": "k = 1.0 + float({o}.normal())",
            "array": "k = 1.0 + float({o}.random(3).sum())",
            "integers": "k = float({o}.integers(1, 99))",
            "tensor": "k = 2.0\na = a + Tensor({o}.random(3), ms.float32)",
        },
    ),
    Kind(
        "NumPy's global random",
        "np.random",
        (),
        (Change("seed", "np.random.seed(int({n}))"), Change("drawn", "np.random.rand()")),
        used=True,
        setup="np.random.seed(3)",
        own={
            "rand": "k = 1.0 + {o}.rand()",
            "by name": "k = 1.0 + float(np.random.rand(3).sum())",
            "choice": "k = float({o}.choice([1.0, 2.0, 3.0]))",
            "tensor": "k = 2.0\na = a + Tensor(np.random.rand(3), ms.float32)",
        },
    ),
    Kind(
        "environment",
        "os.environ",
        (),
        (
            Change("set", "os.environ['DG_CELL'] = str({n})"),
            Change("deleted", "os.environ.pop('DG_CELL', None)"),
        ),
        used=True,
        setup="os.environ['DG_CELL'] = '2.0'",
        own={
            "item": "k = float({o}['DG_CELL']) if 'DG_CELL' in {o} else 1.5",
            "get": "k = float({o}.get('DG_CELL', '1.5'))",
            "getenv": "k = float(os.getenv('DG_CELL', '1.5'))",
            "in": "k = 3.0 if 'DG_CELL' in os.environ else 2.0",
            "if": "k = 2.0\nif os.environ.get('DG_CELL') == '2.0':\n    k = 3.0",
        },
    ),
    Kind(
        "context variable",
        "contextvars.ContextVar('held', default=n)",
        ("identity",),
        (Change("set", "{o}.set({n})"),),
        used=True,
        own={
            "get": "k = float({o}.get())",
            "set": "k = 1.0 + {o}.get()\n{o}.set(k)",
            "if": "k = 3.0 if {o}.get() > 6.0 else 2.0",
            "reset": "t = {o}.set(9.0)\nk = {o}.get()\n{o}.reset(t)\nk = k + {o}.get()",
        },
    ),
    Kind(
        "context manager",
        "Scope(n)",
        (),
        (Change("attribute", "{o}.v = {n}"),),
        used=True,
        setup="class Scope:\n    def __init__(self, v):\n        self.v = v\n        "
        "self.log = []\n"
        "    def __enter__(self):\n        self.log.append('in')\n        "
        "return self.v + len(self.log)\n"
        "    def __exit__(self, kind, *_):\n        "
        "self.log.append(kind.__name__ if kind else 'out')\n"
        "        return kind is KeyError\n",
        own={
            "with": "with {o} as v:\n    k = float(v)",
            "swallows": "k = 2.0\nwith {o}:\n    k = 3.0\n    raise KeyError\n",
            "tensor inside": "with {o} as v:\n    a = a * v\nk = 2.0",
            "nested": "with {o} as v, {o} as w:\n    k = v + w",
            "ExitStack": "with contextlib.ExitStack() as s:\n    k = float(s.enter_context({o}))",
        },
    ),
    Kind(
        "object with a counter",
        "Counting(n)",
        (),
        (Change("attribute", "{o}.count = {n}"),),
        used=True,
        setup="class Counting:\n    def __init__(self, v):\n        self.v = v\n        "
        "self.count = 0.0\n"
        "        self.seen = []\n"
        "    def step(self, x):\n        self.count += 1.0\n        "
        "return self.v + self.count + x\n"
        "    def keep(self, x):\n        self.seen.append(x)\n        return len(self.seen)\n"
        "    def __len__(self):\n        self.count += 1.0\n        return int(self.count)\n"
        "    def __call__(self, x):\n        self.count += 1.0\n        return x * self.count\n",
        own={
            "step": "k = {o}.step(2.0)",
            "len": "k = 1.0 + len({o})",
            "truth": "k = 3.0 if {o} else 2.0",
            "keep": "k = 1.0 + {o}.keep(2.0)",
            "keep a tensor": "k = 1.0 + {o}.keep(a)",
            "keep a result": "k = 1.0 + {o}.keep(a * 2.0)",
            "call": "k = {o}(2.0)",
            "call with a tensor": "k = 2.0\na = {o}(a)",
            "in a comprehension": "k = sum([{o}.step(x) for x in (1.0, 2.0)])",
            "branch": "k = 2.0\nif a.sum() > 0:\n    k = 1.0\n    {o}.step(1.0)",
            "loop": "k = 2.0\nt = a.sum()\nwhile t > 0:\n    {o}.step(1.0)\n    t = t - 5.0",
            "written": "{o}.count = {o}.count + 1.0\nk = 2.0 + {o}.count",
            "augmented": "{o}.count += 1.0\nk = 2.0 + {o}.count",
            "tensor written": "{o}.count = a.sum()\nk = 2.0",
        },
    ),
    Kind(
        "log of calls",
        "[]",
        (),
        (Change("append", "{o}.append({n})"),),
        used=True,
        own={
            "append": "{o}.append(1.0)\nk = 1.0 + len({o})",
            "append a tensor": "{o}.append(a * 2.0)\nk = 1.0 + len({o})",
            "append in a comprehension": "[{o}.append(x) for x in (1.0, 2.0)]\nk = 1.0 + len({o})",
            "extend": "{o}.extend([1.0, a.sum()])\nk = 1.0 + len({o})",
            "pop": "{o}.append(5.0)\nk = {o}.pop()",
            "in a tuple": "k = ({o}.append(1.0), 2.0)[1]",
            "by map": "list(map({o}.append, [1.0]))\nk = 1.0 + len({o})",
            "sorted": "{o}.append(1.0)\n{o}.sort()\nk = 2.0",
            "in a lambda": "(lambda v: {o}.append(v))(1.0)\nk = 1.0 + len({o})",
        },
    ),
    Kind(
        "log in a dict",
        "collections.defaultdict(list)",
        (),
        (Change("append", '{o}["k"].append({n})'),),
        used=True,
        own={
            "append": '{o}["k"].append(1.0)\nk = 1.0 + len({o}["k"])',
            "append a tensor": '{o}["k"].append(a)\nk = 2.0',
            "append a result": '{o}["k"].append(a * 2.0)\nk = 2.0',
            "setdefault": '{o}.setdefault("z", []).append(1.0)\nk = 1.0 + len({o}["z"])',
            "count": "{o}[2.0].append(1)\nk = 1.0 + len({o})",
            "expression": '(x := {o}["k"]).append(a)\nk = 2.0',
        },
    ),
)
