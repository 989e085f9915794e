"""A line search for the strong Wolfe conditions.

Users call `line_search`, and `minimize` calls `search`. The algorithms are 3.5 and 3.6 of Nocedal
and Wright, Numerical Optimization (1999). Steps are Python floats; the function runs on Tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ... import ops as _ops
from ...autodiff.transforms import value_and_grad
from ...call_errors import explaining
from ...errors import ShapeError
from ...option_checks import check_options
from ...tensor import Tensor

__all__ = ["LineSearchResults", "line_search", "search", "slopes_of"]

Objective = Callable[[Tensor], "tuple[Tensor, Tensor]"]  # value and gradient


class LineSearchResults(NamedTuple):
    """Result of a line search.

    Attributes:
        failed: whether no step meets the conditions.
        nit: number of iterations.
        nfev: number of evaluations of the function.
        ngev: number of evaluations of the gradient.
        k: number of the last iteration.
        a_k: the step, as a factor of the direction.
        f_k: the function's value after the step.
        g_k: the function's gradient after the step.
        status: 0, or 1 if the search failed.
    """

    failed: Tensor
    nit: Tensor
    nfev: Tensor
    ngev: Tensor
    k: Tensor
    a_k: Tensor
    f_k: Tensor
    g_k: Tensor
    status: Tensor


def slopes_of(
    f: Callable[..., Tensor], jac: Callable[..., Tensor] | None, args: tuple[object, ...]
) -> Objective:
    """Return a function of x alone that returns (value, gradient) of `f` at x.

    `jac` is the gradient of `f`; with None, `f` is differentiated. Both are called with x and
    `args`.
    """
    if jac is None:
        both = value_and_grad(f, 0)
        return lambda x: both(x, *args)
    return lambda x: (f(x, *args), jac(x, *args))


class _Line:
    """An objective along a line, as a function of a number (the step).

    It stores the Tensors value and gradient of the last evaluation, and the number of evaluations.
    """

    def __init__(self, objective: Objective, start: Tensor, direction: Tensor) -> None:
        self._objective, self._start, self._direction = objective, start, direction
        self.evaluations = 0
        self.value: Tensor
        self.gradient: Tensor

    def at(self, step: float) -> tuple[float, float]:
        """Evaluate the objective at ``start + direction * step``.

        Returns (value, directional derivative) as floats.
        """
        self.evaluations += 1
        point = self._start + self._direction * step
        self.value, self.gradient = self._objective(point)
        return float(self.value), float(_ops.sum(self.gradient * self._direction))


def _cubic(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Return the position at which the cubic through two points has its minimum.

    The cubic has the values fa and fb and the derivatives da and db at a and b. The result is the
    middle of the interval from a to b if the minimum does not exist, or is not inside the interval
    by at least a tenth of its length.
    """
    d1 = da + db - 3 * (fa - fb) / (a - b) if a != b else math.nan
    inside = d1 * d1 - da * db
    if not inside >= 0:
        return (a + b) / 2
    d2 = math.copysign(math.sqrt(inside), b - a)
    bottom = db - da + 2 * d2
    found = b - (b - a) * (db + d2 - d1) / bottom if bottom else math.nan
    low, high = min(a, b), max(a, b)
    margin = 0.1 * (high - low)
    return found if low + margin <= found <= high - margin else (a + b) / 2


