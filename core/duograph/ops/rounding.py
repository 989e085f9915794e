"""Rounding to whole numbers, signs, and replacement of NaN.

Users and other ops call them. On every backend, halves must be rounded to the even number, as NumPy
does.
"""

from __future__ import annotations

from builtins import abs as builtin_abs

import numpy as np

from ..dtype import BOOL, FLOATING, REAL, bool_, float64
from ..errors import ArgumentError, ArgumentValueError
from ..op import op
from ..tensor import Tensor
from .arguments import number_of
from .comparison import signbit
from .creation import cast, zeros_of
from .elementwise import abs, mul, neg, true_divide
from .logic import logical_or, select
from .methods import tensor_method
from .shape_primitives import unbroadcast

__all__ = [
    "ceil", "copysign", "floor", "frac", "heaviside", "nan_to_num", "rint", "round", "trunc",
]  # fmt: skip


@op(method="floor", primitive="Floor", dtypes=BOOL + REAL, differentiable=False)
def floor(input: Tensor):
    """Return the greatest whole number that is not above the element (`mindspore.ops.floor`).

    Args:
        input: Tensor of any shape; any dtype but complex.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.floor(ms.Tensor([1.5, -1.5, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00, -2.00000000e+00,  2.00000000e+00])
    """


@floor.reference
def _(x):
    return np.floor(x) if x.dtype.kind not in "biu" else x


@floor.scalar
def _(s, x):
    return s.floor(x) if x.dtype.is_floating else x


@op(method="ceil", primitive="Ceil", dtypes=BOOL + REAL, differentiable=False)
def ceil(input: Tensor):
    """Return the smallest whole number that is not below the element (`mindspore.ops.ceil`).

    Args:
        input: Tensor of any shape; any dtype but complex.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.ceil(ms.Tensor([1.5, -1.5, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 2.00000000e+00, -1.00000000e+00,  2.00000000e+00])
    """


@ceil.reference
def _(x):
    return np.ceil(x) if x.dtype.kind not in "biu" else x


@ceil.scalar
def _(s, x):
    return s.ceil(x) if x.dtype.is_floating else x


@ceil.decompose
def _(x):
    return neg(floor(neg(x))) if x.dtype.is_floating else floor(x)


@op(method="trunc", primitive="Trunc", dtypes=BOOL + REAL, differentiable=False)
def trunc(input: Tensor):
    """Return the element without its fraction (`mindspore.ops.trunc`).

    Args:
        input: Tensor of any shape; any dtype but complex.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.trunc(ms.Tensor([1.5, -1.5, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00, -1.00000000e+00,  2.00000000e+00])
    """


@trunc.reference
def _(x):
    return np.trunc(x) if x.dtype.kind not in "biu" else x


@trunc.scalar
def _(s, x):
    return s.trunc(x) if x.dtype.is_floating else x


@trunc.decompose
def _(x):
    return select(x < 0, neg(floor(neg(x))), floor(x)) if x.dtype.is_floating else floor(x)


@op(name="round", dtypes=BOOL + REAL, differentiable=False, primitive=["Round", "Rint"])
def round_half_even(input: Tensor):
    """Return the nearest whole number; halves are rounded to the even one (`mindspore.ops.round`).

    Args:
        input: Tensor of any shape; any dtype but complex.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.round(ms.Tensor([0.5, 1.5, -1.2]))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  2.00000000e+00, -1.00000000e+00])
    """


@round_half_even.reference
def _(x):
    return np.rint(x) if x.dtype.kind not in "biu" else x


@round_half_even.scalar
def _(s, x):
    return s.round(x) if x.dtype.is_floating else x


@round_half_even.decompose
def _(x):
    if not x.dtype.is_floating:
        return floor(x)
    low = floor(x)
    past = x - low
    even = floor((low + 1) * 0.5) * 2
    return select(past < 0.5, low, select(past > 0.5, low + 1, even))


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Round elements, halves to even (`mindspore.ops.round`).

    Args:
        input: Tensor of any shape; not complex.
        decimals: places after the point to keep; negative: places before it.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.round(ms.Tensor([0.5, 1.5, 1.26]), decimals=1)
        Tensor(shape=[3], dtype=Float32, value= [ 5.00000000e-01,  1.50000000e+00,  1.29999995e+00])
    """
    if decimals == 0 or (decimals > 0 and not input.dtype.is_floating):
        return round_half_even(input)
    if builtin_abs(decimals) > 300:
        raise ArgumentValueError(
            f"round: got decimals={decimals}; wanted at most 300 places on either side"
        )
    scale = 10.0 ** builtin_abs(decimals)
    if input.dtype.is_floating:
        scaled = input * scale if decimals > 0 else input / scale
        back = round_half_even(scaled)
        return back / scale if decimals > 0 else back * scale
    return cast(round_half_even(cast(input, float64) / scale) * scale, input.dtype)


@tensor_method("round")
def _tensor_round(self: Tensor, decimals: int = 0) -> Tensor:
    """Round elements to `decimals` places after the point, halves to even; see `ops.round`."""
    return round(self, decimals=decimals)


@tensor_method("__round__")
def _tensor_dunder_round(self: Tensor, decimals: int | None = None) -> Tensor:
    """Implement Python's `round(x)` and `round(x, decimals)`: halves to even, in the same dtype."""
    return round(self, decimals=decimals or 0)


