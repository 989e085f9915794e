"""Tests of programs with known output, run uncompiled and compiled on the device.

A docstring begins with the numbers of the requirements (tests/rows.py) that the test covers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import duograph as ms
from duograph import nn, ops
from duograph.op import OPS
from duograph.op_tables import rules_changed

from .compare import printed_words, same_words
from .documented_programs import DOCUMENTED
from .effect_programs import EFFECTS
from .known_programs import SMALL, KnownProgram
from .program_runs import execute, settings_for
from .session import Session, over

# How a program runs: line by line, or in GRAPH_MODE at a level of compilation.
MODES = {"eager": ("eager", None), "O0": ("graph mode", "O0"), "O2": ("graph mode", "O2")}


@pytest.fixture(autouse=True)
def mul_rule():
    """Fixture that restores the gradient rule of the op mul if a program has replaced it."""
    op = OPS["mul"]
    rule = op.bprop_rule
    yield
    if op.bprop_rule is not rule:
        op.bprop_rule = rule
        rules_changed()


def check(name: str, program: KnownProgram, mode: str, capsys) -> None:
    """Run a program eagerly or compiled; check that it prints what it must print.

    `mode` is "eager", or the jit level "O0" or "O2" at which the program is compiled.
    """
    space = {"__name__": "__program__", "ms": ms, "nn": nn, "ops": ops, "np": np}
    with settings_for(*MODES[mode]):
        execute(program.source, name, space)
        ms.synchronize()
    got = capsys.readouterr().out.strip("\n")
    want = program.printed if mode == "eager" else program.compiled or program.printed
    want = textwrap.dedent(want).strip("\n")
    near = program.rounded and same_words(printed_words(got), printed_words(want))
    assert near or got == want, f"it printed\n{got}\n  instead of\n{want}"


def _over(programs: Mapping[str, KnownProgram]) -> Callable[..., Any]:
    """Return a decorator that runs a test for each program and mode; a quick run has one mode."""

    def parameters(session: Session) -> tuple[str, Sequence[object]]:
        modes = ("O0",) if session.quick else MODES
        return "name,mode", [(name, mode) for name in programs for mode in modes]

    return over(parameters)


@_over(SMALL)
def test_program(name, mode, capsys):
    """I06: a small program prints exactly what it should, in order."""
    check(name, SMALL[name], mode, capsys)


@_over(DOCUMENTED)
@pytest.mark.filterwarnings("ignore:.*ms_function.*:DeprecationWarning")
def test_documented_program(name, mode, capsys):
    """I07: an example of MindSpore's documentation prints what the documentation shows."""
    check(name, DOCUMENTED[name], mode, capsys)


@_over(EFFECTS)
def test_effects(name, mode, capsys):
    """I06: at each call, compiled code has its side effects and prints once and in order."""
    check(name, EFFECTS[name], mode, capsys)
