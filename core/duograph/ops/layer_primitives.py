"""Primitive classes with attributes: reductions, products, convolution, pooling, normalisation, random numbers.

Each says how MindSpore's constructor and call arguments become those of an op.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import random_state
from ..dtype import as_dtype, bool_, float32, int32
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..tensor import Tensor
from . import convolution, linalg, normalization, pooling, random, reduction, scan, softmax_ops
from .axes import axes_of, axis_of, tuple_of
from .creation import cast_to
from .primitive import Primitive
from .table import P
from .windows import mode_padding, pad_pairs

__all__ = [
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceAll", "ReduceAny",
    "ArgMaxWithValue", "ArgMinWithValue", "Argmax", "Argmin", "CumSum", "CumProd", "Cummax", "Cummin",
    "MatMul", "BatchMatMul", "BiasAdd", "Softmax", "LogSoftmax", "Conv2D", "Conv3D", "Conv2DTranspose",
    "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3DTranspose", "DepthwiseConv2dNative", "MaxPool",
    "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax", "MaxPoolWithArgmaxV2",
    "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D", "BatchNorm",
    "LayerNorm", "InstanceNorm", "LRN", "L2Normalize", "Dropout", "Dropout2D", "Dropout3D",
    "UniformReal", "UniformInt", "StandardNormal", "StandardLaplace", "Gamma", "Poisson", "Multinomial",
    "Bernoulli", "RandomShuffle", "Randperm", "RandomChoiceWithMask", "LpNorm",
    "DataFormatDimMap", "Unfold", "Fold",
]  # fmt: skip


def _data_format(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ArgumentValueError(
            f"{name}: got data_format={value!r}; wanted {' or '.join(map(repr, allowed))}"
        )
    return value


def _last_to_first(x: Any) -> Any:
    """(N, spatial..., C) as (N, C, spatial...)."""
    return P.transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def _first_to_last(x: Any) -> Any:
    return P.transpose(x, (0, *range(2, x.ndim), 1))


# ---- reductions ---------------------------------------------------------------------------------


class _Reduce(Primitive):
    """Base of the reductions: `Op(keep_dims=False)(x, axis=())`."""

    def __init__(self, keep_dims: bool = False) -> None:
        super().__init__()
        if not isinstance(keep_dims, bool):
            raise ArgumentError(f"{type(self).__name__}: got keep_dims={keep_dims!r}; wanted True or False")
        self.keep_dims = keep_dims

    @classmethod
    def from_attributes(cls, attributes: Any) -> Primitive:
        """The instance that a gradient-rule getter sees, with MindSpore's name of the flag."""
        made = super().from_attributes(attributes)
        made.keep_dims = bool(attributes.get("keepdims", False))  # type: ignore[attr-defined]
        return made

    def __call__(self, x: Any, axis: Any = ()) -> Any:
        """Reduce over `axis`: int or tuple of ints; () means all."""
        assert self.op is not None
        return self.op(x, axes_of(self.name, axis, x.ndim), self.keep_dims)


class ReduceSum(_Reduce):
    """Sum over axes: `ReduceSum(keep_dims=False, skip_mode=False)(x, axis=())`; with `skip_mode` () means none.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ReduceSum(keep_dims=True)(ms.Tensor([[1.0, 2.0]]), 1))
        [[3.]]
    """

    op = reduction.reduce_sum

    def __init__(self, keep_dims: bool = False, skip_mode: bool = False) -> None:
        super().__init__(keep_dims)
        self.skip_mode = skip_mode

    def __call__(self, x: Any, axis: Any = ()) -> Any:
        """Sum over `axis`."""
        if self.skip_mode and (axis is None or (isinstance(axis, (tuple, list)) and not axis)):
            return x
        if x.dtype is bool_:
            x = cast_to(x, int32)
        return super().__call__(x, axis)


