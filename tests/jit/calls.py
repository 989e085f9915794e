"""What the tables of programs in this folder share."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn

Program = Callable[..., Any]


def table() -> tuple[dict[str, Program], Callable[[Program], Program]]:
    """Return an empty table of programs and a decorator that adds a function to it by name."""
    programs: dict[str, Program] = {}

    def case(function: Program) -> Program:
        assert function.__name__ not in programs
        programs[function.__name__] = function
        return function

    return programs, case


def T(*values: Any) -> Tensor:
    """Return a float32 tensor of one axis."""
    return Tensor(list(values), ms.float32)


def same(a: Any, b: Any) -> None:
    """Check that two arrays or Tensors are equal in every element."""
    a, b = (x.asnumpy() if isinstance(x, Tensor) else x for x in (a, b))
    assert np.array_equal(a, b), (a, b)


def eq(a: Any, b: Any) -> None:
    """Check that two values print the same text."""
    assert str(a) == str(b), (str(a), str(b))


def current(want: str, f: Callable[..., Any], *args: Any) -> None:
    """Call a function after a value that it reads was changed, and check the result.

    Right is the text `want`, or any result after a warning that it may be old.
    """
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = f(*args)
    assert str(result) == want or found, str(result)


def described(value: Any) -> Any:
    """Return a result as nested tuples that show the data of every Tensor and array."""
    if isinstance(value, Tensor):
        return "Tensor", str(value.dtype), value.shape, value.asnumpy().tolist()
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.tolist()
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [described(v) for v in value]
    if isinstance(value, dict):
        return type(value).__name__, {k: described(v) for k, v in value.items()}
    return type(value).__name__, value


def as_line_by_line(function: Program, warned: list[warnings.WarningMessage]) -> None:
    """Check that four calls give the same values compiled as line by line.

    Also checks that there was a warning exactly if the compiled function ran line by line.
    """
    compiled = ms.jit(function)
    for values in ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-1.0, 2.0, 3.0], [1.0, 2.0, 3.0]):
        want = described(function(Tensor(values)))
        assert described(compiled(Tensor(values))) == want
    told = [w for w in warned if "line by line" in str(w.message)]
    assert len(told) == (compiled.cache_info().fallbacks > 0)
    assert all(issubclass(w.category, (RuntimeWarning, DeprecationWarning)) for w in warned)


@ms.jit
def doubled(x):
    return x * 2


class Scaled(nn.Cell):
    def __init__(self, k=2):
        super().__init__()
        self.k = k
        self.w = Parameter(T(1, 2), name="w")

    @ms.jit
    def construct(self, x):
        return x * self.k + self.w
