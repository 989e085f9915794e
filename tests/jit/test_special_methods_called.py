"""Python functions call the same special methods of an outside object in compiled code, each time.

Among these are calls whose answer changes no result: `list(x)` asks for the length of `x`.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import heapq
import itertools
import operator
import types
from collections.abc import Callable
from typing import Any

import duograph as ms
import pytest
from duograph import Tensor

X = Tensor([1.0, 2.0, 3.0])


class Noting:
    """Notes each call of its special methods."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __len__(self) -> int:
        self.calls.append("len")
        return 2

    def __iter__(self) -> Any:
        self.calls.append("iter")
        return iter([1.0, 2.0])

    def __contains__(self, item: object) -> bool:
        self.calls.append("contains")
        return True

    def __getitem__(self, key: int) -> float:
        self.calls.append("getitem")
        return [1.0, 2.0][key]

    def __eq__(self, other: object) -> bool:
        self.calls.append("eq")
        return self is other

    def __hash__(self) -> int:
        self.calls.append("hash")
        return 3

    def __index__(self) -> int:
        self.calls.append("index")
        return 1

    def __reversed__(self) -> Any:
        self.calls.append("reversed")
        return iter([2.0, 1.0])


class Hinted:
    """Has no length, but a guess of one."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __iter__(self) -> Any:
        self.calls.append("iter")
        return iter([1.0, 2.0])

    def __length_hint__(self) -> int:
        self.calls.append("hint")
        return 2


class Refusing(Hinted):
    """Raises instead of telling its length."""

    def __len__(self) -> int:
        self.calls.append("len")
        raise TypeError("no length")


class Failing(Hinted):
    """Fails when asked for its length."""

    def __len__(self) -> int:
        self.calls.append("len")
        raise RuntimeError("no length")


class Negative(Hinted):
    """Has a length that Python refuses."""

    def __len__(self) -> int:
        self.calls.append("len")
        return -1  # noqa: PLE0303 (on purpose)


class Textual(Hinted):
    """Returns texts as its length and as the guess of its length; Python raises a TypeError."""

    def __len__(self) -> Any:
        self.calls.append("len")
        return "2"  # noqa: PLE0303 (on purpose)

    def __length_hint__(self) -> Any:
        self.calls.append("hint")
        return "2"


class Unguessed(Hinted):
    """Has no guess."""

    def __length_hint__(self) -> Any:
        self.calls.append("hint")
        return NotImplemented


class Indexed:
    """Has items by index alone."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getitem__(self, key: int) -> float:
        self.calls.append("getitem")
        return [1.0, 2.0][key]


class Row(tuple[float, ...]):
    """A tuple that notes calls of its length."""

    calls: list[str]

    def __new__(cls) -> Row:
        made = super().__new__(cls, (1.0, 2.0))
        made.calls = []
        return made

    def __len__(self) -> int:
        self.calls.append("len")
        return 2


