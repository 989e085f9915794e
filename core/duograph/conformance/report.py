"""Reports of a conformance run: a matrix in the terminal, a web page, and a JSON file.

The pytest plugin calls it at the end of a run; `certificates` compares two JSON files. A level
(bronze, silver, gold) is a set of tests that a backend must pass. Only a complete run can reach a
level: the report of a quick, filtered or interrupted run says why it reaches none.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.resources
import json
import pathlib
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..backend.protocol import SEAM_VERSION
from ..dtype import ALL, STORAGE
from ..version import OWN
from .cases import families

if TYPE_CHECKING:
    from .session import Session

__all__ = [
    "FORMAT", "SKIPPED", "STATES", "Summary", "reached", "state_of", "summarise", "terminal",
    "write_html", "write_json",
]  # fmt: skip

# Version of the JSON file.
FORMAT = 2
# ordered from worst to best; a cell of the matrix shows the worst state of its checks
STATES = ("failed", "expected failure", "unsupported", "on the host", "passed")
SKIPPED = "skipped"
_GLYPHS = {
    "failed": ("✗", "31;1"),
    "expected failure": ("x", "33"),
    "unsupported": ("-", "34"),
    "on the host": ("h", "35"),
    "passed": ("■", "32"),
    "": ("·", "90"),
}
# the columns of the matrix: dtypes, and the calls that must fail
ERRORS = "errors"
COLUMNS = (*(d.name for d in ALL), ERRORS)
STORED = tuple(d.name for d in STORAGE)
# two lines over the columns of the matrix: b iiii uuuu ffff cc, and ! for errors
_HEADER = ("b" + "i" * 4 + "u" * 4 + "fbff" + "cc!", " 8136" + "8136" + "1136" + "61 ")
_NAME = 15
# So many tests are listed as the slowest on the web page.
SLOWEST = 12
LEVELS = ("bronze: kernels", "silver: gradients", "gold: training")


@dataclasses.dataclass(frozen=True)
class Summary:
    """The results of a conformance run, arranged for the reports.

    Attributes:
        results: name of a test, such as ``forward/exp/float16`` -> its record, as the plugin wrote
            it.
        cells: (case, dtype) -> name of a check -> its state, one of STATES.
        levels: name of a level -> (number of tests passed, number that are declared gaps, number
            run). A level is reached if each of its tests passed or is a declared gap, and every
            level before it is reached.
        totals: state -> number of tests; skipped tests are under "skipped".
        expected: name of a level -> number of its tests that are expected failures; they prevent
            the level as other failures do.
        partial: reasons why the run is not complete and reaches no level; empty if it is complete.
        plugin: the package of the backend, with its version and module.
        run: facts about the run: name -> text (when and where it ran, number of results that an
            earlier run left).
    """

    device: str
    title: str
    plugin: str
    dtypes: tuple[str, ...]
    partial: tuple[str, ...]
    results: Mapping[str, Mapping[str, Any]]
    cells: Mapping[tuple[str, str], Mapping[str, str]]
    totals: Mapping[str, int]
    levels: Mapping[str, tuple[int, int, int]]
    expected: Mapping[str, int]
    figures: Mapping[str, str]
    run: Mapping[str, str]
    seconds: float


def state_of(record: Mapping[str, Any]) -> str:
    """Return the state of one conformance test for the report; "" for a skipped test."""
    if record["outcome"] == "skipped":
        return ""
    if record["outcome"] == "passed" and record["on_host"]:
        return "on the host"
    return str(record["outcome"])


def summarise(session: Session) -> Summary:
    """Summarise the results of a conformance run as a matrix of checks by case and dtype."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    levels = {level: [0, 0, 0] for level in LEVELS}
    expected = dict.fromkeys(LEVELS, 0)
    for record in session.results.values():
        state = state_of(record)
        if not state:
            continue
        if record["case"]:
            column = record["dtype"] or ERRORS
            cells.setdefault((record["case"], column), {})[record["check"]] = state
        name = _level(record["check"])
        expected[name] += state == "expected failure"
        level = levels[name]
        level[0] += state in ("passed", "on the host")
        level[1] += state == "unsupported"
        level[2] += 1
    totals = Counter(state_of(r) or SKIPPED for r in session.results.values())
    return Summary(
        device=session.name,
        title=session.title,
        dtypes=tuple(d.name for d in session.dtypes),
        plugin=session.plugin,
        partial=tuple(session.partial()),
        results=dict(sorted(session.results.items())),
        cells=cells,
        totals={s: totals[s] for s in (*STATES, SKIPPED)},
        levels={k: (v[0], v[1], v[2]) for k, v in levels.items()},
        expected=expected,
        figures=dict(session.figures),
        run=_facts(session),
        seconds=sum(r["seconds"] for r in session.results.values()),
    )


