"""The differences of sampled calls that are meant, each with its reason.

`calls.py` leaves them out. A row says of which names, which kind of difference, and which calls;
docs/differences.md explains the same differences to users. A row that no call needs is an error of
the list: `calls.py` prints it.
"""

from __future__ import annotations

import re
from typing import Any

from parity.call_judging import Difference

# A pattern of paths, a kind of difference, a pattern of its text, and the reason.
ROWS: list[tuple[str, str, str, str]] = []


def is_listed(call: dict[str, Any], difference: Difference) -> bool:
    """Return whether a row covers this difference of a call."""
    return any(
        difference.kind == kind
        and re.fullmatch(paths, call["path"])
        and re.search(text, difference.text)
        for paths, kind, text, _ in ROWS
    )
