"""Piecewise linear activations: relu and its variants, hard sigmoid and swish, shrinkage.

Layers and users call these ops. The gradient of an activation is an op, too, so that a backend can
compute it with one kernel.
"""

from __future__ import annotations

import math

import numpy as np

from ..call_cache import cached_call
from ..dtype import BOOL, FLOATING, REAL, bool_, float32
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..tensor import Tensor
from .combinations import clamp
from .creation import cast
from .elementwise import abs, maximum
from .logic import logical_and, logical_or, select
from .methods import tensor_method
from .movement import reshape
from .primitive import primitive

__all__ = [
    "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "leaky_relu", "prelu", "relu", "relu6", "softshrink", "threshold",
]  # fmt: skip


@op(name="relu", primitive="ReLU", dtypes=BOOL + REAL)
def relu_of(x: Tensor):
    """Primitive op: the maximum of x and 0; NaN remains NaN."""


@relu_of.reference
def _(x):
    return x if x.dtype.kind == "b" else np.maximum(x, np.zeros((), x.dtype))


@relu_of.scalar
def _(s, x):
    return x if x.dtype is bool_ else s.maximum(x, 0)


@relu_of.bprop
def _(x, out, dout):
    return (relu_grad(dout, out),)


@relu_of.decompose
def _(x):
    return logical_or(x, x) if x.dtype is bool_ else maximum(x, 0)


@op(name="relu_grad", dtypes=REAL, promote="common", elementwise=True)
def relu_grad(dout: Tensor, out: Tensor):
    """Composite op: gradient of `relu` with respect to its input.

    It is `dout`, the cotangent of the result, where the result `out` is positive, else 0.
    """
    return select(out > 0, dout, 0)


