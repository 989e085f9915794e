"""Adds the user's source location to errors of compiled code: call chain and a caret line.

```
ShapeError: matmul: x is (2, 3) and y is (4, 5); x.shape[-1] must equal y.shape[-2].
  train.py:31 in train_step
  model.py:12 in forward
    return x @ weight
           ^^^^^^^^^^
```

`located` writes the location into the message of an error of the framework. An error of the user's
code keeps its arguments, because other code may inspect them; `located` then adds the location as a
note (PEP 678). The front end and `compiler` call `located`. The module never evaluates the user's
source.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..call_names import Link, name_chain
from ..error_notes import add_note
from ..errors import DuographError, GraphError, JoinError, UnsupportedSyntaxError
from ..execution.source_spans import SOURCE_ATTRIBUTE
from ..tracebacks import hide_own_frames, is_internal, short
from ..types import TensorType

if TYPE_CHECKING:
    from ..dtype import DType

__all__ = [
    "Span",
    "located",
    "is_located",
    "location_text",
    "unsupported",
    "join_error",
    "add_lines",
    "code_end",
    "forget_marks",
    "IN_BRANCHES",
    "AROUND_AN_ITERATION",
]

MAX_LINES = 15  # maximal lines of a message
MAX_LOCATION = 10  # maximal lines of them for the location
WIDTH = 100  # maximal columns of a source line, cut around the caret

_MARK = "_duograph_located"

E = TypeVar("E", bound=BaseException)


class Span(NamedTuple):
    """A range of columns on one line of a source file, with the text and enclosing function.

    Attributes:
        file: the file name of the code object: a path, or a name such as `<stdin>`.
        line: counted from 1.
        column, end_column: byte offsets into the UTF-8 line, counted from 0, as in `ast`.
        text: the source line.
        function: the enclosing function; "" if unknown.
        chain: the framework's functions that this line had called and that had not returned yet,
            outermost first; `call_names.called` makes a name for messages of it.
        stage: the pipeline stage of the innermost open call of a Cell that has one, or None.
        part: the micro-batch of a pipeline that the line computes, or None.
        backward: whether the node with this span computes a gradient of what the line computes; it
            is only set where there is a stage or a part.
    """

    file: str
    line: int
    column: int
    end_column: int
    text: str
    function: str = ""
    chain: tuple[Link, ...] = ()
    stage: int | None = None
    part: int | None = None
    backward: bool = False

    def __str__(self) -> str:
        where = f"{short(self.file)}:{self.line}"
        return f"{where} in {self.function}" if self.function else where


def located(error: E, spans: Sequence[Span]) -> E:
    """Add the user's call chain and source line to an error.

    The message of an error of duograph is extended; an error of another class gets a note.

    Args:
        error: any exception, raised while compiling or while running compiled code.
        spans: the calls that led to the error, outermost first; the last one is the location of the
            error itself. Calls in the framework's files are omitted.

    Returns:
        the same error object. An error that already has a location is not changed.
    """
    own = [s for s in spans if not is_internal(s.file)]
    if not own or is_located(error):
        return error
    if isinstance(error, DuographError):
        name_chain(error, own[-1].chain)
    remedy = getattr(error, "remedy", "") if isinstance(error, UnsupportedSyntaxError) else ""
    head = _message(error)
    if remedy and head.endswith(remedy):  # it is printed last, after the location
        head = head[: -len(remedy)].rstrip()
    tail = ["  " + remedy] if remedy else []
    room = MAX_LINES - len(tail)
    rewritten = isinstance(error, DuographError) and _says_its_argument(error)
    lines = head.splitlines() or [""]
    location = location_text(own, max(4, min(MAX_LOCATION, room - len(lines))))
    if rewritten:
        if len(lines) > room - len(location):
            lines = [*lines[: room - len(location) - 1], "..."]
        error.args = ("\n".join([*lines, *location, *tail]), *error.args[1:])
    else:
        add_note(error, "\n".join([*location, *tail]))
    if isinstance(error, (DuographError, NameError)) and not isinstance(error, GraphError):
        hide_own_frames(error, located=True)
    with contextlib.suppress(Exception):  # a user's class may refuse attributes
        setattr(error, _MARK, True)
    return error


def forget_marks(error: BaseException) -> None:
    """Delete the attributes that record an error's location, so that it can be located again.

    The attributes belong to the error object; `located` and `mark_source` set them. They are
    deleted when the error leaves the outermost call of compiled code, because the user may catch
    the error and raise it again elsewhere.
    """
    held = getattr(error, "__dict__", {})
    for name in (_MARK, SOURCE_ATTRIBUTE):
        held.pop(name, None)


def is_located(error: BaseException) -> bool:
    """Return whether `located` has already added a source location to an error."""
    return bool(getattr(error, _MARK, False))


def _message(error: BaseException) -> str:
    """Return `str(error)`, or the name of the error's class if its `__str__` raises."""
    try:
        return error.plain_text() if isinstance(error, DuographError) else str(error)
    except Exception:  # noqa: BLE001  (a user's `__str__` may raise anything)
        return type(error).__name__


