"""LAX: code that only Python runs agrees with eager mode at every call.

13.1 to 13.7 of the list of accepted syntax: libraries, their objects, what is made while compiling
and changed when the function runs.
"""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
import datetime
import enum
import functools
import io
import itertools
import json
import os
import random
import re
import time
import types

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor
from jit.calls import as_line_by_line, described, table

CASES, case = table()


@case
def user_class(x):
    class P:
        def __init__(self, v):
            self.v = v

        def twice(self):
            return self.v * 2

    return P(x).twice()


@case
def json_dump(x):
    return json.dumps({"a": x.asnumpy().tolist()})


@case
def jsons(x):
    return json.loads('{"a": [1,2]}')["a"][1] + x


@case
def regex(x):
    return x * len(re.findall("a", "banana"))


@case
def counter(x):
    return collections.Counter("aab")["a"] * x


@case
def ordered(x):
    d = collections.OrderedDict()
    d["a"] = x
    d["b"] = x + 1
    return list(d.values())


@case
def deque(x):
    d = collections.deque([x, x + 1])
    d.appendleft(x * 5)
    return d.popleft() + d.pop()


@case
def itemcond(x):
    if x.asnumpy()[0] > 0.5:
        return x * 2
    return x * 3


@case
def whileitem(x):
    n = 0
    while x[0].asnumpy() < 10 and n < 20:
        x = x * 2
        n += 1
    return x, n


@case
def timed(x):
    t = time.time()
    y = x * 2
    return y if time.time() >= t else x


@case
def sorted_items(x):
    return sorted(x.asnumpy().tolist(), reverse=True)


@case
def fmt(x):
    return f"{x.asnumpy()[0]:.2f}"


@case
def strx(x):
    return str(x)


@case
def bytesio(x):
    import io

    b = io.BytesIO()
    b.write(b"abc")
    return len(b.getvalue()) * x


@case
def lru(x):
    @functools.lru_cache
    def f(n):
        return n if n < 2 else f(n - 1) + f(n - 2)

    return f(10) * x


@case
def chain(x):
    return sum(itertools.chain([x], [x * 2]))


@case
def genexp(x):
    return sum(v * 2 for v in (x, x + 1))


@case
def gen(x):
    def g():
        yield x
        yield x * 2

    return sum(g())


@case
def trycatch(x):
    try:
        if x.sum() > 0:
            raise ValueError("v")
        return x
    except ValueError:
        return x * 7


@case
def tryconst(x):
    try:
        return x * {}["k"]
    except KeyError:
        return x * 4


@case
def setobj(x):
    s = {1, 2, 3}
    s.add(4)
    return x * len(s)


@case
def cplx(x):
    return 3j * 2


@case
def divm(x):
    return divmod(7, 2), x


@case
def evalx(x):
    return eval("x*2")


@case
def slices(x):
    return x[slice(0, 2)]


@case
def isinst(x):
    return isinstance(x.asnumpy(), np.ndarray), x


@case
def obj_attr(x):
    d = datetime.datetime(2020, 1, 2)
    return x * d.day


@case
def randomlib(x):
    r = random.Random(3)
    return x * r.random()


@case
def osenv(x):
    return x if os.environ.get("HOME") else x * 2


@case
def tuple_in_tuple(x):
    return (1, 2) in ((1, 2), (3, 4)), x


@case
def dictview(x):
    d = {"a": x}
    return [k for k in d], ("a" in d)


@case
def global_list(x):
    LOG.append(float(x.sum()))
    return x


LOG = []


@case
def tohash(x):
    return {x.shape: 1}[(3,)]


@case
def callbacks(x):
    return list(map(lambda v: v.asnumpy().sum(), [x, x * 2]))


@case
def enumclass(x):
    class E(enum.Enum):
        A = 1

    return x * E.A.value


@case
def dc(x):
    @dataclasses.dataclass
    class D:
        a: object
        b: int = 2

    d = D(x)
    d.b = 5
    return d.a * d.b


@case
def nt(x):
    P = collections.namedtuple("P", "a b")
    p = P(x, 2)
    return p.a * p.b, p


@case
def bytesio_2(x):
    b = io.BytesIO()
    b.write(x.asnumpy().tobytes())
    return len(b.getvalue())


