"""Values of sub-expressions, not bound to a name yet, while a later part of the statement writes.

`pick` returns one of its arguments, chosen by a condition on a Tensor, and `write` changes a Tensor
in place. What was picked before must see the write.
"""

from __future__ import annotations

import warnings
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, jit, ops
from duograph.conformance.compare import difference_of, snapshot

pytestmark = pytest.mark.usefixtures("restored")


def pick(a: Tensor, b: Tensor) -> Tensor:
    """Return one of the arguments."""
    if a.sum() > 0:
        b = a
    return b


class Box:
    """An object that holds a Tensor."""

    def __init__(self, v: Tensor) -> None:
        self.v = v

    def plus(self, t: Tensor) -> Tensor:
        return self.v + t


def by_item(t: Tensor) -> Tensor:
    t[0] = t[1] * 5
    return t * 0


def by_product(t: Tensor) -> Tensor:
    t *= 3
    return t * 0


def by_method(t: Tensor) -> Tensor:
    t.add_(2)
    return t * 0


def by_function(t: Tensor) -> Tensor:
    ops.assign(t, t * 7)
    return t * 0


def in_a_loop(t: Tensor) -> Tensor:
    k = 0
    while k < 2:
        k = k + 1
        t[0] *= t[1]
    return t * 0


def total(a: Tensor, b: Tensor, *more: Tensor, c: Any = 0) -> Tensor:
    return a + b + sum(more) + c


WRITES = {f.__name__: f for f in (by_item, by_product, by_method, by_function, in_a_loop)}


def displays(x: Tensor, y: Tensor, write: Any) -> Any:
    c = (pick(y, x), write(x))
    d = [pick(x, y), write(y)]
    return c[0] * 1, d[0] * 1


def a_dict(x: Tensor, y: Tensor, write: Any) -> Any:
    c = {"a": pick(y, x), "b": write(x)}
    return c["a"] * 1


def an_unpacking(x: Tensor, y: Tensor, write: Any) -> Any:
    v, *rest = pick(y, x), write(x), x
    return v + rest[1]


def a_sum(x: Tensor, y: Tensor, write: Any) -> Any:
    return pick(y, x) + write(x), pick(x, y) * 2 + write(y)


def a_sum_on_the_right(x: Tensor, y: Tensor, write: Any) -> Any:
    return write(x) + pick(y, x) + write(x)


def arguments(x: Tensor, y: Tensor, write: Any) -> Any:
    return total(pick(y, x), write(x)), total(pick(y, x), write(x), pick(x, y), c=write(y))


def starred(x: Tensor, y: Tensor, write: Any) -> Any:
    return total(*(pick(y, x), write(x)), **{"c": write(x)})


def keywords(x: Tensor, y: Tensor, write: Any) -> Any:
    return total(a=pick(y, x), c=pick(x, y), b=write(x) + write(y))


def a_comparison(x: Tensor, y: Tensor, write: Any) -> Any:
    return pick(y, x) < write(x) + 2


def a_subscript(x: Tensor, y: Tensor, write: Any) -> Any:
    return pick(y, x)[(write(x).sum() * 0).astype(ms.int32)]


def a_method(x: Tensor, y: Tensor, write: Any) -> Any:
    return pick(y, x).add(write(x)), Box(pick(y, x)).plus(write(x))


def an_object(x: Tensor, y: Tensor, write: Any) -> Any:
    return [Box(pick(y, x)), write(x)][0].v * 1


def a_choice(x: Tensor, y: Tensor, write: Any) -> Any:
    return (pick(y, x), write(x) if len(x.shape) else None)[0] * 1


def a_walrus(x: Tensor, y: Tensor, write: Any) -> Any:
    return ((v := pick(y, x)), write(x), v * 1)[2]


def a_comprehension(x: Tensor, y: Tensor, write: Any) -> Any:
    return sum([t + write(x) for t in (pick(y, x), pick(y, x))])


def a_nested_comprehension(x: Tensor, y: Tensor, write: Any) -> Any:
    found = [[pick(y, x), write(x)][0] for _ in range(2)]
    return found[0] + found[1]


def a_for_loop(x: Tensor, y: Tensor, write: Any) -> Any:
    out = x * 0
    for t in (pick(y, x), pick(x, y)):
        write(x)
        out = out + t
    return out


def a_for_loop_over_pairs(x: Tensor, y: Tensor, write: Any) -> Any:
    out = x * 0
    for k, t in enumerate([pick(y, x), pick(y, x)]):
        out = out + t * (k + 1)
        write(x)
    return out


def a_return(x: Tensor, y: Tensor, write: Any) -> Any:
    def inner() -> Any:
        return pick(y, x), write(x)

    return inner()[0] * 1


def an_assignment_to_an_item(x: Tensor, y: Tensor, write: Any) -> Any:
    c = [0, 0]
    c[0], c[1] = pick(y, x), write(x)
    return c[0] * 1


def an_addition_in_place(x: Tensor, y: Tensor, write: Any) -> Any:
    c = [x * 1]
    c[0] += pick(y, x) + write(x)
    c += [pick(y, x), write(x)]
    return c[0] * 1, c[1] * 1


def a_function_chosen(x: Tensor, y: Tensor, write: Any) -> Any:
    keep = lambda t: t * 0  # noqa: E731 (a function, chosen by a condition on a Tensor)
    return pick(y, x) + (write if x[-1] > 0 else keep)(x)


def an_argument(x: Tensor, y: Tensor, write: Any) -> Any:
    return (x, write(x))[0] * 1, x + write(x)


FORMS = [
    displays, a_dict, an_unpacking, a_sum, a_sum_on_the_right, arguments, starred, keywords,
    a_comparison, a_subscript, a_method, an_object, a_choice, a_walrus, a_comprehension,
    a_nested_comprehension, a_for_loop, a_for_loop_over_pairs, a_return, an_assignment_to_an_item,
    an_addition_in_place, a_function_chosen, an_argument,
]  # fmt: skip


@pytest.mark.parametrize("made_inside", [False, True], ids=["arguments", "made inside"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_a_later_part_writes(form: Any, write: str, made_inside: bool) -> None:
    def f(x: Tensor, y: Tensor) -> Any:
        if made_inside:
            x, y = x * 1, y * 1
        return form(x, y, WRITES[write])

    def outcome(function: Any, values: Any) -> Any:
        given = [Tensor(np.float32(v)) for v in values]
        return snapshot(function(*given)), snapshot(given)

    compiled = jit(f, jit_level="O0")
    for values in (([0.5, 0.25, 1], [1, 2, 3]), ([0.5, 0.25, 1], [-1, -2, -3])):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*runs line by line")
            assert difference_of(outcome(f, values), outcome(compiled, values)) is None