@tensor_method("relu")
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the greater of each element and 0; NaN remains NaN (`mindspore.ops.relu`).

    Args:
        input: Tensor of any shape; not complex.
        inplace: whether `input` itself is set to the result.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.relu(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00,  2.00000000e+00])
    """
    out = relu_of(input)
    if inplace:
        input._rebind(out)
        return input
    return out


@op(method="relu6", primitive="ReLU6", dtypes=REAL)
def relu6(x: Tensor):
    """Limit elements to the range from 0 to 6 (`mindspore.ops.relu6`).

    Args:
        x: Tensor of any shape; integer or floating.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.relu6(ms.Tensor([-1.0, 3.0, 9.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  3.00000000e+00,  6.00000000e+00])
    """
    return clamp.public(x, 0, 6)


@relu6.scalar
def _(s, x):
    return s.where(x > 6, 6, s.maximum(x, 0))


@relu6.bprop
def _(x, out, dout):
    return (relu6_grad(dout, x),)


@op(name="relu6_grad", dtypes=REAL, promote="common", elementwise=True)
def relu6_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `relu6` with respect to its input.

    It is `dout`, the cotangent of the result, where 0 < x < 6, else 0.
    """
    return select(logical_and(x > 0, x < 6), dout, 0)


@op(method="leaky_relu", dtypes=REAL, elementwise=True, primitive="LeakyReLU(alpha=0.2)(x)")
def leaky_relu(input: Tensor, alpha: float = 0.2):
    """Multiply negative elements by `alpha`, and keep all others (`mindspore.ops.leaky_relu`).

    Args:
        input: Tensor of any shape; integer or floating.
        alpha: factor of negative elements.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.leaky_relu(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-2.00000003e-01,  0.00000000e+00,  2.00000000e+00])
    """
    return select(input > 0, input, cast(input * alpha, input.dtype))


@leaky_relu.bprop
def _(x, out, dout, alpha):
    return (leaky_relu_grad(dout, x, alpha),)


@op(name="leaky_relu_grad", dtypes=REAL, promote="common", elementwise=True)
def leaky_relu_grad(dout: Tensor, x: Tensor, alpha: float):
    """Composite op: gradient of `leaky_relu` with respect to its input.

    It is `dout`, the cotangent of the result, where x > 0, else alpha * dout.
    """
    return select(x > 0, dout, dout * alpha)


@op(method="hardsigmoid", dtypes=FLOATING, elementwise=True, primitive="HSigmoid")
def hardsigmoid(input: Tensor):
    """Return ``x / 6 + 1/2``, limited to the range from 0 to 1, for each element x
    (`mindspore.ops.hardsigmoid`).

    Args:
        input: Tensor of any shape; floating.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.hardsigmoid(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 3.33333313e-01,  5.00000000e-01,  8.33333373e-01])
    """
    return clamp.public(input / 6 + 0.5, 0, 1)


@hardsigmoid.bprop
def _(x, out, dout):
    return (hardsigmoid_grad(dout, x),)


@op(name="hardsigmoid_grad", dtypes=FLOATING, promote="common", elementwise=True)
def hardsigmoid_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `hardsigmoid` with respect to its input.

    It is dout / 6 where -3 < x < 3, else 0; `dout` is the cotangent of the result.
    """
    return select(logical_and(x > -3, x < 3), dout / 6, 0)


@op(method="hardswish", primitive="HSwish", dtypes=FLOATING)
def hardswish(input: Tensor):
    """Return ``x * hardsigmoid(x)`` for each element x (`mindspore.ops.hardswish`).

    Args:
        input: Tensor of any shape; floating, or of integers: their results are truncated.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.hardswish(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-3.33333343e-01,  0.00000000e+00,  1.66666663e+00])
    """
    return input * (clamp.public(input + 3, 0, 6) / 6)


@hardswish.normaliser
def _(input: Tensor):
    if isinstance(input, Tensor) and input.dtype.is_integer:
        return cast(hardswish.public(cast(input, float32)), input.dtype)
    return (input,)


@hardswish.scalar
def _(s, x):
    t = s.where(x < -3, 0, x + 3)
    return x * (s.where(t > 6, 6, t) / 6)


@hardswish.bprop
def _(x, out, dout):
    return (hardswish_grad(dout, x),)


@op(name="hardswish_grad", dtypes=FLOATING, promote="common", elementwise=True)
def hardswish_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `hardswish` with respect to its input.

    It is 0 where x < -3, dout where x > 3, else dout * (x / 3 + 0.5); `dout` is the cotangent of
    the result.
    """
    return dout * select(x < -3, 0, select(x > 3, 1, x / 3 + 0.5))


@op(method="hardshrink", dtypes=FLOATING, elementwise=True, primitive="HShrink(lambd=0.5)(x)")
def hardshrink(input: Tensor, lambd: float = 0.5):
    """Return 0 where ``|x| <= lambd``, else x, for each element x (`mindspore.ops.hardshrink`).

    Args:
        input: Tensor of any shape; floating.
        lambd: half the width of the gap.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.hardshrink(ms.Tensor([-1.0, 0.3, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.00000000e+00,  0.00000000e+00,  2.00000000e+00])
    """
    return select(abs(input) <= lambd, 0, input)


@hardshrink.bprop
def _(x, out, dout, lambd):
    return (hardshrink_grad(dout, x, lambd),)


@op(name="hardshrink_grad", dtypes=FLOATING, promote="common", elementwise=True)
def hardshrink_grad(dout: Tensor, x: Tensor, lambd: float):
    """Composite op: gradient of `hardshrink` with respect to its input.

    It is `dout`, the cotangent of the result, where |x| > lambd, else 0.
    """
    return select(abs(x) <= lambd, 0, dout)


@op(method="softshrink", dtypes=FLOATING, elementwise=True, primitive="SoftShrink(lambd=0.5)(x)")
def softshrink(input: Tensor, lambd: float = 0.5):
    """Move each element x towards 0 by `lambd`; 0 where ``|x| <= lambd``
    (`mindspore.ops.softshrink`).

    Args:
        input: Tensor of any shape; floating.
        lambd: half the width of the gap.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.softshrink(ms.Tensor([-1.0, 0.3, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-5.00000000e-01,  0.00000000e+00,  1.50000000e+00])
    """
    return select(input > lambd, input - lambd, select(input < -lambd, input + lambd, input * 0))


