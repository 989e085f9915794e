"""What plugins bring besides devices: ops, gradient rules, decompositions."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from ..errors import ArgumentError
from ..op import OPS, Op, rules_changed

__all__ = ["take"]


def take(module: ModuleType) -> None:
    """Take in what the hooks of a plugin module return; a rule for an op replaces the one it had.

    Raises:
        TypeError: a hook returned something else than `backend.hookspecs` says, or names an op that
            there is not.
    """
    found: Iterable[Any] = _returned(module, "duograph_ops")
    for made in found:
        if not isinstance(made, Op):
            raise ArgumentError(f"duograph_ops returned {type(made).__name__}; wanted ops")
        OPS[made.name] = made
    rules = dict(_returned(module, "duograph_bprops"))
    decompositions = dict(_returned(module, "duograph_decompositions"))
    for name in (*rules, *decompositions):
        if name not in OPS:
            raise ArgumentError(
                f"{module.__name__}: got a rule for the op {name!r}, which there is not"
            )
    for name, rule in rules.items():
        OPS[name].bprop(rule)
        OPS[name].differentiable = True
    for name, rule in decompositions.items():
        OPS[name].decompose(rule)
    if rules or decompositions:
        rules_changed()


def _returned(module: ModuleType, hook: str) -> Any:
    function = getattr(module, hook, None)
    return () if function is None else function()
