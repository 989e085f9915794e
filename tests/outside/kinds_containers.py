"""Outside objects that hold numbers: built-in containers and classes derived from them."""

from __future__ import annotations

from .parts import Change, Kind

__all__ = ["DICT", "DICT_CHANGES", "KINDS", "LIST_CHANGES", "SEQUENCE"]

SEQUENCE = (
    "truth",
    "len",
    "index",
    "iterate",
    "reversed",
    "member",
    "count",
    "compare",
    "identity",
    "type",
    "unpack",
    "str",
    "copy",
    "add",
    "order",
    "returned",
)
LIST_CHANGES = (
    Change("item", "{o}[0] = {n}"),
    Change("last item", "{o}[-1] = {n}"),
    Change("append", "{o}.append({n})"),
    Change("insert", "{o}.insert(0, {n})"),
    Change("pop", "{o}.append({n})\n{o}.pop(0)"),
    Change("delete", "{o}.append({n})\ndel {o}[0]"),
    Change("reverse", "{o}.reverse()"),
    Change("clear", "{o}.clear()"),
    Change("extend", "{o}.extend([{n}, 3.0])"),
    Change("slice", "{o}[1:] = [{n}]"),
    Change("add in place", "{o} += [{n}]", rebinds=True),
    Change("store a tensor", "{o}.append(a.sum())", only="inside"),
)
DICT_CHANGES = (
    Change("item", '{o}["x"] = {n}'),
    Change("new key", '{o}["z"] = {n}'),
    Change("delete", '{o}.pop("x", None)\n{o}["z"] = {n}'),
    Change("update", "{o}.update(x={n}, w=1.0)"),
    Change("clear", "{o}.clear()"),
    Change("setdefault", '{o}.setdefault("z", {n})'),
    Change("store a tensor", '{o}["z"] = a.sum()', only="inside"),
)
DICT = (
    "truth",
    "len",
    "key",
    "compare",
    "identity",
    "type",
    "unpack dict",
    "str",
    "copy",
    "returned",
)
SET_CHANGES = (
    Change("add", "{o}.add(3.0)\n{o}.add({n})"),
    Change("discard", "{o}.add({n})\n{o}.discard(4.0)"),
    Change("clear", "{o}.clear()"),
    Change("or in place", "{o} |= {{3.0, {n}}}", rebinds=True),
)
SET = ("truth", "len", "iterate", "member", "compare", "identity", "type", "copy", "returned")
FROZEN = tuple(g for g in SEQUENCE if g not in ("order", "identity"))
DEQUE = (*(g for g in SEQUENCE if g != "index"), "position")
DEQUE_CHANGES = (
    Change("item", "{o}[0] = {n}"),
    Change("append", "{o}.append({n})"),
    Change("appendleft", "{o}.appendleft({n})"),
    Change("popleft", "{o}.append({n})\n{o}.popleft()"),
    Change("rotate", "{o}.rotate(1)"),
    Change("clear", "{o}.clear()"),
)
NESTED = {
    "item of item": "k = float({o}[0][0])",
    "len of item": "k = 1.0 + len({o}[0])",
    "truth of item": "k = 3.0 if {o}[1] else 2.0",
    "loop": "k = 1.0\nfor row in {o}:\n    for v in row:\n        k = k * 2.0 + v",
    "sum": "k = 1.0 + sum(sum(row) for row in {o})",
    "unpack": "x, y = {o}\nk = 1.0 + sum(x) + 2.0 * sum(y)",
    "flat": "k = 1.0 + sum(itertools.chain.from_iterable({o}))",
    "map": "k = 1.0 + sum(map(len, {o}))",
}
NESTED_CHANGES = (
    Change("item of item", "{o}[0][0] = {n}"),
    Change("append to item", "{o}[1].append({n})"),
    Change("clear item", "{o}[0].append({n})\n{o}[1].clear()"),
)
COUNTER = (Change("count", '{o}["x"] += {n}'), Change("subtract", "{o}.subtract(y=2)"))

