"""Runs the program of a cell line by line and compiled, and judges the difference."""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import os
import re
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
from duograph import Tensor
from duograph.errors import CaptureError, JoinError, RefusedError, UnsupportedSyntaxError
from duograph.ir.values import NeedsValue

from .parts import Cell, Config
from .places import BETWEEN, source
from .questions import PASSIVE
from .snapshots import Snapshots, as_text
from .surroundings import HEAD, SURROUNDINGS

__all__ = ["Verdict", "program", "run", "settings_kept"]

CALLS = 5
# A change precedes these calls; the others repeat a call with everything as it was.
CHANGED = (1, 3, 4)
# A program with such an error says nothing about the compiler; it has to be written anew.
_INVALID = (NameError, SyntaxError)
_numbers = itertools.count()


@dataclasses.dataclass
class Call:
    """What one call of a program did.

    Attributes:
        result: a snapshot of the result, or the exception's class and arguments.
        before, after: snapshots of the outside objects.
        error: the exception.
        warned: messages of the warnings.
    """

    result: Any
    before: Any
    after: Any
    error: Exception | None
    warned: list[str]


@dataclasses.dataclass
class Verdict:
    """The outcome of a cell.

    Attributes:
        outcome: "equal", "refused", "old" (the value at compile time, with a warning), "wrong",
            "silent" (the value at compile time, without a warning), "crash", "placeholder", "state"
            (outside objects differ), or "invalid" (the program lacks a name).
        text: what differs.
        fallback: whether the function ran line by line.
    """

    outcome: str
    text: str = ""
    fallback: bool = False

    @property
    def good(self) -> bool:
        return self.outcome in ("equal", "refused", "old")


def _plain(function: Any = None, **_: Any) -> Any:
    return function


def settings_kept() -> Iterator[None]:
    """Restore the settings and the environment variable that a test's programs change."""
    before = {k: ms.get_context(k) for k in ("mode", "stale_captures")}
    yield
    ms.set_context(**before)
    os.environ.pop("DG_CELL", None)


def run(cell: Cell) -> Verdict:
    """Run a cell's program in two worlds and judge the compiled one."""
    text = source(cell)
    ms.set_context(mode=ms.PYNATIVE_MODE, stale_captures=cell.config.policy)
    eager = _Run(text, _plain, cell)
    want = list(eager.calls())
    invalid = [e for e in (want[0].error, *eager.refused[:1]) if isinstance(e, _INVALID)]
    if invalid:
        return Verdict("invalid", repr(invalid[0]))
    compiled = _Run(text, _jit(cell.config), cell)
    got: list[Call] = []
    for call in compiled.calls():
        got.append(call)
        verdict = _judge(cell, want, got)
        if verdict is not None:
            verdict.fallback = compiled.fell_back
            return verdict
    outcome = (
        "old" if any(w.result != g.result for w, g in zip(want, got, strict=True)) else "equal"
    )
    return Verdict(outcome, fallback=compiled.fell_back)


def _jit(config: Config) -> Callable[..., Any]:
    return ms.jit(jit_level=config.level, jit_syntax_level=config.syntax)


def program(cell: Cell) -> str:
    """A cell as a program that can be run by itself and prints each call."""
    config, sign = cell.config, " * (-1.0) ** number" if cell.where == "branch" else ""
    thread = "threading.Thread(target=change, args=(number + 4.0,))"
    change = {
        "outside": "change(number + 4.0)",
        "thread": f"t = {thread}\n        t.start()\n        t.join()",
    }.get(cell.where)
    changed = f"    if number in {CHANGED}:\n        {change}\n" if change else ""
    return (
        f"{HEAD}\nms.set_context(stale_captures={config.policy!r})\n"
        "# jit = lambda f: f  shows what is wanted\n"
        f"jit = ms.jit(jit_level={config.level!r}, jit_syntax_level={config.syntax!r})\n"
        f"{source(cell)}\n"
        f"for number in range({CALLS}):\n{changed}"
        f"    print(call(Tensor([1.0, 2.0, 4.0]){sign}), roots())\n"
    )


