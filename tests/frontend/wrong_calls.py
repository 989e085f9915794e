"""Calls with wrong arguments, calls of objects that are not callable, and endless calls."""

from __future__ import annotations

import functools

import duograph as ms
from duograph import nn, ops
from frontend.wrong_programs import F, I, right, wrong

X = (F(2, 3),)


# ---- from outside: the line is the caller's own -------------------------------------------------


@wrong(TypeError, r"missing 1 required positional argument: 'y'", F(2))
def top_level_too_few(x, y):
    return x + y


@wrong(TypeError, r"takes 1 positional argument but 2 were given", F(2), F(2))
def top_level_too_many(x):
    return x


@wrong(TypeError, r"missing 1 required keyword-only argument: 'scale'", F(2))
def top_level_without_a_keyword(x, *, scale):
    return x * scale


@wrong(TypeError, r"missing 1 required positional argument: 'y'", F(2), made=True)
def top_level_cell_too_few():
    class Net(nn.Cell):
        def construct(self, x, y):
            return x + y

    return Net()


@wrong(TypeError, r"takes 2 positional arguments but 3 were given", F(2), F(2), made=True)
def top_level_cell_too_many():
    class Net(nn.Cell):
        def construct(self, x):
            return x

    return Net()


# ---- functions ----------------------------------------------------------------------------------


@wrong(TypeError, r"helper\(\) missing 1 required positional argument: 'b'", F(2))
def too_few(x):
    def helper(a, b):
        return a + b

    return helper(x)  # <- here: helper(x)


@wrong(TypeError, r"helper\(\) missing 2 required positional arguments: 'b' and 'c'", F(2))
def two_too_few(x):
    def helper(a, b, c):
        return a + b + c

    return helper(x)  # <- here: helper(x)


@wrong(TypeError, r"helper\(\) takes 1 positional argument but 2 were given", F(2))
def too_many(x):
    def helper(a):
        return a

    return helper(x, x)  # <- here: helper(x, x)


@wrong(TypeError, r"helper\(\) takes from 1 to 2 positional arguments but 3 were given", F(2))
def too_many_for_defaults(x):
    def helper(a, b=1):
        return a + b

    return helper(x, 1, 2)  # <- here: helper(x, 1, 2)


@wrong(TypeError, r"helper\(\) got an unexpected keyword argument 'c'", F(2))
def unknown_keyword(x):
    def helper(a, b=1):
        return a + b

    return helper(x, c=2)  # <- here: helper(x, c=2)


@wrong(TypeError, r"helper\(\) got multiple values for argument 'a'", F(2))
def argument_twice(x):
    def helper(a, b=1):
        return a + b

    return helper(x, a=2)  # <- here: helper(x, a=2)


@wrong(TypeError, r"helper\(\) missing 1 required keyword-only argument: 'scale'", F(2))
def keyword_only_missing(x):
    def helper(a, *, scale):
        return a * scale

    return helper(x)  # <- here: helper(x)


@wrong(TypeError, r"positional-only arguments? passed as keyword arguments?: 'a'", F(2))
def positional_only_by_keyword(x):
    def helper(a, /, b=1):
        return a + b

    return helper(a=x)  # <- here: helper(a=x)


@wrong(TypeError, r"takes 1 positional argument but 2 were given", F(2))
def lambda_with_too_many(x):
    f = lambda a: a + 1  # noqa: E731
    return f(x, x)  # <- here: f(x, x)


@wrong(TypeError, r"missing 1 required positional argument: 'c'", F(2), made=True)
def partial_with_too_few():
    def helper(a, b, c):
        return a + b + c

    def program(x):
        return functools.partial(helper, 1)(x)  # <- here

    return program


@wrong(TypeError, r"missing 1 required positional argument: 'y'", F(2), made=True)
def too_few_for_a_compiled_function():
    @ms.jit
    def helper(x, y):
        return x + y

    def program(x):
        return helper(x)  # <- here: helper(x)

    return program


@wrong(TypeError, r"(argument after \*|Value after \*) must be an iterable, not int", F(2))
def star_of_a_number(x):
    def helper(*a):
        return a

    return helper(*3)  # <- here


@wrong(TypeError, r"keywords must be strings", F(2))
def keywords_that_are_no_text(x):
    def helper(**k):
        return k

    return helper(**{1: x})  # <- here


# ---- Cells and ops ------------------------------------------------------------------------------


@wrong(TypeError, r"missing 1 required positional argument: 'b'", F(2), made=True)
def too_few_for_a_child_cell():
    class Inner(nn.Cell):
        def construct(self, a, b):
            return a + b

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return self.inner(x)  # <- here: self.inner(x)

    return Net()


@wrong(TypeError, r"takes 2 positional arguments but 3 were given", *X, made=True)
def too_many_for_a_layer():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(3, 4)

        def construct(self, x):
            return self.dense(x, x)  # <- here: self.dense(x, x)

    return Net()


@wrong(TypeError, r"got an unexpected keyword argument 'scale'", *X, made=True)
def unknown_keyword_for_a_layer():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def construct(self, x):
            return self.relu(x, scale=2)  # <- here: self.relu(x, scale=2)

    return Net()


@wrong(TypeError, r"takes 1 positional argument but 2 were given", F(2), made=True)
def too_many_for_a_method():
    class Net(nn.Cell):
        def factor(self):
            return 2

        def construct(self, x):
            return x * self.factor(3)  # <- here: self.factor(3)

    return Net()


