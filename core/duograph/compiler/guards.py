"""Checks before each call that what a program captured as constant has not changed.

`compiler.program_cache` keeps one `Guard` per program. On a change the user's setting
`stale_captures` decides whether to recompile, warn, raise, or ignore the change. A guard never
compiles anything itself.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Hashable

import numpy as np

from .. import context
from ..backend.prepared import HandleFunction
from ..errors import CaptureError
from ..frontend.state.captures import Capture, Captures
from ..frontend.state.journal import MISSING
from ..frontend.types import Value
from ..nn.cell import Cell
from ..parameter import Parameter
from ..runtime_state import runtime_state
from ..tensor import Tensor
from ..tracebacks import is_internal
from .captured_dicts import Homes, changed_entries, homes_of
from .guard_code import FACTS, LIMIT, IdentityCheck

__all__ = ["Guard", "callers_level"]

# What `Guard.holds` returns.
KEEP, RECOMPILE = True, False


class Guard:
    """Checks that the values which a compiled program captured as constants have not changed.

    Captures from Cells are compared only if an attribute of any Cell was set since the last check,
    and methods of the Tensor classes only if `runtime_state.settings_version` has changed. Other
    captures are compared by identity at every call, and by value if the identity differs.

    Attributes:
        cells: captures of attributes of Cells and of Parameters.
        methods: captures of methods of Tensor and of its subclasses; and of the function's own
            code, if there are no other captures.
        others: all other captures.
        cells_version: `runtime_state.cells_version` at the last comparison of `cells`.
        settings_version: `runtime_state.settings_version` at the last comparison of `methods`.
        reported: id of a capture -> the changed value that a warning was about.
        reported_methods: the same for `methods`, which are not compared at every call.
        empty: whether there is nothing to check while `settings_version` stays the same.
        alone: whether this is the only program in the cache for its key. If it is not, another
            program, with other captured values, could fit better.
        returned: whether a call of the program has returned. If all have raised, there is no old
            result that a setting of `stale_captures` could keep.
    """

    def __init__(self, captures: Captures) -> None:
        self.cells: list[Capture] = []
        self.methods: list[Capture] = []
        self.others: list[Capture] = []
        lookups: list[tuple[Value, Value, Value]] = []
        lists: list[tuple[Value, Value]] = []
        rest: list[Capture] = []
        facts: list[tuple[str, Value, Value]] = []
        # A function that reads nothing from outside needs no check before a call, which costs a
        # tenth of a short call: its own code alone is not worth one.
        pure = all([c.kind == "code" or _of_tensors(c) for c in captures.items.values()])
        for c in captures.items.values():
            # the Cell does not notice when an attribute of its class is set
            if isinstance(c.owner, (Cell, Parameter)) and not (c.kind == "form" or _of_class(c)):
                self.cells.append(c)
                continue
            if _of_tensors(c) or (c.kind == "code" and pure):
                self.methods.append(c)
                continue
            self.others.append(c)
            if c.kind == "item":
                lookups.append((c.owner, c.name, c.value))
            elif c.kind == "method":
                lookups.append((vars(c.owner), c.name, c.value))
            elif c.kind == "entries" and type(c.owner) is list:
                lists.append((c.owner, c.value))
            elif len(facts) >= LIMIT:
                rest.append(c)
            elif c.kind in FACTS and c.value is not MISSING:
                facts.append((FACTS[c.kind], c.owner, c.value))
            elif c.kind == "function" and len(c.value) == 2:  # without keyword defaults
                code, defaults = c.value
                facts.append(("{}.__code__", c.owner, code))
                facts.append(("{}.__defaults__", c.owner, defaults))
                facts.append(("{}.__kwdefaults__", c.owner, c.owner.__kwdefaults__))
            else:
                rest.append(c)
        self._identities = lookups, lists, rest, facts
        found = {id(c): homes_of(c) for c in self._all()}
        self._homes: dict[int, Homes] = {key: homes for key, homes in found.items() if homes}
        self.empty = not self.others and not self.cells
        self._start()

    def copy(self) -> Guard:
        """Return a guard of the same captures for a new program, of which no call has returned."""
        made = copy.copy(self)
        made._start()
        return made

    def _start(self) -> None:
        """Begin to compare the captures, which must have the values that the program is for."""
        lookups, lists, rest, facts = self._identities
        others: list[Callable[[], bool]] = []
        if rest:
            others.append(lambda: _all_unchanged(rest))
        if self.cells:
            others.append(lambda: runtime_state.cells_version == self.cells_version)
        self._check = IdentityCheck(lookups, lists, others, facts)
        self._is_unchanged = self._check.test()
        self.cells_version = runtime_state.cells_version
        self.settings_version = runtime_state.settings_version
        self.reported: dict[int, Value] = {}
        self.reported_methods: dict[int, Value] = {}
        self.alone = True
        self.returned = False
        self._kept = False  # whether changed values were noted and the old ones kept

    def holds(self, chosen: bool = False) -> bool:
        """Return whether the program may run, given the present values of what it captured.

        If a value has changed, the user's setting `stale_captures` decides. With "recompile" the
        result is False, and the caller compiles the function again; with "warn" and "ignore" it may
        be True.

        Args:
            chosen: whether the cache was searched without success for a program that fits the
                present values. A setting other than "recompile" then lets this program run with its
                old values.

        Raises:
            CaptureError: something has changed, the setting is "error", and no other program in the
                cache could fit (`chosen` or `alone`).
        """
        if not self._is_unchanged() or self._methods_changed():
            return self._apply_policy(chosen)
        if self.reported:
            self.reported.clear()
        return True

    def guarded(self, run: HandleFunction, n_handles: int) -> HandleFunction:
        """Return a function that makes the same check as `holds` and then calls `run`.

        Where `holds` would return False, the function raises StateChanged instead.

        Args:
            run: function from buffer handles of the arguments to the handle of the result.
            n_handles: number of arguments of `run`.
        """
        return self._check.call(run, n_handles, self._apply_policy, self.reported)

    def unchanged(self) -> bool:
        """Return whether all captured values equal those that the program was compiled for."""
        if not self._kept and self._is_unchanged() and not self._methods_changed():
            return True
        return all([c.agrees(c.now()) for c in self._all()])

    def _all(self) -> list[Capture]:
        return [*self.others, *self.methods, *self.cells]

    def _methods_changed(self) -> bool:
        """Return whether a captured method of a Tensor class is another one now."""
        version = runtime_state.settings_version
        if version is not self.settings_version:
            if not _all_unchanged(self.methods):
                return True
            self.reported_methods.clear()
            self.settings_version = version
        return False

    def _apply_policy(self, chosen: bool = False) -> bool:
        """Compare all captures by value; return whether the program may run.

        The user's setting `stale_captures` decides about a change. With "recompile" the result is
        False, and the caller compiles the function again; "error" raises; with "warn" and "ignore"
        the result is True. Two cases come first. The result is always False if an exact capture has
        changed: one through which the function reaches an object that it changes. It is also False
        after any change if the program has only raised so far, or while another program in the
        cache may fit better, unless this program is `chosen` (see `holds`).
        """
        changed = []
        for c in self._all():
            now = c.now()
            if not c.agrees(now):
                if c.exact:
                    return RECOMPILE
                changed.append((c, now))
            else:  # if it has its old value again, report the next change
                self._reports_of(c).pop(id(c), None)
        policy = context.settings.stale_captures
        fits_best = self.returned and (chosen or self.alone)
        if changed and (policy == "recompile" or not fits_best):
            return RECOMPILE
        if not changed or policy == "ignore":
            self._kept = bool(changed)
            self._note_versions()
            return KEEP
        if policy == "error":
            raise CaptureError(_message(*changed[0]))
        self._kept = True
        self._note_versions()
        told: set[Hashable] = set()
        for c, now in [(c, now) for c, now in changed if not self._was_reported(c, now)]:
            self._reports_of(c)[id(c)] = now.copy() if isinstance(now, np.ndarray) else now
            entries = changed_entries(c, now, self._homes.get(id(c), []))
            if not entries <= told:
                warnings.warn(_message(c, now), RuntimeWarning, stacklevel=callers_level())
            told |= entries
        return KEEP

    def _note_versions(self) -> None:
        self.cells_version = runtime_state.cells_version
        self.settings_version = runtime_state.settings_version

    def _was_reported(self, capture: Capture, now: Value) -> bool:
        """Return whether a warning was already issued for a capture with its present value."""
        before = self._reports_of(capture).get(id(capture), self)
        if before is self or before is MISSING or now is MISSING:
            return before is now
        return capture.agrees(now, before)

    def _reports_of(self, capture: Capture) -> dict[int, Value]:
        return self.reported_methods if capture in self.methods else self.reported

    def differing(self) -> list[str]:
        """Return the names of captured values that changed since the program was compiled."""
        return [c.label for c in self._all() if not c.agrees(c.now())]


def callers_level() -> int:
    """Return the `stacklevel` with which a warning points to the innermost line of user code."""
    level = 1
    frame = inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    return level


def _all_unchanged(captures: list[Capture]) -> bool:
    """Return whether each captured value is the same object as at compile time, or equals it.

    `Capture.agrees` decides what is equal.
    """
    for c in captures:
        now = c.now()
        if now is not c.value and not c.agrees(now):
            return False
    return True


def _of_tensors(capture: Capture) -> bool:
    """Return whether a capture is a method of Tensor or of a subclass, or its absence."""
    return capture.kind == "method" and issubclass(capture.owner, Tensor)


def _of_class(capture: Capture) -> bool:
    """Return whether a captured attribute is a class attribute that is no descriptor.

    The object itself must not have an attribute of this name.
    """
    if capture.kind != "attribute" or capture.name in vars(capture.owner):
        return False
    found = inspect.getattr_static(type(capture.owner), capture.name, None)
    return found is not None and not hasattr(found, "__get__")


def _message(capture: Capture, now: Value) -> str:
    """Return the text of the warning or error about a captured value that has changed."""
    label, was, now = capture.difference(now)
    return (
        f"{label} was {_shown(was)} when the function was compiled and is {_shown(now)} now: "
        "compiled code keeps the old value. Pass it as an argument, or "
        "set_context(stale_captures='recompile')"
    )


def _shown(value: Value) -> str:
    """Return the repr of a captured value, cut to 80 characters for a message."""
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 80 else text[:77] + "..."