def _says_its_argument(error: BaseException) -> bool:
    """Return whether `str(error)` is `error.args[0]`, so that replacing it changes the message."""
    return bool(error.args) and isinstance(error.args[0], str) and _message(error) == error.args[0]


# ---- text of a location ------------------------------------------------------------------------


def location_text(spans: Sequence[Span], room: int = MAX_LOCATION) -> list[str]:
    """Return the lines of an error's location: its call chain, then the source line with a caret.

    There are at most `room` lines; `room` must be 4 or more. Calls in the middle of a longer chain
    are replaced by a line with their number.
    """
    calls = [f"  {span}" for span in spans]
    source = _caret(spans[-1])
    allowed = room - len(source)
    if len(calls) > allowed:
        first = max(allowed - 1, 1) // 2  # keep as many lines from each end
        last = max(allowed - 1, 1) - first
        left_out = f"  ... {len(calls) - first - last} more calls"
        calls = [*calls[:first], left_out, *calls[len(calls) - last :]]
    return [*calls, *source]


def _caret(span: Span) -> list[str]:
    """Return the source line of a span, cut to WIDTH columns, and a line with carets below it.

    The result is empty if the source line is blank or unknown.
    """
    raw = span.text.encode()
    start = len(raw[: span.column].decode(errors="ignore"))
    end = len(raw[: span.end_column].decode(errors="ignore"))
    text = span.text.rstrip().expandtabs(1)
    if not text.strip():
        return []
    indent = len(text) - len(text.lstrip())
    start = max(start, indent)
    end = min(max(end, start + 1), max(len(text), start + 1))
    cut = 0
    if len(text) - indent > WIDTH:  # a window that begins slightly before the caret
        cut = max(indent, min(start - WIDTH // 4, len(text) - WIDTH))
        text = text[: cut + WIDTH]
        end = min(end, len(text))
    begin = cut or indent
    return [
        "    " + text[begin:],
        "    " + " " * _columns(text[begin:start]) + "^" * max(1, _columns(text[start:end])),
    ]


def _columns(text: str) -> int:
    """Return the number of terminal columns of a text; wide East Asian characters count 2."""
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


# ---- errors of the front end --------------------------------------------------------------------


def unsupported(
    construct: ast.AST | str,
    remedy: str,
    span: Span | None = None,
    why: str = "is not supported inside jit",
) -> UnsupportedSyntaxError:
    """Return the error for a construct that compiled code does not support.

    Args:
        construct: a syntax node, or its class name ("Yield"), or a description.
        remedy: what to write instead, in one sentence.
        span: its source location; if it is None, the error gets no location yet, because the caller
            will add the chain of calls with `located`.
        why: the predicate of the message, after the name of the construct.
    """
    name = construct if isinstance(construct, str) else type(construct).__name__
    kind = _syntax_kind(name)
    head = f"Unsupported {kind} {name!r}: it {why}" if kind else f"{name} {why}"
    error = UnsupportedSyntaxError(head, construct=name, remedy=remedy)
    return error if span is None else located(error, [span])


def _syntax_kind(name: str) -> str:
    """Return "statement" or "expression" for the name of a class of `ast`; "" for other names."""
    found = getattr(ast, name, None)
    if not isinstance(found, type):
        return ""
    if issubclass(found, ast.stmt):
        return "statement"
    return "expression" if issubclass(found, ast.expr) else ""


IN_BRANCHES = ("in the 'if' branch", "in the 'else' branch")
IN_LOOP = "Cannot join the iterations of a loop"
AROUND_AN_ITERATION = ("before an iteration of the loop", "after it")


def join_error(
    name: str,
    got_then: object,
    got_else: object,
    span: Span | None = None,
    *,
    where: tuple[str, str] = IN_BRANCHES,
) -> JoinError:
    """Return the error for two branches, or two iterations, that end with different types.

    Args:
        name: a variable, or a description such as "the result".
        got_then, got_else: the types of the two sides: a `TensorType`, an object that has one, or a
            description. The first side is the `if` branch, or the state before a loop iteration.
        span: location of the condition; if it is None, the caller will add the chain of calls with
            `located`.
        where: for each side, the phrase that follows its type in the message.
    """
    then, orelse = _type_of(got_then), _type_of(got_else)
    sides = (
        f"{_described(got_then, then)} {where[0]}",
        f"{_described(got_else, orelse)} {where[1]}",
    )
    what = f"variable {name!r}" if name.isidentifier() else name
    in_loop = where is AROUND_AN_ITERATION
    result = name.startswith("the result")
    head = f"{IN_LOOP}: {what}" if in_loop else f"Cannot join {what} after the branches: it"
    if result and not in_loop:
        head = f"Cannot join the return values of different branches: {what}"
    lines = [f"{head} is {sides[0]} and {sides[1]}"]
    advice = "give both a value of one type"
    if then is not None and orelse is not None:
        why, advice = _difference(name, then, orelse, in_loop)
        lines += [why] if result and not in_loop else []
    elif in_loop and orelse is not None and name.isidentifier():
        dtype = _spelt(orelse.dtype)
        advice = f"start with such a Tensor, `{name} = ops.zeros({orelse.shape}, {dtype})`"
    decides = "A Tensor decides how often the loop runs" if in_loop else (
        "The condition of the branches is a Tensor"
    )  # fmt: skip
    lines.append(f"  {decides}: {advice}")
    error = JoinError("\n".join(lines))
    error.name, error.sides = name, sides
    return error if span is None else located(error, [span])


def _spelt(dtype: DType) -> str:
    return repr(dtype).replace("duograph.", "ms.")


def _difference(name: str, then: TensorType, orelse: TensorType, in_loop: bool) -> tuple[str, str]:
    """Return (what differs between two tensor types, advice on how to match them), as texts.

    Args:
        name: the variable, or a description, that has the two types, for the advice.
        then, orelse: the types.
        in_loop: whether these are the types before and after a loop iteration, instead of those of
            two branches.
    """
    reasons, advice = [], []
    if then.dtype is not orelse.dtype:
        reasons.append(f"Type Join Failed: dtype1 = {then.dtype}, dtype2 = {orelse.dtype}")
        target = name if name.isidentifier() else "value"
        dtype = _spelt(orelse.dtype if in_loop else then.dtype)
        side = "before the loop" if in_loop else "one side"
        advice.append(f"cast {side}, such as `{target}.astype({dtype})`")
    if then.shape != orelse.shape:
        reasons.append(f"Shape Join Failed: shape1 = {then.shape}, shape2 = {orelse.shape}")
        if in_loop:
            advice.append("keep one shape, or give the number of iterations as a Python int")
        elif then.size == orelse.size:
            advice.append(f"reshape one side, such as `.reshape({then.shape})`")
        else:
            advice.append("make both the same shape, such as with `ops.broadcast_to`")
    return "; ".join(reasons), " and ".join(advice)


def add_lines(error: JoinError, lines: Sequence[tuple[int, str] | None]) -> None:
    """Add to the message of a join error the source line that set the value in each branch.

    Args:
        error: the error, whose attribute `sides` holds the two descriptions in its message.
        lines: for each side (line number, source line), or None if unknown.
    """
    text = error.plain_text()
    for side, found in zip(error.sides, lines):
        if found is not None and found[0]:
            text = text.replace(side, f"{side} (line {found[0]}: {shortened(found[1])})", 1)
    error.args = (text, *error.args[1:])
    error.sides = ()


def shortened(text: str) -> str:
    """Return a source line without its comment, cut to 40 characters for a message."""
    text = text[: code_end(text)].strip()
    return text if len(text) <= 40 else text[:37] + "..."


def code_end(line: str) -> int:
    """Return the column at which the code of a source line ends, before spaces and a comment."""
    quote = ""
    for i, c in enumerate(line):
        if quote:
            if c == quote and line[i - 1] != "\\":
                quote = ""
        elif c in "'\"":
            quote = c
        elif c == "#":
            return len(line[:i].rstrip())
    return len(line.rstrip())


def _type_of(value: object) -> TensorType | None:
    """Return a tensor type: the value itself, or the type of a tensor; None for other values."""
    if isinstance(value, TensorType):
        return value
    found = getattr(value, "_type", None)
    return found if isinstance(found, TensorType) else None


def _described(value: object, type_: TensorType | None) -> str:
    if type_ is not None:
        return f"a Tensor of shape {type_.shape} and dtype {type_.dtype}"
    return value if isinstance(value, str) else f"{type(value).__name__} {value!r}"
