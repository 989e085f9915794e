"""Ops for convolution, pooling and their gradients in channels-last layout (N, spatial..., C).

The pass `passes.channels_last` inserts these primitives into compiled graphs. Their attributes,
such as `input_shape` (N, C, spatial...), and the layout of convolution weights are those of the
channels-first ops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import FLOATING, REAL
from ..host_arrays import Array
from ..op import NO_GRAD, Op, op
from ..tensor import Tensor
from ..types import TensorType, size_of
from .convolution import conv, conv_input_grad, conv_weight_grad
from .data_formats import first_to_last, last_to_first
from .gather_scatter import gather_elements_by
from .pooling import avg_pool, avg_pool_grad, max_pool, max_pool_grad
from .shape_primitives import reshape_to

__all__: list[str] = []

Ints = Sequence[int]
Pairs = Sequence[tuple[int, int]]


def _first(type_: TensorType) -> TensorType:
    """Return the channels-first type of a channels-last tensor."""
    n, *spatial, c = type_.shape if type_.ndim > 1 else (1, *type_.shape, 1)
    return type_.with_((n, c, *spatial))


def _last(type_: TensorType) -> TensorType:
    """Return the channels-last type of a channels-first tensor."""
    n, c, *spatial = type_.shape
    return type_.with_((n, *spatial, c))


def _infer(
    first: Op, types: tuple[TensorType, ...], images: int = 1, **attributes: object
) -> tuple[TensorType, ...]:
    """Return the result types of a channels-last op, inferred by its channels-first op `first`.

    The channels of the results and of the first `images` operands are the last axis; the other
    operands have the types that `first` takes.
    """
    moved = [_first(t) for t in types[:images]]
    found = first.result_types((*moved, *types[images:]), attributes)
    return tuple([_last(t) for t in (found if isinstance(found, tuple) else (found,))])


def _references(
    first: Op, images: Sequence[Array], *others: object, **attributes: object
) -> tuple[Array, ...]:
    """Compute the results of a channels-last op by the channels-first op `first`.

    `images` are the operands that are channels-last, `others` the operands after them.
    """
    rule = first.reference_rule
    assert rule is not None
    found = rule(*[np.moveaxis(x, -1, 1) for x in images], *others, **attributes)
    results = found if isinstance(found, tuple) else (found,)
    return tuple([np.ascontiguousarray(np.moveaxis(y, 1, -1)) for y in results])


def _reference(first: Op, images: Sequence[Array], *others: object, **attributes: object) -> Array:
    """Compute the first result of a channels-last op, as `_references` does."""
    return _references(first, images, *others, **attributes)[0]


@op(dtypes=REAL, promote="common")
def conv_channels_last(
    input: Tensor, weight: Tensor, stride: Ints, padding: Pairs, dilation: Ints, groups: int
):
    """Primitive op: convolution of (N, spatial..., C) with weights (O, C / groups, kernel...).

    The result is (N, spatial..., O). The attributes are those of `conv`.
    """


@conv_channels_last.infer
def _(x, w, stride, padding, dilation, groups):
    (out,) = _infer(conv, (x, w), stride=stride, padding=padding, dilation=dilation, groups=groups)
    return out


@conv_channels_last.reference
def _(x, w, stride, padding, dilation, groups):
    return _reference(
        conv, (x,), w, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


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


@op(dtypes=REAL, promote="common")
def conv_input_grad_channels_last(
    dout: Tensor,
    weight: Tensor,
    input_shape: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    groups: int,
):
    """Primitive op: gradient of `conv_channels_last` with respect to its input.

    `dout` is (N, spatial..., O), the weight (O, C / groups, kernel...), and `input_shape` the
    channels-first shape (N, C, spatial...) of the input. The result is (N, spatial..., C).
    """


@conv_input_grad_channels_last.infer
def _(dout, w, input_shape, **window):
    (dx,) = _infer(conv_input_grad, (dout, w), input_shape=input_shape, **window)
    return dx


@conv_input_grad_channels_last.reference
def _(dout, w, input_shape, **window):
    return _reference(conv_input_grad, (dout,), w, input_shape=input_shape, **window)


@conv_input_grad_channels_last.bprop
def _(dout, w, out, dx, input_shape, stride, padding, dilation, groups):
    window = (stride, padding, dilation, groups)
    return (
        conv_channels_last(dx, w, *window),
        conv_weight_grad_channels_last(dx, dout, w.shape, *window),
    )


@conv_input_grad_channels_last.decompose
def _(dout, weight, input_shape, stride, padding, dilation, groups):
    window = (stride, padding, dilation, groups)
    return first_to_last(conv_input_grad(last_to_first(dout), weight, input_shape, *window))


@op(dtypes=REAL, promote="common")
def conv_weight_grad_channels_last(
    input: Tensor,
    dout: Tensor,
    weight_shape: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    groups: int,
):
    """Primitive op: gradient of `conv_channels_last` with respect to its weight.

    The operands are (N, spatial..., C) and (N, spatial..., O). The result has the shape
    `weight_shape`, (O, C / groups, kernel...).
    """


@conv_weight_grad_channels_last.infer
def _(x, dout, **attributes):
    return conv_weight_grad.result_types((_first(x), _first(dout)), attributes)


@conv_weight_grad_channels_last.reference
def _(x, dout, **attributes):
    rule = conv_weight_grad.reference_rule
    assert rule is not None
    return rule(np.moveaxis(x, -1, 1), np.moveaxis(dout, -1, 1), **attributes)


@conv_weight_grad_channels_last.bprop
def _(x, dout, out, dw, weight_shape, stride, padding, dilation, groups):
    window = (stride, padding, dilation, groups)
    n, *spatial, c = x.shape
    return (
        conv_input_grad_channels_last(dout, dw, (n, c, *spatial), *window),
        conv_channels_last(x, dw, *window),
    )


@conv_weight_grad_channels_last.decompose
def _(input, dout, weight_shape, stride, padding, dilation, groups):
    window = (stride, padding, dilation, groups)
    return conv_weight_grad(last_to_first(input), last_to_first(dout), weight_shape, *window)


@op(dtypes=REAL)
def max_pool_channels_last(
    input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
):
    """Primitive op: max pooling of a tensor (N, spatial..., C), without the indices of the maxima.

    The attributes are those of `max_pool`.
    """


@max_pool_channels_last.infer
def _(x, kernel, stride, padding, dilation):
    window = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    return _infer(max_pool, (x,), **window)[0]


@max_pool_channels_last.reference
def _(x, kernel, stride, padding, dilation):
    window = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    return _reference(max_pool, (x,), **window)


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
def max_pool_indices_channels_last(
    input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
):
    """Primitive op: max pooling of a tensor (N, spatial..., C), and the indices of the maxima.

    The attributes and the two results, apart from the order of their axes, are those of `max_pool`.
    """


@max_pool_indices_channels_last.infer
def _(x, **window):
    return _infer(max_pool, (x,), **window)


@max_pool_indices_channels_last.reference
def _(x, **window):
    return _references(max_pool, (x,), **window)


@max_pool_indices_channels_last.bprop
def _(x, out, dout, kernel, stride, padding, dilation):
    n, *spatial, c = x.shape
    window = (kernel, stride, padding, dilation)
    return (max_pool_grad_channels_last(dout[0], out[1], (n, c, *spatial), *window),)


@max_pool_indices_channels_last.decompose
def _(input, kernel, stride, padding, dilation):
    values, indices = max_pool(last_to_first(input), kernel, stride, padding, dilation)
    return first_to_last(values), first_to_last(indices)


@op(dtypes=REAL, promote=None)
def max_pool_grad_channels_last(
    dout: Tensor,
    indices: Tensor,
    input_shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
):
    """Primitive op: gradient of `max_pool_indices_channels_last` with respect to its input.

    Operands and result are (N, spatial..., C); `input_shape` is (N, C, spatial...). The attributes
    are those of `max_pool_grad`.
    """


@max_pool_grad_channels_last.infer
def _(dout, indices, **attributes):
    (dx,) = _infer(max_pool_grad, (dout, indices), 2, **attributes)
    return dx


@max_pool_grad_channels_last.reference
def _(dout, indices, **attributes):
    return _reference(max_pool_grad, (dout, indices), **attributes)


@max_pool_grad_channels_last.bprop
def _(dout, indices, out, dx, input_shape, kernel, stride, padding, dilation):
    n, c, *sizes = input_shape
    flat = reshape_to(dx, (n, size_of(sizes), c))
    places = reshape_to(indices, (n, size_of(indices.shape[1:-1]), c))
    return reshape_to(gather_elements_by(flat, places, 1), dout.shape), NO_GRAD


@max_pool_grad_channels_last.decompose
def _(dout, indices, input_shape, kernel, stride, padding, dilation):
    window = (kernel, stride, padding, dilation)
    return first_to_last(
        max_pool_grad(last_to_first(dout), last_to_first(indices), input_shape, *window)
    )


@op(dtypes=REAL)
def avg_pool_channels_last(
    input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, count_include_pad: bool, divisor: int
):
    """Primitive op: average pooling of a tensor (N, spatial..., C).

    The attributes are those of `avg_pool`.
    """


@avg_pool_channels_last.infer
def _(x, kernel, stride, padding, count_include_pad, divisor):
    (out,) = _infer(
        avg_pool,
        (x,),
        kernel=kernel,
        stride=stride,
        padding=padding,
        count_include_pad=count_include_pad,
        divisor=divisor,
    )
    return out


@avg_pool_channels_last.reference
def _(x, kernel, stride, padding, count_include_pad, divisor):
    return _reference(
        avg_pool,
        (x,),
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


@op(dtypes=FLOATING)
def avg_pool_grad_channels_last(
    dout: Tensor,
    input_shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    count_include_pad: bool,
    divisor: int,
):
    """Primitive op: gradient of `avg_pool_channels_last` with respect to its input.

    `dout` and the result are (N, spatial..., C); `input_shape` is (N, C, spatial...). The
    attributes are those of `avg_pool_grad`.
    """


@avg_pool_grad_channels_last.infer
def _(dout, **attributes):
    (dx,) = _infer(avg_pool_grad, (dout,), **attributes)
    return dx


@avg_pool_grad_channels_last.reference
def _(dout, **attributes):
    return _reference(avg_pool_grad, (dout,), **attributes)


@avg_pool_grad_channels_last.bprop
def _(dout, out, dx, input_shape, kernel, stride, padding, count_include_pad, divisor):
    return (avg_pool_channels_last(dx, kernel, stride, padding, count_include_pad, divisor),)


@avg_pool_grad_channels_last.decompose
def _(dout, input_shape, kernel, stride, padding, count_include_pad, divisor):
    window = (kernel, stride, padding, count_include_pad, divisor)
    return first_to_last(avg_pool_grad(last_to_first(dout), input_shape, *window))
