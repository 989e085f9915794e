"""The syntax corpus: small programs, each tied to a row of the list of supported syntax.

A program is a function, or a factory that makes a fresh callable with the state around it, and the
arguments of several calls. The oracle is Python itself: compiled calls must have the same results,
exceptions, arguments and state afterwards, at the first call and from the cache.
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

# At O0 compiled code calls the kernels of eager execution: results are equal to the bit.
OPTIONS = {"jit_level": "O0"}


@dataclass(frozen=True)
class Case:
    """One program and its calls.

    A call is a tuple of arguments, or a function that makes one; arrays become fresh Tensors.
    """

    row: str
    name: str
    level: str  # "S": supported with fullgraph=True; "L": there right or refused
    fn: Callable[..., Any]
    calls: Sequence[Any]
    make: bool = False  # `fn` is a factory of a callable, or of a callable and the state to compare
    raises: type[Exception] | Sequence[type[Exception] | None] | None = (
        None  # by all calls, or per call
    )
    refused: tuple[type[Exception], str] | None = (
        None  # the compiled calls are refused: type and pattern
    )
    compiled: tuple[Callable[[Any], Any], str] | None = (
        None  # another result of compiled code, and the reason
    )
    prints: bool = False  # printed text is compared
    line_by_line: bool = (
        False  # at the extended level the function may run uncompiled, with a warning
    )
    recompiles: bool = False  # each call changes a captured value
    want: Sequence[Any] | None = None  # expected results, for ops that could be wrong in both modes
    grad: int | tuple[int, ...] | None = None
    grad_close: bool = False  # sums of cotangents may be ordered differently

    @property
    def id(self) -> str:
        return f"{self.row}-{self.name}"

    def fresh(self) -> tuple[Any, Any]:
        """Return the callable with fresh state around it, and the state to compare."""
        made = self.fn() if self.make else self.fn
        return made if isinstance(made, tuple) else (made, made)

    def arguments(self, index: int) -> tuple[Any, ...]:
        """Return fresh arguments for call `index`."""
        call = self.calls[index]
        return fresh_value(call() if callable(call) else call)

    def error_of(self, index: int) -> type[Exception] | None:
        """Return the class of error that call `index` raises."""
        if isinstance(self.raises, Sequence):
            return self.raises[index]
        return self.raises


class _Corpus:
    """The decorators that add programs: `case` for functions, `case.factory` for factories."""

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
    """An argument that is passed unchanged, such as a NumPy array."""

    def __init__(self, value: Any) -> None:
        self.value = value


def f(*values: Any) -> np.ndarray:
    """A float32 argument: f(1.0) is a scalar, f(1, 2) a vector, f([[1]]) a matrix."""
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def i(*values: Any) -> np.ndarray:
    """An int32 argument."""
    return np.array(values[0] if len(values) == 1 else values, np.int32)


def b(*values: Any) -> np.ndarray:
    """A bool argument."""
    return np.array(values[0] if len(values) == 1 else values, np.bool_)


def fresh_value(value: Any) -> Any:
    """Return a deep copy in which arrays are Tensors."""
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
    """The result and side effects of one call."""

    result: Any  # None when it raised
    error: BaseException | None
    shown: Any  # `describe` of the result
    after: Any  # of the arguments and the watched state, after the call
    printed: list[str]


def run(case: Case, target: Any, state: Any, index: int) -> Outcome:
    """Make one call of `target` and record its outcome."""
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
    """Return a value as nested tuples that are equal if type, shape, dtype and bits are equal."""
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
    """Return the words and numbers of printed text; compiled code prints Tensors differently."""
    text = re.sub(r"Tensor\(shape=\[[^\]]*\], dtype=\w+, value=", " ", text)
    found = re.findall(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)|[A-Za-z_]\w*", text)
    return [repr(float(w)) if re.match(r"[-+.\d]", w) else w for w in found]


def gradient_of(
    function: Callable[..., Any], positions: int | tuple[int, ...]
) -> Callable[..., Any]:
    """Return a plain function that computes gradients, to be compiled or not."""

    def gradient(*arguments: Any) -> Any:
        return ms.grad(function, positions)(*arguments)

    return gradient
