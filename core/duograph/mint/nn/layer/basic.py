"""Linear, Embedding, Flatten, dropout, resizing and folding layers of `duograph.mint.nn`.

`mint/nn/__init__.py` exports them. The layers hold Parameters and arguments; functions of
`functional` and `ops` compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .... import ops as _ops
from ....common.initializer import HeUniform, Normal, Uniform, initializer
from ....dtype import DTypeLike, as_dtype, float32
from ....errors import ArgumentError, ArgumentValueError, ShapeError
from ....nn import _check
from ....nn._types import Init
from ....nn.cell import Cell
from ....parameter import Parameter
from ....tensor import Tensor
from .. import functional as F

__all__ = [
    "Dropout", "Dropout2d", "Embedding", "Flatten", "Fold", "Linear", "PixelShuffle", "Unfold",
    "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
]  # fmt: skip

Sizes = int | Sequence[int]


class Linear(Cell):
    """Affine layer: ``x @ weight.T + bias`` (`mindspore.mint.nn.Linear`).

    Args:
        in_features: length of the last axis of the input.
        out_features: length of the last axis of the output.
        bias: whether to add a bias.
        weight_init: Tensor of (out_features, in_features), name or Initializer; default uniform in
            ±1/sqrt(in_features).
        bias_init: the same for the bias of (out_features,).
        dtype: dtype of the Parameters; default float32.

    Inputs: x of (..., in_features). Outputs: (..., out_features).

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: a size below 1, an initial Tensor of another shape, or an input whose last axis
            is not `in_features` long.

    Examples:
        >>> from duograph import Tensor, mint
        >>> layer = mint.nn.Linear(3, 2, weight_init="ones", bias_init="zeros")
        >>> print(layer(Tensor([[1.0, 2.0, 3.0]])))
        [[6. 6.]]
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: Init = None,
        bias_init: Init = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.in_features = _check.positive_int("Linear", "in_features", in_features)
        self.out_features = _check.positive_int("Linear", "out_features", out_features)
        self.has_bias = _check.boolean("Linear", "bias", bias)
        kind = float32 if dtype is None else dtype
        shape = (out_features, in_features)
        if isinstance(weight_init, Tensor) and weight_init.shape != shape:
            raise ShapeError(
                f"Linear: got weight_init of shape {weight_init.shape}; wanted {shape}"
            )
        if isinstance(bias_init, Tensor) and bias_init.shape != (out_features,):
            raise ShapeError(
                f"Linear: got bias_init of shape {bias_init.shape}; wanted ({out_features},)"
            )
        first = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = Parameter(initializer(first, shape, kind), name="weight")
        self.bias: Parameter | None = None
        if bias:
            second = Uniform(1 / math.sqrt(in_features)) if bias_init is None else bias_init
            self.bias = Parameter(initializer(second, (out_features,), kind), name="bias")

    def construct(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extend_repr(self) -> str:
        return (
            f"input_features={self.in_features}, output_features={self.out_features}, "
            f"has_bias={self.has_bias}"
        )


class Embedding(Cell):
    """A table of vectors, looked up by index (`mindspore.mint.nn.Embedding`).

    Args:
        num_embeddings: number of vectors.
        embedding_dim: length of each vector.
        padding_idx: index of a vector that starts as zeros and gets no gradient.
        max_norm: largest norm of a vector; vectors that are looked up are scaled down to it, in
            place. None for no limit.
        norm_type: order of that norm.
        scale_grad_by_freq: whether to divide the gradient of a vector by the number of its uses.
        sparse: only False is offered.
        _weight: Tensor with the initial values; default standard normal.
        _freeze: whether the table is not trained.
        dtype: dtype of the table; default float32.

    Inputs: integer Tensor of any shape. Outputs: that shape + (embedding_dim,).

    Raises:
        ValueError: a size below 1, a `padding_idx` outside the table, or `sparse`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.nn.Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        if sparse:
            raise ArgumentValueError(
                "Embedding: got sparse=True, which is not offered; gradients are dense"
            )
        self.num_embeddings = _check.positive_int("Embedding", "num_embeddings", num_embeddings)
        self.embedding_dim = _check.positive_int("Embedding", "embedding_dim", embedding_dim)
        shape = (num_embeddings, embedding_dim)
        if _weight is not None and _weight.shape != shape:
            raise ShapeError(f"Embedding: got _weight of shape {_weight.shape}; wanted {shape}")
        self.dtype = as_dtype(float32 if dtype is None else dtype)
        self.padding_idx = padding_idx
        if padding_idx is not None:
            low = -num_embeddings
            _check.in_range(
                "Embedding", "padding_idx", padding_idx, low, num_embeddings, open_high=True
            )
            self.padding_idx = padding_idx % num_embeddings
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = _check.boolean(
            "Embedding", "scale_grad_by_freq", scale_grad_by_freq
        )
        table = initializer(Normal(1.0) if _weight is None else _weight, shape, self.dtype)
        if self.padding_idx is not None and _weight is None:
            values = table.asnumpy().copy()
            values[self.padding_idx] = 0
            table = Tensor(values, self.dtype)
        self.weight = Parameter(table, name="weight", requires_grad=not _freeze)

    def construct(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq,
        )  # fmt: skip

    def extend_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"padding_idx={self.padding_idx}, max_norm={self.max_norm}, "
            f"norm_type={self.norm_type}, scale_grad_by_freq={self.scale_grad_by_freq}, "
            f"dtype={self.dtype}"
        )


class Flatten(Cell):
    """Joins the axes `start_dim` to `end_dim` into one (`mindspore.mint.nn.Flatten`).

    Raises:
        TypeError: an axis is not an int.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.Flatten()(mint.ones((2, 3, 4))).shape
        (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        for name, value in (("start_dim", start_dim), ("end_dim", end_dim)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentError(f"Flatten: got {name}={value!r}; wanted an int")
        self.start_dim = start_dim
        self.end_dim = end_dim

    def construct(self, input: Tensor) -> Tensor:
        return F.flatten(input, self.start_dim, self.end_dim)


class Dropout(Cell):
    """In training, sets elements to 0 with probability `p` and divides the others by ``1 - p``
    (`mindspore.mint.nn.Dropout`).

    Args:
        p: probability, from 0 to 1.
        inplace: whether the input itself is set to the result.

    Raises:
        ValueError: `p` outside [0, 1].

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.Dropout(0.5)(Tensor([1.0, 2.0])))
        [1. 2.]
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p = _check.in_range(type(self).__name__, "p", p, 0, 1)
        self.inplace = _check.boolean(type(self).__name__, "inplace", inplace)

    def construct(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        return F.dropout(x, self.p, True, self.inplace)


class Dropout2d(Dropout):
    """In training, sets whole channels of (N, C, H, W) to 0 with probability `p` and divides the
    others by ``1 - p`` (`mindspore.mint.nn.Dropout2d`).

    Args:
        p: probability, from 0 to 1.
        inplace: whether the input itself is set to the result.

    Raises:
        ValueError: `p` outside [0, 1].

    Examples:
        >>> from duograph import mint
        >>> mint.nn.Dropout2d(0.5)(mint.ones((1, 2, 3, 3))).shape
        (1, 2, 3, 3)
    """

    def construct(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        return F.dropout2d(x, self.p, True, self.inplace)


class PixelShuffle(Cell):
    """Spreads channels over blocks of pixels: (*, C r², H, W) to (*, C, H r, W r)
    (`mindspore.mint.nn.PixelShuffle`).

    Args:
        upscale_factor: the factor r.

    Raises:
        ValueError: a number of channels that r² does not divide.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.PixelShuffle(2)(mint.ones((1, 8, 2, 3))).shape
        (1, 2, 4, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = _check.positive_int("PixelShuffle", "upscale_factor", upscale_factor)

    def construct(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class Fold(Cell):
    """Sums sliding windows, given as columns, into an image (col2im;
    `mindspore.mint.nn.Fold`).

    Args:
        output_size: int or 2 ints, the size of the image.
        kernel_size, dilation, padding, stride: int or 2 ints, those of `Unfold`.

    Inputs: (N, C * kernel, windows). Outputs: (N, C, H, W).

    Raises:
        ValueError: the sizes do not match.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.Fold((4, 4), 2, stride=2)(mint.ones((1, 8, 4))).shape
        (1, 2, 4, 4)
    """

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def construct(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )


class Unfold(Cell):
    """Sliding windows as columns, im2col (`mindspore.mint.nn.Unfold`).

    Args:
        kernel_size, dilation, padding, stride: int or 2 ints.

    Inputs: (N, C, H, W). Outputs: (N, C * kernel, windows).

    Raises:
        ValueError: not four axes, or a window larger than the input.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.Unfold(2, stride=2)(mint.ones((1, 2, 4, 4))).shape
        (1, 8, 4)
    """

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def construct(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Upsample(Cell):
    """Resamples the spatial axes of (N, C, ...) (`mindspore.mint.nn.Upsample`).

    Args:
        size: sizes of the result's spatial axes; None if `scale_factor` is given.
        scale_factor: factors of the sizes; None if `size` is given.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"`` or ``"trilinear"``.
        align_corners: whether the centres of the corner cells of input and result coincide; not for
            ``"nearest"``.
        recompute_scale_factor: whether to use the exact ratio of the sizes instead of
            `scale_factor`.

    Raises:
        ValueError: neither or both of size and scale_factor, or another mode.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.Upsample(scale_factor=2)(mint.ones((1, 1, 2, 2))).shape
        (1, 1, 4, 4)
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def construct(self, input: Tensor) -> Tensor:
        return _ops.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            self.recompute_scale_factor,
        )  # fmt: skip


class UpsamplingNearest2d(Upsample):
    """Resamples (N, C, H, W) by the nearest pixel (`mindspore.mint.nn.UpsamplingNearest2d`).

    Args:
        size: int or 2 ints, the size of the result; None if `scale_factor` is given.
        scale_factor: number or 2 numbers; None if `size` is given.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.UpsamplingNearest2d(4)(mint.ones((1, 1, 2, 2))).shape
        (1, 1, 4, 4)
    """

    def __init__(
        self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resamples (N, C, H, W) bilinearly; the centres of the corner pixels meet
    (`mindspore.mint.nn.UpsamplingBilinear2d`).

    Args:
        size: int or 2 ints, the size of the result; None if `scale_factor` is given.
        scale_factor: number or 2 numbers; None if `size` is given.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.UpsamplingBilinear2d(4)(mint.ones((1, 1, 2, 2))).shape
        (1, 1, 4, 4)
    """

    def __init__(
        self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
