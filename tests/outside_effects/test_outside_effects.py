"""Effects of compiled functions happen at every call, in order, on real values.

Every program runs line by line and compiled. One mode per program is tested, all of them with
`DUOGRAPH_TESTS=full`.
"""

from __future__ import annotations

import duograph as ms
import pytest
from amount import FULL
from outside_effects import (
    programs_asked,
    programs_between,
    programs_caught,
    programs_cells,
    programs_contexts,
    programs_errors,
    programs_functions,
    programs_identity,
    programs_lookup,
    programs_recompute,
    programs_replaced,
    programs_state,
    programs_world,
)
from outside_effects.harness import MODES, check

PROGRAMS = {
    **programs_functions.PROGRAMS,
    **programs_contexts.PROGRAMS,
    **programs_world.PROGRAMS,
    **programs_errors.PROGRAMS,
    **programs_identity.PROGRAMS,
    **programs_asked.PROGRAMS,
    **programs_between.PROGRAMS,
    **programs_caught.PROGRAMS,
    **programs_cells.PROGRAMS,
    **programs_lookup.PROGRAMS,
    **programs_state.PROGRAMS,
    **programs_recompute.PROGRAMS,
    **programs_replaced.PROGRAMS,
}
CELLS = [
    (name, mode)
    for i, name in enumerate(PROGRAMS)
    for k, mode in enumerate(MODES)
    if FULL or k == i % len(MODES)
]


@pytest.fixture(autouse=True)
def _recompile(restored, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_FILES", str(tmp_path))  # for programs that write files
    ms.set_context(stale_captures="recompile")


@pytest.mark.parametrize(("name", "mode"), CELLS, ids=lambda v: v)
def test_effects(name, mode):
    different = check(PROGRAMS[name], mode)
    assert not different, different
