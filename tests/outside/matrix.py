"""The table of cells: every kind, question, change and place, at chosen settings."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator

from .parts import GRADIENTS, LEVELS, POLICIES, SYNTAX, Cell, Change, Config, Kind
from .places import LOCATIONS, WHERE, applies
from .questions import GROUPS

__all__ = ["all_cells", "cells_of"]

REBOUND = Change("rebound", "{o} = make({n})", rebinds=True)
CONFIGS = tuple(itertools.starmap(Config, itertools.product(POLICIES, LEVELS, SYNTAX, GRADIENTS)))
LIMIT = 500
# A cell is tried at so many locations and configurations, so far apart in the tables.
TRIES, STEP = 8, 2654435761
# "recompile" and "warn" get twice as many cells, and O0, which compiles no C, three times as many.
WEIGHTED = tuple(
    config
    for config in CONFIGS
    for _ in range((2 if config.policy in POLICIES[:2] else 1) * (3 if config.level == "O0" else 1))
)


def questions_of(kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield the name and the code of every question that a kind answers."""
    for group in kind.asks:
        for variant, code in GROUPS[group].items():
            yield f"{group}: {variant}", code
    for name, code in kind.own.items():
        yield f"own: {name}", code


def all_cells(kind: Kind, location: str, config: Config) -> Iterator[Cell]:
    """Yield every cell of a kind at one location and configuration."""
    for (question, code), change, where in itertools.product(
        questions_of(kind), (*kind.changes, REBOUND), WHERE
    ):
        cell = Cell(kind, question, code, location, change, where, config)
        if applies(cell):
            yield cell


def cells_of(kind: Kind) -> list[Cell]:
    """Return the cells of a kind: question x change x where, each at one location and setting.

    Of a kind with more than `LIMIT` cells only so many are taken. All choices depend on names
    alone, so a new kind or question moves no other cell.
    """
    found = []
    for (question, code), change, where in itertools.product(
        questions_of(kind), (*kind.changes, REBOUND), WHERE
    ):
        name = f"{kind.name}|{question}|{change.name}|{where}"
        chosen = zlib.crc32(name.encode())
        for number in range(chosen, chosen + TRIES * STEP, STEP):
            location = list(LOCATIONS)[number % len(LOCATIONS)]
            config = WEIGHTED[number // 16 % len(WEIGHTED)]
            cell = Cell(kind, question, code, location, change, where, config)
            if applies(cell):
                found.append((chosen, cell))
                break
    if len(found) > LIMIT:
        limit = sorted(number for number, _ in found)[LIMIT - 1]
        found = [pair for pair in found if pair[0] <= limit]
    return [cell for _, cell in found]
