"""Handlers around ops that find an index or a label out of range only when they run.

A compiled call cannot go on after such an error, so that a function runs line by line if a handler
could catch it, or if a `finally` block or the end of a `with` block does something outside.
"""

from __future__ import annotations

import contextlib
import threading
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


LOG: list[str] = []
LOCK = threading.Lock()
STATE = ms.Parameter(Tensor([0.0, 0.0]), name="state")


class Logged:
    """A context manager that notes in `LOG` whether it was left with an error."""

    def __enter__(self) -> None:
        LOG.append("enter")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        LOG.append("leave" if kind is None else "error")


def in_finally(fail: Any) -> Any:
    """Return a function with a `finally` block that changes a list from outside."""

    def f(x: Tensor) -> Any:
        try:
            y = fail(x)
        finally:
            LOG.append("finally")
        return y

    return f


def writing_in_finally(fail: Any) -> Any:
    """Return a function with a `finally` block that writes a Parameter."""

    def f(x: Tensor) -> Any:
        try:
            y = fail(x)
        finally:
            STATE.set_data(STATE + x[0])
        return y

    return f


def in_with(fail: Any) -> Any:
    """Return a function that fails in a `with` block of a user's context manager."""

    def f(x: Tensor) -> Any:
        with Logged():
            y = fail(x)
        return y

    return f


def in_helper(fail: Any) -> Any:
    """Return a function that fails in a helper called in a `with` block."""

    def helper(x: Tensor) -> Any:
        return fail(x) * 2

    def f(x: Tensor) -> Any:
        with Logged(), contextlib.nullcontext():
            return helper(x)

    return f


def under_lock(fail: Any) -> Any:
    """Return a function that fails while it holds a lock."""

    def f(x: Tensor) -> Any:
        with LOCK:
            return fail(x)

    return f


@contextlib.contextmanager
def logging() -> Any:
    """A context manager with a `finally` block."""
    try:
        yield
    finally:
        LOG.append("generator")


def in_generator(fail: Any) -> Any:
    """Return a function that fails in a `with` block of a generator's context manager."""

    def f(x: Tensor) -> Any:
        with logging():
            return fail(x)

    return f


def returning(fail: Any) -> Any:
    """Return a function whose `finally` block drops the error."""

    def f(x: Tensor) -> Any:
        try:
            return fail(x)
        finally:
            return x * 3  # noqa: B012, SIM107 (the error is dropped)

    return f


ENDS = [in_finally, writing_in_finally, in_with, in_helper, under_lock, in_generator, returning]


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("form", ENDS)
@pytest.mark.parametrize("name", FAIL)
def test_blocks_that_act_end(name: str, form: Any, level: str) -> None:
    def ended(f: Any) -> Any:
        LOG.clear()
        STATE.set_data(Tensor([0.0, 0.0]))
        found = outcome(f), outcome(f)
        return found, [*LOG], LOCK.locked(), snapshot(STATE)

    f = form(FAIL[name])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*runs line by line")
        assert difference_of(ended(f), ended(jit(f, jit_level=level))) is None
    ms.set_context(jit_syntax_level=ms.STRICT)
    assert outcome(jit(f)) is UnsupportedSyntaxError


@pytest.mark.parametrize("name", FAIL)
def test_blocks_that_do_not_act_are_compiled(name: str) -> None:
    def f(x: Tensor) -> Any:
        log = []
        with contextlib.nullcontext():
            try:
                y = FAIL[name](x)
            finally:
                log.append(1)
        return y

    ms.set_context(jit_syntax_level=ms.STRICT)
    want = outcome(f)
    assert issubclass(want, IndexRangeError)
    assert outcome(jit(f)) is want
