"""Walks over a tree of Cells (network layers): names, state dictionaries, the printed form.

The methods of `Cell` of the same names call these functions. Only `load_state_dict` writes.
"""

from __future__ import annotations

import dis
import inspect
import math
from collections import OrderedDict, namedtuple
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, ArgumentValueError, StateMismatch
from ..pages import notebook
from ..parameter import Parameter
from ..tracebacks import short

if TYPE_CHECKING:
    from .cell import Cell

__all__ = [
    "IncompatibleKeys",
    "StateMismatch",
    "check_names",
    "walk_cells",
    "walk_parameters",
    "EXTRA_STATE",
    "load_state_dict",
    "describe",
    "describe_html",
]


# Characters of a Cell's options that a notebook shows.
_LONG = 80


IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])
IncompatibleKeys.__doc__ = """Result of `Cell.load_state_dict`, with two lists of names.

`missing_keys` are those that the Cell has and the state dictionary lacks, `unexpected_keys` those
that only the dictionary has.
"""
EXTRA_STATE = "_extra_state"  # the end of the paths of what `get_extra_state` returned


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
    """Yield (path, Parameter) over a tree of Cells; a shared Parameter comes once.

    Without `expand`, only the Parameters of `cell` itself are yielded. `prefix` begins each path.
    """
    seen: set[int] = set()
    cells = walk_cells(cell, prefix) if expand else iter([(prefix, cell)])
    for path, own in cells:
        for name, parameter in own._params.items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield (f"{path}.{name}" if path else name), parameter


def _made_at(cell: Cell, path: str) -> str:
    """Return the source line where a user's `__init__` assigned a Parameter, as " (net.py:7)".

    `path` leads from `cell` to the Parameter. If no `__init__` of the user assigned the Parameter
    itself, the result is the line that assigned the innermost Cell around it, or "" if there is
    none.
    """
    names = path.split(".")
    owners: list[Cell | None] = [cell]
    for name in names[:-1]:
        owners.append(None if owners[-1] is None else owners[-1]._cells.get(name))
    for owner, name in zip(reversed(owners), reversed(names), strict=True):
        code = getattr(inspect.getattr_static(type(owner), "__init__"), "__code__", None)
        if code is None or type(owner).__module__.partition(".")[0] == "duograph":
            continue
        sets = [i.offset for i in dis.get_instructions(code)
                if i.opname == "STORE_ATTR" and i.argval == name]  # fmt: skip
        for first, last, line in code.co_lines():
            if sets and first <= sets[-1] < last:
                return f" ({short(code.co_filename)}:{line})"
    return ""


def no_value(cell: Cell, name: str, value: object) -> str:
    """Return the message for a value that cannot be assigned to a Cell's Parameter `name`."""
    got = f"the text {value!r} (a str)" if isinstance(value, str) else type(value).__name__
    present = cell._params[name]
    head = f"{type(cell).__name__}: got {got} for the Parameter {name!r}"
    if present is None or present.size == 1:
        return (
            f"{head}; wanted a Tensor, a number, a Parameter or None (set_data changes its value)"
        )
    is_number = isinstance(value, (int, float))
    filled = f"such as ops.full({present.shape}, {value})" if is_number else "or a Parameter"
    return (
        f"{head} of shape {present.shape}; wanted a Tensor of this shape, {filled} "
        "(set_data changes the values as well)"
    )


def check_names(cell: Cell) -> None:
    """Raise ValueError if two Parameters in a tree of Cells have the same name."""
    seen: dict[str, str] = {}
    for path, parameter in walk_parameters(cell):
        other = seen.setdefault(parameter.name, path)
        if other != path:
            raise ArgumentValueError(
                f"{type(cell).__name__}: the parameters {other}{_made_at(cell, other)} and "
                f"{path}{_made_at(cell, path)} are both named "
                f"{parameter.name!r}; wanted unique names: give one of them another name= where it "
                "is made (Parameter(..., name=...)); after replacing a Cell inside another, call "
                "update_parameters_name() of the outermost Cell"
            )


def walk_every_cell(cell: Cell, prefix: str = "") -> Iterator[tuple[str, Cell]]:
    """Yield (path, Cell) over a tree of Cells; a shared Cell comes once for each of its paths."""
    yield prefix, cell
    for name, child in cell._cells.items():
        if child is not None:
            yield from walk_every_cell(child, f"{prefix}.{name}" if prefix else name)


