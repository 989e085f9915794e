"""Replace functions of a shared C header by those of another one.

`GridDialect` calls `replaced` for devices without float64. This is no C parser: it knows functions
as the headers write them, in one line or with the closing brace at the start of a line.
"""

from __future__ import annotations

import re

__all__ = ["replaced"]

_NAME = r"^DG_FN \w+ (\w+)\("
_FUNCTION = _NAME + r"[^{]*\{(?:[^\n]+\}|.*?^\})\n"


def replaced(header: str, by: str) -> str:
    """Return a C header in which the functions of the C source `by` replace those of their names.

    The replaced functions are removed from `header`, and `by` is appended.
    """
    names = set(re.findall(_NAME, by, re.MULTILINE))

    def kept(function: re.Match[str]) -> str:
        return "" if function.group(1) in names else function.group(0)

    return re.sub(_FUNCTION, kept, header, flags=re.MULTILINE | re.DOTALL) + "\n" + by
