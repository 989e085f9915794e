"""The types of values: tensor types, types of Python values in graphs, and devices.

Tensor types and devices are interned: equal ones are one object, so comparing and hashing them is
as cheap as for any object. All layers use these types; the module knows nothing of tensors or
graphs.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from ._locks import new_lock
from .dims import is_symbolic
from .dtype import DType
from .errors import ShapeError

__all__ = [
    "TensorType", "HostType", "ValueType", "INT", "FLOAT", "BOOL", "OBJECT", "STACK", "Device",
    "broadcast_shapes", "elementwise_type", "size_of",
]  # fmt: skip

Shape = tuple[int, ...]


class Device:
    """One device of a backend: ``name`` is the device_target, ``index`` the device_id.

    Equal devices are one object.
    """

    __slots__ = ("name", "index")
    _all: dict[tuple[str, int], Device] = {}

    def __new__(cls, name: str, index: int = 0) -> Device:
        found = cls._all.get((name, index))
        if found is None:
            found = object.__new__(cls)
            found.name = name
            found.index = index
            found = cls._all.setdefault((name, index), found)
        return found

    name: str
    index: int

    def __repr__(self) -> str:
        return f"{self.name}:{self.index}"


class TensorType:
    """A tensor's shape and dtype; for eager tensors also the device and recording level.

    Attributes:
        shape: tuple of ints.
        dtype: `DType`.
        device: `Device`, or None for data on the host only and for values of graphs.
        level: 0 not recorded; 1 recorded by a derivative; 2 recorded by a nested derivative.
        size: number of elements.
        nbytes: number of bytes of the data.

    `TensorType.of(shape, dtype)` returns the plain type, which has no device and level 0; `on`
    returns a variant with a device and a level.
    """

    __slots__ = (
        "shape", "dtype", "device", "level", "size", "nbytes", "plain", "_variants", "__weakref__",
    )  # fmt: skip
    _lock = new_lock()
    _plain: dict[tuple[Shape, DType], _Interned] = {}

    shape: Shape
    dtype: DType
    device: Device | None
    level: int
    size: int
    nbytes: int
    plain: TensorType
    _variants: dict[tuple[Device | None, int], TensorType]

    # The interned type without device and level; raises ShapeError for invalid sizes.
    @staticmethod
    def of(shape: Shape, dtype: DType) -> TensorType:
        interned = TensorType._plain.get((shape, dtype))
        if interned is not None:
            found = interned()
            if found is not None:
                return found
        shape = tuple([n if is_symbolic(n) else int(n) for n in shape])
        if any([n < 0 for n in shape]):
            raise ShapeError(f"shape: got {shape}; wanted sizes that are not negative")
        made = object.__new__(TensorType)
        made.shape, made.dtype, made.device, made.level = shape, dtype, None, 0
        made.size = size_of(shape)
        made.nbytes = made.size * dtype.itemsize
        # as in NumPy, strides of an empty tensor must fit as well
        if size_of([n or 1 for n in shape]) * dtype.itemsize >= 2**63:
            raise ShapeError(f"shape: got {shape}; wanted less than 2**63 bytes in all")
        made.plain = made
        made._variants = {(None, 0): made}
        with TensorType._lock:
            interned = TensorType._plain.get((shape, dtype))
            found = None if interned is None else interned()
            if found is None:  # another thread may have been faster
                interned = TensorType._plain[shape, dtype] = _Interned(made, _forget)
                interned.key = (shape, dtype)
                found = made
        return found

    def on(self, device: Device | None, level: int = 0) -> TensorType:
        """Return this tensor type with the given device and gradient recording level.

        The device None stands for data on the host only, and for values of graphs.
        """
        variants = self._variants
        found = variants.get((device, level))
        if found is not None:
            return found
        made = object.__new__(TensorType)
        made.shape, made.dtype, made.device, made.level = self.shape, self.dtype, device, level
        made.size, made.nbytes = self.size, self.nbytes
        made.plain = self.plain
        made._variants = variants
        with TensorType._lock:
            return variants.setdefault((device, level), made)

    @property
    def committed_device(self) -> Device:
        """The device of this tensor type, which must have one."""
        assert self.device is not None
        return self.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def with_(self, shape: Shape | None = None, dtype: DType | None = None) -> TensorType:
        """Return a type with the given shape and dtype; None keeps that of this type.

        The result has no device and recording level 0.
        """
        return TensorType.of(
            self.shape if shape is None else tuple(shape), self.dtype if dtype is None else dtype
        )

    def __repr__(self) -> str:
        text = f"{self.dtype.name}{list(self.shape)}"
        if self.device is not None:
            text += f"@{self.device}"
        return text + "^" * self.level

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.shape, self.dtype)


class _Interned(weakref.ref[TensorType]):
    """Weak reference to an interned tensor type, with its key in the table."""

    __slots__ = ("key",)
    key: tuple[Shape, DType]


def _forget(interned: _Interned) -> None:
    """Remove a freed tensor type from the table of interned types.

    An equal type that has replaced it in the table is kept.
    """
    with TensorType._lock:
        if TensorType._plain.get(interned.key) is interned:
            del TensorType._plain[interned.key]


class HostType:
    """The type of a graph value that is no tensor: a Python number, another object, or a stack.

    There are five: INT, FLOAT, BOOL, OBJECT and STACK. A stack holds values that a loop saves for
    its backward pass.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def plain(self) -> HostType:
        return self

    def __repr__(self) -> str:
        return self.name


# Python numbers that graphs compute with, all other Python objects, and stacks of residuals.
INT = HostType("int")
FLOAT = HostType("float")
BOOL = HostType("bool")
OBJECT = HostType("object")
STACK = HostType("stack")

ValueType = TensorType | HostType


def _rebuild(shape: Shape, dtype: DType) -> TensorType:
    return TensorType.of(shape, dtype)


def size_of(shape: Sequence[int]) -> int:
    """Return the number of elements of a tensor of the given shape."""
    n = 1
    for d in shape:
        n *= d
    return n


def broadcast_shapes(*shapes: Shape) -> Shape | None:
    """Return the shape to which `shapes` broadcast by NumPy's rules, or None if they do not."""
    ndim = max((len(s) for s in shapes), default=0)
    out = [1] * ndim
    for shape in shapes:
        lead = ndim - len(shape)
        for i, n in enumerate(shape):
            have = out[lead + i]
            if n != have:
                if have == 1:
                    out[lead + i] = n
                elif n != 1:
                    return None
    return tuple(out)


def elementwise_type(
    name: str, *types: TensorType | None, dtype: DType | None = None
) -> TensorType:
    """Return the result type of an element-wise op: the operands' broadcast shape, and `dtype`.

    Without `dtype` the result has the dtype of the last operand. `types` are the operand types,
    None for an absent operand; `name` is the op's, for messages.

    Raises:
        ShapeError: the shapes do not broadcast.
    """
    operands = [t for t in types if t is not None]
    first = operands[0]
    if len(operands) == 1:
        return first if dtype is None or dtype is first.dtype else first.with_(dtype=dtype)
    shape: Shape | None = first.shape
    ndim = len(first.shape)
    if any([len(t.shape) != ndim or t.shape != shape for t in operands]):
        shape = broadcast_shapes(*(t.shape for t in operands))
    if shape is None:
        shapes = " and ".join(str(t.shape) for t in operands)
        raise ShapeError(
            f"{name}: got operands of shapes {shapes}; wanted shapes that broadcast: equal from "
            f"the last axis on, or 1"
        )
    return TensorType.of(shape, dtype or operands[-1].dtype)
