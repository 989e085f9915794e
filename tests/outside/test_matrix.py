"""The outside matrix: compiled functions see and change outside objects as line-by-line execution.

`make test` runs a random choice of cells, another one with DUOGRAPH_OUTSIDE_SEED; `make test-all`
runs the whole table.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from outside.kinds import KINDS
from outside.matrix import cells_of
from outside.parts import Cell, Kind
from outside.worlds import Verdict, program, run, settings_kept

FULL = os.environ.get("DUOGRAPH_OUTSIDE") == "full"
SEED = int(os.environ.get("DUOGRAPH_OUTSIDE_SEED", "1"))
CHOSEN = 25  # cells of each part of the choice
PARTS = 8


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield from settings_kept()


def known(cell: Cell) -> str:
    """The line of `known_failures.txt` that a cell belongs to, listed or not."""
    where = "between calls" if cell.where in ("outside", "thread") else cell.where
    return f"{cell.kind.name} | {cell.question.split(':')[0]} | {where}"


KNOWN = frozenset(Path(__file__).with_name("known_failures.txt").read_text().splitlines())


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
        if known(cell) not in KNOWN:
            verdict = run(cell)
            assert verdict.good, f"DUOGRAPH_OUTSIDE_SEED={SEED}\n{described(cell, verdict)}"


# Without DUOGRAPH_OUTSIDE=full (make test-all) there is nothing to run.
@pytest.mark.parametrize("kind", KINDS if FULL else (), ids=lambda k: k.name)
def test_all_cells(kind: Kind) -> None:
    failing = [(c, v) for c in cells_of(kind) if not (v := run(c)).good]
    unknown = [(c, v) for c, v in failing if known(c) not in KNOWN]
    shown = "\n\n".join(described(c, v) for c, v in unknown[:3])
    assert not unknown, f"{len(unknown)} cells fail; the first ones:\n{shown}"
    listed = {line for line in KNOWN if line.startswith(f"{kind.name} | ")}
    solved = listed - {known(c) for c, _ in failing}
    assert not solved, f"delete from known_failures.txt, they work: {sorted(solved)}"
