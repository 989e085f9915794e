"""Arguments that are constants of a program, and that the caller changes between calls.

The cache key holds the contents of arrays, frozen dataclasses and keys. A changed argument is
another key, and no policy for captured values concerns it.
"""

from __future__ import annotations

import dataclasses

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor


@dataclasses.dataclass(frozen=True)
class Config:
    n: float
    inner: object = None

    def doubled(self):
        return self.n * 2

    @property
    def tripled(self):
        return self.n * 3


def set_n(config):
    object.__setattr__(config, "n", 9.0)


def set_first(values):
    values[0] = 9.0


# what a function does with its argument, how that is made, and how it is changed
ARGUMENTS = {
    "attribute": (lambda a, c: a * c.n, lambda: Config(1.0), set_n),
    "property": (lambda a, c: a * c.tripled, lambda: Config(1.0), set_n),
    "method": (lambda a, c: a * c.doubled(), lambda: Config(1.0), set_n),
    "getattr": (lambda a, c: a * getattr(c, "n"), lambda: Config(1.0), set_n),  # noqa: B009
    "equality": (
        lambda a, c: a * (2.0 if c == Config(1.0) else 3.0),
        lambda: Config(1.0),
        set_n,
    ),
    "nested": (
        lambda a, c: a * c.inner.n,
        lambda: Config(2.0, Config(1.0)),
        lambda c: set_n(c.inner),
    ),
    "in a list": (lambda a, c: a * c[0].n, lambda: [Config(1.0)], lambda c: set_n(c[0])),
    "in a tuple": (lambda a, c: a * c[0].n, lambda: (Config(1.0),), lambda c: set_n(c[0])),
    "in a dict": (lambda a, c: a * c["k"].n, lambda: {"k": Config(1.0)}, lambda c: set_n(c["k"])),
    "key of a dict": (
        lambda a, c: a * next(iter(c)).n,
        lambda: {Config(1.0): 1.0},
        lambda c: set_n(next(iter(c))),
    ),
    "array": (lambda a, c: a * float(c[0]), lambda: np.array([1.0]), set_first),
    "array of an op": (
        lambda a, c: a * Tensor(c.astype(np.float32)),
        lambda: np.array([1.0]),
        set_first,
    ),
    "array in a list": (
        lambda a, c: a * float(c[0][0]),
        lambda: [np.array([1.0])],
        lambda c: set_first(c[0]),
    ),
    "large array": (lambda a, c: a * float(c[0]), lambda: np.full(3000, 1.0), set_first),
}
X = Tensor([1.0])


@pytest.mark.parametrize("policy", ["warn", "error", "recompile", "ignore"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_changed_argument_is_another_argument(name, policy, warned):
    function, make, change = ARGUMENTS[name]
    ms.set_context(stale_captures=policy)
    compiled, first = ms.jit(function), make()
    for step, argument in enumerate((first, first, make(), first, make())):
        if step == 1:
            change(first)
        assert float(compiled(X, argument)[0]) == float(function(X, argument)[0])
    assert not warned
    assert compiled.cache_info().fallbacks == 0


def test_many_programs_after_a_key_has_changed(warned):
    compiled = ms.jit(lambda a, c: a * next(iter(c)).n)
    config = Config(1.0)
    held = {config: 1.0}
    compiled(X, held)
    set_n(config)
    for n in range(140):  # more than one function keeps
        assert float(compiled(X, {Config(float(n)): 1.0})[0]) == n
    assert float(compiled(X, held)[0]) == 9.0


def test_what_is_also_reached_from_outside_is_still_captured(warned):
    held = Config(1.0)
    compiled = ms.jit(lambda a, c: a * c.n * held.n)
    assert float(compiled(X, held)[0]) == 1.0
    set_n(held)
    ms.set_context(stale_captures="recompile")
    assert float(compiled(X, Config(1.0))[0]) == 9.0
    assert float(compiled(X, held)[0]) == 81.0


@pytest.mark.parametrize("make", [dict.fromkeys, lambda keys: dict.fromkeys(keys, X), set])
def test_equal_keys_of_other_classes_are_others(make):
    def kinds(a, c):
        return a * sum({bool: 2.0, int: 3.0, float: 5.0}[type(k)] for k in c)

    compiled = ms.jit(kinds)
    for key in (1, True, 1.0, 1):
        assert float(compiled(X, make([key]))[0]) == float(kinds(X, make([key]))[0])


def test_questions_about_a_call_whose_argument_is_reached_from_outside(warned):
    held = [1.0]

    def f(a, values):
        values.append(2.0)
        return a * len(held)

    compiled = ms.jit(f)
    for _ in range(2):
        assert "runs line by line" in str(compiled.explain(X, held))
        assert compiled.graph(X, held) is None
        compiled.compile(X, held)
    assert held == [1.0]
    assert [float(compiled(X, held)[0]) for _ in range(2)] == [2.0, 3.0]
    assert float(compiled(X, [1.0])[0]) == 3.0
