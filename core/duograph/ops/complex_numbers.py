"""Functions of complex numbers: construction, real and imaginary parts, argument.

Users and gradient rules call them.
"""

from __future__ import annotations

import numpy as np

from ..dtype import BOOL, NUMERIC, bool_, complex64, complex128, float32, float64
from ..errors import DTypeError
from ..op import op
from ..tensor import Tensor
from ..types import elementwise_type
from .creation import cast, zeros_of
from .elementwise import mul, neg
from .logic import logical_or
from .methods import tensor_method
from .pointwise import conj, real_dtype
from .primitive import primitive
from .shape_primitives import unbroadcast
from .trigonometry import atan2

__all__ = ["angle", "complex", "conj", "imag", "real"]


def _same(x: Tensor) -> Tensor:
    """Return a copy of a real tensor, computed by an op that every backend implements."""
    return logical_or(x, x) if x.dtype is bool_ else mul(x, 1)


@op(method="real", primitive="Real", dtypes=BOOL + NUMERIC, result=real_dtype)
def real(input: Tensor):
    """Real parts (`mindspore.ops.real`).

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
    """Imaginary parts; zeros of a real tensor (`mindspore.ops.imag`).

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
    return real(mul(x, -1j)) if x.dtype.is_complex else zeros_of(x._type)


@imag.bprop
def _(x, out, dout):
    return (complex(zeros_of(dout._type), dout) if x.dtype.is_complex else zeros_of(x._type),)


@op(name="complex", primitive="Complex", dtypes=(float32, float64), promote="common")
def complex(real: Tensor, imag: Tensor):
    """Complex numbers from their real and imaginary parts (`mindspore.ops.Complex`).

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
    return cast(x, wide) + mul(cast(y, wide), 1j)


@complex.bprop
def _(x, y, out, dout):
    return unbroadcast(real(dout), x), unbroadcast(imag(dout), y)


@primitive("Angle()(input)")
@tensor_method("angle")
def angle(input: Tensor) -> Tensor:
    """The argument of complex numbers, in radians; of real ones 0 or pi (`mindspore.ops.angle`).

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
