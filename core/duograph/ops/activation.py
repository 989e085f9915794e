"""Activation functions (relu, gelu, sigmoid, ...) and the ops that compute their gradients.

Users, layers and gradient rules call them. Each activation is one elementwise kernel; the gradients
that are common in training have kernels of their own.
"""

from __future__ import annotations

import numpy as np

from ..call_cache import cached_call
from ..dtype import FLOATING, INEXACT
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..tensor import Tensor
from .axes import axis_of
from .elementwise import abs, maximum, neg, true_divide
from .error_functions import erf
from .exponential import exp, expm1, log1p
from .hyperbolic import tanh
from .logic import select
from .methods import tensor_method
from .movement import slice_by
from .pointwise import conjugate
from .primitive import primitive

__all__ = [
    "celu", "elu",
    "fast_gelu", "gelu", "glu", "logsigmoid", "mish", "selu", "sigmoid", "silu", "softplus",
    "softsign", "swish", "tanhshrink",
]  # fmt: skip

_SQRT_HALF = 0.7071067811865476
_INV_SQRT_2PI = 0.3989422804014327  # factor of the normal density, for the gradient of gelu
_GELU_A, _GELU_B = 0.7978845608028654, 0.044715  # sqrt(2/pi), and the coefficient of the cubic term
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


@op(method="sigmoid", primitive="Sigmoid", dtypes=INEXACT, promote="float")
def sigmoid(input: Tensor):
    """Return ``1 / (1 + exp(-x))`` for each element x (`mindspore.ops.sigmoid`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.sigmoid(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 2.68941432e-01,  5.00000000e-01,  8.80797029e-01])
    """


@sigmoid.reference
def _(x):
    small = np.exp(-np.abs(x)) if x.dtype.kind != "c" else np.exp(-x)
    if x.dtype.kind == "c":
        return 1 / (1 + small)
    return (np.where(x >= 0, 1, small) / (1 + small)).astype(x.dtype)


@sigmoid.scalar
def _(s, x):
    if x.dtype.is_complex:
        return 1 / (1 + s.exp(-x))
    e = s.exp(x)
    return s.where(x > 80, 1, e / (1 + e))  # e overflows for large x


@sigmoid.bprop
def _(x, out, dout):
    return (sigmoid_grad(dout, out),)


@sigmoid.decompose
def _(x):
    if x.dtype.is_complex:
        return true_divide(1, 1 + exp(neg(x)))
    small = exp(neg(abs(x)))
    return true_divide(select(x >= 0, 1, small), 1 + small)


@op(name="sigmoid_grad", dtypes=INEXACT, promote="common", elementwise=True)
def sigmoid_grad(dout: Tensor, out: Tensor):
    """Composite op: gradient of `sigmoid` with respect to its input: ``dout * out * (1 - out)``.

    `out` is the result of `sigmoid`, `dout` the cotangent of that result.
    """
    y = conjugate(out)
    return dout * y * (1 - y)


@op(method="elu", dtypes=FLOATING, elementwise=True, primitive="Elu(alpha=1.0)(x)")
def elu(input_x: Tensor, alpha: float = 1.0):
    """Apply the exponential linear unit: ``alpha * (exp(x) - 1)`` for x below zero, else x
    (`mindspore.ops.elu`).

    Args:
        input_x: Tensor of any shape; floating.
        alpha: factor of the negative part.

    Returns:
        Tensor of the shape and dtype of `input_x`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.elu(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-6.32120550e-01,  0.00000000e+00,  2.00000000e+00])
    """
    return select(input_x > 0, input_x, alpha * expm1(input_x))


@elu.bprop
def _(x, out, dout, alpha):
    return (elu_grad(dout, x, alpha),)


@op(name="elu_grad", dtypes=FLOATING, promote="common", elementwise=True)
def elu_grad(dout: Tensor, x: Tensor, alpha: float):
    """Composite op: gradient of `elu` with respect to its input.

    `dout` is the cotangent of the result of `elu`.
    """
    return select(x > 0, dout, dout * alpha * exp(x))


