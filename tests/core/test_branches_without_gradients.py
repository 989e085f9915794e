"""Gradients of nested branches of which some result has no gradient, beside some that have one."""

from __future__ import annotations

import itertools
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, jit, ops

pytestmark = pytest.mark.usefixtures("restored")

# Scalars of x: with a gradient, without one, and constant.
RESULTS = {
    "sum": lambda x: x.sum(),
    "product": lambda x: (x * x).sum(),
    "integers": lambda x: (ops.tanh(x) * 3).astype(ms.int32).sum().astype(ms.float32),
    "stopped": lambda x: ops.stop_gradient(x).sum(),
    "constant": lambda x: ops.zeros((), ms.float32),
}
FIRST = {"itself": lambda x: x, "scaled": lambda x: x * 2}
VALUES = ([0.5, 0.5], [0.05, 0.05], [-0.5, 0.25])


def program(first: Any, inner: Any, outer: Any) -> Any:
    """Return a function with a branch in a branch, and the results of each."""

    def f(x: Tensor, y: Tensor) -> Any:
        if x.sum() > 0.25:
            z = x
        else:
            z = y
            if not x.sum() > 0:
                return first(x), inner(x)
        return x, outer(x) + z.sum()

    return f


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize(("inner", "outer"), [*itertools.product(RESULTS, RESULTS)])
def test_nested_branches(inner: str, outer: str, first: str, level: str) -> None:
    f = program(FIRST[first], RESULTS[inner], RESULTS[outer])
    compiled = jit(f, jit_level=level, fullgraph=True)

    def gradient(function: Any) -> Any:
        def total(x: Tensor, y: Tensor) -> Tensor:
            a, b = function(x, y)
            return (a * a).sum() + b

        return ms.value_and_grad(total, (0, 1))

    def arrays(found: Any) -> list[np.ndarray]:
        value, grads = found
        return [value.asnumpy(), *(g.asnumpy() for g in grads)]

    for value in VALUES:
        given = Tensor(np.float32(value)), Tensor(np.float32([1, 2]))
        want = arrays(gradient(f)(*given))
        for run in (gradient(compiled), jit(gradient(f), jit_level=level, fullgraph=True)):
            for a, b in zip(want, arrays(run(*given)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)
