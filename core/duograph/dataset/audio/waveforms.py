"""Base class of all audio transforms, and checks of their arguments and waveforms.

The other modules of `dataset.audio` use it.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

import numpy as np

from ...call_errors import explain_methods
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ..rows import Array

__all__ = [
    "AudioTransform", "checked_member", "checked_number", "checked_sample_rate", "checked_signal",
]  # fmt: skip

_Number = TypeVar("_Number")
_Member = TypeVar("_Member", bound=Enum)


def checked_number(
    owner: str, name: str, value: _Number, low: float = -np.inf, high: float = np.inf
) -> _Number:
    """Return `value` if it is a number in [low, high].

    Raises:
        ArgumentError: the value is no number; `owner` and `name` are the transform and the
            argument.
        ArgumentValueError: the value is outside the range.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted a number")
    if not low <= float(value) <= high:
        raise ArgumentValueError(f"{owner}: got {name}={value}; wanted {low} to {high}")
    return value


def checked_member(owner: str, name: str, value: object, kind: type[_Member]) -> _Member:
    """Return `value` if it is a member of the enumeration `kind`.

    Raises:
        ArgumentError: the value is something else.
    """
    if not isinstance(value, kind):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted a {kind.__name__}")
    return value


def checked_sample_rate(owner: str, value: object) -> int:
    """Return the argument `sample_rate` if it is an int above 0; raise otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentError(f"{owner}: got sample_rate={value!r}; wanted an int")
    if value <= 0:
        raise ArgumentValueError(f"{owner}: got sample_rate={value}; wanted above 0")
    return int(value)


def checked_signal(owner: str, value: object, axes: int = 1) -> Array:
    """Return `value` as an array of float64 if it has that dtype, else of float32.

    Raises:
        ArgumentError: the values are no numbers.
        ShapeError: the array has fewer than `axes` axes.
    """
    array = np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
    if array.dtype.kind not in "uif":
        raise ArgumentError(f"{owner}: got {array.dtype}; wanted numbers")
    if array.ndim < axes:
        raise ShapeError(f"{owner}: got shape {array.shape}; wanted {axes} axes or more")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)


class AudioTransform:
    """Base class of transforms of a signal; a subclass implements `_signal`.

    The result has the dtype of the signal, or the dtype that the subclass sets as `_dtype`.
    """

    _axes = 1
    _dtype: type[np.generic] | None = None

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__")

    def __call__(self, waveform: object) -> Array:
        array = checked_signal(type(self).__name__, waveform, self._axes)
        return self._signal(array).astype(self._dtype or array.dtype)

    def _signal(self, signal: Array) -> Array:
        """Return the transformed array; `signal` is (..., time) or (..., frequency, time).

        Every subclass overrides this method.
        """
        raise NotImplementedError
