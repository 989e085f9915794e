"""Common questions about an outside object: statements that turn an answer into the number `k`.

`{o}` is the object. The keys of a group name its variants: ways to ask the same thing.
"""

from __future__ import annotations

__all__ = ["GROUPS", "PASSIVE", "RETURNS"]

GROUPS: dict[str, dict[str, str]] = {
    "truth": {
        "if": "k = 2.0\nif {o}:\n    k = 3.0",
        "ternary": "k = 3.0 if {o} else 2.0",
        "not": "k = 2.0 if not {o} else 3.0",
        "bool": "k = 2.0 + bool({o})",
        "and": "k = ({o} and 3.0) or 2.0",
        "or": "k = 2.0 if ({o} or None) is None else 3.0",
        "while": "k = 2.0\nwhile {o}:\n    k = 3.0\n    break",
        "comprehension": "k = 2.0 + len([v for v in (1.0,) if {o}])",
        "any": "k = 2.0 + any([{o}])",
        "filter": "k = 2.0 + len(list(filter(None, [{o}])))",
    },
    "len": {
        "len": "k = 1.0 + len({o})",
        "dunder": "k = 1.0 + {o}.__len__()",
        "range": "k = 1.0\nfor _ in range(len({o})):\n    k += 0.5",
        "compare": "k = 3.0 if len({o}) > 2 else 2.0",
    },
    "index": {
        "first": "k = float({o}[0])",
        "last": "k = float({o}[-1])",
        "slice": "k = 1.0 + float(sum({o}[0:2]))",
        "getitem": "k = float(operator.getitem({o}, 0))",
        "past the end": "try:\n    k = float({o}[3])\nexcept IndexError:\n    k = 1.5",
    },
    "position": {
        "first": "k = float({o}[0])",
        "last": "k = float({o}[-1])",
        "past the end": "try:\n    k = float({o}[3])\nexcept IndexError:\n    k = 1.5",
    },
    "key": {
        "item": 'k = float({o}["x"])',
        "get": 'k = float({o}.get("x", 1.5))',
        "get missing": 'k = float({o}.get("z", 1.5))',
        "try": 'try:\n    k = float({o}["z"])\nexcept KeyError:\n    k = 1.5',
        "values": "k = 1.0 + float(sum({o}.values()))",
        "items": "k = 1.0\nfor name, v in {o}.items():\n    k = k * 2.0 + float(v) + len(name)",
        "keys": 'k = 2.0 + ("z" in {o}.keys())',
        "in": 'k = 3.0 if "z" in {o} else 2.0',
        "not in": 'k = 3.0 if "x" not in {o} else 2.0',
        "first key": 'k = 3.0 if next(iter({o}), None) == "x" else 2.0',
        "call": 'k = float(dict(**{o}).get("x", 1.5))',
    },
    "iterate": {
        "for": "k = 1.0\nfor v in {o}:\n    k = k * 2.0 + float(v)",
        "sum": "k = 1.0 + float(sum({o}))",
        "comprehension": "k = 1.0 + sum([float(v) * 2.0 for v in {o}])",
        "generator": "k = 1.0 + sum(float(v) for v in {o})",
        "enumerate": "k = 1.0\nfor i, v in enumerate({o}):\n    k += i * float(v)",
        "zip": "k = 1.0\nfor v, w in zip({o}, (1.0, 2.0, 4.0)):\n    k += float(v) * w",
        "sorted": "k = 1.0\nfor v in sorted({o}):\n    k = k * 2.0 + float(v)",
        "max": "k = float(max({o}, default=1.5))",
        "map": "k = 1.0 + sum(map(float, {o}))",
        "tuple": "k = 1.0 + len(tuple({o}))",
        "star": "k = 1.0 + sum([*{o}, 1.0])",
        "next": "k = float(next(iter({o}), 1.5))",
        "any": "k = 2.0 + any(v > 6.0 for v in {o})",
        "break": "k = 1.0\nfor v in {o}:\n    k = float(v)\n    break\nelse:\n    k = 1.5",
    },
    "reversed": {
        "reversed": "k = 1.0\nfor v in reversed({o}):\n    k = k * 2.0 + float(v)",
    },
    "member": {
        "in": "k = 3.0 if 3.0 in {o} else 2.0",
        "not in": "k = 3.0 if 3.0 not in {o} else 2.0",
        "contains": "k = 2.0 + operator.contains({o}, 3.0)",
    },
    "count": {
        "count": "k = 1.0 + {o}.count(3.0)",
        "index": "try:\n    k = 1.0 + {o}.index(3.0)\nexcept ValueError:\n    k = 0.5",
    },
    "compare": {
        "equal": "k = 3.0 if {o} == make(2.0) else 2.0",
        "unequal": "k = 3.0 if {o} != make(2.0) else 2.0",
        "in a list": "k = 3.0 if {o} in [make(2.0)] else 2.0",
    },
    "order": {
        "less": "k = 3.0 if {o} < make(3.0) else 2.0",
        "max": "k = 3.0 if max({o}, make(3.0)) == make(3.0) else 2.0",
    },
    "identity": {
        "is": "k = 3.0 if {o} is FIRST else 2.0",
        "is not": "k = 3.0 if {o} is not FIRST else 2.0",
        "is None": "k = 3.0 if {o} is None else 2.0",
        "id": "k = 3.0 if id({o}) == id(FIRST) else 2.0",
    },
    "type": {
        "isinstance": "k = 3.0 if isinstance({o}, type(FIRST)) else 2.0",
        "type": "k = 3.0 if type({o}) is type(FIRST) else 2.0",
        "name": "k = 1.0 + len(type({o}).__name__)",
        "class": "k = 3.0 if {o}.__class__ is FIRST.__class__ else 2.0",
        "callable": "k = 2.0 + callable({o})",
    },
    "attribute": {
        "attribute": "k = float({o}.v)",
        "getattr": 'k = float(getattr({o}, "v"))',
        "getattr default": 'k = float(getattr({o}, "w", 1.5))',
        "hasattr": 'k = 3.0 if hasattr({o}, "w") else 2.0',
        "try": "try:\n    k = float({o}.w)\nexcept AttributeError:\n    k = 1.5",
        "attrgetter": 'k = float(operator.attrgetter("v")({o}))',
        "truth": "k = 3.0 if {o}.v > 6.0 else 2.0",
        "match": "k = 1.5\nmatch {o}:\n    case object(v=found):\n        k = float(found)",
    },
    "vars": {
        "vars": 'k = float(vars({o})["v"])',
        "dict": 'k = float({o}.__dict__.get("w", 1.5))',
        "len": "k = 1.0 + len(vars({o}))",
    },
    "method": {
        "call": "k = float({o}.go(2.0))",
        "bound": "go = {o}.go\nk = float(go(2.0))",
        "class": "k = float(type({o}).go({o}, 2.0))",
        "map": "k = float(list(map({o}.go, (2.0,)))[0])",
    },
    "call": {
        "call": "k = float({o}(2.0))",
        "map": "k = float(list(map({o}, (2.0,)))[0])",
        "local": "go = {o}\nk = float(go(2.0))",
        "in a lambda": "go = lambda v: {o}(v)\nk = float(go(2.0))",
        "partial": "k = float(functools.partial({o}, 2.0)())",
    },
    "hash": {
        "key": "k = {{{o}: 3.0}}[{o}]",
        "lookup": "k = BY_OBJECT.get({o}, 2.0)",
        "set": "k = 1.0 + len({{{o}, FIRST}})",
        "hash": "k = 3.0 if hash({o}) == hash(FIRST) else 2.0",
    },
    "unpack": {
        "star": "x, *y = {o}\nk = float(x) + len(y)",
        "call": "k = 1.0 + float(total(*{o}))",
        "nested": "x, *y = (1.0, *{o})\nk = 1.0 + sum(y)",
        "match": "k = 1.5\nmatch {o}:\n    case [x, *_]:\n        k = float(x)",
    },
    "unpack dict": {
        "call": "k = 1.0 + float(total(**{o}))",
        "merge": 'k = 1.0 + float(sum({{**{o}, "y": 1.0}}.values()))',
        "match": 'k = 1.5\nmatch {o}:\n    case {{"x": x}}:\n        k = float(x)',
    },
    "str": {
        "str": "k = 1.0 + sum(map(ord, str({o})))",
        "repr": "k = 1.0 + sum(map(ord, repr({o})))",
        "f-string": "k = 1.0 + sum(map(ord, f'{{{o}}}'))",
        "format": 'k = 1.0 + sum(map(ord, "{{}}".format({o})))',
        "percent": 'k = 1.0 + sum(map(ord, "%s" % ({o},)))',
    },
    "copy": {
        "copy": "k = 1.0 + len(copy.copy({o}))",
        "list": "k = 1.0 + len(list({o}))",
        "deepcopy": "k = 2.0 + bool(copy.deepcopy({o}))",
    },
    "add": {
        "add": "k = 1.0 + len({o} + {o})",
        "times": "k = 1.0 + len({o} * 2)",
    },
    "number": {
        "float": "k = float({o})",
        "times": "k = {o} * 2.0",
        "compare": "k = 3.0 if {o} > 6.0 else 2.0",
    },
    "returned": {
        "itself": "k = {o}",
        "in a tuple": "k = ({o}, 2.0)",
        "in a dict": 'k = {{"held": {o}}}',
    },
}

# Groups that use nothing up: the answer is about the object, not about its state.
PASSIVE = frozenset({"identity", "type"})
# Groups whose answer is returned as it is, beside a tensor, instead of being multiplied.
RETURNS = frozenset({"returned"})
