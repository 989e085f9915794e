"""Primitive classes of convolutions and of the gradients of convolutions.

Users construct them. They convert MindSpore's constructor arguments to the attributes of the ops
in `convolution`, which compute the results.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ShapeError
from ..option_checks import check_options
from ..tensor import Tensor
from . import convolution
from .axes import tuple_of
from .convolution_functions import conv_transpose3d
from .data_formats import first_to_last, last_to_first, spatial, wanted_format
from .primitive import Primitive
from .shape_primitives import reshape_to, transpose_by
from .windows import mode_padding

__all__ = [
    "Conv2D", "DepthwiseConv2dNative", "Conv3D", "Conv2DBackpropInput", "Conv2DTranspose",
    "Conv2DBackpropFilter", "Conv3DTranspose", ]  # fmt: skip


class _Conv(Primitive):
    op = convolution.conv
    _n = 2
    _owner = "ops.Conv2D"  # whose options they are, in the table of options
    _formats: tuple[str, ...] = ("NCHW", "NHWC")

    def __init__(
        self,
        out_channel: int,
        kernel_size: int | Sequence[int],
        mode: int = 1,
        pad_mode: str = "valid",
        pad: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        group: int = 1,
        data_format: str | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.out_channel = out_channel
        self.kernel_size = tuple_of(name, "kernel_size", kernel_size, self._n)
        check_options(self._owner, mode=mode)
        self.pad_mode = pad_mode
        self.pad = pad
        self.stride = spatial(name, "stride", stride, self._n)
        self.dilation = spatial(name, "dilation", dilation, self._n)
        self.group = group
        self.data_format = wanted_format(name, data_format or self._formats[0], self._formats)
        mode_padding(
            name, pad_mode, pad, self.kernel_size, self.kernel_size, self.stride, self.dilation
        )

    def _pads(self, sizes: Sequence[int]) -> tuple[tuple[int, int], ...]:
        return mode_padding(
            self.name, self.pad_mode, self.pad, sizes, self.kernel_size, self.stride, self.dilation
        )

    def __call__(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return the convolution of `x` with `weight`, with the settings of the constructor."""
        last = self.data_format == "NHWC"
        if last:
            x, weight = last_to_first(x), last_to_first(weight)
        if (
            weight.ndim != self._n + 2
            or weight.shape[2:] != self.kernel_size
            or weight.shape[0] != self.out_channel
        ):
            raise ShapeError(
                f"{self.name}: got weight of shape {weight.shape}; wanted {self.out_channel} "
                "outputs "
                f"and a kernel of {self.kernel_size}"
            )
        out = convolution.conv(
            x, weight, self.stride, self._pads(x.shape[2:]), self.dilation, self.group
        )
        return first_to_last(out) if last else out


class Conv2D(_Conv):
    """2-D convolution: `Conv2D(out_channel, kernel_size, pad_mode="valid", pad=0, ...)(x, weight)`.

    Examples:
        >>> import duograph as ms
        >>> conv = ms.ops.Conv2D(3, 3, pad_mode="same")
        >>> conv(ms.ops.ones((1, 2, 5, 5)), ms.ops.ones((3, 2, 3, 3))).shape
        (1, 3, 5, 5)
    """


class DepthwiseConv2dNative(_Conv):
    """2-D convolution of each channel separately.

    `DepthwiseConv2dNative(channel_multiplier, kernel_size)(x, weight)`.
    """

    def __init__(
        self,
        channel_multiplier: int,
        kernel_size: int | Sequence[int],
        mode: int = 3,
        pad_mode: str = "valid",
        pad: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        group: int = 1,
    ) -> None:
        check_options("ops.DepthwiseConv2dNative", mode=mode, group=group)
        super().__init__(channel_multiplier, kernel_size, 1, pad_mode, pad, stride, dilation)

    def __call__(self, x: Tensor, weight: Tensor) -> Tensor:
        """Convolve each channel of `x` alone.

        `weight` has shape (channel_multiplier, C, kernel...); the result has C * channel_multiplier
        channels.
        """
        c = x.shape[1]
        m = weight.shape[0]
        w = reshape_to(transpose_by(weight, (1, 0, 2, 3)), (c * m, 1, *weight.shape[2:]))
        return convolution.conv(x, w, self.stride, self._pads(x.shape[2:]), self.dilation, c)


class Conv3D(_Conv):
    """3-D convolution: `Conv3D(out_channel, kernel_size, pad_mode="valid", ...)(x, weight)`."""

    _n = 3
    _owner = "ops.Conv3D"
    _formats = ("NCDHW",)


