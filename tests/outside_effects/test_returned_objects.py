"""Objects that a compiled function makes and returns, or stores in an object from outside.

Each call must make a new one, and none may hold a value of the compiler.
"""

from __future__ import annotations

import gc
import linecache
import sys
import types
import warnings
from typing import Any

import pytest
from duograph import Tensor, jit
from duograph.errors import UnsupportedSyntaxError
from duograph.ir.builder import GraphTensor
from duograph.ir.values import HostValue, NeedsValue

pytestmark = pytest.mark.usefixtures("restored")

HEAD = """
import array, collections, contextlib, copy, functools, itertools, operator, types, weakref

class Plain:
    def __init__(self, v):
        self.v = v
    def method(self):
        return self.v

class Slotted:
    __slots__ = ("v",)
    def __init__(self, v):
        self.v = v

class SubList(list): pass
class SubDict(dict): pass
class SubTuple(tuple): pass
class Error(Exception): pass

class Counting:
    def __init__(self, v):
        self.v, self.n = v, 0
    def __iter__(self):
        return self
    def __next__(self):
        self.n += 1
        if self.n > 2:
            raise StopIteration
        return self.v

def helper(t, k=1):
    return t * k

HELD, NAMED, BOX, KEPT = [], {}, Plain(None), []

def keep(o):
    KEPT.append(o)
"""
MADE = [
    "reversed([x, x * 2])", "reversed([1, 2])", "reversed({'a': x})", "reversed(range(3))",
    "iter({'a': x})", "iter({1, 2})", "iter('ab')", "itertools.chain([x], [x * 2])",
    "itertools.count(3)", "itertools.product([1, 2], [3])", "itertools.repeat(x, 2)",
    "[reversed([x])]", "{'k': itertools.islice([x, 1], 1)}", "Plain(iter([x]))",
    "zip([x * 2], [iter([x])])", "functools.partial(helper, x * 2)",
    "functools.partial(helper, k=2)", "slice(x[0] * 2, 2)", "types.SimpleNamespace(a=x, b=[x * 3])",
    "ValueError(x * 2)", "Error(x * 2)", "Exception(x, [x * 2]).args",
    "types.MappingProxyType({'a': x * 2})", "collections.ChainMap({'a': x * 2})",
    "collections.UserDict(a=x * 2)", "[x * 2].append", "Plain(x * 2).method",
    "types.MethodType(helper, x * 2)", "(x * 2).__add__", "Slotted(x * 2)", "Slotted(1)",
    "Plain(Slotted([x]))", "SubList([x * 2])", "SubDict(a=x * 2)", "SubTuple((x * 2,))",
    "frozenset([x * 2])", "{x * 2}", "collections.deque([x * 2])", "collections.deque([1])",
    "collections.OrderedDict(a=x * 2)", "collections.defaultdict(list, a=[x * 2])",
    "collections.Counter({'a': 1})", "Counting(x * 2)", "copy.copy(Plain(x * 2))",
    "copy.deepcopy([x * 2])", "Plain(x * 2).__dict__", "vars(Plain(x * 2))",
    "Plain(Plain([x * 2, (x,)]))", "type('K', (), {'v': x * 2})", "type('K', (), {'v': x * 2})()",
    "(lambda t: t * x)", "object()", "contextlib.nullcontext(x * 2)", "array.array('d', [1.0])",
    "bytearray(b'a')", "{'a': x * 2}.items()", "(i for i in [x, 1])", "[x, [x * 2]]",
    "operator.itemgetter(x[0])",
    "operator.itemgetter(x[0], 1)", "operator.itemgetter(slice(0, x[0]))",
    "operator.methodcaller('add', x * 2)", "operator.methodcaller('sum', axis=x[0])",
    "types.CellType(x * 2)", "itertools.tee([x * 2])", "[*itertools.tee([x * 2])]",
    "range(int(x[0]) + 300)", "[range(300, int(x[1]) + 300)]",
]  # fmt: skip
USES = {
    "returned": "return {}",
    "returned in a list": "return [{}, 1]",
    "attribute": "BOX.v = {}; return x",
    "item of a list": "HELD.append({}); return x",
    "item of a dict": "NAMED['k'] = {}; return x",
    "in an object": "BOX.v = Plain({}); return x",
    "argument": "keep({}); return x",
}


def leaks(value: Any) -> bool:
    """Return whether a value of the compiler can be reached from an object."""
    seen, waiting = {id(value)}, [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, (GraphTensor, HostValue)):
            return True
        opaque = (types.ModuleType, types.FunctionType, types.CodeType, Tensor)
        if isinstance(found, opaque) or (isinstance(found, type) and found.__name__ != "K"):
            continue
        inner = [x for x in gc.get_referents(found) if id(x) not in seen]
        if not isinstance(found, types.BuiltinMethodType) or found.__name__ == "append":
            seen.update(map(id, inner))
            waiting += inner
    return False


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Fixture: a module with the classes of the programs."""
    made = types.ModuleType("made_objects")
    monkeypatch.setitem(sys.modules, "made_objects", made)
    exec(HEAD, vars(made))
    return made


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("strict", [False, True], ids=["LAX", "STRICT"])
def test_made_anew_at_each_call(use: str, strict: bool, module: types.ModuleType) -> None:
    wrong = []
    for k, made in enumerate(MADE):
        name = f"f{k}"
        source = f"def {name}(x):\n    {USES[use].format(made)}\n"
        file = f"<made {use} {k}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        exec(compile(source, file, "exec"), vars(module))
        f = jit(vars(module)[name], fullgraph=strict)
        results = []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*runs line by line")
            for v in (1.0, 2.0):
                module.HELD.clear(), module.NAMED.clear(), module.KEPT.clear()
                try:
                    results.append(f(Tensor([v, 3.0])))
                except Exception as error:  # noqa: BLE001 (its class is checked)
                    if not strict or not isinstance(error, (UnsupportedSyntaxError, NeedsValue)):
                        wrong.append(f"{made}: {type(error).__name__}: {error}")
                    break
                world = [results[-1], module.HELD, module.NAMED, module.BOX, module.KEPT]
                if leaks(world):
                    wrong.append(f"{made}: a value of the compiler is left")
        if len(results) == 2 and results[0] is results[1]:
            wrong.append(f"{made}: the same object twice")
        linecache.cache.pop(file)
    assert not wrong, "\n".join(wrong)