def _facts(session: Session) -> dict[str, str]:
    """Return the facts of a run for `Summary.run`."""
    now = datetime.datetime.now(datetime.timezone.utc)
    facts = {
        "finished": f"{now:%Y-%m-%d %H:%M} UTC",
        "system": platform.platform(),
    }
    if session.finished:
        kept = len(session.finished)
        facts["resumed"] = f"{kept} of {len(session.results)} results are from an earlier run"
    return facts


def _seam() -> str:
    """Return the version of the interface between core and backends as text, such as "1.5"."""
    return ".".join(map(str, SEAM_VERSION))


def _level(check: str) -> str:
    bronze, silver, gold = LEVELS
    if check in ("forward", "errors"):
        return bronze
    return gold if check.startswith(("train", "network")) else silver


def reached(summary: Summary) -> list[str]:
    """Return the levels that a run reached, the lowest first; [] if the run is not complete."""
    found: list[str] = []
    for level in () if summary.partial else LEVELS:
        passed, declared, run = summary.levels[level]
        if not run or passed + declared != run:
            break
        found.append(level)
    return found


def worst(states: Iterable[str]) -> str:
    """Return the worst of several test states, in the order of STATES, or "" if there are none."""
    found = set(states)
    return next((s for s in STATES if s in found), "")


# ---- terminal -----------------------------------------------------------------------------------