def search(
    objective: Objective,
    start: Tensor,
    direction: Tensor,
    first: tuple[Tensor, Tensor],
    c1: float = 1e-4,
    c2: float = 0.9,
    maxiter: int = 20,
) -> LineSearchResults:
    """Search along a direction for a step that meets the strong Wolfe conditions.

    Args:
        objective: function from a point to (value, gradient).
        start: the point where the search starts.
        direction: the direction of the search.
        first: (value, gradient) at the start.
        c1, c2: constants of the conditions, see `line_search`.
        maxiter: largest number of iterations.
    """
    line = _Line(objective, start, direction)
    f0, d0 = float(first[0]), float(_ops.sum(first[1] * direction))
    before, f_before, d_before = 0.0, f0, d0
    step, iteration, failed = 1.0, 0, True
    bracket: tuple[float, ...] | None = None
    while iteration < maxiter and failed and bracket is None:
        iteration += 1
        f, d = line.at(step)
        if not math.isfinite(f) or f > f0 + c1 * step * d0 or (iteration > 1 and f >= f_before):
            bracket = (before, f_before, d_before, step, f, d)
        elif abs(d) <= -c2 * d0:
            failed = False
        elif d >= 0:
            bracket = (step, f, d, before, f_before, d_before)
        else:
            before, f_before, d_before, step = step, f, d, 2 * step
    while bracket is not None and iteration < maxiter and failed:
        iteration += 1
        low, f_low, d_low, high, f_high, d_high = bracket
        usable = math.isfinite(f_high) and math.isfinite(d_high)
        step = _cubic(*bracket) if usable else (low + high) / 2
        f, d = line.at(step)
        if not math.isfinite(f) or f > f0 + c1 * step * d0 or f >= f_low:
            bracket = (low, f_low, d_low, step, f, d)
        elif abs(d) <= -c2 * d0:
            failed = False
        elif d * (high - low) >= 0:
            bracket = (step, f, d, low, f_low, d_low)
        else:
            bracket = (step, f, d, high, f_high, d_high)
    if failed and bracket is not None and bracket[0] > 0:  # the best step so far
        step = bracket[0]
        line.at(step)
    return LineSearchResults(
        failed=Tensor(failed),
        nit=Tensor(iteration),
        nfev=Tensor(line.evaluations),
        ngev=Tensor(line.evaluations),
        k=Tensor(iteration),
        a_k=Tensor(step, start.dtype),
        f_k=line.value,
        g_k=line.gradient,
        status=Tensor(int(failed)),
    )


@explaining
def line_search(
    f: Callable[[Tensor], Tensor],
    xk: Tensor,
    pk: Tensor,
    jac: Callable[[Tensor], Tensor] | None = None,
    gfk: Tensor | None = None,
    old_fval: Tensor | None = None,
    old_old_fval: Tensor | None = None,
    c1: float = 0.0001,
    c2: float = 0.9,
    maxiter: int = 20,
) -> LineSearchResults:
    """Return a step along a direction that meets the strong Wolfe conditions.

    Args:
        f: function of a Tensor of one axis that returns a Tensor without axes.
        xk: point where the search starts.
        pk: the direction, along which `f` decreases.
        jac: gradient of `f`; None differentiates `f`.
        gfk: gradient at `xk`; None computes it.
        old_fval: value at `xk`; None computes it.
        old_old_fval: has no meaning here.
        c1: fraction of the decrease predicted by the derivative at `xk` that a step must reach.
        c2: fraction of the absolute derivative at `xk` along the direction that may remain.
        maxiter: largest number of iterations.

    Returns:
        LineSearchResults.

    Raises:
        ValueError: `xk` and `pk` are not vectors of the same size.

    Examples:
        >>> import duograph as ms
        >>> from duograph.scipy.optimize import line_search
        >>> found = line_search(lambda x: (x * x).sum(), ms.Tensor([2.0]), ms.Tensor([-2.0]))
        >>> print(found.a_k)
        1.0
    """
    check_options("scipy.optimize.line_search", old_old_fval=old_old_fval)
    if xk.ndim != 1 or xk.shape != pk.shape:
        raise ShapeError(
            f"line_search: got shapes {xk.shape} and {pk.shape}; wanted vectors of one size"
        )
    objective = slopes_of(f, jac, ())
    value, gradient = (old_fval, gfk)
    if value is None or gradient is None:
        computed = objective(xk)
        value = computed[0] if value is None else value
        gradient = computed[1] if gradient is None else gradient
    direction = pk.astype(xk.dtype)
    return search(objective, xk, direction, (value, gradient), c1, c2, maxiter)
