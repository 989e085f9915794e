"""Symbolic dimensions compute what ints compute, and record each question about their value."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from duograph.dims import Dim, concrete, is_symbolic, text_of
from duograph.scopes import Scope
from duograph.sizes import pinned, range_length, real, slice_bounds

# id: a function of two sizes, each at least 2
EXPRESSIONS = {
    "sum": lambda n, m: n + m + 3,
    "difference": lambda n, m: 5 - n + 2 * m - m,
    "product": lambda n, m: n * m * n - 4,
    "negative": lambda n, m: -n + +m,
    "power": lambda n, m: n**2 + m**0,
    "exact division": lambda n, m: (12 * n * m) // (4 * n),
    "division with a rest": lambda n, m: (8 * n + 5) // 8,
    "rounded up": lambda n, m: -(-n // 3),
    "rounded down": lambda n, m: (n - 2 * m) // 5,
    "division of sums": lambda n, m: (n * m + 1) // (n + m),
    "remainder": lambda n, m: n % 3 + (6 * m) % 3 + (m * 4 + 1) % 4,
    "negative remainder": lambda n, m: (1 - n) % 4,
    "by a size": lambda n, m: 100 // n + 100 % m,
    "divmod": lambda n, m: sum(divmod(n * 3 + 1, 3)) + sum(divmod(17, m)),
    "nested divisions": lambda n, m: ((n + 1) // 2 + m) // 2 * 2,
    "quotient": lambda n, m: n / m + 1 / n - n / 4,
    "root": lambda n, m: (n * m) ** 0.5 * 2.0 - 1,
    "floats": lambda n, m: 1.5 * n + m * 0.25 + n * 1.0,
    "true": lambda n, m: n + True,
    "conversion": lambda n, m: real(n) * 2 - real(m),
}
SIZES = [(2, 2), (3, 5), (4, 4), (7, 2), (9, 16), (33, 8)]


@pytest.mark.parametrize("case", EXPRESSIONS)
def test_an_expression_has_the_value_that_python_computes(case: str) -> None:
    function = EXPRESSIONS[case]
    scope = Scope()
    n, m = scope.symbol(9), scope.symbol(16)
    found = function(n, m)
    assert is_symbolic(found)
    assert not scope.guards
    for values in SIZES:
        want = function(*values)
        got = concrete(found, dict(zip(scope.symbols, values)))
        assert (type(got), got) == (type(want), want)


# id: a question about two sizes, and whether the bounds of sizes answer it without a guard
QUESTIONS = {
    "larger than 1": (lambda n, m: n > 1, True),
    "one": (lambda n, m: n == 1, True),
    "truth": (lambda n, m: bool(n - 1), True),
    "itself": (lambda n, m: n * 2 == n + n, True),
    "sum of equal ones": (lambda n, m: (n + m) * 4 // 4 == m + n, True),
    "larger product": (lambda n, m: n + 1 <= n, True),
    "in a tuple": (lambda n, m: (n, 3) == (n, 3), True),
    "more than 4": (lambda n, m: n > 4, False),
    "equal": (lambda n, m: n == m, False),
    "not equal": (lambda n, m: n != 9, False),
    "at most": (lambda n, m: 3 <= n <= 2 * m, False),
    "minimum": (lambda n, m: min(n, m) == n, False),
    "even": (lambda n, m: n % 2 == 0, False),
    "in a list": (lambda n, m: n in [3, 9], False),
    "float": (lambda n, m: n / 2 > 3.5, False),
    "float above": (lambda n, m: 2.5 < n, False),
    "index": (lambda n, m: "abcdefghijklmn"[n], False),
    "range": (lambda n, m: list(range(n)), False),
    "text": (lambda n, m: f"{n}{m:>3}{n!r}", False),
    "bits": (lambda n, m: n & 6 | 1 << m - m + 2, False),
    "whole part": (lambda n, m: int(n / 4), False),
    "rounded": (lambda n, m: round(n / 4), False),
    "C code": (lambda n, m: math.sqrt(n) + math.gcd(n, m), False),
    "repeated": (lambda n, m: [0] * n + n * [1], False),
    "complex": (lambda n, m: n * 1j, False),
    "base": (lambda n, m: 2**n, False),
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_a_question_is_answered_for_the_hint_and_guarded(case: str) -> None:
    function, known = QUESTIONS[case]
    scope = Scope()
    n, m = scope.symbol(9), scope.symbol(16)
    assert function(n, m) == function(9, 16)
    assert (not scope.guards) is known
    for values in itertools.product(range(2, 40, 3), (2, 9, 16, 21)):
        if scope.holds(dict(zip(scope.symbols, values))):
            assert function(*values) == function(9, 16)
    assert scope.holds(dict(zip(scope.symbols, (9, 16))))


def test_random_expressions_agree_with_ints() -> None:
    """Guards hold only for sizes at which each answer along the way is the same."""
    rng = random.Random(5)
    operations = [
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a // b,
        lambda a, b: a % b, lambda a, b: a if a < b else b, lambda a, b: -(-a // b),
        lambda a, b: a * 6 // 3 + b, lambda a, b: (a + b) // 2, lambda a, b: max(a, b, 3),
    ]  # fmt: skip
    held = 0
    for _ in range(300):
        steps = [(rng.choice(operations), rng.random(), rng.random()) for _ in range(5)]

        def run(*sizes, steps=steps):
            values = [*sizes, 4, 1]
            for operation, a, b in steps:
                x, y = values[int(a * len(values))], values[int(b * len(values))]
                values.append(operation(x, y))
            return values[-1]

        scope = Scope()
        symbols = scope.symbol(12), scope.symbol(5)
        try:
            found = run(*symbols)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                run(12, 5)
            continue
        assert concrete(found, dict(zip(scope.symbols, (12, 5)))) == run(12, 5)
        for _ in range(20):
            values = rng.randint(2, 60), rng.randint(2, 60)
            if scope.holds(dict(zip(scope.symbols, values))):
                held += 1
                assert concrete(found, dict(zip(scope.symbols, values))) == run(*values)
    assert held > 1000


def test_slices_and_ranges_are_those_of_python() -> None:
    bounds = [None, 0, 1, 3, -1, -3, 100, -100]
    for start, stop, step in itertools.product(bounds, bounds, [None, 1, 2, -1, -3]):
        scope = Scope()
        n = scope.symbol(7)
        found = slice_bounds(start, stop, step, n)
        length = range_length(*found)
        for size in (7, 2, 3, 4, 11, 150):
            values = {scope.symbols[0]: size}
            if scope.holds(values):
                want = slice(start, stop, step).indices(size)
                assert tuple(concrete(v, values) for v in found) == want
                assert concrete(length, values) == len(range(*want))


# id: bounds, divisor and remainder of a symbol, sizes that it takes, and sizes that it does not
DESCRIBED = {
    "any": ((), [2, 3, 1000], [0, 1]),
    "bounds": ((3, 8), [3, 8], [2, 9]),
    "divisor": ((1, None, 8, 0), [8, 16, 800], [0, 4, 9]),
    "remainder": ((1, 40, 8, 3), [3, 11, 35], [8, 12, 43]),
}


@pytest.mark.parametrize("case", DESCRIBED)
def test_a_symbol_takes_the_sizes_that_it_describes(case: str) -> None:
    arguments, inside, outside = DESCRIBED[case]
    scope = Scope()
    size = scope.symbol(inside[0], *arguments)
    (symbol,) = scope.symbols
    divisor, remainder = arguments[2:] or (1, 0)
    assert size.hint == inside[0]
    assert size % divisor == remainder
    assert all(scope.holds({symbol: (n - remainder) // divisor}) for n in inside)
    fits = [n for n in outside if (n - remainder) % divisor == 0]
    assert not any(scope.holds({symbol: (n - remainder) // divisor}) for n in fits)
    assert not scope.guards


def test_a_finished_scope_answers_nothing_new() -> None:
    scope = Scope()
    n = scope.symbol(9)
    assert n > 4
    scope.closed = True
    assert n > 4
    assert n > 1
    with pytest.raises(RuntimeError, match="s0 < 7 was asked after"):
        assert not n < 7


def test_pinning_reaches_into_containers() -> None:
    scope = Scope()
    n = scope.symbol(9)
    assert pinned([(n, "a"), {"k": n + 1}, slice(n)]) == [(9, "a"), {"k": 10}, slice(9)]
    assert len(scope.pinned) == 2


def test_a_size_looks_like_an_int() -> None:
    n = Scope().symbol(9)
    assert isinstance(n, int)
    assert n.__class__ is int
    assert type(n) is Dim
    assert text_of((8 * n + 1) // 3) == "2*s0 + (2*s0 + 1 // 3)"
    assert isinstance(n / 2, float)