@wrong(TypeError, r"exp: got no value for 'input'; wanted exp\(input: 'Tensor'\)", *X)
def op_without_arguments(x):
    return x + ops.exp()  # <- here: ops.exp()


@wrong(TypeError, r"exp: got 2 positional arguments, wanted at most 1: exp\(input", *X)
def op_with_too_many(x):
    return ops.exp(x, x)  # <- here: ops.exp(x, x)


@wrong(TypeError, r"exp: got the unknown argument 'nope'; wanted exp\(input", *X)
def op_with_an_unknown_keyword(x):
    return ops.exp(x, nope=1)  # <- here: ops.exp(x, nope=1)


@wrong(TypeError, r"matmul.* missing 1 required positional argument: 'other'", *X)
def op_with_too_few(x):
    return ops.matmul(x)  # <- here: ops.matmul(x)


@wrong(TypeError, r"missing 1 required positional argument: 'y'", *X)
def primitive_with_too_few(x):
    return ops.MatMul()(x)  # <- here: ops.MatMul()(x)


@wrong(TypeError, r"got an unexpected keyword argument 'nope'", *X)
def primitive_made_with_a_wrong_keyword(x):
    return ops.MatMul(nope=1)(x, x)  # <- here: ops.MatMul(nope=1)


@wrong(ValueError, r"ReduceSum: got axis 5; wanted one in \[-2, 2\)", *X)
def primitive_with_a_wrong_axis(x):
    return ops.ReduceSum(True)(x, 5)  # <- here


@wrong(TypeError, r"sqrt: got str for an operand; wanted a Tensor or a number", *X)
def op_of_text(x):
    return x * ops.sqrt("a")  # <- here: ops.sqrt("a")


@wrong(TypeError, r"Dense: got out_channels='a'; wanted an int", *X, made=True)
def layer_with_a_wrong_option():
    class Net(nn.Cell):
        def construct(self, x):
            return nn.Dense(3, "a")(x)  # <- here: nn.Dense(3, "a")

    return Net()


@wrong(ValueError, r"grad: got grad_position 5 and 1 positional arguments", *X)
def gradient_of_a_position_that_is_not_there(x):
    return ms.grad(lambda a: a * 2, grad_position=5)(x)  # <- here


@wrong(ValueError, r"vmap: got mapped axes of lengths .*2.*4.*wanted one length", F(2, 3), F(4))
def vmap_over_two_lengths(x, y):
    return ops.vmap(lambda a, b: a + b)(x, y)  # <- here


# ---- what cannot be called ----------------------------------------------------------------------


@wrong(TypeError, r"'Tensor' object is not callable", F(2))
def calling_a_tensor(x):
    y = x + 1
    return y(x)  # <- here: y(x)


@wrong(TypeError, r"'int' object is not callable", F(2))
def calling_a_number(x):
    n = 3
    return n(x)  # <- here: n(x)


@wrong(TypeError, r"'NoneType' object is not callable", F(2), made=True)
def calling_a_layer_that_is_none():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.activation = None

        def construct(self, x):
            return self.activation(x)  # <- here: self.activation(x)

    return Net()


@wrong(TypeError, r"'str' object is not callable", F(2))
def calling_text(x):
    f = "relu"
    return f(x)  # <- here: f(x)


@wrong(TypeError, r"'module' object is not callable", F(2))
def calling_a_module(x):
    return ops(x)  # <- here: ops(x)


@wrong(TypeError, r"'tuple' object is not callable", F(2))
def calling_a_tuple(x):
    pair = (1, 2)
    return pair(x)  # <- here: pair(x)


# ---- recursion ----------------------------------------------------------------------------------


@wrong(RecursionError, r"(?i)recursion|call depth", 3, made=True, seconds=30)
def endless_recursion_on_a_number():
    def program(n):
        return program(n + 1)  # <- here

    return program


endless = wrong(
    RuntimeError,
    r"(?i)recursi|call depth|branch that can be evaluated",
    F(2),
    eager=False,
    made=True,
    seconds=30,
)


@endless
def endless_recursion_on_a_tensor():
    def program(x):  # <- here
        return program(x + 1)

    return program


@endless
def endless_recursion_of_two():
    def program(x):
        return other(x + 1)

    def other(x):
        return program(x * 2)

    return program


@endless
def recursion_in_both_branches():
    def program(x):
        if x.sum() > 100:
            return program(x - 1)
        return program(x + 1)

    return program


@wrong(TypeError, r"Cannot join|got.*wanted", F(2), eager=False, made=True)
def recursion_that_returns_two_shapes():
    def program(x):
        if x.sum() > 100:
            return x.sum()
        return program(x + 1) + x

    return program


@right(I(), made=True)
def recursion_that_ends():
    def program(n):
        if n <= 1:
            return n
        return n * program(n - 1)

    return program


@right(*X)
def op_by_keyword(x):
    return ops.exp(input=x)


@right(F(2))
def defaults_and_keywords(x):
    def helper(a, /, b=1, *rest, scale, **more):
        return a * scale + b + sum(rest) + sum(more.values())

    return helper(x, 2, 3, 4, scale=5, more=6)


@right(F(2))
def star_arguments(x):
    def helper(*a, **k):
        return a[0] + a[1] * k["n"]

    return helper(*[x, x], **{"n": 2})
