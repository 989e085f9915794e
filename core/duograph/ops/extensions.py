"""Registers the ops, gradient rules and decompositions that plugins provide.

The registry of backends calls it when plugins are loaded.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..errors import ArgumentError
from ..op import OPS, Op, rules_changed

__all__ = ["take"]


def take(module: ModuleType) -> None:
    """Register the ops, gradient rules and decompositions that a plugin's hooks return.

    Raises:
        TypeError: a hook returned a value of another type than `backend.hookspecs` declares, or
            named an unknown op.
    """
    for made in _returned(module, "duograph_ops"):
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
