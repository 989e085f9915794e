"""Calls Cells that are compiled as a whole: in GRAPH_MODE, by `jit(cell)` or by `Cell.compile`.

`nn.Cell` calls these functions. The compiled form of a Cell is stored in the Cell's `__dict__`, and
a copy of the Cell makes a new form. Two Cells must never have the same form, because it is bound to
the Parameters of its Cell.
"""

from __future__ import annotations

import inspect

from ..context import GRAPH_MODE, settings
from ..frontend.types import Args, Kwargs, Value
from ..nn.cell import Cell
from ..pages import Page
from .explain import Explanation
from .function import JitFunction
from .options import JitConfig

__all__ = ["graph_call", "compile_cell", "explain_cell", "show_cell", "signature_of"]


def _function(cell: Cell) -> JitFunction:
    """Return the JitFunction that runs a Cell in GRAPH_MODE; create and store it if missing."""
    found = _own(cell, "_compiled")
    if found is None:
        found = _own(cell, "_graph")
        if found is None:
            config = JitConfig() if cell._jit_config is None else cell._jit_config
            found = _CellFunction(type(cell).construct, config, None, signature_of(cell), cell)
            cell.__dict__["_graph"] = found
    return found


def signature_of(cell: Cell) -> tuple[Value, ...] | None:
    """Return what `Cell.set_inputs` declared, one item per argument; None if it was not called."""
    declared = cell._inputs
    if isinstance(declared, dict):
        names = list(inspect.signature(cell.construct).parameters)
        return tuple(declared.get(name) for name in names)
    return tuple(declared) if declared else None


def _own(cell: Cell, name: str) -> JitFunction | None:
    """Return a Cell's own JitFunction, stored as attribute `name`, or None if there is none.

    After a shallow copy of a Cell, the original and the copy hold the same JitFunction. If `cell`
    is such a copy, the attribute is replaced by the result of `JitFunction._of_copy`, which is None
    for a form that GRAPH_MODE or `Cell.compile` made.
    """
    found: JitFunction | None = cell.__dict__.get(name)
    if found is not None and found._target is not cell:
        found = cell.__dict__[name] = found._of_copy(cell)
    return found


class _CellFunction(JitFunction):
    """The JitFunction of one Cell in GRAPH_MODE; in a copy or pickle of the Cell it is None."""

    def __deepcopy__(self, memo: object) -> None:  # type: ignore[override]
        return None

    def _of_copy(self, target: Value) -> None:  # type: ignore[override]
        return None

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


def graph_call(cell: Cell, args: Args, kwargs: Kwargs) -> Value:
    """Run the compiled form of a Cell and return its result.

    In GRAPH_MODE the Cell is compiled at its first call. In PYNATIVE_MODE only a form that
    `jit(cell)` or `Cell.compile` made is used; without one, the result is NotImplemented and the
    caller must run the Cell uncompiled.
    """
    if settings.mode != GRAPH_MODE:
        compiled = _own(cell, "_compiled")
        if compiled is None:
            return NotImplemented
        if isinstance(compiled, _CellFunction) and not compiled.has(args, kwargs):
            return NotImplemented  # `Cell.compile` was called with other arguments
        return compiled.long_call(args, kwargs)
    return _function(cell)(*args, **kwargs)


def compile_cell(cell: Cell, args: Args, kwargs: Kwargs) -> None:
    """Compile a Cell for the types of the given arguments without running it (`Cell.compile`)."""
    function = _function(cell)
    function.compile(*args, **kwargs)
    cell.__dict__["_compiled"] = function
    cell.__dict__["_plain"] = False


def explain_cell(cell: Cell, args: Args, kwargs: Kwargs) -> Explanation:
    """Return the report on a Cell, compiled for the given arguments (`Cell.explain`)."""
    return _function(cell).explain(*args, **kwargs)


def show_cell(cell: Cell, args: Args, kwargs: Kwargs) -> Page:
    """Return the HTML page about a Cell, compiled for the given arguments (`Cell.show`)."""
    return _function(cell).show(*args, **kwargs)
