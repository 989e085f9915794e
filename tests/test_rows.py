"""Every row of the feature list in scope has a test that quotes it."""

import functools

import pytest
import rows

quoted = functools.cache(rows.tests_by_row)


@pytest.mark.parametrize("row", rows.ROWS)
def test_row_has_a_test(row: str) -> None:
    assert quoted().get(row), f"no test quotes {row}: {rows.ROWS[row]}"
