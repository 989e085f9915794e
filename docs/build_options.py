"""Print the page of options, docs/options.md, from the table of options.

Usage: build_options.py [--check]

With --check nothing is written; the exit status is 1 if the page is not the one of the table.
"""

from __future__ import annotations

import sys
from pathlib import Path

from duograph.option_table import MOOT, OPTIONS, REFUSED, WORKS, Option

PAGE = Path(__file__).with_name("options.md")
HEAD = """# Options

Generated from the table of options by `docs/build_options.py`.

Every option that duograph accepts does one of three things. It works. It has no meaning here, and
one `OptionWarning` in a process says so and why, if its value differs from the default. Or it is
refused with a ValueError that says what to use. An unknown keyword is an error. Options that are
not listed work: a test reads the sources and finds no argument that a public function does not use.

`warnings.filterwarnings("ignore", category=duograph.errors.OptionWarning)` silences the warnings.
"""
SECTIONS = (
    (
        WORKS,
        "Options that work",
        "what it does",
        "Settings, options of compiled functions and of files, and options whose promise is kept "
        "with either value.",
    ),
    (MOOT, "Options without a meaning here", "why", "Each warns once."),
    (REFUSED, "Options that are refused", "use instead", "Each raises ValueError."),
)


def by_reason(options: list[Option]) -> list[tuple[str, list[str], str]]:
    """Return (callable, options, text) with consecutive options of one text together."""
    found: list[tuple[str, list[str], str]] = []
    for o in options:
        if found and found[-1][0] == o.owner and found[-1][2] == o.about:
            found[-1][1].append(o.name)
        else:
            found.append((o.owner, [o.name], o.about))
    return found


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for status, title, column, about in SECTIONS:
        parts.append(f"## {title}\n\n{about}\n\n| callable | option | {column} |\n|---|---|---|")
        rows = by_reason([o for o in OPTIONS.values() if o.status == status])
        for owner, names, text in rows:
            shown = ", ".join(f"`{n}`" if n else "all of it" for n in names)
            parts.append(f"| `{owner}` | {shown} | {text} |")
        parts.append("")
    return "\n".join(parts)


def main() -> int:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
        return 0
    if PAGE.read_text() == text:
        return 0
    print(f"{PAGE} is not up to date; run {Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
