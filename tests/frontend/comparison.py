"""Runs the source of a small program line by line and compiled, and compares what can be observed.

Compared are results, printed text, exceptions with their causes and contexts, and the variables
that the program lists in `WATCH`, after each of several calls. A program whose function runs line
by line must say so with a warning.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import duograph as ms
from frontend.corpus import OPTIONS, describe, fresh_value, tokens

_LOCATION = re.compile(r"\n  [^\n]+:\d+( in |$).*", re.DOTALL)
_WARNING = "runs line by line"


def check_program(
    source: str, calls: Sequence[tuple[Any, ...]], line_by_line: bool | None = None
) -> None:
    """Run the function `f` of a program line by line and compiled, and compare all calls.

    Args:
        source: the program.
        calls: the arguments of each call; arrays become Tensors.
        line_by_line: whether the compiled function must (True) or must not (False) fall back to
            running line by line; None accepts both.
    """
    want, _ = _observed(source, calls, compiled=False)
    got, fell_back = _observed(source, calls, compiled=True)
    for i, (a, b) in enumerate(zip(want, got, strict=True)):
        assert b == a, f"call {i}: compiled {b}\n  line by line {a}\n{source}"
    if line_by_line is not None:
        assert fell_back == line_by_line, f"runs line by line: {fell_back}\n{source}"


def _observed(
    source: str, calls: Sequence[tuple[Any, ...]], compiled: bool
) -> tuple[list[Any], bool]:
    """Return what each call of the program's `f` did, and whether it fell back with a warning."""
    space: dict[str, Any] = {"__name__": "__program__", "ms": ms, "Tensor": ms.Tensor}
    text = textwrap.dedent(source).lstrip("\n")
    file = f"<program {id(space)} {compiled}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), space)
    function = ms.jit(space["f"], **OPTIONS) if compiled else space["f"]
    found: list[Any] = []
    with _recompiling(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for call in calls:
            out = io.StringIO()
            result, error = None, None
            arguments = fresh_value(call)
            with contextlib.redirect_stdout(out):
                try:
                    result = describe(function(*arguments))
                except Exception as caught:  # noqa: BLE001  (compared)
                    error = _description(caught)
            watched = [describe(eval(w, space)) for w in space.get("WATCH", ())]
            printed = tokens(out.getvalue())
            found.append((result, error, printed, watched, describe(arguments)))
    return found, any(_WARNING in str(w.message) for w in said)


@contextlib.contextmanager
def _recompiling() -> Iterator[None]:
    """Return a context manager in which a changed capture makes a function compile again."""
    before = ms.get_context("stale_captures")
    ms.set_context(stale_captures="recompile")
    try:
        yield
    finally:
        ms.set_context(stale_captures=before)


def _description(error: BaseException | None) -> Any:
    """Return class, arguments, attributes, cause and context of an exception, to be compared."""
    if error is None:
        return None
    kind = type(error).__name__
    arguments = [_LOCATION.sub("", a) if isinstance(a, str) else describe(a) for a in error.args]
    if kind in ("TypeError", "UnboundLocalError"):  # whose texts differ between versions of Python
        arguments = []
    attributes = {k: describe(v) for k, v in vars(error).items() if not k.startswith("_")}
    context = None if error.__suppress_context__ else error.__context__
    return (kind, arguments, attributes, _description(error.__cause__), _description(context))
