"""The outside matrix: compiled functions see and change outside objects as line-by-line execution.

`make test` runs a random choice of cells, another one with DUOGRAPH_OUTSIDE_SEED; `make test-all`
runs the whole table.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Iterator

import pytest
from amount import FULL
from outside.kinds import KINDS
from outside.matrix import cells_of
from outside.parts import Cell, Kind
from outside.worlds import Verdict, program, run, settings_kept

SEED = int(os.environ.get("DUOGRAPH_OUTSIDE_SEED", "1"))
CHOSEN = 25  # cells of each part of the choice
PARTS = 8


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield from settings_kept()


def described(cell: Cell, verdict: Verdict) -> str:
    """A failing cell as a program that can be run, with what it does."""
    return f"{cell}\n{verdict.outcome}: {verdict.text}\n{program(cell)}"


@functools.cache
def table() -> list[Cell]:
    return [c for kind in KINDS for c in cells_of(kind)]


def test_the_table_is_large() -> None:
    assert len(table()) >= 20000
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 60


@pytest.mark.parametrize("part", range(PARTS))
def test_chosen_cells(part: int) -> None:
    cells = [c for c in table() if not c.kind.slow]
    chosen = random.Random(SEED * PARTS + part).sample(cells, CHOSEN)
    for cell in chosen:
        verdict = run(cell)
        assert verdict.good, f"DUOGRAPH_OUTSIDE_SEED={SEED}\n{described(cell, verdict)}"


# Without DUOGRAPH_TESTS=full (make test-all) there is nothing to run.
@pytest.mark.parametrize("kind", KINDS if FULL else (), ids=lambda k: k.name)
def test_all_cells(kind: Kind) -> None:
    failing = [(c, v) for c in cells_of(kind) if not (v := run(c)).good]
    shown = "\n\n".join(described(c, v) for c, v in failing[:3])
    assert not failing, f"{len(failing)} cells fail; the first ones:\n{shown}"