def load_state_dict(cell: Cell, values: Mapping[str, Any], strict: bool) -> IncompatibleKeys:
    """Copy `values`, by path, into the Parameters and buffers of a tree of Cells.

    Returns the paths that are missing in `values` and those that the Cell lacks; with `strict` they
    are an error. All names and shapes are checked before the first write. Only if there are post
    hooks, which see the loaded values, names are checked after those have run.
    """
    if not isinstance(values, Mapping):
        raise ArgumentError(
            f"{type(cell).__name__}.load_state_dict: got {type(values).__name__}; wanted a mapping "
            f"from names to Tensors"
        )
    values = OrderedDict(values)
    keys = IncompatibleKeys([], [])
    problems: list[str] = []
    for path, own in walk_every_cell(cell):
        for hook in own._hooks_of("load"):
            prefix = f"{path}." if path else ""
            hook(own, values, prefix, {}, strict, *keys, problems)
    targets = cell.state_dict(keep_vars=True)
    keys.missing_keys.extend(k for k in targets if k not in values)
    keys.unexpected_keys.extend(k for k in values if k not in targets)
    for name, target in targets.items():
        if name in values and not name.endswith(EXTRA_STATE):
            got = tuple(values[name].shape)
            if got != target.shape:
                problems.append(f"{name} has shape {got}, wanted {target.shape}")
    last = [(c, h) for _, c in reversed([*walk_every_cell(cell)]) for h in c._hooks_of("loaded")]
    if problems or not last:
        _refuse_keys(cell, keys, strict, problems, "nothing was changed")
    _write(cell, values)
    for own, hook in last:
        if hook(own, keys) is not None:
            raise RuntimeError("load_state_dict: a post hook returned a value; wanted None")
    _refuse_keys(cell, keys, strict, [], "the other values were loaded")
    return keys


def _refuse_keys(
    cell: Cell, keys: IncompatibleKeys, strict: bool, problems: list[str], state: str
) -> None:
    if strict and keys.missing_keys:
        problems.append(f"missing keys: {', '.join(keys.missing_keys)}")
    if strict and keys.unexpected_keys:
        problems.append(f"unexpected keys: {', '.join(keys.unexpected_keys)}")
    if problems:
        name = type(cell).__name__
        raise StateMismatch(f"{name}.load_state_dict: {'; '.join(problems)}; {state}")


def _write(cell: Cell, values: Mapping[str, object]) -> None:
    """Write values to the Parameters, buffers and other state of the same paths."""
    for path, own in walk_every_cell(cell):
        prefix = f"{path}." if path else ""
        for name, parameter in own._params.items():
            if parameter is not None and prefix + name in values:
                parameter.set_data(values[prefix + name])
        for name, buffer in own._buffers.items():
            if buffer is not None and name not in own._transient and prefix + name in values:
                buffer.copy_(values[prefix + name])
        if prefix + EXTRA_STATE in values:
            own.set_extra_state(values[prefix + EXTRA_STATE])


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


def describe_html(cell: Cell, name: str = "", opened: bool = True) -> str:
    """Return the HTML with which a notebook shows a Cell: an unfolding tree down to its Parameters.

    `name` is the Cell's name in its parent; `opened` says whether the tree starts unfolded.
    """
    size = sum(math.prod(q.shape) for _, q in walk_parameters(cell))
    head = f"{name}: " if name else ""
    options = cell.extend_repr()
    if len(options) > _LONG:
        options = options[: _LONG - 3] + "..."
    title = f"{head}{type(cell).__name__}({options})"
    title += f", {size:,} parameters" if size else ""
    rows = [
        (label, str(tuple(q.shape)), q.dtype.name, "yes" if q.requires_grad else "no")
        for label, q in cell._params.items()
        if q is not None
    ]
    inner = notebook.table(("parameter", "shape", "dtype", "trainable"), rows, 3) if rows else ""
    children = [(k, c) for k, c in cell._cells.items() if c is not None]
    inner += "".join(describe_html(c, k, len(children) <= 1) for k, c in children)
    return notebook.indented(
        notebook.unfolding(title, inner, opened) if inner else notebook.line(title)
    )


def _indent(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line for line in rest)])
