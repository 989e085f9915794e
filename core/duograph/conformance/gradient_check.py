"""Defines `check_gradient`, which compares a user's gradients with finite differences.

Users call it for code with gradient rules of their own. It evaluates the function eagerly, twice
for every compared element of the inputs, and differentiates it both eagerly and compiled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..autodiff.finite_differences import Comparison, Precision, compare, precision_of, random_like
from ..autodiff.transforms import vjp
from ..backend import registry
from ..compiler.decorator import jit
from ..dtype import complex128, float64
from ..errors import ArgumentError, ArgumentValueError
from ..random_state import get_rng_state, set_rng_state
from ..tensor import Tensor
from .gradient import tensors_in

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["GradientCheck", "check_gradient"]

TensorFunction: TypeAlias = Callable[..., object]

MODES = ("eager", "compiled")
_ORDINAL = {1: "first", 2: "second"}


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """The result of `check_gradient`; true if all gradients agree with finite differences.

    Attributes:
        agrees: whether all gradients agree.
        order: order (1 or 2) of the derivative of the worst element.
        mode: how the gradient of the worst element was computed, "eager" or "compiled".
        worst: the element that differs most, in proportion to the tolerance; None if no element of
            the inputs is a floating or complex number.
        compared: how many gradients were compared.
    """

    agrees: bool
    order: int
    mode: str
    worst: Comparison | None
    compared: int

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        if self.worst is None:
            return "no input has a gradient"
        where = f"{_ORDINAL[self.order]} derivative, {self.mode}, input {self.worst.operand}"
        if self.agrees:
            return f"{self.compared} gradients agree with finite differences"
        return f"wrong gradient ({where}): {self.worst}"


def check_gradient(
    fn: TensorFunction,
    inputs: Tensor | Sequence[object] | Mapping[str, object],
    order: int = 2,
    *,
    tolerance: float | None = None,
) -> GradientCheck:
    """Compare the derivatives of a function with finite differences, eagerly and compiled.

    Floating inputs are converted to float64 and complex inputs to complex128, if the device has
    these dtypes and the function accepts them. The differentiated quantity is the sum of the
    results with random weights. At a kink, any value between the one-sided derivatives counts as
    right. The random state is the same in every evaluation.

    Args:
        fn: a function or Cell that takes and returns Tensors. It is called many times.
        inputs: the argument of `fn`, or a tuple of its arguments. Tensors may be in nested lists,
            tuples and dictionaries; integer Tensors and other values are passed unchanged. At most
            200 elements of each Tensor are compared, chosen at random.
        order: 1 to compare gradients, 2 to compare gradients of gradients as well.
        tolerance: relative error to allow; by default 1e-5 in float64 and 2e-2 in float32.

    Returns:
        A `GradientCheck`, which is true if all gradients agree; printing it shows the worst
        element.

    Raises:
        TypeError: `fn` is not callable, or no input or no result is a Tensor.
        ValueError: `order` is neither 1 nor 2, or the results at the inputs are not finite.

    Examples:
        >>> import duograph as ms
        >>> print(ms.check_gradient(lambda x: ms.ops.sin(x) * x, ms.Tensor([0.5, 1.0])))
        8 gradients agree with finite differences
        >>> class Twice(ms.nn.Cell):
        ...     def construct(self, x):
        ...         return x * 2
        ...     def bprop(self, x, out, dout):
        ...         return (dout * 3,)
        >>> bool(ms.check_gradient(Twice(), ms.Tensor([1.0])))
        False
    """
    if not callable(fn):
        raise ArgumentError(f"check_gradient: got {type(fn).__name__}; wanted a function or a Cell")
    if isinstance(order, bool) or order not in (1, 2):
        raise ArgumentValueError(f"check_gradient: got order={order!r}; wanted 1 or 2")
    given = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    leaves = _leaves(given)
    if not any(isinstance(x, Tensor) for x in leaves):
        raise ArgumentError("check_gradient: got no Tensor among the inputs; wanted at least one")
    nested = any(isinstance(x, (list, tuple, dict)) for x in given)
    function = _of_leaves(fn, given) if nested else fn
    problem = _Problem(function, _computed_in(function, leaves))
    if not problem.wrt or not problem.weights:
        return GradientCheck(True, 1, MODES[0], None, 0)
    found = [problem.check(1, mode, tolerance) for mode in MODES]
    if order == 2 and all(found):
        problem = problem.of_gradients()
        found += [problem.check(2, mode, tolerance) for mode in MODES]
    wrong = [c for c in found if not c]
    worst = max(wrong or found, key=lambda c: -1.0 if c.worst is None else c.worst.error)
    return dataclasses.replace(worst, compared=sum(c.compared for c in found))


def _leaves(value: object) -> list[object]:
    """Return what nested lists, tuples and dictionaries hold, as a flat list."""
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in _leaves(v)]
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in _leaves(v)]
    return [value]


def _filled(value: object, leaves: Iterator[object]) -> Any:
    """Return a copy of the nested containers in `value`, filled with the given leaves in order."""
    if isinstance(value, dict):
        return {k: _filled(v, leaves) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_filled(v, leaves) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return next(leaves)


def _of_leaves(fn: TensorFunction, given: Sequence[object]) -> TensorFunction:
    """Convert a function of nested containers to one that takes their leaves as arguments.

    `given` are arguments of `fn`, whose nesting the converted function rebuilds.
    """
    return lambda *leaves: fn(*_filled(given, iter(leaves)))


def _computed_in(fn: TensorFunction, given: Sequence[object]) -> list[object]:
    """Return `given` with floating Tensors as float64 and complex ones as complex128.

    A Tensor is not converted if the device lacks the dtype. `fn` is called once with the converted
    inputs; if it raises TypeError, the result is `given` unconverted. The random state is restored.
    """
    dtypes = registry.backend(registry.current_device().name).dtypes
    wide = [
        x.astype(float64 if x.dtype.is_floating else complex128)
        if isinstance(x, Tensor)
        and x.dtype.kind in "fc"
        and (float64 if x.dtype.is_floating else complex128) in dtypes
        else x
        for x in given
    ]
    state = get_rng_state()
    try:
        fn(*wide)
    except TypeError:  # a dtype that the function does not take
        return list(given)
    finally:
        set_rng_state(state)
    return wide


class _Problem:
    """A function whose gradient is compared with finite differences at one point.

    Attributes:
        fn: the function, of all inputs.
        given: the inputs.
        wrt: positions of the inputs to differentiate with respect to.
        weights: a random cotangent (weight of each element in the sum) for each result.
    """

    def __init__(self, fn: TensorFunction, given: Sequence[object]) -> None:
        self.fn = fn
        self.given: list[Any] = list(given)
        self.wrt = [
            i for i, x in enumerate(given) if isinstance(x, Tensor) and x.dtype.kind in "fc"
        ]
        self.arrays: list[Array] = [np.array(self.given[i]) for i in self.wrt]
        self.state = get_rng_state()
        outs = self.results(self.arrays)
        for out in outs:
            if not np.isfinite(np.asarray(out, np.complex128)).all():
                raise ArgumentValueError(
                    f"check_gradient: the function returned {np.asarray(out)} at the inputs; "
                    f"wanted finite numbers: choose other inputs"
                )
        rng = np.random.default_rng(3)
        self.weights = [random_like(rng, o) for o in outs]

    def call(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Call the function with `tensors` as the inputs at positions `wrt`.

        Returns its floating and complex results. Raises ArgumentError if it returns no Tensor.
        """
        given = list(self.given)
        for i, t in zip(self.wrt, tensors):
            given[i] = t
        found = self.fn(*given)
        tensors_found = tensors_in(found)
        if not tensors_found:
            got = type(found).__name__
            raise ArgumentError(
                f"check_gradient: the function returned {got} without a Tensor; wanted a Tensor, "
                f"or a list, tuple or dictionary of them"
            )
        return tuple([t for t in tensors_found if t.dtype.kind in "fc"])

    def tensors(self, arrays: Sequence[Array]) -> list[Tensor]:
        """Return arrays as Tensors on the devices of the inputs."""
        where = [self.given[i]._type.device for i in self.wrt]
        return [
            Tensor(a, device=None if d is None else repr(d))
            for a, d in zip(arrays, where, strict=True)
        ]

    def results(self, arrays: Sequence[Array]) -> list[Array]:
        """Compute the function's results as NumPy arrays, from the same random state each time."""
        set_rng_state(self.state)
        return [t.asnumpy() for t in self.call(*self.tensors(arrays))]

    def pulled(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of the weighted sum of the results, as Tensors.

        `tensors` are the inputs to differentiate with respect to, followed by the weights.
        """
        n = len(self.wrt)
        values, pull = vjp(self.call, *tensors[:n])
        seeds = [
            w if w.device == v.device else w.move_to(v.device)
            for w, v in zip(tensors[n:], values, strict=True)
        ]
        found: tuple[Tensor, ...] = pull(*seeds)
        return found

    def of_gradients(self) -> _Problem:
        """Return the problem whose function computes the gradients of this problem.

        Its gradients are second derivatives of the function of this problem.
        """
        weights = [Tensor(w) for w in self.weights]
        return _Problem(
            lambda *tensors: self.pulled(*tensors, *weights), [self.given[i] for i in self.wrt]
        )

    def check(self, order: int, mode: str, tolerance: float | None) -> GradientCheck:
        """Compare the gradients of one mode, "eager" or "compiled", with finite differences.

        `order` is only copied to the result. If `tolerance` is None, the tolerance follows from the
        dtypes of the arrays.
        """
        run = self.pulled if mode == "eager" else jit(self.pulled)
        set_rng_state(self.state)
        try:
            found = run(*self.tensors(self.arrays), *map(Tensor, self.weights))
        finally:
            set_rng_state(self.state)
        gradients = [t.asnumpy() for t in found]
        precision = precision_of([*self.arrays, *self.weights])
        if tolerance is not None:
            precision = Precision(precision.step, tolerance, tolerance / 100)
        worst = compare(self.results, gradients, self.weights, self.arrays, precision)
        set_rng_state(self.state)
        count = sum(g.size for g in gradients)
        if worst is None:
            return GradientCheck(True, order, mode, None, 0)
        operand = self.wrt[worst.operand] if order == 1 else worst.operand
        worst = dataclasses.replace(worst, operand=operand)
        return GradientCheck(worst.error <= 1, order, mode, worst, count)
