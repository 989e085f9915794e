"""Formulas of optimiser steps, and what the primitive classes of optimisers have in common.

`optimizer_primitives`, `adam_primitives` and `sparse_optimizer_primitives` use this module. Nothing
here writes to a Parameter except `write`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..dtype import float32, float64
from ..errors import ArgumentError, ShapeError
from ..tensor import Tensor
from .creation import cast_to
from .elementwise import abs as absolute
from .elementwise import maximum, sign, square
from .powers import sqrt
from .primitive import Primitive
from .state import assign

__all__ = [
    "Locking",
    "Nesterov",
    "Number",
    "adadelta",
    "adam_delta",
    "check_shapes",
    "ftrl",
    "moments",
    "proximal",
    "rmsprop",
    "root",
    "stepped",
    "wide",
    "write",
]

Number = Tensor | float
_Value = TypeVar("_Value")


def wide(x: _Value) -> _Value:
    if not isinstance(x, Tensor) or x.dtype in (float32, float64):
        return x
    return cast_to(x, float32)


def stepped(formula: Callable[..., _Value], targets: tuple[Tensor, ...], *rest: object) -> _Value:
    """Return ``formula(*targets, *rest)``, with 16-bit floats in `targets` cast to float32."""
    return formula(*[wide(x) for x in targets], *rest)


def write(targets: tuple[Tensor, ...], values: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Assign ``values[i]`` to the Parameter ``targets[i]``, cast to its dtype; return `targets`."""
    return tuple(assign(t, cast_to(v, t.dtype)) for t, v in zip(targets, values, strict=True))


def check_shapes(name: str, var: object, *others: object) -> None:
    for x in (var, *others):
        if not isinstance(x, Tensor):
            raise ArgumentError(f"{name}: got {type(x).__name__}; wanted Parameters and Tensors")
        if x.shape != var.shape:  # type: ignore[attr-defined]
            raise ShapeError(
                f"{name}: got shapes {var.shape} and {x.shape}; "  # type: ignore[attr-defined]
                "wanted the same"
            )


def moments(m: Tensor, v: Tensor, g: Tensor, beta1: Number, beta2: Number) -> tuple[Tensor, Tensor]:
    return m * beta1 + g * (1.0 - beta1), v * beta2 + square(g) * (1.0 - beta2)


def root(x: Number) -> Number:
    return sqrt(x) if isinstance(x, Tensor) else x**0.5


def adam_delta(
    m: Tensor,
    v: Tensor,
    g: Tensor,
    b1p: Number,
    b2p: Number,
    lr: Number,
    b1: Number,
    b2: Number,
    eps: Number,
    nesterov: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (delta, m, v) of one step of Adam: the change of the Parameter, and the new moments.

        m     = b1 * m + (1 - b1) * g
        v     = b2 * v + (1 - b2) * g**2
        rate  = lr * sqrt(1 - b2p) / (1 - b1p)
        delta = -rate * (b1 * m + (1 - b1) * g if nesterov else m) / (sqrt(v) + eps)

    `g` is the gradient. In step t, counted from 1, `b1p` and `b2p` are b1**t and b2**t. The
    arguments are not changed.
    """
    m, v = moments(m, v, g, b1, b2)
    rate = lr * root(1.0 - b2p) / (1.0 - b1p)
    top = m * b1 + g * (1.0 - b1) if nesterov else m
    return -(rate * top / (sqrt(v) + eps)), m, v


def ftrl(
    var: Tensor, accum: Tensor, linear: Tensor, g: Tensor, lr: Number, l1: Number, l2: Number,
    power: Number, shrinkage: Number = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    shrunk_gradient = g + 2.0 * shrinkage * var
    new = accum + square(g)
    high, low = new ** (-power), accum ** (-power)
    linear = linear + shrunk_gradient - (high - low) / lr * var
    shrunk = sign(linear) * maximum(absolute(linear) - l1, 0.0)
    return -shrunk / (high / lr + 2.0 * l2), new, linear


def proximal(var: Tensor, rate: Number, g: Tensor, l1: Number, l2: Number) -> Tensor:
    moved = var - rate * g
    return sign(moved) * maximum(absolute(moved) - rate * l1, 0.0) / (1.0 + rate * l2)


def adadelta(
    var: Tensor, accum: Tensor, update: Tensor, lr: Number, rho: Number, eps: Number, g: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    accum = accum * rho + square(g) * (1.0 - rho)
    step = sqrt(update + eps) / sqrt(accum + eps) * g
    return var - lr * step, accum, update * rho + square(step) * (1.0 - rho)


def rmsprop(
    var: Tensor, ms: Tensor, mom: Tensor, lr: Number, g: Tensor, rho: Number, momentum: Number,
    eps: Number, mean: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    ms = ms * rho + square(g) * (1.0 - rho)
    below = ms + eps if mean is None else ms - square(mean) + eps
    mom = mom * momentum + lr * g / sqrt(below)
    return var - mom, ms, mom


class Locking(Primitive):
    """Base class of the optimiser primitives whose constructor takes `use_locking`.

    The argument has no effect, since two updates never run at the same time.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking


class Nesterov(Locking):
    """Base class of those whose constructor takes `use_nesterov` too: Nesterov's momentum."""

    def __init__(self, use_locking: bool = False, use_nesterov: bool = False) -> None:
        super().__init__(use_locking)
        self.use_nesterov = use_nesterov
