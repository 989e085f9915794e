"""Element-wise arithmetic with the signatures of `duograph.mint`, such as `add` and `clamp`.

`mint/__init__.py` exports these functions beside those of `duograph.ops` whose signatures are the
same. Every function normalises its arguments and calls `ops`.
"""

from __future__ import annotations

from .. import ops as _ops
from ..errors import ArgumentError, ArgumentValueError
from ..tensor import Tensor
from ._arguments import Number

__all__ = [
    "add", "addcdiv", "addcmul", "arcsin", "clamp", "clip", "equal", "fix", "isnan", "item",
    "npu_gelu", "sub",
]  # fmt: skip


def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Tensor | Number = 1) -> Tensor:
    """Return ``input + alpha * other`` (`mindspore.mint.add`).

    Args:
        input, other: Tensors or numbers whose shapes broadcast.
        alpha: the factor of `other`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.add(Tensor([1, 2]), Tensor([10, 20]), alpha=2))
        [21 42]
    """
    if alpha.__class__ is int and alpha == 1:  # the usual case, fast
        return _ops.add(input, other)
    return _ops.add(input, _scaled("add", input, other, alpha))


def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Tensor | Number = 1) -> Tensor:
    """Return ``input - alpha * other`` (`mindspore.mint.sub`).

    Args:
        input, other: Tensors or numbers whose shapes broadcast.
        alpha: the factor of `other`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.sub(Tensor([21, 42]), Tensor([10, 20]), alpha=2))
        [1 2]
    """
    if alpha.__class__ is int and alpha == 1:  # the usual case, fast
        return _ops.sub(input, other)
    return _ops.sub(input, _scaled("sub", input, other, alpha))


def _scaled(
    name: str, input: Tensor | Number, other: Tensor | Number, alpha: Tensor | Number
) -> Tensor | Number:
    """Return ``alpha * other``, the second term of `add` or `sub`; the first term is `input`.

    Raises:
        ArgumentError: `alpha` is a float and both terms are integers.
    """
    if isinstance(alpha, float):
        tensors = [x for x in (input, other) if isinstance(x, Tensor)]
        if not any(isinstance(x, float) for x in (input, other)) and not any(
            x.dtype.is_floating or x.dtype.is_complex for x in tensors
        ):
            raise ArgumentError(f"{name}: got alpha={alpha!r} for integers; wanted an int")
        if isinstance(other, Tensor) and other.dtype.is_integer and isinstance(input, Tensor):
            other = other.astype(input.dtype)
    if not isinstance(alpha, Tensor) and alpha == 1:
        return other
    return _ops.mul(other, alpha) if isinstance(other, Tensor) else other * alpha


def addcmul(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | Number = 1
) -> Tensor:
    """Return ``input + value * tensor1 * tensor2`` (`mindspore.mint.addcmul`).

    Args:
        input, tensor1, tensor2: Tensors whose shapes broadcast.
        value: the factor of the product.

    Returns:
        Tensor of the broadcast shape.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.addcmul(Tensor([1.0]), Tensor([2.0]), Tensor([3.0]), value=0.5))
        [4.]
    """
    return _ops.addcmul(input, tensor1, tensor2, value)


def addcdiv(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | Number = 1
) -> Tensor:
    """Return ``input + value * tensor1 / tensor2`` (`mindspore.mint.addcdiv`).

    Args:
        input, tensor1, tensor2: Tensors whose shapes broadcast.
        value: the factor of the quotient.

    Returns:
        Tensor of the broadcast shape.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.addcdiv(Tensor([1.0]), Tensor([3.0]), Tensor([2.0]), value=2))
        [4.]
    """
    return _ops.addcdiv(input, tensor1, tensor2, value)


def clamp(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None
) -> Tensor:
    """Return the elements, limited to the range from `min` to `max` (`mindspore.mint.clamp`).

    Args:
        input: Tensor.
        min, max: Tensors or numbers; at least one of them. If `min` is above `max`, every
            element becomes `max`.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ValueError: neither bound is given.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.clamp(Tensor([1, 5, 9]), 2, 6))
        [2 5 6]
    """
    if min is None and max is None:
        raise ArgumentValueError("clamp: got neither min nor max; wanted at least one of them")
    return _ops.clamp(input, min, max)


clip = clamp


def arcsin(x: Tensor) -> Tensor:
    """Return the inverse sine of each element, in radians (`mindspore.mint.arcsin`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.arcsin(Tensor([0.0])))
        [0.]
    """
    return _ops.asin(x)


def isnan(tensor: Tensor) -> Tensor:
    """Return which elements are NaN, as a bool Tensor (`mindspore.mint.isnan`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.isnan(Tensor([1.0, float("nan")])))
        [False  True]
    """
    return _ops.isnan(tensor)


def fix(input: Tensor) -> Tensor:
    """Return each element rounded towards zero, as `trunc` does (`mindspore.mint.fix`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.fix(Tensor([1.7, -1.7])))
        [ 1. -1.]
    """
    return _ops.trunc(input)


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and elements (`mindspore.mint.equal`).

    The result is a Python bool, so compiled code that calls it must know the values.

    Args:
        input, other: Tensors.

    Returns:
        True if the shapes are the same and all elements are equal.

    Raises:
        TypeError: an argument is not a Tensor.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.equal(Tensor([1, 2]), Tensor([1, 2]))
        True
    """
    for x in (input, other):
        if not isinstance(x, Tensor):
            raise ArgumentError(f"equal: got {type(x).__name__}; wanted two Tensors")
    if input.shape != other.shape:
        return False
    return bool(_ops.all(_ops.eq(input, other)))


def item(input: Tensor) -> bool | int | float | complex:
    """Return the value of a tensor of one element as a Python number (`mindspore.mint.item`).

    Raises:
        ValueError: the tensor has another number of elements.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.item(Tensor([2.5]))
        2.5
    """
    found: bool | int | float | complex = input.item()
    return found


def npu_gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return the Gaussian error linear unit of each element, as `nn.functional.gelu` does
    (`mindspore.mint.npu_gelu`).

    Args:
        input: floating Tensor.
        approximate: ``"none"`` for the error function, or ``"tanh"``.

    Raises:
        ValueError: another `approximate`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.npu_gelu(Tensor([0.0])))
        [0.]
    """
    return _ops.gelu(input, approximate)
