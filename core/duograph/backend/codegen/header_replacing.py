"""Replaces functions of a shared C header by those of another header.

`GridDialect` calls `replaced` for devices without float64. The module is not a C parser: it
recognises only functions as the headers write them, on one line or with the closing brace at the
start of a line.
"""

from __future__ import annotations

import re

__all__ = ["replaced"]

_NAME = r"^DG_FN \w+ (\w+)\("
_FUNCTION = _NAME + r"[^{]*\{(?:[^\n]+\}|.*?^\})\n"


def replaced(header: str, by: str) -> str:
    """Return a C header in which functions are replaced by the functions of the C source `by`.

    Functions of `header` whose names `by` defines are removed, and `by` is appended.
    """
    names = set(re.findall(_NAME, by, re.MULTILINE))

    def kept(function: re.Match[str]) -> str:
        return "" if function.group(1) in names else function.group(0)

    return re.sub(_FUNCTION, kept, header, flags=re.MULTILINE | re.DOTALL) + "\n" + by
