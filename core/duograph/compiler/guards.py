"""Whether what a program captured is still so, and what happens when it is not: the policy
`stale_captures`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import context
from ..errors import CaptureError
from ..frontend.diagnostics import is_internal
from ..frontend.state.captures import Capture, Captures, same
from ..nn.cell import Cell
from ..parameter import Parameter
from ..runtime_state import runtime_state

__all__ = ["Guard", "callers_level"]

KEEP, RECOMPILE = True, False


class Guard:
    """The check of one program's captures before each call.

    Captures from Cells are looked at only when an attribute of some Cell was set since the last
    check; others are compared by identity, and by value where identity fails.
    """

    def __init__(self, captures: Captures) -> None:
        self.cells: list[Capture] = []
        self.others: list[Capture] = []
        items: list[tuple[Mapping[Any, Any], Any, Any]] = []
        for c in captures.items.values():
            # an attribute of the class can be set behind the back of the Cell that was asked for it
            if isinstance(c.owner, (Cell, Parameter)) and not _of_class(c):
                self.cells.append(c)
            else:
                self.others.append(c)
                if c.kind == "item":
                    items.append((c.owner, c.name, c.value))
                elif c.kind == "method":
                    items.append((vars(c.owner), c.name, c.value))
        self.items = items
        self.rest = [c for c in self.others if c.kind not in ("item", "method")]
        self.epoch = runtime_state.cells_version
        self.known: dict[
            int, Any
        ] = {}  # captures that were reported, with the value that they had then
        self.empty = not self.items and not self.rest and not self.cells

    def holds(self) -> bool:
        """Whether the program may run. Reports what has changed, by the policy in force.

        Raises:
            CaptureError: something has changed, and the policy is "error".
        """
        for owner, name, value in self.items:
            if owner.get(name) is not value:
                return self._look()
        for c in self.rest:
            now = c.now()
            if now is not c.value and not same(c.value, now):
                return self._look()
        if self.cells and runtime_state.cells_version != self.epoch:
            return self._look()
        return True

    def _look(self) -> bool:
        changed = []
        for c in (*self.others, *self.cells):
            now = c.now()
            if not same(c.value, now):
                if c.exact:
                    return RECOMPILE
                changed.append((c, now))
        policy = context.settings.stale_captures
        if changed and policy == "recompile":
            return RECOMPILE
        if not changed or policy == "ignore":
            self.epoch = runtime_state.cells_version
            return KEEP
        if policy == "error":
            c, now = changed[0]
            raise CaptureError(
                f"{c.label} was {_shown(c.value)} when the function was compiled and is {_shown(now)} now; compiled "
                f"code keeps the old value. Pass it as an argument, or set_context(stale_captures='recompile')"
            )
        self.epoch = runtime_state.cells_version
        for c, now in [(c, now) for c, now in changed if not self._reported(c, now)]:
            self.known[id(c)] = now
            warnings.warn(
                f"{c.label} was {_shown(c.value)} when the function was compiled and is {_shown(now)} now: compiled "
                f"code keeps the old value. Pass it as an argument, or set_context(stale_captures='recompile')",
                RuntimeWarning,
                stacklevel=callers_level(),
            )
        return KEEP

    def _reported(self, capture: Capture, now: Any) -> bool:
        marker = object()
        seen = self.known.get(id(capture), marker)
        return seen is not marker and same(seen, now)

    def differing(self) -> list[str]:
        """Names of the captures that have changed."""
        return [c.label for c in (*self.others, *self.cells) if not same(c.value, c.now())]


def callers_level() -> int:
    """The `stacklevel` of a warning that is about the line of the user's that called compiled code."""
    level = 1
    frame = inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    return level


def _of_class(capture: Capture) -> bool:
    """Whether what was read is plain data of the owner's class."""
    if capture.kind != "attribute" or capture.name in vars(capture.owner):
        return False
    found = inspect.getattr_static(type(capture.owner), capture.name, None)
    return found is not None and not hasattr(found, "__get__")


def _shown(value: Any) -> str:
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 80 else text[:77] + "..."
