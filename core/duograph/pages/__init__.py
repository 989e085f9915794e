"""Self-contained HTML pages: data, styles and scripts in one file that loads nothing.

`compiler` and `cli` call `render` with plain data. A page is `page.html` with the style sheet, the
scripts and the data filled in; the scripts draw everything from the data. The module must not
import the compiler: it only formats the data.
"""

from __future__ import annotations

import functools
import html
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from .text import page_text

__all__ = ["Page", "render"]

# In this order: `layout.js` has no side effects, `page.js` draws.
SCRIPTS = ("layout.js", "page.js")


class Page:
    """A self-contained HTML page; `str()` is its text.

    A notebook displays the page in a frame.

    Examples:
        >>> import duograph as ms
        >>> @ms.jit
        ... def double(x):
        ...     return x + x
        >>> page = double.show(ms.Tensor([1.0, 2.0]))
        >>> str(page)[:15]
        '<!doctype html>'
    """

    def __init__(self, text: str, data: Mapping[str, Any]) -> None:
        self._text = text
        self._data = data

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Page of {len(self._text)} characters: save(path) writes it, open() shows it"

    def _repr_html_(self) -> str:
        framed = html.escape(self._text, quote=True)
        return f'<iframe style="width:100%;height:800px;border:0" srcdoc="{framed}"></iframe>'

    def text(self) -> str:
        """Return what the page shows as plain text, such as for a terminal; pictures are left out.

        Examples:
            >>> import duograph as ms
            >>> @ms.jit
            ... def double(x):
            ...     return x + x
            >>> text = double.show(ms.Tensor([1.0, 2.0])).text()
            >>> print(text.splitlines()[0])
            double, compiled for (float32[2]@CPU:0,)
        """
        return page_text(self._data)

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write the page to a file, which is replaced, and return its path.

        A path that ends in ``.txt`` gets the text form.

        Raises:
            OSError: the file cannot be written.
        """
        path = pathlib.Path(path)
        text = self.text() if path.suffix.lower() == ".txt" else self._text
        path.write_text(text, encoding="utf-8")
        return path

    def open(self, path: str | pathlib.Path) -> bool:
        """Write the page to a file and open it in a browser; return whether one was found."""
        import webbrowser  # slow to import, and rarely needed

        return webbrowser.open(self.save(path).resolve().as_uri())


@functools.cache
def _file(name: str) -> str:
    import importlib.resources  # slow to import, and rarely needed

    return importlib.resources.files(__package__).joinpath(name).read_text("utf-8")


def render(title: str, data: dict[str, object]) -> Page:
    """Return the page of a compiled function.

    Args:
        title: the title, in plain text.
        data: dictionary from `compiler.program_facts.page_facts`, of lists, strings and numbers
            alone.
    """
    # in a script, "<" could begin a closing tag or a comment
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    parts = {
        "TITLE": html.escape(title),
        "STYLE": _file("page.css"),
        "DATA": text,
        "SCRIPT": "\n".join(_file(name) for name in SCRIPTS),
    }
    pieces = _file("page.html").split("$$")  # text and names of parts alternate
    return Page("".join(parts[p] if k % 2 else p for k, p in enumerate(pieces)), data)
