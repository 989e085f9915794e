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
    """An empty table of programs, and the decorator that enters a function under its name."""
    programs: dict[str, Program] = {}

    def case(function: Program) -> Program:
        assert function.__name__ not in programs
        programs[function.__name__] = function
        return function

    return programs, case


def T(*values: Any) -> Tensor:
    """A float32 tensor of one axis."""
    return Tensor(list(values), ms.float32)


def same(a: Any, b: Any) -> None:
    """Equal in every element."""
    a, b = (x.asnumpy() if isinstance(x, Tensor) else x for x in (a, b))
    assert np.array_equal(a, b), (a, b)


def eq(a: Any, b: Any) -> None:
    """Printed alike."""
    assert str(a) == str(b), (str(a), str(b))


def current(want: str, f: Callable[..., Any], *args: Any) -> None:
    """A call after something that the function reads was changed: the new result, or a warning that
    it may be old.
    """
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = f(*args)
    assert str(result) == want or found, str(result)


def described(value: Any) -> Any:
    """A result with every Tensor's and array's data."""
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
    """The same values compiled as line by line, call by call, and told when it ran line by line."""
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
