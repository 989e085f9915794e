"""Implements `Cell.shard`: it shards the inputs, outputs and Parameters of a Cell among ranks.

Compiled code applies the layouts in hooks around `construct`. If eager code calls a sharded Cell,
the call is compiled, in PYNATIVE_MODE as in GRAPH_MODE.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from ..runtime_state import runtime_state
from ..sharding.constraints import divided
from ..sharding.layouts import Layout, check_divisible, placement_of, placements_of
from ..sharding.mode import dividing, mesh_ranks
from ..tensor import Tensor

if TYPE_CHECKING:
    from ._hooks import HookHandle
    from .cell import Cell

__all__ = ["call_divided", "plan_parameters", "shard_cell"]


class Sharding:
    """State that `Cell.shard` stores on a Cell: hooks, and a compiled function of the Cell."""

    def __init__(self, hooks: list[HookHandle]) -> None:
        self.hooks = hooks
        self.call: Callable[..., object] | None = None


def shard_cell(cell: Cell, in_strategy: object, out_strategy: object, plan: object) -> None:
    """Implement `Cell.shard`; a second call for the same Cell replaces the first.

    `plan` is the `parameter_plan`. The function does nothing where there is only one rank.
    """
    ranks = mesh_ranks()
    if len(ranks) == 1:
        return
    owner = f"{type(cell).__name__}.shard"
    given = placements_of(owner, in_strategy, ranks)
    results = None if out_strategy is None else placements_of(owner, out_strategy, ranks)
    plan_parameters(owner, cell, plan)
    if cell._sharding is not None:
        for handle in cell._sharding.hooks:
            handle.remove()

    def before(_: Cell, args: tuple[object, ...]) -> tuple[object, ...]:
        return divided(f"{owner}: in_strategy", args, given)

    hooks = [cell.register_forward_pre_hook(before)]
    if results is not None:

        def after(_: Cell, args: tuple[object, ...], found: Any) -> object:
            if isinstance(found, Tensor):
                return divided(f"{owner}: out_strategy", (found,), results)[0]
            return divided(f"{owner}: out_strategy", found, results)

        hooks.append(cell.register_forward_hook(after))
    cell._sharding = Sharding(hooks)


def plan_parameters(owner: str, cell: Cell, plan: object) -> None:
    """Set the layouts of a Cell's Parameters as a `parameter_plan` says.

    Args:
        owner: the calling method, for messages.
        cell: the Cell.
        plan: dictionary from names to a `Layout`, or to a tuple of numbers of shards per axis; None
            changes nothing. A name is that of the Parameter, or the path of attributes to it, with
            or without ``self.``.
    """
    if plan is None:
        return
    if not isinstance(plan, dict):
        raise ArgumentError(f"{owner}: got parameter_plan={plan!r}; wanted a dict or None")
    by_name = {p.name: p for p in cell.get_parameters()}
    by_name |= {path: p for path, p in cell.parameters_and_names() if path not in by_name}
    for name, strategy in plan.items():
        if not isinstance(name, str) or not isinstance(strategy, (tuple, Layout)):
            raise ArgumentError(
                f"{owner}: got the entry {name!r}: {strategy!r} of parameter_plan; wanted the name "
                "of a Parameter and a Layout or a tuple of ints"
            )
        parameter = by_name.get(name.replace("self.", ""))
        if parameter is None:
            warnings.warn(
                f"{owner}: parameter_plan names {name!r}, and no Parameter has this name; it is "
                f"ignored. The names are {', '.join(by_name)}",
                RuntimeWarning, stacklevel=4,
            )  # fmt: skip
            continue
        placement = placement_of(f"{owner}: {name}", strategy, mesh_ranks())
        check_divisible(f"{owner}: Parameter {parameter.name}", parameter.shape, placement)
        parameter._plan = placement


def call_divided(cell: Cell, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    """Call a sharded Cell from code that is not compiled: compile the call and run it.

    Returns NotImplemented if programs are not partitioned among ranks.
    """
    sharding = cell._sharding
    if dividing() is None:
        return NotImplemented
    assert sharding is not None
    if sharding.call is None:
        sharding.call = runtime_state.load_compiler().jit(lambda *a, **k: cell(*a, **k))
    return sharding.call(*args, **kwargs)