@op(method="celu", dtypes=FLOATING, elementwise=True, primitive="CeLU(alpha=1.0)(x)")
def celu(x: Tensor, alpha: float = 1.0):
    """Return ``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`` for each element x
    (`mindspore.ops.celu`).

    Args:
        x: Tensor of any shape; floating.
        alpha: scale of the exponential part, not 0.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.celu(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-6.32120550e-01,  0.00000000e+00,  2.00000000e+00])
    """
    return select(x > 0, x, alpha * expm1(x / alpha))


@celu.bprop
def _(x, out, dout, alpha):
    return (celu_grad(dout, x, alpha),)


@op(name="celu_grad", dtypes=FLOATING, promote="common", elementwise=True)
def celu_grad(dout: Tensor, x: Tensor, alpha: float):
    """Composite op: gradient of `celu` with respect to its input.

    `dout` is the cotangent of the result of `celu`.
    """
    return select(x > 0, dout, dout * exp(x / alpha))


@op(method="selu", primitive="SeLU", dtypes=FLOATING, elementwise=True)
def selu(input_x: Tensor):
    """Apply the scaled exponential linear unit, which preserves mean 0 and variance 1
    (`mindspore.ops.selu`).

    Args:
        input_x: Tensor of any shape; floating.

    Returns:
        Tensor of the shape and dtype of `input_x`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.selu(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.11133075e+00,  0.00000000e+00,  2.10140204e+00])
    """
    return select(input_x > 0, _SELU_SCALE * input_x, (_SELU_SCALE * _SELU_ALPHA) * expm1(input_x))


@selu.bprop
def _(x, out, dout):
    return (selu_grad(dout, x),)


@op(name="selu_grad", dtypes=FLOATING, promote="common", elementwise=True)
def selu_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `selu` with respect to its input.

    `dout` is the cotangent of the result of `selu`.
    """
    return dout * select(x > 0, _SELU_SCALE, (_SELU_SCALE * _SELU_ALPHA) * exp(x))


@op(name="gelu_erf", dtypes=FLOATING, elementwise=True)
def gelu_erf(x: Tensor):
    """Composite op: exact gelu, x times the cumulative distribution of the standard normal."""
    return 0.5 * x * (1 + erf(x * _SQRT_HALF))


@gelu_erf.bprop
def _(x, out, dout):
    return (gelu_erf_grad(dout, x),)


@op(name="gelu_erf_grad", dtypes=FLOATING, promote="common", elementwise=True)
def gelu_erf_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `gelu_erf` with respect to its input.

    `dout` is the cotangent of the result of `gelu_erf`.
    """
    below = 0.5 * (1 + erf(x * _SQRT_HALF))
    return dout * (below + x * (exp(-0.5 * x * x) * _INV_SQRT_2PI))


@op(name="gelu_tanh", dtypes=FLOATING, elementwise=True, primitive="GeLU")
def gelu_tanh(x: Tensor):
    """Composite op: gelu with its cumulative normal distribution approximated by tanh."""
    return 0.5 * x * (1 + tanh(_GELU_A * (x + _GELU_B * x * x * x)))


@gelu_tanh.bprop
def _(x, out, dout):
    return (gelu_tanh_grad(dout, x),)


@op(name="gelu_tanh_grad", dtypes=FLOATING, promote="common", elementwise=True)
def gelu_tanh_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `gelu_tanh` with respect to its input.

    `dout` is the cotangent of the result of `gelu_tanh`.
    """
    t = tanh(_GELU_A * (x + _GELU_B * x * x * x))
    derivative = (1 - t * t) * (_GELU_A * (1 + (3 * _GELU_B) * x * x))
    return dout * (0.5 * (1 + t) + 0.5 * x * derivative)


@tensor_method("gelu")
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Apply the Gaussian error linear unit: x times the cumulative normal distribution at x
    (`mindspore.ops.gelu`).

    Args:
        input: Tensor of any shape; floating.
        approximate: ``"none"`` uses erf, ``"tanh"`` the approximation by tanh.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: another approximation.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.gelu(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.58655256e-01,  0.00000000e+00,  1.95449972e+00])
    """
    if approximate == "none":
        return gelu_erf(input)
    if approximate == "tanh":
        return gelu_tanh(input)
    raise ArgumentValueError(f"gelu: got approximate={approximate!r}; wanted 'none' or 'tanh'")


