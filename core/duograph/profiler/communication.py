"""The communication of a profile's steps: bytes sent to other ranks, and time spent waiting.

`profile.communication` and the summary of a profile are computed by this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .recording import Record

__all__ = ["CommunicationStep", "communication_of", "communication_text"]


class CommunicationStep(NamedTuple):
    """The communication of one step of a rank.

    Attributes:
        number: index of the step, from 0.
        nbytes: bytes that were sent to other ranks.
        exposed: seconds in which the program waited for a collective or message.
    """

    number: int
    nbytes: int
    exposed: float


def communication_of(
    records: Sequence[Record], steps: Sequence[tuple[int, int, int]]
) -> list[CommunicationStep]:
    """Return the communication of each step; `steps` holds (number, begin, end) in nanoseconds.

    A collective belongs to the step in which it ended, a wait to the step in which it began.
    """
    sent = [(r.end, r.work.nbytes) for r in records if r.kind == "communication"]
    waits = [(r.begin, r.duration) for r in records if r.kind == "wait"]
    found = []
    for number, begin, end in steps:
        nbytes = sum(n for at, n in sent if begin <= at < end)
        exposed = sum(n for at, n in waits if begin <= at < end)
        found.append(CommunicationStep(number, nbytes, exposed / 1e9))
    return found


def communication_text(
    records: Sequence[Record], steps: Sequence[tuple[int, int, int]], seconds: float
) -> str:
    """Return a line that sums up all communication of a recorded window, or "" without any.

    `seconds` is the length of the window.
    """
    if not any(r.kind == "communication" for r in records):
        return ""
    nbytes = sum(r.work.nbytes for r in records if r.kind == "communication")
    exposed = sum(r.duration for r in records if r.kind == "wait") / 1e9
    share = exposed / seconds * 100 if seconds else 0.0
    text = (
        f"communication: {nbytes / 1e6:.3f} MB sent, {exposed * 1e3:.3f} ms waited for "
        f"({share:.1f} %)"
    )
    each = communication_of(records, steps)
    if each:
        mean = sum(s.nbytes for s in each) / len(each), sum(s.exposed for s in each) / len(each)
        text += f"; per step {mean[0] / 1e6:.3f} MB and {mean[1] * 1e3:.3f} ms"
    return text
