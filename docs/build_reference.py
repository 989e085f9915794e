"""Build the reference pages from the docstrings: one HTML page a module, and an index.

Usage: build_reference.py [--out FOLDER] [--check]

With --check nothing is written; the exit status is 1 if a public name lacks a docstring.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import ModuleType

import duograph

# The manual's order. A page documents what its module exports.
PAGES = (
    "duograph",
    "duograph.ops",
    "duograph.nn",
    "duograph.nn.probability.distribution",
    "duograph.nn.probability.bijector",
    "duograph.experimental.optim",
    "duograph.experimental.optim.lr_scheduler",
    "duograph.train",
    "duograph.dataset",
    "duograph.mint",
    "duograph.mint.nn",
    "duograph.mint.nn.functional",
    "duograph.mint.optim",
    "duograph.mint.linalg",
    "duograph.mint.special",
    "duograph.mint.distributed",
    "duograph.common.initializer",
    "duograph.errors",
    "duograph.backend.protocol",
    "duograph.backend.hookspecs",
)

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; padding: 1rem }
nav { font-size: .9rem; border-bottom: 1px solid #8884; padding-bottom: .5rem }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem }
ul.names { columns: 4 9rem; list-style: none; padding: 0; font-size: .9rem }
section { border-top: 1px solid #8884; margin-top: 2rem }
section section { margin-left: 1.5rem; margin-top: 1rem }
h2, h3 { font: 600 1rem/1.5 ui-monospace, monospace; overflow-wrap: anywhere }
h2 .signature, h3 .signature { font-weight: 400 }
pre { background: #8881; padding: .5rem .75rem; overflow-x: auto; font-size: .9rem }
p { white-space: pre-wrap; margin: .5rem 0 }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #ddd } a { color: #8ab4f8 }
}
"""


@dataclass(frozen=True)
class Entry:
    """One documented name; classes have members."""

    name: str
    signature: str
    doc: str
    members: tuple[Entry, ...] = ()


def signature_of(thing: object) -> str:
    """The signature as one writes it, or nothing where there is none."""
    try:
        text = str(inspect.signature(thing))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def own_doc(thing: object) -> str:
    """The docstring that was written for it, not the one of its class."""
    doc = inspect.getdoc(thing) or ""
    if not (inspect.isroutine(thing) or inspect.isclass(thing)) and doc == inspect.getdoc(
        type(thing)
    ):
        return ""
    return doc


def members_of(cls: type) -> Iterator[Entry]:
    """Public methods and properties that the class itself defines."""
    for name, raw in sorted(vars(cls).items()):
        if name.startswith("_"):
            continue
        thing = getattr(cls, name, None)
        if isinstance(raw, property) or callable(thing):
            called = "" if isinstance(raw, property) else signature_of(thing)
            yield Entry(name, called, own_doc(raw if isinstance(raw, property) else thing))


def entries_of(module: ModuleType) -> Iterator[Entry]:
    """What a module exports: its `__all__`, else its public names that are no modules."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [n for n in dir(module) if not n.startswith("_")]
    for name in sorted(set(names), key=str.lower):
        thing = getattr(module, name)
        if inspect.ismodule(thing) or (name == "annotations"):
            continue
        if not callable(thing):
            yield Entry(name, f" = {thing!r}", "")
        elif inspect.isclass(thing):
            shown = () if issubclass(thing, BaseException) else tuple(members_of(thing))
            yield Entry(name, signature_of(thing), own_doc(thing), shown)
        else:
            yield Entry(name, signature_of(thing), own_doc(thing))


def undocumented(page: str, entries: list[Entry]) -> list[str]:
    """Callables without a docstring; constants have their value."""
    found = []
    for entry in entries:
        if not entry.doc and not entry.signature.startswith(" = "):
            found.append(f"{page}.{entry.name}")
        found += [f"{page}.{entry.name}.{m.name}" for m in entry.members if not m.doc]
    return found


def doc_html(doc: str) -> str:
    """Paragraphs as they stand, examples (`>>>` and indented blocks after `::`) as code."""
    parts = []
    for block in re.split(r"\n\s*\n", doc):
        code = block.lstrip().startswith((">>>", "```"))
        tag = "pre" if code else "p"
        text = block.replace("```python", "").replace("```", "").strip("\n") if code else block
        parts.append(f"<{tag}>{escape(text)}</{tag}>")
    return "\n".join(parts)


def entry_html(entry: Entry, anchor: str, level: int = 2) -> str:
    members = "\n".join(entry_html(m, f"{anchor}.{m.name}", level + 1) for m in entry.members)
    return (
        f'<section id="{escape(anchor)}"><h{level}>{escape(entry.name)}'
        f'<span class="signature">{escape(entry.signature)}</span></h{level}>\n'
        f"{doc_html(entry.doc) if entry.doc else ''}\n{members}</section>"
    )


def page_html(title: str, body: str, pages: list[str]) -> str:
    links = "".join(f'<a href="{page}.html">{page}</a>' for page in pages)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f'<nav><a href="index.html">duograph {duograph.__version__}</a>{links}</nav>\n'
        f"{body}</html>\n"
    )


def module_html(name: str, module: ModuleType, entries: list[Entry], pages: list[str]) -> str:
    names = "".join(f'<li><a href="#{escape(e.name)}">{escape(e.name)}</a></li>' for e in entries)
    body = f"<h1>{name}</h1>{doc_html(inspect.getdoc(module) or '')}"
    body += f'<ul class="names">{names}</ul>'
    body += "\n".join(entry_html(entry, entry.name) for entry in entries)
    return page_html(name, body, pages)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "_build")
    parser.add_argument("--check", action="store_true", help="only look for missing docstrings")
    options = parser.parse_args()

    modules = {name: importlib.import_module(name) for name in PAGES}
    content = {name: list(entries_of(module)) for name, module in modules.items()}
    bare = [name for page, entries in content.items() for name in undocumented(page, entries)]
    for name in bare:
        print(f"no docstring: {name}")
    if options.check:
        return int(bool(bare))

    options.out.mkdir(parents=True, exist_ok=True)
    pages = list(content)
    for name, entries in content.items():
        page = module_html(name, modules[name], entries, pages)
        (options.out / f"{name}.html").write_text(page, encoding="utf-8")
    rows = "".join(
        f'<li><a href="{name}.html">{name}</a>: {len(entries)} names</li>'
        for name, entries in content.items()
    )
    index = page_html("duograph", f"<h1>Reference</h1><ul>{rows}</ul>", pages)
    (options.out / "index.html").write_text(index, encoding="utf-8")
    total = sum(len(entries) for entries in content.values())
    print(f"{total} names on {len(pages)} pages: {options.out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
