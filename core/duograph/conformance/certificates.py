"""Compares two JSON reports of the conformance suite.

The command `duograph conformance compare OLD NEW` calls it. The module must not run a test.
"""

from __future__ import annotations

import json
import pathlib
import statistics
from collections.abc import Mapping
from typing import Any

from .report import FORMAT, STATES, state_of

__all__ = ["compare", "read"]

# A test that takes so many times as long as the other tests suggest, and so many seconds more, is
# reported as slower.
SLOWER, SECONDS = 2.0, 0.5
# From this factor on, the report says that the machine of the new run was slower.
BUSIER = 1.2
# Seconds of a test from which on it says how fast the machine was.
MEASURED = 0.01
# A difference that grows as much, to more than this share of the tolerance, is reported too.
NOTABLE = 0.1
# What `compare` reads of a report, and of each of its results.
_FIELDS = {"title": (str,), "plugin": (str,), "partial": (list,), "reached": (list,),
           "results": (dict,)}  # fmt: skip
_RESULT = {"outcome": (str,), "on_host": (int,), "message": (str,), "seconds": (int, float),
           "reached": (int, float, type(None))}  # fmt: skip


def read(path: str) -> dict[str, Any]:
    """Return the content of a JSON report.

    Raises:
        ValueError: the file is not a report, or its format is of another version of duograph.
        OSError: the file cannot be read.
    """
    text = pathlib.Path(path).read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: it is no JSON file ({error})") from None
    if not isinstance(found, dict) or "results" not in found:
        raise ValueError(f"{path}: it is no report of the conformance suite")
    if found.get("format") != FORMAT:
        raise ValueError(
            f"{path}: its format is {found.get('format')}; this duograph reads {FORMAT}. "
            "Run the suite again"
        )
    if not _fits(found, _FIELDS) or not all(_fits(r, _RESULT) for r in found["results"].values()):
        raise ValueError(f"{path}: it is damaged, a field is missing. Run the suite again")
    return found


def _fits(found: object, fields: Mapping[str, tuple[type, ...]]) -> bool:
    """Return whether a dictionary has fields of these types."""
    return isinstance(found, dict) and all(
        name in found and isinstance(found[name], types) for name, types in fields.items()
    )


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return (lines of text about what differs between two reports, whether the new one is worse).

    The new report is worse if the outcome of any test is worse than in the old one (for example
    failed or skipped, where it passed), or if a level of conformance that the old report reached is
    lost. A test that only one report contains does not make the new one worse.
    """
    lines = [f"old: {old['title']}, {old['plugin']}", f"new: {new['title']}, {new['plugin']}"]
    for name, report in (("old", old), ("new", new)):
        if report["partial"]:
            lines.append(f"the {name} run is partial: {'; '.join(report['partial'])}")
    before, after = old["results"], new["results"]
    worse = []
    for name in sorted(before.keys() & after.keys()):
        was, now = state_of(before[name]), state_of(after[name])
        if was == now:
            continue
        is_worse = bool(was) and (not now or STATES.index(now) < STATES.index(was))
        word = "worse" if is_worse else "better"
        worse += [name] if is_worse else []
        note = after[name]["message"].splitlines()[:1]
        lines.append(
            f"{word}: {name}: {was or 'skipped'} -> {now or 'skipped'} {' '.join(note)}".rstrip()
        )
    busier = _busier(before, after)
    if busier > BUSIER:
        lines.append(f"the new run took {busier:.2f} times as long for most tests")
    for name in sorted(before.keys() & after.keys()):
        was, now = before[name]["seconds"] * busier, after[name]["seconds"]
        if now > SLOWER * was and now - was > SECONDS:
            lines.append(f"slower: {name}: {was / busier:.2f} -> {now:.2f} s")
    for name in sorted(before.keys() & after.keys()):
        was, now = before[name]["reached"], after[name]["reached"]
        if was is not None and now is not None and now > max(SLOWER * was, NOTABLE):
            lines.append(f"less accurate: {name}: {was} -> {now} of the tolerance")
    gone, added = before.keys() - after.keys(), after.keys() - before.keys()
    lines += [f"{len(gone)} tests of the old run are not in the new one"] if gone else []
    lines += [f"{len(added)} tests of the new run are not in the old one"] if added else []
    lost = []
    if not new["partial"]:
        lost = [level for level in old["reached"] if level not in new["reached"]]
    lines += [f"worse: {level} is no more reached" for level in lost]
    lines.append(f"{len(worse)} tests are worse")
    return lines, bool(worse or lost)


def _busier(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    """Return by which factor the machine of the new run was slower, at least 1.

    It is the median over the tests that took long enough to be measured, of which at least 20 are
    needed: one slow test must not count as a slow machine.
    """
    ratios = [
        after[name]["seconds"] / before[name]["seconds"]
        for name in before.keys() & after.keys()
        if before[name]["seconds"] > MEASURED and after[name]["outcome"] == "passed"
    ]
    return max(statistics.median(ratios), 1.0) if len(ratios) >= 20 else 1.0