@case
def deque_of_both(x):
    d = collections.deque()
    d.append(x)
    d.append(x.asnumpy()[0])
    return len(d), d[0]


@case
def cnt(x):
    d = collections.Counter()
    d["a"] += x.asnumpy()[0]
    d["b"] += 1
    return dict(d)


@case
def ddict(x):
    d = collections.defaultdict(list)
    d["a"].append(x.asnumpy()[0])
    d["a"].append(x)
    return d["a"]


@case
def heap(x):
    import heapq

    h = []
    heapq.heappush(h, x.asnumpy()[0])
    heapq.heappush(h, 0)
    return h


@case
def ns(x):
    import types

    n = types.SimpleNamespace(a=1)
    n.b = x.asnumpy()
    n.a = n.a + x
    return n.a, n.b


@case
def lst(x):
    items = [0, 0]
    items[0] = x.asnumpy()[0]
    items.append(items[0] + 1)
    return items


@case
def it(x):
    i = itertools.count()
    return next(i) + x.asnumpy()[0], next(i)


@case
def deq(x):
    d = collections.deque([x])
    d.append(x.asnumpy()[0])
    d.append(1)
    return d


@case
def od(x):
    d = collections.OrderedDict()
    d["a"] = x * 2
    d["b"] = x.asnumpy()
    return d


@case
def dd(x):
    d = collections.defaultdict(list)
    d["a"].append(x * 2)
    d["b"].append(x.asnumpy()[0])
    return d


@case
def cn(x):
    d = collections.Counter()
    d["a"] += x.asnumpy()[0]
    return d


@case
def setval2(x):
    s = {x.shape[0]}
    s.add(5)
    s.discard(3)
    return s


@case
def pyarr(x):
    a = array.array("f", [1, 2])
    a.append(float(x.asnumpy()[0]))
    return list(a)


@case
def ns_2(x):
    n = types.SimpleNamespace(a=x)
    n.b = n.a.asnumpy()
    return n.a, n.b


@case
def rnd(x):
    r = random.Random(0)
    return r.random(), x, r.random()


@case
def frozen(x):
    return frozenset({1, 2}), x


@case
def attr_list(x):
    items = [3, 1, 2]
    items.sort()
    items.insert(0, x.asnumpy()[0])
    return items


@case
def listof(x):
    items = [3, 1, x.asnumpy()[0]]
    items.sort()
    return items


@case
def listrev(x):
    items = x.asnumpy().tolist()
    items.reverse()
    items.append(3)
    return items


@case
def dictupd(x):
    d = {"a": 1}
    d.update(b=x.asnumpy()[0])
    d.update({"c": x})
    return d


@case
def hostdict(x):
    d = dict(zip("ab", x.asnumpy().tolist()))
    d["z"] = 3
    return d, len(d)


@case
def enum_host(x):
    return [(i, v) for i, v in enumerate(x.asnumpy().tolist())]


@case
def host_kwargs(x):
    d = json.loads('{"axis": 0}')
    return x.sum(**d)


@pytest.mark.parametrize("name", CASES)
def test_python_in_compiled_code(name, warned):
    as_line_by_line(CASES[name], warned)


def test_a_result_that_was_made_while_compiling_belongs_to_the_caller():
    """Each call returns arrays, sets and library containers of its own; what is there outside is
    that very object.
    """
    outside, names = np.zeros(2), {1}

    @ms.jit
    def f(x):
        return np.zeros(2), {1, 2}, collections.OrderedDict(a=1), [np.ones(1)], bytearray(b"a"), x

    @ms.jit
    def g(x):
        return outside, names, x

    x = Tensor([1.0])
    first = f(x)
    want = copy.deepcopy(described(first))
    first[0][0] = 7
    first[1].add(9)
    first[2]["b"] = 1
    first[3][0][0] = 5
    first[4].append(3)
    assert described(f(x)) == want
    assert g(x)[0] is outside and g(x)[1] is names


def change(items, value):
    items.append(value)


change.__module__ = "scipy.changes"  # of a library, whose source nobody reads


def test_a_function_that_changes_the_list_it_is_given():
    """The change would be lost: it is an error, since nobody knows before that it happens."""

    @ms.jit
    def f(x):
        items = [1, 2]
        change(items, x.asnumpy())
        return items

    with pytest.raises(RuntimeError, match="change: has changed a list"):
        f(Tensor([1.0]))
