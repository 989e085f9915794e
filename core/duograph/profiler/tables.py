"""Tables of a profile: events grouped by op, source line or kernel, and the roofline, as text.

`profile.table` and `duograph profile` call it. The tables depend only on the recorded events, and
for the roofline on the measured limits.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from ..backend.observers import Work
from ..errors import ArgumentValueError
from ..ir.graph import Graph
from ..types import TensorType
from .limits import Limits
from .operations import operations
from .recording import Record

__all__ = [
    "GROUPS",
    "SORTS",
    "Row",
    "flops_of",
    "grouped",
    "kernel_text",
    "line_text",
    "own_times",
    "op_text",
    "table_text",
]

# The most ops that the name of a fused region lists.
_LISTED = 6


@dataclasses.dataclass
class Row:
    """The totals of a group of events.

    Attributes:
        name: name of the group, such as an op.
        device: device of the events.
        calls: number of events.
        seconds: total time; on the device if it has a clock of its own.
        longest: seconds of the longest event.
        nbytes: bytes that the kernels read and wrote, or copies moved.
        flops: floating-point operations of the kernels.
        lines: the user's source lines as (file, line).
        share: the time that the kernels would take at the limits of the device, divided by
            `seconds`; None without limits. It may exceed 1 for data in a cache.
        bound: the nearer limit, "memory" or "compute"; "" without limits.
    """

    name: str
    device: str
    calls: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    nbytes: int = 0
    flops: float = 0.0
    lines: tuple[tuple[str, int], ...] = ()
    share: float | None = None
    bound: str = ""

    def add(self, record: Record, nanoseconds: int) -> None:
        """Add one event to the totals, with the time that it took without nested events."""
        seconds = nanoseconds / 1e9
        self.calls += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)
        self.nbytes += record.work.nbytes
        self.flops += flops_of(record.work)
        if not self.lines:
            self.lines = record.lines

    def compare(self, limits: Limits) -> None:
        """Set `share` and `bound` from the measured limits of the device."""
        by_memory = self.nbytes / limits.bandwidth
        by_compute = self.flops / limits.flops
        self.share = max(by_memory, by_compute) / self.seconds if self.seconds else None
        self.bound = "compute" if by_compute > by_memory else "memory"


@functools.lru_cache(maxsize=65536)
def flops_of(work: Work) -> float:
    """Return the number of floating-point operations of an event; 0 unless it is a kernel."""
    return operations(work) if work.kind == "kernel" else 0.0


@functools.lru_cache(maxsize=65536)
def op_text(work: Work) -> str:
    """Return the name of an event's op; for a fused region its ops, for a copy what was copied."""
    body = work.attributes.get("body")
    if work.kind != "kernel" or not isinstance(body, Graph) or work.name not in _LISTING:
        return f"copy {work.name}" if work.kind == "copy" else work.name
    names = list(dict.fromkeys(n.op.name for n in body.nodes if n.op.name != "fill"))
    listed = "+".join(names[:_LISTED]) + ("+..." if len(names) > _LISTED else "")
    return f"{work.name}({listed})"


_LISTING = ("region", "graph")


@functools.lru_cache(maxsize=65536)
def kernel_text(work: Work) -> str:
    """Return the op of an event with its operand types, such as ``add(float32[3], float32)``."""
    if work.kind != "kernel":
        return op_text(work)
    given = work.types[: len(work.types) - work.n_results]
    return f"{op_text(work)}({', '.join(_type_text(t) for t in given)})"


def _type_text(type_: object) -> str:
    return repr(type_.plain) if isinstance(type_, TensorType) else str(type_)


def line_text(lines: Sequence[tuple[str, int]]) -> str:
    """Return source lines as text, such as ``model.py:12+14``; "(no line)" if there are none."""
    files: dict[str, list[int]] = {}
    for file, line in lines:
        files.setdefault(file, []).append(line)
    texts = [f"{_short(file)}:{'+'.join(map(str, sorted(set(found))))}"
             for file, found in files.items()]  # fmt: skip
    return " ".join(texts) or "(no line)"


def _short(file: str) -> str:
    """Return a path relative to the working directory, or the last two parts of one outside it."""
    here = os.getcwd().rstrip(os.sep) + os.sep
    return file[len(here) :] if file.startswith(here) else os.sep.join(file.split(os.sep)[-2:])


