"""Walks over a tree of Cells (network layers): names, state dictionaries, the printed form.

The methods of `Cell` of the same names call these functions. Only `load_state_dict` writes.
"""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..errors import ArgumentError, ArgumentValueError, CheckpointError
from ..parameter import Parameter
from ..tensor import Tensor

if TYPE_CHECKING:
    from .cell import Cell

__all__ = [
    "IncompatibleKeys",
    "StateMismatch",
    "check_names",
    "walk_cells",
    "walk_parameters",
    "state_dict",
    "load_state_dict",
    "describe",
]


class StateMismatch(CheckpointError, RuntimeError):
    """Error for a state dictionary that does not match the Cell; no Parameter was changed."""


IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


def walk_cells(cell: Cell, prefix: str = "") -> Iterator[tuple[str, Cell]]:
    """Yield (path, Cell) over a tree of Cells, parents first; a shared Cell comes once."""
    seen: set[int] = set()

    def walk(own: Cell, path: str) -> Iterator[tuple[str, Cell]]:
        if id(own) in seen:
            return
        seen.add(id(own))
        yield path, own
        for name, child in own._cells.items():
            if child is not None:
                yield from walk(child, f"{path}.{name}" if path else name)

    return walk(cell, prefix)


def walk_parameters(
    cell: Cell, prefix: str = "", expand: bool = True
) -> Iterator[tuple[str, Parameter]]:
    """Yield (path, Parameter) over a tree of Cells; a shared Parameter comes once."""
    seen: set[int] = set()
    cells = walk_cells(cell, prefix) if expand else iter([(prefix, cell)])
    for path, own in cells:
        for name, parameter in own._params.items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield (f"{path}.{name}" if path else name), parameter


def check_names(cell: Cell) -> None:
    """Raise ValueError if two Parameters in a tree of Cells have the same name."""
    seen: dict[str, str] = {}
    for path, parameter in walk_parameters(cell):
        other = seen.setdefault(parameter.name, path)
        if other != path:
            raise ArgumentValueError(
                f"{type(cell).__name__}: the parameters {other} and {path} are both named "
                f"{parameter.name!r}; wanted unique names (after replacing a part of a Cell, call "
                "update_parameters_name() of the whole; or give a Parameter another name=)"
            )


def state_dict(
    cell: Cell,
    destination: OrderedDict[str, Tensor] | None = None,
    prefix: str = "",
    keep_vars: bool = False,
) -> OrderedDict[str, Tensor]:
    """Return the Parameters and persistent buffers of a tree of Cells in a dictionary by path.

    They are added to `destination` if it is given; `prefix` stands before each path. Parameters are
    returned themselves. Buffers are copied unless `keep_vars` is set.
    """
    found: OrderedDict[str, Tensor] = OrderedDict() if destination is None else destination
    for path, own in walk_every_cell(cell):
        head = f"{prefix}{path}." if path else prefix
        for name, parameter in own._params.items():
            if parameter is not None:
                found[head + name] = parameter
        for name, buffer in own._buffers.items():
            if buffer is not None and name not in own._transient:
                found[head + name] = buffer if keep_vars else buffer.copy()
    return found


def walk_every_cell(cell: Cell, prefix: str = "") -> Iterator[tuple[str, Cell]]:
    """Yield (path, Cell) over a tree of Cells; a shared Cell comes once for each of its paths."""
    yield prefix, cell
    for name, child in cell._cells.items():
        if child is not None:
            yield from walk_every_cell(child, f"{prefix}.{name}" if prefix else name)


def load_state_dict(cell: Cell, values: Mapping[str, Tensor], strict: bool) -> IncompatibleKeys:
    """Copy `values`, by path, into the Parameters and buffers of a tree of Cells.

    Returns the paths that are missing in `values` and those that the Cell lacks; with `strict` they
    are an error. All names and shapes are checked before the first write.
    """
    if not isinstance(values, Mapping):
        raise ArgumentError(
            f"{type(cell).__name__}.load_state_dict: got {type(values).__name__}; wanted a mapping "
            f"from names to Tensors"
        )
    own = state_dict(cell, keep_vars=True)
    missing = [k for k in own if k not in values]
    unexpected = [k for k in values if k not in own]
    problems = []
    if strict and missing:
        problems.append(f"missing keys: {', '.join(missing)}")
    if strict and unexpected:
        problems.append(f"unexpected keys: {', '.join(unexpected)}")
    for name, target in own.items():
        if name in values and tuple(values[name].shape) != target.shape:
            problems.append(f"{name} has shape {tuple(values[name].shape)}, wanted {target.shape}")
    if problems:
        raise StateMismatch(
            f"{type(cell).__name__}.load_state_dict: {'; '.join(problems)}; nothing was changed"
        )
    for name, target in own.items():
        if name in values:
            if isinstance(target, Parameter):
                target.set_data(values[name])
            else:
                target.copy_(values[name])
    return IncompatibleKeys(missing, unexpected)


def describe(cell: Cell) -> str:
    """Return the printed form of a Cell: ``Dense(input_channels=2, ...)`` and its children."""
    own = cell.extend_repr()
    children = [
        f"  ({name}): {_indent(repr(child))}"
        for name, child in cell._cells.items()
        if child is not None
    ]
    head = type(cell).__name__
    if not children:
        return f"{head}({own})"
    lines = [f"  {own}"] if own else []
    return "\n".join([f"{head}(", *lines, *children, ")"])


def _indent(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line for line in rest)])
