"""Merging of the traces of several ranks into one, in which each rank has its own processes.

`duograph run -n N --trace FILE` calls it. The ranks of one machine share the clock of
`time.perf_counter_ns`, so that times of different ranks can be compared.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from .traces import Event, Trace

__all__ = ["merged", "read_parts"]

_DEVICES = 1000  # numbers of processes that a rank may have


def merged(parts: Mapping[int, Trace]) -> Trace:
    """Return the trace documents of several ranks as one document.

    Args:
        parts: rank -> document of `profile.trace`; at least one.

    Returns:
        A document in the trace event format of Chrome. Process `1000 * rank` is the host of a rank,
        and the following process numbers are its devices. Times are microseconds from the earliest
        start of the profiles.
    """
    begins = {rank: int(part["otherData"]["clock"]) for rank, part in parts.items()}
    first = min(begins.values())
    events: list[Event] = []
    facts: dict[str, str] = {"ranks": ", ".join(map(str, sorted(parts)))}
    for rank in sorted(parts):
        shift = (begins[rank] - first) / 1e3
        events += _of_rank(rank, parts[rank]["traceEvents"], shift)
        facts |= {f"rank {rank}: {k}": v for k, v in parts[rank]["otherData"].items()}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": facts}


def _of_rank(rank: int, events: list[Event], shift: float) -> Iterator[Event]:
    """Yield a rank's events with new process numbers; add `shift` microseconds to their times."""
    numbers: dict[int, int] = {}
    for event in events:
        number = numbers.setdefault(event["pid"], rank * _DEVICES + len(numbers))
        made = cast("Event", {**event, "pid": number})
        if event["ph"] != "M":
            made["ts"] = event["ts"] + shift
        elif event["name"] == "process_name":
            name = "" if number == rank * _DEVICES else f" {event['args']['name']}"
            made["args"] = {"name": f"rank {rank}{name}"}
            yield {"name": "process_sort_index", "ph": "M", "ts": 0, "pid": number, "tid": 0,
                   "args": {"sort_index": number}}  # fmt: skip
        if "id" in event:
            made["id"] = f"{rank}.{event['id']}"
        yield made


def read_parts(folder: pathlib.Path) -> dict[int, Trace]:
    """Read the trace documents ``RANK.json`` of a folder; return rank -> document."""
    return {int(p.stem): json.loads(p.read_text("utf-8")) for p in folder.glob("*.json")}
