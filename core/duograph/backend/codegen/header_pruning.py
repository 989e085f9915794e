"""Leaves of the shared headers only what a text uses: a compiler reads the rest in as long as it
takes for the kernel.

The headers hold three things: functions (``DG_FN ... {``), macros, and lines that instantiate
macros which define functions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["pruned"]

_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MACRO = re.compile(r"#define (\w+)(?:\(([^)]*)\))?")
_DEFINED = re.compile(r"DG_FN \w+ (\w[\w#]*)\(")
_USE = re.compile(r"\b(DG_\w+)\(([^()]*)\)")


Macros = dict[str, tuple[list[str], str]]


class _Item(NamedTuple):
    """A piece of a header: the names that it defines, its text, and whether that is a use of a
    macro.
    """

    names: set[str]
    text: str
    use: bool = False


def pruned(headers: str, text: str) -> str:
    """The pieces of `headers` that `text` needs, in order."""
    items, macros = _items(headers)
    needed = set(_WORD.findall(text))
    kept: list[str] = []
    for item in reversed(items):  # everything is defined before it is used
        if not needed.isdisjoint(item.names):
            kept.append(item.text)
            needed.update(_words(item.text, macros) if item.use else _WORD.findall(item.text))
    return "\n".join(reversed(kept)) + "\n"


@functools.cache
def _items(headers: str) -> tuple[list[_Item], Macros]:
    macros: Macros = {}
    found: list[_Item] = []
    for text in _pieces(_COMMENT.sub("", headers)):
        macro = _MACRO.match(text)
        if macro is not None:
            name, parameters = macro.groups()
            macros[name] = ([p.strip() for p in (parameters or "").split(",")], text)
            found.append(_Item({name}, text))
        elif text.startswith("DG_FN"):
            found.append(_Item(set(_DEFINED.findall(text)), text))
        elif text.startswith("typedef"):
            found.append(_Item({_WORD.findall(text)[-1]}, text))
        else:
            for use in _USE.finditer(text):
                names = set(_instantiated(use.group(1), use.group(2), macros))
                found.append(_Item(names, use.group(0), True))
    return found, macros


def _pieces(headers: str) -> Iterator[str]:
    """Functions, macros and other lines. Conditions (`#if`) are for what regions never use, and are
    dropped whole.
    """
    lines = iter(headers.splitlines())
    for first in lines:
        line = first.rstrip()
        if not line:
            continue
        if line.startswith("#if"):
            while not line.startswith("#endif"):
                line = next(lines)
            continue
        piece = [line]
        while piece[-1].endswith("\\"):
            piece.append(next(lines).rstrip())
        if line.startswith("DG_FN"):
            opened, closed = line.count("{"), line.count("}")
            while opened == 0 or opened > closed:
                piece.append(next(lines))
                opened += piece[-1].count("{")
                closed += piece[-1].count("}")
        yield "\n".join(piece)


def _instantiated(name: str, arguments: str, macros: Macros) -> Iterator[str]:
    """Names of the functions that a use of a macro defines."""
    parameters, body = macros[name]
    given = dict(zip(parameters, (a.strip() for a in arguments.split(","))))
    for pattern in _DEFINED.findall(body):
        yield "".join(given.get(part, part) for part in pattern.split("##"))
    for use in _USE.finditer(body[body.index(")") :]):
        if use.group(1) in macros:
            inner = ",".join(given.get(a.strip(), a.strip()) for a in use.group(2).split(","))
            yield from _instantiated(use.group(1), inner, macros)


def _words(use: str, macros: Macros) -> set[str]:
    """What the expansion of a use of a macro may name: words of its body, with parts pasted
    together.
    """
    found = set(_WORD.findall(use))
    match = _USE.match(use)
    assert match is not None
    parameters, body = macros[match.group(1)]
    given = dict(zip(parameters, (a.strip() for a in match.group(2).split(","))))
    for word in re.findall(r"\w[\w#]*", body):
        found.add("".join(given.get(part, part) for part in word.split("##")))
    return found
