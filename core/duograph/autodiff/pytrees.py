"""Pytrees of tensors: nested tuples, lists and dicts whose leaves may be tensors.

The transforms, the tape and the front end traverse arguments and results with these functions. The
functions must not change a container in place, because it belongs to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..tensor import Tensor

__all__ = ["class_name", "mapped", "rebuilt", "tensors_of"]


def class_name(value: object) -> str:
    """Return the name of a value's class for a message; symbolic tensors count as Tensors."""
    name = type(value).__name__
    return "Tensor" if name == "GraphTensor" else name


def tensors_of(value: object) -> Iterator[Tensor]:
    """Yield the tensors among the leaves of a pytree, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from tensors_of(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from tensors_of(v)


def rebuilt(value: Any, items: Sequence[object]) -> Any:
    """Return a tuple or list of the class of `value`, with other items.

    The class may be a namedtuple, whose constructor takes the items one by one.
    """
    kind = type(value)
    return kind(*items) if isinstance(value, tuple) and hasattr(kind, "_fields") else kind(items)


def mapped(value: object, function: Callable[[Tensor], object]) -> Any:
    """Return a copy of a pytree with a function applied to its tensors; other leaves are kept."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple):
        items = [mapped(v, function) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [mapped(v, function) for v in value]
    if isinstance(value, dict):
        return {k: mapped(v, function) for k, v in value.items()}
    return value
