"""NumPy's trigonometric and hyperbolic functions, and conversions of angles.

Users call them as `duograph.numpy.NAME`. Each is a row of a table: the op of `duograph.ops` that
computes it, a summary, and an example. Nothing may be computed here that an op computes.
"""

from __future__ import annotations

from .. import ops as _ops
from ..dtype import DTypeLike
from ..tensor import Tensor
from .function_rows import binary, floating, unary
from .operands import TensorLike, tensor_of, with_dtype

# fmt: off
__all__ = [
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cos", "cosh",
    "deg2rad", "rad2deg", "radians", "sin", "sinh", "tan", "tanh",
]
# fmt: on

sin = unary(
    "sin",
    _ops.sin,
    "Return the sine of each angle in radians.",
    "[0.0, 1.0]",
    "[0.       0.841471]",
)
cos = unary(
    "cos",
    _ops.cos,
    "Return the cosine of each angle in radians.",
    "[0.0, 1.0]",
    "[1.        0.5403023]",
)
tan = unary(
    "tan",
    _ops.tan,
    "Return the tangent of each angle in radians.",
    "[0.0, 1.0]",
    "[0.        1.5574077]",
)
arcsin = unary(
    "arcsin",
    _ops.asin,
    "Return the angle in radians whose sine is each element.",
    "[0.0, 1.0]",
    "[0.        1.5707964]",
)
arctan = unary(
    "arctan",
    _ops.atan,
    "Return the angle in radians whose tangent is each element.",
    "[0.0, 1.0]",
    "[0.        0.7853982]",
)
arctan2 = binary(
    "arctan2",
    floating(_ops.atan2),
    "Return the angle in radians from the x axis to the point (x2, x1).",
    "[1.0, -1.0], 1.0",
    "[ 0.7853982 -0.7853982]",
)
sinh = unary(
    "sinh",
    _ops.sinh,
    "Return the hyperbolic sine of each element.",
    "[0.0, 1.0]",
    "[0.        1.1752012]",
)
cosh = unary(
    "cosh",
    _ops.cosh,
    "Return the hyperbolic cosine of each element.",
    "[0.0, 1.0]",
    "[1.        1.5430807]",
)
tanh = unary(
    "tanh",
    _ops.tanh,
    "Return the hyperbolic tangent of each element.",
    "[0.0, 1.0]",
    "[0.        0.7615941]",
)
arcsinh = unary(
    "arcsinh",
    _ops.asinh,
    "Return the inverse hyperbolic sine of each element.",
    "[0.0, 1.0]",
    "[0.        0.8813736]",
)
arccosh = unary(
    "arccosh",
    _ops.acosh,
    "Return the inverse hyperbolic cosine of each element.",
    "[1.0, 2.0]",
    "[0.       1.316958]",
)
arctanh = unary(
    "arctanh",
    _ops.atanh,
    "Return the inverse hyperbolic tangent of each element.",
    "[0.0, 0.5]",
    "[0.         0.54930615]",
)
deg2rad = unary(
    "deg2rad",
    floating(_ops.deg2rad),
    "Convert angles from degrees to radians.",
    "[0.0, 180.0]",
    "[0.        3.1415927]",
)
radians = unary(
    "radians",
    floating(_ops.deg2rad),
    "Convert angles from degrees to radians.",
    "[0.0, 180.0]",
    "[0.        3.1415927]",
)
rad2deg = unary(
    "rad2deg",
    floating(_ops.rad2deg),
    "Convert angles from radians to degrees.",
    "[0.0, 1.0]",
    "[ 0.      57.29578]",
)


def arccos(input: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return the angle in radians whose cosine is each element.

    Args:
        input: Tensor, number, (nested) sequence or NumPy array.
        dtype: element type of the result; None leaves it as computed.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.arccos([1.0, 0.0]))
        [0.        1.5707964]
    """
    return with_dtype(_ops.acos(tensor_of(input)), dtype)
