"""Tracks the source spans of the syntax being evaluated and of errors.

Every step of the evaluation calls `begin_node`, so that graph nodes get the span of the current
syntax. For each error, the spans of the calls that it passed through are recorded, and
`compiler.evaluate` adds them to the message. A join error also names the lines that produced its
two sides. The module must not evaluate syntax.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence

from ...call_names import Link, state_of
from ...errors import DuographError, JoinError
from ...nn.cell import Cell
from ..diagnostics import Span, add_lines, code_end
from ..source import Source
from ..state.calls import ErrorTrail, Frame
from ..state.evaluation import Evaluation
from ..types import Value


def span_of(source: Source, node: Value) -> Span:
    """Return the source span of a syntax node, or of a compound statement's header line; cached."""
    found: Span | None = getattr(node, "_duograph_span", None)
    if found is None:
        line = getattr(node, "lineno", 1)
        text = source.lines[line - 1].rstrip("\n") if 0 < line <= len(source.lines) else ""
        last = _caret_end(node)
        end = getattr(last, "end_col_offset", None)
        if last is None or end is None or last.end_lineno != line:
            end = len(text[: code_end(text)].encode())
        column = getattr(node, "col_offset", 0)
        found = node._duograph_span = Span(source.file, line, column, end, text, source.name)
    return found


def _caret_end(node: Value) -> Value:
    """Return the syntax node at whose end the underline of an error at `node` ends.

    An error message underlines the source of `node` with carets (^). The result is the condition of
    an `if` or `while`, the iterable of a `for`, otherwise `node` itself. For other statements with
    a body, such as `def` or `with`, it is None: the underline ends at the end of the line.
    """
    if isinstance(node, (ast.If, ast.While)):
        return node.test
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.iter
    return None if hasattr(node, "body") and isinstance(node.body, list) else node


def begin_node(ev: Evaluation, frame: Frame, node: Value) -> None:
    """Set the syntax node being traced; graph nodes appended from now on get its source span."""
    frame.node = node
    if not frame.source.internal:
        span = span_of(frame.source, node)
        stage, part = ev.calls.stage, ev.calls.part
        if stage is not None or part is not None:
            span = span._replace(stage=stage, part=part)
        ev.builder.span = span


@contextlib.contextmanager
def inside_call(ev: Evaluation, link: Link) -> Iterator[None]:
    """Return a context manager that adds a framework call to the source span of new graph nodes.

    `link` describes the call, for example of a layer. A node that is appended inside the context
    and later fails can therefore name the call in its error message (see `call_names`).
    """
    builder, span = ev.builder, ev.builder.span
    if isinstance(span, Span):
        builder.span = span._replace(
            chain=(*span.chain, link), stage=ev.calls.stage, part=ev.calls.part
        )
    try:
        yield
    finally:
        builder.span = span


def internal_span(cell: Cell) -> Span:
    """Return the span of the `construct` of a library's Cell, for nodes that no user's line made.

    Only pipeline stages need it: a node's stage is stored in its span.
    """
    code = getattr(type(cell).construct, "__code__", None)
    file, line = ("", 0) if code is None else (code.co_filename, code.co_firstlineno)
    return Span(file, line, 0, 0, "", type(cell).__qualname__)


def call_spans(ev: Evaluation) -> tuple[Span, ...]:
    """Return the source span being traced in each unfinished user call, outermost call first.

    The span of the innermost call of the user's own code also holds, in `chain`, the unfinished
    framework calls that it has made, such as calls of layers.
    """
    spans = [span_of(f.source, f.node) for f in ev.calls.frames]
    built = ev.builder.span
    for i in reversed(range(len(spans))):
        if not ev.calls.frames[i].source.internal:
            if isinstance(built, Span):
                spans[i] = spans[i]._replace(chain=built.chain)
            break
    return tuple(spans)


def note_error_span(ev: Evaluation, error: BaseException, frame: Frame, node: Value) -> None:
    """Record for an error the source span at which it left the current call.

    Only the first span for each call, which is that of the innermost syntax, is recorded, in
    `ev.calls.trails`.
    """
    depth = len(ev.calls.frames)
    if isinstance(error, DuographError) and not frame.source.internal:
        state_of(error).is_named = True
    trail = ev.calls.trails.get(id(error))
    if trail is None:
        trail = ev.calls.trails[id(error)] = ErrorTrail(error, ev.journal.conditions)
    elif trail.spans[-1][0] <= depth:
        return
    trail.spans.append((depth, span_of(frame.source, node)))


def set_error_span(ev: Evaluation, error: BaseException, source: Source, node: Value) -> None:
    """Record for an error its source span in a function whose tracing has not begun.

    Spans recorded before for this error are dropped.
    """
    trail = ev.calls.trails[id(error)] = ErrorTrail(error, ev.journal.conditions)
    trail.spans.append((len(ev.calls.frames) + 1, span_of(source, node)))


def error_spans(ev: Evaluation, error: BaseException) -> list[Span]:
    """Return the recorded source spans of the calls that led to an error, outermost first."""
    trail = ev.calls.trails.get(id(error))
    return [] if trail is None else [span for _, span in reversed(trail.spans)]


# ---- join errors --------------------------------------------------------------------------------


def explain_join(error: JoinError, source: Source, body: Sequence[ast.stmt], i: int) -> None:
    """Add to a join error's message the lines that set the value in each branch or iteration.

    The error arose at statement `i` of the block `body`, which belongs to `source`.
    """
    if not error.sides:
        return
    node: Value = body[i]
    name = error.name.partition("[")[0]
    rest = body[i + 1 :]
    if isinstance(node, ast.If):
        blocks = [node.body, node.orelse or rest]
    elif isinstance(node, (ast.While, ast.For)):
        blocks = [body[:i], node.body]
    else:
        return
    found = [_last_binding(block, name) for block in blocks]
    add_lines(
        error,
        [None if n is None else (n.lineno, source.lines[n.lineno - 1]) for n in found],
    )


def explain_missing_return(ev: Evaluation, error: JoinError, frame: Frame) -> None:
    """Add the line of the last `return` to the error for a function that may end without one.

    The location of the error becomes that of the statement of the body that has the `return`.
    """
    source = frame.source
    for statement in reversed(source.body):
        found = _last_binding([statement], "the result")
        if found is not None:
            add_lines(error, [(found.lineno, source.lines[found.lineno - 1]), None])
            note_error_span(ev, error, frame, statement)
            return


def _last_binding(block: Sequence[ast.stmt], name: str) -> Value:
    """Return the last statement in a block that assigns to a variable, or None.

    Nested statements count as well. If `name` is not an identifier, such as "the result", it stands
    for the function's result, and the last `return` statement is returned.
    """
    last = None
    for syntax in block:
        for node in ast.walk(syntax):
            if not isinstance(node, ast.stmt):
                continue
            if isinstance(node, ast.Return) if not name.isidentifier() else _binds(node, name):
                last = node
    return last


def _binds(node: Value, name: str) -> bool:
    """Return whether a statement's syntax node has the variable `name` in a target.

    Only targets of assignments, `del` and the header of a `for` are searched; names that an import,
    a `with` or a `def` binds are not found.
    The name counts anywhere in a target, as in ``name[0] = 1``. Nested statements do not count.
    """
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return any(
        isinstance(x, ast.Name) and x.id == name
        for target in targets
        if isinstance(target, ast.AST)
        for x in ast.walk(target)
    )
