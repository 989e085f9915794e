"""Defines `check_parity`, which checks that compiled and line-by-line execution agree.

Users call it to find the first op whose value differs. It runs a function several times; before
each run it must restore every tensor, number and random state that the compiled program reads or
writes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import context
from ..backend import registry
from ..compiler.arguments import Slots, signature
from ..compiler.compiled_program import CompiledProgram
from ..compiler.evaluate import compile_program
from ..compiler.function import JitFunction
from ..compiler.inputs import read_input
from ..compiler.interpret import interpret
from ..dtype import as_dtype
from ..frontend.diagnostics import Span, location_text
from ..ir.graph import Graph, GraphNode
from ..nn.cell import Cell
from ..op import Op
from ..parameter import Parameter
from ..placement import commit
from ..random_state import get_rng_state, set_rng_state
from ..runtime_state import runtime_state, thread_state
from ..tensor import Tensor
from ..types import TensorType
from .compare import difference_of, printed_words, same_words, snapshot, without_location
from .tolerance import forward_tolerance

__all__ = ["check_parity", "Parity"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclasses.dataclass(frozen=True)
class Parity:
    """The result of `check_parity`; true if the two runs agree.

    Attributes:
        agrees: whether results, written tensors, prints and exceptions are equal, except for
            rounding in generated code.
        identical: whether they are equal bit for bit.
        difference: a description of the first difference, or "".
        op: name of the first op whose value differs; "" if none was found.
        place: the user's source line of that op, such as `model.py:12`; "" if it is unknown.
        details: a longer description, to be shown to users.
    """

    agrees: bool
    identical: bool
    difference: str = ""
    op: str = ""
    place: str = ""
    details: str = ""

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        if self.agrees:
            how = "bit for bit" if self.identical else f"within rounding: {self.difference}"
            return f"compiled and line by line agree, {how}"
        return f"compiled and line by line differ: {self.difference}\n{self.details}".rstrip()


def check_parity(fn: Callable[..., object], *args: object, **kwargs: object) -> Parity:
    """Run a function line by line and compiled on the same arguments, and compare all effects.

    Argument tensors, tensors and Python numbers that the function writes, and the random state are
    restored before each run. Side effects on other objects occur in both runs.

    Args:
        fn: a function, a method, a Cell, or a result of `jit`. For gradients, pass ``ms.grad(fn)``.
        args, kwargs: the arguments of `fn`.

    Returns:
        A `Parity`, which is true if both runs agree; printing it shows the first difference.

    Raises:
        UnsupportedSyntaxError: the function cannot be compiled.

    Examples:
        >>> import duograph as ms
        >>> def f(x):
        ...     if x.sum() > 0:
        ...         return x * 2
        ...     return x
        >>> print(ms.check_parity(f, ms.Tensor([1.0, 2.0])))
        compiled and line by line agree, bit for bit
    """
    run = _Runs(fn, args, kwargs)
    want, got = run.eager(), run.compiled()
    text = _difference(want, got)
    if text is None:
        return Parity(True, True)
    if context.settings.jit_level != "O0" and _near(want, got):
        return Parity(True, False, text)
    return run.located(text)


@dataclasses.dataclass
class _Outcome:
    """What one run of a function did: its result, exception, printed text, arguments and state."""

    result: object
    error: BaseException | None
    printed: list[str]
    arguments: object
    state: object


@dataclasses.dataclass
class _Value:
    """The result tensors of one op call or graph node in a run, with the user's source line."""

    op: str
    file: str
    line: int
    tensors: list[Tensor]
    span: Span


