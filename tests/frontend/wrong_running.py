"""Mistakes that show only when the graph runs, reported at the same lines."""

# ruff: noqa: F841 (what a program does not use is not what it is about)

from __future__ import annotations

import duograph as ms
import numpy as np
from duograph import nn, ops
from frontend.wrong_programs import F, I, right, wrong

LAX = ("LAX",)


class TwoPartError(Exception):
    """A user's exception that takes two arguments and prints one."""

    def __init__(self, code, text):
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self):
        return f"code {self.code}"


class SilentError(ValueError):
    """A user's exception whose arguments are not what it was called with."""

    def __init__(self, text, *, hint="none"):
        super().__init__()
        self.text = text
        self.hint = hint


# ---- raise --------------------------------------------------------------------------------------


@wrong(ValueError, r"the sum is positive", F(2))
def raise_on_a_tensor(x):
    if x.sum() > 0:
        raise ValueError("the sum is positive")  # <- here
    return x


@wrong(ValueError, r"x is.*3", F(2))
def raise_with_a_tensor(x):
    if x.sum() > 0:
        raise ValueError("x is", x.sum())  # <- here
    return x


@wrong(RuntimeError, r"the sum is 3", F(2), levels=LAX)
def raise_with_formatted_tensor(x):
    if x.sum() > 0:
        raise RuntimeError(f"the sum is {x.sum()}")  # <- here
    return x


@wrong(ValueError, r"negative", -F(2))
def raise_in_an_else(x):
    if x.sum() > 0:
        y = x
    else:
        raise ValueError("negative")  # <- here
    return y


@wrong(OverflowError, r"too large", F(2))
def raise_in_a_while(x):
    while x.sum() < 1000:
        x = x * 2
        if x.sum() > 100:
            raise OverflowError("too large")  # <- here
    return x


@wrong(StopIteration, r"third", F(4))
def raise_in_an_unrolled_loop(x):
    for i in range(4):
        if x[i] > 2:
            raise StopIteration("third or fourth")  # <- here
    return x


@wrong(IndexError, r"at 3", F(2), np.array(5, np.int32))
def raise_in_a_range_on_a_tensor(x, n):
    for i in range(n):
        if i == 3:
            raise IndexError("stopped at 3")  # <- here
        x = x + 1
    return x


@wrong(ValueError, r"bad sum", F(2), made=True)
def raise_in_a_helper():
    def check(a):
        if a.sum() > 0:
            raise ValueError("bad sum")  # <- here
        return a

    def program(x):
        y = check(x + 1)  # <- called here
        return y * 2

    return program


@wrong(ValueError, r"bad input", F(2), made=True)
def raise_in_a_child_cell():
    class Check(nn.Cell):
        def construct(self, a):
            if a.max() > 1:
                raise ValueError("bad input")  # <- here
            return a

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.check = Check()

        def construct(self, x):
            return self.check(x) + 1  # <- called here

    return Net()


@wrong(KeyError, r"missing", F(2))
def raise_a_key_error(x):
    if x.sum() > 0:
        raise KeyError("missing")  # <- here
    return x


@wrong(NotImplementedError, r"NotImplementedError|^", F(2))
def raise_a_class(x):
    if x.sum() > 0:
        raise NotImplementedError  # <- here
    return x


@wrong(TwoPartError, r"code 7", F(2))
def raise_an_odd_exception(x):
    if x.sum() > 0:
        raise TwoPartError(7, "seven")  # <- here
    return x


@wrong(SilentError, r"^", F(2))
def raise_with_a_keyword(x):
    if x.sum() > 0:
        raise SilentError("text", hint="more")  # <- here
    return x


@wrong(ValueError, r"second", F(2))
def raise_the_second_of_two(x):
    if x.sum() < 0:
        raise ValueError("first")
    if x.sum() > 0:
        raise ValueError("second")  # <- here
    return x


@wrong(ValueError, r"several lines\n.*second", F(2))
def raise_several_lines(x):
    if x.sum() > 0:
        raise ValueError("several lines\nthe second\nthe third")  # <- here
    return x


