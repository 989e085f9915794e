"""Rounding, signs, and division with a whole quotient."""

from __future__ import annotations

from builtins import abs as builtin_abs

import numpy as np

from ..dtype import BOOL, FLOATING, REAL, bool_, float32, float64
from ..errors import ArgumentError, ArgumentValueError
from ..op import op
from ..tensor import Tensor
from .comparison import signbit
from .creation import cast, zeros_of
from .elementwise import abs, mul, neg, true_divide
from .logic import logical_and, logical_or, select
from .methods import tensor_method
from .shape_primitives import unbroadcast

__all__ = [
    "ceil",
    "copysign",
    "div",
    "divide",
    "floor",
    "floor_div",
    "floor_divide",
    "floor_mod",
    "fmod",
    "frac",
    "heaviside",
    "mod",
    "nan_to_num",
    "remainder",
    "rint",
    "round",
    "trunc",
    "truncate_div",
    "truncate_mod",
]


@op(method="floor", primitive="Floor", dtypes=BOOL + REAL, differentiable=False)
def floor(input: Tensor):
    """The greatest whole number not above (`mindspore.ops.floor`).

    Args:
        input: Tensor of any shape; any but complex.

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
    """The smallest whole number not below (`mindspore.ops.ceil`).

    Args:
        input: Tensor of any shape; any but complex.

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
    """The whole part (`mindspore.ops.trunc`).

    Args:
        input: Tensor of any shape; any but complex.

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
    """The nearest whole number; halves go to the even one (`mindspore.ops.round`).

    Args:
        input: Tensor of any shape; any but complex.

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
    """Elements rounded, halves to even (`mindspore.ops.round`).

    Args:
        input: Tensor of any shape; not complex.
        decimals: places after the point to keep; negative: places before it.

    Returns:
        Tensor of the type of `input`.

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
    """Elements rounded, halves to even; see `ops.round`."""
    return round(self, decimals=decimals)


@tensor_method("__round__")
def _tensor_dunder_round(self: Tensor, decimals: int | None = None) -> Tensor:
    """`round(x)` and `round(x, decimals)` of Python: halves to even, the dtype stays."""
    return round(self, decimals=decimals or 0)


rint = round_half_even


@tensor_method("frac")
def frac(input: Tensor) -> Tensor:
    """The part after the point, with the sign of the element (`mindspore.ops.frac`).

    Args:
        input: Tensor of any shape; not complex.

    Returns:
        Tensor of the type of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.frac(ms.Tensor([1.5, -1.25]))
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01, -2.50000000e-01])
    """
    return input - trunc(input)


def _whole_quotient(x: Tensor, y: Tensor) -> Tensor:
    """Decomposition of integer division towards zero: quotients by float32, corrected until they
    are exact.
    """
    if x.dtype is bool_:
        return logical_and(x, y)
    zero = y == 0
    d = select(zero, 1, y)
    rounds = 3 if x.dtype.itemsize <= 4 else 5
    if x.dtype.kind == "u":  # estimates from below, so that nothing becomes negative
        q, rest = x * 0, x
        for _ in range(rounds):
            below = true_divide(cast(rest, float32), cast(d, float32)) * (1 - 2.0**-21)
            q = q + cast(below, x.dtype)
            rest = x - q * d
        q = select(rest >= d, q + 1, q)
    else:
        q, rest = x * 0, x
        for _ in range(rounds):
            q = q + cast(true_divide(cast(rest, float32), cast(d, float32)), x.dtype)
            rest = x - q * d
        # the remainder must have the sign of x and be smaller than d; minus magnitudes do not
        # overflow
        one = cast(select((x < 0) == (d < 0), 1, -1), x.dtype)
        wrong_side = logical_and(rest != 0, (rest < 0) != (x < 0))
        small = select(rest > 0, neg(rest), rest) > select(d > 0, neg(d), d)
        q = select(wrong_side, q - one, select(small, q, q + one))
    return select(zero, 0, q)


@op(
    method="floor_divide", operators=["__floordiv__"], reflected=["__rfloordiv__"],
    primitive="FloorDiv", dtypes=BOOL + REAL, promote="common", differentiable=False,
)  # fmt: skip
def floor_divide(input: Tensor, other: Tensor):
    """Quotient rounded down; integers divided by 0 give 0 (`mindspore.ops.floor_divide`).

    Args:
        input: Tensor of any shape, or a number; any but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.floor_divide(ms.Tensor([7.0, -7.0]), ms.Tensor([2.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00, -4.00000000e+00])
    """


@floor_divide.reference
def _(x, y):
    if x.dtype.kind == "b":
        return x & y
    return np.floor_divide(x, y)


@floor_divide.scalar
def _(s, x, y):
    return x & y if x.dtype is bool_ else s.floor_divide(x, y)


@floor_divide.decompose
def _(x, y):
    if x.dtype.is_floating:
        rest = fmod(x, y)
        q = true_divide(x - rest, y)
        q = select(logical_and(rest != 0, (rest < 0) != (y < 0)), q - 1, q)
        return select(y == 0, true_divide(x, y), floor(q + 0.5))
    q = _whole_quotient(x, y)
    if x.dtype.kind != "i":
        return q
    return select(logical_and(x - q * y != 0, logical_and(y != 0, (x < 0) != (y < 0))), q - 1, q)


@op(
    method="remainder", operators=["__mod__"], reflected=["__rmod__"], primitive="FloorMod",
    dtypes=BOOL + REAL, promote="common",
)  # fmt: skip
def remainder(input: Tensor, other: Tensor):
    """Remainder with the sign of the divisor; integers modulo 0 give 0 (`mindspore.ops.remainder`).

    Args:
        input: Tensor of any shape, or a number; any but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.remainder(ms.Tensor([7.0, -7.0]), ms.Tensor([2.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  1.00000000e+00])
    """


@remainder.reference
def _(x, y):
    if x.dtype.kind == "b":
        return np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
    return np.remainder(x, y)


@remainder.scalar
def _(s, x, y):
    return s.const(False, bool_) if x.dtype is bool_ else s.remainder(x, y)


@remainder.bprop
def _(x, y, out, dout):
    return unbroadcast(dout, x), unbroadcast(neg(mul(dout, floor_divide(x, y))), y)


@remainder.decompose
def _(x, y):
    if x.dtype is bool_:
        return logical_and(logical_and(x, y), x != x)
    if x.dtype.is_floating:
        rest = fmod(x, y)
        return select(logical_and(rest != 0, (rest < 0) != (y < 0)), rest + y, rest)
    return select(y == 0, 0, x - floor_divide(x, y) * y)


@op(primitive="TruncateDiv", dtypes=BOOL + REAL, promote="common", differentiable=False)
def truncate_div(input: Tensor, other: Tensor):
    """Quotient rounded towards zero; integers divided by 0 give 0 (`mindspore.ops.TruncateDiv`).

    Args:
        input: Tensor of any shape, or a number; any but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.truncate_div(ms.Tensor([7.0, -7.0]), ms.Tensor([2.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00, -3.00000000e+00])
    """


@truncate_div.reference
def _(x, y):
    if x.dtype.kind == "b":
        return x & y
    if x.dtype.kind in "iu":
        q = np.floor_divide(x, y)
        return np.where((np.remainder(x, y) != 0) & ((x < 0) != (y < 0)), q + 1, q).astype(x.dtype)
    if x.dtype.itemsize == 2:  # a quotient rounded to 16 bits may already be the next whole number
        return np.trunc(np.true_divide(x.astype(np.float32), y.astype(np.float32))).astype(x.dtype)
    return np.trunc(np.true_divide(x, y))


@truncate_div.scalar
def _(s, x, y):
    if x.dtype is bool_:
        return x & y
    return s.trunc_divide(x, y) if x.dtype.is_integer else s.trunc(x / y)


@truncate_div.decompose
def _(x, y):
    return trunc(true_divide(x, y)) if x.dtype.is_floating else _whole_quotient(x, y)


@op(method="fmod", dtypes=BOOL + REAL, promote="common", primitive=["Mod", "TruncateMod"])
def fmod(input: Tensor, other: Tensor):
    """Remainder with the sign of `input`; integers modulo 0 give 0 (`mindspore.ops.fmod`).

    Args:
        input: Tensor of any shape, or a number; any but complex.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fmod(ms.Tensor([7.0, -7.0]), ms.Tensor([2.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00, -1.00000000e+00])
    """


@fmod.reference
def _(x, y):
    if x.dtype.kind == "b":
        return np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
    return np.fmod(x, y)


@fmod.scalar
def _(s, x, y):
    return s.const(False, bool_) if x.dtype is bool_ else s.fmod(x, y)


@fmod.bprop
def _(x, y, out, dout):
    return unbroadcast(dout, x), unbroadcast(neg(mul(dout, truncate_div(x, y))), y)


@fmod.decompose
def _(x, y):
    if x.dtype is bool_:
        return logical_and(logical_and(x, y), x != x)
    rest = x - truncate_div(x, y) * y
    if not x.dtype.is_floating:
        return select(y == 0, 0, rest)
    unchanged = logical_and(abs(y) == float("inf"), abs(x) < float("inf"))
    return select(unchanged, x, rest)


floor_div, floor_mod, mod, truncate_mod = floor_divide, remainder, remainder, fmod


@op(method="copysign", dtypes=FLOATING, promote="float")
def copysign(x: Tensor, other: Tensor):
    """Magnitudes of `x` with the signs of `other` (`mindspore.ops.copysign`).

    Args:
        x: Tensor of any shape, or a number; floating; integers and bool are taken as float32.
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
    differentiable=False,
    elementwise=True,
)
def heaviside(input: Tensor, values: Tensor):
    """The step function: 0 below zero, 1 above, `values` at zero (`mindspore.ops.heaviside`).

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
    """Numbers in place of NaN and the infinities (`mindspore.ops.nan_to_num`).

    Args:
        input: Tensor of any shape; floating (integers have nothing to replace).
        nan: for NaN; default 0.
        posinf, neginf: for the infinities; default the greatest and least finite number of the
            dtype.

    Returns:
        Tensor of the type of `input`.

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
        0.0 if nan is None else float(nan),
        limit if posinf is None else float(posinf),
        -limit if neginf is None else float(neginf),
    )


def div(
    input: Tensor | int | float, other: Tensor | int | float, *, rounding_mode: str | None = None
) -> Tensor:
    """Quotient of elements (`mindspore.ops.div`).

    Args:
        input, other: Tensors or numbers; the shapes broadcast and the dtypes are promoted to a
            common one.
        rounding_mode: None for the true quotient, where integers give float32; ``"floor"`` rounds
            it down, ``"trunc"`` towards zero, and integers stay integers.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ValueError: another rounding_mode, or the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.div(ms.Tensor([7.0, -7.0]), 2, rounding_mode="trunc")
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00, -3.00000000e+00])
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        return truncate_div(input, other)
    raise ArgumentValueError(
        f"div: got rounding_mode={rounding_mode!r}; wanted None, 'floor' or 'trunc'"
    )


@tensor_method("div", "divide")
def _tensor_div(
    self: Tensor, other: Tensor | int | float, *, rounding_mode: str | None = None
) -> Tensor:
    """Quotient of elements; see `ops.div`."""
    return div(self, other, rounding_mode=rounding_mode)


divide = div
