"""Convolution layers of `duograph.mint.nn`, with `padding` and `padding_mode`.

`mint/nn/__init__.py` exports them. Initial weights and biases are uniform random numbers between
-1/sqrt(fan_in) and 1/sqrt(fan_in). All computation is done by `functional`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....common.initializer import HeUniform, Uniform, initializer
from ....dtype import DTypeLike, float32
from ....errors import ArgumentValueError
from ....nn import _check
from ....nn.cell import Cell
from ....parameter import Parameter
from ....tensor import Tensor
from .. import functional as F

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d"]

Sizes = int | Sequence[int]
_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate",
          "circular": "circular"}  # fmt: skip


class _Conv(Cell):
    """Base of all convolution layers: checks the arguments and creates the Parameters.

    A subclass sets `_axes`, the number of spatial axes.
    """

    _axes = 2
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        dilation: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: DTypeLike | None,
    ) -> None:
        super().__init__()
        owner, axes = type(self).__name__, self._axes
        self.in_channels = _check.positive_int(owner, "in_channels", in_channels)
        self.out_channels = _check.positive_int(owner, "out_channels", out_channels)
        self.groups = _check.positive_int(owner, "groups", groups)
        if in_channels % groups or out_channels % groups:
            raise ArgumentValueError(
                f"{owner}: got groups={groups} for in_channels={in_channels} and out_channels="
                f"{out_channels}; wanted a divisor of both"
            )
        self.kernel_size = _check.ints(owner, "kernel_size", kernel_size, axes)
        self.stride = _check.ints(owner, "stride", stride, axes)
        self.dilation = _check.ints(owner, "dilation", dilation, axes)
        self.padding: str | tuple[int, ...]
        if isinstance(padding, str):
            self.padding = _check.one_of(owner, "padding", padding, ("same", "valid"))
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ArgumentValueError(
                    f"{owner}: got padding='same' and stride={stride!r}; wanted stride 1"
                )
        else:
            self.padding = _check.ints(owner, "padding", padding, axes, 0)
        self.padding_mode = _check.one_of(owner, "padding_mode", padding_mode, tuple(_MODES))
        self.has_bias = _check.boolean(owner, "bias", bias)
        kind = float32 if dtype is None else dtype
        first, second = in_channels, out_channels
        if not self._transposed:
            first, second = second, first
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(initializer(HeUniform(math.sqrt(5)), shape, kind), name="weight")
        self.bias: Parameter | None = None
        if bias:
            bound = Uniform(1 / math.sqrt(math.prod(shape[1:])))
            self.bias = Parameter(initializer(bound, (out_channels,), kind), name="bias")

    def _widths(self) -> tuple[int, ...]:
        """Return the padding widths (before, after, before, ...), the last axis first."""
        found: list[int] = []
        for axis in reversed(range(self._axes)):
            if self.padding == "same":
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                found += [total // 2, total - total // 2]
            elif isinstance(self.padding, str):
                found += [0, 0]
            else:
                found += [self.padding[axis]] * 2
        return tuple(found)

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, groups={self.groups}, bias={self.has_bias}"
        )


class _Forward(_Conv):
    """Base class of the convolution layers that are not transposed."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, dtype,
        )  # fmt: skip

    def construct(self, input: Tensor) -> Tensor:
        padding: str | Sequence[int] = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._widths(), _MODES[self.padding_mode])
            padding = (0,) * self._axes
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self._axes - 1]
        return convolve(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_Forward):
    """1-D convolution (`mindspore.mint.nn.Conv1d`); the arguments are those of `Conv2d`.

    Inputs: (N, C, L) or (C, L). Outputs: the same axes with `out_channels` channels.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.Conv1d(2, 4, 3)(mint.ones((1, 2, 8))).shape
        (1, 4, 6)
    """

    _axes = 1


class Conv2d(_Forward):
    """2-D convolution (`mindspore.mint.nn.Conv2d`).

    Args:
        in_channels, out_channels: numbers of channels of input and output.
        kernel_size, stride, dilation: int, or 2 ints (height, width).
        padding: width on all sides: int or 2 ints; ``"valid"`` for none, or ``"same"`` to keep
            the size, which needs stride 1.
        groups: number of groups of channels; it divides both numbers.
        bias: whether to add a bias.
        padding_mode: how added cells are filled: ``"zeros"``, ``"reflect"``, ``"replicate"`` or
            ``"circular"``.
        dtype: dtype of the Parameters; default float32.

    Inputs: (N, C, H, W) or (C, H, W). Outputs: the same axes with `out_channels` channels.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: an argument out of range, or an input with other channels.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.Conv2d(3, 8, 3, padding=1)(mint.ones((1, 3, 5, 5))).shape
        (1, 8, 5, 5)
    """

    _axes = 2


class Conv3d(_Forward):
    """3-D convolution layer (`mindspore.mint.nn.Conv3d`); it takes the arguments of `Conv2d`.

    Inputs: (N, C, D, H, W) or (C, D, H, W). Outputs: the same axes with `out_channels` channels.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.Conv3d(1, 2, 2)(mint.ones((1, 1, 3, 3, 3))).shape
        (1, 2, 2, 2, 2)
    """

    _axes = 3


class ConvTranspose2d(_Conv):
    """Transposed 2-D convolution (`mindspore.mint.nn.ConvTranspose2d`).

    Args:
        in_channels, out_channels: numbers of channels of input and output.
        kernel_size, stride, dilation: int, or 2 ints (height, width).
        padding: int or 2 ints, removed from both ends of the result.
        output_padding: int or 2 ints, added to the high ends of the result.
        groups: number of groups of channels; it divides both numbers.
        bias: whether to add a bias.
        padding_mode: must be ``"zeros"``.
        dtype: dtype of the Parameters; default float32.

    Inputs: (N, C, H, W) or (C, H, W); and optionally `output_size`, the sizes of the result, in
    place of `output_padding`. Outputs: the same axes with `out_channels` channels.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: an argument out of range, or an input with other channels.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.ConvTranspose2d(3, 2, 3, stride=2)(mint.ones((1, 3, 4, 4))).shape
        (1, 2, 9, 9)
    """

    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        dtype: DTypeLike | None = None,
    ) -> None:
        _check.one_of("ConvTranspose2d", "padding_mode", padding_mode, ("zeros",))
        super().__init__(
            in_channels, out_channels, kernel_size, stride,
            _check.ints("ConvTranspose2d", "padding", padding, 2, 0), dilation, groups, bias,
            padding_mode, dtype,
        )  # fmt: skip
        self.output_padding = _check.ints("ConvTranspose2d", "output_padding", output_padding, 2, 0)

    def construct(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip

    def _extra(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """Return the output padding per axis with which the result has the size `output_size`."""
        found = []
        wanted = tuple(output_size)[-2:]
        pads = tuple(n for n in self.padding if isinstance(n, int))
        for n, w, s, p, d, k in zip(
            input.shape[-2:], wanted, self.stride, pads, self.dilation, self.kernel_size,
            strict=True,
        ):  # fmt: skip
            least = (n - 1) * s - 2 * p + d * (k - 1) + 1
            if not least <= w < least + s:
                raise ArgumentValueError(
                    f"ConvTranspose2d: got output_size={tuple(output_size)}; wanted one of "
                    f"{least} to {least + s - 1} for an axis of {n}"
                )
            found.append(w - least)
        return tuple(found)
