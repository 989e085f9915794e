"""Every program of the syntax corpus has the same result in Python and compiled."""

from __future__ import annotations

import re
import warnings
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import nn
from duograph.errors import JoinError, UnsupportedSyntaxError
from frontend import (  # each module adds its programs to CASES
    programs_builtins,  # noqa: F401
    programs_conditions,  # noqa: F401
    programs_containers,  # noqa: F401
    programs_framework,  # noqa: F401
    programs_functions,  # noqa: F401
    programs_gradients,  # noqa: F401
    programs_loops,  # noqa: F401
    programs_mixed_flow,  # noqa: F401
    programs_mixed_gradients,  # noqa: F401
    programs_mixed_networks,  # noqa: F401
    programs_mixed_values,  # noqa: F401
    programs_operators,  # noqa: F401
    programs_python,  # noqa: F401
    programs_statements,  # noqa: F401
    programs_values,  # noqa: F401
    programs_while_loops,  # noqa: F401
)
from frontend.corpus import CASES, OPTIONS, Case, Outcome, describe, gradient_of, run
from frontend.syntax_rows import ROWS

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
basic_cases = pytest.mark.parametrize(
    "case", [c for c in CASES if c.level == "S"], ids=lambda case: case.id
)
extended_cases = pytest.mark.parametrize(
    "case", [c for c in CASES if c.level == "L"], ids=lambda case: case.id
)
cell_cases = pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.make and isinstance(c.fresh()[0], nn.Cell)],
    ids=lambda case: case.id,
)
gradient_cases = pytest.mark.parametrize(
    "case", [c for c in CASES if c.grad is not None], ids=lambda case: case.id
)


def order_of_calls(case: Case) -> list[int]:
    """Indices of all calls, twice: the second time they hit the cache."""
    return list(range(len(case.calls))) * 2


def eager_outcomes(case: Case) -> list[Outcome]:
    target, state = case.fresh()
    return [run(case, target, state, index) for index in order_of_calls(case)]


def compiled_outcomes(case: Case, **options: Any) -> list[Outcome]:
    target, state = case.fresh()
    compiled = ms.jit(target, **OPTIONS, **options)
    return [run(case, compiled, state, index) for index in order_of_calls(case)]


def check(case: Case, got: Outcome, want: Outcome, call: int) -> None:
    """Compare a compiled outcome with the eager one, or with the expectation of the case."""
    where = f"call {call} of {case.id}"
    if case.refused is not None:
        kind, pattern = case.refused
        assert isinstance(got.error, kind), f"{where}: got {got.result!r}, {got.error!r}"
        assert re.search(pattern, str(got.error)), f"{where}: {got.error}"
        return
    if want.error is None and got.error is not None:
        raise got.error
    assert (got.error is None) == (want.error is None), f"{where}: {got} instead of {want}"
    if want.error is not None:
        assert isinstance(got.error, type(want.error)), f"{where}: {got.error!r}"
    elif case.compiled is not None:
        assert got.shown == describe(case.compiled[0](want.result)), where
    else:
        assert got.shown == want.shown, where
    assert got.after == want.after, f"{where}: arguments or state afterwards"
    if case.prints:
        assert got.printed == want.printed, where


@every_case
def test_eager(case: Case) -> None:
    """Without compilation each program has the result that its case states."""
    outcomes = eager_outcomes(case)
    for index, outcome in zip(order_of_calls(case), outcomes, strict=True):
        expected = case.error_of(index)
        if outcome.error is not None and expected is None:
            raise outcome.error
        assert expected is None or isinstance(outcome.error, expected), outcome
        if case.want is not None:
            assert plain(outcome.result) == plain(case.want[index])