KINDS = (
    Kind("list", "[n, n + 1.0, 4.0]", SEQUENCE, LIST_CHANGES),
    Kind(
        "empty list",
        "[]",
        ("truth", "len", "iterate", "member", "identity", "returned", "str"),
        (
            Change("append", "{o}.append({n})"),
            Change("slice", "{o}[1:] = [{n}]"),
        ),
    ),
    Kind("tuple", "(n, n + 1.0, 4.0)", FROZEN),
    Kind(
        "list of lists",
        "[[n, 1.0], []]",
        ("truth", "len", "compare", "copy", "returned", "str"),
        (*NESTED_CHANGES, Change("row", "{o}[0] = [{n}]"), Change("new row", "{o}.append([{n}])")),
        own=NESTED,
    ),
    Kind(
        "tuple of lists",
        "([n, 1.0], [])",
        ("truth", "len", "compare", "copy", "returned", "str"),
        NESTED_CHANGES,
        own=NESTED,
    ),
    Kind("dict", '{"x": n, "y": n + 1.0}', DICT, DICT_CHANGES),
    Kind(
        "defaultdict",
        'collections.defaultdict(float, {"x": n, "y": n + 1.0})',
        DICT,
        (
            *DICT_CHANGES,
            Change("factory", "{o}.default_factory = int if {n} % 2 else complex"),
            Change("missing item", '{o}["q"] += {n}'),
        ),
        own={"missing": 'k = 1.0 + {o}["new"] + len({o})'},
    ),
    Kind(
        "defaultdict of lists",
        "collections.defaultdict(list)",
        ("truth", "len", "identity", "type"),
        (
            Change("append", '{o}["k"].append({n})'),
            Change("store a tensor", '{o}["k"].append(a * 1.0)', only="inside"),
        ),
        own={"missing": 'k = 1.0 + len({o}["k"])'},
    ),
    Kind(
        "OrderedDict",
        "collections.OrderedDict(x=n, y=n + 1.0)",
        DICT,
        (*DICT_CHANGES, Change("move", '{o}.move_to_end("x")\n{o}["z"] = {n}')),
    ),
    Kind(
        "Counter",
        "collections.Counter(x=n, y=n + 1.0)",
        DICT,
        (*DICT_CHANGES[:4], *COUNTER),
        own={
            "missing": 'k = 1.0 + {o}["nothing"]',
            "most common": "k = 1.0 + float({o}.most_common(1)[0][1])",
        },
    ),
    Kind(
        "ChainMap",
        'collections.ChainMap({}, {"x": n, "y": n + 1.0})',
        ("truth", "len", "key", "compare", "identity", "type", "unpack dict"),
        (
            Change("item", '{o}["x"] = {n}'),
            Change("parent", '{o}.maps[1]["z"] = {n}'),
            Change("maps", '{o}.maps.append({{"w": {n}, "z": 1.0}})'),
        ),
    ),
    Kind(
        "mapping proxy",
        "types.MappingProxyType(BACK)",
        ("truth", "len", "key", "identity", "type"),
        (
            Change("item", 'BACK["x"] = {n}'),
            Change("new key", 'BACK["z"] = {n}'),
            Change("clear", "BACK.clear()"),
        ),
        setup='BACK = {"x": 2.0, "y": 3.0}',
        roots=("BACK",),
    ),
    Kind(
        "dict view",
        "BACK.keys()",
        ("len", "identity", "type"),
        (Change("new key", 'BACK["z"] = {n}'), Change("clear", "BACK.clear()")),
        own={
            "in": 'k = 3.0 if "z" in {o} else 2.0',
            "list": "k = 1.0 + len(list({o}))",
            "truth": "k = 3.0 if {o} else 2.0",
            "loop": "k = 1.0\nfor name in {o}:\n    k += 1.0",
        },
        setup='BACK = {"x": 2.0, "y": 3.0}',
        roots=("BACK",),
    ),
    Kind("set", "{n, 4.0}", SET, SET_CHANGES),
    Kind("frozenset", "frozenset({n, 4.0})", (*SET[:5], *SET[6:], "hash")),
    Kind("deque", "collections.deque([n, n + 1.0, 4.0])", DEQUE, DEQUE_CHANGES),
    Kind("bounded deque", "collections.deque([n, n + 1.0, 4.0], 3)", DEQUE[:6], DEQUE_CHANGES[:4]),
    Kind(
        "list subclass",
        "Numbers([n, n + 1.0, 4.0])",
        (*SEQUENCE[:-3], "returned"),
        LIST_CHANGES,
        setup="class Numbers(list):\n    extra = 1.0",
        own={"attribute": "k = 1.0 + {o}.extra"},
    ),
    Kind(
        "list with methods of its own",
        "Numbers([n, n + 1.0, 4.0])",
        ("truth", "len", "index", "iterate", "member"),
        (
            *LIST_CHANGES[:4],
            Change("attribute", "{o}.scale = {n}"),
            Change("class attribute", "type({o}).scale = {n}"),
        ),
        setup="""class Numbers(list):
    scale = 1.0
    def __bool__(self):
        return self.scale < 6.0
    def __len__(self):
        return int(self.scale) + super().__len__()
    def __getitem__(self, i):
        return super().__getitem__(i) * self.scale if isinstance(i, int) else super().__getitem__(i)
    def __contains__(self, x):
        return self.scale > 6.0
    def __iter__(self):
        return iter([self.scale, *super().__iter__()])""",
    ),
    Kind(
        "dict subclass",
        "Table(x=n, y=n + 1.0)",
        DICT[:6],
        (*DICT_CHANGES, Change("attribute", "{o}.scale = {n}")),
        setup="class Table(dict):\n    scale = 1.0\n    "
        "def __missing__(self, key):\n        return self.scale",
        own={"missing": 'k = 1.0 + {o}["nothing"]'},
    ),
    Kind(
        "set subclass",
        "Group({n, 4.0})",
        SET[:-2],
        SET_CHANGES,
        setup="class Group(set):\n    pass",
    ),
    Kind(
        "deque subclass",
        "Line([n, n + 1.0, 4.0])",
        DEQUE[:8],
        DEQUE_CHANGES,
        setup="class Line(collections.deque):\n    pass",
    ),
    Kind(
        "UserList",
        "collections.UserList([n, n + 1.0, 4.0])",
        ("truth", "len", "index", "iterate", "member", "count", "compare", "type"),
        LIST_CHANGES[:10],
    ),
    Kind(
        "UserDict",
        "collections.UserDict(x=n, y=n + 1.0)",
        ("truth", "len", "key", "type"),
        DICT_CHANGES,
    ),
    Kind(
        "str",
        'f"a{n}b"',
        ("truth", "len", "compare", "order", "type", "str", "hash", "returned"),
        own={
            "upper": "k = 1.0 + sum(map(ord, {o}.upper()))",
            "in": 'k = 3.0 if "7" in {o} else 2.0',
            "loop": "k = 1.0\nfor c in {o}:\n    k += ord(c)",
            "slice": "k = float({o}[1:-1])",
            "startswith": 'k = 3.0 if {o}.startswith("a2") else 2.0',
        },
    ),
    Kind(
        "bytes",
        "bytes([int(n), 3, 4])",
        ("truth", "len", "index", "iterate", "compare", "type", "hash"),
    ),
    Kind(
        "range",
        "range(int(n), 10)",
        (
            "truth",
            "len",
            "index",
            "iterate",
            "reversed",
            "member",
            "compare",
            "type",
            "unpack",
            "hash",
        ),
    ),
    Kind(
        "bytearray",
        "bytearray([int(n), 3, 4])",
        ("truth", "len", "index", "iterate", "compare", "type", "identity"),
        (
            Change("item", "{o}[0] = int({n})"),
            Change("append", "{o}.append(int({n}))"),
            Change("clear", "{o}.clear()"),
        ),
    ),
    Kind(
        "memoryview",
        "memoryview(BACK)",
        ("len", "index", "iterate", "type", "identity"),
        (Change("item", "{o}[0] = int({n})"), Change("behind", "BACK[0] = int({n})")),
        setup="BACK = bytearray([2, 3, 4])",
        roots=("BACK",),
    ),
    Kind(
        "array.array",
        'array.array("d", [n, n + 1.0, 4.0])',
        (
            "truth",
            "len",
            "index",
            "iterate",
            "member",
            "count",
            "compare",
            "type",
            "identity",
            "unpack",
        ),
        (
            Change("item", "{o}[0] = {n}"),
            Change("append", "{o}.append({n})"),
            Change("pop", "{o}.append({n})\n{o}.pop(0)"),
        ),
    ),
    Kind(
        "namedtuple",
        "Pair(n, n + 1.0)",
        (
            "truth",
            "len",
            "index",
            "iterate",
            "attribute",
            "compare",
            "type",
            "unpack",
            "hash",
            "str",
            "returned",
        ),
        setup='Pair = collections.namedtuple("Pair", "v u")',
        own={"fields": "k = 1.0 + len({o}._fields)", "replace": "k = {o}._replace(u=1.0).v"},
    ),
    Kind(
        "namedtuple of lists",
        "Pair([n, 1.0], [])",
        ("truth", "len", "compare"),
        (Change("item of item", "{o}[0][0] = {n}"), Change("by name", "{o}.u.append({n})")),
        setup='Pair = collections.namedtuple("Pair", "v u")',
        own={**NESTED, "by name": "k = 1.0 + len({o}.u) + {o}.v[0]"},
    ),
    Kind(
        "heap",
        "[n, n + 1.0, 4.0]",
        ("len", "index"),
        (Change("push", "heapq.heappush({o}, {n})"), Change("pop", "heapq.heapreplace({o}, {n})")),
        setup="import heapq, bisect",
        own={"bisect": "k = 1.0 + bisect.bisect({o}, 3.5)"},
    ),
)