@op(method="fast_gelu", dtypes=FLOATING, primitive="FastGeLU")
def fast_gelu(x: Tensor):
    """Return ``x * sigmoid(1.702 * x)`` (`mindspore.ops.fast_gelu`).

    Args:
        x: Tensor of any shape; floating.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fast_gelu(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.54204234e-01,  0.00000000e+00,  1.93565857e+00])
    """
    return x * sigmoid(x * 1.702)


@fast_gelu.scalar
def _(s, x):
    return x / (1 + s.exp(-1.702 * x))


@op(method="silu", dtypes=FLOATING)
def silu(input: Tensor):
    """Return ``x * sigmoid(x)`` for each element x, also called swish (`mindspore.ops.silu`).

    Args:
        input: Tensor of any shape; floating.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.silu(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-2.68941432e-01,  0.00000000e+00,  1.76159406e+00])
    """
    return input * sigmoid(input)


@silu.scalar
def _(s, x):
    small = s.exp(-s.abs(x))
    return x * (s.where(x >= 0, 1, small) / (1 + small))


@silu.bprop
def _(x, out, dout):
    return (silu_grad(dout, x),)


@op(name="silu_grad", dtypes=FLOATING, promote="common")
def silu_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `silu` with respect to its input.

    `dout` is the cotangent of the result of `silu`.
    """
    y = sigmoid(x)
    return dout * (y * (1 + x * (1 - y)))


@silu_grad.scalar
def _(s, dout, x):
    small = s.exp(-s.abs(x))
    y = s.where(x >= 0, 1, small) / (1 + small)
    return dout * (y * (1 + x * (1 - y)))


@op(method="softplus", dtypes=FLOATING, elementwise=True, primitive="Softplus")
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0):
    """Return ``log(1 + exp(beta * x)) / beta`` for each element x, and x itself where ``beta * x >
    threshold`` (`mindspore.ops.softplus`).

    Args:
        input: Tensor of any shape; floating.
        beta: sharpness of the transition, not 0.
        threshold: value of beta * x above which the function is linear.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.softplus(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 3.13261688e-01,  6.93147182e-01,  2.12692809e+00])
    """
    t = input * beta
    soft = (maximum(t, 0) + log1p(exp(neg(abs(t))))) / beta
    return select(t > threshold, input, soft)


@softplus.bprop
def _(x, out, dout, beta, threshold):
    return (softplus_grad(dout, x, beta, threshold),)


@op(name="softplus_grad", dtypes=FLOATING, promote="common")
def softplus_grad(dout: Tensor, x: Tensor, beta: float, threshold: float):
    """Composite op: gradient of `softplus` with respect to its input.

    `dout` is the cotangent of the result of `softplus`.
    """
    t = x * beta
    return select(t > threshold, dout, dout * sigmoid(t))


@softplus_grad.scalar
def _(s, dout, x, beta, threshold):
    t = x * beta
    small = s.exp(-s.abs(t))
    return s.where(t > threshold, dout, dout * (s.where(t >= 0, 1, small) / (1 + small)))


@op(method="mish", primitive="Mish", dtypes=FLOATING, elementwise=True)
def mish(x: Tensor):
    """Return ``x * tanh(softplus(x))`` (`mindspore.ops.mish`).

    Args:
        x: Tensor of any shape; floating.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.mish(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-3.03401470e-01,  0.00000000e+00,  1.94395900e+00])
    """
    soft = maximum(x, 0) + log1p(exp(neg(abs(x))))
    return x * tanh(soft)


@mish.bprop
def _(x, out, dout):
    return (mish_grad(dout, x),)


@op(name="mish_grad", dtypes=FLOATING, promote="common")
def mish_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `mish` with respect to its input.

    `dout` is the cotangent of the result of `mish`.
    """
    t = tanh(maximum(x, 0) + log1p(exp(neg(abs(x)))))
    return dout * (t + x * (1 - t * t) * sigmoid(x))


