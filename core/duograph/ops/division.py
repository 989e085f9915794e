"""Integer-quotient division (floor and truncated), and the remainders that belong to it.

Users and other ops call them. On every backend, an integer divided by 0 must be 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..dtype import BOOL, REAL, bool_, float32, float64, int32
from ..errors import ArgumentValueError
from ..ir.builder import GraphBuilder
from ..ir.control import while_loop
from ..op import op
from ..tensor import Tensor
from .creation import cast
from .elementwise import abs, mul, neg, true_divide
from .logic import logical_and, select
from .methods import tensor_method
from .primitive import Primitive
from .rounding import floor, trunc
from .shape_primitives import reduce_sum, unbroadcast

__all__ = [
    "RealDiv",
    "div", "divide", "floor_divide", "fmod", "mod", "remainder",
]  # fmt: skip


def _whole_quotient(x: Tensor, y: Tensor) -> Tensor:
    """Divide integers, rounding towards zero; the quotient of a division by 0 is 0.

    The quotient is estimated in float32 and corrected until it is exact.
    """
    if x.dtype is bool_:
        return logical_and(x, y)
    zero = y == 0
    d = select(zero, 1, y)
    rounds = 3 if x.dtype.itemsize <= 4 else 5
    if x.dtype.kind == "u":  # underestimate, so that the remainder never becomes negative
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
        # the remainder must have the sign of x and be smaller than d; negated magnitudes cannot
        # overflow
        one = cast(select((x < 0) == (d < 0), 1, -1), x.dtype)
        wrong_side = logical_and(rest != 0, (rest < 0) != (x < 0))
        small = select(rest > 0, neg(rest), rest) > select(d > 0, neg(d), d)
        q = select(wrong_side, q - one, select(small, q, q + one))
    return select(zero, 0, q)


class _FloatFormat(NamedTuple):
    """Constants that `_long_division` needs for one floating dtype.

    Attributes:
        digits: bits of the quotient that one step of the division finds.
        half: exponent h of the factor 2^h + 1 that splits a significand into two halves.
        large: bound above which a divisor is scaled down first, since the split would overflow.
        scale: power of two by which such a divisor is multiplied.
    """

    digits: int
    half: int
    large: float
    scale: float


_FORMATS = {
    float32: _FloatFormat(11, 12, 2.0**96, 2.0**-30),
    float64: _FloatFormat(25, 27, 2.0**900, 2.0**-60),
}


def _long_division(rest: Tensor, divisor: Tensor) -> Tensor:
    """Return the exact remainder of a finite number >= 0 by a finite number > 0.

    This is long division in floats with base 2^digits (see `_FloatFormat`). The divisor is first
    multiplied by the base until the quotient has one digit. Then each step subtracts a multiple of
    the divisor from the rest, and divides the divisor by the base. The loops end when no element of
    the tensors needs another step; most operands need none.
    """
    power = 2.0 ** _FORMATS[rest.dtype].digits

    def lift(d: Tensor, r: Tensor) -> tuple[Tensor, ...]:
        d = select(d * power <= r, d * power, d)
        return _any(d * power <= r), d

    def lower(r: Tensor, d: Tensor, low: Tensor) -> tuple[Tensor, ...]:
        d = select(d > low, d * (1 / power), d)
        return _any(d > low), _one_digit(r, d), d

    (lifted,) = _while(lift, _any(divisor * power <= rest), (divisor,), (rest,))
    first = _one_digit(rest, lifted)
    rest, _ = _while(lower, _any(lifted > divisor), (first, lifted), (divisor,))
    return rest


def _one_digit(r: Tensor, d: Tensor) -> Tensor:
    """Return the remainder of `r` by `d`, which is exact if the quotient is less than 2^digits.

    The quotient is rounded to the nearest integer, so that the difference fits a significand; its
    product with each half of `d` is exact (see `_FloatFormat`).
    """
    digits = _FORMATS[r.dtype]
    scale = select(d > digits.large, digits.scale, 1)
    a, b = r * scale, d * scale
    split = b * (2.0**digits.half + 1)
    high = split - (split - b)
    q = floor(true_divide(a, b) + 0.5)
    rest = (a - q * high) - q * (b - high)
    rest = select(rest < 0, rest + b, rest)
    return select(q == 0, r, true_divide(rest, scale))


def _any(condition: Tensor) -> Tensor:
    """Return whether any element of a bool tensor is True, as a 0-d tensor."""
    return reduce_sum(cast(condition, int32), tuple(range(len(condition.shape))), False) > 0


def _while(
    body: Callable[..., tuple[Tensor, ...]],
    predicate: Tensor,
    carries: tuple[Tensor, ...],
    invariants: tuple[Tensor, ...],
) -> tuple[Tensor, ...]:
    """Append a `while_loop` op to the graph that is being built; return the final carries.

    Args:
        body: function from carries and invariants to the next predicate and carries.
        predicate: 0-d bool: whether the first iteration runs.
        carries: initial values of the loop's variables.
        invariants: values that every iteration reads.
    """
    builder = GraphBuilder()
    given = [builder.parameter(x._type) for x in (*carries, *invariants)]
    with builder.current():
        graph = builder.finish(body(*given))
    found: tuple[Tensor, ...] = while_loop(
        [predicate, *carries, *invariants], body=graph, n_carry=len(carries)
    )
    return found


@op(
    method="floor_divide", operators=["__floordiv__"], reflected=["__rfloordiv__"],
    primitive="FloorDiv", dtypes=BOOL + REAL, promote="common", differentiable=False,
)  # fmt: skip
def floor_divide(input: Tensor, other: Tensor):
    """Return the quotient rounded down; an integer divided by 0 is 0
    (`mindspore.ops.floor_divide`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
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
    """Return the remainder with the sign of the divisor; an integer modulo 0 is 0
    (`mindspore.ops.remainder`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
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
    """Return the quotient rounded towards zero; an integer divided by 0 is 0
    (`mindspore.ops.TruncateDiv`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
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
    """Return the remainder with the sign of `input`; an integer modulo 0 is 0
    (`mindspore.ops.fmod`).

    Args:
        input: Tensor of any shape, or a number; any dtype but complex.
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
    if not x.dtype.is_floating:
        return select(y == 0, 0, x - truncate_div(x, y) * y)
    finite = abs(x) < float("inf")
    usual = logical_and(finite, logical_and(y != 0, abs(y) < float("inf")))
    rest = _long_division(select(usual, abs(x), 0), select(usual, abs(y), 1))
    rest = select(x < 0, neg(rest), rest)
    return select(usual, rest, select(logical_and(finite, abs(y) == float("inf")), x, float("nan")))


mod = remainder


class RealDiv(Primitive):
    """Quotient in the common dtype of the operands: `RealDiv()(x, y)`.

    Quotients of integers are truncated towards zero, as in MindSpore; `/` and `Div` return float32.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.RealDiv()(ms.Tensor([-7, 7]), ms.Tensor([2, 2])))
        [-3  3]
    """

    op = true_divide

    def __call__(self, x: Tensor | int | float, y: Tensor | int | float) -> Tensor:
        """Return x / y; the shapes broadcast."""
        if all(_is_integer(v) for v in (x, y)):
            return truncate_div(x, y)
        return true_divide(x, y)


def _is_integer(value: object) -> bool:
    """Return whether an operand is an int or a Tensor of integers; bool is no integer."""
    if isinstance(value, Tensor):
        return value.dtype.is_integer
    return isinstance(value, int) and not isinstance(value, bool)


def div(
    input: Tensor | int | float, other: Tensor | int | float, *, rounding_mode: str | None = None
) -> Tensor:
    """Return the quotient of elements (`mindspore.ops.div`).

    Args:
        input, other: Tensors or numbers; the shapes broadcast and the dtypes are promoted to a
            common one.
        rounding_mode: None for the true quotient, where integers give float32; ``"floor"`` rounds
            it down, ``"trunc"`` towards zero, and integers remain integers.

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
    """Divide elementwise, and optionally round the quotient; see `ops.div`.

    Capital letters in `rounding_mode` do not matter.
    """
    mode = rounding_mode.lower() if isinstance(rounding_mode, str) else rounding_mode
    return div(self, other, rounding_mode=mode)


divide = div
