"""Handlers around ops that find an index or a label out of range only when they run.

A compiled call cannot go on after such an error, so that a function with a handler that could
catch it runs line by line.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, jit, ops
from duograph.conformance.compare import difference_of, snapshot
from duograph.errors import IndexRangeError, UnsupportedSyntaxError

pytestmark = pytest.mark.usefixtures("restored")

AT = Tensor(np.array([0, 7]))
PAIRS = Tensor(np.array([[0, 1], [7, 0]]))
LABELS = Tensor(np.array([0, 5], np.int32))
# Functions of a float32 (2, 2) Tensor.
FAIL = {
    "gather": lambda x: ops.gather(x, AT, 0),
    "subscript": lambda x: x[AT],
    "subscript of a result": lambda x: x[(x.sum() + 9).astype(ms.int32)],
    "gather_elements": lambda x: ops.gather_elements(x, 1, PAIRS),
    "gather_nd": lambda x: ops.gather_nd(x, PAIRS),
    "index_select": lambda x: ops.index_select(x, 0, AT),
    "take": lambda x: x.take(AT, 0, mode="raise"),
    "write by index": lambda x: ops.index_add(x * 1, AT.astype(ms.int32), x, 0),
    "scatter": lambda x: ops.tensor_scatter_elements(x, PAIRS, x),
    "cross_entropy": lambda x: ops.cross_entropy(x, LABELS),
    "nll_loss": lambda x: ops.nll_loss(x, LABELS),
}
CATCH = (IndexError, ValueError, Exception, IndexRangeError, (KeyError, IndexError), LookupError)
PASS = (KeyError, OSError, (TypeError, ZeroDivisionError))


def handled(fail: Any, kinds: Any) -> Any:
    """Return a function that calls `fail` inside a `try` and handles errors of these classes."""

    def f(x: Tensor) -> Any:
        try:
            y = fail(x)
        except kinds:
            return x * 2, "caught"
        return y, "not caught"

    return f


def suppressed(fail: Any, kinds: Any) -> Any:
    """Return a function that suppresses an error of `fail`."""

    def f(x: Tensor) -> Any:
        y = x * 2
        with contextlib.suppress(kinds):
            y = y + fail(x).sum()
        return y, "after"

    return f


def outcome(f: Any) -> Any:
    """Return the result of a call, or the class of its error."""
    try:
        found = snapshot(f(Tensor([[1.0, 2.0], [3.0, 4.0]])))
        ms.synchronize()
        return found
    except Exception as error:  # noqa: BLE001 (its class is compared)
        return type(error)


@pytest.mark.parametrize("kinds", CATCH, ids=str)
@pytest.mark.parametrize("form", [handled, suppressed])
@pytest.mark.parametrize("name", FAIL)
def test_a_handler_catches_it(name: str, form: Any, kinds: Any) -> None:
    f = form(FAIL[name], kinds)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*runs line by line")
        assert difference_of(outcome(f), outcome(jit(f))) is None
    ms.set_context(jit_syntax_level=ms.STRICT)
    assert outcome(jit(f)) is UnsupportedSyntaxError


@pytest.mark.parametrize("kinds", PASS, ids=str)
@pytest.mark.parametrize("name", FAIL)
def test_other_handlers_are_compiled(name: str, kinds: Any) -> None:
    f = handled(FAIL[name], kinds)
    ms.set_context(jit_syntax_level=ms.STRICT)
    want = outcome(f)
    assert issubclass(want, IndexRangeError)
    assert outcome(jit(f)) is want
