"""Finds C sources that differ only in numbers, and writes one source that serves all of them.

From a program for many sizes (`Graph.varying`), C source is generated for each assignment of sizes.
The sources of a region for different sizes differ in few literals, or in none. `generalised`
compares a source with those that it has seen before: literals that have differed become variables,
which the functions read from two tables, `dg_sizes` and `dg_reals`. `build_sized` compiles that
source once, and loads the library for each assignment, with the tables filled. A literal that never
differed remains a literal, so that the compiler can use its value.

A variable must have the type of its literal, so that the functions compute the same results.
`fused_regions` calls this module.
"""

from __future__ import annotations

import os
import re
import weakref
from typing import NamedTuple

from duograph.backend import disk_cache
from duograph.backend.locks import new_lock

from ._native import ffi, lib
from .toolchain import BuildFailure, Library, Source, build

__all__ = ["Sized", "build_sized", "generalised", "refuse"]

# Token of C: a comment, preprocessor line or name, which stays unchanged, or a real or int number.
_TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|^[ \t]*#[^\n]*|[A-Za-z_]\w*"
    r"|(?P<real>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?f?(?!\w))"
    r"|(?P<int>\d+(?![\w.]))"
    r"|\d[\w.]*",
    re.MULTILINE | re.DOTALL,
)
_START = re.compile(r"^DG_KERNEL [^\n]*\{\n", re.MULTILINE)
_MOST_INT = 2**31 - 1
# Sources with other texts than these that are remembered; the oldest half is then forgotten.
_MOST_FORMS = 4096


class Sized(NamedTuple):
    """A C source that reads some numbers from tables, and the content of the tables.

    Attributes:
        text: the C source.
        ints, reals: contents of the tables `dg_sizes` and `dg_reals`.
    """

    text: str
    ints: tuple[int, ...]
    reals: tuple[float, ...]


class _Form:
    """A set of sources that are equal except for their literals.

    Attributes:
        first: the literals of the first source that was seen.
        varying: positions of the literals that have differed.
        refused: whether the source with variables cannot be compiled.
    """

    def __init__(self, first: list[str]) -> None:
        self.first = first
        self.varying: set[int] = set()
        self.refused = False


_lock = new_lock()
_forms: dict[str, _Form] = {}
_form_of: dict[str, _Form] = {}  # of a generalised source


def generalised(text: str) -> Sized | None:
    """Return a source that serves this source and all that differ from it only in numbers.

    Returns None if no source was seen before that differs only in numbers, or if the compiler
    rejects such a source or it cannot be written (`_written`); `text` is then to be compiled
    unchanged.
    """
    pieces, literals = _split(text)
    skeleton = "\0".join(pieces)
    with _lock:
        form = _forms.get(skeleton)
        if form is None:
            if len(_forms) >= _MOST_FORMS:
                for old in list(_forms)[: _MOST_FORMS // 2]:
                    del _forms[old]
                _form_of.clear()
            _forms[skeleton] = _Form(literals)
            return None
        form.varying |= {k for k, v in enumerate(literals) if v != form.first[k]}
        if form.refused or not form.varying:
            return None
        found = _written(pieces, literals, form.varying)
        if found is not None:
            _form_of[found.text] = form
        return found


def refuse(source: Sized) -> None:
    """Stop generalising sources that differ from this one only in numbers.

    It is called if the generalised source does not compile.
    """
    with _lock:
        form = _form_of.get(source.text)
        if form is not None:
            form.refused = True


def _split(text: str) -> tuple[list[str], list[str]]:
    """Split a source at its literals; return the text between them, and the literals."""
    pieces, literals = [], []
    at = 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup is None:
            continue
        pieces.append(text[at : match.start()])
        literals.append(match[0])
        at = match.end()
    return [*pieces, text[at:]], literals


def _written(pieces: list[str], literals: list[str], varying: set[int]) -> Sized | None:
    """Return the source with variables for some literals.

    `pieces` is the text between the literals; `varying` are the positions of the literals that
    become variables. Returns None if such a literal is outside of all functions, or is an int that
    is too large.
    """
    ints: list[int] = []
    reals: list[float] = []
    parts = [pieces[0]]
    for k, (literal, after) in enumerate(zip(literals, pieces[1:], strict=True)):
        if k not in varying:
            parts += [literal, after]
        elif literal.isdigit():
            if int(literal) > _MOST_INT:
                return None
            parts += [f"dg_size{len(ints)}", after]
            ints.append(int(literal))
        else:
            single = literal.endswith("f")
            parts += [f"dg_{'single' if single else 'double'}{len(reals)}", after]
            reals.append(float(literal.rstrip("f")))
    text = "".join(parts)
    starts = [m.end() for m in _START.finditer(text)]
    if not starts or re.search(r"dg_(size|single|double)\d", text[: starts[0]]):
        return None
    tables = (f"DG_TABLE int dg_sizes[{len(ints)}];\n" if ints else "") + (
        f"DG_TABLE double dg_reals[{len(reals)}];\n" if reals else ""
    )
    made = [_DEFINITION + tables, text[: starts[0]]]
    for begin, end in zip(starts, [*starts[1:], len(text)]):
        body = text[begin:end]
        made += [_locals(body), body]
    return Sized("".join(made), tuple(ints), tuple(reals))


_DEFINITION = '#define DG_TABLE __attribute__((visibility("default")))\n'


def _locals(body: str) -> str:
    """Return the declarations of the table variables that a function's body uses."""
    used = sorted(set(re.findall(r"\bdg_(size|single|double)(\d+)\b", body)))
    lines = {
        "size": "    const int dg_size{0} = dg_sizes[{0}];\n",
        "single": "    const float dg_single{0} = (float)dg_reals[{0}];\n",
        "double": "    const double dg_double{0} = dg_reals[{0}];\n",
    }
    return "".join([lines[kind].format(k) for kind, k in used])


# The files of libraries that are loaded for each assignment of sizes.
_images: weakref.WeakKeyDictionary[Library, bytes] = weakref.WeakKeyDictionary()


def build_sized(source: Source, sized: Sized) -> Library | BuildFailure:
    """Return a separate library whose tables have the numbers of `sized`.

    The source is compiled once. A copy of the library is loaded for each call, in about 0.3 ms.

    Args:
        source: the original source, of which everything but the text is used.
        sized: the generalised source and the numbers.
    """
    library = build(source._replace(text=sized.text))
    if isinstance(library, BuildFailure):
        return library
    out = disk_cache.scratch(".so")
    try:
        if library not in _images:
            with open(library.path, "rb") as file:
                _images[library] = file.read()
        with open(out, "wb") as file:
            file.write(_images[library])
        handle = lib.dg_open(os.fsencode(out))
    except OSError as error:
        return BuildFailure(f"a library cannot be copied: {error}")
    finally:
        if os.path.exists(out):
            os.unlink(out)
    if handle == ffi.NULL:
        return BuildFailure("a copy of a library cannot be loaded")
    made = Library(str(out), handle)
    for name, kind, values in (
        ("dg_sizes", "int *", sized.ints),
        ("dg_reals", "double *", sized.reals),
    ):
        table = lib.dg_symbol(handle, name.encode()) if values else ffi.NULL
        if values and table == ffi.NULL:
            return BuildFailure(f"a library lacks {name}")
        numbers = ffi.cast(kind, table)
        for k, value in enumerate(values):
            numbers[k] = value
    return made
