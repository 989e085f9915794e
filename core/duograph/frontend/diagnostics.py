"""Errors of compiled code in the user's terms: what failed, the user's own calls, the source line
with a caret.

```
ShapeError: matmul: x is (2, 3) and y is (4, 5); x.shape[-1] must equal y.shape[-2]
  train.py:31 in train_step
  model.py:12 in forward
    return x @ weight
           ^^^^^^^^^^
```

An error that duograph raises says this in its message. An error that the user's code raises keeps
its arguments, because other code may look at them; the place is a note on it (PEP 678).
"""

from __future__ import annotations

import ast
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from ..errors import DuographError, GraphError, JoinError, UnsupportedSyntaxError
from ..types import TensorType

__all__ = [
    "Span",
    "located",
    "is_located",
    "place_text",
    "unsupported",
    "join_error",
    "add_lines",
    "code_end",
    "is_internal",
    "forget_own_frames",
    "IN_BRANCHES",
    "AROUND_A_TURN",
]

MAX_LINES = 15  # of a whole message
MAX_PLACE = 10  # of them for the place
WIDTH = 100  # of a source line; more of it is cut around the caret

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MARK = "_duograph_located"

E = TypeVar("E", bound=BaseException)


class Span(NamedTuple):
    """A place in source.

    Attributes:
        file: as the code object names it: a path, or such as `<stdin>`.
        line: from 1.
        column, end_column: in bytes of UTF-8, from 0, as `ast` counts.
        text: the source line.
        function: in which it is, "" where that is unknown.
    """

    file: str
    line: int
    column: int
    end_column: int
    text: str
    function: str = ""

    def __str__(self) -> str:
        """`model.py:12 in forward`; a file below the working directory is named from there."""
        where = f"{short(self.file)}:{self.line}"
        return f"{where} in {self.function}" if self.function else where


def short(file: str) -> str:
    """A path as a message shows it."""
    if not os.path.isabs(file):
        return file
    here = os.getcwd().rstrip(os.sep) + os.sep
    return file[len(here) :] if file.startswith(here) else file


def located(error: E, spans: Sequence[Span]) -> E:
    """Say in an error where it arose.

    Args:
        error: any exception, raised while compiling or while running compiled code.
        spans: the calls that led there, outermost first; the last is the place itself. Calls in
            duograph's own files are left out.

    Returns:
        the same object: its class, and with it every `except`, stays; a second call adds nothing.
    """
    own = [s for s in spans if not is_internal(s.file)]
    if not own or is_located(error):
        return error
    remedy = getattr(error, "remedy", "") if isinstance(error, UnsupportedSyntaxError) else ""
    head = _message(error)
    if remedy and head.endswith(remedy):  # it stands last, after the place
        head = head[: -len(remedy)].rstrip()
    tail = ["  " + remedy] if remedy else []
    room = MAX_LINES - len(tail)
    rewritten = isinstance(error, DuographError) and _says_its_argument(error)
    lines = head.splitlines() or [""]
    place = place_text(own, max(4, min(MAX_PLACE, room - len(lines))))
    if rewritten:
        if len(lines) > room - len(place):
            lines = [*lines[: room - len(place) - 1], "..."]
        error.args = ("\n".join([*lines, *place, *tail]), *error.args[1:])
    else:
        _note(error, "\n".join([*place, *tail]))
    if isinstance(error, (DuographError, NameError)) and not isinstance(error, GraphError):
        forget_own_frames(error)
    with contextlib.suppress(Exception):  # a class of the user's that refuses attributes
        setattr(error, _MARK, True)
    return error


