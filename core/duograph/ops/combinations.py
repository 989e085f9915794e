"""Elementwise ops of several operands: addcmul, addcdiv, addn, clamping, and division safe at zero.

Users and optimisers call them; none changes its operands.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import INEXACT, NUMERIC, REAL
from ..errors import ArgumentError, ArgumentValueError, DTypeError
from ..op import op
from ..tensor import Tensor
from .arguments import Number, number_of
from .creation import cast_to
from .elementwise import add, maximum, minimum, mul, neg, sub
from .logic import logical_or, select
from .methods import tensor_method
from .pointwise import conjugate
from .primitive import Primitive
from .shape_primitives import unbroadcast

__all__ = [
    "AccumulateNV2", "AddN", "accumulate_n", "addcdiv", "addcmul", "addn", "clamp", "clip",
    "clip_by_value", "div_no_nan", "lerp", "mul_no_nan", "squared_difference",
]  # fmt: skip


@op(
    method="squared_difference",
    primitive="SquaredDifference",
    dtypes=NUMERIC,
    promote="common",
    elementwise=True,
)
def squared_difference(x: Tensor, y: Tensor):
    """Return the square of the difference of elements (`mindspore.ops.SquaredDifference`).

    Args:
        x, y: Tensors or numbers; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.squared_difference(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 5.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 4.00000000e+00,  9.00000000e+00])
    """
    difference = x - y
    return difference * difference


@squared_difference.bprop
def _(x, y, out, dout):
    dx = mul(dout, mul(conjugate(sub(x, y)), 2))
    return unbroadcast(dx, x), unbroadcast(neg(dx), y)


@op(primitive="DivNoNan", dtypes=INEXACT, promote="float")
def div_no_nan(x: Tensor, y: Tensor):
    """Return the quotient of elements, 0 where the divisor is 0 (`mindspore.ops.DivNoNan`).

    Args:
        x, y: Tensors or numbers; the shapes broadcast, integers and bool are converted to float32.

    Returns:
        Tensor of the broadcast shape.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.div_no_nan(ms.Tensor([1.0, 6.0]), ms.Tensor([0.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  3.00000000e+00])
    """
    zero = y == 0
    return select(zero, 0, x / select(zero, 1, y))


@div_no_nan.scalar
def _(s, x, y):
    return s.where(y == 0, 0, x / y)


@op(primitive="MulNoNan", dtypes=INEXACT, promote="float", elementwise=True)
def mul_no_nan(x: Tensor, y: Tensor):
    """Return the product of elements, 0 where `y` is 0 even if `x` is NaN or infinite
    (`mindspore.ops.MulNoNan`).

    Args:
        x, y: Tensors or numbers; the shapes broadcast, integers and bool are converted to float32.

    Returns:
        Tensor of the broadcast shape.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.mul_no_nan(ms.Tensor([float("inf"), 6.0]), ms.Tensor([0.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.20000000e+01])
    """
    return select(y == 0, 0, x * y)


@mul_no_nan.bprop
def _(x, y, out, dout):
    by_x = mul_no_nan(dout, conjugate(y))
    return unbroadcast(by_x, x), unbroadcast(mul_no_nan(conjugate(x), dout), y)


@op(
    method="addcmul",
    dtypes=INEXACT,
    promote="common",
    elementwise=True,
    primitive="Addcmul()(input, x1, x2, value)",
)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: float = 1.0):
    """Return ``input + value * tensor1 * tensor2`` (`mindspore.ops.addcmul`).

    Args:
        input, tensor1, tensor2: Tensors; the shapes broadcast and the dtypes are promoted to a
            common one.
        value: number or Tensor.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.addcmul(ms.Tensor([1.0]), ms.Tensor([2.0]), ms.Tensor([3.0]), value=0.5)
        Tensor(shape=[1], dtype=Float32, value= [ 4.00000000e+00])
    """
    return input + tensor1 * tensor2 * value


@addcmul.normaliser
def _(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1):
    exact = any(
        isinstance(t, Tensor) and not t.dtype.is_floating for t in (input, tensor1, tensor2)
    )
    if isinstance(value, Tensor) or exact:  # the kernel accepts a floating scalar only
        return input + tensor1 * tensor2 * value
    return (input, tensor1, tensor2, number_of("addcmul", "value", value))


@op(
    method="addcdiv",
    dtypes=INEXACT,
    promote="float",
    elementwise=True,
    primitive="Addcdiv()(input, x1, x2, value)",
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: float = 1.0):
    """Return ``input + value * tensor1 / tensor2`` (`mindspore.ops.addcdiv`).

    Args:
        input, tensor1, tensor2: Tensors; the shapes broadcast, integers are converted to float32.
        value: number or Tensor.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.addcdiv(ms.Tensor([1.0]), ms.Tensor([2.0]), ms.Tensor([4.0]), value=3)
        Tensor(shape=[1], dtype=Float32, value= [ 2.50000000e+00])
    """
    return input + tensor1 / tensor2 * value


@addcdiv.normaliser
def _(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1):
    if isinstance(value, Tensor):
        return input + tensor1 / tensor2 * value
    return (input, tensor1, tensor2, number_of("addcdiv", "value", value))


@op(
    name="lerp",
    method="lerp",
    dtypes=INEXACT,
    promote="float",
    elementwise=True,
    primitive=["Lerp", "LerpScalar"],
)
def lerp(input: Tensor, end: Tensor, weight: Tensor):
    """Return ``input + weight * (end - input)`` (`mindspore.ops.lerp`).

    Args:
        input, end: Tensors of any shape; floating.
        weight: Tensor or number; all shapes broadcast.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.lerp(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 6.0]), 0.5)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  4.00000000e+00])
    """
    return input + weight * (end - input)


def addn(x: Sequence[Tensor] | Tensor) -> Tensor:
    """Return the sum of several tensors (`mindspore.ops.addn`).

    Args:
        x: tuple or list of Tensors whose shapes broadcast, or one Tensor.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        TypeError: `x` is empty, or an item is not a Tensor.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.addn([ms.Tensor([1.0]), ms.Tensor([2.0]), ms.Tensor([3.0])])
        Tensor(shape=[1], dtype=Float32, value= [ 6.00000000e+00])
    """
    if isinstance(x, Tensor):
        return x
    if not isinstance(x, (tuple, list)) or not x or not all(isinstance(v, Tensor) for v in x):
        raise ArgumentError(f"addn: got {type(x).__name__}; wanted a tuple or list of Tensors")
    total = x[0]
    for v in x[1:]:
        total = add(total, v)
    return total


accumulate_n = addn


class AddN(Primitive):
    """Primitive form of `ops.addn`: ``AddN()([x, y, z])``."""

    op = add

    def __call__(self, x: Sequence[Tensor]) -> Tensor:
        """Return the elementwise sum of a sequence of tensors."""
        return addn(x)


class AccumulateNV2(AddN):
    """Older name of `AddN`."""


@op(name="clip_to", dtypes=REAL)
def clamp(input: Tensor, low: float, high: float):
    """Limit elements to the range from `min` to `max` (`mindspore.ops.clamp`).

    Args:
        input: Tensor of any shape; not complex.
        min, max: numbers or Tensors that broadcast with `input`; None: no limit on that side. Where
            `min` is greater than `max` the result is `max`. A limit of NaN gives NaN.

    Returns:
        Tensor of the broadcast shape; the dtype of `input`, or the common one when a limit is of a
        higher kind.

    Raises:
        ValueError: both limits are None, or one is a bool.
        TypeError: a limit is neither a number nor a Tensor.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.clamp(ms.Tensor([-1.0, 0.5, 7.0]), 0, 1)
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  5.00000000e-01,  1.00000000e+00])
    """
    return minimum(maximum(input, low), high)


@clamp.normaliser
def _(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None):
    if min is None and max is None:
        raise ArgumentValueError("clamp: got neither min nor max; wanted at least one of them")
    for limit in (min, max):
        if isinstance(limit, bool):
            raise ArgumentValueError("clamp: got a bool for a limit; wanted a number or a Tensor")
        if isinstance(limit, (list, tuple)):
            raise ArgumentError(f"clamp: got the limit {limit!r}; wanted a number or a Tensor")
    if input.dtype.is_complex:
        raise DTypeError(
            f"clamp: input has dtype {input.dtype.name}; wanted an integer or floating one"
        )
    if isinstance(input, Tensor) and input.dtype.is_floating:
        low = float("-inf") if min is None else min
        high = float("inf") if max is None else max
        numbers = isinstance(low, (int, float)) and isinstance(high, (int, float))
        if numbers and low == low and high == high:  # the kernel would ignore a limit of NaN
            return (input, float(low), float(high))
    out = input if min is None else _limited(input, min, True)
    return out if max is None else _limited(out, max, False)


def _limited(x: Tensor, limit: Tensor | Number, below: bool) -> Tensor:
    """Clamp `x` at one limit: a lower bound if `below` is True, else an upper bound.

    Where x equals the limit, the whole gradient flows to x. A limit of NaN results in NaN.
    """
    if not x.dtype.is_floating:
        return maximum(x, limit) if below else minimum(x, limit)
    beyond = x < limit if below else x > limit
    return select(logical_or(beyond, limit != limit), limit, x)


@clamp.scalar
def _(s, x, low, high):
    raised = s.where(x < low, low, x)
    return s.where(raised > high, high, raised)


@clamp.bprop
def _(x, out, dout, low, high):
    return (clip_grad(dout, x, low, high),)


@op(name="clip_grad", dtypes=REAL, promote="common", elementwise=True)
def clip_grad(dout: Tensor, x: Tensor, low: float, high: float):
    """Composite op: gradient of clamping to [low, high] with respect to its input.

    It is `dout`, the cotangent of the result, where low <= x <= high, else 0.
    """
    return select(logical_or(x < low, x > high), 0, dout)


clip = clamp.public


@tensor_method("clamp", "clip")
def _tensor_clamp(
    self: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None
) -> Tensor:
    """Clamp every element to [min, max], where None means no bound; see `ops.clamp`."""
    return clamp.public(self, min, max)


def clip_by_value(
    x: Tensor,
    clip_value_min: Tensor | Number | None = None,
    clip_value_max: Tensor | Number | None = None,
) -> Tensor:
    """Limit the elements of a tensor, or of each tensor of a list or tuple, to a range
    (`mindspore.ops.clip_by_value`).

    Args:
        x: Tensor, or list or tuple of Tensors.
        clip_value_min, clip_value_max: as `min` and `max` of `clamp`.

    Returns:
        Tensor of the broadcast shape and the dtype of `x`; for a list or tuple, a tuple of such
        Tensors. An element that equals a limit gets half of the gradient, as from `maximum`.

    Raises:
        ValueError: both limits are None.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.clip_by_value(ms.Tensor([1.0, 25.0, 5.0]), 2, 8)
        Tensor(shape=[3], dtype=Float32, value= [ 2.00000000e+00,  8.00000000e+00,  5.00000000e+00])
    """
    if isinstance(x, (list, tuple)):
        return tuple(clip_by_value(v, clip_value_min, clip_value_max) for v in x)
    if clip_value_min is None and clip_value_max is None:
        raise ArgumentValueError("clip_by_value: got neither limit; wanted at least one of them")
    out = x if clip_value_min is None else maximum(x, clip_value_min)
    out = out if clip_value_max is None else minimum(out, clip_value_max)
    return out if out.dtype is x.dtype else cast_to(out, x.dtype)
