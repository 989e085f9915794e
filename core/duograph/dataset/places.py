"""Names, in an error of reading rows, the line where the step of the pipeline was written.

Rows are computed only when they are read, so that the traceback shows the loop that reads them.
`Dataset` remembers the line of the user that made it; what reads rows calls `name_step` after an
error.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable
from typing import TypeVar, cast

from ..errors import DuographError
from ..tracebacks import short, user_frame

__all__ = ["Placed", "name_step", "naming_steps"]

T = TypeVar("T", bound=Callable[..., object])
_HEAD = "  step of the pipeline at "
_LONGEST = 80  # characters of a source line in a message


class Placed:
    """Base class of `Dataset`: the steps of a pipeline know where the user wrote them.

    Attributes:
        step_place: file and line of the user's code that made the step; None if it is in no file.
    """

    step_place: tuple[str, int] | None = None


def name_step(error: Exception) -> None:
    """Add to an error the place of the innermost step of a pipeline that raised it.

    An error of duograph gets it in its message, another one as a note (from Python 3.11 on).
    """
    said = "\n".join([*map(str, error.args[:1]), *getattr(error, "__notes__", ())])
    if _HEAD in said:
        return
    trace, found = error.__traceback__, None
    reader = user_frame()
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        if isinstance(owner, Placed):
            found = owner.step_place or found
        trace = trace.tb_next
    if found is None or found == reader:
        return
    file, line = found
    source = linecache.getline(file, line).strip()
    if len(source) > _LONGEST:
        source = source[: _LONGEST - 3] + "..."
    text = f"{_HEAD}{short(file)}:{line}" + (f": `{source}`" if source else " (no source)")
    if isinstance(error, DuographError) and error.args:
        error.args = (f"{error.args[0]}\n{text}", *error.args[1:])
    elif sys.version_info >= (3, 11):
        error.add_note(text)


def naming_steps(method: T) -> T:
    """Decorate a method that reads rows, so that its errors name the step of the pipeline."""

    @functools.wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            name_step(error)
            raise

    return cast("T", call)
