"""Splits the arguments of compiled functions into run-time inputs and parts of the cache key.

Tensors are run-time inputs; other values are constants of the program unless they are marked
mutable. `compiler.key` calls `signature` for every call that no faster lookup serves.
`compiler.evaluate` uses `ArgumentReader` to rebuild the same arguments with graph values in the
place of the inputs. Both must visit the arguments in the same order. Neither changes an argument.
"""

from __future__ import annotations

import collections
import enum
import functools
import sys
import weakref
from collections.abc import Callable, Hashable

import numpy as np

from ..frontend.types import Value
from ..frontend.values.nested import tuple_like
from ..parameter import Parameter
from ..tensor import Tensor
from ..types import BOOL, FLOAT, INT, HostType, TensorType
from .options import (
    MutableBool,
    MutableDict,
    MutableFloat,
    MutableInt,
    MutableList,
    MutableTuple,
)

__all__ = [
    "ArgumentReader", "Identity", "Slots", "fields_of", "is_frozen", "signature", "tensor_labels",
]  # fmt: skip

# Class of a number marked as mutable -> its host type in a graph, and the class of its value.
_HOST = {MutableInt: (INT, int), MutableFloat: (FLOAT, float), MutableBool: (BOOL, bool)}


class Slots:
    """The run-time inputs found in the arguments of one call of a compiled function.

    The order of each list is that in which `signature` visits the arguments.

    Attributes:
        leaves: the tensors, at any depth.
        numbers: the numbers marked mutable.
        containers: the lists, dicts and sets.
        objects: the arrays and frozen dataclasses, which are constants that the key compares by
            value, and the Parameters, which are also in `leaves`.
    """

    __slots__ = ("leaves", "numbers", "containers", "objects")

    def __init__(self) -> None:
        self.leaves: list[Tensor] = []
        self.numbers: list[object] = []
        self.containers: list[object] = []
        self.objects: list[object] = []


