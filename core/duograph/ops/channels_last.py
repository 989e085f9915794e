"""Ops for convolution and pooling in channels-last layout (N, spatial..., C).

The pass `passes.channels_last` inserts these primitives into compiled graphs. Their attributes
and the layout of convolution weights are those of the channels-first ops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import REAL
from ..host_arrays import Array
from ..op import Op, op
from ..tensor import Tensor
from ..types import TensorType
from .convolution import conv, conv_input_grad, conv_weight_grad
from .data_formats import first_to_last, last_to_first
from .pooling import avg_pool, avg_pool_grad, max_pool, max_pool_grad

__all__: list[str] = []

Ints = Sequence[int]
Pairs = Sequence[tuple[int, int]]


def _infer(first: Op, types: tuple[TensorType, ...], **attributes: object) -> TensorType:
    """Return the result type of a channels-last op, inferred by its channels-first op `first`.

    The channels of the first operand and of the result are the last axis; the other operands have
    the types that `first` takes.
    """
    n, *spatial, c = types[0].shape if types[0].ndim > 1 else (1, *types[0].shape, 1)
    found = first.result_types((types[0].with_((n, c, *spatial)), *types[1:]), attributes)
    made: TensorType = found[0] if isinstance(found, tuple) else found
    n, c, *spatial = made.shape
    return made.with_((n, *spatial, c))


def _reference(first: Op, x: Array, *others: object, **attributes: object) -> Array:
    rule = first.reference_rule
    assert rule is not None
    found = rule(np.moveaxis(x, -1, 1), *others, **attributes)
    return np.ascontiguousarray(np.moveaxis(found[0] if isinstance(found, tuple) else found, 1, -1))


@op(dtypes=REAL, promote="common")
def conv_channels_last(
    input: Tensor, weight: Tensor, stride: Ints, padding: Pairs, dilation: Ints, groups: int
):
    """Primitive op: convolution of (N, spatial..., C) with weights (O, C / groups, kernel...).

    The result is (N, spatial..., O). The attributes are those of `conv`.
    """


@conv_channels_last.infer
def _(x, w, stride, padding, dilation, groups):
    return _infer(conv, (x, w), stride=stride, padding=padding, dilation=dilation, groups=groups)


@conv_channels_last.reference
def _(x, w, stride, padding, dilation, groups):
    return _reference(conv, x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)


@conv_channels_last.bprop
def _(x, w, out, dout, stride, padding, dilation, groups):
    x, dout = last_to_first(x), last_to_first(dout)
    return (
        first_to_last(conv_input_grad(dout, w, x.shape, stride, padding, dilation, groups)),
        conv_weight_grad(x, dout, w.shape, stride, padding, dilation, groups),
    )


@conv_channels_last.decompose
def _(input, weight, stride, padding, dilation, groups):
    return first_to_last(conv(last_to_first(input), weight, stride, padding, dilation, groups))


@op(dtypes=REAL)
def max_pool_channels_last(
    input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
):
    """Primitive op: max pooling of a tensor (N, spatial..., C), without the indices of the maxima.

    The attributes are those of `max_pool`.
    """


@max_pool_channels_last.infer
def _(x, kernel, stride, padding, dilation):
    return _infer(max_pool, (x,), kernel=kernel, stride=stride, padding=padding, dilation=dilation)


@max_pool_channels_last.reference
def _(x, kernel, stride, padding, dilation):
    return _reference(max_pool, x, kernel=kernel, stride=stride, padding=padding, dilation=dilation)


@max_pool_channels_last.bprop
def _(x, out, dout, kernel, stride, padding, dilation):
    x = last_to_first(x)
    _, indices = max_pool(x, kernel, stride, padding, dilation)
    dx = max_pool_grad(last_to_first(dout), indices, x.shape, kernel, stride, padding, dilation)
    return (first_to_last(dx),)


@max_pool_channels_last.decompose
def _(input, kernel, stride, padding, dilation):
    return first_to_last(max_pool(last_to_first(input), kernel, stride, padding, dilation)[0])


@op(dtypes=REAL)
def avg_pool_channels_last(
    input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, count_include_pad: bool, divisor: int
):
    """Primitive op: average pooling of a tensor (N, spatial..., C).

    The attributes are those of `avg_pool`.
    """


@avg_pool_channels_last.infer
def _(x, kernel, stride, padding, count_include_pad, divisor):
    return _infer(
        avg_pool,
        (x,),
        kernel=kernel,
        stride=stride,
        padding=padding,
        count_include_pad=count_include_pad,
        divisor=divisor,
    )


@avg_pool_channels_last.reference
def _(x, kernel, stride, padding, count_include_pad, divisor):
    return _reference(
        avg_pool,
        x,
        kernel=kernel,
        stride=stride,
        padding=padding,
        count_include_pad=count_include_pad,
        divisor=divisor,
    )


@avg_pool_channels_last.bprop
def _(x, out, dout, kernel, stride, padding, count_include_pad, divisor):
    shape = (x.shape[0], x.shape[-1], *x.shape[1:-1])
    dx = avg_pool_grad(
        last_to_first(dout), shape, kernel, stride, padding, count_include_pad, divisor
    )
    return (first_to_last(dx),)


@avg_pool_channels_last.decompose
def _(input, kernel, stride, padding, count_include_pad, divisor):
    return first_to_last(
        avg_pool(last_to_first(input), kernel, stride, padding, count_include_pad, divisor)
    )
