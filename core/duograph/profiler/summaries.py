"""`summary`: a table of a network's Cells with output shapes, parameters and costs.

The network runs once, in eager mode and in evaluation mode; an observer assigns each kernel to the
innermost Cell that runs. The network is unchanged afterwards.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np

from .. import context
from ..backend import observers
from ..backend.observers import Event, Observer, Work
from ..dtype import DType, float32
from ..errors import ArgumentError
from ..nn.cell import Cell
from ..pages import notebook
from ..random_state import get_rng_state, set_rng_state
from ..runtime_state import staged_builder
from ..tensor import Tensor
from .operations import multiply_adds

__all__ = ["CellRow", "Summary", "summary"]

_HEAD = ("Cell", "type", "output shape", "parameters", "trainable", "multiply-adds", "output")


@dataclasses.dataclass
class CellRow:
    """One Cell of a network. The numbers do not include its child Cells, which have their own rows.

    Attributes:
        path: name of the Cell in the network, such as ``"backbone.0"``; "" for the network itself.
        kind: name of the Cell's class.
        depth: number of ancestors of the Cell.
        output: shapes of the results of the last call; () if the Cell was not called.
        calls: number of calls.
        parameters: number of elements of the Cell's own Parameters.
        trainable: number of these elements that are trainable.
        parameter_bytes: bytes of memory of the Cell's own Parameters.
        multiply_adds: number of multiply-adds of the matmuls, convolutions and attentions that the
            Cell itself calls.
        output_bytes: bytes of memory of the results of the last call.
    """

    path: str
    kind: str
    depth: int
    output: tuple[tuple[int, ...], ...] = ()
    calls: int = 0
    parameters: int = 0
    trainable: int = 0
    parameter_bytes: int = 0
    multiply_adds: int = 0
    output_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Summary:
    """The rows of `summary` and their sums; `str()` returns the table, which notebooks display too.

    Attributes:
        rows: one `CellRow` per Cell, parents first.
        parameters, trainable: number of elements of all Parameters and of the trainable ones, each
            Parameter counted once.
        parameter_bytes: bytes of memory of the Parameters.
        multiply_adds: number of multiply-adds in one call of the network.
        activation_bytes: bytes of all results that kernels wrote in that call, an upper bound of
            what a training step keeps for the backward pass.
    """

    rows: tuple[CellRow, ...]
    parameters: int
    trainable: int
    parameter_bytes: int
    multiply_adds: int
    activation_bytes: int

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                "  " * row.depth + (row.path.rpartition(".")[2] or "network"),
                row.kind,
                _shapes(row.output) + (f" x{row.calls}" if row.calls > 1 else ""),
                f"{row.parameters:,}" if row.parameters else "-",
                _trainable(row),
                f"{row.multiply_adds:,}" if row.multiply_adds else "-",
                _bytes(row.output_bytes) if row.calls else "-",
            )
            for row in self.rows
        ]

    def _sums(self) -> list[tuple[str, str]]:
        fixed = self.parameters - self.trainable
        return [
            ("parameters", f"{self.parameters:,} ({_bytes(self.parameter_bytes)})"),
            ("trainable", f"{self.trainable:,}" + (f", fixed {fixed:,}" if fixed else "")),
            ("multiply-adds", f"{self.multiply_adds:,}"),
            ("memory of all results", _bytes(self.activation_bytes)),
        ]

    def __str__(self) -> str:
        rows = [_HEAD, *self._cells()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
        lines = []
        for row in rows:
            texts = [
                text.ljust(w) if k < 3 else text.rjust(w)
                for k, (text, w) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(texts).rstrip())
        rule = "-" * max(len(line) for line in lines)
        sums = [f"{name}: {value}" for name, value in self._sums()]
        return "\n".join([lines[0], rule, *lines[1:], rule, *sums])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sums = notebook.table(("", ""), self._sums(), 2)
        return notebook.table(_HEAD, self._cells(), 3) + sums


def summary(net: Cell, *inputs: object, dtype: DType | Sequence[DType] = float32) -> Summary:
    """Return a table of a network's Cells: output shapes, parameters, multiply-adds and memory.

    The network runs once on the inputs, in eager mode and in evaluation mode. Parameters, the
    random state and hooks are unchanged afterwards.

    Args:
        net: the network.
        inputs: the arguments of the call. A tuple or list of ints is a shape, for which a Tensor of
            zeros is passed. Without inputs, nothing runs and the table has parameters only.
        dtype: dtype of these zeros, or a list with one dtype for each shape.

    Raises:
        TypeError: `net` is no Cell, or `dtype` holds something that is no dtype.

    Examples:
        >>> import duograph as ms
        >>> from duograph import nn
        >>> net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
        >>> found = ms.summary(net, (16, 4))
        >>> found.parameters, found.multiply_adds, found.rows[1].output
        (58, 768, ((16, 8),))
    """
    if not isinstance(net, Cell):
        raise ArgumentError(f"summary: got {type(net).__name__}; wanted a Cell")
    if staged_builder() is not None:
        raise ArgumentError("summary: got a call inside a compiled function; wanted one outside")
    arguments = _arguments(inputs, dtype)
    rows = {id(cell): _row(path, cell) for path, cell in net.cells_and_names()}
    meter = _Meter(rows)
    if inputs:
        _run(net, arguments, meter)
    unique = {id(q): q for q in net.get_parameters()}.values()
    return Summary(
        tuple(rows.values()),
        sum(math.prod(q.shape) for q in unique),
        sum(math.prod(q.shape) for q in unique if q.requires_grad),
        sum(math.prod(q.shape) * q.dtype.itemsize for q in unique),
        sum(row.multiply_adds for row in rows.values()),
        meter.written,
    )


def _arguments(inputs: Sequence[object], dtype: DType | Sequence[DType]) -> list[object]:
    """Return the inputs, with a Tensor of zeros in place of each shape (tuple or list of ints).

    `dtype` is the dtype of all these Tensors, or a sequence with one dtype for each.

    Raises:
        ArgumentError: `dtype` is something else.
    """
    shapes = [_is_shape(x) for x in inputs]
    dtypes = [dtype] * sum(shapes) if isinstance(dtype, DType) else list(dtype)
    if len(dtypes) != sum(shapes) or not all(isinstance(d, DType) for d in dtypes):
        raise ArgumentError(
            f"summary: got dtype={dtype!r}; wanted a dtype, or one for each of {sum(shapes)} shapes"
        )
    kinds = iter(dtypes)
    return [
        Tensor(np.zeros(tuple(cast("Sequence[int]", x)), next(kinds).np)) if shape else x
        for x, shape in zip(inputs, shapes, strict=True)
    ]


def _is_shape(x: object) -> bool:
    return isinstance(x, (tuple, list)) and all(
        isinstance(n, int) and not isinstance(n, bool) for n in x
    )


def _row(path: str, cell: Cell) -> CellRow:
    own = [q for q in cell._params.values() if q is not None]
    sizes = [math.prod(q.shape) for q in own]
    return CellRow(
        path,
        type(cell).__name__,
        path.count(".") + bool(path),
        parameters=sum(sizes),
        trainable=sum(n for n, q in zip(sizes, own, strict=True) if q.requires_grad),
        parameter_bytes=sum(n * q.dtype.itemsize for n, q in zip(sizes, own, strict=True)),
    )


class _Meter(Observer):
    """An observer that adds the costs of kernels to the row of the innermost Cell that runs."""

    def __init__(self, rows: dict[int, CellRow]) -> None:
        self.rows = rows
        self.running: list[CellRow] = []
        self.written = 0
        self._work: dict[int, tuple[Work, int]] = {}

    def finished(self, event: Event) -> None:
        work = event.work
        if work.kind != "kernel" or not self.running:
            return
        known = self._work.get(id(work))
        if known is None:
            known = self._work[id(work)] = work, int(multiply_adds(work))
        self.running[-1].multiply_adds += known[1]
        results = work.types[len(work.types) - work.n_results :]
        self.written += sum(t.nbytes for t in results if not (work.op and work.op.alias))

    def enter(self, cell: Cell, args: tuple[object, ...]) -> None:
        del args
        self.running.append(self.rows[id(cell)])

    def leave(self, cell: Cell, args: tuple[object, ...], output: object) -> None:
        del cell, args
        row = self.running.pop()
        tensors = list(_tensors(output))
        row.calls += 1
        row.output = tuple(t.shape for t in tensors)
        row.output_bytes = sum(t._type.nbytes for t in tensors)


def _run(net: Cell, arguments: Sequence[object], meter: _Meter) -> None:
    """Call a network in evaluation mode while a meter observes it."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_line_by_line())
        for _, cell in net.cells_and_names():
            stack.callback(_setter(cell, cell.training))
            stack.callback(cell.register_forward_pre_hook(meter.enter).remove)
            stack.callback(cell.register_forward_hook(meter.leave).remove)
        net.set_train(False)
        random = get_rng_state()
        stack.callback(set_rng_state, random)
        observers.add(meter)
        stack.callback(observers.remove, meter)
        net(*arguments)


def _setter(cell: Cell, training: bool) -> Callable[[], None]:
    def restore() -> None:
        cell.training = training

    return restore


@contextlib.contextmanager
def _line_by_line() -> Iterator[None]:
    before = context.settings.jit
    context.set_context(jit=False)
    try:
        yield
    finally:
        context.set_context(jit=before)


def _tensors(value: object) -> Iterator[Tensor]:
    """Yield the tensors of a result, which may be nested in tuples, lists and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)


def _shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(str(s) for s in shapes) if shapes else "-"


def _trainable(row: CellRow) -> str:
    if not row.parameters:
        return "-"
    if row.trainable in (0, row.parameters):
        return "yes" if row.trainable else "no"
    return f"{row.trainable:,}"


def _bytes(n: int) -> str:
    """Return a number of bytes as text, such as "1.5 KiB"."""
    value = float(n)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
