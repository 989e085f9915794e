"""Adds lines to an exception of another class than duograph's, such as where it was raised.

Such an exception belongs to Python, to a library or to the user: its class and its message stay as
they are. Nothing here runs unless an error is raised.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .errors import DuographError

__all__ = ["add_note"]


def add_note(error: BaseException, text: str) -> None:
    """Add a text to an error as a note, unless the error already has this note.

    Python 3.10 prints no notes; there the notes also become the error's `__cause__`, unless the
    error has another cause.
    """
    notes: Sequence[str] = getattr(error, "__notes__", ())
    if text in notes:
        return  # one object, raised again
    if sys.version_info >= (3, 11):
        error.add_note(text)
        return
    try:
        error.__notes__ = [*notes, text]
    except Exception:  # noqa: BLE001  (a user's class may refuse attributes)
        return
    cause = error.__cause__
    ours = type(cause) is DuographError and cause.args == (_cause_text(notes),)
    if cause is None or ours:
        made = DuographError(_cause_text([*notes, text]))
        if cause is not None:
            made.__cause__ = cause.__cause__
        elif not error.__suppress_context__:
            # Python shows no context beside a cause: the error that was being handled comes first
            made.__cause__ = error.__context__
        error.__cause__ = made


def _cause_text(notes: Sequence[str]) -> str:
    """Return the message of the cause that shows an error's notes in Python 3.10."""
    return "\n".join(["where the error was raised", *notes])
