"""Formats docstrings as HTML, and the Sphinx directive `module-reference` that shows a module.

A docstring has paragraphs, sections such as ``Args:``, and examples that begin with ``>>>``. A name
in backquotes becomes a link if it is a public name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import reference
from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonConsoleLexer
from sphinx.domains.python import ObjectEntry
from sphinx.util.docutils import SphinxDirective

SECTIONS = (
    "Args", "Attributes", "Returns", "Yields", "Raises", "Examples", "Matches", "Numerics",
)  # fmt: skip
_SECTION = re.compile(rf"({'|'.join(SECTIONS)}):([^\n]*)")
_ITEM = re.compile(r"^([*\w][\w*., ]*?)(?: \([^)]*\))?: (.*)$", re.S)
_CODE = re.compile(r"``(.+?)``|`([^`\n]+)`", re.S)
# Where a short name of a docstring may be found, in this order.
_HOMES = ("", "duograph.", "duograph.ops.", "duograph.nn.", "duograph.train.")


@functools.cache
def known() -> dict[str, str]:
    """Return the address of every public name and method, relative to the pages of modules."""
    found: dict[str, str] = {}
    for module in reference.MODULES:
        found.setdefault(module, f"{module}.html")
        for each in reference.names_of(importlib.import_module(module)):
            found[each.path] = f"{module}.html#{each.path}"
            if each.kind == "class":
                for name in reference.methods_of(each.thing):
                    found[f"{each.path}.{name}"] = f"{module}.html#{each.path}.{name}"
    return found


def address(name: str, module: str, owner: str = "") -> str | None:
    """Return the address of a name as a docstring of a module, or of a class, writes it."""
    plain = name.strip().removesuffix("()").replace("ms.", "duograph.", name.startswith("ms."))
    if not re.fullmatch(r"[A-Za-z_][\w.]*", plain):
        return None
    for home in (f"{owner}." if owner else "", f"{module}.", *_HOMES):
        found = known().get(home + plain) if home + plain else None
        if found is not None:
            return found
    return None


def text_html(text: str, module: str, owner: str = "", own: str = "") -> str:
    """Return a text with code and links in place of backquotes; `own` is not linked."""

    def code(match: re.Match[str]) -> str:
        inner = match.group(1) or match.group(2)
        shown = f'<code class="docutils literal notranslate">{escape(inner)}</code>'
        href = address(inner, module, owner) if match.group(2) else None
        if href is None or href.endswith(f"#{own}"):
            return shown
        return f'<a class="reference internal" href="{escape(href)}">{shown}</a>'

    parts, end = [], 0
    for match in _CODE.finditer(text):
        parts += [escape(text[end : match.start()]), code(match)]
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) of a docstring: "p" paragraphs, "code", "pre", "list", section names."""
    for block in re.split(r"\n[ \t]*\n", text.expandtabs().rstrip()):
        block = block.strip("\n")
        first = block.lstrip()
        section = _SECTION.match(block)
        if section:
            rest = [section.group(2).strip(), inspect.cleandoc("\n" + block[section.end() :])]
            yield section.group(1), "\n".join(r for r in rest if r)
        elif first.startswith("```"):
            yield "pre", re.sub(r"^```\w*\n|\n?```$", "", inspect.cleandoc(block))
        elif first.startswith(">>>"):
            yield "code", inspect.cleandoc("\n" + block)
        elif re.match(r"[-*] ", first):
            yield "list", inspect.cleandoc("\n" + block)
        elif block.startswith("    ") or ("\n    " in block and first.endswith("::")):
            yield "pre", inspect.cleandoc("\n" + block)
        else:
            yield "p", block


def code_html(text: str) -> str:
    shown: str = highlight(text + "\n", PythonConsoleLexer(), HtmlFormatter(wrapcode=True))
    return shown


def items(text: str) -> list[tuple[str, str]]:
    """Return the (name, description) items of a section; no name for what is not an item."""
    found: list[tuple[str, str]] = []
    for line in text.split("\n"):
        match = None if line.startswith(" ") else _ITEM.match(line)
        if match:
            found.append((match.group(1), match.group(2)))
        elif found:
            name, before = found[-1]
            found[-1] = name, f"{before}\n{line.strip()}"
        else:
            found.append(("", line))
    return found


