"""Pooling layers of `duograph.mint.nn`.

`mint/nn/__init__.py` exports them, together with the adaptive pooling layers of `duograph.nn`. Each
layer holds its arguments and calls one function of `functional`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....nn import _check
from ....nn.cell import Cell
from ....tensor import Tensor
from .. import functional as F

__all__ = ["AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool2d", "MaxUnpool2d"]

Sizes = int | Sequence[int]


class AvgPool1d(Cell):
    """The mean of sliding windows of (N, C, L) (`mindspore.mint.nn.AvgPool1d`).

    Args:
        kernel_size: int.
        stride: int; default `kernel_size`.
        padding: int, at most half of the kernel.
        ceil_mode: whether to keep windows that extend past the end.
        count_include_pad: whether padded cells count in the divisor.

    Raises:
        ValueError: an argument out of range, or a window larger than the input.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.AvgPool1d(2)(mint.ones((1, 1, 4))).shape
        (1, 1, 2)
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _check.ints("AvgPool1d", "kernel_size", kernel_size, 1)
        self.stride = (
            self.kernel_size if stride is None else _check.ints("AvgPool1d", "stride", stride, 1)
        )
        self.padding = _check.ints("AvgPool1d", "padding", padding, 1, 0)
        self.ceil_mode = _check.boolean("AvgPool1d", "ceil_mode", ceil_mode)
        self.count_include_pad = _check.boolean("AvgPool1d", "count_include_pad", count_include_pad)

    def construct(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool2d(Cell):
    """The mean of sliding windows of (N, C, H, W) (`mindspore.mint.nn.AvgPool2d`).

    Args:
        kernel_size: int or 2 ints.
        stride: int or 2 ints; default `kernel_size`.
        padding: int or 2 ints, at most half of the kernel.
        ceil_mode: whether to keep windows that extend past the end.
        count_include_pad: whether padded cells count in the divisor.
        divisor_override: a divisor instead of the number of cells.

    Raises:
        ValueError: an argument out of range, or a window larger than the input.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.AvgPool2d(2)(mint.ones((1, 1, 4, 4))).shape
        (1, 1, 2, 2)
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = _check.ints("AvgPool2d", "kernel_size", kernel_size, 2)
        self.stride = (
            self.kernel_size if stride is None else _check.ints("AvgPool2d", "stride", stride, 2)
        )
        self.padding = _check.ints("AvgPool2d", "padding", padding, 2, 0)
        self.ceil_mode = _check.boolean("AvgPool2d", "ceil_mode", ceil_mode)
        self.count_include_pad = _check.boolean("AvgPool2d", "count_include_pad", count_include_pad)
        self.divisor_override = divisor_override

    def construct(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(Cell):
    """The mean of sliding windows of (N, C, D, H, W) (`mindspore.mint.nn.AvgPool3d`).

    Args:
        kernel_size: int or 3 ints.
        stride: int or 3 ints; default `kernel_size`.
        padding: int or 3 ints, at most half of the kernel.
        ceil_mode: whether to keep windows that extend past the end.
        count_include_pad: whether padded cells count in the divisor.
        divisor_override: a divisor instead of the number of cells.

    Raises:
        ValueError: an argument out of range, or a window larger than the input.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.AvgPool3d(2)(mint.ones((1, 1, 4, 4, 4))).shape
        (1, 1, 2, 2, 2)
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = _check.ints("AvgPool3d", "kernel_size", kernel_size, 3)
        self.stride = (
            self.kernel_size if stride is None else _check.ints("AvgPool3d", "stride", stride, 3)
        )
        self.padding = _check.ints("AvgPool3d", "padding", padding, 3, 0)
        self.ceil_mode = _check.boolean("AvgPool3d", "ceil_mode", ceil_mode)
        self.count_include_pad = _check.boolean("AvgPool3d", "count_include_pad", count_include_pad)
        self.divisor_override = divisor_override

    def construct(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class MaxPool2d(Cell):
    """The largest element of sliding windows of (N, C, H, W) (`mindspore.mint.nn.MaxPool2d`).

    Args:
        kernel_size: int or 2 ints.
        stride: int or 2 ints; default `kernel_size`.
        padding: int or 2 ints, at most half of the kernel; padded cells are never the maximum.
        dilation: int or 2 ints, distance between neighbouring cells of a window.
        return_indices: whether to return also the int64 index of each element in the flattened H
            and W.
        ceil_mode: whether to keep windows that extend past the end.

    Raises:
        ValueError: an argument out of range, or a window larger than the input.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.MaxPool2d(2)(mint.ones((1, 1, 4, 4))).shape
        (1, 1, 2, 2)
    """

    def __init__(
        self,
        kernel_size: Sizes = 1,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = _check.ints("MaxPool2d", "kernel_size", kernel_size, 2)
        self.stride = (
            self.kernel_size if stride is None else _check.ints("MaxPool2d", "stride", stride, 2)
        )
        self.padding = _check.ints("MaxPool2d", "padding", padding, 2, 0)
        self.dilation = _check.ints("MaxPool2d", "dilation", dilation, 2)
        self.return_indices = _check.boolean("MaxPool2d", "return_indices", return_indices)
        self.ceil_mode = _check.boolean("MaxPool2d", "ceil_mode", ceil_mode)

    def construct(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxUnpool2d(Cell):
    """Puts the elements that `MaxPool2d` found back where they were, and zeros elsewhere
    (`mindspore.mint.nn.MaxUnpool2d`).

    Args:
        kernel_size, stride, padding: those of the pooling.

    Inputs: the elements, their indices, and `output_size`, the shape of the result or its last
    two sizes, if the pooling left cells out.

    Raises:
        ValueError: inputs of different shapes, or an `output_size` that the pooling does not lead
            to.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.MaxUnpool2d(2)(Tensor([[[5.0]]]), Tensor([[[3]]])))
        [[[0. 0.]
          [0. 5.]]]
    """

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size = _check.ints("MaxUnpool2d", "kernel_size", kernel_size, 2)
        self.stride = (
            self.kernel_size if stride is None else _check.ints("MaxUnpool2d", "stride", stride, 2)
        )
        self.padding = _check.ints("MaxUnpool2d", "padding", padding, 2, 0)

    def construct(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
