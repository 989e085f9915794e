"""Derivatives of a function along a curve, to any order: `jet` and `derivative`.

`ops.higher_order` exports them. They differentiate a function of one number, the parameter of the
curve, by nested calls of `jvp`. A derivative of order n therefore costs about 4^n calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import float32
from ..errors import ArgumentError, ArgumentValueError
from ..ops.creation_functions import ones_like, zeros_like
from ..ops.joining import stack
from ..tensor import Tensor
from .transforms import jvp

__all__ = ["derivative", "jet"]

Tensors = Tensor | Sequence[Tensor]


def jet(
    fn: Callable[..., Any], primals: Tensors, series: Tensors
) -> tuple[Tensor | list[Tensor], Tensor | list[Tensor]]:
    """Return a function's value and its derivatives along a curve (`mindspore.ops.jet`).

    The curve x(t) passes through `primals` at t = 0; `series` are its derivatives there.

    Args:
        fn: function or Cell of Tensors that returns a Tensor or a tuple of Tensors.
        primals: a Tensor, or a tuple of Tensors, the arguments of `fn`; integers become float32.
        series: for each of `primals`, a Tensor of shape (n, *shape) with the first to the n-th
            derivative of x(t), or of the shape of x for the first alone. For ordinary derivatives,
            the first is 1 and the others are 0.

    Returns:
        (value, derivatives): Tensors, or lists of them if `fn` returns several. The derivatives of
        fn(x(t)) from the first to the n-th have shape (n, *shape of the value).

    Raises:
        TypeError: `primals` and `series` are not both Tensors or both tuples of Tensors.
        ValueError: there are not as many of one as of the other, or the shapes do not fit.

    Examples:
        >>> import duograph as ms
        >>> value, derivatives = ms.ops.jet(
        ...     lambda x: x * x * x, ms.Tensor([2.0]), ms.Tensor([[1.0], [0.0], [0.0]]))
        >>> print(value, derivatives[:, 0])
        [8.] [12. 12.  6.]
    """
    points = _tensors("jet", primals, series)
    curves = _tensors("jet", series, primals)
    if len(points) != len(curves):
        raise ArgumentValueError(
            f"jet: got {len(points)} primals and {len(curves)} series; wanted one each"
        )
    curves = [
        s.reshape((1, *s.shape)) if s.shape == x.shape else s
        for x, s in zip(points, curves, strict=True)
    ]
    for x, s in zip(points, curves, strict=True):
        if s.shape[1:] != x.shape or s.shape[:1] != curves[0].shape[:1]:
            raise ArgumentValueError(
                f"jet: got a series of shape {s.shape} for a primal of shape {x.shape}; wanted "
                "(orders, *shape), with as many orders in each"
            )
    several, orders = _along(fn, points, curves)
    stacked = [stack([order[k] for order in orders[1:]]) for k in range(len(orders[0]))]
    return (orders[0], stacked) if several else (orders[0][0], stacked[0])


def derivative(
    fn: Callable[..., Any], primals: Tensors, order: int
) -> tuple[Tensor | list[Tensor], Tensor | list[Tensor]]:
    """Return a function's value and its derivative of one order (`mindspore.ops.derivative`).

    All arguments grow at the rate 1.

    Args:
        fn: function or Cell of Tensors that returns a Tensor or a tuple of Tensors.
        primals: a Tensor, or a tuple of Tensors, the arguments of `fn`; integers become float32.
        order: int, at least 1.

    Returns:
        (value, derivative): Tensors, or lists of them if `fn` returns several.

    Raises:
        TypeError: `primals` is no Tensor or tuple of Tensors, or `order` no int.
        ValueError: `order` is less than 1.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.derivative(lambda x: x * x * x, ms.Tensor([2.0]), 2)[1])
        [12.]
    """
    if isinstance(order, bool) or not isinstance(order, int):
        raise ArgumentError(f"derivative: got order={order!r}; wanted an int")
    if order < 1:
        raise ArgumentValueError(f"derivative: got order={order}; wanted 1 or more")
    points = _tensors("derivative", primals, primals)
    curves = [stack([ones_like(x), *[zeros_like(x)] * (order - 1)]) for x in points]
    several, orders = _along(fn, points, curves)
    return (orders[0], orders[-1]) if several else (orders[0][0], orders[-1][0])


def _tensors(name: str, value: object, other: object) -> list[Tensor]:
    """Return an argument, a Tensor or a tuple of them, as a list of floating Tensors.

    `other` is the argument that must have the same form; `name` is the user's function in errors.
    """
    found: list[Any] = list(value) if isinstance(value, (tuple, list)) else [value]
    if isinstance(value, (tuple, list)) != isinstance(other, (tuple, list)) or not all(
        isinstance(x, Tensor) for x in found
    ):
        raise ArgumentError(
            f"{name}: got {type(value).__name__} and {type(other).__name__}; wanted Tensors, or "
            "tuples of Tensors"
        )
    return [x if x.dtype.is_floating else x.astype(float32) for x in found]


def _along(
    fn: Callable[..., Any], points: Sequence[Tensor], curves: Sequence[Tensor]
) -> tuple[bool, list[list[Tensor]]]:
    """Return fn(x(t)) and its derivatives at t = 0 up to the order of the curves x(t).

    The results are whether `fn` returns several Tensors, and a list of Tensors for each order.
    """
    several = False

    def position(t: Tensor, x: Tensor, s: Tensor) -> Tensor:
        """Return x(t) by Taylor's formula, from the inside out: x + t (s1 + t/2 (s2 + ...))."""
        at = t.astype(x.dtype)
        total = s[-1]
        for k in range(s.shape[0] - 1, 0, -1):
            total = s[k - 1] + total * at / (k + 1)
        return x + total * at

    def value(t: Tensor) -> tuple[tuple[Tensor, ...], ...]:
        nonlocal several
        found = fn(*[position(t, x, s) for x, s in zip(points, curves, strict=True)])
        several = isinstance(found, (tuple, list))
        return (tuple(found) if several else (found,),)

    def one_more(orders: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
        """Return a function of t that also returns the derivative of the last one of `orders`."""

        def function(t: Tensor) -> Any:
            found, tangents = jvp(orders, t, Tensor(1.0))
            return (*found, tangents[-1])

        return function

    function: Callable[[Tensor], Any] = value
    for _ in range(curves[0].shape[0]):
        function = one_more(function)
    orders = [list(order) for order in function(Tensor(0.0))]
    return several, orders
