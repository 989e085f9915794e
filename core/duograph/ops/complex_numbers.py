"""Functions of complex numbers: construction, real and imaginary parts, argument.

Users and gradient rules call them. The module also decomposes elementwise functions of complex
operands into functions of real ones, for backends without complex kernels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..dtype import BOOL, NUMERIC, bool_, complex64, complex128, float32, float64
from ..errors import DTypeError
from ..op import Op, op
from ..tensor import Tensor
from ..types import elementwise_type
from .comparison import isfinite, isinf
from .creation import cast, zeros_of
from .elementwise import abs, maximum, mul, neg, sign, true_divide
from .exponential import exp, expm1, log, log1p
from .hyperbolic import asinh, atanh, cosh, sinh, tanh
from .logic import logical_and, logical_or, select
from .methods import tensor_method
from .pointwise import conj, real_dtype
from .powers import hypot, sqrt
from .primitive import primitive
from .shape_primitives import unbroadcast
from .trigonometry import asin, atan, atan2, cos, signed, sin, tan

__all__ = ["angle", "complex", "conj", "imag", "real"]


# Constants that Python's arithmetic would not make, because inf * 1j has the real part NaN.
_INFINITY = np.complex128(np.inf)


def _j(part: float) -> np.complex128:
    """Return the complex number ``0 + part * i``.

    Python's ``part * 1j`` has a real part of NaN if `part` is infinite.
    """
    out = np.zeros((), np.complex128)
    out.imag = part
    return np.complex128(out)


def _same(x: Tensor) -> Tensor:
    """Return a copy of a real tensor, computed by an op that every backend implements."""
    return logical_or(x, x) if x.dtype is bool_ else mul(x, 1)


@op(method="real", primitive="Real", dtypes=BOOL + NUMERIC, result=real_dtype)
def real(input: Tensor):
    """Return the real parts (`mindspore.ops.real`).

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of the shape of `input`; real if `input` is complex.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.real(ms.Tensor([1 + 2j, 3 - 4j]))
        Tensor(shape=[2], dtype=Float64, value= [ 1.00000000e+00,  3.00000000e+00])
    """


@real.reference
def _(x):
    return x.real


@real.scalar
def _(s, x):
    return s.real(x)


@real.decompose
def _(x):
    return cast(x, real_dtype(x.dtype)) if x.dtype.is_complex else _same(x)


@real.bprop
def _(x, out, dout):
    return (complex(dout, zeros_of(dout._type)) if x.dtype.is_complex else dout,)


@op(method="imag", primitive="Imag", dtypes=BOOL + NUMERIC, result=real_dtype)
def imag(input: Tensor):
    """Return the imaginary parts; zeros for a real tensor (`mindspore.ops.imag`).

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of the shape of `input`; real if `input` is complex.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.imag(ms.Tensor([1 + 2j, 3 - 4j]))
        Tensor(shape=[2], dtype=Float64, value= [ 2.00000000e+00, -4.00000000e+00])
    """


imag.reference(np.imag)


@imag.scalar
def _(s, x):
    return s.imag(x)


@imag.decompose
def _(x):
    if not x.dtype.is_complex:
        return zeros_of(x._type)
    # NaN where the real part is not finite, except beside 0; hence a backend with complex dtypes
    # must have a kernel for `imag`
    on_axis = logical_or(x == _INFINITY, x == -_INFINITY)
    return real(mul(select(on_axis, 0j, x), -1j))


@imag.bprop
def _(x, out, dout):
    return (complex(zeros_of(dout._type), dout) if x.dtype.is_complex else zeros_of(x._type),)


@op(name="complex", primitive="Complex", dtypes=(float32, float64), promote="common")
def complex(real: Tensor, imag: Tensor):
    """Make complex numbers from their real and imaginary parts (`mindspore.ops.Complex`).

    Args:
        real, imag: Tensors of float32 or float64 whose shapes broadcast.

    Returns:
        Tensor of complex64 or complex128, of the broadcast shape.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.Complex()(ms.Tensor([1.0]), ms.Tensor([2.0]))
        Tensor(shape=[1], dtype=Complex64, value= [1+2j])
    """


@complex.infer
def _(x, y):
    return elementwise_type("complex", x, y, dtype=complex64 if x.dtype is float32 else complex128)


@complex.reference
def _(x, y):
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype, np.complex64))
    out.real, out.imag = x, y
    return out


@complex.scalar
def _(s, x, y):
    return s.complex(x, y)


@complex.decompose
def _(x, y):
    wide = complex64 if x.dtype is float32 else complex128
    high = y == float("inf")
    low = y == float("-inf")
    other = y != y
    finite = select(logical_or(logical_or(high, low), other), 0, y)
    out = mul(cast(finite, wide), 1j)
    for at, value in ((high, _j(np.inf)), (low, _j(-np.inf)), (other, _j(np.nan))):
        out = select(at, value, out)
    return cast(x, wide) + out


@complex.bprop
def _(x, y, out, dout):
    return unbroadcast(real(dout), x), unbroadcast(imag(dout), y)


@primitive("Angle()(input)")
@tensor_method("angle")
def angle(input: Tensor) -> Tensor:
    """Return the angle of complex numbers in radians; of real numbers, 0 or pi
    (`mindspore.ops.angle`).

    Args:
        input: Tensor of any shape; floating or complex.

    Returns:
        Tensor of the shape of `input`, real.

    Raises:
        TypeError: bool or integer elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.angle(ms.Tensor([1j, -1 + 0j]))
        Tensor(shape=[2], dtype=Float64, value= [ 1.57079633e+00,  3.14159265e+00])
    """
    if input.dtype is bool_ or input.dtype.is_integer:
        raise DTypeError(
            f"angle: input has dtype {input.dtype.name}; wanted a floating or complex one"
        )
    if input.dtype.is_complex:
        return atan2(imag(input), real(input))
    return atan2(0.0, input)


@conj.decompose
def _(x):
    return complex(real(x), neg(imag(x))) if x.dtype.is_complex else _same(x)


# ---- decompositions of complex operands ----------------------------------------------------------


def _of_complex(of: Op) -> Callable[[Callable[[Tensor], Tensor]], Callable[[Tensor], Tensor]]:
    """Return a decorator that gives op `of` a separate decomposition for complex operands.

    The decorated function computes the op from other ops. The op's own decomposition remains in use
    for real operands.
    """
    of_real = of.decompose_rule

    def attach(rule: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        assert of_real is not None
        of.decompose(lambda x: rule(x) if x.dtype.is_complex else of_real(x))
        return rule

    return attach


@_of_complex(neg)
def _(x):
    return -0j - x  # a multiplication by -1 would make inf * 0


@_of_complex(abs)
def _(x):
    return hypot(real(x), imag(x))


@_of_complex(sign)
def _(x):
    size = abs(x)
    unit = true_divide(x, cast(select(size == 0, 1, size), x.dtype))
    return select(size == 0, 0, unit)


@_of_complex(isfinite)
def _(x):
    return logical_and(isfinite(real(x)), isfinite(imag(x)))


@_of_complex(isinf)
def _(x):
    return logical_or(isinf(real(x)), isinf(imag(x)))


@_of_complex(expm1)
def _(z):
    x, y = real(z), imag(z)
    half = sin(y * 0.5)
    return complex(expm1(x) * cos(y) - 2 * half * half, select(y == 0, y, exp(x) * sin(y)))


@_of_complex(log1p)
def _(z):  # log|1 + z| = log1p(x (2 + x) + y^2) / 2, which loses no digit of a small z
    x, y = real(z), imag(z)
    small = abs(z) < 0.5
    u, v = select(small, x, 0), select(small, y, 0)
    size = 0.5 * log1p(u * (2 + u) + v * v)
    return complex(select(small, size, log(hypot(1 + x, y))), atan2(y, 1 + x))


@_of_complex(sinh)
def _(z):
    x, y = real(z), imag(z)
    return complex(sinh(x) * cos(y), select(y == 0, y, cosh(x) * sin(y)))


@_of_complex(cosh)
def _(z):
    x, y = real(z), imag(z)
    flat = logical_or(x == 0, y == 0)
    return complex(cosh(x) * cos(y), select(flat, 0, sinh(x) * sin(y)))


@_of_complex(cos)
def _(z):
    x, y = real(z), imag(z)
    flat = logical_or(x == 0, y == 0)
    return complex(cos(x) * cosh(y), select(flat, 0, neg(sin(x) * sinh(y))))


def _tanh_parts(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the real and imaginary part of tanh(x + iy), without overflow for large x."""
    a = abs(x)
    e = exp(-2 * a)
    m = neg(expm1(-2 * a))
    c = select(e == 0, 1, cos(y))
    below = m * m + 4 * e * c * c
    across = select(e == 0, 0, true_divide(4 * e * c * sin(y), below))
    return signed(x, true_divide(m * (1 + e), below)), across


