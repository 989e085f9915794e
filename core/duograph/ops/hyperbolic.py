"""Hyperbolic functions and their inverses.

Users, activations and recurrent layers call them. Each has a scalar rule, which calls the function
of the C or GPU library, and a decomposition for backends without it. Decompositions must stay
accurate near 0 and for large arguments.
"""

from __future__ import annotations

import numpy as np

from ..dtype import INEXACT
from ..op import op
from ..tensor import Tensor
from .elementwise import abs, mul, neg, square, true_divide
from .exponential import exp, expm1, log, log1p
from .logic import select
from .pointwise import conjugate
from .powers import rsqrt, sqrt
from .trigonometry import signed

__all__ = [
    "acosh", "arccosh", "arcsinh", "arctanh", "asinh", "atanh", "cosh", "sinh", "tanh", "tanh_grad",
]  # fmt: skip


@op(method="sinh", primitive="Sinh", dtypes=INEXACT, promote="float")
def sinh(input: Tensor):
    """Return the hyperbolic sine (`mindspore.ops.sinh`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.sinh(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.17520118e+00])
    """


sinh.reference(np.sinh)


@sinh.scalar
def _(s, x):
    return s.sinh(x)


@sinh.bprop
def _(x, out, dout):
    return (mul(dout, cosh(conjugate(x))),)


@sinh.decompose
def _(x):
    a = abs(x)
    t = expm1(select(a > 80, 80, a))
    near = (t + true_divide(t, t + 1)) * 0.5
    far = exp(a - 0.6931471805599453)
    return signed(x, select(a > 80, far, near))


@op(method="cosh", primitive="Cosh", dtypes=INEXACT, promote="float")
def cosh(input: Tensor):
    """Return the hyperbolic cosine (`mindspore.ops.cosh`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.cosh(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  1.54308069e+00])
    """


cosh.reference(np.cosh)


@cosh.scalar
def _(s, x):
    return s.cosh(x)


@cosh.bprop
def _(x, out, dout):
    return (mul(dout, sinh(conjugate(x))),)


@cosh.decompose
def _(x):
    half = exp(abs(x) - 0.6931471805599453)
    return half + true_divide(0.25, half)


@op(method="tanh", primitive="Tanh", dtypes=INEXACT, promote="float")
def tanh(input: Tensor):
    """Return the hyperbolic tangent (`mindspore.ops.tanh`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.tanh(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  7.61594176e-01])
    """


tanh.reference(np.tanh)


@tanh.scalar
def _(s, x):
    return s.tanh(x)


@tanh.bprop
def _(x, out, dout):
    return (tanh_grad(dout, out),)


@tanh.decompose
def _(x):
    a = abs(x)
    t = expm1(-2 * a)
    return signed(x, neg(true_divide(t, t + 2)))


@op(name="tanh_grad", dtypes=INEXACT, promote="common", elementwise=True)
def tanh_grad(dout: Tensor, out: Tensor):
    """Composite op: gradient of `tanh` with respect to its input: ``dout * (1 - out**2)``.

    `out` is the result of `tanh`, `dout` the cotangent of that result.
    """
    return dout * (1 - square(conjugate(out)))


@op(method=["asinh", "arcsinh"], primitive="Asinh", dtypes=INEXACT, promote="float")
def asinh(input: Tensor):
    """Return the inverse hyperbolic sine (`mindspore.ops.asinh`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.asinh(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  8.81373584e-01])
    """


asinh.reference(np.arcsinh)


@asinh.scalar
def _(s, x):
    return s.asinh(x)


@asinh.bprop
def _(x, out, dout):
    return (mul(dout, rsqrt(square(conjugate(x)) + 1)),)


@asinh.decompose
def _(x):
    a = abs(x)
    large = a > 1e9
    b = select(large, 1, a)
    near = log1p(b + true_divide(b * b, 1 + sqrt(b * b + 1)))
    return signed(x, select(large, log(a) + 0.6931471805599453, near))


@op(method=["acosh", "arccosh"], primitive="Acosh", dtypes=INEXACT, promote="float")
def acosh(input: Tensor):
    """Return the inverse hyperbolic cosine; NaN below 1 (`mindspore.ops.acosh`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.acosh(ms.Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.31695795e+00])
    """


acosh.reference(np.arccosh)


@acosh.scalar
def _(s, x):
    return s.acosh(x)


@acosh.bprop
def _(x, out, dout):
    return (true_divide(dout, mul(sqrt(conjugate(x) - 1), sqrt(conjugate(x) + 1))),)


@acosh.decompose
def _(x):
    if x.dtype.is_complex:
        return log(x + sqrt(x - 1) * sqrt(x + 1))
    large = x > 1e9
    t = select(large, 1, x) - 1
    near = log1p(t + sqrt(t * (t + 2)))
    out = select(large, log(x) + 0.6931471805599453, near)
    return select(x < 1, float("nan"), out)


@op(method=["atanh", "arctanh"], primitive="Atanh", dtypes=INEXACT, promote="float")
def atanh(input: Tensor):
    """Return the inverse hyperbolic tangent; NaN outside [-1, 1] (`mindspore.ops.atanh`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.atanh(ms.Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  5.49306154e-01])
    """


atanh.reference(np.arctanh)


@atanh.scalar
def _(s, x):
    return s.atanh(x)


@atanh.bprop
def _(x, out, dout):
    return (true_divide(dout, 1 - square(conjugate(x))),)


@atanh.decompose
def _(x):
    a = abs(x)
    return signed(x, log1p(true_divide(2 * a, 1 - a)) * 0.5)


arccosh, arcsinh, arctanh = acosh, asinh, atanh
