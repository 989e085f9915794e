"""Convolutions over 1 to 3 spatial axes and their transposes.

Every layer calls the `conv` primitive, or its gradient with respect to the input for a transposed
convolution. Pooling and unfolding layers use `same_padding`.
"""

from __future__ import annotations

import math

from ... import ops
from ...common.initializer import HeUniform, Uniform, initializer
from ...dtype import float32
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from .._types import DTypeLike, Init, Ints
from ..cell import Cell

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose",
]  # fmt: skip

Pairs = tuple[tuple[int, int], ...]


def same_padding(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Pairs:
    """Return the padding with which the output length of each axis is ceil(size / stride).

    All arguments have one item per spatial axis, and so has the result: (elements before, after).
    """
    pairs = []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        total = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


def padding_pairs(owner: str, padding: Ints, axes: int) -> Pairs:
    """Return the (before, after) padding of each axis for a convolution's `padding` argument.

    `padding` is an int, one number per axis, or two per axis: before and after the first axis, and
    so on. `axes` is the number of spatial axes, and `owner` the layer's name in errors.
    """
    several = (padding,) * (2 * axes) if isinstance(padding, int) else padding
    if isinstance(padding, bool) or not isinstance(several, (tuple, list)):
        raise ArgumentError(
            f"{owner}: got padding={padding!r}; wanted an int or a tuple of {2 * axes} ints"
        )
    if len(several) == axes:
        several = [p for p in several for _ in range(2)]
    if len(several) != 2 * axes:
        raise ArgumentValueError(
            f"{owner}: got padding={padding!r}; wanted an int or a tuple of {2 * axes} ints"
        )
    for p in several:
        _check.non_negative_int(owner, "padding", p)
    return tuple((several[2 * i], several[2 * i + 1]) for i in range(axes))


def _options(layer: _Conv) -> dict[str, object]:
    """Return the keyword arguments of the primitive with which a layer computes."""
    return {
        "out_channel": layer.out_channels, "kernel_size": layer.kernel_size, "mode": 1,
        "pad_mode": layer.pad_mode, "pad": layer.padding, "stride": layer.stride,
        "dilation": layer.dilation, "group": layer.group, "data_format": layer.data_format,
    }  # fmt: skip


def _options_of_a_row(layer: _Conv) -> dict[str, object]:
    """Return those of a 1-D layer, which computes with images of height 1."""
    return {
        **_options(layer),
        "kernel_size": (1, *layer.kernel_size), "pad": (0, 0, *layer._pairs[0]),
        "stride": (1, *layer.stride), "dilation": (1, *layer.dilation),
    }  # fmt: skip


def _of_a_row(weight: Init) -> Init:
    """Return the initial weight of a 1-D layer as that of images of height 1."""
    return weight.expand_dims(2) if isinstance(weight, Tensor) and weight.ndim == 3 else weight


class _Conv(Cell):
    """Base of all convolution layers: checks the arguments and creates the Parameters.

    A subclass sets `_axes`, the number of spatial axes, and `_formats`, the data formats that it
    accepts.
    """

    bias_add = Operator("BiasAdd")
    shape = Operator("Shape")

    _axes = 2
    _formats: tuple[str, ...] = ("NCHW",)
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        pad_mode: str = "same",
        padding: Ints = 0,
        dilation: Ints = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Init = None,
        bias_init: Init = None,
        data_format: str = "NCHW",
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        owner, axes = type(self).__name__, self._axes
        self.in_channels = _check.positive_int(owner, "in_channels", in_channels)
        self.out_channels = _check.positive_int(owner, "out_channels", out_channels)
        self.kernel_size = _check.ints(owner, "kernel_size", kernel_size, axes)
        self.stride = _check.ints(owner, "stride", stride, axes)
        self.dilation = _check.ints(owner, "dilation", dilation, axes)
        self.group = _check.positive_int(owner, "group", group)
        self.has_bias = _check.boolean(owner, "has_bias", has_bias)
        self.pad_mode = _check.one_of(owner, "pad_mode", pad_mode, ("valid", "same", "pad"))
        self.padding = padding
        self._pairs = padding_pairs(owner, padding, axes)
        if self.pad_mode != "pad" and any(p for pair in self._pairs for p in pair):
            raise ArgumentValueError(
                f"{owner}: got padding={padding!r} with pad_mode={pad_mode!r}; "
                f"wanted padding 0, or pad_mode='pad'"
            )
        if in_channels % group or out_channels % group:
            raise ArgumentValueError(
                f"{owner}: got group={group} for in_channels={in_channels} and "
                f"out_channels={out_channels}; wanted a divisor of both"
            )
        if data_format not in self._formats:
            raise ArgumentValueError(
                f"{owner}: got data_format={data_format!r}; wanted {' or '.join(self._formats)}"
            )
        self.data_format = data_format
        first, second = (
            (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        )
        self._weight_shape = (first, second // group, *self.kernel_size)
        self.weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = Parameter(
            initializer(self.weight_init, self._stored_shape(), dtype), name="weight"
        )
        self.bias: Parameter | None = None
        self.bias_init = bias_init
        if has_bias:
            if bias_init is None:
                self.bias_init = Uniform(1 / math.sqrt(math.prod(self._weight_shape[1:])))
            self.bias = Parameter(initializer(self.bias_init, (out_channels,), dtype), name="bias")

    def _stored_shape(self) -> tuple[int, ...]:
        """Return the shape of the weight Parameter.

        The weight of a 1-D layer has an additional height axis of size 1.
        """
        if self._axes == 1:
            return (*self._weight_shape[:2], 1, self._weight_shape[2])
        return self._weight_shape

    def _weight(self) -> Tensor:
        return self.weight.reshape(self._weight_shape) if self._axes == 1 else self.weight

    def _check_input(self, x: Tensor) -> None:
        owner = type(self).__name__
        _check.rank(owner, x, self._axes + 2)
        if x.shape[1] != self.in_channels:
            raise ShapeError(
                f"{owner}: input has shape {x.shape}; wanted {self.in_channels} channels on "
                "axis 1, the in_channels of the layer"
            )

    def _add_bias(self, out: Tensor) -> Tensor:
        if self.bias is None:
            return out
        return out + self.bias.reshape((1, self.out_channels) + (1,) * self._axes)

    def extend_repr(self) -> str:
        kernel, stride, dilation = self.kernel_size, self.stride, self.dilation
        if self._axes == 1:
            kernel, stride, dilation = ((1, v[0]) for v in (kernel, stride, dilation))
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={kernel}, stride={stride}, pad_mode={self.pad_mode}, "
            f"padding={self.padding}, dilation={dilation}, group={self.group}, "
            f"has_bias={self.has_bias}, weight_init={self.weight_init}, "
            f"bias_init={self.bias_init}, format={self.data_format}"
        )


class _Forward(_Conv):
    """Base class of the convolution layers that are not transposed."""

    def construct(self, x: Tensor) -> Tensor:
        last = self.data_format == "NHWC"
        if last:
            x = x.transpose(0, 3, 1, 2)
        self._check_input(x)
        if self.pad_mode == "same":
            pairs = same_padding(x.shape[2:], self.kernel_size, self.stride, self.dilation)
        else:
            pairs = self._pairs
        out = ops.conv(
            x, self._weight(), stride=self.stride, padding=pairs, dilation=self.dilation,
            groups=self.group,
        )  # fmt: skip
        out = self._add_bias(out)
        return out.transpose(0, 2, 3, 1) if last else out


class Conv2d(_Forward):
    """2-D convolution (`mindspore.nn.Conv2d`).

    Args:
        in_channels, out_channels: lengths of axis 1 of input and output.
        kernel_size, stride, dilation: int, or two ints (height, width).
        pad_mode: ``"same"`` (the default: output length ceil(input / stride)), ``"valid"`` or
            ``"pad"``.
        padding: with ``"pad"``: int, or four ints (top, bottom, left, right).
        group: number of channel groups; in_channels and out_channels are multiples of it.
        has_bias: whether to add a bias; no by default.
        weight_init: Tensor of (out_channels, in_channels / group, height, width), name or
            Initializer.
        bias_init: the same for the bias.
        data_format: ``"NCHW"`` or ``"NHWC"``.
        dtype: dtype of the Parameters.

    Inputs: x of (N, C, H, W). Outputs: (N, out_channels, H', W').

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: an argument out of range, padding without ``"pad"``, or an input of another
            rank or number of channels.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Conv2d(3, 4, 3, stride=2)(ms.ops.ones((1, 3, 4, 4), ms.float32)).shape
        (1, 4, 2, 2)
    """

    conv2d = Operator(
        "Conv2D",
        _options,
    )

    _formats = ("NCHW", "NHWC")


class Conv1d(_Forward):
    """1-D convolution over (N, C, L) (`mindspore.nn.Conv1d`); arguments as for `Conv2d`.

    The weight is stored as (out_channels, in_channels / group, 1, kernel_size).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Conv1d(3, 4, 5)(ms.ops.ones((1, 3, 8), ms.float32)).shape
        (1, 4, 8)
    """

    conv2d = Operator(
        "Conv2D",
        _options_of_a_row,
    )
    expand_dims = Operator("ExpandDims")
    squeeze = Operator("Squeeze", lambda c: {"axis": 2})

    _axes = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        pad_mode: str = "same",
        padding: Ints = 0,
        dilation: Ints = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Init = None,
        bias_init: Init = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group,
            has_bias, _of_a_row(weight_init), bias_init, "NCHW", dtype,
        )  # fmt: skip


class Conv3d(_Forward):
    """3-D convolution over (N, C, D, H, W) (`mindspore.nn.Conv3d`); arguments as for `Conv2d`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Conv3d(2, 4, 3)(ms.ops.ones((1, 2, 3, 4, 5), ms.float32)).shape
        (1, 4, 3, 4, 5)
    """

    conv3d = Operator(
        "Conv3D",
        _options,
    )

    _axes = 3
    _formats = ("NCDHW",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        pad_mode: str = "same",
        padding: Ints = 0,
        dilation: Ints = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Init = None,
        bias_init: Init = None,
        data_format: str = "NCDHW",
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group,
            has_bias, weight_init, bias_init, data_format, dtype,
        )  # fmt: skip


class _Transposed(_Conv):
    """Base class of the transposed convolution layers in 1, 2 and 3 dimensions."""

    _transposed = True
    output_padding: Ints = 0

    def _set_output_padding(self, value: Ints) -> None:
        owner = type(self).__name__
        self.output_padding = value
        self._grown = self._extra = _check.ints(owner, "output_padding", value, self._axes, low=0)
        if any(self._extra) and self.pad_mode != "pad":
            raise ArgumentValueError(
                f"{owner}: got output_padding={value!r} with pad_mode={self.pad_mode!r}; "
                f"wanted pad_mode='pad'"
            )
        for e, s, d in zip(self._extra, self.stride, self.dilation, strict=True):
            if e >= max(s, d) and e:
                raise ArgumentValueError(
                    f"{owner}: got output_padding={value!r}; wanted less than the stride or "
                    "dilation"
                )

    def construct(self, x: Tensor) -> Tensor:
        self._check_input(x)
        size: list[int] = []
        pairs: list[tuple[int, int]] = []
        for i, n in enumerate(x.shape[2:]):
            k, s, d = self.kernel_size[i], self.stride[i], self.dilation[i]
            reach = d * (k - 1) + 1
            if self.pad_mode == "pad":
                low, high = self._pairs[i]
                size.append((n - 1) * s + reach - low - high + self._grown[i])
                pairs.append((low, high))
            elif self.pad_mode == "same":
                total = max((n - 1) * s + reach - n * s, 0)
                size.append(n * s)
                pairs.append((total // 2, total - total // 2))
            else:
                size.append(n * s + max(reach - s, 0))
                pairs.append((0, 0))
        out = ops.conv_input_grad(
            x, self._weight(), input_shape=(x.shape[0], self.out_channels, *size),
            stride=self.stride, padding=tuple(pairs), dilation=self.dilation, groups=self.group,
        )  # fmt: skip
        return self._add_bias(out)


class Conv2dTranspose(_Transposed):
    """Transposed 2-D convolution (`mindspore.nn.Conv2dTranspose`); arguments as for `Conv2d`.

    The weight is (in_channels, out_channels / group, height, width). With ``"same"``, an axis of
    the output is the input's length times the stride. With ``"pad"``, `output_padding` adds rows
    and columns of zeros below and to the right.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Conv2dTranspose(3, 4, 3, stride=2)(ms.ops.ones((1, 3, 4, 4), ms.float32)).shape
        (1, 4, 8, 8)
    """

    conv2d_transpose = Operator(
        "Conv2DTranspose",
        _options,
    )

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        pad_mode: str = "same",
        padding: Ints = 0,
        output_padding: Ints = 0,
        dilation: Ints = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Init = None,
        bias_init: Init = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group,
            has_bias, weight_init, bias_init, "NCHW", dtype,
        )  # fmt: skip
        self._set_output_padding(output_padding)
        self._grown = (0, 0)  # MindSpore pads the result, after the bias was added

    def construct(self, x: Tensor) -> Tensor:
        out = super().construct(x)
        if any(self._extra):
            out = ops.pad_constant(out, low=(0, 0, 0, 0), high=(0, 0, *self._extra), value=0.0)
        return out


class Conv1dTranspose(_Transposed):
    """Transposed 1-D convolution over (N, C, L) (`mindspore.nn.Conv1dTranspose`); see
    `Conv2dTranspose`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Conv1dTranspose(3, 4, 3, 2)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 4, 8)
    """

    conv2d_transpose = Operator(
        "Conv2DBackpropInput",
        _options_of_a_row,
    )
    expand_dims = Operator("ExpandDims")
    squeeze = Operator("Squeeze", lambda c: {"axis": 2})

    _axes = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        pad_mode: str = "same",
        padding: Ints = 0,
        dilation: Ints = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Init = None,
        bias_init: Init = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group,
            has_bias, _of_a_row(weight_init), bias_init, "NCHW", dtype,
        )  # fmt: skip
        self._set_output_padding(0)


class Conv3dTranspose(_Transposed):
    """Transposed 3-D convolution over (N, C, D, H, W) (`mindspore.nn.Conv3dTranspose`); see
    `Conv2dTranspose`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Conv3dTranspose(3, 4, 3, 2)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 4, 8, 8, 8)
    """

    conv3d_transpose = Operator(
        "Conv3DTranspose",
        lambda c: {"in_channel": c.in_channels, **_options(c)},
    )

    _axes = 3
    _formats = ("NCDHW",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        pad_mode: str = "same",
        padding: Ints = 0,
        dilation: Ints = 1,
        group: int = 1,
        output_padding: Ints = 0,
        has_bias: bool = False,
        weight_init: Init = None,
        bias_init: Init = None,
        data_format: str = "NCDHW",
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group,
            has_bias, weight_init, bias_init, data_format, dtype,
        )  # fmt: skip
        self._set_output_padding(output_padding)
