"""Names of Parameters equal MindSpore's, for every nesting of Cells and order of construction."""

from __future__ import annotations

import duograph as ms
import pytest
from nn.naming_expected import EXPECTED
from nn.naming_programs import PROGRAMS, names_of

# MindSpore renames the Parameters of a network when a slice of its list is read. Here a slice
# is a new list of the same Cells, and names stay until it becomes an attribute.
SLICES = {
    "list_slice": [
        ("0.weight", "layers.1.weight"), ("0.bias", "layers.1.bias"),
        ("1.weight", "layers.2.weight"), ("1.bias", "layers.2.bias"),
    ],
    "sequential_slice_of_it": [
        ("1.weight", "body.1.weight"), ("1.bias", "body.1.bias"),
        ("2.weight", "body.2.weight"), ("2.bias", "body.2.bias"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_names(name: str) -> None:
    expected = SLICES.get(name, EXPECTED[name])
    assert not isinstance(expected, str), expected
    assert names_of(PROGRAMS[name](ms)) == expected


def test_every_program_has_names() -> None:
    assert set(EXPECTED) == set(PROGRAMS)
