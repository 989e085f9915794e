"""What the tables of programs in this folder share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn

Program = Callable[[], None]


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
    """A call after something that the function reads was changed: the new result, or a warning that it may be old."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = f(*args)
    assert str(result) == want or found, str(result)


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
