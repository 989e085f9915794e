"""Tests of a backend on every op case (`cases`) and dtype.

They check results, gradients, second derivatives, and the errors that each case lists. Expected
results and gradients come from the oracle, a backend that runs the ops' NumPy rules; the gradients
are also compared with finite differences. A docstring may begin with the numbers of the
requirements (tests/rows.py) that the test covers.
"""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest

from ..dtype import DType, as_dtype, float64
from ..errors import DTypeError, UnsupportedOpError
from ..op import Op
from ..op_tables import rules_changed
from ..tensor import Tensor
from .case import Bad, OpCase, Sample
from .cases import all_cases
from .check import (
    DeferredIndexError,
    arrays_of,
    call_text,
    difference,
    fail_with,
    indented,
    read_failing,
    results_of,
    run,
    substitute,
)
from .gradient import Problem, against_differences
from .oracle import on_oracle
from .session import WIDEST, Session, over
from .tolerance import forward_tolerance, gradient_tolerance


def _attempt(found: list[str], case: OpCase, sample: Sample, session: Session, function):
    """Return `function()`, a test call; if that raises, append the failure to `found`.

    Returns None after a failure. UnsupportedOpError and DTypeError are raised, unless the call
    needs a dtype that the device lacks; then None is returned.
    """
    try:
        return function()
    except (UnsupportedOpError, DTypeError) as error:
        with on_oracle() as seen:
            function()
        if not seen <= set(session.dtypes):
            return None
        error.args = (f"{call_text(case, sample)}\n{error}",)
        raise
    except Exception as error:  # noqa: BLE001 (whatever a device raises is a finding)
        found.append(f"{call_text(case, sample)}\n  {type(error).__name__}: {error}")
        return None


def _expected(case: OpCase, sample: Sample):
    if case.oracle is not None:
        with np.errstate(all="ignore"):
            return results_of(case.oracle(*sample.args, **sample.kwargs))
    return results_of(run(case, sample))


@over(Session.forward)
def test_forward(case, dtype, session, record_property):
    """A45, H06, I03: every op agrees with its NumPy reference within the dtype's tolerance."""
    samples = case.made(dtype)
    record_property("kinds", sorted({s.kind for s in samples}))
    found: list[str] = []
    computed = [
        _attempt(found, case, s, session, lambda s=s: results_of(run(case, s))) for s in samples
    ]
    if not found and all(c is None for c in computed):
        pytest.skip(f"every call needs a dtype that {session.name} does not have")
    with on_oracle():
        expected = [None if c is None else _expected(case, s) for s, c in zip(samples, computed)]
    for sample, got, want in zip(samples, computed, expected):
        if got is None:
            continue
        text = _compare(case, got, want, case.oracle is None)
        if text is not None:
            found.append(f"{call_text(case, sample)}\n{indented(text)}")
    fail_with(found)


def _compare(case: OpCase, got, want, exact_dtype: bool) -> str | None:
    if len(got) != len(want):
        return f"computed {len(got)} results, expected {len(want)}"
    for k, (a, b) in enumerate(zip(got, want)):
        kind = as_dtype(a.dtype)
        if not exact_dtype and a.dtype.kind == b.dtype.kind:
            b = b.astype(a.dtype)  # NumPy functions return float64 more often than devices
        text = difference(a, b, forward_tolerance(kind, case.tol.get(kind)))
        if text is not None:
            return text if len(got) == 1 else f"result {k}: {text}"
    return None


def _differentiable(case: OpCase, dtype) -> list[Sample]:
    return [s for s in case.made(dtype) if s.grad and s.kind not in ("nan", "empty")]


def _gradients(found: list[str], case: OpCase, sample: Sample, order: int, session: Session):
    problem = Problem(case, sample, order)
    if not problem.inputs:
        return None
    return _attempt(found, case, sample, session, lambda: (problem, problem.gradients()))


@over(Session.gradient)
def test_gradient(case, dtype, session):
    """I04: gradients equal those of the oracle and, in float64, finite differences."""
    _check_gradient(case, dtype, _differentiable(case, dtype), 1, session)


@over(Session.second_order)
def test_second_order(case, dtype, session):
    _check_gradient(case, dtype, _differentiable(case, dtype)[:2], 2, session)