@softshrink.bprop
def _(x, out, dout, lambd):
    return (softshrink_grad(dout, x, lambd),)


@op(name="softshrink_grad", dtypes=FLOATING, promote="common", elementwise=True)
def softshrink_grad(dout: Tensor, x: Tensor, lambd: float):
    """Composite op: gradient of `softshrink` with respect to its input.

    It is `dout`, the cotangent of the result, where |x| > lambd, else 0.
    """
    return select(abs(x) <= lambd, 0, dout)


@op(method="hardtanh", dtypes=REAL)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0):
    """Limit elements to the range from `min_val` to `max_val` (`mindspore.ops.hardtanh`).

    Args:
        input: Tensor of any shape; integer or floating.
        min_val: the least value.
        max_val: the greatest value.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.hardtanh(ms.Tensor([-2.0, 0.5, 3.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.00000000e+00,  5.00000000e-01,  1.00000000e+00])
    """
    return cast(clamp.public(input, min_val, max_val), input.dtype)


@hardtanh.scalar
def _(s, x, min_val, max_val):
    raised = s.where(x < min_val, min_val, x)
    return s.where(raised > max_val, max_val, raised)


@hardtanh.bprop
def _(x, out, dout, min_val, max_val):
    return (hardtanh_grad(dout, x, min_val, max_val),)


@op(name="hardtanh_grad", dtypes=REAL, promote="common", elementwise=True)
def hardtanh_grad(dout: Tensor, x: Tensor, min_val: float, max_val: float):
    """Composite op: gradient of `hardtanh` with respect to its input.

    It is `dout`, the cotangent of the result, where min_val < x < max_val, else 0.
    """
    return select(logical_and(x > min_val, x < max_val), dout, 0)


@op(method="threshold", dtypes=REAL, elementwise=True)
def threshold(input: Tensor, thr: float, value: float):
    """Replace elements that are not above `thr` by `value` (`mindspore.ops.threshold`).

    Args:
        input: Tensor of any shape; not complex.
        thr: the threshold.
        value: number that replaces elements up to the threshold.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.threshold(ms.Tensor([-1.0, 0.5, 2.0]), 1.0, 9.0)
        Tensor(shape=[3], dtype=Float32, value= [ 9.00000000e+00,  9.00000000e+00,  2.00000000e+00])
    """
    whole = input.dtype.is_integer
    if whole and not math.isfinite(value):
        raise ArgumentValueError(
            f"threshold: got value={value!r} for {input.dtype.name}; wanted a finite number"
        )
    return select(input > thr, input, int(value) if whole else value)


@primitive("PReLU()(x, weight)")
@tensor_method("prelu")
@cached_call
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Multiply negative elements by a learned factor, and keep all others (`mindspore.ops.prelu`).

    Args:
        input: Tensor of any shape; axis 1 is the channel.
        weight: 1-d Tensor: one factor, or one for each channel.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        ValueError: `weight` is not 1-d, or has neither one element nor one for each channel.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.prelu(ms.Tensor([[-1.0, 2.0], [-4.0, 5.0]]), ms.Tensor([0.1, 0.5]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[-1.00000001e-01,  2.00000000e+00],
         [-4.00000006e-01,  5.00000000e+00]])
    """
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim != 1 or weight.shape[0] not in (1, channels):
        raise ShapeError(
            f"prelu: weight has shape {weight.shape}; wanted (1,) or ({channels},), the channels "
            "of "
            f"input of shape {input.shape}"
        )
    if weight.shape[0] > 1:
        weight = reshape(weight, (weight.shape[0],) + (1,) * (input.ndim - 2))
    return select(input > 0, input, input * weight)