class _Run:
    """One world: a namespace with its objects, in which the program is called five times."""

    def __init__(self, text: str, jit: Callable[..., Any], cell: Cell) -> None:
        file = f"<cell {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        module = types.ModuleType("__cell__")  # dataclasses look their module up
        sys.modules["__cell__"] = module
        self.space = module.__dict__
        self.space.update(SURROUNDINGS, jit=jit)
        self.file = file
        self.cell = cell
        self.fell_back = False
        self.refused: list[Exception] = []
        self.snapshots = Snapshots()
        exec(compile(text, file, "exec"), self.space)

    def calls(self) -> Iterator[Call]:
        """Call the program, with changes in between, and yield what each call did."""
        try:
            for number in range(CALLS):
                yield self._call(number)
        finally:
            linecache.cache.pop(self.file, None)

    def _call(self, number: int) -> Call:
        space, taken = self.space, self.snapshots
        if number in CHANGED and "change" in space:
            self._change(number)
        sign = -1.0 if self.cell.where == "branch" and number % 2 else 1.0
        argument = Tensor([1.0 * sign, 2.0 * sign, 4.0 * sign])
        before = taken.world(space["roots"]())
        error = None
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                result = taken.result(space["call"](argument))
            except Exception as raised:  # noqa: BLE001 (an exception is a result to compare)
                error = raised
                result = ("raises", type(raised).__name__)
        after = taken.world([*space["roots"](), argument])
        messages = [str(w.message) for w in found]
        self.fell_back = self.fell_back or any("line by line" in m for m in messages)
        return Call(result, before, after, error, messages)

    def _change(self, number: int) -> None:
        """Change the outside object; a change that Python refuses is none in either world."""

        def change() -> None:
            try:
                self.space["change"](number + 4.0)
            except Exception as error:  # noqa: BLE001 (reported for the first change)
                self.refused.append(error)

        if self.cell.where == "thread":
            thread = threading.Thread(target=change)
            thread.start()
            thread.join()
        else:
            change()


def _judge(cell: Cell, want: list[Call], got: list[Call]) -> Verdict | None:
    """Judge the last call made; None if it is right and the next one may follow."""
    number = len(got) - 1
    w, g = want[number], got[number]
    label = f"call {number + 1}"
    if g.error is not None and w.result != g.result:
        return _judge_error(cell, label, number, w, g)
    placeholder = re.search(r"<placeholder [^>]*>", as_text((g.result, g.after)))
    if placeholder:
        return Verdict("placeholder", f"{label}: {placeholder[0]} was left in {as_text(g.after)}")
    if w.result != g.result:
        text = f"{label}: wanted {as_text(w.result)}, got {as_text(g.result)}"
        verdict = _judge_old(cell, number, want, got, text)
        if verdict is not None:
            return verdict
    if w.after != g.after:
        return Verdict("state", f"{label}: wanted {as_text(w.after)}\nand got {as_text(g.after)}")
    return None


def _judge_error(cell: Cell, label: str, number: int, w: Call, g: Call) -> Verdict:
    """Judge an exception that the program does not raise line by line."""
    error = g.error
    text = f"{label}: {type(error).__name__}: {error}"
    if w.error is not None:
        text = f"wanted {w.error!r}\n{text}"
    if isinstance(error, CaptureError):
        documented = cell.config.policy == "error" and number > 0 and cell.where in BETWEEN
    elif cell.config.syntax == "STRICT":
        documented = isinstance(error, (UnsupportedSyntaxError, JoinError, NeedsValue))
    else:
        documented = isinstance(error, RefusedError)
    if not documented:
        return Verdict("crash", text)
    if g.after[:-1] != w.before:
        return Verdict("state", f"{text}\nwanted {as_text(w.before)}\nand got {as_text(g.after)}")
    return Verdict("refused", text)


def _judge_old(
    cell: Cell, number: int, want: list[Call], got: list[Call], text: str
) -> Verdict | None:
    """Judge a result that differs: None if it is an old value of a constant, and that was said."""
    earlier = [c.result for c in want[:number]]
    if got[number].result not in earlier:
        return Verdict("wrong", text)
    may_be_old = (
        cell.config.policy in ("warn", "ignore")
        and cell.where in BETWEEN
        and not (cell.kind.used and cell.question.split(":")[0] not in PASSIVE)
        and not (cell.change.state or (cell.kind.state and cell.change.name != "rebound"))
    )
    if not may_be_old:
        return Verdict(
            "silent" if number and got[number].result == want[0].result else "wrong", text
        )
    if cell.config.policy == "ignore":
        return None
    since = number
    while since and want[since - 1].result == want[number].result:
        since -= 1
    said = [m for c in got[since : number + 1] for m in c.warned if "when the function was" in m]
    if not said:
        return Verdict("silent", text)
    return None
