"""Installation of Tensor's methods and operators, from the op table and from marked functions.

Op families mark plain functions with the decorators; `ops/__init__.py` calls `install` once, after
all families are imported. No other module may add methods to Tensor, so that eager and compiled
code know the same methods.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TypeVar

from ..call_cache import copy_identity
from ..errors import ArgumentError
from ..op import OPS
from .refusals import refusing

__all__ = ["install", "tensor_method", "tensor_property"]

F = TypeVar("F", bound=Callable[..., object])

# Names that MindSpore's methods give their parameters, where those of the function are others:
# method -> parameter of the method -> parameter of the function. `SHOWN` replace the function's
# names in signatures. `OTHERS` belong to further call forms of the method.
SHOWN = {
    "approximate_equal": {"other": "y"},
    "multiply": {"value": "other"},
}
OTHERS = {
    "isclose": {"x2": "other"},
    "logical_and": {"y": "other"},
    "logical_or": {"y": "other"},
    "matmul": {"tensor2": "other"},
    "remainder": {"divisor": "other"},
    "searchsorted": {"values": "v"},
    "float_power": {"exponent": "other"},
    "ormqr": {"tau": "input2", "other": "input3"},
    "sub": {"y": "other"},
    "sub_": {"y": "other"},
    "where": {"other": "y"},
}


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


def _renamed(
    method: Callable[..., object], name: str, shown: dict[str, str], others: dict[str, str]
) -> Callable[..., object]:
    """Return `method` such that its parameters have further names, as in `SHOWN` and `OTHERS`."""
    names = {**shown, **others}
    signature = inspect.signature(method)
    new_of = {own: new for new, own in shown.items()}
    parameters = [p.replace(name=new_of.get(p.name, p.name)) for p in signature.parameters.values()]

    def call(*args: object, **kwargs: object) -> object:
        if kwargs:
            for new, own in names.items():
                if new in kwargs:
                    if own in kwargs:
                        raise ArgumentError(
                            f"{name}: got {own!r} and {new!r}, which are names of one argument"
                        )
                    kwargs[own] = kwargs.pop(new)
        return method(*args, **kwargs)

    copy_identity(method, call)
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


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
    for name in SHOWN.keys() | OTHERS.keys():
        method: Callable[..., object] = found[name]  # type: ignore[assignment]
        found[name] = _renamed(method, name, SHOWN.get(name, {}), OTHERS.get(name, {}))
    for name, value in found.items():
        setattr(cls, name, value)
    return found
