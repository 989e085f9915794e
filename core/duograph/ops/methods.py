"""Installs Tensor's methods and operators from the op table, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from ..op import OPS

__all__ = ["install", "tensor_method"]


def tensor_method(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a plain function, whose first argument is the tensor, as a Tensor method of these names."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        function.tensor_methods = names  # type: ignore[attr-defined]
        return function

    return mark


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def swapped(self: Any, other: Any) -> Any:
        return function(other, self)

    return swapped


def install(cls: type, families: Iterable[ModuleType]) -> None:
    """Give `cls` every method and operator that an op, or a function marked `tensor_method`, names."""
    for known in OPS.values():
        for name in known.methods:
            setattr(cls, name, known.function)
        for name in known.operators:
            setattr(cls, name, known.operator_function)
        for name in known.reflected:
            setattr(cls, name, _reflected(known.operator_function))
    for family in families:
        for value in vars(family).values():
            for name in getattr(value, "tensor_methods", ()):
                setattr(cls, name, value)