class _Runs:
    """Runs a function under comparison, eagerly or compiled, and restores the state before it."""

    def __init__(
        self, fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        slots = self._slots(args, kwargs)
        device = next(
            (d for x in slots.leaves if (d := x._type.device) is not None),
            registry.current_device(),
        )
        for x in slots.leaves:
            if x._type.device is None:
                commit(x, device)
        self.device = device
        target: object = fn
        if isinstance(fn, JitFunction):
            target = fn.function if fn._target is None else fn._target
        self.name = getattr(fn, "__name__", type(fn).__name__)
        self.program: CompiledProgram = compile_program(
            target, args, kwargs, False, device, self.name
        )
        self.random = get_rng_state()
        tensors = {id(t): t for t in (*self.program.state, *_tensors_of((args, kwargs)))}
        self.tensors = [(t, t._type, t._buf) for t in tensors.values()]
        self.objects = [
            (kind, *v, _read(kind, *v))
            for kind, v in self.program.inputs
            if kind in ("item", "attribute", "cell")
        ]

    @staticmethod
    def _slots(args: Any, kwargs: Any) -> Slots:
        slots = Slots()
        for value in (*args, *kwargs.values()):
            signature(value, slots)
        return slots

    def _restore(self) -> None:
        """Restore tensors, captured objects and the random state to those before the first run."""
        for tensor, type_, buffer in self.tensors:
            tensor._type, tensor._buf = type_, buffer
        runtime_state.bindings_version = object()
        for kind, owner, name, value in self.objects:
            if kind == "item":
                owner[name] = value
            elif kind == "cell":
                owner.cell_contents = value
            else:
                setattr(owner, name, value)
        set_rng_state(self.random)

    def _outcome(self, call: Callable[[Any, Any], object]) -> _Outcome:
        """Run `call` on copies of the compared function's arguments; return what it did."""
        self._restore()
        args, kwargs = _copied(self.args), _copied(self.kwargs)
        out = io.StringIO()
        result, raised = None, None
        with contextlib.redirect_stdout(out), np.printoptions(precision=9, floatmode="maxprec"):
            try:
                result = snapshot(call(args, kwargs))
            except Exception as error:  # noqa: BLE001 (an exception is an effect to compare)
                raised = error
        state = {
            getattr(t, "name", None) or f"tensor {i}": snapshot(t)
            for i, t in enumerate(self.program.state)
        }
        counted = [snapshot(_read(kind, owner, name)) for kind, owner, name, _ in self.objects]
        found = _Outcome(
            result,
            raised,
            printed_words(out.getvalue()),
            snapshot((args, kwargs)),
            (state, counted),
        )
        self._restore()
        return found

    def eager(self) -> _Outcome:
        """Run the compared function line by line, without compilation; return what it did."""
        with _line_by_line():
            return self._outcome(lambda args, kwargs: self.fn(*args, **kwargs))

    def compiled(self) -> _Outcome:
        """Run the compared function compiled, as `jit` does; return what it did."""

        def call(args: Any, kwargs: Any) -> object:
            slots = self._slots(args, kwargs)
            return self.program.call(slots.leaves, slots.numbers, slots.containers)

        return self._outcome(call)

    # ---- location of a difference ---------------------------------------------------------------

    def located(self, text: str) -> Parity:
        """Run the function uncompiled and its graph op by op, to find where their values differ.

        Return a result that names the first op whose value differs; `text` describes the difference
        of the whole runs.
        """
        eager: list[_Value] = []
        with _line_by_line(), _recording(eager):
            self._outcome(lambda args, kwargs: self.fn(*args, **kwargs))
        nodes: list[_Value] = []
        self._outcome(lambda args, kwargs: self._interpreted(args, kwargs, nodes))
        found = _first_difference(eager, nodes, _lines_of(self.program.graph))
        if found is None:
            return Parity(
                False,
                False,
                text,
                details="  Every op gives the same value in both when it is run alone: what "
                "differs is which value is "
                "returned or written, or what the optimised program makes of several ops",
            )
        value, other = found
        lines = [f"first op that differs: {value.op}", *location_text([value.span])]
        lines.append(f"  line by line  {_short(value.tensors)}")
        if other is None:
            lines.append("  compiled      this line does not run, or gives another value")
        else:
            lines.append(f"  compiled      {_short(other.tensors)}")
        return Parity(False, False, text, value.op, f"{value.file}:{value.line}", "\n".join(lines))

    def _interpreted(self, args: Any, kwargs: Any, log: list[_Value]) -> None:
        """Run the compiled graph node by node; append the tensor results of each node to `log`."""
        slots = self._slots(args, kwargs)
        program = self.program
        values: list[object] = []
        for i, source in enumerate(program.inputs):
            handle = read_input(source, slots.leaves, slots.numbers, slots.containers, self.device)
            t = program.graph.types[i]
            values.append(
                Tensor._make(t.on(self.device), handle) if isinstance(t, TensorType) else handle
            )

        def watch(node: GraphNode, results: tuple[object, ...]) -> None:
            tensors = [_frozen(r) for r in results if isinstance(r, Tensor)]
            span = node.span
            if tensors and isinstance(span, Span) and not node.graphs:
                log.append(_Value(node.op.name, span.file, span.line, tensors, span))

        interpret(program.graph, values, self.device, watch)


def _read(kind: str, owner: Any, name: Any) -> object:
    if kind == "item":
        return owner[name]
    return owner.cell_contents if kind == "cell" else getattr(owner, name)


@contextlib.contextmanager
def _line_by_line() -> Iterator[None]:
    """Return a context manager in which functions decorated with `jit` run without compilation."""
    before = {k: context.get_context(k) for k in ("mode", "jit")}
    context.set_context(mode=context.PYNATIVE_MODE, jit=False)
    try:
        yield
    finally:
        context.set_context(**before)


class _Recorder:
    """Stands in for a thread's graph builder: runs each op eagerly and logs its results."""

    staged = False

    def __init__(self, log: list[_Value]) -> None:
        self.log = log

    def apply(self, op: Op, operands: tuple[object, ...], attributes: dict[str, object]) -> object:
        """Run an op eagerly and append its results to the log."""
        thread_state.builder = None
        try:
            out = runtime_state.eager_builder.apply(op, operands, attributes)
        finally:
            thread_state.builder = self
        tensors = [
            _frozen(t) for t in (out if isinstance(out, tuple) else (out,)) if isinstance(t, Tensor)
        ]
        span = _users_line()
        if span is not None and tensors:
            self.log.append(_Value(op.name, span.file, span.line, tensors, span))
        return out


@contextlib.contextmanager
def _recording(log: list[_Value]) -> Iterator[None]:
    before = thread_state.builder
    thread_state.builder = _Recorder(log)
    runtime_state.enter_staging()  # every op goes through the door
    try:
        yield
    finally:
        runtime_state.leave_staging()
        thread_state.builder = before


def _users_line() -> Span | None:
    """Return the source location of the innermost stack frame outside this package, or None."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line).rstrip("\n")
    start = len(text) - len(text.lstrip())
    return Span(file, line, start, len(text.encode()), text, frame.f_code.co_name)


def _frozen(tensor: Tensor) -> Tensor:
    """Return a new Tensor with the current value of a tensor that may be mutated later."""
    return Tensor._make(tensor._type, tensor._buf)


def _lines_of(graph: Graph) -> set[tuple[str, int]]:
    """Return the (file, line) source positions of all nodes of a compiled graph."""
    found: set[tuple[str, int]] = set()
    for node in graph.nodes:
        if node.span is not None:
            found.add((node.span.file, node.span.line))
        for inner in node.graphs:
            found |= _lines_of(inner)
    return found


def _first_difference(
    eager: list[_Value], nodes: list[_Value], lines: set[tuple[str, int]]
) -> tuple[_Value, _Value | None] | None:
    """Return (value, node) for the first eager value that no node of the graph equals, or None.

    The node is the one that probably should compute the value. A value is compared with the nodes
    of its source line, in order; nodes before the one that equals it are skipped. The returned node
    is the first remaining one of that line with the same op, else the first remaining one, else
    None. Values on source lines that are not in `lines`, the lines with nodes, are not compared.
    """
    waiting: dict[tuple[str, int], list[_Value]] = {}
    for node in nodes:
        waiting.setdefault((node.file, node.line), []).append(node)
    for value in eager:
        at = (value.file, value.line)
        if at not in lines:
            continue  # computed while compiling, or of no use to the result
        left = waiting.get(at, [])
        for k, node in enumerate(left):
            if _same_tensors(value.tensors, node.tensors):
                del left[: k + 1]
                break
        else:
            return value, next((n for n in left if n.op == value.op), left[0] if left else None)
    return None


def _same_tensors(a: list[Tensor], b: list[Tensor]) -> bool:
    """Return whether each of the first `len(b)` tensors of `a` equals some tensor of `b`."""
    return all(any(difference_of(x.asnumpy(), y.asnumpy()) is None for y in b) for x in a[: len(b)])


def _copied(value: Any) -> Any:
    """Copy the containers and Tensors of nested arguments; Parameters are not copied."""
    if isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return _frozen(value)
    if type(value) is dict:
        return {k: _copied(v) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(v) for v in value)
    return value


def _tensors_of(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors_of(v)
    elif isinstance(value, dict):
        yield from _tensors_of(list(value.values()))
    elif isinstance(value, Cell):
        yield from value.get_parameters()


def _short(tensors: list[Tensor]) -> str:
    text = ", ".join(np.array2string(t.asnumpy(), threshold=12, precision=9) for t in tensors)
    return text.replace("\n", "\n" + " " * 16)


# ---- comparison
# -------------------------------------------------------------------------------------


def _difference(a: _Outcome, b: _Outcome) -> str | None:
    if (a.error is None) != (b.error is None):
        error = a.error or b.error
        side = "line by line" if a.error else "compiled"
        return f"{side} it raises {type(error).__name__}: {error}"
    if a.error is not None and b.error is not None:
        if type(a.error) is not type(b.error):
            return f"raises {type(a.error).__name__} and {type(b.error).__name__}: {b.error}"
        text = difference_of(
            snapshot(a.error.args),
            without_location(snapshot(b.error.args)),
            "the exception's arguments",
        )
        if text is not None:
            return text
    if not same_words(a.printed, b.printed):
        return f"prints {' '.join(a.printed)!r} and {' '.join(b.printed)!r}"
    return (
        difference_of(a.result, b.result, "the result")
        or difference_of(a.arguments, b.arguments, "the arguments afterwards")
        or difference_of(a.state, b.state, "what is written")
    )


def _near(a: _Outcome, b: _Outcome) -> bool:
    """Return whether two outcomes differ only in floating numbers, within a tolerance."""
    if a.error is not None or b.error is not None or not same_words(a.printed, b.printed):
        return False
    return _close((a.result, a.arguments, a.state), (b.result, b.arguments, b.state))


def _close(a: Any, b: Any) -> bool:
    if (
        isinstance(a, np.ndarray)
        and isinstance(b, np.ndarray)
        and a.dtype == b.dtype
        and a.shape == b.shape
    ):
        if a.dtype.kind not in "fcV":
            return bool((a == b).all())
        near = forward_tolerance(as_dtype(a.dtype))
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        return bool(np.allclose(x, y, near.relative, near.absolute, equal_nan=True))
    if type(a) is type(b) and isinstance(a, (list, tuple)) and len(a) == len(b):
        return all(map(_close, a, b))
    if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
        return all(_close(a[k], b[k]) for k in a)
    return difference_of(a, b) is None
