"""Places in the user's source."""

from __future__ import annotations

from typing import Any

from .diagnostics import Span
from .source import Source

__all__ = ["span_of"]


def span_of(source: Source, node: Any) -> Span:
    """The place of a piece of syntax; kept on it."""
    found: Span | None = getattr(node, "_duograph_span", None)
    if found is None:
        line = getattr(node, "lineno", 1)
        text = source.lines[line - 1].rstrip("\n") if 0 < line <= len(source.lines) else ""
        end = getattr(node, "end_col_offset", None)
        if getattr(node, "end_lineno", line) != line or end is None:
            end = len(text)
        found = node._duograph_span = Span(
            source.file, line, getattr(node, "col_offset", 0), end, text
        )
    return found
