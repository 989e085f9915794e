"""Padding layers: constant, reflection and replication.

`nn` exports them. Constant padding calls `ops.pad_constant`; the other layers gather elements along
one axis after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from ... import ops
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...tensor import Tensor
from .. import _check
from .._types import Array, Ints
from ..cell import Cell

__all__ = [
    "Pad", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d",
]  # fmt: skip


def _take(x: Tensor, axis: int, indices: Array) -> Tensor:
    """Gather elements of a tensor along `axis` by indices in a NumPy array."""
    return ops.gather(x, Tensor(indices.astype(np.int64)), axis)


PadMode: TypeAlias = Literal["reflect", "symmetric", "edge"]  # those of numpy.pad


def pad_axis(owner: str, x: Tensor, axis: int, low: int, high: int, mode: PadMode) -> Tensor:
    """Pad one axis of a tensor by `low` elements before and `high` after, in a NumPy pad mode.

    Negative widths crop. `owner` names the layer in messages.
    """
    n = x.shape[axis]
    if low < 0 or high < 0:
        x = _take(x, axis, np.arange(max(-low, 0), n - max(-high, 0)))
        n, low, high = x.shape[axis], max(low, 0), max(high, 0)
    if not low and not high:
        return x
    limit = {"reflect": n - 1, "symmetric": n}.get(mode)
    if limit is not None and max(low, high) > limit:
        raise ShapeError(
            f"{owner}: got padding ({low}, {high}) of axis {axis} of shape {x.shape}; "
            f"wanted at most {limit} to mirror"
        )
    return _take(x, axis, np.pad(np.arange(n), (low, high), mode=mode))


def pad_constant(x: Tensor, widths: Sequence[tuple[int, int]], value: float) -> Tensor:
    """Pad each tensor axis with `value` by its (before, after) widths; negative widths crop."""
    for axis, (low, high) in enumerate(widths):
        if low < 0 or high < 0:
            x = _take(x, axis, np.arange(max(-low, 0), x.shape[axis] - max(-high, 0)))
    lows = tuple(max(w[0], 0) for w in widths)
    highs = tuple(max(w[1], 0) for w in widths)
    if not any(lows) and not any(highs):
        return x
    return ops.pad_constant(x, low=lows, high=highs, value=value)


class Pad(Cell):
    """Pads every axis (`mindspore.nn.Pad`).

    Args:
        paddings: one pair (elements before, elements after) per axis.
        mode: ``"CONSTANT"`` (zeros), ``"REFLECT"`` or ``"SYMMETRIC"``.

    Raises:
        TypeError: `paddings` is not a tuple of pairs.
        ValueError: another mode, a number of pairs other than the number of axes, or more elements
            to mirror than the axis has.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Pad(((0, 0), (1, 2)))(ms.Tensor([[1.0]])))
        [[0. 1. 0. 0.]]
    """

    def __init__(self, paddings: Sequence[Sequence[int]], mode: str = "CONSTANT") -> None:
        super().__init__()
        if not isinstance(paddings, (tuple, list)) or not all(
            isinstance(p, (tuple, list)) and len(p) == 2 and all(type(n) is int for n in p)
            for p in paddings
        ):
            raise ArgumentError(f"Pad: got paddings={paddings!r}; wanted a tuple of pairs of ints")
        self.paddings = tuple((int(a), int(b)) for a, b in paddings)
        if any(n < 0 for p in self.paddings for n in p):
            raise ArgumentValueError(f"Pad: got paddings={paddings!r}; wanted none negative")
        self.mode = _check.one_of("Pad", "mode", mode, ("CONSTANT", "REFLECT", "SYMMETRIC"))

    def construct(self, x: Tensor) -> Tensor:
        if len(self.paddings) != x.ndim:
            raise ShapeError(
                f"Pad: input has shape {x.shape} and there are {len(self.paddings)} pairs; wanted "
                "one per axis"
            )
        if self.mode == "CONSTANT":
            return pad_constant(x, self.paddings, 0.0)
        mode: PadMode = "reflect" if self.mode == "REFLECT" else "symmetric"
        for axis, (low, high) in enumerate(self.paddings):
            x = pad_axis("Pad", x, axis, low, high, mode)
        return x


class _SpatialPad(Cell):
    """Base class of the layers that pad the last one to three axes of a tensor.

    `padding` lists the widths before and after each axis, from the last axis backwards: (left,
    right, top, bottom, ...).
    """

    _axes = 2
    _mode: Literal["constant", "reflect", "edge"] = "constant"
    value: float = 0.0

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        owner = type(self).__name__
        several = (padding,) * (2 * self._axes) if isinstance(padding, int) else padding
        if isinstance(padding, bool) or not isinstance(several, (tuple, list)):
            raise ArgumentError(
                f"{owner}: got padding={padding!r}; wanted an int or a tuple of ints"
            )
        if len(several) % 2 or len(several) > 2 * self._axes or not several:
            raise ArgumentValueError(
                f"{owner}: got padding={padding!r}; wanted an int or {2 * self._axes} ints"
            )
        if any(isinstance(p, bool) or not isinstance(p, int) for p in several):
            raise ArgumentError(f"{owner}: got padding={padding!r}; wanted ints")
        if any(abs(p) >= 2**31 for p in several):
            raise ArgumentValueError(f"{owner}: got padding={padding!r}; wanted less than 2**31")
        if self._mode != "constant" and any(p < 0 for p in several):
            raise ArgumentValueError(f"{owner}: got padding={padding!r}; wanted 0 or more")
        self.padding = tuple(several)

    def construct(self, x: Tensor) -> Tensor:
        owner = type(self).__name__
        pairs = [(self.padding[i], self.padding[i + 1]) for i in range(0, len(self.padding), 2)]
        if x.ndim < len(pairs):
            raise ShapeError(
                f"{owner}: input has shape {x.shape}; wanted at least {len(pairs)} axes"
            )
        if self._mode == "constant":
            widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
            return pad_constant(x, widths, self.value)
        for i, (low, high) in enumerate(pairs):
            x = pad_axis(owner, x, x.ndim - 1 - i, low, high, self._mode)
        return x

    def extend_repr(self) -> str:
        return f"padding={self.padding}"


class ConstantPad2d(_SpatialPad):
    """Pads height and width with a number (`mindspore.nn.ConstantPad2d`).

    Args:
        padding: int, or (left, right, top, bottom); negative widths crop.
        value: the number.

    Raises:
        TypeError, ValueError: `padding` has another form.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.ConstantPad2d((1, 0, 0, 0), 7.0)(ms.Tensor([[[1.0]]])))
        [[[7. 1.]]]
    """

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = float(_check.real(type(self).__name__, "value", value))


class ConstantPad1d(ConstantPad2d):
    """`ConstantPad2d` for the last axis (`mindspore.nn.ConstantPad1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ConstantPad1d(1, 0.0)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 6)
    """

    _axes = 1


class ConstantPad3d(ConstantPad2d):
    """`ConstantPad2d` for the last three axes (`mindspore.nn.ConstantPad3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ConstantPad3d(1, 0.0)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 6, 6, 6)
    """

    _axes = 3


class ZeroPad2d(_SpatialPad):
    """Pads height and width with zeros (`mindspore.nn.ZeroPad2d`).

    The padding is an int or (left, right, top, bottom).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ZeroPad2d(1)(ms.ops.ones((1, 3, 4, 4), ms.float32)).shape
        (1, 3, 6, 6)
    """


class ZeroPad1d(_SpatialPad):
    """Pads the last axis with zeros (`mindspore.nn.ZeroPad1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ZeroPad1d(1)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 6)
    """

    _axes = 1


class ZeroPad3d(_SpatialPad):
    """Pads the last three axes with zeros (`mindspore.nn.ZeroPad3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ZeroPad3d(1)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 6, 6, 6)
    """

    _axes = 3


class ReflectionPad2d(_SpatialPad):
    """Pads height and width by reflection at the border (`mindspore.nn.ReflectionPad2d`).

    Raises:
        ValueError: a width below 0, or not below the length of the axis.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.ReflectionPad2d((2, 0, 0, 0))(ms.Tensor([[[1.0, 2.0, 3.0]]])))
        [[[3. 2. 1. 2. 3.]]]
    """

    _mode = "reflect"


class ReflectionPad1d(ReflectionPad2d):
    """`ReflectionPad2d` for the last axis (`mindspore.nn.ReflectionPad1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ReflectionPad1d(1)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 6)
    """

    _axes = 1


class ReflectionPad3d(ReflectionPad2d):
    """`ReflectionPad2d` for the last three axes (`mindspore.nn.ReflectionPad3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ReflectionPad3d(1)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 6, 6, 6)
    """

    _axes = 3


class ReplicationPad2d(_SpatialPad):
    """Pads height and width by repeating the border (`mindspore.nn.ReplicationPad2d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ReplicationPad2d(1)(ms.ops.ones((1, 3, 4, 4), ms.float32)).shape
        (1, 3, 6, 6)
    """

    _mode = "edge"


class ReplicationPad1d(ReplicationPad2d):
    """`ReplicationPad2d` for the last axis (`mindspore.nn.ReplicationPad1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ReplicationPad1d(1)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 6)
    """

    _axes = 1


class ReplicationPad3d(ReplicationPad2d):
    """`ReplicationPad2d` for the last three axes (`mindspore.nn.ReplicationPad3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ReplicationPad3d(1)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 6, 6, 6)
    """

    _axes = 3
