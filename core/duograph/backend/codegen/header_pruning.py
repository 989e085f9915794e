"""Prunes the shared C headers to the functions and macros that a kernel's source uses.

`Dialect.prelude_for` calls `pruned`, because a compiler would take as long to parse the whole
headers as to compile the kernel. The module is not a C parser: it recognises only the forms that
the headers use, which are functions (``DG_FN ... {``), macros, typedefs, and lines that call macros
which define functions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["pruned"]

# Patterns, compiled at first use: most processes import this module and never build anything.
_WORD = r"\w+"
_COMMENT = r"/\*.*?\*/"
_MACRO = r"#define (\w+)(?:\(([^)]*)\))?"
_DEFINED = r"DG_FN \w+ (\w[\w#]*)\("
_USE = r"\b(DG_\w+)\(([^()]*)\)"


Macros = dict[str, tuple[list[str], str]]


class _Item(NamedTuple):
    """One definition in a C header: a function, a macro, a typedef or a macro call.

    Attributes:
        names: the names it defines.
        text: its source.
        use: whether the definition is a call of a macro that defines functions.
    """

    names: set[str]
    text: str
    use: bool = False


def pruned(headers: str, text: str) -> str:
    """Return those definitions of the C source `headers` that the kernel source `text` needs.

    A definition that a needed definition uses is needed too. The result is in the order of
    `headers`.
    """
    items, macros = _items(headers)
    needed = set(re.findall(_WORD, text))
    kept: list[str] = []
    for item in reversed(items):  # definitions precede uses
        if not needed.isdisjoint(item.names):
            kept.append(item.text)
            needed.update(_words(item.text, macros) if item.use else re.findall(_WORD, item.text))
    return "\n".join(reversed(kept)) + "\n"


@functools.cache
def _items(headers: str) -> tuple[list[_Item], Macros]:
    """Return (definitions in C headers, dict from macro name to (parameters, source))."""
    macros: Macros = {}
    found: list[_Item] = []
    for text in _definitions(re.sub(_COMMENT, "", headers, flags=re.DOTALL)):
        macro = re.match(_MACRO, text)
        if macro is not None:
            name, parameters = macro.groups()
            macros[name] = ([p.strip() for p in (parameters or "").split(",")], text)
            found.append(_Item({name}, text))
        elif text.startswith("DG_FN"):
            found.append(_Item(set(re.findall(_DEFINED, text)), text))
        elif text.startswith("typedef"):
            found.append(_Item({re.findall(_WORD, text)[-1]}, text))
        else:
            for use in re.finditer(_USE, text):
                names = set(_instantiated(use.group(1), use.group(2), macros))
                found.append(_Item(names, use.group(0), True))
    return found, macros


def _definitions(headers: str) -> Iterator[str]:
    """Split C headers into functions, macros and other lines, and yield the source of each.

    Blocks between `#if` and `#endif` are dropped: no fused kernel needs them.
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
    """Yield the names of the C functions that a call of macro `name` with `arguments` defines."""
    parameters, body = macros[name]
    given = dict(zip(parameters, (a.strip() for a in arguments.split(","))))
    for pattern in re.findall(_DEFINED, body):
        yield "".join(given.get(part, part) for part in pattern.split("##"))
    for use in re.finditer(_USE, body[body.index(")") :]):
        if use.group(1) in macros:
            inner = ",".join(given.get(a.strip(), a.strip()) for a in use.group(2).split(","))
            yield from _instantiated(use.group(1), inner, macros)


def _words(use: str, macros: Macros) -> set[str]:
    """Return all identifiers in a macro call and in what it expands to.

    `use` is the source of the call. Tokens that the macro pastes with ## are joined.
    """
    found = set(re.findall(_WORD, use))
    match = re.match(_USE, use)
    assert match is not None
    parameters, body = macros[match.group(1)]
    given = dict(zip(parameters, (a.strip() for a in match.group(2).split(","))))
    for word in re.findall(r"\w[\w#]*", body):
        found.add("".join(given.get(part, part) for part in word.split("##")))
    return found