def signature(value: Value, slots: Slots, mutable: bool = False) -> Hashable:
    """Return an argument's part of the program cache key; append its run-time inputs to `slots`.

    Args:
        value: the argument, or an item of one.
        slots: collects the tensors, mutable numbers, containers and objects that are found.
        mutable: whether the numbers in the argument are run-time inputs; see `options.mutable`.
    """
    kind = value.__class__
    if isinstance(value, Tensor):
        slots.leaves.append(value)
        type_ = value._type if not value._type.level else value._type.on(value._type.device)
        if kind is not Tensor and isinstance(value, Parameter):
            slots.objects.append(value)
            return (Parameter, type_)
        return type_
    if kind in _HOST:
        slots.numbers.append(_HOST[kind][1](value))
        return _HOST[kind][0]
    if mutable and kind in (int, float, bool):
        slots.numbers.append(value)
        return {int: INT, float: FLOAT, bool: BOOL}[kind]
    if kind is float:
        return (kind, repr(value))
    if kind in (int, bool, str, bytes, type(None), complex):
        return (kind, value)
    if isinstance(value, tuple):
        inner = mutable or kind is MutableTuple
        return (kind, *[signature(v, slots, inner) for v in value])
    if kind in (list, MutableList):
        slots.containers.append(value)
        inner = mutable or kind is MutableList
        return (kind, *[signature(v, slots, inner) for v in value])
    if kind in (dict, MutableDict):
        slots.containers.append(value)
        inner = mutable or kind is MutableDict
        return (kind, *[(_key(k), signature(v, slots, inner)) for k, v in value.items()])
    if isinstance(value, np.ndarray):
        slots.objects.append(value)
        return (kind, value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return (kind, value.dtype.str, value.tobytes())
    if isinstance(value, slice):
        return (kind, *[signature(v, slots) for v in (value.start, value.stop, value.step)])
    if kind is set:
        slots.containers.append(value)
        return (kind, *map(_constant, value))
    if isinstance(value, (set, frozenset)):
        return (kind, *map(_constant, value))
    if is_frozen(value):  # a changed object must not change the key, which the cache has hashed
        slots.objects.append(value)
        return (kind, *[(k, _constant(v)) for k, v in fields_of(value)])
    if isinstance(value, (dict, list, collections.deque)):  # a subclass: its items are constants
        held = value.items() if isinstance(value, dict) else enumerate(value)
        return (kind, Identity(value), *[(_key(k), _constant(v)) for k, v in held])
    return (kind, value if _by_value(kind) and _is_hashable(value) else Identity(value))


def tensor_labels(label: str, part: Hashable) -> list[str]:
    """Return a name for each tensor in an argument, in the order of `Slots.leaves`.

    Args:
        label: the name of the argument, such as "x"; a tensor in a list is called "x[1]".
        part: what `signature` returned for the argument.
    """
    if isinstance(part, TensorType):
        return [label]
    kind = part[0] if isinstance(part, tuple) and part else None
    items: list[tuple[object, Hashable]] = []
    if kind is Parameter:
        return [label]
    if kind in (list, MutableList) or (isinstance(kind, type) and issubclass(kind, tuple)):
        items = list(enumerate(part[1:]))  # type: ignore[index]
    elif kind in (dict, MutableDict):
        items = [(k if isinstance(k, str) else k[-1], v) for k, v in part[1:]]  # type: ignore[index]
    return [each for key, inner in items for each in tensor_labels(f"{label}[{key!r}]", inner)]


def _key(key: Value) -> Hashable:
    """Return the cache key part for a dict's key; 1, 1.0 and True get different parts."""
    return key if key.__class__ is str else _constant(key)


def _constant(value: Value) -> Hashable:
    """Return the cache key part of an item that must be a constant, such as a key of a dict.

    Tensors, lists, dicts and sets are compared by identity, other objects as `signature` does.
    """
    mutable = isinstance(value, (Tensor, list, dict, set))
    return Identity(value) if mutable else signature(value, Slots())


def is_frozen(value: Value) -> bool:
    """Return whether a value is a hashable object of a frozen dataclass, compared by its fields.

    A cache key compares such objects by their fields instead of by identity.
    """
    parameters = vars(type(value)).get("__dataclass_params__")
    by_fields = parameters is not None and bool(parameters.frozen and parameters.eq)
    return by_fields and _is_hashable(value)


def fields_of(value: Value) -> list[tuple[str, Value]]:
    """Return (name, value) of the attributes of a dataclass object, except cached properties."""
    kind = type(value)
    held = dict(getattr(value, "__dict__", {}))
    for name in kind.__dataclass_fields__:
        if name not in held and hasattr(value, name):  # a class with `__slots__`
            held[name] = getattr(value, name)
    return [
        (name, v)
        for name, v in held.items()
        if not isinstance(getattr(kind, name, None), functools.cached_property)
    ]


def _is_hashable(value: Value) -> bool:
    """Return whether an object has a hash, which a memoryview or a frozen dataclass may lack."""
    try:
        hash(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


@functools.cache
def _by_value(kind: type) -> bool:
    """Return whether a cache key compares objects of class `kind` by `==` instead of by identity.

    True for hashable classes that are enums, that have no `__eq__` (so that `==` is identity
    anyway) or that belong to the standard library, NumPy or duograph. A user's `==` is not trusted:
    it may ignore an attribute that the compiled program reads. False for weak references, because
    `==` compares the objects that they refer to.
    """
    if kind.__hash__ is None or issubclass(kind, weakref.ref):  # they compare what they refer to
        return False
    own: object = kind.__eq__
    if own is object.__eq__ or issubclass(kind, enum.Enum):
        return True
    top = kind.__module__.split(".")[0]
    return top in sys.stdlib_module_names or top in ("duograph", "numpy")


class Identity:
    """Part of a cache key that compares an object by identity and keeps that object alive."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class ArgumentReader:
    """Rebuilds a call's arguments with graph values in the place of the run-time inputs.

    The arguments are visited in the order in which `signature` fills `Slots`.

    Args:
        tensor: function from a tensor to its graph value.
        number: function from the type of a mutable number to its graph value.
        container: function from a list, dict or set argument to two containers: an empty copy,
            which this class fills, and the container that replaces the argument. They are the same
            object, unless the argument has occurred before.
        constant: function that is called with each array, frozen dataclass and Parameter found.
    """

    def __init__(
        self,
        tensor: Callable[[Tensor], Value],
        number: Callable[[HostType], Value],
        container: Callable[[Value], tuple[Value, Value]],
        constant: Callable[[Value], None],
    ) -> None:
        self.constant = constant
        self.tensor = tensor
        self.number = number
        self.container = container

    def __call__(self, value: Value, mutable: bool = False) -> Value:
        """Return an argument with its tensors and mutable numbers replaced by graph values.

        Lists, dicts and sets are replaced by copies. With `mutable`, all numbers in the argument
        count as marked mutable.
        """
        kind = value.__class__
        if isinstance(value, Tensor):
            if isinstance(value, Parameter):
                self.constant(value)
            return self.tensor(value)
        if kind in _HOST:
            return self.number(_HOST[kind][0])
        if mutable and kind in (int, float, bool):
            return self.number({int: INT, float: FLOAT, bool: BOOL}[kind])
        if isinstance(value, tuple):
            items = [self(v, mutable or kind is MutableTuple) for v in value]
            return tuple(items) if kind is MutableTuple else tuple_like(value, items)
        if kind in (list, MutableList):
            made, used = self.container(value)
            made.extend(self(v, mutable or kind is MutableList) for v in value)
            return used
        if kind in (dict, MutableDict):
            made, used = self.container(value)
            made.update({k: self(v, mutable or kind is MutableDict) for k, v in value.items()})
            return used
        if kind is set:
            made, used = self.container(value)
            made.update(value)
            return used
        if isinstance(value, np.ndarray) or is_frozen(value):
            self.constant(value)
        return value
