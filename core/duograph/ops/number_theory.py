"""Elementwise functions of integers and bits, and neighbours of floats: gcd, lcm, nextafter, eps.

Users call them. The host computes the primitive ops by NumPy. Functions of integers have no
gradient.
"""

from __future__ import annotations

import numpy as np

from ..dtype import FLOATING, INTEGER, complex64, complex128, uint8
from ..errors import ArgumentError, DTypeError
from ..op import op
from ..op_signature import Number
from ..tensor import Tensor
from ..types import TensorType, elementwise_type
from .complex_numbers import complex as complex_of
from .complex_numbers import imag, real
from .creation import cast, fill
from .movement import concat_by
from .primitive import primitive
from .shape_primitives import reshape_to
from .trigonometry import cos, sin

__all__ = ["eps", "gcd", "lcm", "nextafter", "polar", "population_count", "view_as_real"]


@op(
    method="gcd", primitive="Gcd", dtypes=INTEGER, promote="common", differentiable=False,
    host_fallback=True,
)  # fmt: skip
def gcd(input: Tensor, other: Tensor):
    """Return the greatest common divisor, element by element (`mindspore.ops.gcd`).

    Args:
        input, other: integer Tensors whose shapes broadcast.

    Returns:
        Tensor of the broadcast shape and the common dtype; not negative, 0 for two zeros.

    Raises:
        TypeError: elements that are not integers.
        ValueError: shapes that do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.gcd(ms.Tensor([7, 8, 9]), ms.Tensor([14, 6, 12])))
        [7 2 3]
    """


@op(
    method="lcm", primitive="Lcm", dtypes=INTEGER, promote="common", differentiable=False,
    host_fallback=True,
)  # fmt: skip
def lcm(input: Tensor, other: Tensor):
    """Return the least common multiple, element by element (`mindspore.ops.lcm`).

    Args:
        input, other: integer Tensors whose shapes broadcast.

    Returns:
        Tensor of the broadcast shape and the common dtype; not negative, unless it overflows.

    Raises:
        TypeError: elements that are not integers.
        ValueError: shapes that do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.lcm(ms.Tensor([7, 8, 9]), ms.Tensor([14, 6, 12])))
        [14 24 36]
    """


@op(
    method="nextafter", primitive="NextAfter()(x1, x2)", dtypes=FLOATING, promote="common",
    host_fallback=True,
)  # fmt: skip
def nextafter(input: Tensor, other: Tensor):
    """Return the next number of the dtype after `input` in the direction of `other`
    (`mindspore.ops.nextafter`).

    Args:
        input, other: floating Tensors whose shapes broadcast.

    Returns:
        Tensor of the broadcast shape and the common dtype. It has no gradient.

    Raises:
        TypeError: elements that are not floating.
        ValueError: shapes that do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.nextafter(ms.Tensor([1.0]), ms.Tensor([2.0]))
        >>> print(x - 1)
        [1.1920929e-07]
    """


for _op, _name in ((gcd, "gcd"), (lcm, "lcm"), (nextafter, "nextafter")):
    _op.infer(lambda x, y, _name=_name: elementwise_type(_name, x, y))
    _op.reference(getattr(np, _name))


@op(
    primitive="PopulationCount()(x)", dtypes=INTEGER, differentiable=False, host_fallback=True,
)  # fmt: skip
def population_count(input_x: Tensor):
    """Return the number of 1 bits of each element (`mindspore.ops.population_count`).

    Args:
        input_x: integer Tensor of any shape.

    Returns:
        uint8 Tensor of the shape of `input_x`.

    Raises:
        TypeError: elements that are not integers.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.population_count(ms.Tensor([0, 1, 3], ms.int16)))
        [0 1 2]
    """


@population_count.infer
def _(x):
    return TensorType.of(x.shape, uint8)


@population_count.reference
def _(x):
    raw = np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)
    return np.unpackbits(raw, axis=-1).sum(-1).astype(np.uint8)


@primitive("Eps()(x)")
def eps(x: Tensor) -> Tensor:
    """Return the distance from 1 to the next number of the dtype, in the shape of `x`
    (`mindspore.ops.eps`).

    Raises:
        TypeError: elements that are not floating.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.eps(ms.Tensor([4.0, 1.0])))
        [1.1920929e-07 1.1920929e-07]
    """
    if not x.dtype.is_floating:
        raise DTypeError(f"eps: got {x.dtype.name}; wanted a floating dtype")
    spacing = 2.0**-7 if x.dtype.name == "bfloat16" else float(np.finfo(x.dtype.np).eps)
    return fill(x.shape, spacing, x.dtype)


@primitive("Polar()(abs, angle)")
def polar(abs: Tensor | Number, angle: Tensor | Number) -> Tensor:
    """Make complex numbers from their absolute value and argument (`mindspore.ops.polar`).

    Args:
        abs, angle: Tensors of float32 or float64, or numbers, whose shapes broadcast.

    Returns:
        complex64 or complex128 Tensor of the broadcast shape.

    Raises:
        TypeError: another dtype, or two numbers.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.polar(ms.Tensor([1.0, 2.0]), ms.Tensor([0.0, 0.0])))
        [1.+0.j 2.+0.j]
    """
    if not isinstance(abs, Tensor) and not isinstance(angle, Tensor):
        raise ArgumentError(f"polar: got {abs!r} and {angle!r}; wanted at least one Tensor")
    like = abs.dtype if isinstance(abs, Tensor) else angle.dtype  # type: ignore[union-attr]
    turn = angle if isinstance(angle, Tensor) else cast(Tensor(np.array(float(angle))), like)  # type: ignore[arg-type]
    return complex_of(abs * cos(turn), abs * sin(turn))


def view_as_real(input: Tensor) -> Tensor:
    """Return the real and imaginary parts on a new last axis of size 2
    (`mindspore.ops.view_as_real`).

    Args:
        input: complex Tensor of any shape.

    Returns:
        float32 or float64 Tensor (..., 2).

    Raises:
        TypeError: elements that are not complex.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.view_as_real(ms.Tensor([1 + 2j, 3 - 4j])))
        [[ 1.  2.]
         [ 3. -4.]]
    """
    if input.dtype not in (complex64, complex128):
        raise DTypeError(f"view_as_real: got {input.dtype.name}; wanted a complex dtype")
    parts = [reshape_to(part, (*input.shape, 1)) for part in (real(input), imag(input))]
    return concat_by(parts, input.ndim)