def _check_gradient(
    case: OpCase, dtype, samples: list[Sample], order: int, session: Session
) -> None:
    found: list[str] = []
    made = [(s, _gradients(found, case, s, order, session)) for s in samples]
    made = [(s, m) for s, m in made if m is not None]
    if dtype in WIDEST:
        limit = 3 if session.quick or session.sampled else len(made)
        for sample, (problem, gradients) in made[:limit]:
            text = _attempt(
                found,
                case,
                sample,
                session,
                lambda p=problem, g=gradients: against_differences(p, g),
            )
            if text is not None:
                found.append(f"gradient of {call_text(case, sample)}\n{indented(text)}")
    with on_oracle():
        for sample, (problem, gradients) in made:
            want = problem.gradients()
            tolerance = gradient_tolerance(dtype, case.grad_tol.get(dtype))
            for k, (got, right) in enumerate(zip(gradients, want)):
                text = difference(got, right, tolerance)
                if text is not None:
                    where = f"gradient of array {k} of {call_text(case, sample)}"
                    found.append(f"{where}\n{indented(text)}")
                    break
    fail_with(found)


@over(Session.errors)
def test_errors(case, session):
    found = []
    for bad in case.errors:
        used = {as_dtype(a.dtype) for a in arrays_of([list(bad.args), dict(bad.kwargs)])}
        if not used <= set(session.dtypes):
            continue
        sample = Sample(bad.args, bad.kwargs)
        args = substitute(bad.args, Tensor)
        kwargs = substitute(dict(bad.kwargs), Tensor)
        try:
            read_failing(case.function(*args, **kwargs))
        except bad.exception as error:
            deferred = isinstance(error, DeferredIndexError)
            if not deferred and not re.search(bad.pattern, str(error), re.DOTALL):
                found.append(
                    f"{call_text(case, sample)}\n  said      {error}\n  expected  {bad.pattern}"
                )
        except Exception as error:  # noqa: BLE001 (the wrong exception is the finding)
            if isinstance(error, UnsupportedOpError) and _lacks(case, bad, session):
                continue
            found.append(
                f"{call_text(case, sample)}\n  raised    {type(error).__name__}: {error}\n"
                f"  expected  {_names(bad.exception)}: {bad.pattern}"
            )
        else:
            found.append(
                f"{call_text(case, sample)}\n  returned a result\n"
                f"  expected  {_names(bad.exception)}: {bad.pattern}"
            )
    fail_with(found)


def _names(exceptions) -> str:
    several = exceptions if isinstance(exceptions, tuple) else (exceptions,)
    return " or ".join(e.__name__ for e in several)


def _lacks(case: OpCase, bad: Bad, session: Session) -> bool:
    """Return whether a failing test call needs a dtype that the tested device lacks."""
    kinds = bad.exception if isinstance(bad.exception, tuple) else (bad.exception,)
    with on_oracle() as seen, contextlib.suppress(*kinds):
        case.function(*substitute(bad.args, Tensor), **substitute(dict(bad.kwargs), Tensor))
    return not seen <= set(session.dtypes)


def test_composite_rules(session):
    """Test that a composite op's own gradient rule gives the gradient of its body."""
    if session.quick:
        pytest.skip("independent of the device")
    found: list[str] = []
    with on_oracle():
        for case in all_cases():
            op = case.op
            if op is None or op.body is None or op.bprop_rule is None or not case.differentiable:
                continue
            kinds = [d for d in case.takes if d is float64]
            for dtype in kinds:
                for sample in _differentiable(case, dtype)[:3]:
                    _compare_rule(found, case, op, sample, dtype)
    fail_with(found)


def _compare_rule(found: list[str], case: OpCase, op: Op, sample: Sample, dtype: DType) -> None:
    problem = Problem(case, sample)
    with_rule = problem.gradients()
    rule = op.bprop_rule
    try:
        op.bprop_rule = None
        rules_changed()
        of_body = problem.gradients()
    finally:
        op.bprop_rule = rule
        rules_changed()
    for got, want in zip(with_rule, of_body):
        if not np.isfinite(want).all():
            continue  # the rule exists because the body has no finite gradient
        text = difference(got, want, gradient_tolerance(dtype, 1e-9))
        if text is not None:
            found.append(f"rule and body of {call_text(case, sample)}\n{indented(text)}")
            return
