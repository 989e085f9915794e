"""Compares gradients with finite differences, element by element.

`check_gradient` and the checks of debug mode call `compare`. The function and its gradient are
passed as functions of NumPy arrays; nothing here may use tensors. A complex number counts as a pair
of reals; a gradient g means that the derivative in a direction d is Re(sum(conj(g) * d)).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from ..host_arrays import Array

__all__ = ["SINGLE", "Comparison", "Precision", "compare", "precision_of", "random_like"]

Function: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]

# Elements of one array that are compared; of a larger array, as many are chosen at random.
MOST_ELEMENTS = 200


@dataclasses.dataclass(frozen=True)
class Precision:
    """The step of a central difference, and the allowed error of a gradient.

    Attributes:
        step: the step for elements of magnitude up to 1; it is multiplied by the magnitude of
            larger elements.
        relative, absolute: a gradient may differ by `absolute + relative * scale` from the finite
            difference. The scale is the greater of the magnitudes of these two, but at least a
            hundredth of the magnitude of the array's largest gradient.
    """

    step: float
    relative: float
    absolute: float


# The error of a difference is about step**2 + epsilon / step.
_DOUBLE = Precision(1e-5, 1e-5, 1e-7)
SINGLE = Precision(1e-2, 2e-2, 2e-3)
_HALF = Precision(6e-2, 2e-1, 5e-2)


def precision_of(arrays: Sequence[Array]) -> Precision:
    """Return the step and tolerance for a function of arrays; the least precise dtype decides."""
    widest = {8: _DOUBLE, 16: _DOUBLE, 4: SINGLE, 2: _HALF}
    found = [
        SINGLE if a.dtype == np.complex64 else widest[a.dtype.itemsize] for a in arrays if a.size
    ]
    return max(found, key=lambda p: p.step, default=_DOUBLE)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The element of a gradient that differs most from a finite difference.

    Attributes:
        operand: index of the function's input to which the gradient belongs.
        index: index of the element in that input.
        got: the gradient of that element.
        wanted: the finite difference.
        error: the difference of the two, divided by the allowed error; above 1 the gradient is
            wrong.
    """

    operand: int
    index: tuple[int, ...]
    got: complex
    wanted: complex
    error: float

    def __str__(self) -> str:
        where = f" at {list(self.index)}" if self.index else ""
        return f"{_number(self.got)}{where}; by finite differences {_number(self.wanted)}"


def _number(value: complex) -> str:
    value = complex(value)
    return f"{value:.6g}" if value.imag else f"{value.real:.6g}"


def random_like(rng: np.random.Generator, array: Array) -> Array:
    """Return random numbers between -1 and 1 in the shape and dtype of an array."""
    if array.dtype.kind == "c":
        real, imag = rng.uniform(-1, 1, (2, *array.shape))
        return np.asarray(real + 1j * imag).astype(array.dtype)
    return np.asarray(rng.uniform(-1, 1, array.shape)).astype(array.dtype)


def compare(
    function: Function,
    gradients: Sequence[Array | None],
    weights: Sequence[Array],
    inputs: Sequence[Array],
    precision: Precision,
) -> Comparison | None:
    """Compare gradients of sum(weights * function(inputs)); return the worst element, or None.

    The worst element is the one whose error is the largest multiple of the allowed error. Of an
    input with more than MOST_ELEMENTS elements, only so many random ones are compared. If the
    function rounds its results to fewer digits than float64 has, a larger step is used.

    Args:
        function: function from arrays to arrays.
        gradients: the gradient with respect to each input, computed at `inputs`; None for an input
            that is not checked.
        weights: one array per result of the function.
        inputs: the arrays at which the gradients were computed.
        precision: step and tolerance.

    Returns:
        The comparison of the worst element, whether its gradient is right or wrong; None if there
            is no element to compare.
    """
    found = _compare(function, gradients, weights, inputs, precision)
    if found is None or found.error <= 1 or precision.step >= SINGLE.step:
        return found
    if _Slopes(function, weights, inputs, precision.step).is_rough():
        return _compare(function, gradients, weights, inputs, SINGLE)
    return found


