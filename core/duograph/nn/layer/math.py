"""Mathematical layers: triangles of matrices, moments, log-sum-exp, crops, jvp and vjp.

Most of these layers are in older versions of MindSpore only; each calls public ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import ops
from ...autodiff.transforms import jvp, vjp
from ...errors import ShapeError
from ...tensor import Tensor
from .. import _check
from .._types import Axis, Ints
from ..cell import Cell

__all__ = [
    "Tril", "Triu", "Roll", "Range", "Moments", "ReduceLogSumExp", "L1Regularizer", "CentralCrop",
    "CosineSimilarity", "ImageGradients", "Jvp", "Vjp",
]  # fmt: skip


class Tril(Cell):
    """Lower triangle of a matrix (`mindspore.nn.Tril`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Tril()(ms.ops.ones((2, 2), ms.float32)))
        [[1. 0.]
         [1. 1.]]
    """

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return ops.tril(x, k)


class Triu(Cell):
    """Upper triangle of a matrix (`mindspore.nn.Triu`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Triu()(ms.ops.ones((2, 2), ms.float32)))
        [[1. 1.]
         [0. 1.]]
    """

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return ops.triu(x, k)


class Roll(Cell):
    """Cyclic shift of elements along axes (`mindspore.nn.Roll`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Roll(1, 0)(ms.Tensor([1, 2, 3])))
        [3 1 2]
    """

    def __init__(self, shift: Ints, axis: Ints) -> None:
        super().__init__()
        self.shift, self.axis = shift, axis

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.roll(input_x, self.shift, self.axis)


class CosineSimilarity(Cell):
    """Cosine of the angle between vectors along one axis (`mindspore.nn.layer.CosineSimilarity`).

    `nn.CosineSimilarity` is the metric of this name, as in MindSpore.

    Args:
        dim: the axis of the vectors, which the result does not have.
        eps: lower limit of the product of the norms, by which the result is divided.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[1.0, 3.0, 4.0, 7.0], [3.0, 1.0, 5.0, 8.0]])
        >>> y = ms.Tensor([[2.0, 4.0, 2.0, 5.0], [1.0, 3.0, 4.0, 7.0]])
        >>> print(ms.nn.layer.CosineSimilarity()(x, y))
        [0.9402562 0.9516245]
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        sizes = ops.mul((x1 * x1).sum(self.dim), (x2 * x2).sum(self.dim))
        least = ops.maximum(sizes, self.eps * self.eps)
        return ops.div_no_nan((x1 * x2).sum(self.dim), ops.sqrt(least))


class Range(Cell):
    """Numbers from `start` to `limit` in steps of `delta` (`mindspore.nn.Range`); takes no input.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Range(1, 8, 2)())
        [1 3 5 7]
    """

    def __init__(self, start: float, limit: float | None = None, delta: float = 1) -> None:
        super().__init__()
        self.start = 0 if limit is None else start
        self.limit = start if limit is None else limit
        self.delta = delta

    def construct(self) -> Tensor:
        return ops.arange(self.start, self.limit, self.delta)


