"""Primitives as attributes of layers, for subclasses in user code.

MindSpore's layers compute with primitives that they hold as attributes, and subclasses call these:
`self.conv2d(x, weight)` in a subclass of `nn.Conv2d`. The layers here compute with functions. Each
has a class attribute of type `Operator` for every such name; the layers themselves never compute
with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .. import ops

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["Operator"]


class Operator:
    """A primitive with which a layer computes, created when the attribute is first read.

    It is a descriptor: an attribute of the layer's class.

    Args:
        name: name of the Primitive class.
        arguments: function of the layer that returns the keyword arguments of the class.

    An attribute of the same name that a subclass sets takes precedence.
    """

    def __init__(
        self, name: str, arguments: Callable[[Any], dict[str, object]] = lambda layer: {}
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.made: WeakKeyDictionary[Cell, Callable[..., object]] = WeakKeyDictionary()

    def __get__(self, layer: Cell | None, owner: type | None = None) -> Any:
        if layer is None:
            return self
        found = self.made.get(layer)
        if found is None:
            found = self.made[layer] = getattr(ops, self.name)(**self.arguments(layer))
        return found
