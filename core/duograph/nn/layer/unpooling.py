"""MaxUnpool and FractionalMaxPool layers.

`nn` exports them. They hold the arguments; functions of `ops` compute the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from ... import ops
from ...tensor import Tensor
from .. import _check
from .._types import Ints
from ..cell import Cell

__all__ = [
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxUnpool(Cell):
    """Base class of the max unpooling layers; it holds the window of the pooling to be reversed."""

    _unpool: ClassVar[Callable[..., Tensor]]

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def construct(
        self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        found: Tensor = type(self)._unpool(
            x, indices, self.kernel_size, self.stride, self.padding, output_size
        )
        return found

    def extend_repr(self) -> str:
        stride = self.kernel_size if self.stride is None else self.stride
        return f"kernel_size={self.kernel_size}, stride={stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Puts the maxima of a pooling back to their positions, with zeros elsewhere
    (`mindspore.nn.MaxUnpool1d`).

    Args:
        kernel_size: int, the window of the pooling.
        stride: int; None for the window.
        padding: int.

    Inputs: x of (N, C, L) or (C, L); the indices of the maxima; the shape of the output, if it
    does not follow from the window. Outputs: (N, C, L') or (C, L').

    Raises:
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> x, indices = ms.Tensor([[[2.0, 4.0]]]), ms.Tensor([[[1, 3]]])
        >>> print(ms.nn.MaxUnpool1d(2)(x, indices))
        [[[0. 2. 0. 4.]]]
    """

    _unpool: ClassVar[Callable[..., Tensor]] = staticmethod(ops.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Puts the maxima of a pooling back to their positions, with zeros elsewhere
    (`mindspore.nn.MaxUnpool2d`).

    Args:
        kernel_size, stride, padding: int, or (height, width); `stride` None is the window.

    Inputs: x of (N, C, H, W) or (C, H, W); the indices of the maxima in H * W; the shape of the
    output, if it does not follow from the window. Outputs: (N, C, H', W') or (C, H', W').

    Raises:
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> x, indices = ms.Tensor([[[[8.0]]]]), ms.Tensor([[[[3]]]])
        >>> print(ms.nn.MaxUnpool2d(2)(x, indices))
        [[[[0. 0.]
           [0. 8.]]]]
    """

    _unpool: ClassVar[Callable[..., Tensor]] = staticmethod(ops.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Puts the maxima of a pooling back to their positions, with zeros elsewhere
    (`mindspore.nn.MaxUnpool3d`).

    Args:
        kernel_size, stride, padding: int, or (depth, height, width); `stride` None is the window.

    Inputs: x of (N, C, D, H, W) or (C, D, H, W); the indices of the maxima in D * H * W; the shape
    of the output, if it does not follow from the window.

    Raises:
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> x, indices = ms.Tensor([[[[[8.0]]]]]), ms.Tensor([[[[[7]]]]])
        >>> ms.nn.MaxUnpool3d(2)(x, indices).shape
        (1, 1, 2, 2, 2)
    """

    _unpool: ClassVar[Callable[..., Tensor]] = staticmethod(ops.max_unpool3d)


class _FractionalMaxPool(Cell):
    """Base class of the fractional max pooling layers; it holds the window and the output size."""

    _pool: ClassVar[Callable[..., Tensor | tuple[Tensor, Tensor]]]

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.output_size = kernel_size, output_size
        self.output_ratio = output_ratio
        self.return_indices = _check.boolean(type(self).__name__, "return_indices", return_indices)
        self._random_samples = _random_samples

    def construct(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return type(self)._pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maxima of windows at random distances (Graham, 2014; `mindspore.nn.FractionalMaxPool2d`).

    Args:
        kernel_size: int, or (height, width) of a window.
        output_size: int, or (height, width) of the result; None if `output_ratio` is given.
        output_ratio: ratio of the result's lengths to those of the input, between 0 and 1; None if
            `output_size` is given.
        return_indices: whether to return also the index of each maximum.
        _random_samples: Tensor (N, C, 2) of numbers in [0, 1); default random ones.

    Inputs: (N, C, H, W) or (C, H, W). Outputs: the maxima, or a tuple of them and the indices.

    Raises:
        ValueError: neither or both of size and ratio, or a window larger than the input.

    Examples:
        >>> import duograph as ms
        >>> pool = ms.nn.FractionalMaxPool2d(2, output_size=(2, 2))
        >>> pool(ms.ops.ones((1, 1, 5, 5), ms.float32)).shape
        (1, 1, 2, 2)
    """

    _pool: ClassVar[Callable[..., Tensor | tuple[Tensor, Tensor]]] = staticmethod(
        ops.fractional_max_pool2d
    )


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maxima of windows at random distances (Graham, 2014; `mindspore.nn.FractionalMaxPool3d`).

    Args:
        kernel_size: int, or (depth, height, width) of a window.
        output_size, output_ratio: as for `FractionalMaxPool2d`, for three axes.
        return_indices: whether to return also the index of each maximum.
        _random_samples: Tensor (N, C, 3) of numbers in [0, 1); default random ones.

    Inputs: (N, C, D, H, W) or (C, D, H, W).

    Raises:
        ValueError: as for `FractionalMaxPool2d`.

    Examples:
        >>> import duograph as ms
        >>> pool = ms.nn.FractionalMaxPool3d(2, output_size=2)
        >>> pool(ms.ops.ones((1, 1, 5, 5, 5), ms.float32)).shape
        (1, 1, 2, 2, 2)
    """

    _pool: ClassVar[Callable[..., Tensor | tuple[Tensor, Tensor]]] = staticmethod(
        ops.fractional_max_pool3d
    )
