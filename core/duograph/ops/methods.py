"""Installation of Tensor's methods and operators, from the op table and from marked functions.

Op families mark plain functions with the decorators; `ops/__init__.py` calls `install` once, after
all families are imported. No other module may add methods to Tensor, so that eager and compiled
code know the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TypeVar

from ..op import OPS
from .refusals import refusing

__all__ = ["install", "tensor_method", "tensor_property"]

F = TypeVar("F", bound=Callable[..., object])


def tensor_method(*names: str) -> Callable[[F], F]:
    """Return a decorator that marks a function as a method of Tensor, called by any of `names`.

    The function's first argument is the tensor.
    """

    def mark(function: F) -> F:
        function.tensor_methods = names  # type: ignore[attr-defined]
        return function

    return mark


def _reflected(function: Callable[..., object]) -> Callable[..., object]:
    def swapped(self: object, other: object) -> object:
        return function(other, self)

    return swapped


def tensor_property(*names: str) -> Callable[[F], F]:
    """Return a decorator that marks a function of one tensor as a property of Tensor.

    `names` are the names of the property.
    """

    def mark(function: F) -> F:
        function.tensor_properties = names  # type: ignore[attr-defined]
        return function

    return mark


def install(cls: type, families: Iterable[ModuleType]) -> dict[str, object]:
    """Set the Tensor methods, properties and operators of all ops and marked functions on `cls`.

    An op declares the names of its methods; a function is marked by `tensor_method` or
    `tensor_property`. `families` are the modules with marked functions. Returns what was set, by
    name.
    """
    found: dict[str, object] = {}
    for known in OPS.values():
        for name in known.methods:
            public = known.public
            if known.has_normaliser:
                public = refusing(public, known.__module__, f"duograph.Tensor.{name}")
            elif name != known.name:
                public = known.alias_function(name, known.__module__)
            found[name] = public
        found.update({name: known.operator_function for name in known.operators})
        found.update({name: _reflected(known.operator_function) for name in known.reflected})
    for family in families:
        for value in vars(family).values():
            for name in getattr(value, "tensor_methods", ()):
                found[name] = value
                if not name.startswith("__"):  # the wrapper costs a tenth of a microsecond
                    found[name] = refusing(value, value.__module__, f"duograph.Tensor.{name}")
            for name in getattr(value, "tensor_properties", ()):
                found[name] = property(value, getattr(value, "setter", None))
    for name, value in found.items():
        setattr(cls, name, value)
    return found
