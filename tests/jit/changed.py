"""Runs a program line by line and compiled, with one change of an outside object between calls."""

from __future__ import annotations

import itertools
import linecache
import sys
import types
import warnings
from typing import Any

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

__all__ = ["check"]

_numbers = itertools.count()


def check(text: str, change: str, undo: str = "") -> None:
    """Check that a compiled function sees a change as line-by-line execution does.

    With `stale_captures="recompile"` all five calls must have eager's results; with "warn" the
    calls after the change must have them, or warn. The change must change eager's result.

    Args:
        text: the program; it defines a function `f` of a tensor, decorated with `jit`.
        change: what happens after the third call.
        undo: takes back what the program changed outside itself.
    """
    want, _ = _run(text, change, undo, lambda f: f, "recompile")
    assert want[2] != want[3], f"the change changes nothing: {want}"
    got, _ = _run(text, change, undo, ms.jit, "recompile")
    assert got == want, f"wanted {want}, got {got}"
    got, warned = _run(text, change, undo, ms.jit, "warn")
    assert got[:3] == want[:3]
    assert got == want or warned, f"wanted {want}, got {got} without a warning"


def _run(text: str, change: str, undo: str, jit: Any, policy: str) -> tuple[list[Any], list[str]]:
    """Call the program five times; return the results, and warnings about changed values."""
    ms.set_context(mode=ms.PYNATIVE_MODE, stale_captures=policy)
    ms.set_seed(1)
    module = types.ModuleType("__changed__")
    sys.modules["__changed__"] = module  # dataclasses look their module up
    space = module.__dict__
    space.update(ms=ms, nn=nn, ops=ops, np=np, jit=jit, Tensor=Tensor, Parameter=Parameter)
    results = []
    try:
        _execute(text, space)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for number in range(5):
                if number == 3:
                    _execute(change, space)
                try:
                    results.append(space["f"](Tensor([1.0, 2.0])).asnumpy().tolist())
                except Exception as error:  # noqa: BLE001 (an exception is a result to compare)
                    results.append(type(error).__name__)
    finally:
        _execute(undo, space)
        del sys.modules["__changed__"]
    return results, [str(w.message) for w in found if "when the function was" in str(w.message)]


def _execute(text: str, space: dict[str, Any]) -> None:
    file = f"<changed {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), space)
