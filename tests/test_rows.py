"""Every row of the feature list in scope has a test that quotes it."""

import pytest
import rows

QUOTED = rows.tests_by_row()


@pytest.mark.parametrize("row", rows.ROWS)
def test_row_has_a_test(row: str) -> None:
    assert QUOTED.get(row), f"no test quotes {row}: {rows.ROWS[row]}"
