"""Layers made of other layers: convolution or Dense with normalisation and activation.

The module also has TimeDistributed, which applies a layer to each time step. `nn` exports these
layers; they only call the layers inside.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import ops
from ...errors import ArgumentError, ShapeError
from ...option_checks import check_options
from ...tensor import Tensor
from .. import _check
from .._types import Activation, Init, Ints
from ..cell import Cell
from .activation import LeakyReLU, get_activation
from .basic import Dense
from .conv import Conv2d
from .normalization import BatchNorm1d, BatchNorm2d

__all__ = ["Conv2dBnAct", "DenseBnAct", "TimeDistributed"]


def _activation(
    owner: str, value: Activation, alpha: float
) -> Cell | Callable[[Tensor], Tensor] | None:
    """Return the layer or function for an `activation` argument: a name, a callable, or None.

    `alpha` is the factor of negative numbers for the name ``"leakyrelu"``. `owner` names the layer
    in messages.
    """
    if value == "leakyrelu":
        return LeakyReLU(alpha)
    if value is None or callable(value):
        return value
    return get_activation(value, owner)


class Conv2dBnAct(Cell):
    """Conv2d, then optionally BatchNorm2d and an activation (`mindspore.nn.Conv2dBnAct`).

    Args:
        in_channels ... bias_init: as for `Conv2d`.
        has_bn: whether to normalise.
        momentum, eps: options of the normalisation, see `BatchNorm2d`.
        activation: name or Cell; alpha is the slope of ``"leakyrelu"``.

    Examples:
        >>> import duograph as ms
        >>> layer = ms.nn.Conv2dBnAct(3, 4, 3, has_bn=True, activation="relu")
        >>> layer(ms.ops.ones((1, 3, 4, 4), ms.float32)).shape
        (1, 4, 4, 4)
    """

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
        weight_init: Init = "normal",
        bias_init: Init = "zeros",
        has_bn: bool = False,
        momentum: float = 0.997,
        eps: float = 1e-5,
        activation: Activation = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        check_options("nn.Conv2dBnAct", after_fake=after_fake)
        self.conv = Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
        )
        self.has_bn = _check.boolean("Conv2dBnAct", "has_bn", has_bn)
        if has_bn:
            self.batchnorm = BatchNorm2d(out_channels, eps, momentum)
        self.activation = _activation("Conv2dBnAct", activation, alpha)

    def construct(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if self.has_bn:
            x = self.batchnorm(x)
        return x if self.activation is None else self.activation(x)


class DenseBnAct(Cell):
    """Dense, then optionally BatchNorm1d and an activation (`mindspore.nn.DenseBnAct`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.DenseBnAct(3, 4, activation="relu")(ms.ops.ones((2, 3), ms.float32)).shape
        (2, 4)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Init = "normal",
        bias_init: Init = "zeros",
        has_bias: bool = True,
        has_bn: bool = False,
        momentum: float = 0.9,
        eps: float = 1e-5,
        activation: Activation = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        check_options("nn.DenseBnAct", after_fake=after_fake)
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self.has_bn = _check.boolean("DenseBnAct", "has_bn", has_bn)
        if has_bn:
            self.batchnorm = BatchNorm1d(out_channels, eps, momentum)
        self.activation = _activation("DenseBnAct", activation, alpha)

    def construct(self, x: Tensor) -> Tensor:
        x = self.dense(x)
        if self.has_bn:
            x = self.batchnorm(x)
        return x if self.activation is None else self.activation(x)


class TimeDistributed(Cell):
    """Applies one layer to every slice along a time axis (`mindspore.nn.TimeDistributed`).

    Args:
        layer: Cell or function.
        time_axis: the axis.
        reshape_with_axis: accepted without effect; the layer is called once for each slice, with
            the same result.

    Raises:
        TypeError: `layer` is not callable.
        ValueError: the input does not have the axis.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.TimeDistributed(ms.nn.Dense(3, 2), time_axis=1)
        >>> net(ms.ops.ones((4, 5, 3), ms.float32)).shape
        (4, 5, 2)
    """

    def __init__(
        self,
        layer: Callable[[Tensor], Tensor],
        time_axis: int,
        reshape_with_axis: int | None = None,
    ) -> None:
        super().__init__()
        if not callable(layer):
            raise ArgumentError(
                f"TimeDistributed: got {type(layer).__name__}; wanted a Cell or function"
            )
        self.layer = layer
        self.time_axis = time_axis

    def construct(self, inputs: Tensor) -> Tensor:
        if not -inputs.ndim <= self.time_axis < inputs.ndim:
            raise ShapeError(
                f"TimeDistributed: input has shape {inputs.shape}; wanted an axis {self.time_axis}"
            )
        axis = self.time_axis % inputs.ndim
        return ops.stack([self.layer(x) for x in ops.unbind(inputs, axis)], axis)