class Conv2DBackpropInput(Primitive):
    """Gradient of `Conv2D` with respect to its input.

    `Conv2DBackpropInput(out_channel, kernel_size, ...)(dout, weight, input_size)`.

    `Conv2DTranspose` is the same op under another name.
    """

    op = convolution.conv_input_grad
    _n = 2
    _owner = "ops.Conv2DBackpropInput"

    def __init__(
        self,
        out_channel: int,
        kernel_size: int | Sequence[int],
        pad_mode: str = "valid",
        pad: int | Sequence[int] = 0,
        pad_list: Sequence[int] | None = None,
        mode: int = 1,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        group: int = 1,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.out_channel = out_channel
        self.kernel_size = tuple_of(name, "kernel_size", kernel_size, self._n)
        self.pad_mode = pad_mode
        self.pad = pad if pad_list is None else pad_list
        check_options(self._owner, mode=mode)
        self.stride = spatial(name, "stride", stride, self._n)
        self.dilation = spatial(name, "dilation", dilation, self._n)
        self.group = group
        self.data_format = wanted_format(name, data_format, ("NCHW",))

    def __call__(self, dout: Tensor, weight: Tensor, input_size: Sequence[int] | Tensor) -> Tensor:
        """Return the gradient of a convolution with respect to its input, of shape `input_size`.

        `dout` is the cotangent of the convolution's result, and `weight` is its weight.
        """
        size = tuple(input_size.tolist() if isinstance(input_size, Tensor) else input_size)
        pads = mode_padding(
            self.name,
            self.pad_mode,
            self.pad,
            size[2:],
            self.kernel_size,
            self.stride,
            self.dilation,
        )
        return convolution.conv_input_grad(
            dout, weight, size, self.stride, pads, self.dilation, self.group
        )


class Conv2DTranspose(Conv2DBackpropInput):
    """Transposed 2-D convolution: `Conv2DTranspose(out_channel, kernel_size, ...)(dout, weight,
    input_size)`.
    """

    _owner = "ops.Conv2DTranspose"


class Conv2DBackpropFilter(Primitive):
    """Gradient of `Conv2D` with respect to its weight: `Conv2DBackpropFilter(...)(dout, input,
    weight_size)`.
    """

    op = convolution.conv_weight_grad

    def __init__(
        self,
        out_channel: int,
        kernel_size: int | Sequence[int],
        pad_mode: str = "valid",
        pad: int | Sequence[int] = 0,
        pad_list: Sequence[int] | None = None,
        mode: int = 1,
        stride: int | Sequence[int] = (1, 1),
        dilation: int | Sequence[int] = (1, 1, 1, 1),
        group: int = 1,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        self.out_channel = out_channel
        self.kernel_size = tuple_of(self.name, "kernel_size", kernel_size, 2)
        self.pad_mode = pad_mode
        self.pad = pad if pad_list is None else pad_list
        check_options("ops.Conv2DBackpropFilter", mode=mode)
        self.stride = spatial(self.name, "stride", stride, 2)
        self.dilation = spatial(self.name, "dilation", dilation, 2)
        self.group = group
        self.data_format = wanted_format(self.name, data_format, ("NCHW",))

    def __call__(self, dout: Tensor, input: Tensor, weight_size: Sequence[int] | Tensor) -> Tensor:
        """Return the gradient of a convolution with respect to its weight, of shape `weight_size`.

        `dout` is the cotangent of the convolution's result, and `input` is its input.
        """
        size = tuple(weight_size.tolist() if isinstance(weight_size, Tensor) else weight_size)
        pads = mode_padding(
            self.name,
            self.pad_mode,
            self.pad,
            input.shape[2:],
            self.kernel_size,
            self.stride,
            self.dilation,
        )
        return convolution.conv_weight_grad(
            input, dout, size, self.stride, pads, self.dilation, self.group
        )


class Conv3DTranspose(Primitive):
    """Transposed 3-D convolution: `Conv3DTranspose(in_channel, out_channel, kernel_size, ...)(dout,
    weight)`.
    """

    op = convolution.conv_input_grad

    def __init__(
        self,
        in_channel: int,
        out_channel: int,
        kernel_size: int | Sequence[int],
        mode: int = 1,
        pad_mode: str = "valid",
        pad: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        group: int = 1,
        output_padding: int | Sequence[int] = 0,
        data_format: str = "NCDHW",
    ) -> None:
        super().__init__()
        self.in_channel = in_channel
        self.out_channel = out_channel
        self.kernel_size = tuple_of(self.name, "kernel_size", kernel_size, 3)
        check_options("ops.Conv3DTranspose", mode=mode)
        self.pad_mode = pad_mode
        self.pad = pad
        self.stride = spatial(self.name, "stride", stride, 3)
        self.dilation = spatial(self.name, "dilation", dilation, 3)
        self.group = group
        self.output_padding = spatial(self.name, "output_padding", output_padding, 3)
        self.data_format = wanted_format(self.name, data_format, ("NCDHW",))

    def __call__(self, dout: Tensor, weight: Tensor) -> Tensor:
        """Return the transposed convolution of `dout` with a weight.

        The weight has shape (in_channel, out_channel / group, kernel...).
        """
        if dout.ndim == 5 and dout.shape[1] != self.in_channel:
            raise ShapeError(
                f"Conv3DTranspose: got input of shape {dout.shape}; wanted "
                f"in_channel={self.in_channel} channels"
            )
        if self.pad_mode.lower() == "same":
            sizes = [n * s for n, s in zip(dout.shape[2:], self.stride, strict=True)]
            pads = mode_padding(
                self.name, "same", 0, sizes, self.kernel_size, self.stride, self.dilation
            )
            shape = (dout.shape[0], self.out_channel, *sizes)
            return convolution.conv_input_grad(
                dout, weight, shape, self.stride, pads, self.dilation, self.group
            )
        padding = self.pad if self.pad_mode.lower() == "pad" else 0
        return conv_transpose3d(
            dout, weight, None, self.stride, padding, self.output_padding, self.group, self.dilation
        )
