"""Primitive classes: the form `ops.Add()(x, y)` of every op.

Ops without attributes get their class from the op table; those with attributes have a small class
of their own, which says how MindSpore's arguments become attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..op import OPS, Op

__all__ = ["Primitive", "plain_primitives"]


class Primitive:
    """Base of the primitive classes (`mindspore.ops.Primitive`).

    A subclass names its `op`; an instance holds attributes and is called on operands.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.Add()(ms.Tensor([1]), ms.Tensor([2]))
        Tensor(shape=[1], dtype=Int64, value= [3])
    """

    op: Op | None = None

    def __init__(self, name: str | None = None) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The primitive's name."""
        return getattr(self, "_name", None) or type(self).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assert self.op is not None, f"{type(self).__name__} names no op"
        return self.op(*args, **kwargs)

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, Any]) -> Primitive:
        """An instance as a gradient-rule getter sees it: the op's attributes are its attributes."""
        made = cls.__new__(cls)
        made._name = None
        for key, value in attributes.items():
            setattr(made, key, value)
        return made

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Record an attribute on this instance; returns the instance."""
        setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def plain_primitives() -> dict[str, type[Primitive]]:
    """A class for every op that asks for one by name."""
    made: dict[str, type[Primitive]] = {}
    for known in OPS.values():
        name = known.primitive_name
        if name is not None:
            doc = f"Primitive form of `ops.{known.name}`: `{name}()(...)` takes the same arguments."
            made[name] = type(
                name, (Primitive,), {"op": known, "__doc__": doc, "__module__": __package__}
            )
    return made
