"""Computes the gradients of a conformance test sample, on the device and by finite differences.

`test_ops` and `test_graph` call it. It compares gradients with finite differences, but does not
decide what to test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..autodiff.transforms import vjp
from ..tensor import Tensor
from .case import Array, OpCase, Sample
from .check import arrays_of, substitute, to_tensor
from .tolerance import DIFFERENCE, STEP

__all__ = ["Problem", "against_differences", "tensors_in"]


class Problem:
    """A conformance test sample as a function of the arrays to differentiate with respect to.

    Attributes:
        inputs: the arrays to differentiate with respect to.
        seeds: a random cotangent (the gradient that backpropagation starts from) for each floating
            result; None until the shapes of the results are known.
        second_seeds: a random cotangent for each first gradient, for second derivatives.
    """

    def __init__(self, case: OpCase, sample: Sample, order: int = 1) -> None:
        self.case = case
        self.sample = sample
        self.order = order
        every = list(arrays_of([list(sample.args), dict(sample.kwargs)]))
        inexact = [i for i, a in enumerate(every) if a.dtype.kind in "fcV"]
        if isinstance(case.grad, tuple):
            chosen = [i for i in case.grad if i < len(every)]
        else:
            chosen = inexact
        self.positions = tuple(chosen)
        self.inputs = [np.array(every[i], order="C") for i in chosen]
        self.rng = np.random.default_rng(7)
        self.seeds: list[Array] | None = None
        self.second_seeds: list[Array] | None = None

    def function(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Call the tested function with `tensors` in place of `inputs`.

        Returns its floating results.
        """
        replaced = dict(zip(self.positions, tensors, strict=True))
        count = iter(range(1_000_000))

        def tensor(array: Array) -> Tensor:
            i = next(count)
            return replaced[i] if i in replaced else to_tensor(array, "")

        args = substitute(self.sample.args, tensor)
        kwargs = substitute(dict(self.sample.kwargs), tensor)
        found = tensors_in(self.case.function(*args, **kwargs))
        return tuple(t for t in found if t.dtype.kind in "fc")

    def results(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the values at `inputs` of the function that is differentiated, as NumPy arrays.

        It is the tested function or, for second derivatives, that function's gradient.
        """
        if self.order == 1:
            return [t.asnumpy() for t in self.function(*map(Tensor, inputs))]
        return self._pulled(inputs, self._seeds_for(inputs))

    def _seeds_for(self, inputs: Sequence[Array]) -> list[Array]:
        if self.seeds is None:
            outs = self.function(*map(Tensor, inputs))
            self.seeds = [self._random_like(t.asnumpy()) for t in outs]
        return self.seeds

    def _random_like(self, array: Array) -> Array:
        if array.dtype.kind == "c":
            real, imag = self.rng.uniform(-1, 1, (2, *array.shape))
            return np.asarray(real + 1j * imag).astype(array.dtype)
        return np.asarray(self.rng.uniform(-1, 1, array.shape)).astype(array.dtype)

    def _pulled(self, inputs: Sequence[Array], seeds: Sequence[Array]) -> list[Array]:
        tensors = [Tensor(a) for a in inputs]
        _, pull = vjp(self.function, *tensors)
        found = pull(*[Tensor(s) for s in seeds])
        return [t.asnumpy() for t in found]

    def gradients(self) -> list[Array]:
        """Return duograph's gradient of sum(seed * result) with respect to each of the inputs.

        For second derivatives, `result` is itself the gradient of the tested function.
        """
        seeds = self._seeds_for(self.inputs)
        if self.order == 1:
            return self._pulled(self.inputs, seeds)
        if self.second_seeds is None:
            self.second_seeds = [self._random_like(a) for a in self.inputs]

        def first(*tensors: Tensor) -> tuple[Tensor, ...]:
            _, pull = vjp(self.function, *tensors)
            found: tuple[Tensor, ...] = pull(*[Tensor(s) for s in seeds])
            return found

        _, pull = vjp(first, *[Tensor(a) for a in self.inputs])
        found = pull(*[Tensor(s) for s in self.second_seeds])
        return [t.asnumpy() for t in found]

    def weights(self) -> list[Array]:
        """Return the weights of the results in the sum that is differentiated.

        They are `seeds` or, for second derivatives, `second_seeds`, which `gradients` has made.
        """
        found = self._seeds_for(self.inputs) if self.order == 1 else self.second_seeds
        assert found is not None
        return found


def tensors_in(value: object) -> list[Tensor]:
    """Return the Tensors of nested lists, tuples and dictionaries as a flat list.

    Compiled functions may call it.
    """
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_in(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return []


def _dot(a: Sequence[Array], b: Sequence[Array]) -> float:
    """Return the sum of the real inner products of the arrays in `a` with those in `b`, in pairs.

    A complex number counts as a pair of real numbers.
    """
    return float(sum(np.sum((np.conj(x) * y).real) for x, y in zip(a, b, strict=True)))


def against_differences(problem: Problem, gradients: Sequence[Array]) -> str | None:
    """Describe where a sample's gradients disagree with finite differences, or return None.

    Derivatives along two random directions are compared first. If one disagrees, the elements
    of all small arrays are compared, so that the message can name the first wrong element.
    """
    weights = problem.weights()

    def loss(inputs: Sequence[Array]) -> float:
        return _dot(weights, [np.asarray(r) for r in problem.results(inputs)])

    def derivative(direction: Sequence[Array]) -> float:
        ahead = [a + STEP * d for a, d in zip(problem.inputs, direction, strict=True)]
        behind = [a - STEP * d for a, d in zip(problem.inputs, direction, strict=True)]
        return (loss(ahead) - loss(behind)) / (2 * STEP)

    for _ in range(2):
        direction = [problem._random_like(a) for a in problem.inputs]
        want, got = derivative(direction), _dot(gradients, direction)
        scale = sum(float(np.sum(np.abs(g * d))) for g, d in zip(gradients, direction, strict=True))
        if not abs(got - want) <= DIFFERENCE.relative * max(scale, abs(want)) + DIFFERENCE.absolute:
            return _first_element(problem, gradients, derivative) or (
                f"along a random direction\ncomputed  {got}\nby differences  {want}"
            )
    return None


def _first_element(
    problem: Problem, gradients: Sequence[Array], derivative: Callable[[Sequence[Array]], float]
) -> str | None:
    """Describe the first element whose gradient disagrees with finite differences, or return None.

    `derivative` returns the derivative along a direction, by finite differences. Arrays of more
    than 200 elements are skipped.
    """
    for k, array in enumerate(problem.inputs):
        if array.size > 200:
            continue
        for index in np.ndindex(array.shape):
            direction = [np.zeros_like(a) for a in problem.inputs]
            direction[k][index] = 1
            want = derivative(direction)
            got = float(np.real(gradients[k][index]))
            if not abs(got - want) <= 10 * (DIFFERENCE.relative * abs(want) + DIFFERENCE.absolute):
                return (
                    f"gradient of array {k}, first difference at {list(index)}\n"
                    f"computed        {gradients[k][index]!s}\nby differences  {want:.10g}"
                )
    return None