class Ordered:
    """Notes `<=` and `>=`, the only comparisons that it has."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __le__(self, other: object) -> bool:
        self.calls.append("le")
        return True

    def __ge__(self, other: object) -> bool:
        self.calls.append("ge")
        return False


def extended(o: Any, a: Tensor) -> Tensor:
    found: list[float] = []
    found.extend(o)
    return a * len(found)


def added(o: Any, a: Tensor) -> Tensor:
    found: list[float] = []
    found += o
    return a * len(found)


def sliced(o: Any, a: Tensor) -> Tensor:
    found = [1.0, 2.0]
    found[:1] = o
    return a * len(found)


def updated(o: Any, a: Tensor) -> Tensor:
    found: set[float] = set()
    found.update(o)
    return a * len(found)


def first(o: Any, a: Tensor) -> Tensor:
    p, q = o
    return a * p * q


OF_ITEMS: dict[str, Callable[[Any, Tensor], Any]] = {
    "list": lambda o, a: a * len(list(o)),
    "tuple": lambda o, a: a * len(tuple(o)),
    "sorted": lambda o, a: a * sorted(o)[0],
    "set": lambda o, a: a * len(set(o)),
    "sum": lambda o, a: a * sum(o),
    "max": lambda o, a: a * max(o),
    "star in a call": lambda o, a: a * max(*o),
    "star in a list": lambda o, a: a * len([*o, 1]),
    "star in a set": lambda o, a: a * len({*o, 9.0}),
    "star in a tuple": lambda o, a: a * len((*o, 1)),
    "unpacked": first,
    "extend": extended,
    "added in place": added,
    "__iadd__": lambda o, a: a * len([].__iadd__(o)),
    "slice": sliced,
    "update": updated,
    "comprehension": lambda o, a: a * sum([v for v in o]),
    "map": lambda o, a: a * sum(list(map(abs, o))),
    "zip": lambda o, a: a * len(list(zip(o, o))),
    "enumerate": lambda o, a: a * len(list(enumerate(o))),
    "deque": lambda o, a: a * len(collections.deque(o)),
    "chain": lambda o, a: a * sum(list(itertools.chain(o, o))),
    "nlargest": lambda o, a: a * heapq.nlargest(1, o)[0],
    "length_hint": lambda o, a: a * operator.length_hint(o),
}
OF_NOTING: dict[str, Callable[[Any, Tensor], Any]] = {
    "in": lambda o, a: a * (1.0 in o),
    "operator.contains": lambda o, a: a * operator.contains(o, 1.0),
    "in a tuple": lambda o, a: a * (o in (1, 2)),
    "in a list": lambda o, a: a * (o in [1, o]),
    "equal lists": lambda o, a: a * ([o] == [1]),
    "equal tuples": lambda o, a: a * ((o,) == (1,)),
    "equal dicts": lambda o, a: a * ({1: o} == {1: 2}),
    "count": lambda o, a: a * [o, 1].count(1),
    "equal by method": lambda o, a: a * [o].__eq__([1]),
    "equal dicts by method": lambda o, a: a * {1: o}.__eq__({1: 2}),
    "equal items": lambda o, a: a * ({1: o}.items() == {1: 2}.items()),
    "key": lambda o, a: {o: a}[o],
    "member": lambda o, a: a * len({o}),
    "index": lambda o, a: a * [1.0, 2.0, 3.0][o],
    "range": lambda o, a: a * len(range(o)),
    "repeated": lambda o, a: a * len([1] * o),
    "bool": lambda o, a: a if o else a * 2,
    "not": lambda o, a: a if not o else a * 2,
    "len": lambda o, a: a * len(o),
    "reversed": lambda o, a: a * sum(list(reversed(o))),
    "itemgetter": lambda o, a: a * operator.itemgetter(0)(o),
}
OF_ORDERED: dict[str, Callable[[Any, Tensor], Any]] = {
    "at most": lambda o, a: a * (o <= 1),
    "at most, tuples": lambda o, a: a * ((o, 1) <= (1, 1)),
    "at most, lists": lambda o, a: a * ([o] <= [1]),
    "at most, by method": lambda o, a: a * [o].__le__([1]),
    "at least, tuples": lambda o, a: a * ((o,) >= (1,)),
    "equal tuples": lambda o, a: a * ((o,) == (1,)),
}
CASES = [
    pytest.param(kind, call, id=f"{kind.__name__}-{name}")
    for kinds, calls in (
        ((Noting, Hinted, Refusing, Failing, Negative, Textual, Unguessed), OF_ITEMS),
        ((Indexed, Row), OF_ITEMS),
        ((Noting,), OF_NOTING),
        ((Ordered,), OF_ORDERED),
    )
    for kind in kinds
    for name, call in calls.items()
]


def outcomes(kind: type, call: Callable[[Any, Tensor], Any], compiled: bool) -> list[Any]:
    """Return, for each of three calls, (result or class of the error, special methods called)."""
    made = kind()

    def function(a: Tensor) -> Any:
        return call(made, a)

    run = ms.jit(function) if compiled else function
    found = []
    for _ in range(3):
        made.calls.clear()
        try:
            result: object = run(X).asnumpy().tolist()
        except (RuntimeError, TypeError, ValueError) as error:
            result = type(error)
        found.append((result, list(made.calls)))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind, call", CASES)
def test_the_same_methods_are_called(kind: type, call: Callable[[Any, Tensor], Any]) -> None:
    want = outcomes(kind, call, compiled=False)
    assert want[0] == want[1] == want[2]
    assert outcomes(kind, call, compiled=True) == want


LOG: list[str] = []


@functools.total_ordering
class Version:
    """Notes its comparisons in `LOG`."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        LOG.append("eq")
        return isinstance(other, Version) and self.number == other.number

    def __lt__(self, other: Any) -> bool:
        LOG.append("lt")
        return bool(self.number < other.number)


@dataclasses.dataclass
class Holder:
    version: Version


class Named:
    """Compared by identity; holds an object that is not."""

    def __init__(self) -> None:
        self.version = Version(1)


NAMED, OTHER = Named(), Named()
# what compares objects that the function makes -> the comparison
OF_MADE: dict[str, Callable[[Any, Any], object]] = {
    "operator.lt": operator.lt,
    "operator.ge": operator.ge,
    "dataclasses": lambda p, q: Holder(p) == Holder(q),
    "namespaces": lambda p, q: types.SimpleNamespace(v=p) == types.SimpleNamespace(v=q),
    "index in a tuple": lambda p, q: (q, p).index(p),
    "count in a tuple": lambda p, q: (q, p).count(p),
    "equal by method": lambda p, q: (p,).__eq__((q,)),
    "less by method": lambda p, q: (p,).__lt__((q,)),
    "countOf": lambda p, q: operator.countOf((q, p), p),
    "indexOf": lambda p, q: operator.indexOf([q, p], p),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compare", OF_MADE.values(), ids=OF_MADE)
def test_comparisons_of_objects_that_the_function_makes(
    compare: Callable[[Any, Any], object],
) -> None:
    def function(a: Tensor) -> object:
        return compare(Version(1), Version(2)), a

    compiled = ms.jit(function)
    for _ in range(3):
        LOG.clear()
        want, noted = function(X)[0], list(LOG)  # type: ignore[index]
        LOG.clear()
        assert (compiled(X)[0], LOG) == (want, noted)


@pytest.mark.parametrize(
    "compare",
    [
        lambda: NAMED == OTHER,
        lambda: NAMED in [OTHER, NAMED],
        lambda: (NAMED,) == (OTHER,),
        lambda: NAMED in {1: OTHER}.values(),
    ],
)
def test_what_objects_hold_is_not_compared_with_them(compare: Callable[[], bool]) -> None:
    """So a function that compares the objects is compiled."""
    compiled = ms.jit(lambda a: a * 2 if compare() else a)
    assert compiled(X).asnumpy().tolist() == (X * 2 if compare() else X).asnumpy().tolist()
    assert compiled.cache_info().fallbacks == 0
