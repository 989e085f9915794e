"""One program run line by line and compiled: everything that a user can tell apart, and the first
thing that differs.

A program is source text. It decorates what is to be compiled with ``@jit`` and defines ``f``;
``WATCH`` names expressions whose values are looked at after every call. In the eager run ``jit``
returns the function itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import linecache
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import duograph as ms
from duograph import nn, ops

from ..tensor import Tensor
from .compare import difference_of, plain, same_words, unplaced, words

__all__ = ["Observation", "Program", "MODES", "observe", "disagreement", "is_refused", "eager_jit"]

# How a program is run: nothing compiled; what `@jit` marks; outermost Cells (GRAPH_MODE).
MODES = ("eager", "jit", "graph mode")
_numbers = itertools.count()


@dataclasses.dataclass(frozen=True)
class Program:
    """Source text and how it is called.

    Attributes:
        source: defines `f`, and whatever it uses; `WATCH` is a tuple of expressions to look at
            after each call.
        inputs: arrays, also inside lists, tuples and dicts, become Tensors; everything else is
            passed as it is.
        positions: inputs to differentiate the sum of the floating results by.
        weights: an expression for the parameters to differentiate by as well.
        name: how reports call it.
        calls: how often each of them is called; the later ones find a graph in the cache.
        near: by how much gradients may differ. Where a branch leaves one of two tensors under a
            name, eager code adds up the cotangents of that tensor alone, and the graph those of the
            name first.
        again: the inputs of the calls after the first, where they are others.
        rounded: whether results may differ by `near`, too, because they hold gradients.
        mode: how it is compiled, one of `MODES`.
        refused: a pattern of the errors with which compiled code may refuse the program.
    """

    source: str
    inputs: tuple[Any, ...] = ()
    positions: tuple[int, ...] = ()
    weights: str = ""
    name: str = "program"
    calls: int = 2
    near: float = 0.0
    again: tuple[Any, ...] = ()
    rounded: bool = False
    mode: str = "jit"
    refused: str = ""

    def given(self, call: int) -> tuple[Any, ...]:
        """The inputs of a call."""
        return self.again if call and self.again else self.inputs

    def __str__(self) -> str:
        return self.source


@dataclasses.dataclass
class Observation:
    """What one call did.

    Attributes:
        what: which call.
        result: what it returned, as `plain` values.
        error: class and arguments of what it raised, or None.
        printed: words and numbers in order.
        state: values of the watched expressions afterwards.
    """

    what: str
    result: Any = None
    error: Any = None
    printed: list[str] = dataclasses.field(default_factory=list)
    state: dict[str, Any] = dataclasses.field(default_factory=dict)


def eager_jit(function: Any = None, **_: Any) -> Any:
    """`jit` that compiles nothing, whichever way it is written."""
    return (lambda f: f) if function is None else function


def load(program: Program, mode: str) -> dict[str, Any]:
    """The program's namespace, freshly executed; its source can be read as that of a file."""
    text = textwrap.dedent(program.source)
    file = f"<{program.name} {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {
        "__name__": "__program__", "ms": ms, "nn": nn, "ops": ops, "np": np, "Tensor": ms.Tensor,
        "Parameter": ms.Parameter, "jit": ms.jit if mode == "jit" else eager_jit,
    }  # fmt: skip
    exec(compile(text, file, "exec"), space)
    return space


@contextlib.contextmanager
def settings_for(mode: str, level: str | None) -> Iterator[None]:
    """The settings of a run: O0 unless told otherwise, and captures as Python sees them."""
    before = {k: ms.get_context(k) for k in ("mode", "jit_level", "stale_captures")}
    if mode == "eager":
        ms.set_context(mode=ms.PYNATIVE_MODE)
    else:
        ms.set_context(
            mode=ms.GRAPH_MODE if mode == "graph mode" else ms.PYNATIVE_MODE,
            stale_captures="recompile",
            **({} if level is None else {"jit_level": level}),
        )
    with warnings.catch_warnings():
        # a function that falls back to Python would agree with itself
        warnings.filterwarnings("error", ".*runs line by line")
        try:
            yield
        finally:
            ms.set_context(**before)


def _tensors(inputs: Sequence[Any]) -> list[Any]:
    return [_rebuilt(a) for a in inputs]


def _rebuilt(value: Any) -> Any:
    """A fresh copy of a nest of inputs."""
    if isinstance(value, np.ndarray):
        return Tensor(value.copy())
    if isinstance(value, (list, tuple)):
        return type(value)(_rebuilt(v) for v in value)
    if isinstance(value, dict):
        return {k: _rebuilt(v) for k, v in value.items()}
    return value


