"""Adaptive average and maximum pooling over 1 to 3 spatial axes.

Users construct the layers with the output sizes that they want. If all windows have the same size,
the pooling primitives are used; where they differ, the average is a matmul and the maximum a
gather.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ... import ops
from ...errors import ArgumentError, ArgumentValueError
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from ..cell import Cell

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
]  # fmt: skip


def _windows(n: int, out: int) -> list[range]:
    """Split an axis of length `n` into `out` ranges of indices, the windows of adaptive pooling."""
    return [range(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


OutputSize: TypeAlias = "int | Sequence[int | None] | None"


class _Adaptive(Cell):
    """Base class of the adaptive pooling layers.

    A subclass sets `_axes`, the number of spatial axes.
    """

    _axes = 2

    def __init__(self, output_size: OutputSize) -> None:
        super().__init__()
        owner, axes = type(self).__name__, self._axes
        several = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * axes
        if len(several) != axes:
            raise ArgumentValueError(
                f"{owner}: got output_size={output_size!r}; wanted an int or {axes} of them"
            )
        for n in several:
            if n is not None:
                if isinstance(n, bool) or not isinstance(n, int):
                    raise ArgumentError(f"{owner}: got output_size={output_size!r}; wanted ints")
                if n < 1:
                    raise ArgumentValueError(
                        f"{owner}: got output_size={output_size!r}; wanted above 0"
                    )
        self.output_size = output_size
        self._sizes = tuple(several)

    def _sizes_for(self, x: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return (input sizes, output sizes) of the spatial axes of the input `x`."""
        _check.rank(type(self).__name__, x, self._axes + 1, self._axes + 2)
        size = x.shape[-self._axes :]
        return size, tuple(n if o is None else o for n, o in zip(size, self._sizes, strict=True))


class _AdaptiveAvg(_Adaptive):
    """Base of the adaptive average pooling layers."""

    def construct(self, x: Tensor) -> Tensor:
        size, out = self._sizes_for(x)
        lead = x.shape[: -self._axes]
        if all(n % o == 0 for n, o in zip(size, out, strict=True)):
            if all(o == 1 for o in out):
                return x.mean(tuple(range(-self._axes, 0)), True)
            kernel = tuple(n // o for n, o in zip(size, out, strict=True))
            pooled = ops.avg_pool(
                x.reshape(1, math.prod(lead), *size), kernel=kernel, stride=kernel,
                padding=((0, 0),) * self._axes, count_include_pad=True, divisor=0,
            )  # fmt: skip
            return pooled.reshape(*lead, *out)
        pool = (
            ops.adaptive_avg_pool1d,
            ops.adaptive_avg_pool2d,
            ops.adaptive_avg_pool3d,
        )[self._axes - 1]
        return pool(x.reshape(1, math.prod(lead), *size), out).reshape(*lead, *out)


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """Average pooling to a given output size (`mindspore.nn.AdaptiveAvgPool2d`).

    Args:
        output_size: int, or (H, W); None keeps the length of an axis.

    Raises:
        ValueError: a size below 1, or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveAvgPool2d((1, None))(ms.ops.ones((1, 3, 4, 5), ms.float32)).shape
        (1, 3, 1, 5)
    """

    adaptive_avgpool2d = Operator("AdaptiveAvgPool2D", lambda c: {"output_size": c.output_size})


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """`AdaptiveAvgPool2d` for (N, C, L) (`mindspore.nn.AdaptiveAvgPool1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveAvgPool1d(2)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 2)
    """

    _axes = 1


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """`AdaptiveAvgPool2d` for (N, C, D, H, W) (`mindspore.nn.AdaptiveAvgPool3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveAvgPool3d(2)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 2, 2, 2)
    """

    adaptive_avg_pool3d = Operator("AdaptiveAvgPool3D", lambda c: {"output_size": c.output_size})

    _axes = 3


class _AdaptiveMax(_Adaptive):
    """Base of the adaptive max pooling layers."""

    def __init__(self, output_size: OutputSize, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = _check.boolean(type(self).__name__, "return_indices", return_indices)

    def construct(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        size, out = self._sizes_for(x)
        lead = x.shape[: -self._axes]
        # flat input positions of every window; shorter windows repeat their first cell
        flat = np.zeros((1, 1), np.int64)
        for n, o in zip(size, out, strict=True):
            windows = _windows(n, o)
            widest = max(map(len, windows))
            rows = np.array([[*w, *[w[0]] * (widest - len(w))] for w in windows])
            flat = (flat[:, None, :, None] * n + rows[None, :, None, :]).reshape(
                flat.shape[0] * o, -1
            )
        flat.sort(axis=1)
        picked = ops.gather(x.reshape(*lead, math.prod(size)), Tensor(flat), x.ndim - self._axes)
        values = ops.amax(picked, -1).reshape(*lead, *out)
        if not self.return_indices:
            return values
        best = ops.argmax(picked, -1)
        table = ops.broadcast_to(Tensor(flat), picked.shape)
        indices = ops.gather_elements(table, -1, best.expand_dims(-1))
        return values, indices.reshape(*lead, *out)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Maximum pooling to a given output size (`mindspore.nn.AdaptiveMaxPool2d`).

    Args:
        output_size: int, or (H, W); None keeps the length of an axis.
        return_indices: whether to return also the int64 indices of the maxima in the flattened H x
            W.

    Raises:
        ValueError: a size below 1, or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveMaxPool2d(2)(ms.ops.ones((1, 3, 4, 5), ms.float32)).shape
        (1, 3, 2, 2)
    """


class AdaptiveMaxPool1d(_AdaptiveMax):
    """`AdaptiveMaxPool2d` for (N, C, L) (`mindspore.nn.AdaptiveMaxPool1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveMaxPool1d(2)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 2)
    """

    _axes = 1


class AdaptiveMaxPool3d(_AdaptiveMax):
    """`AdaptiveMaxPool2d` for (N, C, D, H, W) (`mindspore.nn.AdaptiveMaxPool3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveMaxPool3d(2)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 2, 2, 2)
    """

    _axes = 3