def _compare(
    function: Function,
    gradients: Sequence[Array | None],
    weights: Sequence[Array],
    inputs: Sequence[Array],
    precision: Precision,
) -> Comparison | None:
    """Compare with a single step and tolerance; return the worst element, or None.

    The arguments and the result are those of `compare`.
    """
    rng = np.random.default_rng(11)
    slopes = _Slopes(function, weights, inputs, precision.step)
    worst: Comparison | None = None
    for k, gradient in enumerate(gradients):
        if gradient is None:
            continue
        largest = float(np.max(np.abs(gradient.astype(np.complex128)), initial=0.0))
        for index in _chosen(rng, inputs[k].shape):
            got = complex(gradient[index])
            want, far = slopes.at(k, index, got)
            scale = max(abs(got), abs(want), largest / 100)
            error = far / (precision.absolute + precision.relative * scale)
            if not np.isfinite(got) or not np.isfinite(want):
                error = 0.0 if not np.isfinite(got) and not np.isfinite(want) else float("inf")
            if worst is None or error > worst.error:
                worst = Comparison(k, index, got, want, error)
    return worst


def _chosen(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield indices of array elements to compare: all, or MOST_ELEMENTS random ones."""
    size = int(np.prod(shape))
    if size <= MOST_ELEMENTS:
        yield from np.ndindex(shape)
        return
    for flat in rng.choice(size, MOST_ELEMENTS, replace=False):
        yield tuple(int(i) for i in np.unravel_index(flat, shape))


class _Slopes:
    """Finite differences of sum(weights * function(inputs)) at the point `inputs`.

    A gradient is right if it lies between the left and the right one-sided difference. Where the
    function has a kink, any derivative in between is a valid choice.
    """

    def __init__(
        self, function: Function, weights: Sequence[Array], inputs: Sequence[Array], step: float
    ) -> None:
        self.function = function
        self.weights = [np.conj(w.astype(np.complex128)) for w in weights]
        self.inputs = inputs
        self.step = step
        self.here = self._total(inputs)

    def _total(self, inputs: Sequence[Array]) -> float:
        found = self.function(inputs)
        return float(
            sum(np.sum((w * np.asarray(r)).real) for w, r in zip(self.weights, found, strict=True))
        )

    def is_rough(self) -> bool:
        """Return whether the function rounds its results to fewer digits than float64 has.

        At inputs about 1e-7 apart, the results of such a function do not lie on a straight line but
        jump.
        """
        rng = np.random.default_rng(17)
        by = [1e-7 * random_like(rng, a) for a in self.inputs]
        line = [
            self._total([a + n * d if a.dtype.kind in "fc" else a for a, d in zip(self.inputs, by)])
            for n in range(8)
        ]
        bends = np.abs(np.diff(line, 2))
        return bool(np.max(bends) > 1e-11 * max(1.0, abs(self.here)))

    def at(self, k: int, index: tuple[int, ...], got: complex) -> tuple[complex, float]:
        """Return the finite difference for one input element, and the error of a gradient there.

        The error is 0 if the gradient lies between the one-sided differences, otherwise its
        distance from the nearer one.

        Args:
            k: index of the input.
            index: index of the element in the input.
            got: the gradient to check.
        """
        real, far = self._along(k, index, 1.0, got.real)
        if self.inputs[k].dtype.kind != "c":
            return complex(real), far
        imaginary, far_imaginary = self._along(k, index, 1j, got.imag)
        return complex(real, imaginary), max(far, far_imaginary)

    def _along(
        self, k: int, index: tuple[int, ...], direction: complex, got: float
    ) -> tuple[float, float]:
        """Return the finite difference and the error of a gradient in one direction.

        `direction` is 1 for the real part of element `index` of input `k`, and 1j for the imaginary
        part; `got` is this part of the gradient. The error is 0 if `got` lies between the one-sided
        differences, otherwise its distance from the nearer one.
        """
        start = self.inputs[k]
        by = self.step * max(1.0, abs(complex(start[index])))

        def slope(shift: complex) -> tuple[float, float]:
            moved = list(self.inputs)
            moved[k] = start.copy()
            moved[k][index] += np.asarray(shift).astype(start.dtype)
            return self._total(moved), abs(complex(moved[k][index]) - complex(start[index]))

        (ahead, up), (behind, down) = slope(by * direction), slope(-by * direction)
        right, left = (ahead - self.here) / up, (self.here - behind) / down
        low, high = min(left, right), max(left, right)
        return (ahead - behind) / (up + down), max(low - got, got - high, 0.0)
