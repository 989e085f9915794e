"""The form of the syntax corpus: small programs, each tied to a row of the list of accepted syntax.

A program is a function, or a factory that makes a fresh callable with the state around it, and the
arguments of several calls. Its oracle is Python itself: the same calls made line by line. Compiled
calls must give the same results, exceptions, arguments and state afterwards, the second time from
the cache too.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duograph as ms
import numpy as np
from duograph import nn
from frontend.syntax_rows import ROWS

CASES: list[Case] = []

# The plan of O0 calls the kernels that line-by-line execution calls: the bits are the same.
OPTIONS = {"jit_level": "O0"}


@dataclass(frozen=True)
class Case:
    """One program. A call is a tuple of arguments, or makes one; arrays become Tensors, fresh for
    each.
    """

    row: str
    name: str
    level: str  # "S": also with fullgraph=True; "L": there right or refused
    fn: Callable[..., Any]
    calls: Sequence[Any]
    make: bool = False  # `fn` is a factory: of a callable, or of a callable and state to compare
    raises: type[Exception] | Sequence[type[Exception] | None] | None = (
        None  # of all calls, or call by call
    )
    refused: tuple[type[Exception], str] | None = (
        None  # the compiled calls are refused: type and pattern
    )
    compiled: tuple[Callable[[Any], Any], str] | None = (
        None  # what compiled code returns instead, and why
    )
    prints: bool = False  # what it prints is compared
    line_by_line: bool = (
        False  # at the extended level the function may run uncompiled, with a warning
    )
    recompiles: bool = False  # each call changes what the function reads
    want: Sequence[Any] | None = None  # what Python means, where ops could be wrong in both modes
    grad: int | tuple[int, ...] | None = None
    grad_close: bool = False  # sums of cotangents may be ordered differently

    @property
    def id(self) -> str:
        return f"{self.row}-{self.name}"

    def fresh(self) -> tuple[Any, Any]:
        """The callable with new state around it, and what shows that state."""
        made = self.fn() if self.make else self.fn
        return made if isinstance(made, tuple) else (made, made)

    def arguments(self, index: int) -> tuple[Any, ...]:
        """New arguments for call number `index`."""
        call = self.calls[index]
        return fresh_value(call() if callable(call) else call)

    def error_of(self, index: int) -> type[Exception] | None:
        """What call number `index` raises."""
        if isinstance(self.raises, Sequence):
            return self.raises[index]
        return self.raises


class _Corpus:
    """The decorators of programs: `case` for functions, `case.factory` for factories."""

    def __call__(self, row: str, level: str, calls: Sequence[Any] = ((),), **options: Any) -> Any:
        assert row in ROWS, f"{row} is no row of the list"
        assert level in ("S", "L"), level

        def note(fn: Callable[..., Any]) -> Callable[..., Any]:
            CASES.append(Case(row, fn.__name__, level, fn, calls, **options))
            return fn

        return note

    def factory(self, row: str, level: str, calls: Sequence[Any] = ((),), **options: Any) -> Any:
        return self(row, level, calls, make=True, **options)


case = _Corpus()


class Plain:
    """An argument that stays what it is, e.g. an ndarray."""

    def __init__(self, value: Any) -> None:
        self.value = value


def f(*values: Any) -> np.ndarray:
    """A float32 argument: f(1.0) is a scalar, f(1, 2) a vector, f([[1]]) what the list says."""
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def i(*values: Any) -> np.ndarray:
    """An int32 argument."""
    return np.array(values[0] if len(values) == 1 else values, np.int32)


def b(*values: Any) -> np.ndarray:
    """A bool argument."""
    return np.array(values[0] if len(values) == 1 else values, np.bool_)


def fresh_value(value: Any) -> Any:
    """A deep copy in which arrays are Tensors."""
    if isinstance(value, Plain):
        return value.value.copy() if isinstance(value.value, np.ndarray) else value.value
    if isinstance(value, np.ndarray):
        return ms.Tensor(value.copy())
    if isinstance(value, (list, tuple)):
        return type(value)(fresh_value(v) for v in value)
    if isinstance(value, dict):
        return {k: fresh_value(v) for k, v in value.items()}
    return value


@dataclass
class Outcome:
    """What one call did."""

    result: Any  # None when it raised
    error: BaseException | None
    shown: Any  # the description of the result
    after: Any  # of the arguments and the watched state, after the call
    printed: list[str]


def run(case: Case, target: Any, state: Any, index: int) -> Outcome:
    """One call of `target`, and what `state` is after it."""
    arguments = case.arguments(index)
    text = io.StringIO()
    error, result = None, None
    with contextlib.redirect_stdout(text):
        try:
            result = target(*arguments)
            if isinstance(result, Iterator):
                result = list(result)
                shown = ("iterator", describe(result))
            else:
                shown = describe(result)
        except Exception as caught:  # noqa: BLE001  (compared by the caller)
            error, shown = caught, None
    return Outcome(result, error, shown, describe((arguments, state)), tokens(text.getvalue()))


def describe(value: Any) -> Any:
    """A value as nested tuples that are equal when type, structure, dtype, shape and bits are."""
    if isinstance(value, ms.Tensor):
        array = value.asnumpy()
        kind = "Parameter" if isinstance(value, ms.Parameter) else "Tensor"
        return (kind, str(array.dtype), array.shape, array.tolist().__repr__(), array.tobytes())
    if isinstance(value, np.ndarray) and value.dtype != object:
        return ("ndarray", str(value.dtype), value.shape, repr(value.tolist()), value.tobytes())
    if isinstance(value, float):
        return (type(value).__name__, value.hex() if math.isfinite(value) else repr(value))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, tuple(describe(v) for v in value))
    if isinstance(value, dict):
        return (type(value).__name__, tuple((describe(k), describe(v)) for k, v in value.items()))
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, tuple(sorted(map(repr, value))))
    if isinstance(value, (bool, int, str, bytes, complex, type(None), np.generic, range, slice)):
        return (type(value).__name__, repr(value))
    if isinstance(value, nn.Cell):
        plain = {k: v for k, v in vars(value).items() if not k.startswith("_")}
        return ("Cell", describe(plain), describe([p.asnumpy() for p in value.get_parameters()]))
    if callable(value):
        return ("callable",)
    state = getattr(value, "__dict__", None)
    if state is not None and type(value).__module__.startswith(("frontend", "tests")):
        return (type(value).__name__, describe(dict(state)))
    return (type(value).__name__, repr(value))


def tokens(text: str) -> list[str]:
    """The words and numbers of a printed text, whose layout of Tensors is another in compiled code."""
    text = re.sub(r"Tensor\(shape=\[[^\]]*\], dtype=\w+, value=", " ", text)
    found = re.findall(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)|[A-Za-z_]\w*", text)
    return [repr(float(w)) if re.match(r"[-+.\d]", w) else w for w in found]


def gradient_of(
    function: Callable[..., Any], positions: int | tuple[int, ...]
) -> Callable[..., Any]:
    """A plain function that asks for gradients, to be called as it is or compiled."""

    def gradient(*arguments: Any) -> Any:
        return ms.grad(function, positions)(*arguments)

    return gradient
