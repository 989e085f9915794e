"""Gradients of compiled functions have the bits of line-by-line execution.

A cotangent is a sum over the uses of a value, and its bits depend on the order of the terms. Random
programs are cut into compiled pieces that share and return their arguments.
"""

import itertools
import random

import duograph as ms
import numpy as np
import pytest

N = 4


def _statements(rng):
    """Return random statements as (target, left, right, factor) on N variables."""
    return [
        (rng.randrange(N), rng.randrange(N), rng.randrange(N), rng.choice((0.1, 0.3, 0.7)))
        for _ in range(rng.randrange(1, 7))
    ]


def _piece(statements):
    def piece(*values):
        now = list(values)
        for target, left, right, factor in statements:
            now[target] = now[left] + now[right] * factor
        return tuple(now)

    return piece


def _program(pieces, returned, weights):
    """Return a function that runs the pieces and weighs some of the final values."""

    def program(*values):
        for piece in pieces:
            values = piece(*values)
        return tuple(values[k] * w if w else values[k] for k, w in zip(returned, weights))

    return program


@pytest.mark.parametrize("seed", range(12))
def test_pieces_continue_the_sums_of_cotangents(seed):
    rng = random.Random(seed)
    pieces = [_piece(_statements(rng)) for _ in range(rng.randrange(1, 4))]
    compiled = [ms.jit(p, jit_level="O0") if rng.random() < 0.7 else p for p in pieces]
    returned = [rng.randrange(N) for _ in range(rng.randrange(1, 5))]
    weights = [rng.choice((None, 0.3, 1.1)) for _ in returned]
    data = np.random.default_rng(seed)
    inputs = [ms.Tensor(data.standard_normal(5).astype(np.float32)) for _ in range(N)]
    eager = _program(pieces, returned, weights)
    wanted = ms.grad(eager, tuple(range(N)))(*inputs)
    mixed = _program(compiled, returned, weights)
    for got in (
        ms.grad(mixed, tuple(range(N)))(*inputs),
        ms.grad(ms.jit(eager, jit_level="O0"), tuple(range(N)))(*inputs),
        ms.jit(ms.grad(mixed, tuple(range(N))), jit_level="O0")(*inputs),
    ):
        for k, (g, w) in enumerate(zip(got, wanted, strict=True)):
            np.testing.assert_array_equal(g.asnumpy(), w.asnumpy(), f"argument {k}")


def _thirds(b, a):
    for _ in range(3):
        a = a + b * 0.3
    return a


_RETURNS = {
    "a result": lambda f: f,
    "before": lambda f: lambda b, a: (b, f(b, a)),
    "after": lambda f: lambda b, a: (f(b, a), b),
    "twice": lambda f: lambda b, a: (b, f(b, a), b),
    "added": lambda f: lambda b, a: f(b, a) + b,
    "one tensor": lambda f: lambda b, a: f(b, b) + a,
    "two calls": lambda f: lambda b, a: f(b, f(b, a)),
}


@pytest.mark.parametrize("name, where", [*itertools.product(_RETURNS, ("inside", "outside"))])
def test_an_argument_that_is_used_again(name, where):
    wrap = _RETURNS[name]
    b, a = ms.Tensor([1.0, 0.7]), ms.Tensor([1.0, -3.0])
    wanted = ms.grad(wrap(_thirds), (0, 1))(b, a)
    if where == "inside":
        mixed = wrap(ms.jit(_thirds, jit_level="O0"))
    else:
        mixed = ms.jit(wrap(_thirds), jit_level="O0")
    for g, w in zip(ms.grad(mixed, (0, 1))(b, a), wanted, strict=True):
        np.testing.assert_array_equal(g.asnumpy(), w.asnumpy())


def test_an_argument_returned_by_a_compiled_function_keeps_its_hooks():
    seen = []
    double = ms.jit(lambda x, y: (x, x * y), jit_level="O0")

    def f(x, y):
        x = x * 1.0
        x.register_hook(lambda g: seen.append(float(g.sum())))
        same, product = double(x, y)
        return same + product

    found = ms.grad(f, 0)(ms.Tensor([2.0]), ms.Tensor([3.0]))
    assert found.asnumpy().tolist() == [4.0]
    assert seen == [4.0]
