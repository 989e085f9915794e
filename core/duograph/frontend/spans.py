"""Places in the user's source: of a piece of syntax, of an error that passes through it, of the two
sides of a join.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..errors import JoinError
from .diagnostics import Span, add_lines, code_end
from .source import Source

__all__ = ["span_of", "begin", "place_of", "note_place", "begin_at", "chain_of", "explain_join"]


def span_of(source: Source, node: Any) -> Span:
    """The place of a piece of syntax; kept on it. Of a compound statement, its head."""
    found: Span | None = getattr(node, "_duograph_span", None)
    if found is None:
        line = getattr(node, "lineno", 1)
        text = source.lines[line - 1].rstrip("\n") if 0 < line <= len(source.lines) else ""
        last = _last(node)
        end = getattr(last, "end_col_offset", None)
        if last is None or end is None or last.end_lineno != line:
            end = len(text[: code_end(text)].encode())
        column = getattr(node, "col_offset", 0)
        found = node._duograph_span = Span(source.file, line, column, end, text, source.name)
    return found


def _last(node: Any) -> Any:
    """The syntax that ends what a caret is to mark; None for the end of the line."""
    if isinstance(node, (ast.If, ast.While)):
        return node.test
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.iter
    return None if hasattr(node, "body") and isinstance(node.body, list) else node


def begin(t: Any, frame: Any, node: Any) -> None:
    """A piece of syntax is about to be evaluated: nodes that are made from here on come from it."""
    frame.node = node
    if not frame.source.internal:
        t.builder.span = span_of(frame.source, node)


def place_of(t: Any) -> tuple[Span, ...]:
    """Where the evaluation is: the calls, outermost first."""
    return tuple(span_of(f.source, f.node) for f in t.frames)


def note_place(t: Any, error: BaseException, frame: Any, node: Any) -> None:
    """Remember where in a call an error arose; the first mark, the innermost syntax, is kept for
    each call.
    """
    try:
        depth = len(t.frames)
        chain = getattr(error, "_duograph_chain", None)
        if chain is None:
            chain = error._duograph_chain = []  # type: ignore[attr-defined]
            error._duograph_conditions = t.conditions  # type: ignore[attr-defined]
        elif chain[-1][0] <= depth:
            return
        chain.append((depth, span_of(frame.source, node)))
    except AttributeError:  # an exception of a class with slots
        pass


def begin_at(t: Any, error: BaseException, source: Source, node: Any) -> None:
    """An error arises at `node` of a function that is not entered."""
    error._duograph_chain = [(len(t.frames) + 1, span_of(source, node))]  # type: ignore[attr-defined]


def chain_of(error: BaseException) -> list[Span]:
    """The calls that led to an error, outermost first."""
    return [span for _, span in reversed(getattr(error, "_duograph_chain", ()))]


# ---- joins --------------------------------------------------------------------------------------


def explain_join(error: JoinError, source: Source, body: Sequence[ast.stmt], i: int) -> None:
    """Say of each side of a join at statement `i` of a block on which line its value is made."""
    if not error.sides:
        return
    node: Any = body[i]
    name = error.name.partition("[")[0]
    rest = body[i + 1 :]
    if isinstance(node, ast.If):
        blocks = [node.body, node.orelse or rest]
    elif isinstance(node, (ast.While, ast.For)):
        blocks = [body[:i], node.body]
    else:
        return
    found = [_maker(block, name) for block in blocks]
    add_lines(
        error,
        [None if n is None else (n.lineno, source.lines[n.lineno - 1]) for n in found],
    )


def _maker(block: Sequence[ast.stmt], name: str) -> Any:
    """The last statement of a block that returns, or that binds the name."""
    last = None
    for statement in block:
        for node in ast.walk(statement):
            if not isinstance(node, ast.stmt):
                continue
            if isinstance(node, ast.Return) if not name.isidentifier() else _binds(node, name):
                last = node
    return last


def _binds(node: Any, name: str) -> bool:
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return any(
        isinstance(x, ast.Name) and x.id == name
        for target in targets
        if isinstance(target, ast.AST)
        for x in ast.walk(target)
    )
