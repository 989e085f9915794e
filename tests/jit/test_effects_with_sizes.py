"""Functions that print sizes and store them outside, called with many sizes, compiled and eager.

`ONE` are served by programs for all sizes, in which Python code gets the sizes of each call; the
others are compiled for each size or run line by line. What they did to the objects outside is
compared after every call.
"""

from __future__ import annotations

import collections
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from amount import spread
from duograph import Tensor
from duograph.conformance.compare import printed_words, same_words

SIZES = (5, 6, 7, 8, 9, 3, 2, 1, 0, 8, 12)
COUNT = 0


class Box:
    """An object from outside, which functions change."""

    def __init__(self) -> None:
        self.n = 0
        self.items: Any = []
        self.table: dict[Any, Any] = {}

    def add(self, k: int) -> int:
        self.n = self.n + k
        return self.n


class World:
    """The objects outside of one series of calls."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.box = Box()
        self.queue: collections.deque[Any] = collections.deque(maxlen=3)
        self.counter: collections.Counter[str] = collections.Counter()
        self.set: set[Any] = set()
        self.ordered: collections.OrderedDict[Any, Any] = collections.OrderedDict()


Function = Callable[[Tensor], Any]
ONE: dict[str, Callable[[World], Function]] = {}
OTHERS: dict[str, Callable[[World], Function]] = {}


def one(make: Callable[[World], Function]) -> Callable[[World], Function]:
    """Decorator that adds a function of the world to `ONE`."""
    ONE[make.__name__] = make
    return make


def other(make: Callable[[World], Function]) -> Callable[[World], Function]:
    """Decorator that adds a function of the world to `OTHERS`."""
    OTHERS[make.__name__] = make
    return make


@one
def printed(w: World) -> Function:
    def f(x: Tensor) -> Any:
        print(x.shape, x.shape[0], len(x) // 2, x.shape[0] / 2)
        print(x.shape[0], sep="-", end="!\n")
        return x * 2

    return f


@one
def appended(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.seen.append(x.shape[0])
        w.seen.append(x.shape)
        w.seen.append([x.shape[0], x.sum(), x.shape[0] / 3, x.shape[0] * 0.5])
        return x.sum(0)

    return f


@one
def appended_containers(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.seen.append({"n": x.shape[0], "shape": (x.shape,)})
        w.seen.append((x.shape[0],) * 2)
        w.seen.append([x.shape[0]] * 2)
        w.seen.append(list(x.shape))
        w.seen.append(slice(x.shape[0], None))
        return x

    return f


@one
def attributes(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.box.n = x.shape[0]
        w.box.items = [x.shape[0]]
        return x + w.box.n

    return f


@one
def items_of_a_dict(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.box.table["k"] = x.shape[0] * 2
        w.ordered[x.shape[0]] = x.sum()
        w.counter["rows"] += x.shape[0]
        return x.sum()

    return f


@one
def object_made_inside(w: World) -> Function:
    def f(x: Tensor) -> Any:
        made = Box()
        made.n = x.shape[0]
        w.seen.append(made.n)
        return x * made.n

    return f


@one
def global_variable(w: World) -> Function:
    def f(x: Tensor) -> Any:
        global COUNT
        COUNT = x.shape[0]
        return x + COUNT

    return f


@one
def tensors_beside_sizes(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.box.items.append((x.shape[0], x))
        w.seen.append(x[: x.shape[0] // 2])
        return x

    return f


@one
def changed_items(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.seen.append(x.shape[0])
        w.seen[-1] += x.shape[0]
        w.seen.pop(0)
        return x

    return f


@one
def next_of_an_iterator(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.seen.append(next(iter([x.shape[0], 2])))
        return x

    return f


@other
def method_of_an_object(w: World) -> Function:
    return lambda x: x * w.box.add(x.shape[0])


@other
def deque(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.queue.append(x.shape[0])
        w.set.add(x.shape[0])
        return x + 1

    return f


@other
def function_that_holds_a_size(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.seen.append(lambda: x.shape[0])
        return x

    return f


@other
def partial(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.seen.append(functools.partial(int, x.shape[0]))
        return x

    return f


@other
def object_that_holds_a_size(w: World) -> Function:
    def f(x: Tensor) -> Any:
        made = Box()
        made.n = x.shape[0]
        w.box.items = made
        return x

    return f


@other
def set_attribute(w: World) -> Function:
    def f(x: Tensor) -> Any:
        setattr(w.box, "n", x.shape[0])  # noqa: B010
        w.box.__dict__["z"] = x.shape[0]
        return x

    return f


@other
def errors(w: World) -> Function:
    def f(x: Tensor) -> Any:
        if x.shape[0] > 100:
            raise ValueError(x.shape[0])
        if x.sum() > 60:
            raise ValueError("big", x.shape[0], x.shape)
        return x + 1

    return f


@other
def under_a_condition(w: World) -> Function:
    def f(x: Tensor) -> Any:
        if x.sum() > 20:
            w.seen.append(x.shape[0] + 1)
        else:
            w.seen.append(-x.shape[0])
        return x * 2

    return f


@other
def in_a_loop(w: World) -> Function:
    def f(x: Tensor) -> Any:
        i = Tensor(0)
        while i < 2:
            i = i + 1
            w.box.n = x.shape[0]
            print("it", x.shape[0] * 2)
        return x * 2

    return f


@other
def strings_and_keys(w: World) -> Function:
    def f(x: Tensor) -> Any:
        print(f"{x.shape[0]} rows")
        w.seen.append(str(x.shape[0]) + repr(x.shape))
        w.seen.append({(1, x.shape[0]): 2})
        w.seen.append({x.shape[0], 1})
        return x

    return f


@other
def numpy_and_math(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.seen.append(np.int64(x.shape[0]))
        w.seen.append(np.zeros(x.shape[0]))
        w.seen.append(math.sqrt(x.shape[0]))
        np.testing.assert_equal(x.shape[0], len(x))
        return x

    return f


@other
def questions(w: World) -> Function:
    def f(x: Tensor) -> Any:
        w.seen.append(bool(x.shape[0] > 5))
        w.seen.append(type(x.shape[0]))
        w.seen.append(min(x.shape[0], 6))
        w.seen.append(complex(x.shape[0], 1))
        w.seen.append(x.shape[0].bit_length())
        return x

    return f


@other
def ranges_and_defaults(w: World) -> Function:
    def f(x: Tensor) -> Any:
        def inner(k: int = x.shape[0]) -> int:
            return k

        w.seen.append(range(x.shape[0]))
        w.seen.append(inner())
        w.seen.extend([x.shape[0], len(x)])
        w.seen.insert(0, x.shape[0])
        return x * inner()

    return f


def plain(value: Any) -> Any:
    """Return a value as nested tuples that compare by value and by class."""
    if isinstance(value, Tensor):
        return "Tensor", value.asnumpy().tolist(), str(value.dtype)
    if isinstance(value, (Box, World)):
        return plain(vars(value))
    if isinstance(value, dict):
        return type(value).__name__, [(plain(k), plain(v)) for k, v in value.items()]
    if isinstance(value, (set, collections.deque)):
        return type(value).__name__, sorted(map(plain, value))
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return "array", value.tolist()
    if callable(value) and not isinstance(value, type):
        return "function", plain(value())
    return type(value).__name__, repr(value)


def series(make: Callable[[World], Function], wrap: Callable[[Function], Function], capsys: Any):
    """Call a function with all sizes; yield result or error, printed words and state, per call."""
    global COUNT
    COUNT, world = 0, World()
    function = wrap(make(world))
    for n in SIZES:
        x = Tensor(np.arange(3 * n, dtype=np.float32).reshape(n, 3) / 4)
        try:
            result = plain(function(x))
            ms.synchronize()
        except ValueError as error:
            result = plain(error.args)
        yield result, printed_words(capsys.readouterr().out), plain(world), COUNT


WAYS = [("O0", None), ("O2", 1), ("O0", 1), ("O2", None)]


@pytest.mark.parametrize(("name", "way"), spread([*ONE, *OTHERS], WAYS, 4))
def test_effects_see_the_sizes_of_each_call(name, way, capsys):
    level, dynamic = way
    make = {**ONE, **OTHERS}[name]
    found: list[Any] = []

    def compiled(function: Function) -> Function:
        found.append(ms.jit(function, jit_level=level, dynamic=dynamic))
        return found[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some run line by line
        before = ms.get_context("stale_captures")
        ms.set_context(stale_captures="recompile")
        try:
            want = list(series(make, lambda f: f, capsys))
            got = list(series(make, compiled, capsys))
        finally:
            ms.set_context(stale_captures=before)
    for n, a, b in zip(SIZES, want, got, strict=True):
        assert same_words(a[1], b[1]), n
        assert (a[0], *a[2:]) == (b[0], *b[2:]), n
    if name in ONE:
        assert found[0].cache_info().misses <= 5
        assert found[0].cache_info().fallbacks == 0
        assert "(s0, 3)" in found[0].explain(Tensor(np.ones((4, 3), np.float32))).sizes[0]