def forget_own_frames(error: BaseException) -> None:
    """Leave duograph's own frames out of the traceback of an error that explains itself; GLOG_v=0
    keeps them.
    """
    if logging.getLogger("duograph").isEnabledFor(logging.DEBUG):
        return
    kept = []
    found = error.__traceback__
    while found is not None:
        if not is_internal(found.tb_frame.f_code.co_filename):
            kept.append(found)
        found = found.tb_next
    made: TracebackType | None = None
    for tb in reversed(kept):
        made = TracebackType(made, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    error.__traceback__ = made


def is_internal(file: str) -> bool:
    """Whether a file is one of duograph's own."""
    return file.startswith(_PACKAGE)


def is_located(error: BaseException) -> bool:
    """Whether an error says where it arose."""
    return bool(getattr(error, _MARK, False))


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (a user's `__str__` may raise anything)
        return type(error).__name__


def _says_its_argument(error: BaseException) -> bool:
    """Whether the message is the first argument, so that it can be rewritten."""
    return bool(error.args) and isinstance(error.args[0], str) and _message(error) == error.args[0]


def _note(error: BaseException, text: str) -> None:
    if sys.version_info >= (3, 11):
        error.add_note(text)
        return
    # Python 3.10 prints no notes: there the traceback shows the place as the cause, if there is
    # none.
    try:
        error.__notes__ = [*getattr(error, "__notes__", []), text]
    except Exception:  # noqa: BLE001  (as above)
        return
    if error.__cause__ is None:
        error.__cause__ = DuographError("in compiled code\n" + text)


# ---- the text of a place ------------------------------------------------------------------------


def place_text(spans: Sequence[Span], room: int = MAX_PLACE) -> list[str]:
    """The chain of calls and the source line of the innermost, as at most `room` lines (4 or more)."""
    calls = [f"  {span}" for span in spans]
    source = _caret(spans[-1])
    allowed = room - len(source)
    if len(calls) > allowed:
        first = max(allowed - 1, 1) // 2  # of the lines kept, as many from each end
        last = max(allowed - 1, 1) - first
        left_out = f"  ... {len(calls) - first - last} more calls"
        calls = [*calls[:first], left_out, *calls[len(calls) - last :]]
    return [*calls, *source]


def _caret(span: Span) -> list[str]:
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
    if len(text) - indent > WIDTH:  # a window that begins a little before the caret
        cut = max(indent, min(start - WIDTH // 4, len(text) - WIDTH))
        text = text[: cut + WIDTH]
        end = min(end, len(text))
    begin = cut or indent
    return [
        "    " + text[begin:],
        "    " + " " * _columns(text[begin:start]) + "^" * max(1, _columns(text[start:end])),
    ]


def _columns(text: str) -> int:
    """Columns that a text takes in a terminal."""
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


# ---- errors of the front end --------------------------------------------------------------------


def unsupported(
    construct: ast.AST | str,
    remedy: str,
    span: Span | None = None,
    why: str = "is not supported inside jit",
) -> UnsupportedSyntaxError:
    """A construct that compiled code cannot have.

    Args:
        construct: a node of a syntax tree, or its name ("Yield"), or a description.
        span: its place; None where the caller adds the call chain.
        remedy: what to write instead, one sentence.
    """
    name = construct if isinstance(construct, str) else type(construct).__name__
    kind = _syntax_kind(name)
    head = f"Unsupported {kind} {name!r}: it {why}" if kind else f"{name} {why}"
    error = UnsupportedSyntaxError(head, construct=name, remedy=remedy)
    return error if span is None else located(error, [span])


def _syntax_kind(name: str) -> str:
    found = getattr(ast, name, None)
    if not isinstance(found, type):
        return ""
    if issubclass(found, ast.stmt):
        return "statement"
    return "expression" if issubclass(found, ast.expr) else ""


IN_BRANCHES = ("in the 'if' branch", "in the 'else' branch")
AROUND_A_TURN = ("before a turn of the loop", "after it")


def join_error(
    name: str,
    got_then: Any,
    got_else: Any,
    span: Span | None = None,
    *,
    where: tuple[str, str] = IN_BRANCHES,
) -> JoinError:
    """Two branches, or two turns of a loop, that leave different types under one name.

    Args:
        name: a variable, or such as "the result".
        got_then, got_else: what each leaves: a `TensorType`, anything with one, or words.
        span: of the condition; None where the caller adds the call chain.
        where: says of each side which one it is.
    """
    then, orelse = _type_of(got_then), _type_of(got_else)
    sides = (
        f"{_described(got_then, then)} {where[0]}",
        f"{_described(got_else, orelse)} {where[1]}",
    )
    what = f"variable {name!r}" if name.isidentifier() else name
    lines = [
        f"Cannot join the return values of different branches: {what} is {sides[0]} and {sides[1]}"
    ]
    in_loop = where is AROUND_A_TURN
    advice = "give both a value of one type"
    if then is not None and orelse is not None:
        why, advice = _difference(name, then, orelse, in_loop)
        lines.append(why)
    elif in_loop and orelse is not None and name.isidentifier():
        dtype = _spelt(orelse.dtype)
        advice = f"start with such a Tensor, `{name} = ops.zeros({orelse.shape}, {dtype})`"
    lines.append(
        f"  The condition of {'the loop' if in_loop else 'the branches'} is a Tensor: {advice}"
    )
    error = JoinError("\n".join(lines))
    error.name, error.sides = name, sides
    return error if span is None else located(error, [span])


def _spelt(dtype: Any) -> str:
    return repr(dtype).replace("duograph.", "ms.")


def _difference(name: str, then: TensorType, orelse: TensorType, in_loop: bool) -> tuple[str, str]:
    """What differs between two types, and what to do about it."""
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
            advice.append("keep one shape: make it as large as it gets before the loop")
        elif then.size == orelse.size:
            advice.append(f"reshape one side, such as `.reshape({then.shape})`")
        else:
            advice.append("make both the same shape, such as with `ops.broadcast_to`")
    return "; ".join(reasons), " and ".join(advice)


def add_lines(error: JoinError, lines: Sequence[tuple[int, str] | None]) -> None:
    """Say of each side of a join the line that it comes from."""
    text = str(error)
    for side, found in zip(error.sides, lines):
        if found is not None and found[0]:
            text = text.replace(side, f"{side} (line {found[0]}: {shortened(found[1])})", 1)
    error.args = (text, *error.args[1:])
    error.sides = ()


def shortened(text: str) -> str:
    """Source as a part of a sentence."""
    text = text[: code_end(text)].strip()
    return text if len(text) <= 40 else text[:37] + "..."


def code_end(line: str) -> int:
    """Where a line of source ends and white space or a comment begins."""
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


def _type_of(value: Any) -> TensorType | None:
    if isinstance(value, TensorType):
        return value
    found = getattr(value, "_type", None)
    return found if isinstance(found, TensorType) else None


def _described(value: Any, type_: TensorType | None) -> str:
    if type_ is not None:
        return f"a Tensor of shape {type_.shape} and dtype {type_.dtype}"
    return value if isinstance(value, str) else f"{type(value).__name__} {value!r}"