class ReduceMean(_Reduce):
    """Mean over axes: `ReduceMean(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_mean


class ReduceMax(_Reduce):
    """Largest element over axes: `ReduceMax(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_max


class ReduceMin(_Reduce):
    """Smallest element over axes: `ReduceMin(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_min


class ReduceProd(_Reduce):
    """Product over axes: `ReduceProd(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_prod


class ReduceAll(_Reduce):
    """Whether all elements over axes are true: `ReduceAll(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_all


class ReduceAny(_Reduce):
    """Whether any element over axes is true: `ReduceAny(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_any


class ArgMaxWithValue(Primitive):
    """Index and value of the largest element: `ArgMaxWithValue(axis=0, keep_dims=False)(x)` -> (index, value).

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.ArgMaxWithValue()(ms.Tensor([1.0, 3.0, 2.0])))
        1 3.0
    """

    op = reduction.max_with_index

    def __init__(self, axis: int = 0, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis = axis
        self.keep_dims = keep_dims

    def __call__(self, x: Any) -> Any:
        """(index, value)."""
        value, index = reduction.max(x, self.axis, self.keep_dims)
        return index, value


class ArgMinWithValue(Primitive):
    """Index and value of the smallest element: `ArgMinWithValue(axis=0, keep_dims=False)(x)` -> (index, value)."""

    op = reduction.min_with_index

    def __init__(self, axis: int = 0, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis = axis
        self.keep_dims = keep_dims

    def __call__(self, x: Any) -> Any:
        """(index, value)."""
        value, index = reduction.min(x, self.axis, self.keep_dims)
        return index, value


class Argmax(Primitive):
    """Index of the largest element: `Argmax(axis=-1, output_type=int32)(x)`."""

    op = reduction.argmax_along

    def __init__(self, axis: int = -1, output_type: Any = int32) -> None:
        super().__init__()
        self.axis = axis
        self.output_type = as_dtype(output_type)

    def __call__(self, x: Any) -> Any:
        """The indices."""
        return cast_to(reduction.argmax(x, self.axis), self.output_type)


class Argmin(Primitive):
    """Index of the smallest element: `Argmin(axis=-1, output_type=int32)(x)`."""

    op = reduction.argmin_along

    def __init__(self, axis: int = -1, output_type: Any = int32) -> None:
        super().__init__()
        self.axis = axis
        self.output_type = as_dtype(output_type)

    def __call__(self, x: Any) -> Any:
        """The indices."""
        return cast_to(reduction.argmin(x, self.axis), self.output_type)


class _Scan(Primitive):
    """Base of the running sums and products: `Op(exclusive=False, reverse=False)(x, axis)`."""

    def __init__(self, exclusive: bool = False, reverse: bool = False) -> None:
        super().__init__()
        self.exclusive = exclusive
        self.reverse = reverse

    def __call__(self, x: Any, axis: Any) -> Any:
        """Scan along `axis`."""
        assert self.op is not None
        return self.op(x, axis_of(self.name, axis, x.ndim), self.exclusive, self.reverse)


class CumSum(_Scan):
    """Running sum: `CumSum(exclusive=False, reverse=False)(x, axis)`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.CumSum(exclusive=True)(ms.Tensor([1.0, 2.0, 3.0]), 0))
        [0. 1. 3.]
    """

    op = scan.scan_sum


class CumProd(_Scan):
    """Running product: `CumProd(exclusive=False, reverse=False)(x, axis)`."""

    op = scan.scan_prod


class Cummax(Primitive):
    """Largest element so far and its index: `Cummax(axis)(x)`."""

    op = scan.scan_max

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: Any) -> Any:
        """(values, indices)."""
        return scan.cummax(x, self.axis)


class Cummin(Primitive):
    """Smallest element so far and its index: `Cummin(axis)(x)`."""

    op = scan.scan_min

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: Any) -> Any:
        """(values, indices)."""
        return scan.cummin(x, self.axis)


class LpNorm(Primitive):
    """p-norm over axes: `LpNorm(axis, p=2, keep_dims=False, epsilon=1e-12)(x)`."""

    def __init__(self, axis: Any, p: int = 2, keep_dims: bool = False, epsilon: float = 1e-12) -> None:
        super().__init__()
        self.axis = axis
        self.p = p
        self.keep_dims = keep_dims
        self.epsilon = epsilon

    def __call__(self, x: Any) -> Any:
        """The norm."""
        return P.vector_norm(x, float(self.p), axes_of("LpNorm", self.axis, x.ndim), self.keep_dims)


# ---- products -----------------------------------------------------------------------------------


class MatMul(Primitive):
    """Product of two matrices: `MatMul(transpose_a=False, transpose_b=False)(x, y)`.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((2, 3))
        >>> ms.ops.MatMul(transpose_b=True)(x, x).shape
        (2, 2)
    """

    op = linalg.matmul_of
    _ndim = 2

    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        super().__init__()
        for key, value in (("transpose_a", transpose_a), ("transpose_b", transpose_b)):
            if not isinstance(value, bool):
                raise ArgumentError(f"{self.name}: got {key}={value!r}; wanted True or False")
        self.transpose_a = transpose_a
        self.transpose_b = transpose_b

    def __call__(self, x: Any, y: Any) -> Any:
        """The product."""
        if self._ndim == 2 and (x.ndim != 2 or y.ndim != 2):
            raise ShapeError(f"MatMul: got shapes {x.shape} and {y.shape}; wanted two axes each")
        return linalg.matmul_of(x, y, self.transpose_a, self.transpose_b)


class BatchMatMul(MatMul):
    """Products of matrices in the last two axes: `BatchMatMul(transpose_a=False, transpose_b=False)(x, y)`."""

    _ndim = 0


class BiasAdd(Primitive):
    """A number per channel added: `BiasAdd(data_format="NCHW")(x, b)`."""

    op = linalg.bias_add

    def __init__(self, data_format: str = "NCHW") -> None:
        super().__init__()
        self.data_format = _data_format("BiasAdd", data_format, ("NCHW", "NHWC", "NCDHW"))

    def __call__(self, x: Any, b: Any) -> Any:
        """The sum."""
        return x + b if self.data_format == "NHWC" else linalg.bias_add(x, b)


class Softmax(Primitive):
    """`Softmax(axis=-1)(logits)`."""

    op = softmax_ops.softmax_along

    def __init__(self, axis: Any = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, logits: Any) -> Any:
        """exp(x) / sum(exp(x))."""
        return softmax_ops.softmax(logits, self.axis)


class LogSoftmax(Primitive):
    """`LogSoftmax(axis=-1)(logits)`."""

    op = softmax_ops.log_softmax_along

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, logits: Any) -> Any:
        """x - log(sum(exp(x)))."""
        return softmax_ops.log_softmax(logits, self.axis)


# ---- convolution --------------------------------------------------------------------------------


def _spatial(name: str, what: str, value: Any, n: int) -> tuple[int, ...]:
    """n ints from an int, n ints, or the n+2 ints of the older form (1, 1, ...)."""
    if isinstance(value, (tuple, list)) and len(value) == n + 2:
        value = tuple(value)[2:]
    return tuple_of(name, what, value, n)


class _Conv(Primitive):
    op = convolution.conv
    _n = 2
    _formats: tuple[str, ...] = ("NCHW", "NHWC")

    def __init__(
        self, out_channel: int, kernel_size: Any, mode: int = 1, pad_mode: str = "valid", pad: Any = 0,
        stride: Any = 1, dilation: Any = 1, group: int = 1, data_format: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        self.out_channel = out_channel
        self.kernel_size = tuple_of(name, "kernel_size", kernel_size, self._n)
        self.mode = mode
        self.pad_mode = pad_mode
        self.pad = pad
        self.stride = _spatial(name, "stride", stride, self._n)
        self.dilation = _spatial(name, "dilation", dilation, self._n)
        self.group = group
        self.data_format = _data_format(name, data_format or self._formats[0], self._formats)
        mode_padding(name, pad_mode, pad, self.kernel_size, self.kernel_size, self.stride, self.dilation)

    def _pads(self, sizes: Any) -> Any:
        return mode_padding(
            self.name, self.pad_mode, self.pad, sizes, self.kernel_size, self.stride, self.dilation
        )

    def __call__(self, x: Any, weight: Any) -> Any:
        """The convolution of x and weight."""
        last = self.data_format == "NHWC"
        if last:
            x, weight = _last_to_first(x), _last_to_first(weight)
        if weight.ndim != self._n + 2 or weight.shape[2:] != self.kernel_size or weight.shape[0] != self.out_channel:
            raise ShapeError(
                f"{self.name}: got weight of shape {weight.shape}; wanted {self.out_channel} outputs "
                f"and a kernel of {self.kernel_size}"
            )
        out = convolution.conv(x, weight, self.stride, self._pads(x.shape[2:]), self.dilation, self.group)
        return _first_to_last(out) if last else out


class Conv2D(_Conv):
    """2-D convolution: `Conv2D(out_channel, kernel_size, pad_mode="valid", pad=0, ...)(x, weight)`.

    Examples:
        >>> import duograph as ms
        >>> conv = ms.ops.Conv2D(3, 3, pad_mode="same")
        >>> conv(ms.ops.ones((1, 2, 5, 5)), ms.ops.ones((3, 2, 3, 3))).shape
        (1, 3, 5, 5)
    """


class DepthwiseConv2dNative(_Conv):
    """2-D convolution of every channel by itself.

    `DepthwiseConv2dNative(channel_multiplier, kernel_size)(x, weight)`.
    """

    def __init__(
        self, channel_multiplier: int, kernel_size: Any, mode: int = 3, pad_mode: str = "valid", pad: Any = 0,
        stride: Any = 1, dilation: Any = 1, group: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(channel_multiplier, kernel_size, mode, pad_mode, pad, stride, dilation, group)

    def __call__(self, x: Any, weight: Any) -> Any:
        """weight: (channel_multiplier, C, kernel...)."""
        c = x.shape[1]
        m = weight.shape[0]
        w = P.reshape(P.transpose(weight, (1, 0, 2, 3)), (c * m, 1, *weight.shape[2:]))
        return convolution.conv(x, w, self.stride, self._pads(x.shape[2:]), self.dilation, c)


class Conv3D(_Conv):
    """3-D convolution: `Conv3D(out_channel, kernel_size, pad_mode="valid", pad=0, ...)(x, weight)`."""

    _n = 3
    _formats = ("NCDHW",)


class Conv2DBackpropInput(Primitive):
    """Gradient of `Conv2D` by its input.

    `Conv2DBackpropInput(out_channel, kernel_size, ...)(dout, weight, input_size)`.

    Also the transposed convolution, under the name `Conv2DTranspose`.
    """

    op = convolution.conv_input_grad
    _n = 2

    def __init__(
        self, out_channel: int, kernel_size: Any, pad_mode: str = "valid", pad: Any = 0, pad_list: Any = None,
        mode: int = 1, stride: Any = 1, dilation: Any = 1, group: int = 1, data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        self.out_channel = out_channel
        self.kernel_size = tuple_of(name, "kernel_size", kernel_size, self._n)
        self.pad_mode = pad_mode
        self.pad = pad if pad_list is None else pad_list
        self.mode = mode
        self.stride = _spatial(name, "stride", stride, self._n)
        self.dilation = _spatial(name, "dilation", dilation, self._n)
        self.group = group
        self.data_format = _data_format(name, data_format, ("NCHW",))

    def __call__(self, dout: Any, weight: Any, input_size: Any) -> Any:
        """The input's gradient, of the shape `input_size`."""
        size = tuple(input_size.tolist() if isinstance(input_size, Tensor) else input_size)
        pads = mode_padding(
            self.name, self.pad_mode, self.pad, size[2:], self.kernel_size, self.stride, self.dilation
        )
        return convolution.conv_input_grad(dout, weight, size, self.stride, pads, self.dilation, self.group)


class Conv2DTranspose(Conv2DBackpropInput):
    """Transposed 2-D convolution: `Conv2DTranspose(out_channel, kernel_size, ...)(dout, weight, input_size)`."""


class Conv2DBackpropFilter(Primitive):
    """Gradient of `Conv2D` with respect to its weight: `Conv2DBackpropFilter(...)(dout, input, weight_size)`."""

    op = convolution.conv_weight_grad

    def __init__(
        self, out_channel: int, kernel_size: Any, pad_mode: str = "valid", pad: Any = 0,
        pad_list: Any = None, mode: int = 1, stride: Any = (1, 1), dilation: Any = (1, 1, 1, 1), group: int = 1,
        data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        super().__init__()
        self.out_channel = out_channel
        self.kernel_size = tuple_of(self.name, "kernel_size", kernel_size, 2)
        self.pad_mode = pad_mode
        self.pad = pad if pad_list is None else pad_list
        self.mode = mode
        self.stride = _spatial(self.name, "stride", stride, 2)
        self.dilation = _spatial(self.name, "dilation", dilation, 2)
        self.group = group
        self.data_format = _data_format(self.name, data_format, ("NCHW",))

    def __call__(self, dout: Any, input: Any, weight_size: Any) -> Any:
        """The weight's gradient, of the shape `weight_size`."""
        size = tuple(weight_size.tolist() if isinstance(weight_size, Tensor) else weight_size)
        pads = mode_padding(
            self.name, self.pad_mode, self.pad, input.shape[2:], self.kernel_size, self.stride, self.dilation
        )
        return convolution.conv_weight_grad(input, dout, size, self.stride, pads, self.dilation, self.group)


class Conv3DTranspose(Primitive):
    """Transposed 3-D convolution: `Conv3DTranspose(in_channel, out_channel, kernel_size, ...)(dout, weight)`."""

    op = convolution.conv_input_grad

    def __init__(
        self, in_channel: int, out_channel: int, kernel_size: Any, mode: int = 1, pad_mode: str = "valid",
        pad: Any = 0, stride: Any = 1, dilation: Any = 1, group: int = 1, output_padding: Any = 0,
        data_format: str = "NCDHW",
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_channel = in_channel
        self.out_channel = out_channel
        self.kernel_size = tuple_of(self.name, "kernel_size", kernel_size, 3)
        self.mode = mode
        self.pad_mode = pad_mode
        self.pad = pad
        self.stride = _spatial(self.name, "stride", stride, 3)
        self.dilation = _spatial(self.name, "dilation", dilation, 3)
        self.group = group
        self.output_padding = _spatial(self.name, "output_padding", output_padding, 3)
        self.data_format = _data_format(self.name, data_format, ("NCDHW",))

    def __call__(self, dout: Any, weight: Any) -> Any:
        """weight: (in_channel, out_channel / group, kernel...)."""
        if self.pad_mode.lower() == "same":
            sizes = [n * s for n, s in zip(dout.shape[2:], self.stride, strict=True)]
            pads = mode_padding(self.name, "same", 0, sizes, self.kernel_size, self.stride, self.dilation)
            shape = (dout.shape[0], self.out_channel, *sizes)
            return convolution.conv_input_grad(dout, weight, shape, self.stride, pads, self.dilation, self.group)
        padding = self.pad if self.pad_mode.lower() == "pad" else 0
        return convolution.conv_transpose3d(
            dout, weight, None, self.stride, padding, self.output_padding, self.group, self.dilation
        )


class Unfold(Primitive):
    """Sliding windows as columns: `Unfold(kernel_size, stride=1, padding=0, dilation=1)(x)`."""

    op = convolution.unfold_by

    def __init__(self, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation

    def __call__(self, x: Any) -> Any:
        """The columns."""
        return convolution.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Primitive):
    """Columns summed back: `Fold(output_size, kernel_size, stride=1, padding=0, dilation=1)(x)`."""

    op = convolution.fold_by

    def __init__(
        self, output_size: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.stride, self.padding, self.dilation = stride, padding, dilation

    def __call__(self, x: Any) -> Any:
        """The image."""
        return convolution.fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


# ---- pooling ------------------------------------------------------------------------------------


class _Pool(Primitive):
    _n = 2
    _formats: tuple[str, ...] = ("NCHW", "NHWC")

    def __init__(
        self, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "valid", data_format: str | None = None
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = _spatial(name, "kernel_size", kernel_size, self._n)
        self.strides = _spatial(name, "strides", strides, self._n)
        if not isinstance(pad_mode, str) or pad_mode.lower() not in ("same", "valid"):
            raise ArgumentValueError(f"{name}: got pad_mode={pad_mode!r}; wanted 'same' or 'valid'")
        self.pad_mode = pad_mode.lower()
        self.data_format = _data_format(name, data_format or self._formats[0], self._formats)

    def _pool(self, x: Any) -> Any:
        raise NotImplementedError

    def __call__(self, x: Any) -> Any:
        """The pooled tensor."""
        if x.ndim != self._n + 2:
            raise ShapeError(f"{self.name}: got input of shape {x.shape}; wanted {self._n + 2} axes")
        if self.data_format == "NHWC":
            return _first_to_last(self._pool(_last_to_first(x)))
        return self._pool(x)

    def _pads(self, x: Any) -> Any:
        return pooling.mode_pool(self.name, x, self.kernel_size, self.strides, self.pad_mode)


class MaxPool(_Pool):
    """`MaxPool(kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW")(x)`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.MaxPool(2, 2)(ms.ops.ones((1, 1, 4, 4))).shape
        (1, 1, 2, 2)
    """

    op = pooling.max_pool

    def _pool(self, x: Any) -> Any:
        return pooling.max_pool(x, self.kernel_size, self.strides, self._pads(x), (1,) * self._n)[0]


class AvgPool(_Pool):
    """`AvgPool(kernel_size=1, strides=1, pad_mode="VALID", data_format="NCHW")(x)`; padded cells do not count."""

    op = pooling.avg_pool

    def _pool(self, x: Any) -> Any:
        return pooling.avg_pool(x, self.kernel_size, self.strides, self._pads(x), False, 0)


class MaxPool3D(_Pool):
    """`MaxPool3D(kernel_size=1, strides=1, pad_mode="VALID", pad_list=0, ceil_mode=None)(x)`."""

    op = pooling.max_pool
    _n = 3
    _formats = ("NCDHW",)

    def __init__(
        self, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "VALID", pad_list: Any = 0,
        ceil_mode: Any = None, data_format: str = "NCDHW",
    ) -> None:  # fmt: skip
        padded = isinstance(pad_mode, str) and pad_mode.lower() == "pad"
        super().__init__(kernel_size, strides, "valid" if padded else pad_mode, data_format)
        self.pad_list = pad_pairs("MaxPool3D", pad_list, 3) if padded else None
        self.ceil_mode = bool(ceil_mode)

    def _pool(self, x: Any) -> Any:
        if self.pad_list is not None or self.ceil_mode:
            pads = self.pad_list or ((0, 0),) * 3
            return pooling.max_pool3d(x, self.kernel_size, self.strides, pads, 1, False, self.ceil_mode)
        return pooling.max_pool(x, self.kernel_size, self.strides, self._pads(x), (1, 1, 1))[0]


class AvgPool3D(_Pool):
    """`AvgPool3D(kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False, ...)(x)`."""

    op = pooling.avg_pool
    _n = 3
    _formats = ("NCDHW",)

    def __init__(
        self, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "valid", pad: Any = 0,
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0,
        data_format: str = "NCDHW",
    ) -> None:  # fmt: skip
        padded = isinstance(pad_mode, str) and pad_mode.lower() == "pad"
        super().__init__(kernel_size, strides, "valid" if padded else pad_mode, data_format)
        self.pad = pad_pairs("AvgPool3D", pad, 3) if padded else None
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pool(self, x: Any) -> Any:
        pads = self.pad
        if pads is None and self.pad_mode == "same":
            return pooling.avg_pool(x, self.kernel_size, self.strides, self._pads(x), False, self.divisor_override)
        return pooling.avg_pool3d(
            x, self.kernel_size, self.strides, pads or 0, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class MaxPoolWithArgmax(_Pool):
    """`MaxPoolWithArgmax(kernel_size=1, strides=1, pad_mode="valid")(x)` -> (values, int32 indices in C * H * W)."""

    op = pooling.max_pool

    def __call__(self, x: Any) -> Any:
        """(values, indices)."""
        values, indices = pooling.max_pool(x, self.kernel_size, self.strides, self._pads(x), (1, 1))
        channel = P.iota(values.shape, 1, indices.dtype) * (x.shape[2] * x.shape[3])
        return values, cast_to(indices + channel, int32)


class MaxPoolWithArgmaxV2(Primitive):
    """Maxima and their places.

    `MaxPoolWithArgmaxV2(kernel_size, strides=None, pads=0, dilation=(1, 1), ceil_mode=False,
    argmax_type=int64)(x)`."""

    op = pooling.max_pool

    def __init__(
        self, kernel_size: Any, strides: Any = None, pads: Any = 0, dilation: Any = (1, 1),
        ceil_mode: bool = False, argmax_type: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.strides, self.pads = kernel_size, strides, pads
        self.dilation, self.ceil_mode = dilation, ceil_mode
        self.argmax_type = None if argmax_type is None else as_dtype(argmax_type)

    def __call__(self, x: Any) -> Any:
        """(values, indices)."""
        values, indices = pooling.max_pool2d(
            x, self.kernel_size, self.strides, self.pads, self.dilation, True, self.ceil_mode
        )
        return values, indices if self.argmax_type is None else cast_to(indices, self.argmax_type)


class AdaptiveAvgPool2D(Primitive):
    """`AdaptiveAvgPool2D(output_size)(x)`."""

    op = pooling.adaptive_avg

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def __call__(self, x: Any) -> Any:
        """The means."""
        return pooling.adaptive_avg_pool2d(x, self.output_size)


class AdaptiveAvgPool3D(Primitive):
    """`AdaptiveAvgPool3D(output_size)(x)`."""

    op = pooling.adaptive_avg

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def __call__(self, x: Any) -> Any:
        """The means."""
        return pooling.adaptive_avg_pool3d(x, self.output_size)


class AdaptiveMaxPool2D(Primitive):
    """`AdaptiveMaxPool2D(output_size)(x)` -> (values, int64 indices)."""

    op = pooling.adaptive_max

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def __call__(self, x: Any) -> Any:
        """(values, indices)."""
        return pooling.adaptive_max_pool2d(x, self.output_size, True)


class AdaptiveMaxPool3D(Primitive):
    """`AdaptiveMaxPool3D()(x, output_size)` -> (values, int32 indices)."""

    op = pooling.adaptive_max

    def __call__(self, x: Any, output_size: Any) -> Any:
        """(values, indices)."""
        size = output_size.tolist() if isinstance(output_size, Tensor) else output_size
        values, indices = pooling.adaptive_max_pool3d(x, size, True)
        return values, cast_to(indices, int32)


# ---- normalisation ------------------------------------------------------------------------------


class BatchNorm(Primitive):
    """`BatchNorm(is_training=False, epsilon=1e-05, momentum=0.1, data_format="NCHW")(x, scale, bias, mean, variance)`.

    Returns (result, mean, variance, mean, variance) of the batch when training, of the running statistics else. When
    training, running statistics that are Parameters are moved by `momentum`, the weight of the batch.

    Examples:
        >>> import duograph as ms
        >>> one, zero = ms.ops.ones((2,)), ms.ops.zeros((2,))
        >>> ms.ops.BatchNorm()(ms.ops.ones((3, 2)), one, zero, zero, one)[0].shape
        (3, 2)
    """

    op = normalization.batch_norm_train

    def __init__(
        self, is_training: bool = False, epsilon: float = 1e-5, momentum: float = 0.1, data_format: str = "NCHW"
    ) -> None:
        super().__init__()
        self.is_training = is_training
        self.epsilon = epsilon
        self.momentum = momentum
        self.data_format = _data_format("BatchNorm", data_format, ("NCHW", "NHWC"))

    def __call__(self, input_x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
        """(result, mean, variance, mean, variance)."""
        last = self.data_format == "NHWC" and input_x.ndim > 2
        x = _last_to_first(input_x) if last else input_x
        if self.is_training:
            out, m, v = normalization.batch_norm_train(x, scale, bias, float(self.epsilon))
            if isinstance(mean, Tensor) and isinstance(variance, Tensor):
                normalization.move_statistics(x, mean, variance, m, v, 1.0 - self.momentum)
        else:
            out, m, v = (
                normalization.batch_norm_infer(x, scale, bias, mean, variance, float(self.epsilon)), mean, variance,
            )  # fmt: skip
        return _first_to_last(out) if last else out, m, v, m, v


class LayerNorm(Primitive):
    """`LayerNorm(begin_norm_axis=1, begin_params_axis=1, epsilon=1e-07)(x, gamma, beta)` -> (result, mean, variance).

    Examples:
        >>> import duograph as ms
        >>> one = ms.ops.ones((2,))
        >>> print(ms.ops.LayerNorm()(ms.Tensor([[1.0, 3.0]]), one, one)[1])
        [[2.]]
    """

    op = normalization.layer_norm_core

    def __init__(self, begin_norm_axis: int = 1, begin_params_axis: int = 1, epsilon: float = 1e-7) -> None:
        super().__init__()
        self.begin_norm_axis = begin_norm_axis
        self.begin_params_axis = begin_params_axis
        self.epsilon = epsilon

    def __call__(self, input_x: Any, gamma: Any, beta: Any) -> Any:
        """(result, mean, variance)."""
        x = input_x
        axis = axis_of("LayerNorm", self.begin_norm_axis, x.ndim)
        params = axis_of("LayerNorm", self.begin_params_axis, x.ndim)
        shape = x.shape[axis:]
        direct = params == axis and gamma.shape == shape
        if direct:
            out, mean, rstd = normalization.layer_norm_core(x, gamma, beta, axis, float(self.epsilon))
        else:
            one, zero = P.fill(shape, 1.0, x.dtype), P.fill(shape, 0.0, x.dtype)
            out, mean, rstd = normalization.layer_norm_core(x, one, zero, axis, float(self.epsilon))
            out = out * gamma + beta
        return out, mean, 1.0 / (rstd * rstd) - self.epsilon


class InstanceNorm(Primitive):
    """`InstanceNorm(epsilon=1e-5, momentum=0.1)(x, gamma, beta, mean, variance)` -> (result, mean, variance)."""

    def __init__(self, epsilon: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.momentum = momentum

    def __call__(self, input_x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        """(result, mean, variance)."""
        out = normalization.instance_norm(input_x, None, None, gamma, beta, True, self.momentum, self.epsilon)
        return out, mean, variance


class LRN(Primitive):
    """`LRN(depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS")(x)`."""

    op = normalization.lrn_by

    def __init__(
        self, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
        norm_region: str = "ACROSS_CHANNELS",
    ) -> None:  # fmt: skip
        super().__init__()
        self.depth_radius, self.bias, self.alpha, self.beta = depth_radius, bias, alpha, beta
        self.norm_region = norm_region

    def __call__(self, x: Any) -> Any:
        """The normalised tensor."""
        return normalization.lrn(x, self.depth_radius, self.bias, self.alpha, self.beta, self.norm_region)


class L2Normalize(Primitive):
    """x / sqrt(max(sum(x^2), epsilon)): `L2Normalize(axis=0, epsilon=1e-4)(x)`."""

    op = normalization.l2_normalize_by

    def __init__(self, axis: Any = 0, epsilon: float = 1e-4) -> None:
        super().__init__()
        self.axis = axis
        self.epsilon = epsilon

    def __call__(self, x: Any) -> Any:
        """The normalised tensor."""
        return normalization.l2_normalize(x, self.axis, self.epsilon)


# ---- random numbers -----------------------------------------------------------------------------


class Dropout(Primitive):
    """`Dropout(keep_prob=0.5, Seed0=0, Seed1=0)(x)` -> (result, mask of ones and zeros).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.Dropout(keep_prob=1.0)(ms.Tensor([1.0, 2.0]))[0])
        [1. 2.]
    """

    op = random.dropout_mask_by

    def __init__(self, keep_prob: float = 0.5, Seed0: int = 0, Seed1: int = 0) -> None:
        super().__init__()
        if isinstance(keep_prob, bool) or not isinstance(keep_prob, (int, float)):
            raise ArgumentError(f"Dropout: got keep_prob={keep_prob!r}; wanted a number")
        if not 0 < keep_prob <= 1:
            raise ArgumentValueError(f"Dropout: got keep_prob={keep_prob}; wanted more than 0 and at most 1")
        self.keep_prob = float(keep_prob)
        self.seed0, self.seed1 = Seed0, Seed1

    def __call__(self, x: Any) -> Any:
        """(result, mask)."""
        return random.dropout_mask_by(x, random.take_state(_seed(self.seed0, self.seed1), like=x), 1.0 - self.keep_prob)


def _seed(seed: int, seed2: int = 0) -> int | None:
    """Two seeds of the older form as one; (0, 0) is none."""
    return None if not seed and not seed2 else (int(seed) << 32) ^ int(seed2)


class _ChannelDropout(Primitive):
    _ndims = (3, 4)

    def __init__(self, keep_prob: float = 0.5) -> None:
        super().__init__()
        self.keep_prob = float(keep_prob)

    def __call__(self, x: Any) -> Any:
        """(result, bool mask)."""
        shape = (*x.shape[:2], *[1] * (x.ndim - 2))
        kept = random.dropout_by(P.fill(shape, 1.0, float32), random.take_state(), 1.0 - self.keep_prob, shape)
        return x * cast_to(kept, x.dtype), P.broadcast_to(cast_to(kept, bool_), x.shape)


class Dropout2D(_ChannelDropout):
    """Whole channels of (N, C, H, W): `Dropout2D(keep_prob=0.5)(x)` -> (result, mask)."""


class Dropout3D(_ChannelDropout):
    """Whole channels of (N, C, D, H, W): `Dropout3D(keep_prob=0.5)(x)` -> (result, mask)."""


class _Seeded(Primitive):
    """Base of the random primitives: `Op(seed=0, seed2=0)`."""

    def __init__(self, seed: int = 0, seed2: int = 0) -> None:
        super().__init__()
        self.seed, self.seed2 = seed, seed2

    @property
    def own_seed(self) -> int | None:
        """The seed for the random functions, None when none was given."""
        return _seed(self.seed, self.seed2)


class UniformReal(_Seeded):
    """Uniform in [0, 1): `UniformReal(seed=0, seed2=0)(shape)`."""

    def __call__(self, shape: Any) -> Any:
        """The numbers."""
        return random.rand(shape, seed=self.own_seed)


class UniformInt(_Seeded):
    """Integers in [minval, maxval): `UniformInt(seed=0, seed2=0)(shape, minval, maxval)`, int32."""

    def __call__(self, shape: Any, minval: Any, maxval: Any) -> Any:
        """The numbers."""
        return random.randint(minval, maxval, shape, self.own_seed, dtype=int32)


class StandardNormal(_Seeded):
    """Standard normal: `StandardNormal(seed=0, seed2=0)(shape)`."""

    def __call__(self, shape: Any) -> Any:
        """The numbers."""
        return random.standard_normal(shape, self.own_seed)


class StandardLaplace(_Seeded):
    """Laplace of mean 0 and scale 1: `StandardLaplace(seed=0, seed2=0)(shape)`."""

    def __call__(self, shape: Any) -> Any:
        """The numbers."""
        return random.standard_laplace(shape, self.own_seed)


class Gamma(_Seeded):
    """Gamma: `Gamma(seed=0, seed2=0)(shape, alpha, beta)`."""

    def __call__(self, shape: Any, alpha: Any, beta: Any) -> Any:
        """The numbers."""
        return random.gamma(shape, alpha, beta, self.own_seed)


class Poisson(_Seeded):
    """Poisson: `Poisson(seed=0, seed2=0)(shape, mean)`, int32."""

    def __call__(self, shape: Any, mean: Any) -> Any:
        """The numbers."""
        return random.random_poisson(shape, mean, self.own_seed, int32)


class Bernoulli(Primitive):
    """1 with probability p, else 0: `Bernoulli(seed=-1, offset=0)(x, p=0.5)`."""

    def __init__(self, seed: int = -1, offset: int = 0) -> None:
        super().__init__()
        self.seed, self.offset = seed, offset

    def __call__(self, x: Any, p: Any = 0.5) -> Any:
        """The numbers."""
        return random.bernoulli(x, p, None if self.seed == -1 else self.seed)


class Multinomial(Primitive):
    """Indices drawn with replacement: `Multinomial(seed=0, seed2=0, dtype=int32)(x, num_samples)`."""

    def __init__(self, seed: int = 0, seed2: int = 0, dtype: Any = int32) -> None:
        super().__init__()
        self.seed, self.seed2, self.dtype = seed, seed2, as_dtype(dtype)

    def __call__(self, x: Any, num_samples: int) -> Any:
        """The indices."""
        found = random.multinomial(x, num_samples, True, _seed(self.seed, self.seed2))
        return cast_to(found, self.dtype)


class RandomShuffle(_Seeded):
    """Items along axis 0 in random order: `RandomShuffle(seed=0, seed2=0)(x)`."""

    def __call__(self, x: Any) -> Any:
        """The shuffled tensor."""
        return random.shuffle(x, self.own_seed)


class Randperm(Primitive):
    """The numbers 0 to n - 1 in random order, padded: `Randperm(max_length=1, pad=-1, dtype=int32)(n)`."""

    def __init__(self, max_length: int = 1, pad: int = -1, dtype: Any = int32) -> None:
        super().__init__()
        self.max_length, self.pad, self.dtype = max_length, pad, as_dtype(dtype)

    def __call__(self, n: Any) -> Any:
        """The permutation, then padding."""
        count = int(n.item() if isinstance(n, Tensor) else n)
        if count > self.max_length:
            raise ArgumentValueError(f"Randperm: got n={count}; wanted at most max_length={self.max_length}")
        order = random.randperm(count, dtype=self.dtype)
        return P.concat((order, P.fill((self.max_length - count,), self.pad, self.dtype)), 0)


class RandomChoiceWithMask(Primitive):
    """Coordinates of true elements, drawn without replacement: `RandomChoiceWithMask(count=256, seed=0, seed2=0)(x)`.

    Returns int32 coordinates (count, ndim) and a bool mask (count,); rows past the true elements are 0 and
    False. Made on the host.
    """

    def __init__(self, count: int = 256, seed: int = 0, seed2: int = 0) -> None:
        super().__init__()
        if count < 1:
            raise ArgumentValueError(f"RandomChoiceWithMask: got count={count}; wanted at least 1")
        self.count, self.seed, self.seed2 = count, seed, seed2

    def __call__(self, input_x: Any) -> Any:
        """(coordinates, mask)."""
        found = np.argwhere(input_x.asnumpy())
        words = random_state.philox(random_state.next_state(_seed(self.seed, self.seed2)), len(found))
        chosen = found[np.argsort(words, kind="stable")][: self.count]
        index = np.zeros((self.count, input_x.ndim), np.int32)
        index[: len(chosen)] = chosen
        mask = np.arange(self.count) < len(chosen)
        return Tensor(index), Tensor(mask)


class DataFormatDimMap(Primitive):
    """Axis numbers of one data format in another: `DataFormatDimMap(src_format="NHWC", dst_format="NCHW")(x)`."""

    def __init__(self, src_format: str = "NHWC", dst_format: str = "NCHW") -> None:
        super().__init__()
        self.src_format = _data_format("DataFormatDimMap", src_format, ("NHWC", "NCHW"))
        self.dst_format = _data_format("DataFormatDimMap", dst_format, ("NHWC", "NCHW"))

    def __call__(self, x: Any) -> Any:
        """The mapped axis numbers."""
        to = np.array([self.dst_format.index(c) for c in self.src_format], x.dtype.np)
        return P.gather(Tensor(to), x, 0)
