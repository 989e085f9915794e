"""Runs one test program eagerly and compiled, and compares everything that a user can observe.

`fuzz` and tests of jit use it. A program is source code that defines a function ``f`` and decorates
functions to compile with ``@jit``; in the eager run ``jit`` returns the function itself. A variable
``WATCH`` of the program lists expressions to evaluate after every call.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import itertools
import linecache
import re
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import duograph as ms
from duograph import nn, ops

from ..context import settings
from ..tensor import Tensor
from .compare import difference_of, printed_words, same_words, snapshot, without_location

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["Observation", "Program", "MODES", "observe", "disagreement", "is_refused", "eager_jit"]

# What is compiled: nothing; functions marked with `@jit`; outermost Cells (GRAPH_MODE).
MODES = ("eager", "jit", "graph mode")
_numbers = itertools.count()


@dataclasses.dataclass(frozen=True)
class Program:
    """Source code of a Python test program, and the calls of its function `f` to make.

    Attributes:
        source: source code that defines `f` and everything it uses, and optionally `WATCH`, a tuple
            of expressions to evaluate after each call.
        inputs: arguments of `f`. Arrays, also in lists, tuples and dicts, become Tensors; other
            values are passed unchanged.
        positions: positions of the inputs with respect to which the sum of the floating results is
            differentiated.
        weights: an expression for Parameters with respect to which this sum is differentiated as
            well; "" if there are none.
        name: name of the program in reports.
        calls: number of calls of the function and of the gradient; later calls use the cached
            compiled code.
        near: tolerance for gradients; they are exact if it is 0. It is needed where a branch binds
            one of two tensors to a name: eager code and the graph then add cotangents in different
            orders.
        again: the inputs of the calls after the first, if they differ from those of the first call.
        series: the inputs of each call, such as arrays of many sizes; they replace `inputs` and
            `again`.
        rounded: whether the tolerance `near` holds for results as well, because the program
            returns gradients.
        mode: how the compiled run executes, one of `MODES`.
        changes: statements that change objects outside of `f`. Statement k runs before call k + 1;
            statements and calls are counted from 0.
        refused: a regular expression for messages of the errors with which the compiler may refuse
            the program; "" allows none.
    """

    source: str
    inputs: tuple[Array, ...] = ()
    positions: tuple[int, ...] = ()
    weights: str = ""
    name: str = "program"
    calls: int = 2
    near: float = 0.0
    again: tuple[Array, ...] = ()
    series: tuple[tuple[Array, ...], ...] = ()
    rounded: bool = False
    mode: str = "jit"
    changes: tuple[str, ...] = ()
    refused: str = ""

    def inputs_of(self, call: int) -> tuple[object, ...]:
        """Return the inputs of call number `call` (from 0) of the test program."""
        if self.series:
            return self.series[call]
        return self.again if call and self.again else self.inputs

    def change(self, call: int, space: dict[str, Any]) -> None:
        """Run the change that is due before call number `call`, in the namespace `space`."""
        if 0 < call <= len(self.changes):
            execute(self.changes[call - 1], f"change of {self.name}", space)

    def __str__(self) -> str:
        between = [f"# before call {i + 2}: {text}" for i, text in enumerate(self.changes)]
        return "\n".join([self.source, *between])


@dataclasses.dataclass
class Observation:
    """What one call of a test program did: result, error, printed output and state afterwards.

    Attributes:
        label: name of the call, such as "call 1".
        result: a snapshot of the result.
        error: (class, arguments, exception object) of the exception, or None.
        printed: the printed words and numbers in order.
        state: values of the watched expressions after the call.
    """

    label: str
    result: object = None
    error: Any = None
    printed: list[str] = dataclasses.field(default_factory=list)
    state: dict[str, object] = dataclasses.field(default_factory=dict)


def eager_jit(function: Any = None, **_: object) -> Any:
    """Return `function` itself; replaces `jit` in eager runs, and ignores the options of `jit`."""
    return (lambda f: f) if function is None else function


def load(program: Program, mode: str) -> dict[str, Any]:
    """Execute the source of a test program in a new namespace; return the namespace."""
    space: dict[str, Any] = {
        "__name__": "__program__", "ms": ms, "nn": nn, "ops": ops, "np": np, "Tensor": ms.Tensor,
        "Parameter": ms.Parameter, "jit": ms.jit if mode == "jit" else eager_jit,
    }  # fmt: skip
    execute(program.source, program.name, space)
    return space


def execute(source: str, name: str, space: dict[str, Any]) -> None:
    """Execute source code in a namespace, and register it with `linecache` like a file."""
    exec(_code(source, name), space)


@functools.lru_cache(maxsize=256)
def _code(source: str, name: str) -> types.CodeType:
    """Return the code object of a source; cached, so that all runs of a program share it.

    The source is registered with `linecache`, under a file name made from `name`.
    """
    text = textwrap.dedent(source)
    file = f"<{name} {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return compile(text, file, "exec")


@functools.lru_cache(maxsize=256)
def _expression(source: str) -> types.CodeType:
    return compile(source, "<expression of a test program>", "eval")


@contextlib.contextmanager
def settings_for(mode: str, level: str | None) -> Iterator[None]:
    """Return a context manager that sets execution mode and jit level for a run of a test program.

    In it, functions are compiled again if a captured variable changes, and a fallback to
    line-by-line execution is an error.
    """
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
        # a function that falls back to Python would trivially agree
        warnings.filterwarnings("error", ".*runs line by line(?! under a derivative)")
        # debug mode finds that `Scale` of the random programs is no derivative, which is meant
        warnings.filterwarnings("ignore", ".*its bprop differs")
        try:
            yield
        finally:
            ms.set_context(**before)


def _tensors(inputs: Sequence[object]) -> list[object]:
    return [_copied(a) for a in inputs]


def _copied(value: object) -> object:
    """Copy the nested inputs of a test program, with NumPy arrays converted to Tensors."""
    if isinstance(value, np.ndarray):
        return Tensor(value.copy())
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(v) for v in value)
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    return value


def total(value: object) -> Tensor:
    """Return the sum of all elements of the floating Tensors in a nested value, as a 0-d Tensor.

    Only float16, float32 and float64 count. The sum is 0.0 if there are none.
    """
    found: list[Tensor] = []
    _collect(value, found)
    out: Tensor = found[0].sum() if found else Tensor(0.0, ms.float32)
    for t in found[1:]:
        out = out + t.sum()
    return out


def _collect(value: object, found: list[Tensor]) -> None:
    """Append the floating Tensors of a nested container to the list `found`."""
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
    """Call the program's `f` and its gradients in `mode`; return what each call did.

    There are two gradients: one differentiates `f` outside compiled code, the other inside a
    compiled function. The program is loaded anew for the calls of `f` and for those of each
    gradient, so that they share no state. Without `positions` and `weights` there is no gradient.
    """
    found: list[Observation] = []
    with settings_for(mode, level):
        ms.set_seed(11)
        space = load(program, mode)
        inputs = [_tensors(program.inputs_of(i)) for i in range(program.calls)]
        for i, arguments in enumerate(inputs):
            program.change(i, space)
            found.append(_called(f"call {i + 1}", space, space["f"], arguments))
        if not program.positions and not program.weights:
            return found
        for where in ("outside", "inside"):
            if mode == "eager" and where == "inside":  # the same calls: nothing is compiled
                found += [
                    dataclasses.replace(o, label=_gradient_label(where, i))
                    for i, o in enumerate(found[-program.calls :])
                ]
                break
            ms.set_seed(12)
            space = load(program, mode)
            gradient = _gradient(program, space, mode, where)
            for i in range(program.calls):
                arguments = _tensors(program.inputs_of(i))
                program.change(i, space)
                found.append(_called(_gradient_label(where, i), space, gradient, arguments))
    return found


def _gradient_label(where: str, call: int) -> str:
    return f"gradient from {where}, call {call + 1}"


def _gradient(
    program: Program, space: dict[str, Any], mode: str, where: str
) -> Callable[..., object]:
    """Return a function that computes the gradient of the function `f` in namespace `space`.

    The returned function is compiled if `where` is "inside" and `mode` is not "eager".
    """
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
    execute(text, f"gradient of {program.name}", space)
    found: Any = space["gradient"]
    return found


def _called(
    label: str, space: dict[str, Any], function: Callable[..., object], arguments: list[object]
) -> Observation:
    """Call a function of a test program; return what the call did."""
    seen = Observation(label)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), np.printoptions(precision=9, floatmode="maxprec"):
        try:
            seen.result = snapshot(function(*arguments))
            ms.synchronize()
        except Exception as error:  # noqa: BLE001 (an exception is an effect to compare)
            seen.error = (type(error), snapshot(error.args), error)
    seen.printed = printed_words(out.getvalue())
    if settings.debug:  # which calls a `bprop` once more, line by line, to check it
        seen.printed = [word for word in seen.printed if word != "bprop"]
    for name in space.get("WATCH", ()):
        seen.state[name] = snapshot(eval(_expression(name), space))
    seen.state["the arguments"] = snapshot(arguments)
    return seen


def is_refused(program: Program, got: Sequence[Observation]) -> bool:
    """Return whether the compiled run failed with a compiler error that the test program allows."""
    return bool(program.refused) and any(
        o.error is not None and re.search(program.refused, str(o.error[2])) for o in got
    )


def disagreement(
    want: Sequence[Observation],
    got: Sequence[Observation],
    near: float = 0.0,
    rounded: bool = False,
) -> str | None:
    """Describe the first difference between an eager and a compiled run, or return None.

    Args:
        want, got: what the calls of the eager and of the compiled run did.
        near: tolerance of gradients.
        rounded: whether this tolerance applies to results, too.
    """
    for a, b in zip(want, got, strict=True):
        text = _observation_difference(a, b, near, rounded)
        if text is not None:
            return f"{a.label}: {text}"
    return None


def _observation_difference(
    a: Observation, b: Observation, near: float, rounded: bool
) -> str | None:
    if (a.error is None) != (b.error is None):
        error = a.error or b.error
        side = "line by line" if a.error else "compiled"
        return f"{side} it raises {error[0].__name__}{error[1]!r}, otherwise not\n{error[2]}"
    if a.error is not None:
        if a.error[0].__qualname__ != b.error[0].__qualname__:  # each run defines its classes
            return (
                f"raises {a.error[0].__name__}: {a.error[2]}\n  and {b.error[0].__name__}: "
                f"{b.error[2]}"
            )
        text = difference_of(
            a.error[1],
            without_location(b.error[1]),
            "the exception's arguments",
            near if rounded else None,
        )
        if text is not None:
            return text
    loose = near if rounded or a.label.startswith("gradient") else None
    text = difference_of(a.result, b.result, "the result", loose)
    if text is not None:
        return text
    if not same_words(a.printed, b.printed):
        return f"prints {' '.join(a.printed)!r}\n  and    {' '.join(b.printed)!r}"
    return difference_of(a.state, b.state, "afterwards ", near if rounded else None)
