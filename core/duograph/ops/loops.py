"""Loops as callables: WhileLoop, ForiLoop and Scan.

Users construct them. The front end traces the source of their `__call__` methods, so that in
compiled code each is a loop whose condition and body may depend on Tensors. Therefore this module
must contain nothing that the front end cannot trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import ArgumentError
from .primitive import Primitive

__all__ = ["ForiLoop", "Scan", "WhileLoop"]

Carry = TypeVar("Carry")
Result = TypeVar("Result")


class WhileLoop(Primitive):
    """While loop: `WhileLoop()(cond_func, loop_func, init_val)` (`mindspore.ops.WhileLoop`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.WhileLoop()(lambda x: x < 100, lambda x: x * 2, 3)
        192
    """

    def __call__(
        self,
        cond_func: Callable[[Carry], object],
        loop_func: Callable[[Carry], Carry],
        init_val: Carry,
    ) -> Carry:
        """Run ``value = loop_func(value)`` while ``cond_func(value)``; return the last value.

        The first value is `init_val`.
        """
        if not callable(cond_func) or not callable(loop_func):
            raise ArgumentError("WhileLoop: wanted functions for cond_func and loop_func")
        value = init_val
        while cond_func(value):
            value = loop_func(value)
        return value


class ForiLoop(Primitive):
    """Loop over a range of ints: `ForiLoop()(lower, upper, loop_func, init_val, unroll=True)`.

    See `mindspore.ops.ForiLoop`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.ForiLoop()(0, 4, lambda i, x: x + i, 10)
        16
    """

    def __call__(
        self,
        lower: Any,
        upper: Any,
        loop_func: Callable[[Any, Carry], Carry],
        init_val: Carry,
        unroll: bool = True,
    ) -> Carry:
        """Run ``value = loop_func(i, value)`` for i from lower to upper - 1; return the last value.

        The first value is `init_val`. With `unroll`, compiled code repeats the body if the bounds
        are Python ints.
        """
        if not callable(loop_func):
            raise ArgumentError("ForiLoop: wanted a function for loop_func")
        value = init_val
        if unroll and isinstance(lower, int) and isinstance(upper, int):
            for i in range(lower, upper):
                value = loop_func(i, value)
            return value
        i = lower
        while i < upper:
            value = loop_func(i, value)
            i = i + 1
        return value


class Scan(Primitive):
    """Loop over items: `Scan()(loop_func, init, xs, length=None, unroll=True)`.

    See `mindspore.ops.Scan`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.Scan()(lambda total, x: (total + x, total + x), 0, [1, 2, 3])
        (6, [1, 3, 6])
    """

    def __call__(
        self,
        loop_func: Callable[[Carry, Any], tuple[Carry, Result]],
        init: Carry,
        xs: Sequence[object] | None,
        length: int | None = None,
        unroll: bool = True,
    ) -> tuple[Carry, list[Result]]:
        """Run ``carry, y = loop_func(carry, x)`` for each x; return (last carry, list of all y).

        The first carry is `init`. The values of x are the items of `xs`; if `xs` is None, x is None
        in each of `length` iterations. Compiled code unrolls the loop whatever `unroll` is.
        """
        if not callable(loop_func) or not isinstance(unroll, bool):
            raise ArgumentError("Scan: wanted a function for loop_func and a bool for unroll")
        if xs is None and length is None:
            raise ArgumentError("Scan: got neither xs nor length; wanted one of them")
        items = [None] * length if xs is None else xs  # type: ignore[operator]
        carry = init
        results = []
        for x in items:
            carry, y = loop_func(carry, x)
            results.append(y)
        return carry, results
