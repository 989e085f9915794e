"""Upper bounds for the number of source files and moves between files in typical calls."""

from __future__ import annotations

from project.walk import Walk, typical_calls


def test_walk_counts_moves_and_returns() -> None:
    path = Walk(("a", "b", "a", "c", "b"))
    assert (path.files, path.moves, path.returns) == (3, 4, 1)
    assert Walk(()).moves == 0


def test_typical_calls_pass_through_few_files() -> None:
    found = typical_calls()
    assert found["x + x"].files <= 3
    assert found["compiled condition on a tensor"].moves <= 15
    first = found["compiled condition on a tensor, first"]
    assert first.moves <= 850, first.most_common(20)
