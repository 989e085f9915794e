"""What the tests of compiled functions share."""

from __future__ import annotations

import itertools
import linecache
import textwrap
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.conformance.program_runs import Program, disagreement, observe

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _settings():
    """Fixture: restores the settings after every test."""
    before = {
        k: ms.get_context(k)
        for k in ("mode", "stale_captures", "jit", "jit_level", "jit_syntax_level")
    }
    yield
    ms.set_context(**before)


@pytest.fixture
def load():
    """Execute a program's source, readable as that of a file, and return its namespace."""

    def run(source: str, **names):
        text = textwrap.dedent(source)
        file = f"<test {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        space = {"__name__": "__test__", "ms": ms, "nn": nn, "ops": ops, "np": np, **names}
        exec(compile(text, file, "exec"), space)
        return space

    return run


@pytest.fixture
def warned():
    """Fixture: the list of warnings raised so far; none becomes an error."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


@pytest.fixture
def agree():
    """Run a program line by line and compiled; return what the eager run did.

    The test fails if the two differ.
    """

    def run(source: str, *inputs, grad=(), weights="", modes=("jit",), calls=2):
        program = Program(textwrap.dedent(source), inputs, tuple(grad), weights, calls=calls)
        want = observe(program, "eager")
        for mode in modes:
            text = disagreement(want, observe(program, mode))
            assert text is None, f"{mode}: {text}\n{program}"
        return want

    return run
