"""Export of a profile in the trace event format of Chrome, for Perfetto and TensorBoard too.

The document has one process for the host, with a track per thread, and one process per device that
has its own clock. Times are microseconds from the start of the profile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

from ..status_line import status_line
from .recording import MemorySample, Range, Record
from .tables import flops_of, kernel_text, line_text, op_text

__all__ = ["trace_document", "write_document"]

if TYPE_CHECKING:

    class Event(TypedDict, total=False):
        """An event in the trace event format of Chrome."""

        name: str
        cat: str
        ph: str  # its phase, such as X for a span
        ts: float
        dur: float
        pid: int
        tid: int
        id: str
        s: str
        args: Mapping[str, Any]

    class Trace(TypedDict):
        """A document in that format."""

        traceEvents: list[Event]
        displayTimeUnit: str
        otherData: dict[str, str]


# Tracks of the host process that are no threads.
_STEPS = 1
_FIRST_THREAD = 2


def trace_document(
    records: Sequence[Record],
    ranges: Sequence[Range],
    steps: Sequence[tuple[int, int, int]],
    samples: Sequence[MemorySample],
    start: int,
    metadata: Mapping[str, object],
    shapes: bool,
) -> Trace:
    """Return the trace of a profile as a JSON document.

    Args:
        records, ranges, samples: the recorded events, ranges and memory samples.
        steps: (number, begin, end) of each step, in nanoseconds.
        start: the time in nanoseconds that becomes 0 in the trace.
        metadata: properties of the profile, name -> value.
        shapes: also write the types of the operands of kernels.
    """
    events = list(_events(records, ranges, steps, samples, start, shapes))
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {str(k): str(v) for k, v in metadata.items()},
    }


def write_document(path: str | os.PathLike[str], make: Callable[[], Trace]) -> None:
    """Write the trace that `make` returns to a file; raise OSError if it cannot be written."""
    with status_line(f"writing {os.fspath(path)}"), open(path, "w", encoding="utf-8") as file:
        json.dump(make(), file)


def _events(
    records: Sequence[Record],
    ranges: Sequence[Range],
    steps: Sequence[tuple[int, int, int]],
    samples: Sequence[MemorySample],
    start: int,
    shapes: bool,
) -> Iterator[Event]:
    host = os.getpid()
    threads = list(dict.fromkeys([*[r.thread for r in records], *[r.thread for r in ranges]]))
    tracks = {thread: _FIRST_THREAD + k for k, thread in enumerate(threads)}
    queues = list(dict.fromkeys(r.work.device for r in records if r.device_time is not None))
    processes = {device: host + 1 + k for k, device in enumerate(queues)}

    def us(time: int) -> float:
        return (time - start) / 1e3

    yield _named("process_name", host, 0, "duograph host")
    yield _named("thread_name", host, _STEPS, "steps")
    for thread, track in tracks.items():
        yield _named("thread_name", host, track, f"thread {thread}")
    for device, process in processes.items():
        yield _named("process_name", process, 0, device)
        yield _named("thread_name", process, 1, "kernels")
    for number, begin, end in steps:
        yield _span(f"step {number}", "step", us(begin), (end - begin) / 1e3, host, _STEPS, {})
    for found in ranges:
        at = us(found.begin)
        track = tracks[found.thread]
        details = cast("dict[str, object]", {"domain": found.domain})
        if found.end == found.begin:
            yield {"name": found.name, "cat": "mark", "ph": "i", "ts": at, "pid": host,
                   "tid": track, "s": "t", "args": details}  # fmt: skip
        else:
            length = (found.end - found.begin) / 1e3
            yield _span(found.name, "range", at, length, host, track, details)
    free: dict[str, int] = {}
    for r in records:
        details = _details(r, shapes)
        name = op_text(r.work)
        if r.kind == "communication":
            yield from _in_flight(
                r, name, us(r.begin), us(r.end), (host, tracks[r.thread]), details
            )
            continue
        length = (r.end - r.begin) / 1e3
        yield _span(name, r.kind, us(r.begin), length, host, tracks[r.thread], details)
        if r.device_time is not None:  # a queue runs its work one after the other
            begin = max(r.begin, free.get(r.work.device, 0))
            free[r.work.device] = begin + r.device_time
            process = processes[r.work.device]
            yield _span(name, r.kind, us(begin), r.device_time / 1e3, process, 1, details)
    for sample in samples:
        yield {"name": f"memory of {sample.device}", "cat": "memory", "ph": "C",
               "ts": us(sample.time), "pid": host, "tid": 0,
               "args": {"bytes in use": sample.in_use, "bytes cached": sample.cached}}  # fmt: skip


def _span(
    name: str,
    kind: str,
    at: float,
    length: float,
    process: int,
    track: int,
    args: Mapping[str, object],
) -> Event:
    return {"name": name, "cat": kind, "ph": "X", "ts": at, "dur": length, "pid": process,
            "tid": track, "args": args}  # fmt: skip


def _in_flight(
    record: Record,
    name: str,
    begin: float,
    end: float,
    place: tuple[int, int],
    args: Mapping[str, object],
) -> Iterator[Event]:
    """Yield the begin and end events of a collective, which may overlap others of its thread.

    `place` is (process, track) in the trace.
    """
    for phase, at in (("b", begin), ("e", end)):
        yield {"name": name, "cat": "communication", "ph": phase, "ts": at, "pid": place[0],
               "tid": place[1], "id": f"{record.thread}.{record.begin}", "args": args}  # fmt: skip


def _named(kind: str, process: int, track: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "ts": 0, "pid": process, "tid": track, "args": {"name": name}}


def _details(record: Record, shapes: bool) -> dict[str, object]:
    work = record.work
    found: dict[str, object] = {"line": line_text(record.lines)}
    if work.device:
        found["device"] = work.device
    if work.nbytes:
        found["bytes"] = work.nbytes
    if work.kind == "kernel":
        found["flops"] = flops_of(work)
        if shapes:
            found["types"] = kernel_text(work)
    if record.stack:
        found["stack"] = [f"{file}:{line}" for file, line in record.stack]
    found.update({str(k): str(v) for k, v in work.detail.items()})
    return found
