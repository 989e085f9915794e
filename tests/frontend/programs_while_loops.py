# ruff: noqa
"""Programs about `while` loops (section 8)."""

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

from frontend.corpus import b, case, f, i


@case("8.11", "S", [(f(1),), (f(40),), (f(200),)])
def while_on_tensor(x):
    while x < 100:
        x = x * 2
    return x


@case("8.11", "S", [(f(1), f(5)), (f(3), f(2)), (f(2), f(0))], grad=0)
def while_with_counter(x, n):
    k = n * 0
    y = x
    while k < n:
        y = y * x
        k = k + 1
    return y


@case("8.11", "S", [(f(1), 4), (f(2), 0)])
def while_on_constant(x, n):
    while n > 0:
        x = x * n
        n -= 1
    return x, n


@case("8.11", "S", [(f(27),), (f(6),)])
def collatz(x):
    steps = 0
    while x != 1:
        if x % 2 == 0:
            x = x / 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps


@case("8.11", "S", [(i(48), i(18)), (i(7), i(5))])
def greatest_common_divisor(a, c):
    while c != 0:
        a, c = c, a % c
    return a


@case("8.11", "S", [(f(2),), (f(9),)])
def newton_square_root(x):
    guess = x
    previous = x + 1
    n = 0
    while ops.abs(guess - previous) > 1e-4 and n < 20:
        previous = guess
        guess = 0.5 * (guess + x / guess)
        n = n + 1
    return guess, n


@case("8.11", "S", [(f(1, 2),), (f(50, 60),)])
def while_carries_tuples(x):
    state = (x, 0)
    while state[0].sum() < 100:
        state = (state[0] * 2, state[1] + 1)
    return state


@case("8.11", "S", [(f(1),), (f(30),)])
def while_carries_dict_and_list(x):
    d = {"x": x, "n": 0}
    l = [x, x]
    while d["x"] < 20:
        d["x"] = d["x"] * 2
        d["n"] += 1
        l[1] = l[0] + d["x"]
    return d["x"], d["n"], l


@case("8.11", "S", [(i(3),), (i(0),)])
def name_first_set_in_loop_body(n):
    k = n * 0
    while k < n:
        double = k * 2
        k = k + 1
    return k


@case("8.11", "S", [(f(0.1),), (f(3),)])
def python_number_carried(x):
    n, r = 0, 1.0
    while x < 2:
        x = x + 0.5
        n = n + 1
        r = r * 0.5
    return x, n, r