@_of_complex(tanh)
def _(z):
    return complex(*_tanh_parts(real(z), imag(z)))


@_of_complex(tan)
def _(z):  # the parts of tanh(y + ix), exchanged
    y, x = _tanh_parts(imag(z), real(z))
    return complex(x, y)


def _with_sign(x: Tensor, size: Tensor) -> Tensor:
    """Return the non-negative `size` with the sign of `x`, also of -0.0.

    The sign of a zero tells on which side of a branch cut a complex argument is.
    """
    return select(logical_or(x < 0, true_divide(1, x) < 0), neg(size), size)


def _atan_parts(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the real and imaginary part of atan(x + iy), for real tensors x and y."""
    a, b = abs(x), abs(y)
    size = maximum(a, b)
    large = size > 1e9  # atan(z) = +-pi/2 - 1/z up to 1/z^3; squares of larger parts may overflow
    nan = x + y
    u, v = select(large, 0, a), select(large, 0, b)
    turn = 0.5 * atan2(2 * u, (1 - v) * (1 + v) - u * u)
    across = 0.25 * log1p(true_divide(4 * v, u * u + (1 - v) * (1 - v)))
    bound = select(size == float("inf"), 1, size)
    p, q = true_divide(a, bound), true_divide(b, bound)
    square = bound * (p * p + q * q)
    far = select(size == float("inf"), 0, true_divide(q, square))
    left = select(size == float("inf"), 0, true_divide(p, square))
    turn = select(large, np.pi / 2 - left, turn)
    across = select(large, far, across)
    defined = nan == nan
    return (
        select(defined, _with_sign(x, turn), nan),
        select(defined, _with_sign(y, across), nan),
    )


@_of_complex(atan)
def _(z):
    return complex(*_atan_parts(real(z), imag(z)))


@_of_complex(atanh)
def _(z):  # the parts of atan(y + ix), exchanged
    y, x = _atan_parts(imag(z), real(z))
    return complex(x, y)


def _asinh_parts(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the real and imaginary part of asinh(x + iy), for real tensors x and y.

    The parts are computed for |x| and |y|, where no cancellation occurs and no square root is taken
    on its branch cut; then the signs of x and y are put on them.
    """
    w = complex(abs(x), abs(y))
    large = abs(w) > 1e9
    near = select(large, 1, w)
    near = near + true_divide(near * near, 1 + sqrt(near * near + 1))
    out = select(large, log(w) + 0.6931471805599453, log1p(near))
    return _with_sign(x, real(out)), _with_sign(y, imag(out))


@_of_complex(asinh)
def _(z):
    return complex(*_asinh_parts(real(z), imag(z)))


@_of_complex(asin)
def _(z):  # the parts of asinh(y + ix), exchanged
    x, y = real(z), imag(z)
    across, turn = _asinh_parts(abs(y), x)
    return complex(turn, _with_sign(y, across))