def plain(value: Any) -> Any:
    """Return nested tensors and tuples as lists."""
    if isinstance(value, (ms.Tensor, np.ndarray)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


@every_case
def test_extended(case: Case) -> None:
    """Each program has the same outcomes compiled at the default level."""
    wanted = eager_outcomes(case)
    with warnings.catch_warnings():
        if case.line_by_line:
            warnings.filterwarnings("ignore", ".*runs line by line", RuntimeWarning)
        outcomes = compiled_outcomes(case)
    for call, (got, want) in enumerate(zip(outcomes, wanted, strict=True)):
        check(case, got, want, call)


@every_case
def test_cache(case: Case) -> None:
    """The second round of calls compiles nothing, and no call falls back to Python."""
    target, state = case.fresh()
    compiled = ms.jit(target, **OPTIONS)
    info = (compiled._compiled if isinstance(compiled, nn.Cell) else compiled).cache_info
    with warnings.catch_warnings():
        if case.line_by_line:
            warnings.filterwarnings("ignore", ".*runs line by line", RuntimeWarning)
        for index in range(len(case.calls)):
            run(case, compiled, state, index)
        before = info()
        for index in range(len(case.calls)):
            run(case, compiled, state, index)
    assert before.misses > 0 or case.refused or case.error_of(0) or case.line_by_line
    assert info().misses == before.misses or case.refused or case.recompiles
    assert not info().fallbacks or case.line_by_line


@cell_cases
def test_graph_mode(case: Case) -> None:
    """GRAPH_MODE compiles Cells as a whole, with the same outcomes."""
    wanted = eager_outcomes(case)
    target, state = case.fresh()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        outcomes = [run(case, target, state, index) for index in order_of_calls(case)]
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    for call, (got, want) in enumerate(zip(outcomes, wanted, strict=True)):
        check(case, got, want, call)


@basic_cases
def test_basic(case: Case) -> None:
    """Programs of level S have the same outcomes with fullgraph=True."""
    wanted = eager_outcomes(case)
    outcomes = compiled_outcomes(case, fullgraph=True)
    for call, (got, want) in enumerate(zip(outcomes, wanted, strict=True)):
        check(case, got, want, call)


@extended_cases
def test_basic_is_right_or_refuses(case: Case) -> None:
    """Programs of level L have the same outcomes with fullgraph=True, or are refused."""
    target, state = case.fresh()
    compiled = ms.jit(target, fullgraph=True, **OPTIONS)
    plain_target, plain_state = case.fresh()
    for call, index in enumerate(order_of_calls(case)):
        got = run(case, compiled, state, index)
        if isinstance(got.error, (UnsupportedSyntaxError, JoinError)):
            return
        check(case, got, run(case, plain_target, plain_state, index), call)


@gradient_cases
@pytest.mark.parametrize("way", ["grad_of_jit", "jit_of_grad", "jit_of_grad_of_jit"])
def test_gradient(case: Case, way: str) -> None:
    """The gradient of compiled code, and compiled gradients, equal the eager gradient."""
    assert case.grad is not None
    target, _ = case.fresh()
    plain_gradient = gradient_of(target, case.grad)
    if way == "grad_of_jit":
        tested = gradient_of(ms.jit(target, **OPTIONS), case.grad)
    elif way == "jit_of_grad":
        tested = ms.jit(plain_gradient, **OPTIONS)
    else:
        tested = ms.jit(gradient_of(ms.jit(target, **OPTIONS), case.grad), **OPTIONS)
    for index in order_of_calls(case):
        with warnings.catch_warnings():
            if case.line_by_line:
                warnings.filterwarnings("ignore", ".*runs line by line", RuntimeWarning)
            got = tested(*case.arguments(index))
        want = plain_gradient(*case.arguments(index))
        if case.grad_close:
            for one, other in zip(flat(got), flat(want), strict=True):
                np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6)
        else:
            assert describe(got) == describe(want)


def flat(value: Any) -> list[Any]:
    """Return the Tensors of a nested gradient."""
    return [t for v in value for t in flat(v)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("row", ROWS)
def test_row_has_a_program(row: str) -> None:
    """Each row of the feature list has a program."""
    assert any(case.row == row for case in CASES), ROWS[row]


def test_programs_have_names_of_their_own() -> None:
    """No two programs of a row have the same name."""
    assert len({case.id for case in CASES}) == len(CASES)