rint = round_half_even


@tensor_method("frac")
def frac(x: Tensor) -> Tensor:
    """Return the part after the point, with the sign of the element (`mindspore.ops.frac`).

    Args:
        x: Tensor of any shape; not complex.

    Returns:
        Tensor of the shape and dtype of `x`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.frac(ms.Tensor([1.5, -1.25]))
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01, -2.50000000e-01])
    """
    return x - trunc(x)


@op(method="copysign", dtypes=FLOATING, promote="float")
def copysign(x: Tensor, other: Tensor):
    """Return the magnitudes of `x` with the signs of `other` (`mindspore.ops.copysign`).

    Args:
        x: Tensor of any shape, or a number; floating; integers and bool are converted to float32.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.copysign(ms.Tensor([1.0, -2.0]), ms.Tensor([-1.0, 3.0]))
        Tensor(shape=[2], dtype=Float32, value= [-1.00000000e+00,  2.00000000e+00])
    """


copysign.reference(np.copysign)


@copysign.scalar
def _(s, x, y):
    return s.copysign(x, y)


@copysign.bprop
def _(x, y, out, dout):
    same = select(signbit(x) == signbit(y), 1.0, -1.0)
    return unbroadcast(mul(dout, cast(same, dout.dtype)), x), zeros_of(y._type)


@copysign.decompose
def _(x, y):
    size = abs(x)
    return select(logical_or(y < 0, true_divide(1, y) < 0), neg(size), size)


@op(
    primitive="Heaviside",
    method="heaviside",
    dtypes=REAL,
    promote="common",
    elementwise=True,
)
def heaviside(input: Tensor, values: Tensor):
    """Return 0 for negative elements, 1 for positive ones, and `values` at zero
    (`mindspore.ops.heaviside`).

    Args:
        input: Tensor of any shape; not complex.
        values: Tensor or number that broadcasts with `input`.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.heaviside(ms.Tensor([-1.0, 0.0, 2.0]), ms.Tensor([0.5]))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  5.00000000e-01,  1.00000000e+00])
    """
    return select(input == 0, values, select(input < 0, 0, select(input > 0, 1, input)))


@op(
    method="nan_to_num",
    dtypes=FLOATING,
    elementwise=True,
    primitive="NanToNum(nan=None, posinf=None, neginf=None)(x)",
)
def nan_to_num(input: Tensor, nan: float, posinf: float, neginf: float):
    """Replace NaN and the infinities by numbers (`mindspore.ops.nan_to_num`).

    Args:
        input: Tensor of any shape; floating; integers are returned unchanged.
        nan: number that replaces NaN; default 0.
        posinf, neginf: numbers that replace the infinities; default the greatest and least
            finite number of the dtype.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.nan_to_num(ms.Tensor([float("nan"), float("inf"), 1.0]), posinf=9.0)
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  9.00000000e+00,  1.00000000e+00])
    """
    out = select(input != input, nan, input)
    out = select(input == float("inf"), posinf, out)
    return select(input == float("-inf"), neginf, out)


@nan_to_num.normaliser
def _(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
):
    if not isinstance(input, Tensor):
        raise ArgumentError(f"nan_to_num: got {type(input).__name__}; wanted a Tensor")
    if input.dtype.is_integer or input.dtype is bool_:
        return input
    greatest = {
        "float16": 65504.0,
        "bfloat16": 3.3895313892515355e38,
        "float32": 3.4028234663852886e38,
    }
    limit = greatest.get(input.dtype.name, 1.7976931348623157e308)
    return (
        input,
        0.0 if nan is None else number_of("nan_to_num", "nan", nan),
        limit if posinf is None else number_of("nan_to_num", "posinf", posinf),
        -limit if neginf is None else number_of("nan_to_num", "neginf", neginf),
    )
