"""The command `duograph conformance compare OLD NEW`: compares two runs of the suite.

`cli.main` runs it. It prints what changed between the two result files; the exit status is 1 if
something became worse.
"""

from __future__ import annotations

import sys

from ..conformance import certificates

__all__ = ["compare"]


def compare(old: str, new: str) -> int:
    """Print how two JSON reports differ; return 1 if the new one is worse, 2 if one is unusable."""
    try:
        lines, worse = certificates.compare(certificates.read(old), certificates.read(new))
    except (OSError, ValueError) as error:
        print(f"duograph conformance compare: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 1 if worse else 0
