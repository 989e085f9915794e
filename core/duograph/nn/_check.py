"""Checks of `nn` constructor arguments; messages name the layer, the value and what is wanted.

Layers, losses and optimisers call them in `__init__`. Each check returns the checked value or
raises; none of them changes a value beyond converting it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..errors import ArgumentError, ArgumentValueError, OptionKindError, ShapeError
from ..tensor import Tensor

__all__ = [
    "positive_int", "layer_count", "non_negative_int", "boolean", "real", "in_range", "one_of",
    "ints", "rank", "instance",
]  # fmt: skip


T = TypeVar("T")
# Building more layers than this one by one takes hours, so it is a mistake.
MOST_LAYERS = 1 << 16


def _got(owner: str, name: str, value: object, wanted: str) -> str:
    return f"{owner}: got {name}={value!r}; wanted {wanted}"


def positive_int(owner: str, name: str, value: object) -> int:
    """Return a constructor argument if it is an int above 0; otherwise raise an error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(_got(owner, name, value, "an int"))
    if value <= 0:
        raise ArgumentValueError(_got(owner, name, value, "an int above 0"))
    return value


def layer_count(owner: str, name: str, value: object) -> int:
    """Return a constructor argument if it is an int from 1 to `MOST_LAYERS`, a number of layers.

    Otherwise raise an error.
    """
    count = positive_int(owner, name, value)
    if count > MOST_LAYERS:
        raise ArgumentValueError(_got(owner, name, value, f"at most {MOST_LAYERS} layers"))
    return count


def non_negative_int(owner: str, name: str, value: object) -> int:
    """Return a constructor argument if it is a non-negative int; otherwise raise an error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(_got(owner, name, value, "an int"))
    if value < 0:
        raise ArgumentValueError(_got(owner, name, value, "an int of 0 or more"))
    return value


def boolean(owner: str, name: str, value: object) -> bool:
    """Return a constructor argument if it is a bool; otherwise raise ArgumentError."""
    if not isinstance(value, bool):
        raise ArgumentError(_got(owner, name, value, "True or False"))
    return value


def real(owner: str, name: str, value: object) -> float:
    """Return a constructor argument as a float if it is a number; otherwise raise ArgumentError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(_got(owner, name, value, "a number"))
    return float(value)


def in_range(
    owner: str,
    name: str,
    value: object,
    low: float | None = None,
    high: float | None = None,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return a constructor argument as a float; raise an error if it is outside [low, high].

    None as a bound is no bound; `open_low` and `open_high` exclude the bound itself.
    """
    number = real(owner, name, value)
    bad = (low is not None and (number <= low if open_low else number < low)) or (
        high is not None and (number >= high if open_high else number > high)
    )
    if bad or number != number:
        left = "(-inf" if low is None else f"{'(' if open_low else '['}{low}"
        right = "inf)" if high is None else f"{high}{')' if open_high else ']'}"
        raise ArgumentValueError(_got(owner, name, value, f"a number in {left}, {right}"))
    return number


def one_of(owner: str, name: str, value: T, allowed: Sequence[object]) -> T:
    """Return a constructor argument if it is one of the `allowed` values.

    Otherwise raise an error.
    """
    if value not in allowed:
        raise ArgumentValueError(
            _got(owner, name, value, f"one of {', '.join(map(repr, allowed))}")
        )
    return value


def ints(owner: str, name: str, value: object, count: int, low: int = 1) -> tuple[int, ...]:
    """Return a constructor argument as a tuple of `count` ints of at least `low`.

    A single int is repeated `count` times. Any other argument than such an int or a list or tuple
    of `count` such ints raises an error.
    """
    several = (value,) * count if isinstance(value, int) else value
    if isinstance(value, bool) or not isinstance(several, (tuple, list)):
        raise ArgumentError(_got(owner, name, value, f"an int or a tuple of {count} ints"))
    if len(several) != count:
        error = OptionKindError if isinstance(several, list) else ArgumentValueError
        raise error(_got(owner, name, value, f"an int or a tuple of {count} ints"))
    for n in several:
        if isinstance(n, bool) or not isinstance(n, int):
            raise ArgumentError(_got(owner, name, value, f"an int or a tuple of {count} ints"))
        if n < low:
            raise ArgumentValueError(_got(owner, name, value, f"ints of {low} or more"))
    return tuple(several)


# the axes of images, by their number
_AXES = {3: "(N, C, L)", 4: "(N, C, H, W)", 5: "(N, C, D, H, W)"}


def rank(owner: str, x: Tensor, *allowed: int) -> None:
    """Raise ShapeError unless the input tensor has one of the allowed numbers of axes."""
    shape = x.shape
    if len(shape) not in allowed:
        wanted = " or ".join(f"{n}-D" for n in allowed)
        axes = _AXES.get(max(allowed), "")
        remark = ""
        if axes and len(shape) == min(allowed) - 1:
            remark = (
                "; for one sample add the batch axis, with .expand_dims(0), or .batch(n) for a "
                "dataset"
            )
        if owner == "BatchNorm2d" and len(shape) == 2:
            remark = "; BatchNorm1d takes (N, C)"
        raise ShapeError(
            f"{owner}: input is {len(shape)}-D with shape {shape}; wanted {wanted}"
            f"{axes and f' {axes}'}{remark}"
        )


def instance(owner: str, name: str, value: T, kind: type | tuple[type, ...]) -> T:
    """Return a constructor argument if it is an instance of `kind`.

    Otherwise raise ArgumentError.
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise ArgumentError(_got(owner, name, value, " or ".join(k.__name__ for k in kinds)))
    return value