def total(value: Any) -> Any:
    """The sum of every floating number of a nest, as a 0-d Tensor."""
    found: list[Any] = []
    _collect(value, found)
    out: Any = found[0].sum() if found else Tensor(0.0, ms.float32)
    for t in found[1:]:
        out = out + t.sum()
    return out


def _collect(value: Any, found: list[Any]) -> None:
    if isinstance(value, Tensor):
        if value.dtype in (ms.float32, ms.float64, ms.float16):
            found.append(value)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _collect(v, found)
    elif isinstance(value, dict):
        for v in value.values():
            _collect(v, found)


def observe(program: Program, mode: str, level: str | None = "O0") -> list[Observation]:
    """Call the program's `f` twice, then its gradient twice, in `mode`; each in a namespace of its
    own.

    The second call is the one that finds its graph in the cache. The gradient is that of `f` from
    outside and, where something is compiled, that of a compiled function which differentiates it
    inside.
    """
    found: list[Observation] = []
    with settings_for(mode, level):
        ms.set_seed(11)
        space = load(program, mode)
        inputs = [_tensors(program.given(i)) for i in range(program.calls)]
        for i, arguments in enumerate(inputs):
            found.append(_called(f"call {i + 1}", space, space["f"], arguments))
        if not program.positions and not program.weights:
            return found
        for where in ("outside", "inside"):
            ms.set_seed(12)
            space = load(program, mode)
            gradient = _gradient(program, space, mode, where)
            for i in range(program.calls):
                arguments = _tensors(program.given(i))
                what = f"gradient from {where}, call {i + 1}"
                found.append(_called(what, space, gradient, arguments))
    return found


def _gradient(program: Program, space: dict[str, Any], mode: str, where: str) -> Callable[..., Any]:
    weights = eval(program.weights, space) if program.weights else None
    positions = program.positions or None
    compiled = mode != "eager" and where == "inside"
    space.update(
        total=total, POSITIONS=positions, WEIGHTS=weights, value_and_grad=ms.value_and_grad
    )
    text = """
    def of_sum(*xs):
        return total(f(*xs))

    @transform
    def gradient(*xs):
        return value_and_grad(of_sum, POSITIONS, WEIGHTS)(*xs)
    """
    space["transform"] = ms.jit if compiled else eager_jit
    text = textwrap.dedent(text)
    file = f"<gradient of {program.name} {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), space)
    found: Callable[..., Any] = space["gradient"]
    return found


def _called(
    what: str, space: dict[str, Any], function: Callable[..., Any], arguments: list[Any]
) -> Observation:
    seen = Observation(what)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), np.printoptions(precision=9, floatmode="maxprec"):
        try:
            seen.result = plain(function(*arguments))
            ms.synchronize()
        except Exception as error:  # noqa: BLE001 (what a program raises is part of what it does)
            seen.error = (type(error), plain(error.args), error)
    seen.printed = words(out.getvalue())
    for name in space.get("WATCH", ()):
        seen.state[name] = plain(eval(name, space))
    seen.state["the arguments"] = plain(arguments)
    return seen


def is_refused(program: Program, got: Sequence[Observation]) -> bool:
    """Whether a call was refused in the way that the program admits."""
    return bool(program.refused) and any(
        o.error is not None and re.search(program.refused, str(o.error[2])) for o in got
    )


def disagreement(
    want: Sequence[Observation],
    got: Sequence[Observation],
    near: float = 0.0,
    rounded: bool = False,
) -> str | None:
    """The first thing in which two runs differ, eager first, or None.

    Args:
        want, got: the runs.
        near, rounded: see `Program`.
    """
    for a, b in zip(want, got, strict=True):
        text = _observation_difference(a, b, near, rounded)
        if text is not None:
            return f"{a.what}: {text}"
    return None


def _observation_difference(
    a: Observation, b: Observation, near: float, rounded: bool
) -> str | None:
    if (a.error is None) != (b.error is None):
        error = a.error or b.error
        side = "line by line" if a.error else "compiled"
        return f"{side} it raises {error[0].__name__}{error[1]!r}, otherwise not\n{error[2]}"
    if a.error is not None:
        if a.error[0].__qualname__ != b.error[0].__qualname__:  # each run has classes of its own
            return f"raises {a.error[0].__name__}: {a.error[2]}\n  and {b.error[0].__name__}: {b.error[2]}"
        text = difference_of(
            a.error[1], unplaced(b.error[1]), "the exception's arguments", near if rounded else None
        )
        if text is not None:
            return text
    loose = near if rounded or a.what.startswith("gradient") else None
    text = difference_of(a.result, b.result, "the result", loose)
    if text is not None:
        return text
    if not same_words(a.printed, b.printed):
        return f"prints {' '.join(a.printed)!r}\n  and    {' '.join(b.printed)!r}"
    return difference_of(a.state, b.state, "afterwards ", near if rounded else None)