def terminal(summary: Summary, colour: bool) -> list[str]:
    """Return the matrix of a conformance run's results as lines of text, three ops per line."""

    def paint(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour and text.strip() else text

    lines: list[str] = []
    for family, names in families().items():
        rows = [n for n in names if any((n, c) in summary.cells for c in COLUMNS)]
        if not rows:
            continue
        heads = "  ".join(f"{'':{_NAME}} {_HEADER[0]}" for _ in rows[:3])
        seconds = "  ".join(f"{'':{_NAME}} {_HEADER[1]}" for _ in rows[:3])
        lines += ["", paint(family + heads[len(family) :], "1"), seconds]
        depth = -(-len(rows) // 3)
        for i in range(depth):
            parts = []
            for name in rows[i::depth]:
                short = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
                states = [worst(summary.cells.get((name, c), {}).values()) for c in COLUMNS]
                cells = "".join(paint(*_GLYPHS[s]) for s in states)
                parts.append(f"{short:{_NAME}} {cells}")
            lines.append("  ".join(parts).rstrip())
    others = [
        (name, state_of(r))
        for name, r in summary.results.items()
        if not r["case"] and state_of(r) not in ("passed", "")
    ]
    if others:
        lines += ["", "and:"]
        lines += [f"  {paint(*_GLYPHS[state])} {name}: {state}" for name, state in others]
    legend = "  ".join(f"{paint(*_GLYPHS[s])} {s}" for s in reversed(STATES))
    lines += ["", f"{legend}  {paint(*_GLYPHS[''])} not taken by the op, or not run"]
    lines.append("  ".join(f"{n} {s}" for s, n in summary.totals.items() if n))
    if summary.figures:
        lines.append("measured: " + ", ".join(f"{k} {v}" for k, v in summary.figures.items()))
    if summary.partial:
        lines.append(f"no level: {'; '.join(summary.partial)}")
    return lines + [_level_text(level, summary) for level in LEVELS]


def _level_text(level: str, summary: Summary) -> str:
    """Return a short text that says how many of a level's tests passed, and what blocks it."""
    passed, declared, run = summary.levels[level]
    if not run:
        return f"{level} not run"
    notes = [f"declared gaps: {declared}"] if declared else []
    if level in reached(summary):
        text = f"{level} reached"
    elif summary.partial:
        text = f"{level} {passed} of the {run} that ran"
    else:
        text = f"{level} {passed} of {run}"
        expected = summary.expected[level]
        if expected:
            notes.append(f"expected failures, which count as failures: {expected}")
        if passed + declared == run:
            notes.append("an earlier level is missing")
    return text + (f" ({'; '.join(notes)})" if notes else "")


# ---- JSON ---------------------------------------------------------------------------------------


def write_json(summary: Summary, path: str) -> None:
    """Write all results of a conformance run as JSON, sorted, so that two files can be compared."""
    content = {
        "format": FORMAT,
        "duograph": OWN,
        "seam": _seam(),
        "plugin": summary.plugin,
        "device": summary.device,
        "title": summary.title,
        "partial": summary.partial,
        "reached": reached(summary),
        "dtypes": summary.dtypes,
        "totals": summary.totals,
        "levels": summary.levels,
        "figures": summary.figures,
        "run": summary.run,
        "results": summary.results,
    }
    pathlib.Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


# ---- the web page -------------------------------------------------------------------------------


def write_html(summary: Summary, path: str) -> None:
    """Write the results of a conformance run as a web page with a matrix for each family of ops."""
    template = importlib.resources.files(__package__).joinpath("report.html")
    text = template.read_text("utf-8").replace("/*DATA*/null", _safe_json(_page_data(summary)))
    pathlib.Path(path).write_text(text, encoding="utf-8")


def _safe_json(data: object) -> str:
    """Encode a value as JSON text that is safe inside an HTML script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _page_data(summary: Summary) -> dict[str, object]:
    groups = []
    for family, names in families().items():
        rows = [_row(summary, name) for name in names]
        rows = [r for r in rows if r is not None]
        if rows:
            groups.append({"name": family, "unit": "case", "columns": COLUMNS, "rows": rows})
    storage = _storage(summary)
    if storage:
        groups.append(
            {"name": "storage dtypes", "unit": "check", "columns": STORED, "rows": storage}
        )
    others = [
        {"name": k, "state": state_of(r), "seconds": r["seconds"], "message": r["message"]}
        for k, r in summary.results.items()
        if not r["case"] and r["dtype"] not in STORED and state_of(r)
    ]
    return {
        "device": summary.device,
        "title": summary.title,
        "plugin": summary.plugin,
        "partial": summary.partial,
        "reached": reached(summary),
        "dtypes": COLUMNS,
        "has": summary.dtypes,
        "states": STATES,
        "totals": summary.totals,
        "levels": [[k, *v, summary.expected[k]] for k, v in summary.levels.items()],
        "figures": list(summary.figures.items()),
        "run": [("seam", _seam()), *summary.run.items()],
        "seconds": round(summary.seconds, 1),
        "groups": groups,
        "others": others,
        "slowest": _slowest(summary),
        "skipped": _skipped(summary),
    }


def _storage(summary: Summary) -> list[dict[str, object]]:
    """Return a row for each check of storage dtypes, with a cell for each of these dtypes."""
    rows: dict[str, dict[str, dict[str, list[Any]]]] = {}
    for name, record in summary.results.items():
        state = state_of(record)
        if record["dtype"] in STORED and not record["case"] and state:
            cells = rows.setdefault(record["check"], {})
            cells.setdefault(record["dtype"], {})[name] = _detail(record)
    return [
        {"name": check.replace("_", " "), "cells": [cells.get(column) for column in STORED]}
        for check, cells in rows.items()
    ]


def _detail(record: Mapping[str, Any]) -> list[Any]:
    """Return what the page shows of one test in a cell of the matrix."""
    return [state_of(record), record["seconds"], record["message"][:600], record["kinds"]]


def _slowest(summary: Summary) -> list[tuple[str, float]]:
    """Return (name, seconds) of the slowest tests, the slowest first."""
    found = sorted(summary.results.items(), key=lambda item: -item[1]["seconds"])
    return [(name, record["seconds"]) for name, record in found[:SLOWEST]]


def _skipped(summary: Summary) -> list[tuple[str, int]]:
    """Return (reason, number of tests skipped for this reason), the most frequent reason first."""
    skipped = (r["message"] for r in summary.results.values() if r["outcome"] == "skipped")
    return Counter(skipped).most_common()


def _row(summary: Summary, name: str) -> dict[str, object] | None:
    cells: list[dict[str, list[Any]] | None] = []
    for column in COLUMNS:
        checks = summary.cells.get((name, column))
        if checks is None:
            cells.append(None)
            continue
        detail = {}
        for check in checks:
            record = summary.results["/".join([check, name] + [column] * (column != ERRORS))]
            detail[check] = _detail(record)
        cells.append(detail)
    return None if not any(cells) else {"name": name, "cells": cells}
