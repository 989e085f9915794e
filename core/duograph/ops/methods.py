"""Installs Tensor's methods and operators from the op table, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TypeVar

from ..op import OPS

__all__ = ["install", "tensor_method", "tensor_property"]

F = TypeVar("F", bound=Callable[..., object])


def tensor_method(*names: str) -> Callable[[F], F]:
    """Mark a plain function, whose first argument is the tensor, as a Tensor method of these names."""

    def mark(function: F) -> F:
        function.tensor_methods = names  # type: ignore[attr-defined]
        return function

    return mark


def _reflected(function: Callable[..., object]) -> Callable[..., object]:
    def swapped(self: object, other: object) -> object:
        return function(other, self)

    return swapped


def tensor_property(*names: str) -> Callable[[F], F]:
    """Mark a plain function of the tensor as a Tensor property of these names."""

    def mark(function: F) -> F:
        function.tensor_properties = names  # type: ignore[attr-defined]
        return function

    return mark


def install(cls: type, families: Iterable[ModuleType]) -> dict[str, object]:
    """Give `cls` every method and operator that an op, or a marked function, names; what was given,
    by name.
    """
    given: dict[str, object] = {}
    for known in OPS.values():
        given.update({name: known.public for name in known.methods})
        given.update({name: known.operator_function for name in known.operators})
        given.update({name: _reflected(known.operator_function) for name in known.reflected})
    for family in families:
        for value in vars(family).values():
            for name in getattr(value, "tensor_methods", ()):
                given[name] = value
            for name in getattr(value, "tensor_properties", ()):
                given[name] = property(value)
    for name, value in given.items():
        setattr(cls, name, value)
    return given
