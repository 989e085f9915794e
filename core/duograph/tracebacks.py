"""Hides the framework's own frames in tracebacks, and finds the user's line of an error.

`install` registers the hooks with which Python prints uncaught exceptions. `Cell.__call__`, the
wrappers of public functions and compiled functions call `hide_own_frames`, so that tracebacks that
a program prints or logs itself are short as well. `errors.py` asks `user_line` for the location in
`str(error)`. Nothing here runs unless an error is raised. The environment variable
``DUOGRAPH_TRACEBACK=full``, or the logging level debug, keeps all frames.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import os
import sys
import threading
from types import FrameType, TracebackType

__all__ = [
    "called_at",
    "defined_at",
    "hide_own_frames",
    "install",
    "is_internal",
    "is_users",
    "prepare_for_printing",
    "short",
    "user_frame",
    "user_line",
]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Modules whose frames are hidden below a frame of the framework, which has called them.
_CALLED = frozenset(sys.stdlib_module_names) | {"numpy"}


def is_internal(file: str) -> bool:
    """Return whether a source file belongs to the installed duograph package."""
    return file.startswith(_PACKAGE)


def short(file: str) -> str:
    """Return a file path for messages: relative if the file is below the working directory."""
    if not os.path.isabs(file):
        return file
    try:
        here = os.getcwd().rstrip(os.sep) + os.sep
    except OSError:  # the folder was deleted
        return file
    return file[len(here) :] if file.startswith(here) else file


def hide_own_frames(error: BaseException, located: bool = False) -> None:
    """Remove the framework's frames from an error's traceback.

    It is called where the error leaves the framework, and does nothing if DUOGRAPH_TRACEBACK=full
    or the logging level debug asks for all frames. If no frame of the user would remain, an
    error of Python keeps all frames, because `call_errors` may still explain it; an error of
    duograph, and one whose message has a location (`located`), loses them all the same.
    """
    if error.__traceback__ is None or _wants_all():
        return
    kept = _visible(error.__traceback__)
    if kept or located or _is_ours(error):
        error.__traceback__ = _joined(kept)


def is_users(trace: TracebackType | None) -> bool:
    """Return whether any frame of a traceback is the user's code; False for None.

    Frames of the framework, and of the libraries that it called, do not count.
    """
    return bool(_visible(trace))


def prepare_for_printing(error: BaseException) -> None:
    """Prepare an uncaught error for printing: hide the framework's frames in it and in its causes.

    The causes are the errors in ``__cause__`` and ``__context__``. A cause whose traceback has no
    frame of the user, and that has no notes, explains nothing and is removed. Nothing is changed if
    DUOGRAPH_TRACEBACK=full or the logging level debug asks for all frames.
    """
    if _wants_all():
        return
    seen: set[int] = set()
    pending: list[BaseException] = [error]
    while pending:
        found = pending.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        _advise(found)
        kept = _visible(found.__traceback__)
        if kept:
            found.__traceback__ = _joined(kept)
        for name in ("__cause__", "__context__"):
            earlier = getattr(found, name)
            if earlier is None:
                continue
            if _visible(earlier.__traceback__) or _has_notes(earlier):
                pending.append(earlier)
            else:
                with contextlib.suppress(Exception):  # a user's class may refuse it
                    suppressed = found.__suppress_context__
                    setattr(found, name, None)
                    found.__suppress_context__ = suppressed


def user_line(trace: TracebackType | None) -> str:
    """Return where the user's code was when an error was raised, such as "train.py:31 in step".

    This is the innermost frame that belongs neither to the framework nor to a library that the
    framework called. Returns "" if there is none, or if its source is in no file.
    """
    for tb in reversed(_visible(trace)):
        code = tb.tb_frame.f_code
        if _root(tb.tb_frame) in _CALLED:
            continue
        if code.co_filename.startswith("<"):
            return ""
        inside = "" if code.co_name == "<module>" else f" in {code.co_name}"
        return f"{short(code.co_filename)}:{tb.tb_lineno}{inside}"
    return ""


def defined_at(function: object) -> str:
    """Return where the user defined a function or method, such as " (train.py:31)".

    The result is "" for functions of the framework and those whose source is in no file.
    """
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or is_internal(code.co_filename) or code.co_filename.startswith("<"):
        return ""
    return f" ({short(code.co_filename)}:{code.co_firstlineno})"


def called_at() -> str:
    """Return the line of user code that called the framework, such as "train.py:31".

    The result is "" if there is none, or if its source is in no file.
    """
    found = user_frame()
    return f"{short(found[0])}:{found[1]}" if found is not None else ""


def user_frame() -> tuple[str, int] | None:
    """Return file and number of the user's line that is running; None if it is in no file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith("<"):
        return None
    return frame.f_code.co_filename, frame.f_lineno


def install() -> None:
    """Make Python hide the framework's frames when it prints an uncaught exception."""
    before, before_in_thread = sys.excepthook, threading.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        prepare_for_printing(error)
        before(kind, error, error.__traceback__ if error.__traceback__ is not None else trace)

    def hook_of_thread(args: threading.ExceptHookArgs) -> None:
        error = args.exc_value
        if error is not None:
            prepare_for_printing(error)
            trace = error.__traceback__
            args = threading.ExceptHookArgs((args.exc_type, error, trace, args.thread))
        before_in_thread(args)

    sys.excepthook, threading.excepthook = hook, hook_of_thread


def _advise(error: BaseException) -> None:
    """Add a note to an error that Python raised, with what to write instead, if that is known.

    A typical cause is a name that another library has and MindSpore lacks.
    """
    if not isinstance(error, (AttributeError, KeyError, TypeError, ValueError)) or _is_ours(error):
        return
    # late: `advice` imports the exceptions, whose module imports this one
    text = importlib.import_module(".advice", __package__).attribute_advice(error)
    if text and isinstance(error, AttributeError):
        error.obj = None  # else Python would suggest another name
    if text and sys.version_info >= (3, 11):
        error.add_note(f"  {text}")
    elif text:
        sys.stderr.write(f"{text}\n")


def _wants_all() -> bool:
    level = os.environ.get("GLOG_v")  # noqa: SIM112 (MindSpore's name)
    if level == "0" or os.environ.get("DUOGRAPH_TRACEBACK") == "full":
        return True
    return logging.getLogger("duograph").isEnabledFor(logging.DEBUG)


def _visible(trace: TracebackType | None) -> list[TracebackType]:
    """Return the frames of a traceback that are shown to the user, outermost first.

    Frames of the framework are left out, and so are frames of NumPy and of Python's standard
    library that the framework called.
    """
    kept, below = [], False
    while trace is not None:
        frame = trace.tb_frame
        if _is_own(frame):
            below = True
        elif not below or _root(frame) not in _CALLED:
            below = False
            kept.append(trace)
        trace = trace.tb_next
    return kept


def _joined(frames: list[TracebackType]) -> TracebackType | None:
    made: TracebackType | None = None
    for tb in reversed(frames):
        made = TracebackType(made, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return made


def _is_own(frame: FrameType) -> bool:
    return is_internal(frame.f_code.co_filename) or _root(frame).startswith("duograph_")


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_ours(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == "duograph"


def _has_notes(error: BaseException) -> bool:
    return bool(getattr(error, "__notes__", ()))
