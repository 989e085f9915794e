"""The corpus of wrong programs: the message and the location that each must produce."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duograph as ms
import numpy as np

WRONG: list[Wrong] = []
RIGHT: list[Right] = []

MODULES = (
    "wrong_shapes", "wrong_locations", "wrong_names", "wrong_joins", "wrong_syntax", "wrong_host",
    "wrong_calls", "wrong_values", "wrong_running", "wrong_options",
)  # fmt: skip

BOTH = ("STRICT", "LAX")


@dataclass(frozen=True)
class Wrong:
    """A wrong program.

    Attributes:
        error: the class that MindSpore or Python raises.
        match: a pattern of the message: what was got, and what was wanted.
        levels: syntax levels at which it is wrong.
        eager: whether it raises the same class without compilation.
        line: the line that the message must point at; None for none.
        under: the text that the caret must mark; "" for any part of the line.
        calls: lines of the calls that lead there.
        falls_back: whether LAX runs it in Python, with a warning of the same content.
        seconds: time limit for the message.
    """

    id: str
    group: str
    make: Callable[[], Any]
    args: tuple[Any, ...]
    error: type[Exception] | tuple[type[Exception], ...]
    match: str
    levels: tuple[str, ...]
    eager: bool
    file: str
    line: int | None
    under: str
    calls: tuple[int, ...]
    falls_back: bool
    seconds: float

    def arguments(self) -> tuple[Any, ...]:
        return tensors(self.args)


@dataclass(frozen=True)
class Right:
    """A valid neighbour of a wrong program: it must compile, with the same result as in Python."""

    id: str
    group: str
    make: Callable[[], Any]
    args: tuple[Any, ...]
    levels: tuple[str, ...]

    def arguments(self) -> tuple[Any, ...]:
        return tensors(self.args)


def F(*shape: int) -> Any:
    """An array of float32 that becomes a Tensor."""
    return (np.arange(np.prod(shape, dtype=int)) + 1).astype(np.float32).reshape(shape)


def I(*shape: int) -> Any:  # noqa: E743 (a counterpart of F)
    """An array of int32 that becomes a Tensor."""
    return F(*shape).astype(np.int32)


def tensors(value: Any) -> Any:
    """Arguments with fresh Tensors for their arrays."""
    if isinstance(value, np.ndarray):
        return ms.Tensor(value.copy())
    if isinstance(value, (tuple, list)):
        return type(value)(tensors(v) for v in value)
    if isinstance(value, dict):
        return {k: tensors(v) for k, v in value.items()}
    return value


_HERE = re.compile(r"# <- here(?:: (.*?))?\s*(?:# noqa.*)?$")
_CALLED = re.compile(r"# <- called here")


def wrong(
    error: type[Exception] | tuple[type[Exception], ...],
    match: str,
    *args: Any,
    made: bool = False,
    levels: tuple[str, ...] = BOTH,
    eager: bool = True,
    falls_back: bool = False,
    seconds: float = 20.0,
) -> Callable[[Any], Any]:
    """Add a function, or the result of a factory, as a wrong program."""
    if falls_back:
        levels, eager = ("STRICT",), False

    def enter(function: Any) -> Any:
        lines, first = inspect.getsourcelines(function)
        here, under, calls = None, "", []
        for number, text in enumerate(lines, first):
            found = _HERE.search(text.rstrip())
            if found:
                assert here is None, f"{function.__name__}: two marks"
                here, under = number, found[1] or ""
            elif _CALLED.search(text):
                calls.append(number)
        name = function.__name__
        group = function.__module__.rsplit("wrong_", 1)[-1]
        WRONG.append(
            Wrong(
                name, group, function if made else lambda: function, args, error, match, levels,
                eager, inspect.getsourcefile(function) or "", here, under, tuple(calls),
                falls_back, seconds,
            )
        )  # fmt: skip
        return function

    return enter


def right(*args: Any, made: bool = False, levels: tuple[str, ...] = BOTH) -> Callable[[Any], Any]:
    """Add a function, or the result of a factory, as a valid program."""

    def enter(function: Any) -> Any:
        group = function.__module__.rsplit("wrong_", 1)[-1]
        make = function if made else lambda: function
        RIGHT.append(Right(function.__name__, group, make, args, levels))
        return function

    return enter


def load() -> None:
    """Import the modules of the corpus, once."""
    for name in MODULES:
        importlib.import_module(f"frontend.{name}")