GROUPS: Mapping[str, Callable[[Record], str]] = {
    "op": lambda r: op_text(r.work),
    "line": lambda r: line_text(r.lines),
    "kernel": lambda r: kernel_text(r.work),
}
SORTS: Mapping[str, Callable[[Row], float | str]] = {
    "time": lambda row: -row.seconds,
    "calls": lambda row: -row.calls,
    "mean": lambda row: -row.seconds / row.calls,
    "longest": lambda row: -row.longest,
    "bytes": lambda row: -row.nbytes,
    "flops": lambda row: -row.flops,
    "name": lambda row: row.name,
}


def grouped(
    records: Iterable[Record], by: str, sort: str, limits: Mapping[str, Limits] | None = None
) -> list[Row]:
    """Group events and return the rows of a table.

    Args:
        records: the events.
        by: a key of `GROUPS`.
        sort: a key of `SORTS`; the largest value comes first, names come in alphabetical order.
        limits: device -> its measured limits.

    Raises:
        ValueError: `by` or `sort` is no such key.
    """
    for name, value, known in (("by", by, GROUPS), ("sort", sort, SORTS)):
        if value not in known:
            wanted = ", ".join(map(repr, known))
            raise ArgumentValueError(f"table: got {name}={value!r}; wanted one of {wanted}")
    name_of = GROUPS[by]
    rows: dict[tuple[str, str], Row] = {}
    for record, own in own_times(records):
        key = name_of(record), record.work.device
        rows.setdefault(key, Row(*key)).add(record, own)
    for row in rows.values():
        found = (limits or {}).get(row.device)
        if found is not None and (row.nbytes or row.flops):
            row.compare(found)
    return sorted(rows.values(), key=SORTS[sort])


def own_times(records: Iterable[Record]) -> list[tuple[Record, int]]:
    """Return each event with its own time in nanoseconds, without that of nested events.

    A compilation contains other events, Python code that a compiled function calls runs kernels,
    and collectives wait.

    Args:
        records: the events, in the order in which they began.
    """
    found: list[list[Any]] = []
    stacks: dict[int, list[list[Any]]] = {}
    for record in records:
        stack = stacks.setdefault(record.thread, [])
        while stack and stack[-1][0].end <= record.begin:
            stack.pop()
        if stack and (stack[-1][0].kind in ("compile", "python") or record.kind == "wait"):
            stack[-1][1] -= record.end - record.begin
        found.append([record, record.duration])
        stack.append(found[-1])
    return [(record, max(own, 0)) for record, own in found]


def table_text(rows: Sequence[Row], whole: float, title: str, most: int | None) -> str:
    """Return the rows of a table as aligned text.

    Args:
        rows: the rows, sorted.
        whole: the time in seconds that counts as 100 %.
        title: heading of the first column.
        most: number of rows to show; None shows all.

    Raises:
        ValueError: `most` is no number of rows.
    """
    if most is not None and (not isinstance(most, Integral) or most < 0):
        raise ArgumentValueError(f"table: got rows={most!r}; wanted 0, a larger int, or None")
    shown = rows if most is None else rows[:most]
    devices = {row.device for row in rows if row.device}
    heads = [title, "calls", "ms", "%", "us/call", "longest us", "MB", "GB/s", "GFLOP/s"]
    limited = any(row.share is not None for row in shown)
    if limited:
        heads += ["limit", "% of it"]
    cells = [heads, *[_cells(row, whole, limited, len(devices) > 1) for row in shown]]
    widths = [max(len(line[k]) for line in cells) for k in range(len(heads))]
    lines = [
        "  ".join([line[0].ljust(widths[0]), *[c.rjust(w) for c, w in zip(line[1:], widths[1:])]])
        for line in cells
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    if len(shown) < len(rows):
        lines.append(f"... and {len(rows) - len(shown)} more rows")
    return "\n".join(line.rstrip() for line in lines)


def _cells(row: Row, whole: float, limited: bool, named: bool) -> list[str]:
    name = f"{row.name} [{row.device}]" if named and row.device else row.name
    seconds = row.seconds or float("inf")
    cells = [
        name if len(name) <= 76 else name[:73] + "...",
        str(row.calls),
        f"{row.seconds * 1e3:.3f}",
        f"{row.seconds / whole * 100 if whole else 0:.1f}",
        f"{row.seconds / row.calls * 1e6:.1f}",
        f"{row.longest * 1e6:.1f}",
        f"{row.nbytes / 1e6:.2f}" if row.nbytes else "",
        f"{row.nbytes / seconds / 1e9:.1f}" if row.nbytes else "",
        f"{row.flops / seconds / 1e9:.1f}" if row.flops else "",
    ]
    if limited:
        cells += [row.bound, "" if row.share is None else f"{row.share * 100:.0f}"]
    return cells
