"""Minimisation of functions of several variables: BFGS and L-BFGS.

Users call `minimize`. The algorithms are 6.1 and 7.4 of Nocedal and Wright, Numerical Optimization
(1999). The loop runs in Python, on Tensors; it must not change the starting point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ... import ops as _ops
from ...errors import ArgumentValueError, ShapeError
from ...option_checks import check_options
from ...tensor import Tensor
from .line_searching import Objective, search, slopes_of

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """Result of a minimisation.

    Attributes:
        x: the last point, the minimum if the search succeeded.
        success: whether the gradient at x is small enough.
        status: 0 for success, 1 if `maxiter` iterations were not enough, 3 if no step was found.
        fun: the function's value at x.
        jac: the function's gradient at x.
        hess_inv: approximation of the inverse Hessian; None for L-BFGS.
        nfev: number of evaluations of the function.
        njev: number of evaluations of the gradient.
        nit: number of iterations.
    """

    x: Tensor
    success: Tensor
    status: Tensor
    fun: Tensor
    jac: Tensor
    hess_inv: Tensor | None
    nfev: Tensor
    njev: Tensor
    nit: Tensor


class _Matrix:
    """BFGS's approximation of the inverse Hessian, stored as a matrix.

    `times` multiplies a gradient by the matrix. `learn` updates the matrix with a step and the
    change of the gradient, unless their dot product (the curvature) is not positive.
    """

    def __init__(self, size: int, like: Tensor) -> None:
        self.value: Tensor | None = _ops.eye(size, size, like.dtype)
        self._one = self.value

    def times(self, gradient: Tensor) -> Tensor:
        assert self.value is not None
        return _ops.mv(self.value, gradient)

    def learn(self, step: Tensor, change: Tensor) -> None:
        assert self.value is not None and self._one is not None
        curvature = _ops.sum(step * change)
        if float(curvature) > 0:
            left = self._one - _ops.outer(step, change) / curvature
            kept = _ops.matmul(_ops.matmul(left, self.value), _ops.swapaxes(left, 0, 1))
            self.value = kept + _ops.outer(step, step) / curvature


class _History:
    """L-BFGS's approximation of the inverse Hessian, stored as pairs of step and gradient change.

    `times` multiplies a gradient by the approximation. `learn` adds a step and the change of the
    gradient, unless their dot product (the curvature) is not positive. Only the last pairs are
    kept.
    """

    value = None

    def __init__(self, size: int) -> None:
        self._size = size
        self._pairs: list[tuple[Tensor, Tensor]] = []

    def times(self, gradient: Tensor) -> Tensor:
        shares = []
        for step, change in reversed(self._pairs):
            share = _ops.sum(step * gradient) / _ops.sum(step * change)
            gradient = gradient - share * change
            shares.append(share)
        if self._pairs:
            step, change = self._pairs[-1]
            gradient = gradient * (_ops.sum(step * change) / _ops.sum(change * change))
        for (step, change), share in zip(self._pairs, reversed(shares), strict=True):
            rest = _ops.sum(change * gradient) / _ops.sum(step * change)
            gradient = gradient + step * (share - rest)
        return gradient

    def learn(self, step: Tensor, change: Tensor) -> None:
        if float(_ops.sum(step * change)) > 0:
            self._pairs = [*self._pairs, (step, change)][-self._size :]


def _norm(x: Tensor) -> float:
    return float(_ops.amax(_ops.abs(x))) if x.size else 0.0


def _descend(
    objective: Objective, x: Tensor, hessian: _Matrix | _History, maxiter: int, tolerance: float
) -> OptimizeResults:
    """Minimise an objective from `x` by quasi-Newton steps with a line search; return the result.

    The search ends when the largest absolute element of the gradient is below `tolerance`, no step
    is found, or after `maxiter` steps. `objective` returns (value, gradient) at a point; `hessian`
    is the initial approximation of the inverse Hessian, which the search updates.
    """
    value, gradient = objective(x)
    iteration, evaluations, status = 0, 1, 1
    while True:
        if _norm(gradient) < tolerance:
            status = 0
            break
        if iteration >= maxiter:
            break
        direction = -hessian.times(gradient)
        found = search(objective, x, direction, (value, gradient))
        evaluations += int(found.nfev)
        lower = float(found.f_k) < float(value)
        if bool(found.failed) and not (lower and math.isfinite(float(found.f_k))):
            status = 3
            break
        step = direction * found.a_k
        hessian.learn(step, found.g_k - gradient)
        x, value, gradient = x + step, found.f_k, found.g_k
        iteration += 1
    return OptimizeResults(
        x, Tensor(status == 0), Tensor(status), value, gradient, hessian.value,
        Tensor(evaluations), Tensor(evaluations), Tensor(iteration),
    )  # fmt: skip


def minimize(
    func: Callable[..., Tensor],
    x0: Tensor,
    args: tuple[object, ...] = (),
    method: str | None = None,
    jac: Callable[..., Tensor] | None = None,
    hess: object = None,
    hessp: object = None,
    bounds: object = None,
    constraints: object = (),
    tol: float | None = None,
    callback: object = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Return a minimum of a function of several variables.

    Args:
        func: function of a Tensor of one axis, and `args`, that returns a Tensor without axes.
        x0: point where the search starts.
        args: more arguments of the function.
        method: ``"BFGS"`` or ``"LBFGS"``, in any case.
        jac: gradient of the function; None differentiates it.
        hess: not offered; must be None.
        hessp: not offered; must be None.
        bounds: not offered; must be None.
        constraints: not offered; must be ().
        tol: the search ends when all elements of the gradient are below this; `gtol` of the options
            overrides it.
        callback: not offered; must be None.
        options: ``maxiter`` (None is 200 for each variable), ``gtol`` (None is 1e-5), and for
            ``"LBFGS"`` also ``history_size`` (20).

    Returns:
        OptimizeResults.

    Raises:
        ValueError: another method or option, one that is refused, or `x0` is no vector.

    Examples:
        >>> import duograph as ms
        >>> from duograph.scipy.optimize import minimize
        >>> found = minimize(lambda x: ((x - 3.0) ** 2).sum(), ms.Tensor([0.0]), method="BFGS")
        >>> print(found.x)
        [3.]
    """
    check_options(
        "scipy.optimize.minimize",
        hess=hess,
        hessp=hessp,
        bounds=bounds,
        constraints=constraints,
        callback=callback,
    )
    name = str(method).upper()
    if name not in ("BFGS", "LBFGS"):
        raise ArgumentValueError(f"minimize: got method={method!r}; wanted 'BFGS' or 'LBFGS'")
    if x0.ndim != 1:
        raise ShapeError(f"minimize: got x0 of shape {x0.shape}; wanted a vector")
    chosen = dict(options or {})
    maxiter = chosen.pop("maxiter", None)
    tolerance = chosen.pop("gtol", None)
    size = chosen.pop("history_size", 20) if name == "LBFGS" else 0
    if chosen:
        raise ArgumentValueError(
            f"minimize: got the options {', '.join(chosen)} for {name}; wanted maxiter, gtol and "
            f"history_size"
        )
    if tolerance is None:
        tolerance = 1e-5 if tol is None else tol
    hessian = _History(size) if name == "LBFGS" else _Matrix(x0.size, x0)
    limit = x0.size * 200 if maxiter is None else maxiter
    return _descend(slopes_of(func, jac, tuple(args)), x0, hessian, limit, tolerance)
