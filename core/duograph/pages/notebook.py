"""Fragments of HTML that notebooks show: tables, and text that opens on a click.

The `_repr_html_` methods of tensors, Cells, summaries and compiled functions call these functions.
A fragment carries its own style, loads nothing, and escapes all text; colours come from the
notebook.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["bars", "heading", "indented", "line", "pre", "table", "unfolding"]

_CELL = (
    "padding:2px 8px;font-size:.85em;text-align:{align};font-variant-numeric:tabular-nums;"
    "white-space:pre"
)
_LINE = "border-top:1px solid rgba(128,128,128,.5)"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, foot: int = 0) -> str:
    """Return texts as an HTML table.

    Args:
        head: titles of the columns.
        rows: the rows, each with one text per column.
        left: number of columns, from the first one on, that are aligned to the left.
        foot: number of rows at the end that are sums.
    """

    def cells(tag: str, values: Sequence[str], style: str = "") -> str:
        parts = []
        for k, value in enumerate(values):
            aligned = _CELL.format(align="left" if k < left else "right")
            parts.append(f'<{tag} style="{aligned};{style}">{html.escape(value)}</{tag}>')
        return f"<tr>{''.join(parts)}</tr>"

    first_sum = len(rows) - foot
    body = "".join(cells("td", row, _LINE * (k == first_sum)) for k, row in enumerate(rows))
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse">'
        f"<thead>{cells('th', head)}</thead><tbody>{body}</tbody></table></div>"
    )


def heading(text: str) -> str:
    """Return `text`, escaped, in bold in a `<div>` of its own."""
    return f"<div><b>{html.escape(text)}</b></div>"


def line(text: str) -> str:
    """Return `text`, escaped, in a `<div>` of its own."""
    return f"<div>{html.escape(text)}</div>"


def indented(content: str) -> str:
    """Return HTML `content` indented."""
    return f'<div style="margin-left:1.2em">{content}</div>'


def pre(text: str) -> str:
    """Return text as an HTML `pre` element, which keeps its line breaks and columns."""
    style = "margin:.3em 0;overflow-x:auto;line-height:1.35;font-size:.85em"
    return f'<pre style="{style}">{html.escape(text)}</pre>'


def unfolding(title: str, content: str, opened: bool = False) -> str:
    """Return HTML `content` under a title; a click on the title shows or hides the content.

    `opened` says whether the content is shown at first.
    """
    mark = " open" if opened else ""
    return f"<details{mark}><summary>{html.escape(title)}</summary>{content}</details>"


def bars(counts: Sequence[int], low: str, high: str) -> str:
    """Return a histogram as a small SVG drawing, with one bar for each count.

    `low` and `high` are the labels of its two ends.
    """
    width, height = 6, 40
    top = max([1, *counts])
    drawn = "".join(
        f'<rect x="{k * width}" y="{height - h}" width="{width - 1}" height="{h}"/>'
        for k, h in enumerate(round(height * n / top) for n in counts)
    )
    total = len(counts) * width
    return (
        f'<svg width="{total}" height="{height + 14}" style="fill:currentColor;font-size:10px">'
        f'<g opacity="0.6">{drawn}</g><text x="0" y="{height + 12}">{html.escape(low)}</text>'
        f'<text x="{total}" y="{height + 12}" text-anchor="end">{html.escape(high)}</text></svg>'
    )
