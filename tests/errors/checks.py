"""Checks, by machine, of what an error message of the corpus must contain."""

from __future__ import annotations

import builtins
import os
import re

import duograph as ms
from errors.corpus import Outcome, Program

PACKAGE = os.path.dirname(ms.__file__)
_OWN = re.compile(r'File "[^"]*duograph[_a-z]*/[^"]*\.py"')
_PRIVATE_CLASS = re.compile(r"^duograph\.(?!errors\.\w+:)[\w.]+: ", re.MULTILINE)


def problems(program: Program, outcome: Outcome) -> list[str]:
    """Return what is wrong with the message of a program, as sentences; [] if nothing is."""
    if not outcome.kinds:
        return ["raised nothing"]
    found = []
    if not set(program.raises) & set(outcome.kinds):
        found.append(f"raised {outcome.kinds[0]}; wanted {' or '.join(program.raises)}")
    own = [m for m in _OWN.findall(outcome.printed) if "tests/errors" not in m]
    if own or PACKAGE in outcome.printed:
        found.append("shows files of duograph")
    if _PRIVATE_CLASS.search(outcome.printed):
        found.append("shows a class outside duograph.errors")
    where = f"{program.path.name}:{program.line}"
    in_traceback = re.search(
        rf'File "[^"]*{re.escape(program.path.name)}", line {program.line}\b', outcome.printed
    )
    if not in_traceback and where not in outcome.printed:
        found.append(f"names another line than {program.line}: {program.at}")
    if "DuographError" in outcome.kinds and where not in outcome.text:
        found.append(f"str(error) lacks {where}")
    found += [f"lacks {word!r}" for word in program.says if word not in outcome.text]
    if hasattr(builtins, outcome.kinds[0]) and not outcome.text:
        found.append("has no text")
    return found
