"""Tensors that branches choose or make, written in place and then stored outside."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from duograph import Tensor, jit, ops
from duograph.conformance.compare import difference_of, snapshot

pytestmark = pytest.mark.usefixtures("restored")


def early_return(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return ops.tanh(x) * 2
    return x * 2


def two_early_returns(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return ops.tanh(x) * 2
    if x.sum() > -1:
        return x * 3
    return x * 2


def nested(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return early_return(x) + 1
    return early_return(x * -1)


def both_sides(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x * 2
    else:
        y = x * 3
    return y


def twice(x: Tensor) -> Tensor:
    return early_return(early_return(x))


def by_slice(v: Tensor) -> None:
    v[1:] = 0.5


def by_item(v: Tensor) -> None:
    v[0] = 0.5


def by_product(v: Tensor) -> None:
    v *= 2


def by_method(v: Tensor) -> None:
    v.add_(1)


class Holder:
    """An object from outside."""

    last: Any = None


HOLDER = Holder()
KEPT: list[Any] = []
NAMED: dict[str, Any] = {}


def attribute(v: Tensor) -> None:
    HOLDER.last = v


def list_item(v: Tensor) -> None:
    KEPT.append(v)


def dict_item(v: Tensor) -> None:
    NAMED["v"] = v


@pytest.mark.parametrize("store", [attribute, list_item, dict_item])
@pytest.mark.parametrize("write", [by_slice, by_item, by_product, by_method])
@pytest.mark.parametrize("make", [early_return, two_early_returns, nested, both_sides, twice])
def test_the_stored_tensor_has_the_write(make: Any, write: Any, store: Any) -> None:
    def f(x: Tensor) -> Tensor:
        v = make(x)
        write(v)
        store(v)
        write(v)
        return x + v

    def outcome(function: Any, value: list[float]) -> Any:
        HOLDER.last = None
        KEPT.clear(), NAMED.clear()
        result = function(Tensor(value))
        return snapshot([result, HOLDER.last, KEPT, NAMED])

    compiled = jit(f, jit_level="O0")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*runs line by line")
        for value in ([0.5, 0.5, 0.5], [-0.1, -0.1, -0.1], [-1.0, -1.0, -1.0]):
            assert difference_of(outcome(f, value), outcome(compiled, value)) is None
