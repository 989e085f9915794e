"""Functions generated from expressions of sizes, against `dims.concrete` and plain arithmetic."""

from __future__ import annotations

import itertools

import pytest
from duograph.dims import concrete
from duograph.scopes import Scope
from duograph.size_code import Behind, checker, evaluator

scope = Scope()
n, m = scope.symbol(5), scope.symbol(7)
VALUES = list(itertools.product((2, 3, 8, 65, 1000), (2, 9, 64)))

NUMBERS = {
    "symbol": n,
    "sum": 3 * n + m - 4,
    "product": n * m * m,
    "negative": 1 - n * m,
    "quotient": (n + 1) // 2,
    "quotient_of_a_quotient": (n // 3 + m) // 2 * n,
    "quotient_by_a_symbol": (n * m + 1) // m,
    "remainder": (n + m) % 4,
    "int": 12,
    "float": 0.1,
    "real": 1 / n,
    "real_power": (n * m) ** 0.5,
    "real_arithmetic": -abs(2.5 - n / 3) * 7 // 2 % 5,
    "converted": float(3) + n,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_evaluator_computes_what_concrete_computes(name: str) -> None:
    number = NUMBERS[name]
    compute = evaluator(scope.symbols, [number, (number, [1, number])])
    for values in VALUES:
        want = concrete(number, dict(zip(scope.symbols, values)))
        assert compute(*values) == [want, [want, [1, want]]]
        assert type(compute(*values)[0]) is type(want)


def test_equal_expressions_are_computed_once() -> None:
    wide = n * m
    compute = evaluator(scope.symbols, [wide + 1, (wide + 1) // 2, wide + 1])
    assert compute(4, 5) == [21, 10, 21]
    assert compute.__code__.co_varnames.count("t0") == 1
    assert len(compute.__code__.co_varnames) == 2 + 3  # two symbols, the sum, quotient and its Dim


def test_an_offset_lies_behind_all_blocks() -> None:
    first = Behind(((None, n * 4),), 64)
    second = Behind(((first, m), (None, n * m)), 64)
    compute = evaluator(scope.symbols, [first, second, 0])
    assert compute(2, 3) == [64, 128, 0]
    assert compute(16, 64) == [64, 1024, 0]
    assert compute(17, 2) == [128, 192, 0]


CONDITIONS = {
    "less": ((n, "<", m, True), lambda a, b: a < b),
    "not_less": ((n, "<", m, False), lambda a, b: not a < b),
    "equal": ((n * m, "==", 24, True), lambda a, b: a * b == 24),
    "real": ((1 / n, "<=", 0.2, True), lambda a, b: 1 / a <= 0.2),
    "division_by_zero": (
        (m // (n - 4), "<", 100, True),
        lambda a, b: a != 4 and b // (a - 4) < 100,
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_checker_compares_and_respects_bounds(name: str) -> None:
    condition, want = CONDITIONS[name]
    holds = checker(scope.symbols, [condition])
    for a, b in itertools.product(range(2, 9), range(2, 13)):
        assert holds(a, b) is want(a, b)
    assert not checker(scope.symbols, [])(1, 2)  # below the least size of a symbol
    assert checker(scope.symbols, [])(2, 2)
