"""GRAPH_MODE and `Cell.compile`: how a Cell is called when it is compiled as a whole."""

from __future__ import annotations

from typing import Any

from ..context import GRAPH_MODE, settings
from ..nn.cell import Cell
from .function import JitFunction
from .options import JitConfig

__all__ = ["graph_call", "compile_cell"]


def _function(cell: Cell) -> JitFunction:
    """The compiled form of a Cell; kept on it."""
    found = _own(cell, "_compiled")
    if found is None:
        found = _own(cell, "_graph")
        if found is None:
            config = cell._jit_config if isinstance(cell._jit_config, JitConfig) else JitConfig()
            found = _CellFunction(type(cell).construct, config, None, target=cell)
            cell.__dict__["_graph"] = found
    return found


def _own(cell: Cell, name: str) -> Any:
    """What is kept on a Cell under this name, unless a shallow copy brought it here from another
    Cell.
    """
    found = cell.__dict__.get(name)
    if found is not None and found._target is not cell:
        found = cell.__dict__[name] = found._of_copy(cell)
    return found


class _CellFunction(JitFunction):
    """The compiled form of one Cell; a copy of the Cell makes its own."""

    def __deepcopy__(self, memo: Any) -> Any:
        return None

    def _of_copy(self, target: Any) -> Any:
        return None

    def __reduce__(self) -> Any:
        return type(None), ()


def graph_call(cell: Cell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Cell in GRAPH_MODE, or one that was compiled; NotImplemented when it is to run line by
    line.
    """
    if settings.mode != GRAPH_MODE:
        compiled = _own(cell, "_compiled")
        if compiled is None:
            return NotImplemented
        if isinstance(compiled, _CellFunction) and not compiled.has(args, kwargs):
            return NotImplemented  # `Cell.compile` was for other arguments
        return compiled.long_call(args, kwargs)
    return _function(cell).long_call(args, kwargs)


def compile_cell(cell: Cell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """`Cell.compile`."""
    function = _function(cell)
    function.compile(*args, **kwargs)
    cell.__dict__["_compiled"] = function
    cell.__dict__["_plain"] = False