@mish_grad.scalar
def _(s, dout, x):
    small = s.exp(-s.abs(x))
    t = s.tanh(s.maximum(x, 0) + s.log1p(small))
    return dout * (t + x * (1 - t * t) * (s.where(x >= 0, 1, small) / (1 + small)))


@op(method="logsigmoid", primitive="LogSigmoid", dtypes=FLOATING)
def logsigmoid(x: Tensor):
    """Return ``log(sigmoid(x))`` without underflow (`mindspore.ops.logsigmoid`).

    Args:
        x: Tensor of any shape; floating.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logsigmoid(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.31326175e+00, -6.93147182e-01, -1.26928002e-01])
    """
    return select(x < 0, x, 0) - log1p(exp(neg(abs(x))))


@logsigmoid.scalar
def _(s, x):
    return s.where(x < 0, x, s.where(x == x, 0, x)) - s.log1p(s.exp(-s.abs(x)))


@logsigmoid.bprop
def _(x, out, dout):
    return (logsigmoid_grad(dout, x),)


@op(name="logsigmoid_grad", dtypes=FLOATING, promote="common")
def logsigmoid_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `logsigmoid` with respect to its input.

    `dout` is the cotangent of the result of `logsigmoid`.
    """
    return dout * sigmoid(neg(x))


@logsigmoid_grad.scalar
def _(s, dout, x):
    small = s.exp(-s.abs(x))
    return dout * (s.where(x >= 0, small, 1) / (1 + small))


@op(method="softsign", primitive="Softsign", dtypes=FLOATING)
def softsign(x: Tensor):
    """Return ``x / (1 + |x|)`` (`mindspore.ops.softsign`).

    Args:
        x: Tensor of any shape; floating.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.softsign(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-5.00000000e-01,  0.00000000e+00,  6.66666687e-01])
    """
    size = abs(x)
    infinite = size == float("inf")
    return select(infinite, select(x < 0, -1, 1), x / (1 + select(infinite, 1, size)))


@softsign.scalar
def _(s, x):
    size = s.abs(x)
    return s.where(size == s.inf, s.copysign(s.const(1, x.dtype), x), x / (1 + size))


@softsign.bprop
def _(x, out, dout):
    return (softsign_grad(dout, x),)


@op(name="softsign_grad", dtypes=FLOATING, promote="common", elementwise=True)
def softsign_grad(dout: Tensor, x: Tensor):
    """Composite op: gradient of `softsign` with respect to its input.

    `dout` is the cotangent of the result of `softsign`.
    """
    scale = 1 + abs(x)
    return dout / (scale * scale)


@op(method="tanhshrink", dtypes=FLOATING, elementwise=True)
def tanhshrink(input: Tensor):
    """Return ``x - tanh(x)`` for each element x (`mindspore.ops.tanhshrink`).

    Args:
        input: Tensor of any shape; floating.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.tanhshrink(ms.Tensor([-1.0, 0.0, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-2.38405824e-01,  0.00000000e+00,  1.03597236e+00])
    """
    return input - tanh(input)


@primitive("GLU(axis=-1)(x)")
@cached_call
def glu(x: Tensor, axis: int = -1) -> Tensor:
    """Apply the gated linear unit: the first half along an axis times the sigmoid of the second
    (`mindspore.ops.glu`).

    Args:
        x: Tensor of any shape; floating.
        axis: the axis to split in two.

    Returns:
        Tensor with half the size along that axis.

    Raises:
        ValueError: the axis does not exist, or its size is odd.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.glu(ms.Tensor([1.0, 2.0, 3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 9.52574134e-01,  1.96402752e+00])
    """
    axis = axis_of("glu", axis, x.ndim)
    if not x.ndim:
        raise ShapeError("glu: got a 0-d tensor; wanted at least one axis")
    n = x.shape[axis]
    if n % 2:
        raise ShapeError(f"glu: x has shape {x.shape}; wanted an even size along axis {axis}")

    def half(begin: int) -> Tensor:
        low, high = [0] * x.ndim, list(x.shape)
        low[axis], high[axis] = begin, begin + n // 2
        return slice_by(x, tuple(low), tuple(high), (1,) * x.ndim)

    return half(0) * sigmoid(half(n // 2))


swish = silu
