"""Tuples of a class of the user keep their class: as arguments, results and values from outside."""

from __future__ import annotations

import collections
import time
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor


class Terms(tuple):
    """A tuple with a method."""

    def total(self):
        return sum(self[1:], self[0])


Pair = collections.namedtuple("Pair", "a b")


class Doubled(Pair):
    """A named tuple that is made of one value."""

    def __new__(cls, a):
        return super().__new__(cls, a, a * 2)


KNOWN, TENSORS, PAIR = Terms((1, 2)), Terms((Tensor([1.0]), 2)), Doubled(3)
MOMENT = time.gmtime(0)
X = np.arange(3, dtype=np.float32)


def noted(x):
    made = Terms((x, 1))
    made.note = "kept"
    return made.note, made


def class_made_inside(x):
    made = collections.namedtuple("Made", "a b")
    return made(x, 2), made(x, 2).a * 2


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "made": (lambda x: Terms((x, 2)), lambda x: x),
    "made of numbers": (lambda x: (Terms((1, 2)), x), lambda x: x),
    "nested": (lambda x: {"a": [Terms((x, Terms((1, x))))]}, lambda x: x),
    "from outside": (lambda x: (KNOWN, KNOWN.total(), x), lambda x: x),
    "tensors from outside": (lambda x: (TENSORS, TENSORS[0] * x), lambda x: x),
    "named tuple from outside": (lambda x: (PAIR, x), lambda x: x),
    "class in C": (lambda x: (MOMENT, MOMENT.tm_year, x), lambda x: x),
    "method": (lambda a: (type(a).__name__, a.total()), lambda x: Terms((x, x * 2))),
    "argument": (lambda a: a, lambda x: Terms((x, x * 2))),
    "named argument": (lambda a: (a.b, a), Doubled),
    "of a branch": (lambda x: Terms((x, 1)) if x.sum() > 0 else Terms((x * 2, 1)), lambda x: x),
    "slice": (lambda x: (Terms((x, 1))[:1], Terms((x,)) + (1,)), lambda x: x),
    "size": (lambda x: Terms((x.shape[0], Doubled(len(x)))), lambda x: x),
    "class made inside": (class_made_inside, lambda x: x),
    "attribute": (noted, lambda x: x),
}


def described(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [*map(described, value)], dict(getattr(value, "__dict__", {}))
    if isinstance(value, dict):
        return {k: described(v) for k, v in value.items()}
    return value.asnumpy().tolist() if isinstance(value, Tensor) else (type(value), value)


@pytest.mark.filterwarnings("ignore:.*runs line by line:RuntimeWarning")
@pytest.mark.parametrize("dynamic", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_tuples_keep_their_class(name: str, dynamic: int) -> None:
    function, argument = PROGRAMS[name]
    compiled = ms.jit(function, dynamic=dynamic, jit_level="O0")
    for n in (3, 4, 5, 6, 4, 3):
        x = np.resize(X, n) + n
        want = described(function(argument(Tensor(x))))
        assert described(compiled(argument(Tensor(x)))) == want


def test_tuples_of_two_classes_have_two_programs() -> None:
    f = ms.jit(lambda a: a)
    x = Tensor(X)
    for _ in range(2):
        assert type(f((x, x))) is tuple
        assert type(f(Terms((x, x)))) is Terms
    assert f.cache_info().misses == 2