class Moments(Cell):
    """Mean and (biased) variance over axes (`mindspore.nn.Moments`).

    Examples:
        >>> import duograph as ms
        >>> mean, variance = ms.nn.Moments()(ms.Tensor([1.0, 3.0]))
        >>> print(mean, variance)
        2.0 1.0
    """

    def __init__(self, axis: Axis = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, bool(keep_dims)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axes = tuple(range(x.ndim)) if self.axis in (None, ()) else self.axis
        mean = ops.mean(x, axes, True)
        variance = ops.mean(ops.square(x - ops.stop_gradient(mean)), axes, True)
        if self.keep_dims:
            return mean, variance
        axes = (axes,) if isinstance(axes, int) else tuple(axes)
        return ops.squeeze(mean, axes), ops.squeeze(variance, axes)


class ReduceLogSumExp(Cell):
    """Logarithm of the sum of exponentials over axes (`mindspore.nn.ReduceLogSumExp`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.ReduceLogSumExp(0)(ms.Tensor([0.0, 0.0])))
        0.6931472
    """

    def __init__(self, axis: Axis, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Tensor) -> Tensor:
        return ops.logsumexp(x, self.axis, self.keep_dims)


class L1Regularizer(Cell):
    """`scale * sum(|weights|)` (`mindspore.nn.L1Regularizer`).

    Raises:
        ValueError: `scale` of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.L1Regularizer(0.5)(ms.Tensor([1.0, -3.0])))
        2.0
    """

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = _check.in_range("L1Regularizer", "scale", scale, 0, open_low=True)

    def construct(self, weights: Tensor) -> Tensor:
        return ops.abs(weights).sum() * self.scale


class CentralCrop(Cell):
    """The central part of (C, H, W) or (N, C, H, W) images (`mindspore.nn.CentralCrop`).

    Raises:
        ValueError: a fraction outside (0, 1], or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.CentralCrop(0.5)(ms.ops.ones((3, 4, 4), ms.float32)).shape
        (3, 2, 2)
    """

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        self.central_fraction = _check.in_range(
            "CentralCrop", "central_fraction", central_fraction, 0, 1, open_low=True
        )

    def construct(self, image: Tensor) -> Tensor:
        _check.rank("CentralCrop", image, 3, 4)
        h, w = image.shape[-2:]
        top = int((h - h * self.central_fraction) / 2)
        left = int((w - w * self.central_fraction) / 2)
        return image[..., top : h - top, left : w - left]


class ImageGradients(Cell):
    """Differences to the next pixel below and to the right (`mindspore.nn.ImageGradients`).

    Returns (differences downwards, differences to the right) of images (N, C, H, W). The
    differences are 0 at the lower and right border.

    Examples:
        >>> import duograph as ms
        >>> down, right = ms.nn.ImageGradients()(ms.ops.ones((1, 1, 2, 2), ms.float32))
        >>> down.shape
        (1, 1, 2, 2)
    """

    def construct(self, images: Tensor) -> tuple[Tensor, Tensor]:
        _check.rank("ImageGradients", images, 4)
        if min(images.shape[2:]) < 1:
            raise ShapeError(f"ImageGradients: input has shape {images.shape}; wanted pixels")
        down = images[:, :, 1:, :] - images[:, :, :-1, :]
        right = images[:, :, :, 1:] - images[:, :, :, :-1]
        return (
            ops.pad_constant(down, low=(0,) * 4, high=(0, 0, 1, 0), value=0.0),
            ops.pad_constant(right, low=(0,) * 4, high=(0, 0, 0, 1), value=0.0),
        )


class Jvp(Cell):
    """`ops.jvp` as a Cell (`mindspore.nn.Jvp`, of older versions).

    Inputs: the inputs of the function `fn`, then a tangent for each input.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Jvp(lambda x: x * x)(ms.Tensor(3.0), ms.Tensor(1.0))[1])
        6.0
    """

    def __init__(self, fn: Callable[..., object]) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: object) -> object:
        half = math.ceil(len(args) / 2)
        return jvp(self.fn, args[:half], args[half:])


class Vjp(Cell):
    """`ops.vjp` as a Cell (`mindspore.nn.Vjp`, of older versions).

    Inputs: the inputs of the function `fn`, then the cotangent of its result. Outputs: the
    function's value, and the gradients as a tuple; for a single input, its gradient alone.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Vjp(lambda x: x * x)(ms.Tensor(3.0), ms.Tensor(1.0))[1])
        6.0
    """

    def __init__(self, fn: Callable[..., object]) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: object) -> object:
        value, pull = vjp(self.fn, *args[:-1])
        sens = args[-1]
        gradients = pull(*(sens if isinstance(sens, tuple) else (sens,)))
        return value, gradients[0] if len(gradients) == 1 else gradients