def doc_html(doc: str, module: str, owner: str = "", own: str = "") -> str:
    """Return a docstring as HTML."""
    show: Callable[[str], str] = functools.partial(text_html, module=module, owner=owner, own=own)
    parts = []
    section = ""
    for kind, text in blocks(doc):
        if kind in SECTIONS:
            section = kind
            parts.append(f'<p class="section">{kind}</p>')
            if kind == "Examples" and text.startswith(">>>"):
                parts.append(code_html(text))
            elif kind in ("Args", "Attributes", "Raises"):
                rows = [
                    f"<dt>{escape(n)}</dt><dd>{show(t)}</dd>" if n else f"<dd>{show(t)}</dd>"
                    for n, t in items(text)
                ]
                parts.append(f"<dl>{''.join(rows)}</dl>")
            elif text:
                parts.append(f"<p>{show(text)}</p>")
        elif kind == "code" or (kind == "pre" and ">>>" in text):
            parts.append(code_html(text))
        elif kind == "pre":
            if section in ("Args", "Attributes", "Raises", "Returns"):
                parts.append(f"<p>{show(text)}</p>")
            else:
                parts.append(f"<pre>{escape(text)}</pre>")
        elif kind == "list":
            rows = [f"<li>{show(t)}</li>" for t in re.split(r"(?:^|\n)[-*] ", text) if t]
            parts.append(f"<ul>{''.join(rows)}</ul>")
        else:
            parts.append(f"<p>{show(text)}</p>")
    return "\n".join(parts)


def signature_of(thing: object) -> str:
    """Return the signature as one writes it, or "" where there is none."""
    try:
        found = inspect.signature(thing)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    parameters = [p.replace(annotation=_plain(p.annotation)) for p in found.parameters.values()]
    found = found.replace(parameters=parameters, return_annotation=_plain(found.return_annotation))
    return re.sub(r" at 0x[0-9a-f]+|<class '([\w.]+)'>", r"\1", str(found))


class _Text:
    """An annotation that was written as text, which is shown without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _plain(annotation: object) -> object:
    return _Text(annotation.strip("'")) if isinstance(annotation, str) else annotation


def entry_html(path: str, thing: Any, kind: str, module: str, owner: str = "") -> str:
    """Return one name with its signature, documentation and methods."""
    before, _, name = path.rpartition(".")
    shown = before if not owner else owner.rpartition(".")[2]
    value = f" = {' '.join(repr(thing).split())[:120]}" if kind == "data" else ""
    signature = "" if kind in ("data", "property") else signature_of(thing)
    head = (
        f'<p class="signature"><em>{kind}</em> <code><span class="home">{escape(shown)}.</span>'
        f"<b>{escape(name)}</b>{escape(signature or value)}</code>"
        f'<a class="headerlink" href="#{escape(path)}" title="Link to this name">#</a></p>'
    )
    doc = "" if kind == "data" else doc_html(reference.own_doc(thing), module, owner or path, path)
    inner = ""
    if kind == "class":
        for method, raw in sorted(reference.methods_of(thing).items()):
            is_property = isinstance(raw, property)
            member = raw if is_property else getattr(thing, method)
            inner += entry_html(
                f"{path}.{method}", member, "property" if is_property else "method", module, path
            )
    return f'<section class="entry {kind}" id="{escape(path)}">{head}{doc}{inner}</section>'


def module_html(name: str) -> str:
    """Return the page of a module: what it is for, the list of its names, and each of them."""
    module = importlib.import_module(name)
    names = reference.names_of(module)
    listed = "".join(f'<li><a href="#{e.path}">{escape(e.name)}</a></li>' for e in names)
    entries = "".join(entry_html(e.path, e.thing, e.kind, name) for e in names)
    doc = doc_html(inspect.getdoc(module) or "", name)
    return f'{doc}<ul class="names">{listed}</ul>{entries}'


class ModuleReference(SphinxDirective):
    """``module-reference MODULE``: all public names of a module, known to search and links."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # docstrings may have changed
        name = self.arguments[0]
        objects = self.env.get_domain("py").data["objects"]
        page = self.env.docname
        for each in reference.names_of(importlib.import_module(name)):
            objects[each.path] = ObjectEntry(page, each.path, each.kind, False)
            if each.kind == "class":
                for method in reference.methods_of(each.thing):
                    path = f"{each.path}.{method}"
                    objects[path] = ObjectEntry(page, path, "method", True)
        return [nodes.raw("", module_html(name), format="html")]
