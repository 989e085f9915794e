"""Which pairs of a table the tests take."""

import pytest
from amount import spread

ROWS, KINDS = ["a", "b", "c"], [1, 2, 3]


@pytest.mark.parametrize("each", [1, 2, 3, 9])
def test_every_row_and_every_kind_is_there(each: int) -> None:
    found = spread(ROWS, KINDS, each, whole=False)
    assert len(set(found)) == len(found) == 3 + 2 * min(each, 3)
    assert {row for row, kind in found if kind == 1} == set(ROWS)
    assert {kind for _, kind in found} == set(KINDS)


def test_rows_come_in_turn() -> None:
    assert spread(ROWS, KINDS, 2, whole=False)[3:] == [("a", 2), ("b", 2), ("c", 3), ("a", 3)]


def test_whole() -> None:
    assert spread(ROWS, KINDS, whole=True) == [(row, kind) for row in ROWS for kind in KINDS]


def test_tables_of_one_kind_and_of_iterators() -> None:
    assert spread(iter("xy"), iter([5]), whole=False) == [("x", 5), ("y", 5)]
    assert spread({"x": 0}, {5: 0, 6: 0}, 9, whole=False) == [("x", 5), ("x", 6)]
    assert spread([], [5, 6], whole=False) == []
