"""Tests that each case has the same results, gradients and errors compiled and uncompiled.

Functions are compiled without code generation, so results must be equal bit for bit. A docstring
may begin with the numbers of the requirements (tests/rows.py) that the test covers.
"""

from __future__ import annotations

import contextlib
import re
import warnings

import pytest

import duograph as ms

from ..dtype import as_dtype
from ..errors import DTypeError, UnsupportedOpError
from ..tensor import Tensor
from .case import OpCase, Sample
from .check import arrays_of, call_text, fail_with, indented, results_of, substitute, to_tensor
from .compare import difference_of
from .gradient import Problem
from .session import Session, over

LINE_BY_LINE = ".*runs line by line"
# Cases whose gradient is not compiled, with the reason. The shape of these results depends on
# values, so a compiled function computes them in Python, and no gradient is compiled through that.
# All other gradients must be compiled; an entry that is compiled after all fails a full run.
GRADIENT_NOT_COMPILED = {
    "masked_select": "as many elements as the mask has",
    "getitem of Tensor": "by a mask: as many rows as it has",
    "setitem of Tensor": "a value with an element for each one that the mask has",
}


@contextlib.contextmanager
def _compiling(line_by_line: list[str] | None = None):
    """Return a context manager that sets jit level O0 and detects functions that do not compile.

    A function that falls back to line-by-line execution is an error; if the list `line_by_line` is
    given, the warning is appended to it instead.
    """
    before = ms.get_context("jit_level")
    ms.set_context(jit_level="O0")
    with warnings.catch_warnings(record=line_by_line is not None) as seen:
        warnings.filterwarnings("error" if line_by_line is None else "always", LINE_BY_LINE)
        try:
            yield
        finally:
            ms.set_context(jit_level=before)
            if line_by_line is not None:
                line_by_line += [str(w.message) for w in seen or ()]


def _compiled(case: OpCase):
    """Return the function of a test case compiled with jit.

    Arrays are inputs of the compiled function, other arguments are constants in it.
    """
    function = case.function

    def call(args, kwargs):
        return function(*args, **kwargs)

    return ms.jit(call)


def _made(sample: Sample):
    """Return (args, kwargs) of a test sample, with arrays as Tensors."""

    def tensor(array):
        return to_tensor(array, sample.kind)

    return substitute(sample.args, tensor), substitute(dict(sample.kwargs), tensor)


@over(Session.compiled)
def test_graph(case, dtype, session):
    """I05: at jit level O0, compiled results equal eager results on the same device bit for bit."""
    found: list[str] = []
    ran = 0
    for sample in case.made(dtype):
        ms.set_seed(9)
        try:
            args, kwargs = _made(sample)
            want = results_of(case.function(*args, **kwargs))
        except (UnsupportedOpError, DTypeError):
            continue  # test_forward judges what the device refuses
        ran += 1
        ms.set_seed(9)
        with _compiling():
            try:
                args, kwargs = _made(sample)
                got = results_of(_compiled(case)(args, kwargs))
            except Exception as error:  # noqa: BLE001 (whatever a compiled call raises is a finding)
                found.append(f"{call_text(case, sample)}\n  {type(error).__name__}: {error}")
                continue
        text = difference_of(want, got, "line by line and compiled")
        if text is not None:
            found.append(f"{call_text(case, sample)}\n{indented(text)}")
    if not ran:
        pytest.skip(f"every call needs something that {session.name} does not have")
    fail_with(found)


@over(Session.compiled_gradient)
def test_graph_gradient(case, dtype, session):
    """Test that gradients of compiled functions equal eager gradients bit for bit."""
    found: list[str] = []
    excused: list[str] | None = [] if case.name in GRADIENT_NOT_COMPILED else None
    samples = [s for s in case.made(dtype) if s.grad and s.kind not in ("nan", "empty")]
    for sample in session.some(samples):
        problem = Problem(case, sample)
        if not problem.inputs:
            continue
        try:
            want = problem.gradients()
        except (UnsupportedOpError, DTypeError):
            continue
        for where, gradients in (("outside", _from_outside), ("inside", _from_inside)):
            with _compiling(excused):
                try:
                    got = gradients(problem)
                except Exception as error:  # noqa: BLE001 (whatever a compiled call raises is a finding)
                    found.append(
                        f"gradient from {where} of {call_text(case, sample)}\n  "
                        f"{type(error).__name__}: {error}"
                    )
                    continue
            text = difference_of(want, got, "line by line and compiled")
            if text is not None:
                found.append(
                    f"gradient from {where} of {call_text(case, sample)}\n{indented(text)}"
                )
    if excused == [] and not (session.quick or session.sampled):
        found.append(f"{case.name} is listed as not compiled, and is; take it off the list")
    fail_with(found)


def _tensors(problem: Problem):
    seeds = problem.seeds
    assert seeds is not None
    return [Tensor(a) for a in problem.inputs], [Tensor(s) for s in seeds]


def _arrays(found):
    return [t.asnumpy() for t in (found if isinstance(found, tuple) else (found,))]


def _from_outside(problem: Problem):
    inputs, seeds = _tensors(problem)
    function = problem.function
    _, pull = ms.vjp(ms.jit(lambda *xs: function(*xs)), *inputs)
    return _arrays(pull(*seeds))


def _from_inside(problem: Problem):
    inputs, seeds = _tensors(problem)
    function = problem.function

    def gradient(xs, cotangents):
        _, pull = ms.vjp(function, *xs)
        return pull(*cotangents)

    return _arrays(ms.jit(gradient)(inputs, seeds))


@over(Session.errors)
def test_graph_errors(case, session):
    """Test that a call that must fail raises the same exception and message when compiled."""
    found = []
    for bad in case.errors:
        used = {as_dtype(a.dtype) for a in arrays_of([list(bad.args), dict(bad.kwargs)])}
        if not used <= set(session.dtypes):
            continue
        sample = Sample(bad.args, bad.kwargs)
        args, kwargs = substitute(bad.args, Tensor), substitute(dict(bad.kwargs), Tensor)
        try:
            results_of(case.function(*args, **kwargs))
        except bad.exception:
            pass
        except Exception:  # noqa: BLE001 (test_errors judges what line-by-line code raises)
            continue
        else:
            continue
        with _compiling():
            try:
                results_of(_compiled(case)(args, kwargs))
            except bad.exception as error:
                # a kernel checks the values of an index tensor and words the message itself
                deferred = isinstance(error, IndexError)
                if not deferred and not re.search(bad.pattern, str(error), re.DOTALL):
                    found.append(
                        f"{call_text(case, sample)}\n  said      {error}\n  expected  {bad.pattern}"
                    )
            except Exception as error:  # noqa: BLE001 (the wrong exception is the finding)
                found.append(
                    f"{call_text(case, sample)}\n  raised    {type(error).__name__}: {error}"
                )
            else:
                found.append(f"{call_text(case, sample)}\n  returned a result when compiled")
    fail_with(found)