@wrong(ValueError, r"at the end", F(2))
def raise_without_a_condition(x):
    y = x + 1
    raise ValueError("at the end")  # <- here


# ---- assert -------------------------------------------------------------------------------------


@wrong(AssertionError, r"^", F(2))
def assert_on_a_tensor(x):
    assert x.sum() < 0  # <- here
    return x


@wrong(AssertionError, r"sum must be negative", F(2))
def assert_with_a_message(x):
    y = x * 2
    assert y.sum() < 0, "sum must be negative"  # <- here
    return y


@wrong(AssertionError, r"all below 2", F(2), made=True)
def assert_in_a_helper():
    def check(a):
        assert (a < 2).all(), "not all below 2"  # <- here

    def program(x):
        check(x)  # <- called here
        return x

    return program


@wrong(AssertionError, r"turn", F(2))
def assert_in_a_loop(x):
    while x.sum() < 100:
        x = x + 1
        assert x.max() < 10, "a turn too many"  # <- here
    return x


# ---- ops that look at values --------------------------------------------------------------------


@wrong(
    RuntimeError,
    r"binary_cross_entropy: got the value 2; wanted probabilities in \[0, 1\]",
    F(2),
    F(2) * 0,
)
def loss_of_no_probability(x, y):
    return ops.binary_cross_entropy(x, y)  # <- here


@wrong(
    RuntimeError,
    r"BCELoss: got the value 2; wanted probabilities",
    F(2),
    F(2) * 0,
    made=True,
)
def loss_layer_of_no_probability():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.loss = nn.BCELoss()

        def construct(self, x, y):
            return self.loss(x, y).sum()  # <- here: self.loss(x, y)

    return Net()


@wrong(
    RuntimeError, r"binary_cross_entropy: got the value 3; wanted probabilities", F(3) / 4, F(3) * 0
)
def loss_in_a_branch(x, y):
    z = x * 4
    if y.sum() == 0:
        return ops.binary_cross_entropy(z, y)  # <- here
    return y.sum()


# ---- numbers that a tensor gives ----------------------------------------------------------------


@wrong(ZeroDivisionError, r"by zero", I(2))
def division_by_a_number_of_a_tensor(x):
    n = int(x[0]) - 1
    return 7 // n  # <- here


@wrong(ZeroDivisionError, r"by zero", I(2))
def division_that_nobody_reads(x):
    n = 7 // (int(x[0]) - 1)  # <- here
    return x


@wrong(RuntimeError, r"binary_cross_entropy: got the value 2", F(2), F(2) * 0)
def loss_that_nobody_reads(x, y):
    z = ops.binary_cross_entropy(x, y)  # <- here
    return y


@wrong(IndexError, r"index out of range", F(2), np.array(5, np.int32))
def item_that_nobody_reads(x, i):
    y = (x, x + 1)[i]  # <- here
    return x


@wrong(IndexError, r"index out of range", F(2), np.array(5, np.int32))
def tuple_by_a_tensor_out_of_range(x, i):
    return (x, x + 1)[i]  # <- here


@wrong(ZeroDivisionError, r"by zero", 3)
def division_by_a_mutable_number(n):
    m = ms.mutable(n)
    return 7 / (m - 3)  # <- here


@wrong(IndexError, r"index out of range", 3)
def list_by_a_mutable_number(n):
    m = ms.mutable(n)
    return [1, 2, 3][m]  # <- here


@right(-F(2))
def raise_that_does_not_happen(x):
    if x.sum() > 0:
        raise ValueError("the sum is positive")
    return x


@right(F(2))
def assert_that_holds(x):
    assert x.sum() > 0, "sum must be positive"
    return x


@right(F(2) / 4, F(2) * 0)
def loss_of_probabilities(x, y):
    return ops.binary_cross_entropy(x, y)


@right(F(2), np.array(-1, np.int32))
def tuple_by_a_tensor_in_range(x, i):
    return (x, x + 1)[i]
